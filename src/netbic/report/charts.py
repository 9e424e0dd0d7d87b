"""Charts over all modules: Altair describes them, vl-convert compiles them and brings the library that draws them."""

from __future__ import annotations

import base64
import io
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.enrichment import DEFAULT_LEVEL
from netbic.errors import extra
from netbic.estimators import SparseGraphSVD

_PLAIN, _FLAGGED = "#0072B2", "#D55E00"
_HEIGHT, _STATIC_WIDTH = 260, 520
_MOST_COMPARED = 80
_TIMES = "\N{MULTIPLICATION SIGN}"
_READY = "window.vegaEmbed = vegaEmbed; window.dispatchEvent(new Event('vega-ready'));"


class Chart(NamedTuple):
    """A chart as a page needs it: a Vega specification, and a picture for readers without JavaScript."""

    name: str
    title: str
    says: str
    vega: dict[str, Any]
    static: str


@cache
def library() -> str:
    """Vega as one script; it raises the event `vega-ready`. Bundling takes a second or two, so it is done once."""
    return str(_convert().javascript_bundle(_READY))


def charts(model: SparseGraphSVD, table: pd.DataFrame, level: float = DEFAULT_LEVEL) -> list[Chart]:
    """All charts that the modules give matter for; `table` has a row per module, `level` says which edges count.

    Examples
    --------
    >>> import pandas as pd, netbic
    >>> from netbic.report.charts import charts
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> table = netbic.io.summary_table(model).assign(flags="")
    >>> [chart.name for chart in charts(model, table)]
    ['variance', 'convergence']
    """
    made = [_variance(table)]
    if model.n_components_ > 1:
        made.append(_shared_genes(model))
    if "degree_fold_change" in table and len(_folds(table, level)):
        made.append(_edge_evidence(table, level))
    return [*made, _convergence(model)]


def _altair() -> Any:
    return extra("altair", "report", "a report")


def _convert() -> Any:
    return extra("vl_convert", "report", "a report")


def _finished(name: str, title: str, says: str, chart: Any) -> Chart:
    chart = chart.properties(height=_HEIGHT).configure(background="transparent").configure_view(stroke=None)
    with _altair().data_transformers.disable_max_rows():  # for us alone, not for the user's own charts
        still = chart.properties(width=_STATIC_WIDTH).to_dict()
        wide = chart.properties(width="container", autosize={"type": "fit-x", "contains": "padding"}).to_dict()
    vega = _convert().vegalite_to_vega(wide)
    vega.pop("$schema", None)
    return Chart(name, title, says, vega, _still(still))


def _still(chart: dict[str, Any]) -> str:
    """A small image on white: 128 colours are plenty for a chart."""
    images = extra("PIL.Image", "report", "a report")
    drawn = images.open(io.BytesIO(_convert().vegalite_to_png(chart | {"background": "white"}))).convert("RGB")
    buffer = io.BytesIO()
    drawn.quantize(128).save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _modules(altair: Any, **words: Any) -> Any:
    return altair.X("module:O", title="module", axis=altair.Axis(labelAngle=0, labelOverlap=True), **words)


def _variance(table: pd.DataFrame) -> Chart:
    altair = _altair()
    data = pd.DataFrame(
        {
            "module": table["module"],
            "variance": table["explained_variance_ratio"].round(6),
            "strength": table["singular_value"].round(4),
            "genes": table["top_genes"],
            "remark": np.where(table["flags"].str.len() > 0, "with a remark", "without"),
        }
    )
    colours = altair.Scale(domain=["without", "with a remark"], range=[_PLAIN, _FLAGGED])
    chart = (
        altair.Chart(data)
        .mark_bar(cursor="pointer")
        .encode(
            x=_modules(altair),
            y=altair.Y("variance:Q", title="variance explained", axis=altair.Axis(format="%", tickCount=5)),
            color=altair.Color("remark:N", scale=colours, legend=altair.Legend(orient="top", title=None)),
            tooltip=[
                altair.Tooltip("module:O"),
                altair.Tooltip("variance:Q", format=".2%", title="variance explained"),
                altair.Tooltip("strength:Q", format=",.1f", title="strength d"),
                altair.Tooltip("genes:N", title="top genes"),
            ],
        )
    )
    return _finished(
        "variance", "How much each module explains", "A bar per module, in the order they were found.", chart
    )


