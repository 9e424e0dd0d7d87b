"""Stopping rules and update orders of the R packages, based on netbic's iterations."""

import json
from pathlib import Path

import numpy as np

from netbic.operators.dense import DenseOperator
from netbic.penalties import Dense
from netbic.solver.half_step import Side, State, Vector, rounds


class GoldenSet:
    """One file of golden numbers."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        with np.load(path) as arrays:
            self._arrays = {name: arrays[name] for name in arrays.files}
        about = json.loads(path.with_suffix(".json").read_text())
        self.settings, self.tasks = about["settings"], about["tasks"]
        self.X, self.A_u, self.A_v = (self.get("input", name) for name in ("X", "A_u", "A_v"))

    def get(self, task: str, name: str) -> np.ndarray:
        return self._arrays[f"{task}__{name}"]

    def has(self, task: str, name: str) -> bool:
        return f"{task}__{name}" in self._arrays


def vector(values: np.ndarray) -> Vector:
    return Vector.of(np.asarray(values, dtype=float).ravel())


def leading(X: np.ndarray) -> tuple[Vector, Vector]:
    u, _, vt = np.linalg.svd(X, full_matrices=False)
    return Vector.of(u[:, 0]), Vector.of(vt[0])


def change(new: Vector, old: Vector, order: int = 2) -> float:
    return float(np.linalg.norm(new.full() - old.full(), order))


def run(X, rows, columns, start, stop, most):
    """Iterations without safeguards until `stop(new, old)`; the last state and all states before it."""
    u, v = start
    old = State(u, v, np.nan, np.nan)
    path = []
    operator = DenseOperator(X) if isinstance(X, np.ndarray) else X
    for new in rounds(operator, rows, columns, u, v, "aisp"):
        path.append(new)
        if stop(new, old) or len(path) == most:
            return new, path
        old = new
    raise AssertionError("a vector became empty")


def both_converged(tol):
    return lambda new, old: change(new.u, old.u) <= tol and change(new.v, old.v) <= tol


def v_converged_in_l1(tol):
    return lambda new, old: change(new.v, old.v, 1) <= tol


def d_converged(tol):
    return lambda new, old: abs(new.d - old.d) <= tol


def columns_first(X, rows, columns, start, stop, most):
    """The same with v updated before u: netbic's iterations on the transpose."""
    u, v = start
    state, path = run(X.T, columns, rows, (v, u), lambda new, old: stop(swap(new), swap(old)), most)
    return swap(state), [swap(state) for state in path]


def swap(state: State) -> State:
    return State(state.v, state.u, state.d, state.objective)


def layers(X, n_layers, fit):
    """Layer after layer on X - sum of d uv'; `fit(residual, number)` returns (state, path)."""
    residual, states, paths = X.copy(), [], []
    for number in range(n_layers):
        state, path = fit(residual, number)
        residual -= state.d * np.outer(state.u.full(), state.v.full())
        states.append(state)
        paths.append(path)
    return states, paths


def best_of(X, rows, columns, U0, V0, stop, most=1000):
    runs = [run(X, rows, columns, (vector(u), vector(v)), stop, most)[0] for u, v in zip(U0.T, V0.T, strict=True)]
    return max(runs, key=lambda state: state.d)


def plain(penalty=None) -> Side:
    return Side(penalty or Dense())


def assert_pairs(states, golden, task, tol, *, signs_known=False):
    """Identical supports, values and d within `tol` (relative to d); signs aligned on u unless the start fixed them."""
    u, v = (golden.get(task, name).reshape(len(golden.get(task, name)), -1) for name in ("u", "v"))
    d = np.atleast_1d(golden.get(task, "d"))
    for number, state in enumerate(states):
        found_u, found_v = state.u.full(), state.v.full()
        if not signs_known and found_u @ u[:, number] < 0:
            found_u, found_v = -found_u, -found_v
        np.testing.assert_array_equal(found_u != 0, u[:, number] != 0)
        np.testing.assert_array_equal(found_v != 0, v[:, number] != 0)
        np.testing.assert_allclose(found_u, u[:, number], rtol=0, atol=tol)
        np.testing.assert_allclose(found_v, v[:, number], rtol=0, atol=tol)
        np.testing.assert_allclose(state.d, d[number], rtol=tol)
