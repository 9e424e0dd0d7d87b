"""Charts of all modules: positions and texts, which the template draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats
from netbic.estimators.svd import SparseGraphSVD
from netbic.pl.base import MINUS
from netbic.report.pictures import Figure, Scale, round_ticks
from netbic.selection import KINDS
from netbic.solver.count import Count

_VERDICTS: Final = (*KINDS, "unknown")  # also classes of marks
_PLAIN, _WARNED = "plain", "warned"
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_LEFT, _WIDTH, _HEIGHT = 72, 400, 250
_LETTER, _LINE, _KEY, _GAP = 7, 20, 18, 14  # of the legend: width of a letter, height of a line, mark, space after
_WIDE, _HIGH = 18, 12  # the least width and height for the number of a module
_RADIUS = 5
_MOST_COMPARED = 80
_MOST_WRITTEN = 12  # modules up to which overlaps are written as numbers

Places = list[tuple[float, str]]  # of ticks, with their labels


class Chart(NamedTuple):
    """A chart as the template needs it.

    The drawing has groups of marks; a group leads to the details of its module. A mark is a path with a class; the
    tooltip belongs to the group or to each mark.
    """

    name: str
    title: str
    caption: str
    drawing: Figure


def charts(model: SparseGraphSVD, table: pd.DataFrame, level: float, scores: Floats | None = None) -> list[Chart]:
    """All charts for which there are data; `table` has a row per module, `level` is that of the tests for edges.

    `scores` are modules by samples; default: the weights of the samples.
    """
    made = [_variance(table)]
    if model.n_components_ > 1:
        compared = [_members_in_common("shared", "genes", model.columns_[:_MOST_COMPARED])]
        if model.rows_[:_MOST_COMPARED].all(axis=1).any():
            known = model.left_vectors_.T if scores is None else scores
            compared.append(_similar_scores(known[:_MOST_COMPARED]))
        else:
            compared.append(_members_in_common("samples", "samples", model.rows_[:_MOST_COMPARED]))
        cut = f" The first {_MOST_COMPARED} modules." if model.n_components_ > _MOST_COMPARED else ""
        made += [chart._replace(caption=chart.caption + cut) for chart in compared]
    edges = _edges(table, level) if "degree_fold_change" in table else None
    if edges is not None:
        made.append(edges)
    if model.count_ is not None and model.count_.curve:
        made.append(_found_again(model.count_))
    return made


def _drawing(groups: list[Figure], x: tuple[str, Places], y: tuple[str, Places], keys: Iterable[Figure] = ()) -> Figure:
    """Marks in a frame with titles and ticks, and above it a legend in as many lines as it needs."""
    legend, at, line = list[Figure](), 0, 1
    for key in keys:
        mark = _KEY if "style" in key else 0
        width = mark + _LETTER * len(key["text"]) + _GAP
        if at and at + width > _LEFT + _WIDTH:
            at, line = 0, line + 1
        legend.append(key | {"x": at, "text_x": at + mark, "line": line})
        at += width
    above = _LINE * line + 8 if legend else 10
    legend = [key | {"y": _LINE * key["line"] - above - 6} for key in legend]
    frame = {"left": _LEFT, "width": _WIDTH, "height": _HEIGHT, "x_title": x[0], "y_title": y[0]}
    box = 0, -above, _LEFT + _WIDTH + 14, above + _HEIGHT + 52
    return {"box": box, "groups": groups, "legend": legend, "lines": [], "x_ticks": x[1], "y_ticks": y[1], **frame}


def _modules(n: int, start: int, length: int, least: int) -> tuple[Scale, Places]:
    """An axis with a place for each of n modules, and as many of their numbers as fit."""
    axis = Scale(0.5, n + 0.5, start, length)
    return axis, [(axis.at(k), str(k)) for k in range(1, n + 1, math.ceil(least * n / length))]


def _rectangle(left: float, right: float, top: float, bottom: float) -> str:
    return f"M{left:g} {top:g}H{right:g}V{bottom:g}H{left:g}z"


def _point(x: float, y: float) -> str:
    half = f"a{_RADIUS} {_RADIUS} 0 1 0"
    return f"M{x - _RADIUS:g} {y:g}{half} {2 * _RADIUS} 0{half} {-2 * _RADIUS} 0z"


def _variance(table: pd.DataFrame) -> Chart:
    """A bar per module, coloured by its verdict, or by whether there are diagnostics."""
    if "verdict" in table:
        kinds, words = list(table["verdict"]), {kind: kind for kind in _VERDICTS if kind in set(table["verdict"])}
    else:
        kinds = [_WARNED if text else _PLAIN for text in table["diagnostics"]]
        words = {_PLAIN: "without diagnostics", _WARNED: "with a diagnostic"}
    percents = 100 * table["explained_variance_ratio"].fillna(0.0)
    most = max(0.0, percents.max()) or 1.0
    step = round_ticks(0.0, most)[1]
    up = Scale(min(0.0, percents.min()), step * math.ceil(most / step), _HEIGHT, -_HEIGHT)
    across, numbers = _modules(len(table), _LEFT, _WIDTH, _WIDE)
    groups = list[Figure]()
    for at, (row, kind, percent) in enumerate(zip(table.to_dict("records"), kinds, percents, strict=True), start=1):
        text = (
            f"module {row['module']}: {words[kind]}\nvariance explained: {percent:.2f}%\n"
            f"strength d: {row['singular_value']:,.1f}\ntop genes: {row['top_genes']}"
        )
        bar = _rectangle(across.at(at - 0.46), across.at(at + 0.46), up.at(percent), up.at(0.0))
        groups.append({"module": row["module"], "text": text, "marks": [{"style": kind, "path": bar}]})
    y = "variance explained", [(at, f"{label}%") for at, label in up.ticks]
    keys = [{"style": kind, "text": word} for kind, word in words.items()]
    caption = "One bar per module: the variance that it explains beyond those before it."
    drawing = _drawing(groups, ("module", numbers), y, keys)
    return Chart("variance", "Explained variance of each module", caption, drawing)


def _found_again(count: Count) -> Chart:
    """Modules found again in halves of the samples against how many are searched for."""
    most = max(count.searched, 1)
    x, y = Scale(0, most, _LEFT, _WIDTH), Scale(0, most, _HEIGHT, -_HEIGHT)
    groups, places = list[Figure](), list[str]()
    for searched, again in count.curve:
        text = f"modules searched for: {searched}\nfound again: {again}"
        mark = {"style": _PLAIN, "path": _point(x.at(searched), y.at(again)), "text": text}
        groups.append({"marks": [mark]})
        places.append(f"{x.at(searched):g} {y.at(again):g}")
    drawing = _drawing(groups, ("modules searched for", x.ticks), ("found again", y.ticks))
    level, every = f"M{_LEFT} {y.at(count.n):g}h{_WIDTH}", f"M{x.at(0):g} {y.at(0):g}L{x.at(most):g} {y.at(most):g}"
    drawing["lines"] = [("every", every), ("found", level), ("again", f"M{'L'.join(places)}")]
    caption = (
        f"{count.sentence[0].upper()}{count.sentence[1:]} (horizontal line). Points: the first pair of halves, "
        "if so many are searched for. Dashed: all are found again."
    )
    return Chart("count", "Modules found again in halves of the samples", caption, drawing)


def _similar_scores(scores: Floats) -> Chart:
    """Correlations of the scores of modules over the samples in which both are known; NaN if they are constant."""
    correlations = np.asarray(pd.DataFrame(scores.T).corr(min_periods=3), dtype=np.float64)
    caption = (
        "Modules keep all samples, so the scores of two modules are compared: the absolute value of their correlation. "
        "1: they order the samples in the same or in the opposite way; 0: they have nothing to do with each other."
    )

    def describe(one: int, other: int) -> str:
        return f"correlation {correlations[one, other]:.2f}".replace("-", MINUS)

    titles = "samples", "Similarity of sample scores", caption, "absolute correlation"
    return _overlap(*titles, np.abs(correlations), describe)


def _members_in_common(name: str, noun: str, members: Array) -> Chart:
    shared, sizes = members.astype(np.int64) @ members.T.astype(np.int64), members.sum(axis=1)
    union = sizes[:, None] + sizes - shared
    jaccard = np.divide(shared, union, out=np.full(shared.shape, np.nan), where=union > 0)
    caption = f"{noun.capitalize()} of two modules: the number in both, divided by the number in at least one"

    def describe(one: int, other: int) -> str:
        return f"{shared[one, other]:,} {noun} in common (share {jaccard[one, other]:.2f})"

    titles = name, f"{noun.capitalize()} in common", f"{caption} (Jaccard index).", "share in common"
    return _overlap(*titles, jaccard, describe)


def _overlap(
    name: str, title: str, caption: str, legend: str, shares: Floats, describe: Callable[[int, int], str]
) -> Chart:
    """Pairs of modules on a scale from 0 to 1, whatever the largest value is; `describe` gives their tooltips."""
    n, groups = len(shares), list[Figure]()
    (across, numbers), (down, labels) = _modules(n, _LEFT, _WIDTH, _WIDE), _modules(n, 0, _HEIGHT, _HIGH)
    for row in range(n):
        others = np.flatnonzero(np.isfinite(shares[row]) & (np.arange(n) != row)).tolist()
        group: Figure = {"module": row + 1, "text": f"module {row + 1}", "marks": []}
        if others:
            closest = max(others, key=lambda other: shares[row, other])
            group["text"] += f", closest to module {closest + 1}\n{describe(row, closest)}"
        if (label := (down.at(row + 1), str(row + 1))) in labels:
            group |= {"label": label[1], "x": _LEFT - 8, "y": label[0] + 5}
        for other in others:
            share, x = round(float(shares[row, other]), 3), across.at(other + 1)
            cell = across.at(other + 0.5), across.at(other + 1.5), down.at(row + 0.5), down.at(row + 1.5)
            text = f"modules {row + 1} and {other + 1}\n{describe(row, other)}"
            mark = {"style": "share", "share": share, "path": _rectangle(*cell), "text": text}
            is_written = n <= _MOST_WRITTEN and share >= 0.005
            group["marks"].append(mark | ({"x": x, "y": down.at(row + 1) + 4} if is_written else {}))
        groups.append(group)
    keys: list[Figure] = [{"text": legend}]
    keys += [{"style": "share", "share": k / 5, "text": f"{k / 5:g}"} for k in range(6)]
    return Chart(name, title, caption, _drawing(groups, ("module", numbers), ("module", []), keys))


def _edges(table: pd.DataFrame, level: float) -> Chart | None:
    """Fold changes of the edges on logarithmic axes; None if there are none that can be drawn."""
    words = {_PLAIN: f"more than expected from the degrees (q ≤ {level:g})", _WARNED: "not more"}
    data = table[["module", "n_edges", "fold_change", "degree_fold_change"]].assign(
        kind=np.where(table["degree_q_value"] <= level, _PLAIN, _WARNED)
    )
    data = data.replace([np.inf, -np.inf], np.nan).dropna()
    data = data[(data["fold_change"] > 0) & (data["degree_fold_change"] > 0)]
    if data.empty:
        return None
    x, y = (
        Scale(values.min() / 1.15, values.max() * 1.15, *place, log=True)  # also wide enough for a single value
        for values, place in ((data["fold_change"], (_LEFT, _WIDTH)), (data["degree_fold_change"], (_HEIGHT, -_HEIGHT)))
    )
    random, of_degrees = (f"{_TIMES} {those}" for those in ("random genes", "genes of the same degrees"))
    groups = list[Figure]()
    for module, n_edges, *folds, kind in data.itertuples(index=False, name=None):
        text = f"module {module}: {n_edges:,.0f} edges\n{folds[0]:.2f} {random}\n{folds[1]:.2f} {of_degrees}"
        mark = {"style": kind, "path": _point(x.at(folds[0]), y.at(folds[1]))}
        groups.append({"module": module, "text": f"{text}\n{words[kind]}", "marks": [mark]})
    not_shown = len(table) - len(data)
    caption = (
        "Edges inside each module, compared with random genes (horizontal) and with random genes of the same degrees "
        "(vertical). Points at the lower right are modules of hubs, or of highly expressed or variable genes. If the "
        "network was used in the fit, neither comparison is evidence of biology."
        + (f" Modules without edges, or that cannot be compared ({not_shown}), are not shown." if not_shown else "")
    )
    keys = [{"style": kind, "text": word} for kind, word in words.items()]
    drawing = _drawing(groups, (f"edges, {random}", x.ticks), (f"edges, {of_degrees}", y.ticks), keys)
    return Chart("evidence", "Edges compared with random genes", caption, drawing)
