"""Modules re-estimated on given members, as a fitted model: the result of `Stability.refit`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from netbic.arrays import Bools, Floats, Indices
from netbic.estimators.covariates import training_design
from netbic.estimators.diffusion import apply_smoother, smoother
from netbic.estimators.estimator import SparseGraphSVD
from netbic.estimators.results import store_modules
from netbic.estimators.threads import one_blas_thread
from netbic.operators import Corrected
from netbic.penalties import Kept, Penalty
from netbic.solver import Direction, Module, ModuleProblem, Settings, Side, deflation_terms, image


class StableModules(SparseGraphSVD):
    """Modules re-estimated on their stable members, as returned by `Stability.refit`.

    Each is the leading singular pair of X without the previous modules, restricted to its stable samples and features;
    graphs and penalties are not used. It is a fitted `SparseGraphSVD` with the parameters of the original model, and
    can be used and saved like any other. It cannot be fitted to other data.

    Attributes
    ----------
    kept_ : ndarray of shape (n_components_,)
        Indices of the modules in the original model; modules without stable samples or features are dropped.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=60, n_columns=60, center=None)
    >>> stable = netbic.selection.stability(model, toy.X, n_pairs=10, threshold=0.9, random_state=0).refit(toy.X)
    >>> int(stable.columns_[0, :50].sum())
    50
    """

    @classmethod
    def at(cls, reference: SparseGraphSVD, X: Any, rows: Bools, columns: Bools) -> Self:
        """Re-estimate the modules of a fitted model on these members (boolean arrays with a row per module)."""
        made = cls(**clone(reference).get_params(deep=False))
        X = made._validated(X, reset=True)
        made.diffusion_ = reference.diffusion_
        made.names_, made.graphs_ = reference.names_, reference.graphs_
        made.covariates_, made.covariate_coding_ = reference.covariates_, reference.covariate_coding_
        design = None if reference.scaler_.effects is None else training_design(reference, X, None)
        with one_blas_thread():
            operator, noise, made.scaler_ = made._scaling().apply(X, design)
            by = smoother(reference.graphs_["columns"], reference.diffusion_)
            smooth = apply_smoother(operator, by, made.low_memory)
            searched = made._searched(smooth, reference, rows, columns, made._settings(X.dtype))
            found = {number: module for number, module in searched if module.d > noise}
            store_modules(made, smooth, list(found.values()), X.dtype, operator)
        made.kept_ = np.array(list(found), dtype=np.intp)
        dropped = np.setdiff1d(np.arange(len(rows)), made.kept_)
        if dropped.size:
            listed = ", ".join(map(str, dropped))
            warnings.warn(f"no sample or no feature of module {listed} is stable: dropped", stacklevel=3)
        return made

    def iter_fit(
        self, X: Any, known: object = (), names: object = None, *, covariates: object = None, studies: object = None
    ) -> Iterator[Module]:
        """Raise TypeError: the members are fixed."""
        raise TypeError("StableModules cannot be fitted: they are made by Stability.refit(X); fit a SparseGraphSVD")

    def _searched(
        self, residual: Corrected, reference: SparseGraphSVD, rows: Bools, columns: Bools, settings: Settings
    ) -> Iterator[tuple[int, Module]]:
        """Each module that has members, with its number; it is subtracted before the next one."""
        data, scores = residual, dict[int, Floats]()
        for number in np.flatnonzero(rows.any(axis=1) & columns.any(axis=1)).tolist():
            for earlier in np.flatnonzero(reference.regressed_out_[number]).tolist():
                if earlier in scores:
                    left = scores[earlier] / np.linalg.norm(scores[earlier])
                    right = image(residual.rmatvec, left)
                    residual = residual.minus(left, right, image(residual.matvec, right))
            sides = self._side("row", rows[number]), self._side("column", columns[number])
            module = _leading(residual, *sides, _towards(reference.components_[number], columns[number]), settings)
            scores[number] = data.matvec(module.v.support, module.v.values)
            yield number, module
            filled = residual.with_prediction(module.d * module.u.full(), module.v.full())
            for left, right in list(deflation_terms(filled, module, settings.deflation)):
                residual = residual.minus(left, right, image(residual.matvec, right))

    def _side(self, axis: str, members: Bools) -> Side:
        asked: Penalty | None = getattr(self, f"{axis}_penalty")
        nonnegative = asked is not None and asked.nonnegative
        return Side(_Members(np.flatnonzero(members), nonnegative=nonnegative))


@dataclass(frozen=True, repr=False, eq=False)
class _Members(Penalty):
    """Keep the given entries only."""

    members: Indices

    def threshold(self, magnitudes: Floats) -> Kept:
        support = self.members[magnitudes[self.members] > 0]
        return Kept(support, magnitudes[support])


def _towards(vector: Floats, members: Bools) -> Direction:
    """The start: the original module on its stable features."""
    inside = np.where(members, vector, 0.0).astype(np.float64)
    start = inside if inside.any() else members.astype(np.float64)
    return Direction(start / np.linalg.norm(start), on_rows=False, value=1.0)


def _leading(operator: Corrected, rows: Side, columns: Side, start: Direction, settings: Settings) -> Module:
    """The leading singular pair on the members of both sides."""
    problem = ModuleProblem(operator, rows, columns, settings)
    solution = replace(problem, operator=operator.for_one_start()).from_direction(start)
    if operator.imputes and not solution.state.is_empty:
        solution = problem.impute(solution)
    state = solution.state
    return Module(state.u, state.v, state.d if not state.is_empty else 0.0, solution.outcome, solution.objectives, 0.0)
