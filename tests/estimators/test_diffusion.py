"""Network diffusion in SparseGraphSVD: what is searched, transformed, scored and saved."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.image import grid_to_graph

import netbic
from netbic import SparseGraphSVD
from netbic.estimators import diffusion
from netbic.graph import coexpression


def cohort(seed, n_samples=24, n_genes=200):
    """Five weak groups of 20 genes that are correlated in every cohort, and their graph in another one."""
    generator = np.random.default_rng(seed)
    factors = np.zeros((5, n_genes))
    for group in range(5):
        factors[group, 20 * group : 20 * group + 20] = 0.55
    return generator.standard_normal((n_samples, 5)) @ factors + generator.standard_normal((n_samples, n_genes))


X = cohort(0)
PRIOR = coexpression(cohort(1, 300), k=6)


def prepare_by_hand(new):
    return (new - X.mean(axis=0)) / np.sqrt(X.std(axis=0))


def smooth_by_hand(weight):
    matrix = PRIOR.term("normalized").matrix.toarray()
    return (1 - weight) * prepare_by_hand(X) @ np.linalg.inv(np.eye(X.shape[1]) - weight * matrix)


def model(**parameters):
    return SparseGraphSVD(3, **{"n_columns": 20, "column_graph": PRIOR} | parameters)


def assert_same(one, other, tolerance=1e-8):
    np.testing.assert_array_equal(one.columns_, other.columns_)
    np.testing.assert_allclose(one.components_, other.components_, atol=tolerance)
    np.testing.assert_allclose(one.singular_values_, other.singular_values_, rtol=tolerance)
    np.testing.assert_allclose(one.explained_variance_ratio_, other.explained_variance_ratio_, atol=tolerance)


def test_modules_are_those_of_the_smoothed_data_and_are_judged_on_the_data_themselves():
    found = model(diffusion=0.7).fit(X)
    by_hand = model(column_graph=None, scale=False).fit(smooth_by_hand(0.7))
    np.testing.assert_array_equal(found.columns_, by_hand.columns_)
    np.testing.assert_allclose(found.components_, by_hand.components_, atol=1e-9)
    np.testing.assert_allclose(found.singular_values_, by_hand.singular_values_)
    assert found.diffusion_ == 0.7
    new, own = prepare_by_hand(cohort(2)), prepare_by_hand(X)
    basis = np.linalg.qr(found.components_.T)[0]
    assert found.score(cohort(2)) == pytest.approx(np.sum((new @ basis) ** 2) / np.sum(new**2))
    assert found.explained_variance_ratio_.sum() == pytest.approx(np.sum((own @ basis) ** 2) / np.sum(own**2))


def test_new_samples_are_smoothed_in_the_same_way():
    found = model(diffusion=0.7).fit(X)
    by_hand = smooth_by_hand(0.7) @ np.linalg.pinv(found.components_)
    for data in (X, sp.csr_array(X), da.from_array(X, chunks=(10, -1))):
        np.testing.assert_allclose(found.transform(data), by_hand, atol=1e-9)


def test_the_graph_term_is_used_only_if_asked_for():
    plain, both = model(diffusion=0.5).fit(X), model(diffusion=0.5, column_smoothness=0.5).fit(X)
    assert (plain.graph_share_ == 0).all()
    assert (both.graph_share_ > 0).any()
    zero, without = model(diffusion=0.0).fit(X), model(column_smoothness=0.0).fit(X)
    np.testing.assert_array_equal(zero.components_, without.components_)
    np.testing.assert_array_equal(zero.transform(X), without.transform(X))


@pytest.mark.parametrize(("center", "scale"), [("columns", True), ("both", False)])
def test_sparse_and_dask_input_give_the_same_modules(center, scale):
    counts = np.round(np.exp(X))
    options = {"diffusion": 0.7, "center": center, "scale": scale}
    dense = model(**options).fit(counts)
    assert_same(model(**options).fit(sp.csr_array(counts)), dense)
    assert_same(model(**options).fit(da.from_array(counts, chunks=(10, -1))), dense)
    assert_same(model(**options, low_memory=True).fit(counts), dense)
    single = model(**options).fit(counts.astype(np.float32))
    assert single.components_.dtype == single.transform(counts.astype(np.float32)).dtype == np.float32


# Cross-validation


def test_a_true_prior_is_used_and_helps_and_a_useless_one_is_not():
    found, without = model(diffusion="cv").fit(X), model(column_graph=None).fit(X)
    assert found.diffusion_ >= 0.5
    new = cohort(2, 200)
    assert found.score(new) > 1.3 * without.score(new)
    scores = found.diffusion_scores_
    assert tuple(scores["diffusion"]) == diffusion.DIFFUSION_GRID
    assert scores.loc[scores["score"].idxmax(), "diffusion"] == found.diffusion_
    assert_same(model(diffusion=found.diffusion_).fit(X), found)
    assert model(diffusion="cv", n_jobs=2).prepared(X).diffusion == found.diffusion_  # whatever the number of threads
    order = np.random.default_rng(0).permutation(200)
    useless = netbic.Graph(PRIOR.weights[order][:, order])
    strong = np.random.default_rng(1).standard_normal((24, 1)) * (np.arange(200) < 20) + 0.1 * X
    rejected = model(diffusion="cv", column_graph=useless).fit(strong)
    assert rejected.diffusion_ == 0
    assert rejected.diffusion_scores_["gain_error"].isna().all()  # one fold is enough


def test_every_weight_is_tried_with_the_same_search_for_as_many_modules():
    data, keywords = cohort(3, 60), {"n_columns": 20, "column_graph": PRIOR, "diffusion": "cv"}
    smooth, of_samples = {"column_smoothness": 0.5}, {"row_graph": np.eye(60, k=1) + np.eye(60, k=-1)}
    n = SparseGraphSVD(n_columns=20).fit(data).n_components_
    assert n > 1
    for options, same in (  # the graph of the samples is not used in folds
        (smooth, smooth | {"n_components": n}),
        (of_samples, {"n_components": 10, "search": "sequential"}),
    ):
        found, expected = (SparseGraphSVD(**keywords, **own).fit(data).diffusion_scores_ for own in (options, same))
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.nightly
def test_permuted_and_rewired_priors_are_not_used():
    chosen = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(200)
        for wrong in (netbic.Graph(PRIOR.weights[order][:, order]), PRIOR.rewire(seed)):
            chosen.append(model(diffusion="cv", column_graph=wrong).fit(cohort(10 + seed)).diffusion_)
    assert np.mean(np.array(chosen) > 0) <= 0.1


# Errors, storage


def test_what_cannot_be_smoothed_is_refused_with_the_remedy():
    for value in (1.0, -0.1, np.inf, "auto", True, [0.5]):
        with pytest.raises(ValueError, match="None, 'cv', or a number of at least 0 and below 1"):
            model(diffusion=value).fit(X)
    holes = np.where(np.eye(*X.shape) > 0, np.nan, X)
    tolerant, chosen = model(diffusion=0.5, missing="ignore"), model(diffusion="cv")
    for use, data, message in (
        (model(diffusion=0.5, column_graph=None).fit, X, r"diffusion=0\.5 needs a column_graph"),
        (tolerant.fit, holes, "cannot be smoothed: fill them first"),
        (model(diffusion=0.5, missing="ignore").fit(X).transform, holes, "cannot be smoothed: fill them first"),
        (chosen.fit, sp.csr_array(X), "needs a dense X: choose it on some of the samples"),
        (chosen.fit, da.from_array(X, chunks=(10, -1)), "needs a dense X: choose it on some of the samples"),
        (chosen.fit, X[:5], "X has 5 samples: at least 6"),
    ):
        with pytest.raises(ValueError, match=message):
            use(data)


def test_the_number_of_modules_comes_from_the_data_before_they_are_smoothed():
    """Smoothed noise has strong directions that come back in all halves."""
    grid, random = grid_to_graph(12, 12), np.random.default_rng(0)
    noise = random.standard_normal((200, 144))
    options = {"column_graph": grid, "diffusion": 0.5, "random_state": 0}
    with pytest.warns(UserWarning, match="no module is found again"):
        assert netbic.SparseGraphSVD(**options).fit(noise).count_.n == 0
    regions = np.arange(144) // 24 == np.arange(3)[:, None]
    signal = noise + random.standard_normal((200, 3)) @ regions
    smooth, plain = netbic.SparseGraphSVD(**options).fit(signal), netbic.SparseGraphSVD(random_state=0).fit(signal)
    assert smooth.n_components_ == plain.n_components_ == 3
    best = [(smooth.columns_ & own).sum(axis=1).max() / own.sum() for own in regions]
    assert min(best) > 0.9
