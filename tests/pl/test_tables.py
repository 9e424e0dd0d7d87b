"""Enrichment, stability and tuning."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

import netbic
from netbic import pl
from netbic.selection import standard_error_of_difference


def test_dots_are_terms_by_modules(terms):
    ax = pl.enrichment(terms, n_terms=9)
    names = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert columns == ["1", "2", "3"]
    dots = ax.collections[0]
    table = terms.set_index(["module", "term"])
    assert len(dots.get_offsets()) == terms["term"].isin(names).sum()
    for (x, y), shade, area, edge in zip(
        dots.get_offsets().tolist(), dots.get_array(), dots.get_sizes(), dots.get_edgecolors(), strict=True
    ):
        row = table.loc[int(columns[int(x)]), names[int(y)]]
        assert shade == pytest.approx(-np.log10(row["q_value"]), abs=1e-9)
        assert area == pytest.approx(15 + 145 * row["n_overlap"] / terms["n_overlap"].max())
        assert same_color(edge, "black") == (row["q_value"] <= 0.05)
    assert dots.get_clim()[0] == 0


def test_terms_are_the_modules_best_in_turn_and_read_from_the_top(terms):
    ax = pl.enrichment(terms, n_terms=3)
    best = terms.sort_values("q_value").drop_duplicates("module").sort_values("module")["term"].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == best
    assert sorted(best) == ["planted 0", "planted 1", "planted 2"]
    low, high = ax.get_ylim()
    assert low > high


def test_insignificant_terms_are_drawn_only_if_there_are_no_significant_ones(terms):
    names = [label.get_text() for label in pl.enrichment(terms, n_terms=20).get_yticklabels()]
    significant = set(terms.loc[terms["q_value"] <= 0.05, "term"])
    assert set(names) == significant
    assert len(significant) < terms["term"].nunique()
    rest = terms[~terms["term"].isin(significant)]
    ax = pl.enrichment(rest, n_terms=4)
    assert len(ax.get_yticklabels()) == 4
    assert ax.get_title(loc="left") == "no term is significant at 0.05"


def test_sides_have_separate_columns_and_zero_is_not_infinite(terms):
    table = pd.concat([terms.assign(side="down"), terms.assign(side="up")], ignore_index=True)
    table.loc[0, "q_value"] = 0.0
    ax = pl.enrichment(table)
    minus = "\N{MINUS SIGN}"
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"{k} {s}" for k in (1, 2, 3) for s in ("+", minus)]
    assert np.isfinite(ax.collections[0].get_array()).all()


def test_empty_and_wrong_tables(terms):
    ax = pl.enrichment(terms[:0])
    assert [text.get_text() for text in ax.texts] == ["no gene set shares a gene with a module"]
    with pytest.raises(netbic.InputError, match=r"no column 'n_overlap': give what enrichment\.gene_sets returns"):
        pl.enrichment(terms.drop(columns="n_overlap"))


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_stability_sorts_frequencies_and_counts_the_stable(stable, axis):
    ax = pl.stability(stable, 2, axis=axis)
    part = getattr(stable, axis)
    frequency = part.frequency["module_2"].to_numpy()
    path = next(line for line in ax.lines if line.get_label() == "_path")
    np.testing.assert_array_equal(path.get_ydata(), np.sort(frequency[frequency > 0])[::-1])
    threshold = next(line for line in ax.lines if line.get_label() == "_threshold")
    assert set(threshold.get_ydata()) == {0.6}
    n_stable = int((np.asarray(path.get_ydata()) >= 0.6 - 1e-9).sum())
    assert n_stable == part.members[1].sum() > 0
    noun = {"columns": "genes", "rows": "samples"}[axis]
    assert ax.get_title(loc="left").startswith(f"Module 2: {n_stable} stable {noun} (at most ")


def test_stability_separates_members_from_others(stable):
    inside, outside = pl.stability(stable, 1).collections
    frequency, member = stable.columns.frequency["module_1"].to_numpy(), stable.reference.columns_[0]
    for dots, mask in ((inside, member), (outside, ~member)):
        heights = np.asarray(dots.get_offsets())[:, 1]
        np.testing.assert_array_equal(np.sort(heights), np.sort(frequency[mask & (frequency > 0)]))
    assert not same_color(inside.get_facecolor()[0], "white")
    assert same_color(outside.get_facecolor()[0], "white")


def test_stability_without_a_threshold_or_an_axis(study, stable):
    hopeless = stable.at(max_false=1e-9)
    assert np.isinf(hopeless.columns.threshold[0])
    ax = pl.stability(hopeless)
    assert "no threshold achieves the requested error" in [text.get_text() for text in ax.texts]
    assert "_threshold" not in [line.get_label() for line in ax.lines]
    only = netbic.selection.stability(
        netbic.SparseGraphSVD(1, n_columns=50), study.expression, n_pairs=2, random_state=0
    )
    with pytest.raises(netbic.InputError, match="keeps all samples"):
        pl.stability(only, axis="rows")
    with pytest.raises(netbic.InputError, match="module=5: modules are numbered from 1; this model has 2"):
        pl.stability(stable, 5)
    with pytest.raises(TypeError, match=r"the result of selection\.stability"):
        pl.stability(stable.columns)


def test_a_tuning_surface_shows_every_score_at_its_position(tuned):
    ax = pl.tuning(tuned)
    cells = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert cells.shape == (2, 3 + 1 + 3)
    assert np.isnan(cells[:, 3]).all()
    table = tuned.table.set_index(["n_columns", "n_rows", "column_smoothness"])["score"]
    for column, n_columns in enumerate([20, 50, 120]):
        for row, n_rows in enumerate([30, 60]):
            assert cells[row, column] == table[n_columns, n_rows, 0.0]
            assert cells[row, column + 4] == table[n_columns, n_rows, 0.1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n_columns", "n_rows")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["20", "50", "120"] * 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["30", "60"]
    assert [text.get_text() for text in ax.texts] == ["column_smoothness=0.0", "column_smoothness=0.1"]


def test_the_choice_and_its_rivals_are_marked(tuned):
    ax = pl.tuning(tuned)
    near, chosen = ax.collections
    best = tuned.best_params_
    place = [20, 50, 120].index(best["n_columns"]) + 4 * (best["column_smoothness"] == 0.1)
    assert chosen.get_offsets().tolist() == [[place, [30, 60].index(best["n_rows"])]]
    scores = tuned.table["score"]
    within = (scores >= scores.max() - standard_error_of_difference(tuned.cv_results_)) & ~tuned.table["chosen"]
    assert len(near.get_offsets()) == within.sum()
    assert all(f"{name}={value}" in ax.get_title(loc="left") for name, value in best.items())


def test_a_single_setting_is_a_curve(study):
    found = netbic.selection.tune(
        netbic.SparseGraphSVD(1), study.expression, {"n_columns": [120, 20, 50], "n_rows": [30]}, n_folds=3,
        random_state=0,
    )  # fmt: skip
    ax = pl.tuning(found)
    table = found.table.set_index("n_columns").loc[[20, 50, 120]]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), table["score"])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["20", "50", "120"]
    bars = ax.containers[0][2][0].get_segments()
    np.testing.assert_allclose([np.ptp(bar[:, 1]) / 2 for bar in bars], table["standard_error"])
    star = ax.collections[-1].get_offsets()
    assert star.tolist() == [[[20, 50, 120].index(found.best_params_["n_columns"]), found.best_score_]]
    level = next(line for line in ax.lines if line.get_label().startswith("_one standard"))
    assert set(level.get_ydata()) == {table["score"].max() - standard_error_of_difference(found.cv_results_)}


def test_two_settings_that_are_not_numbers(study):
    grid = {"signs": ["absolute", "signed"], "n_columns": [50, None]}
    found = netbic.selection.tune(
        netbic.SparseGraphSVD(1, n_rows=30), study.expression, grid, n_folds=3, random_state=0
    )
    ax = pl.tuning(found)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "None"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["absolute", "signed"]
    assert not np.ma.is_masked(ax.images[0].get_array())
    with pytest.raises(TypeError, match=r"the result of selection\.tune"):
        pl.tuning(found.table)
