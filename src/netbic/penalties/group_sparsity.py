r"""Penalties that keep groups of entries: gene sets, or edges of a graph.

A vector may be non-zero on a union of k groups. On such a union S the maximiser of c'x over unit vectors is
c_S / |c_S|, with the value |c_S|. So the best x belongs to the union with the largest sum of squared scores:

- *Disjoint groups*: that sum is the sum over the groups, and the k groups with the largest sums are the best.
- *Groups that share entries*: see `coverage`, and `edge_coverage` for edges. The groups of the current vector are among
  the choices that are compared, hence c'x does not decrease, which is all that a half step needs for F not to decrease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from netbic.arrays import Array, Floats, Indices
from netbic.graph import Graph, match
from netbic.penalties.base import GroupShare, Kept, Penalty
from netbic.penalties.coverage import Coverage
from netbic.penalties.edge_coverage import EdgeCoverage
from netbic.penalties.groups import Groups


class GroupPenalty(Penalty):
    """Base class of penalties that keep the entries of `k` groups."""

    k: int

    def coverage(self, size: int) -> Coverage:
        """The groups of an axis of this size."""
        raise NotImplementedError(f"{type(self).__name__} has no coverage(size): a penalty of groups needs it")

    def group_name(self, group: int) -> str:
        """The name of a group."""
        raise NotImplementedError(f"{type(self).__name__} has no group_name(group): a penalty of groups needs it")

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep the positive scores of the best groups unshrunk."""
        return self.update(magnitudes, None)[0]

    def update(self, magnitudes: Floats, groups: Indices | None) -> tuple[Kept, Indices]:
        """The same, with groups that are at least as good as given ones; and the groups."""
        coverage = self.coverage(magnitudes.size)
        chosen = coverage.best(_weights(magnitudes), self.k, groups)
        support = np.flatnonzero(coverage.covered(chosen) & (magnitudes > 0))
        return Kept(support, magnitudes[support]), chosen

    def bound(self, magnitudes: Floats) -> float:
        """An upper bound of the norm of the scores in any k groups; `threshold` reaches it if groups are disjoint."""
        scale = float(magnitudes.max(initial=0.0))
        return scale * float(np.sqrt(self.coverage(magnitudes.size).bound(_weights(magnitudes), self.k)))

    def n_groups(self) -> int:
        """Return k."""
        return self.k

    def described(self, weights: Floats, chosen: Indices) -> list[GroupShare]:
        """Name, size and share of the squared weights of each of the chosen groups, the largest share first."""
        coverage, squares = self.coverage(weights.size), weights**2
        members = [coverage.members(int(group)) for group in chosen]
        rows = [
            GroupShare(self.group_name(int(group)), own.size, float(squares[own].sum()))
            for group, own in zip(chosen, members, strict=True)
        ]
        return sorted(rows, key=lambda row: -row.share)

    def _check_k(self, n_groups: int, what: str) -> None:
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool):
            raise TypeError(f"{self!r}: k must be an integer, got {self.k!r}")
        if not 1 <= self.k <= n_groups:
            raise ValueError(f"{self!r} but there are {n_groups:,} {what}: choose k from 1 to {n_groups:,}")


def _weights(magnitudes: Floats) -> Floats:
    """The squares of the positive scores, relative to the largest one, so that they cannot overflow."""
    scale = magnitudes.max(initial=0.0)
    weights: Floats = (np.maximum(magnitudes, 0.0) / scale) ** 2 if scale > 0 else np.zeros(magnitudes.size)
    return weights


