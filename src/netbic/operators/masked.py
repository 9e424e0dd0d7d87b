"""Dense matrices with missing entries.

Means, standard deviations and norms are those of the observed entries. Missing entries are filled with the mean of the
observed ones, and deflation changes observed entries only, as in PMD. The matrix is then Y - (layers) + M, where Y is
scaled and filled once, the layers are of low rank, and the sparse M cancels the layers in the missing entries.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Array, Floats, Indices
from netbic.operators.base import join_square_sums, square_sums
from netbic.operators.corrected import Corrected, Result, Scaler
from netbic.operators.dense import DenseOperator

_MOST_COVARIATES = 60  # each column has its own equations, as many as there are pairs of covariates
_UNDETERMINED = 1e-10  # smallest eigenvalue, relative to the largest one, of a combination of covariates that is used


def learn_from_observed(
    X: Array, center: str | None, scale: float, design: Floats | None = None, *, ddof: int = 0, name: str = "X"
) -> Scaler:
    """`Scaler.learn` from the observed entries of X; covariates are regressed on those of each column."""
    for axis, line in ((0, "column"), (1, "row")):
        empty = np.flatnonzero(np.isnan(X).all(axis=axis))
        if empty.size:
            raise ValueError(f"{line} {empty[0]} of {name} has no observed entry ({empty.size} in all): drop it")
    if design is None:
        means, effects, rest = np.asarray(np.nanmean(X, axis=0, dtype=np.float64)), None, X
    else:
        means, effects = regress_on_observed(X, design)
        rest = X - design @ effects
    deviations = None
    if scale:
        observed = np.sum(~np.isnan(X), axis=0)
        deviations = np.nanstd(rest, axis=0, dtype=np.float64) * np.sqrt(observed / np.maximum(observed - ddof, 1))
    grand = float(np.nanmean(rest, dtype=np.float64))
    made = Scaler.from_moments(means, grand, deviations, center, float(np.finfo(X.dtype).eps), scale)
    return replace(made, effects=effects)


def regress_on_observed(X: Array, design: Floats) -> tuple[Floats, Floats]:
    """Intercepts (p,) and coefficients (c, p) of every column on the design, from its observed entries."""
    n, c = design.shape
    if c > _MOST_COVARIATES:
        raise ValueError(
            f"X has missing entries and {c} columns of covariates, more than {_MOST_COVARIATES}: fill the entries "
            "first, e.g. by sklearn.impute.SimpleImputer, or use fewer covariates"
        )
    columns = np.column_stack([np.ones(n), design])
    seen = ~np.isnan(X)
    images = columns.T @ np.where(seen, X, 0.0).astype(np.float64)
    pairs = (columns[:, :, None] * columns[:, None, :]).reshape(n, -1)
    grams = (pairs.T @ seen).T.reshape(-1, c + 1, c + 1)
    # Of coefficients that are not determined (a batch in which the column was never observed), the smallest ones.
    found = np.linalg.pinv(grams, rcond=_UNDETERMINED, hermitian=True) @ images.T[:, :, None]
    return np.ascontiguousarray(found[:, 0, 0]), np.ascontiguousarray(found[:, 1:, 0].T)


class Masked(Corrected):
    """A centred and scaled matrix, in which missing entries are NaN; the array is modified.

    With `impute`, missing entries have the values that the modules predict (`with_prediction`), otherwise the mean of
    the observed ones.
    """

    tracks_gram = False

    def __init__(self, scaled: Array, impute: bool, low_memory: bool = False) -> None:
        rows, columns = np.nonzero(np.isnan(scaled))
        scaled[rows, columns] = 0
        data = DenseOperator(scaled, low_memory=True)
        nothing = np.zeros(scaled.shape[0]), np.zeros(scaled.shape[1])
        self._n_observed = scaled.size - rows.size
        seen = scaled.shape[1] - np.bincount(rows, minlength=scaled.shape[0])
        self.row_weights = seen / seen.mean()
        self._observed_sum = float(data.column_sums().sum())
        self._observed_square = float(data.column_squares(*nothing).sum())
        self.imputes = impute
        self._fill = 0.0 if impute else self._observed_sum / self._n_observed
        scaled[rows, columns] = self._fill
        super().__init__(DenseOperator(scaled, low_memory), self._observed_square + rows.size * self._fill**2)
        self._missing = MissingEntries.at(rows, columns, self.shape)

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the right."""
        return super().matvec(support, values) + self._missing.matvec(support, values)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the left."""
        return super().rmatvec(support, values) + self._missing.rmatvec(support, values)

    def _block(self, rows: Indices, columns: Indices) -> tuple[Array, Floats, Floats]:
        """Some rows and columns of Y + M, and of the layers."""
        block, left, right = super()._block(rows, columns)
        return block + self._missing.among(rows, columns), left, right

    def left_products(self, vectors: Floats) -> Floats:
        """Products with dense vectors on the left, the columns of an array; one row per vector."""
        every_row = np.arange(self.shape[0])
        return np.array([self.rmatvec(every_row, vector) for vector in vectors.T]).reshape(-1, self.shape[1])

    def normal(self, vectors: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Y'w and w, for this matrix Y, w = weights * Yv and a dense vector v, or several: the columns of an array."""
        every_row, every_column = (np.arange(size) for size in self.shape)
        images = np.array([self.matvec(every_column, vector) for vector in np.atleast_2d(vectors.T)])
        images = weights * images.T.reshape(self.shape[0], *vectors.shape[1:])
        products = np.array([self.rmatvec(every_row, image) for image in np.atleast_2d(images.T)])
        return products.T.reshape(vectors.shape), images

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """Products with several supported vectors on the right, one row per vector."""
        return np.array([self.matvec(*vector) for vector in vectors]).reshape(-1, self.shape[0])

    def squared_lengths(self) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns."""
        return self._reduce_rows(square_sums, join_square_sums)

    def _reduce_rows(
        self, function: Callable[[Floats, int], Result], combine: Callable[[Result, Result], Result]
    ) -> Result:
        def filled(rows: Floats, first: int) -> Result:
            return function(rows + self._missing.among(slice(first, first + len(rows))), first)

        return super()._reduce_rows(filled, combine)

    @property
    def n_entries(self) -> int:
        """Number of entries that contribute to the squared norm."""
        entries = self.shape[0] * self.shape[1]
        # Imputed entries have no residual: the noise level is that of a smaller matrix.
        return max(round(self._n_observed**2 / entries), 1) if self.imputes else entries

    def with_prediction(self, left: Floats, right: Floats) -> Self:
        """The same matrix with `left right'`, a prediction, added to the missing entries."""
        made, inside = copy.copy(self), self._missing.of_product(left, right)
        made._missing = self._missing.plus(inside)
        made.squared_norm = self.squared_norm + float(inside @ inside) + 2 * self._fill * float(inside.sum())
        return made

    def minus(self, left: Floats, right: Floats, product: Floats) -> Self:
        """Subtract `left right'` from the observed entries; missing entries get the new mean (or stay predicted)."""
        inside = self._missing.of_product(left, right)
        made = super().minus(left, right, product)
        change = float(left.sum()) * float(right.sum()) - float(inside.sum())
        made._observed_sum = self._observed_sum - change
        # Sum over observed entries of (y - ab)^2; `product` includes the missing entries with their current values.
        overlap = float(left @ product) - self._fill * float(inside.sum())
        squares = float(left @ left) * float(right @ right) - float(inside @ inside)
        made._observed_square = max(self._observed_square - 2 * overlap + squares, 0.0)
        made._fill = 0.0 if self.imputes else made._observed_sum / self._n_observed
        made._missing = self._missing.plus(inside + (made._fill - self._fill))
        made.squared_norm = made._observed_square + inside.size * made._fill**2
        return made


class MissingEntries:
    """A sparse matrix with a fixed pattern, by rows and by columns, whose values change."""

    def __init__(self, by_row: sp.csr_array, by_column: sp.csc_array, order: Indices) -> None:
        self._by_row, self._by_column, self._order = by_row, by_column, order
        self._rows = np.repeat(np.arange(by_row.shape[0]), np.diff(by_row.indptr))

    @classmethod
    def at(cls, rows: Indices, columns: Indices, shape: tuple[int, int]) -> MissingEntries:
        """Zeros in the given entries (sorted by rows)."""
        numbered = sp.csr_array((np.arange(rows.size, dtype=np.float64), (rows, columns)), shape=shape)
        turned = numbered.tocsc()
        return cls(numbered, turned, turned.data.astype(np.intp)).plus(-numbered.data)

    def plus(self, values: Floats) -> MissingEntries:
        """The same pattern with these numbers, by rows, added to the values."""
        rows, columns, values = self._by_row, self._by_column, self._by_row.data + values
        by_row = sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
        by_column = sp.csc_array((values[self._order], columns.indices, columns.indptr), shape=rows.shape)
        return MissingEntries(by_row, by_column, self._order)

    def of_product(self, left: Floats, right: Floats) -> Floats:
        """The missing entries of `left right'`, of vectors or of matrices with a row per row and column."""
        left, right = left.reshape(len(left), -1), right.reshape(len(right), -1)
        return np.asarray(
            sum(a[self._rows] * b[self._by_row.indices] for a, b in zip(left.T, right.T, strict=True)), dtype=np.float64
        )

    def among(self, rows: Indices | slice, columns: Indices | None = None) -> Floats:
        """Some rows and columns (None: all), as a dense array."""
        part = self._by_row[rows]
        return np.asarray((part if columns is None else part[:, columns]).toarray())

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the right."""
        return np.asarray(self._by_column[:, support] @ values)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the left."""
        return np.asarray(self._by_row[support].T @ values)
