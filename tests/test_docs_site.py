"""The documentation site is complete: pages, commands, public names, links. `make docs` builds it."""

import importlib
import inspect
import re
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

import netbic
from netbic.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WRITTEN_BY_REPRODUCE = ["paper/figure?.md", "paper/table1.md"]
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if "_build" not in page.parts
    and not any(fnmatch(str(page.relative_to(DOCS)), pattern) for pattern in WRITTEN_BY_REPRODUCE)
)
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PACKAGES = [name for name in netbic.__all__ if isinstance(getattr(netbic, name), ModuleType)] + ["operators", "solver"]


def toctree_entries(page):
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        yield from (re.sub(r".*<(.*)>", r"\1", line) for line in lines)


def test_every_page_is_reached_from_the_front_page():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        assert page.exists(), page
        reached.add(page)
        waiting += [page.parent / f"{entry}.md" for entry in toctree_entries(page)]
    assert reached == set(PAGES)


def test_every_command_has_its_section():
    sections = re.findall(r"^## netbic (\w+)$", (DOCS / "command-line.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(main.commands)


def listed_names(package):
    """Names in the tables and constants of a package's page; `netbic.X` where a name is described at the top."""
    text = (DOCS / "api" / f"{package}.md").read_text()
    tables = re.findall(r"\.\. autosummary::\n(.*?)```", text, re.DOTALL)
    names = {name for table in tables for name in re.findall(r"^   (\w+)$", table, re.MULTILINE)}
    return names | set(re.findall(r"\{py:data\} (\w+)", text)), set(re.findall(r"\{py:obj\}`netbic\.(\w+)`", text))


def public_names(package):
    module = importlib.import_module(f"netbic.{package}")
    if hasattr(module, "__all__"):
        return set(module.__all__)
    own = inspect.getmembers(module, lambda value: getattr(value, "__module__", None) == module.__name__)
    return {name for name, value in own if not name.startswith("_") and callable(value)}


def test_the_top_of_the_package_is_listed():
    listed, _ = listed_names("netbic")
    assert listed == {name for name in netbic.__all__ if name not in PACKAGES}
    assert {
        package for package in PACKAGES if f"({package}.md)" not in (DOCS / "api" / "index.md").read_text()
    } == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_is_listed(package):
    listed, above = listed_names(package)
    assert above <= set(netbic.__all__)
    assert public_names(package) <= listed | above, "add it to the tables of the package's page in docs/api"
    module = importlib.import_module(f"netbic.{package}")
    assert {name for name in listed if not hasattr(module, name)} == set(), "no longer there"
    assert listed <= set(getattr(module, "__all__", listed)), "add it to __all__, or the page does not describe it"


def prose(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """The targets of a page's headings, as both GitHub and the site generate them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_relative_link_is_broken():
    for page in TEXTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            assert linked.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(linked), f"{page}: {target}"
