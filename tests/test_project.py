"""The files around the code agree with each other: workflows, Makefile, versions, dependencies."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import netbic
from netbic.cli import main

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([\w-]+):(?!=)", MAKEFILE, re.MULTILINE))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_makefile_lists_every_target():
    listed = re.findall(r"^#   make ([\w-]+) ", MAKEFILE, re.MULTILINE)
    phony = re.search(r"^\.PHONY:(.*?)$", MAKEFILE.replace("\\\n", ""), re.MULTILINE)[1].split()
    assert sorted(listed) == sorted(phony) == sorted(TARGETS)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_only_make_targets_and_pins_its_actions_by_major_version(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job.get("steps", []) if "run" in step]
    assert {command for command in commands if not re.fullmatch(r"make [\w-]+", command)} == set()
    assert {command.removeprefix("make ") for command in commands} <= TARGETS
    used = re.findall(r"uses: (\S+)", workflow.read_text())
    assert {name for name in used if not re.search(r"@(release/)?v\d+$", name) and not name.startswith("./")} == set()
    assert all((ROOT / name).is_file() for name in used if name.startswith("./"))


def test_every_python_of_the_classifiers_is_tested_and_installed():
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    for name, job in (("tests", "suite"), ("build", "install")):
        content = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
        assert content["jobs"][job]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_tests_with_the_lowest_dependencies_exist():
    one_line = MAKEFILE.replace("\\\n", "")
    paths = re.search(r"^LOWEST_TESTS := \$\(addprefix tests/,(.*)\)$", one_line, re.MULTILINE)[1].split()
    assert [path for path in paths if not (ROOT / "tests" / path).exists()] == []


def test_the_recipe_requires_what_the_project_requires():
    python, *others = RECIPE["requirements"]["run"]
    built_with = [line.replace(" ", "") for line in RECIPE["requirements"]["host"][2:]]
    assert built_with == PYPROJECT["build-system"]["requires"]
    assert python == "python >=${{ python_min }}"
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    assert [line.replace(" ", "") for line in others] == PROJECT["dependencies"]
    scripts = [f"{name} = {path}" for name, path in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts


@pytest.mark.parametrize(
    ("wrapper", "begin", "end"),
    [("galaxy/netbic_fit.xml", "netbic fit $", "<outputs>"), ("nf-core/netbic/fit/main.nf", "script:", "END_VERSIONS")],
)
def test_wrappers_call_options_that_exist(wrapper, begin, end):
    text = (ROOT / "recipe" / wrapper).read_text()
    known = {name for option in main.commands["fit"].params for name in option.opts + option.secondary_opts}
    used = set(re.findall(r"(?<![\w-])--[a-z-]+", text[text.index(begin) : text.index(end)]))
    assert {"--gene-sets", "--graph", "--sample-info"} < used
    assert used <= known
    assert Version(netbic.__version__).base_version in text


def test_versions_agree():
    """The changelog begins with what is not released yet; a release has the version and the date of the citation."""
    version = Version(netbic.__version__)
    assert RECIPE["context"]["version"] == netbic.__version__
    assert CHANGELOG.index("## [Unreleased]") == CHANGELOG.index("## [")
    releases = re.findall(r"^## \[(\d.*?)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
    cited = [(CITATION["version"], str(CITATION["date-released"]))] if "version" in CITATION else []
    assert releases[:1] == cited
    assert version.is_devrelease or version == Version(releases[0][0])
