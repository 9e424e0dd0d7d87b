"""Scores of the samples in a module, by group."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netbic.estimators import check_count, module_scores
from netbic.penalties import score_groups
from netbic.pl.canvas import GREY, NEGATIVE, POSITIVE, SMALL, apply_layout, axes_for, despine, integer_ticks, set_title
from netbic.pl.source import check_module, data_of, fitted, model_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike

_KINDS = ((-1, "down", NEGATIVE), (0, "neither", GREY), (1, "up", POSITIVE))


def scores(
    model: ModelLike,
    X: Any = None,
    module: int = 0,
    *,
    n_bins: int = 40,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot a histogram of the scores of the samples in a module, coloured by group.

    Scores and groups are those of `selection.sample_groups`: red samples are up, blue ones down, grey ones neither. A
    module whose scores form no groups is a gradient, and all its samples are grey.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    X : array, DataFrame, sparse matrix or AnnData
        The data of the fit, or other samples with the same features; not needed if `model` is an AnnData object.
    module : int
        Modules are numbered from 0; titles count from 1.
    n_bins : int
        Number of bars.
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
    found = fitted(model, key)
    check_count("n_bins", n_bins)
    number = check_module(found, module)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they have been matched here
        values = module_scores(found, model_columns(found, data_of(model, X, key)))[:, number]
    groups = score_groups(values).labels
    ax = axes_for(ax, (5.0, 3.0))
    _draw_bars(ax, values, groups, n_bins)
    ax.axvline(0, color="0.3", lw=0.8, ls=":")
    ax.set(xlabel="score", ylabel="samples")
    integer_ticks(ax.yaxis)
    despine(ax)
    set_title(ax, f"Module {number + 1}: {_in_words(groups)}")
    apply_layout(ax)
    return ax


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
