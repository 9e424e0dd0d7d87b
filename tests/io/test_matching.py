"""Genes are matched by name, unmatched ones are counted, and mixed-up kinds of names are recognised."""

import itertools
import json
import warnings

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from netbic import Graph, tl
from netbic.errors import InputError
from netbic.io.dataset import open_dataset
from netbic.io.matching import align, check_overlap
from netbic.io.names import look_exchanged
from support.commands import run

GENES = np.array(["TP53", "MDM2", "EGFR", "GRB2", "ACTB", "GAPDH"], dtype=object)
NETWORK = Graph.from_edges(pd.DataFrame({"a": ["TP53", "MDM2", "EGFR", "SOS1"], "b": ["MDM2", "EGFR", "GRB2", "GRB2"]}))


def test_the_counts_of_the_alignment_add_up():
    graph, summary = align(GENES, NETWORK, samples=["s1", "s2"])
    assert (summary.genes, summary.nodes, summary.matched) == (6, 5, 4)
    assert (summary.edges_in_graph, summary.edges_kept) == (4, 3)
    assert (summary.isolated, summary.isolated_share) == (2, 2 / 6)
    assert summary.unmatched == ("ACTB", "GAPDH")
    assert graph.names.tolist() == GENES.tolist()
    assert json.loads(json.dumps(summary.to_dict()))["matched"] == 4
    text = "\n".join(summary.lines())
    for part in ("4 of 6 genes (67%)", "3 of 4", "without a neighbour: 2 (33%)"):
        assert part in text
    _, summary = align(np.array(["TP53", "MDM2", "SOS1", "ACTB"], dtype=object), NETWORK)
    line = "genes without a neighbour: 2 (50%): 1 not in the network, 1 whose neighbours are not in the data"
    assert line in list(summary.lines())


def test_hubs_are_named_with_their_neighbours():
    names = np.array([f"g{k}" for k in range(200)], dtype=object)
    star = pd.DataFrame({"a": ["g0"] * 150 + ["g3"] * 60, "b": [f"g{k}" for k in range(1, 151)] + list(names[100:160])})
    _, summary = align(names, Graph.from_edges(star))
    assert summary.hubs == {"g0": 150, "g3": 61}
    assert "hubs (more than 50 neighbours): g0 (150), g3 (61)" in list(summary.lines())
    many = np.array([f"g{k}" for k in range(2000)], dtype=object)
    _, summary = align(many, Graph.from_edges(pd.DataFrame({"a": "g0", "b": many[1:]})))
    assert "hubs (more than 100 neighbours, 5% of the genes with a neighbour): g0 (1,999)" in list(summary.lines())


ENSEMBL = np.array([f"ENSG{k:011d}.{k % 7 + 1}" for k in range(40)], dtype=object)
SYMBOLS = [f"GENE{k}" for k in range(40)]


def chain(names):
    return Graph.from_edges(pd.DataFrame({"a": names[:-1], "b": names[1:]}))


def dataset(tmp_path, genes, nodes, **options):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(len(genes), 5)), index=genes, columns=list("abcde"))
    table.to_csv(tmp_path / "expression.tsv", sep="\t")
    pd.DataFrame({"source": nodes[:-1], "target": nodes[1:]}).to_csv(tmp_path / "net.tsv", sep="\t", index=False)
    return open_dataset(tmp_path / "expression.tsv", tmp_path / "net.tsv", **options)


@pytest.mark.parametrize(
    ("genes", "nodes", "samples", "hint", "parameter"),
    [
        (ENSEMBL, [name.split(".")[0] for name in ENSEMBL], [], "remove the versions", "strip_versions"),
        (ENSEMBL, SYMBOLS, [], r"data have Ensembl gene ids \(ENSG...\), the network has gene symbols", "id_map"),
        (SYMBOLS, ENSEMBL, [], r"data have gene symbols, the network has Ensembl gene ids \(ENSG...\)", "id_map"),
        ([f"Gene{k}" for k in range(40)], SYMBOLS, [], "mouse .* and human", "id_map"),
        (SYMBOLS, [str(k + 100) for k in range(40)], [], "Entrez", "id_map"),
        (SYMBOLS, [f"9606.ENSP{k:011d}" for k in range(40)], [], "protein.info", "string_info"),
        ([f"s{k}" for k in range(40)], SYMBOLS, SYMBOLS, "exchange genes and samples", "samples_in_rows"),
        (["x", "y", "z"], ["a", "b", "c"], [], "two-column table", "id_map"),
    ],
)
def test_a_mix_up_of_names_is_recognised(genes, nodes, samples, hint, parameter):
    with pytest.raises(InputError, match=hint) as caught:
        align(np.array(genes, dtype=object), chain(nodes), samples=samples)
    message = str(caught.value)
    assert "no gene of the data is in the network" in message
    for names in (genes, nodes):
        assert sum(repr(str(name)) in message for name in names) == min(5, len(names))
    assert "`" not in message  # these names need not come from files
    with pytest.raises(InputError, match=f"{hint}.*`{parameter}`") as caught:
        check_overlap(np.array(genes, dtype=object), chain(nodes), samples, from_files=True)
    assert caught.value.parameters == (parameter,)


