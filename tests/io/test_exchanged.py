"""Tables in which samples and genes are exchanged are recognised."""

import warnings

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.errors import InputError
from netbic.io.names import look_exchanged

SYMBOLS = ["A3GALT2", "A4GALT", "GAPDH", "TP53", "ZNF1"]
OTHERS = ["A1BG", "A4GALT", "AAAS", "C1orf112", "ABCC6"]  # genes that are in few tables
ENSEMBL = [f"ENSG0000000000{k}.3" for k in range(4)]
MOUSE = ["Actb", "Gapdh", "Xkr4"]
BARCODES = ["TCGA-AO-A03P", "TCGA-AR-A1AH", "TCGA-A7-A0CE"]
ARRAYS = ["GSM1000", "GSM1001", "GSM1002"]
PATIENTS = ["p1", "p2", "p3"]


@pytest.mark.parametrize("genes", [SYMBOLS, ENSEMBL, MOUSE])
@pytest.mark.parametrize("samples", [BARCODES, ARRAYS, PATIENTS])
def test_exchanged_names_are_recognised(samples, genes):
    samples, genes = np.array(samples, dtype=object), np.array(genes, dtype=object)
    assert look_exchanged(genes, samples)
    assert not look_exchanged(samples, genes)


def test_only_barcodes_tell_rare_genes_from_samples():
    others, barcodes, patients = (np.array(names, dtype=object) for names in (OTHERS, BARCODES, PATIENTS))
    assert look_exchanged(others, barcodes)
    assert not look_exchanged(others, patients)
    assert not look_exchanged(np.array(["S1", "S2"]), np.array(["LUAD", "BRCA"]))
    assert not look_exchanged(barcodes, barcodes[::-1])


def test_open_dataset_warns_and_names_both_sides(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 5))
    pd.DataFrame(values, index=BARCODES, columns=SYMBOLS).to_csv(tmp_path / "rows.tsv", sep="\t", index_label="sample")
    with pytest.warns(UserWarning, match=r"A3GALT2, A4GALT, ...\) look like genes.*use `samples_in_rows`"):
        dataset = netbic.io.open_dataset(tmp_path / "rows.tsv")
    assert "samples: A3GALT2, A4GALT, ...; genes: TCGA-AO-A03P, TCGA-AR-A1AH, ..." in dataset.alignment.lines()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        netbic.io.open_dataset(tmp_path / "rows.tsv", samples_in_rows=True)


def test_new_samples_whose_genes_are_in_columns_are_an_error_with_the_remedy(tmp_path):
    cohort = netbic.simulate.cohort(120, 300, n_modules=1, random_state=0)
    model = netbic.SparseGraphSVD(1, n_columns=60).fit(cohort.expression)
    netbic.save(model, tmp_path / "model")
    cohort.expression.to_csv(tmp_path / "rows.tsv", sep="\t", index_label="sample")
    with (
        pytest.warns(UserWarning, match="no record of how its data were read"),
        pytest.raises(InputError, match=r"names of genes of the modules.*\(`samples_in_rows`\)") as caught,
    ):
        netbic.storage.read_like(tmp_path / "model", tmp_path / "rows.tsv")
    assert caught.value.parameters == ("samples_in_rows",)
    with pytest.warns(UserWarning, match="no record"):
        data = netbic.storage.read_like(tmp_path / "model", tmp_path / "rows.tsv", samples_in_rows=True)
    assert data.shape == cohort.expression.shape
