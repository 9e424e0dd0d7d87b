"""Signs of edges are kept when a model is stored, exported and drawn."""

import json

import networkx
import numpy as np
import pytest

import netbic
from netbic import Graph, SparseGraphSVD
from netbic.report.pictures import subnetwork


@pytest.fixture(scope="module")
def study():
    return netbic.simulate.cohort(60, 150, n_modules=1, module_genes=40, strength=2, random_state=0)


@pytest.fixture(scope="module")
def model(study):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 150)
    weights = study.network.weights.toarray() * np.outer(signs, signs)
    graph = Graph(weights, study.expression.columns, signed=True)
    return SparseGraphSVD(1, n_columns=40, column_graph=graph, random_state=0).fit(study.expression)


def test_folders_and_exports_have_weights_and_signs(model, study, tmp_path):
    netbic.save(model, tmp_path / "model")
    for stored in (
        netbic.load(tmp_path / "model"),
        netbic.tl.from_anndata(netbic.tl.to_anndata(model, study.expression)),
    ):
        graph = stored.graphs_["columns"]
        assert (graph.weights != model.graphs_["columns"].weights).nnz == 0
        assert graph.n_inhibiting == model.graphs_["columns"].n_inhibiting > 0
    folder = netbic.exports.write_cytoscape(model, tmp_path / "networks")
    inside = model.graphs_["columns"].subgraph(model.columns_[0])
    expected = {
        frozenset((inside.names[a], inside.names[b])): (abs(w), np.sign(w))
        for a, b, w in zip(*inside.edges(), strict=True)
    }
    read = networkx.read_graphml(folder / "module_1.graphml")
    assert {frozenset((a, b)): (e["weight"], e["sign"]) for a, b, e in read.edges(data=True)} == expected
    drawn = [edge["data"] for edge in json.loads((folder / "module_1.cyjs").read_text())["elements"]["edges"]]
    assert {frozenset((e["source"], e["target"])): (e["weight"], e["sign"]) for e in drawn} == expected
    again = netbic.io.read_network(folder / "module_1.graphml")
    assert again.graph.n_inhibiting == inside.n_inhibiting > 0
    assert again.summary.signs_from == "column sign"


def test_edges_that_inhibit_are_drawn_dashed(model):
    pytest.importorskip("matplotlib")
    members = np.flatnonzero(model.columns_[0])
    inside = model.graphs_["columns"].subgraph(members)
    solid, dashed = netbic.pl.network(model).collections[:2]
    assert len(dashed.get_segments()) == inside.n_inhibiting
    assert len(solid.get_segments()) == inside.n_edges - inside.n_inhibiting
    assert dashed.get_linestyle() != solid.get_linestyle()
    drawn = subnetwork(model.graphs_["columns"], members, model.components_[0, members], inside.names)
    assert drawn.path(inhibit=True).count("M") == inside.n_inhibiting
    assert drawn.path().count("M") == inside.n_edges - inside.n_inhibiting
