"""A study: an expression matrix and a network, read, preprocessed and matched."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbic.arrays import Matrix, buffers
from netbic.errors import InputError
from netbic.graph import Graph
from netbic.io.expression import Expression, read_expression
from netbic.io.lazy import open_expression
from netbic.io.matching import Alignment, align, check_overlap, some_names, with_names
from netbic.io.names import look_exchanged, renaming
from netbic.io.networks import read_network
from netbic.io.preprocessing import prepare
from netbic.io.study_options import DatasetOptions


@dataclass(frozen=True)
class Dataset:
    """The input of a fit: the preprocessed matrix, the graph of its genes, and a summary of how they were matched."""

    expression: Expression
    graph: Graph | None
    alignment: Alignment

    def __repr__(self) -> str:
        samples, genes = self.expression.shape
        graph = "no network" if self.graph is None else f"{self.graph.n_edges:,} edges"
        return f"Dataset({samples:,} samples x {genes:,} genes, {graph})"

    @property
    def X(self) -> Any:
        """The matrix: a DataFrame with names, CSR, or a Dask array."""
        matrix = self.expression.matrix
        return self.expression.frame() if isinstance(matrix, np.ndarray) else matrix

    @property
    def names(self) -> tuple[Any, Any]:
        """Samples and genes."""
        return self.expression.samples, self.expression.genes

    def fingerprint(self) -> dict[str, str]:
        """Short digests of the matrix, its names and the graph: equal if and only if nothing changed."""
        digests = {
            "expression": self._origin() if self.expression.is_lazy else _stored_digest(self.expression.matrix),
            "samples": digest(self.expression.samples),
            "genes": digest(self.expression.genes),
        }
        if self.graph is not None:
            weights = self.graph.weights
            digests["network"] = digest(weights.data, weights.indices, weights.indptr)
        return digests

    def _origin(self) -> str:
        """For a matrix that stays in its file: its digest, from one pass over it, and its preprocessing."""
        expression = self.expression.scanned()
        done = np.array([expression.origin, json.dumps(self.alignment.steps)], dtype=object)
        return digest(done, np.array(expression.shape), np.empty(0, dtype=expression.matrix.dtype))


def _stored_digest(matrix: Matrix) -> str:
    return digest(*buffers(matrix), np.array(matrix.shape))


def open_dataset(
    expression: Path | str, network: Path | str | None = None, options: DatasetOptions | None = None, **changes: Any
) -> Dataset:
    r"""Read an expression matrix and a network, preprocess the matrix and match the network to it.

    Parameters
    ----------
    expression, network : path
        See `read_expression` and `read_network` for the formats.
    options : DatasetOptions, optional
    **changes
        Options by name. Reading the matrix (`ExpressionOptions`): `samples_in_rows`, `layer`, `gene_names`,
        `skip_columns`; reading the network (`NetworkOptions`): `relations`, `min_score`, `string_info`, `graph_names`
        (its `names`), `header`, `source`, `target`, `weighted`, `signs`; preprocessing (`PreprocessingOptions`):
        `duplicates`, `cpm`, `log1p`, `n_variable`; matching (`MatchingOptions`): `strip_versions`, `id_map`,
        `matched_only`; matrices that stay in their files (`DatasetOptions`): `lazy`, `block_rows`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/counts.tsv", "w") as file:
    ...         _ = file.write("gene\ts1\ts2\ts3\nTP53\t1\t2\t0\nMDM2\t0\t3\t1\nACTB\t9\t8\t7\n")
    ...     with open(f"{folder}/network.sif", "w") as file:
    ...         _ = file.write("TP53\tbinds\tMDM2\n")
    ...     netbic.io.open_dataset(f"{folder}/counts.tsv", f"{folder}/network.sif", log1p=True)
    Dataset(3 samples x 3 genes, 1 edges)
    """
    options = (options or DatasetOptions()).replace(**changes)
    return match_dataset(_expression(expression, options), network, options)


def match_dataset(data: Expression, network: Path | str | None, options: DatasetOptions) -> Dataset:
    """Preprocess a matrix that was read before, and match a network to it."""
    preprocessing = vars(options.preprocessing)
    strip_versions, id_map = options.matching.strip_versions, options.matching.id_map
    if network is None:
        _warn_if_exchanged(data, options.expression.samples_in_rows)
        rename = renaming(strip_versions, id_map, data.genes, None)
        prepared = prepare(data, rename=rename, **preprocessing)
        n_genes = prepared.expression.shape[1]
        alignment = Alignment(
            *data.shape,
            n_genes,
            isolated=n_genes,
            steps=prepared.steps,
            first_samples=some_names(data.samples),
            first_genes=some_names(data.genes),
        )
        return Dataset(prepared.expression, None, alignment)
    strip_both = strip_versions or options.network.strip_versions
    read = read_network(network, options.network, strip_versions=strip_both)
    rename = renaming(strip_both, id_map, data.genes, read.graph.names)
    renamed = data.genes if rename is None else np.array([rename(gene) for gene in data.genes], dtype=object)
    read = read._replace(graph=with_names(read.graph, renamed, from_files=True))
    check_overlap(renamed, read.graph, data.samples, from_files=True)
    only = read.graph.names if options.matching.matched_only else None
    prepared = prepare(data, rename=rename, only=only, **preprocessing)
    genes = prepared.expression.genes
    graph, alignment = align(genes, read, samples=data.samples, steps=prepared.steps, genes_in_file=data.shape[1])
    return Dataset(prepared.expression, graph, alignment)


def _warn_if_exchanged(data: Expression, samples_in_rows: bool) -> None:
    """Warn if the samples have names of genes; with a network, names that do not match are an error."""
    if look_exchanged(data.samples, data.genes):
        remedy = "leave out" if samples_in_rows else "use"
        warnings.warn(
            f"the names of the samples ({', '.join(some_names(data.samples))}, ...) look like genes: if samples and "
            f"genes are exchanged, {remedy} `samples_in_rows`",
            stacklevel=3,
        )


def _expression(path: Path | str, options: DatasetOptions) -> Expression:
    if options.lazy:
        return open_expression(path, **vars(options.expression), block_rows=options.block_rows)
    if options.block_rows is not None:
        what = f"`block_rows={options.block_rows}` is for matrices that stay in their files: use `lazy=True` too"
        raise InputError(what, ["block_rows", "lazy"])
    return read_expression(path, **vars(options.expression))


def digest(*parts: Any) -> str:
    """A short digest of arrays, their types included."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part.dtype == object:
            total.update("\n".join(map(str, part)).encode())
        else:
            total.update(np.ascontiguousarray(part).data)
        total.update(str(part.dtype).encode())
    return total.hexdigest()