def _shared_genes(model: SparseGraphSVD) -> Chart:
    altair = _altair()
    data, every = _pairs(model), list(range(min(model.n_components_, _MOST_COMPARED)))
    scale = altair.Scale(domain=every)
    chart = (
        altair.Chart(data)
        .mark_rect(cursor="pointer")
        .encode(
            x=_modules(altair, scale=scale),
            y=altair.Y("other:O", title="module", scale=scale, axis=altair.Axis(labelOverlap=True)),
            color=altair.Color(
                "share:Q",
                scale=altair.Scale(
                    scheme="cividis", domain=[0, max(0.1, float(data["share"].max() if len(data) else 0))]
                ),
                legend=altair.Legend(orient="top", title="genes in common", format="%"),
            ),
            tooltip=[
                altair.Tooltip("module:O"),
                altair.Tooltip("other:O", title="and module"),
                altair.Tooltip("shared:Q", title="genes in common"),
                altair.Tooltip("share:Q", format=".0%", title="of the smaller"),
            ],
        )
    )
    cut = f" The first {_MOST_COMPARED} modules." if model.n_components_ > _MOST_COMPARED else ""
    says = f"How many genes two modules share, as a part of the smaller one; blank where they share none.{cut}"
    return _finished("shared", "Genes in common", says, chart)


def _pairs(model: SparseGraphSVD) -> pd.DataFrame:
    """Pairs of modules that share genes, both ways round."""
    members = model.columns_[:_MOST_COMPARED].astype(np.int64)
    shared = members @ members.T
    sizes = members.sum(axis=1)
    share = shared / np.maximum(np.minimum(sizes[:, None], sizes), 1)
    rows, columns = np.nonzero((shared > 0) & ~np.eye(len(shared), dtype=bool))
    return pd.DataFrame(
        {
            "module": rows,
            "other": columns,
            "shared": shared[rows, columns],
            "share": share[rows, columns].round(3),
        }
    )


def _edge_evidence(table: pd.DataFrame, level: float) -> Chart:
    altair, data = _altair(), _folds(table, level)
    fold = altair.Scale(type="log", nice=False, padding=20)
    points = (
        altair.Chart(data)
        .mark_point(filled=True, size=70, opacity=0.85, cursor="pointer")
        .encode(
            x=altair.X(
                "chance:Q",
                scale=fold,
                title=f"edges, {_TIMES} random genes",
                axis=altair.Axis(tickCount=5),
            ),
            y=altair.Y(
                "degrees:Q",
                scale=fold,
                title=f"{_TIMES} same numbers of neighbours",
                axis=altair.Axis(tickCount=5),
            ),
            color=altair.Color(
                "kind:N",
                scale=altair.Scale(domain=_kinds(level), range=[_PLAIN, _FLAGGED]),
                legend=altair.Legend(orient="top", title=None, labelLimit=300),
            ),
            tooltip=[
                altair.Tooltip("module:O"),
                altair.Tooltip("edges:Q", format=","),
                altair.Tooltip("chance:Q", format=".2f", title=f"{_TIMES} random genes"),
                altair.Tooltip("degrees:Q", format=".2f", title=f"{_TIMES} same numbers of neighbours"),
            ],
        )
    )
    left_out = len(table) - len(data)
    says = (
        "Edges inside each module against both kinds of chance. Far right and low: its genes have many neighbours "
        "anywhere. Where the network took part in the fit, neither shows biology."
        + (f" Modules without edges, or that could not be compared ({left_out}), are not drawn." if left_out else "")
    )
    return _finished("evidence", "Edges against chance", says, points)


def _kinds(level: float) -> list[str]:
    return [f"more than its degrees explain (q ≤ {level:g})", "no more"]


def _folds(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """What can be drawn on a logarithmic scale."""
    data = pd.DataFrame(
        {
            "module": table["module"],
            "chance": table["fold_change"].round(3),
            "degrees": table["degree_fold_change"].round(3),
            "edges": table["n_edges"],
            "kind": np.where(table["degree_q_value"] <= level, *_kinds(level)),
        }
    ).replace([np.inf, -np.inf], np.nan)
    return data.dropna().query("chance > 0 and degrees > 0")


def _convergence(model: SparseGraphSVD) -> Chart:
    altair = _altair()
    chart = (
        altair.Chart(_rounds(model))
        .mark_line(opacity=0.6, strokeWidth=1.5, point={"size": 22, "opacity": 0.8}, color=_PLAIN)
        .encode(
            x=altair.X(
                "round:Q", title="round", axis=altair.Axis(tickMinStep=1, format="d"), scale=altair.Scale(nice=False)
            ),
            y=altair.Y(
                "reached:Q",
                title="F, of its last value",
                scale=altair.Scale(zero=False),
                axis=altair.Axis(format="%", tickCount=5),
            ),
            detail="module:N",
            tooltip=[
                altair.Tooltip("module:O"),
                altair.Tooltip("round:Q"),
                altair.Tooltip("reached:Q", format=".2%", title="F, of its last value"),
            ],
        )
    )
    first = f" (the first {_MOST_COMPARED})" if model.n_components_ > _MOST_COMPARED else ""
    says = f"The objective F round by round, a line per module{first}. With the default solver it never falls."
    return _finished("convergence", "Convergence", says, chart)


def _rounds(model: SparseGraphSVD) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"module": module, "round": number + 1, "reached": round(float(value / values[-1]), 5)}
            for module, values in enumerate(model.objectives_[:_MOST_COMPARED])
            for number, value in enumerate(values)
        ]
    )
