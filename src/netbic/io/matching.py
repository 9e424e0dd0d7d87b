"""Matching the nodes of a network to the genes of a matrix, with a summary of what matched."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Bools
from netbic.errors import InputError, one_line, shown, some_names
from netbic.graph import Graph
from netbic.identifiers import explain_mismatch, hardly_match
from netbic.io.names import genes_as_dates
from netbic.io.networks import Network, NetworkSummary
from netbic.io.tables import NameArray, Step

_HUB_SHARE = 0.05  # a hub has more than this share of the connected genes as neighbours
_HUB_LEAST = 50


class NamesDiffer(InputError):
    """Names of the data and of others hardly match."""

    others: frozenset[str] = frozenset()  # what the data were compared with

    @classmethod
    def of(cls, text: str, others: Iterable[object]) -> NamesDiffer:
        """The error about these others."""
        problem = cls(text)
        problem.others = frozenset(map(str, others))
        return problem

    def column(self, table: pd.DataFrame) -> str | None:
        """The column of a table of genes that has the names of the others; None if no column has at least a few."""
        text = table.select_dtypes(["object", "category", "string"]).columns
        counts = {str(name): int(table[name].astype(str).isin(self.others).sum()) for name in text}
        best = max(counts, key=lambda name: counts[name], default=None)
        return None if best is None or hardly_match(counts[best], len(table), len(self.others)) else best


@dataclass(frozen=True)
class Alignment:
    """How the genes of the data and the nodes of the network were matched."""

    samples: int
    genes_in_file: int
    genes: int
    nodes: int = 0
    matched: int = 0
    edges_in_graph: int = 0
    edges_kept: int = 0
    edges_inhibiting: int = 0  # of those that are kept
    isolated: int = 0
    hub_bound: int = 0
    hubs: dict[str, int] = field(default_factory=dict)
    network: NetworkSummary | None = None
    steps: list[Step] = field(default_factory=list)
    gene_sets: dict[str, int] = field(default_factory=dict)  # sets, their genes, and how many of these the data have
    unmatched: tuple[str, ...] = ()
    first_samples: tuple[str, ...] = ()
    first_genes: tuple[str, ...] = ()
    findings: list[dict[str, Any]] = field(default_factory=list)  # of the checks before a fit

    @property
    def isolated_share(self) -> float:
        """Share of the genes without a neighbour."""
        return self.isolated / self.genes

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary of plain values, to be written as JSON; without gene sets, which may change after a fit."""
        known = asdict(self) | {"isolated_share": round(self.isolated_share, 4)}
        return {name: value for name, value in known.items() if name != "gene_sets"}

    def warnings(self) -> list[str]:
        """What the checks before a fit found, a line each."""
        return [str(finding["text"]) for finding in self.findings]

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        yield f"data: {self.samples:,} samples x {self.genes_in_file:,} genes"
        if self.first_samples and self.first_genes:
            yield f"samples: {', '.join(self.first_samples)}, ...; genes: {', '.join(self.first_genes)}, ..."
        for step in self.steps:
            count, named = step.get("genes", step.get("dropped")), step.get("named", [])
            merged = f", {step['lines merged']:,} lines merged" if "lines merged" in step else ""
            counted = "" if count is None else f" ({count:,} genes{' dropped' * ('dropped' in step)}{merged})"
            names = f": {', '.join(named[:5])}{', ...' if len(named) > 5 else ''}" if named else ""
            kept = f"; {step['unchanged']:,} keep their names" if step.get("unchanged") else ""
            yield f"preprocessed: {step['step']}{counted}{kept}{names}"
        if self.genes != self.genes_in_file:
            yield f"genes kept: {self.genes:,}"
        if self.gene_sets:
            n_sets, n_genes, n_matched = self.gene_sets.values()
            yield f"gene sets: {n_sets:,}, with {n_matched:,} of their {n_genes:,} genes in the data"
        if self.network is None:
            return
        yield from _network_lines(self.network)
        share = _percent(self.matched / self.genes)
        yield f"matched: {self.matched:,} of {self.genes:,} genes ({share}); the network has {self.nodes:,} genes"
        inhibit = f", of which {self.edges_inhibiting:,} inhibit" if self.edges_inhibiting else ""
        yield f"edges between matched genes: {self.edges_kept:,} of {self.edges_in_graph:,}{inhibit}"
        absent = self.genes - self.matched
        known = self.isolated - absent
        why = f": {absent:,} not in the network, {known:,} whose neighbours are not in the data" if known > 0 else ""
        yield f"genes without a neighbour: {self.isolated:,} ({_percent(self.isolated_share)}){why}"
        if self.hubs:
            named = some_names([f"{name} ({degree:,})" for name, degree in self.hubs.items()], 5, quoted=False)
            rule = f", {_HUB_SHARE:.0%} of the genes with a neighbour" if self.hub_bound > _HUB_LEAST else ""
            yield f"hubs (more than {self.hub_bound:,} neighbours{rule}): {named}"


