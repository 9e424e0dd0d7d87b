"""Bounds for fitted models: never below the best module, equal for every kind of matrix, NaN without an objective."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic import L1, AdaptiveSupport, EdgeL0, GroupL0, KeepSoft, L1Ball, SparseGraphSVD
from netbic.selection import optimality
from netbic.storage.state import module_arrays, module_from

study = netbic.simulate.cohort(60, 200, n_modules=2, module_genes=30, module_samples=15, random_state=0)
X, graph = study.expression.to_numpy(), study.network.weights


def test_gaps_of_tiny_fits_hold_for_the_best_module():
    generator = np.random.default_rng(0)
    for _ in range(60):
        n, p = generator.integers(3, 8, 2)
        k = int(generator.integers(1, p + 1))
        tiny = generator.standard_normal((n, p))
        model = SparseGraphSVD(1, n_columns=k, center=None).fit(tiny)
        best = max(np.linalg.norm(tiny[:, list(columns)], 2) for columns in combinations(range(p), k))
        assert model.objectives_[0][-1] >= (1 - model.optimality_gap_[0]) * best * (1 - 1e-9)
        table = optimality(model, tiny, exact=True).table
        assert model.objectives_[0][-1] >= (1 - table["gap"][0]) * best * (1 - 1e-9)
        assert table["gap"][0] <= model.optimality_gap_[0] + 1e-9
        assert table["optimum"][0] == pytest.approx(best, rel=1e-9)
        assert table["certified"].all()


SETTINGS = {
    "columns": {"n_columns": 30},
    "rows and columns": {"n_rows": 15, "n_columns": 30},
    "graph": {"n_columns": 30, "column_graph": graph},
    "signed": {"n_columns": 30, "column_graph": graph, "signs": "signed", "graph_term": "laplacian"},
    "relative": {"n_columns": 30, "column_graph": graph, "smoothness_scale": "relative"},
    "soft": {"column_penalty": L1(1.0)},
    "ball": {"column_penalty": L1Ball(4.0), "row_penalty": L1Ball(3.0, nonnegative=True)},
    "as published": {"n_rows": 15, "n_columns": 30, "solver": "aisp"},
    "scaled": {"n_columns": 30, "scale": True, "center": "both"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_other_starts_are_within_the_gap(name):
    model = SparseGraphSVD(1, **SETTINGS[name]).fit(X)
    found = optimality(model, X)
    np.testing.assert_allclose(found.table["spectral_gap"], model.optimality_gap_, rtol=1e-9)
    assert found.table["objective"][0] == pytest.approx(model.objectives_[0][-1])
    assert 0 <= found.table["gap"][0] <= model.optimality_gap_[0] + 1e-9 < 1
    if name in ("graph", "signed"):
        return  # the weight of the graph depends on the start
    better = SparseGraphSVD(1, **SETTINGS[name], n_init=20, random_state=0).fit(X)
    assert better.objectives_[0][-1] <= found.table["bound"][0]


def test_every_kind_of_matrix_has_the_same_gap():
    da = pytest.importorskip("dask.array")
    counts = np.where(X > 1, X, 0)
    model = SparseGraphSVD(2, n_columns=30, column_graph=graph)
    expected = optimality(model.fit(counts), counts).table
    stored = model.optimality_gap_
    for other in (
        sp.csr_array(counts),
        da.from_array(counts, chunks=(20, -1)),
        counts.astype(np.float32),
        1e6 * counts,
    ):
        table = optimality(model.fit(other), other).table
        tolerance = 1e-4 if other.dtype == np.float32 else 1e-5
        np.testing.assert_allclose(table["gap"], expected["gap"], rtol=tolerance)
        np.testing.assert_allclose(model.optimality_gap_, stored, rtol=tolerance)


def test_modules_without_sparsity_are_optimal():
    model = SparseGraphSVD(3, deflation="hotelling").fit(X)
    assert (optimality(model, X).table["gap"] < 1e-6).all()
    assert (model.optimality_gap_ < 1e-5).all()


@pytest.mark.parametrize(
    "settings",
    [{"column_penalty": KeepSoft(30)}, {"column_penalty": AdaptiveSupport()}, {"n_columns": 30, "missing": "impute"}],
)
def test_there_is_no_gap_without_an_objective(settings):
    data = X.copy()
    if "missing" in settings:
        data[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the size is not identified
        model = SparseGraphSVD(1, **settings).fit(data)
    found = optimality(model, data)
    assert np.isnan(model.optimality_gap_).all()
    assert found.table.drop(columns="module").isna().all(axis=None)
    assert "no bound" in found.summary


@pytest.mark.parametrize("term", ["laplacian", "normalized_laplacian"])
def test_there_is_no_gap_of_an_objective_that_is_not_positive(term):
    strong = {"graph_term": term, "smoothness_scale": "relative", "column_smoothness": 5}
    with pytest.warns(UserWarning, match="the graph makes up more than 30%"):
        model = SparseGraphSVD(1, n_columns=30, column_graph=graph, **strong).fit(X)
    found = optimality(model, X)
    assert found.table["objective"][0] < 0 < found.table["bound"][0]
    assert np.isnan([model.optimality_gap_[0], *found.table.loc[0, ["gap", "spectral_gap"]]]).all()
    assert "is not positive" in found.summary


def test_ignored_missing_entries_and_covariates():
    data = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    model = SparseGraphSVD(2, n_columns=30, missing="ignore").fit(data)
    assert optimality(model, data).table["gap"].between(0, 0.9).all()
    model = SparseGraphSVD(2, n_columns=30).fit(X, covariates=np.random.default_rng(0).standard_normal((60, 2)))
    assert optimality(model, X).table["gap"].between(0, 0.9).all()


def test_saved_modules_keep_their_gap():
    (module,) = SparseGraphSVD(1, n_columns=30).iter_fit(X)
    arrays = {name: np.asarray(value) for name, value in module_arrays(module).items()}
    assert module_from(arrays).optimality_gap == module.optimality_gap > 0
    arrays["numbers"] = arrays["numbers"][:5]  # as in checkpoints of earlier versions
    assert np.isnan(module_from(arrays).optimality_gap)


def test_groups_and_edges_are_matched_by_name():
    table = study.expression
    sets = {f"set {i}": table.columns[10 * i : 10 * i + 10].tolist() for i in range(20)}
    by_position = [list(range(10 * i, 10 * i + 10)) for i in range(20)]
    named, plain = (netbic.Graph(graph, names) for names in (table.columns, None))
    for by_name, penalty in (
        ({"column_penalty": GroupL0(sets, 3)}, {"column_penalty": GroupL0(by_position, 3)}),
        ({"column_penalty": EdgeL0(named, 20)}, {"column_penalty": EdgeL0(plain, 20)}),
        ({"column_penalty": GroupL0(sets, 3), "column_graph": named}, None),
        ({"row_penalty": GroupL0([table.index[:20], table.index[20:40]], 1), "n_columns": 30}, None),
    ):
        model = SparseGraphSVD(2, **by_name).fit(table)
        found = optimality(model, table).table
        np.testing.assert_allclose(found["spectral_gap"], model.optimality_gap_, rtol=1e-9)
        assert found["gap"].between(0, 1).all()
        if penalty is not None:
            expected = optimality(SparseGraphSVD(2, **penalty).fit(X), X).table
            np.testing.assert_allclose(found["gap"], expected["gap"], rtol=1e-9)


def test_members_that_the_data_lack_are_said_once():
    table = study.expression
    sets = {"known": table.columns[:20].tolist(), "other": ["TP53", *table.columns[20:40]]}
    with pytest.warns(UserWarning, match="1 of 41 members are not columns of X"):
        model = SparseGraphSVD(1, column_penalty=GroupL0(sets, 1)).fit(table)
    assert optimality(model, table).table["gap"].between(0, 1).all()  # a warning would be an error


@pytest.mark.parametrize("shape", [(30, 25), (25, 30)])
def test_the_optimum_is_never_below_the_module_of_the_model(shape):
    for seed in range(5):
        noise = np.random.default_rng(seed).standard_normal(shape)
        model = SparseGraphSVD(1, n_rows=5, n_columns=5, n_init=30, random_state=0).fit(noise)
        found = optimality(model, noise, exact=True, max_nodes=1)
        assert found.table["optimum"][0] >= found.table["objective"][0] * (1 - 1e-12)
        (best,) = found.optima
        centred = noise - noise.mean(axis=0)
        assert best.value == pytest.approx(np.linalg.norm(centred[np.ix_(best.rows, best.columns)], 2), rel=1e-12)
    with pytest.raises(ValueError, match="max_nodes=0: at least 1 is needed"):
        optimality(model, noise, exact=True, max_nodes=0)


def test_what_cannot_be_examined_is_refused():
    model = SparseGraphSVD(1, n_columns=3, column_graph=graph[:15, :15]).fit(X[:20, :15])
    with pytest.raises(ValueError, match="not possible with a graph"):
        optimality(model, X[:20, :15], exact=True)
    model = SparseGraphSVD(1, column_penalty=L1Ball(2.0)).fit(X[:20, :15])
    with pytest.raises(ValueError, match=r"not possible with the column penalty L1Ball\(bound=2.0\)"):
        optimality(model, X[:20, :15], exact=True)
    with pytest.raises(ValueError, match="give the X of the fit"):
        optimality(model, 2 * X[:20, :15])
    with pytest.raises(ValueError, match="has shape"):
        optimality(model, X)
