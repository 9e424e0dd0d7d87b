"""netbic judge: verdicts on gene sets of other programs."""

import json

import anndata
import pandas as pd
import pytest
import scipy.sparse as sp

from support.commands import run, run_successfully


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    run_successfully("simulate", folder, "--samples", 150, "--genes", 600, "--modules", 2, "--strength", 1.5, "--force")
    truth = pd.read_csv(folder / "truth.tsv", sep="\t")
    genes = truth[truth["axis"] == "gene"].groupby("module")["name"].agg(list)
    every = pd.read_csv(folder / "expression.tsv.gz", sep="\t", index_col=0, usecols=[0]).index
    lines = [["other", "", *every[::15]], ["one", "", *genes.iloc[0]], ["few", "", "TP53", every[0]]]
    (folder / "sets.gmt").write_text("\n".join("\t".join(line) for line in lines) + "\n")
    return folder


def test_sets_are_judged_and_nothing_is_replaced(cohort, tmp_path):
    command = "judge", cohort / "expression.tsv.gz", cohort / "sets.gmt", "--out", tmp_path / "out"
    printed = run_successfully(*command).output
    assert "Of 2 sets, 1 is strong, 1 is doubtful" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows] == ["set", "one", "other"]  # the best first
    assert rows[2][1:3] == ["40/40", "doubtful"]
    assert "1 of 3 sets have fewer than 5 genes in X and are not judged: 'few'" in " ".join(printed.split())
    table = pd.read_csv(tmp_path / "out" / "judged.tsv", sep="\t")
    assert table["set"].tolist() == ["other", "one"]
    assert table["verdict"].tolist() == ["doubtful", "strong"]
    scores = pd.read_csv(tmp_path / "out" / "judged_scores.tsv", sep="\t", index_col="sample")
    assert scores.columns.tolist() == ["other", "one"]
    samples = pd.read_csv(cohort / "expression.tsv.gz", sep="\t", index_col=0, nrows=0).columns
    assert scores.index.tolist() == samples.tolist()
    genes = pd.read_csv(tmp_path / "out" / "judged_genes.tsv", sep="\t")
    assert genes.groupby("set").size().to_dict() == dict(zip(table["set"], table["n_available"], strict=True))
    assert json.loads((tmp_path / "out" / "judged.json").read_text())["found_elsewhere"] is False
    again = run(*command)
    assert again.exit_code == 2
    assert "has verdicts already: choose another folder, or use --force" in " ".join(again.output.split())
    found = run_successfully(*command, "--force", "--found-elsewhere", "--quiet")
    assert found.output == ""


def test_problems_are_explained_in_one_line(cohort, tmp_path):
    (tmp_path / "others.gmt").write_text("a\t\tTP53\tMYC\tKRAS\tEGFR\tGENE0001\n")
    command = "judge", cohort / "expression.tsv.gz"
    nothing = run(*command, tmp_path / "others.gmt", "--out", tmp_path / "out")
    assert nothing.exit_code == 1
    assert "none of the 1 sets has at least 5 genes" in " ".join(nothing.output.split())
    unused = run(*command, cohort / "sets.gmt", "--out", tmp_path / "out", "--sample-info", cohort / "labels.tsv")
    assert unused.exit_code == 2
    assert "--sample-info is used for --covariates and --by only" in " ".join(unused.output.split())
    assert not (tmp_path / "out").exists()


def test_sparse_data_are_judged_by_names(cohort, tmp_path):
    table = pd.read_csv(cohort / "expression.tsv.gz", sep="\t", index_col=0).T
    adata = anndata.AnnData(
        sp.csr_matrix(table.to_numpy()), pd.DataFrame(index=table.index), pd.DataFrame(index=table.columns)
    )
    adata.write_h5ad(tmp_path / "cells.h5ad")
    both = []
    for name, data in (("dense", cohort / "expression.tsv.gz"), ("sparse", tmp_path / "cells.h5ad")):
        run_successfully("judge", data, cohort / "sets.gmt", "--found-elsewhere", "--out", tmp_path / name)
        tables = [pd.read_csv(tmp_path / name / f"judged{each}.tsv", sep="\t") for each in ("", "_genes", "_scores")]
        both.append((tables[0][["set", "verdict"]], tables[1].groupby("set")["gene"].agg(set), tables[2]["sample"]))
    for one, other in zip(*both, strict=True):
        assert one.equals(other)
