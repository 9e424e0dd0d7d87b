"""Edges as arrays: validation, canonical form, rewiring."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from netbic.arrays import Array, Bools, Floats, Indices, check_real, check_sparse, is_sparse, n_masked

Keys = NDArray[np.int64]


def as_coo(weights: Any) -> sp.coo_array:
    """A square numeric matrix, dense or sparse, as row, column and value of its entries."""
    if masked := n_masked(weights):
        raise ValueError(
            f"graph weights are a masked array and {masked:,} of its entries are masked: fill them, "
            "e.g. weights.filled(0)"
        )
    if is_sparse(weights):
        check_sparse(weights, "the graph")
    else:
        weights = np.asarray(weights)
        check_real(weights, "the graph")
    if weights.dtype.kind == "U" and not weights.ndim:
        raise ValueError(f"the graph is the text {str(weights)!r}: read a file with netbic.io.read_network")
    if weights.dtype.kind not in "fiub":
        raise ValueError(
            f"a graph cannot be made from an array of {weights.dtype}: give a square matrix of weights, "
            "a DataFrame of edges (source, target[, weight]), or a networkx or igraph graph"
        )
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"graph weights have shape {weights.shape}: a square matrix is needed")
    return sp.coo_array(weights)


def clean_csr(weights: Any, signed: bool = False) -> sp.csr_array | None:
    """A copy of a CSR matrix in canonical form (the usual case, ten times faster than the general one); else None."""
    if not isinstance(weights, (sp.csr_array, sp.csr_matrix)):
        return None
    check_sparse(weights, "the graph")
    if not weights.has_canonical_format or weights.shape[0] != weights.shape[1] or weights.dtype.kind not in "fiu":
        return None
    data = weights.data
    if data.size and not (np.isfinite(data).all() and (data.min() > 0 or (signed and data.all()))):
        return None
    turned = weights.T.tocsr()
    same = (turned.indptr == weights.indptr).all() and (turned.indices == weights.indices).all()
    if not (same and (turned.data == data).all()) or weights.diagonal().any():
        return None
    return sp.csr_array((data.astype(np.float64), weights.indices.copy(), weights.indptr.copy()), shape=weights.shape)


def canonical(
    n_nodes: int, tails: Array, heads: Array, values: Array, both_ways: bool, signed: bool = False
) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Check weights, drop loops and repeated edges, symmetrise by the larger weight; return notes on the changes.

    `both_ways`: the source is a matrix, which contains each edge in both directions, so that only differences between
    the two are noted. `signed`: weights may be negative; the larger weight is that of the larger magnitude, and pairs
    with two largest weights of different signs are dropped.
    """
    check_real(np.asarray(values), "the graph")
    values = np.asarray(values, dtype=np.float64)
    _check_weights(values, signed)
    stored = values != 0
    n_loops = int(np.sum(stored & (tails == heads)))
    keep = stored & (tails != heads)
    keys, weights, first = _grouped(edge_keys(tails[keep], heads[keep], n_nodes), values[keep])
    notes = [f"dropped {n_loops:,} self-loops"] if n_loops else []
    if both_ways:
        n_unequal = _count_unequal(weights, first, keys.size)
        notes += [f"made {n_unequal:,} one-sided or unequal pairs symmetric by the larger weight"] if n_unequal else []
    elif keys.size > first.size:
        notes += [f"dropped {keys.size - first.size:,} repeated edges, keeping the largest weight"]
    if signed and (both := contradicted(weights, first)).any():
        notes += [f"dropped {np.count_nonzero(both):,} pairs of nodes with edges of both signs"]
        first = first[~both]
    rows, columns = np.divmod(keys[first], max(n_nodes, 1))
    upper = sp.coo_array((weights[first], (rows, columns)), shape=(n_nodes, n_nodes))
    matrix = sp.csr_array(upper + upper.T)
    matrix.sort_indices()
    return matrix, tuple(notes)


def _grouped(keys: Keys, weights: Floats) -> tuple[Keys, Floats, Indices]:
    """Edges sorted by key and decreasing magnitude, and the position of the first edge of each key."""
    order = np.lexsort((-np.abs(weights), keys))
    keys, weights = keys[order], weights[order]
    new = np.ones(keys.size, dtype=bool)
    new[1:] = keys[1:] != keys[:-1]
    return keys, weights, np.flatnonzero(new)


def _count_unequal(weights: Floats, first: Indices, size: int) -> int:
    """Number of pairs that are not stored twice with the same weight."""
    if not first.size:
        return 0
    counts = np.diff(np.append(first, size))
    unequal = np.minimum.reduceat(weights, first) != np.maximum.reduceat(weights, first)
    return int(np.sum((counts != 2) | unequal))


def contradicted(weights: Floats, first: Indices) -> Bools:
    """For each group of edges, whether its largest magnitude occurs with both signs.

    Groups are consecutive, each sorted by decreasing magnitude; `first` are their first positions.

    Examples
    --------
    >>> import numpy as np
    >>> contradicted(np.array([2.0, -1.0, -3.0, 3.0]), np.array([0, 2])).tolist()
    [False, True]
    """
    if not first.size:
        return np.zeros(0, dtype=bool)
    largest = np.repeat(weights[first], np.diff(np.append(first, weights.size)))
    return np.asarray(np.logical_or.reduceat(weights == -largest, first))


