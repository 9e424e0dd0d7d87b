"""Histograms of scores by group, scores in two tables, and loadings."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import same_color

import netbic
from netbic import pl
from netbic.pl.base import GREY, NEGATIVE, POSITIVE
from support.pair_folders import model_of


def counts(ax):
    """Numbers of samples by colour, from the heights of the bars."""
    totals = {}
    for container in ax.containers:
        colour = container.patches[0].get_facecolor()
        name = next(name for name in (NEGATIVE, GREY, POSITIVE) if same_color(colour, name))
        totals[name] = sum(bar.get_height() for bar in container.patches)
    return totals


def test_bars_count_the_samples_of_each_group(clear, clear_model):
    for module, kind in enumerate(("groups", "gradient"), start=1):
        ax = pl.scores(clear_model, clear.expression, module)
        table = netbic.selection.sample_groups(clear_model, clear.expression)
        own = table.loc[table["module"] == module, "group"].value_counts()
        shown = counts(ax)
        for group, colour in (("up", POSITIVE), ("down", NEGATIVE), ("", GREY)):
            assert shown.get(colour, 0) == own.get(group, 0)
        assert ax.get_title(loc="left").startswith(f"Module {module}: ")
        assert ("gradient" in ax.get_title(loc="left")) == (kind == "gradient")
        assert (ax.get_legend() is None) == (kind == "gradient")


def test_the_same_for_arrays_sparse_matrices_other_orders_and_anndata(clear, clear_model):
    X = clear.expression
    shuffled = X.iloc[:, np.random.default_rng(0).permutation(X.shape[1])]
    data = anndata.AnnData(X.to_numpy())
    data.obs_names, data.var_names = X.index, X.columns
    netbic.tl.modules(data, n_components=2, n_columns=60)
    expected = counts(pl.scores(clear_model, X))
    for given in ((clear_model, X.to_numpy()), (clear_model, sp.csr_array(X)), (clear_model, shuffled), (data,)):
        assert counts(pl.scores(*given)) == expected
    few = counts(pl.scores(clear_model, X.iloc[:50]))  # other samples of the same genes
    assert sum(few.values()) == 50


def test_bad_input_is_named(clear, clear_model):
    with pytest.raises(netbic.InputError, match="module=3: modules are numbered from 1; this model has 2"):
        pl.scores(clear_model, clear.expression, 3)
    with pytest.raises(netbic.InputError, match="X is missing"):
        pl.scores(clear_model)
    for plot in (pl.scores, pl.heatmap):  # a module in place of the data
        with pytest.raises(TypeError, match="X=1: the second argument is the data; for one module use module=1"):
            plot(netbic.tl.to_anndata(clear_model, clear.expression), 1)
    for plot in (pl.loadings, pl.network):  # data in place of the module
        with pytest.raises(
            netbic.InputError, match=r"^module=DataFrame: modules are numbered from 1; this model has 2$"
        ):
            plot(clear_model, clear.expression)
    with pytest.raises(ValueError, match="n_bins=0: at least 1"):
        pl.scores(clear_model, clear.expression, n_bins=0)


def test_points_are_the_scores_and_the_title_has_the_correlation():
    model = model_of()[0]
    ax = pl.pairs(model, 2)
    drawn = ax.collections[0].get_offsets()
    np.testing.assert_array_equal(drawn, np.column_stack([model.x_scores_[:, 1], model.y_scores_[:, 1]]))
    assert ax.get_title(loc="left") == f"Pair 2: correlation {model.correlations_[1]:.2f}"
    assert ax.get_legend() is None
    labels = np.array(["wild type"] * 15 + ["PPAR"] * 20 + [None] * 5, dtype=object)
    labels = pd.Series(labels, model.names_["samples"], name="genotype")
    ax = pl.pairs(model, annotation=labels[::-1])  # matched by name
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["genotype", "PPAR", "wild type", "missing"]
    inks = [tuple(colour) for colour in ax.collections[0].get_facecolor()]
    assert len(set(inks[:15])) == len(set(inks[15:35])) == len(set(inks[35:])) == 1
    assert len(set(inks)) == 3
    with pytest.raises(ValueError, match="pair=3: pairs are numbered from 1; this model has 2"):
        pl.pairs(model, 3)
    with pytest.raises(ValueError, match="annotation has 2 columns"):
        pl.pairs(model, annotation=labels.to_frame().assign(age=1))
    with pytest.raises(TypeError, match="a SparseGraphPLS or SparseGraphCCA is needed"):
        pl.pairs(netbic.SparseGraphSVD())


def test_the_weights_of_a_pair_are_those_of_both_tables():
    model = model_of()[0]
    ax = pl.pair_loadings(model, 1, n=6)
    dots = np.asarray(ax.collections[1].get_offsets())
    expected = [np.sort(np.abs(weights[:, 0]))[::-1][:6] for weights in (model.x_weights_, model.y_weights_)]
    np.testing.assert_allclose(np.abs(dots[:, 0]), np.concatenate([expected[0], expected[1][:4]]))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == model.names_["x"][np.argmax(np.abs(model.x_weights_[:, 0]))]
    assert names[6] == model.names_["y"][np.argmax(np.abs(model.y_weights_[:, 0]))]
    assert ax.get_title(loc="left") == "Pair 1: 6 of 20 features of X,\n4 features of Y"


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_loadings_are_the_heaviest_members_by_name(study, model, axis):
    ax = pl.loadings(model, 2, axis=axis, n=8)
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
    size, noun = (50, "features") if axis == "columns" else (30, "samples")
    assert ax.get_title(loc="left") == f"Module 2: 8 of {size} {noun}"
    assert pl.loadings(model, 2, axis=axis, n=50).get_title(loc="left") == f"Module 2: {size} {noun}"
    with pytest.raises(netbic.InputError, match="axis='genes' is not known: choose one of 'columns'"):
        pl.loadings(model, axis="genes")
    with pytest.raises(ValueError, match="n=0: at least 1"):
        pl.loadings(model, n=0)
