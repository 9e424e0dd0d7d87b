"""Every deterministic golden task, repeated from its stored start."""

import re
from pathlib import Path

import numpy as np
import pytest

import netbic
from golden.peers import (
    GoldenSet,
    assert_pairs,
    best_of,
    both_converged,
    change,
    columns_first,
    d_converged,
    layers,
    leading,
    plain,
    run,
    v_converged_in_l1,
    vector,
)
from netbic import L0, L1, SCAD, AdaptiveLasso, Graph, KeepSoft, L1Ball
from netbic.estimators.results import explained
from netbic.operators.masked import Masked, learn_from_observed
from netbic.solver.half_step import Side
from support.shared_data import shared_folder

LATER = r"input|s4vd.*"  # the data, and results that depend on R's random numbers


def golden_sets():
    paths = {path.stem: path for path in Path(__file__).parent.glob("*.npz")}
    outside = shared_folder("NETBIC_GOLDEN")
    paths |= {path.stem: path for path in sorted(outside.glob("*.npz"))} if outside else {}
    return [GoldenSet(path) for path in paths.values()]


SETS = golden_sets()


def cases(pattern):
    """Parametrise over (set, task) for every task whose whole name matches."""
    found = [(s, task) for s in SETS for task in s.tasks if re.fullmatch(pattern, task) and not not_converged(s, task)]
    return pytest.mark.parametrize(("golden", "task"), found, ids=[f"{s.name}-{task}" for s, task in found])


def number_in(task, pattern):
    return float(re.search(pattern, task).group(1))


def not_converged(golden, task):
    """Whether a literal Algorithm 1 stopped before it converged: then there is no result to compare with."""
    return bool(re.match("two_l1sgstar|alg1", task)) and not golden.get(task, "converged").all()


def test_every_task_is_tested():
    tested = "|".join([LATER, *PATTERNS])
    missed = [(s, task) for s in SETS for task in s.tasks if not re.fullmatch(tested, task)]
    assert all(not_converged(*case) for case in missed)


@cases("svd")
def test_svd(golden, task):
    K = golden.settings["K"]
    model = netbic.method("SVD", K, tol=1e-14, max_iter=5000).fit(golden.X)
    expected_u, expected_v = golden.get(task, "u"), golden.get(task, "v")
    signs = np.sign(np.sum(model.left_vectors_ * expected_u, axis=0))
    np.testing.assert_allclose(model.singular_values_, golden.get(task, "d")[:K], rtol=1e-10)
    np.testing.assert_allclose(model.left_vectors_ * signs, expected_u, atol=1e-10)
    np.testing.assert_allclose(model.components_.T * signs, expected_v, atol=1e-10)


@cases(r"pmd_sumabs_center[01]_niter\d+|pmd_uv_niter\d+|spc_orth0")
def test_pmd(golden, task):
    settings, (n, p) = golden.settings, golden.X.shape
    rows, columns = {
        "pmd_sumabs": (L1Ball(settings["sumabs"] * np.sqrt(n)), L1Ball(settings["sumabs"] * np.sqrt(p))),
        "pmd_uv": (L1Ball(settings["sumabsu"]), L1Ball(settings["sumabsv"])),
        "spc_orth": (None, L1Ball(settings["spc"])),
    }[re.match("pmd_sumabs|pmd_uv|spc_orth", task).group()]
    X = golden.X - (golden.X.mean() if "center1" in task else 0.0)
    most = int(number_in(task, r"niter(\d+)")) if "niter" in task else 500
    starts = golden.get(task, "v_init")

    def fit(residual, number):
        v = vector(starts[:, number])
        u = vector(residual @ v.full())
        return run(residual, plain(rows), plain(columns), (u, v), v_converged_in_l1(1e-7), most)

    states, _ = layers(X, starts.shape[1], fit)
    if golden.has(task, "pve"):
        vectors = np.array([state.v.full() for state in states])
        shares = explained(vectors, vectors @ X.T) / np.sum(X**2)
        np.testing.assert_allclose(np.cumsum(shares), golden.get(task, "pve"), rtol=1e-6)
    if golden.has(task, "meanx") and "center1" in task:
        assert golden.X.mean() == pytest.approx(float(golden.get(task, "meanx")), abs=1e-12)
    assert_pairs(states, golden, task, 1e-6, signs_known=True)


@cases("spc_orth1")
def test_spc_with_orthogonal_u(golden, task):
    """New u's orthogonal to earlier ones: X - uu'X, which is Schur deflation if all rows are kept."""
    K, expected_u, expected_v = golden.settings["K"], golden.get(task, "u"), golden.get(task, "v")
    penalty = L1Ball(golden.settings["spc"])
    model = netbic.SparseGraphSVD(K, column_penalty=penalty, center=None, deflation="schur", tol=1e-12, max_iter=5000)
    model.fit(golden.X)
    signs = np.sign(np.sum(model.left_vectors_ * expected_u, axis=0))
    np.testing.assert_array_equal(model.columns_.T, expected_v != 0)
    np.testing.assert_allclose(model.components_.T * signs, expected_v, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.left_vectors_ * signs, expected_u, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.singular_values_, golden.get(task, "d"), rtol=1e-6)
    np.testing.assert_allclose(np.cumsum(model.explained_variance_ratio_), golden.get(task, "pve"), rtol=1e-6)


