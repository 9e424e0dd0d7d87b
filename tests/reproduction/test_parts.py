"""Table 1 and Figure 2 on the real data: the paper's order of methods, and the effect of degrees."""

import numpy as np
import pytest

import reproduction.run as experiments
from netbic import InputError
from netbic.files import read_table
from reproduction.published import LEVELS, PAPER_METHODS
from reproduction.tumours import (
    Sizes,
    compare,
    correlation_ratios,
    enriched_shares,
    signed_ranks,
    summarise,
)


@pytest.fixture(scope="module")
def breast(real_data):
    return compare(real_data, datasets=["BRCA (Agilent)"], networks=["Pathway Commons"], methods=PAPER_METHODS)


def test_the_papers_ordering_on_breast_tumours(breast):
    shares = summarise(breast).set_index("method")["0.05"]
    assert shares["sgSVD*"] >= shares["sgSVD"] >= shares["L0SVD"]
    assert shares["sgSVD*"] > shares["L0SVD"] + 15
    ranks = signed_ranks(breast).set_index(["first", "second"])["p_value"]
    assert ranks["sgSVD*", "L0SVD"] < 0.01


def test_much_of_the_gain_is_explained_by_degree(breast):
    summary = summarise(breast).set_index("method")
    gain = summary.loc["sgSVD*", "log fold_change"] - summary.loc["L0SVD", "log fold_change"]
    with_rewired = summary.loc["sgSVD*", "log rewired_fold_change"] - summary.loc["L0SVD", "log fold_change"]
    matched = summary.loc["sgSVD*", "log degree_fold_change"] - summary.loc["L0SVD", "log degree_fold_change"]
    assert with_rewired > 0.4 * gain
    assert matched < 0.5 * gain
    own = breast[breast["method"] == "sgSVD*"]
    shares = [100 * np.mean(own["p_value"] <= level) for level in LEVELS]
    assert enriched_shares(own) == shares
    row = summarise(breast).set_index("method").loc["sgSVD*"]
    assert [row[f"{level:g}"] for level in LEVELS] == shares
    assert row["terms, 0.01"] == own["terms_0.01"].sum()


def test_correlations_within_modules_are_compared_with_those_of_random_sets():
    X = np.random.default_rng(0).standard_normal((40, 60))
    X[:, :10] += X[:, :1]
    X[:, 59] = 0.1  # constant: its correlations count as 0
    pairs = np.abs(np.nan_to_num(np.corrcoef(X[:, :59], rowvar=False)))[np.triu_indices(59, 1)].sum() / (60 * 59 / 2)
    planted, all_genes = np.arange(60) < 10, np.ones(60, dtype=bool)
    of_planted, of_all = correlation_ratios(np.array([planted, all_genes]), X, 9, 0)
    own = np.abs(np.corrcoef(X[:, planted], rowvar=False))[np.triu_indices(10, 1)].mean()
    assert of_planted == pytest.approx(own / pairs, rel=0.2)  # random sets have about the mean of all pairs
    assert of_planted > 2
    assert of_all == pytest.approx(1)


def test_everything_is_written(real_data, tmp_path):
    sizes = Sizes(modules=3, genes=50, samples=30)
    options = {"datasets": ["CGP (excerpt)"], "networks": ["Pathway Commons"], "sizes": sizes, "replicates": 2}
    experiments.reproduce(experiments.PARTS, tmp_path, real_data, **options)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"README.md", "table1.tsv", "sigma.tsv", "wilcoxon.tsv", "modules.tsv", "figure1_controls.tsv"} <= names
    assert {f"figure{k}.{kind}" for k in (1, 2) for kind in ("png", "svg")} <= names
    page = (tmp_path / "README.md").read_text()
    for heading in ("## Figure 1", "## Table 1", "## Figure 2", "## Other values of sigma"):
        assert heading in page
    share = read_table(tmp_path / "table1.tsv").set_index("method").loc["sgSVD*", "0.1"]
    assert f"| CGP (excerpt) | sgSVD\\* | {share:.1f}".removesuffix(".0") in page
    (tmp_path / "table1.md").unlink()
    experiments.reproduce(["fig1"], tmp_path, replicates=2)
    again = (tmp_path / "README.md").read_text()
    assert "## Figure 2" in again  # a part that was run before stays on the page
    assert "## Table 1" not in again


def test_missing_data_and_unknown_parts_are_reported(tmp_path):
    for parts, data, options, message in (
        (["table1"], None, {}, "Table 1 and Figure 2 need real data"),
        (["fig3"], None, {}, r"unknown parts \['fig3'\]"),
        (experiments.PARTS, tmp_path, {}, r"expr_tcga_brca_agilent2012.parquet does not exist"),
        (["fig2"], tmp_path, {"datasets": ["lung"]}, "lung is unknown: choose from BRCA"),
        (["fig1"], None, {"replicates": 1}, "replicates=1"),
    ):
        with pytest.raises(InputError, match=message):
            experiments.reproduce(parts, tmp_path / "out", data, **options)
    assert not (tmp_path / "out").exists()
