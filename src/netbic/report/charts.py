"""Charts of all modules: Altair describes them, vl-convert compiles them and contains the library that draws them."""

from __future__ import annotations

import base64
import io
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats
from netbic.enrichment import DEFAULT_LEVEL
from netbic.errors import import_optional
from netbic.estimators import SparseGraphSVD

_BLUE, _ORANGE = "#0072B2", "#D55E00"
_VERDICTS = {"strong": "#00805B", "moderate": _BLUE, "repeats": "#9A6FB0", "doubtful": _ORANGE, "unknown": "#8A8F94"}
_SHADES = ("#F1EFE9", "#7FB1D3", "#0B3C6D")  # of overlaps from 0 to 1
_HEIGHT, _STATIC_WIDTH = 260, 520
_MOST_COMPARED = 80
_MOST_WRITTEN = 12  # modules up to which overlaps are written as numbers
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
    return str(_convert().javascript_bundle(_READY))


def charts(
    model: SparseGraphSVD, table: pd.DataFrame, level: float = DEFAULT_LEVEL, scores: Floats | None = None
) -> list[Chart]:
    """All charts for which there are data. In charts, modules are numbered from 1.

    Parameters
    ----------
    model : SparseGraphSVD
    table : DataFrame
        A row per module.
    level : float
        Largest q-value at which edges are enriched.
    scores : array of shape (n_modules, n_samples), optional
        Default: the weights of the samples.

    Examples
    --------
    >>> import pandas as pd, netbic
    >>> from netbic.report.charts import charts
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> table = netbic.storage.summary_table(model).assign(diagnostics="")
    >>> [chart.name for chart in charts(model, table)]
    ['variance']
    """
    made = [_variance(table)]
    if model.n_components_ > 1:
        made += [_genes_in_common(model), _samples_in_common(model, scores)]
    if "degree_fold_change" in table and len(_folds(table, level)):
        made.append(_edges(table, level))
    return made


def _altair() -> ModuleType:
    module: ModuleType = import_optional("altair", "report", "a report")
    return module


def _convert() -> ModuleType:
    module: ModuleType = import_optional("vl_convert", "report", "a report")
    return module


def _finished(name: str, title: str, caption: str, chart: Any) -> Chart:
    chart = chart.properties(height=_HEIGHT).configure(background="transparent").configure_view(stroke=None)
    with _altair().data_transformers.disable_max_rows():  # here only, not for charts of the user
        still = chart.properties(width=_STATIC_WIDTH).to_dict()
        wide = chart.properties(width="container", autosize={"type": "fit-x", "contains": "padding"}).to_dict()
    vega = _convert().vegalite_to_vega(wide)
    vega.pop("$schema", None)
    return Chart(name, title, caption, vega, _still(still))


def _still(chart: dict[str, Any]) -> str:
    """A small image on white: 128 colours are plenty for a chart."""
    images = import_optional("PIL.Image", "report", "a report")
    drawn = images.open(io.BytesIO(_convert().vegalite_to_png(chart | {"background": "white"}))).convert("RGB")
    buffer = io.BytesIO()
    drawn.quantize(128).save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _tooltips(**titles: str) -> list[Any]:
    """What a chart shows of the point under the pointer: title and format by field, the module first."""
    altair = _altair()
    fields = (
        altair.Tooltip(f"{name}:{'Q' if form else 'N'}", title=title, **({"format": form} if form else {}))
        for name, (title, _, form) in ((name, given.partition("|")) for name, given in titles.items())
    )
    return [altair.Tooltip("module:O"), *fields]


def _x_modules(**options: Any) -> Any:
    altair = _altair()
    return altair.X("module:O", title="module", axis=altair.Axis(labelAngle=0, labelOverlap=True), **options)


def _colours(field: str, colours: dict[str, str]) -> Any:
    """A colour for each kind."""
    altair = _altair()
    legend = altair.Legend(orient="top", title=None, labelLimit=300)
    scale = altair.Scale(domain=list(colours), range=list(colours.values()))
    return altair.Color(field, scale=scale, legend=legend)


