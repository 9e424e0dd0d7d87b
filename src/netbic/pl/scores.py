"""Scores of the samples in a module, by group."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.errors import InputError
from netbic.estimators import check_count, module_scores
from netbic.penalties import score_groups
from netbic.pl.annotation import Strip, annotation_table, strips
from netbic.pl.canvas import GREY, NEGATIVE, POSITIVE, SMALL, apply_layout, axes_for, despine, integer_ticks, set_title
from netbic.pl.names import LITERAL, label_text
from netbic.pl.source import check_module, data_of, fitted, model_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike

_LANE = 0.07  # height of a lane, as a share of the highest bar
_KINDS = ((-1, "down", NEGATIVE), (0, "neither", GREY), (1, "up", POSITIVE))


def scores(
    model: ModelLike | pd.DataFrame,
    X: Any = None,
    module: int = 0,
    *,
    n_bins: int = 40,
    annotation: Any = None,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot a histogram of the scores of the samples in a module, coloured by group.

    Scores and groups are those of `selection.sample_groups`: red samples are up, blue ones down, grey ones neither. A
    module whose scores form no groups is a gradient, and all its samples are grey.

    Parameters
    ----------
    model : SparseGraphSVD, AnnData, or DataFrame
        A table is one of scores and groups, as `selection.sample_groups` returns and samples.tsv contains.
    X : array, DataFrame, sparse matrix or AnnData
        The data of the fit, or other samples with the same features; not needed if `model` is an AnnData object or a
        table.
    module : int
        Modules are numbered from 0; titles count from 1.
    n_bins : int
        Number of bars.
    annotation : DataFrame, Series, or list of str, optional
        What is known about the samples: below the histogram, each level of a category has a lane with a line at the
        score of each of its samples; numbers have one lane, coloured by value. The index contains the names of the
        samples. If `model` is an AnnData object, also names of columns of its obs.
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
    samples, values, groups, number = _scores(model, X, module, key)
    known = [] if annotation is None else strips(annotation_table(annotation, model, samples))
    n_lanes = sum(1 if strip.is_numeric else len(strip.legend) for strip in known)
    ax = axes_for(ax, (5.0 + 1.3 * bool(known), 3.0 + 0.16 * n_lanes))
    _draw_bars(ax, values, groups, n_bins)
    ax.axvline(0, color="0.3", lw=0.8, ls=":")
    ax.set(xlabel="score", ylabel="samples")
    integer_ticks(ax.yaxis)
    _draw_lanes(ax, values, known, n_lanes)
    despine(ax)
    set_title(ax, f"Module {number + 1}: {_in_words(groups)}")
    apply_layout(ax)
    return ax


def _scores(model: Any, X: Any, module: int, key: str) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any], int]:
    """Names, scores and groups (1, 0 or -1) of the samples, and the number of the module."""
    if isinstance(model, pd.DataFrame):
        if missing := [name for name in ("module", "sample", "score", "group") if name not in model]:
            raise InputError(f"the table has no column {missing[0]!r}: give that of selection.sample_groups")
        own = model[model["module"] == module]
        if own.empty:
            raise InputError(f"module={module!r} but the table has modules {sorted(set(model['module'].tolist()))}")
        groups = own["group"].map({"up": 1, "down": -1}).fillna(0).to_numpy(dtype=int)
        return own["sample"].to_numpy(dtype=object), own["score"].to_numpy(dtype=float), groups, int(module)
    found = fitted(model, key)
    number, data = check_module(found, module), data_of(model, X, key)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they have been matched here
        values = module_scores(found, model_columns(found, data))[:, number]
    samples = np.arange(values.size) if data.rows is None else data.rows.to_numpy(dtype=object)
    return samples, values, score_groups(values).labels, number


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
