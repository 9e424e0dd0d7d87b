"""Figures of the sizes of journals: no text is cut, and none covers another one or the data."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import netbic
from netbic import pl

SMALL, USUAL = (3.3, 2.8), (7, 6)
NAMES = ["module", "variable", "level", "test", "effect", "effect_name", "q"]


@pytest.fixture(scope="module")
def times(study):
    rng = np.random.default_rng(1)
    days = rng.exponential(700, len(study.expression)).round()
    return pd.DataFrame({"os_days": days, "event": rng.integers(0, 2, days.size)}, index=study.expression.index)


def associations(n_modules, name, n_variables=9):
    rng, rows = np.random.default_rng(0), []
    for module in range(1, n_modules + 1):
        for k in range(n_variables):
            rows.append((module, f"{name} {k}", "", "Spearman", -0.86, "Spearman rho", rng.choice([1e-9, 0.03, 0.5])))
    return pd.DataFrame(rows, columns=NAMES)


def extents_of(ax):
    """Boxes of the horizontal and vertical texts that are seen (without those in legends), as they are printed."""
    figure = ax.figure
    figure.set_dpi(300)
    figure.draw_without_rendering()
    found, legends = [], [one.get_legend() for one in figure.axes if one.get_legend()]
    inside = {id(text) for legend in legends for text in legend.findobj(Text)}
    for one in figure.axes:
        unseen = set()
        for axis in (one.xaxis, one.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low <= tick.get_loc() <= high or not one.axison:
                    unseen |= {id(tick.label1), id(tick.label2)}
        texts = [
            text
            for text in one.findobj(Text)
            if text.get_text().strip() and text.get_visible() and text.get_alpha() != 0
        ]
        found += [
            (text.get_text(), text.get_window_extent().get_points(), text.get_rotation())
            for text in texts
            if id(text) not in unseen | inside
        ]
    return found + [("legend", legend.get_window_extent().get_points(), 0) for legend in legends]


def assert_all_fit(ax):
    found, edge = extents_of(ax), np.asarray(ax.figure.bbox.get_points()[1])
    for text, (low, high), _ in found:
        assert min(low.min(), (edge - high).min()) > -4, f"{text} is cut"  # of 72 / 300 points
    upright = [part for part in found if part[2] % 90 == 0]
    for k, (one, (low, high), _) in enumerate(upright):
        for other, (left, right), _ in upright[:k]:
            common = np.minimum(high, right) - np.maximum(low, left)
            assert common.min() < 6, f"{one} covers {other}"  # descenders may touch
    assert min(text.get_size() for text in ax.findobj(Text)) >= 5


@pytest.mark.parametrize("size", [None, SMALL, USUAL])
def test_texts_of_all_kinds_fit(study, model, terms, stable, times, size):
    long = [f"a long name of a gene set that many genes share {k}" for k in range(3)]
    labels = times.assign(kind=np.resize(["a rather long label", "another one"], len(times)))[["kind"]]
    counted = netbic.SparseGraphSVD().fit(study.expression)
    survival = {"X": study.expression, "table": times, "survival": ("os_days", "event"), "names": long}
    for ax in (
        pl.survival(model, 2, **survival, size=size),
        pl.heatmap(model, study.expression, names=long, annotation=labels, size=size),
        pl.network(model, 1, names=long, size=size),
        pl.scores(model, study.expression, 1, names=long, annotation=labels, size=size),
        pl.loadings(model, 1, size=size),
        pl.enrichment(terms, size=size),
        pl.stability(stable, size=size),
        pl.n_modules(counted, size=size),
        pl.associations(associations(12, "variable"), size=size),
    ):
        assert_all_fit(ax)


def test_numbers_that_do_not_fit_into_cells_leave_the_stars():
    table = associations(25, "a variable")
    written = {text.get_text() for text in pl.associations(table, size=(7, 6)).texts}
    assert "\N{MINUS SIGN}0.86***" in written
    few = {text.get_text() for text in pl.associations(table, size=SMALL).texts}
    assert few <= {"", "*", "**", "***"}


def test_legends_lie_beside_the_curves(study, model, times):
    for size in (None, SMALL):
        survival = {"X": study.expression, "table": times, "survival": ("os_days", "event")}
        ax = pl.survival(model, 2, **survival, size=size)
        ax.figure.set_dpi(300)
        ax.figure.draw_without_rendering()
        low, high = ax.get_legend().get_window_extent().get_points()
        for line in (one for one in ax.lines if one.get_linestyle() != "None"):  # the others are marks on these
            x, y = line.get_data()
            stairs = np.column_stack([np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]])
            fine = np.concatenate([np.linspace(*ends, 30) for ends in pairwise(stairs)])
            points = ax.transData.transform(fine)
            assert not ((low < points) & (points < high)).all(axis=1).any()


def test_too_small_a_size_names_one_that_is_enough(study, model, times):
    survival = {"X": study.expression, "table": times, "survival": ("os_days", "event")}
    with pytest.raises(netbic.InputError, match=r"size=1.2 x 1 inches is too small .*: use at least") as problem:
        pl.survival(model, 2, **survival, size=(1.2, 1))
    needed = tuple(map(float, re.findall(r"[\d.]+", str(problem.value))[-2:]))
    assert_all_fit(pl.survival(model, 2, **survival, size=needed))


def test_all_modules_are_numbered_at_the_right_of_a_heatmap():
    study = netbic.simulate.cohort(400, 700, n_modules=12, random_state=0)
    model = netbic.SparseGraphSVD(12, n_columns=20).fit(study.expression)
    ax = pl.heatmap(model, study.expression, size=(6, 5))
    at_right = [text.get_text() for text in ax.texts if text.get_ha() == "left"]
    assert at_right == [str(k) for k in range(1, 13)]
