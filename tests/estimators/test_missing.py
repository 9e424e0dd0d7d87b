"""Missing entries, compared with plain numpy on the filled matrix and with complete data."""

import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic import SparseGraphSVD
from netbic.operators.corrected import Scaler
from netbic.operators.dense import DenseOperator
from netbic.operators.masked import Masked, learn_from_observed
from support.operator_entries import entries_of

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((30, 20)) + 5
MISSING = GENERATOR.random((30, 20)) < 0.2
INCOMPLETE = np.where(MISSING, np.nan, X)


@pytest.mark.parametrize("impute", [False, True])
def test_masked_operator_is_the_filled_matrix(impute):
    current = INCOMPLETE.copy()
    operator = Masked(INCOMPLETE.copy(), impute)
    generator = np.random.default_rng(1)
    for _ in range(3):
        expected = np.where(MISSING, 0.0 if impute else np.nanmean(current), current)
        np.testing.assert_allclose(entries_of(operator), expected, atol=1e-12)
        np.testing.assert_allclose(entries_of(operator.for_one_start()), expected, atol=1e-12)
        assert operator.squared_norm == pytest.approx(np.sum(expected**2))
        a, b = generator.standard_normal(30), generator.standard_normal(20)
        a[3:], b[4:] = 0, 0
        predicted = operator.with_prediction(a, b)
        filled = expected + MISSING * np.outer(a, b)
        np.testing.assert_allclose(entries_of(predicted), filled, atol=1e-12)
        left, right = generator.standard_normal((30, 2)), generator.standard_normal((20, 2))
        np.testing.assert_allclose(predicted.left_products(left), left.T @ filled, atol=1e-12)
        products, images = predicted.normal(right, left > 0)
        np.testing.assert_allclose(images, (left > 0) * (filled @ right), atol=1e-12)
        np.testing.assert_allclose(products, filled.T @ images, atol=1e-11)
        operator = operator.minus(a, b, operator.matvec(np.arange(20), b))
        current = current - np.outer(a, b)


@pytest.mark.parametrize("center", [None, "columns", "rows", "both", "grand"])
def test_scaling_from_observed_entries(center):
    complete = Scaler.learn(DenseOperator(X), center, True)
    same = learn_from_observed(X, center, True)
    np.testing.assert_allclose(same.apply(X), complete.apply(X), atol=1e-12)
    incomplete = learn_from_observed(INCOMPLETE, center, True).apply(INCOMPLETE)
    np.testing.assert_array_equal(np.isnan(incomplete), MISSING)
    if center == "columns":
        np.testing.assert_allclose(np.nanmean(incomplete, axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.nanstd(incomplete, axis=0), 1)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:the graph makes up")
@pytest.mark.parametrize("missing", ["ignore", "impute"])
def test_missing_entries_reduce_recovery_only_slightly(missing):
    """30 % of the entries missing at random in the paper's simulation (gamma .03).

    With the graph they cost at most .03 of sensitivity. Without, hardly more than what they must cost: complete data
    with as much more noise as there is less data.
    """
    lost = {"sgSVD*": [], "L0SVD": []}
    for seed in range(40):
        toy = netbic.simulate.paper(0.03, random_state=seed)
        noisier = netbic.simulate.paper(0.03 / np.sqrt(0.7), random_state=seed)
        incomplete = np.where(np.random.default_rng([seed, 1]).random(toy.X.shape) < 0.3, np.nan, toy.X)
        graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph, "row_sigma": 0.1, "column_sigma": 0.1}
        for name, keywords, reference in (("sgSVD*", graphs, toy.X), ("L0SVD", {}, noisier.X)):
            model = netbic.method(name, n_rows=50, n_columns=50, missing=missing, solver="auto", **keywords)
            found = [model.fit(data).columns_[0][:50].mean() for data in (reference, incomplete)]
            lost[name].append(found[0] - found[1])
    assert np.mean(lost["sgSVD*"]) <= 0.03
    assert np.mean(lost["L0SVD"]) <= 0.015


@pytest.mark.parametrize("search", ["joint", "sequential"])
def test_imputation_recovers_a_low_rank_matrix(search):
    """Without noise, the modules predict the missing entries correctly; the observed mean does not."""
    generator = np.random.default_rng(2)
    truth = 3 * np.outer(generator.standard_normal(40), generator.standard_normal(30))
    incomplete = np.where(generator.random(truth.shape) < 0.3, np.nan, truth)
    errors = {}
    for missing in ("ignore", "impute"):
        options = {"n_columns": 30, "center": None, "scale": False, "search": search}
        model = SparseGraphSVD(1, missing=missing, **options).fit(incomplete)
        guess = model.singular_values_[0] * np.outer(model.left_vectors_[:, 0], model.components_[0])
        errors[missing] = np.linalg.norm(guess - truth) / np.linalg.norm(truth)
    assert errors["impute"] < 1e-3
    assert errors["ignore"] > 0.1


@pytest.mark.parametrize("missing", ["ignore", "impute"])
@pytest.mark.parametrize("deflation", ["hotelling", "projection", "schur"])
def test_later_modules_shrink_under_every_deflation(missing, deflation):
    generator = np.random.default_rng(3)
    data = 3 * np.outer(generator.standard_normal(40), generator.standard_normal(30))
    data += 0.5 * generator.standard_normal(data.shape)
    incomplete = np.where(generator.random(data.shape) < 0.3, np.nan, data)
    model = SparseGraphSVD(5, n_rows=20, n_columns=15, missing=missing, deflation=deflation, center=None)
    model.fit(incomplete)
    assert model.converged_.all()
    assert model.singular_values_[0] > 2 * model.singular_values_[1:].max()
    assert 0 < model.score(incomplete) <= 1


def test_scores_use_only_observed_entries():
    model = SparseGraphSVD(2, n_columns=8, missing="ignore").fit(INCOMPLETE)
    full = model.transform(X)
    few = X.copy()
    unused = np.flatnonzero(~model.columns_.any(axis=0))
    few[:, unused] = np.nan
    np.testing.assert_allclose(model.transform(few), full, atol=1e-10)
    few[3] = np.nan
    assert model.transform(few)[3].tolist() == [0, 0]
    assert 0 < model.score(INCOMPLETE) < 1


def test_bad_input():
    empty = INCOMPLETE.copy()
    empty[:, 7] = np.nan
    sparse, ignore = sp.csr_array(INCOMPLETE), SparseGraphSVD(missing="ignore")
    for use, data, message in (
        (ignore.fit, empty, r"column 7 of X has no observed entry \(1 in all\): drop it"),
        (ignore.fit, np.where(MISSING, np.inf, X), "infinity"),
        (ignore.fit, sparse, "X is sparse and contains NaN"),
        (SparseGraphSVD(1, missing="ignore").fit(sp.csr_array(X)).transform, sparse, "X is sparse and contains NaN"),
        (SparseGraphSVD().fit, INCOMPLETE, "use missing='ignore' or missing='impute'"),
    ):
        with pytest.raises(ValueError, match=message):
            use(data)
