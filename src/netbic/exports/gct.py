"""Scores and expression as GCT 1.3, the format of Morpheus and of the Connectivity Map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, kind_of, to_dense
from netbic.errors import InputError
from netbic.exports.output import check_file, write_file
from netbic.exports.results import Results, Source, label_of
from netbic.exports.text import plain, plain_names
from netbic.io import as_matrix
from netbic.storage import sides_of

_MOST_ENTRIES = 10**8
_NOT_AVAILABLE, _NO_NUMBER, _PADDING = "NA", "NaN", "na"


def write_scores_gct(source: Source, path: Path | str, *, force: bool = False) -> Path:
    r"""Write the scores of all samples in all modules as GCT 1.3: a row per module, a column per sample.

    Row metadata are the name of the module, its verdict and its numbers of genes; column metadata are the columns of
    the sample table, if there is one.

    Parameters
    ----------
    source : folder of a fit, or Results with scores
    path, force : as for `write_gmt`

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> results = netbic.exports.Results.of(model, study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.exports.write_scores_gct(results, f"{folder}/scores.gct").read_text().splitlines()[:2]
    ['#1.3', '1\t200\t4\t0']
    """
    results, path = Results.of(source), Path(path)
    check_file(results, path, force=force)
    known = results.scores()
    if known is None:
        raise InputError("the scores of the samples are not known: give the folder of a fit, or Results.of(model, X)")
    modules = range(results.n_modules)
    weights = results.model.components_
    rows = pd.DataFrame(
        {
            "name": results.names,
            "verdict": results.verdicts,
            "genes_up": (weights > 0).sum(axis=1),
            "genes_down": (weights < 0).sum(axis=1),
        },
        index=[f"module_{module + 1}" for module in modules],
    )
    return write_file(results, path, _gct(known[0], rows, _columns(results)), force=force)


def write_expression_gct(source: Source, X: Any, path: Path | str, *, force: bool = False) -> Path:
    r"""Write the expression of the genes of all modules as GCT 1.3: a row per gene, a column per sample.

    Genes are ordered by module and, within a module, by decreasing weight; a gene of several modules is in the one
    where its absolute weight is largest. Row metadata are this module, the name of the module, the weight, the side,
    and all modules of the gene; column metadata are the columns of the sample table, if there is one.

    Parameters
    ----------
    source : fitted model, folder of a fit, or Results
    X : array, DataFrame or sparse matrix
        The data of the fit, samples in rows. Only the genes of the modules are converted to dense.
    path, force : as for `write_gmt`

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = netbic.exports.write_expression_gct(model, study.expression, f"{folder}/expression.gct")
    ...     path.read_text().splitlines()[:2]
    ['#1.3', '60\t200\t5\t0']
    """
    results, path = Results.of(source), Path(path)
    check_file(results, path, force=force)
    order, rows = _genes(results)
    values = _expression(results, X, order)
    return write_file(results, path, _gct(values.T, rows, _columns(results)), force=force)


def _genes(results: Results) -> tuple[Array, pd.DataFrame]:
    """The genes of the modules in their order, and what is known about them."""
    weights = results.model.components_.astype(float)
    used = np.flatnonzero(weights.any(axis=0))
    home = np.abs(weights[:, used]).argmax(axis=0) if used.size else used
    own = weights[home, used]
    order = np.lexsort((-own, home))
    used, home, own = used[order], home[order], own[order]
    table = pd.DataFrame(
        {
            "module": [label_of(module) for module in home.tolist()],
            "module_name": [results.names[module] for module in home.tolist()],
            "weight": own,
            "side": sides_of(own),
            "modules": ["; ".join(map(label_of, np.flatnonzero(weights[:, at]).tolist())) for at in used],
        },
        index=[results.gene_names[at] for at in used],
    )
    return used, table


def _expression(results: Results, X: Any, genes: Array) -> Array:
    """The values of these genes, matched by name if X has names."""
    if kind_of(X) == "dask":
        raise InputError("X is a Dask array: give the genes of the modules in memory")
    shape = (len(results.sample_names), genes.size)
    if shape[0] * shape[1] > _MOST_ENTRIES:
        raise InputError(f"{shape[0]:,} samples x {shape[1]:,} genes are too many for a text file")
    if isinstance(X, pd.DataFrame) and results.model.names_["columns"] is not None:
        wanted = pd.Index(results.model.names_["columns"])[genes]
        if missing := [name for name in wanted if name not in X.columns]:
            raise InputError(f"X has no gene {missing[0]!r} of the modules: give the X of the fit")
        X, genes = X[list(wanted)], np.arange(genes.size)
    matrix = as_matrix(X)
    if matrix.shape[0] != shape[0]:
        raise InputError(f"X has {matrix.shape[0]:,} samples but the fit had {shape[0]:,}: give the X of the fit")
    return to_dense(matrix[:, genes])


def _columns(results: Results) -> pd.DataFrame:
    """The sample table in the order of the samples; without columns if there is none, or it has other samples."""
    samples, info = results.sample_names, results.sample_info
    if info is None or len(info) != len(samples):
        return pd.DataFrame(index=samples)
    return info.set_axis(samples)


def _gct(values: Array, rows: pd.DataFrame, columns: pd.DataFrame) -> bytes:
    return "".join(f"{line}\n" for line in _gct_lines(values, rows, columns)).encode()


def _gct_lines(values: Array, rows: pd.DataFrame, columns: pd.DataFrame) -> Iterator[str]:
    """Version, numbers of rows, columns and metadata; names; metadata of the columns; then the rows."""
    fields = plain_names(rows.columns, "column")
    yield "#1.3"
    yield "\t".join(map(str, (*values.shape, rows.shape[1], columns.shape[1])))
    yield "\t".join(["id", *fields, *columns.index])
    for name, (_, column) in zip(plain_names(columns.columns, "column"), columns.items(), strict=True):
        yield "\t".join([name, *[_PADDING] * len(fields), *map(_cell, column.tolist())])
    for name, own, numbers in zip(rows.index, rows.itertuples(index=False), values, strict=True):
        texts = (f"{number:.6g}" if np.isfinite(number) else _NO_NUMBER for number in numbers)
        yield "\t".join([name, *map(_cell, own), *texts])


def _cell(value: Any) -> str:
    if pd.isna(value):
        return _NOT_AVAILABLE
    return f"{value:.6g}" if isinstance(value, float) else plain(value) or _NOT_AVAILABLE
