"""Searches by many models over one matrix that is validated, centred and scaled once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone

from netbic.arrays import Array
from netbic.estimators.diffusion import apply_smoother, smoother_of
from netbic.estimators.inputs import axis_names
from netbic.estimators.parameters import AxisOptions, check_parameters
from netbic.estimators.search_input import SearchInput
from netbic.estimators.studies import study_input, with_studies
from netbic.estimators.threads import one_blas_thread
from netbic.solver import Axis, Module, ModuleSearch, Starts

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


# scikit-learn has no types: mypy cannot check its base classes.
class Searches(BaseEstimator):  # type: ignore[misc]
    """Methods of `SparseGraphSVD` that search a prepared matrix, without storing anything."""

    def prepared(self: SparseGraphSVD, X: Any, covariates: Any = None, studies: Any = None) -> SearchInput:
        """Validate, centre and scale X once, as the input of searches by many models (`modules_of`).

        It can be used by all models with the same `center`, `scale`, `missing`, `low_memory`, `clip` and `diffusion`
        (and column graph, if the data are smoothed) as this one, and with `solver="aisp"` if and only if this one has
        it.
        """
        X, studies = with_studies(X, studies)
        made, (row_names, column_names) = clone(self), axis_names(X)
        check_parameters(made)
        X, coding, design, scaling, _ = study_input(
            made, made._validated(X, reset=True), studies, covariates, row_names
        )
        with one_blas_thread():
            operator, noise, scaler = made._scaling(scaling).apply(X, design)
            by = None
            if self.diffusion is not None:
                _, graph = AxisOptions.of(self, "column").build(X.shape[1], column_names)
                by, _ = smoother_of(made, operator, X, graph)
                operator = apply_smoother(operator, by, self.low_memory)
            starts = Starts(operator, exact=self.solver == "aisp")
            if operator.squared_norm > 0:
                starts.leading(operator)  # computed once for all searches
        weight = 0.0 if by is None else by.weight
        return SearchInput(operator, noise, scaler, starts, X.dtype, coding, design, weight)

    def modules_of(self: SparseGraphSVD, prepared: SearchInput) -> list[Module]:
        """The modules that `fit` would find; nothing is stored, and there are no warnings. One BLAS thread is advised.

        Names are not known here: graphs are matched to the rows and columns by position, where `fit` matches by name.

        Examples
        --------
        >>> import netbic
        >>> toy = netbic.simulate.paper(0.02, random_state=0)
        >>> prepared = netbic.SparseGraphSVD().prepared(toy.X)
        >>> [netbic.SparseGraphSVD(1, n_columns=k).modules_of(prepared)[0].v.support.size for k in (20, 50)]
        [20, 50]
        """
        return list(islice(self.search_of(prepared), self.n_components))

    def search_of(self: SparseGraphSVD, prepared: SearchInput) -> ModuleSearch:
        """The search by which `modules_of` finds modules, without a limit of their number."""
        rows, columns = self.check(prepared.operator.shape)
        settings, starts = self._settings(prepared.dtype), prepared.starts.copy()
        return self._search(prepared.operator, rows, columns, settings, prepared.noise, starts=starts)

    def check(
        self: SparseGraphSVD, shape: tuple[int, int], names: tuple[Array | None, Array | None] = (None, None)
    ) -> tuple[Axis, Axis]:
        """Check the parameters for a matrix of this shape (without names, by position); options of both axes."""
        check_parameters(self)
        rows, _ = AxisOptions.of(self, "row").build(shape[0], names[0])
        columns, _ = AxisOptions.of(self, "column").build(shape[1], names[1])
        return rows, columns
