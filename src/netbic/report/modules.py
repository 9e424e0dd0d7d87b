"""One module, as the page shows it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Array
from netbic.enrichment import ONE_SIDE
from netbic.estimators import heaviest
from netbic.pl import groups_in_words
from netbic.report.figures import Figure, SampleScores
from netbic.report.judgement import Replicated, Verdict, default_size, diagnostics
from netbic.report.pictures import Heatmap, Subnetwork

Row = dict[Any, Any]  # of a table, by column

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

    def for_script(self) -> list[list[float]]:
        """Pairs of position and weight."""
        pairs = zip(self.positions.tolist(), self.weights.tolist(), strict=True)
        return [[position, float(f"{weight:.4g}")] for position, weight in pairs]


@dataclass(kw_only=True)
class ModulePage:
    """One module, as the page shows it; `number` counts from 1."""

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
    strips: Sequence[Figure]  # above the heatmap
    edges: Row | None
    level: float  # largest adjusted p-value at which edges are enriched
    terms: list[Row]
    n_terms: int
    verdict: Verdict | None
    replication: Replicated | None  # in another study
    scores: SampleScores | None
    findings: Sequence[str]  # its strongest associations with the sample table
    plots: Sequence[Figure]  # of scores and survival, the smallest q-value first

    def __post_init__(self) -> None:
        self.n_up = int((self.genes.weights > 0).sum())
        shown = self.name.endswith(", ".join(self.genes.names[:_IN_NAMES]))
        self.leading_genes = [] if shown else self.genes.names[:_LEADING]
        kind = "" if self.verdict is None else self.verdict.kind
        self.studies = "" if kind == "doubtful" else str(self.summary.get("studies", ""))  # a doubtful one may be noise
        # If no other genes have the same degrees, random sets of such genes are the module itself.
        edges = self.edges or {}
        self.comparable = bool(edges) and not np.isclose(edges["degree_expected"], edges["n_edges"], rtol=1e-6)
        # In what else than degrees random genes are similar: "", "mean" or "mean and variance".
        self.also_matched = " and ".join(str(edges.get("degree_matched_on", "degree")).split(", ")[1:])
        self.details = diagnostics(self)
        # The kinds of what a reader should know, and the sentence of each, "" if there is none.
        by_default = self.summary.get("default_size", {})
        self.kinds = {"not judged" if kind == "unknown" else kind: ""} if kind else {}
        self.kinds |= {"default size": ""} if "columns" in by_default else {}
        self.kinds |= {one.kind: one.text for one in self.details}
        sizes = {"rows": len(self.samples.positions), "columns": len(self.genes.positions)}
        self.default_size = default_size(by_default, sizes)
        self.row_names = [] if self.heatmap is None else self.heatmap.row_names(*self.genes)
        self._describe_samples()

    def _describe_samples(self) -> None:
        """Samples in words, names of groups or members, and those at the head of the list."""
        samples, scores, kept = self.samples, self.scores, len(self.samples.positions)
        self.keeps_all_samples = kept == self.n_samples
        if self.selected:
            n_up = int((samples.weights > 0).sum())
            self.samples_in_words = f"{kept:,} of {self.n_samples:,} selected ({n_up:,} up, {kept - n_up:,} down)"
        elif scores is not None:
            self.samples_in_words = "gradient" if scores.is_gradient else groups_in_words(scores.groups)
        else:
            self.samples_in_words = f"all {kept:,}" if self.keeps_all_samples else f"{kept:,} of {self.n_samples:,}"
        self.group_strip = ""  # above the heatmap
        if self.heatmap is not None and scores is not None and not scores.is_gradient:
            self.group_strip = scores.strip(self.heatmap.samples)
        if not self.keeps_all_samples:
            self.sample_names, self.ranked_samples = {"samples": samples.names}, samples.top
            return
        names = np.empty(self.n_samples, dtype=object)
        names[samples.positions] = samples.names
        groups = {} if scores is None else {f"samples {side}": scores.members(side) for side in ("up", "down")}
        self.sample_names = {label: names[found].tolist() for label, found in groups.items() if found.size}
        values = samples.weights if scores is None else scores.scores[samples.positions]
        order = np.argsort(-values, kind="stable")[: int(np.isfinite(values).sum())]  # without missing scores
        if order.size > _TOP_MEMBERS:
            order = np.concatenate([order[:_HIGHEST], order[-_LOWEST:]])
        self.ranked_samples = [(samples.names[at], float(values[at])) for at in order]

    def side_of(self, term: Row) -> str:
        """The side of at least 80 % of the genes that a gene set has in the module, otherwise "up and down"."""
        own = self.genes.weights[np.isin(self.genes.names, str(term["genes"]).split(", "))]
        n_down = int((own < 0).sum())
        if own.size and n_down >= ONE_SIDE * own.size:
            return "down"
        return "up" if own.size - n_down >= ONE_SIDE * own.size else "up and down"

    def copies(self, with_samples: bool) -> list[tuple[str, str, int]]:
        """Lists that can be copied: "gene" or "sample", "up" or "down", and how many names there are."""
        found = [("gene", "up", self.n_up), ("gene", "down", len(self.genes.positions) - self.n_up)]
        if with_samples and self.scores is not None:
            found += [("sample", side, int((self.scores.groups == side).sum())) for side in ("up", "down")]
        elif with_samples and not self.keeps_all_samples:
            n_up = int((self.samples.weights > 0).sum())
            found += [("sample", "up", n_up), ("sample", "down", len(self.samples.positions) - n_up)]
        return [one for one in found if one[2]]

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
                "strips": [strip["variable"] for strip in self.strips],
            }
        return content


def distinct_terms(terms: list[Row], most: int = 3, shared: float = 0.5) -> list[Row]:
    """The most significant gene sets, without those that consist mostly of genes of one before."""
    kept: list[tuple[set[str], Row]] = []
    for term in terms:
        genes = set(str(term["genes"]).split(", "))
        if all(len(genes & other) < shared * min(len(genes), len(other)) for other, _ in kept):
            kept.append((genes, term))
    return [term for _, term in kept[:most]]
