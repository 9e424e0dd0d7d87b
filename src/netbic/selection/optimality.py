"""Bounds of how far a module can be from the best possible one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.estimators import (
    SparseGraphSVD,
    StableModules,
    check_count,
    check_same_data,
    fitted_model,
    one_blas_thread,
    training_design,
)
from netbic.selection.resampling import graphs_by_position
from netbic.solver import BestSubmatrix, Found, Module, ModuleSearch, best_submatrix, objective_bound, relative_gap

_SAME = 1e-3  # relative difference of d up to which a module is the one of the model
_COLUMNS = ["module", "objective", "bound", "gap", "spectral_gap"]


@dataclass(frozen=True, repr=False)
class Optimality:
    """Upper bounds of the objective of each module.

    Attributes
    ----------
    table : DataFrame
        A row per module: `module`, its `objective` F, the `bound` of the F of any module in the same matrix, `gap` (F
        is at least (1 - gap) times the largest possible one; NaN if there is no bound, or F is not positive) and
        `spectral_gap` (the same by the largest singular value alone, as `optimality_gap_` of the model). With
        `exact=True` also `optimum` (the largest F that was found by branch and bound), `optimum_bound`, and whether it
        is `certified`.
    optima : list of BestSubmatrix
        With `exact=True`, the best submatrix for each module; otherwise empty.
    """

    table: pd.DataFrame
    optima: list[BestSubmatrix]

    def __repr__(self) -> str:
        return f"{self.summary}\n{self.table.to_string(index=False)}"

    @property
    def summary(self) -> str:
        """One plain sentence."""
        gaps = self.table["gap"].dropna()
        if gaps.empty and self.table["bound"].notna().any():
            return "There is no gap: the objective of these modules is not positive (the graph term is too strong)."
        if gaps.empty:
            return "There is no bound: the objective is not defined for these modules."
        return f"The modules are within {gaps.max():.1%} of the best possible ones (median {gaps.median():.1%})."


def optimality(model: Any, X: Any, *, exact: bool = False, max_nodes: int = 100_000) -> Optimality:
    """Bound the objective of the best possible module, for each module of a fitted model.

    A search finds one of many local optima. The objective F of the best possible module is not known, but it has upper
    bounds; see the page "How good is the optimum?". Modules are searched for again, in the same way as by the fit, and
    each is compared with a bound for the matrix in which it was found.

    Parameters
    ----------
    model : fitted SparseGraphSVD
        Or a fitted search that has one as `best_estimator_`.
    X : as for the fit
    exact : bool, default=False
        Find the best possible module by branch and bound. This is for tiny matrices, such as 20 x 15, and for given
        numbers of rows and columns (or all of them) without a graph: only then is the best module on given rows and
        columns known, as their leading singular pair.
    max_nodes : int, default=100_000
        With `exact=True`, the nodes of the search tree after which the best module so far is taken: that of the model,
        or a better one.

    Returns
    -------
    Optimality

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50, center=None).fit(toy.X)
    >>> netbic.selection.optimality(model, toy.X).summary
    'The modules are within 1.6% of the best possible ones (median 1.6%).'
    """
    fitted = fitted_model(model)
    if isinstance(fitted, StableModules):
        raise TypeError("the members of StableModules are given, so there is no other module: give the original model")
    check_same_data(fitted, X)
    check_count("max_nodes", max_nodes)
    with one_blas_thread():
        search = _search_again(fitted, X)
        rows, optima = [], []
        for number, found in enumerate(_same_modules(fitted, search)):
            rows.append((number, *_bounds(found)))
            if exact:
                optima.append(_optimum(found, max_nodes))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    if exact:
        table["optimum"] = [best.value for best in optima]
        table["optimum_bound"] = [best.bound for best in optima]
        table["certified"] = [best.certified for best in optima]
    return Optimality(table, optima)


def _search_again(fitted: SparseGraphSVD, X: Any) -> ModuleSearch:
    """The search of the fit; graphs and groups are known by position."""
    graphs = {f"{axis[:-1]}_graph": graph for axis, graph in fitted.graphs_.items()}
    smoothing = {} if fitted.smoothing is None else {"smoothing": fitted.smoothing_}
    names = fitted.names_["rows"], fitted.names_["columns"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given by the fit already, as about members that X lacks
        matched = graphs_by_position(fitted.get_params(deep=False) | graphs, X.shape, names)
    made = clone(fitted).set_params(**matched, **smoothing)
    search: ModuleSearch = made.search_of(made.prepared(X, training_design(fitted, X)))
    return search


def _same_modules(fitted: SparseGraphSVD, search: ModuleSearch) -> Iterator[Found]:
    """What each module of the model is the solution of."""
    modules: Iterator[Module] = islice(search, int(fitted.n_components_))
    for module, d in zip(modules, fitted.singular_values_, strict=True):
        if abs(module.d - d) > _SAME * d or search.found is None:
            raise ValueError(
                f"a search in X finds a module with d = {module.d:.6g} where the model has {d:.6g}: give the X of the "
                "fit; a model with n_init > 1 needs an integer as random_state"
            )
        yield search.found


def _bounds(found: Found) -> tuple[float, float, float, float]:
    """F, its bound, and the gaps by this and by the spectral bound."""
    if not found.has_bound:
        return np.nan, np.nan, np.nan, np.nan
    problem, state = found.problem, found.state
    bound = objective_bound(problem.operator, problem.rows, problem.columns, state, found.largest_value)
    return state.objective, bound, relative_gap(state.objective, bound), found.spectral_gap


def _optimum(found: Found, max_nodes: int) -> BestSubmatrix:
    """The best submatrix of the matrix in which a module was found."""
    problem = found.problem
    n, p = problem.operator.shape
    sizes = []
    for axis, side, size in (("row", problem.rows, n), ("column", problem.columns, p)):
        count = side.penalty.most_entries(size)
        if side.has_graph or side.penalty.nonnegative or count is None or not found.has_bound:
            why = "a graph" if side.has_graph else f"the {axis} penalty {side.penalty!r}"
            raise ValueError(
                f"exact=True is not possible with {why}: the best module on given rows and columns is known only for "
                "given numbers of entries (L0, or all) of any sign, without a graph; use exact=False"
            )
        sizes.append(count)
    matrix = problem.operator.submatrix(np.arange(n), np.arange(p))
    known = found.state.u.support, found.state.v.support
    return best_submatrix(matrix, sizes[0], sizes[1], max_nodes, known)
