"""Files for other programs are read back as what the model holds, also with hostile names."""

import json
import os
import warnings
from xml.etree import ElementTree

import igraph
import networkx
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import exports
from netbic.errors import InputError
from netbic.exports import Results
from netbic.files import FolderInUse, WriteError
from support.output_folders import FullDisk, contents


def by_side(model, module):
    genes = pd.Series(model.components_[module], index=[str(name) for name in model.names_["columns"]])
    genes = genes[genes != 0].sort_values(key=lambda weights: -weights.abs(), kind="stable")
    return {"up": genes[genes > 0], "down": genes[genes < 0]}


def test_gene_sets_are_the_sides_of_the_modules(results, tmp_path):
    sets = netbic.io.read_gene_sets(exports.write_gmt(results, tmp_path / "sets.gmt"))
    assert list(sets) == ["module_1_up", "module_1_down", "module_2_up", "module_2_down"]
    for module in range(2):
        for side, genes in by_side(results.model, module).items():
            assert sets[f"module_{module + 1}_{side}"] == tuple(genes.index)
            description = sets.names[f"module_{module + 1}_{side}"]
            name, verdict = results.names[module], results.tables["verdicts"]["verdict"][module]
            assert description == f"{name} (Module {module + 1}, genes {side}, {verdict})"
            assert name.startswith("planted")


def test_lists_hold_genes_and_grouped_samples(results, cohort, tmp_path):
    folder = exports.write_lists(results, tmp_path / "lists")
    genes = by_side(results.model, 0)
    assert (folder / "module_1_genes_up.txt").read_text().split() == list(genes["up"].index)
    assert (folder / "module_1_genes_down.txt").read_text().split() == list(genes["down"].index)
    groups = netbic.selection.sample_groups(results.model, cohort.expression)
    for module in range(2):
        for side in ("up", "down"):
            own = groups[(groups["module"] == module + 1) & (groups["group"] == side)]
            file = folder / f"module_{module + 1}_samples_{side}.txt"
            assert file.is_file() == (len(own) > 0)
            if len(own):
                ordered = own.sort_values("score", key=lambda score: -score.abs())["sample"].tolist()
                assert file.read_text().split() == ordered
    text = exports.write_lists(results, tmp_path / "lists.txt").read_text()
    blocks = dict(block.split("\n", 1) for block in text.strip().split("\n\n"))
    assert len(blocks) == len(list(folder.glob("*.txt")))
    first = next(iter(blocks))
    assert first == f"# Module 1: {len(genes['up'])} genes up ({results.names[0]})"
    assert blocks[first].split() == list(genes["up"].index)


def test_a_model_without_a_network_and_without_groups(cohort, tmp_path):
    dense = Results.of(netbic.SparseGraphSVD(1, n_columns=60).fit(cohort.expression))
    with pytest.raises(InputError, match="without a network"):
        exports.write_cytoscape(dense, tmp_path / "networks")
    folder = exports.write_cytoscape(dense, tmp_path / "networks", graph=cohort.network)
    assert networkx.read_graphml(folder / "module_1.graphml").number_of_edges() > 0
    assert dense.samples_by_side(1) == {"up": [], "down": []}
    selected = netbic.SparseGraphSVD(1, n_rows=30, n_columns=60).fit(cohort.expression)
    sides = Results.of(selected).samples_by_side(1)
    weights = pd.Series(selected.left_vectors_[:, 0], index=cohort.expression.index)
    assert sorted(sides["up"]) == sorted(weights.index[weights > 0])
    assert sum(map(len, sides.values())) == 30


def test_networks_are_those_of_the_modules(results, cohort, tmp_path):
    folder = exports.write_cytoscape(results, tmp_path / "networks")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("export.json", "module_1.cyjs", "module_1.graphml", "module_2.cyjs", "module_2.graphml")
    ]
    for module in range(2):
        weights = pd.concat(by_side(results.model, module).values())
        inside = cohort.network.align(list(weights.index))
        tails, heads, values = inside.edges()
        edges = {
            frozenset((weights.index[a], weights.index[b])): w for a, b, w in zip(tails, heads, values, strict=True)
        }
        read = networkx.read_graphml(folder / f"module_{module + 1}.graphml")
        assert not read.is_directed()
        assert {frozenset(pair): weight for *pair, weight in read.edges.data("weight")} == edges
        assert {name: read.nodes[name]["weight"] for name in read} == weights.to_dict()
        assert all(read.nodes[name]["side"] == ("up" if weights[name] > 0 else "down") for name in read)
        assert max(own["score"] for _, own in read.nodes.data()) == 1
        assert [own["degree"] for _, own in read.nodes.data()] == [degree for _, degree in read.degree()]
        other = igraph.Graph.Read_GraphML(str(folder / f"module_{module + 1}.graphml"))
        assert (other.vcount(), other.ecount()) == (len(weights), len(edges))
        assert dict(zip(other.vs["name"], other.vs["weight"], strict=True)) == weights.to_dict()
        content = json.loads((folder / f"module_{module + 1}.cyjs").read_text())
        nodes = {node["data"]["id"]: node["data"] for node in content["elements"]["nodes"]}
        assert {own["name"]: own["weight"] for own in nodes.values()} == weights.to_dict()
        drawn = (edge["data"] for edge in content["elements"]["edges"])
        assert {frozenset((edge["source"], edge["target"])): edge["weight"] for edge in drawn} == edges
        assert content["data"]["name"] == f"Module {module + 1}: {results.names[module]}" == read.graph["name"]


