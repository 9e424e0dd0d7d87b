"""One module, as the page shows it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Array
from netbic.enrichment import ONE_SIDE
from netbic.estimators import heaviest
from netbic.report.figures import BoxPlot, SampleScores, Strip, SurvivalPlot
from netbic.report.judgement import Diagnostic, Replicated, Verdict, default_size, diagnostics
from netbic.report.pictures import Heatmap, Subnetwork

Row = dict[str, Any]  # of a table, by column

_IN_NAMES, _LEADING = 3, 5  # genes in the names of modules, and in what netbic fit prints
_TOP_MEMBERS, _HIGHEST, _LOWEST = 15, 8, 7


class Members(NamedTuple):
    """Genes or samples of a module, by decreasing absolute weight."""

    positions: NDArray[np.intp]  # in the data
    weights: NDArray[np.float64]
    names: list[str]

    @classmethod
    def of(cls, vector: Array, names: Array) -> Members:
        """The members with weights in a vector."""
        at = heaviest(vector)
        return cls(at, vector[at].astype(np.float64), [str(name) for name in names[at]])

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


@dataclass(frozen=True, kw_only=True)
class ModulePage:
    """One module, as the page shows it; `number` counts from 0 as in the tables, `label` from 1 as in the page."""

    number: int
    name: str  # a gene set or its leading genes
    summary: Row
    genes: Members
    samples: Members
    n_samples: int  # of the data
    selected: bool  # whether samples were selected for their extreme scores
    recurrent: Sequence[str]  # its leading genes that lead half of the modules or more
    network: Subnetwork | None
    heatmap: Heatmap | None
    strips: Sequence[Strip]  # above the heatmap
    edges: Row | None
    level: float  # largest adjusted p-value at which edges are enriched
    terms: list[Row]
    n_terms: int
    verdict: Verdict | None
    replication: Replicated | None  # in another study
    scores: SampleScores | None
    findings: Sequence[str]  # its strongest associations with the sample table
    plots: Sequence[BoxPlot | SurvivalPlot]  # of scores and survival, the smallest q-value first

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
        if not self.keeps_all_samples:
            return {"samples": self.samples.names}
        if self.scores is None:
            return {}
        names = dict(zip(self.samples.positions.tolist(), self.samples.names, strict=True))
        groups = {f"samples {group}": self.scores.members(group) for group in ("up", "down")}
        return {label: [names[at] for at in found.tolist()] for label, found in groups.items() if found.size}

    def copies(self, with_samples: bool) -> list[tuple[str, str, int]]:
        """Lists that can be copied: "gene" or "sample", "up" or "down", and how many names there are."""
        found = [("gene", "up", self.n_up), ("gene", "down", len(self.genes.positions) - self.n_up)]
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
        return list(diagnostics(self))

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
        return default_size(self.summary.get("default_size", {}), sizes)

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
    def row_names(self) -> list[tuple[float, str]]:
        """Names of the leading genes, and where their rows are in the heatmap, in percent of its height."""
        return [] if self.heatmap is None else self.heatmap.row_names(*self.genes)

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


def distinct_terms(terms: list[Row], most: int = 3, shared: float = 0.5) -> list[Row]:
    """The most significant gene sets, without those that consist mostly of genes of one before.

    Examples
    --------
    >>> terms = [{"name": "mitosis", "genes": "A, B, C"}, {"name": "cell cycle", "genes": "A, B"}]
    >>> [term["name"] for term in distinct_terms(terms)]
    ['mitosis']
    """
    kept: list[tuple[set[str], Row]] = []
    for term in terms:
        genes = set(str(term["genes"]).split(", "))
        if all(len(genes & other) < shared * min(len(genes), len(other)) for other, _ in kept):
            kept.append((genes, term))
    return [term for _, term in kept[:most]]
