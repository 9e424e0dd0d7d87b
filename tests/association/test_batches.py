"""Whether batches differ in more features than by chance: values that do, values that do not, kinds of matrices."""

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import f_oneway

import netbic
from netbic.association.batches import _Test, batch_effects
from support.commands import run_successfully

N, P = 90, 300
PLATES = pd.DataFrame(
    {"plate": [f"p{k % 3}" for k in range(N)], "age": np.arange(N)}, index=[f"s{k}" for k in range(N)]
)
CODES = np.arange(N) % 3


@pytest.fixture
def X():
    """Modules that do not follow the plate; every third feature differs between plates."""
    random = np.random.default_rng(0)
    values = random.standard_normal((N, P))
    values[:, :40] += 2 * random.standard_normal((N, 1))
    values[:, ::3] += 1.5 * random.standard_normal((3, P // 3))[CODES]
    return pd.DataFrame(values, index=PLATES.index, columns=[f"g{k}" for k in range(P)])


def test_the_share_is_that_of_f_tests_of_the_observed_values(X):
    values = X.mask(np.random.default_rng(1).random(X.shape) < 0.3)
    p = [f_oneway(*[own.dropna() for _, own in values[name].groupby(CODES)]).pvalue for name in X]
    assert _Test(values.to_numpy(), 0).share(CODES) == np.mean(np.array(p) < 0.05)


def test_kinds_of_matrices_agree(X):
    values = np.where(X > 1, X, 0.0)
    (line,) = batch_effects(values, PLATES)
    assert "% of the features differ between its 3 levels (5 % by chance): `covariates=plate`" in line
    for other in (sp.csr_array(values), da.from_array(values, chunks=(40, 100)), pd.DataFrame(values)):
        assert list(batch_effects(other, PLATES)) == [line]


@pytest.mark.parametrize("missing", [False, True])
def test_nothing_is_said_of_what_covariates_removed_or_of_random_labels(X, missing):
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.3) if missing else X
    model = netbic.SparseGraphSVD(2, missing="ignore").fit(X, covariates=PLATES[["plate"]])
    assert not any("differ" in note for note in netbic.associate(model, X, PLATES).notes)
    model = netbic.SparseGraphSVD(2, missing="ignore").fit(X)
    assert sum("of the features differ" in note for note in netbic.associate(model, X, PLATES).notes) == 1
    said = 0
    for seed in range(20):
        said += len(list(batch_effects(X, PLATES.assign(plate=np.random.default_rng(seed).permutation(CODES)))))
    assert said <= 1


def test_a_strong_module_is_no_batch_effect():
    """Half of the features follow one direction: with some random labels many of them have p < 0.05."""
    random, said = np.random.default_rng(0), 0
    values = random.standard_normal((N, P)) + 3 * random.standard_normal((N, 1)) * (np.arange(P) < P // 2)
    shares = []
    for seed in range(40):
        labels = np.random.default_rng(seed).permutation(CODES)
        said += len(list(batch_effects(values, PLATES.assign(plate=labels))))
        shares.append(_Test(values, 0).share(labels))
    assert max(shares) > 0.2
    assert said <= 2


def test_columns_that_cannot_be_tested_are_passed_over(X):
    tables = {"plate": "one", "site": np.arange(N).astype(str), "batch": [None] * N, "lane": np.arange(N) // 2}
    assert list(batch_effects(X, pd.DataFrame(tables, index=X.index))) == []


def test_the_command_says_it_and_no_association_is_not_no_batch_effect(X, tmp_path):
    X.T.to_csv(tmp_path / "x.tsv", sep="\t")
    PLATES.to_csv(tmp_path / "samples.tsv", sep="\t")
    given = [
        tmp_path / "x.tsv",
        "--sample-info",
        tmp_path / "samples.tsv",
        "--modules",
        1,
        "--genes",
        30,
        "--no-verdict",
    ]
    shown = run_successfully("fit", *given, "--out", tmp_path / "out").output
    assert "% of the genes differ between its 3 levels (5 % by chance): --covariates plate removes" in shown
    assert "plate: no association with a module (q <= 0.05), but single features can still differ" in shown
    assert "% of the genes differ between its 3 levels" in (tmp_path / "out" / "report.html").read_text()
    again = ["associate", tmp_path / "out", "--sample-info", tmp_path / "samples.tsv", "--force"]
    assert "of the genes differ between its 3 levels" in run_successfully(*again).output
    (tmp_path / "x.tsv").rename(tmp_path / "elsewhere.tsv")
    assert "of the genes differ" not in run_successfully(*again).output
    given[0] = tmp_path / "elsewhere.tsv"
    shown = run_successfully("fit", *given, "--covariates", "plate", "--out", tmp_path / "removed").output
    assert "of the genes differ" not in shown


def test_anndata_objects_are_warned_about(X):
    adata = anndata.AnnData(X, obs=PLATES)
    netbic.tl.modules(adata, n_modules=1)
    with pytest.warns(UserWarning, match="of the genes differ between its 3 levels"):
        netbic.tl.associate(adata, keys="plate")
    assert any("differ between" in note for note in adata.uns["netbic"]["association_notes"])


def test_nothing_is_said_of_what_was_removed_from_two_tables(X, tmp_path):
    other = pd.DataFrame(np.random.default_rng(2).standard_normal((N, 50)), index=X.index).add_prefix("h")
    for name, table in (("x", X.T), ("y", other.T), ("samples", PLATES)):
        table.to_csv(tmp_path / f"{name}.tsv", sep="\t")
    given = [*(tmp_path / f"{name}.tsv" for name in "xy"), "--sample-info", tmp_path / "samples.tsv", "--pairs", 1]
    given += ["--permutations", 0]
    said = "% of the features of x differ between its 3 levels"
    assert said in run_successfully("pairs", *given, "--out", tmp_path / "out").output
    top, _, rest = (tmp_path / "out" / "report.html").read_text().partition("</section>")
    assert said in top
    assert "--covariates plate removes" in top
    assert said not in rest
    assert "look as expected" not in rest
    run_successfully("associate", tmp_path / "out", *given[2:4])
    run_successfully("report", tmp_path / "out")
    assert said in (tmp_path / "out" / "report.html").read_text().partition("</section>")[0]
    removed = tmp_path / "removed"
    assert said not in run_successfully("pairs", *given, "--covariates", "plate", "--out", removed).output
    assert said not in (removed / "report.html").read_text()
