"""Scores and survival of the samples in a module, and weights of the members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array, Floats, check_choice, kind_of
from netbic.errors import InputError
from netbic.estimators.parameters import check_count
from netbic.estimators.results import heaviest, names_of, position_of
from netbic.pl import base, fitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.association.tests import Result
    from netbic.association.variables import Variable

_LANE = 0.07  # height of a lane, as a share of the highest bar
_GROUPS = (("down", base.NEGATIVE), ("", base.GREY), ("up", base.POSITIVE))
_CURVES = {
    **dict.fromkeys(("up", "high"), base.POSITIVE),
    **dict.fromkeys(("down", "low"), base.NEGATIVE),
    "others": base.GREY,
}
_MOST_LINES = 500  # samples of which each has a line in a lane
_BINS = 60  # of the lanes of more samples
_ROW = 1.4  # height of a line of numbers at risk, relative to the size of its text
_ABOVE = 4.25  # lines between the axis and the first of them: tick labels and the label of the axis


@base.plot
def scores(
    model: base.ModelLike | pd.DataFrame | str | Path,
    X: Any = None,
    module: int = 1,
    *,
    n_bins: int = 40,
    annotation: Any = None,
    colours: base.Colours | None = None,
    names: Sequence[str] | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
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
    $module
    n_bins : int
        Number of bars.
    annotation : DataFrame, Series, or list of str, optional
        What is known about the samples: below the histogram, each level of a category has a lane with a line at the
        score of each of its samples, or with their density if there are more than 500 samples; numbers have one lane,
        from dark (low) to light (high). The index contains the names of the samples. If `model` is an AnnData object,
        also names of columns of its obs.
    $colours
    $names
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> netbic.pl.scores(model, study.expression).get_title(loc="left")
    'Module 1: up in 24, down in 16 of 200 samples'
    """
    from matplotlib.ticker import MaxNLocator

    check_count("n_bins", n_bins)
    found = sample_scores(model, X, module, key)
    known = base.annotation_strips(annotation, model, found.samples, colours)
    n_lanes = sum(1 if strip.is_numeric else len(strip.legend) for strip in known)
    ax = base.axes_for(ax, (5.0 + 1.3 * bool(known), 3.0 + 0.16 * n_lanes), given)
    finite = np.isfinite(found.values)
    drawn = [(found.values[finite & (found.groups == group)], group or "neither", ink) for group, ink in _GROUPS]
    if drawn := [part for part in drawn if part[0].size]:
        parts, labels, shades = zip(*drawn, strict=True)
        bins = np.histogram_bin_edges(found.values[finite], n_bins).tolist()
        ax.hist(parts, bins=bins, stacked=True, color=shades, label=labels)
    if len(drawn) > 1:
        ax.legend(
            fontsize=fitting.small(), frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.3
        )
    ax.axvline(0, color="0.3", lw=0.8, ls=":")
    ax.set(xlabel="score", ylabel="samples")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    if known:
        _draw_lanes(ax, found.values, known)
    base.despine(ax)
    name = found.name if names is None else names[found.number - 1]
    base.module_title(ax, found.number, name, groups_in_words(found.groups))
    base.write_labels(ax, given)
    fitting.apply_layout(ax)
    return ax


def _draw_lanes(ax: Axes, values: NDArray[Any], known: list[base.Strip]) -> None:
    """Lanes below the histogram, inside the same axes, which are made taller for them."""
    top = ax.get_ylim()[1]
    height = top * _LANE
    ticks = [tick for tick in ax.get_yticks() if 0 <= tick <= top]
    low = -height * 0.5
    for strip in known:
        for code in [0] if strip.is_numeric else range(len(strip.legend)):
            label, colour = strip.legend[code]
            own = np.isfinite(values) & (strip.codes == code)
            colours: Any = strip.colours[own].tolist() if strip.is_numeric else [colour]
            if own.sum() <= _MOST_LINES and len(values) <= _MOST_LINES:
                ax.vlines(values[own], low - height * 0.85, low, colors=colours, lw=0.7)
            elif strip.is_numeric:
                _draw_means(ax, values[own], strip.colours[own], low - height * 0.85, height * 0.85)
            else:
                _draw_density(ax, values[own], colour, low - height * 0.85, height * 0.85)
            if strip.is_numeric:
                (first, _), (last, _) = strip.legend[0], strip.legend[-1 - (strip.legend[-1][0] == "missing")]
                label = f"{first} (dark) to {last} (light)"
            text = base.level_text(strip.name, label)
            ax.annotate(
                text, (1, low - height / 2), (4, 0), ("axes fraction", "data"), textcoords="offset points", va="center",
                size=fitting.small(), annotation_clip=False, **base.LITERAL,
            )  # fmt: skip
            low -= height
        low -= height * 0.4
    ax.set_ylim(low, top)
    ax.set_yticks(ticks)
    ax.spines["left"].set_bounds(0, top)


