"""A study: an expression matrix and a network, read, prepared and matched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbic.errors import InputError
from netbic.graphs import Graph
from netbic.readers import Expression, open_expression, read_expression, read_network, renaming
from netbic.study.matching import Alignment, align, check_names, unaligned, with_names
from netbic.study.preprocessing import prepare


@dataclass(frozen=True)
class Study:
    """What a fit starts from: the prepared matrix, the graph of its genes, and the summary of both."""

    expression: Expression
    graph: Graph | None
    alignment: Alignment

    def __repr__(self) -> str:
        samples, genes = self.expression.shape
        graph = "no network" if self.graph is None else f"{self.graph.n_edges:,} edges"
        return f"Study({samples:,} samples x {genes:,} genes, {graph})"

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
        """Of a matrix that stays in its file: its digest, which one pass found, and what is done to it."""
        expression = self.expression.scanned()
        done = np.array([expression.origin, json.dumps(self.alignment.steps)], dtype=object)
        return digest(done, np.array(expression.shape), np.empty(0, dtype=expression.matrix.dtype))


def _stored_digest(matrix: Any) -> str:
    stored = [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    return digest(*stored, np.array(matrix.shape))


def open_study(
    expression: Path | str,
    network: Path | str | None = None,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: Sequence[str] = (),
    relations: Sequence[str] = (),
    min_score: float | None = None,
    string_info: Path | str | None = None,
    graph_names: Path | str | None = None,
    header: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    id_map: Path | str | None = None,
    strip_versions: bool = False,
    duplicates: str = "highest",
    cpm: bool = False,
    log1p: bool = False,
    n_variable: int | None = None,
    matched_only: bool = False,
    lazy: bool = False,
    block_rows: int | None = None,
) -> Study:
    """Read an expression matrix and a network, prepare the one and match the other to it.

    Parameters
    ----------
    expression, network : path
        See `read_expression` and `read_network`, which also explain the words not explained here.
    id_map : path, optional
        A two-column table from the data's gene names to the network's.
    strip_versions : bool
        Drop the versions of Ensembl ids on both sides.
    matched_only : bool
        Drop genes that are not in the network; otherwise they stay, without neighbours.
    duplicates, cpm, log1p, n_variable
        See `prepare`.
    lazy : bool
        Leave the matrix in its file and read it block by block: see `open_expression`, also for `block_rows`.
    """
    reading: dict[str, Any] = {"samples_in_rows": samples_in_rows, "layer": layer, "gene_names": gene_names}
    reading["skip_columns"] = skip_columns
    if block_rows is not None and not lazy:
        raise InputError(f"block_rows={block_rows} is about matrices that stay in their files: use lazy=True")
    data = (
        open_expression(expression, **reading, block_rows=block_rows)
        if lazy
        else read_expression(expression, **reading)
    )
    preparing: dict[str, Any] = {"duplicates": duplicates, "cpm": cpm, "log1p": log1p, "n_variable": n_variable}
    if network is None:
        prepared = prepare(data, rename=renaming(strip_versions, id_map, data.genes, None), **preparing)
        summary = unaligned(prepared.expression.genes, data.shape[0], prepared.steps, data.shape[1])
        return Study(prepared.expression, None, summary)
    read = read_network(
        network,
        relations=relations,
        min_score=min_score,
        string_info=string_info,
        names=graph_names,
        header=header,
        source=source,
        target=target,
        strip_versions=strip_versions,
    )
    rename = renaming(strip_versions, id_map, data.genes, read.graph.names)
    read = read._replace(graph=with_names(read.graph, _renamed(data.genes, rename), from_files=True))
    check_names(_renamed(data.genes, rename), read.graph, data.samples, from_files=True)
    prepared = prepare(data, rename=rename, only=read.graph.names if matched_only else None, **preparing)
    genes = prepared.expression.genes
    graph, summary = align(genes, read, samples=data.samples, steps=prepared.steps, genes_in_file=data.shape[1])
    return Study(prepared.expression, graph, summary)


def _renamed(genes: Any, rename: Callable[[str], str] | None) -> Any:
    return genes if rename is None else np.array([rename(gene) for gene in genes], dtype=object)


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
