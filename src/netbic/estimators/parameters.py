"""Checks of the parameters of `SparseGraphSVD`, and the options they amount to on each axis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state

from netbic.arrays import Array, check_choice
from netbic.graph import Graph, match
from netbic.graph_terms import TERMS, GraphTerm
from netbic.operators import CENTERS
from netbic.penalties import L0, Dense, Penalty
from netbic.solver import DEFLATIONS, SOLVERS, Axis, Settings

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD

AXES: Final = ("row", "column")
_DEFAULT_SMOOTHNESS: Final = {"module": 0.6, "relative": 0.2, "absolute": 0.2}  # by smoothness_scale
_SHARED_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "smoothness_scale": ("module", "relative", "absolute"),
    "graph_term": TERMS,
    "signs": ("absolute", "signed"),
    "solver": SOLVERS,
}
_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "center": CENTERS,
    "scale": (False, True),
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
    check_solver_parameters(model)
    check_diffusion(model.diffusion, model.column_graph is not None)


def check_solver_parameters(model: Any) -> None:
    """Raise if a parameter of the iteration has no valid value."""
    for name, choices in _SHARED_CHOICES.items():
        check_choice(name, getattr(model, name), choices)
    for name in ("n_components", "n_init", "max_iter"):
        check_count(name, getattr(model, name))
    if model.n_jobs is not None and (not isinstance(model.n_jobs, Integral) or not model.n_jobs):
        raise ValueError(
            f"n_jobs={model.n_jobs!r}: a number of threads is needed, or -1 for all cores (a Dask array is always read "
            "by the workers of the current Dask client)"
        )
    if not is_number(model.tol) or not 0 <= model.tol < np.inf:
        raise ValueError(f"tol={model.tol!r}: a finite number of at least 0 is needed")


def check_diffusion(diffusion: Any, has_graph: bool) -> None:
    """Raise unless this is a valid weight of the diffusion, and there is a graph if it is not None."""
    if diffusion is None:
        return
    if diffusion != "cv" if isinstance(diffusion, str) else not (is_number(diffusion) and 0 <= diffusion < 1):
        raise ValueError(f"diffusion={diffusion!r}: None, 'cv', or a number of at least 0 and below 1 is needed")
    if not has_graph:
        raise ValueError(f"diffusion={diffusion!r} needs a column_graph: give one, or leave it at None")


def seed_of_starts(model: Any) -> int:
    """The seed of random starts; `random_state` is used only if there are any."""
    if model.n_init == 1:
        return 0
    if isinstance(model.random_state, np.random.Generator):
        return int(model.random_state.integers(2**31 - 1))
    return int(check_random_state(model.random_state).randint(2**31 - 1))


def solver_settings(model: SparseGraphSVD, dtype: DTypeLike) -> Settings:
    """The options of the iteration for a matrix of this type."""
    deflation: Any = model.deflation  # a plain string to mypy; check_parameters has verified that it is known
    if deflation is None:
        deflation = "on_repeat" if model.n_rows is None and model.row_penalty is None else "hotelling"
    return replace(iteration_settings(model, dtype), deflation=deflation)


def iteration_settings(model: Any, dtype: DTypeLike) -> Settings:
    """The options of the iteration that do not concern deflation."""
    tol = model.tol if dtype == np.float64 else max(model.tol, 1e-5)  # products have six digits
    counts: dict[str, Any] = {"n_init": model.n_init, "max_iter": model.max_iter}
    return Settings(tol=tol, seed=seed_of_starts(model), n_jobs=model.n_jobs, solver=model.solver, **counts)


@dataclass(frozen=True)
class AxisOptions:
    """The parameters of one axis ("row" or "column")."""

    axis: str
    n_kept: int | None
    penalty: Penalty | None
    graph: Any
    smoothness: float | None
    smoothness_scale: str
    graph_term: str
    signs: str
    centred: bool

    @classmethod
    def of(cls, model: SparseGraphSVD, axis: str) -> AxisOptions:
        """The parameters of a model that concern one axis."""
        names = f"n_{axis}s", f"{axis}_penalty", f"{axis}_graph", f"{axis}_smoothness"
        shared = "smoothness_scale", "graph_term", "signs"
        centred = axis == "row" and model.center in ("columns", "both")  # then the scores Xv have mean zero
        given: tuple[Any, ...] = (*(getattr(model, name) for name in (*names, *shared)), centred)
        made = cls(axis, *given)
        if axis == "column" and model.diffusion is not None and made.smoothness is None:
            return replace(made, smoothness=0.0)  # the graph smooths the data instead
        return made

    def build(self, size: int, names: Array | None) -> tuple[Axis, Graph | None]:
        """Check the parameters against an axis of this size; the axis for the solver, and the graph matched to it."""
        penalty = self._checked_penalty(size, names)
        smoothness, term, graph = self._matched(size, names, penalty)
        scale: Any = self.smoothness_scale  # a plain string to mypy; check_parameters has verified it
        return Axis(penalty, term, smoothness, scale, self.signs == "signed", self.centred), graph

    def _checked_penalty(self, size: int, names: Array | None) -> Penalty:
        axis, count, penalty = self.axis, self.n_kept, self.penalty
        if count is not None and penalty is not None:
            raise ValueError(
                f"{self._size_name}={count!r} and {axis}_penalty={penalty!r} are both given: give one of them"
            )
        if count is not None:
            check_count(self._size_name, count)
            if count > size:
                raise ValueError(f"{self._size_name}={count} but X has {size} {self._unit}s: choose 1 to {size}")
            return L0(int(count))
        if penalty is None:
            return Dense()
        if not isinstance(penalty, Penalty):
            raise TypeError(
                f"{axis}_penalty={penalty!r} is not a penalty: use e.g. netbic.L0(50) or netbic.L1Ball(3.0)"
            )
        penalty = penalty.for_names(names, size, self._unit)
        penalty.check(size, self._unit)
        return penalty

    @property
    def _size_name(self) -> str:
        """The parameter that is the number of entries to keep."""
        return f"n_{self.axis}s" if self.axis in AXES else f"n_{self.axis}"

    @property
    def _unit(self) -> str:
        """What the entries of the axis are: rows and columns of one matrix, or features of one of two tables."""
        return self.axis if self.axis in AXES else "feature"

    def _matched(
        self, size: int, names: Array | None, penalty: Penalty
    ) -> tuple[float, GraphTerm | None, Graph | None]:
        """The smoothness, and the graph matched to the axis with its graph term."""
        axis, smoothness = self.axis, self.smoothness
        if self.graph is not None:
            penalty.check_graph(axis, smoothness, self.graph_term, self.signs)
        if smoothness is not None and not (is_number(smoothness) and 0 <= smoothness < np.inf):
            raise ValueError(f"{axis}_smoothness={smoothness!r}: a finite number of at least 0 is needed")
        if self.graph is None:
            if smoothness:
                raise ValueError(f"{axis}_smoothness={smoothness} needs a {axis}_graph: give one, or leave it at None")
            return 0.0, None, None
        graph = match(self.graph, size, names, self._unit)
        relative = self.smoothness_scale != "absolute" or penalty.chooses_size
        term = graph.term(self.graph_term, relative=relative)
        if not np.isfinite(term.strengths).all():
            raise ValueError(
                f"weights of the {axis} graph add up to more than numbers can hold: rescale them, e.g. to at most 1, "
                "or use smoothness_scale='module'"
            )
        if term.is_empty:
            warnings.warn(f"the {axis} graph has no edge between the {self._unit}s of X: it is ignored", stacklevel=5)
            return 0.0, None, graph
        return smoothness_of(smoothness, self.smoothness_scale), term, graph
