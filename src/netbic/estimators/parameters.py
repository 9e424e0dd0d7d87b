"""Checks of the parameters of the estimators, and the options they amount to on each axis."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state

from netbic.arrays import Array, check_choice
from netbic.graph import Graph, match
from netbic.graph_terms import TERMS
from netbic.operators.corrected import CENTERS
from netbic.penalties import L0, BeyondBulk, Dense, Penalty
from netbic.solver.search import DEFLATIONS, SOLVERS, Axis
from netbic.solver.solve import Settings

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

AXES: Final = ("row", "column")
SEARCHES: Final = ("auto", "joint", "sequential")
_DEFAULT_SMOOTHNESS: Final = {"module": 0.6, "relative": 0.2, "absolute": 0.2}  # by smoothness_scale
_SHARED_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "smoothness_scale": ("module", "relative", "absolute"),
    "graph_term": TERMS,
    "signs": ("absolute", "signed"),
    "solver": SOLVERS,
}
_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "center": CENTERS,
    "search": SEARCHES,
    "low_memory": (False, True),
    "missing": ("error", "ignore", "impute"),
    "deflation": (None, *DEFLATIONS),
}


def smoothness_of(given: float | None, scale: str) -> float:
    """The weight of a graph: as given, or the default for its scale."""
    return _DEFAULT_SMOOTHNESS[scale] if given is None else float(given)


def is_number(value: object) -> bool:
    """Whether a value is a plain number (True and False are not)."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_count(name: str, value: Any) -> None:
    """Raise unless `value` is an integer of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: an integer is needed")
    if value < 1:
        raise ValueError(f"{name}={value}: at least 1 is needed")


def check_parameters(model: SparseGraphSVD) -> None:
    """Raise if a parameter that does not depend on the data has no valid value."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(model, name), choices)
    if isinstance(model.n_components, str) and model.n_components != "auto":
        raise ValueError(f"n_components={model.n_components!r}: an integer or 'auto' is needed")
    automatic = {"n_components": model.n_components == "auto", "n_init": model.n_init is None}
    check_solver_parameters(model, [name for name, is_automatic in automatic.items() if is_automatic])
    if not (model.scale is None or isinstance(model.scale, (bool, np.bool_))) and not (
        is_number(model.scale) and 0 <= model.scale <= 1
    ):
        raise ValueError(f"scale={model.scale!r}: True, False or a number from 0 to 1 is needed")
    if model.search == "joint":
        for name in ("n_rows", "row_penalty", "row_graph", "deflation"):
            if getattr(model, name) is not None:
                raise ValueError(f"search='joint' keeps all samples and subtracts no module: leave {name} at None")
    diffusion = model.diffusion
    if diffusion is None:
        return
    if diffusion != "cv" if isinstance(diffusion, str) else not (is_number(diffusion) and 0 <= diffusion < 1):
        raise ValueError(f"diffusion={diffusion!r}: None, 'cv', or a number of at least 0 and below 1 is needed")
    if model.column_graph is None:
        raise ValueError(f"diffusion={diffusion!r} needs a column_graph: give one, or leave it at None")


def check_solver_parameters(model: Any, optional: Collection[str] = ()) -> None:
    """Raise if a parameter of the iteration has no valid value; counts that are `optional` were not given."""
    for name, choices in _SHARED_CHOICES.items():
        check_choice(name, getattr(model, name), choices)
    for name in ("n_components", "n_init", "max_iter"):
        if name not in optional:
            check_count(name, getattr(model, name))
    if model.n_jobs is not None and (not isinstance(model.n_jobs, Integral) or not model.n_jobs):
        raise ValueError(
            f"n_jobs={model.n_jobs!r}: a number of threads is needed, or -1 for all cores (a Dask array is always read "
            "by the workers of the current Dask client)"
        )
    if not is_number(model.tol) or not 0 <= model.tol < np.inf:
        raise ValueError(f"tol={model.tol!r}: a finite number of at least 0 is needed")


def iteration_settings(model: Any, dtype: DTypeLike) -> Settings:
    """The options of the iteration, for a matrix of this type."""
    joint = getattr(model, "is_joint", False)  # models of two tables have no such search
    n_init, seed, random = getattr(model, "n_starts", model.n_init), 0, model.random_state
    if n_init > (2 if joint else 1):  # otherwise nothing is random
        if isinstance(random, np.random.Generator):
            seed = int(random.integers(2**31 - 1))
        else:
            seed = int(check_random_state(random).randint(2**31 - 1))
    return Settings(
        solver=model.solver,
        n_init=n_init,
        max_iter=model.max_iter,
        tol=model.tol if dtype == np.float64 else max(model.tol, 1e-5),  # products have six digits
        seed=seed,
        n_jobs=model.n_jobs,
    )


def build_axis(
    model: Any, axis: str, size: int, names: Array | None, *, default: float | None = None
) -> tuple[Axis, Graph | None]:
    """Check the parameters of one axis of a model; the axis for the solver, and the graph matched to it.

    The axis is "row" or "column" of one matrix (`n_rows`, `row_penalty`, `row_graph`, `row_smoothness`), or "x" or "y",
    the features of one of two tables (`n_x`, ...). `default`: the usual smoothness.
    """
    table, unit, count_name = ("X", axis, f"n_{axis}s") if axis in AXES else (axis.upper(), "feature", f"n_{axis}")
    count, penalty = getattr(model, count_name), getattr(model, f"{axis}_penalty")
    given, smoothness = getattr(model, f"{axis}_graph"), getattr(model, f"{axis}_smoothness")
    smoothness = default if smoothness is None else smoothness
    if count is not None and penalty is not None:
        raise ValueError(f"{count_name}={count!r} and {axis}_penalty={penalty!r} are both given: give one of them")
    if count is not None:
        check_count(count_name, count)
        if count > size:
            raise ValueError(f"{count_name}={count} but {table} has {size} {unit}s: choose 1 to {size}")
        penalty = L0(int(count))
    elif penalty is None:
        penalty = BeyondBulk() if axis == "column" else Dense()
    elif not isinstance(penalty, Penalty):
        raise TypeError(f"{axis}_penalty={penalty!r} is not a penalty: use e.g. netbic.L0(50) or netbic.L1Ball(3.0)")
    else:
        penalty = penalty.for_names(names, size, unit, table)
        penalty.check(size, unit, table)
    if smoothness is not None and not (is_number(smoothness) and 0 <= smoothness < np.inf):
        raise ValueError(f"{axis}_smoothness={smoothness!r}: a finite number of at least 0 is needed")
    signed, scale = model.signs == "signed", model.smoothness_scale
    if given is None:
        if smoothness:
            raise ValueError(f"{axis}_smoothness={smoothness} needs a {axis}_graph: give one, or leave it at None")
        return Axis(penalty, None, 0.0, scale, signed), None
    graph = match(given, size, names, unit, table)
    term = graph.term(model.graph_term, relative=scale != "absolute")
    if not np.isfinite(term.strengths).all():
        raise ValueError(
            f"weights of the {axis} graph add up to more than numbers can hold: rescale them, e.g. to at most 1, "
            "or use smoothness_scale='module'"
        )
    if term.is_empty:
        warnings.warn(f"the {axis} graph has no edge between the {unit}s of {table}: it is ignored", stacklevel=5)
        return Axis(penalty, None, 0.0, scale, signed), graph
    return Axis(penalty, term, smoothness_of(smoothness, scale), scale, signed), graph