def _draw_density(ax: Axes, values: Floats, colour: str, bottom: float, height: float) -> None:
    """How frequent values are, as an area; its highest point has the whole height."""
    counts, edges = np.histogram(values, _BINS)
    smooth = np.convolve(np.pad(counts, 3), [0.1, 0.2, 0.4, 0.2, 0.1], mode="same")
    step = edges[1] - edges[0]
    places = edges[0] + (np.arange(smooth.size) - 2.5) * step
    ax.fill_between(places, bottom, bottom + height * smooth / max(smooth.max(), 1.0), color=colour, lw=0)


def _draw_means(ax: Axes, values: Floats, colours: NDArray[Any], bottom: float, height: float) -> None:
    """The mean colour of each part of the axis."""
    from matplotlib.colors import to_rgba_array

    edges = np.histogram_bin_edges(values, _BINS)
    at = np.clip(np.digitize(values, edges) - 1, 0, _BINS - 1)
    means = pd.DataFrame(to_rgba_array(colours.tolist())).groupby(at).mean()
    width = edges[1] - edges[0]
    ax.bar(edges[means.index], height, width, bottom, align="edge", color=means.to_numpy(), lw=0)


def groups_in_words(groups: NDArray[Any]) -> str:
    """How many samples are "up" and "down": 'up in 2, down in 1 of 4 samples'."""
    counts = {group: int((groups == group).sum()) for group in ("up", "down")}
    parts = [f"{group} in {count:,}" for group, count in counts.items() if count]
    return f"{', '.join(parts)} of {groups.size:,} samples" if parts else f"gradient, {groups.size:,} samples"


class ModuleScores(NamedTuple):
    """Names, scores and groups ("up", "down" or "") of the samples; the number of the module or pair, and its name."""

    samples: Array
    values: Floats
    groups: NDArray[Any]
    number: int
    name: str = ""
    unit: str = "module"


def sample_scores(source: Any, X: Any, module: int, key: str) -> ModuleScores:
    """The scores of a module of a folder, a table or an AnnData object; those of a model need the data."""
    if isinstance(source, (str, Path)):
        from netbic.exports import Results

        results = Results.of(source)
        name = results.marked_names[position_of(module, results.n_modules)]
        if (table := results.tables.get("samples")) is None:
            raise InputError(f"{source} has no scores of the samples (samples.tsv): fit again with this version")
        return sample_scores(table, None, module, key)._replace(name=name)
    if isinstance(source, pd.DataFrame):
        if "pair" in source:
            name = f"scores of {source['table'].iloc[0]}"
            found = sample_scores(source.rename(columns={"pair": "module"}), None, module, key)
            return found._replace(name=name, unit="pair")
        if missing := [name for name in ("module", "sample", "score", "group") if name not in source]:
            raise InputError(f"the table has no column {missing[0]!r}: give that of selection.sample_groups")
        own = source[source["module"] == module]
        if own.empty:
            position_of(module, 0 if source.empty else int(source["module"].max()))
            raise InputError(f"module={module!r}: the table has no scores of this module")
        groups = own["group"].where(own["group"].isin(["up", "down"]), "").to_numpy(object)
        return ModuleScores(own["sample"].to_numpy(object), own["score"].to_numpy(float), groups, int(module))
    from netbic.selection.score_groups import score_groups

    model = base.fitted(source, key)
    position, data = position_of(module, model.n_components_), base.data_of(source, X, key)
    values = base.scores_of(model, data)[:, position]
    samples = np.arange(values.size) if data.rows is None else data.rows.to_numpy(dtype=object)
    groups = np.array(["", "up", "down"], dtype=object)[score_groups(values).labels]  # 0, 1 and -1
    return ModuleScores(samples, values, groups, module)


