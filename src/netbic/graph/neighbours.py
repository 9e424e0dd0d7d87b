"""Graphs from data: the genes that are correlated in another study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Floats, Matrix, check_in_memory, checked, is_sparse, stored_values
from netbic.errors import InputError
from netbic.graph.graph import Graph

_BLOCK_ENTRIES = 1 << 22  # correlations computed at a time: 32 MB
_DECIMALS = 10  # correlations that agree to this precision are ties: rounding errors do not choose neighbours
_FEWEST_SAMPLES = 3  # all correlations of two samples are 1, -1 or undefined


def coexpression(X_other: Any, k: int = 10, positive: bool = True) -> Graph:
    """The graph that connects each gene to its `k` most correlated genes in another study.

    Two genes are connected if either is among the `k` neighbours of the other. All weights are 1: correlations as
    weights gave the same modules in our experiments.

    Parameters
    ----------
    X_other : DataFrame, array or sparse matrix of shape (n_samples, n_genes)
        Samples of another study: a graph made from the samples that are analysed would only repeat what they contain.
        Genes are nodes; the columns of a DataFrame are their names. On the scale on which correlations make sense, such
        as logarithms of counts.
    k : int
        Neighbours of each gene.
    positive : bool
        Whether neighbours must be positively correlated. False: the largest absolute correlations.

    Returns
    -------
    Graph
        Constant genes have no neighbours. The graph does not depend on the order of the samples or on the location and
        scale of the genes. Of equal correlations (to ten decimals), those with the first genes are used.

    See Also
    --------
    netbic.SparseGraphSVD : its parameter `smoothing` uses such a graph.

    Notes
    -----
    Correlations are computed for a block of genes at a time: the memory needed is that of X_other in double precision
    and of a few blocks of 32 MB. 13,000 genes and 250 samples take about ten seconds.

    Examples
    --------
    >>> import netbic
    >>> other = netbic.simulate.cohort(200, 300, n_modules=2, random_state=1)
    >>> graph = netbic.graph.coexpression(other.expression, k=5)
    >>> graph.n_nodes, graph.names[0]
    (300, 'GENE0000')
    >>> graph.subgraph(other.genes[0]).n_edges > graph.n_edges / 10  # edges inside a module
    True
    """
    check_in_memory(X_other, "a coexpression graph is made from data in memory")
    X = checked(X_other, "X_other")
    names = X.columns if isinstance(X, pd.DataFrame) and not _is_default(X.columns) else None
    values = _values(X)
    _check_size(k, *values.shape)
    found = list(_neighbours(_Correlations.of(values), int(k), bool(positive)))
    genes, neighbours = (np.concatenate(part) for part in zip(*found, strict=True))
    one_way = sp.csr_array((np.ones(genes.size), (genes, neighbours)), shape=(values.shape[1],) * 2)
    both = sp.csr_array(one_way.maximum(one_way.T))
    both.sort_indices()
    return Graph(both, names)


def _is_default(index: pd.Index[Any]) -> bool:
    return isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))


def _values(X: Matrix) -> Matrix:
    """A copy in double precision, dense or by columns; an error if some entries are missing or infinite."""
    values: Matrix = sp.csc_array(X, dtype=np.float64, copy=True) if is_sparse(X) else np.array(X, dtype=np.float64)
    if is_sparse(values):
        values.sum_duplicates()
    if values.ndim != 2:
        raise InputError(f"X_other has {values.ndim} dimensions: a matrix of samples x genes is needed")
    bad = int(np.count_nonzero(~np.isfinite(stored_values(values))))
    if bad:
        what = "1 entry of X_other is" if bad == 1 else f"{bad:,} entries of X_other are"
        raise InputError(
            f"{what} missing or infinite: fill them, e.g. by sklearn.impute.SimpleImputer, or drop those genes"
        )
    return values


def _check_size(k: Any, n_samples: int, n_genes: int) -> None:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
        raise TypeError(f"k={k!r}: an integer is needed")
    if n_samples < _FEWEST_SAMPLES:
        raise InputError(f"X_other has {n_samples} samples: at least {_FEWEST_SAMPLES} are needed for correlations")
    if n_genes < 2:
        raise InputError(f"X_other has {n_genes} genes: at least 2 are needed")
    if not 1 <= k < n_genes:
        raise InputError(f"`k={k}` but X_other has {n_genes:,} genes: choose 1 to {n_genes - 1:,}", ["k"])


def _subtract_means(values: Matrix) -> Floats:
    """Subtract the means of genes in place, for sparse data of those without zeros; the subtracted values.

    Differences of large numbers would lose digits later. A gene with zeros has a mean of the size of its deviation.
    """
    means = np.asarray(values.mean(axis=0)).ravel()
    if not is_sparse(values):
        values -= means
        return means
    counts = np.diff(values.indptr)
    subtracted = np.where(counts == values.shape[0], means, 0.0)
    values.data -= np.repeat(subtracted, counts)
    return subtracted


class _Correlations:
    """Correlations of a few genes with all others; those of constant genes are zero."""

    def __init__(self, values: Matrix, means: Floats, lengths: Floats) -> None:
        self.values, self.means = values, means
        self.factors = 1 / np.where(lengths > 0, lengths, np.inf)

    @classmethod
    def of(cls, values: Matrix) -> _Correlations:
        """The correlations of the columns of a matrix, which is changed in place."""
        n = values.shape[0]
        subtracted = _subtract_means(values)
        means = np.asarray(values.mean(axis=0)).ravel()
        made = cls(values, means, np.ones(values.shape[1]))
        parts = [np.linalg.norm(made._centred(part), axis=0) for part in made.blocks()]
        lengths = np.concatenate(parts)
        constant = lengths <= 10 * np.finfo(np.float64).eps * np.sqrt(n) * np.abs(subtracted + means)
        return cls(values, means, np.where(constant, 0.0, lengths))

    def blocks(self) -> Iterator[slice]:
        """Blocks of genes."""
        n, p = self.values.shape
        step = max(1, _BLOCK_ENTRIES // max(n, p))
        return (slice(start, min(start + step, p)) for start in range(0, p, step))

    def _centred(self, part: slice) -> Floats:
        block = self.values[:, part]
        dense = block.toarray() if is_sparse(block) else block
        return np.asarray(dense - self.means[part])

    def with_all(self, part: slice) -> Floats:
        """A row of correlations for each gene of a block; the one with itself is minus infinity."""
        centred = self._centred(part) * self.factors[part]
        found = np.asarray((self.values.T @ centred).T)
        found -= np.outer(centred.sum(axis=0), self.means)  # rounding errors: sums of centred genes are nearly zero
        found *= self.factors
        found = np.round(found, _DECIMALS, out=found)
        found[np.arange(found.shape[0]), np.arange(part.start, part.stop)] = -np.inf
        return found


def _neighbours(correlations: _Correlations, k: int, positive: bool) -> Iterator[tuple[Array, Array]]:
    """Genes of each block and their neighbours."""
    for part in correlations.blocks():
        scores = correlations.with_all(part)
        if not positive:
            own = np.isneginf(scores)
            np.abs(scores, out=scores)
            scores[own] = -np.inf
        genes, neighbours = np.nonzero(_largest(scores, k))
        yield part.start + genes, neighbours


def _largest(scores: Floats, k: int) -> Bools:
    """The k largest positive entries of each row; of equal ones the first."""
    smallest = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k, None]
    kept = scores >= smallest
    crowded = np.flatnonzero(kept.sum(axis=1) > k)  # rows with ties at the smallest
    for row in crowded:
        ties = np.flatnonzero(scores[row] == smallest[row])
        surplus = int(kept[row].sum()) - k
        kept[row, ties[ties.size - surplus :]] = False
    return np.asarray(kept & (scores > 0))
