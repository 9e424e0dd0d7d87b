"""One module, as the page shows it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.enrichment import DEFAULT_LEVEL, ONE_SIDE
from netbic.penalties import DIAGNOSTICS
from netbic.report.associations import distinct_terms
from netbic.report.box_plots import BoxPlot
from netbic.report.heatmaps import Heatmap, picture, row_names
from netbic.report.judgement import NO_EVIDENCE, Diagnostic, Replicated, Verdict, repetition
from netbic.report.network import Subnetwork
from netbic.report.samples import SampleScores
from netbic.report.strips import Strip
from netbic.report.survival_curves import SurvivalPlot
from netbic.solver import LARGE_GRAPH_SHARE, LOW_RANK

Row = dict[str, Any]  # of a table, by column

_HUB_SHARE, _FEW_EDGES, _BEYOND_EQUALS = 0.5, 10, 0.2
_IN_NAMES, _LEADING = 3, 5  # genes in the names of modules, and in what netbic fit prints
_TOP_MEMBERS, _HIGHEST, _LOWEST = 15, 8, 7
_AXES = {"rows": "sample", "columns": "gene"}
_END = {"rows": "which samples belong to the module", "columns": "where the module ends"}


def _why(axis: str, reason: str) -> str:
    """Why the data do not determine a size."""
    return DIAGNOSTICS[reason].format(axis=_AXES[axis])


class Members(NamedTuple):
    """Genes or samples of a module, by decreasing absolute weight."""

    positions: NDArray[np.intp]  # in the data
    weights: NDArray[np.float64]
    names: list[str]

    @property
    def top(self) -> list[tuple[str, float]]:
        """Names and weights of the first few."""
        return list(zip(self.names[:_TOP_MEMBERS], self.weights[:_TOP_MEMBERS].tolist(), strict=True))

    @property
    def extremes(self) -> list[tuple[str, float]]:
        """Names and weights of the highest and of the lowest, by decreasing weight."""
        order = np.argsort(-self.weights, kind="stable")
        shown = order if order.size <= _TOP_MEMBERS else np.concatenate([order[:_HIGHEST], order[-_LOWEST:]])
        return [(self.names[at], float(self.weights[at])) for at in shown]

    def for_script(self) -> list[list[float]]:
        """Pairs of position and weight."""
        pairs = zip(self.positions.tolist(), self.weights.tolist(), strict=True)
        return [[position, float(f"{weight:.4g}")] for position, weight in pairs]


@dataclass(frozen=True)
class ModulePage:
    """One module, as the page shows it; `number` counts from 0 as in the tables, `label` from 1 as in the page."""

    number: int
    summary: Row
    genes: Members
    samples: Members
    network: Subnetwork | None
    heatmap: Heatmap | None
    edges: Row | None
    terms: list[Row]
    n_terms: int
    level: float = DEFAULT_LEVEL  # largest adjusted p-value at which edges are enriched
    verdict: Verdict | None = None
    scores: SampleScores | None = None
    n_samples: int = 0  # of the data
    recurrent: tuple[str, ...] = ()  # its leading genes that lead half of the modules or more
    selected: bool = False  # whether samples were selected for their extreme scores
    name: str = ""  # a gene set or its leading genes
    findings: tuple[str, ...] = ()  # its strongest associations with the sample table
    plots: tuple[BoxPlot | SurvivalPlot, ...] = ()  # of scores and survival, the smallest q-value first
    strips: tuple[Strip, ...] = ()  # above the heatmap
    replication: Replicated | None = None  # in another study

    @property
    def label(self) -> int:
        """The number of the module in the page."""
        return self.number + 1

    @property
    def n_up(self) -> int:
        """The number of genes with positive weights."""
        return int((self.genes.weights > 0).sum())

    @property
    def leading_genes(self) -> list[str]:
        """The genes with the largest absolute weights; none if the name shows them."""
        shown = self.name.endswith(", ".join(self.genes.names[:_IN_NAMES]))
        return [] if shown else self.genes.names[:_LEADING]

    @property
    def studies(self) -> str:
        """In which studies it lives; "" for one study, and for a doubtful module, which may be noise."""
        is_doubtful = self.verdict is not None and self.verdict.kind == "doubtful"
        return "" if is_doubtful else str(self.summary.get("studies", ""))

    def side_of(self, term: Row) -> str:
        """The side of at least 80 % of the genes that a gene set has in the module, otherwise "up and down"."""
        own = self.genes.weights[np.isin(self.genes.names, str(term["genes"]).split(", "))]
        n_down = int((own < 0).sum())
        if own.size and n_down >= ONE_SIDE * own.size:
            return "down"
        return "up" if own.size - n_down >= ONE_SIDE * own.size else "up and down"

    @property
    def leading_terms(self) -> list[Row]:
        """The most significant gene sets, without those that repeat one before."""
        return distinct_terms(self.terms)

    @property
    def keeps_all_samples(self) -> bool:
        """Whether no samples were selected."""
        return len(self.samples.positions) == self.n_samples

    @property
    def sample_names(self) -> dict[str, list[str]]:
        """Names of the samples that are up and down; of all members if samples were selected."""
        names = dict(zip(self.samples.positions.tolist(), self.samples.names, strict=True))
        if not self.keeps_all_samples:
            return {"samples": self.samples.names}
        if self.scores is None:
            return {}
        groups = {f"samples {group}": self.scores.members(group) for group in ("up", "down")}
        return {label: [names[at] for at in found.tolist()] for label, found in groups.items() if found.size}

    def copies(self, with_samples: bool) -> list[tuple[str, str, int]]:
        """Lists that can be copied: "gene" or "sample", "up" or "down", and how many names there are."""
        n_genes = len(self.genes.positions)
        found = [("gene", "up", self.n_up), ("gene", "down", n_genes - self.n_up)]
        if with_samples and self.scores is not None:
            found += [("sample", side, int((self.scores.groups == side).sum())) for side in ("up", "down")]
        elif with_samples and not self.keeps_all_samples:
            n_up = int((self.samples.weights > 0).sum())
            found += [("sample", "up", n_up), ("sample", "down", len(self.samples.positions) - n_up)]
        return [one for one in found if one[2]]

    @property
    def samples_in_words(self) -> str:
        """How many samples were selected; otherwise groups of samples, if they are known."""
        kept = len(self.samples.positions)
        if self.selected:
            n_up = int((self.samples.weights > 0).sum())
            return f"{kept:,} of {self.n_samples:,} selected ({n_up:,} up, {kept - n_up:,} down)"
        if self.scores is not None:
            return self.scores.in_words
        return f"all {kept:,}" if self.keeps_all_samples else f"{kept:,} of {self.n_samples:,}"

    @property
    def ranked_samples(self) -> list[tuple[str, float]]:
        """Samples with the highest and lowest scores if all are kept, otherwise those with the largest weights."""
        if not self.keeps_all_samples:
            return self.samples.top
        if self.scores is None:
            return self.samples.extremes
        known = np.isfinite(self.scores.scores[self.samples.positions])
        scores = self.scores.scores[self.samples.positions[known]]
        names = [name for name, seen in zip(self.samples.names, known.tolist(), strict=True) if seen]
        return Members(self.samples.positions[known], scores, names).extremes

    @cached_property
    def details(self) -> list[Diagnostic]:
        """What a reader should know before relying on the module."""
        return list(self._diagnostics())

    @property
    def diagnostics(self) -> list[str]:
        """The same as badges."""
        return [diagnostic.badge for diagnostic in self.details]

    def _diagnostics(self) -> Iterator[Diagnostic]:
        own = self.summary
        if not own["converged"]:
            yield Diagnostic("not converged", "not converged", "The search stopped before the module was stable.")
        if text := self._graph_drives_it():
            yield Diagnostic("graph-driven", "graph-driven", text)
        yield from self._explained_edges()
        if own.get("repeats", -1) >= 0 and (self.verdict is None or self.verdict.kind != "repeats"):
            yield repetition(own)
        if self.recurrent:
            verb = "is" if len(self.recurrent) == 1 else "are"
            text = f"{', '.join(self.recurrent)} {verb} among the ten leading genes of half of the modules or more."
            yield Diagnostic("same leading genes", "same leading genes", text)
        for axis, reason in own.get("size_diagnostics", {}).items():
            text = f"The data do not determine how many {_AXES[axis]}s belong to it: {_why(axis, reason)}."
            yield Diagnostic("size not identified", "size not identified", text)

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of what a reader should know, and the sentence of each, "" if there is none."""
        known = {"not judged" if self.verdict.kind == "unknown" else self.verdict.kind: ""} if self.verdict else {}
        known |= {"default size": ""} if "columns" in self.summary.get("default_size", {}) else {}
        return known | {one.kind: one.text for one in self.details}

    @property
    def default_size(self) -> str:
        """Why the size is the default one; "" if it was chosen or given."""
        sizes = {"rows": len(self.samples.positions), "columns": len(self.genes.positions)}
        return " ".join(
            f"The data do not show {_END[axis]}, because {_why(axis, reason)}. So the default size, "
            f"{sizes[axis]:,} {_AXES[axis]}s, was used."
            for axis, reason in self.summary.get("default_size", {}).items()
        )

    def _graph_drives_it(self) -> str:
        """Why the network dominates the data; "" if it does not."""
        share, rank, reasons = self.summary["graph_share"], self.summary.get("worst_rank", 0), list[str]()
        if share > LARGE_GRAPH_SHARE and not self.summary.get("chosen", False):
            reasons.append(f"{share:.0%} of the scores of its genes come from the network.")
        if rank > LOW_RANK:
            reasons.append(f"A leading gene has rank {rank:,} by the data alone.")
        return " ".join(reasons)

    def _explained_edges(self) -> Iterator[Diagnostic]:
        """Whether its edges are those of hubs, or of genes with such degrees, means and variances."""
        explained, also = self._degrees_explain_it(), self.also_matched
        similar = f"with as many neighbours{f' and a similar {also}' if also else ''}"
        text = f"More edges than among random genes, but not more than among random genes {similar}. {NO_EVIDENCE}"
        if explained and also:
            yield Diagnostic("edges as expected", "edges as expected", text)
        if self._few_hubs():
            yield Diagnostic(
                "hub-driven", "hub-driven", f"Half or more of the edges involve three genes. {NO_EVIDENCE}"
            )
        elif explained and not also:
            yield Diagnostic("hub-driven", "hub-driven", text)

    def _few_hubs(self) -> bool:
        """Whether three members have half of the edges: many more than if all members had the same degree."""
        drawn = self.network
        if drawn is None or drawn.n_edges < _FEW_EDGES:
            return False
        joined = len(drawn.nodes)
        equals = 1 - (joined - 3) * (joined - 4) / (joined * (joined - 1)) if joined > 4 else 1.0
        return drawn.hub_share >= max(_HUB_SHARE, equals + _BEYOND_EQUALS)

    def _degrees_explain_it(self) -> bool:
        """More edges than random genes (the paper's test), but not more than random genes of the same degrees."""
        return (
            self.comparable
            and self.edges is not None
            and self.edges["q_value"] <= self.level < self.edges["degree_q_value"]
        )

    @property
    def comparable(self) -> bool:
        """Whether other genes have the same degrees; otherwise random sets of such genes are the module itself."""
        edges = self.edges
        return edges is not None and not np.isclose(edges["degree_expected"], edges["n_edges"], rtol=1e-6)

    @property
    def also_matched(self) -> str:
        """In what else than degrees random genes are similar: "", "mean" or "mean and variance"."""
        similar = "degree" if self.edges is None else str(self.edges.get("degree_matched_on", "degree"))
        return " and ".join(similar.split(", ")[1:])

    @property
    def picture(self) -> str:
        """The heatmap as an image."""
        return "" if self.heatmap is None else picture(self.heatmap.values)

    @property
    def row_names(self) -> list[tuple[float, str]]:
        """Names of the leading genes, and where their rows are in the heatmap, in percent of its height."""
        own = self.genes
        return [] if self.heatmap is None else row_names(self.heatmap, own.positions, own.weights, own.names)

    @property
    def group_strip(self) -> str:
        """The groups of the samples in the heatmap as an image; "" if there are none."""
        if self.heatmap is None or self.scores is None or self.scores.is_gradient:
            return ""
        return self.scores.strip(self.heatmap.samples)

    def for_script(self, with_samples: bool = True) -> dict[str, Any]:
        """What the script of the page needs in addition to the text."""
        content: dict[str, Any] = {"genes": self.genes.for_script(), "samples": []}
        if with_samples:
            content["samples"] = self.samples.for_script()
            content |= {} if self.scores is None else self.scores.for_script()
        if self.network is not None:
            content["edges"] = self.network.edges.ravel().tolist()
        if self.heatmap is not None:
            levels = (self.heatmap.values.astype(np.int16) + 128).astype(np.uint8)
            content["heatmap"] = {
                "genes": self.heatmap.genes.tolist(),
                "samples": self.heatmap.samples.tolist(),
                "limit": float(f"{self.heatmap.limit:.4g}"),
                "levels": base64.b64encode(levels.tobytes()).decode(),
                "strips": [strip.variable for strip in self.strips],
            }
        return content
