"""Prior graphs: node names, symmetric weights, and the graph terms of the model.

A :class:`Graph` is immutable, so that clones and threads share one object, and graph terms and eigenvalues are
computed once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike

from netbic.arrays import Array, Floats, Indices, RandomState, check_choice
from netbic.graph.edges import as_coo, as_names, canonical, clean_csr, edge_columns, node_labels, numeric, swap_sweep
from netbic.graph.signs import check_signed, signs_of
from netbic.graph.terms import TERM_CLASSES, TERMS, GraphTerm, near_one, with_finite_sums

_SWEEPS_BETWEEN = 12  # one rewired graph and the next
_FEW_MATCHES = 0.05  # share of matched names below which the wrong kind of names is likely


class Graph:
    """An undirected graph with edge weights; negative weights are those of edges that inhibit.

    Parameters
    ----------
    weights : sparse array or matrix, or dense array, of shape (n_nodes, n_nodes)
        Edge weights. An asymmetric matrix is made symmetric by the larger of the two entries; self-loops are dropped.
        Both give a warning, which is kept in `notes`.
    names : sequence of length n_nodes, optional
        Node names. Without names a graph is matched to a matrix by position; integer names *are* positions.
    signed : bool
        Whether weights may be negative: edges that inhibit, which connect genes of opposite signs. Otherwise a negative
        weight is an error, because it may be a mistake. If both entries of a pair are equally large but of different
        signs, the edge is dropped.

    Attributes
    ----------
    weights : scipy.sparse.csr_array
        Symmetric, zero diagonal, no stored zeros. Treat as read-only.
    names : ndarray or None
    notes : tuple of str
        What was dropped or changed during construction.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> path = netbic.Graph(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1), names=list("abcd"))
    >>> path
    Graph(4 nodes, 3 edges)
    >>> path.align(["b", "c", "x"]).n_edges
    1
    >>> netbic.Graph(np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), signed=True)
    Graph(3 nodes, 2 edges, 1 of them inhibits)
    """

    weights: sp.csr_array
    names: Array | None
    notes: tuple[str, ...]

    def __init__(self, weights: Any, names: ArrayLike | None = None, *, signed: bool = False) -> None:
        check_signed(signed)
        if (clean := clean_csr(weights, signed)) is not None:
            self.weights, self.notes = clean, ()
            self.names = None if names is None else as_names(names, clean.shape[0])
            return
        matrix = as_coo(weights)
        self._set(matrix.shape[0], matrix.row, matrix.col, matrix.data, names, both_ways=True, signed=signed)

    def _set(
        self,
        n_nodes: int,
        tails: Array,
        heads: Array,
        values: Array,
        names: ArrayLike | None,
        both_ways: bool,
        signed: bool,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.weights, changes = canonical(n_nodes, tails, heads, values, both_ways, signed)
        self.notes = notes + changes
        self.names = None if names is None else as_names(names, n_nodes)
        if self.notes:
            warnings.warn(f"graph: {'; '.join(self.notes)}", UserWarning, stacklevel=3)

    @classmethod
    def _from_symmetric(cls, weights: sp.csr_array, names: Array | None, notes: tuple[str, ...] = ()) -> Self:
        """A graph from weights in canonical form."""
        graph = cls.__new__(cls)
        graph.weights, graph.names, graph.notes = weights, names, notes
        return graph

    @classmethod
    def from_edges(cls, edges: pd.DataFrame, nodes: ArrayLike | None = None, *, signed: bool = False) -> Self:
        """Make a graph from an edge table.

        Parameters
        ----------
        edges : DataFrame
            Columns `source` and `target` (otherwise the first two) and, if present, `weight` (or a numeric third of
            exactly three columns, unless it is `sign`). Repeated and reversed edges count once, with the largest
            weight. A column `sign` tells which edges activate and which inhibit: 1 and -1, + and -, or words such as
            activation and inhibition; edges whose sign is not known (0, missing, unknown) are dropped.
        nodes : sequence, optional
            All node names, isolated ones included, in the wanted order. Default: the names that occur, sorted.
        signed : bool
            Whether weights may be negative: edges that inhibit.

        Examples
        --------
        >>> import pandas as pd, netbic
        >>> netbic.Graph.from_edges(pd.DataFrame({"source": ["TP53", "MDM2"], "target": ["MDM2", "MDM4"]}))
        Graph(3 nodes, 2 edges)
        >>> edges = pd.DataFrame({"source": ["TP53", "MDM2"], "target": ["CDKN1A", "TP53"], "sign": ["+", "-"]})
        >>> netbic.Graph.from_edges(edges)
        Graph(3 nodes, 2 edges, 1 of them inhibits)
        """
        check_signed(signed)
        source, target, weight = edge_columns(edges)
        both = pd.concat([edges[source], edges[target]], ignore_index=True)
        if both.isna().any():
            row = int(np.flatnonzero(both.isna().to_numpy())[0]) % len(edges)
            raise ValueError(f"edge {row} has no partner (missing name): drop such rows, e.g. with edges.dropna()")
        names = pd.Index(_sorted_names(both)) if nodes is None else pd.Index(as_names(nodes))
        codes = names.get_indexer(pd.Index(both))
        if (codes < 0).any():
            raise ValueError(f"edge end {both[int(np.argmin(codes))]!r} is not among the nodes given")
        values = np.ones(len(edges)) if weight is None else numeric(edges[weight])
        notes: tuple[str, ...] = ()
        if "sign" in edges:
            signs, signed = signs_of(edges["sign"]), True
            values, n_unknown = _with_signs(values, signs), np.count_nonzero(signs == 0)
            notes = (f"dropped {n_unknown:,} edges whose sign is not known",) if n_unknown else ()
        graph = cls.__new__(cls)
        ends = codes[: len(edges)], codes[len(edges) :]
        graph._set(len(names), *ends, values, names.to_numpy(), both_ways=False, signed=signed, notes=notes)
        return graph

    @classmethod
    def from_networkx(cls, graph: Any, *, signed: bool = False) -> Self:
        """Make a graph from a networkx graph; the edge attribute `weight` is used, the direction of edges is not.

        With `signed`, weights may be negative: edges that inhibit.
        """
        edges = list(graph.edges(data="weight", default=1.0))
        table = pd.DataFrame(edges, columns=["source", "target", "weight"])
        labels = node_labels(graph.nodes)
        if np.array_equal(np.sort(labels) if labels.dtype != object else [], np.arange(labels.size)):
            # Numbered from 0: node i, although networkx keeps the order in which nodes were added.
            made = cls.from_edges(table, nodes=np.arange(labels.size), signed=signed)
            made.names = None
            return made
        return cls.from_edges(table, nodes=labels, signed=signed)

    @classmethod
    def from_igraph(cls, graph: Any, *, signed: bool = False) -> Self:
        """Make a graph from an igraph graph; the vertex attribute `name` and the edge attribute `weight` are used.

        With `signed`, weights may be negative: edges that inhibit.
        """
        check_signed(signed)
        ends = np.array(graph.get_edgelist(), dtype=np.intp).reshape(-1, 2)
        values = numeric(pd.Series(graph.es["weight"])) if "weight" in graph.es.attributes() else np.ones(len(ends))
        names = graph.vs["name"] if "name" in graph.vs.attributes() else None
        made = cls.__new__(cls)
        made._set(graph.vcount(), ends[:, 0], ends[:, 1], values, names, both_ways=False, signed=signed)
        return made

    @classmethod
    def of(cls, graph: Any) -> Graph:
        """Make a graph from a Graph, sparse or dense array, networkx or igraph graph, or DataFrame of edges."""
        if isinstance(graph, Graph):
            return graph
        if isinstance(graph, pd.DataFrame):
            square = graph.shape[0] == graph.shape[1] and graph.index.equals(graph.columns)
            return cls(graph.to_numpy(), names=graph.columns) if square else cls.from_edges(graph)
        if hasattr(graph, "get_edgelist"):
            return cls.from_igraph(graph)
        if hasattr(graph, "edges") and hasattr(graph, "nodes"):
            return cls.from_networkx(graph)
        return cls(graph)

    def __repr__(self) -> str:
        n = self.n_inhibiting
        signs = f", {n:,} of them inhibit{'s' if n == 1 else ''}" if n else ""
        return f"Graph({self.n_nodes:,} nodes, {self.n_edges:,} edges{signs})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def n_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return int(self.weights.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.weights.nnz // 2)

    @cached_property
    def n_inhibiting(self) -> int:
        """Number of edges that inhibit: those with a negative weight."""
        return int(np.count_nonzero(self.weights.data < 0)) // 2

    @property
    def is_signed(self) -> bool:
        """Whether some edges inhibit."""
        return self.n_inhibiting > 0

    def unsigned(self) -> Graph:
        """The same graph without the signs of its edges.

        Examples
        --------
        >>> import numpy as np, netbic
        >>> netbic.Graph(np.array([[0.0, -2.0], [-2.0, 0.0]]), signed=True).unsigned().weights.toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
        """
        return Graph._from_symmetric(abs(self.weights), self.names, self.notes) if self.is_signed else self

    def renamed(self, names: ArrayLike | None = None) -> Graph:
        """The same graph with other names of its nodes, or without names (None).

        Examples
        --------
        >>> import numpy as np, netbic
        >>> netbic.Graph(np.array([[0.0, 1.0], [1.0, 0.0]])).renamed(["TP53", "MDM2"]).names.tolist()
        ['TP53', 'MDM2']
        """
        return Graph._from_symmetric(self.weights, None if names is None else as_names(names, self.n_nodes))

    @property
    def degrees(self) -> Indices:
        """Number of neighbours of each node."""
        return np.diff(self.weights.indptr).astype(np.intp)

    def edges(self) -> tuple[Indices, Indices, Floats]:
        """Both ends (lower index first) and the weight of every edge."""
        upper = sp.triu(self.weights, k=1, format="coo")
        return upper.row.astype(np.intp), upper.col.astype(np.intp), upper.data

    def term(self, name: str = "modularity", *, relative: bool = False) -> GraphTerm:
        """Return the graph term M of the model; computed once.

        Parameters
        ----------
        name : str
            One of `netbic.graph.TERMS`.
        relative : bool
            Whether M is used relative to its scale. Weights far from 1 (below 1e-6, above 1e12) are then rescaled by a
            power of two, so that the scale of the weights does not matter. The modularity and the normalised terms do
            not depend on it.
        """
        check_choice("graph_term", name, TERMS)
        free = TERM_CLASSES[name].ignores_weight_scale
        key = name, relative and not free
        if key not in self._terms:
            rescaled = with_finite_sums if free else near_one
            weights = rescaled(self.weights) if free or relative else self.weights
            self._terms[key] = TERM_CLASSES[name](weights)
        return self._terms[key]

    @cached_property
    def _terms(self) -> dict[tuple[str, bool], GraphTerm]:
        return {}

    def align(self, names: ArrayLike) -> Graph:
        """Reorder to `names`: nodes without a name there are dropped, names without a node become isolated nodes.

        Raises
        ------
        ValueError
            If names repeat, or not one of them is a node of this graph.
        """
        if self.names is None:
            raise ValueError("this graph has no node names: align by position, or make it with names=...")
        wanted = pd.Index(as_names(names))
        nodes = pd.Index(self.names).get_indexer(wanted)
        if (nodes < 0).all():
            mine, theirs = (", ".join(map(str, some[:5])) for some in (self.names, wanted))
            raise ValueError(
                f"no node name of the graph matches: the graph has {mine}, ...; the data have {theirs}, ... "
                "(transpose the data if these are samples; else rename one side, or match by position, without names)"
            )
        return self._reorder(nodes, wanted.to_numpy())

    def _reorder(self, nodes: Array, names: Array | None) -> Graph:
        """Take `nodes[i]` (or an isolated node where it is -1) as node i."""
        found = np.flatnonzero(nodes >= 0)
        part = sp.coo_array(self.weights[nodes[found]][:, nodes[found]])
        shape = (nodes.size, nodes.size)
        placed = sp.csr_array((part.data, (found[part.row], found[part.col])), shape=shape)
        placed.sort_indices()
        return Graph._from_symmetric(placed, names, self.notes)

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """The graph between some of its nodes: its `n_edges` are the edges inside a module.

        Parameters
        ----------
        nodes : sequence of positions, or boolean mask
            Node i of the result is `nodes[i]`.

        Examples
        --------
        >>> import numpy as np, netbic
        >>> path = netbic.Graph(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1), names=list("abcd"))
        >>> path.subgraph([3, 2, 0])
        Graph(3 nodes, 1 edges)
        >>> path.subgraph([3, 2, 0]).names.tolist()
        ['d', 'c', 'a']
        """
        kept = np.asarray(nodes)
        if kept.size and kept.dtype.kind not in "biu":
            raise ValueError(
                f"nodes are of type {kept.dtype}: give positions or a boolean mask (`align` selects by name)"
            )
        kept = np.flatnonzero(kept) if kept.dtype == bool else kept.astype(np.intp)
        weights = sp.csr_array(self.weights[kept][:, kept])
        weights.sort_indices()
        return Graph._from_symmetric(weights, None if self.names is None else self.names[kept])

    def rewire(self, random_state: RandomState = None, *, sweeps: int = 30) -> Graph:
        """Return a random graph in which every node keeps its number of neighbours.

        Edges a-b and c-d become a-d and c-b if that creates neither a loop nor a double edge. A sweep proposes swaps
        for disjoint pairs of edges simultaneously and skips those in conflict, so the graph stays simple and degrees
        are exact. Weights, with their signs, stay with the first end of their edge.

        Parameters
        ----------
        random_state : None, int or numpy.random.Generator
        sweeps : int
            Thirty propose 15 swaps per edge; ten per edge are usually considered well mixed.
        """
        if sweeps < 1:
            raise ValueError(f"sweeps={sweeps!r}: at least 1 is needed")
        tails, heads, values = next(self.rewired_edges(random_state, sweeps=sweeps))
        matrix = sp.coo_array((values, (tails, heads)), shape=self.weights.shape)
        weights = sp.csr_array(matrix + matrix.T)
        weights.sort_indices()
        return Graph._from_symmetric(weights, self.names)

    def rewired_edges(
        self, random_state: RandomState = None, *, sweeps: int = 30
    ) -> Iterator[tuple[Indices, Indices, Floats]]:
        """Yield both ends and the weight of every edge of one rewired graph after another, without end.

        The first takes `sweeps` sweeps, each further one twelve more: on Pathway Commons the share of edges in common
        with the original graph decreases from 100% to 39, 19, 12, 9, 7.5 and 6.9% in six sweeps, to 6.0% in twelve and
        stays at 5.9% from fifteen on, so that twelve are enough for independence of the previous graph.
        """
        generator = np.random.default_rng(random_state)
        tails, heads, values = self.edges()
        while True:
            for _ in range(sweeps):
                swap_sweep(tails, heads, self.n_nodes, generator)
            yield tails.copy(), heads.copy(), values
            sweeps = _SWEEPS_BETWEEN


def _with_signs(weights: Floats, signs: Floats) -> Floats:
    """Weights with the signs of a column `sign`; an error if both have signs."""
    if (weights < 0).any():
        raise ValueError("edges have a column `sign` and negative weights: give signs in one of them")
    return weights * signs


def _sorted_names(ends: pd.Series[Any]) -> Array:
    """The distinct names, in an order that does not depend on the order of edges."""
    names = ends.unique()
    try:
        return np.sort(names)
    except TypeError:  # numbers among strings
        return np.array(sorted(names, key=lambda name: (str(type(name)), name)), dtype=object)


def match(graph: Any, size: int, names: Array | None, axis: str) -> Graph:
    """Match a graph of any kind to the `size` rows or columns of a matrix.

    They are matched by name if both have names (of the same kind); otherwise integer names are positions, and node i of
    a graph without names is row or column i.
    """
    made = Graph.of(graph)
    numbered = made.names is not None and np.issubdtype(made.names.dtype, np.integer)
    if made.names is not None and names is not None and numbered == np.issubdtype(names.dtype, np.integer):
        return made if np.array_equal(made.names, names) else _by_name(made, names, axis)
    if numbered:
        return _at_positions(made, size, axis)
    if made.names is not None and made.n_nodes == size:
        warnings.warn(
            f"the {axis} graph has node names ({made.names[0]}, ...) but X has none: its node i is taken for {axis} i. "
            "Give X as a DataFrame to match by name",
            stacklevel=6,
        )
    if made.n_nodes != size:
        raise ValueError(
            f"the {axis} graph has {made.n_nodes} nodes but X has {size} {axis}s: "
            "give a graph of that size, or names on both sides (a Graph with names, X as a DataFrame)"
        )
    return made


def _by_name(graph: Graph, names: Array, axis: str) -> Graph:
    aligned = graph.align(names)
    known = np.asarray(graph.names)
    matched = int(pd.Index(names).isin(known).sum())
    if matched < _FEW_MATCHES * len(names):
        warnings.warn(
            f"only {matched:,} of {len(names):,} {axis}s are nodes of the {axis} graph: do both sides use the same "
            f"kind of names? (graph: {known[0]}, ...; data: {names[0]}, ...)",
            stacklevel=7,
        )
    return aligned


def _at_positions(graph: Graph, size: int, axis: str) -> Graph:
    positions = np.asarray(graph.names)
    if positions.min(initial=0) < 0 or positions.max(initial=0) >= size:
        worst = positions.min() if positions.min() < 0 else positions.max()
        raise ValueError(
            f"the {axis} graph has a node {worst} but X has {axis}s 0 to {size - 1}: number nodes from 0, "
            f"or give X as a DataFrame whose {axis} names are the nodes' names"
        )
    if graph.n_nodes == size and np.array_equal(positions, np.arange(size)):
        return graph
    nodes = np.full(size, -1, dtype=np.intp)
    nodes[positions] = np.arange(graph.n_nodes)
    return graph._reorder(nodes, None)
