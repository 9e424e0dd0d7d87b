"""Preprocessing of an expression matrix, with a record of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Floats, Indices, Matrix, check_choice, row_blocks, stored_values
from netbic.errors import InputError, shown
from netbic.io.expression import Expression
from netbic.io.tables import MISSING, Step
from netbic.operators.blocks import map_rows

_FEWEST_GENES = 2
DUPLICATES = ("highest", "mean", "error")


class PreparedExpression(NamedTuple):
    """A preprocessed matrix and the steps that were applied to it, in order."""

    expression: Expression
    steps: list[Step]


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
    duplicates : {"highest", "mean", "error"}
        What to do with several genes of one name: keep the one with the highest mean (the first one if means are equal
        up to rounding), average them, or refuse them.
    cpm : bool
        Scale every sample to counts per million.
    log1p : bool
        Take log(1 + x).
    n_variable : int, optional
        Keep this many genes, those with the largest variance.
    only : collection of names, optional
        Drop all other genes.
    keep_constant : bool
        Keep constant genes, as needed for new samples of a fitted model.
    """
    if n_variable is not None and n_variable < _FEWEST_GENES:
        raise InputError(f"`n_variable={n_variable}`: at least {_FEWEST_GENES} genes are needed")
    check_choice("duplicates", duplicates, DUPLICATES, InputError)
    steps: list[Step] = list(expression.steps)
    expression = expression.scanned()
    if cpm or log1p:
        lowest = stored_values(expression.matrix) if expression.scan is None else expression.scan.lowest
        if (least := float(np.nanmin(lowest, initial=0.0))) < 0:
            what = f"{'counts per million' if cpm else 'log1p'} needs values of at least 0, the smallest is {least:g}"
            raise InputError(f"{what}: are these already logarithms?")
    if cpm:
        sums = row_sums(expression.matrix) if expression.scan is None else expression.scan.summary.row_sums
        if not (sums > 0).all():
            raise InputError(f"sample {shown(expression.samples[int(np.argmin(sums))])} has a sum of zero: remove it")
        steps.append({"step": "counts per million"})
        expression = replace(expression, matrix=map_rows(expression.matrix, per_million), scan=None)
    if log1p:
        steps.append({"step": "log1p"})
        expression = replace(expression, matrix=map_rows(expression.matrix, log_of_one_more), scan=None)
    if rename is not None:
        named = np.array([rename(gene) for gene in expression.genes], dtype=object)
        n_changed = int(np.count_nonzero(named != expression.genes))
        steps.append({"step": "rename", "genes": n_changed, "unchanged": len(named) - n_changed})
        expression = replace(expression, genes=named)
    known = np.array([gene not in MISSING for gene in expression.genes])
    if not known.all():
        steps.append({"step": "drop nameless", "genes": int(np.count_nonzero(~known))})
        expression = expression.select_genes(np.flatnonzero(known))
    if not pd.Index(expression.genes).is_unique:
        expression = _distinct(expression, duplicates, steps)
    if only is not None:
        inside = pd.Index(expression.genes).isin(list(only))
        outside = [str(gene) for gene in expression.genes[~inside]]
        steps.append({"step": "only genes of the network", "dropped": len(outside), "named": outside})
        if not inside.any():
            raise InputError("no gene of the data is in the network: no gene would be left")
        expression = expression.select_genes(np.flatnonzero(inside))
    if not keep_constant:
        expression = expression.scanned()
        if expression.scan is not None:
            constant = expression.scan.constant
        elif isinstance(expression.matrix, np.ndarray):  # NaN ignored
            with np.errstate(invalid="ignore"):
                constant = ~(np.fmax.reduce(expression.matrix, axis=0) > np.fmin.reduce(expression.matrix, axis=0))
        else:
            highest, lowest = expression.matrix.max(axis=0), expression.matrix.min(axis=0)
            constant = highest.toarray().ravel() == lowest.toarray().ravel()
        if np.count_nonzero(~constant) < _FEWEST_GENES:
            raise InputError("fewer than two genes vary: modules need genes that differ between samples")
        if constant.any():
            dropped = [str(gene) for gene in expression.genes[constant]]
            steps.append({"step": "drop constant", "genes": len(dropped), "named": dropped})
            expression = expression.select_genes(np.flatnonzero(~constant))
    if n_variable is not None and n_variable < expression.shape[1]:
        expression = expression.scanned()
        spread = variances(expression.matrix) if expression.scan is None else expression.scan.variances
        order = _from_the_highest(spread, expression.matrix.dtype)[:n_variable]
        expression = expression.select_genes(np.sort(order))
        steps.append({"step": "most variable", "genes": int(n_variable)})
    return PreparedExpression(expression, steps)


