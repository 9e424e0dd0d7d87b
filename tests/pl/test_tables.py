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
    sides = pd.concat([terms.assign(side="down"), terms.assign(side="up")], ignore_index=True)
    sides.loc[0, "q_value"] = 0.0
    ax, minus = pl.enrichment(sides), "\N{MINUS SIGN}"
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"{k} {s}" for k in (1, 2, 3) for s in ("+", minus)]
    assert np.isfinite(ax.collections[0].get_array()).all()


def test_terms_are_the_modules_best_in_turn_and_insignificant_ones_only_if_all_are(terms):
    ax = pl.enrichment(terms, n_terms=3)
    best = terms.sort_values("q_value").drop_duplicates("module").sort_values("module")["term"].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == best
    assert sorted(best) == ["planted 0", "planted 1", "planted 2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # read from the top
    significant = set(terms.loc[terms["q_value"] <= 0.05, "term"])
    assert {label.get_text() for label in pl.enrichment(terms, n_terms=20).get_yticklabels()} == significant
    ax = pl.enrichment(terms[~terms["term"].isin(significant)], n_terms=4)
    assert len(ax.get_yticklabels()) == 4
    assert ax.get_title(loc="left") == "no term is significant at 0.05"
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
    noun = {"columns": "features", "rows": "samples"}[axis]
    assert ax.get_title(loc="left").startswith(f"Module 2: {n_stable} stable {noun} (at most ")
    member = getattr(stable.reference, f"{axis}_")[1]
    inside, outside = ax.collections
    for dots, mask in ((inside, member), (outside, ~member)):
        heights = np.asarray(dots.get_offsets())[:, 1]
        np.testing.assert_array_equal(np.sort(heights), np.sort(frequency[mask & (frequency > 0)]))
        assert same_color(dots.get_facecolor()[0], "white") == (dots is outside)


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


def test_modules_found_again_against_their_number(study, model):
    found = netbic.SparseGraphSVD().fit(study.expression)
    ax = pl.n_modules(found)
    curve = next(line for line in ax.lines if line.get_label() == "first split of the samples")
    np.testing.assert_array_equal(np.transpose(curve.get_data()), found.count_.curve)
    chosen = next(line for line in ax.lines if line.get_label().startswith("their average"))
    assert set(chosen.get_ydata()) == {found.n_components_}
    splits = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_array_equal(splits[:, 0], found.count_.searched)
    assert round(splits[:, 1].mean()) == found.n_components_
    with pytest.raises(ValueError, match="use n_components='auto'"):
        pl.n_modules(model)


def test_modules_that_stand_out_against_random_signs_are_filled(study):
    found = netbic.selection.n_modules(netbic.SparseGraphSVD(n_columns=50), study.expression, most=4, random_state=0)
    ax = pl.n_modules(found)
    expected, strengths = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(expected, found.table["expected"])
    np.testing.assert_array_equal(strengths, found.table["statistic"])
    filled = [dots for dots in ax.collections if dots.get_label() == "stands out"]
    assert sum(len(dots.get_offsets()) for dots in filled) == found.n


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
    near, chosen = ax.collections
    best, scores = tuned.best_params_, tuned.table["score"]
    place = [20, 50, 120].index(best["n_columns"]) + 4 * (best["column_smoothness"] == 0.1)
    assert chosen.get_offsets().tolist() == [[place, [30, 60].index(best["n_rows"])]]
    within = (scores >= scores.max() - standard_error_of_difference(tuned.cv_results_)) & ~tuned.table["chosen"]
    assert len(near.get_offsets()) == within.sum()
    assert all(f"{name}={value}" in ax.get_title(loc="left") for name, value in best.items())


def test_a_single_setting_is_a_curve(study):
    found = netbic.selection.tune(
        netbic.SparseGraphSVD(1), study.expression, {"n_columns": [120, None, 50], "n_rows": [30]}, n_folds=3,
        random_state=0,
    )  # fmt: skip
    ax = pl.tuning(found)
    table = found.table.set_index("n_columns").iloc[[2, 0, 1]]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), table["score"])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "120", "None"]  # numbers come first
    bars = ax.containers[0][2][0].get_segments()
    np.testing.assert_allclose([np.ptp(bar[:, 1]) / 2 for bar in bars], table["standard_error"])
    star = ax.collections[-1].get_offsets()
    assert star.tolist() == [[[50, 120, None].index(found.best_params_["n_columns"]), found.best_score_]]
    level = next(line for line in ax.lines if line.get_label().startswith("one standard"))
    assert set(level.get_ydata()) == {table["score"].max() - standard_error_of_difference(found.cv_results_)}
    with pytest.raises(TypeError, match=r"the result of selection\.tune"):
        pl.tuning(found.table)
