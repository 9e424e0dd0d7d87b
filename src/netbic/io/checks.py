"""Checks of an expression matrix before a fit: values, samples and names that usually need attention first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbic.arrays import Array, Floats, Matrix, is_sparse, kind_of, stored_values
from netbic.errors import one_line
from netbic.io.date_names import genes_as_dates
from netbic.io.matrices import as_matrix
from netbic.io.preprocessing import column_means, log_of_one_more, variances
from netbic.io.sample_checks import (
    MOST_PAIRS,
    SAME_CORRELATION,
    Outliers,
    n_nonzero,
    nearly_empty_samples,
    outlying_samples,
    same_samples,
)

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
        Whether the genes will be scaled to unit standard deviation in the fit.

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
    found = list(_dates([] if genes is None else [str(gene) for gene in genes]))
    if kind_of(X) == "dask":
        return found
    X = as_matrix(X)
    named = (_names(samples, X.shape[0], "sample"), _names(genes, X.shape[1], "gene"))
    if X.ndim != 2 or min(X.shape) < 2:
        return found
    with np.errstate(all="ignore"):
        values = _Values.of(X)
        if not values.nonzero.size:
            return found
        on_scale = list(_scale(values, log1p))
        wants_logs = bool(on_scale) and on_scale[0].kind in ("raw counts", "not logarithms")
        found += [*on_scale, *_samples(X, values, named[0], wants_logs), *_empty(X, values, named[1])]
        # Without logarithms, and with a sample that failed, a few genes have most of the variance for that reason.
        if not (scaled or wants_logs or any(finding.kind == "outlying samples" for finding in found)):
            found += _dominating(values, named[1])
    return found


def _names(given: Sequence[Any] | None, size: int, what: str) -> list[str]:
    return [f"{what} {number}" for number in range(size)] if given is None else [str(name) for name in given]


def _listed(names: Sequence[str], count: int | None = None) -> str:
    """The first names, as text."""
    more = ", ..." if (len(names) if count is None else count) > _NAMED else ""
    return ", ".join(one_line(name, 40) for name in names[:_NAMED]) + more


def _some(size: int, most: int) -> Any:
    """All indices, or a random choice of this many."""
    return slice(None) if size <= most else np.sort(np.random.default_rng(0).choice(size, most, replace=False))


# ----------------------------------------------------------------------------------------------------------------
# Names
# ----------------------------------------------------------------------------------------------------------------


def _dates(genes: list[str]) -> Iterator[Finding]:
    dates = genes_as_dates(genes)
    if not dates:
        return
    explained = next((f"; {name} is {gene}" for name, gene in dates.items() if gene), "")
    count = "1 gene name was" if len(dates) == 1 else f"{len(dates)} gene names were"
    yield Finding(
        "dates",
        f"{count} changed to {'a date' if len(dates) == 1 else 'dates'} by a spreadsheet ({_listed(list(dates))}"
        f"{explained})",
        "use a table that no spreadsheet program has saved, or rename them (`id_map`)",
        tuple(dates),
    )


# ----------------------------------------------------------------------------------------------------------------
# Values
# ----------------------------------------------------------------------------------------------------------------


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
        nonzero = stored[np.isfinite(stored) & (stored != 0)]
        size = rows.shape[0] * rows.shape[1]
        zeros = size - np.count_nonzero(stored)
        largest = np.fmax.reduce(stored_values(X), axis=None, initial=-np.inf)
        return cls(rows, nonzero, zeros / size, float(largest))

    @property
    def few(self) -> bool:
        """Whether there are few distinct values, as of genotypes and ratings."""
        some = self.nonzero[:: max(1, self.nonzero.size // 100_000)]
        return bool(np.unique(some).size <= _FEW_VALUES and np.abs(self.nonzero).max(initial=0) <= _FEW_VALUES)


def _scale(values: _Values, log1p: bool) -> Iterator[Finding]:
    """Raw counts, values that are not logarithms, and logarithms of logarithms."""
    if values.few and not _mostly_small_counts(values.nonzero, values.zero_share):
        return
    given = np.expm1(values.nonzero) if log1p else values.nonzero
    least, middle = float(given.min()), float(np.median(given))
    most = float(np.expm1(values.largest) if log1p else values.largest)
    counts = _are_counts(given, values.zero_share, tolerance=1e-3 if log1p else 0.0)
    if not log1p and counts:
        yield Finding(
            "raw counts",
            f"these look like raw counts (whole numbers up to {most:,.0f}), in which highly expressed genes and "
            "sequencing depth dominate",
            "add `cpm=True` `log1p=True`",
        )
    elif not log1p and _are_unlogged(values, least, middle):
        yield _not_logarithms(least, most, middle)
    elif log1p and counts:
        yield from _depth(values)
    elif log1p and values.rows.shape[1] >= _FEWEST_DOMINATED and (most < _LOG_RANGE or most < _WIDE * middle):
        yield Finding(
            "logarithms twice",
            f"the values before log1p ({middle:.3g} in the median, at most {most:,.4g}) look like logarithms already",
            "leave out `log1p=True`",
        )


def _are_counts(values: Array, zero_share: float, tolerance: float) -> bool:
    """Whether values other than zero are whole and positive, and the largest is far above the others."""
    if values.min() < 0:
        return False
    whole = np.abs(values - np.rint(values)) <= tolerance * np.maximum(1.0, values)
    if np.mean(whole) < _WHOLE:
        return False
    far = values.max() > max(_FEW_VALUES, _WIDE * np.median(values))
    return bool(far) or _mostly_small_counts(values, zero_share)


def _mostly_small_counts(values: Array, zero_share: float) -> bool:
    """Whether these can be counts of shallow sequencing: most of them 0, most others 1, and no upper end."""
    return zero_share > _MOSTLY_ZERO and bool(np.median(values) <= 2 and values.max() >= 8)


def _are_unlogged(values: _Values, least: float, middle: float) -> bool:
    """Whether most samples have values far above those of logarithms, and genes with a high mean vary more."""
    rows = values.rows
    highest = rows.max(axis=1).toarray() if is_sparse(rows) else np.fmax.reduce(rows, axis=1)  # NaN ignored
    typical = float(np.nanmedian(highest))
    wide = typical > max(_UNLOGGED, _WIDE * middle) and least > -0.05 * typical
    return wide and _spread_as_mean(values)


def _spread_as_mean(values: _Values) -> bool:
    """Whether genes with a high mean vary more, in proportion to it."""
    means = column_means(values.rows)
    spreads = np.sqrt(variances(values.rows))
    known = (means > 0) & (spreads > 0)
    if np.count_nonzero(known) < _FEWEST_GENES:
        return False
    return bool(np.corrcoef(np.log(means[known]), np.log(spreads[known]))[0, 1] > _MEAN_AND_SPREAD)


def _not_logarithms(least: float, most: float, middle: float) -> Finding:
    remedy = "add `log1p=True`" if least >= 0 else "replace negative values by 0, then add `log1p=True`"
    return Finding(
        "not logarithms",
        f"values up to {most:,.0f} ({most / max(middle, 1e-300):,.0f} times their median) are not on a log scale, so "
        "that a few highly expressed genes would dominate",
        remedy,
    )


def _depth(values: _Values) -> Iterator[Finding]:
    """Counts that were logged but not normalised."""
    rows = values.rows.expm1() if is_sparse(values.rows) else np.expm1(values.rows)
    totals = np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()
    low, high = np.nanquantile(totals, [0.05, 0.95])
    if not high > _TOTALS * low:
        return
    yield Finding(
        "sequencing depth",
        f"these are logarithms of counts whose totals differ {high / max(low, 1.0):,.1f}-fold between samples (5th to "
        "95th percentile), which modules would follow",
        "add `cpm=True`",
    )


# ----------------------------------------------------------------------------------------------------------------
# Genes
# ----------------------------------------------------------------------------------------------------------------


def dominance(X: Matrix) -> tuple[float, Array]:
    """Share of the variance that one gene in a hundred holds, those that vary most, and these genes."""
    spread: Floats = np.nan_to_num(variances(X))
    top = np.argsort(-spread, kind="stable")[: -(-X.shape[1] // 100)]
    total = float(spread.sum())
    return (float(spread[top].sum()) / total if total > 0 else 0.0), top


def _dominating(values: _Values, genes: list[str]) -> Iterator[Finding]:
    if values.rows.shape[1] < _FEWEST_DOMINATED:
        return
    share, top = dominance(values.rows)
    if share > _DOMINATED:
        names = tuple(genes[at] for at in top)
        which = "most variable gene" if len(top) == 1 else f"{len(top):,} most variable genes"
        yield Finding(
            "dominating genes",
            f"the {which} of {len(genes):,} ({_listed(names)}) hold {share:.0%} of the variance and would dominate the "
            "modules",
            "`scale=True` in the fit gives all genes the same weight",
            names,
        )


def _empty(X: Matrix, values: _Values, genes: list[str]) -> Iterator[Finding]:
    if X.shape[0] < 10 * _EMPTY or not values.zero_share:
        return
    empty = np.flatnonzero(n_nonzero(X, axis=0) <= _EMPTY)
    if len(empty) <= _EMPTY_SHARE * len(genes):
        return
    names = tuple(genes[at] for at in empty)
    yield Finding(
        "empty genes",
        f"{len(empty):,} of {len(genes):,} genes ({_listed(names)}) are zero in all but at most {_EMPTY} of "
        f"{X.shape[0]:,} samples and cannot be in a module that is found again",
        f"keep the most variable genes (`n_variable={max(2, len(genes) - len(empty))}`)",
        names,
    )


# ----------------------------------------------------------------------------------------------------------------
# Samples
# ----------------------------------------------------------------------------------------------------------------


def _samples(X: Matrix, values: _Values, names: list[str], wants_logs: bool) -> Iterator[Finding]:
    """Samples that are nearly the same, and samples that differ from all others."""
    if X.shape[1] < _FEWEST_GENES:
        return
    rows, columns = _some(X.shape[0], _SAMPLES), _some(X.shape[1], _GENES)
    compared = X[rows][:, columns]
    names = [names[at] for at in np.arange(X.shape[0])[rows]]
    among = f" (of {len(names):,} samples that were compared)" if len(names) < X.shape[0] else ""
    if not is_sparse(compared):
        compared = _complete(compared)
    if wants_logs:
        compared = log_of_one_more(compared if is_sparse(compared) else np.maximum(compared, 0))
    if not values.few:
        yield from _same(same_samples(compared, _centre(compared, values.zero_share)), names, among)
    if values.zero_share > _MOSTLY_ZERO:
        yield from _outliers(nearly_empty_samples(compared), names, among)
    elif not is_sparse(compared):
        yield from _outliers(outlying_samples(compared), names, among)


def _centre(X: Matrix, zero_share: float) -> Floats:
    """Medians of the genes, which one extreme sample does not change; means if most values are zero."""
    if is_sparse(X) or zero_share > _MOSTLY_ZERO:
        return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return np.asarray(np.median(X, axis=0), dtype=np.float64)


def _complete(X: Array) -> Array:
    """The matrix with missing and infinite values replaced by the means of their genes."""
    known = np.isfinite(X)
    if known.all():
        return X
    means = np.where(known, X, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, X, means)


def _same(pairs: list[tuple[int, int]], names: list[str], among: str) -> Iterator[Finding]:
    if not pairs:
        return
    listed = [f"{names[one]} = {names[other]}" for one, other in pairs]
    at_least = "at least " if len(pairs) == MOST_PAIRS else ""
    which = "1 pair of samples has" if len(pairs) == 1 else f"{at_least}{len(pairs)} pairs of samples have"
    yield Finding(
        "same samples",
        f"{which} nearly the same values{among} (correlation above {SAME_CORRELATION}, genes centred; "
        f"{_listed(listed)}), and modules would seem to be found again",
        "keep one sample of each pair",
        tuple(dict.fromkeys(names[at] for pair in pairs for at in pair)),
    )


def _outliers(found: Outliers, names: list[str], among: str) -> Iterator[Finding]:
    if not found.samples.size:
        return
    which = tuple(names[at] for at in found.samples)
    if len(which) == 1:
        count, first, modules = "1 sample differs", "", "a module of its own"
        remedy = "check it, and leave it out if it failed"
    else:
        count, first, modules = f"{len(which)} samples differ", "the first: ", "modules of their own"
        remedy = "check them, and leave out those that failed"
    yield Finding(
        "outlying samples",
        f"{count} from all others{among} ({_listed(which)}; {first}{found.reason}) and may form {modules}",
        remedy,
        which,
    )