def _network_lines(summary: NetworkSummary) -> Iterator[str]:
    parts, counts = [f"{summary.edges_in_file:,} edges"], (summary.filtered, summary.self_loops, summary.duplicates)
    for count, what in zip(counts, ("filtered out", "self-loops dropped", "duplicates dropped"), strict=True):
        parts += [f"{count:,} {what}"] if count else []
    if summary.columns:
        parts.append(f"columns {', '.join(summary.columns.values())}")
    if unread := summary.columns_not_read:
        parts.append(f"columns not used: {some_names(unread, 5, quoted=False)}")
    yield f"network: {', '.join(parts)}{', weighted' if summary.weighted else ''}"
    if summary.signs_from:
        read = f"read from {summary.signs_from}: {summary.inhibiting:,} edges inhibit, the others activate"
        read += f", {summary.sign_unknown:,} edges of unknown sign dropped" if summary.sign_unknown else ""
        read += f", {summary.contradictory:,} pairs with edges of both signs dropped" if summary.contradictory else ""
        yield f"signs: {read} (`signs=False` ignores them)"
    if summary.not_renamed:
        yield f"proteins without a gene name: {summary.not_renamed:,}"
    if summary.translated:
        yield f"nodes renamed by the id map: {summary.translated:,}"
    if summary.not_genes:
        yield f"nodes that are not genes: {summary.not_genes:,} ({', '.join(summary.not_genes_named)}, ...)"


def _percent(share: float) -> str:
    """A share as a percentage, never rounded to 0% or 100%."""
    return f"{share:.1%}" if 0 < share < 0.01 or 0.99 < share < 1 else f"{share:.0%}"


def align(
    genes: NameArray,
    network: Network | Graph,
    *,
    samples: Collection[str] = (),
    steps: list[Step] | None = None,
    genes_in_file: int | None = None,
) -> tuple[Graph, Alignment]:
    """Match a network to the genes of a matrix.

    Parameters
    ----------
    genes : array of str
        The genes, in the order of the columns of the matrix; no name twice.
    network : Network or Graph
    samples : collection of str
        The names of the samples; also used to recognise a transposed matrix.
    steps, genes_in_file : optional
        The preprocessing steps, and the number of genes before them, for the summary.

    Returns
    -------
    Graph, Alignment
        The graph has one node for each gene.

    Raises
    ------
    InputError
        If hardly any name matches (the message shows five names of each side and a likely reason), or no edge is left.
    """
    graph, summary = network if isinstance(network, Network) else (network, NetworkSummary("", network.n_edges))
    graph = with_names(graph, genes)
    inside = check_overlap(genes, graph, samples)
    aligned = graph.align(genes)
    if not aligned.n_edges:
        raise InputError(
            f"{np.count_nonzero(inside):,} genes of the data are in the network, but no edge connects two of them: "
            "were the right columns read as the ends of the edges? (`source` and `target` choose them)"
        )
    degrees = aligned.degrees
    bound = max(_HUB_LEAST, int(_HUB_SHARE * np.count_nonzero(degrees)))
    hubs = np.flatnonzero(degrees > bound)
    hubs = hubs[np.argsort(-degrees[hubs], kind="stable")]
    return aligned, Alignment(
        samples=len(samples),
        genes_in_file=genes_in_file or len(genes),
        genes=len(genes),
        nodes=graph.n_nodes,
        matched=int(np.count_nonzero(inside)),
        edges_in_graph=graph.n_edges,
        edges_kept=aligned.n_edges,
        edges_inhibiting=aligned.n_inhibiting,
        isolated=int(np.count_nonzero(degrees == 0)),
        hub_bound=bound,
        hubs={str(genes[at]): int(degrees[at]) for at in hubs},
        network=summary,
        steps=list(steps or []),
        unmatched=tuple(str(gene) for gene in genes[~inside]),
        first_samples=first_names(samples),
        first_genes=first_names(genes),
    )


