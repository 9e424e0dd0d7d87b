"""Kaplan-Meier curves of a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from netbic.arrays import kind_of
from netbic.errors import InputError
from netbic.pl import base
from netbic.pl.scores import sample_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.association import Result, SurvivalCurves

_UP, _DOWN = base.POSITIVE, base.NEGATIVE
_COLOURS = {"up": _UP, "high": _UP, "down": _DOWN, "low": _DOWN, "others": base.GREY}
_ROW = 11.0  # points between the lines of numbers at risk
_ABOVE = 34.0  # points between the axis and the first of them: tick labels and the label of the axis


def survival(
    source: base.ModelLike | pd.DataFrame | str | Path,
    module: int = 1,
    *,
    X: Any = None,
    table: pd.DataFrame | None = None,
    survival: tuple[str, str] | None = None,
    until: float | None = None,
    names: list[str] | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot Kaplan-Meier curves of the samples in which a module is high and low.

    The curves are those of the groups of the log-rank test of `netbic.associate`: up against down, the only group
    against all others, or, if the scores are a gradient, the samples above and below the median score; the legend then
    says "median split". Ticks mark the end of the observation of samples without an event. Numbers below the curves are
    the samples at risk. The title gives the p-value of the log-rank test with the hazard ratio of the first group
    against the second one, and the hazard ratio per standard deviation of the scores in a Cox model, with 95 %
    confidence intervals. The tests are not adjusted for covariates.

    Parameters
    ----------
    source : folder of a fit, AnnData, SparseGraphSVD, or DataFrame
        A table is one of scores and groups, as `selection.sample_groups` returns and samples.tsv contains.
    module : int
        Its number, from 1.
    X : array, DataFrame or sparse matrix, optional
        The data, if `source` is a model.
    table : DataFrame, optional
        The sample table, with the names of the samples as index. Default: the sample table of the folder, or obs.
    survival : (str, str), optional
        Columns with the time and the event (1 seen, 0 not seen). Default: those that were tested in the folder.
    until : float, optional
        The end of the time axis. Curves and tests use all times.
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
    >>> import netbic, numpy as np, pandas as pd
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> rng = np.random.default_rng(0)
    >>> times = pd.DataFrame({"days": rng.exponential(900, 200), "event": 1}, index=study.expression.index)
    >>> ax = netbic.pl.survival(model, X=study.expression, table=times, survival=("days", "event"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['up: 24 samples, 24 events', 'down: 16 samples, 16 events']
    """
    from netbic.association import read_variables, survival_curves

    if until is not None and not (np.isfinite(until) and until > 0):
        raise InputError(f"until={until!r}: expected a time above 0")
    scores = sample_scores(source, X, module, key)
    known = base.annotation_table(_sample_table(source) if table is None else table, None, scores.samples, most=None)
    variable = read_variables(known, variables=[], survival=survival or _tested(source))[0]
    found = survival_curves(scores.values, scores.groups, variable)
    if found is None:
        raise InputError(f"all samples with a time in {variable.name!r} are in one group: there is nothing to compare")
    ax = base.axes_for(ax, (6.2, 4.4))
    for name, curve in zip(found.names, found.curves, strict=True):
        times, shares = curve["time"].to_numpy(dtype=float), curve["survival"].to_numpy(dtype=float)
        n, n_events = int(curve["n_at_risk"].iloc[0]), int(curve["n_events"].sum())
        label = f"{name}: {n:,} sample{'s' * (n != 1)}, {n_events:,} event{'s' * (n_events != 1)}"
        ax.step([0, *times], [1, *shares], where="post", color=_COLOURS[name], lw=1.5, label=label)
        lost = curve["n_censored"].to_numpy() > 0
        ax.plot(times[lost], shares[lost], "|", color=_COLOURS[name], ms=5, mew=0.8)
    split = "median split" if found.is_median_split else None
    ax.legend(frameon=False, fontsize=base.SMALL, loc="best", title=split, title_fontsize=base.SMALL)
    longest = max(float(times.max()) for times in found.times)
    ax.set(xlim=(0, until or longest * 1.02 or 1.0), ylim=(0, 1.02), ylabel="share without the event")
    ax.set_xlabel(base.label_text(variable.name, 40), **base.LITERAL)
    base.despine(ax)
    name = scores.name if names is None else names[scores.number - 1]
    log_rank = f"log-rank p {_p(found.log_rank)}, hazard ratio {'/'.join(found.names)} {_ratio(found.log_rank)}"
    cox = f"Cox model p {_p(found.cox)}, hazard ratio per sd {_ratio(found.cox)}"
    base.module_title(ax, scores.number, name, f"{log_rank}\n{cox}")
    _write_numbers(ax, found)
    base.apply_layout(ax)
    return ax


def _sample_table(source: Any) -> pd.DataFrame:
    """The sample table of an AnnData object or of a folder."""
    if kind_of(source) == "anndata":
        obs: pd.DataFrame = source.obs
        return obs
    if not isinstance(source, (str, Path)):
        raise InputError("the sample table is missing: give `table`, with the names of the samples as index")
    from netbic.exports import Results

    table = Results.of(source).sample_info
    if table is None:
        raise InputError(f"{source} has no sample table: run netbic associate, or give `table`")
    return table


def _tested(source: Any) -> tuple[str, str]:
    """The columns with time and event of the tests in a folder."""
    from netbic.association import stored_record

    record = stored_record(Path(source)) if isinstance(source, (str, Path)) else {}
    pairs = record.get("survival", [])
    if len(pairs) == 1:
        return str(pairs[0][0]), str(pairs[0][1])
    found = f"{len(pairs)} pairs of columns were tested" if pairs else "no times are known"
    raise InputError(f"{found}: name the columns with the time and the event (`survival`)", ["survival"])


def _p(test: Result) -> str:
    return "not defined" if np.isnan(test.p) else f"= {test.p:.2g}" if test.p > 1e-300 else "< 1e-300"


def _ratio(test: Result) -> str:
    if np.isnan(test.effect):
        return "not defined"
    return f"{test.effect:.2f}" + (f" ({test.low:.2f} to {test.high:.2f})" if np.isfinite(test.low) else "")


def _write_numbers(ax: Axes, found: SurvivalCurves) -> None:
    """The samples at risk, below the ticks of the time axis."""
    low, high = ax.get_xlim()
    ticks = np.array([tick for tick in ax.get_xticks() if low <= tick <= high], dtype=float)
    ax.set_xticks(ticks.tolist())
    style: dict[str, Any] = {"textcoords": "offset points", "va": "top", "size": base.SMALL, "annotation_clip": False}
    ax.annotate("at risk", (0, 0), (-6, -_ABOVE), "axes fraction", ha="right", color="0.35", **style)
    for line, (name, counts) in enumerate(zip(found.names, found.at_risk(ticks), strict=True), start=1):
        down = -_ABOVE - line * _ROW
        ax.annotate(name, (0, 0), (-22, down), "axes fraction", ha="right", color=_COLOURS[name], **style)
        for tick, count in zip(ticks, counts, strict=True):
            ax.annotate(f"{count:,}", (tick, 0), (0, down), ("data", "axes fraction"), ha="center", **style)
