"""Plots of tables: gene sets, associations, comparisons of two fits, stability, and settings of a tuning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import check_choice, kind_of
from netbic.errors import InputError
from netbic.estimators.parameters import check_count, is_number
from netbic.estimators.results import position_of
from netbic.get import gene_sets_df
from netbic.pl import base, fitting

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes

    from netbic.association.associate import Associations
    from netbic.association.words import Words
    from netbic.comparison import Comparison
    from netbic.selection import ModuleCount, Stability, Tuning

_UNSIGNED = "Blues"  # white: no evidence, nothing in common
_LEVEL = 0.05
_SMALLEST_DOT, _LARGEST_DOT = 15.0, 160.0  # areas in square points
_LONGEST_TERM = 48
_SIMILARITIES = {
    "similarity": "similarity",
    "cosine": "cosine of the weights",
    "jaccard": "Jaccard index of the genes",
    "score_correlation": "correlation of the scores",
    "sample_jaccard": "Jaccard index of the samples",
}
_MOST_NUMBERS = 400  # cells with numbers
_MANY_BATCHES = 4  # levels of a batch above which only the strongest one is drawn
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_LEGEND = "* q \N{LESS-THAN OR EQUAL TO} 0.05, ** 0.01, *** 0.001"
_LONGEST_NAME = 72
_LONGEST_BAR = 3.0  # inches
_PALE = 0.35  # opacity of the cells of doubtful modules, and of associations that are not significant
_LINE = 32  # letters of a line of the name of a variable and its level


@base.plot
def enrichment(
    table: pd.DataFrame | AnnData,
    *,
    n_terms: int = 10,
    verdicts: Words | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot gene sets by modules: the colour is -log10 of the adjusted p-value, the size the number of shared genes.

    Terms are selected in turn from the most significant ones of each module. Terms that are not significant (0.05) in
    any module are drawn only if no term is significant. A black outline marks significant pairs; pairs without a shared
    gene have no dot.

    Parameters
    ----------
    table : DataFrame or AnnData
        The result of `enrichment.gene_sets`, or an object after `tl.enrich`. Modules whose sides were tested separately
        have two columns, + and -.
    n_terms : int
        Maximum number of terms, for all modules together.
    verdicts : dict, optional
        Verdicts by the number of the module: doubtful modules are marked and paler.
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> sets = {"abc": ["a", "b", "c"], "xyz": ["x", "y", "z", "a"]}
    >>> table = netbic.enrichment.gene_sets([["a", "b", "c"]], sets, names=list("abcdefghijxyz"), min_size=2)
    >>> [label.get_text() for label in netbic.pl.enrichment(table).get_yticklabels()]
    ['abc']
    """
    from netbic.association.words import mark, reliability

    check_count("n_terms", n_terms)
    if kind_of(table) == "anndata":
        table = gene_sets_df(table, key=key)
    needed = ("module", "term", "n_overlap", "q_value")
    if missing := [name for name in needed if name not in getattr(table, "columns", ())]:
        raise InputError(f"the table has no column {missing[0]!r}: give what enrichment.gene_sets returns")
    side = table["side"].map({"up": 1, "down": -1}) if "side" in table else pd.Series(0.0, index=table.index)
    marks = side.fillna(0).map({1: " +", 0: "", -1: f" {base.MINUS}"})
    table = table.assign(side=-side.fillna(0), column=table["module"].astype(str) + marks)
    words = table["module"].map(verdicts or {}).fillna("")
    table = table.assign(pale=words.map(reliability) == 2, label=table["column"] + words.map(mark))
    labels_of = table.sort_values(["module", "side"], kind="stable").drop_duplicates("column").set_index("column")
    columns = list(labels_of.index)
    # The most significant terms of each module in turn, in the order of the modules.
    ranked = table.sort_values(["q_value", "n_overlap"], ascending=[True, False], kind="stable")
    ranked = ranked.assign(turn=ranked.groupby("column").cumcount())
    if (ranked["q_value"] <= _LEVEL).any():
        ranked = ranked[ranked["q_value"] <= _LEVEL]
    first = ranked.sort_values(["turn", "q_value"], kind="stable").drop_duplicates("term")[:n_terms]
    order = first["column"].map({column: number for number, column in enumerate(columns)})
    terms = first.assign(order=order).sort_values(["order", "turn"])["term"].tolist()
    ax = base.axes_for(ax, (3.6 + 0.35 * len(columns) + 1.5, 1.4 + 0.25 * len(terms)), given)
    drawn = table[table["term"].isin(terms)]
    if drawn.empty:
        base.write_sentence(ax, "no gene set shares a gene with a module")
        ax.set_axis_off()
        return ax
    _draw_dots(ax, drawn, columns, terms)
    described = drawn.drop_duplicates("term").set_index("term")
    descriptions = described["name"].to_dict() if "name" in described else {}
    longest = base.longest_label(ax, 0.4, _LONGEST_TERM)
    labels = [base.label_text(descriptions.get(term) or term, longest) for term in terms]
    ax.set_xticks(range(len(columns)), labels_of["label"], fontsize=fitting.small(), rotation=90)
    ax.set_yticks(range(len(terms)), labels, fontsize=fitting.small(), **base.LITERAL)
    ax.set(xlabel="module", xlim=(-0.6, len(columns) - 0.4), ylim=(len(terms) - 0.4, -0.6))
    ax.grid(color="0.93", lw=0.6)
    ax.set_axisbelow(True)
    if (drawn["q_value"] > _LEVEL).all():
        base.set_title(ax, f"no term is significant at {_LEVEL}")
    base.without_frame(ax)
    base.write_labels(ax, given)
    fitting.apply_layout(ax)
    places = np.arange(len(columns))
    base.number_ticks(ax, "x", places, labels_of["label"].tolist())
    for tick, place in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True):
        tick.set_color("0.45" if labels_of["pale"].iloc[round(place)] else "black")
    cell = np.abs(np.diff(ax.transData.transform([(0, 0), (1, 1)]), axis=0)).min() / base.pixels(ax, 1.0)
    shrink = min(1.0, cell**2 / _LARGEST_DOT)  # dots of neighbours do not cover each other
    legend: Any = ax.get_legend()
    for dots in (*ax.collections, *legend.legend_handles):
        dots.set_sizes(shrink * dots.get_sizes())
    return ax


