"""Networks from files, with a summary of what was in them and what was dropped."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Floats, Indices
from netbic.errors import shown, unusable
from netbic.graph import Graph, contradicted
from netbic.io.characters import check_characters
from netbic.io.edge_files import Edges, edges_of_frame, edges_of_graphml, edges_of_text, line_of_edge
from netbic.io.edge_signs import EdgeSigns, signs_of_edges
from netbic.io.matrices import NameArray
from netbic.io.names import without_version
from netbic.io.options import NetworkOptions, with_changes
from netbic.io.parquet import read_parquet
from netbic.io.sparse_files import is_marked_signed, read_node_names, read_sparse
from netbic.io.tables import column_key, read_columns
from netbic.io.text import MISSING, checked_file, read_lines

_NOT_A_GENE = re.compile(r"^(CHEBI|KEGG|PUBCHEM|HMDB|DRUGBANK|CAS|LIPIDMAPS|CHEMBL)[:_]", re.IGNORECASE)


@dataclass(frozen=True)
class NetworkSummary:
    """What a network file held, before it was matched to the genes of a matrix."""

    file: str
    edges_in_file: int
    self_loops: int = 0
    duplicates: int = 0
    filtered: int = 0
    not_genes: int = 0
    not_genes_named: tuple[str, ...] = ()
    not_renamed: int = 0
    relations: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    columns_not_read: tuple[str, ...] = ()
    weighted: bool = False
    signs_from: str = ""  # where signs of edges were read: "" if there are none
    inhibiting: int = 0
    sign_unknown: int = 0  # edges that were dropped
    contradictory: int = 0  # pairs of genes with edges of both signs, which were dropped

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary of plain values."""
        return asdict(self)


class Network(NamedTuple):
    """A graph from a file, and a summary of what the file held and what was dropped."""

    graph: Graph
    summary: NetworkSummary

    @property
    def account(self) -> NetworkSummary:
        """The earlier name of `summary`."""
        warnings.warn("Network.account is called Network.summary now", FutureWarning, stacklevel=2)
        return self.summary


def read_network(path: Path | str, options: NetworkOptions | None = None, **changes: Any) -> Network:
    r"""Read a network.

    Parameters
    ----------
    path : path
        .sif (A relation B), an edge table as text or Parquet (with a header, columns are recognised by their names;
        without, the third may hold weights or relations), STRING's protein.links, .graphml, or a sparse matrix (.npz;
        `write_network` and ``netbic graph`` store names in it). Text may be compressed with gzip.
    options : NetworkOptions, optional
    **changes
        Options by name: `relations`, `min_score`, `string_info`, `names`, `header`, `source`, `target`, `weighted`,
        `strip_versions`, `signs`; see `NetworkOptions`.

    Returns
    -------
    Network
        `graph` and `summary`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sif") as file:
    ...     _ = file.write("TP53\tcontrols\tMDM2\nMDM2\tbinds\tTP53\nMDM2\tbinds\tMDM4\n")
    ...     file.flush()
    ...     network = netbic.io.read_network(file.name, relations=["binds"])
    >>> network.graph, network.summary.filtered
    (Graph(3 nodes, 2 edges), 1)
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sif") as file:
    ...     _ = file.write("TP53\tactivates\tCDKN1A\nMDM2\tinhibits\tTP53\n")
    ...     file.flush()
    ...     network = netbic.io.read_network(file.name)
    >>> network.graph, network.summary.signs_from
    (Graph(3 nodes, 2 edges, 1 of them inhibits), 'relations')
    """
    path, options = Path(path), with_changes(options or NetworkOptions(), "read_network", changes)
    kind = _kind(path)
    if kind == ".npz":
        return _from_npz(checked_file(path), options)
    if options.names is not None:
        raise unusable(path, "holds names itself", "leave out the list of names, which is for .npz files")
    if kind == ".graphml":
        edges = edges_of_graphml(path)
    elif kind == ".parquet":
        edges = edges_of_frame(path, read_parquet(path), (options.source, options.target))
    else:
        edges = edges_of_text(path, kind == ".sif", options.header, (options.source, options.target))
    use_weights = not edges.is_string if options.weighted is None else options.weighted
    not_renamed = 0
    if options.string_info is not None:
        edges, not_renamed = _with_gene_names(path, edges, options.string_info)
    if options.strip_versions:
        edges = edges.renamed(without_version)
    return _network(path, edges, options, use_weights, not_renamed)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    return {".pq": ".parquet", ".xml": ".graphml"}.get(last, last)


