"""netbic compare and netbic replicate."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import netbic
from support.commands import run, run_successfully


@pytest.fixture(scope="module")
def folders(tmp_path_factory, study):
    """Files of two studies, and fits of the first one."""
    folder = tmp_path_factory.mktemp("studies")
    for name, rows in (("first", slice(0, 200)), ("second", slice(200, 400))):
        study.expression[rows].T.rename_axis("gene").to_csv(folder / f"{name}.tsv", sep="\t")
    for name, seed in (("one", 0), ("two", 5)):
        arguments = ("--modules", 3, "--genes", 60, "--seed", seed, "--no-report")
        run_successfully("fit", folder / "first.tsv", "--out", folder / name, *arguments)
    return folder


def test_compare_prints_the_answer_first_and_uses_the_scores_of_all_samples(folders):
    done = run_successfully("compare", folders / "one", folders / "two")
    lines = done.output.splitlines()
    assert lines[0] == (
        "Of 3 modules of one and 3 of two, 3 are the same in both (900 genes and 200 samples in common)."
    )
    assert lines[1].startswith("  Module 1 of one is module ")
    assert len(lines) == 4
    table = netbic.io.read_table(folders / "one" / "samples.tsv")  # not the weights of the samples
    scores = table.pivot_table(index="sample", columns="module", values="score")
    model = netbic.load(folders / "two")
    found = netbic.compare(folders / "one", model).similarity["score_correlation"]
    left = pd.DataFrame(model.left_vectors_, model.names_["rows"]).loc[scores.index]
    expected = np.corrcoef(scores.to_numpy().T, left.to_numpy().T)[:3, 3:]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_compare_writes_only_what_it_is_told_to(folders, tmp_path):
    before = sorted(folders.rglob("*"))
    table, plot = tmp_path / "comparison.tsv", tmp_path / "comparison.svg"
    run_successfully("compare", folders / "one", folders / "one", "--out", table, "--plot", plot)
    assert sorted(folders.rglob("*")) == before
    found = netbic.io.read_table(table)
    assert found["status"].tolist() == ["same"] * 3
    assert found["similarity"].tolist() == pytest.approx([1.0] * 3)
    assert plot.read_text().count("<svg") == 1
    refused = run("compare", folders / "one", folders / "two", "--out", table)
    assert refused.exit_code == 2
    assert "comparison.tsv exists: choose another name, or --force to replace it" in refused.output
    run_successfully("compare", folders / "one", folders / "two", "--out", table, "--force")
    inside = run("compare", folders / "one", folders / "two", "--out", folders / "one" / "modules.tsv", "--force")
    assert inside.exit_code == 2
    assert "is an input" in inside.output
    assert "ends in .pdf, .png or .svg" in run("compare", folders / "one", folders / "two", "--plot", "x.xyz").output


def test_compare_refuses_other_folders(folders, tmp_path):
    refused = run("compare", folders / "one", tmp_path)
    assert refused.exit_code == 1
    assert "contains no model: give the output folder of netbic fit" in refused.output
    assert run("compare", folders / "one", tmp_path / "nowhere").exit_code == 2
    changed = shutil.copytree(folders / "one", tmp_path / "changed")
    (changed / "samples.tsv").write_text("module\tsample\n0\ts1\n")
    refused = run("compare", folders / "one", changed)
    assert refused.exit_code == 1
    assert "samples.tsv: has no column group: netbic did not write it: fit again" in refused.output


def test_a_module_of_three_genes_is_named_by_all_of_them(folders):
    small = folders / "small"
    run_successfully("fit", folders / "first.tsv", "--out", small, "--modules", 1, "--genes", 3, "--no-report")
    line = run_successfully("replicate", small, folders / "second.tsv").output.splitlines()[1]
    model = netbic.load(small)
    names = ", ".join(model.names_["columns"][np.argsort(-np.abs(model.components_[0]))[:3]])
    assert line.startswith(f"  module 1 ({names}): Cannot be judged")


def test_replicate_writes_a_table_that_belongs_to_the_results_and_the_report_shows_it(folders):
    done = run_successfully("replicate", folders / "one", folders / "second.tsv")
    lines = done.output.splitlines()
    assert lines[0] == "Of 3 modules, 3 are replicated in the other study (900 genes in common, 200 samples)."
    assert lines[1].startswith("  module 1 (GENE")
    assert ": Replicated: 60 of its 60 genes correlate by " in lines[1]
    assert lines[-1] == str(folders / "one" / "replication.tsv")
    table = netbic.io.read_table(folders / "one" / "replication.tsv")
    assert table["module"].tolist() == [1, 2, 3]
    assert "replication.tsv" in json.loads((folders / "one" / "run.json").read_text())["files"]
    again = run_successfully("replicate", folders / "one", folders / "second.tsv")
    assert again.output == done.output
    pd.testing.assert_frame_equal(netbic.io.read_table(folders / "one" / "replication.tsv"), table)
    record = json.loads((folders / "one" / "replication.json").read_text())
    assert (record["study"], record["n_samples"], record["n_shared"]) == ("second.tsv", 200, 0)
    run_successfully("report", folders / "one", "--out", folders / "one.html", "--force")
    page = (folders / "one.html").read_text()
    assert page.count("Its genes move together in <bdi>second.tsv</bdi>") == 3
    for reason in table["reason"]:
        assert f"(<bdi>second.tsv</bdi>): <bdi>{reason}</bdi></p>" in page


def test_replicate_never_replaces_a_file_of_the_users(folders, tmp_path):
    (folders / "two" / "replication.tsv").write_text("mine")
    refused = run("replicate", folders / "two", folders / "second.tsv")
    assert refused.exit_code == 2
    assert "files that netbic did not write" in refused.output
    assert (folders / "two" / "replication.tsv").read_text() == "mine"
    out = tmp_path / "table.tsv"
    run_successfully("replicate", folders / "two", folders / "second.tsv", "--out", out)
    assert len(netbic.io.read_table(out)) == 3
    assert "exists" in run("replicate", folders / "two", folders / "second.tsv", "--out", out).output
    same = run("replicate", folders / "two", folders / "second.tsv", "--out", folders / "second.tsv", "--force")
    assert "is an input" in same.output
    done = run_successfully("replicate", folders / "one", folders / "first.tsv")
    assert done.output.startswith("Not independent: all 200 samples may be in the first study too")
    assert "--new-samples-only" not in done.output  # it would leave none


def test_replicate_in_files_that_do_not_fit(folders, study, tmp_path):
    def lines(table):
        table.rename_axis("gene").to_csv(tmp_path / "other.tsv", sep="\t")
        command = ("replicate", folders / "one", tmp_path / "other.tsv", "--out", tmp_path / "table.tsv")
        return run(*command).output.splitlines()

    other = study.expression[200:].T
    differ = lines(other.rename(index=str.lower))[-1]
    assert differ.endswith("They differ in capital letters only: write both sides in the same way (--id-map)")
    assert "exchange genes and samples (--samples-in-rows)" in lines(other.T)[-1]
    in_common = "in the other study (900 genes in common, 3 samples"
    assert lines(other.iloc[:, :3])[0].startswith(f"Of 3 modules, 3 cannot be judged {in_common}")
