"""One module, as the page shows it: members, verdict, diagnostics, and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array
from netbic.enrichment import ONE_SIDE
from netbic.estimators.results import heaviest
from netbic.pl.scores import groups_in_words
from netbic.report.associations import Finding
from netbic.report.pictures import Figure, Heatmap, SampleScores, Subnetwork
from netbic.selection import kind_of_verdict
from netbic.solver.search import LARGE_GRAPH_SHARE, LOW_RANK

Row = dict[Any, Any]  # of a table, by column

_IN_NAMES, _LEADING = 3, 5  # genes in the names of modules, and in what netbic fit prints
TOP_MEMBERS: Final = 15
_HIGHEST, _LOWEST = 8, 7
_NO_EVIDENCE: Final = "This says nothing against the genes themselves; their edges are just no evidence for them."
# What to know about modules, for all that have it in common. A kind without a text has several causes: the sentence of
# the module says which.
EXPLANATIONS: Final = {
    "not judged": "There are too few samples to tell whether modules are found again, so any of them may be noise.",
    "doubtful": "Possibly noise: the reason is given with the module.",
    "broad axis": "Many other genes follow them, too: interpret the scores of samples, not the lists of genes.",
    "may be technical": "",
    "carried by few samples": "",
    "graph-driven": f"More than {LARGE_GRAPH_SHARE:.0%} of the scores come from the network, or a gene with one of the "
    f"largest weights has a rank beyond {LOW_RANK} by the data alone: decrease the smoothness unless you want the "
    "network to dominate.",
    "hub-driven": "",
    "edges as expected": "",
    "repeats": "Their scores are correlated (0.9 or more) with those of an earlier module.",
    "same leading genes": "A gene is among the ten leading genes of half of the modules or more.",
    "not converged": "The search stopped before these modules were stable.",
}
MILD: Final = ("hub-driven", "edges as expected")  # diagnostics that say nothing against the genes
_HUB_SHARE, _FEW_EDGES, _BEYOND_EQUALS = 0.5, 10, 0.2  # of what is called hub-driven


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
        return list(zip(self.names[:TOP_MEMBERS], self.weights[:TOP_MEMBERS].tolist(), strict=True))


class Verdict(NamedTuple):
    """The verdict on a module, and its reason as a sentence."""

    word: str
    reason: str
    technical: str  # what the scores follow, or the samples that carry the module; "" if it is not technical
    closest: int | None  # the earlier module that is most similar
    correlation: float
    gene_overlap: float

    @property
    def kind(self) -> str:
        """The verdict without the number of the module that is repeated; "unknown" if it could not be judged."""
        return kind_of_verdict(self.word)


class Diagnostic(NamedTuple):
    """What a reader should know about a module: its kind, a sentence, and the text of its badge."""

    kind: str
    text: str
    badge: str = ""  # the kind


@dataclass(kw_only=True)
class ModulePage:
    """One module, as the page shows it; `number` counts from 1."""

    number: int
    summary: Row
    genes: Members
    samples: Members
    name: str = ""  # a gene set or its leading genes
    n_samples: int = 0  # of the data
    selected: bool = False  # whether samples were selected for their extreme scores
    recurrent: Sequence[str] = ()  # its leading genes that lead half of the modules or more
    network: Subnetwork | None = None
    heatmap: Heatmap | None = None
    strips: Sequence[Figure] = ()  # above the heatmap
    edges: Row | None = None
    level: float = 0.05  # largest adjusted p-value at which edges are enriched
    terms: Sequence[Row] = ()  # the most significant gene sets
    n_terms: int = 0
    verdict: Verdict | None = None
    judged: Sequence[Row] = ()  # its genes with confidence and kME, the most confident first
    replication: Row | None = None  # in another study: the verdict in words, the study, the reason as a sentence
    scores: SampleScores | None = None
    findings: Sequence[Finding] = ()  # its strongest associations with the sample table
    group_findings: Sequence[str] = ()  # labels that are more frequent among samples that are up or down
    plots: Sequence[Figure] = ()  # of scores and survival, the smallest q-value first

    def __post_init__(self) -> None:
        self.n_up = int((self.genes.weights > 0).sum())
        shown = self.name.endswith(", ".join(self.genes.names[:_IN_NAMES]))
        self.leading_genes = [] if shown else self.genes.names[:_LEADING]
        kind = "" if self.verdict is None else self.verdict.kind
        surest = self.judged if kind in ("strong", "moderate") else ()
        self.to_validate = [str(row["name"]) for row in surest[:_LEADING]]
        self.studies = "" if kind == "doubtful" else str(self.summary.get("studies", ""))  # a doubtful one may be noise
        # If no other genes have the same degrees, random sets of such genes are the module itself.
        edges = self.edges or {}
        self.comparable = bool(edges) and not np.isclose(edges["degree_expected"], edges["n_edges"], rtol=1e-6)
        # In what else than degrees random genes are similar: "", "mean" or "mean and variance".
        self.also_matched = " and ".join(str(edges.get("degree_matched_on", "degree")).split(", ")[1:])
        self.details = self._diagnose()
        # The kinds of what a reader should know, and the sentence of each, "" if there is none.
        self.kinds = {"not judged" if kind == "unknown" else kind: ""} if kind else {}
        self.kinds |= {one.kind: one.text for one in self.details}
        self.row_names = [] if self.heatmap is None else self.heatmap.row_names(*self.genes)
        self._describe_samples()

    def _diagnose(self) -> list[Diagnostic]:
        """What a reader should know before relying on a module."""
        own, edges, drawn, also = self.summary, self.edges, self.network, self.also_matched
        found, reasons = list[Diagnostic](), list[str]()
        if not own["converged"]:
            found.append(Diagnostic("not converged", "The search stopped before the module was stable."))
        if own["graph_share"] > LARGE_GRAPH_SHARE and not own.get("bounded", False):
            reasons.append(f"{own['graph_share']:.0%} of the scores of its genes come from the network.")
        if own.get("worst_rank", 0) > LOW_RANK:
            reasons.append(f"A leading gene has rank {own['worst_rank']:,} by the data alone.")
        if reasons:
            found.append(Diagnostic("graph-driven", " ".join(reasons)))
        # More edges than random genes have (the paper's test), but not more than random genes of the same degrees.
        explained = self.comparable and edges is not None and edges["q_value"] <= self.level < edges["degree_q_value"]
        similar = f"with as many neighbours{f' and a similar {also}' if also else ''}"
        text = f"More edges than among random genes, but not more than among random genes {similar}. {_NO_EVIDENCE}"
        if explained and also:
            found.append(Diagnostic("edges as expected", text))
        # Three members have half of the edges: many more than if all members had the same degree.
        n = 0 if drawn is None else len(drawn.nodes)
        equals = 1 - (n - 3) * (n - 4) / (n * (n - 1)) if n > 4 else 1.0
        least = max(_HUB_SHARE, equals + _BEYOND_EQUALS)
        if drawn is not None and drawn.n_edges >= _FEW_EDGES and drawn.hub_share >= least:
            found.append(Diagnostic("hub-driven", f"Half or more of the edges involve three genes. {_NO_EVIDENCE}"))
        elif explained and not also:
            found.append(Diagnostic("hub-driven", text))
        other = own.get("repeats")
        if not pd.isna(other) and (self.verdict is None or self.verdict.kind != "repeats"):
            text = (
                f"The scores of its samples have a correlation of {own['correlation']:.2f} with those of module {other}"
            )
            text = f"{text}; both contain {own['gene_overlap']:.0%} of all their genes."
            found.append(Diagnostic("repeats", text, f"repeats module {other}"))
        if self.verdict is not None and self.verdict.technical:
            text = self.verdict.technical
            kind = "may be technical" if text.startswith("may be") else "carried by few samples"
            found.append(Diagnostic(kind, f"{text[0].upper()}{text[1:]}.", kind.removeprefix("carried by ")))
        if self.recurrent:
            names, verb = ", ".join(self.recurrent), "is" if len(self.recurrent) == 1 else "are"
            text = f"{names} {verb} among the ten leading genes of half of the modules or more."
            found.append(Diagnostic("same leading genes", text))
        return [one if one.badge else one._replace(badge=one.kind) for one in found]

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
        if order.size > TOP_MEMBERS:
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


def distinct_terms(terms: list[Row], most: int = 3, shared: float = 0.5) -> list[Row]:
    """The most significant gene sets, without those that consist mostly of genes of one before."""
    kept: list[tuple[set[str], Row]] = []
    for term in terms:
        genes = set(str(term["genes"]).split(", "))
        if all(len(genes & other) < shared * min(len(genes), len(other)) for other, _ in kept):
            kept.append((genes, term))
    return [term for _, term in kept[:most]]
