"""Charts of all modules: heights, positions and ticks are those of the numbers, tooltips name them."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.ticker import MaxNLocator

from netbic.report.charts import charts
from netbic.report.pictures import Scale, round_ticks
from netbic.solver.count import Count


def table(**columns):
    n = len(next(iter(columns.values())))
    usual = {"module": range(1, n + 1), "explained_variance_ratio": 0.1, "singular_value": 2.0, "top_genes": "A, B"}
    return pd.DataFrame({**usual, "diagnostics": "", **columns}, index=range(n))


def only(found, name):
    (drawing,) = (chart.drawing for chart in found if chart.name == name)
    return drawing


def drawn(rows, count=None, level=0.05):
    return charts(SimpleNamespace(n_components_=1, count_=count), rows, level)


def numbers(path):
    return [float(number) for number in re.findall(r"-?[\d.]+", path)]


def value_of(place, ticks):
    """The number at a place, from two ticks of a linear axis."""
    (first, low), (last, high) = ((at, float(label.rstrip("%"))) for at, label in (ticks[0], ticks[-1]))
    return low + (place - first) / (last - first) * (high - low)


@pytest.mark.parametrize("shares", [[0.031, 0.012, 0.0004], [0.5], [0.0, 0.0], [0.02, np.nan]])
def test_bars_are_as_high_as_the_variance_that_modules_explain(shares):
    drawing = only(drawn(table(explained_variance_ratio=shares)), "variance")
    for number, (group, share) in enumerate(zip(drawing["groups"], shares, strict=True), start=1):
        left, top, right, bottom, _ = numbers(group["marks"][0]["path"])
        assert value_of(top, drawing["y_ticks"]) == pytest.approx(
            100 * np.nan_to_num(share), abs=0.3 * max(shares) + 1e-9
        )
        assert value_of(bottom, drawing["y_ticks"]) == 0
        assert left < drawing["x_ticks"][number - 1][0] < right
        assert group["module"] == number
    assert drawing["y_ticks"][-1][0] >= 0


def test_bars_have_the_class_of_their_verdict_and_the_legend_names_those_that_occur():
    kinds = ["doubtful", "broad axis", "strong", "broad axis"]
    drawing = only(drawn(table(verdict=kinds)), "variance")
    assert [group["marks"][0]["style"] for group in drawing["groups"]] == kinds
    assert [key["text"] for key in drawing["legend"]] == ["strong", "broad axis", "doubtful"]
    assert drawing["groups"][1]["text"].startswith("module 2: broad axis\nvariance explained: 10.00%")


def test_a_long_legend_has_several_lines_inside_the_chart():
    kinds = ["strong", "moderate", "broad axis", "repeats", "doubtful", "unknown"]
    legend = only(drawn(table(verdict=kinds)), "variance")["legend"]
    assert len({key["y"] for key in legend}) == 2
    assert all(key["text_x"] + 7 * len(key["text"]) <= 486 for key in legend)
    assert max(key["y"] for key in legend) < 0


def test_edges_are_on_logarithmic_axes_and_modules_that_cannot_be_compared_are_left_out():
    folds = [1.5, 3, 6, 12, 0, np.inf, np.nan]
    rows = table(fold_change=folds, degree_fold_change=[2.0] * 7, degree_q_value=[0.01] * 3 + [0.2] * 4, n_edges=9)
    drawing = only(drawn(rows), "evidence")
    assert [group["module"] for group in drawing["groups"]] == [1, 2, 3, 4]
    assert [group["marks"][0]["style"] for group in drawing["groups"]] == ["plain"] * 3 + ["warned"]
    places = [numbers(group["marks"][0]["path"])[0] for group in drawing["groups"]]
    np.testing.assert_allclose(np.diff(places), np.diff(places)[0], atol=0.2)
    assert len(drawing["y_ticks"]) >= 2  # although all have the same value
    assert "that cannot be compared (3)" in next(one.caption for one in drawn(rows) if one.name == "evidence")
    assert [one.name for one in drawn(rows.iloc[4:])] == ["variance"]


def test_the_curve_of_modules_found_again_goes_through_its_points():
    count = Count(9, 20, [10, 12], [[5, 5], [10, 8], [20, 12]])
    drawing = only(drawn(table(top_genes=["A"]), count), "count")
    lines = dict(drawing["lines"])
    places = np.array(numbers(lines["again"])).reshape(-1, 2)
    found = [[value_of(x, drawing["x_ticks"]), value_of(y, drawing["y_ticks"])] for x, y in places]
    np.testing.assert_allclose(found, count.curve, atol=0.05)
    assert value_of(numbers(lines["found"])[1], drawing["y_ticks"]) == pytest.approx(11, abs=0.05)
    assert all("module" not in group for group in drawing["groups"])  # they lead nowhere


@pytest.mark.parametrize(("low", "high"), [(0.5, 900), (35, 51), (2.1, 8.8), (1.9, 2.4), (0.002, 50_000), (3, 17)])
def test_ticks_of_logarithmic_scales_are_few_round_numbers(low, high):
    scale = Scale(low, high, 0, 400, log=True)
    places, labels = zip(*scale.ticks, strict=True)
    values = np.array([float(label) for label in labels])
    assert 3 <= len(values) <= 8
    assert low <= values.min() < values.max() <= high
    np.testing.assert_allclose(places, 400 * np.log(values / low) / np.log(high / low), atol=0.06)


@pytest.mark.parametrize(("n", "is_cut"), [(80, False), (81, True)])
def test_a_chart_that_leaves_out_modules_says_so(n, is_cut):
    members = np.eye(n, dtype=bool)
    model = SimpleNamespace(n_components_=n, count_=None, columns_=members, rows_=members)
    found = {chart.name: chart for chart in charts(model, table(diagnostics=[""] * n), 0.05)}
    for name in ("shared", "samples"):
        assert found[name].caption.endswith("The first 80 modules.") == is_cut
        assert len(found[name].drawing["groups"]) == 80


def test_ticks_are_those_of_matplotlib():
    rng, locator = np.random.default_rng(0), MaxNLocator(5, steps=[1, 2, 5, 10])
    widths, middles = 10 ** rng.uniform(-4, 5, 500), rng.normal(size=500) * 10 ** rng.uniform(-4, 3, 500)
    for low, high in [*zip((middles - widths).tolist(), (middles + widths).tolist(), strict=True), (0, 50), (-2, 1)]:
        theirs = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        assert round_ticks(low, high) == pytest.approx(theirs, rel=1e-9, abs=1e-9 * (high - low))
    assert round_ticks(-0.3, 0.6) == [-0.2, 0.0, 0.2, 0.4, 0.6]  # matplotlib misses some ends by rounding
    assert round_ticks(0.0, 0.0) == [0.0]
