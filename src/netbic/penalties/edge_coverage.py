r"""The k edges of a graph whose ends have the largest sum of weights: a matching problem, solved by augmenting paths.

Give every node a second neighbour of its own, of weight zero, so that an edge may also cover a single node. Edges that
share a node can then be replaced by edges that do not, with the same nodes covered. So the problem is to find a
matching of k edges with the largest sum of weights of matched nodes.

Such matchings are found for 1, 2, ..., k edges in turn: from the best matching of j edges, the augmenting path with the
largest gain leads to one of j + 1 edges that is the best. (In the symmetric difference of both matchings all components
but one augmenting path leave, alone or in pairs, the number of edges the same, and cannot have a positive gain.) All
inner nodes of an augmenting path stay matched, so its gain is the sum of the weights of its two ends. Paths are found
by Edmonds' search with contraction of odd cycles (1965).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Floats, Indices
from netbic.penalties.coverage import BETTER, Coverage

_MOST_WORK: Final = 500_000  # k times the number of edges, up to which the best edges are searched for
_FREE, _ALONE = -1, -2  # instead of a partner: the node is not covered; it is covered without its partner


class EdgeCoverage(Coverage):
    """The edges of a graph, as groups of two nodes.

    Parameters
    ----------
    tails, heads : arrays
        Both ends of every edge.
    n_nodes : int
    """

    def __init__(self, tails: Indices, heads: Indices, n_nodes: int) -> None:
        ends = np.column_stack([tails, heads]).ravel()
        starts = np.arange(0, ends.size + 1, 2)
        super().__init__(sp.csr_array((np.ones(ends.size), ends, starts), shape=(tails.size, n_nodes)))
        self._ends = tails, heads

    @cached_property
    def _neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The neighbours of every node, and the edges to them."""
        tails, heads = self._ends
        n_nodes = self.incidence.shape[1]
        first, second = np.concatenate([tails, heads]), np.concatenate([heads, tails])
        order = np.argsort(first, kind="stable")
        bounds = np.searchsorted(first[order], np.arange(1, n_nodes))
        nodes, edges = second[order], np.tile(np.arange(tails.size), 2)[order]
        return [part.tolist() for part in np.split(nodes, bounds)], [part.tolist() for part in np.split(edges, bounds)]

    def is_solved(self, k: int) -> bool:
        """Whether the best edges are found; otherwise as for other groups."""
        return k * self.incidence.shape[0] <= _MOST_WORK

    def best(self, weights: Floats, k: int, previous: Indices | None = None) -> Indices:
        """At most k edges, in increasing order; the `previous` ones unless others are better."""
        if self.is_disjoint or not self.is_solved(k):
            return super().best(weights, k, previous)
        found = self._matched(weights, k)
        if previous is not None and self.total(found, weights) <= BETTER * self.total(previous, weights):
            return previous
        return found

    def bound(self, weights: Floats, k: int) -> float:
        """The largest sum of weights of the ends of k edges, or an upper bound of it."""
        if self.is_disjoint or not self.is_solved(k):
            return super().bound(weights, k)
        return self.total(self._matched(weights, k), weights)

    def _matched(self, weights: Floats, k: int) -> Indices:
        neighbours, edges = self._neighbours
        matching = _Matching(neighbours, weights.tolist())
        connected = np.flatnonzero((weights > 0) & np.array([bool(near) for near in neighbours]))
        order = connected[np.argsort(-weights[connected], kind="stable")].tolist()
        for _ in range(k):
            order = [node for node in order if matching.partner[node] == _FREE]
            if not order:
                break
            matching.extend(order)
        chosen = set()
        for node, partner in enumerate(matching.partner):
            if partner != _FREE:
                place = 0 if partner == _ALONE else neighbours[node].index(partner)
                chosen.add(edges[node][place])
        return np.array(sorted(chosen), dtype=np.intp)


class _Matching:
    """A matching of nodes, some of them alone, that grows by augmenting paths."""

    def __init__(self, neighbours: list[list[int]], weights: list[float]) -> None:
        self.neighbours, self.weights = neighbours, weights
        self.partner = [_FREE] * len(weights)

    def extend(self, free: list[int]) -> None:
        """Add one edge with the largest gain; `free` are the nodes not covered yet, the largest weight first."""
        weights, path = self.weights, _Tree(self, free[0])
        gain = weights[free[0]] + path.gain
        for root, following in pairwise(free[1:]):
            if weights[root] + weights[following] <= gain:
                break  # pairs with an earlier node have been examined
            tree = _Tree(self, root)
            if weights[root] + tree.gain > gain:
                path, gain = tree, weights[root] + tree.gain
        path.augment()


class _Tree:
    """All alternating paths from a free node; `end` is the heaviest other free node that they reach, or -1."""

    def __init__(self, matching: _Matching, root: int) -> None:
        self._matching, self._root = matching, root
        self._partner, self._parent = matching.partner, dict[int, int]()
        self._base: dict[int, int] = {}  # of the contracted cycle that a node belongs to, if it does
        self._outer = {root}
        self._queue = [root]
        self.end = -1
        for node in self._queue:  # which grows
            self._scan(node)

    @property
    def gain(self) -> float:
        """The weight of the end of the best path."""
        return self._matching.weights[self.end] if self.end >= 0 else 0.0

    def augment(self) -> None:
        """Exchange the edges of the best path; the root is covered alone if there is none."""
        if self.end < 0:
            self._partner[self._root] = _ALONE
            return
        node = self.end
        while node != _FREE:
            before = self._parent[node]
            following = self._partner[before]
            self._partner[node], self._partner[before] = before, node
            node = following

    def _scan(self, node: int) -> None:
        """Follow the edges from an outer node, one that is reached by a path of an even number of edges."""
        partner, weights = self._partner, self._matching.weights
        for other in self._matching.neighbours[node]:
            mate = partner[other]
            if mate in (node, _ALONE) or self._base_of(node) == self._base_of(other):
                continue
            if other == self._root or (mate >= 0 and mate in self._parent):
                self._contract(node, other)
            elif other not in self._parent:
                self._parent[other] = node
                if mate >= 0:
                    self._add_outer(mate)
                elif weights[other] > self.gain:
                    self.end = other

    def _base_of(self, node: int) -> int:
        return self._base.get(node, node)

    def _add_outer(self, node: int) -> None:
        if node not in self._outer:
            self._outer.add(node)
            self._queue.append(node)

    def _contract(self, one: int, other: int) -> None:
        """Contract the odd cycle that an edge between two outer nodes closes."""
        base, inside = self._common_base(one, other), set[int]()
        self._mark(one, base, other, inside)
        self._mark(other, base, one, inside)
        matched = {self._partner[node] for node in self._outer if node != self._root}
        for node in self._outer | matched:
            if self._base_of(node) in inside:
                self._base[node] = base
                self._add_outer(node)

    def _common_base(self, one: int, other: int) -> int:
        seen, node = set[int](), self._base_of(one)
        while True:
            seen.add(node)
            if self._partner[node] == _FREE:
                break
            node = self._base_of(self._parent[self._partner[node]])
        node = self._base_of(other)
        while node not in seen:
            node = self._base_of(self._parent[self._partner[node]])
        return node

    def _mark(self, node: int, base: int, child: int, inside: set[int]) -> None:
        while self._base_of(node) != base:
            mate = self._partner[node]
            inside |= {self._base_of(node), self._base_of(mate)}
            self._parent[node] = child
            child, node = mate, self._parent[mate]
