"""Networks are the same in every format, with a summary of what was dropped."""

import gzip

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic.io
from netbic import Graph
from netbic.errors import InputError
from netbic.io.dataset import open_dataset
from netbic.io.networks import read_network

EDGES = [("TP53", "MDM2"), ("MDM2", "MDM4"), ("EGFR", "GRB2"), ("GRB2", "SOS1")]
RELATIONS = ["controls", "binds", "binds", "controls"]
WEIGHTS = [1.0, 0.5, 2.0, 0.25]


def named_edges(graph):
    tails, heads, _ = graph.edges()
    return {frozenset((graph.names[a], graph.names[b])) for a, b in zip(tails, heads, strict=True)}


def weight(graph, one, other):
    at = {name: k for k, name in enumerate(graph.names)}
    return graph.weights[[at[one]], [at[other]]].item()


def lines(*columns, separator="\t"):
    return "".join(f"{separator.join(map(str, row))}\n" for row in zip(*columns, strict=True))


A, B = zip(*EDGES, strict=True)
OFFICIAL = "Official Symbol Interactor A\tOfficial Symbol Interactor B"
EXTENDED = "PARTICIPANT_A\tINTERACTION_TYPE\tPARTICIPANT_B\tSOURCE\tPMID\n"
TEXTS = {
    "pairs": ("net.tsv", lines(A, B)),
    "pairs with a header": ("net.tsv", "gene_a\tgene_b\n" + lines(A, B)),
    "pairs by commas": ("net.csv", "source,target\n" + lines(A, B, separator=",")),
    "pairs by spaces": ("net.txt", lines(A, B, separator="  ")),
    "sif": ("net.sif", lines(A, RELATIONS, B)),
    "sif by spaces": ("net.sif", lines(A, RELATIONS, B, separator=" ")),
    "sif with several targets": ("net.sif", "TP53\tcontrols\tMDM2\nMDM2 \tbinds\tMDM4\nGRB2\tx\tEGFR\tSOS1\nALONE\n"),
    "extended sif": ("net.sif", "PARTICIPANT_A\tINTERACTION_TYPE\tPARTICIPANT_B\n" + lines(A, RELATIONS, B)),
    "relation last": ("net.tsv", lines(A, B, ["binds"] * 4)),
    "relation in the middle": ("net.tsv", lines(A, ["binds"] * 4, B)),
    "repeats and loops": ("net.tsv", lines(A, B) + lines(B, A) + "TP53\tTP53\n"),
    "comments": ("net.tsv", "# a network\n" + lines(A, B)),
    "row numbers of pandas": ("net.csv", ",from,to\n" + lines(range(4), A, B, separator=",")),
    "row names of R": ("net.tsv", "from\tto\n" + lines(range(4), A, B)),
    "a regulon": ("net.csv", "tf,confidence,target,mor\n" + lines(A, [1.0] * 4, B, [-1] * 4, separator=",")),
    "BioGRID": (
        "net.tsv",
        f"BioGRID ID Interactor A\tBioGRID ID Interactor B\t{OFFICIAL}\n" + lines("1234", "2345", A, B),
    ),
    "weight first": ("net.tsv", "weight\tsource\ttarget\n" + lines(WEIGHTS, A, B)),
    "a reference": ("net.tsv", "Gene_1\tGene_2\tpubmed_id\n" + lines(A, B, range(10**7, 10**7 + 4))),
    "a reference in words": ("net.tsv", "Gene A\tGene B\tpaper\n" + lines(A, B, ["p1", "p2", "p3", "p4"])),
    "annotated sif with a header": ("net.sif", EXTENDED + lines(A, RELATIONS, B, ["Reactome"] * 4, range(4))),
    "annotated sif": ("net.sif", lines(A, RELATIONS, B, ["Reactome"] * 4, range(4))),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_text_networks(tmp_path, case, packed):
    name, text = TEXTS[case]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert named_edges(read_network(path).graph) == set(map(frozenset, EDGES))


@pytest.mark.parametrize("header", ["", "source\ttarget\tweight\n", "x1\tx2\tcombined\n"])
def test_weights_in_the_third_column(tmp_path, header):
    path = tmp_path / "net.tsv"
    path.write_text(header + lines(A, B, WEIGHTS) + "MDM2\tTP53\t3.5\n")
    graph = read_network(path).graph
    assert weight(graph, "TP53", "MDM2") == 3.5  # the larger of the two
    assert weight(graph, "SOS1", "GRB2") == 0.25
    assert read_network(path, min_score=0.5).graph.n_edges == 3
    assert weight(read_network(path, weighted=False).graph, "TP53", "MDM2") == 1


def test_relations_are_counted_and_can_be_chosen(tmp_path):
    path = tmp_path / "net.sif"
    path.write_text(lines(A, RELATIONS, B))
    assert read_network(path).summary.relations == {"controls": 2, "binds": 2}
    chosen = read_network(path, relations=["binds"])
    assert named_edges(chosen.graph) == {frozenset(EDGES[1]), frozenset(EDGES[2])}
    assert chosen.summary.filtered == 2
    pd.DataFrame({"gene_a": A, "gene_b": B, "types": ["a;b", "b", "c", "a"]}).to_parquet(tmp_path / "net.parquet")
    assert read_network(tmp_path / "net.parquet", relations=["a"]).graph.n_edges == 2
    with pytest.raises(InputError, match=r"has no relation 'd'.*it has a, b, c"):
        read_network(tmp_path / "net.parquet", relations=["d"])


def test_string_links_and_info(tmp_path):
    proteins = {name: f"9606.ENSP{k:011d}" for k, name in enumerate({*A, *B})}
    ends = [proteins[name] for name in A], [proteins[name] for name in B]
    links, info = tmp_path / "9606.protein.links.txt.gz", tmp_path / "9606.protein.info.txt"
    header = "protein1 protein2 combined_score\n"
    both_ways = ends[0] + ends[1], ends[1] + ends[0]
    text = header + lines(*both_ways, [900, 150, 800, 700] * 2, separator=" ")
    links.write_bytes(gzip.compress(text.encode()))
    info.write_text(
        "#string_protein_id\tpreferred_name\tprotein_size\tannotation\n"
        + "".join(f'{protein}\t{name}\t100\tA protein; with "quotes", commas\n' for name, protein in proteins.items())
    )
    graph, summary = read_network(links, min_score=700, string_info=info)
    assert named_edges(graph) == {frozenset(EDGES[k]) for k in (0, 2, 3)}
    assert set(graph.weights.data) == {1.0}  # the score selects edges, it is not a weight
    assert (summary.filtered, summary.duplicates) == (2, 3)
    assert weight(read_network(links, string_info=info, weighted=True).graph, "TP53", "MDM2") == 900


def test_weights_do_not_depend_on_the_format(tmp_path):
    triples, frame = [*zip(A, B, WEIGHTS, strict=True)], pd.DataFrame({"source": A, "target": B, "weight": WEIGHTS})
    graph = nx.Graph()
    graph.add_weighted_edges_from(triples)
    nx.write_graphml(graph, tmp_path / "networkx.graphml")
    igraph.Graph.TupleList(triples, weights=True).write_graphml(str(tmp_path / "igraph.graphml"))
    frame.to_parquet(tmp_path / "net.parquet")
    frame.to_csv(tmp_path / "net.csv", index=False)
    expected = Graph.from_edges(frame)
    for name in ("networkx.graphml", "igraph.graphml", "net.parquet", "net.csv"):
        read = read_network(tmp_path / name).graph
        assert read.names.tolist() == expected.names.tolist()
        np.testing.assert_array_equal(read.weights.toarray(), expected.weights.toarray())


def test_sparse_matrices_with_and_without_names(tmp_path):
    names = sorted({*A, *B})
    at = {name: k for k, name in enumerate(names)}
    upper = sp.coo_array((WEIGHTS, ([at[a] for a in A], [at[b] for b in B])), shape=(6, 6))
    sp.save_npz(tmp_path / "net.npz", sp.csr_array(upper + upper.T))
    (tmp_path / "names.txt").write_text("\n".join(names))
    graph, summary = read_network(tmp_path / "net.npz", names=tmp_path / "names.txt")
    assert named_edges(graph) == set(map(frozenset, EDGES))
    assert (summary.edges_in_file, summary.duplicates) == (4, 0)
    assert read_network(tmp_path / "net.npz").graph.names.tolist() == list(range(6))
    with pytest.raises(InputError, match="has neither relations"):
        read_network(tmp_path / "net.npz", relations=["binds"])
    (tmp_path / "names.txt").write_text("a\na\nb\nc\nd\ne\n")
    with pytest.raises(InputError, match="'a' is given twice"):
        read_network(tmp_path / "net.npz", names=tmp_path / "names.txt")


SIGN = "source\ttarget\tsign\n"
ODD_SIGNS = r"column of signs \(sign\) contains 'binds', 'cuts'.*`signs=False`"
BAD = {
    "two columns": ("net.sif", "TP53\tbinds\tMDM2\nMDM2\tMDM4\n", "line 2: has two fields where A, relation and B"),
    "two columns throughout": ("net.sif", lines(A, B), "line 1: has two fields"),
    "missing partner": ("net.tsv", lines(A, B) + "\nTP53\t\n", r"line 6: edge 5 \('TP53'\) has no partner"),
    "missing partner, header": ("net.tsv", "source\ttarget\n" + lines(A, B) + "\tTP53\n", "line 6: edge 5"),
    "ragged": ("net.tsv", lines(A, B) + "TP53\n", "line 5: has 1 fields where 2 are expected"),
    "text as weight": ("net.tsv", lines(A, B, WEIGHTS) + "TP53\tSOS1\thigh\n", "line 5: edge 5 has the weight 'high'"),
    "negative weight": ("net.tsv", lines(A, B, WEIGHTS) + "TP53\tSOS1\t-1\n", "line 5: edge 5 has the weight '-1'"),
    "gene sets": ("sets.gmt", "repair\tna\tA\tB\n", "looks like a GMT file of gene sets.*`gene_sets`"),
    "gene sets, unnamed": ("sets.txt", "one\tna\tA\tB\ntwo\tna\tA\tB\tC\tD\n", "looks like a GMT file"),
    "header only": ("net.tsv", "source\ttarget\n", "contains only a header"),
    "loops only": ("net.tsv", "TP53\tTP53\nMDM2\tMDM2\n", "has no edge left"),
    "one column": ("net.tsv", "TP53\nMDM2\n", "one column only"),
    "broken xml": ("net.graphml", "<graphml><node id=", "is not valid XML"),
    "no edges in xml": ("net.graphml", "<graphml/>", "holds no edge"),
    "no matrix": ("net.npz", "TP53\tMDM2\n", "cannot be read as a sparse matrix"),
    "no parquet": ("net.parquet", "TP53\tMDM2\n", "cannot be read as Parquet"),
    "no relations": ("net.tsv", lines(A, B), "no column of relations", {"relations": ["binds"]}),
    "no scores": ("net.tsv", lines(A, B), "no column of scores", {"min_score": 1}),
    "no such column": ("net.tsv", "x\ty\n" + lines(A, B), "no column 'q': its columns are 'x', 'y'", {"source": "q"}),
    "words as signs": ("net.tsv", SIGN + lines(A, B, ["+", "-", "binds", "cuts"]), ODD_SIGNS),
    "no signs": ("net.sif", lines(A, ["activates", "binds"] * 2, B), "has no signs of edges", {"signs": True}),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_in_a_network_name_the_problem_and_the_place(tmp_path, case):
    name, text, message, *options = BAD[case]
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_network(tmp_path / name, **dict(*options))
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


REGULATOR = "".join(f"g{k}\tMYC\tactivates\n" for k in range(20)) + "MYC\tMAX\tbinds\n"


def test_which_columns_and_lines_hold_the_nodes(tmp_path):
    for name, text, options, nodes in (
        ("net.sif", "a b\tbinds to\tc d\nc d\tbinds to\te f\n", {}, {"a b", "c d", "e f"}),  # spaces in names
        ("net.tsv", REGULATOR, {}, {"MYC", "MAX", *(f"g{k}" for k in range(20))}),  # MYC is not a relation
        ("net.tsv", "x\ty\tz\n" + lines(A, [1] * 4, B), {"source": "x", "target": "z"}, {*A, *B}),
        ("net.tsv", "A\tB\nB\tC\n", {}, {"A", "B", "C"}),  # short names are no header
        ("net.tsv", "A\tB\nB\tC\n", {"header": True}, {"B", "C"}),
    ):
        (tmp_path / name).write_text(text)
        assert set(read_network(tmp_path / name, **options).graph.names) == nodes


def test_missing_partners_in_a_categorical_column(tmp_path):
    ends = pd.DataFrame({"a": A, "b": B}).astype("category")
    ends.loc[2, "b"] = np.nan
    ends.to_parquet(tmp_path / "net.parquet")
    with pytest.raises(InputError, match=r"edge 3 \('EGFR'\) has no partner"):
        read_network(tmp_path / "net.parquet")
    pd.DataFrame({"a": A, "b": B}).astype(pd.CategoricalDtype([*{*A, *B}, "NA"])).to_parquet(tmp_path / "net.parquet")
    assert read_network(tmp_path / "net.parquet").graph.n_edges == 4


def test_the_summary_counts_what_is_dropped_and_names_columns_that_are_not_used(tmp_path):
    net, data = tmp_path / "net.tsv", tmp_path / "data.tsv"
    net.write_text(lines(A, B) + lines(B, A) + "TP53\tTP53\nTP53\tCHEBI:1\n")
    summary = read_network(net).summary
    assert (summary.edges_in_file, summary.duplicates, summary.self_loops) == (10, 4, 1)
    assert (summary.not_genes, summary.not_genes_named) == (1, ("CHEBI:1",))
    net.write_text("source\ttarget\tdoi\tpmid\nTP53\tMDM2\t-1\t1\nMDM2\tMDM4\t1\t2\n")
    data.write_text("gene\ts1\ts2\ts3\nTP53\t1\t2\t4\nMDM2\t2\t1\t1\nMDM4\t0\t3\t1\n")
    assert read_network(net).summary.columns_not_read == ("doi", "pmid")
    dataset = open_dataset(data, net)
    assert "columns source, target, columns not used: doi, pmid" in " ".join(dataset.alignment.lines())
    assert repr(dataset) == "Dataset(3 samples x 3 genes, 2 edges)"
    assert repr(dataset.expression) == "Expression(3 samples x 3 genes, dense float64)"


SIGNED_TEXTS = {
    "column": ("net.tsv", "source\ttarget\tsign\n" + lines(A, B, ["+", "-", "1", "-1"]), "column sign"),
    "effect": ("net.csv", "source,target,effect\n" + lines(A, B, ["up", "down"] * 2, separator=","), "column effect"),
    "relations": ("net.sif", lines(A, ["activates", "inhibits"] * 2, B), "relations"),
    "arrows": ("net.sif", lines(A, ["->", "-|"] * 2, B), "relations"),
}


@pytest.mark.parametrize("case", SIGNED_TEXTS)
def test_signs_of_edges_are_read_and_said_to_be_read(tmp_path, case):
    name, text, source = SIGNED_TEXTS[case]
    (tmp_path / name).write_text(text)
    graph, summary = read_network(tmp_path / name)
    assert [weight(graph, a, b) for a, b in EDGES] == [1, -1, 1, -1]
    assert (summary.signs_from, summary.inhibiting, summary.weighted) == (source, 2, False)
    ignored = read_network(tmp_path / name, signs=False)
    assert [weight(ignored.graph, a, b) for a, b in EDGES] == [1, 1, 1, 1]
    assert ignored.summary.signs_from == ""
    netbic.storage.write_network(graph, tmp_path / "net.npz")
    assert (read_network(tmp_path / "net.npz").graph.weights != graph.weights).nnz == 0
    expression = pd.DataFrame(np.random.default_rng(0).random((5, 20)), index=graph.names[:5])
    expression.to_csv(tmp_path / "expression.csv")
    said = list(open_dataset(tmp_path / "expression.csv", tmp_path / name).alignment.lines())
    assert any(f"signs: read from {source}: 2 edges inhibit" in line for line in said)
    assert any("of which" in line and "inhibit" in line for line in said)


def test_negative_weights_are_signs_only_if_asked_for(tmp_path):
    path = tmp_path / "net.tsv"
    path.write_text("source\ttarget\tweight\n" + lines(A, B, [1, -0.5, 2, -0.25]))
    with pytest.raises(InputError, match=r"line 3: edge 2 has the weight '-0.5'.*`signs=True`"):
        read_network(path)
    graph, summary = read_network(path, signs=True)
    assert [weight(graph, a, b) for a, b in EDGES] == [1, -0.5, 2, -0.25]
    assert summary.signs_from == "negative weights"
    assert read_network(path, signs=True, min_score=0.5).graph.n_edges == 3
    assert [weight(read_network(path, signs=False).graph, a, b) for a, b in EDGES] == [1, 0.5, 2, 0.25]
    sp.save_npz(tmp_path / "net.npz", sp.csr_array([[0, -1.0], [-1.0, 0]]))
    with pytest.raises(InputError, match=r"negative or not finite.*signs=True"):
        read_network(tmp_path / "net.npz")
    assert read_network(tmp_path / "net.npz", signs=True).graph.n_inhibiting == 1


def test_edges_without_a_clear_sign(tmp_path):
    path = tmp_path / "net.tsv"
    path.write_text(SIGN + lines(A, B, ["+", "-", "+", "unknown"]) + "MDM2\tTP53\t-\n")
    graph, summary = read_network(path)
    assert named_edges(graph) == {frozenset(EDGES[1]), frozenset(EDGES[2])}
    assert (summary.sign_unknown, summary.contradictory) == (1, 1)
    path.write_text("source\ttarget\teffect\n" + lines(A, B, ["+", "-", "binds", "+"]))
    assert read_network(path).summary.columns_not_read == ("effect",)
    assert not read_network(path).graph.is_signed
    (tmp_path / "net.sif").write_text(lines(A, ["activates", "inhibits", "binds", "inhibits"], B))
    assert not read_network(tmp_path / "net.sif").graph.is_signed
    assert read_network(tmp_path / "net.sif", relations=["activates", "inhibits"]).graph.n_inhibiting == 2
