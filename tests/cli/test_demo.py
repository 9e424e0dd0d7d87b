"""netbic demo: modules of tumours, or what was planted and found, and which modules can be trusted."""

import re
import shlex
import shutil

import numpy as np
import pytest

import netbic
from support.commands import run, run_successfully


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The output of the demo, and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "netbic-demo"
    return run_successfully("demo", "--simulated", "--out", folder).stdout, folder


@pytest.fixture(scope="module")
def tumours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tumours") / "netbic-demo"
    return run_successfully("demo", "--out", folder).stdout, folder


def test_the_tumours_are_judged_and_compared_with_survival(tumours):
    printed, folder = tumours
    text = " ".join(printed.split())
    assert re.search(r"Of 15 modules, \d+ are strong", text)
    rows = re.findall(r"^ +(\d+) +(\d+) +(strong|moderate|repeats \d+|broad axis|doubtful) +(\w.*)$", printed, re.M)
    assert [int(row[0]) for row in rows] == [*range(1, 16)]
    assert any(row[2] == "strong" and "FAP, LUM" in row[3] for row in rows)
    assert any("rises with stage" in row[3] for row in rows)
    survival = re.search(
        r"os_days: the risk (rises|falls) with module \d+ \(hazard ratio per sd ([\d.]+), q = (\S+)\)", text
    )
    assert (float(survival[2]) > 1) == (survival[1] == "rises")
    assert float(survival[3]) < 0.05
    assert (folder / "modules" / "report.html").stat().st_size > 100_000
    assert "Artistic-2.0" in (folder / "about.md").read_text()


def test_the_files_of_the_tumours_are_those_of_the_package(tumours):
    cohort, folder = netbic.datasets.ovarian(), tumours[1]
    read = netbic.io.read_expression(folder / "expression.tsv.gz").frame()
    assert read.index.equals(cohort.expression.index)
    assert np.array_equal(read.to_numpy(), cohort.expression.to_numpy())
    labels = netbic.io.read_sample_info(folder / "samples.tsv")
    assert labels["os_days"].equals(cohort.sample_info["os_days"])


def test_one_demo_replaces_the_other(tumours, tmp_path):
    folder = tmp_path / "netbic-demo"
    shutil.copytree(tumours[1], folder)
    run_successfully("demo", "--simulated", "--out", folder, "--force")
    kept = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert kept == {"expression.tsv.gz", "network.sif", "truth.tsv", "labels.tsv", "example.json", "modules"}
    assert not (folder / "modules" / "associations.tsv").exists()


def test_the_demo_opens_with_the_answer_and_leaves_a_report(demo):
    printed, folder = demo
    assert f"{folder}/modules/report.html" in printed
    assert (folder / "modules" / "report.html").stat().st_size > 100_000
    first = " ".join(printed.split("\n\n")[0].split())
    assert first.startswith("netbic found 5 of 5 planted gene programs, without being told how many genes or patients")
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
@pytest.mark.parametrize("which", ["demo", "tumours"])
def test_the_command_that_it_prints_finds_the_same_modules(which, request, tmp_path):
    printed, folder = request.getfixturevalue(which)
    command = re.search(r"These modules were found by: netbic (.*)", printed)[1]
    arguments = command.replace(f"{folder}/modules", str(tmp_path / "again"))
    run_successfully(*shlex.split(arguments), "--no-verdict", "--no-report")
    tables = [netbic.io.read_table(path / "modules.tsv") for path in (folder / "modules", tmp_path / "again")]
    assert tables[0][tables[1].columns].equals(tables[1])  # the first has columns of the verdicts, too


def test_files_of_others_are_never_replaced(demo, tmp_path):
    folder = demo[1]
    done = run("demo", "--out", folder)
    assert done.exit_code == 2
    assert "is not empty: choose another folder with --out, or use --force to replace an earlier demo" in done.output
    own = tmp_path / "network.sif"
    own.write_text("A\tbinds\tB\n")
    done = run("demo", "--simulated", "--out", tmp_path, "--force")
    assert done.exit_code != 0
    assert "network.sif" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["network.sif"]
    assert own.read_text() == "A\tbinds\tB\n"