def _draw_dots(ax: Axes, table: pd.DataFrame, columns: list[str], terms: list[Any]) -> None:
    """A dot for each pair, with a legend of colours and one of sizes."""
    from matplotlib.colors import PowerNorm

    table = table.sort_values("n_overlap", ascending=False)
    q_values = table["q_value"].to_numpy(dtype=float)
    smallest = q_values[q_values > 0].min(initial=1.0)  # instead of 0, which is a rounding error
    evidence = -np.log10(np.maximum(q_values, smallest)) + 0.0
    x = table["column"].map({column: k for k, column in enumerate(columns)})
    y = table["term"].map({term: k for k, term in enumerate(terms)})
    most, opacity = float(table["n_overlap"].max()) or 1.0, cast("Any", np.where(table["pale"], _PALE, 1.0))

    def areas(overlaps: Any) -> NDArray[Any]:
        return np.asarray(_SMALLEST_DOT + (_LARGEST_DOT - _SMALLEST_DOT) * np.asarray(overlaps, dtype=float) / most)

    norm = PowerNorm(0.5, 0, float(evidence.max()) or 1.0)  # q-values of 1e-5 and 1e-80 are both seen
    dots = ax.scatter(
        x, y, s=areas(table["n_overlap"]), c=evidence, cmap=_UNSIGNED, norm=norm,
        edgecolors=np.where(q_values <= _LEVEL, "black", "0.8").tolist(), lw=0.9,
        alpha=opacity,
    )  # fmt: skip
    base.colour_bar(dots, ax, r"$-\log_{10}$ q", anchor=(0.0, 0.0))
    sizes = sorted({1, max(1, round(most / 2)), round(most)})
    handles = [ax.scatter([], [], s=areas([size]), c="0.6", label=f"{size}") for size in sizes]
    style: dict[str, Any] = {"frameon": False, "fontsize": fitting.small(), "title_fontsize": fitting.small()}
    ax.legend(handles=handles, title="genes", loc="upper left", bbox_to_anchor=(1.0, 1.0), **style)


