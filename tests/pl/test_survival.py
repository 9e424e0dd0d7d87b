"""Kaplan-Meier curves: steps, numbers at risk, tests, and what cannot be drawn."""

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import pl

COLUMNS = ("days", "event")


@pytest.fixture(scope="module")
def times(clear):
    rng = np.random.default_rng(1)
    days = np.where(clear.samples[0], rng.exponential(300, 200), rng.exponential(900, 200)).round()
    table = pd.DataFrame({"days": days, "event": rng.integers(0, 2, 200), "kind": "a"}, index=clear.expression.index)
    table.iloc[:3, 0] = np.nan
    return table


def lines_of(ax):
    """The steps of each curve, by the name of its group."""
    return {
        line.get_label().partition(":")[0]: line for line in ax.lines if not line.get_label().startswith("_")
    }  # fmt: skip


def statistics_of(ax):
    """The lines about the tests."""
    return next(text.get_text() for text in ax.texts if text.get_text().startswith("log-rank"))


def rows_at_risk(ax):
    """Numbers by group, from left to right."""
    numbers = [text for text in ax.texts if text.get_text().replace(",", "").isdigit()]
    heights = sorted({text.get_position()[1] for text in numbers}, reverse=True)
    return [[int(text.get_text()) for text in numbers if text.get_position()[1] == height] for height in heights]


@pytest.mark.parametrize(("module", "groups"), [(1, ["up", "down"]), (2, ["high", "low"])])
def test_curves_are_those_of_the_tests(clear, clear_model, times, module, groups):
    X = clear.expression
    ax = pl.survival(clear_model, module, X=X, table=times.sample(frac=1, random_state=0), survival=COLUMNS)
    found = netbic.associate(clear_model, X, times, variables=[], survival=COLUMNS).table
    cox, log_rank = (found[(found["module"] == module) & found["test"].str.startswith(t)] for t in ("Cox", "log-rank"))
    title = statistics_of(ax)
    assert f"log-rank p = {log_rank['p'].item():.2g}, hazard ratio {'/'.join(groups)} " in title
    assert f"{log_rank['effect'].item():.2f} ({log_rank['ci_low'].item():.2f} to" in title
    assert f"Cox model p = {cox['p'].item():.2g}, hazard ratio per sd {cox['effect'].item():.2f}" in title
    assert list(lines_of(ax)) == groups
    legend = ax.get_legend().get_title().get_text()
    assert (legend == "median split") == (groups[0] == "high")
    table = netbic.selection.sample_groups(clear_model, X).query("module == @module").set_index("sample")
    known = times["days"].notna()
    halves = table["score"] > table.loc[known, "score"].median()
    member = {name: table["group"] == name for name in ("up", "down")} | {"high": halves, "low": ~halves}
    ticks = ax.get_xticks()
    for name, counts in zip(groups, rows_at_risk(ax), strict=True):
        own = times[member[name] & known]
        line = lines_of(ax)[name]
        curve = netbic.association.kaplan_meier(own["days"].to_numpy(), own["event"].to_numpy() == 1)
        np.testing.assert_allclose(line.get_ydata(), [1, *curve["survival"]])
        np.testing.assert_allclose(line.get_xdata(), [0, *curve["time"]])
        assert counts == [(own["days"] >= tick).sum() for tick in ticks]
    ax.figure.canvas.draw()


def test_the_same_for_tables_and_anndata_and_the_axis_can_end_earlier(clear, clear_model, times):
    groups = netbic.selection.sample_groups(clear_model, clear.expression)
    adata = anndata.AnnData(clear.expression, obs=times)
    netbic.tl.modules(adata, n_components=2, n_columns=60)
    given = ((clear_model, {"X": clear.expression, "table": times}), (groups, {"table": times}), (adata, {}))
    titles = {statistics_of(pl.survival(source, 1, survival=COLUMNS, **more)) for source, more in given}
    assert len(titles) == 1
    options = {"X": clear.expression, "table": times, "survival": COLUMNS}
    ax = pl.survival(clear_model, 1, until=365, names=["$first$", "second"], **options)
    assert ax.get_xlim() == (0, 365)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("days", "share without the event")
    assert ax.get_title(loc="left") == "Module 1: $first$"
    ax.figure.canvas.draw()
    with pytest.raises(netbic.InputError, match="until=-1: expected a time above 0"):
        pl.survival(clear_model, 1, until=-1, **options)


def test_what_cannot_be_drawn_is_said(clear, clear_model, times):
    options = {"X": clear.expression, "table": times}
    with pytest.raises(netbic.InputError, match="no column names say survival: name the columns"):
        pl.survival(clear_model, 1, **options)
    found = pl.survival(clear_model, 1, X=clear.expression, table=times.set_axis(["OS.time", "OS", "kind"], axis=1))
    assert found.get_xlabel() == "OS.time"
    with pytest.raises(netbic.InputError, match="no column 'day'"):
        pl.survival(clear_model, 1, survival=("day", "event"), **options)
    with pytest.raises(netbic.InputError, match="the sample table is missing"):
        pl.survival(clear_model, 1, X=clear.expression, survival=COLUMNS)
    scores = netbic.get.scores_df(clear_model, clear.expression)["module_1"]
    one_group = times.assign(days=times["days"].where(scores > scores.quantile(0.9)))
    table = netbic.selection.sample_groups(clear_model, clear.expression).assign(group="up")
    with pytest.raises(netbic.InputError, match="all samples with a time in 'days' are in one group"):
        pl.survival(table, 1, table=one_group, survival=COLUMNS)
