"""X without the modules found so far, and what is kept up to date about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from netbic.arrays import Floats, Indices, scatter
from netbic.operators import Corrected
from netbic.solver.lengths import Lengths, Squares
from netbic.solver.starts import Direction, Starts, image
from netbic.solver.vectors import Vector

REPEATED: Final = 0.7  # absolute correlation of scores from which a module repeats an earlier one
Stored = Floats | tuple[int, Indices, Floats]  # all entries, or the number of them and those that are not zero
_EPSILON = float(np.finfo(np.float64).eps)


class Residual:
    """The residual of X, its leading direction, and the scores Xv of modules.

    Scores refer to X itself: those of the residual plus the part that was subtracted.

    Parameters
    ----------
    operator : Corrected
        X; it is not modified.
    starts : Starts
        Of the same matrix; modified.
    lengths : Lengths
        Likewise.
    noise : float
        The norm that rounding errors alone can reach.
    """

    def __init__(self, operator: Corrected, starts: Starts, lengths: Lengths, noise: float) -> None:
        self.operator = operator
        self._starts, self._lengths, self._noise = starts, lengths, noise
        self._norm_error = 0.0  # rounding error of the squared norm
        self._layers: list[tuple[Stored, Stored]] = []
        self._image: tuple[Vector, Floats] | None = None  # the last vector of `scores`, and the residual's product
        self._regressed: set[int] = set()

    def leading(self) -> Direction | None:
        """The leading direction; None if nothing but rounding error is left."""
        is_left = self.operator.squared_norm > self._norm_error
        leading = self._starts.leading(self.operator) if is_left else None
        if leading is None or leading.value <= self._noise:
            return None
        self.operator.reset_cache()
        return leading

    def squares(self) -> Squares:
        """Squared norms of rows and columns, if they are needed."""
        return self._lengths.of(self.operator)

    def deflate(self, left: Floats, right: Floats, v: Vector | None = None) -> None:
        """Subtract the rank-one matrix `left right'`; `v` is `right` as a vector, if it is the v of a module."""
        self._norm_error += _EPSILON * self.operator.squared_norm
        known, self._image = self._image, None
        product = known[1] if known is not None and known[0] is v else image(self.operator.matvec, right)
        self._starts.deflate(self.operator, left, right, product)
        self._lengths.deflate(self.operator, left, right, product)
        self.operator = self.operator.minus(left, right, product)
        self._layers.append((_stored(left), _stored(right)))

    def scores(self, v: Vector) -> Floats:
        """The product of X (not of the residual) with a vector."""
        self.operator.reset_cache()
        product = self.operator.matvec(v.support, v.values)
        self._image = v, product
        subtracted = np.zeros(self.operator.shape[0])
        for left, right in self._layers:
            subtracted += float(_entries(right)[v.support] @ v.values) * _entries(left)
        return product + subtracted

    def repeated(self, scores: Floats, earlier: Sequence[Floats]) -> int | None:
        """The earlier module with the most similar scores, if they are correlated and were not regressed out yet."""
        if not earlier:
            return None
        similar = np.abs(correlations(scores, np.array(earlier)))
        similar[list(self._regressed)] = 0.0
        best = int(np.argmax(similar))
        return best if similar[best] >= REPEATED else None

    def regress_out(self, module: int, scores: Floats) -> None:
        """Keep only what the scores of an earlier module do not explain."""
        self._regressed.add(module)
        scores = scores / np.linalg.norm(scores)
        self.operator.reset_cache()
        self.deflate(scores, image(self.operator.rmatvec, scores))


def _stored(entries: Floats) -> Stored:
    """An array as its non-zero entries if these are less."""
    support = np.flatnonzero(entries)
    return entries if 2 * support.size >= entries.size else (entries.size, support, entries[support])


def _entries(stored: Stored) -> Floats:
    """The array again."""
    return stored if isinstance(stored, np.ndarray) else scatter(stored[1], stored[2], stored[0])


def correlations(one: Floats, others: Floats) -> Floats:
    """Pearson correlations of a vector with the rows of an array; 0 where one of both is constant."""
    one, others = one - one.mean(), others - others.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(one) * np.linalg.norm(others, axis=1)
    found: Floats = np.divide(others @ one, norms, out=np.zeros(len(others)), where=norms > 0)
    return found
