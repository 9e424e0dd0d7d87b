"""Another study: its genes, each centred and scaled to length 1, as products with sparse weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse

_ROUNDING = 1e-10  # of the largest entry: a gene that varies less is constant
_ENTRIES = 4_000_000  # scores per batch
_MIN_OBSERVED = 3  # entries of a gene


@dataclass(frozen=True)
class OtherStudy:
    """The varying genes of a study, as a matrix of shape (n_genes, n_samples) that is dense or sparse.

    Genes are centred and scaled only in products, so that a sparse matrix stays sparse. If `row_means` are given, they
    are subtracted from every gene first.
    """

    matrix: Matrix
    means: Floats
    lengths: Floats
    row_means: Floats

    @classmethod
    def of(cls, X: Matrix, center_rows: bool) -> tuple[Self, Indices]:
        """The study, and the columns of X that it has: constant and hardly observed genes are left out.

        Missing entries are replaced by the mean of their gene.
        """
        matrix = X.T.tocsr().astype(np.float64) if is_sparse(X) else _filled(np.asarray(X, dtype=np.float64).T)
        n_samples = matrix.shape[1]
        means = np.asarray(matrix.mean(axis=1)).ravel()
        row_means = np.asarray(matrix.mean(axis=0)).ravel() - means.mean() if center_rows else np.zeros(n_samples)
        lengths = np.sqrt(_squares(matrix, means, row_means))
        largest = _largest(matrix) if min(matrix.shape) else np.zeros(len(means))
        kept = np.flatnonzero(lengths > _ROUNDING * np.sqrt(n_samples) * np.maximum(largest, np.finfo(float).tiny))
        return cls(matrix[kept], means[kept], lengths[kept], row_means), kept

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.row_means.size)

    def genes(self, at: Indices) -> Floats:
        """Some genes, centred and scaled to length 1, as rows."""
        part = self.matrix[at]
        values = part.toarray() if is_sparse(part) else part
        return np.asarray((values - self.means[at, None] - self.row_means) / self.lengths[at, None])

    def energies(self, sets: Indices, weights: Floats) -> Floats:
        """|sum_j weights_j z_j|^2 of every set (row), where z are its genes, centred and scaled."""
        found = np.empty(len(sets))
        size = max(1, _ENTRIES // max(self.n_samples, 1))
        for start in range(0, len(sets), size):
            part = sets[start : start + size]
            pointers = np.arange(0, part.size + 1, part.shape[1])
            products = sp.csr_array(
                ((weights / self.lengths[part]).ravel(), part.ravel(), pointers), shape=(len(part), len(self.means))
            )
            scores: Any = products @ self.matrix
            scores = scores.toarray() if is_sparse(scores) else scores
            offsets: Any = products @ self.means
            scores = scores - offsets[:, None] - np.outer(products.sum(axis=1), self.row_means)
            found[start : start + size] = np.einsum("ij,ij->i", scores, scores)
        return found


def _filled(values: Array) -> Floats:
    """Genes (rows) with missing entries replaced by the mean of the observed ones; 0 if hardly any is observed."""
    missing = np.isnan(values)
    if not missing.any():
        return np.ascontiguousarray(values)
    seen = np.sum(~missing, axis=1)
    sums = np.where(missing, 0.0, values).sum(axis=1)
    filled = np.where(missing, (sums / np.maximum(seen, 1))[:, None], values)
    filled[seen < _MIN_OBSERVED] = 0.0
    return np.ascontiguousarray(filled)


def _squares(matrix: Matrix, means: Floats, row_means: Floats) -> Floats:
    """|x - mean - r|^2 of every gene x, for row means r, as a sum of squares: a constant gene has exact digits.

    A centred copy of a sparse matrix would be dense: the squares of its zeros are added without one.
    """
    if not is_sparse(matrix):
        return np.array([float(np.sum((row - mean - row_means) ** 2)) for row, mean in zip(matrix, means, strict=True)])
    counts = np.diff(matrix.indptr)
    of_rows, r = np.repeat(np.arange(len(means)), counts), row_means[matrix.indices]
    stored, sums, squares = (
        np.bincount(of_rows, weights=each, minlength=len(means))
        for each in ((matrix.data - means[of_rows] - r) ** 2, r, r**2)
    )
    zeros = matrix.shape[1] - counts
    of_zeros = zeros * means**2 + 2 * means * (row_means.sum() - sums) + (row_means @ row_means - squares)
    return np.asarray(stored + np.where(zeros > 0, np.maximum(of_zeros, 0.0), 0.0))


def _largest(matrix: Matrix) -> Floats:
    found = abs(matrix).max(axis=1)
    return np.asarray(found.toarray() if is_sparse(found) else found, dtype=np.float64).ravel()
