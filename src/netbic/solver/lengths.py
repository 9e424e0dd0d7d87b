"""Squared norms of the rows and columns of a residual, for penalties that choose their sizes."""

from __future__ import annotations

import numpy as np

from netbic.arrays import Floats
from netbic.operators import Corrected
from netbic.solver.starts import image

Squares = tuple[Floats | None, Floats | None]


class Lengths:
    """Squared norms of rows and columns, computed once and updated at every deflation; none if they are not needed.

    If entries are missing, deflation is not a low-rank update, and they are computed for every module.
    """

    def __init__(self, operator: Corrected, needed: bool) -> None:
        self._needed = needed
        self._squares = operator.squared_lengths() if needed and operator.tracks_gram else None

    def of(self, residual: Corrected) -> Squares:
        """Squared norms of the rows and of the columns of the current residual."""
        if not self._needed:
            return None, None
        return residual.squared_lengths() if self._squares is None else self._squares

    def deflate(self, residual: Corrected, left: Floats, right: Floats, product: Floats) -> None:
        """Update for X -> X - left right', where `residual` is the old X and `product` is X right."""
        if self._squares is None:
            return
        rows, columns = self._squares
        transposed = image(residual.rmatvec, left)
        self._squares = _updated(rows, left, product, right), _updated(columns, right, transposed, left)


def _updated(squares: Floats, own: Floats, product: Floats, other: Floats) -> Floats:
    """|x_i - own_i other|^2 = |x_i|^2 - 2 own_i (x_i'other) + own_i^2 |other|^2, at least 0."""
    updated: Floats = np.maximum(squares - 2 * own * product + own**2 * float(other @ other), 0.0)
    return updated