def test_few_matches_are_refused_but_a_small_network_is_not(tmp_path):
    with pytest.raises(InputError, match="no edge connects two of them"):
        align(GENES, Graph.from_edges(pd.DataFrame({"a": GENES[:4], "b": list("wxyz")})))
    others = [f"x{k}" for k in range(120)]
    with pytest.raises(InputError, match=r"only 2 of 122 genes .*'other0'"):  # also if only matched genes are kept
        dataset(tmp_path, [*others, "a", "b"], [*(f"other{k}" for k in range(99)), "a", "b"], matched_only=True)
    genes = np.array([f"g{k}" for k in range(1000)], dtype=object)
    with pytest.raises(InputError, match="only 10 of 1,000 genes"):
        align(genes, chain([f"g{k}" for k in range(10)] + [f"other{k}" for k in range(990)]))
    assert align(genes, chain([f"g{k}" for k in range(10)]))[1].matched == 10


def test_versions_are_stripped_on_both_sides(tmp_path):
    for versions in ((True, False), (False, True), (True, True)):
        genes, nodes = ([name if has else name.split(".")[0] for name in ENSEMBL] for has in versions)
        found = dataset(tmp_path, genes, nodes, strip_versions=True)
        assert (found.alignment.matched, found.expression.genes[0]) == (40, ENSEMBL[0].split(".")[0])


def test_an_id_map_works_in_either_direction(tmp_path):
    pairs = [(a.split(".")[0], b) for a, b in zip(ENSEMBL, SYMBOLS, strict=True)]
    for header, turned in itertools.product(["", "ensembl\tsymbol\n"], [False, True]):
        text = "".join(f"{b}\t{a}\n" if turned else f"{a}\t{b}\n" for a, b in pairs)
        (tmp_path / "map.tsv").write_text(header + text)
        found = dataset(tmp_path, list(ENSEMBL), SYMBOLS, strip_versions=True, id_map=tmp_path / "map.tsv")
        assert (found.expression.genes.tolist(), found.alignment.edges_kept) == (SYMBOLS, 39)


def test_an_id_map_prefers_names_of_the_network_and_is_refused_without_genes_of_the_data(tmp_path):
    plain, nodes = [name.split(".")[0] for name in ENSEMBL], [f"NODE{k}" for k in range(40)]
    lines = [f"{name}.9\tENST{k}\tUNKNOWN{k}\n{name}.9\tENST{k}\tNODE{k}\n" for k, name in enumerate(plain)]
    (tmp_path / "map.tsv").write_text("".join(lines))
    found = dataset(tmp_path, list(ENSEMBL), nodes, id_map=tmp_path / "map.tsv", strip_versions=True)
    assert found.expression.genes.tolist() == nodes
    (tmp_path / "map.tsv").write_text("x\ty\nz\tw\n")
    with pytest.raises(InputError, match=r"map.tsv: has no gene of the data in any column \(it has 'x', 'z'"):
        dataset(tmp_path, ["a", "b", "c"], ["a", "b"], id_map=tmp_path / "map.tsv")


