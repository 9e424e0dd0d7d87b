"""From files of real data to named modules, with the commands of a user."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import netbic
from support.commands import run

MATCHED = {  # genes and edges in common, from the description of the data
    ("coadread_rnaseq", "pathway_commons_v7"): (13_136, 260_230),
    ("coadread_rnaseq", "biogrid_3.4.133"): (14_386, 208_667),
    ("brca_rnaseq", "pathway_commons_v7"): (10_688, 185_289),
    ("brca_rnaseq", "biogrid_3.4.133"): (12_002, 184_542),
    ("brca_agilent2012", "pathway_commons_v7"): (3_127, 61_498),
    ("brca_agilent2012", "biogrid_3.4.133"): (3_007, 26_055),
}


USUAL = [("coadread_rnaseq", "pathway_commons_v7"), ("brca_agilent2012", "biogrid_3.4.133")]
FURTHER = [pytest.param(*pair, marks=pytest.mark.nightly) for pair in MATCHED if pair not in USUAL]


@pytest.mark.parametrize(("study", "network"), [*USUAL, *FURTHER])
def test_forty_modules_of_the_tumours(real_data, tmp_path, study, network):
    data = real_data / f"expr_tcga_{study}.parquet", real_data / f"network_{network}.parquet"
    arguments = ["fit", str(data[0]), "--graph", str(data[1]), "--out", str(tmp_path / "out")]
    done = run(*arguments, "--modules", "40", "--genes", "200", "--samples", "50")
    assert done.exit_code == 0, done.output
    genes, edges = MATCHED[study, network]
    assert f"matched: {genes:,} of" in done.output
    assert f"edges between matched genes: {edges:,} of" in done.output
    modules = netbic.io.read_table(tmp_path / "out" / "modules.tsv")
    assert modules.groupby(["module", "axis"]).size().tolist() == [200, 50] * 40
    assert netbic.io.read_table(tmp_path / "out" / "summary.tsv")["converged"].all()
    assert (tmp_path / "out" / "report.html").stat().st_size < 5_000_000
    expression = pd.read_parquet(data[0])
    first = modules[modules["module"] == 1]
    assert set(first["name"][first["axis"] == "gene"]) <= set(expression.index)
    assert set(first["name"][first["axis"] == "sample"]) <= set(expression.columns)


# Genes of the interferon response lead half of the modules (ISG15 without the network, too).
@pytest.mark.filterwarnings("ignore:.* are among the ten leading (features|genes)")
def test_modules_of_blood_cells_separate_types_and_stimulation(real_data):
    counts = pd.read_parquet(real_data / "small_pbmc_kang_counts.parquet")
    cells = pd.read_csv(real_data / "small_pbmc_kang_cells.tsv", sep="\t", index_col=0).loc[counts.columns]
    X = sp.csr_matrix(counts.to_numpy().T.astype(np.float32))
    X = sp.diags_array(1e4 / X.sum(axis=1).A1).astype(np.float32) @ X
    adata = anndata.AnnData(sp.csr_matrix(X.log1p()), obs=cells, var=pd.DataFrame(index=counts.index.astype(str)))
    network = netbic.io.read_network(real_data / "network_pathway_commons_v7.parquet").graph
    netbic.tl.modules(adata, network, 10, n_rows=300, n_columns=50)
    scores = adata.obsm["X_netbic"]

    def best_auc(truth):
        areas = [roc_auc_score(truth, score) for score in scores.T]
        return max(max(area, 1 - area) for area in areas)

    assert best_auc(cells["sample"] != "control") > 0.75
    for kind in ("B cells", "NK cells", "CD8 T cells", "FCGR3A+ Monocytes", "CD14+ Monocytes"):
        assert best_auc(cells["celltype"] == kind) > 0.85, kind
