"""Checks before a fit: alarms where they are due, none on clean data."""

import json
import os
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic.io.checks import check_expression
from netbic.io.names import genes_as_dates
from support.commands import run_successfully as run

DATA = Path(os.environ.get("NETBIC_DATA", "none"))
REAL = sorted([*DATA.glob("expr_*.parquet"), *DATA.glob("small_*.parquet")])


def log_values(rng, n_samples=60, n_genes=500):
    """Logarithms as of a microarray: gene means, a few factors, noise."""
    factors = rng.normal(size=(n_samples, 3)) @ rng.normal(size=(3, n_genes))
    return rng.normal(8, 2, n_genes) + 0.3 * factors + 0.5 * rng.normal(size=(n_samples, n_genes))


def count_values(rng, n_samples=60, n_genes=500, level=3.0):
    means = rng.lognormal(level, 2, n_genes) * rng.lognormal(0, 0.4, (n_samples, 1))
    return rng.negative_binomial(3, 3 / (3 + means)).astype(float)


def normalised(counts):
    return np.log1p(1e6 * counts / counts.sum(axis=1, keepdims=True))


def kinds(X, *names, **options):
    return [finding.kind for finding in check_expression(X, *names, **options)]


def test_raw_counts():
    counts = count_values(np.random.default_rng(0))
    for form in (np.asarray, sp.csr_array, sp.csc_matrix, lambda X: X.astype(np.int32), pd.DataFrame):
        (finding,) = check_expression(form(counts))
        assert (finding.kind, finding.remedy) == ("raw counts", "add `cpm=True` `log1p=True`")
        assert f"up to {int(counts.max()):,}" in finding.problem
        assert "\n" not in str(finding)


def test_the_scale_after_each_step_of_preprocessing():
    counts, rng = count_values(np.random.default_rng(1)), np.random.default_rng(2)
    per_million = 1e6 * counts / counts.sum(axis=1, keepdims=True)
    same_depth = rng.poisson(np.full((60, 500), 5.0) * np.geomspace(0.1, 30, 500)).astype(float)
    unlogged = np.exp2(log_values(np.random.default_rng(5)))
    logs = np.maximum(log_values(np.random.default_rng(6)), 0)
    for X, log1p, expected in (
        (per_million, False, ["not logarithms"]),
        (np.log1p(per_million), True, []),
        (np.log1p(counts), True, ["sequencing depth"]),
        (sp.csr_array(np.log1p(counts)), True, ["sequencing depth"]),
        (np.log1p(same_depth), True, []),
        (unlogged, False, ["not logarithms"]),
        (np.log1p(unlogged), True, []),
        (logs, False, []),
        (np.log1p(logs), True, ["logarithms twice"]),
        (normalised(logs), True, ["logarithms twice"]),
        *((rng.integers(*bounds, (80, 300)), False, []) for bounds in ((0, 3), (1, 6), (0, 101), (-2, 3), (0, 2))),
    ):  # the last ones: genotypes, ratings and percentages
        assert kinds(X, log1p=log1p) == expected
    assert check_expression(unlogged)[0].remedy == "add `log1p=True`"
    assert check_expression(unlogged - 20.0)[0].remedy.startswith("replace negative values by 0")
    shallow = count_values(np.random.default_rng(3), 200, 400, level=-4.5)  # of cells
    assert shallow.max() < 60
    assert np.mean(shallow == 0) > 0.5
    assert "raw counts" in kinds(sp.csr_array(shallow))


