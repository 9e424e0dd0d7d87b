"""From a validated matrix to the operator in which modules are sought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from netbic.estimators.words import has_holes
from netbic.operators import Corrected, DenseOperator, Masked, Preparation, as_operator, learn_from_observed, winsorised
from netbic.outofcore import RowBlocks
from netbic.solver import Starts

_SMALLEST, _LARGEST = 1e-120, 1e140  # the largest absolute entry may lie between these


class Prepared(NamedTuple):
    """A validated, centred and scaled matrix in which many models may look for modules."""

    operator: Corrected
    noise: float  # the size of what rounding alone can leave of it
    preparation: Preparation
    starts: Starts
    dtype: Any


@dataclass(frozen=True)
class Preparing:
    """How a matrix is to be prepared: the words of `SparseGraphSVD`."""

    center: str | None
    scale: bool
    missing: str
    clip: float | None
    low_memory: bool

    def of(self, X: Any) -> tuple[Corrected, float, Preparation]:
        """The prepared matrix, the size of what rounding alone can leave of it, and how to prepare other rows."""
        if isinstance(X, RowBlocks):
            return self._of_blocks(X)
        if self.clip is not None and not sp.issparse(X):
            X = winsorised(X, self.clip)
        if self.missing != "error" and has_holes(X):
            return self._masked(X)
        operator, noise, preparation = self._corrected(X)
        if not operator.squared_norm_is_safe:
            check_range(float(abs(X).max()))
        if sp.issparse(X):
            return operator, noise, preparation
        if self._swamped(operator, noise):
            centred = Corrected(DenseOperator(preparation.apply(X), self.low_memory), operator.squared_norm)
            return centred, noise, preparation
        return operator if self.low_memory else operator.on(DenseOperator(X)), noise, preparation

    def _of_blocks(self, X: RowBlocks) -> tuple[Corrected, float, Preparation]:
        """The same for blocks of rows, which are never copied."""
        X.check_finite()
        if self.clip is not None and not X.is_sparse:
            raise ValueError(
                f"AdaptiveSupport(clip={self.clip}) draws far entries in by each column's median, which blocks of rows "
                "cannot tell: use AdaptiveSupport(clip=None), or clip the Dask array first, e.g. X.clip(-3, 3)"
            )
        operator, noise, preparation = self._corrected(X)
        if not operator.squared_norm_is_safe:
            check_range(X.summary.largest)
        if not X.is_sparse and self._swamped(operator, noise):
            operator = Corrected(as_operator(X.through(preparation.apply)), operator.squared_norm)
        return operator, noise, preparation

    def _corrected(self, X: Any) -> tuple[Corrected, float, Preparation]:
        data = as_operator(X, low_memory=True)
        with np.errstate(over="ignore", invalid="ignore"):
            preparation = Preparation.learn(data, self.center, self.scale)
            operator = preparation.operator(data)
            noise = 4 * data.epsilon * (np.sqrt(operator.squared_norm) + operator.correction_norm())
        return operator, float(noise), preparation

    @staticmethod
    def _swamped(operator: Corrected, noise: float) -> bool:
        """Whether offsets are far beyond the spread: taking them off afterwards would lose the digits that matter."""
        return bool(noise > 4e-6 * np.sqrt(operator.squared_norm) > 0)

    def _masked(self, X: Any) -> tuple[Corrected, float, Preparation]:
        check_range(float(np.nanmax(np.abs(X))))
        preparation = learn_from_observed(X, self.center, self.scale)
        operator = Masked(preparation.apply(X), self.missing == "impute", self.low_memory)
        offsets = np.linalg.norm(preparation.offsets) * np.sqrt(X.shape[0])
        noise = 4 * float(np.finfo(X.dtype).eps) * (float(np.sqrt(operator.squared_norm)) + float(offsets))
        return operator, noise, preparation


def check_range(largest: float) -> None:
    """Raise if squares of the entries leave the range of numbers."""
    if largest and not _SMALLEST < largest < _LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose squares leave the range of numbers: rescale X, e.g. "
            f"X / np.abs(X).max() (its largest absolute entry has to lie between {_SMALLEST:g} and {_LARGEST:g})"
        )
