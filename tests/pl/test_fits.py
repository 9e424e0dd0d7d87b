"""Loadings, convergence and singular values."""

import warnings

import numpy as np
import pytest
from matplotlib.colors import same_color

import netbic
from netbic import pl
from netbic.pl.canvas import ALARM, NEGATIVE, PALETTE, POSITIVE
from netbic.selection import ModuleCount


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_loadings_are_the_heaviest_members_by_name(study, model, axis):
    ax = pl.loadings(model, 1, axis=axis, n=8)
    weights = model.components_[1] if axis == "columns" else model.left_vectors_[:, 1]
    top = np.argsort(-np.abs(weights), kind="stable")[:8]
    names = study.expression.columns if axis == "columns" else study.expression.index
    assert [label.get_text() for label in ax.get_yticklabels()] == names[top].tolist()
    dots = np.asarray(ax.collections[1].get_offsets())
    np.testing.assert_allclose(dots, np.column_stack([weights[top], np.arange(8)]))
    lines = ax.collections[0].get_segments()
    np.testing.assert_allclose([line[:, 0] for line in lines], np.column_stack([np.zeros(8), weights[top]]))
    expected = [POSITIVE if weight > 0 else NEGATIVE for weight in weights[top]]
    assert all(same_color(*pair) for pair in zip(ax.collections[1].get_facecolors(), expected, strict=True))
    low, high = ax.get_ylim()
    assert low > 7 > 0 > high  # heaviest on top
    size, noun = (50, "genes") if axis == "columns" else (30, "samples")
    assert ax.get_title(loc="left") == f"Module 2: 8 of {size} {noun}"


def test_loadings_of_a_small_module_and_of_unnamed_data():
    toy = netbic.simulate.paper(0.02, random_state=0)
    model = netbic.SparseGraphSVD(1, n_rows=5, n_columns=3).fit(toy.X)
    ax = pl.loadings(model)
    top = np.argsort(-np.abs(model.components_[0]), kind="stable")[:3]
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(k) for k in top]
    assert ax.get_title(loc="left") == "Module 1: 3 genes"
    with pytest.raises(netbic.InputError, match="unknown axis='genes': choose 'columns'"):
        pl.loadings(model, axis="genes")
    with pytest.raises(ValueError, match="n=0: at least 1"):
        pl.loadings(model, n=0)


def test_convergence_draws_the_gap_to_the_last_objective(model):
    ax = pl.convergence(model)
    for k, line in enumerate(ax.lines[:3]):
        values = model.objectives_[k]
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, values.size + 1))
        gaps = np.maximum(np.abs(values - values[-1]) / values[-1], 1e-7)
        np.testing.assert_allclose(line.get_ydata(), gaps)
        assert (np.diff(line.get_ydata()) <= 1e-12).all()  # the solver never lowers F
    assert ax.get_yscale() == "log"
    assert ax.get_title(loc="left") == "3 of 3 modules converged"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["module 1", "module 2", "module 3"]
    assert (np.asarray(ax.lines[3].get_ydata()) == model.tol).all()


def test_modules_that_did_not_converge_are_named(study):
    model = netbic.SparseGraphSVD(9, n_rows=30, n_columns=50, column_graph=study.network)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=12).fit(study.expression)
    failed = np.flatnonzero(~model.converged_)
    assert 0 < failed.size < 9
    ax = pl.convergence(model)
    assert ax.get_title(loc="left") == f"{9 - failed.size} of 9 modules converged"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"module {k + 1}: not converged" for k in failed]
    for k in range(9):
        line = ax.lines[k]
        assert (line.get_marker() == "x") == same_color(line.get_color(), ALARM) == (k in failed)
        assert len(line.get_xdata()) == len(model.objectives_[k]) - (k in failed)
    few = pl.convergence(model, modules=[int(failed[0])])
    assert few.get_title(loc="left") == "0 of 1 modules converged"


def test_singular_values_with_the_null_and_the_stop(model, count):
    ax = pl.singular_values(model, count)
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["modules of the model"].get_ydata(), model.singular_values_)
    np.testing.assert_array_equal(lines["random signs (mean)"].get_ydata(), count.table["expected"])
    np.testing.assert_array_equal(lines["_tested"].get_ydata(), count.table["statistic"])
    assert count.n == 3
    assert set(lines["_stop"].get_xdata()) == {3.5}
    stands, falls = ax.collections
    np.testing.assert_array_equal(np.asarray(stands.get_offsets())[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(np.asarray(falls.get_offsets())[:, 0], [4])
    assert same_color(stands.get_facecolor()[0], PALETTE[5])
    assert same_color(falls.get_facecolor()[0], "white")
    p = count.table["p_value"]
    assert stands.get_label() == f"tested, stands out (p <= {p[:3].max():.2g})"
    assert falls.get_label() == f"tested, does not (p = {p[3]:.2g})"
    assert ax.get_title(loc="left") == count.verdict
    assert ax.get_ylim()[0] == 0


def test_singular_values_that_are_all_significant(model, count):
    all_of_them = ModuleCount(2, count.table[:2], True)
    ax = pl.singular_values(model, all_of_them)
    assert "_stop" not in [line.get_label() for line in ax.lines]
    assert len(ax.collections) == 1
    assert pl.singular_values(model).get_title(loc="left") == "3 modules"
    with pytest.raises(TypeError, match=r"the result of selection\.n_modules"):
        pl.singular_values(model, 3)


def test_a_single_iteration_shows_no_gap_to_the_last_objective(study):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = netbic.SparseGraphSVD(1, n_rows=30, n_columns=50, max_iter=1).fit(study.expression)
    assert pl.convergence(model).lines[0].get_ydata().tolist() == [1.0]
