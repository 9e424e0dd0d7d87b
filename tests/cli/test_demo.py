"""netbic demo: what was planted, what was found, and which modules can be trusted."""

import re
import shlex
from pathlib import Path

import pytest

import netbic
from support.commands import run, run_successfully


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The output of the demo, and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "netbic-demo"
    return run_successfully("demo", "--out", folder).stdout, folder


def test_the_demo_opens_with_the_answer_and_leaves_a_report(demo):
    printed, folder = demo
    assert f"{folder}/modules/report.html" in printed
    assert (folder / "modules" / "report.html").stat().st_size > 100_000
    first = " ".join(printed.split("\n\n")[0].split())
    assert first.startswith("netbic found 5 of 5 planted gene programs, without being told how many genes or patients")
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = re.search(r"```text\n(netbic found.*?)```", readme, re.DOTALL)[1]
    assert " ".join(shown.split()) in " ".join(printed.split())
    assert first.endswith("Of 6 modules, 5 are strong, 1 is doubtful.")


def test_every_program_is_found_with_its_genes_and_patients(demo):
    sizes = {"T cells": 120, "stroma": 70, "proliferation": 45, "hypoxia": 25, "interferon": 30}
    for name, n_genes in sizes.items():
        found = rf"^ *{name} +{n_genes} +\d+ +module \d +\d+ +([\d.]+) +\d+ +([\d.]+) +strong"
        row = re.search(found, demo[0], re.M)
        assert float(row[1]) > 0.8
        assert float(row[2]) > 0.8
    assert re.search(r"^ *\(nothing\) +module 6 +\d+ +- +doubtful", demo[0], re.M)
    for start in ("Strong: in samples not used", "Doubtful: a search in only"):
        assert start in demo[0]


@pytest.mark.nightly
def test_the_command_that_it_prints_finds_the_same_modules(demo, tmp_path):
    printed, folder = demo
    command = re.search(r"These modules were found by: netbic (.*)", printed)[1]
    arguments = command.replace(f"{folder}/modules", str(tmp_path / "again"))
    run_successfully(*shlex.split(arguments), "--no-verdict", "--no-report")
    tables = [netbic.io.read_table(path / "modules.tsv") for path in (folder / "modules", tmp_path / "again")]
    assert tables[0].equals(tables[1])


def test_files_of_others_are_never_replaced(demo, tmp_path):
    folder = demo[1]
    done = run("demo", "--out", folder)
    assert done.exit_code == 2
    assert "is not empty: choose another folder with --out, or use --force to replace an earlier demo" in done.output
    own = tmp_path / "network.sif"
    own.write_text("A\tbinds\tB\n")
    done = run("demo", "--out", tmp_path, "--force")
    assert done.exit_code != 0
    assert "network.sif" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["network.sif"]
    assert own.read_text() == "A\tbinds\tB\n"