def first_names(names: Iterable[object]) -> tuple[str, ...]:
    """The first two names, for the summary."""
    return tuple(one_line(str(name), 40) for name in islice(names, 2))


def check_overlap(
    genes: NameArray,
    graph: Graph,
    samples: Collection[str] = (),
    *,
    from_files: bool = False,
    in_rows: bool = False,
) -> Bools:
    """Which genes are nodes of a graph; an error if hardly any is, which may name a parameter of `open_dataset`."""
    nodes = np.asarray(graph.names)
    inside = pd.Index(genes).isin(nodes)
    matched = int(np.count_nonzero(inside))
    if matched < 2 or hardly_match(matched, len(genes), graph.n_nodes):
        found = "no gene of the data is" if not matched else f"only {matched:,} of {len(genes):,} genes of the data are"
        named = f"(data: {_first(genes)}; network: {_first(nodes)})"
        why = explain_mismatch(genes, nodes, samples=samples, in_rows=in_rows)
        raise NamesDiffer.of(f"{found} in the network {named}. {why.text(from_files=from_files)}", nodes)
    return np.asarray(inside)


def _first(names: Iterable[object]) -> str:
    return ", ".join(shown(str(name)) for name in islice(names, 5))


def check_gene_sets(
    sets: Mapping[str, Iterable[str]],
    genes: NameArray,
    samples: Collection[str] = (),
    *,
    from_files: bool = False,
    in_rows: bool = False,
) -> dict[str, int]:
    """Numbers of gene sets, their genes, and those in the data: an error if there are none, a warning if hardly any."""
    members = list(dict.fromkeys(str(gene) for own in sets.values() for gene in own))
    matched = int(pd.Index(members).isin(genes.astype(str)).sum())
    if hardly_match(matched, len(genes), len(members)):
        found = (
            "no gene of the gene sets is"
            if not matched
            else f"only {matched:,} of {len(members):,} genes of the gene sets are"
        )
        why = explain_mismatch(genes, members, ("data", "gene sets"), samples, in_rows).text(from_files=from_files)
        text = f"{found} in the data (data: {_first(genes)}; gene sets: {_first(members)}). {why}"
        if not matched:
            raise NamesDiffer.of(text, members)
        warnings.warn(text, stacklevel=3)
    warn_of_dates(members, genes, "gene sets")
    return {"sets": len(sets), "genes": len(members), "in_data": matched}


def warn_of_dates(names: Iterable[object], genes: NameArray, side: str) -> None:
    """A warning if a spreadsheet changed names of a network or of gene sets to dates, which the data do not have."""
    known = set(genes.astype(str))
    if dates := {name: gene for name, gene in genes_as_dates(list(map(str, names))).items() if name not in known}:
        some = ", ".join(f"{name} is {gene}" if gene else name for name, gene in islice(dates.items(), 3))
        what = f"{len(dates)} names of the {side} were changed to dates by a spreadsheet ({some})"
        remedy = "use a file that no spreadsheet program has saved, or rename them (`id_map`)"
        warnings.warn(f"{what}: {remedy}", stacklevel=3)


def is_numbered(graph: Graph) -> bool:
    """Whether the nodes have no names, or only their positions."""
    return graph.names is None or np.array_equal(graph.names, np.arange(graph.n_nodes))


def with_names(graph: Graph, genes: NameArray, *, from_files: bool = False) -> Graph:
    """A graph whose nodes have names: its own (numbers as text), otherwise those of the genes, in their order."""
    if graph.names is not None and not np.issubdtype(graph.names.dtype, np.integer):
        return graph
    if graph.names is not None:
        numbers = graph.names.astype(str).astype(object)
        if np.isin(numbers, genes.astype(str)).any():
            return graph.renamed(numbers)
    if not is_numbered(graph) or graph.n_nodes != len(genes):
        what = f"the network has {graph.n_nodes:,} nodes without names but there are {len(genes):,} genes"
        source = " (from a file with one name per line: `graph_names`)" if from_files else ""
        raise InputError(f"{what}: name the nodes{source}")
    return graph.renamed(genes)
