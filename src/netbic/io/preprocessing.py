"""Preprocessing of an expression matrix, with a record of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, check_choice, stored_values
from netbic.errors import InputError, shown
from netbic.io.expression import Expression
from netbic.io.matrices import Step
from netbic.io.text import MISSING
from netbic.operators import map_rows

Steps = list[Step]
_FEWEST_GENES = 2
DUPLICATES = ("highest", "mean", "error")


@dataclass(frozen=True)
class PreparedExpression:
    """A preprocessed matrix and the steps that were applied to it, in order."""

    expression: Expression
    steps: Steps


def prepare(
    expression: Expression,
    *,
    rename: Callable[[str], str] | None = None,
    duplicates: str = "highest",
    cpm: bool = False,
    log1p: bool = False,
    n_variable: int | None = None,
    only: Any = None,
    keep_constant: bool = False,
) -> PreparedExpression:
    """Preprocess an expression matrix for a fit.

    The steps, in this order: counts per million, log(1 + x), rename genes, drop genes without a name, merge genes of
    one name, drop genes outside `only`, drop constant genes, keep the most variable genes.

    A matrix that stays in its file (`open_expression`) is preprocessed block by block, whenever a block is read; one to
    three passes over it find which genes are kept.

    Parameters
    ----------
    expression : Expression
    rename : function, optional
        From the name of a gene in the data to the name to use.
    duplicates, cpm, log1p, n_variable
        See `PreprocessingOptions`.
    only : collection of names, optional
        Drop all other genes.
    keep_constant : bool
        Keep constant genes, as needed for new samples of a fitted model.
    """
    if n_variable is not None and n_variable < _FEWEST_GENES:
        raise InputError(f"`n_variable={n_variable}`: at least {_FEWEST_GENES} genes are needed", ["n_variable"])
    steps: Steps = list(expression.steps)
    expression = expression.scanned()
    if cpm or log1p:
        _check_counts(expression, "counts per million" if cpm else "log1p")
    if cpm:
        expression = _cpm(expression, steps)
    if log1p:
        expression = _log1p(expression, steps)
    if rename is not None:
        named = np.array([rename(gene) for gene in expression.genes], dtype=object)
        steps.append({"step": "rename", "genes": int(np.count_nonzero(named != expression.genes))})
        expression = replace(expression, genes=named)
    expression = _named(expression, steps)
    expression = _distinct(expression, duplicates, steps)
    if only is not None:
        expression = _restricted(expression, only, steps)
    if not keep_constant:
        expression = _varying(expression, steps)
    if n_variable is not None and n_variable < expression.shape[1]:
        expression = expression.scanned()
        spread = variances(expression.matrix) if expression.scan is None else expression.scan.variances
        order = _from_the_highest(spread, expression.matrix.dtype)[:n_variable]
        expression = expression.select_genes(np.sort(order))
        steps.append({"step": "most variable", "genes": int(n_variable)})
    return PreparedExpression(expression, steps)


def _named(expression: Expression, steps: Steps) -> Expression:
    """Drop genes without a name."""
    known = np.array([gene not in MISSING for gene in expression.genes])
    if known.all():
        return expression
    steps.append({"step": "drop nameless", "genes": int(np.count_nonzero(~known))})
    return expression.select_genes(np.flatnonzero(known))


def _distinct(expression: Expression, how: str, steps: Steps) -> Expression:
    """One column per gene name."""
    check_choice("duplicates", how, DUPLICATES, InputError)
    genes = pd.Index(expression.genes)
    if genes.is_unique:
        return expression
    repeated = [str(gene) for gene in dict.fromkeys(genes[genes.duplicated()])]
    if how == "error":
        raise InputError(
            f"gene {shown(repeated[0])} occurs {int((genes == repeated[0]).sum())} times (and {len(repeated) - 1} "
            "others more than once): remove the copies, or choose `duplicates='highest'` or 'mean'",
            ["duplicates"],
        )
    dropped = len(genes) - len(genes.unique())
    steps.append({"step": f"duplicates: {how}", "genes": len(repeated), "lines merged": dropped, "named": repeated})
    if how == "mean":
        return _merged(expression)
    expression = expression.scanned()
    means = column_means(expression.matrix) if expression.scan is None else expression.scan.means
    order = _from_the_highest(np.nan_to_num(means, nan=-np.inf), expression.matrix.dtype)
    first = ~pd.Index(genes[order]).duplicated()
    return expression.select_genes(np.sort(order[first]))


def _from_the_highest(values: Array, dtype: Any) -> Indices:
    """Columns by decreasing means or variances; equal ones in their order.

    Differences due to rounding, as from sums in another order, are ignored.
    """
    mantissas, exponents = np.frexp(values)
    grid = 2.0 ** (16 if dtype == np.float32 else 40)  # 5 and 12 decimal digits
    return np.argsort(-np.ldexp(np.rint(mantissas * grid) / grid, exponents), kind="stable")


def _merged(expression: Expression) -> Expression:
    """Genes of one name averaged."""
    codes, names = pd.factorize(expression.genes)
    later = np.flatnonzero(pd.Index(expression.genes).duplicated())
    matrix = map_rows(expression.matrix, _averaged_again, later, codes[later], width=len(names))
    return replace(expression, matrix=matrix, genes=np.asarray(names, dtype=object), scan=None)


def _averaged_again(matrix: Matrix, later: Array, into: Array) -> Matrix:
    """The same, given only the repeated columns and the columns they are merged into."""
    first = np.ones(matrix.shape[1], dtype=bool)
    first[later] = False
    codes = np.cumsum(first) - 1
    codes[later] = into
    return _averaged(matrix, codes)


def _averaged(matrix: Matrix, codes: Array) -> Matrix:
    """Means of the columns of each code, NaN ignored."""
    groups = sp.csr_array((np.ones(codes.size, dtype=matrix.dtype), (np.arange(codes.size), codes)))
    if not isinstance(matrix, np.ndarray):
        return matrix @ sp.csr_array(groups / groups.sum(axis=0)[None, :])
    seen = ~np.isnan(matrix)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.where(seen, matrix, 0) @ groups) / (seen.astype(matrix.dtype) @ groups))


def _cpm(expression: Expression, steps: Steps) -> Expression:
    matrix, known = expression.matrix, expression.scan
    sums = row_sums(matrix) if known is None else known.summary.row_sums
    if not (sums > 0).all():
        raise InputError(f"sample {shown(expression.samples[int(np.argmin(sums))])} has a sum of zero: remove it")
    steps.append({"step": "counts per million"})
    return _changed(expression, per_million)


def row_sums(matrix: Matrix) -> Floats:
    """Sum of each row, NaN ignored."""
    filled = np.nan_to_num(matrix) if isinstance(matrix, np.ndarray) else matrix
    return np.asarray(filled.sum(axis=1, dtype=np.float64)).ravel()


def per_million(matrix: Matrix) -> Matrix:
    """Scale rows to a sum of a million."""
    factors = (1e6 / row_sums(matrix)).astype(matrix.dtype)
    if isinstance(matrix, np.ndarray):
        return matrix * factors[:, None]
    made = matrix.copy()
    made.data *= np.repeat(factors, np.diff(matrix.indptr))
    return made


def _log1p(expression: Expression, steps: Steps) -> Expression:
    steps.append({"step": "log1p"})
    return _changed(expression, log_of_one_more)


def log_of_one_more(matrix: Matrix) -> Matrix:
    """log(1 + x)."""
    return np.log1p(matrix) if isinstance(matrix, np.ndarray) else matrix.log1p()


def _changed(expression: Expression, function: Callable[[Matrix], Matrix]) -> Expression:
    """Apply a function of rows; to a matrix that stays in its file, whenever a block is read."""
    matrix = map_rows(expression.matrix, function)
    return replace(expression, matrix=matrix, scan=None)


def _check_counts(expression: Expression, step: str) -> None:
    known = expression.scan
    lowest = float(np.nanmin(stored_values(expression.matrix) if known is None else known.lowest, initial=0.0))
    if lowest < 0:
        raise InputError(
            f"{step} needs values of at least 0, the smallest is {lowest:g}: are these already logarithms?"
        )


def _restricted(expression: Expression, only: Any, steps: Steps) -> Expression:
    inside = pd.Index(expression.genes).isin(list(only))
    named = [str(gene) for gene in expression.genes[~inside]]
    steps.append({"step": "only genes of the network", "dropped": len(named), "named": named})
    if not inside.any():
        raise InputError("no gene of the data is in the network: no gene would be left")
    return expression.select_genes(np.flatnonzero(inside))


def _varying(expression: Expression, steps: Steps) -> Expression:
    expression = expression.scanned()
    varying = ~(constant_columns(expression.matrix) if expression.scan is None else expression.scan.constant)
    if varying.all():
        return expression
    if np.count_nonzero(varying) < _FEWEST_GENES:
        raise InputError("fewer than two genes vary: modules need genes that differ between samples")
    named = [str(gene) for gene in expression.genes[~varying]]
    steps.append({"step": "drop constant", "genes": len(named), "named": named})
    return expression.select_genes(np.flatnonzero(varying))


def constant_columns(matrix: Matrix) -> Bools:
    """Columns without any variation (NaN ignored)."""
    if isinstance(matrix, np.ndarray):
        with np.errstate(invalid="ignore"):
            largest, smallest = np.fmax.reduce(matrix, axis=0), np.fmin.reduce(matrix, axis=0)
        return np.asarray(~(largest > smallest))
    largest, smallest = (getattr(matrix, name)(axis=0).toarray().ravel() for name in ("max", "min"))
    return np.asarray(largest == smallest)


def column_means(matrix: Matrix) -> Floats:
    """Mean of each column, NaN ignored."""
    if not isinstance(matrix, np.ndarray):
        return np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
    seen = np.maximum(np.count_nonzero(~np.isnan(matrix), axis=0), 1)
    return np.asarray(np.nansum(matrix, axis=0, dtype=np.float64) / seen)


def variances(matrix: Matrix) -> Floats:
    """Variance of each column, NaN ignored; a sparse matrix stays sparse."""
    means = column_means(matrix)
    if isinstance(matrix, np.ndarray):
        seen = np.maximum(np.count_nonzero(~np.isnan(matrix), axis=0), 1)
        return np.asarray(np.nansum(np.square(matrix - means), axis=0) / seen)
    stored = np.bincount(matrix.indices, minlength=means.size)
    squares = np.square(matrix.data - means[matrix.indices])
    inside = np.bincount(matrix.indices, squares, minlength=means.size)
    return np.asarray((inside + (matrix.shape[0] - stored) * means**2) / matrix.shape[0])