def _distinct(expression: Expression, how: str, steps: list[Step]) -> Expression:
    """One column per gene name."""
    genes = pd.Index(expression.genes)
    repeated = [str(gene) for gene in dict.fromkeys(genes[genes.duplicated()])]
    if how == "error":
        raise InputError(
            f"gene {shown(repeated[0])} occurs {int((genes == repeated[0]).sum())} times (and {len(repeated) - 1} "
            "others more than once): remove the copies, or choose `duplicates='highest'` or 'mean'"
        )
    dropped = len(genes) - len(genes.unique())
    steps.append({"step": f"duplicates: {how}", "genes": len(repeated), "lines merged": dropped, "named": repeated})
    if how == "mean":
        codes, names = pd.factorize(expression.genes)
        later = np.flatnonzero(genes.duplicated())
        matrix = map_rows(expression.matrix, _average, later, codes[later], width=len(names))
        return replace(expression, matrix=matrix, genes=np.asarray(names, dtype=object), scan=None)
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


def _average(matrix: Matrix, later: Array, into: Array) -> Matrix:
    """Means of the columns of each name, NaN ignored, given the repeated columns and those they are merged into."""
    first = np.ones(matrix.shape[1], dtype=bool)
    first[later] = False
    codes = np.cumsum(first) - 1
    codes[later] = into
    groups = sp.csr_array((np.ones(codes.size, dtype=matrix.dtype), (np.arange(codes.size), codes)))
    if not isinstance(matrix, np.ndarray):
        return matrix @ sp.csr_array(groups / groups.sum(axis=0)[None, :])
    seen = ~np.isnan(matrix)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.where(seen, matrix, 0) @ groups) / (seen.astype(matrix.dtype) @ groups))


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


def log_of_one_more(matrix: Matrix) -> Matrix:
    """log(1 + x)."""
    return np.log1p(matrix) if isinstance(matrix, np.ndarray) else matrix.log1p()


def column_means(matrix: Matrix) -> Floats:
    """Mean of each column, NaN ignored."""
    if not isinstance(matrix, np.ndarray):
        return np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
    sums, known = _column_sums(matrix, lambda rows: rows)
    return sums / known


def variances(matrix: Matrix) -> Floats:
    """Variance of each column, NaN ignored; a sparse matrix stays sparse."""
    means = column_means(matrix)
    if isinstance(matrix, np.ndarray):
        squares, known = _column_sums(matrix, lambda rows: np.square(rows - means))
        return squares / known
    stored = np.bincount(matrix.indices, minlength=means.size)
    squares = np.square(matrix.data - means[matrix.indices])
    inside = np.bincount(matrix.indices, squares, minlength=means.size)
    return np.asarray((inside + (matrix.shape[0] - stored) * means**2) / matrix.shape[0])


def _column_sums(matrix: Array, values_of: Callable[[Array], Array]) -> tuple[Floats, Indices]:
    """Sums of values computed from the entries of each column, NaN ignored, and the number of entries, at least 1."""
    sums, counts = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], dtype=np.intp)
    for rows in row_blocks(matrix):
        values, known = values_of(rows), ~np.isnan(rows)
        if known.all():
            counts += len(rows)
        else:
            values, counts = np.where(known, values, 0), counts + np.count_nonzero(known, axis=0)
        sums += values.sum(axis=0, dtype=np.float64)
    return sums, np.maximum(counts, 1)