def test_pairs_of_the_same_sample():
    rng = np.random.default_rng(7)
    X = normalised(count_values(rng))
    X[10] = X[40] + 1e-3 * rng.normal(size=X.shape[1]) * (X[40] > 0)
    X[3] = X[50]
    for form in (np.asarray, sp.csr_array, lambda X: X.astype(np.float32)):
        (finding,) = check_expression(form(X), [f"patient {number}" for number in range(60)])
        assert finding.kind == "same samples"
        assert finding.names == ("patient 3", "patient 50", "patient 10", "patient 40")
        assert "2 pairs" in finding.problem
        assert "patient 3 = patient 50, patient 10 = patient 40" in finding.problem
    rng = np.random.default_rng(8)
    X = log_values(rng)
    X[1] = X[0] + 0.7  # the same sample, scaled to another total
    assert kinds(X) == ["same samples"]
    X[1] = X[0] + 0.15 * rng.normal(size=X.shape[1])  # a replicate
    assert kinds(X) == []
    few = log_values(np.random.default_rng(9), n_samples=8)
    few[0] = np.exp2(few[0])  # one extreme sample does not make the others the same
    assert "same samples" not in kinds(few)


@pytest.mark.parametrize(
    "failed",
    [lambda x, rng: rng.permutation(x), lambda x, _: x / 2, lambda x, _: np.exp2(x), lambda x, _: 0 * x],
    ids=["unrelated", "half", "unlogged", "zero"],
)
def test_outlying_samples(failed):
    rng = np.random.default_rng(10)
    X = log_values(rng, 100)
    X[17] = failed(X[17], rng)
    (finding,) = check_expression(X, np.arange(100))
    assert (finding.kind, finding.names) == ("outlying samples", ("17",))
    X[20:26] = X[17]  # six more; five are named
    several = next(each for each in check_expression(X) if each.kind == "outlying samples")
    assert len(several.names) == 7
    assert several.problem.count("sample ") == 5


def test_cells_with_hardly_any_gene():
    X = normalised(count_values(np.random.default_rng(11), 200, 400, level=-2))
    X[5] = np.where(np.arange(400) == np.argmax(X[5]), X[5], 0)
    for form in (np.asarray, sp.csr_array):
        assert [each.names for each in check_expression(form(X)) if each.kind == "outlying samples"] == [("sample 5",)]


def clean_cohorts(rng):
    n_samples, n_genes = int(rng.choice([10, 20, 60])), int(rng.choice([30, 100, 500]))
    means = rng.normal(8, 3, n_genes)
    yield "normal", means + rng.normal(size=(n_samples, n_genes))
    yield "centred", rng.normal(size=(n_samples, n_genes))
    yield "counts", normalised(count_values(rng, n_samples, n_genes, level=4))
    yield "heavy tails", means + rng.standard_t(3, size=(n_samples, n_genes))
    yield "factors", log_values(rng, n_samples, n_genes)


@pytest.mark.nightly
def test_at_most_one_clean_cohort_in_twenty_has_an_outlier_or_a_pair():
    alarms = {}
    for seed in range(100):
        for name, X in clean_cohorts(np.random.default_rng([12, seed])):
            alarms[name] = alarms.get(name, 0) + bool({"outlying samples", "same samples"}.intersection(kinds(X)))
    assert max(alarms.values()) <= 5, alarms


