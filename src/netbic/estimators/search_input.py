"""From a validated matrix to the operator that is searched for modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Matrix, kind_of
from netbic.estimators.inputs import has_missing
from netbic.operators import (
    Corrected,
    DataOperator,
    DenseOperator,
    Masked,
    RowReduction,
    Scaler,
    as_operator,
    learn_from_observed,
    winsorised,
)
from netbic.outofcore import RowBlocks
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


@dataclass(frozen=True)
class ScalingOptions:
    """How a matrix is clipped, centred and scaled: parameters of `SparseGraphSVD`."""

    center: str | None
    scale: bool
    missing: str
    clip: float | None
    low_memory: bool

    def apply(self, X: Any) -> Scaled:
        """The centred and scaled matrix, its rounding error, and how to transform other rows."""
        match kind_of(X):
            case "blocks":
                return self._blocks(X)
            case "operator":
                return self._operator(X)
            case "sparse":
                return self._sparse(X)
        return self._dense(X)

    def _dense(self, X: Array) -> Scaled:
        if self.clip is not None:
            X = winsorised(X, self.clip)
        if self.missing != "error" and has_missing(X):
            return self._masked(X)
        operator, noise, scaler = self._corrected(X)
        if not operator.squared_norm_is_safe:
            check_range(float(abs(X).max()))
        if self._loses_digits(operator, noise):
            centred = Corrected(DenseOperator(scaler.apply(X), self.low_memory), operator.squared_norm)
            return centred, noise, scaler
        return operator if self.low_memory else operator.on(DenseOperator(X)), noise, scaler

    def _sparse(self, X: Matrix) -> Scaled:
        made = self._corrected(X)
        if not made[0].squared_norm_is_safe:
            check_range(float(abs(X).max()))
        return made

    def _operator(self, X: DataOperator) -> Scaled:
        if self.clip is not None:
            raise ValueError(
                f"clip={self.clip} of the penalty needs the median of each column, which {type(X).__name__} does not "
                "offer: use e.g. AdaptiveSupport(clip=None)"
            )
        made = self._corrected(X)
        if not made[0].squared_norm_is_safe:
            nothing = np.empty((X.shape[0], 0)), np.empty((X.shape[1], 0))
            check_range(X.reduce_rows(RowReduction(_largest, max, None, *nothing)))
        return made

    def _blocks(self, X: RowBlocks) -> Scaled:
        """The same for blocks of rows, which are never copied."""
        X.check_finite()
        if self.clip is not None and not X.is_sparse:
            raise ValueError(
                f"clip={self.clip} of the penalty needs the median of each column, which cannot be computed from the "
                "blocks of a Dask array: use e.g. AdaptiveSupport(clip=None)"
            )
        operator, noise, scaler = self._corrected(X)
        if not operator.squared_norm_is_safe:
            check_range(X.summary.largest)
        if not X.is_sparse and self._loses_digits(operator, noise):
            operator = Corrected(as_operator(X.with_transform(scaler.apply)), operator.squared_norm)
        return operator, noise, scaler

    def _corrected(self, X: Any) -> Scaled:
        data = as_operator(X, low_memory=True)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = Scaler.learn(data, self.center, self.scale)
            operator = scaler.operator(data)
            noise = 4 * data.epsilon * (np.sqrt(operator.squared_norm) + operator.correction_norm())
        return operator, float(noise), scaler

    @staticmethod
    def _loses_digits(operator: Corrected, noise: float) -> bool:
        """Whether offsets are so large that subtracting them from products would lose significant digits."""
        return bool(noise > 4e-6 * np.sqrt(operator.squared_norm) > 0)

    def _masked(self, X: Array) -> Scaled:
        check_range(float(np.nanmax(np.abs(X))))
        scaler = learn_from_observed(X, self.center, self.scale)
        operator = Masked(scaler.apply(X), self.missing == "impute", self.low_memory)
        offsets = np.linalg.norm(scaler.offsets) * np.sqrt(X.shape[0])
        noise = 4 * float(np.finfo(X.dtype).eps) * (float(np.sqrt(operator.squared_norm)) + float(offsets))
        return operator, noise, scaler


def _largest(rows: Array, first: int) -> float:
    return float(np.abs(rows).max())


def check_range(largest: float) -> None:
    """Raise if the squares of the entries overflow or underflow."""
    if np.isnan(largest):
        raise ValueError("X contains NaN: all entries have to be finite numbers")
    if largest and not _SMALLEST < largest < _LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose squares leave the range of numbers: rescale X, e.g. "
            f"X / np.abs(X).max() (its largest absolute entry has to lie between {_SMALLEST:g} and {_LARGEST:g})"
        )