def test_hostile_names_stay_single_fields(hostile, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        genes = hostile.gene_names
    assert [str(one.message).split(":")[0] for one in caught] == ["5 names of genes cannot be written unchanged"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = exports.write_cytoscape(hostile, tmp_path / "networks")
        sets = netbic.io.read_gene_sets(exports.write_gmt(hostile, tmp_path / "sets.gmt"))
        exports.write_lists(hostile, tmp_path / "lists.txt")
    members = {genes[at] for at in np.flatnonzero(hostile.model.columns_[0])}
    assert {"=1+1", "a b", "a b_2", "a b_3", "é中", "<&\"'>"} <= members
    assert {gene for own in sets.values() for gene in own} == members
    read = networkx.read_graphml(folder / "module_1.graphml")
    assert {own["name"] for _, own in read.nodes.data()} == members
    assert len(read) == 40
    assert "node_3" in read
    assert read.nodes["node_3"]["name"] == "node_3"
    ElementTree.parse(folder / "module_1.graphml")
    content = json.loads((folder / "module_1.cyjs").read_text())
    assert {node["data"]["name"] for node in content["elements"]["nodes"]} == members
    lines = (tmp_path / "lists.txt").read_text().split("\n")
    assert members <= set(lines)


@pytest.mark.parametrize("write", [exports.write_cytoscape, exports.write_lists])
def test_folders_are_written_completely_or_not_at_all(results, cohort, tmp_path, monkeypatch, write):
    folder = tmp_path / "exported"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(2))
        with pytest.raises(WriteError, match="No space left"):
            write(results, folder)
    assert not folder.exists()
    write(results, folder)
    before = contents(folder)
    one = netbic.SparseGraphSVD(1, n_columns=20, column_graph=cohort.network).fit(cohort.expression)
    smaller = Results.of(one, cohort.expression)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(1))
        with pytest.raises(WriteError):
            write(smaller, folder, force=True)
    assert contents(folder) == before
    write(smaller, folder, force=True)
    assert {name[:8] for name in contents(folder)} == {"export.j", "module_1"}  # earlier modules are gone


def test_nothing_is_replaced_unless_asked_for(results, tmp_path):
    target = tmp_path / "sets.gmt"
    target.write_text("mine")
    with pytest.raises(FolderInUse, match="exists"):
        exports.write_gmt(results, target)
    assert target.read_text() == "mine"
    exports.write_gmt(results, target, force=True)
    assert len(netbic.io.read_gene_sets(target)) == 4
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FolderInUse, match="not empty"):
        exports.write_lists(results, folder)
    for _ in range(2):  # its own lists are replaced
        exports.write_lists(results, folder, force=True)
    assert (folder / "notes.txt").read_text() == "mine"
    networks = tmp_path / "networks"
    networks.mkdir()
    (networks / "module_1.cyjs").write_text("mine")
    with pytest.raises(FolderInUse, match=r"files that netbic did not write .*module_1.cyjs"):
        exports.write_cytoscape(results, networks, force=True)
    assert contents(networks) == {"module_1.cyjs": b"mine"}
    with pytest.raises(FolderInUse, match="is a file"):
        exports.write_cytoscape(results, target)
    with pytest.raises(InputError, match="does not exist"):
        exports.write_gmt(results, tmp_path / "no" / "sets.gmt")
    with pytest.raises(TypeError, match="expected a fitted model"):
        exports.write_gmt(3, tmp_path / "other.gmt")
    saved = tmp_path / "saved"
    netbic.save(results.model, saved)
    for _ in range(2):  # its own file is replaced, and removed with the model
        exports.write_gmt(saved, saved / "modules.gmt")
    netbic.save(results.model, saved)
    assert not (saved / "modules.gmt").exists()
    with pytest.raises(FolderInUse, match="is an input"):
        exports.write_gmt(saved, saved / "model.json", force=True)


def test_an_anndata_object_is_exported_as_its_model(model, cohort, tmp_path):
    adata = netbic.tl.to_anndata(model, cohort.expression, key="prog")
    plain, of_cells = Results.of(model, cohort.expression), Results.of(adata, key="prog")
    for module in (1, 2):
        pd.testing.assert_frame_equal(of_cells.genes(module), plain.genes(module))
        assert not any(of_cells.samples_by_side(module).values())  # groups are not known yet
    netbic.tl.sample_groups(adata, key="prog")
    netbic.tl.verdicts(adata, n_pairs=3, key="prog")
    of_cells = Results.of(adata, key="prog")
    assert of_cells.samples_by_side(1) == plain.samples_by_side(1)
    assert of_cells.verdicts == adata.uns["prog"]["verdicts"]["verdict"].tolist()
    confidence = of_cells.judged_genes(1).set_index("name")["confidence"]
    assert confidence.notna().all()
    np.testing.assert_allclose(confidence, adata.varm["prog_confidence"]["prog_1"][confidence.index])
    exports.write_workbook(of_cells, tmp_path / "cells.xlsx")
    default = netbic.tl.to_anndata(model, cohort.expression)
    one, other = exports.write_gmt(default, tmp_path / "a.gmt"), exports.write_gmt(model, tmp_path / "b.gmt")
    assert one.read_text() == other.read_text()
    with pytest.raises(TypeError, match="expected a fitted model, an AnnData object or the folder"):
        Results.of(3)
