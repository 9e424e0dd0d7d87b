"""Checks of an expression matrix before a fit: values, samples and names that usually need attention first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import rankdata

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse, kind_of, row_blocks, stored_values
from netbic.errors import one_line
from netbic.io.names import genes_as_dates
from netbic.io.preprocessing import column_means, log_of_one_more, variances
from netbic.io.tables import as_matrix

_ROWS = 300  # samples whose values are looked at
_SAMPLES, _GENES = 5000, 2000  # most that are compared with each other, and by which genes
_FEWEST_GENES = 20  # fewer cannot tell samples apart
_NAMED = 5  # names in a message
_FEW_VALUES = 20  # distinct ones, as of genotypes and ratings
_WHOLE = 0.99  # share of whole numbers
_LOG_RANGE = 25.0  # logarithms of expression values to base 2 are below
_WIDE = 10.0  # the largest value of counts and intensities is more than this many medians
_UNLOGGED = 100.0
_MEAN_AND_SPREAD = 0.6  # correlation over the genes of values that are not logarithms
_MOSTLY_ZERO = 0.5
_TOTALS = 1.5  # ratio of the 95th and the 5th percentile
_DOMINATED = 0.5  # share of the variance of one gene in a hundred
_FEWEST_DOMINATED = 100
_EMPTY, _EMPTY_SHARE = 2, 0.2  # samples in which a nearly empty gene is not zero; share of such genes
_SAME = 0.999  # correlation
_PROJECTIONS = 64  # their correlation is within 0.001 of an exact one of 0.999
_CANDIDATE = 0.995  # correlation of the projections from which on a pair is compared exactly
_MOST_PAIRS = 500
_BLOCK = 1000  # samples whose correlations are computed at once
_FEWEST_VALUES = 20  # samples with fewer values other than zero may agree by chance
_RANKED = 500  # genes
_FEWEST_SAMPLES = 10  # fewer do not show what is usual
_UPPER_DECILE = 1.2816  # of the normal distribution
_FAR = 3.0, 6.5  # distance to the median profile: times the median distance, and standard deviations of its logarithm
_UNRELATED = 0.5, 4.0  # correlation with the median profile: share of the usual one, and standard deviations below
_RELATED = 0.6  # usual correlation from which on it says something: not in data whose genes are centred
_FEW_DETECTED = 0.1  # share of the usual number of genes that are not zero
_LARGEST = 10  # deviation, in medians: larger ones of a few genes do not make a sample an outlier


@dataclass(frozen=True)
class Finding:
    """Something to change or to look at before a fit.

    Parameters
    ----------
    kind : str
        "raw counts", "not logarithms", "logarithms twice", "sequencing depth", "same samples", "outlying samples",
        "dates", "dominating genes" or "empty genes".
    problem : str
        What was found, and why it matters.
    remedy : str
        What to do; parameters of `open_dataset` and of the model are in backticks.
    names : tuple of str
        The genes or samples concerned.
    """

    kind: str
    problem: str
    remedy: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return one_line(f"{self.problem}: {self.remedy}")


def check_expression(
    X: Any,
    samples: Sequence[Any] | None = None,
    genes: Sequence[Any] | None = None,
    *,
    log1p: bool = False,
    scaled: bool = False,
) -> list[Finding]:
    """Check expression data for frequent problems before a fit.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame or Dask array
        Expression values, samples in rows. A sparse matrix stays sparse. Of a Dask array, only the names are checked.
    samples, genes : sequence of str, optional
        Names of rows and columns. Default: those of a DataFrame, otherwise numbers.
    log1p : bool
        Whether X is log(1 + x) of the data as they were given.
    scaled : bool
        Whether the genes will be scaled to (nearly) unit standard deviation in the fit.

    Returns
    -------
    list of Finding
        Empty if nothing was found.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.negative_binomial(1, 1 / (1 + rng.lognormal(3, 2, 500)), (60, 500))
    >>> for finding in netbic.io.check_expression(counts):
    ...     print(finding.kind, "->", finding.remedy)
    raw counts -> add `cpm=True` `log1p=True`
    >>> totals = counts.sum(axis=1, keepdims=True)
    >>> netbic.io.check_expression(np.log1p(1e6 * counts / totals), log1p=True)
    []
    """
    if kind_of(X) == "table":
        samples, genes = X.index if samples is None else samples, X.columns if genes is None else genes
    found: list[Finding] = []
    if dates := genes_as_dates([] if genes is None else [str(gene) for gene in genes]):
        explained = next((f"; {name} is {gene}" for name, gene in dates.items() if gene), "")
        count, kind = ("1 gene name was", "a date") if len(dates) == 1 else (f"{len(dates)} gene names were", "dates")
        problem = f"{count} changed to {kind} by a spreadsheet ({_listed(list(dates))}{explained})"
        remedy = "use a table that no spreadsheet program has saved, or rename them (`id_map`)"
        found.append(Finding("dates", problem, remedy, tuple(dates)))
    if kind_of(X) == "dask":
        return found
    X = as_matrix(X)
    if X.ndim != 2 or min(X.shape) < 2:
        return found
    samples = [f"sample {k}" for k in range(X.shape[0])] if samples is None else list(map(str, samples))
    genes = [f"gene {k}" for k in range(X.shape[1])] if genes is None else list(map(str, genes))
    with np.errstate(all="ignore"):
        values = _Values.of(X)
        if not values.nonzero.size:
            return found
        on_scale = list(_scale(values, log1p))
        wants_logs = bool(on_scale) and on_scale[0].kind in ("raw counts", "not logarithms")
        found += [*on_scale, *_samples(X, values, samples, wants_logs)]
        # Without logarithms, and with a sample that failed, a few genes have most of the variance for that reason.
        has_reason = wants_logs or any(finding.kind == "outlying samples" for finding in found)
        return found + list(_genes(X, values, genes, dominating=not (scaled or has_reason)))


def _listed(names: Sequence[str]) -> str:
    """The first names, as text."""
    return ", ".join(one_line(name, 40) for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _some(size: int, most: int) -> Any:
    """All indices, or a random choice of this many."""
    return slice(None) if size <= most else np.sort(np.random.default_rng(0).choice(size, most, replace=False))


# Values


@dataclass(frozen=True)
class _Values:
    """Values of some samples."""

    rows: Matrix
    nonzero: Array  # finite ones
    zero_share: float
    largest: float  # of all samples

    @classmethod
    def of(cls, X: Matrix) -> _Values:
        rows = X[_some(X.shape[0], _ROWS)]
        stored = stored_values(rows)
        known = stored != 0
        size = rows.shape[0] * rows.shape[1]
        zeros = size - np.count_nonzero(known)
        if not np.isfinite(stored.sum()):  # otherwise all values are finite
            known &= np.isfinite(stored)
        largest = np.fmax.reduce(stored_values(X), axis=None, initial=-np.inf)
        return cls(rows, stored[known], zeros / size, float(largest))

    @property
    def few(self) -> bool:
        """Whether there are few distinct values, as of genotypes and ratings."""
        some = self.nonzero[:: max(1, self.nonzero.size // 100_000)]
        return bool(np.unique(some).size <= _FEW_VALUES and np.abs(self.nonzero).max(initial=0) <= _FEW_VALUES)


def _scale(values: _Values, log1p: bool) -> Iterator[Finding]:
    """Raw counts, values that are not logarithms, logarithms of counts that were not normalised or of logarithms."""
    if values.few and not _mostly_small_counts(values.nonzero, values.zero_share):
        return
    given = np.expm1(values.nonzero) if log1p else values.nonzero
    least, middle = float(given.min()), cache(lambda: float(np.median(given)))
    most = float(np.expm1(values.largest) if log1p else values.largest)
    # Counts are whole and positive, and the largest is far above the others.
    counts = (
        least >= 0
        and _are_whole(given, 1e-3 if log1p else 0.0)
        and (given.max() > max(_FEW_VALUES, _WIDE * middle()) or _mostly_small_counts(given, values.zero_share))
    )
    if not log1p and counts:
        yield Finding(
            "raw counts",
            f"these look like raw counts (whole numbers up to {most:,.0f}), in which highly expressed genes and "
            "sequencing depth dominate",
            "add `cpm=True` `log1p=True`",
        )
    elif not log1p and _are_unlogged(values, least, middle):
        yield Finding(
            "not logarithms",
            f"values up to {most:,.0f} ({most / max(middle(), 1e-300):,.0f} times their median) are not on a log "
            "scale, so that a few highly expressed genes would dominate",
            "add `log1p=True`" if least >= 0 else "replace negative values by 0, then add `log1p=True`",
        )
    elif log1p and counts:
        rows = values.rows.expm1() if is_sparse(values.rows) else np.expm1(values.rows)
        low, high = np.nanquantile(np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel(), [0.05, 0.95])
        if high > _TOTALS * low:
            yield Finding(
                "sequencing depth",
                f"these are logarithms of counts whose totals differ {high / max(low, 1.0):,.1f}-fold between samples "
                "(5th to 95th percentile), which modules would follow",
                "add `cpm=True`",
            )
    elif log1p and values.rows.shape[1] >= _FEWEST_DOMINATED and (most < _LOG_RANGE or most < _WIDE * middle()):
        yield Finding(
            "logarithms twice",
            f"the values before log1p ({middle():.3g} in the median, at most {most:,.4g}) look like logarithms already",
            "leave out `log1p=True`",
        )


def _mostly_small_counts(values: Array, zero_share: float) -> bool:
    """Whether these can be counts of shallow sequencing: most of them 0, most others 1, and no upper end."""
    return zero_share > _MOSTLY_ZERO and bool(np.median(values) <= 2 and values.max() >= 8)


def _are_whole(values: Array, tolerance: float) -> bool:
    """Whether nearly all values are whole numbers; most data have been found not to be after a few of them."""
    others: Any = 0
    for some in np.array_split(values, 100):
        others += np.count_nonzero(~(np.abs(some - np.rint(some)) <= tolerance * np.maximum(1.0, some)))
        if others > (1 - _WHOLE) * values.size:
            return False
    return True


def _are_unlogged(values: _Values, least: float, middle: Callable[[], float]) -> bool:
    """Whether most samples have values far above those of logarithms, and genes vary in proportion to their mean."""
    rows = values.rows
    highest = rows.max(axis=1).toarray() if is_sparse(rows) else np.fmax.reduce(rows, axis=1)  # NaN ignored
    typical = float(np.nanmedian(highest))
    if not (typical > _UNLOGGED and least > -0.05 * typical and typical > _WIDE * middle()):
        return False
    means, spreads = column_means(rows), np.sqrt(variances(rows))
    known = (means > 0) & (spreads > 0)
    if np.count_nonzero(known) < _FEWEST_GENES:
        return False
    return bool(np.corrcoef(np.log(means[known]), np.log(spreads[known]))[0, 1] > _MEAN_AND_SPREAD)


# Genes


def _genes(X: Matrix, values: _Values, genes: list[str], dominating: bool) -> Iterator[Finding]:
    """Genes that are nearly always zero; and (`dominating`) one gene in a hundred with most of the variance."""
    if X.shape[0] >= 10 * _EMPTY and values.zero_share:
        empty = tuple(genes[at] for at in np.flatnonzero(_n_nonzero(X, axis=0) <= _EMPTY))
        if len(empty) > _EMPTY_SHARE * len(genes):
            what = f"{len(empty):,} of {len(genes):,} genes ({_listed(empty)}) are zero in all but at most {_EMPTY} of "
            what += f"{X.shape[0]:,} samples and cannot be in a module that is found again"
            remedy = f"keep the most variable genes (`n_variable={max(2, len(genes) - len(empty))}`)"
            yield Finding("empty genes", what, remedy, empty)
    if not dominating or len(genes) < _FEWEST_DOMINATED:
        return
    spread: Floats = np.nan_to_num(variances(values.rows))
    top = np.argsort(-spread, kind="stable")[: -(-len(genes) // 100)]
    share = float(spread[top].sum() / max(spread.sum(), np.finfo(float).tiny))
    if share > _DOMINATED:
        names = tuple(genes[at] for at in top)
        which = "most variable gene" if len(top) == 1 else f"{len(top):,} most variable genes"
        what = (
            f"the {which} of {len(genes):,} ({_listed(names)}) hold {share:.0%} of the variance and would dominate the "
        )
        remedy = "`scale=True` in the fit gives all genes the same weight"
        yield Finding("dominating genes", f"{what}modules", remedy, names)


def _n_nonzero(X: Matrix, axis: int) -> Indices:
    """How many values are not zero, by gene (axis 0) or by sample (axis 1)."""
    if not is_sparse(X):
        counts = [np.count_nonzero(rows, axis=axis) for rows in row_blocks(X)]
        return np.asarray(np.concatenate(counts) if axis else np.sum(counts, axis=0))
    if not X.data.all():
        return np.asarray(X.count_nonzero(axis=axis))
    return np.bincount(X.indices, minlength=X.shape[1]) if axis == 0 else np.diff(X.indptr)


# Samples


def _samples(X: Matrix, values: _Values, names: list[str], wants_logs: bool) -> Iterator[Finding]:
    """Samples that are nearly the same, and samples that differ from all others."""
    if X.shape[1] < _FEWEST_GENES:
        return
    rows, columns = _some(X.shape[0], _SAMPLES), _some(X.shape[1], _GENES)
    compared = X[rows][:, columns]
    names = [names[at] for at in np.arange(X.shape[0])[rows]]
    among = f" (of {len(names):,} samples that were compared)" if len(names) < X.shape[0] else ""
    if not is_sparse(compared) and not (known := np.isfinite(compared)).all():  # filled with the means of the genes
        means = np.where(known, compared, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        compared = np.where(known, compared, means)
    if wants_logs:
        compared = log_of_one_more(compared if is_sparse(compared) else np.maximum(compared, 0))
    mostly_zero = values.zero_share > _MOSTLY_ZERO
    if not values.few:
        if is_sparse(compared) or mostly_zero:
            centre = np.asarray(compared.mean(axis=0, dtype=np.float64)).ravel()
        else:  # one extreme sample does not change medians
            centre = np.asarray(np.median(compared, axis=0), dtype=np.float64)
        if pairs := _same_samples(compared, centre):
            listed = [f"{names[one]} = {names[other]}" for one, other in pairs]
            at_least = "at least " if len(pairs) == _MOST_PAIRS else ""
            which = "1 pair of samples has" if len(pairs) == 1 else f"{at_least}{len(pairs)} pairs of samples have"
            yield Finding(
                "same samples",
                f"{which} nearly the same values{among} (correlation above {_SAME}, genes centred; {_listed(listed)}), "
                "and modules would seem to be found again",
                "keep one sample of each pair",
                tuple(dict.fromkeys(names[at] for pair in pairs for at in pair)),
            )
    found, reason = np.empty(0, dtype=np.intp), ""
    if mostly_zero:  # samples in which far fewer genes than usual are not zero
        counts = _n_nonzero(compared, axis=1)
        usual = float(np.median(counts))
        found = np.flatnonzero((counts < _FEW_DETECTED * usual) & (usual >= _FEWEST_VALUES))
        found = found[np.argsort(counts[found], kind="stable")]
        reason = f"{counts[found[0]]:,} genes that are not zero, usually {usual:,.0f}" if found.size else ""
    elif not is_sparse(compared) and compared.shape[0] >= _FEWEST_SAMPLES:
        found, reason = _outlying_samples(compared)
    if outliers := tuple(names[at] for at in found):
        what, may = f"1 sample differs from all others{among} ({_listed(outliers)}; {reason})", "a module of its own"
        remedy = "check it, and leave it out if it failed"
        if len(outliers) > 1:
            what = f"{len(outliers)} samples differ from all others{among} ({_listed(outliers)}; the first: {reason})"
            may, remedy = "modules of their own", "check them, and leave out those that failed"
        yield Finding("outlying samples", f"{what} and may form {may}", remedy, outliers)


def _same_samples(X: Matrix, centre: Floats) -> list[tuple[int, int]]:
    """Pairs of samples whose profiles correlate above 0.999, the `centre` of each gene subtracted; at most 500.

    Candidates are found by random projections, so that a sparse matrix stays sparse.
    """
    directions = np.random.default_rng(0).standard_normal((X.shape[1], _PROJECTIONS))
    directions -= directions.mean(axis=0)  # so that the mean of each sample does not count, as in a correlation
    projected = np.asarray(X @ directions.astype(X.dtype)) - centre @ directions
    lengths = np.linalg.norm(projected, axis=1)
    enough = (lengths > 1e-6 * lengths.max(initial=0.0)) & (_n_nonzero(X, axis=1) >= _FEWEST_VALUES)
    rows = np.flatnonzero(enough)
    units = (projected[rows] / lengths[rows, None]).astype(np.float32)
    pairs: list[Array] = []
    for start in range(0, len(rows), _BLOCK):
        one, other = np.nonzero(units[start : start + _BLOCK] @ units.T > _CANDIDATE)
        once = one + start < other
        pairs.append(rows[np.column_stack([one[once] + start, other[once]])])
    candidates = np.concatenate(pairs)[:_MOST_PAIRS] if pairs else np.empty((0, 2), dtype=np.intp)
    same: list[tuple[int, int]] = []
    for some in np.array_split(candidates, range(50, len(candidates), 50)):
        first, second = (X[some[:, side]].astype(np.float64) for side in (0, 1))
        squares = _covariances(first, first, centre) * _covariances(second, second, centre)
        correlations = _covariances(first, second, centre) / np.sqrt(np.maximum(squares, np.finfo(float).tiny))
        same += [(int(a), int(b)) for a, b in some[correlations > _SAME]]
    return same


def _covariances(one: Matrix, other: Matrix, centre: Floats) -> Floats:
    """Inner products of samples minus a profile, all with mean 0; they are not formed, so that sparse ones stay so."""
    profile = centre - centre.mean()
    products = one.multiply(other).sum(axis=1) if is_sparse(one) else np.einsum("ij,ij->i", one, other)
    sums = [np.asarray(rows.sum(axis=1)).ravel() for rows in (one, other)]
    centred = np.asarray(products).ravel() - sums[0] * sums[1] / len(profile)
    return np.asarray(centred - one @ profile - other @ profile + profile @ profile)


def _outlying_samples(X: Array) -> tuple[Indices, str]:
    """Samples whose profile is unrelated to the median profile, or far away from it; the most different first.

    What is usual is taken from the median and the tenth of the samples that are furthest away, so that cohorts of
    mixed samples, in which many of them are far from the median, have no outliers. Returns the samples, and what tells
    the first of them apart.
    """
    middle = np.median(X, axis=0)
    deviations = X - middle
    sizes = np.abs(deviations)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 0.0
    distances = np.abs(np.clip(deviations, -_LARGEST * usual, _LARGEST * usual)).mean(axis=1)
    constant = X.min(axis=1) == X.max(axis=1)
    constant &= 2 * np.count_nonzero(constant) < len(constant)
    outlying = constant.copy()
    if (distance := np.median(distances)) > 0:
        logs = np.log(np.maximum(distances / distance, np.finfo(float).tiny))
        spread = np.quantile(logs, 0.9) / _UPPER_DECILE
        outlying |= (distances > _FAR[0] * distance) & (logs > _FAR[1] * spread)
    some = slice(None, None, -(-X.shape[1] // _RANKED))
    ranks, usual_ranks = rankdata(X[:, some], axis=1), rankdata(middle[some])
    ranks, usual_ranks = ranks - ranks.mean(), usual_ranks - usual_ranks.mean()  # all have the same mean
    squares = (ranks**2).sum(axis=1) * (usual_ranks @ usual_ranks)
    correlations = ranks @ usual_ranks / np.sqrt(np.maximum(squares, np.finfo(float).tiny))  # 0 for constant samples
    if (correlation := np.median(correlations)) >= _RELATED:
        z = np.arctanh(np.clip(correlations, -0.9999, 0.9999))
        spread = (np.median(z) - np.quantile(z, 0.1)) / _UPPER_DECILE
        outlying |= (correlations < _UNRELATED[0] * correlation) & (z < np.median(z) - _UNRELATED[1] * spread)
    found = np.flatnonzero(outlying)
    found = found[np.argsort(-distances[found], kind="stable")]
    if not found.size or constant[found[0]]:
        return found, "all values are equal"
    reason = f"{distances[found[0]] / distance:.1f} times the usual distance to the median profile"
    if correlation >= _RELATED:
        reason += f", rank correlation with it {correlations[found[0]]:.2f} (usually {correlation:.2f})"
    return found, reason
