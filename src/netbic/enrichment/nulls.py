"""Null models: numbers of edges inside a module that are expected by chance, given the degrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.arrays import Array, Bools, Floats, Indices, RandomState
from netbic.graphs import Graph

Counts = NDArray[np.int64]

_BIN_WIDTH = 0.15  # degrees in a bin differ by about this share
_ENTRIES = 4_000_000  # neighbours per batch


def edges_inside(masks: Bools, graph: Graph) -> Counts:
    """Number of edges between the members of each module."""
    return np.array([graph.subgraph(mask).n_edges for mask in masks], dtype=np.int64)


def degree_bins(degrees: Indices) -> Indices:
    """The bin of each node: isolated nodes, then bins 15% wide in degree.

    Bins must not be wider: in the top one of ten bins of equal size, which has most edges, degrees differ tenfold. A
    hub without nodes of similar degree is alone in its bin.
    """
    steps = np.floor(np.log(np.maximum(degrees, 1)) / np.log1p(_BIN_WIDTH)) + 1
    return np.asarray(np.unique(np.where(degrees == 0, 0, steps), return_inverse=True)[1], dtype=np.intp)


def without_peers(masks: Bools, graph: Graph) -> Floats:
    """Expected share of a module's nodes in a degree-matched set; near 1, the module is compared with itself."""
    bins = degree_bins(graph.degrees)
    sizes = np.bincount(bins, minlength=int(bins.max(initial=0)) + 1)
    inside = np.array([np.bincount(bins[mask], minlength=sizes.size) for mask in masks]).reshape(-1, sizes.size)
    return np.asarray((inside**2 / np.maximum(sizes, 1)).sum(axis=1) / np.maximum(masks.sum(axis=1), 1))


def degree_matched_counts(masks: Bools, graph: Graph, n_draws: int, random_state: RandomState) -> Counts:
    """Edges inside random sets with the module's number of nodes in every degree bin: (n_modules, n_draws)."""
    generator = np.random.default_rng(random_state)
    bins = degree_bins(graph.degrees)
    upward = _upward(graph)
    pools = [np.flatnonzero(bins == number) for number in range(int(bins.max(initial=0)) + 1)]
    counts = np.zeros((len(masks), n_draws), dtype=np.int64)
    for row, mask in zip(counts, masks, strict=True):
        wanted = np.bincount(bins[mask], minlength=len(pools))
        draws = [
            sampled(pool, int(count), n_draws, generator) for pool, count in zip(pools, wanted, strict=True) if count
        ]
        if draws:
            row[:] = _edges_in_sets(np.hstack(draws), upward)
    return counts


def rewired_counts(masks: Bools, graph: Graph, n_draws: int, random_state: RandomState) -> Counts:
    """Edges inside the modules in rewired graphs: (n_modules, n_draws)."""
    rewired = graph.rewired_edges(random_state)
    counts = np.zeros((len(masks), n_draws), dtype=np.int64)
    for draw in range(n_draws):
        tails, heads, *_ = next(rewired)
        counts[:, draw] = [np.count_nonzero(mask[tails] & mask[heads]) for mask in masks]
    return counts


def sampled(pool: Indices, count: int, n_draws: int, generator: np.random.Generator) -> Indices:
    """`n_draws` sets of `count` different members of a pool, a row each."""
    if 4 * count > pool.size:
        return pool[np.argsort(generator.random((n_draws, pool.size)), axis=1)[:, :count]]
    chosen = generator.integers(pool.size, size=(n_draws, count))
    while (again := _repeated(chosen)).any():
        chosen[again] = generator.integers(pool.size, size=int(again.sum()))
    return pool[chosen]


def _repeated(rows: Indices) -> Bools:
    """Entries that occur earlier in their row."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    repeated = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated


def _upward(graph: Graph) -> sp.csr_array:
    """Each edge once, in the row of its end of lower degree: the rows of hubs are then short."""
    rank = np.argsort(np.argsort(graph.degrees, kind="stable"), kind="stable")
    tails, heads, _ = graph.edges()
    up = rank[tails] < rank[heads]
    low, high = np.where(up, tails, heads), np.where(up, heads, tails)
    return sp.csr_array((np.ones(tails.size, dtype=bool), (low, high)), shape=graph.weights.shape)


def _edges_in_sets(sets: Indices, upward: sp.csr_array) -> Counts:
    """Edges inside each of many sets (a row each), from the neighbours of their members only."""
    counts = np.zeros(len(sets), dtype=np.int64)
    lengths = np.diff(upward.indptr)
    for part in _batches(lengths[sets].sum(axis=1) + upward.shape[0] // 4):  # a byte per node, eight per entry
        members = sets[part]
        inside = np.zeros((len(members), upward.shape[0]), dtype=bool)
        np.put_along_axis(inside, members, True, axis=1)
        own = lengths[members].ravel()
        ends = np.cumsum(own)
        entries = np.repeat(upward.indptr[members].ravel() - ends + own, own) + np.arange(own.sum())
        rows = np.repeat(np.repeat(np.arange(len(members)), members.shape[1]), own)
        hits = inside[rows, upward.indices[entries]]
        counts[part] = np.bincount(rows[hits], minlength=len(members))
    return counts


def _batches(sizes: Array) -> Iterator[slice]:
    """Consecutive slices whose sizes add up to at most `_ENTRIES`, where possible."""
    start, total = 0, 0
    for at, size in enumerate(sizes):
        if at > start and total + size > _ENTRIES:
            yield slice(start, at)
            start, total = at, 0
        total += int(size)
    yield slice(start, len(sizes))
