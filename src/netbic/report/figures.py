"""Small figures about the samples of a module, as positions in SVG drawings that the templates write.

A figure of matplotlib would take 50 to 100 ms and 12 to 70 kB; there are hundreds of these, of 2 to 6 kB each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Floats, Indices
from netbic.association import Variable
from netbic.errors import import_optional
from netbic.report.pictures import png

Figure = dict[str, Any]  # what a template needs: positions, texts, colours

OTHER, MISSING = "#7A7A7A", "#D4D4D4"
_GROUPS: Final = {"down": "#2166AC", "": "#CDCDCD", "up": "#B2182B"}  # in the order in which bars are stacked
_BINS, _WIDTH, _HEIGHT = 40, 600, 120  # of a histogram
_MOST_LEVELS, _ROW = 12, 26  # of box plots
_SHADES, _MOST_STRIPS = 64, 4
_SURVIVAL: Final[dict[str, Any]] = {"left": 62, "top": 58, "width": 430, "height": 210, "box": (514, 384)}
_STYLES: Final = {"up": "up", "high": "up", "down": "down", "low": "down", "others": "others"}


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, six at most."""
    locator = import_optional("matplotlib.ticker", "report", "a report").MaxNLocator(5, steps=[1, 2, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def as_label(number: float, digits: int = 6) -> str:
    """A number without trailing zeros, with a typographic minus sign."""
    return f"{number:z.{digits}g}".replace("-", "\N{MINUS SIGN}")


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
    def histogram(self) -> Figure | None:
        """A histogram of the scores, stacked by group; None if all are missing."""
        finite = np.isfinite(self.scores)
        if not finite.any():
            return None
        low, high = min(float(self.scores[finite].min()), 0.0), max(float(self.scores[finite].max()), 0.0)
        high = high if high > low else low + 1.0
        edges = np.linspace(low, high, _BINS + 1)
        counts = np.array([np.histogram(self.scores[finite & (self.groups == g)], edges)[0] for g in _GROUPS])
        tallest, width, bars = max(1, int(counts.sum(axis=0).max())), _WIDTH / _BINS, list[Figure]()
        for at, of_groups in enumerate(counts.T.tolist()):
            top = float(_HEIGHT)
            for group, count in zip(_GROUPS, of_groups, strict=True):
                if count:
                    height = count / tallest * _HEIGHT
                    top -= height
                    kind = f", {group}" if group else ""
                    text = f"{count} sample{'s' * (count > 1)}{kind}: {edges[at]:.3g} to {edges[at + 1]:.3g}"
                    box = {
                        "x": round(at * width, 1),
                        "y": round(top, 1),
                        "width": width - 1,
                        "height": round(height, 1),
                    }
                    bars.append({**box, "group": group, "text": text})
        zero = -low / (high - low) * _WIDTH
        return {"bars": bars, "zero": zero, "low": low, "high": high, "width": _WIDTH, "height": _HEIGHT}

    def strip(self, samples: NDArray[Any]) -> str:
        """The groups of some samples as an image of one line."""
        colours = {group: tuple(bytes.fromhex(colour[1:])) for group, colour in _GROUPS.items()}
        return png(np.array([[colours[group] for group in self.groups[samples]]], dtype=np.uint8))

    def for_script(self) -> dict[str, Any]:
        """Scores with four digits (None if missing), and a letter per sample for its group."""
        scores = [float(f"{score:.4g}") if np.isfinite(score) else None for score in self.scores.tolist()]
        return {"scores": scores, "groups": "".join({"up": "u", "down": "d"}.get(group, "-") for group in self.groups)}


def box_plot(scores: Floats, variable: Variable, q: float, test: str = "") -> Figure | None:
    """Scores by level, ordered ones in their order, others by their medians; None for one level or many.

    `q` and `test` are the smallest q-value of this variable and its test.
    """
    known = variable.known & np.isfinite(scores)
    groups = [(level, scores[known & (variable.values == at)]) for at, level in enumerate(variable.levels)]
    groups = [(level, own) for level, own in groups if own.size]
    if not 2 <= len(groups) <= _MOST_LEVELS:
        return None
    low, high = min(float(scores[known].min()), 0.0), max(float(scores[known].max()), 0.0)

    def at(value: float) -> float:
        return round(_WIDTH * (float(value) - low) / ((high - low) or 1.0), 1)

    if variable.kind != "ordered":
        groups.sort(key=lambda pair: float(np.median(pair[1])))
    boxes = list[Figure]()
    for level, own in groups:
        ends = ("low", "first", "median", "third", "high")
        places = zip(ends, map(at, np.quantile(own, [0, 0.25, 0.5, 0.75, 1])), strict=True)
        boxes.append({"label": level, "n": own.size, **dict(places)})
    ticks = [(at(tick), as_label(tick)) for tick in round_ticks(low, high)]
    drawn = {"boxes": boxes, "zero": at(0.0), "ticks": ticks, "width": _WIDTH, "row": _ROW}
    return {"kind": "boxes", "variable": variable.name, "q": q, "test": test, **drawn}


def survival_plot(scores: SampleScores, variable: Variable, q: float, test: str, tests: pd.DataFrame) -> Figure | None:
    """Kaplan-Meier curves of the groups of the log-rank test; None if there is only one group.

    `tests` are the rows of associations.tsv of this module and variable.
    """
    from netbic.association import survival_curves

    found = survival_curves(scores.scores, scores.groups, variable)
    longest = float(np.max(variable.values, where=variable.known & np.isfinite(scores.scores), initial=0.0))
    if found is None or longest <= 0:
        return None
    power = 10.0 ** math.floor(math.log10(longest))
    step = next(share * power for share in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if longest / (share * power) < 6)
    ticks = [number * step for number in range(int(longest / step) + 1)]
    left, top, width, height = (_SURVIVAL[side] for side in ("left", "top", "width", "height"))
    curves = list[Figure]()
    for name, table, at_risk in zip(found.names, found.curves, found.at_risk(np.array(ticks)), strict=True):
        x = np.round(left + width * table["time"].to_numpy() / longest, 1)
        y = np.round(top + height * (1 - table["survival"].to_numpy()), 1)
        falls, lost = table["n_events"].to_numpy() > 0, table["n_censored"].to_numpy() > 0
        steps = "".join(f"H{at:g}V{to:g}" for at, to in zip(x[falls], y[falls], strict=True))
        marks = "".join(f"M{at:g} {to:g}v-6" for at, to in zip(x[lost], y[lost], strict=True))
        curve = {"name": name, "style": _STYLES[name], "at_risk": at_risk, "censored": marks}
        curve["path"] = f"M{left} {top}{steps}H{x[-1]:g}"
        counts = {"n": int(table["n_at_risk"].iloc[0]), "n_events": int(table["n_events"].sum())}
        curves.append(curve | counts)
    made = tests[tests["p"].notna()]
    of_kinds = [made[made["test"].astype(str).str.startswith(name)] for name in ("log-rank", "Cox")]
    log_rank, cox = (None if own.empty else own.iloc[0].to_dict() for own in of_kinds)
    split = {"low": "median", "others": "others"}.get(found.names[1], "groups")
    places = [(round(left + width * tick / longest, 1), f"{tick:,g}") for tick in ticks]
    drawn = {"curves": curves, "ticks": places, "split": split, "log_rank": log_rank, "cox": cox, "frame": _SURVIVAL}
    return {"kind": "survival", "variable": variable.name, "q": q, "test": test, **drawn}


def strips(variables: list[Variable], samples: NDArray[Any], colours: Mapping[str, Mapping[str, str]]) -> list[Figure]:
    """The first few variables that are labels or numbers: an image with a colour per sample, and a legend.

    `samples` are those of the heatmap, as positions in the table; `colours` are those of `netbic.pl.variable_colours`,
    so that a label has the same colour in all modules and in plots.
    """
    shown = [variable for variable in variables if variable.kind in ("categorical", "ordered", "numeric")]
    made = list[Figure]()
    for variable in shown[:_MOST_STRIPS]:
        draw = _labels if variable.kind == "categorical" else _numbers
        codes, palette, legend = draw(variable, colours.get(variable.name, {}))
        codes = codes[samples]
        if (codes == len(palette)).any():
            legend = [*legend, ("missing", MISSING)]
        in_bytes = bytes.fromhex("".join(colour[1:] for colour in (*palette, MISSING)))
        image = png(codes.astype(np.uint8)[None], in_bytes)
        made.append({"variable": variable.name, "image": image, "legend": legend})
    return made


Drawn = tuple[Indices, Sequence[str], list[tuple[str, str]]]  # codes of the samples, their colours, and the legend


def _labels(variable: Variable, chosen: Mapping[str, str]) -> Drawn:
    """A colour per level; if there are more levels than colours, the rarest are "other"."""
    places = {level: place for place, level in enumerate(chosen)}
    of_levels = np.array([places.get(level, len(chosen)) for level in variable.levels], dtype=np.intp)
    codes = np.full(variable.known.size, len(chosen) + 1, dtype=np.intp)
    codes[variable.known] = of_levels[variable.values[variable.known].astype(np.intp)]
    others = [("other", OTHER)] if (codes == len(chosen)).any() else []
    return codes, [*chosen.values(), OTHER], [*chosen.items(), *others]


def _numbers(variable: Variable, _: Mapping[str, str]) -> Drawn:
    """Shades between the lowest and the highest value; ordered levels at equal distances."""
    known, colormaps = variable.known, import_optional("matplotlib", "report", "a report").colormaps
    low, high = float(variable.values[known].min()), float(variable.values[known].max())
    shares = (variable.values - low) / ((high - low) or 1.0)
    codes = np.where(known, np.nan_to_num(shares) * (_SHADES - 1), _SHADES).round().astype(np.intp)
    rgb = np.rint(255 * colormaps["cividis"](np.linspace(0, 1, _SHADES))[:, :3]).astype(np.uint8)
    shades = [f"#{bytes(colour).hex().upper()}" for colour in rgb]
    if variable.kind == "ordered":
        places = np.linspace(0, _SHADES - 1, len(variable.levels)).round().astype(np.intp)
        return codes, shades, [(level, shades[at]) for level, at in zip(variable.levels, places, strict=True)]
    marks = ((low, 0), ((low + high) / 2, _SHADES // 2), (high, _SHADES - 1))
    return codes, shades, [(as_label(value, 4), shades[at]) for value, at in marks]
