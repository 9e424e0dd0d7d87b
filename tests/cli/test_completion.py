"""netbic fit --resume adds to a finished fit what was not asked for before."""

import json

import numpy as np
import pandas as pd
import pytest

import netbic
from support.commands import run
from support.output_folders import contents

SAMPLES = [f"s{k}" for k in range(60)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    planted = {"n_modules": 2, "module_samples": 25, "module_genes": 20, "overlap": 0, "strength": 2.0}
    study = netbic.simulate.cohort(60, 120, **planted, random_state=1)
    frame = study.expression.set_axis(SAMPLES).T.rename_axis("gene")
    frame.to_csv(folder / "expression.tsv", sep="\t")
    generator = np.random.default_rng(0)
    labels = {"drug": np.where(study.samples[0], "A", "B"), "age": generator.normal(50, 9, 60).round(1)}
    labels |= {"days": generator.integers(1, 900, 60), "dead": generator.integers(0, 2, 60)}
    pd.DataFrame(labels, index=pd.Index(SAMPLES, name="sample")).to_csv(folder / "samples.tsv", sep="\t")
    (folder / "sets.gmt").write_text("first\t\t" + "\t".join(frame.index[study.genes[0]]) + "\n")
    return folder


def fit(files, out, *more):
    given = ("--modules", 2, "--genes", 20, "--out", out)
    return run("fit", files / "expression.tsv", *given, *more)


def test_everything_can_be_added_later(files, tmp_path):
    tables = ("--gene-sets", files / "sets.gmt", "--sample-info", files / "samples.tsv")
    whole = fit(files, tmp_path / "whole", *tables, "--verdict", "--no-report")
    assert whole.exit_code == 0, whole.output
    assert fit(files, tmp_path / "later", "--no-report").exit_code == 0
    before = contents(tmp_path / "later")
    assert "verdicts.tsv" not in before
    done = fit(files, tmp_path / "later", *tables, "--verdict", "--no-report", "--resume")
    assert done.exit_code == 0, done.output
    assert "the modules are unchanged" in done.output
    assert "Of 2 modules, 2 are strong" in done.output
    assert "module 1: strong, 20 genes" in done.output
    later, expected = contents(tmp_path / "later"), contents(tmp_path / "whole")
    assert set(later) == set(expected)
    assert [name for name in expected if later[name] != expected[name] and name != "run.json"] == []
    records = [json.loads(each["run.json"]) for each in (later, expected)]
    assert records[0]["inputs"] == records[1]["inputs"]
    assert sorted(records[0]["files"]) == sorted(records[1]["files"])
    again = fit(files, tmp_path / "later", *tables, "--verdict", "--no-report", "--resume")
    assert "nothing to do" in again.output
    assert contents(tmp_path / "later") == later
    other = fit(files, tmp_path / "later", *tables[2:], "--survival", "days,dead", "--no-report", "--resume")
    assert other.exit_code == 0, other.output  # other tests of the same table
    assert "log-rank" in set(netbic.io.read_table(tmp_path / "later" / "associations.tsv")["test"].str[:8])


def test_verdicts_are_added_by_a_plain_resume_and_shown_in_the_report(files, tmp_path):
    assert fit(files, tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    table = ("--sample-info", files / "samples.tsv", "--variables", "drug")
    done = fit(files, tmp_path / "out", *table, "--verdict", "--resume")
    assert done.exit_code == 0, done.output
    later = (tmp_path / "out" / "report.html").read_text()
    assert later != page
    assert "samples.tsv" in later
    assert str(files) not in later  # folders may say who and where
    assert netbic.io.read_table(tmp_path / "out" / "summary.tsv")["verdict"].tolist() == ["strong", "strong"]
    assert "verdicts.tsv" in json.loads((tmp_path / "out" / "run.json").read_text())["files"]
    sets = ("--gene-sets", files / "sets.gmt", "--no-report", "--resume")
    (tmp_path / "out" / "gene_sets.tsv").write_text("mine")
    assert "gene_sets.tsv" in fit(files, tmp_path / "out", *sets).output
    assert (tmp_path / "out" / "gene_sets.tsv").read_text() == "mine"
    (tmp_path / "out" / "gene_sets.tsv").unlink()
    done = fit(files, tmp_path / "out", *sets)
    assert f"next: netbic report {tmp_path / 'out'} (report.html is older than these tables)" in done.output