def test_the_side_with_several_names_for_one_is_translated(tmp_path):
    ids = [name.split(".")[0] for name in ENSEMBL]
    more = [f"ENSG{k:011d}" for k in range(100, 140)]  # a second id of each symbol
    lines = [f"{a}\t{b}\n" for a, b in zip([*ids, *more], [*SYMBOLS, *SYMBOLS], strict=True)]
    (tmp_path / "map.tsv").write_text("".join(lines))
    found = dataset(tmp_path, SYMBOLS, [*ids, *more], id_map=tmp_path / "map.tsv")  # the network
    assert found.expression.genes.tolist() == SYMBOLS
    assert (found.graph.n_nodes, found.alignment.matched, found.alignment.network.translated) == (40, 40, 80)
    assert "nodes renamed by the id map: 80" in list(found.alignment.lines())
    found = dataset(tmp_path, ids, ids, id_map=tmp_path / "map.tsv", gene_sets={"a": SYMBOLS[:5]})  # both
    assert (found.expression.genes.tolist(), found.alignment.edges_kept) == (SYMBOLS, 39)
    found = dataset(tmp_path, ids, ids, id_map=tmp_path / "map.tsv", gene_sets={"a": [*more[:5], ids[0]]})
    assert found.gene_sets["a"] == tuple(SYMBOLS[:5])
    found = dataset(tmp_path, SYMBOLS, SYMBOLS, id_map=tmp_path / "map.tsv", gene_sets={"a": [*ids[:2], *more[:2]]})
    assert (found.expression.genes.tolist(), found.gene_sets["a"]) == (SYMBOLS, tuple(SYMBOLS[:2]))


def test_an_id_map_of_earlier_symbols_changes_earlier_symbols_only(tmp_path):
    lines = [f"OLD{k}\tGENE{k}\n" for k in range(40)]
    for turned in (False, True):
        written = ["\t".join(line.strip().split("\t")[::-1]) + "\n" for line in lines] if turned else lines
        (tmp_path / "map.tsv").write_text("".join(written))
        found = dataset(tmp_path, ["OLD0", "OLD1", *SYMBOLS[2:]], SYMBOLS, id_map=tmp_path / "map.tsv")
        assert found.expression.genes.tolist() == SYMBOLS
        assert {"step": "rename", "genes": 2, "unchanged": 38} in found.alignment.steps


def test_gene_sets_that_hardly_match_are_warned_of(tmp_path):
    with pytest.warns(UserWarning, match=r"only 1 of 40 genes of the gene sets are in the data .*Ensembl.*`id_map`"):
        found = dataset(tmp_path, SYMBOLS, SYMBOLS, gene_sets={"a": [SYMBOLS[0], *ENSEMBL[1:]]})
    assert found.alignment.gene_sets == {"sets": 1, "genes": 40, "in_data": 1}
    with pytest.raises(
        InputError, match=r"no gene of the gene sets is in the data .*Ensembl versions.*`strip_versions`"
    ):
        dataset(tmp_path, list(ENSEMBL), list(ENSEMBL), gene_sets={"a": [name.split(".")[0] for name in ENSEMBL]})


def test_anndata_says_which_column_of_var_has_the_names_of_the_network():
    var = pd.DataFrame({"symbol": SYMBOLS}, index=ENSEMBL)
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(12, 40)), var=var)
    with pytest.raises(
        InputError, match=r"use adata.var_names = adata.var\['symbol'\], then adata.var_names_make_unique"
    ):
        tl.modules(adata, chain(SYMBOLS))


def test_missing_names_are_not_names_and_only_matched_genes_are_kept_on_request(tmp_path):
    found = dataset(tmp_path, [*SYMBOLS[:30], *["NA"] * 5, "nan", "", "null", *SYMBOLS[30:32]], SYMBOLS)
    assert found.expression.shape == (5, 32)
    assert found.alignment.steps == [{"step": "drop nameless", "genes": 8}]
    translated = [f"X{k}" if k % 2 == 0 else gene for k, gene in enumerate(SYMBOLS)]
    lines = [f"{gene}\t{'NA' if k % 2 else f'X{k}'}\n" for k, gene in enumerate(SYMBOLS)]
    (tmp_path / "map.tsv").write_text("".join(lines))
    found = dataset(tmp_path, SYMBOLS, translated, id_map=tmp_path / "map.tsv")
    assert found.expression.genes.tolist() == translated
    found = dataset(tmp_path, list("abcdef"), ["a", "b", "c"], matched_only=True)
    assert (found.expression.genes.tolist(), found.alignment.isolated) == (["a", "b", "c"], 0)
    assert {"step": "only genes of the network", "dropped": 3, "named": ["d", "e", "f"]} in found.alignment.steps


