"""Unusual real files: each of these once gave a wrong answer without a warning."""

import itertools

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import netbic
from netbic import InputError
from netbic.io.dataset import open_dataset
from netbic.io.expression import read_expression
from netbic.io.matching import align
from netbic.io.networks import read_network
from netbic.io.preprocessing import prepare
from support.commands import run

generator = np.random.default_rng(0)
GENES = [f"GENE{k:03d}" for k in range(40)]
TABLE = pd.DataFrame(generator.normal(8, 1, (40, 12)).round(3), index=GENES, columns=[f"s{k}" for k in range(12)])
EDGES = pd.DataFrame({"a": GENES[:-1], "b": GENES[1:]})


def written(tmp_path, table, name="table.tsv", **options):
    table.to_csv(tmp_path / name, sep="\t", **options)
    return tmp_path / name


def network(tmp_path, text, name="net.tsv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_names_with_spaces_do_not_make_spaces_the_separator(tmp_path):
    table = TABLE.set_axis([f"Tumor {k} left" for k in range(12)], axis=1).rename(index=lambda gene: f"Probe {gene}")
    read = read_expression(written(tmp_path, table))
    assert read.samples.tolist() == table.columns.tolist()
    assert read.genes.tolist() == table.index.tolist()
    turned = read_expression(written(tmp_path, table.T, index_label="sample"), samples_in_rows=True)
    assert turned.genes.tolist() == table.index.tolist()
    sif = network(tmp_path, "gene one\tbinds to\tgene two\ngene two\tbinds to\tgene three\n", "net.sif")
    assert read_network(sif).graph.names.tolist() == ["gene one", "gene three", "gene two"]


@pytest.mark.parametrize("name", ["table.tsv", "table.parquet"])
def test_columns_that_annotate_genes_are_not_samples(tmp_path, name):
    table = TABLE.rename_axis("Hugo_Symbol")
    table.insert(0, "Entrez_Gene_Id", np.arange(40) * 1000)
    table.insert(1, "Description", "a gene")
    if name.endswith("tsv"):
        written(tmp_path, table)
    else:
        table.to_parquet(tmp_path / name)
    read = read_expression(tmp_path / name)
    assert read.samples.tolist() == TABLE.columns.tolist()
    assert prepare(read).steps == [{"step": "columns left out", "named": ["Entrez_Gene_Id", "Description"]}]


def test_a_sample_with_much_larger_values_causes_a_warning(tmp_path):
    table = TABLE.copy()
    table.insert(0, "probe_number", np.arange(40) * 100_000)
    with pytest.warns(UserWarning, match="sample 'probe_number' are .* times as large as usual"):
        read_expression(written(tmp_path, table))


def test_gct(tmp_path):
    table = TABLE.rename_axis("Name")
    table.insert(0, "Description", "na")
    (tmp_path / "table.gct").write_text("#1.2\n40\t12\n" + table.to_csv(sep="\t"))
    assert read_expression(tmp_path / "table.gct").shape == (12, 40)


def test_missing_names_are_not_names(tmp_path):
    genes = [*GENES[:30], *["NA"] * 5, "nan", "", "null", *GENES[30:32]]
    prepared = prepare(read_expression(written(tmp_path, TABLE.set_axis(genes, axis=0))))
    assert prepared.expression.shape == (12, 32)
    assert prepared.steps == [{"step": "drop nameless", "genes": 8}]
    (tmp_path / "map.tsv").write_text(
        "".join(f"{gene}\t{'NA' if k % 2 else f'X{k}'}\n" for k, gene in enumerate(GENES))
    )
    written(tmp_path, TABLE)
    names = [f"X{k}" if k % 2 == 0 else gene for k, gene in enumerate(GENES)]
    text = "".join(f"{a}\t{b}\n" for a, b in itertools.pairwise(names))
    dataset = open_dataset(tmp_path / "table.tsv", network(tmp_path, text), id_map=tmp_path / "map.tsv")
    assert dataset.expression.genes.tolist() == names


def test_an_id_map_prefers_names_of_the_network(tmp_path):
    lines = [f"{gene}.3\tENST{k}\tUNKNOWN{k}\n{gene}.3\tENST{k}\tNODE{k}\n" for k, gene in enumerate(GENES)]
    ensembl = [f"ENSG{k:011d}" for k in range(40)]
    text = "".join(lines)
    for gene, name in zip(GENES, ensembl, strict=True):
        text = text.replace(gene, name)
    (tmp_path / "map.tsv").write_text(text)
    written(tmp_path, TABLE.set_axis([f"{name}.7" for name in ensembl], axis=0))
    net = network(tmp_path, "".join(f"NODE{k}\tNODE{k + 1}\n" for k in range(39)))
    dataset = open_dataset(tmp_path / "table.tsv", net, id_map=tmp_path / "map.tsv", strip_versions=True)
    assert dataset.expression.genes.tolist() == [f"NODE{k}" for k in range(40)]


COLUMNS = {
    "pandas' row numbers": EDGES.reset_index().set_axis(["", "from", "to"], axis=1),
    "R's row names": EDGES.assign(row=np.arange(39)).set_axis(["from", "to", ""], axis=1)[["", "from", "to"]],
    "weight first": pd.DataFrame({"weight": 1.5, "source": EDGES["a"], "target": EDGES["b"]}),
    "a regulon": pd.DataFrame({"tf": EDGES["a"], "confidence": 1.0, "target": EDGES["b"], "mor": -1}),
    "BioGRID": pd.DataFrame(
        {
            "BioGRID ID Interactor A": np.arange(39),
            "BioGRID ID Interactor B": np.arange(39) + 1,
            "Official Symbol Interactor A": EDGES["a"],
            "Official Symbol Interactor B": EDGES["b"],
        }
    ),
    "a reference": pd.DataFrame({"Gene_1": EDGES["a"], "Gene_2": EDGES["b"], "pubmed_id": np.arange(39) + 10**7}),
    "a reference in words": pd.DataFrame(
        {"Gene A": EDGES["a"], "Gene B": EDGES["b"], "paper": [f"p{k}" for k in range(39)]}
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_the_header_names_the_columns_of_both_ends(tmp_path, case):
    table = COLUMNS[case]
    table.to_csv(tmp_path / "net.csv", index=False)
    graph, summary = read_network(tmp_path / "net.csv")
    assert set(graph.names) == set(GENES)
    assert graph.n_edges == summary.edges_in_file == 39
    assert summary.weighted == ("weight" in table)


def test_the_columns_of_both_ends_can_be_chosen(tmp_path):
    pd.DataFrame({"x": EDGES["a"], "y": 1, "z": EDGES["b"]}).to_csv(tmp_path / "net.csv", index=False)
    assert set(read_network(tmp_path / "net.csv", source="x", target="z").graph.names) == set(GENES)
    with pytest.raises(InputError, match="has no column 'q': its columns are 'x', 'y', 'z'"):
        read_network(tmp_path / "net.csv", source="q", target="z")


def test_a_regulator_of_many_genes_is_not_a_relation(tmp_path):
    text = "".join(f"{gene}\tMYC\tactivates\n" for gene in GENES[:20]) + "MYC\tMAX\tbinds\n"
    assert "MYC" in read_network(network(tmp_path, text)).graph.names


@pytest.mark.parametrize("header", ["PARTICIPANT_A\tINTERACTION_TYPE\tPARTICIPANT_B\tSOURCE\tPMID\n", ""])
def test_only_the_first_three_columns_of_an_extended_sif_are_used(tmp_path, header):
    text = header + "".join(f"{a}\tbinds\t{b}\tReactome\t1234{k}\n" for k, (a, b) in enumerate(EDGES.to_numpy()))
    assert set(read_network(network(tmp_path, text, "net.sif")).graph.names) == set(GENES)


def test_missing_partners_in_a_categorical_column(tmp_path):
    ends = EDGES.astype("category")
    ends.loc[5, "b"] = np.nan
    ends.to_parquet(tmp_path / "net.parquet")
    with pytest.raises(InputError, match=r"edge 6 \('GENE005'\) has no partner"):
        read_network(tmp_path / "net.parquet")
    unused = EDGES.astype(pd.CategoricalDtype([*GENES, "NA", "other"]))
    unused.to_parquet(tmp_path / "net.parquet")
    assert read_network(tmp_path / "net.parquet").graph.n_edges == 39


def test_nullable_columns(tmp_path):
    table = TABLE.astype("Float64")
    table.iloc[2, 3] = pd.NA
    table.to_parquet(tmp_path / "table.parquet")
    assert (
        read_expression(tmp_path / "table.parquet")
        .missing_entries()
        .startswith("1 value is missing (the first: gene 'GENE002'")
    )


def test_a_network_without_remaining_edges_is_refused():
    with pytest.raises(InputError, match="no edge connects two of them"):
        align(np.array(GENES, dtype=object), netbic.Graph.from_edges(pd.DataFrame({"a": GENES[:4], "b": list("wxyz")})))


def test_matched_only_does_not_hide_a_mix_up(tmp_path):
    net = network(tmp_path, "".join(f"other{k}\tother{k + 1}\n" for k in range(99)) + f"{GENES[0]}\t{GENES[1]}\n")
    wide = pd.concat([TABLE.set_axis([f"{k}{gene}" for gene in GENES], axis=0) for k in range(5)] + [TABLE])
    with pytest.raises(InputError, match=r"only 2 of 240 genes .*'other0'"):
        open_dataset(written(tmp_path, wide), net, matched_only=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gene\ts1\ts2\nA\t1\t2\t\nB\t3\t4\t\n", "a separator too many at the end"),
        ("A\t1\t2\nB\t3\t4\nC\t5\t6\n", "the first line holds numbers"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, text, message):
    (tmp_path / "table.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_expression(tmp_path / "table.tsv")


def test_numbers_as_sample_names(tmp_path):
    table = TABLE.set_axis([str(k) for k in range(12)], axis=1).rename_axis("gene")
    assert read_expression(written(tmp_path, table)).samples.tolist() == [str(k) for k in range(12)]
    few = TABLE.set_axis(["1.1", "1E5", *TABLE.columns[2:]], axis=1).rename_axis("gene")
    assert read_expression(written(tmp_path, few)).samples[0] == "1.1"


def test_blanks_around_missing_values(tmp_path):
    (tmp_path / "table.tsv").write_text("gene\ta\tb\tc\nx\t 1 \t NA \t3\ny\t4\t5\t6\n")
    assert read_expression(tmp_path / "table.tsv").missing_entries().startswith("1 value is missing")


def test_counts_per_million_use_all_genes_and_skip_missing_entries(tmp_path):
    counts = pd.DataFrame({"s1": [1.0, 2, 7], "s2": [4.0, 4, 2], "s3": [5.0, np.nan, 5]}, index=["a", "a", "b"])
    prepared = prepare(read_expression(written(tmp_path, counts)), cpm=True)
    frame = prepared.expression.frame()
    assert frame.loc["s1", "b"] == 7e5
    assert frame.loc["s3", "b"] == 5e5
    averaged = prepare(read_expression(written(tmp_path, counts)), duplicates="mean").expression.frame()
    assert averaged["a"].tolist() == [1.5, 4, 5]


def test_options_that_do_not_apply_are_refused(tmp_path):
    path = written(tmp_path, TABLE)
    for options in ({"layer": "x"}, {"gene_names": "x"}):
        with pytest.raises(InputError, match=r"is for \.h5ad files"):
            read_expression(path, **options)
    sp.save_npz(tmp_path / "net.npz", sp.csr_array(np.eye(3)[::-1]))
    with pytest.raises(InputError, match="has neither relations"):
        read_network(tmp_path / "net.npz", relations=["binds"])
    (tmp_path / "names.txt").write_text("a\na\nb\n")
    with pytest.raises(InputError, match="'a' is given twice"):
        read_network(tmp_path / "net.npz", names=tmp_path / "names.txt")


def test_antibodies_are_not_genes(tmp_path):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sp.coo_matrix(np.ones((3, 2))))
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    kinds = ["Gene Expression", "Gene Expression", "Antibody Capture"]
    (tmp_path / "features.tsv").write_text("".join(f"id{k}\tG{k}\t{kind}\n" for k, kind in enumerate(kinds)))
    read = read_expression(tmp_path)
    assert read.genes.tolist() == ["G0", "G1"]
    assert read.steps[0]["named"] == ["G2"]
    (tmp_path / "features.tsv").write_text("G0\nG1\nG2\n")
    assert read_expression(tmp_path).genes.tolist() == ["G0", "G1", "G2"]


def test_entrez_numbers_in_networkx_are_names():
    numbers = [str(k + 1000) for k in range(40)]
    graph = nx.Graph((int(a) + 1000, int(b) + 1000) for a, b in zip(range(38, -1, -1), range(39, 0, -1), strict=True))
    adata = anndata.AnnData(TABLE.set_axis(numbers, axis=0).T)
    netbic.tl.modules(adata, graph, 1, n_rows=4, n_columns=8)
    joined = adata.varp["netbic"].toarray() > 0
    assert {(a, b) for a, b in zip(*np.nonzero(joined), strict=True) if a < b} == {(k, k + 1) for k in range(39)}


def test_new_samples_are_preprocessed_like_the_training_samples(tmp_path):
    counts = pd.DataFrame(generator.poisson(20, (40, 12)), index=GENES, columns=TABLE.columns)
    path = written(tmp_path, counts)
    net = network(tmp_path, EDGES.to_csv(sep="\t", index=False, header=False))
    arguments = ("--cpm", "--log1p", "--top-genes", 30, "--modules", 2, "--genes", 10, "--samples", 4)
    fitted = run("fit", path, "--graph", net, "--out", tmp_path / "out", "--no-report", "--no-verdict", *arguments)
    assert fitted.exit_code == 0
    done = run("score", tmp_path / "out", path, "--out", tmp_path / "scores.tsv")
    assert done.exit_code == 0, done.output
    model = netbic.load(tmp_path / "out")
    logs = np.log1p(counts / counts.sum(axis=0) * 1e6).T[model.feature_names_in_]
    scores = netbic.io.read_table(tmp_path / "scores.tsv")
    np.testing.assert_allclose(scores[["module_0", "module_1"]], model.transform(logs), atol=1e-9)
    one = written(tmp_path, counts[["s3", "s5"]], "two.tsv")
    few = run("score", tmp_path / "out", one).stdout
    assert few.splitlines()[1].split("\t")[0] == "s3"
    assert float(few.splitlines()[1].split("\t")[1]) == pytest.approx(scores["module_0"][3])


def test_scores_with_a_saved_model_and_of_other_file_layouts(tmp_path):
    model = netbic.SparseGraphSVD(2, n_rows=4, n_columns=10).fit(TABLE.T)
    netbic.save(model, tmp_path / "saved")
    for arguments, path in (
        ((), written(tmp_path, TABLE)),
        (("--samples-in-rows",), written(tmp_path, TABLE.T, "turned.tsv", index_label="sample")),
        (("--skip-columns", "length"), written(tmp_path, TABLE.assign(length=1000.0), "longer.tsv")),
    ):
        done = run("score", tmp_path / "saved", path, "--out", tmp_path / "scores.tsv", "--force", *arguments)
        assert done.exit_code == 0, done.output
        assert "has no record of how its data were read and preprocessed: the file is not preprocessed" in done.stderr
        scores = netbic.io.read_table(tmp_path / "scores.tsv")
        assert scores["sample"].tolist() == TABLE.columns.tolist()
        np.testing.assert_allclose(scores[["module_0", "module_1"]], model.transform(TABLE.T), atol=1e-9)


def test_missing_entries_in_new_samples_are_reported_with_a_working_remedy(tmp_path):
    incomplete = written(tmp_path, TABLE.where(TABLE.iloc[3, 5] != TABLE))
    options = "--modules", 1, "--no-report", "--no-verdict", "--out"
    assert run("fit", written(tmp_path, TABLE, "whole.tsv"), *options, tmp_path / "out").exit_code == 0
    done = run("score", tmp_path / "out", incomplete)
    assert done.exit_code == 1
    assert "the first: gene 'GENE003', sample 's5'" in done.output
    assert "fit with --missing ignore" in done.output
    assert run("fit", tmp_path / "whole.tsv", "--missing", "ignore", *options, tmp_path / "again").exit_code == 0
    assert run("score", tmp_path / "again", incomplete).exit_code == 0


def test_a_method_with_a_graph_needs_its_smoothness(tmp_path):
    path, net = written(tmp_path, TABLE), network(tmp_path, EDGES.to_csv(sep="\t", index=False, header=False))
    done = run("fit", path, "--graph", net, "--out", tmp_path / "out", "--modules", 1, "--method", "sgSVD*")
    assert done.exit_code == 2
    assert "needs --smoothness" in done.output
