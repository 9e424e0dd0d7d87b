"""What the solver asks of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from netbic.operators.row_reduction import Look

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Operator(Protocol):
    """A matrix X of shape (n, p) that is only ever multiplied. All results are double precision."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v for a v that is zero outside `support` (increasing column indices)."""

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u for a u that is zero outside `support` (increasing row indices)."""


class DataOperator(Operator, Protocol):
    """An operator over data as they came, which can also be summarised."""

    def for_one_start(self) -> Operator:
        """The same matrix with a memory for one sequence of slowly changing supports (not for two threads)."""

    @property
    def epsilon(self) -> float:
        """Relative rounding error of one stored entry or product."""

    def row_sums(self) -> Floats:
        """Sum of each row."""

    def column_sums(self) -> Floats:
        """Sum of each column."""

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: Any) -> NDArray[Any]:
        """Y Y' (`on_rows`) or Y'Y for Y = X diag(factors) - left right'; the upper triangle counts, Fortran order."""

    def scan(self, look: Look) -> Any:
        """What comes of a look at every row."""

    def squared_norm(self, row_offsets: Floats, column_offsets: Floats, factors: Floats | None) -> float:
        """Sum over i, j of ((x_ij - row_offsets[i] - column_offsets[j]) * factors[j])^2."""

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - row_offsets[i] - column_offsets[j])^2, for each column j."""