@dataclass(frozen=True, repr=False)
class GroupL0(GroupPenalty):
    """Keep `k` groups of entries, such as gene sets; entries in no group are never kept.

    For disjoint groups these are the k groups with the largest sums of squared scores, the exact maximiser. For groups
    that share entries the best union of k groups is found if at most 2,000 partial choices exist (2 of 2,000 groups,
    3 of 60, 4 of 23, any number of 12). Otherwise the choice is greedy, with exchanges, its sum is at least 63% of the
    best one, and `bound` gives an upper limit. The objective never decreases in any case. Which groups a module has is
    in `groups_` of the fitted model. Larger groups have larger sums of squares, also of noise.

    Parameters
    ----------
    groups : mapping of names to members, sequence of groups, or boolean matrix (a row per group)
        Gene sets such as :func:`netbic.io.read_gene_sets` returns. Members are names, which are matched to those of X,
        or positions. Members that X lacks are left out, groups with the same members count once; both are said in a
        warning.
    k : int
        Number of groups to keep. Fewer are kept, with a warning, if no other group has a positive score to add.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> penalty = netbic.GroupL0({"a": [0, 1], "b": [2, 3], "c": [3, 4]}, k=1)
    >>> penalty
    GroupL0(groups=Groups(3 groups), k=1)
    >>> penalty.threshold(np.array([3.0, 0.0, 2.0, 2.0, 2.5])).support
    array([3, 4])
    """

    groups: Any
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", Groups.of(self.groups))

    def coverage(self, size: int) -> Coverage:
        """The groups of an axis of this size."""
        made: Coverage = self.groups.coverage(size)
        return made

    def group_name(self, group: int) -> str:
        """The name of a group."""
        return str(list(self.groups)[group])

    def for_names(self, names: Array | None, size: int, axis: str) -> Self:
        """Match members to the names of the axis."""
        matched = self.groups.matched(names, size, axis)
        return self if matched is self.groups else replace(self, groups=matched)

    def for_part(self, kept: Indices, size: int) -> Self:
        """The parts of the groups among these entries; those without any are left out."""
        groups = self.groups.among(kept, size)
        return replace(self, groups=groups, k=min(self.k, len(groups)))

    def check(self, size: int, axis: str) -> None:
        """Members must be positions below the size; k must be an integer from 1 to the number of groups."""
        low, high = self.groups.smallest_position, self.groups.largest_position
        if low < 0 or high >= size:
            raise ValueError(
                f"a group has the member {low if low < 0 else high} but X has {axis}s 0 to {size - 1}: count from 0, "
                f"or give X as a DataFrame whose {axis} names are the members"
            )
        self._check_k(len(self.groups), f"different groups with {axis}s of X")


@dataclass(frozen=True, repr=False)
class EdgeL0(GroupPenalty):
    """Keep the ends of `k` edges of a graph, at most 2k entries; entries without an edge are never kept.

    These are groups of two entries (as in the edge-group sparse PCA of Min et al. 2018): every entry that is kept has a
    neighbour in the module, though a neighbour with a score of zero is not kept. Weights of edges are not used. If k
    times the number of edges is at most 500,000, the best edges are found, by matching. For
    larger problems the choice is greedy, with exchanges, with the same guarantees as that of `GroupL0`. It can be
    combined with a graph term of the same or another graph.

    Parameters
    ----------
    graph : Graph, or anything that `SparseGraphSVD` accepts as `column_graph`
        Matched to X by name if both have names, else by position.
    k : int
        Number of edges to keep.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> path = netbic.Graph(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1))
    >>> netbic.EdgeL0(path, k=1).threshold(np.array([3.0, 0.5, 2.0, 2.0])).support
    array([0, 1])
    """

    graph: Any
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", Graph.of(self.graph))

    def coverage(self, size: int) -> Coverage:
        """The edges of an axis of this size."""
        if size != self.graph.n_nodes:
            raise ValueError(f"{self!r} but there are {size:,} scores: one per node is needed")
        return self._coverage

    @cached_property
    def _coverage(self) -> Coverage:
        tails, heads, _ = self.graph.edges()
        return EdgeCoverage(tails, heads, self.graph.n_nodes)

    def group_name(self, group: int) -> str:
        """The names (or positions) of both ends of an edge."""
        names = np.arange(self.graph.n_nodes) if self.graph.names is None else self.graph.names
        first, second = self._coverage.members(group)
        return f"{names[first]} - {names[second]}"

    def for_names(self, names: Array | None, size: int, axis: str) -> Self:
        """Match the nodes of the graph to the names of the axis."""
        matched = match(self.graph, size, names, axis)
        return self if matched is self.graph else replace(self, graph=matched)

    def for_part(self, kept: Indices, size: int) -> Self:
        """The edges between these entries."""
        graph = self.graph.subgraph(kept).renamed(None)  # by position, as the entries
        if not graph.n_edges:
            raise ValueError(f"no edge has both ends among the {kept.size:,} of {size:,} entries that are fitted")
        return replace(self, graph=graph, k=min(self.k, graph.n_edges))

    def check(self, size: int, axis: str) -> None:
        """The graph must have edges, and a node for each entry; k must be an integer from 1 to the number of edges."""
        if not self.graph.n_edges:
            raise ValueError(f"{self!r} has no edge between {axis}s of X: give another graph")
        self._check_k(self.graph.n_edges, f"edges between {axis}s of X")
