"""A study: an expression matrix and a network, read, prepared and matched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.graphs import Graph
from netbic.io.alignment import Alignment, align, unaligned
from netbic.io.expression import Expression, read_expression
from netbic.io.names import renaming
from netbic.io.networks import Network, read_network
from netbic.io.preparing import prepare


@dataclass(frozen=True)
class Study:
    """What a fit starts from: the prepared matrix, the graph of its genes, and the account of both."""

    expression: Expression
    graph: Graph | None
    alignment: Alignment

    @property
    def X(self) -> Any:
        """The matrix: a DataFrame with names, or CSR."""
        matrix = self.expression.matrix
        return self.expression.frame() if isinstance(matrix, np.ndarray) else matrix

    @property
    def names(self) -> tuple[Any, Any]:
        """Samples and genes."""
        return self.expression.samples, self.expression.genes

    def fingerprint(self) -> dict[str, str]:
        """Short digests of the matrix, its names and the graph: equal if and only if nothing changed."""
        matrix = self.expression.matrix
        stored = [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
        digests = {
            "expression": _digest(*stored, np.array(matrix.shape)),
            "samples": _digest(self.expression.samples),
            "genes": _digest(self.expression.genes),
        }
        if self.graph is not None:
            weights = self.graph.weights
            digests["network"] = _digest(weights.data, weights.indices, weights.indptr)
        return digests


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
    id_map: Path | str | None = None,
    strip_versions: bool = False,
    duplicates: str = "highest",
    cpm: bool = False,
    log1p: bool = False,
    n_variable: int | None = None,
    matched_only: bool = False,
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
    """
    data = read_expression(
        expression, samples_in_rows=samples_in_rows, layer=layer, gene_names=gene_names, skip_columns=skip_columns
    )
    read = None
    if network is not None:
        read = read_network(
            network,
            relations=relations,
            min_score=min_score,
            string_info=string_info,
            names=graph_names,
            header=header,
            strip_versions=strip_versions,
        )
        read = _named_by_position(read, data)
    prepared = prepare(
        data,
        rename=renaming(strip_versions, id_map, data.genes),
        duplicates=duplicates,
        cpm=cpm,
        log1p=log1p,
        n_variable=n_variable,
        only=read.graph.names if read is not None and matched_only else None,
    )
    return match_study(prepared.expression, read, prepared.steps)


def match_study(expression: Expression, network: Network | None, steps: list[dict[str, Any]]) -> Study:
    """Match a network to a prepared matrix."""
    if network is None:
        return Study(expression, None, unaligned(expression.genes, expression.shape[0], steps))
    graph, account = align(expression.genes, network, samples=expression.samples, steps=steps)
    return Study(expression, graph, account)


def _named_by_position(network: Network, data: Expression) -> Network:
    """Nodes without names are the genes of the file, in its order, where there are as many."""
    numbered = network.graph.names is None or np.issubdtype(network.graph.names.dtype, np.integer)
    if not numbered or network.graph.n_nodes != data.shape[1] or not pd.Index(data.genes).is_unique:
        return network
    return Network(Graph(network.graph.weights, data.genes), network.account)


def _digest(*parts: Any) -> str:
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part.dtype == object:
            total.update("\n".join(map(str, part)).encode())
        else:
            total.update(np.ascontiguousarray(part).data)
        total.update(str(part.dtype).encode())
    return total.hexdigest()
