"""Edges as arrays: validation, canonical form, rewiring, and the words for their signs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from netbic.arrays import Array, Floats, Indices, check_real, check_sparse, is_sparse, n_masked

LOOPS: Final = "self-loops"

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
            "a DataFrame of edges (source, target[, weight]), a networkx or igraph graph, or the `graph` of what "
            "netbic.io.read_network returns"
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
    if abs(weights - weights.T).count_nonzero() or weights.diagonal().any():
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
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("graph weights contain NaN or infinity: drop those edges or give them a weight")
    if values.size and values.min() < 0 and not signed:
        raise ValueError(
            f"graph weights contain {values.min():g}: weights must be non-negative, unless negative ones mean edges "
            "that inhibit (netbic.Graph(weights, signed=True)); otherwise take absolute values, or drop them"
        )
    matrix, counts, n_unequal = distinct_edges(n_nodes, tails, heads, values)
    repeated = (
        (n_unequal, "made {:,} one-sided or unequal pairs symmetric by the larger weight")
        if both_ways
        else (counts["duplicates"], "dropped {:,} repeated edges, keeping the largest weight")
    )
    changes = (
        (counts["self_loops"], f"dropped {{:,}} {LOOPS}"),
        repeated,
        (counts["contradictory"], "dropped {:,} pairs of nodes with edges of both signs"),
    )
    return matrix, tuple(note.format(count) for count, note in changes if count)


def distinct_edges(
    n_nodes: int, tails: Array, heads: Array, values: Floats
) -> tuple[sp.csr_array, dict[str, int], int]:
    """Symmetric weights with each pair of nodes once, with its weight of the largest magnitude; edges of weight 0 go.

    A pair whose largest weight occurs with both signs contradicts itself and is dropped. Also returns counts of what
    was dropped, and of the pairs that do not occur exactly twice with one weight, as in a symmetric matrix.
    """
    keep = (values != 0) & (tails != heads)
    keys, weights = _edge_keys(tails[keep], heads[keep], n_nodes), values[keep]
    order = np.lexsort((-np.abs(weights), keys))
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))  # of each pair: its largest weight
    times = np.diff(np.append(first, keys.size))
    unequal, both = np.zeros((2, first.size), dtype=bool)
    if first.size:
        unequal = np.minimum.reduceat(weights, first) != np.maximum.reduceat(weights, first)
        both = np.logical_or.reduceat(weights == -np.repeat(weights[first], times), first)
    counts = {
        "self_loops": int(np.count_nonzero((values != 0) & (tails == heads))),
        "duplicates": int(keys.size - first.size),
        "contradictory": int(np.count_nonzero(both)),
    }
    rows, columns = np.divmod(keys[first[~both]], max(n_nodes, 1))
    upper = sp.coo_array((weights[first[~both]], (rows, columns)), shape=(n_nodes, n_nodes))
    matrix = sp.csr_array(upper + upper.T)
    matrix.sort_indices()
    return matrix, counts, int(np.count_nonzero((times != 2) | unequal))


def numeric_weights(weights: pd.Series[Any]) -> Floats:
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


def node_names(names: ArrayLike, size: int | None = None) -> Array:
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
    proposed = _edge_keys(a, d, n_nodes), _edge_keys(c, b, n_nodes)
    keys = np.concatenate([_edge_keys(tails, heads, n_nodes), *proposed])
    # Keys are unique if their hash is; the hash function is random, so that collisions do not bias the result.
    bits = max(int(keys.size).bit_length() + 4, 8)
    factor = np.uint64(generator.integers(2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1))
    places = (keys.astype(np.uint64) * factor) >> np.uint64(64 - bits)
    owner = np.empty(1 << bits, dtype=np.int32)  # read only where it is written
    numbers = np.arange(keys.size, dtype=np.int32)
    owner[places] = numbers
    shared = np.zeros(1 << bits, dtype=bool)
    shared[places[owner[places] != numbers]] = True
    unique = ~shared[places]
    present, new = unique[: tails.size], unique[tails.size :].reshape(2, n_pairs)
    accept = present[first] & present[second] & new.all(axis=0) & (a != d) & (c != b)
    heads[first[accept]], heads[second[accept]] = d[accept], b[accept]


def _edge_keys(tails: Indices, heads: Indices, n_nodes: int) -> Keys:
    """One number per undirected edge."""
    return np.minimum(tails, heads).astype(np.int64) * n_nodes + np.maximum(tails, heads)


# Words and numbers for the sign of an edge: whether it activates or inhibits

_ACTIVATES = """+ +1 1 1.0 > -> --> activation activates activate activating activator activated stimulation stimulates
stimulate stimulating stimulator induction induces inducer upregulation upregulates upregulated up positive pos plus
positively_regulates positive_regulation enhances enhancer promotes increases agonist"""
_INHIBITS = """- -1 -1.0 \u2212 \u22121 -| |- --| -[ inhibition inhibits inhibit inhibiting inhibitor inhibited
repression represses repress repressor repressing suppression suppresses downregulation downregulates downregulated
down negative neg minus negatively_regulates negative_regulation blocks decreases antagonist"""
_UNKNOWN = """0 0.0 ? . na n/a nan none null unknown undefined unspecified unclear ambiguous both dual form_complex"""

_SIGNS: Final = ((_ACTIVATES, 1.0), (_INHIBITS, -1.0), (_UNKNOWN, 0.0))
_SIGN_WORDS: Final = {"": 0.0} | {word: sign for words, sign in _SIGNS for word in words.split()}


def sign_of(word: Any) -> float | None:
    """1 for an edge that activates, -1 for one that inhibits, 0 if the sign is not known; None for other words.

    Examples
    --------
    >>> [sign_of(word) for word in ("activates", "Inhibition", "-|", "-1", "up-regulates activity", "?", "binds")]
    [1.0, -1.0, -1.0, -1.0, 1.0, 0.0, None]
    """
    text = "" if word is None or word is pd.NA else str(word).strip().lower()
    if text in _SIGN_WORDS:
        return _SIGN_WORDS[text]
    words = re.split(r"[\s_]+", text.replace("up-reg", "upreg").replace("down-reg", "downreg"))
    if words[0] in ("upregulates", "downregulates"):  # SIGNOR: "up-regulates quantity by expression"
        return _SIGN_WORDS[words[0]]
    return _SIGN_WORDS.get("_".join(words)) if len(words[0]) > 1 else None


def signs_of(words: Iterable[Any]) -> Floats:
    """The signs of edges: 1, -1, or 0 where the sign is not known; an error that names words without a meaning."""
    codes, levels = pd.factorize(np.asarray(list(words), dtype=object), use_na_sentinel=True)
    found = [sign_of(level) for level in levels]
    odd = [str(level) for level, sign in zip(levels, found, strict=True) if sign is None]
    if odd:
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        raise ValueError(
            f"the sign of an edge is {', '.join(map(repr, odd[:5]))}{more}: 1 and -1, + and -, activation and "
            "inhibition and similar words are known; replace others, by 'unknown' to drop their edges, or drop the "
            "column `sign` to keep all edges without signs"
        )
    known = np.array([*(0.0 if sign is None else sign for sign in found), 0.0])  # the last: missing
    return np.asarray(known[codes])
