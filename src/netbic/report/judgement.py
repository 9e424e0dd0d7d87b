"""Verdicts and diagnostics of a module, as badges and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from netbic.selection import Verdicts
from netbic.solver import LOW_RANK

NO_EVIDENCE: Final = "This says nothing against the genes themselves; their edges are just no evidence for them."
# What to know about modules, for all that have it in common; {share} is the largest share of the network. A kind
# without a text has several causes: the sentence of the module says which.
EXPLANATIONS: Final = {
    "not judged": "There are too few samples to tell whether modules are found again, so any of them may be noise.",
    "doubtful": "Possibly noise: the reason is given with the module.",
    "graph-driven": "More than {share} of the scores come from the network, or a gene with one of the largest weights "
    f"has a rank beyond {LOW_RANK} by the data alone: decrease the smoothness unless you want the network to "
    "dominate.",
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


class Diagnostic(NamedTuple):
    """What a reader should know about a module: its kind, the text of its badge, and a sentence."""

    kind: str
    badge: str
    text: str


class Replicated(NamedTuple):
    """Whether a module holds in another study: the verdict, the study, and the reason as a sentence."""

    word: str
    study: str
    reason: str
    n_shared: int = 0  # samples that may be in both studies

    @property
    def text(self) -> str:
        """The verdict in words.

        Examples
        --------
        >>> from netbic.report.judgement import Replicated
        >>> Replicated("partly", "other.tsv", "").text
        'partly replicated in'
        """
        if self.word in ("replicated", "partly", "not replicated"):
            return f"{'partly replicated' if self.word == 'partly' else self.word} in"
        return f"{self.word} whether it holds in"


def replication_list(table: pd.DataFrame | None, record: Mapping[str, Any], n_modules: int) -> list[Replicated | None]:
    """The verdicts in replication.tsv, by module; None if there is no table, or if it is about other modules."""
    if table is None or table["module"].tolist() != list(range(n_modules)):
        return [None] * n_modules
    study, n_shared = str(record.get("study") or "another study"), int(record.get("n_shared", 0))
    rows = zip(table["verdict"], table["reason"], strict=True)
    return [Replicated(str(word), study, str(reason), n_shared) for word, reason in rows]


class Verdict(NamedTuple):
    """The verdict on a module, and its reason as a sentence."""

    word: str
    reason: str
    closest: int
    correlation: float
    gene_overlap: float

    @property
    def kind(self) -> str:
        """The verdict without the number of the module that is repeated; "unknown" if it could not be judged."""
        first = self.word.partition(" ")[0]
        return first if first in ("strong", "moderate", "repeats", "doubtful") else "unknown"


def verdict_list(table: pd.DataFrame | None, n_modules: int) -> list[Verdict | None]:
    """The verdicts in verdicts.tsv, by module; None if there is no table, or if it is about other modules."""
    if table is None or table["module"].tolist() != list(range(n_modules)):
        return [None] * n_modules
    return [
        Verdict(str(row["verdict"]), str(row["reason"]), int(row["closest"]), row["correlation"], row["gene_overlap"])
        for row in table.to_dict("records")
    ]


def verdict_sentence(verdicts: list[Verdict | None]) -> str:
    """How many modules are strong, moderate, repetitions and doubtful; "" if they were not judged.

    Examples
    --------
    >>> from netbic.report.judgement import Verdict, verdict_sentence
    >>> verdict_sentence([Verdict("strong", "", -1, 0, 0), Verdict("doubtful", "", 0, 0.1, 0)])
    'Of 2 modules, 1 is strong, 1 is doubtful.'
    """
    known = [verdict for verdict in verdicts if verdict is not None]
    if not known:
        return ""
    table = pd.DataFrame({"verdict": [one.word for one in known], "reason": [one.reason for one in known]})
    text, more, _ = Verdicts(table, 0).verdict.partition(" (judged")  # the number of halves is not in the table
    return f"{text}." if more else text


def repetition(diagnostics: Mapping[str, Any]) -> Diagnostic:
    """The diagnostic of a module whose scores are those of an earlier one."""
    other, shared = int(diagnostics["repeats"]) + 1, f"{diagnostics['gene_overlap']:.0%} of all their genes"
    text = f"The scores of its samples have a correlation of {diagnostics['correlation']:.2f} with those of module "
    return Diagnostic("repeats", f"repeats module {other}", f"{text}{other}; both contain {shared}.")
