"""Verdicts and diagnostics of a module, as badges and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from netbic.penalties import DIAGNOSTICS
from netbic.solver import LARGE_GRAPH_SHARE, LOW_RANK

if TYPE_CHECKING:
    from netbic.report.modules import ModulePage

_NO_EVIDENCE: Final = "This says nothing against the genes themselves; their edges are just no evidence for them."
# What to know about modules, for all that have it in common. A kind without a text has several causes: the sentence of
# the module says which.
EXPLANATIONS: Final = {
    "not judged": "There are too few samples to tell whether modules are found again, so any of them may be noise.",
    "doubtful": "Possibly noise: the reason is given with the module.",
    "graph-driven": f"More than {LARGE_GRAPH_SHARE:.0%} of the scores come from the network, or a gene with one of the "
    f"largest weights has a rank beyond {LOW_RANK} by the data alone: decrease the smoothness unless you want the "
    "network to dominate.",
    "hub-driven": "",
    "edges as expected": "",
    "repeats": "Their scores are correlated (0.7 or more) with those of an earlier module.",
    "same leading genes": "A gene is among the ten leading genes of half of the modules or more.",
    "not converged": "The search stopped before these modules were stable.",
    "size not identified": "The data do not determine how many genes or samples belong to these modules.",
    "default size": "The data do not show how many genes belong to these modules (marked by * in the table), so the "
    "default size was used. Which genes with small weights are included is then a matter of choice.",
}
MILD: Final = ("hub-driven", "edges as expected")  # diagnostics that say nothing against the genes
_AXES: Final = {"rows": "sample", "columns": "gene"}
_END: Final = {"rows": "which samples belong to the module", "columns": "where the module ends"}
_HUB_SHARE, _FEW_EDGES, _BEYOND_EQUALS = 0.5, 10, 0.2


class Verdict(NamedTuple):
    """The verdict on a module, and its reason as a sentence."""

    word: str
    reason: str
    closest: int | None  # the earlier module that is most similar
    correlation: float
    gene_overlap: float

    @property
    def kind(self) -> str:
        """The verdict without the number of the module that is repeated; "unknown" if it could not be judged."""
        first = self.word.partition(" ")[0]
        return first if first in ("strong", "moderate", "repeats", "doubtful") else "unknown"


def verdict_list(table: pd.DataFrame | None, n_modules: int) -> list[Verdict | None]:
    """The verdicts in verdicts.tsv, by module; None if there is no table, or if it is about other modules."""
    if table is None or table["module"].tolist() != list(range(1, n_modules + 1)):
        return [None] * n_modules
    closest = [None if pd.isna(other) else int(other) for other in table["closest"]]
    numbers = zip(closest, table["correlation"], table["gene_overlap"], strict=True)
    words = zip(table["verdict"].astype(str), table["reason"].astype(str), numbers, strict=True)
    return [Verdict(word, reason, *own) for word, reason, own in words]


def verdict_sentence(verdicts: list[Verdict | None]) -> str:
    """How many modules are strong, moderate, repetitions and doubtful; "" if they were not judged."""
    from netbic.selection import Verdicts

    known = [verdict for verdict in verdicts if verdict is not None]
    if not known:
        return ""
    table = pd.DataFrame({"verdict": [one.word for one in known], "reason": [one.reason for one in known]})
    text, more, _ = Verdicts(table, 0).verdict.partition(" (judged")  # the number of halves is not in the table
    return f"{text}." if more else text


class Replicated(NamedTuple):
    """Whether a module holds in another study: the verdict in words, the study, and the reason as a sentence."""

    text: str
    study: str
    reason: str
    n_shared: int = 0  # samples that may be in both studies


def replication_list(table: pd.DataFrame | None, record: Mapping[str, Any], n_modules: int) -> list[Replicated | None]:
    """The verdicts in replication.tsv, by module; None if there is no table, or if it is about other modules."""
    if table is None or table["module"].tolist() != list(range(1, n_modules + 1)):
        return [None] * n_modules
    study, n_shared = str(record.get("study") or "another study"), int(record.get("n_shared", 0))
    texts = {"replicated": "replicated in", "partly": "partly replicated in", "not replicated": "not replicated in"}
    return [
        Replicated(texts.get(word, f"{word} whether it holds in"), study, str(reason), n_shared)
        for word, reason in zip(table["verdict"].astype(str), table["reason"], strict=True)
    ]


class Diagnostic(NamedTuple):
    """What a reader should know about a module: its kind, a sentence, and the text of its badge."""

    kind: str
    text: str
    badge: str = ""  # the kind


def diagnostics(module: ModulePage) -> list[Diagnostic]:
    """What a reader should know before relying on a module."""
    own, edges, drawn, also = module.summary, module.edges, module.network, module.also_matched
    found, reasons = list[Diagnostic](), list[str]()
    if not own["converged"]:
        found.append(Diagnostic("not converged", "The search stopped before the module was stable."))
    if own["graph_share"] > LARGE_GRAPH_SHARE and not own.get("chosen", False):
        reasons.append(f"{own['graph_share']:.0%} of the scores of its genes come from the network.")
    if own.get("worst_rank", 0) > LOW_RANK:
        reasons.append(f"A leading gene has rank {own['worst_rank']:,} by the data alone.")
    if reasons:
        found.append(Diagnostic("graph-driven", " ".join(reasons)))
    # More edges than random genes have (the paper's test), but not more than random genes of the same degrees.
    explained = module.comparable and edges is not None and edges["q_value"] <= module.level < edges["degree_q_value"]
    similar = f"with as many neighbours{f' and a similar {also}' if also else ''}"
    text = f"More edges than among random genes, but not more than among random genes {similar}. {_NO_EVIDENCE}"
    if explained and also:
        found.append(Diagnostic("edges as expected", text))
    if drawn is not None and _has_few_hubs(drawn.n_edges, len(drawn.nodes), drawn.hub_share):
        found.append(Diagnostic("hub-driven", f"Half or more of the edges involve three genes. {_NO_EVIDENCE}"))
    elif explained and not also:
        found.append(Diagnostic("hub-driven", text))
    other = own.get("repeats")
    if not pd.isna(other) and (module.verdict is None or module.verdict.kind != "repeats"):
        text = f"The scores of its samples have a correlation of {own['correlation']:.2f} with those of module {other}"
        text = f"{text}; both contain {own['gene_overlap']:.0%} of all their genes."
        found.append(Diagnostic("repeats", text, f"repeats module {other}"))
    if module.recurrent:
        names, verb = ", ".join(module.recurrent), "is" if len(module.recurrent) == 1 else "are"
        text = f"{names} {verb} among the ten leading genes of half of the modules or more."
        found.append(Diagnostic("same leading genes", text))
    for axis, reason in own.get("size_diagnostics", {}).items():
        why = DIAGNOSTICS[reason].format(axis=_AXES[axis])
        text = f"The data do not determine how many {_AXES[axis]}s belong to it: {why}."
        found.append(Diagnostic("size not identified", text))
    return [one if one.badge else one._replace(badge=one.kind) for one in found]


def _has_few_hubs(n_edges: int, n_nodes: int, hub_share: float) -> bool:
    """Whether three members have half of the edges: many more than if all members had the same degree."""
    equals = 1 - (n_nodes - 3) * (n_nodes - 4) / (n_nodes * (n_nodes - 1)) if n_nodes > 4 else 1.0
    return n_edges >= _FEW_EDGES and hub_share >= max(_HUB_SHARE, equals + _BEYOND_EQUALS)


def default_size(reasons: Mapping[str, str], sizes: Mapping[str, int]) -> str:
    """Why the size of a module is the default one, by axis; "" if it was chosen or given."""
    return " ".join(
        f"The data do not show {_END[axis]}, because {DIAGNOSTICS[reason].format(axis=_AXES[axis])}. So the default "
        f"size, {sizes[axis]:,} {_AXES[axis]}s, was used."
        for axis, reason in reasons.items()
    )
