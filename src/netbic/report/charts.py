"""Charts of all modules: Altair describes them, vl-convert compiles them and contains the library that draws them."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, NamedTuple

import altair
import numpy as np
import pandas as pd
import vl_convert
from PIL import Image

from netbic.arrays import Array, Floats
from netbic.estimators.svd import SparseGraphSVD
from netbic.report.pictures import png
from netbic.solver.count import Count

_BLUE, _ORANGE = "#0072B2", "#D55E00"
_VERDICTS = {"strong": "#00805B", "moderate": _BLUE, "repeats": "#9A6FB0", "doubtful": _ORANGE, "unknown": "#8A8F94"}
_SHADES = ("#F1EFE9", "#7FB1D3", "#0B3C6D")  # of overlaps from 0 to 1
_HEIGHT, _STATIC_WIDTH = 260, 520
_MOST_COMPARED = 80
_MOST_WRITTEN = 12  # modules up to which overlaps are written as numbers
_MORE, _NOT_MORE = "more than expected from the degrees (q ≤ {:g})", "not more"
_READY = "window.vegaEmbed = vegaEmbed; window.dispatchEvent(new Event('vega-ready'));"


class Chart(NamedTuple):
    """A chart as a page needs it: a Vega specification, and an image for readers without JavaScript."""

    name: str
    title: str
    caption: str
    vega: dict[str, Any]
    static: str


@cache
def library() -> str:
    """Vega as one script, which raises the event `vega-ready`. Bundling takes seconds, so the result is cached."""
    return str(vl_convert.javascript_bundle(_READY))


def charts(model: SparseGraphSVD, table: pd.DataFrame, level: float, scores: Floats | None = None) -> list[Chart]:
    """All charts for which there are data; `table` has a row per module, `level` is that of the tests for edges.

    `scores` are modules by samples; default: the weights of the samples.
    """
    made = [_variance(table)]
    if model.n_components_ > 1:
        made.append(_members_in_common("shared", "genes", model.columns_[:_MOST_COMPARED]))
        if model.rows_[:_MOST_COMPARED].all(axis=1).any():
            known = model.left_vectors_.T if scores is None else scores
            made.append(_similar_scores(known[:_MOST_COMPARED]))
        else:
            made.append(_members_in_common("samples", "samples", model.rows_[:_MOST_COMPARED]))
    edges = _edges(table, level) if "degree_fold_change" in table else None
    if edges is not None:
        made.append(edges)
    if model.count_ is not None and model.count_.curve:
        made.append(_found_again(model.count_))
    return made


def _finish(name: str, title: str, caption: str, chart: Any) -> Chart:
    """The chart as wide as the page, and as a small image on white: 128 colours are plenty for a chart."""
    chart = chart.properties(height=_HEIGHT).configure(background="transparent").configure_view(stroke=None)
    with altair.data_transformers.disable_max_rows():  # here only, not for charts of the user
        still = chart.properties(width=_STATIC_WIDTH).to_dict()
        wide = chart.properties(width="container", autosize={"type": "fit-x", "contains": "padding"}).to_dict()
    vega = vl_convert.vegalite_to_vega(wide)
    vega.pop("$schema", None)
    drawn = io.BytesIO(vl_convert.vegalite_to_png(still | {"background": "white"}))
    return Chart(name, title, caption, vega, png(Image.open(drawn).convert("RGB").quantize(128)))


def _tooltips(**titles: str) -> list[Any]:
    """What a chart shows of the point under the pointer: title and format by field, the module first."""
    found = [altair.Tooltip("module:O")]
    for name, given in titles.items():
        title, _, form = given.partition("|")
        options: dict[str, Any] = {"format": form} if form else {}
        found.append(altair.Tooltip(f"{name}:{'Q' if form else 'N'}", title=title, **options))
    return found


def _x_modules(**options: Any) -> Any:
    return altair.X("module:O", title="module", axis=altair.Axis(labelAngle=0, labelOverlap=True), **options)


def _colours(field: str, colours: dict[str, str]) -> Any:
    """A colour for each kind."""
    legend = altair.Legend(orient="top", title=None, labelLimit=300)
    scale = altair.Scale(domain=list(colours), range=list(colours.values()))
    return altair.Color(field, scale=scale, legend=legend)


def _variance(table: pd.DataFrame) -> Chart:
    """A bar per module, coloured by its verdict, or by whether there are diagnostics."""
    kinds, colours, judged = table.get("verdict"), _VERDICTS, "verdict" in table
    if kinds is None:
        colours = {"without diagnostics": _BLUE, "with a diagnostic": _ORANGE}
        kinds = pd.Series(np.where(table["diagnostics"].str.len() > 0, *reversed(colours)))
    data = table[["module"]].assign(variance=table["explained_variance_ratio"].round(6))
    data = data.assign(strength=table["singular_value"].round(4), genes=table["top_genes"], kind=kinds)
    used = {kind: colour for kind, colour in colours.items() if not judged or kind in set(kinds)}
    titles = {"variance": "variance explained|.2%", "strength": "strength d|,.1f", "genes": "top genes"}
    chart = altair.Chart(data).mark_bar(cursor="pointer")
    chart = chart.encode(
        x=_x_modules(),
        y=altair.Y("variance:Q", title="variance explained", axis=altair.Axis(format="%", tickCount=5)),
        color=_colours("kind:N", used),
        tooltip=_tooltips(kind="verdict" if judged else "kind", **titles),
    )
    caption = "One bar per module: the variance that it explains beyond those before it."
    return _finish("variance", "Explained variance of each module", caption, chart)


def _found_again(count: Count) -> Chart:
    """Modules found again in halves of the samples against how many are searched for."""
    data = pd.DataFrame(count.curve, columns=["searched", "again"])
    axes = altair.X("searched:Q", title="modules searched for"), altair.Y("again:Q", title="found again")
    every = pd.DataFrame({"searched": [0, count.searched], "again": [0, count.searched]})
    layers = (
        altair.Chart(every).mark_line(strokeDash=[4, 4], color="#8A8F94", strokeWidth=1).encode(x=axes[0], y=axes[1]),
        altair.Chart(data).mark_line(point=True, color=_BLUE).encode(x=axes[0], y=axes[1]),
        altair.Chart(pd.DataFrame({"again": [count.n]})).mark_rule(color=_ORANGE).encode(y=axes[1]),
    )
    caption = f"{count.sentence[0].upper()}{count.sentence[1:]} (horizontal line). Dashed: all are found again."
    return _finish("count", "Modules found again in halves of the samples", caption, altair.layer(*layers))


def _similar_scores(scores: Floats) -> Chart:
    """Correlations of the scores of modules over the samples in which both are known; NaN if they are constant."""
    correlations = np.asarray(pd.DataFrame(scores.T).corr(min_periods=3), dtype=np.float64)
    caption = (
        "Modules keep all samples, so the scores of two modules are compared: the absolute value of their correlation. "
        "1: they order the samples in the same or in the opposite way; 0: they have nothing to do with each other."
    )
    titles = "samples", "Similarity of sample scores", caption, "absolute correlation"
    return _overlap(*titles, np.abs(correlations), "signed", "correlation", correlations.round(2))


def _members_in_common(name: str, noun: str, members: Array) -> Chart:
    shared, sizes = members.astype(np.int64) @ members.T.astype(np.int64), members.sum(axis=1)
    union = sizes[:, None] + sizes - shared
    jaccard = np.divide(shared, union, out=np.full(shared.shape, np.nan), where=union > 0)
    caption = f"{noun.capitalize()} of two modules: the number in both, divided by the number in at least one"
    titles = name, f"{noun.capitalize()} in common", f"{caption} (Jaccard index).", "share in common"
    return _overlap(*titles, jaccard, "counts", f"{noun} in common", shared)


def _overlap(
    name: str, title: str, caption: str, legend: str, shares: Floats, field: str, label: str, values: Array
) -> Chart:
    """Pairs of modules on a scale from 0 to 1, whatever the largest value is; `values` are for the tooltip."""
    numbers = list(range(1, len(shares) + 1))
    rows, columns = np.nonzero(~np.eye(len(shares), dtype=bool) & np.isfinite(shares))
    data = pd.DataFrame({"module": rows + 1, "other": columns + 1, "share": shares[rows, columns].round(3)})
    data[field] = values[rows, columns]
    scale = altair.Scale(domain=numbers)
    colour = altair.Color(
        "share:Q",
        scale=altair.Scale(domain=[0, 0.5, 1], range=list(_SHADES), interpolate="rgb"),
        legend=altair.Legend(orient="top", title=legend, values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
    )
    base = altair.Chart(data).encode(
        x=_x_modules(scale=scale),
        y=altair.Y("other:O", title="module", scale=scale, axis=altair.Axis(labelOverlap=True)),
        tooltip=_tooltips(other="and module", share=f"{legend}|.2f", **{field: f"{label}|.2~f"}),
    )
    layers = [base.mark_rect(cursor="pointer").encode(color=colour)]
    if len(shares) <= _MOST_WRITTEN:
        ink = altair.condition("datum.share > 0.5", altair.value("white"), altair.value("black"))
        numbers_in_cells = base.transform_filter("datum.share >= 0.005").mark_text(cursor="pointer", fontSize=10)
        layers.append(numbers_in_cells.encode(text=altair.Text("share:Q", format=".2f"), color=ink))
    cut = f" The first {_MOST_COMPARED} modules." if len(shares) == _MOST_COMPARED else ""
    return _finish(name, title, caption + cut, altair.layer(*layers))


def _edges(table: pd.DataFrame, level: float) -> Chart | None:
    """Fold changes of the edges on logarithmic axes; None if there are none that can be drawn."""
    data = table[["module"]].assign(random=table["fold_change"].round(3), degrees=table["degree_fold_change"].round(3))
    kinds = np.where(table["degree_q_value"] <= level, _MORE.format(level), _NOT_MORE)
    data = data.assign(edges=table["n_edges"], kind=kinds)
    data = data.replace([np.inf, -np.inf], np.nan).dropna().query("random > 0 and degrees > 0")
    if data.empty:
        return None
    axes = dict[str, Any]()
    for name in ("random", "degrees"):  # wider than the values: a single value would have itself as its only tick
        domain = [float(data[name].min()) / 1.1, float(data[name].max()) * 1.1]
        scale = altair.Scale(type="log", domain=domain, nice=False, padding=20)
        axes[name] = {"scale": scale, "axis": altair.Axis(tickCount=5)}
    random, of_degrees = "edges, relative to random genes", "of the same degrees"
    chart = altair.Chart(data).mark_point(filled=True, size=70, opacity=0.85, cursor="pointer")
    chart = chart.encode(
        x=altair.X("random:Q", title=random, **axes["random"]),
        y=altair.Y("degrees:Q", title=[random, of_degrees], **axes["degrees"]),
        color=_colours("kind:N", {_MORE.format(level): _BLUE, _NOT_MORE: _ORANGE}),
        tooltip=_tooltips(edges="edges|,", random=f"{random}|.2f", degrees=f"{random} {of_degrees}|.2f"),
    )
    not_shown = len(table) - len(data)
    caption = (
        "Edges inside each module, compared with random genes (horizontal) and with random genes of the same degrees "
        "(vertical). Points at the lower right are modules of hubs, or of highly expressed or variable genes. If the "
        "network was used in the fit, neither comparison is evidence of biology."
        + (f" Modules without edges, or that cannot be compared ({not_shown}), are not shown." if not_shown else "")
    )
    return _finish("evidence", "Edges compared with random genes", caption, chart)