def _variance(table: pd.DataFrame) -> Chart:
    altair = _altair()
    kinds, colours = _bar_kinds(table)
    data = pd.DataFrame(
        {
            "module": table["module"] + 1,
            "variance": table["explained_variance_ratio"].round(6),
            "strength": table["singular_value"].round(4),
            "genes": table["top_genes"],
            "kind": kinds,
        }
    )
    chart = altair.Chart(data).mark_bar(cursor="pointer")
    chart = chart.encode(
        x=_x_modules(),
        y=altair.Y("variance:Q", title="variance explained", axis=altair.Axis(format="%", tickCount=5)),
        color=_colours("kind:N", colours),
        tooltip=_tooltips(
            kind="verdict" if "verdict" in table else "kind",
            variance="variance explained|.2%",
            strength="strength d|,.1f",
            genes="top genes",
        ),
    )
    caption = "One bar per module, in the order in which they were found."
    return _finished("variance", "Explained variance of each module", caption, chart)


def _bar_kinds(table: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    """The kind of each module and the colours of the kinds: verdicts, or whether there are diagnostics."""
    if "verdict" in table:
        kinds = table["verdict"].tolist()
        return kinds, {kind: colour for kind, colour in _VERDICTS.items() if kind in kinds}
    colours = {"without diagnostics": _BLUE, "with a diagnostic": _ORANGE}
    return np.where(table["diagnostics"].str.len() > 0, *reversed(colours)).tolist(), colours


def _genes_in_common(model: SparseGraphSVD) -> Chart:
    members = model.columns_[:_MOST_COMPARED]
    caption = "Genes of two modules: the number in both, divided by the number in at least one (Jaccard index)."
    counts = {"counts": ("genes in common", members.astype(np.int64) @ members.T.astype(np.int64))}
    return _overlap("shared", "Genes in common", caption, "share in common", jaccard(members), counts)


def _samples_in_common(model: SparseGraphSVD, scores: Floats | None) -> Chart:
    """Members in common if every module has selected its samples, otherwise correlations of the scores."""
    members = model.rows_[:_MOST_COMPARED]
    if not members.all(axis=1).any():
        caption = "Samples of two modules: the number in both, divided by the number in at least one (Jaccard index)."
        counts = {"counts": ("samples in common", members.astype(np.int64) @ members.T.astype(np.int64))}
        return _overlap("samples", "Samples in common", caption, "share in common", jaccard(members), counts)
    known = model.left_vectors_.T if scores is None else scores
    correlations = correlation(known[:_MOST_COMPARED])
    caption = (
        "Modules keep all samples, so the scores of two modules are compared: the absolute value of their correlation. "
        "1: they order the samples in the same or in the opposite way; 0: they have nothing to do with each other."
    )
    signs = {"signed": ("correlation", correlations.round(2))}
    return _overlap(
        "samples", "Similarity of sample scores", caption, "absolute correlation", np.abs(correlations), signs
    )


def _overlap(
    name: str, title: str, caption: str, legend: str, shares: Floats, more: dict[str, tuple[str, Array]]
) -> Chart:
    """Pairs of modules on a scale from 0 to 1, whatever the largest value is; `more` are numbers for the tooltip."""
    altair = _altair()
    numbers = list(range(1, len(shares) + 1))
    rows, columns = np.nonzero(~np.eye(len(shares), dtype=bool) & np.isfinite(shares))
    data = pd.DataFrame({"module": rows + 1, "other": columns + 1, "share": shares[rows, columns].round(3)})
    data = data.assign(**{key: values[rows, columns] for key, (_, values) in more.items()})
    scale = altair.Scale(domain=numbers)
    colour = altair.Color(
        "share:Q",
        scale=altair.Scale(domain=[0, 0.5, 1], range=list(_SHADES), interpolate="rgb"),
        legend=altair.Legend(orient="top", title=legend, values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
    )
    tips = {key: f"{label}|.2~f" for key, (label, _) in more.items()}
    base = altair.Chart(data).encode(
        x=_x_modules(scale=scale),
        y=altair.Y("other:O", title="module", scale=scale, axis=altair.Axis(labelOverlap=True)),
        tooltip=_tooltips(other="and module", share=f"{legend}|.2f", **tips),
    )
    layers = [base.mark_rect(cursor="pointer").encode(color=colour)]
    if len(shares) <= _MOST_WRITTEN:
        ink = altair.condition("datum.share > 0.5", altair.value("white"), altair.value("black"))
        numbers_in_cells = base.transform_filter("datum.share >= 0.005").mark_text(cursor="pointer", fontSize=10)
        layers.append(numbers_in_cells.encode(text=altair.Text("share:Q", format=".2f"), color=ink))
    cut = f" The first {_MOST_COMPARED} modules." if len(shares) == _MOST_COMPARED else ""
    return _finished(name, title, caption + cut, altair.layer(*layers))


def jaccard(members: Bools) -> Floats:
    """Members that two modules share, as a share of all members of the two; NaN if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> jaccard(np.array([[True, True, False], [False, True, True]])).round(3).tolist()
    [[1.0, 0.333], [0.333, 1.0]]
    """
    counts = members.astype(np.int64)
    shared, sizes = counts @ counts.T, counts.sum(axis=1)
    union = sizes[:, None] + sizes - shared
    return np.where(union > 0, shared / np.maximum(union, 1), np.nan)


def correlation(scores: Floats) -> Floats:
    """Correlations of the scores of modules over the samples in which both are known; NaN if they are constant."""
    table = pd.DataFrame(scores.T)
    return np.asarray(table.corr(min_periods=3), dtype=np.float64)


def _edges(table: pd.DataFrame, level: float) -> Chart:
    altair, data = _altair(), _folds(table, level)
    random, degrees = "edges, relative to random genes", "edges, relative to random genes of the same degrees"
    chart = altair.Chart(data).mark_point(filled=True, size=70, opacity=0.85, cursor="pointer")
    chart = chart.encode(
        x=altair.X("random:Q", title=random, **_log_axis(data["random"])),
        y=altair.Y(
            "degrees:Q", title=["edges, relative to random genes", "of the same degrees"], **_log_axis(data["degrees"])
        ),
        color=_colours("kind:N", dict(zip(_kinds(level), (_BLUE, _ORANGE), strict=True))),
        tooltip=_tooltips(edges="edges|,", random=f"{random}|.2f", degrees=f"{degrees}|.2f"),
    )
    not_shown = len(table) - len(data)
    caption = (
        "Edges inside each module, compared with random genes (horizontal) and with random genes of the same degrees "
        "(vertical). Points at the lower right are modules of hubs, or of highly expressed or variable genes. If the "
        "network was used in the fit, neither "
        "comparison is evidence of biology."
        + (f" Modules without edges, or that cannot be compared ({not_shown}), are not shown." if not_shown else "")
    )
    return _finished("evidence", "Edges compared with random genes", caption, chart)


def _log_axis(values: pd.Series) -> dict[str, Any]:
    """A logarithmic axis that is wider than the values: a single value would have itself as its only tick."""
    altair = _altair()
    domain = [float(values.min()) / 1.1, float(values.max()) * 1.1]
    return {
        "scale": altair.Scale(type="log", domain=domain, nice=False, padding=20),
        "axis": altair.Axis(tickCount=5),
    }


def _kinds(level: float) -> list[str]:
    return [f"more than expected from the degrees (q ≤ {level:g})", "not more"]


def _folds(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Fold changes that can be drawn on a logarithmic scale."""
    data = pd.DataFrame(
        {
            "module": table["module"] + 1,
            "random": table["fold_change"].round(3),
            "degrees": table["degree_fold_change"].round(3),
            "edges": table["n_edges"],
            "kind": np.where(table["degree_q_value"] <= level, *_kinds(level)),
        }
    ).replace([np.inf, -np.inf], np.nan)
    return data.dropna().query("random > 0 and degrees > 0")
