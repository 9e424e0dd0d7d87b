"""From a validated matrix to the operator that is searched for modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Matrix, kind_of
from netbic.estimators.covariates import CovariateCoding
from netbic.estimators.inputs import has_missing
from netbic.estimators.new_samples import without_effects
from netbic.operators import (
    Corrected,
    DataOperator,
    DenseOperator,
    Masked,
    RowBlocks,
    RowReduction,
    Scaler,
    as_operator,
    learn_from_observed,
    winsorised,
)
from netbic.solver import Starts

_SMALLEST, _LARGEST = 1e-120, 1e140  # bounds of the largest absolute entry

Scaled = tuple[Corrected, float, Scaler]  # the matrix, its rounding error, and how to transform other rows


class SearchInput(NamedTuple):
    """A validated, centred and scaled matrix that many models can search for modules."""

    operator: Corrected
    noise: float  # the norm that rounding errors alone can reach
    scaler: Scaler
    starts: Starts
    dtype: DTypeLike
    coding: CovariateCoding | None = None
    design: Floats | None = None  # the covariates of the rows
    diffusion: float = 0.0  # the weight by which the matrix was smoothed


@dataclass(frozen=True)
class ScalingOptions:
    """How a matrix is clipped, centred and scaled: parameters of `SparseGraphSVD`.

    Standard deviations are divided by n - `ddof`.
    """

    center: str | None
    scale: bool
    missing: str
    clip: float | None
    low_memory: bool
    ddof: int = 0

    def apply(self, X: Any, design: Floats | None = None) -> Scaled:
        """The centred and scaled matrix, its rounding error, and how to transform other rows.

        The covariates in the columns of `design` (of mean zero, and linearly independent) are projected out first.
        """
        match kind_of(X):
            case "blocks":
                made = self._blocks(X, design)
            case "operator":
                made = self._operator(X, design)
            case "sparse":
                made = self._sparse(X, design)
            case _:
                made = self._clipped(X, design) if self.clip is not None else self._dense(X, design)
        if design is not None:
            _check_unexplained(*made[:2])
        return made

    def _clipped(self, X: Array, design: Floats | None) -> Scaled:
        """Entries are clipped after the effects of covariates are removed: a batch is no outlier."""
        effects = None
        if design is not None:
            effects = self._without_scaling(X, design).effects
            X = without_effects(X, effects, design)
        operator, noise, scaler = self._dense(winsorised(X, self.clip or np.inf), None)
        return operator, noise, scaler if effects is None else replace(scaler, effects=effects)

    def _without_scaling(self, X: Array, design: Floats) -> Scaler:
        if self.missing != "error" and has_missing(X):
            return learn_from_observed(X, "columns", False, design)
        return Scaler.learn(as_operator(X, low_memory=True), "columns", False, design)

    def _dense(self, X: Array, design: Floats | None) -> Scaled:
        if self.missing != "error" and has_missing(X):
            return self._masked(X, design)
        operator, noise, scaler = self._corrected(X, design)
        if not operator.squared_norm_is_safe:
            check_range(float(abs(X).max()))
        if self._loses_digits(operator, noise):
            centred = Corrected(DenseOperator(scaler.apply(X, design), self.low_memory), operator.squared_norm)
            return centred, noise, scaler
        return operator if self.low_memory else operator.on(DenseOperator(X)), noise, scaler

    def _sparse(self, X: Matrix, design: Floats | None) -> Scaled:
        made = self._corrected(X, design)
        if not made[0].squared_norm_is_safe:
            check_range(float(abs(X).max()))
        return made

    def _operator(self, X: DataOperator, design: Floats | None) -> Scaled:
        if self.clip is not None:
            raise ValueError(
                f"clip={self.clip} of the penalty needs the median of each column, which {type(X).__name__} does not "
                "offer: use e.g. AdaptiveSupport(clip=None)"
            )
        made = self._corrected(X, design)
        if not made[0].squared_norm_is_safe:
            nothing = np.empty((X.shape[0], 0)), np.empty((X.shape[1], 0))
            check_range(X.reduce_rows(RowReduction(_largest, max, None, *nothing)))
        return made

    def _blocks(self, X: RowBlocks, design: Floats | None) -> Scaled:
        """The same for blocks of rows, which are never copied."""
        X.check_finite()
        if self.clip is not None and not X.is_sparse:
            raise ValueError(
                f"clip={self.clip} of the penalty needs the median of each column, which cannot be computed from the "
                "blocks of a Dask array: use e.g. AdaptiveSupport(clip=None)"
            )
        operator, noise, scaler = self._corrected(X, design)
        if not operator.squared_norm_is_safe:
            check_range(X.summary.largest)
        if not X.is_sparse and self._loses_digits(operator, noise):
            operator = Corrected(as_operator(X.with_transform(scaler.apply, design)), operator.squared_norm)
        return operator, noise, scaler

    def _corrected(self, X: Any, design: Floats | None) -> Scaled:
        data = as_operator(X, low_memory=True)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = Scaler.learn(data, self.center, self.scale, design, self.ddof)
            operator = scaler.operator(data, design)
            noise = 4 * data.epsilon * (np.sqrt(operator.squared_norm) + operator.correction_norm())
        return operator, float(noise), scaler

    @staticmethod
    def _loses_digits(operator: Corrected, noise: float) -> bool:
        """Whether offsets are so large that subtracting them from products would lose significant digits."""
        return bool(noise > 4e-6 * np.sqrt(operator.squared_norm) > 0)

    def _masked(self, X: Array, design: Floats | None) -> Scaled:
        check_range(float(np.nanmax(np.abs(X))))
        scaler = learn_from_observed(X, self.center, self.scale, design)
        operator = Masked(scaler.apply(X, design), self.missing == "impute", self.low_memory)
        offsets = np.linalg.norm(scaler.offsets) * np.sqrt(X.shape[0])
        noise = 4 * float(np.finfo(X.dtype).eps) * (float(np.sqrt(operator.squared_norm)) + float(offsets))
        return operator, noise, scaler


def _largest(rows: Array, first: int) -> float:
    return float(np.abs(rows).max())


def _check_unexplained(operator: Corrected, noise: float) -> None:
    """Raise if covariates leave nothing but rounding error."""
    if operator.squared_norm <= noise**2:
        raise ValueError("the covariates explain all of X, and no variance is left to search: use fewer covariates")


def check_range(largest: float) -> None:
    """Raise if the squares of the entries overflow or underflow."""
    if np.isnan(largest):
        raise ValueError("X contains NaN: all entries have to be finite numbers")
    if largest and not _SMALLEST < largest < _LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose squares leave the range of numbers: rescale X, e.g. "
            f"X / np.abs(X).max() (its largest absolute entry has to lie between {_SMALLEST:g} and {_LARGEST:g})"
        )