def test_nodes_without_names_are_the_genes_of_the_file(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 5)), index=list("wxyz"), columns=list("abcde"))
    table.loc["x"] = 1.0  # constant: dropped, but the matrix still counts it
    table.to_csv(tmp_path / "expression.csv")
    path = np.diag(np.ones(3), 1)
    sp.save_npz(tmp_path / "net.npz", sp.csr_array(path + path.T))
    found = open_dataset(tmp_path / "expression.csv", tmp_path / "net.npz")
    assert found.expression.genes.tolist() == ["w", "y", "z"]
    tails, heads, _ = found.graph.edges()
    assert [(found.graph.names[a], found.graph.names[b]) for a, b in zip(tails, heads, strict=True)] == [("y", "z")]


def test_messages_name_the_parameters_of_the_library_and_the_options_of_the_command_line(tmp_path):
    files = tmp_path / "expression.tsv", tmp_path / "net.tsv"
    with pytest.raises(InputError, match=r"two-column table \(`id_map`\)$"):
        dataset(tmp_path, ["x", "y", "z"], ["p", "q", "r"])
    done = run("align", files[0], "--graph", files[1])
    assert done.exit_code == 1
    assert done.output.strip().endswith("translate one into the other with a two-column table (--id-map)")
    with pytest.raises(InputError, match=r"with a two-column table \(netbic.io.read_id_map\)$"):
        tl.modules(anndata.AnnData(np.eye(4), var=pd.DataFrame(index=list("xyzw"))), chain(["p", "q", "r", "s"]))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'n_variables': did you mean 'n_variable'\?"):
        open_dataset(*files, n_variables=3)
    dataset(tmp_path, list(ENSEMBL), list(ENSEMBL))
    table = pd.read_csv(files[0], sep="\t", index_col=0)
    table.assign(e=table["e"] * 1e6).to_csv(files[0], sep="\t")
    assert "leave it out (--skip-columns)" in run("align", files[0], "--graph", files[1]).stderr


def test_entrez_numbers_in_networkx_are_names():
    numbers = range(1000, 1040)
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(12, 40)), var=pd.DataFrame(index=map(str, numbers)))
    tl.modules(adata, nx.Graph([*itertools.pairwise(numbers)][::-1]), 1, n_rows=4, n_columns=8)
    joined = adata.varp["netbic"].toarray() > 0
    np.testing.assert_array_equal(joined, np.eye(40, k=1) + np.eye(40, k=-1))


# Tables in which samples and genes are exchanged

HUMAN, MOUSE = ["A3GALT2", "A4GALT", "GAPDH", "TP53", "ZNF1"], ["Actb", "Gapdh", "Xkr4"]
RARE = ["A1BG", "A4GALT", "AAAS", "C1orf112", "ABCC6"]  # genes that are in few tables
BARCODES, PATIENTS = ["TCGA-AO-A03P", "TCGA-AR-A1AH", "TCGA-A7-A0CE"], ["p1", "p2", "p3"]


def test_exchanged_names_are_recognised():
    for genes in (HUMAN, list(ENSEMBL), MOUSE):
        for samples in (BARCODES, ["GSM1000", "GSM1001", "GSM1002"], PATIENTS):
            assert look_exchanged(np.array(genes), np.array(samples))
            assert not look_exchanged(np.array(samples), np.array(genes))
    assert look_exchanged(np.array(RARE), np.array(BARCODES))  # only barcodes tell rare genes from samples
    for samples, genes in ((RARE, PATIENTS), (["S1", "S2"], ["LUAD", "BRCA"]), (BARCODES, BARCODES[::-1])):
        assert not look_exchanged(np.array(samples), np.array(genes))


def test_open_dataset_warns_and_names_both_sides(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 5))
    pd.DataFrame(values, index=BARCODES, columns=HUMAN).to_csv(tmp_path / "rows.tsv", sep="\t", index_label="sample")
    with pytest.warns(UserWarning, match=r"A3GALT2, A4GALT, ...\) look like genes.*use `samples_in_rows`"):
        found = open_dataset(tmp_path / "rows.tsv")
    assert "samples: A3GALT2, A4GALT, ...; genes: TCGA-AO-A03P, TCGA-AR-A1AH, ..." in found.alignment.lines()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_dataset(tmp_path / "rows.tsv", samples_in_rows=True)