def _check_weights(values: Floats, signed: bool) -> None:
    if not np.isfinite(values).all():
        raise ValueError("graph weights contain NaN or infinity: drop those edges or give them a weight")
    if values.size and values.min() < 0 and not signed:
        raise ValueError(
            f"graph weights contain {values.min():g}: weights must be non-negative, unless negative ones mean edges "
            "that inhibit (netbic.Graph(weights, signed=True)); otherwise take absolute values, or drop them"
        )


def numeric(weights: pd.Series[Any]) -> Floats:
    """Edge weights as numbers; raise an error that names the first that is not a number."""
    found = pd.to_numeric(weights, errors="coerce")
    if pd.api.types.is_complex_dtype(found.dtype):
        at = int(np.argmax(np.imag(found.to_numpy()) != 0))
        raise ValueError(f"edge {at} has weight {found.iloc[at]}, a complex number: real numbers are needed")
    numbers = found.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(np.isnan(numbers))
    if bad.size:
        raise ValueError(f"edge {bad[0]} has weight {weights.iloc[bad[0]]!r}: numbers are needed (NaN is none)")
    return numbers


def edge_columns(edges: pd.DataFrame) -> tuple[Hashable, Hashable, Hashable | None]:
    """Which columns of an edge table hold the two ends and, if any does, the weight: never the column `sign`."""
    if edges.shape[1] < 2:
        raise ValueError(f"an edge table needs two columns (source, target), this one has {edges.shape[1]}")
    columns = list(edges.columns)
    named = "source" in columns and "target" in columns
    source, target = ("source", "target") if named else (columns[0], columns[1])
    if "weight" in columns:
        return source, target, "weight"
    third = len(columns) == 3 and not named and columns[2] != "sign"
    numeric_third = third and pd.api.types.is_numeric_dtype(edges[columns[2]])
    return source, target, columns[2] if numeric_third else None


def node_labels(items: Iterable[object]) -> Array:
    """Node labels as an array: tuples stay tuples, integers stay integers."""
    labels = list(items)
    if all(isinstance(label, (int, np.integer)) and not isinstance(label, bool) for label in labels):
        return np.array(labels, dtype=np.intp)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def as_names(names: ArrayLike, size: int | None = None) -> Array:
    """Names as an integer or object array; raise an error unless they are unique and, if given, `size` many."""
    array = names.to_numpy() if isinstance(names, (pd.Index, pd.Series)) else np.asarray(names)
    array = array if np.issubdtype(array.dtype, np.integer) else array.astype(object)
    if size is not None and array.shape != (size,):
        raise ValueError(f"names have shape {array.shape} but the graph has {size} nodes: one name per node is needed")
    if not pd.Index(array).is_unique:
        raise ValueError(
            f"name {array[pd.Index(array).duplicated()][0]!r} occurs more than once: make the names unique"
        )
    return array


def swap_sweep(tails: Indices, heads: Indices, n_nodes: int, generator: np.random.Generator) -> None:
    """Propose one swap for each of n_edges / 2 random pairs of edges and perform those without conflicts.

    A pair is swapped only if its two edges and the two new ones occur once among all current and all proposed edges.
    This rule is symmetric between the old and the new graph, so that the stationary distribution is uniform over all
    graphs with these degrees.
    """
    n_pairs = tails.size // 2
    order = generator.permutation(tails.size)
    first, second = order[:n_pairs], order[n_pairs : 2 * n_pairs]
    turned = second[generator.random(n_pairs) < 0.5]  # either end of the second edge may be exchanged
    tails[turned], heads[turned] = heads[turned].copy(), tails[turned].copy()
    a, b, c, d = tails[first], heads[first], tails[second], heads[second]
    proposed = edge_keys(a, d, n_nodes), edge_keys(c, b, n_nodes)
    unique = _unique(np.concatenate([edge_keys(tails, heads, n_nodes), *proposed]), generator)
    present, new = unique[: tails.size], unique[tails.size :].reshape(2, n_pairs)
    accept = present[first] & present[second] & new.all(axis=0) & (a != d) & (c != b)
    heads[first[accept]], heads[second[accept]] = d[accept], b[accept]


def _unique(keys: Keys, generator: np.random.Generator) -> Bools:
    """Which keys have a unique hash; the hash function is random, so that collisions do not bias the result."""
    bits = max(int(keys.size).bit_length() + 4, 8)
    factor = np.uint64(generator.integers(2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1))
    places = (keys.astype(np.uint64) * factor) >> np.uint64(64 - bits)
    owner = np.empty(1 << bits, dtype=np.int32)  # read only where it is written
    numbers = np.arange(keys.size, dtype=np.int32)
    owner[places] = numbers
    shared = np.zeros(1 << bits, dtype=bool)
    shared[places[owner[places] != numbers]] = True
    return np.asarray(~shared[places])


def edge_keys(tails: Indices, heads: Indices, n_nodes: int) -> Keys:
    """One number per undirected edge."""
    return np.minimum(tails, heads).astype(np.int64) * n_nodes + np.maximum(tails, heads)