def test_names_that_a_spreadsheet_changed():
    found = genes_as_dates(
        ["TP53", "1-Mar", "02-Sep", "Mar-03", "2001-03-04 00:00:00", "2024-09-15", "9/7/2001", "1. Dez", "7-Feb"]
        + [f"GENE{number}" for number in range(30)]
    )
    assert found == {
        "1-Mar": "MARCHF1 (formerly MARCH1)",
        "02-Sep": "SEPTIN2 (formerly SEPT2)",
        "Mar-03": "MARCHF3 (formerly MARCH3)",
        "2001-03-04 00:00:00": "MARCHF4 (formerly MARCH4)",
        "2024-09-15": "SELENOF (formerly SEP15)",
        "9/7/2001": "SEPTIN7 (formerly SEPT7)",
        "1. Dez": "DELEC1 (formerly DEC1)",
        "7-Feb": "",
    }
    symbols = [f"GENE{number}" for number in range(100)]
    serial = (pd.Timestamp("2021-03-01") - pd.Timestamp("1899-12-30")).days
    assert genes_as_dates([*symbols, str(serial), str(serial + 100)]) == {str(serial): "MARCHF1 (formerly MARCH1)"}
    for names in (
        [str(number) for number in range(44000, 44600)],  # Entrez ids
        ["SEPTIN2", "MARCHF1", "SEPT2", "MARCH1", "HLA-A", "NKX2-1", "1-Mac", "H2-K1", "DEC1", "OCT-4", "MAR-1"],
        ["ENSG00000141510.5", "YAL001C", "AT1G01010", "1007_s_at", "2310009E13Rik", "7SK", "5-HT1A", "32-Mar"],
        ["", "nan", "1-Mar\n2", "-", "."],
        [f"{day}-Mar" for day in range(1, 30)],  # all names are dates: a series of days
    ):
        assert genes_as_dates(names) == {}
    X = pd.DataFrame(log_values(np.random.default_rng(13)))
    X.columns = ["2-Sep", "1-Mar", *(f"GENE{number}" for number in range(498))]
    (finding,) = check_expression(X)
    assert finding.names == ("2-Sep", "1-Mar")
    assert "2-Sep is SEPTIN2 (formerly SEPT2)" in finding.problem


def test_genes_with_most_of_the_variance_and_nearly_empty_genes():
    X = log_values(np.random.default_rng(14))
    X[:, [3, 9]] *= 30
    (finding,) = check_expression(X, genes=[f"g{number}" for number in range(500)])
    assert (finding.kind, len(finding.names), set(finding.names[:2])) == ("dominating genes", 5, {"g3", "g9"})
    assert kinds(X, scaled=True) == []
    spread = np.sort(X.var(axis=0))[::-1]
    assert f"hold {spread[:5].sum() / spread.sum():.0%} of the variance" in finding.problem
    X = normalised(count_values(np.random.default_rng(15), level=4))
    X[2:, :150] = 0
    sparse, with_zeros = sp.csr_array(X), sp.csr_array(X + 1)  # the latter with zeros that are stored
    with_zeros.data -= 1
    for given in (sparse, with_zeros):
        (finding,) = check_expression(given)
        assert (finding.kind, len(finding.names)) == ("empty genes", 150)
        assert "`n_variable=350`" in finding.remedy


def test_nothing_is_said_about_matrices_without_values():
    for X in (np.zeros((30, 40)), np.full((30, 40), np.nan), np.full((30, 40), np.inf), np.empty((0, 5))):
        assert check_expression(X) == []
    for X in (np.ones((5, 0)), [[1, 2], [3, 4]], np.ones((1, 300)), sp.csr_array((30, 40))):
        assert check_expression(X) == []


def test_missing_values_change_nothing():
    rng = np.random.default_rng(16)
    X = log_values(rng)
    X[3], X[17] = X[50], rng.permutation(X[17])
    X[rng.random(X.shape) < 0.0002] = np.nan
    assert kinds(X) == ["same samples", "outlying samples"]
    counts = count_values(rng)
    counts[rng.random(counts.shape) < 0.05] = np.nan
    assert (kinds(counts), kinds(counts + 0.5)) == (["raw counts"], ["not logarithms"])
    counts[:, rng.permuted(np.arange(500))[:60]] = np.nan
    assert kinds(np.log1p(counts)) == []


def test_of_a_dask_array_only_names_are_checked():
    def compute(block):
        raise AssertionError("a block was read")

    X = pytest.importorskip("dask.array").ones((60, 500), chunks=(20, 500))
    X = X.map_blocks(compute, dtype=float, meta=np.empty((0, 0)))
    assert kinds(X, None, ["1-Mar", *(f"GENE{number}" for number in range(499))]) == ["dates"]


def test_sparse_matrices_are_not_densified(monkeypatch):
    X = sp.csr_array(count_values(np.random.default_rng(17), level=-1))

    def refuse(self, *_, **__):
        assert min(self.shape) <= 1, "a sparse matrix was densified"
        return kept(self)

    kept = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", refuse)
    monkeypatch.setattr(sp.csr_array, "todense", refuse)
    assert "raw counts" in kinds(X)
    assert "raw counts" not in kinds(X.log1p(), log1p=True)


