"""Correlations of all genes with the scores: as numpy computes them, for all kinds of data, never dense."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic.association.membership import gene_membership


@pytest.fixture(scope="module")
def study():
    return netbic.simulate.cohort(90, 160, n_modules=2, strength=2, random_state=3)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    return sp.random_array(
        (80, 120), density=0.2, rng=rng, format="csr", data_sampler=lambda size: rng.poisson(3, size=size) + 1.0
    )


def expected(values, scores):
    """Correlations of the columns of two dense arrays."""
    found = np.corrcoef(np.asarray(values, dtype=float).T, scores.T)
    return found[: values.shape[1], values.shape[1] :]


@pytest.mark.parametrize("center", ["columns", "both", "rows", "grand", None])
def test_the_same_as_corrcoef(study, center):
    X = study.expression + 1000  # far from zero
    values = X.to_numpy()
    if center in ("rows", "both"):
        values = values - (values.mean(axis=0) if center == "both" else 0)
        values = values - values.mean(axis=1, keepdims=True)
    for scale in (True, False):
        model = netbic.SparseGraphSVD(2, n_columns=30, center=center, scale=scale).fit(X)
        scores = netbic.get.scores_df(model, X).to_numpy()
        np.testing.assert_allclose(gene_membership(model, X), expected(values, scores), atol=1e-9)


def test_constant_genes_and_tables_of_models_and_objects(study):
    X = study.expression.copy()
    X.iloc[:, 5] = 7.3
    for given in (X, sp.csr_array(X.to_numpy())):
        model = netbic.SparseGraphSVD(2, n_columns=30).fit(given)
        table = netbic.get.membership_df(model, given)
        assert list(table.columns) == ["module_1", "module_2"]
        assert table.iloc[5].isna().all()
        assert table.drop(index=table.index[5]).abs().max(axis=None) <= 1
        assert table.isna().to_numpy().sum() == 2
    adata = anndata.AnnData(X)
    netbic.tl.modules(adata, n_components=2, n_columns=30)
    of_object = netbic.get.membership_df(adata)
    assert list(of_object.index) == list(X.columns)
    np.testing.assert_allclose(of_object, table, atol=1e-9)
    with pytest.raises(netbic.InputError, match="needs the data: give X"):
        netbic.get.membership_df(model)


def test_sparse_and_dask_data_stay_as_they_are(counts, monkeypatch):
    da = pytest.importorskip("dask.array")
    model = netbic.SparseGraphSVD(2, n_columns=20).fit(counts)
    dense = expected(counts.toarray(), netbic.get.scores_df(model, counts).to_numpy())
    chunked = da.from_array(counts.toarray(), chunks=(30, -1))
    pieces = chunked.map_blocks(sp.csr_array)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sp.csr_array, name, lambda self, *_, **__: pytest.fail("converted to dense"))
    for given in (counts, counts.tocsc(), chunked):
        np.testing.assert_allclose(gene_membership(model, given), dense, atol=1e-9)
    np.testing.assert_allclose(gene_membership(model, pieces), dense, atol=1e-9)


def test_covariates_are_removed(study):
    X = study.expression
    rng = np.random.default_rng(0)
    batch = pd.DataFrame({"batch": rng.choice(["a", "b", "c"], len(X)), "age": rng.normal(size=len(X))}, index=X.index)
    shifted = X + 3 * (batch["batch"] == "a").to_numpy()[:, None]
    model = netbic.SparseGraphSVD(2, n_columns=30).fit(shifted, covariates=batch)
    design = np.column_stack([np.ones(len(X)), pd.get_dummies(batch["batch"]).iloc[:, 1:], batch["age"]]).astype(float)
    residuals = shifted.to_numpy() - design @ np.linalg.lstsq(design, shifted.to_numpy(), rcond=None)[0]
    scores = netbic.get.scores_df(model, shifted).to_numpy()
    for given in (shifted, sp.csr_array(shifted.to_numpy())):
        np.testing.assert_allclose(gene_membership(model, given), expected(residuals, scores), atol=1e-9)


def test_missing_entries_are_left_out_pair_by_pair(study):
    X = study.expression.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = netbic.SparseGraphSVD(2, n_columns=30, missing="ignore").fit(X)
    found, scores = gene_membership(model, X), netbic.get.scores_df(model, X)
    for gene in (0, 50, 159):
        for module in (0, 1):
            own = pd.Series(X.iloc[:, gene]).corr(scores.iloc[:, module])
            assert found[gene, module] == pytest.approx(own, abs=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_data_whose_squares_overflow_are_refused(study, form):
    model = netbic.SparseGraphSVD(1, n_columns=30).fit(study.expression.to_numpy())
    with pytest.raises(ValueError, match="X has entries up to"):
        gene_membership(model, form(study.expression.to_numpy() * 1e200))