def _from_npz(path: Path, options: NetworkOptions) -> Network:
    if options.relations or options.string_info is not None:
        what = "is a matrix, which has neither relations nor proteins"
        raise unusable(path, what, "leave out `relations` and `string_info`", parameters=["relations", "string_info"])
    weights = read_sparse(path)
    if weights.shape[0] != weights.shape[1]:
        raise unusable(path, f"holds a matrix of shape {weights.shape}", "a square one is needed")
    labels = _node_names(path, weights.shape[0], options)
    numbers = weights.data.astype(np.float64)
    signed = is_marked_signed(path) if options.signs is None else options.signs
    if not np.isfinite(numbers).all() or ((numbers < 0).any() and options.signs is None and not signed):
        remedy = "weights must be at least 0, unless negative ones mean that an edge inhibits (`signs=True`)"
        raise unusable(path, "holds weights that are negative or not finite", remedy, parameters=["signs"])
    numbers = numbers if signed else np.abs(numbers)
    enough = np.abs(numbers) >= (0.0 if options.min_score is None else options.min_score)
    low, high = np.minimum(weights.row, weights.col)[enough], np.maximum(weights.row, weights.col)[enough]
    kept, loops, _, both = _distinct(low, high, numbers[enough], weights.shape[0])
    if not kept.size:
        raise unusable(path, "has no edge of that score", "choose a smaller `min_score`", parameters=["min_score"])
    graph = _graph(low[kept], high[kept], numbers[enough][kept], labels)
    summary = NetworkSummary(
        path.name,
        int(kept.size + loops),
        self_loops=loops,
        weighted=_is_weighted(graph),
        signs_from="negative weights" if graph.is_signed else "",
        inhibiting=graph.n_inhibiting,
        contradictory=both,
    )
    return Network(graph, summary)


def _node_names(path: Path, size: int, options: NetworkOptions) -> Array:
    """The names of the nodes (those that are given, otherwise those in the file), or their numbers."""
    names = read_node_names(path) if options.names is None else options.names
    if names is None:
        return np.arange(size)
    known = read_lines(names) if isinstance(names, (str, Path)) else names
    known = known if isinstance(known, np.ndarray) and known.dtype == np.int64 else np.asarray(known, dtype=object)
    check_characters(names if isinstance(names, (str, Path)) else path, "node", known)
    if options.strip_versions and known.dtype == object:
        known = np.array([without_version(str(name)) for name in known], dtype=object)
    if len(known) != size:
        raise unusable(path, f"has {size} nodes but {len(known)} names", "one name for each node is needed")
    twice = pd.Index(known).duplicated()
    if twice.any():
        raise unusable(path, f"the name {shown(str(known[twice][0]))} is given twice", "make the names unique")
    return known


def _with_gene_names(path: Path, edges: Edges, info: Path | str) -> tuple[Edges, int]:
    """Rename proteins by a table whose first column holds their ids and whose second their names."""
    table = read_columns(info, header=None).frame
    if table.shape[1] < 2 or column_key(str(table.columns[1])) == "alias":
        raise unusable(info, "is not STRING's protein.info", "that has ids in its first column and names in its second")
    check_characters(info, "protein", table.iloc[:, 1])
    renamed = dict(zip(table.iloc[:, 0].astype(str), table.iloc[:, 1].astype(str), strict=True))
    proteins = set(edges.source.categories).union(edges.target.categories)
    unknown = proteins.difference(renamed)
    if unknown == proteins:
        known, here = next(iter(renamed)), edges.source.categories[0]
        raise unusable(info, f"names no protein of {path.name}", f"it has {shown(known)}, the links have {shown(here)}")
    return edges.renamed(lambda name: renamed.get(name, name)), len(unknown)


