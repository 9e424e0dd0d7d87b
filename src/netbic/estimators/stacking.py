"""Matrices of several studies that share genes, stacked into one matrix with a label per sample."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, check_in_memory, checked, kind_of
from netbic.errors import InputError, shown
from netbic.estimators.inputs import names_of_index


class StackedStudies(NamedTuple):
    """The result of `stack_studies`.

    Attributes
    ----------
    X : DataFrame, array or CSR matrix
        The samples of all studies, one study below the other.
    studies : array of str
        The study of each sample.
    n_genes : dict
        The number of genes of each study before those in common were taken.
    """

    X: Any
    studies: Array
    n_genes: dict[str, int]

    @property
    def summary(self) -> str:
        """How many samples and genes there are, as a sentence."""
        sizes = pd.Series(self.studies).value_counts()
        each = ", ".join(f"{name}: {sizes[name]:,} x {number:,}" for name, number in self.n_genes.items())
        n_samples, n_genes = self.X.shape
        genes = f"{n_genes:,} gene{'s' * (n_genes != 1)}"
        return f"{len(self.n_genes)} studies with {n_samples:,} samples and {genes} in common ({each})."


def stack_studies(studies: Mapping[str, Any]) -> StackedStudies:
    """Stack the matrices of several studies, with the genes that all of them have.

    Parameters
    ----------
    studies : mapping of names to DataFrames, arrays or sparse matrices
        At least two, with samples in rows. Genes of DataFrames are matched by name, in the order of the first one.
        Columns of arrays and sparse matrices are the same genes in the same order.

    Returns
    -------
    StackedStudies
        `X` and `studies`, as `SparseGraphSVD.fit(X, studies=...)` takes them. If two studies have a sample of the same
        name, samples are called "study:sample".

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["TP53", "ESR1"])
    >>> other = pd.DataFrame([[5.0, 6.0], [7.0, 8.0]], index=["b", "c"], columns=["ESR1", "MYC"])
    >>> stacked = stack_studies({"one": one, "other": other})
    >>> stacked.X["ESR1"].to_dict()
    {'one:a': 2.0, 'one:b': 4.0, 'other:b': 5.0, 'other:c': 7.0}
    >>> stacked.studies.tolist()
    ['one', 'one', 'other', 'other']
    >>> print(stacked.summary)
    2 studies with 4 samples and 1 gene in common (one: 2 x 2, other: 2 x 2).
    """
    if not isinstance(studies, Mapping) or kind_of(studies) != "other":  # a sparse matrix may be a mapping, too
        raise InputError(
            f"studies are given as a {type(studies).__name__}: give a dict of their names and matrices, such as "
            '{"one": X_one, "other": X_other}'
        )
    if len(studies) < 2:
        given = "one study is given" if studies else "no study is given"
        raise InputError(f"{given}: at least two are needed; the matrix of a single one is given to `fit` itself")
    for name, X in studies.items():
        _check_matrix(f"study {shown(str(name))}", X)
    named = [kind_of(X) == "table" for X in studies.values()]
    if any(named) and not all(named):
        without = next(str(name) for name, known in zip(studies, named, strict=True) if not known)
        raise InputError(f"study {shown(without)} has no names of genes but others have: give DataFrames, or arrays")
    labels = np.repeat(np.array([str(name) for name in studies], dtype=object), [len_of(X) for X in studies.values()])
    n_genes = {str(name): int(X.shape[1]) for name, X in studies.items()}
    return StackedStudies(_by_name(studies) if all(named) else _by_position(studies), labels, n_genes)


def _check_matrix(study: str, X: Any) -> None:
    """Raise unless the data of a study are a matrix in memory."""
    check_in_memory(X, f"{study} is to be stacked with others")
    if isinstance(X, (str, Path)):
        raise InputError(f"{study} is {shown(str(X))}: read the file first, with netbic.io.read_expression")
    if kind_of(X) not in ("table", "dense", "sparse"):
        what = "None" if X is None else f"a {type(X).__name__}"
        raise InputError(f"{study} is {what}: give a DataFrame, an array or a sparse matrix, with samples in rows")
    if len(X.shape) != 2 or 0 in X.shape:
        raise InputError(f"{study} has the shape {X.shape}: a matrix of samples (rows) and genes (columns) is needed")


def len_of(X: Any) -> int:
    """Number of rows of a matrix."""
    return int(X.shape[0])


def _by_name(studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The genes that all studies have, in the order of the first one."""
    for name, X in studies.items():
        if not X.columns.is_unique:
            twice = shown(str(X.columns[X.columns.duplicated()][0]))
            raise InputError(
                f"study {shown(str(name))} has two columns {twice}: merge them, e.g. X.T.groupby(level=0).mean().T"
            )
    first = next(iter(studies.values())).columns
    common = first[np.logical_and.reduce([first.isin(X.columns) for X in studies.values()])]
    if not len(common):
        examples = ", ".join(f"{shown(str(name))}: {shown(str(X.columns[0]))}" for name, X in studies.items())
        remedy = "are genes in rows? Use X.T" if _share_rows(studies) else "use the same names of genes"
        raise InputError(f"no gene is in all {len(studies)} studies ({examples}, ...): {remedy}")
    stacked = pd.concat([X[common] for X in studies.values()])
    return stacked.set_axis(_sample_names(studies), axis=0)


def _share_rows(studies: Mapping[str, pd.DataFrame]) -> bool:
    """Whether all studies have a row of the same name, which rows that are numbered do not have."""
    if any(names_of_index(X.index) is None for X in studies.values()):
        return False
    first, *others = studies.values()
    return bool(np.logical_and.reduce([first.index.isin(X.index) for X in others]).any())


def _sample_names(studies: Mapping[str, pd.DataFrame]) -> Any:
    """Names of all samples: as they are, or with the name of the study if one occurs twice; none if some have none."""
    known = [names_of_index(X.index) for X in studies.values()]
    if any(names is None for names in known):
        return pd.RangeIndex(sum(map(len, studies.values())))
    index = pd.Index(np.concatenate([np.asarray(names, dtype=object) for names in known]))
    if index.is_unique:
        return index
    return pd.Index([f"{name}:{sample}" for name, X in studies.items() for sample in X.index])


def _by_position(studies: Mapping[str, Any]) -> Any:
    parts = {name: checked(X, f"study {shown(str(name))}") for name, X in studies.items()}
    widths = {str(name): int(X.shape[1]) for name, X in parts.items()}
    if len(set(widths.values())) > 1:
        listed = ", ".join(f"{shown(name)}: {width:,}" for name, width in widths.items())
        raise InputError(
            f"studies have different numbers of columns ({listed}): give DataFrames to match genes by name"
        )
    if all(kind_of(X) == "sparse" for X in parts.values()):
        return sp.vstack(list(parts.values()), format="csr")
    dense = [X.toarray() if kind_of(X) == "sparse" else np.asarray(X) for X in parts.values()]
    return np.vstack(dense)
