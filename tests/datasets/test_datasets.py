"""The data in the package: complete, small, described, and with the biology of their sources."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import mannwhitneyu

import netbic
from support import excerpts

ROOT = Path(__file__).parents[2]
FILES = Path(netbic.__file__).parent / "datasets" / "files"


@pytest.fixture(scope="module")
def bacteria():
    return netbic.datasets.ecoli()


@pytest.fixture(scope="module")
def cohort():
    return netbic.datasets.ovarian()


@pytest.fixture(scope="module")
def cells():
    pytest.importorskip("anndata")
    return netbic.datasets.t_cells()


def auc(score, positive):
    n = positive.sum()
    return mannwhitneyu(score[positive], score[~positive]).statistic / (n * (~positive).sum())


def test_the_files_are_small_and_all_of_them_are_described():
    data = [path for path in FILES.iterdir() if path.suffix not in (".md", ".txt")]
    assert sum(path.stat().st_size for path in data) < 4_000_000
    readme = (FILES / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in FILES.iterdir()} - {"README.md"} <= set(re.findall(r"`([\w.-]+)`", readme))


def test_descriptions_state_source_licence_and_changes(bacteria, cohort, cells):
    licences = {"ecoli": "MIT", "ovarian": "Artistic-2.0", "t_cells": "MIT"}
    texts = {"ecoli": bacteria.description, "ovarian": cohort.description, "t_cells": cells.uns["description"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, text in texts.items():
        assert re.search(r"^- Source: .*https://github.com/", text, re.MULTILINE)
        assert re.search(rf"^- Licence: {licences[name]}\b.*LICENSE-{name}.txt", text, re.MULTILINE)
        assert re.search(r"^- Changes: \w+", text, re.MULTILINE)
        assert licences[name] in project["license"].split(" AND ")
        holder = re.search(r"Copyright \(c\) [^;]+", text)
        assert holder is None or holder[0] in (FILES / f"LICENSE-{name}.txt").read_text(encoding="utf-8")
        assert any((FILES / f"LICENSE-{name}.txt") in ROOT.glob(pattern) for pattern in project["license-files"])
        for other in texts.keys() - {name}:
            assert texts[other] not in text


def test_numbers_in_the_descriptions_are_those_of_the_data(bacteria, cohort, cells):
    conditions = len(bacteria.sample_info[["project", "condition"]].drop_duplicates())
    assert f"{len(bacteria.expression)} samples ({conditions} conditions" in bacteria.description
    for data in (bacteria, cohort):
        assert f"{data.expression.shape[1]:,} genes" in data.description
    assert f"{len(bacteria.regulons)} regulators" in bacteria.description
    types = cohort.sample_info["tissue"].value_counts()
    assert f"{types['tumor']} primary tumours, {types['metastatic']} metastases" in cohort.description
    known = cohort.sample_info[list(cohort.survival)].dropna()
    assert f"{len(known)} patients, {known['os_event'].sum():.0f} deaths" in cohort.description
    assert f"{cells.n_vars:,} genes in {cells.n_obs:,} T cells" in cells.uns["description"]
    assert cells.obs[["donor", "batch"]].nunique().to_dict() == {"donor": 7, "batch": 3}


def test_values_are_plausible(bacteria, cohort, cells):
    per_million = (2**bacteria.expression - 1).sum(axis=1)
    assert per_million.between(999_900, 1_000_100).all()
    assert bacteria.expression.std().min() > 0
    assert set(bacteria.expression.columns) >= {gene for genes in bacteria.regulons.values() for gene in genes}
    assert not cohort.expression.isna().any(axis=None)
    assert cohort.expression.index.equals(cohort.sample_info.index)
    assert cohort.expression.abs().max().max() < 10
    assert sp.issparse(cells.X)
    assert np.array_equal(cells.X.data, np.rint(cells.X.data))
    assert cells.X.data.min() == 1
    assert (np.asarray((cells.X > 0).sum(axis=0)).ravel() >= 20).all()


def test_known_genes_follow_what_they_should(bacteria, cohort, cells):
    """A deleted gene is gone; proliferation is low in healthy tissue, WT1 is serous; cells have their markers."""
    deleted = bacteria.sample_info["condition"].str.startswith("delfur").to_numpy()
    assert auc(bacteria.expression["b0683"].to_numpy(), deleted) < 0.02
    info = cohort.sample_info
    assert auc(cohort.expression["TOP2A"].to_numpy(), (info["tissue"] == "healthy").to_numpy()) < 0.05
    known = info["histology"].notna()
    serous = (info["histology"] == "serous")[known].to_numpy()
    assert auc(cohort.expression.loc[known, "WT1"].to_numpy(), serous) > 0.75
    markers = {"T_mait": "KLRB1", "CytoT_GZMH+": "GZMH", "T8_naive": "CD8B", "T4_reg": "FOXP3"}
    for cell_type, gene in markers.items():
        found = np.asarray((cells[:, gene].X > 0).todense()).ravel()
        shares = pd.Series(found).groupby(cells.obs["cell_type"].to_numpy(), observed=True).mean()
        assert shares.idxmax() == cell_type


def test_regulons_of_bacteria_are_recovered(bacteria):
    model = netbic.SparseGraphSVD(92, random_state=0).fit(bacteria.expression)
    genes = bacteria.expression.columns
    known = np.array([genes.isin(own) for own in bacteria.regulons.values() if len(own) >= 5])
    shared = known.astype(float) @ model.columns_.T
    index = shared / (known.sum(axis=1)[:, None] + model.columns_.sum(axis=1) - shared)
    assert len(known) == 156
    assert (index.max(axis=1) >= 0.5).sum() >= 18
    recovery, relevance = index.max(axis=1).mean(), index.max(axis=0).mean()
    assert 2 * recovery * relevance / (recovery + relevance) > 0.22


def test_modules_of_tumours_go_with_labels_and_survival(cohort):
    model = netbic.SparseGraphSVD(15, random_state=0).fit(cohort.expression)
    genes = cohort.expression.columns
    programs = [["FAP", "LUM", "COL10A1"], ["ASPM", "CENPF", "BIRC5"], ["CD2", "CXCL9", "CCR5"]]
    for leading in programs:  # stroma, proliferation, immune cells
        assert model.columns_[:, genes.isin(leading)].all(axis=1).any()
    found = netbic.associate(model, cohort.expression, cohort.sample_info, survival=cohort.survival).table
    best = found.groupby("variable")["q"].min()
    assert best["tissue"] < 1e-5
    assert best["stage"] < 1e-3
    assert best["os_days"] < 0.05


def test_modules_of_cells_are_their_types(cells):
    adata = cells.copy()
    adata.X = sp.csr_matrix(adata.X.multiply(1e4 / adata.X.sum(axis=1)))
    adata.X.data = np.log1p(adata.X.data)
    netbic.tl.modules(adata, n_modules=10, random_state=0)
    netbic.tl.verdicts(adata, random_state=0)
    words, scores = adata.uns["netbic"]["verdicts"]["verdict"].to_numpy(), netbic.get.scores_df(adata).to_numpy()
    for cell_type, least in {"T_mait": 0.95, "T8_naive": 0.9}.items():
        own = (adata.obs["cell_type"] == cell_type).to_numpy()
        areas = np.array([abs(auc(score, own) - 0.5) + 0.5 for score in scores.T])
        assert areas.max() > least
        assert words[areas.argmax()] == "strong"


def test_the_data_are_excerpts_of_the_originals(bacteria, cohort, cells, real_data):
    genes, regulons = excerpts.ecoli(real_data)
    assert np.allclose(bacteria.expression.T, genes, rtol=0, atol=1e-6)
    assert {name: list(own) for name, own in bacteria.regulons.items()} == regulons
    genes, samples = excerpts.ovarian(real_data)
    assert list(genes.index) == list(cohort.expression.columns)
    assert np.allclose(cohort.expression.T, genes, rtol=0, atol=1e-6)
    tables = [table.astype(object).where(table.notna(), None) for table in (samples, cohort.sample_info)]
    assert tables[0].equals(tables[1])
    part = excerpts.t_cells(real_data)
    assert part.obs.astype(str).equals(cells.obs.astype(str))
    assert list(part.var_names) == list(cells.var_names)
    assert (part.X != cells.X).nnz == 0
