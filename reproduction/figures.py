"""Figures of the experiments, as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from netbic.errors import import_optional
from netbic.files import write_atomic
from reproduction.simulation import OURS as OUR_STARTS
from reproduction.tumours import OURS, TERM_LEVELS, terms_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which colour-blind readers can distinguish; netbic in black.
COLOURS: Final = {
    "sgSVD*": "#D55E00",
    "sgSVD": "#E69F00",
    "L0SVD": "#0072B2",
    "ALSVD": "#009E73",
    "SCADSVD": "#CC79A7",
    OUR_STARTS: "#000000",
    OURS: "#000000",
    "truth": "#888888",
}
MARKERS: Final = {"sgSVD*": "o", "sgSVD": "s", "L0SVD": "^", "ALSVD": "v", "SCADSVD": "D", OUR_STARTS: "x"}


def plotting() -> ModuleType:
    """Matplotlib, without a window."""
    matplotlib = import_optional("matplotlib", "plot", "a figure")
    matplotlib.use("Agg", force=False)
    pyplot: ModuleType = import_optional("matplotlib.pyplot", "plot", "a figure")
    pyplot.rcParams.update({"svg.hashsalt": "netbic", "svg.fonttype": "none"})
    return pyplot


def save_figure(figure: Figure, path: Path) -> None:
    """Save a figure as PNG and SVG, reproducibly."""
    for kind, options in ((".png", {"dpi": 120}), (".svg", {"metadata": {"Date": None}})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind[1:], bbox_inches="tight", **options)
        write_atomic(path.with_suffix(kind), buffer.getvalue())
    plotting().close(figure)


def draw_figure_1(toy: pd.DataFrame, curves: pd.DataFrame, controls: pd.DataFrame, path: Path) -> None:
    """Panels A (the toy), B and C (sensitivity) and, not in the paper, D (controls)."""
    figure = plotting().figure(figsize=(12, 7.5), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.25])
    _draw_toy(top.subplots(1, 4, sharey=True), toy)
    axes = bottom.subplots(1, 3)
    for axis, signs, letter in zip(axes, ("same", "random"), "BC", strict=False):
        _draw_curves(axis, curves[curves["signs"] == signs], f"{letter}  {signs} signs")
    axes[0].legend(frameon=False, fontsize=8)
    _draw_controls(axes[2], controls)
    save_figure(figure, path)


def _draw_toy(axes: Sequence[Axes], toy: pd.DataFrame) -> None:
    for axis, (name, part) in zip(axes, toy.groupby("method", sort=False), strict=True):
        axis.vlines(part["position"], 0, part["value"], color=COLOURS[str(name)], lw=1)
        axis.axvline(49.5, color="0.6", lw=0.8, ls=":")
        axis.axhline(0, color="0.3", lw=0.6)
        axis.set_title(("A  " if axis is axes[0] else "") + str(name), loc="left", fontsize=10)
        axis.set_xlabel("variable (planted: the first 50)")
    axes[0].set_ylabel("v")


def _draw_curves(axis: Axes, curves: pd.DataFrame, title: str) -> None:
    for name, part in curves.groupby("method", sort=False):
        axis.errorbar(
            part["gamma"], part["mean"], part["sem"], color=COLOURS[str(name)], marker=MARKERS[str(name)], ms=4,
            lw=1.2, label=str(name),
        )  # fmt: skip
    axis.set(xlabel="noise (gamma)", ylabel="sensitivity = specificity", ylim=(0.6, 1.02))
    axis.set_title(title, loc="left", fontsize=10)


def _draw_controls(axis: Axes, controls: pd.DataFrame) -> None:
    names = list(controls["control"].unique())
    methods = list(controls["method"].unique())
    for k, name in enumerate(methods):
        shares = controls[controls["method"] == name].set_index("control").loc[names, "in_block"]
        axis.barh(np.arange(len(names)) + 0.2 * (k - 1.5), shares, 0.18, color=COLOURS[name], label=name)
    axis.axvline(0.5, color="0.3", lw=0.8, ls=":")
    axis.set_yticks(np.arange(len(names)), [name.replace(" off the", "\noff the") for name in names])
    axis.invert_yaxis()
    axis.set(xlabel="share of the selection in the dense block (chance: 0.5)", xlim=(0, 1))
    axis.set_title("D  controls (not in the paper), gamma 0.06", loc="left", fontsize=10)


def draw_figure_2(modules: pd.DataFrame, random: dict[str, dict[str, int]], path: Path) -> None:
    """Row A: fold changes, as in the paper and relative to degree-matched sets; row B: enriched GO terms."""
    datasets = list(modules["dataset"].unique())
    figure, axes = plotting().subplots(
        2, len(datasets), figsize=(3.4 * len(datasets) + 0.6, 7), layout="constrained", squeeze=False
    )
    for column, dataset in enumerate(datasets):
        part = modules[modules["dataset"] == dataset]
        _draw_fold_changes(axes[0, column], part, ("A  " if not column else "") + dataset)
        _draw_terms(axes[1, column], part, random.get(dataset, {}), ("B  " if not column else "") + dataset)
    axes[0, 0].set_ylabel("log(fold change) of edges")
    axes[1, 0].set_ylabel("enriched GO terms, all modules")
    axes[1, 0].legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def _draw_fold_changes(axis: Axes, part: pd.DataFrame, title: str) -> None:
    kinds = {
        "fold_change": "paper",
        "degree_fold_change": "degree\nmatched",
        "rewired_fold_change": "fitted to a\nrewired graph",
    }
    methods = list(part["method"].unique())
    for group, column in enumerate(kinds):
        for k, name in enumerate(methods):
            values = part.loc[part["method"] == name, column]
            logs = np.log(values[values > 0])
            boxes = axis.boxplot(
                [logs], positions=[group * (len(methods) + 1) + k], widths=0.7, patch_artist=True, showfliers=False
            )
            boxes["boxes"][0].set(facecolor=COLOURS[name], alpha=0.8)
            boxes["medians"][0].set(color="white")
    axis.axhline(0, color="0.3", lw=0.8, ls=":")
    centres = [group * (len(methods) + 1) + (len(methods) - 1) / 2 for group in range(len(kinds))]
    axis.set_xticks(centres, kinds.values(), fontsize=8)
    axis.set_title(title, loc="left", fontsize=10)


def _draw_terms(axis: Axes, part: pd.DataFrame, random: dict[str, int], title: str) -> None:
    levels = np.log10(TERM_LEVELS)
    columns = [terms_column(level) for level in TERM_LEVELS]
    for name, modules in part.groupby("method", sort=False):
        axis.plot(levels, modules[columns].sum(), marker="o", ms=4, color=COLOURS[str(name)], label=str(name))
    if random:
        axis.plot(
            levels, [random[column] for column in columns], ls=":", marker=".", color="#888888", label="random modules"
        )
    axis.set_xticks(levels, [f"{level:g}" for level in TERM_LEVELS])
    axis.set(xlabel="significance level (adjusted)", ylim=(0, None))
    axis.set_title(title, loc="left", fontsize=10)
