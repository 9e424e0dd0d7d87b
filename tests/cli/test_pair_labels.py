"""netbic pairs and netbic associate: pairs of two tables compared with a table of the samples."""

import re

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.files import read_table, recorded_files
from support.commands import run, run_successfully
from support.pair_folders import both_tables, write_tables

N = 40
OPTIONS = ("--features1", 6, "--features2", 4, "--pairs", 2, "--permutations", 0, "--no-report")


@pytest.fixture
def tables(tmp_path):
    return write_tables(tmp_path)


@pytest.fixture
def done(tables, tmp_path):
    run_successfully("pairs", *tables, "--out", tmp_path / "pairs", *OPTIONS)
    return tmp_path / "pairs"


def contents(folder, names):
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture
def labels(tmp_path):
    """High and low samples of one pair, and a label that has nothing to do with it."""
    first = both_tables()[0].iloc[:6].sum()
    table = pd.DataFrame({"group": np.where(first > first.median(), "high", "low"), "plate": list("ab") * (N // 2)})
    path = tmp_path / "labels.tsv"
    table.set_axis(pd.Index(first.index, name="sample")).iloc[::-1].to_csv(path, sep="\t")
    return path


def test_pairs_are_compared_with_the_sample_table(tables, labels, tmp_path):
    out, options = tmp_path / "out", OPTIONS[:-1]
    shown = run_successfully("pairs", *tables, "--out", out, "--sample-info", labels, *options).output
    assert "matched: 40 of 40 samples (100%)" in shown
    assert re.search(r"group: (high|low) is higher in pair [12], table [12] \(AUC 0\.\d\d, q = ", shown)
    assert "plate: no association (q <= 0.05)" in shown
    names = ("associations.tsv", "associations.json", "sample_info.tsv")
    assert recorded_files(out) >= set(names)
    expected = netbic.association.associate_pairs(netbic.load(out), netbic.io.read_sample_info(labels)).table
    found = read_table(out / "associations.tsv")
    pd.testing.assert_frame_equal(found.fillna(np.nan), expected.fillna(np.nan), check_dtype=False)
    page = (out / "report.html").read_text()
    assert re.search(r"<bdi>group: (high|low) is higher in pair [12], table [12] \(AUC", page)
    assert page.count('class="labelled"') == N  # of one of both pairs
    first = contents(out, names)
    run_successfully("associate", out, "--sample-info", labels)
    assert contents(out, names) == first


def test_a_finished_folder_of_pairs_is_compared_with_a_sample_table(done, labels, tmp_path):
    shown = run_successfully("associate", done, "--sample-info", labels, "--variables", "group").output
    assert re.search(r"group: (high|low) is higher in pair [12]", shown)
    assert set(read_table(done / "associations.tsv")["table"]) == {1, 2}
    shown = run("plot", done, "associations", "--out", tmp_path / "plot.png").output
    assert "contains pairs of two tables (SparseGraphCCA), not modules of one table" in shown


def test_problems_of_the_sample_table_are_found_before_the_search(tables, labels, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "others.tsv").write_text("sample\tgroup\ns0\ta\ns1\tb\n")
    for options, message in (
        (("--variables", "group"), "--variables needs --sample-info"),
        (("--sample-info", tmp_path / "others.tsv"), "no sample of the fit is in the sample table"),
        (("--sample-info", labels, "--variables", "grup"), "grup"),
    ):
        result = run("pairs", *tables, "--out", out, *OPTIONS, *options)
        assert result.exit_code != 0
        assert message in result.output
        assert not out.exists()
    out.mkdir()
    inside = out / "associations.tsv"
    inside.write_bytes(labels.read_bytes())
    result = run("pairs", *tables, "--out", out, *OPTIONS, "--sample-info", inside, "--force")
    assert result.exit_code != 0
    assert inside.read_bytes() == labels.read_bytes()


def test_samples_that_belong_together_are_averaged_and_pairs_are_not_tested(tables, labels, tmp_path):
    table = pd.read_csv(labels, sep="\t", index_col=0)
    donors = table.assign(donor=[f"d{k // 4}" for k in range(N)], arm=np.repeat(["drug", "none"], N // 2))
    donors[["donor", "arm"]].to_csv(tmp_path / "donors.tsv", sep="\t")
    out, given = tmp_path / "out", ("--sample-info", tmp_path / "donors.tsv", "--by", "donor")
    shown = run_successfully("pairs", *tables, "--out", out, *OPTIONS[:-1], "--permutations", 9, *given).output
    assert "pairs are not tested, because samples belong together (--by)" in shown
    assert "p_value" not in read_table(out / "pairs.tsv")
    assert set(read_table(out / "associations.tsv")["n"]) == {N // 4}
    page = (out / "report.html").read_text()
    assert "<h2>Sample table</h2>" in page
    assert "averages" in page


def test_the_report_says_what_tests_are_adjusted_for(tables, labels, tmp_path):
    out = tmp_path / "out"
    given = ("--sample-info", labels, "--adjust", "plate")
    run_successfully("pairs", *tables, "--out", out, *OPTIONS[:-1], *given)
    page = (out / "report.html").read_text()
    assert re.search(r"<dt>tests adjusted for</dt><dd><bdi>plate</bdi></dd>", page)
    (out / "sample_info.tsv").unlink()
    run_successfully("report", out)
    assert "points have no colours, because sample_info.tsv is missing" in (out / "report.html").read_text()


def test_a_sample_table_without_columns_to_test_is_not_shown(tables, tmp_path):
    samples = both_tables()[0].columns
    pd.DataFrame({"centre": "A"}, index=samples).to_csv(tmp_path / "one.tsv", sep="\t")
    given = ("--sample-info", tmp_path / "one.tsv")
    shown = run_successfully("pairs", *tables, "--out", tmp_path / "out", *OPTIONS[:-1], *given).output
    assert "no column of the sample table can be tested" in shown
    assert "Sample table" not in (tmp_path / "out" / "report.html").read_text()


def test_obs_of_either_table_is_the_sample_table(tables, labels, tmp_path):
    second = both_tables()[1]
    obs = pd.read_csv(labels, sep="\t", index_col=0).loc[second.columns, ["group"]]
    anndata.AnnData(second.T, obs=obs).write_h5ad(tmp_path / "lipids.h5ad")
    given = OPTIONS
    shown = run_successfully("pairs", tables[0], tmp_path / "lipids.h5ad", "--out", tmp_path / "out", *given).output
    assert re.search(r"group: (high|low) is higher in pair [12]", shown)