@cases("cca")
def test_cca(golden, task):
    settings, split = golden.settings, golden.settings["cca_split"]
    X, Y = golden.X[:, :split], golden.X[:, split:]
    bounds = settings["cca_px"] * np.sqrt(X.shape[1]), settings["cca_pz"] * np.sqrt(Y.shape[1])
    penalties = {"x_penalty": L1Ball(bounds[0]), "y_penalty": L1Ball(bounds[1])}
    model = netbic.SparseGraphCCA(2, **penalties, deflation="hotelling", solver="aisp", tol=1e-10, max_iter=5000)
    model.fit(X, Y, y_start=golden.get(task, "v_init"))
    signs = np.sign(np.sum(model.x_weights_ * golden.get(task, "u"), axis=0))
    for found, name in ((model.x_weights_, "u"), (model.y_weights_, "v")):
        np.testing.assert_array_equal(found != 0, golden.get(task, name) != 0)
        np.testing.assert_allclose(found * signs, golden.get(task, name), rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.singular_values_, golden.get(task, "d"), rtol=1e-6)
    np.testing.assert_allclose(model.correlations_, golden.get(task, "cors"), rtol=1e-6)


@cases(r"pmd_na10pct_center1_niter\d+")
def test_pmd_with_missing_values(golden, task):
    (n, p), settings = golden.X.shape, golden.settings
    X = np.where(golden.get(task, "is_na"), np.nan, golden.X)
    scaler = learn_from_observed(X, "grand", False)
    assert scaler.offsets[0] == pytest.approx(float(golden.get(task, "meanx")), abs=1e-12)
    operator = Masked(scaler.apply(X), impute=False)
    sides = plain(L1Ball(settings["sumabs"] * np.sqrt(n))), plain(L1Ball(settings["sumabs"] * np.sqrt(p)))
    states = []
    for v_init in golden.get(task, "v_init").T:
        v = vector(v_init)
        u = vector(operator.matvec(v.support, v.values))
        state, _ = run(operator, *sides, (u, v), v_converged_in_l1(1e-7), 500)
        states.append(state)
        left, right = state.d * state.u.full(), state.v.full()
        operator = operator.minus(left, right, operator.matvec(state.v.support, state.v.values))
    assert_pairs(states, golden, task, 1e-6, signs_known=True)


@cases(r"pmd_uvpos_niter\d+")
def test_pmd_nonnegative(golden, task):
    rows = L1Ball(golden.settings["sumabsu"], nonnegative=True)
    columns = L1Ball(golden.settings["sumabsv"], nonnegative=True)
    v = vector(golden.get(task, "v_init"))
    start = vector(golden.X @ v.full()), v
    state, _ = run(golden.X, plain(rows), plain(columns), start, v_converged_in_l1(1e-7), 500)
    assert_pairs([state], golden, task, 1e-6, signs_known=True)


@cases(r"ssvd_rank\d_gam.*")
def test_ssvd(golden, task):
    tol = 1e-10 if "merr1e-10" in task else 1e-4
    penalty = AdaptiveLasso(number_in(task, r"gam(\d+)"))

    def fit(residual, number):
        known = penalty.for_matrix(float(np.sum(residual**2)), residual.size)
        return columns_first(residual, plain(known), plain(known), leading(residual), both_converged(tol), 100)

    states, paths = layers(golden.X, int(number_in(task, r"rank(\d)")), fit)
    assert_pairs(states, golden, task, 1e-10)
    np.testing.assert_array_equal([len(path) for path in paths], golden.get(task, "iter").ravel())


@cases("irlba_ssvd_k1")
def test_irlba_ssvd(golden, task):
    k = golden.settings["irlba_n"]
    state, _ = run(golden.X, plain(), plain(KeepSoft(k)), leading(golden.X), both_converged(1e-12), 1000)
    assert_pairs([state], golden, task, 5e-5)
    z = np.abs(golden.X.T @ state.u.full())
    np.testing.assert_allclose(np.sort(z)[-k - 1], golden.get(task, "lambda"), rtol=5e-5)


@cases(r"l0svd_repo_err.*")
def test_l0svd(golden, task):
    k_u, k_v = golden.settings["ku"], golden.settings["kv"]
    v = vector(golden.get(task, "v0"))
    start = vector(golden.X @ v.full()), v
    state, _ = run(golden.X, plain(L0(k_u)), plain(L0(k_v)), start, d_converged(number_in(task, "err(.*)")), 1000)
    assert_pairs([state], golden, task, 1e-10, signs_known=True)


