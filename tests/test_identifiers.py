"""Kinds of gene names are told apart, and a mix-up of two of them is explained."""

import re

import numpy as np
import pandas as pd
import pytest

from netbic import Graph, SparseGraphSVD
from netbic.identifiers import explain_mismatch, kind_of_names

KINDS = {
    "Ensembl gene ids (ENSG...)": ["ENSG00000141510", "ENSG00000075624.17", "ENSG00000223972.5"],
    "Ensembl gene ids (ENSMUSG...)": ["ENSMUSG00000029580.15", "ENSMUSG00000020287"],
    "Ensembl transcript ids (ENST...)": ["ENST00000269305.9", "ENST00000380152"],
    "Ensembl protein ids (ENSP...)": ["ENSP00000269305", "ENSP00000369497.3"],
    "STRING's proteins (9606.ENSP...)": ["9606.ENSP00000269305", "511145.b0001", "4932.YAL001C"],
    "numbers, as of Entrez": ["7157", "672", "100287102"],
    "UniProt accessions": ["P04637", "Q9Y6K9", "A0A024R161", "P04637-2"],
    "RefSeq ids (NM_...)": ["NM_000546.6", "NR_046018", "XM_011525"],
    "probe ids": ["1007_s_at", "117_at", "AFFX-BioB-5_at", "ILMN_1343291", "A_23_P100001", "cg00000029"],
    "locus tags": ["b0001", "BSU00010", "YAL001C", "AT1G01010"],
    "gene symbols": ["TP53", "HLA-DRB1", "C9orf72", "RP11-34P13.7", "MT-CO1", "P2RY10"],
    "gene symbols as of mouse": ["Trp53", "Actb", "H2-Aa", "1700001C02Rik", "Hbb-bs"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_names_is_recognised_among_some_others(kind):
    assert kind_of_names(KINDS[kind]) == kind
    assert kind_of_names([*KINDS[kind] * 3, "x", "y z"]) == kind
    for other, names in KINDS.items():
        if other != kind and not (kind.startswith("gene symbols") and other.startswith("gene symbols")):
            found = explain_mismatch(KINDS[kind], names, ("data", "gene sets")).text()
            assert f"The data have {kind}, the gene sets have {other}: translate" in found


def test_names_of_no_kind_are_not_called_genes():
    for names in (
        [],
        ["C14.0n", "C16.1n.9"],
        ["sensor 1", "sensor 2"],
        ["x_1", "x_2"],
        ["a", "b"],
        ["S000", "S001"],
        ["0.03", "1.25"],
    ):
        assert kind_of_names(names) == ""
        assert not explain_mismatch(names, ["north", "south"]).is_known


@pytest.mark.parametrize("names", [["GSM662576", "GSM662564"], ["TCGA-02-0001-01", "TCGA.02.0003"], ["SRR1039508"]])
def test_names_of_samples_in_the_place_of_genes_are_recognised(names):
    found = explain_mismatch(names, ["TP53", "MDM2"], ("data", "gene sets"))
    assert found.text(from_files=True).endswith(": exchange genes and samples (`samples_in_rows`)")
    found = explain_mismatch(names, ["TP53", "MDM2"], ("data", "gene sets"), in_rows=True)
    assert found.text(from_files=True).endswith(": leave out `samples_in_rows`")
    found = explain_mismatch(["s1", "s2"], ["TP53", "MDM2"], samples=["TP53", "MDM2"], in_rows=True)
    assert found.text(from_files=True) == "The names of the samples match instead: leave out `samples_in_rows`"


@pytest.mark.parametrize("kind", ["Ensembl gene ids (ENSG...)", ""])
def test_graphs_say_the_kinds_of_names_if_these_are_known(kind):
    names = [f"ENSG{k:011d}" for k in range(60)] if kind else [f"sensor {k}" for k in range(60)]
    others = [f"GENE{k}" for k in range(59)] if kind else [f"node {k}" for k in range(59)]
    told = f"The data have {kind}, the graph has gene symbols: translate" if kind else "transpose the data"
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 60)), columns=names)
    model = SparseGraphSVD(1, n_columns=5)
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        model.set_params(column_graph=chain_of(others)).fit(X)
    assert "gene" not in str(caught.value) or kind
    told = told if kind else "do both sides use the same kind of names?"
    with pytest.warns(UserWarning, match=f"only 2 of 60 columns are nodes.*{re.escape(told)}"):
        model.set_params(column_graph=chain_of([*others, *names[:2]])).fit(X)


def chain_of(names):
    return Graph.from_edges(pd.DataFrame({"a": names[:-1], "b": names[1:]}))


def test_what_to_do_depends_on_the_kinds():
    proteins = explain_mismatch(KINDS["gene symbols"], KINDS["STRING's proteins (9606.ENSP...)"])
    assert (proteins.parameter, "protein.info" in proteins.remedy) == ("string_info", True)
    probes = explain_mismatch(KINDS["probe ids"], KINDS["gene symbols"])
    assert "annotation of the platform" in probes.text(from_files=True)
    assert probes.text(from_files=True).endswith("(`id_map`)")
    same = explain_mismatch(["TP53", "MDM2"], ["EGFR", "KRAS"]).text()
    assert same.startswith("Both have gene symbols, but not the same (another species or version?)")
    assert explain_mismatch(["s001", "s002"], ["S001", "S002"]).remedy == "write both sides in the same way"
    mouse = explain_mismatch(["Actb", "Trp53"], ["ACTB", "TP53", "MDM2"], ("data", "gene sets")).text()
    assert "capital letters" in mouse
    assert explain_mismatch(["ENSG00000141510.5"], ["ENSG00000141510.7"]).parameter == "strip_versions"
    symbols = ["TP53", "MDM2", "EGFR", "KRAS"]  # those that match as they are do not say why others do not
    few = explain_mismatch([*KINDS["probe ids"], *symbols[:2]], symbols)
    assert few.reason == "The data have probe ids, the network has gene symbols"
