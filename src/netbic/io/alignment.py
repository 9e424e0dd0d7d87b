"""Matching a network's nodes to a matrix' genes, with an account of what matched and what did not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from netbic.graphs import Graph
from netbic.io.errors import InputError, shown
from netbic.io.names import ENSEMBL, without_version
from netbic.io.networks import Network, NetworkAccount
from netbic.io.tables import Names

_FEW = 0.05  # below this share of the smaller side a mix-up of names is likelier than a small overlap
_HUB_SHARE = 0.05  # a hub has more than this share of the connected genes as neighbours
_HUB_LEAST = 50


@dataclass(frozen=True)
class Alignment:
    """How genes of the data and nodes of the network found each other."""

    samples: int
    genes: int
    nodes: int
    matched: int
    edges_in_graph: int
    edges_kept: int
    isolated: int
    hub_bound: int
    hubs: dict[str, int]
    network: NetworkAccount | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    unmatched: tuple[str, ...] = ()

    @property
    def isolated_share(self) -> float:
        """Share of the genes without a neighbour."""
        return self.isolated / self.genes

    def to_dict(self) -> dict[str, Any]:
        """As plain values, to be written as JSON."""
        return asdict(self) | {"isolated_share": round(self.isolated_share, 4)}

    def lines(self) -> Iterator[str]:
        """The account in words, a line each."""
        yield f"data: {self.samples:,} samples x {self.genes:,} genes"
        yield from map(_in_words, self.steps)
        if self.network is None:
            return
        yield from _network_lines(self.network)
        share = self.matched / self.genes
        yield f"matched: {self.matched:,} of {self.genes:,} genes ({share:.0%}), {self.nodes:,} nodes in the network"
        yield f"edges between them: {self.edges_kept:,} of {self.edges_in_graph:,}"
        yield f"genes without a neighbour: {self.isolated:,} ({self.isolated_share:.0%})"
        if self.hubs:
            named = ", ".join(f"{name} ({degree:,})" for name, degree in list(self.hubs.items())[:5])
            more = f" and {len(self.hubs) - 5} more" if len(self.hubs) > 5 else ""
            yield f"hubs with more than {self.hub_bound:,} neighbours: {named}{more}"


def _network_lines(account: NetworkAccount) -> Iterator[str]:
    parts = [f"{account.edges_in_file:,} edges"]
    for count, what in (
        (account.filtered, "filtered out"),
        (account.self_loops, "self-loops dropped"),
        (account.duplicates, "duplicates dropped"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    yield f"network: {', '.join(parts)}"
    if account.not_genes:
        yield f"nodes that are no genes: {account.not_genes:,} ({', '.join(account.not_genes_named)}, ...)"


def _in_words(step: dict[str, Any]) -> str:
    """A step of the preparation as a line."""
    name, named = str(step["step"]), step.get("named", [])
    count = step.get("genes", step.get("dropped"))
    line = f"prepared: {name}"
    if count is not None:
        line += f" ({count:,} {'genes dropped' if 'dropped' in step else 'genes'})"
    return line + (f": {', '.join(named[:5])}{', ...' if len(named) > 5 else ''}" if named else "")


def align(
    genes: Names,
    network: Network | Graph,
    *,
    n_samples: int = 0,
    samples: Collection[str] = (),
    steps: list[dict[str, Any]] | None = None,
) -> tuple[Graph, Alignment]:
    """Bring a network to the genes of a matrix and say what matched.

    Parameters
    ----------
    genes : array of str
        The genes, in the order of the matrix' columns; no two alike.
    network : Network or Graph
    n_samples : int
    samples : collection of str
        The samples' names, to notice a matrix that lies the wrong way round.
    steps : list, optional
        What was done to the matrix, for the account.

    Returns
    -------
    Graph, Alignment
        The graph has a node per gene.

    Raises
    ------
    InputError
        If hardly a name matches: five names of each side, and what may be wrong.
    """
    graph, account = network if isinstance(network, Network) else (network, NetworkAccount("", network.n_edges))
    if graph.names is None or np.issubdtype(graph.names.dtype, np.integer):
        graph = _by_position(graph, genes)
    inside = pd.Index(genes).isin(np.asarray(graph.names))
    matched = int(np.count_nonzero(inside))
    if matched < 2 or matched < _FEW * min(len(genes), graph.n_nodes):
        raise InputError(_mismatch(genes, graph, matched, samples))
    aligned = graph.align(genes)
    degrees = aligned.degrees
    bound = max(_HUB_LEAST, int(_HUB_SHARE * np.count_nonzero(degrees)))
    hubs = np.flatnonzero(degrees > bound)
    hubs = hubs[np.argsort(-degrees[hubs], kind="stable")]
    return aligned, Alignment(
        samples=n_samples or len(samples),
        genes=len(genes),
        nodes=graph.n_nodes,
        matched=matched,
        edges_in_graph=graph.n_edges,
        edges_kept=aligned.n_edges,
        isolated=int(np.count_nonzero(degrees == 0)),
        hub_bound=bound,
        hubs={str(genes[at]): int(degrees[at]) for at in hubs},
        network=account,
        steps=list(steps or []),
        unmatched=tuple(str(gene) for gene in genes[~inside][:20]),
    )


def unaligned(genes: Names, n_samples: int, steps: list[dict[str, Any]]) -> Alignment:
    """The account where there is no network."""
    return Alignment(n_samples, len(genes), 0, 0, 0, 0, len(genes), 0, {}, None, list(steps))


def _by_position(graph: Graph, genes: Names) -> Graph:
    """Node i is gene i."""
    if graph.n_nodes != len(genes):
        raise InputError(
            f"the network has {graph.n_nodes:,} nodes without names but there are {len(genes):,} genes: "
            "give the nodes' names (--graph-names FILE, a line each)"
        )
    return Graph(graph.weights, genes)


# ----------------------------------------------------------------------------------------------------------------
# Names that do not match
# ----------------------------------------------------------------------------------------------------------------


def _mismatch(genes: Names, graph: Graph, matched: int, samples: Collection[str]) -> str:
    nodes = np.asarray(graph.names)
    mine, theirs = (", ".join(shown(str(name)) for name in some[:5]) for some in (genes, nodes))
    found = "no gene of the data is" if not matched else f"only {matched:,} of {len(genes):,} genes of the data are"
    return f"{found} in the network (data: {mine}; network: {theirs}). {_hint(genes, nodes, samples)}"


def _hint(genes: Names, nodes: Names, samples: Collection[str]) -> str:
    """The likeliest reason why names do not match, found by trying."""
    known = set(map(str, nodes))
    enough = max(2, _FEW * min(len(genes), len(known)))

    def hits(names: Collection[str]) -> bool:
        return len(known.intersection(names)) >= enough

    if hits([str(sample) for sample in samples]):
        return "The samples' names match instead: genes seem to be in columns, use --samples-in-rows"
    stripped = {without_version(str(gene)) for gene in genes}
    if hits(stripped) or len({without_version(name) for name in known}.intersection(stripped)) >= enough:
        return "Ensembl versions (the .5 of ENSG00000141510.5) keep them apart: use --strip-versions"
    if len({name.upper() for name in known}.intersection(str(gene).upper() for gene in genes)) >= enough:
        return "They differ in capitals, as mouse (Trp53) and human (TP53) genes do: give an --id-map of orthologues"
    ids = [any(ENSEMBL.match(str(name)) for name in some[:50]) for some in (genes, nodes)]
    if any("ENSP" in str(name) for name in nodes[:50]):
        return "The network names proteins (ENSP...): give STRING's protein.info by --string-info"
    if ids[0] != ids[1]:
        side = (
            "data have Ensembl ids, the network has symbols" if ids[0] else "network has Ensembl ids, the data symbols"
        )
        return f"The {side}: give a two-column table by --id-map"
    if [str(genes[0]).isdigit(), str(nodes[0]).isdigit()].count(True) == 1:
        return "One side has numbers (Entrez ids?), the other names: give a two-column table by --id-map"
    return "Bring both to one kind of names, e.g. with a two-column table (--id-map)"