def _network(path: Path, edges: Edges, options: NetworkOptions, use_weights: bool, not_renamed: int) -> Network:
    n_edges = len(edges.source)
    kept = _wanted(path, edges, options.relations, options.min_score)
    signs = signs_of_edges(path, edges, kept, options.signs)
    n_wanted, kept = int(kept.sum()), kept if signs is None else kept & (signs.values != 0)
    labels = pd.Index(edges.source.categories.astype(object)).union(edges.target.categories.astype(object), sort=True)
    tails = labels.get_indexer(edges.source.categories)[edges.source.codes]
    heads = labels.get_indexer(edges.target.categories)[edges.target.codes]
    _check_partners(path, edges, labels, tails, heads)
    tails, heads = tails[kept], heads[kept]
    weights = np.ones(tails.size) if edges.weight is None or not use_weights else np.abs(edges.weight[kept])
    weights = weights if signs is None else weights * signs.values[kept]
    chosen, loops, duplicates, both = _distinct(tails, heads, weights, len(labels))
    if not chosen.size:
        raise unusable(path, "has no edge left", "check the relations and the smallest score")
    used, codes = np.unique(np.concatenate([tails[chosen], heads[chosen]]), return_inverse=True)
    graph = _graph(codes[: chosen.size], codes[chosen.size :], weights[chosen], labels.to_numpy()[used])
    foreign = [name for name in labels if _NOT_A_GENE.match(name)]
    summary = NetworkSummary(
        file=path.name,
        edges_in_file=n_edges,
        self_loops=loops,
        duplicates=duplicates,
        filtered=n_edges - n_wanted,
        not_genes=len(foreign),
        not_genes_named=tuple(foreign[:5]),
        not_renamed=not_renamed,
        relations=_counted(edges.relation),
        columns=edges.columns or {},
        columns_not_read=edges.unread,
        weighted=_is_weighted(graph),
        **_about_signs(signs, graph),
        sign_unknown=n_wanted - int(tails.size),
        contradictory=both,
    )
    return Network(graph, summary)


def _about_signs(signs: EdgeSigns | None, graph: Graph) -> dict[str, Any]:
    return {} if signs is None else {"signs_from": signs.source, "inhibiting": graph.n_inhibiting}


def _is_weighted(graph: Graph) -> bool:
    """Whether a magnitude of a weight differs from 1."""
    return bool((np.abs(graph.weights.data) != 1).any())


def _wanted(path: Path, edges: Edges, relations: Sequence[str], min_score: float | None) -> Bools:
    kept = np.ones(len(edges.source), dtype=bool)
    if relations:
        if edges.relation is None:
            raise unusable(path, "has no column of relations", "leave out `relations`", parameters=["relations"])
        named = [bool(set(relations).intersection(str(level).split(";"))) for level in edges.relation.categories]
        if not any(named):
            known = ", ".join(list(_counted(edges.relation))[:8])
            raise unusable(path, f"has no relation {shown(', '.join(relations))}", f"it has {known}")
        kept &= np.array(named)[edges.relation.codes]
    if min_score is not None:
        if edges.weight is None:
            raise unusable(path, "has no column of scores", "leave out `min_score`", parameters=["min_score"])
        kept &= np.abs(edges.weight) >= min_score
        if not kept.any():
            what = f"has no edge with a score of {min_score:g} or more"
            raise unusable(path, what, f"its largest is {edges.weight.max():g}")
    return kept


def _check_partners(path: Path, edges: Edges, labels: pd.Index[Any], tails: Array, heads: Array) -> None:
    blank = labels.isin(MISSING)
    if blank.any():
        at = int(np.flatnonzero(blank[tails] | blank[heads])[0])
        partner = edges.target[at] if blank[tails[at]] else edges.source[at]
        what = f"edge {at + 1} ({shown(str(partner))}) has no partner"
        raise unusable(path, what, "complete or remove it", line=line_of_edge(path, at, edges.n_header))


def _distinct(tails: Array, heads: Array, weights: Floats, n_nodes: int) -> tuple[Indices, int, int, int]:
    """Which edges to keep, each pair once with its largest weight; numbers of self-loops, duplicates, contradictions.

    A pair whose largest weight occurs with both signs contradicts itself and is not kept.
    """
    keys = np.minimum(tails, heads).astype(np.int64) * n_nodes + np.maximum(tails, heads)
    proper = np.flatnonzero(tails != heads)
    order = proper[np.lexsort((-np.abs(weights[proper]), keys[proper]))]
    first = np.ones(order.size, dtype=bool)
    first[1:] = keys[order[1:]] != keys[order[:-1]]
    both = contradicted(weights[order], np.flatnonzero(first)) & (weights[order[first]] != 0)
    kept = order[first][~both]
    counts = int(tails.size - proper.size), int(order.size - first.sum()), int(np.count_nonzero(both))
    return kept[weights[kept] != 0], *counts


def _graph(tails: Array, heads: Array, weights: Floats, names: NameArray) -> Graph:
    both = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    matrix = sp.csr_array((np.concatenate([weights, weights]), both), shape=(len(names), len(names)))
    matrix.sort_indices()
    return Graph(matrix, names, signed=True)


def _counted(relation: Any) -> dict[str, int]:
    """Edges per relation, most frequent first; an edge may have several, joined by semicolons."""
    if relation is None:
        return {}
    counts = Counter[str]()
    for level, count in relation.value_counts().items():
        for name in str(level).split(";"):
            counts[name] += int(count)
    return dict(counts.most_common(50))
