"""The sizes of modules that the data identify, and where the others come from."""

from __future__ import annotations

from dataclasses import dataclass

from netbic.estimators import SparseGraphSVD
from netbic.penalties import DIAGNOSTICS


@dataclass(frozen=True)
class Sizes:
    """The sizes of the modules of a fit, and where they come from.

    Attributes
    ----------
    n, n_identified : int
        Modules, and those whose size the data identify.
    features : str
        Range of the identified sizes.
    fallback : int
        Features of the other modules.
    problems : str
        Why their sizes are not identified.
    n_with_graph : int
        Modules in which the graph improves the likelihood.
    """

    n: int
    n_identified: int
    features: str
    fallback: int
    problems: str
    n_with_graph: int

    @classmethod
    def of(cls, fitted: SparseGraphSVD, n: int, fallback: int) -> Sizes:
        """The sizes of the first n modules of a fitted model."""
        choices = fitted.choices_.query("axis == 'columns'").iloc[:n]
        identified = choices[choices["diagnostic"] == ""]
        found = [key for key in DIAGNOSTICS if key in set(choices["diagnostic"])]
        problems = "; ".join(DIAGNOSTICS[key].format(axis="feature") for key in found)
        low, high = (identified["size"].min(), identified["size"].max()) if len(identified) else (0, 0)
        features = str(low) if low == high else f"{low} to {high}"
        return cls(len(choices), len(identified), features, fallback, problems, int((identified["sigma"] > 0).sum()))

    def reason(self, scaled: bool) -> str:
        """The sizes in a sentence."""
        after = " after scaling the features, whose noise differs" if scaled else ""
        if not self.n_identified:
            return not_identified(self.problems or DIAGNOSTICS["weak"], self.fallback)
        if self.n_identified == self.n:
            return f"Sizes: the data identify them{after} ({self.features} features per module; all samples are kept)."
        return (
            f"Sizes: identified in {self.n_identified} of {self.n} modules{after} ({self.features} features); "
            f"{self.fallback} features in the others ({self.problems})."
        )

    @property
    def graph_reason(self) -> str:
        """The use of the graph where all sizes are identified."""
        return f"Graph: used in {self.n_with_graph} of {self.n} modules, where it improves the likelihood."


def not_identified(problem: str, n_columns: int) -> str:
    """The reason for a size that is not identified, in a sentence or two."""
    return (
        f"Sizes: the data do not identify them ({problem}); {n_columns} features per module are used. Choose another "
        "size to see smaller or larger modules."
    )
