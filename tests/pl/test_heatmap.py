"""Values, colours, order, names and overlaps of the heatmap."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import netbic
from netbic import pl
from netbic.pl.base import MODULES, data_of, entries
from netbic.pl.heatmap import module_order, standardised


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def image(ax):
    return np.ma.getdata(ax.images[0].get_array())


def sample_order(model, X, chosen=slice(None)):
    scores = model.scaler_.apply(np.asarray(X, dtype=float)) @ model.components_.T
    return module_order(standardised(scores.T[chosen], model.rows_[chosen]))


def test_colours_are_symmetric_and_robust(study, model):
    X = study.expression.copy()
    member = model.columns_[0].argmax(), model.rows_[0].argmax()
    X.iloc[member[1], member[0]] = 1e6  # one outlier must not make all other colours pale
    drawn = pl.heatmap(model, X).images[0]
    low, high = drawn.get_clim()
    assert low == -high
    assert high == pytest.approx(np.quantile(np.abs(image(drawn.axes)), 0.98))
    assert high < 5
    reds = drawn.cmap(drawn.norm([low, 0.0, high]))
    assert reds[0, 2] > reds[0, 0]  # blue below, white at the centre, red above
    assert reds[1, :3].min() > 0.9
    assert reds[2, 0] > reds[2, 2]


def test_values_are_those_the_model_was_fitted_to_and_the_colour_bar_names_them():
    X = np.random.default_rng(0).normal(3, 1, (20, 30))
    named = pd.DataFrame(X).add_prefix("g")
    rows, columns = np.array([3, 1, 7]), np.array([9, 2, 0, 4])
    labels = {("columns", True): "z-score", ("columns", False): "centred value", (None, False): "value"}
    for center, scale in product([None, "columns", "rows", "both", "grand"], [False, True]):
        model = netbic.SparseGraphSVD(1, n_rows=6, n_columns=8, center=center, scale=scale).fit(named)
        wider = named.assign(extra=1000.0)  # other columns change no mean
        for data in (X, sp.csr_array(X), sp.csc_matrix(X), wider):
            found = entries(model, data_of(model, data), rows, columns)
            np.testing.assert_allclose(found, model.scaler_.apply(X)[np.ix_(rows, columns)], atol=1e-9)
        if (center, scale) in labels:
            assert pl.heatmap(model, X).images[0].colorbar.ax.get_xlabel() == labels[center, scale]


def test_missing_entries_are_grey(study):
    X = study.expression.to_numpy().copy()
    X[3, 5] = np.nan
    model = netbic.SparseGraphSVD(1, missing="ignore", column_penalty=netbic.Dense()).fit(X)
    drawn = pl.heatmap(model, X).images[0]
    missing = np.argwhere(np.ma.getmaskarray(drawn.get_array()))
    assert len(missing) == 1
    r, g, b, _ = drawn.to_rgba(drawn.get_array())[tuple(missing[0])]
    assert r == g == b == pytest.approx(0.85)


def test_strips_show_all_memberships_and_so_the_overlaps(study, model):
    chosen = [2, 0]
    ax = pl.heatmap(model, study.expression, modules=[module + 1 for module in chosen])
    order, samples = module_order(model.components_[chosen]), sample_order(model, study.expression, chosen)
    shared = (order.belongs.sum(axis=0) == 2).sum()
    assert shared == (model.columns_[0] & model.columns_[2]).sum() > 0
    for strip, belongs in (
        (np.asarray(ax.images[2].get_array()).swapaxes(0, 1), order.belongs),
        (np.asarray(ax.images[1].get_array()), samples.belongs),
    ):
        for lane, module in enumerate(chosen):
            expected = np.where(belongs[lane][:, None], to_rgb(MODULES[module]), 0.95)
            np.testing.assert_allclose(strip[lane], expected)


def test_samples_are_ordered_by_their_scores_which_a_lane_shows(study):
    X = study.expression
    model = netbic.SparseGraphSVD(2, n_columns=50).fit(X)
    scores = netbic.get.scores_df(model, X).to_numpy()
    for module in (1, 2):
        ax = pl.heatmap(model, X, modules=[module])
        order = np.argsort(-scores[:, module - 1], kind="stable")
        genes = module_order(model.components_[[module - 1]]).members
        np.testing.assert_allclose(image(ax), model.scaler_.apply(X.to_numpy())[np.ix_(order, genes)].T, atol=1e-9)
        lane = ax.images[1].get_array()[0]  # no lane of genes: all are members
        drawn, clear = scores[order, module - 1], np.abs(scores[order, module - 1]) > 1
        assert np.all((lane[:, 0] > lane[:, 2])[clear] == (drawn > 0)[clear])  # red above, blue below
        assert [text.get_text() for text in ax.texts] == ["score"]
    ax = pl.heatmap(model, X)
    blocks, at = sample_order(model, X), scores / np.sqrt((scores**2).mean(axis=0))
    for k in range(2):  # each sample is where it is most extreme
        own = blocks.members[blocks.bounds[k] : blocks.bounds[k + 1]]
        assert (np.abs(at[own]).argmax(axis=1) == k).all()
        assert (np.diff(scores[own, k]) <= 0).all()
    assert {tuple(colour) for colour in np.unique(ax.images[2].get_array().reshape(-1, 3), axis=0)} == {
        (0.95, 0.95, 0.95), to_rgb(MODULES[0]), to_rgb(MODULES[1]),
    }  # fmt: skip


def test_outlines_enclose_the_members_and_strips_lie_along_the_data(study, model):
    X = study.expression
    ax = pl.heatmap(model, X)
    samples, genes = sample_order(model, X), module_order(model.components_)
    centred = (X - X.mean()).to_numpy()[np.ix_(samples.members, genes.members)]
    np.testing.assert_allclose(image(ax), centred.T, atol=1e-12)
    assert ax.get_ylabel() == f"{genes.members.size} features of 3 modules"
    assert ax.get_xlabel() == f"{samples.members.size} samples"
    shuffled = X.iloc[::-1, np.random.default_rng(0).permutation(X.shape[1])]  # matched by name
    np.testing.assert_array_equal(image(pl.heatmap(model, shuffled)), image(ax))
    data, above, beside = (drawn.get_extent() for drawn in ax.images)
    assert (above[:2], beside[2:]) == (data[:2], data[2:])
    assert max(above[2:]) < data[3]
    assert beside[1] < data[0]
    assert (ax.get_xlim(), ax.get_ylim()) == ((beside[0], data[1]), (data[2], above[3]))
    for k, box in enumerate(ax.patches):
        assert box.get_xy() == (samples.bounds[k] - 0.5, genes.bounds[k] - 0.5)
        assert (box.get_width(), box.get_height()) == (np.diff(samples.bounds)[k], np.diff(genes.bounds)[k])
    numbers = [text for text in ax.texts if text.get_weight() == "bold"]
    assert [text.get_text() for text in numbers] == ["1", "2", "3"]
    assert [text.get_bbox_patch().get_facecolor()[:3] for text in numbers] == [to_rgb(MODULES[k]) for k in range(3)]
    ax = pl.heatmap(model, X, modules=[2], n_others=7)  # others for contrast
    assert image(ax).shape == (57, 37)
    assert (np.asarray(ax.images[2].get_array())[-7:, 0] == 0.95).all()
    assert ax.get_ylabel() == "50 features, and 7 others"


def test_each_of_many_lanes_has_its_number_in_the_colour_of_the_legend():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 300)))
    model = netbic.SparseGraphSVD(14, n_columns=8, random_state=0).fit(X)
    for chosen in (range(1, 15), (1, 2, 8, 12, 14)):
        ax = pl.heatmap(model, X, modules=list(chosen), names=[f"name {k}" for k in range(1, 15)])
        ax.figure.draw_without_rendering()
        numbers = [text for text in ax.texts if text.get_weight() != "bold"]
        assert [text.get_text() for text in numbers] == list(map(str, chosen))
        heights = [text.get_window_extent().get_points()[:, 1].mean() for text in numbers]
        assert np.diff(heights).max() < -4
        handles = [handle for handle in ax.get_legend().legend_handles if handle.get_alpha() != 0]
        fills = [text.get_bbox_patch().get_facecolor() for text in numbers]
        assert fills == [handle.get_facecolor() for handle in handles]


def test_lines_lead_from_low_blocks_to_their_numbers():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 400)))
    model = netbic.SparseGraphSVD(9, n_columns=100, random_state=0).fit(X)
    for weights in model.components_[2:]:  # leaves five genes
        weights[np.argsort(-np.abs(weights))[5:]] = 0
    ax = pl.heatmap(model, X)
    ax.figure.draw_without_rendering()
    bounds = module_order(model.components_).bounds
    numbers = [text for text in ax.texts if text.get_weight() == "bold"]
    for k, (line, text) in enumerate(zip(ax.lines, numbers, strict=True)):
        assert line.get_ydata()[0] == bounds[k : k + 2].mean() - 0.5
        box = text.get_window_extent()
        assert box.y0 < ax.transData.transform((0, line.get_ydata()[1]))[1] < box.y1
    assert not pl.heatmap(model, X, modules=[1, 2]).lines  # at their blocks


@pytest.mark.parametrize("size", [(3, 2.5), (16, 6)])
def test_names_never_cover_each_other_and_the_heaviest_come_first(study, model, size):
    ax = pl.heatmap(model, study.expression, ax=Figure(figsize=size, layout="constrained").subplots())
    ax.figure.draw_without_rendering()
    order = module_order(model.components_)
    assert 1 <= len(ax.get_yticks()) <= order.members.size
    assert int(order.weight.argmax()) in ax.get_yticks()
    assert len(ax.get_xticks()) == (0 if size[0] < 5 else image(ax).shape[1])  # names of samples: all or none
    for axis in (ax.xaxis, ax.yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
        assert not any(a.overlaps(b) for a, b in pairs)
    names = study.expression.columns[order.members]
    assert labels(ax.yaxis) == names[ax.get_yticks().astype(int)].tolist()


def test_a_sparse_matrix_is_not_made_dense_and_all_names_are_written_where_they_fit():
    """As a dense matrix it would take 16 GB."""
    block = sp.coo_array(np.random.default_rng(0).normal(size=(30, 20)))
    X = sp.csr_array((block.data, (block.row, block.col)), shape=(20_000, 100_000))
    model = netbic.SparseGraphSVD(1, n_rows=10, n_columns=10, center=None).fit(X)
    ax = pl.heatmap(model, X)
    assert image(ax).shape == (10, 10)
    assert labels(ax.yaxis) == [str(k) for k in module_order(model.components_).members]
    scores = np.where(model.rows_[0], X @ model.components_[0], 0)
    assert labels(ax.xaxis) == [str(k) for k in np.argsort(-scores, kind="stable") if model.rows_[0, k]]


def test_anndata_with_layer_and_mask(study):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(study.expression * 0)
    adata.layers["log"] = sp.csr_array(study.expression.to_numpy())
    mask = np.arange(700) % 2 == 0
    netbic.tl.modules(adata, study.network, 2, n_rows=30, n_columns=50, layer="log", mask_var=mask)
    ax = pl.heatmap(adata)
    model = netbic.tl.from_anndata(adata)
    again = pl.heatmap(model, study.expression.loc[:, mask])
    np.testing.assert_array_equal(image(ax), image(again))
    np.testing.assert_array_equal(image(ax), image(pl.heatmap(model, adata)))
    np.testing.assert_array_equal(image(ax), image(pl.heatmap(model, study.expression)))  # more genes than were used
    assert image(ax).any()


def test_bad_input_is_named(study, model):
    X = study.expression
    lost = X.columns[module_order(model.components_).members[0]]
    twice = X.set_axis([*X.columns[:-1], X.columns[0]], axis=1)
    for given_model, data, options, message in (
        (model, None, {}, "X is missing"),
        (model, X.to_numpy()[:, :600], {}, "X has 600 columns but the model was fitted to 700"),
        (model, X.drop(columns=lost), {}, f"no feature '{lost}'"),
        (model, twice, {}, "occur twice in X"),
        (model, X, {"modules": []}, "no modules to draw"),
        (pd.DataFrame(), X, {}, "a fitted SparseGraphSVD"),
        (model, X, {"ax": Figure().subplots(1, 2)}, "expected matplotlib axes"),
    ):
        with pytest.raises((netbic.InputError, TypeError), match=message):
            pl.heatmap(given_model, data, **options)


@given(arrays(float, (3, 12), elements=st.sampled_from([-0.7, -0.5, -0.1, 0.0, 0.0, 0.2, 0.3, 0.9])))
@settings(max_examples=50)
def test_every_member_is_drawn_once_in_its_heaviest_module(weights):
    order = module_order(weights)
    assert sorted(order.members) == np.flatnonzero(weights.any(axis=0)).tolist()
    for k in range(3):
        own = order.members[order.bounds[k] : order.bounds[k + 1]]
        assert (np.abs(weights[k, own]) == np.abs(weights[:, own]).max(axis=0)).all()
        assert (np.diff(weights[k, own]) <= 0).all()
    more = module_order(weights, n_others=2)
    np.testing.assert_array_equal(more.belongs, weights[:, more.members] != 0)
    np.testing.assert_array_equal(more.weight, np.abs(weights).max(axis=0)[more.members])
    assert not weights[:, more.members[more.bounds[-1] :]].any()
    assert more.members.size == min(order.members.size + 2, 12)


def test_data_that_are_no_matrix_are_refused(study, model):
    column = study.expression.iloc[:, 0]
    for X, number in ((column, 1), (column.to_numpy(), 1), (study.expression.to_numpy()[None], 3)):
        with pytest.raises(netbic.InputError, match=f"has {number} dimension"):
            pl.heatmap(model, X)