@base.plot
def comparison(
    comparison: Comparison, *, values: str = "similarity", ax: Axes | None = None, **given: Unpack[base.Labels]
) -> Axes:
    """Plot the similarity of all pairs of modules of two fits.

    Modules of the first fit are rows, those of the second one columns: first those with a counterpart, in the order of
    the rows, then the others. Matched modules have a black outline. Pairs that cannot be compared are grey.

    Parameters
    ----------
    comparison : Comparison
        The result of `netbic.compare`.
    values : {"similarity", "cosine", "jaccard", "score_correlation", "sample_jaccard"}
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> ax = netbic.pl.comparison(netbic.compare(model, model))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '2']
    """
    from matplotlib.patches import Rectangle

    from netbic.comparison import Comparison

    if not isinstance(comparison, Comparison):
        raise TypeError(f"comparison={type(comparison).__name__}: expected the result of netbic.compare")
    check_choice("values", values, _SIMILARITIES)
    table = comparison.similarity[values]
    if not table.size:
        raise InputError("one of the fits has no modules: there is nothing to draw")
    matched = comparison.table.dropna(subset=["module_a", "module_b"])
    partners = dict(zip(matched["module_a"].astype(int), matched["module_b"].astype(int), strict=True))
    columns = [*partners.values(), *(j for j in range(1, table.shape[1] + 1) if j not in partners.values())]
    numbers = table[columns].to_numpy(dtype=float)
    ax = base.axes_for(ax, (2.4 + 0.38 * table.shape[1], 1.6 + 0.32 * table.shape[0]), given)
    ax.set_facecolor("0.85")  # where there is no number
    low, colours = (-1, base.DIVERGING) if values in ("cosine", "score_correlation") else (0, _UNSIGNED)
    shown = ax.pcolormesh(numbers, cmap=colours, vmin=low, vmax=1, edgecolors="white", lw=0.5)
    for row, column in partners.items():
        place = columns.index(column), row - 1
        ax.add_patch(Rectangle(place, 1, 1, fill=False, ec="black", lw=1.2, zorder=3, clip_on=False))
    written = []
    if numbers.size <= _MOST_NUMBERS:
        for (row, column), number in np.ndenumerate(numbers):
            if abs(number) >= 0.005:  # neither missing nor written as 0.00
                ink, text = "white" if abs(number) > 0.65 else "black", f"{number:.2f}".replace("-", base.MINUS)
                style: dict[str, Any] = {"ha": "center", "va": "center", "size": fitting.tiny(), "color": ink}
                written.append(ax.text(column + 0.5, row + 0.5, text, **style))
    base.colour_bar(shown, ax, _SIMILARITIES[values])
    first, second = (f"module of {base.label_text(label, 40)}" for label in comparison.labels)
    ax.set_xlabel(second, **base.LITERAL)
    ax.set_ylabel(first, **base.LITERAL)
    ax.set(xlim=(0, len(columns)), ylim=(len(table), 0))
    base.without_frame(ax)
    base.write_labels(ax, given)
    fitting.fit_into_cells(ax, written, [""] * len(written))
    base.number_ticks(ax, "x", np.arange(len(columns)) + 0.5, columns)
    base.number_ticks(ax, "y", np.arange(len(table)) + 0.5, list(table.index))
    return ax


