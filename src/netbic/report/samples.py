"""The samples of a module: scores, groups, and a histogram of the scores."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Floats, Indices
from netbic.association import matched_scores
from netbic.errors import import_optional

GROUPS: Final = ("down", "", "up")  # in the order in which bars are stacked
_COLOURS: Final = {"up": (178, 24, 43), "down": (33, 102, 172), "": (205, 205, 205)}
_BINS, _WIDTH, _HEIGHT = 40, 600, 120


class Bar(NamedTuple):
    """A part of a histogram, in the units of its drawing."""

    x: float
    y: float
    width: float
    height: float
    group: str
    text: str


class Histogram(NamedTuple):
    """A histogram of scores, stacked by group."""

    bars: list[Bar]
    zero: float  # position of the score 0
    low: float
    high: float
    width: int = _WIDTH
    height: int = _HEIGHT


@dataclass(frozen=True)
class SampleScores:
    """Scores of all samples in a module, and their groups ("up", "down" or "")."""

    scores: Floats
    groups: NDArray[Any]

    def members(self, group: str) -> Indices:
        """Positions of the samples of a group, the most extreme score first."""
        own = np.flatnonzero(self.groups == group)
        return own[np.argsort(-np.abs(self.scores[own]), kind="stable")]

    @property
    def is_gradient(self) -> bool:
        """Whether the samples form no groups."""
        return not (self.groups != "").any()

    @property
    def in_words(self) -> str:
        """The number of samples in each group, or that there are none.

        Examples
        --------
        >>> import numpy as np
        >>> from netbic.report.samples import SampleScores
        >>> SampleScores(np.array([-3.0, 0.0, 5.0, 6.0]), np.array(["down", "", "up", "up"])).in_words
        'up in 2, down in 1 of 4 samples'
        """
        if self.is_gradient:
            return "gradient"
        counts = {group: int((self.groups == group).sum()) for group in ("up", "down")}
        parts = [f"{group} in {count:,}" for group, count in counts.items() if count]
        return f"{', '.join(parts)} of {self.groups.size:,} samples"

    @property
    def histogram(self) -> Histogram | None:
        """The histogram of the scores; None if all are missing."""
        known = self.scores[np.isfinite(self.scores)]
        if not known.size:
            return None
        low, high = min(float(known.min()), 0.0), max(float(known.max()), 0.0)
        high = high if high > low else low + 1.0
        edges = np.linspace(low, high, _BINS + 1)
        counts = {group: np.histogram(self.scores[self._finite(group)], edges)[0] for group in GROUPS}
        return Histogram(_stacked(counts, edges), -low / (high - low) * _WIDTH, low, high)

    def _finite(self, group: str) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (self.groups == group) & np.isfinite(self.scores)
        return found

    def strip(self, samples: NDArray[Any]) -> str:
        """The groups of some samples as a PNG of one line in a data URI."""
        pixels = np.array([[_COLOURS[group] for group in self.groups[samples]]], dtype=np.uint8)
        buffer = io.BytesIO()
        import_optional("PIL.Image", "report", "a report").fromarray(pixels).save(buffer, format="PNG", optimize=True)
        return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"

    def for_script(self) -> dict[str, Any]:
        """Scores with four digits (None if missing), and a letter per sample for its group."""
        scores = [float(f"{score:.4g}") if np.isfinite(score) else None for score in self.scores.tolist()]
        return {"scores": scores, "groups": "".join({"up": "u", "down": "d"}.get(group, "-") for group in self.groups)}


def _stacked(counts: dict[str, NDArray[np.intp]], edges: Floats) -> list[Bar]:
    tallest = max(1, int(np.sum(list(counts.values()), axis=0).max()))
    width, bars = _WIDTH / _BINS, list[Bar]()
    for at in range(_BINS):
        top = float(_HEIGHT)
        for group in GROUPS:
            if count := int(counts[group][at]):
                height = count / tallest * _HEIGHT
                top -= height
                text = _counted(count, group, edges[at], edges[at + 1])
                bars.append(Bar(round(at * width, 1), round(top, 1), width - 1, round(height, 1), group, text))
    return bars


def _counted(count: int, group: str, low: float, high: float) -> str:
    kind = f", {group}" if group else ""
    return f"{count} sample{'s' * (count > 1)}{kind}: {low:.3g} to {high:.3g}"


def sample_scores(table: pd.DataFrame | None, n_modules: int, names: NDArray[Any]) -> list[SampleScores | None]:
    """The scores in samples.tsv, by module; None if there is no table, or if it is about other samples."""
    known = matched_scores(table, n_modules, names)
    if known is None:
        return [None] * n_modules
    scores, groups = (each.to_numpy().T for each in known)
    return [SampleScores(*pair) for pair in zip(scores, groups, strict=True)]