@pytest.mark.skipif(not REAL, reason="needs NETBIC_DATA")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_data_have_no_false_alarms(path):
    X = pd.read_parquet(path).T
    if "counts" in path.stem:
        assert kinds(X) == ["raw counts"]
        assert kinds(normalised(X.to_numpy(dtype=float)), log1p=True) == []
        return
    assert kinds(X) == []
    if path.stem.endswith(("brca_agilent2012", "brca_rnaseq", "coadread_rnaseq")):  # tumours
        assert kinds(unlogged := np.exp2(X.to_numpy(dtype=float))) == ["not logarithms"]
        assert kinds(unlogged, log1p=True)[-1] == "dominating genes"


# Commands and AnnData


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table of counts in which a sample occurs twice, and a network."""
    folder = tmp_path_factory.mktemp("checks")
    counts = count_values(np.random.default_rng(18), 40, 150, level=5)
    counts[7] = counts[3]
    genes = [f"GENE{number}" for number in range(150)]
    table = pd.DataFrame(counts.T.astype(int), index=genes, columns=[f"s{number}" for number in range(40)])
    table.to_csv(folder / "counts.tsv", sep="\t", index_label="gene")
    pd.DataFrame({"a": genes[:-1], "b": genes[1:]}).to_csv(folder / "network.tsv", sep="\t", index=False)
    return str(folder / "counts.tsv"), str(folder / "network.tsv")


def test_align_prints_each_finding_in_a_line_with_options(files):
    done = run("align", files[0], "--graph", files[1])
    first, second = done.stderr.splitlines()
    assert first.startswith("warning: these look like raw counts (whole numbers up to ")
    assert first.endswith(": add --cpm --log1p")
    assert "s3 = s7" in second
    found = json.loads(run("align", files[0], "--graph", files[1], "--json").stdout)["findings"]
    assert [each["kind"] for each in found] == ["raw counts", "same samples"]
    assert found[1]["names"] == ["s3", "s7"]
    assert run("align", files[0], "--graph", files[1], "--cpm", "--log1p").stderr.count("warning:") == 1


def test_fit_stores_what_it_found_and_the_report_shows_it(files, tmp_path):
    out, options = tmp_path / "out", ["--modules", 1, "--genes", 20]
    assert run("fit", files[0], "--out", out, "--quiet", *options).output == ""
    alignment = json.loads((out / "alignment.json").read_text())
    warnings = json.loads((out / "run.json").read_text())["warnings"]
    assert [each["text"] for each in alignment["findings"]] == warnings[:2]
    assert "add --cpm --log1p" in (out / "report.html").read_text()
    X = log_values(np.random.default_rng(19), 30, 150)
    X[:, 4] *= 40
    table = pd.DataFrame(X.T, [f"GENE{number}" for number in range(150)], [f"s{number}" for number in range(30)])
    table.to_csv(tmp_path / "values.tsv", sep="\t", index_label="gene")
    fit = ["fit", tmp_path / "values.tsv", "--no-report", *options]
    told = run(*fit, "--out", tmp_path / "a").stderr
    assert "GENE4" in told
    assert "--zscore in the fit gives all genes the same weight" in told
    assert "GENE4" not in run(*fit, "--out", tmp_path / "b", "--zscore").stderr


def test_anndata_gets_the_remedies_of_scanpy():
    adata = anndata.AnnData(sp.csr_matrix(count_values(np.random.default_rng(20), level=2)))
    with pytest.warns(UserWarning, match=r"raw counts .*: run sc\.pp\.normalize_total\(adata\) and sc\.pp\.log1p"):
        netbic.tl.modules(adata, n_components=1, n_columns=20)
    adata.X = sp.csr_matrix(normalised(adata.X.toarray()))
    netbic.tl.modules(adata, n_components=1, n_columns=20)