@base.plot
def stability(
    result: Stability,
    module: int = 1,
    *,
    axis: str = "columns",
    feature_name: str | None = None,
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot selection frequencies in decreasing order, with the threshold above which a member is stable.

    For any threshold on the vertical axis, the curve shows how many members would be stable. Members of the module
    found in all data are filled, others are open; those that were never selected are not shown.

    Parameters
    ----------
    result : Stability
        The result of `selection.stability`.
    $module
    $axis
    $feature_name
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60)
    >>> result = netbic.selection.stability(model, study.expression, n_pairs=10, random_state=0)
    >>> netbic.pl.stability(result, 2).get_title(loc="left")
    'Module 2: ... stable features (at most ... by chance)'
    """
    from netbic.selection import Stability

    if not isinstance(result, Stability):
        remedy = "of selection.stability; for an AnnData object: selection.stability(tl.from_anndata(adata), X)"
        raise TypeError(f"result={type(result).__name__}: expected the result {remedy}")
    check_choice("axis", axis, ("columns", "rows"), InputError)
    noun = base.noun_of(result.reference, axis, feature_name)
    part = result.columns if axis == "columns" else result.rows
    if part is None:
        raise InputError(f"the model keeps all {noun}, so their stability was not estimated: choose the other axis")
    at = position_of(module, result.reference.n_components_)
    frequency = part.frequency.to_numpy()[:, at]
    member = np.asarray(getattr(result.reference, f"{axis}_"))[at]
    order = np.lexsort((~member, -frequency))
    order = order[: max(np.count_nonzero(frequency), 1)]
    ax = base.axes_for(ax, (5.5, 4.0), given)
    ranks, colour = np.arange(1, order.size + 1), base.LINE
    ax.step(ranks, frequency[order], where="mid", color=colour, lw=0.8, label="_path")
    for mask, face, label in ((member[order], colour, "in the module"), (~member[order], "white", "not in the module")):
        ax.scatter(ranks[mask], frequency[order][mask], s=14, c=face, edgecolors=colour, lw=0.8, label=label, zorder=3)
    threshold = float(part.threshold[at])
    if np.isinf(threshold):
        base.write_sentence(ax, "no threshold achieves the requested error")
    else:
        ax.axhline(threshold, color="0.3", lw=0.8, ls="--", label="_threshold")
        ax.annotate(
            f"threshold {threshold:.3g}", (1, threshold), (0, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="bottom", size=fitting.small(), color="0.3",
        )  # fmt: skip
    ax.set(xlabel=f"{noun}, by decreasing frequency", ylabel="selection frequency in halves of the data")
    ax.set_ylim(0, 1.03)
    base.despine(ax)
    n_stable, chance = int(part.members[at].sum()), float(part.false[at])
    base.set_title(ax, f"Module {module}: {n_stable} stable {noun} (at most {chance:.2g} by chance)")
    base.write_labels(ax, given)
    fitting.place_legend(ax)
    return ax


@base.plot
def tuning(tuning: Tuning, *, ax: Axes | None = None, **given: Unpack[base.Labels]) -> Axes:
    """Plot the score of every setting of a tuning.

    One parameter gives a curve with standard errors; the line is one standard error (of the difference) below the best.
    Two parameters give a surface, further ones a panel per value; dots mark settings within one standard error of the
    best. The star is the chosen setting.

    Parameters
    ----------
    tuning : Tuning
        The result of `selection.tune`.
    $ax

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, center=None)
    >>> found = netbic.selection.tune(model, toy.X, {"n_columns": [10, 30, 50, 70, 100]}, random_state=0)
    >>> netbic.pl.tuning(found).get_title(loc="left")
    'chosen: n_columns=50'
    """
    from netbic.selection import Tuning, printable, standard_error_of_difference

    if not isinstance(tuning, Tuning):
        raise TypeError(f"tuning={type(tuning).__name__}: expected the result of selection.tune")
    points = [printable(point) for point in tuning.cv_results_["params"]]
    settings = list(dict.fromkeys(name for point in points for name in point))
    table = pd.DataFrame({name: pd.Series([point.get(name) for point in points], dtype=object) for name in settings})
    table = table.join(tuning.table[["score", "standard_error", "chosen"]])
    # Scores above this level are within one standard error of the best.
    level = float(table["score"].max()) - standard_error_of_difference(tuning.cv_results_)
    varying = [name for name in settings if len(_values(table[name])) > 1] or settings[:1]
    usual = ["n_columns", "n_rows"]
    varying.sort(key=lambda name: usual.index(name) if name in usual else len(usual))
    ax = base.axes_for(ax, (5.5 if len(varying) < 3 else 10.0, 4.0), given)
    (_draw_curve if len(varying) == 1 else _draw_surface)(ax, table, varying, level)
    chosen = ", ".join(f"{name}={value}" for name, value in tuning.best_params_.items())
    title = f"chosen: {base.label_text(chosen, 80)}"
    above = 1.8 * fitting.small() * len(varying[2:])  # for the titles of the panels
    if len(varying) > 1:
        title = f"star: {title}" + "\ndots: within one standard error of the best" * bool(
            len(np.asarray(ax.collections[0].get_offsets()))
        )
    base.set_title(ax, title, pad=6 + above, **base.LITERAL)
    base.write_labels(ax, given)
    if len(varying) == 1:
        fitting.place_legend(ax)
    return ax


@base.plot
def n_modules(
    model: base.ModelLike | ModuleCount, *, key: str = "netbic", ax: Axes | None = None, **given: Unpack[base.Labels]
) -> Axes:
    """Plot how the number of modules was found.

    Of a model with `n_components="auto"`: how many modules are found in both halves of the samples against how many are
    searched for. A quarter more modules than there are directions stronger than noise (dotted) are searched for; the
    number is how many of these are found again, on average over several splits of the samples (circles, at the right
    end). The line is the first split if fewer are searched for; on the dashed line, all would be found again.

    Of the result of `selection.n_modules`: the strength of each module, and that expected in data with random signs.

    Parameters
    ----------
    model : SparseGraphSVD, AnnData, or ModuleCount
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> cohort = netbic.simulate.cohort(200, 1000, strength=1.5, random_state=0)
    >>> netbic.pl.n_modules(netbic.SparseGraphSVD().fit(cohort.expression)).get_title(loc="left")
    '5 modules of ... searched for are found again, on average'
    """
    from matplotlib.ticker import MaxNLocator

    from netbic.selection import ModuleCount

    if isinstance(model, ModuleCount):
        ax = base.axes_for(ax, (4.5, 3.5), given)
        _draw_tested(ax, model)
    else:
        found = base.fitted(model, key)
        count = found.count_
        if count is None or not count.curve:
            raise ValueError(
                "the number of modules of this model was given: use n_components='auto', or draw the result of "
                "selection.n_modules"
            )
        ax = base.axes_for(ax, (4.5, 3.8), given)
        searched, again = zip(*count.curve, strict=True)
        ends = [0, count.searched]
        ax.plot(ends, ends, ls="--", lw=0.8, color=base.GREY, label="if all were found again")
        ax.axvline(count.directions, lw=1.0, ls=":", color="0.3", label="directions stronger than noise")
        ax.plot(searched, again, marker="o", ms=4, lw=1.2, color=base.LINE, label="first split of the samples")
        splits: Any = {"s": 26, "facecolors": "white", "edgecolors": base.LINE, "label": "all splits"}
        ax.scatter([count.searched] * len(count.found_again), count.found_again, zorder=3, **splits)
        ax.axhline(found.n_components_, lw=1.2, color=base.ALARM, label="their average: the number of modules")
        ax.set(xlabel="modules searched for in each half", ylabel="found in both halves", xlim=(0, None))
        ax.set_ylim(0, count.searched)
        n, of = count.n, f"of {count.searched} searched for"
        title = f"{n} modules {of} are found again, on average" if n > 1 else f"{n or 'No'} module {of} is found again"
        base.set_title(ax, title)
    for axis in (ax.xaxis, ax.yaxis)[: 1 if isinstance(model, ModuleCount) else 2]:
        axis.set_major_locator(MaxNLocator(integer=True))
    base.write_labels(ax, given)
    base.despine(ax)
    fitting.place_legend(ax)
    return ax


def _draw_tested(ax: Axes, count: ModuleCount) -> None:
    """The modules that were tested one after another, those that stand out as filled circles."""
    table = count.table
    at, strengths = table["module"].to_numpy(), table["statistic"].to_numpy()
    ax.plot(at, table["expected"], marker="o", ms=4, lw=1.2, color=base.GREY, label="data with random signs")
    ax.plot(at, strengths, lw=1.2, color=base.LINE, label="_strength")
    for own, face, label in ((at <= count.n, base.LINE, "stands out"), (at > count.n, "white", "does not stand out")):
        if own.any():
            ax.scatter(at[own], strengths[own], s=26, c=face, edgecolors=base.LINE, label=label, zorder=3)
    ax.set(xlabel="module", ylabel="strength of the module", ylim=(0, None))
    base.set_title(ax, count.verdict)


def _values(column: pd.Series[Any]) -> list[Any]:
    """The different values of a parameter: numbers in increasing order, then others."""
    different = list(dict.fromkeys(column))
    return sorted(filter(is_number, different)) + [value for value in different if not is_number(value)]


def _draw_curve(ax: Axes, table: pd.DataFrame, settings: list[str], level: float) -> None:
    """The scores of one parameter, with standard errors."""
    values = _values(table[settings[0]])
    table = table.assign(at=[values.index(value) for value in table[settings[0]]]).sort_values("at", kind="stable")
    ax.errorbar(table["at"], table["score"], table["standard_error"], marker="o", ms=4, lw=1.2, color=base.LINE)
    ax.axhline(level, color=base.GREY, lw=0.8, ls="--", label="one standard error below the best")
    own = table[table["chosen"]]
    star: dict[str, Any] = {"marker": "*", "s": 120, "c": base.ALARM, "edgecolors": "black", "lw": 0.5, "zorder": 4}
    ax.scatter(own["at"], own["score"], label="chosen", **star)
    ax.set_xticks(range(len(values)), [base.label_text(value) for value in values], **base.LITERAL)
    ax.set(xlabel=settings[0], ylabel="score")
    base.despine(ax)


def _draw_surface(ax: Axes, table: pd.DataFrame, settings: list[str], level: float) -> None:
    """The scores of two parameters as cells; a panel for each combination of the values of others."""
    x, y, *others = settings
    across, up = _values(table[x]), _values(table[y])
    panels = list(product(*(_values(table[name]) for name in others)))
    step = len(across) + 1  # an empty column between panels
    in_panel = [panels.index(point) for point in zip(*(table[name] for name in others), strict=True)] if others else 0
    positions = np.array([across.index(value) for value in table[x]]) + step * np.asarray(in_panel)
    heights = np.array([up.index(value) for value in table[y]])
    surface = np.full((len(up), len(panels) * step - 1), np.nan)
    surface[heights, positions] = table["score"]
    image = ax.imshow(surface, cmap=base.SEQUENTIAL, origin="lower", aspect="auto", interpolation="none")
    base.colour_bar(image, ax, "score", shrink=0.8)
    own = table["chosen"].to_numpy()
    near = (table["score"].to_numpy() >= level) & ~own
    ax.scatter(positions[near], heights[near], s=10, c="black", zorder=3, label="within one standard error of the best")
    star: dict[str, Any] = {"marker": "*", "s": 120, "c": base.ALARM, "edgecolors": "black", "lw": 0.5, "zorder": 4}
    ax.scatter(positions[own], heights[own], label="chosen", **star)
    ticks = [step * panel + place for panel in range(len(panels)) for place in range(len(across))]
    style: dict[str, Any] = {"fontsize": fitting.small(), **base.LITERAL}
    rotated: dict[str, Any] = {"rotation": 90} if len(ticks) > 8 else {}
    ax.set_xticks(ticks, [base.label_text(value, 12) for value in across * len(panels)], **style, **rotated)
    ax.set_yticks(range(len(up)), [base.label_text(value, 12) for value in up], **style)
    ax.set(xlabel=x, ylabel=y)
    for panel, values in enumerate(panels if others else ()):
        title = "\n".join(f"{name}={base.label_text(value, 16)}" for name, value in zip(others, values, strict=True))
        middle = step * panel + (len(across) - 1) / 2
        ax.text(middle, len(up) - 0.4, title, ha="center", va="bottom", size=fitting.small(), **base.LITERAL)
    base.without_frame(ax)


@base.plot
def associations(
    table: Associations | pd.DataFrame | AnnData | str | Path,
    *,
    names: Sequence[str] | None = None,
    verdicts: Words | None = None,
    n_columns: int = 40,
    name: str = "",
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot the associations of modules (rows) with variables of the samples (columns), as a heatmap of signed effects.

    Red means that the samples of a level, or with large values, have high scores in the module; blue that they have low
    scores. The colour is Spearman's correlation for numbers, 2 AUC - 1 for a level of a category against all others,
    and for survival times the binary logarithm of the hazard ratio per standard deviation of the scores, cut at 1: the
    risk doubles (red) or halves (blue). The same number is written in the cell, with one star for an adjusted p-value
    of up to 0.05, two up to 0.01 and three up to 0.001; cells without a star are paler. Of a category with two levels,
    only the one with the higher scores in the module with the strongest association is drawn, because the other one is
    its opposite. Grey cells have no value.

    Parameters
    ----------
    table : Associations, DataFrame, AnnData after `tl.associate`, or folder of a fit
        The result of `netbic.associate` or its `table`, or the content of associations.tsv. Pairs of two tables have a
        row for the scores in each table.
    names : list of str, optional
        Names of all modules, e.g. of `netbic.enrichment.module_names`.
    verdicts : dict, optional
        Verdicts by the number of the module: doubtful modules are marked and paler. Default: those of the folder or of
        the AnnData object.
    n_columns : int
        Maximum number of columns; those with the smallest adjusted p-values are drawn.
    name : str
        The name under which tests were stored in an AnnData object or a folder, if any. If single cells of donors were
        tested, the title says that they are not independent.
    $key
    $ax

    Examples
    --------
    >>> import netbic, pandas as pd
    >>> columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    >>> rows = [(1, "er", "ER+", "Mann-Whitney", 0.94, "AUC", 1e-9)]
    >>> rows += [(1, "age", "", "Spearman", -0.1, "Spearman rho", 0.3)]
    >>> ax = netbic.pl.associations(pd.DataFrame(rows, columns=columns))
    >>> [text.get_text() for text in ax.texts]
    ['0.88***', '−0.10']
    """
    from netbic.association.associate import Associations
    from netbic.association.words import mark, one_row_each, reliability, unit_of
    from netbic.get import associations_df

    check_count("n_columns", n_columns)
    verdicts = _verdicts_of(table, key) if verdicts is None else verdicts
    caution = _caution(table, name, key)
    if isinstance(table, Associations):
        table = table.table
    elif isinstance(table, (str, Path)) or kind_of(table) == "anndata":
        table = associations_df(table, name=name, key=key)
    elif not isinstance(table, pd.DataFrame):
        what = "the result of netbic.associate or its .table, an AnnData object, or the folder of a fit"
        raise TypeError(f"table={type(table).__name__}: expected {what}")
    grid = effect_grid(table, n_columns)
    if not grid.columns:
        ax = base.axes_for(ax, (4.0, 1.5), given)
        base.write_sentence(ax, "no association has a direction")
        ax.set_axis_off()
        return ax
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    rows, all_labels = one_row_each(table)
    columns, modules = grid.columns, sorted({int(module) for module in rows["module"]})
    values = np.full((len(modules), len(columns)), np.nan)
    for (module, column), row in grid.cells.items():
        values[modules.index(module), column] = row["signed"]
    labels = [all_labels[module - 1] for module in modules]
    if names is not None and unit_of(table) == "pair":
        raise InputError("names are for modules: the rows of pairs are called after both tables")
    if names is not None and max(modules) > len(names):
        raise InputError(f"{len(names)} names are given but the table has module {max(modules)}: name all")
    if names is not None:
        labels = [f"{module}: {names[module - 1]}" for module in modules]
    per_row = len(all_labels) // max(int(table[unit_of(table)].max()), 1)  # two tables of a pair, one of a module
    words = [verdicts.get(1 + (module - 1) // per_row, "") for module in modules]
    labels = [label + mark(word) for label, word in zip(labels, words, strict=True)]
    pale = np.array([reliability(word) == 2 for word in words])
    longest = min(max(map(len, labels)), _LONGEST_NAME)
    width = 2.0 + 0.06 * longest + 0.52 * len(columns)
    ax = base.axes_for(ax, (width, max(1.9 + 0.27 * len(modules), 3.2)), given)
    longest = base.longest_label(ax, 0.45, _LONGEST_NAME)
    labels = [base.label_text(label, longest) for label in labels]
    colours = colormaps[base.DIVERGING].with_extremes(bad="0.88")
    found = np.isnan(values)  # or significant
    for (module, column), row in grid.cells.items():
        found[modules.index(module), column] = bool(row["stars"])
    shades: Any = np.where(found & ~pale[:, None], 1.0, _PALE)
    drawn: dict[str, Any] = {"cmap": colours, "vmin": -1, "vmax": 1, "aspect": "auto", "interpolation": "none"}
    ax.imshow(values, alpha=shades, **drawn)
    style: dict[str, Any] = {"ha": "center", "va": "center", "size": fitting.tiny()}
    written, stars = [], []
    for (module, column), row in grid.cells.items():
        at = modules.index(module)
        ink = "0.35" if shades[at, column] < 1 else "white" if abs(row["signed"]) > 0.6 else "black"
        written.append(ax.text(column, at, f"{row['text']}{row['stars']}", color=ink, **style))
        stars.append(row["stars"])
    ax.set_yticks(range(len(modules)), labels, fontsize=fitting.small(), **base.LITERAL)
    for tick, is_pale in zip(ax.get_yticklabels(), pale, strict=True):
        tick.set_color("0.45" if is_pale else "black")
    rotated: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", **base.LITERAL}
    line = base.longest_label(ax, 0.35, _LINE)
    texts = ["\n".join(wrap(base.label_text(name, 3 * _LINE), line)) for name in columns]
    ax.set_xticks(range(len(columns)), texts, fontsize=fitting.small(), **rotated)
    ax.set_ylabel(unit_of(table))
    base.without_frame(ax)
    share = min(0.9, _LONGEST_BAR / (ax.figure.get_window_extent().height / base.pixels(ax, 72)))
    scale = ScalarMappable(Normalize(-1, 1), colours)  # of all rows, also the paler ones
    base.colour_bar(scale, ax, "\n".join([*grid.scales, _LEGEND]), shrink=share, anchor=(0.0, 1.0))
    if caution:
        base.set_title(ax, caution, **base.LITERAL)
    base.write_labels(ax, given)
    fitting.fit_into_cells(ax, written, stars)
    return ax


def _caution(source: object, name: str, key: str) -> str:
    """That the cells of an AnnData object were tested as if they were independent, if several are of one donor."""
    from netbic.association.variables import repeated_units
    from netbic.tl.objects import of_name

    if kind_of(source) != "anndata":
        return ""
    params = source.uns.get(key, {}).get(of_name("association_params", name), {})  # type: ignore[attr-defined]
    units = [] if params.get("by") else repeated_units(source.obs)  # type: ignore[attr-defined]
    if not units:
        return ""
    return f"tests of single cells: those of one {units[0]} are not independent, so that p-values are too small"


def _verdicts_of(source: object, key: str) -> Words:
    """The verdicts on the modules of a folder or an AnnData object, by their numbers; none of a table."""
    if isinstance(source, (str, Path)):
        from netbic.association.stored import stored_verdicts

        return stored_verdicts(Path(source))
    if kind_of(source) == "anndata" and "verdicts" in source.uns.get(key, {}):  # type: ignore[attr-defined]
        table = source.uns[key]["verdicts"]  # type: ignore[attr-defined]
        return {int(number): str(word) for number, word in zip(table["module"], table["verdict"], strict=True)}
    return {}


class EffectGrid(NamedTuple):
    """Modules (or tables of pairs) by levels of variables: rows of the table by row and position of the column.

    Each has also `signed`, a number from -1 to 1, `text`, the same with two digits, and `stars` for its q-value.
    """

    columns: list[str]
    cells: dict[tuple[int, int], dict[Any, Any]]
    scales: list[str]  # what the numbers are
    n_left_out: int  # columns


def effect_grid(table: pd.DataFrame, most: int) -> EffectGrid:
    """The effects that have a direction, in the columns with the smallest q-values, in the order of the table.

    Batches and the like come last, those with many levels with the strongest one, so that other labels are in sight.
    """
    from netbic.association.words import main_tests, one_row_each, says_batch_or_unit, signed_effects

    table = one_row_each(table)[0]
    needed = ("module", "variable", "level", "test", "effect", "effect_name", "q")
    if missing := [name for name in needed if name not in table]:
        raise InputError(f"the table has no column {missing[0]!r}: give the table of netbic.associate")
    # Of two levels, the one that sentences about the strongest association name, also inside the levels of a column.
    insides = table.get("within", pd.Series("", table.index)).fillna("")
    tested = [name.removesuffix(f" within {inside}") for name, inside in zip(table["variable"], insides, strict=True)]
    table = table.assign(tested=tested)
    known = table["level"].where(table["level"].fillna("").ne(""))
    has_two = known.groupby(table["tested"]).transform("nunique") == 2
    named = main_tests(table[has_two]).sort_values("q", kind="stable").drop_duplicates("tested")
    chosen = table["tested"].map(named.set_index("tested")["level"])
    drawn = signed_effects(table[~has_two | known.isna() | known.eq(chosen)])
    if drawn.empty:
        return EffectGrid([], {}, [], 0)
    n_columns, technical = drawn["column"].nunique(), drawn["tested"].map(says_batch_or_unit).astype(bool)
    has_many = technical & (drawn.groupby("tested")["column"].transform("nunique") > _MANY_BATCHES)
    strongest = drawn[has_many].sort_values("q", kind="stable").drop_duplicates("tested")["column"]
    drawn = pd.concat([drawn[~technical], drawn[technical & (~has_many | drawn["column"].isin(strongest))]])
    best = drawn.groupby("column", sort=False)["q"].min().nsmallest(most).index
    columns = [str(column) for column in dict.fromkeys(drawn["column"]) if column in best]
    places = {column: at for at, column in enumerate(columns)}
    shown = drawn[drawn["column"].isin(columns)]
    cells = dict[tuple[int, int], dict[Any, Any]]()
    for row in shown[np.isfinite(shown["signed"].astype(float))].to_dict("records"):
        text = f"{row['signed']:z.2f}".replace("-", base.MINUS)  # z: 0.00, not -0.00
        stars = next((stars for limit, stars in _STARS if row["q"] <= limit), "")
        cells[int(row["module"]), places[row["column"]]] = {**row, "text": text, "stars": stars}
    return EffectGrid(columns, cells, list(dict.fromkeys(shown["scale"])), n_columns - len(columns))
