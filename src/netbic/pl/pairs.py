"""Pairs of two tables: the scores of the samples in both, and the weights of the features of both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
import pandas as pd

from netbic.estimators.parameters import check_count
from netbic.estimators.results import heaviest, position_of
from netbic.pl import base, fitting
from netbic.selection.pair_verdicts import held_out_text
from netbic.storage.models import PairModel, fitted_pair_model, load
from netbic.storage.tables import HELD_OUT, SIDES, feature_names, read_results_table, sample_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    PairSource: TypeAlias = PairModel | Path | str

_GAP = 1.6  # rows between the features of both tables
_SURE = 0.8  # confidence of features that are drawn as filled circles
_OPEN = f"weight (open circles: confidence below {_SURE:g})"


@base.plot
def pairs(
    model: PairSource,
    pair: int = 1,
    *,
    annotation: Any = None,
    colours: base.Colours | None = None,
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot the scores of the samples in both tables, a point per sample.

    Of a pair that was tested, in a folder, scores by fits that did not use the sample are drawn: means over several
    divisions of the samples. The title has its verdict and the correlation of such scores in single divisions, which is
    smaller than that of the means.

    Parameters
    ----------
    model : SparseGraphPLS, SparseGraphCCA, or folder of `netbic pairs`
    pair : int
        Its number, from 1.
    annotation : Series, or DataFrame with one column, optional
        What is known about the samples, for the colours of the points; the index contains their names.
    $colours
    $ax

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y, table_names=("RNA", "protein"))
    >>> ax = netbic.pl.pairs(model)
    >>> ax.get_title(loc="left"), ax.get_xlabel()
    ('Pair 1: correlation 0.84', 'score in RNA')
    """
    found = _fitted(model)
    at = position_of(pair, found.n_components_, "pair")
    x, y, kind = found.x_scores_[:, at], found.y_scores_[:, at], "score"
    stored = _stored(model, "scores", pair)
    if HELD_OUT[0] in stored:
        x, y, kind = *(stored[name].to_numpy(dtype=np.float64) for name in HELD_OUT), "mean held-out score"
    known = base.annotation_strips(annotation, None, sample_names(found), colours)
    if len(known) > 1:
        names = ", ".join(strip.name for strip in known)
        raise ValueError(f"annotation has {len(known)} columns ({names}): points have one colour, give one of them")
    ax = base.axes_for(ax, (4.8 + 1.3 * bool(known), 4.2), given)
    colour: Any = known[0].colours.tolist() if known else base.LINE
    ax.scatter(x, y, s=22, color=colour)
    if known:
        base.draw_legend(ax, [(known[0].name, known[0].legend)], 4.2, 6)
    ax.set(xlabel=f"{kind} in {found.table_names_[0]}", ylabel=f"{kind} in {found.table_names_[1]}")
    base.despine(ax)
    row = _stored(model, "pairs", pair)
    text = f"Pair {pair}: correlation {found.correlations_[at]:.2f}".replace("-", base.MINUS)
    if "verdict" in row:
        (judged,) = row.to_dict("records")
        numbers = held_out_text(judged).replace("-", base.MINUS)
        text = f"Pair {pair} ({judged['verdict']}): held-out correlation {numbers}"
    base.set_title(ax, text)
    base.write_labels(ax, given)
    return ax


@base.plot
def pair_loadings(
    model: PairSource, pair: int = 1, *, n: int = 15, ax: Axes | None = None, **given: Unpack[base.Labels]
) -> Axes:
    """Plot the weights of the features of both tables with the largest absolute weights in a pair.

    Features with weights of the same sign, in either table, are high in the same samples. Open circles: features with a
    confidence below 0.8, if that is in the folder.

    Parameters
    ----------
    model : SparseGraphPLS, SparseGraphCCA, or folder of `netbic pairs`
    pair : int
        Its number, from 1.
    n : int
        Maximum number of features of each table.
    $ax

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y, table_names=("RNA", "protein"))
    >>> netbic.pl.pair_loadings(model, n=6).get_title(loc="left").splitlines()
    ['Pair 1: 6 of 8 features of RNA,', '5 features of protein']
    """
    found = _fitted(model)
    check_count("n", n)
    at = position_of(pair, found.n_components_, "pair")
    values, names, positions, facts, start = list[float](), list[Any](), list[float](), list[str](), 0.0
    tables = list[str]()
    for side, table in zip(SIDES, found.table_names_, strict=True):
        weights = getattr(found, f"{side}_weights_")[:, at]
        members = heaviest(weights)
        drawn = members[:n]
        values += weights[drawn].tolist()
        tables += [table] * drawn.size
        names += feature_names(found, side)[drawn].tolist()
        positions += (start + np.arange(drawn.size)).tolist()
        start += drawn.size + _GAP
        shown = f"{drawn.size} of {members.size:,}" if drawn.size < members.size else f"{members.size:,}"
        facts.append(f"{shown} features of {base.label_text(table)}")
    ax = base.axes_for(ax, (5.0, 1.2 + 0.2 * len(values)), given)
    inks = np.where(np.array(values) > 0, base.POSITIVE, base.NEGATIVE).tolist()
    ax.hlines(positions, 0, values, colors=inks, linewidths=1.2)
    sure = _confidence(_stored(model, "weights", pair), tables, names)
    fills = [ink if enough else "white" for ink, enough in zip(inks, sure, strict=True)]
    ax.scatter(values, positions, c=fills, edgecolors=inks, s=22, zorder=3)
    ax.axvline(0, color="0.3", lw=0.8)
    n_first = min(int(found.x_support_[at].sum()), n)
    ax.axhline(n_first - 1 + (1 + _GAP) / 2, color="0.75", lw=0.8)
    for table, top in zip(found.table_names_, (0.0, n_first + _GAP), strict=True):
        ax.annotate(
            base.label_text(table), (1, top), (2, 0), ("axes fraction", "data"), textcoords="offset points",
            va="center", size=fitting.small(), weight="bold", annotation_clip=False, **base.LITERAL,
        )  # fmt: skip
    ax.set(ylim=(max(start - _GAP, 1) - 0.4, -0.6), xlabel="weight" if all(sure) else _OPEN)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=6)
    base.despine(ax)
    base.set_title(ax, f"Pair {pair}: {facts[0]},\n{facts[1]}", **base.LITERAL)
    base.write_labels(ax, given)
    fitting.apply_layout(ax)
    base.name_ticks(ax, "y", positions, names, np.abs(values))
    return ax


def _stored(model: PairSource, name: str, pair: int) -> pd.DataFrame:
    """What a table of the folder says about a pair; no rows for a model."""
    table = read_results_table(Path(model), name, "pair") if isinstance(model, (str, Path)) else None
    return pd.DataFrame() if table is None else table[table["pair"] == pair]


def _confidence(weights: pd.DataFrame, tables: list[str], names: list[Any]) -> list[bool]:
    """Whether the confidence of each feature is large enough, or not known."""
    if "confidence" not in weights:
        return [True] * len(names)
    known = weights.astype({"table": str, "name": str}).drop_duplicates(["table", "name"]).set_index(["table", "name"])
    asked = pd.MultiIndex.from_arrays([tables, [str(name) for name in names]])
    return (~(known["confidence"].reindex(asked) < _SURE)).tolist()


def _fitted(model: PairSource) -> PairModel:
    """The model, or that of a folder."""
    return fitted_pair_model(load(model) if isinstance(model, (str, Path)) else model)
