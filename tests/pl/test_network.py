"""Layout, colours, sizes and labels of the subnetwork."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

import netbic
from netbic import pl
from netbic.errors import InputError
from netbic.pl.network import layout


def parts(ax):
    nodes = next(part for part in ax.collections if isinstance(part, PathCollection))
    lines = next(part for part in ax.collections if isinstance(part, LineCollection))
    return nodes, lines


def written(ax):
    return [text for text in ax.texts if "without an edge" not in text.get_text()]


def heavy_first(model, module):
    members = np.flatnonzero(model.components_[module])
    return members[np.argsort(-np.abs(model.components_[module, members]), kind="stable")]


def test_colours_are_signed_weights_and_sizes_magnitudes(model):
    nodes, _ = parts(pl.network(model, 2))
    weights = model.components_[1, heavy_first(model, 1)]
    np.testing.assert_array_equal(nodes.get_array(), weights)
    assert nodes.get_clim() == (-np.abs(weights).max(), np.abs(weights).max())
    assert (np.diff(nodes.get_sizes()) <= 0).all()
    np.testing.assert_allclose(np.corrcoef(nodes.get_sizes(), np.abs(weights))[0, 1], 1)
    colours = nodes.to_rgba(weights)
    assert (colours[weights > 0.1, 0] > colours[weights > 0.1, 2]).all()  # red
    assert (colours[weights < -0.1, 0] < colours[weights < -0.1, 2]).all()  # blue


def test_lines_are_the_edges_between_members(study, model):
    ax = pl.network(model, 1)
    nodes, lines = parts(ax)
    members = heavy_first(model, 0)
    inside = study.network.align(study.expression.columns).weights[members][:, members].toarray()
    places = np.asarray(nodes.get_offsets())
    ends = {tuple(place): k for k, place in enumerate(places.tolist())}
    drawn = {tuple(sorted(ends[tuple(end)] for end in line.tolist())) for line in lines.get_segments()}
    assert drawn == set(map(tuple, np.argwhere(np.triu(inside)).tolist()))
    assert ax.get_title(loc="left") == f"Module 1: 50 features, {len(drawn)} edges"
    again, other = (np.asarray(parts(pl.network(model, seed=seed))[0].get_offsets()) for seed in (0, 2))
    np.testing.assert_array_equal(again, places)  # the seed decides the layout
    assert np.abs(other - places).max() > 1e-3
    given = {"column_graph": study.network, "column_penalty": netbic.Dense(), "graph_term": "normalized"}
    dense = netbic.SparseGraphSVD(1, **given).fit(study.expression)
    ax = pl.network(dense)  # of a large module, the heaviest members
    assert ax.get_title(loc="left").startswith("Module 1: 500 of 700 features, ")
    heaviest = np.sort(np.abs(dense.components_[0]))[-500:]
    np.testing.assert_array_equal(np.sort(np.abs(parts(ax)[0].get_array())), heaviest)


def test_the_heaviest_and_the_hubs_are_named(study, model):
    ax = pl.network(model, 1, n_labels=6, ax=Figure(figsize=(30, 25)).subplots())  # room for all
    members = heavy_first(model, 0)
    degrees = (study.network.align(study.expression.columns).weights[members][:, members] != 0).sum(axis=1)
    names = study.expression.columns[members]
    hub = names[int(np.argmax(degrees))]
    labels = [text.get_text() for text in written(ax)]
    assert len(labels) == 6
    assert {*names[:3], hub} <= set(labels)
    assert not written(pl.network(model, 1, n_labels=0))
    small = pl.network(model, 2, n_labels=8, names=["a", "$b$", "c"])
    assert len(written(small)) == 8  # the next gene gets a label where one has no room
    assert small.get_title(loc="left").startswith("Module 2: $b$\n50 features, ")


@pytest.mark.parametrize("size", [(3, 3), (12, 9)])
def test_labels_cover_neither_each_other_nor_nodes(model, size):
    ax = pl.network(model, 1, n_labels=40, ax=Figure(figsize=size, layout="constrained").subplots())
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in written(ax)]
    assert len(boxes) >= 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    for x, y in ax.transData.transform(parts(ax)[0].get_offsets()):
        assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in boxes)


def test_members_without_an_edge_are_drawn_below(model):
    ax = pl.network(model, 1, graph=sp.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(700, 700)))
    assert [text.get_text() for text in ax.texts if "without" in text.get_text()] == [
        f"{50 - 2 * model.columns_[0, :2].all()} without an edge in the module"
    ]
    graph = netbic.Graph(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1), names=list("abcd")).align(list("abxydc"))
    places, isolated = layout(graph.weights), graph.degrees == 0
    assert isolated.tolist() == [False, False, True, True, False, False]
    assert places[isolated, 1].max() < places[~isolated, 1].min()
    assert np.ptp(places[isolated, 0]) <= max(np.ptp(places[~isolated, 0]), 1) + 1e-9


def test_a_graph_may_be_given(study, model):
    without = netbic.SparseGraphSVD(1, n_rows=30, n_columns=50).fit(study.expression)
    with pytest.raises(netbic.InputError, match=r"without a graph of its features: give one \(`graph`\), or the data"):
        pl.network(without)
    given = pl.network(without, graph=study.network)
    members = heavy_first(without, 0)
    inside = study.network.align(study.expression.columns).weights[members][:, members]
    assert len(parts(given)[1].get_segments()) == inside.nnz // 2
    with pytest.raises(netbic.InputError, match="module=-1: modules are numbered from 1; this model has 3"):
        pl.network(model, -1)


def test_members_are_drawn_at_given_positions(study, model):
    genes = study.expression.columns
    at = pd.DataFrame(np.random.default_rng(0).random((len(genes), 2)), genes)
    shuffled = at.sample(frac=1.0, random_state=1)
    for given in (at.to_numpy(), shuffled):  # an array in the order of the features, or names
        nodes, _ = parts(pl.network(model, 2, positions=given))
        np.testing.assert_array_equal(nodes.get_offsets(), at.to_numpy()[heavy_first(model, 1)])
    with pytest.raises(InputError, match=r"shape \(3, 2\): give a row of two coordinates for each of the"):
        pl.network(model, 2, positions=at.to_numpy()[:3])
    with pytest.raises(InputError, match="positions of 1 features are missing"):
        pl.network(model, 2, positions=at.drop(index=genes[0]))


def test_without_a_graph_the_coexpression_of_the_genes_is_drawn(study):
    X = study.expression
    model = netbic.SparseGraphSVD(1, n_rows=30, n_columns=50).fit(X)
    ax = pl.network(model, X=X)
    members = heavy_first(model, 0)
    correlations = np.corrcoef(X.to_numpy()[:, members], rowvar=False) - np.eye(50)
    best = {tuple(sorted((k, int(j)))) for k in range(50) for j in np.argsort(-np.abs(correlations[k]))[:3]}
    places = {tuple(place): k for k, place in enumerate(np.asarray(parts(ax)[0].get_offsets()).tolist())}
    lines = [part for part in ax.collections if isinstance(part, LineCollection)]
    drawn = [
        [tuple(sorted(places[tuple(end)] for end in line.tolist())) for line in own.get_segments()] for own in lines
    ]
    assert {pair for own in drawn for pair in own} == best
    assert all(correlations[pair] > 0 for pair in drawn[0])
    assert all(correlations[pair] < 0 for own in drawn[1:] for pair in own)  # dashed
    assert ax.get_title(loc="left") == (
        f"Module 1: 50 features, coexpression ({len(best)} edges to the most correlated features)"
    )


def ring(n):
    return sp.csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))


def test_rings_are_circles_that_do_not_overlap_and_tiny_graphs_have_layouts():
    places = layout(sp.block_diag([ring(12), ring(5), ring(4), ring(3)], format="csr"))
    split = np.split(places, [12, 17, 21])
    radii = np.linalg.norm(split[0] - split[0].mean(axis=0), axis=1)
    assert np.ptp(radii) < 0.01 * radii.mean()
    boxes = [(part.min(axis=0), part.max(axis=0)) for part in split]
    for i, (low, high) in enumerate(boxes):
        assert all(((high < other_low) | (other_high < low)).any() for other_low, other_high in boxes[:i])
    for n in (5, 20, 80):  # complete graphs
        places = layout(sp.csr_array(np.ones((n, n)) - np.eye(n)))
        apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 1e9 * np.eye(n)
        assert np.median(apart.min(axis=1)) > 0.5
    for n in (0, 1, 2):
        assert np.unique(layout(sp.csr_array((n, n))), axis=0).shape == (n, 2)
