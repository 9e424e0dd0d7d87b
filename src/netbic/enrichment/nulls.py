"""Null models: numbers of edges inside a module that are expected by chance, given degrees and other traits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata

from netbic.arrays import Array, Bools, Floats, Indices, RandomState
from netbic.enrichment.sequential import is_decided
from netbic.graph import Graph

Counts = NDArray[np.int64]

_BIN_WIDTH = 0.15  # degrees in a bin differ by about this share
_ENTRIES = 4_000_000  # neighbours per batch
_QUANTILES = (20, 10, 5)  # bins of a trait: the most with which a module is not mostly compared with itself
MOSTLY_ITSELF = 0.5
_RAKING_ROUNDS = 50


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


def trait_bins(trait: Floats, n_bins: int) -> Indices:
    """The bin of each node: quantiles of a trait such as the mean; ties share a bin."""
    ranks = np.ceil(rankdata(trait)) - 1
    return np.asarray(np.unique(ranks * n_bins // max(trait.size, 1), return_inverse=True)[1], dtype=np.intp)


def matching_weights(mask: Bools, margins: Sequence[Indices]) -> Floats:
    """Probabilities of drawing each node, so that random sets have the module's distribution over several bins.

    Raking: a product of one factor per margin (the bins of one trait). The expected number of nodes in every bin of
    every margin is that of the module. Unlike cells of all traits at once, this also works for hubs, of which there are
    few.
    """
    wanted = [np.bincount(bins[mask], minlength=int(bins.max(initial=0)) + 1) for bins in margins]
    weights = np.full(mask.size, float(mask.mean()))
    for _ in range(_RAKING_ROUNDS):
        for bins, counts in zip(margins, wanted, strict=True):
            found = np.bincount(bins, weights=weights, minlength=counts.size)
            weights *= np.divide(counts, found, out=np.zeros(counts.size), where=found > 0)[bins]
    return weights


def matched_counts(
    masks: Bools, graph: Graph, traits: Sequence[Floats], n_draws: int, random_state: RandomState
) -> tuple[Counts, Bools]:
    """Edges inside random sets with the module's degrees and its distribution of every trait: (n_modules, n_draws).

    Also whether traits were used. If a module has most of the nodes of similar traits, the bins are made wider, and if
    that is not enough, or if there are no traits, only degrees are matched.
    """
    generator = np.random.default_rng(random_state)
    degrees, upward = degree_bins(graph.degrees), _upward(graph)
    margins = [[trait_bins(trait, n_bins) for trait in traits] for n_bins in _QUANTILES] if traits else []
    counts, matched = np.zeros((len(masks), n_draws), dtype=np.int64), np.ones(len(masks), dtype=bool)
    for module, mask in enumerate(masks):
        candidates = (matching_weights(mask, [degrees, *bins]) for bins in margins)
        found = next((weights for weights in candidates if _own_share(mask, weights) <= MOSTLY_ITSELF), None)
        matched[module] = found is not None
        weights = np.ones(mask.size) if found is None else found
        connected = mask & (graph.degrees > 0)  # isolated nodes have no edges, so none need to be drawn
        draws = [
            _weighted(np.flatnonzero(degrees == number), weights, int(count), n_draws, generator)
            for number, count in enumerate(np.bincount(degrees[connected]))
            if count
        ]
        if draws:
            counts[module] = _edges_in_sets(np.hstack(draws), upward)
    return counts, matched


def _own_share(mask: Bools, weights: Floats) -> float:
    """Expected share of a module's own nodes in a random set, from the probabilities of drawing each node."""
    return float(np.minimum(weights[mask], 1).sum()) / max(int(mask.sum()), 1)


def _weighted(pool: Indices, weights: Floats, count: int, n_draws: int, generator: np.random.Generator) -> Indices:
    """`n_draws` sets of `count` different members of a pool, drawn one after another with the given weights."""
    pool = pool[weights[pool] > 0]
    if count >= pool.size:
        return np.tile(pool, (n_draws, 1))
    total = np.cumsum(weights[pool])
    if 4 * count * weights[pool].max() < total[-1]:  # few repeated draws, which are drawn again
        return pool[_without_repeats(total, (n_draws, count), generator)]
    chosen = np.empty((n_draws, count), dtype=np.intp)
    for part in _batches(np.full(n_draws, pool.size)):
        # The smallest of independent exponential times with these rates are such a sample.
        times = generator.exponential(1 / weights[pool], size=(len(chosen[part]), pool.size))
        chosen[part] = pool[np.argpartition(times, count - 1, axis=1)[:, :count]]
    return chosen


def _without_repeats(total: Floats, shape: tuple[int, int], generator: np.random.Generator) -> Indices:
    """Rows of different numbers, given cumulative sums of their weights."""
    chosen = np.zeros(shape, dtype=np.intp)
    again = np.ones(shape, dtype=bool)
    while again.any():
        drawn = np.searchsorted(total, total[-1] * generator.random(np.count_nonzero(again)), side="right")
        chosen[again] = np.minimum(drawn, total.size - 1)
        order = np.argsort(chosen, axis=1, kind="stable")
        ordered = np.take_along_axis(chosen, order, axis=1)
        again[:] = False
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return chosen


def rewired_counts(
    masks: Bools, graph: Graph, n_draws: int, random_state: RandomState, enough: int | None = None
) -> Counts:
    """Edges inside the modules in rewired graphs: (n_modules, n_draws), or fewer draws if they decide all modules."""
    rewired, observed = graph.rewired_edges(random_state), edges_inside(masks, graph)
    counts = np.zeros((len(masks), n_draws), dtype=np.int64)
    for draw in range(n_draws):
        if draw and is_decided(observed, counts[:, :draw], enough):
            return counts[:, :draw]
        tails, heads, *_ = next(rewired)
        counts[:, draw] = [np.count_nonzero(mask[tails] & mask[heads]) for mask in masks]
    return counts


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
