"""Scores of the samples in a module, by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.estimators import check_count
from netbic.pl.annotation import Colours, Strip, annotation_table, draw_legend, strips
from netbic.pl.canvas import (
    GREY,
    NEGATIVE,
    POSITIVE,
    SMALL,
    apply_layout,
    axes_for,
    despine,
    integer_ticks,
    module_title,
    set_title,
)
from netbic.pl.names import LITERAL, label_text
from netbic.pl.sample_scores import sample_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike

_LANE = 0.07  # height of a lane, as a share of the highest bar
_KINDS = ((-1, "down", NEGATIVE), (0, "neither", GREY), (1, "up", POSITIVE))


def scores(
    model: ModelLike | pd.DataFrame | str | Path,
    X: Any = None,
    module: int = 0,
    *,
    n_bins: int = 40,
    annotation: Any = None,
    colours: Colours | None = None,
    names: Sequence[str] | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot a histogram of the scores of the samples in a module, coloured by group.

    Scores and groups are those of `selection.sample_groups`: red samples are up, blue ones down, grey ones neither. A
    module whose scores form no groups is a gradient, and all its samples are grey.

    Parameters
    ----------
    model : SparseGraphSVD, AnnData, DataFrame, or folder of a fit
        A table is one of scores and groups, as `selection.sample_groups` returns and samples.tsv contains.
    X : array, DataFrame, sparse matrix or AnnData
        The data of the fit, or other samples with the same features; not needed if `model` is an AnnData object, a
        table or a folder.
    module : int
        Modules are numbered from 0; titles count from 1.
    n_bins : int
        Number of bars.
    annotation : DataFrame, Series, or list of str, optional
        What is known about the samples: below the histogram, each level of a category has a lane with a line at the
        score of each of its samples; numbers have one lane, coloured by value, with a legend. The index contains the
        names of the samples. If `model` is an AnnData object, also names of columns of its obs.
    colours : dict of dict, optional
        Colours of levels, by column of the annotation and level: `{"sex": {"f": "#E69F00", "m": "#0072B2"}}`.
    names : list of str, optional
        Names of all modules for the title, e.g. of `netbic.enrichment.module_names`. Default: those of the folder.
    key : str
        Key of the modules in an AnnData object (`key_added` of `tl.modules`).
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> netbic.pl.scores(model, study.expression).get_title(loc="left")
    'Module 1: up in 24, down in 16 of 200 samples'
    """
    check_count("n_bins", n_bins)
    found = sample_scores(model, X, module, key)
    known = [] if annotation is None else strips(annotation_table(annotation, model, found.samples), colours)
    n_lanes = sum(1 if strip.is_numeric else len(strip.legend) for strip in known)
    ax = axes_for(ax, (5.0 + 1.3 * bool(known), 3.0 + 0.16 * n_lanes))
    _draw_bars(ax, found.values, found.groups, n_bins)
    ax.axvline(0, color="0.3", lw=0.8, ls=":")
    ax.set(xlabel="score", ylabel="samples")
    integer_ticks(ax.yaxis)
    _draw_lanes(ax, found.values, known, n_lanes)
    _draw_scales(ax, [strip for strip in known if strip.is_numeric])
    despine(ax)
    name = found.name if names is None else names[found.number]
    set_title(ax, module_title(found.number, label_text(name, 60), _in_words(found.groups)), **LITERAL)
    apply_layout(ax)
    return ax


def _draw_lanes(ax: Axes, values: NDArray[Any], known: list[Strip], n_lanes: int) -> None:
    """Lanes below the histogram, inside the same axes, which are made taller for them."""
    if not known:
        return
    top = ax.get_ylim()[1]
    height = top * _LANE
    ticks = [tick for tick in ax.get_yticks() if 0 <= tick <= top]
    low = -height * 0.5
    for strip in known:
        for code in [0] if strip.is_numeric else range(len(strip.legend)):
            label, colour = strip.legend[code]
            missing = label == "missing" and code == len(strip.legend) - 1
            own = np.isfinite(values) & (strip.codes == (-1 if missing else code))
            colours: Any = strip.colours[own] if strip.is_numeric else [colour]
            ax.vlines(values[own], low - height * 0.85, low, colors=colours, lw=0.7)
            text = label_text(strip.name if strip.is_numeric else f"{strip.name}: {label}", 36)
            ax.annotate(
                text, (1, low - height / 2), (4, 0), ("axes fraction", "data"), textcoords="offset points", va="center",
                size=SMALL, annotation_clip=False, **LITERAL,
            )  # fmt: skip
            low -= height
        low -= height * 0.4
    ax.set_ylim(low, top)
    ax.set_yticks(ticks)
    ax.spines["left"].set_bounds(0, top)


def _draw_scales(ax: Axes, numeric: list[Strip]) -> None:
    """A legend of the colours of numbers, at the right of the bars."""
    if not numeric:
        return
    groups = ax.get_legend()
    draw_legend(ax, numeric)
    if groups is not None:
        ax.add_artist(groups)  # a second legend would replace the first one


def _draw_bars(ax: Axes, values: NDArray[Any], groups: NDArray[Any], n_bins: int) -> None:
    known = np.isfinite(values)
    drawn = [(values[known & (groups == kind)], name, colour) for kind, name, colour in _KINDS]
    drawn = [part for part in drawn if part[0].size]
    if not drawn:
        return
    parts, names, colours = zip(*drawn, strict=True)
    bins = np.histogram_bin_edges(values[known], n_bins).tolist()
    ax.hist(parts, bins=bins, stacked=True, color=colours, label=names)
    if len(drawn) > 1:
        ax.legend(fontsize=SMALL, frameon=False)


def _in_words(groups: NDArray[Any]) -> str:
    counts = {name: int((groups == kind).sum()) for kind, name in ((1, "up"), (-1, "down"))}
    parts = [f"{name} in {count:,}" for name, count in counts.items() if count]
    return f"{', '.join(parts)} of {groups.size:,} samples" if parts else f"gradient, {groups.size:,} samples"
