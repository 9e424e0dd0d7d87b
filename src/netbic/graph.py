"""Prior graphs: node names and symmetric weights, from any source, matched to data; graphs of correlated genes.

A :class:`Graph` is immutable, so that clones and threads share one object, and graph terms and eigenvalues are
computed once. :func:`match` brings it into the order of the rows or columns of a matrix. :func:`coexpression` makes a
graph from the data of another study.
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

from netbic.arrays import (
    Array,
    Bools,
    Floats,
    Indices,
    Matrix,
    RandomState,
    check_choice,
    check_in_memory,
    check_range,
    checked,
    is_sparse,
    stored_values,
    to_dense,
)
from netbic.edges import LOOPS, as_coo, canonical, clean_csr, node_names, numeric_weights, signs_of, swap_sweep
from netbic.errors import InputError
from netbic.graph_terms import TERM_CLASSES, TERMS, GraphTerm, rescale
from netbic.identifiers import explain_mismatch

__all__ = ["Graph", "coexpression"]

_SWEEPS_BETWEEN = 12  # one rewired graph and the next
_FEW_MATCHES = 0.05  # share of matched names below which the wrong kind of names is likely


class Graph:
    """An undirected graph with edge weights; negative weights are those of edges that inhibit.

    Parameters
    ----------
    weights : sparse array or matrix, or dense array, of shape (n_nodes, n_nodes)
        Edge weights. An asymmetric matrix is made symmetric by the larger of the two entries, with a warning;
        self-loops, which connect no two nodes, are dropped. Both are in `notes`.
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
        _check_signed(signed)
        clean, self.notes = clean_csr(weights, signed), ()
        if clean is None:
            matrix = as_coo(weights)
            entries = matrix.row, matrix.col, matrix.data
            clean, self.notes = canonical(matrix.shape[0], *entries, both_ways=True, signed=signed)
        self.weights = clean
        self.names = None if names is None else node_names(names, self.n_nodes)
        if told := [note for note in self.notes if not note.endswith(LOOPS)]:
            warnings.warn(f"graph: {'; '.join(told)}", UserWarning, stacklevel=2)

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
        _check_signed(signed)
        if not isinstance(edges, pd.DataFrame):
            remedy = "give a DataFrame of edges, or read a file with netbic.io.read_network"
            raise TypeError(f"edges={type(edges).__name__}: {remedy}")
        if edges.shape[1] < 2:
            raise ValueError(f"an edge table needs two columns (source, target), this one has {edges.shape[1]}")
        columns = list(edges.columns)
        named = "source" in columns and "target" in columns
        source, target = ("source", "target") if named else columns[:2]
        third = columns[2] if len(columns) == 3 and not named and columns[2] != "sign" else None
        numeric_third = third is not None and pd.api.types.is_numeric_dtype(edges[third])
        weight = "weight" if "weight" in columns else third if numeric_third else None
        both = pd.concat([edges[source], edges[target]], ignore_index=True)
        if both.isna().any():
            row = int(np.flatnonzero(both.isna().to_numpy())[0]) % len(edges)
            raise ValueError(f"edge {row} has no partner (missing name): drop such rows, e.g. with edges.dropna()")
        if nodes is None:  # in an order that does not depend on that of the edges
            occur = both.unique()
            try:
                nodes = np.sort(occur)
            except TypeError:  # numbers among strings
                nodes = np.array(sorted(occur, key=lambda name: (str(type(name)), name)), dtype=object)
        names = pd.Index(node_names(nodes))
        codes = names.get_indexer(pd.Index(both))
        if (codes < 0).any():
            raise ValueError(f"edge end {both[int(np.argmin(codes))]!r} is not among the nodes given")
        values = np.ones(len(edges)) if weight is None else numeric_weights(edges[weight])
        notes: tuple[str, ...] = ()
        if "sign" in edges:
            if (values < 0).any():
                raise ValueError("edges have a column `sign` and negative weights: give signs in one of them")
            signs, signed = signs_of(edges["sign"]), True
            n_unknown = np.count_nonzero(signs == 0)
            values, notes = values * signs, (f"dropped {n_unknown:,} edges whose sign is not known",)[:n_unknown]
        ends = codes[: len(edges)], codes[len(edges) :]
        weights, changes = canonical(len(names), *ends, values, both_ways=False, signed=signed)
        if notes := notes + changes:
            warnings.warn(f"graph: {'; '.join(notes)}", UserWarning, stacklevel=2)
        return cls._from_symmetric(weights, node_names(names), notes)

    @classmethod
    def from_networkx(cls, graph: Any, *, signed: bool = False) -> Self:
        """Make a graph from a networkx graph; the edge attribute `weight` is used, the direction of edges is not.

        With `signed`, weights may be negative: edges that inhibit.
        """
        edges = list(graph.edges(data="weight", default=1.0))
        table = pd.DataFrame(edges, columns=["source", "target", "weight"])
        nodes = pd.Index(list(graph.nodes), tupleize_cols=False)
        numbers = np.arange(len(nodes))
        if nodes.empty or (nodes.dtype.kind in "iu" and np.array_equal(np.sort(nodes), numbers)):
            # Numbered from 0: node i, although networkx keeps the order in which nodes were added.
            made = cls.from_edges(table, nodes=numbers, signed=signed)
            made.names = None
            return made
        return cls.from_edges(table, nodes=nodes, signed=signed)

    @classmethod
    def from_igraph(cls, graph: Any, *, signed: bool = False) -> Self:
        """Make a graph from an igraph graph; the vertex attribute `name` and the edge attribute `weight` are used.

        With `signed`, weights may be negative: edges that inhibit.
        """
        ends = np.array(graph.get_edgelist(), dtype=np.intp).reshape(-1, 2)
        table = pd.DataFrame(ends, columns=["source", "target"])
        if "weight" in graph.es.attributes():
            table["weight"] = graph.es["weight"]
        made = cls.from_edges(table, nodes=np.arange(graph.vcount()), signed=signed)
        made.names = node_names(graph.vs["name"], graph.vcount()) if "name" in graph.vs.attributes() else None
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
        return Graph._from_symmetric(self.weights, None if names is None else node_names(names, self.n_nodes))

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
            One of `netbic.graph_terms.TERMS`.
        relative : bool
            Whether M is used relative to its scale. Weights far from 1 (below 1e-6, above 1e12) are then rescaled by a
            power of two, so that the scale of the weights does not matter. The modularity and the normalised terms do
            not depend on it.
        """
        check_choice("graph_term", name, TERMS)
        free = TERM_CLASSES[name].ignores_weight_scale
        key = name, relative and not free
        if key not in self._terms:
            weights = rescale(self.weights, only_overflow=free) if free or relative else self.weights
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
        wanted = pd.Index(node_names(names))
        nodes = pd.Index(self.names).get_indexer(wanted)
        if (nodes < 0).all():
            mine, theirs = (", ".join(map(str, some[:5])) for some in (self.names, wanted))
            why = explain_mismatch(wanted, self.names, ("data", "graph"))
            what = f"no node name of the graph matches: the graph has {mine}, ...; the data have {theirs}, ..."
            remedy = (
                "transpose the data if these are samples; else rename one side, or match by position, without names"
            )
            raise ValueError(f"{what}. {why.text()}" if why.is_known else f"{what} ({remedy})")
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


def match(graph: Any, size: int, names: Array | None, axis: str, table: str = "X") -> Graph:
    """Match a graph of any kind to the `size` rows or columns of a matrix.

    They are matched by name if both have names (of the same kind); otherwise integer names are positions, and node i of
    a graph without names is row or column i. Messages call the matrix by the name `table`.
    """
    made = Graph.of(graph)
    numbered = made.names is not None and np.issubdtype(made.names.dtype, np.integer)
    if made.names is not None and names is not None and numbered == np.issubdtype(names.dtype, np.integer):
        matched = int(pd.Index(names).isin(made.names).sum())
        if 0 < matched < _FEW_MATCHES * len(names):
            why = explain_mismatch(names, made.names, ("data", "graph"))
            remedy = f". {why.text()}" if why.is_known else ": do both sides use the same kind of names?"
            warnings.warn(
                f"only {matched:,} of {len(names):,} {axis}s are nodes of the {axis} graph (graph: {made.names[0]}, "
                f"...; data: {names[0]}, ...){remedy}",
                stacklevel=6,
            )
        return made if np.array_equal(made.names, names) else made.align(names)
    if numbered:
        positions = np.asarray(made.names)
        if positions.min(initial=0) < 0 or positions.max(initial=0) >= size:
            worst = positions.min() if positions.min() < 0 else positions.max()
            raise ValueError(
                f"the {axis} graph has a node {worst} but {table} has {axis}s 0 to {size - 1}: number nodes from 0, "
                f"or give {table} as a DataFrame whose {axis} names are the nodes' names"
            )
        if made.n_nodes == size and np.array_equal(positions, np.arange(size)):
            return made
        nodes = np.full(size, -1, dtype=np.intp)
        nodes[positions] = np.arange(made.n_nodes)
        return made._reorder(nodes, None)
    if made.names is not None and made.n_nodes == size:
        warnings.warn(
            f"the {axis} graph has node names ({made.names[0]}, ...) but {table} has none: its node i is taken for "
            f"{axis} i. Give {table} as a DataFrame to match by name",
            stacklevel=6,
        )
    if made.n_nodes != size:
        raise ValueError(
            f"the {axis} graph has {made.n_nodes} nodes but {table} has {size} {axis}s: "
            f"give a graph of that size, or names on both sides (a Graph with names, {table} as a DataFrame; in a "
            'Pipeline, set_output(transform="pandas") keeps them)'
        )
    return made


def _check_signed(signed: object) -> None:
    """Raise unless `signed` is True or False."""
    if not isinstance(signed, (bool, np.bool_)):
        raise TypeError(f"signed={signed!r}: use True if negative weights are those of edges that inhibit, else False")


# --- Graphs from data: the genes that are correlated in another study ---

_BLOCK_ENTRIES = 1 << 22  # correlations computed at a time: 32 MB
_DECIMALS = 10  # correlations that agree to this precision are ties: rounding errors do not choose neighbours
_FEWEST_SAMPLES = 3  # all correlations of two samples are 1, -1 or undefined


def coexpression(X_other: Any, k: int = 10, positive: bool = True) -> Graph:
    """The graph that connects each gene to its `k` most correlated genes in another study.

    Two genes are connected if either is among the `k` neighbours of the other. All weights are 1: correlations as
    weights gave the same modules in our experiments.

    Parameters
    ----------
    X_other : DataFrame, array or sparse matrix of shape (n_samples, n_genes)
        Samples of another study: a graph made from the samples that are analysed would only repeat what they contain.
        Genes are nodes; the columns of a DataFrame are their names. On the scale on which correlations make sense, such
        as logarithms of counts.
    k : int
        Neighbours of each gene.
    positive : bool
        Whether neighbours must be positively correlated. False: the largest absolute correlations.

    Returns
    -------
    Graph
        Constant genes have no neighbours. The graph does not depend on the order of the samples or on the location and
        scale of the genes. Of equal correlations (to ten decimals), those with the first genes are used. It takes the
        memory of X_other in double precision and a few blocks of 32 MB, and ten seconds for 13,000 genes.

    See Also
    --------
    netbic.SparseGraphSVD : its parameter `diffusion` uses such a graph.

    Examples
    --------
    >>> import netbic
    >>> other = netbic.simulate.cohort(200, 300, n_modules=2, random_state=1)
    >>> graph = netbic.graph.coexpression(other.expression, k=5)
    >>> graph.n_nodes, graph.names[0]
    (300, 'GENE0000')
    >>> graph.subgraph(other.genes[0]).n_edges > graph.n_edges / 10  # edges inside a module
    True
    """
    check_in_memory(X_other, "a coexpression graph is made from data in memory")
    X = checked(X_other, "X_other")
    named = isinstance(X, pd.DataFrame) and not X.columns.equals(pd.RangeIndex(X.shape[1]))
    names = X.columns if named else None
    X = sp.csc_array(X, dtype=np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X_other has {X.ndim} dimensions: a matrix of samples x features is needed")
    n, p = X.shape
    if bad := int(np.count_nonzero(~np.isfinite(stored_values(X)))):
        what = "1 entry of X_other is" if bad == 1 else f"{bad:,} entries of X_other are"
        raise InputError(
            f"{what} missing or infinite: fill them, e.g. by sklearn.impute.SimpleImputer, or drop those features"
        )
    check_range(X, "X_other")
    if not pd.api.types.is_integer(k):
        raise TypeError(f"k={k!r}: an integer is needed")
    if n < _FEWEST_SAMPLES:
        raise InputError(f"X_other has {n} samples: at least {_FEWEST_SAMPLES} are needed for correlations")
    if p < 2:
        raise InputError(f"X_other has {p} features: at least 2 are needed")
    if not 1 <= k < p:
        raise InputError(f"`k={k}` but X_other has {p:,} features: choose 1 to {p - 1:,}", ["k"])
    step = max(1, _BLOCK_ENTRIES // max(n, p))
    blocks = [slice(start, min(start + step, p)) for start in range(0, p, step)]
    dense = None if is_sparse(X) else [_standardise(X[:, part]) for part in blocks]
    edges = []
    for part in blocks:
        own = _standardise(X[:, part])
        others = dense or (_standardise(X[:, other]) for other in blocks)
        scores = np.hstack([own.T @ other for other in others])
        np.round(scores, _DECIMALS, out=scores)
        if not positive:
            np.abs(scores, out=scores)
        scores[np.arange(part.stop - part.start), np.arange(part.start, part.stop)] = -np.inf
        genes, neighbours = np.nonzero(_largest(scores, int(k)))
        edges.append((part.start + genes, neighbours))
    genes, neighbours = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    one_way = sp.csr_array((np.ones(genes.size), (genes, neighbours)), shape=(p, p))
    return Graph(sp.csr_array(one_way.maximum(one_way.T)), names)


def _standardise(block: Matrix) -> Floats:
    """Genes with mean zero and length 1, as a dense array; constant ones are zero."""
    values: Floats = to_dense(block)
    means = values.mean(axis=0)
    centred: Floats = values - means
    centred -= centred.mean(axis=0)  # the rounding error of large means
    lengths = np.linalg.norm(centred, axis=0)
    constant = lengths <= 10 * np.finfo(np.float64).eps * np.sqrt(len(values)) * np.abs(means)
    centred *= np.where(constant, 0.0, 1 / np.where(constant, 1.0, lengths))
    return centred


def _largest(scores: Floats, k: int) -> Bools:
    """The k largest positive entries of each row; of equal ones the first."""
    smallest = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k, None]
    kept = scores >= smallest
    for row in np.flatnonzero(kept.sum(axis=1) > k):  # rows with ties at the smallest
        ties = np.flatnonzero(scores[row] == smallest[row])
        kept[row, ties[ties.size - (int(kept[row].sum()) - k) :]] = False
    return np.asarray(kept & (scores > 0))
