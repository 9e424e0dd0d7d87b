"""All modules together: F never decreases, both steps are exact maximisers, and planted modules are found."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic import L0, L1, Graph
from netbic.operators.base import as_operator
from netbic.operators.corrected import Corrected
from netbic.penalties import BeyondBulk, Dense, L1Ball
from netbic.solver import joint
from netbic.solver.count import Count, count_modules, noise_edge
from netbic.solver.half_step import Side
from netbic.solver.joint import JointProblem, joint_modules, leading_subspace
from netbic.solver.search import Axis
from netbic.solver.solve import Settings


def matrix(X):
    return Corrected(as_operator(X), float(np.sum(np.square(X.toarray() if sp.issparse(X) else X, dtype=float))))


def planted(seed=0, n=80, p=400, sizes=(40, 20, 10), strength=2.0):
    rng = np.random.default_rng(seed)
    members = np.zeros((len(sizes), p), bool)
    for own, part in zip(members, np.split(rng.permutation(p), np.cumsum(sizes)), strict=False):
        own[part] = True
    X = rng.standard_normal((n, len(sizes))) @ (strength * members) + rng.standard_normal((n, p))
    return X - X.mean(axis=0), members


def random_graph(p, rng):
    edges = rng.random((p, p)) < 0.1
    return Graph(np.triu(edges, 1) + np.triu(edges, 1).T)


def check_monotone(seed):
    rng = np.random.default_rng(seed)
    rank, p, n_modules = rng.integers(3, 8), rng.integers(12, 40), rng.integers(1, 4)
    loadings = rng.standard_normal((rank, p)) * rng.exponential(1, (rank, 1))
    penalty = [L0(3), L1(0.3), L1Ball(2.0), Dense(), L0(4, nonnegative=True)][seed % 5]
    term = None
    if rng.random() < 0.7:
        name = ["modularity", "normalized", "adjacency", "laplacian"][rng.integers(4)]
        term = random_graph(p, rng).term(name)
    side = Side(penalty, term, float(rng.exponential(1)) if term else 0.0, signed=bool(rng.random() < 0.3))
    problem = JointProblem(loadings, [side] * n_modules, Settings())
    state = problem.at(np.linalg.qr(rng.standard_normal((rank, n_modules)))[0])
    vectors = [side.smooth(v) for v in state.vectors]
    if not all(v.support.size for v in vectors):
        return
    gains = sum(side.gain(v) for v in vectors)
    last = sum(float(z[v.support] @ v.values) for z, v in zip(state.products, vectors, strict=True)) + gains
    state = joint.replace(state, vectors=vectors)
    for _ in range(30):
        state = problem.round(state, feasible=True)
        assert np.isfinite(state.objective)
        assert state.objective >= last - 1e-12 * abs(last)
        last = state.objective


@pytest.mark.parametrize("seed", range(60))
def test_f_never_decreases(seed):
    check_monotone(seed)


@pytest.mark.nightly
def test_f_never_decreases_in_many_problems():
    for seed in range(2000):
        check_monotone(seed)


@pytest.mark.parametrize("seed", range(5))
def test_both_steps_are_exact_maximisers(seed):
    rng = np.random.default_rng(seed)
    loadings, k = rng.standard_normal((4, 8)), 3
    problem = JointProblem(loadings, [Side(L0(k))] * 2, Settings(tol=1e-14, max_iter=5000))
    state, outcome, _ = problem.converge(problem.at(np.eye(4, 2)))
    assert outcome == "converged"
    products = state.rotation.T @ loadings
    for z, v in zip(products, state.vectors, strict=True):
        best = max(np.linalg.norm(z[list(chosen)]) for chosen in combinations(range(8), k))
        np.testing.assert_allclose(z[v.support] @ v.values, best, rtol=1e-6)
    images = np.column_stack([loadings[:, v.support] @ v.values for v in state.vectors])
    reached = np.trace(state.rotation.T @ images)
    np.testing.assert_allclose(state.rotation.T @ state.rotation, np.eye(2), atol=1e-12)
    for _ in range(200):
        other = np.linalg.qr(rng.standard_normal((4, 2)))[0]
        assert np.trace(other.T @ images) <= reached + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_one_module_reaches_the_best_of_all_supports(seed):
    """With one module F is the largest singular value of W restricted to k features."""
    rng = np.random.default_rng(seed)
    X, k = rng.standard_normal((6, 8)), 3
    found, _ = joint_modules(matrix(X), Axis(L0(k)), Settings(n_init=30), 1)
    space = leading_subspace(matrix(X), 2)
    W = space.right * (space.values[:, None] ** joint.POWER * space.values[0] ** (1 - joint.POWER))
    best = max(np.linalg.norm(W[:, list(chosen)], 2) for chosen in combinations(range(8), k))
    assert found[0].objectives[-1] <= best * (1 + 1e-9)
    np.testing.assert_allclose(found[0].objectives[-1], best, rtol=1e-5)


def test_planted_modules_are_found_with_their_sizes():
    X, members = planted()
    modules, ended = joint_modules(matrix(X), Axis(BeyondBulk()), Settings(n_init=3), 3)
    assert ended == ""
    for own in members:
        best = max(np.sum(own & (m.v.full() != 0)) / np.sum(own | (m.v.full() != 0)) for m in modules)
        assert best > 0.9
    for module in modules:
        image = X @ module.v.full()
        np.testing.assert_allclose(module.d, np.linalg.norm(image))
        np.testing.assert_allclose(module.u.full(), image / module.d, atol=1e-12)
    assert [m.d for m in modules] == sorted((m.d for m in modules), reverse=True)


def test_order_scale_and_signs_of_the_data_do_not_matter():
    X, _ = planted(1)
    rng = np.random.default_rng(0)
    rows, columns, signs = rng.permutation(80), rng.permutation(400), rng.choice([-1.0, 1.0], 400)
    one, _ = joint_modules(matrix(X), Axis(BeyondBulk()), Settings(n_init=3), 4)
    two, _ = joint_modules(matrix(8 * X[rows][:, columns]), Axis(BeyondBulk()), Settings(n_init=3), 4)
    flipped, _ = joint_modules(matrix(X * signs), Axis(BeyondBulk()), Settings(n_init=2), 3)
    plain, _ = joint_modules(matrix(X), Axis(BeyondBulk()), Settings(n_init=2), 3)
    for a, b in zip(plain, flipped, strict=True):
        assert abs(a.v.full() @ (signs * b.v.full())) > 1 - 1e-6
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(b.d, 8 * a.d, rtol=1e-5)
        moved = a.v.full()[columns]
        assert np.array_equal(moved != 0, b.v.full() != 0)
        assert abs(moved @ b.v.full()) > 1 - 1e-6


@pytest.mark.parametrize("kind", ["dense", "single", "sparse", "long", "passes"])
def test_the_subspace_is_that_of_the_leading_singular_vectors(kind, monkeypatch):
    X, _ = planted(2)
    given = {"single": X.astype(np.float32), "sparse": sp.csr_array(X), "long": np.ascontiguousarray(X.T)}.get(kind, X)
    if kind == "passes":
        monkeypatch.setattr(joint, "_GRAM_SIZE", 0)
        monkeypatch.setattr(joint, "_SMALL", 0)
    space = leading_subspace(matrix(given), 3)
    _, d, Vt = np.linalg.svd(X.T if kind == "long" else X, full_matrices=False)
    accuracy = 1e-3 if kind == "passes" else 1e-5
    np.testing.assert_allclose(space.values, d[:3], rtol=accuracy)
    assert np.linalg.norm(space.right @ Vt[:3].T, 2) > 1 - accuracy


def test_fewer_directions_than_modules():
    X = np.outer(np.arange(6.0) - 2.5, np.arange(5.0) + 1)
    modules, ended = joint_modules(matrix(X), Axis(L0(2)), Settings(), 3)
    assert len(modules) == 1
    assert ended == "X has no further direction"
    assert joint_modules(matrix(np.zeros((4, 3))), Axis(L0(2)), Settings(), 3) == (
        [],
        "nothing but rounding error is left of X",
    )
    modules, ended = joint_modules(matrix(X), Axis(L1(1e9)), Settings(), 1)
    assert not modules
    assert "keeps no column" in ended


@pytest.mark.parametrize("p", [40, 400, 4000])
def test_entries_beyond_the_bulk_are_kept(p):
    rng, rule = np.random.default_rng(0), BeyondBulk()
    noise = np.abs(rng.standard_normal(p))
    noise = np.minimum(noise, 2.5)  # nothing stands out
    floor = min(20, p // 4)
    assert rule.size_for(noise) == floor
    for n in (1, 4, 5, 9, p // 5):
        scores = noise.copy()
        scores[:n] += 40
        assert rule.size_for(scores) == (n if n >= 5 else floor)
        assert rule.size_for(7.0 * rng.permutation(scores)) == rule.size_for(scores)
    graded = noise.copy()
    graded[:8] = 100.0, 99.0, 98.0, 97.0, 96.0, 95.0, 40.0, 39.0  # less than half of the mean of those before
    assert rule.size_for(graded) == 6
    assert BeyondBulk(share=0.3).size_for(graded) == 8
    assert rule.fixed_for(graded, core=True).size() == 6


def test_the_edge_of_noise_is_its_largest_singular_value():
    rng = np.random.default_rng(0)
    for n, p, spread in ((100, 1000, 0.0), (200, 1500, 0.7), (400, 100, 0.3)):
        variances = np.exp(rng.normal(0, spread, p))
        largest = [np.linalg.norm(rng.standard_normal((n, p)) * np.sqrt(variances), 2) for _ in range(5)]
        np.testing.assert_allclose(noise_edge(variances, n), np.mean(largest), rtol=0.05)


@pytest.mark.parametrize("wide", [True, False])
def test_the_number_of_modules_comes_from_the_data(wide):
    X, members = planted(3) if wide else planted(3, n=500, p=200)
    noise = np.random.default_rng(0).standard_normal(X.shape)
    for data, n in ((X, len(members)), (noise - noise.mean(axis=0), 0)):
        space = leading_subspace(matrix(data), 50)
        count = count_modules(matrix(data), space, Axis(BeyondBulk()), Settings())
        assert count.n == n
        assert [again for _, again in count.curve] == [min(searched, n) for searched, _ in count.curve]
        assert len(count.curve) >= 4 or not n


def test_the_number_does_not_depend_on_the_scale_of_the_data_and_may_be_zero():
    X, members = planted(3)
    for factor in (1e-60, 1e-30, 1e20, 1e120):
        model = netbic.SparseGraphSVD(scale=False).fit(factor * X)
        assert model.n_components_ == len(members)
    for factor in (1e-18, 1e18):
        assert netbic.SparseGraphSVD(scale=False).fit((factor * X).astype(np.float32)).n_components_ == len(members)
    alone = np.zeros((40, 60))
    alone[0] = np.random.default_rng(0).standard_normal(60)  # the other half is constant
    with pytest.warns(UserWarning, match="no module is found again"):
        assert netbic.SparseGraphSVD().fit(alone).count_.n == 0


def test_the_noise_edge_takes_rows_of_unequal_variance_into_account():
    random = np.random.default_rng(0)
    rows, variances = random.uniform(0.2, 1.8, 400), random.uniform(0.5, 2, 1500)
    rows /= rows.mean()
    largest = np.linalg.norm(np.sqrt(rows)[:, None] * random.standard_normal((400, 1500)) * np.sqrt(variances), 2)
    np.testing.assert_allclose(noise_edge(variances, 400, rows), largest, rtol=0.02)
    np.testing.assert_allclose(noise_edge(variances, 400, np.ones(400)), noise_edge(variances, 400))


def test_samples_with_many_holes_make_no_directions_of_noise():
    for seed in range(5):
        random = np.random.default_rng(seed)
        X = random.standard_normal((120, 600))
        X[random.random(X.shape) < random.uniform(0, 0.6, (120, 1))] = np.nan
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            assert netbic.SparseGraphSVD(missing="ignore").fit(X).count_.directions <= 1


def test_few_modules_for_many_directions_are_said():
    assert "`n_components=10` searches for more" in Count(19, 25, [1, 2, 1], []).sentence
    assert "`n_components=5` searches for more" in Count(9, 13, [0, 0, 1], []).sentence
    assert "searches for more" not in Count(19, 25, [5, 5, 6], []).sentence
    assert "searches for more" not in Count(3, 5, [0, 0, 0], []).sentence


def test_the_estimator_searches_jointly():
    study = netbic.simulate.patients(random_state=0)
    model = netbic.SparseGraphSVD().fit(study.expression)
    assert model.n_components_ == model.count_.n == 5
    for own in study.genes:
        assert max(np.sum(own & found) / np.sum(own | found) for found in model.columns_) > 0.75
    scores = model.scaler_.apply(study.expression.to_numpy()) @ model.components_.T
    np.testing.assert_allclose(model.singular_values_, np.linalg.norm(scores, axis=0))
    np.testing.assert_allclose(model.left_vectors_, scores / model.singular_values_, atol=1e-10)
    assert model.converged_.all()
    np.testing.assert_allclose(model.scaler_.factors, study.expression.std(ddof=0).to_numpy() ** -0.5)


def test_a_graph_counts_whatever_the_unit_of_its_weight_is():
    study = netbic.simulate.cohort(100, 300, n_modules=2, strength=0.5, random_state=0)
    plain = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    for unit, weight in (("module", 0.6), ("relative", 0.2), ("absolute", 5.0)):
        given = {"column_graph": study.network, "column_smoothness": weight, "smoothness_scale": unit}
        model = netbic.SparseGraphSVD(2, n_columns=60, **given).fit(study.expression)
        assert (model.graph_share_ > 0).all()
        assert not np.allclose(np.abs(model.components_), np.abs(plain.components_))


@pytest.mark.parametrize(
    "given",
    [{"graph_term": "laplacian"}, {"graph_term": "normalized_laplacian"}, {"signs": "signed"}, {"diffusion": 0.5}],
)
def test_sizes_come_from_the_data_with_every_use_of_the_graph(given):
    study = netbic.simulate.cohort(100, 300, n_modules=2, strength=1.5, random_state=0)
    model = netbic.SparseGraphSVD(2, column_graph=study.network, **given).fit(study.expression)
    for own in study.genes:
        assert max(2 * np.sum(own & found) / (own.sum() + found.sum()) for found in model.columns_) > 0.8


def test_parameters_of_a_joint_search_are_checked():
    X = np.random.default_rng(0).standard_normal((20, 30))
    for given, message in (
        ({"n_rows": 5}, "leave n_rows at None"),
        ({"deflation": "schur"}, "leave deflation at None"),
        ({"scale": 2.0}, "scale=2.0: True, False or a number from 0 to 1"),
        ({"search": "both"}, "search='both'"),
        ({"column_penalty": BeyondBulk(share=0)}, "share=0 of BeyondBulk"),
    ):
        with pytest.raises(ValueError, match=message):
            netbic.SparseGraphSVD(**{"search": "joint", **given}).fit(X)
    with pytest.warns(UserWarning, match="no module is found again"):
        netbic.SparseGraphSVD().fit(np.random.default_rng(0).standard_normal((60, 200)))
    for n in (2, 3, 7):
        with pytest.warns(UserWarning, match="no module is found again"):
            assert netbic.SparseGraphSVD().fit(X[:n]).n_components_ == 1
    with pytest.warns(UserWarning, match="found 19 of 25 modules: X has no further direction"):
        netbic.SparseGraphSVD(25).fit(X)