@cases(r"(l0svd|soft_k|scad_k)_5starts")
def test_five_starts(golden, task):
    penalty = {"l0svd": L0, "soft_k": KeepSoft, "scad_k": SCAD}[task.removesuffix("_5starts")]
    rows, columns = plain(penalty(golden.settings["ku"])), plain(penalty(golden.settings["kv"]))
    starts = golden.get(task, "U0"), golden.get(task, "V0")
    state = best_of(golden.X, rows, columns, *starts, both_converged(1e-4))
    assert_pairs([state], golden, task, 1e-10, signs_known=True)


@cases(r"ssvd_rank3_gam2")
def test_ssvd_through_the_estimator(golden, task):
    """The peer stops early (1e-4) and starts with the columns; the fixed points are the same."""
    penalties = {"row_penalty": AdaptiveLasso(2.0), "column_penalty": AdaptiveLasso(2.0)}
    model = netbic.method("ALSVD", 3, **penalties, tol=1e-12, max_iter=5000).fit(golden.X)
    u, v = golden.get(task, "u"), golden.get(task, "v")
    np.testing.assert_array_equal(model.rows_, u.T != 0)
    np.testing.assert_array_equal(model.columns_, v.T != 0)
    np.testing.assert_allclose(np.abs(model.components_.T), np.abs(v), atol=3e-4)


def agsvd(golden, task):
    sigma = number_in(task, r"sigma([\d.]+)")
    rows = plain(L0(golden.settings["ku"]))
    columns = Side(L0(golden.settings["kv"]), Graph(golden.A_v).term("adjacency"), sigma)

    def fit(residual, number):
        return run(residual, rows, columns, leading(residual), both_converged(1e-4), 1000)

    return layers(golden.X, golden.settings["K"], fit)


@cases(r"agsvd_sigma[\d.]+")
def test_agsvd(golden, task):
    states, paths = agsvd(golden, task)
    assert_pairs(states, golden, task, 1e-10)
    np.testing.assert_array_equal([len(path) for path in paths], golden.get(task, "iter").ravel())
    norms = np.sum(golden.X**2) - np.append(0, np.cumsum([state.d**2 for state in states[:-1]]))
    objectives = [norm - state.d**2 for norm, path in zip(norms, paths, strict=True) for state in path]
    np.testing.assert_allclose(objectives, golden.get(task, "objs"), rtol=1e-9)


@cases(r"agsvd_sigma[\d.]+_enrich")
def test_agsvd_enrichment(golden, task):
    states, _ = agsvd(golden, task.removesuffix("_enrich"))
    table = netbic.enrichment.edges([state.v.support for state in states], Graph(golden.A_v))
    found = table[["n_nodes", "n_edges", "fold_change", "p_value"]].to_numpy(dtype=float).T
    np.testing.assert_allclose(found, golden.get(task, "size_edges_fc_p"), rtol=1e-10)


@cases("snsvd")
def test_snsvd(golden, task):
    term = Graph(golden.A_u).term("normalized")
    np.testing.assert_allclose(term.matrix.toarray(), golden.get(task, "W"), atol=1e-14)
    rows = Side(L0(golden.settings["ku"]), term, golden.settings["delta"], signed=True)
    starts = golden.get(task, "U0"), golden.get(task, "V0")
    state = best_of(golden.X, rows, plain(L0(golden.settings["kv"])), *starts, both_converged(1e-4))
    assert_pairs([state], golden, task, 1e-10, signs_known=True)


@cases(r"two_(sgstar|sg|l1sg|l1sgstar)_sigma[\d.]+|alg1_sigma[\d.]+")
def test_two_sided(golden, task):
    kind = task.split("_sigma")[0]
    sizes = golden.settings["ku"], golden.settings["kv"]
    if kind == "alg1":
        penalties = [L1(float(golden.get(task, name))) for name in ("lambda_u", "lambda_v")]
    else:
        penalties = [(KeepSoft if "l1" in kind else L0)(k) for k in sizes]
    sigma, signed = number_in(task, r"sigma([\d.]+)"), kind in ("two_sg", "two_l1sg")
    rows, columns = (
        Side(penalty, Graph(A).term("adjacency"), sigma, signed)
        for penalty, A in zip(penalties, (golden.A_u, golden.A_v), strict=True)
    )
    start = vector(golden.get(task, "u_init")), vector(golden.get(task, "v_init"))
    tol = 1e-13 if kind in ("two_l1sgstar", "alg1") else 1e-4
    state, path = run(golden.X, rows, columns, start, both_converged(tol), 1000)
    if not golden.get(task, "converged").all():
        # The peer ran into a limit cycle; so must we, and "auto" must not (tests/solver/test_convergence.py).
        assert len(path) == 1000
        assert change(path[-1].v, path[-2].v) > 1e-4
        assert change(path[-1].v, path[-3].v) < 1e-10
        return
    assert_pairs([state], golden, task, 1e-10, signs_known=True)


PATTERNS = [
    "|".join(re.escape(task) for _, task in mark.args[1])
    for function in list(globals().values())
    if callable(function)
    for mark in getattr(function, "pytestmark", [])
    if mark.name == "parametrize"
]