@base.plot
def survival(
    source: base.ModelLike | pd.DataFrame | str | Path,
    module: int = 1,
    *,
    X: Any = None,
    table: pd.DataFrame | None = None,
    survival: tuple[str, str] | None = None,
    until: float | None = None,
    colours: Mapping[str, str] | None = None,
    names: list[str] | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot Kaplan-Meier curves of the samples in which a module is high and low.

    The curves are those of the groups of the log-rank test of `netbic.associate`: up against down, the only group
    against all others, or, if the scores are a gradient, the samples above and below the median score; the legend then
    says "median split". Ticks mark the end of the observation of samples without an event. Numbers below the curves are
    the samples at risk. The lines below them give the p-value of the log-rank test with the hazard ratio of the first
    group against the second one, and the hazard ratio per standard deviation of the scores in a Cox model, with 95 %
    confidence intervals. The tests are not adjusted for covariates. If the name of the column with the times says the
    endpoint or the unit (os_months), the axes do.

    Parameters
    ----------
    source : folder of a fit, AnnData, SparseGraphSVD, or DataFrame
        A table is one of scores and groups, as `selection.sample_groups` returns and samples.tsv contains.
    $module
    X : array, DataFrame or sparse matrix, optional
        The data, if `source` is a model.
    table : DataFrame, optional
        The sample table, with the names of the samples as index. Default: the sample table of the folder, or obs.
    survival : (str, str), optional
        Columns with the time and the event (1 seen, 0 not seen). Default: the first ones that were tested in the
        folder, or that are found by name in the table.
    until : float, optional
        The end of the time axis. Curves and tests use all times.
    colours : dict, optional
        Colours of the groups: `{"high": "#D75E23", "low": "#0072B2"}` (up, down, others, high, low).
    $names
    $key
    $ax

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> rng = np.random.default_rng(0)
    >>> times = pd.DataFrame({"days": rng.exponential(900, 200), "event": 1}, index=study.expression.index)
    >>> ax = netbic.pl.survival(model, X=study.expression, table=times, survival=("days", "event"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['up: 24 samples, 24 events', 'down: 16 samples, 16 events']
    """
    from netbic.association.one_variable import survival_curves
    from netbic.association.survival import endpoint_in_words, unit_of_time

    if until is not None and not (np.isfinite(until) and until > 0):
        raise InputError(f"until={until!r}: expected a time above 0")
    scores = sample_scores(source, X, module, key)
    variable = _times(source, table, survival, scores.samples)
    found = survival_curves(scores.values, scores.groups, variable)
    if found is None:
        raise InputError(f"all samples with a time in {variable.name!r} are in one group: there is nothing to compare")
    ax, inks = base.axes_for(ax, (6.2, 4.4), given), _CURVES | dict(colours or {})
    for name, curve in zip(found.names, found.curves, strict=True):
        times, shares = curve["time"].to_numpy(dtype=float), curve["survival"].to_numpy(dtype=float)
        n, n_events = int(curve["n_at_risk"].iloc[0]), int(curve["n_events"].sum())
        label = f"{name}: {n:,} sample{'s' * (n != 1)}, {n_events:,} event{'s' * (n_events != 1)}"
        ax.step([0, *times], [1, *shares], where="post", color=inks[name], lw=1.5, label=label)
        lost = curve["n_censored"].to_numpy() > 0
        ax.plot(times[lost], shares[lost], "|", color=inks[name], ms=5, mew=0.8)
    split = "median split" if found.is_median_split else None
    longest = max(float(times.max()) for times in found.times)
    ax.set(xlim=(0, until or longest * 1.02 or 1.0), ylim=(0, 1.02), ylabel=endpoint_in_words(variable.name))
    ax.set_xlabel(unit_of_time(variable.name) or base.label_text(variable.name, 40), **base.LITERAL)
    base.despine(ax)
    log_rank = f"log-rank {_in_words(found.log_rank, '/'.join(found.names))}"
    cox = f"Cox model {_in_words(found.cox, 'per sd')}, not adjusted"
    name = scores.name if names is None else names[scores.number - 1]
    base.module_title(ax, scores.number, name, "", scores.unit)
    base.write_labels(ax, given)
    # The samples at risk, below the ticks of the time axis.
    low, high = ax.get_xlim()
    ticks = np.array([tick for tick in ax.get_xticks() if low <= tick <= high], dtype=float)
    ax.set_xticks(ticks.tolist())
    size = fitting.small()
    style: dict[str, Any] = {"textcoords": "offset points", "va": "top", "size": size, "annotation_clip": False}
    ax.annotate("at risk", (0, 0), (-0.75 * size, -_ABOVE * size), "axes fraction", ha="right", color="0.35", **style)
    for line, (name, counts) in enumerate(zip(found.names, found.at_risk(ticks), strict=True), start=1):
        down = -(_ABOVE + line * _ROW) * size
        ax.annotate(name, (0, 0), (-2.75 * size, down), "axes fraction", ha="right", color=inks[name], **style)
        for tick, count in zip(ticks, counts, strict=True):
            ax.annotate(f"{count:,}", (tick, 0), (0, down), ("data", "axes fraction"), ha="center", **style)
    below = -(_ABOVE + (len(found.names) + 1.6) * _ROW) * size
    tests = ax.annotate(f"{log_rank}\n{cox}", (0, 0), (0, below), "axes fraction", ha="left", **style)
    tests.set_in_layout(False)  # or the axes would become narrower, because it is wider than they are
    fitting.place_legend(ax, title=split)
    fitting.wrap_text(ax, tests)
    lines = "\n".join("." for _ in tests.get_text().splitlines())
    ax.annotate(lines, (0, 0), (0, below), "axes fraction", ha="left", alpha=0.0, **style)  # reserves its height
    fitting.apply_layout(ax)
    return ax


def _times(source: Any, table: pd.DataFrame | None, columns: tuple[str, str] | None, samples: Array) -> Variable:
    """Times and events of the samples; table and columns are those of the AnnData object or of the folder if None."""
    from netbic.association.stored import stored_record, stored_samples
    from netbic.association.survival import find_survival
    from netbic.association.variables import read_variables

    folder = Path(source) if isinstance(source, (str, Path)) else None
    if table is None and kind_of(source) == "anndata":
        table = source.obs
    elif table is None:
        if folder is None:
            raise InputError("the sample table is missing: give `table`, with the names of the samples as index")
        if (table := stored_samples(folder)) is None:
            raise InputError(f"{source} has no sample table: run netbic associate, or give `table`")
    if columns is None:
        # The first ones: overall survival usually comes before relapses.
        found = find_survival(table).pairs if folder is None else stored_record(folder).get("survival", [])
        if not found:
            what = "no column names say survival" if folder is None else "no survival times were tested"
            raise InputError(f"{what}: name the columns with the time and the event (`survival`)", ["survival"])
        columns = str(found[0][0]), str(found[0][1])
    known = base.annotation_table(table, None, samples, most=None)
    return read_variables(known, variables=[], survival=columns)[0]


def _in_words(test: Result, ratio: str) -> str:
    p = "not defined" if np.isnan(test.p) else f"= {test.p:.2g}" if test.p > 1e-300 else "< 1e-300"
    effect = "not defined" if np.isnan(test.effect) else f"{test.effect:.2f}"
    ends = f" ({test.low:.2f} to {test.high:.2f})" if np.isfinite(test.low) else ""
    return f"p {p}, hazard ratio {ratio} {effect}{ends}"


@base.plot
def loadings(
    model: base.ModelLike,
    module: int = 1,
    *,
    axis: str = "columns",
    n: int = 20,
    feature_name: str | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot the weights of the members of a module with the largest absolute weights.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    $module
    $axis
    n : int
        Maximum number of members.
    $feature_name
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60).fit(study.expression)
    >>> netbic.pl.loadings(model, 1, n=15).get_title(loc="left")
    'Module 1: 15 of 60 features'
    """
    found = base.fitted(model, key)
    check_count("n", n)
    check_choice("axis", axis, ("columns", "rows"), InputError)
    at = position_of(module, found.n_components_)
    weights = found.components_[at] if axis == "columns" else found.left_vectors_[:, at]
    members = heaviest(weights)
    drawn = members[:n]
    values, positions = weights[drawn], np.arange(drawn.size)
    ax = base.axes_for(ax, (4.5, 1.0 + 0.2 * drawn.size), given)
    colours = np.where(values > 0, base.POSITIVE, base.NEGATIVE).tolist()
    ax.hlines(positions, 0, values, colors=colours, linewidths=1.2)
    ax.scatter(values, positions, c=colours, s=22, zorder=3)
    ax.axvline(0, color="0.3", lw=0.8)
    ax.set(ylim=(max(drawn.size, 1) - 0.4, -0.6), xlabel="weight")
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=6)
    base.despine(ax)
    shown = f"{drawn.size} of {members.size:,}" if drawn.size < members.size else f"{members.size:,}"
    base.set_title(ax, f"Module {module}: {shown} {base.noun_of(model, axis, feature_name)}")
    base.write_labels(ax, given)
    fitting.apply_layout(ax)
    base.name_ticks(ax, "y", positions, names_of(found, axis)[drawn], np.abs(values))
    return ax
