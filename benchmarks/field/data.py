"""Data of the benchmark: `load(name)` gives an instance, for example `load("halves/brca/0/a")`.

    planted/SCENARIO/SEED        simulated (scenarios.py), or planted into real tumours
    regulons/ORGANISM/SEED       compendia of bacteria and their known regulons
    labelled/NAME/SEED           tumours, cell lines and single cells with labels
    halves/NAME/SEED/a or b      random halves of the samples of a cohort
    studies/NAME/SEED/STUDY      two studies of one disease, on common genes, without patients in both
    cohorts/NAME/SEED            gastric and ovarian tumours on common genes
    noise/KIND/SAMPLES/SEED      data without modules
    speed/KIND/SAMPLESxGENES     simulated data of growing size

Everybody is given the same matrix on a log scale, neither centred nor scaled. Of more than 6,000 genes those with the
largest variance are kept, of single cells the 2,000 genes with the largest variance. Missing entries (2,271, all in the
ovarian cohort) are filled with the mean of the gene. Labelled data, compendia, studies and cohorts have all samples for
seed 0, and a random four fifths of them for other seeds; of T cells, 5,000 random cells for every seed.

Real data are read from the folder in NETBIC_DATA, which is not part of the repository.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from .scenarios import NEW, SCENARIOS, Planted, disjoint_sets, groups, random_sets, weights_of

FILES = {
    "brca": "expr_tcga_brca_agilent2012",
    "brca_rnaseq": "expr_tcga_brca_rnaseq",
    "coadread": "expr_tcga_coadread_rnaseq",
    "gastric": "bulk_gastric_gse26901",
    "ovarian": "bulk_ovarian_gse51088",
    "ccle": "small_ccle_subset",
    "ecoli": "regulon_ecoli",
    "bsubtilis": "regulon_bsubtilis",
}
LABELS = {
    "brca": ["pam50", "er_status"],
    "gastric": ["subtype_ep_mp", "sex", "stage"],
    "ovarian": ["sample_type", "histology"],
}
SURVIVAL = {"gastric": ("os_months", "os_event"), "ovarian": ("os_days", "os_event")}


class Data(NamedTuple):
    X: pd.DataFrame  # samples x genes
    truth: np.ndarray | None = None  # planted or known modules x genes, boolean
    targets: pd.DataFrame | None = None  # samples x classes: 1, 0, or NaN for a sample without a label
    counts: np.ndarray | None = None
    edges: np.ndarray | None = None


@lru_cache(maxsize=4)
def load(name: str) -> Data:
    kind, *rest = name.split("/")
    return KINDS[kind](*rest)


def available() -> bool:
    return Path(os.environ.get("NETBIC_DATA", "nowhere")).is_dir()


def needs_files(name):
    """Whether an instance is made of real data."""
    kind, second = name.split("/")[:2]
    return kind not in ("planted", "noise", "speed") or second in IN_REAL or second == "permuted"


# Real data


def folder() -> Path:
    return Path(os.environ["NETBIC_DATA"])


@cache
def expression(name, n_genes=6000):
    """Samples x genes; of many genes those with the largest variance."""
    X = pd.read_parquet(folder() / f"{FILES[name]}.parquet").T.astype(float)
    X = X.fillna(X.mean())
    return X.loc[:, X.columns.isin(X.var().nlargest(n_genes).index)] if X.shape[1] > n_genes else X


def sample_table(name):
    return pd.read_csv(folder() / f"{FILES[name]}_samples.tsv", sep="\t", index_col=0)


def survival(name):
    """Times and whether death was seen, of patients for whom both are known."""
    table = sample_table(name)[list(SURVIVAL[name])].dropna()
    return table.set_axis(["time", "event"], axis=1).astype({"event": bool})


def sampled(X, seed):
    """All samples for seed 0, otherwise four fifths of them."""
    rows = np.random.default_rng(seed).permutation(len(X))[: round(0.8 * len(X))]
    return X if seed == 0 else X.iloc[np.sort(rows)]


def network(genes):
    """Edges of Pathway Commons as numbers of genes."""
    table = pd.read_parquet(folder() / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    numbers = np.column_stack([pd.Index(genes).get_indexer(table[side]) for side in table])
    return numbers[(numbers >= 0).all(axis=1)]


def targets(table, least=10):
    """An indicator of every class with at least ten samples; one for a label with two classes."""
    found = {}
    for label, values in table.items():
        number = values.value_counts()
        classes = sorted(number.index[number >= least])
        for one in classes[: 1 if len(number) == 2 else None]:
            found[f"{label}: {one}"] = (values == one).astype(float).where(values.notna())
    return pd.DataFrame(found)


def regulons(name, seed):
    X = sampled(expression(name), int(seed))
    table = pd.read_csv(folder() / f"{FILES[name]}_regulons.tsv", sep="\t").groupby("regulator")["gene_id"].agg(set)
    truth = np.array([X.columns.isin(list(genes)) for genes in table if len(genes) >= 5])
    return Data(X, truth)


def labelled(name, seed):
    if name in SINGLE_CELLS:
        return SINGLE_CELLS[name](int(seed))
    X = sampled(expression(name), int(seed))
    if name == "ccle":
        whole = expression(name).index.to_series()
        table = whole.str.split("_", n=1).str[1].to_frame("tissue")
    else:
        table = sample_table(name)[LABELS[name]]
    return Data(X, targets=targets(table).loc[X.index], edges=network(X.columns))


def normalised(counts):
    return np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def variable_genes(counts, table, n_genes=2000):
    """Log counts per 10,000, and counts, of the genes with the largest variance of the former."""
    X = normalised(counts.to_numpy())
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_genes])
    kept = kept[X[:, kept].std(axis=0) > 0]
    X = pd.DataFrame(X[:, kept], counts.index, counts.columns[kept])
    return Data(X, targets=targets(table).loc[X.index], counts=counts.to_numpy()[:, kept])


def kang(seed):
    counts = pd.read_parquet(folder() / "small_pbmc_kang_counts.parquet").T.astype(float)
    table = pd.read_csv(folder() / "small_pbmc_kang_cells.tsv", sep="\t", index_col=0)
    return variable_genes(sampled(counts, seed), table[["sample", "celltype"]])


def t_cells(seed):
    import anndata

    adata = anndata.read_h5ad(folder() / "sc_tcells_7donors.h5ad")
    rows = np.sort(np.random.default_rng(seed).permutation(adata.n_obs)[:5000])
    counts = pd.DataFrame(adata.X[rows].toarray().astype(float), adata.obs_names[rows], adata.var_names)
    return variable_genes(counts, adata.obs[["celltype"]].astype(object))


SINGLE_CELLS = {"pbmc": kang, "tcells": t_cells}


def half(name, seed, part):
    X = expression(name)
    order = np.random.default_rng(int(seed)).permutation(len(X))
    return Data(X.iloc[np.sort(np.array_split(order, 2)["ab".index(part)])], edges=network(X.columns))


@cache
def two_studies(name):
    """RNA-seq and arrays of breast tumours; patients of the former are left out of the latter."""
    if name != "brca":
        raise ValueError(f"studies of {name!r}: there are those of 'brca'")
    one, two = expression("brca_rnaseq", 20_000), expression("brca")
    genes = one.columns.intersection(two.columns)
    return {"rnaseq": one[genes], "arrays": two.loc[~two.index.isin(one.index.str[:12]), genes]}


def study(name, seed, which):
    X = sampled(two_studies(name)[which], int(seed))
    return Data(X, edges=network(X.columns))


def cohort(name, seed):
    """Gastric or ovarian tumours on their common genes."""
    tables = {each: expression(each, 20_000) for each in SURVIVAL}
    X = sampled(tables[name][tables["gastric"].columns.intersection(tables["ovarian"].columns)], int(seed))
    return Data(X, edges=network(X.columns))


# Simulated data


def numbered(X):
    return pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])])


def in_real(name, rng, share=None):
    """Five modules of 20 to 320 random genes, planted into real data; their scores are 0.8 standard deviations."""
    X = expression(name).to_numpy()
    members = random_sets([20, 40, 80, 160, 320], X.shape[1], rng)
    scores = rng.standard_normal((len(X), 5)) if share is None else groups(len(X), 5, share, rng) / 0.4
    return Planted(X + 0.8 * X.std(axis=0) * (scores @ weights_of(members, rng)), members, scores)


IN_REAL = {
    "in_breast_tumours": lambda rng: in_real("brca", rng),
    "in_breast_tumours_in_groups": lambda rng: in_real("brca", rng, 0.2),
    "in_gastric_tumours": lambda rng: in_real("gastric", rng),
}
PLANTED = SCENARIOS | NEW | IN_REAL


def planted(scenario, seed):
    made = PLANTED[scenario](np.random.default_rng([int(seed), 2027]))
    varies = made.X.std(axis=0) > 0
    counts = None if made.counts is None else made.counts[:, varies]
    return Data(numbered(made.X[:, varies]), made.members[:, varies], counts=counts)


def noise_counts(rng, n, p):
    """Negative binomial counts of uneven genes, in samples of uneven depth."""
    rate = np.exp(rng.normal(1.0, 1.5, p) + rng.normal(0.0, 0.6, (n, 1)))
    return rng.poisson(rate * rng.gamma(5.0, 0.2, (n, p)))


def permuted(rng, n, p):
    """Gastric tumours in which the samples of every gene are permuted on their own."""
    X = expression("gastric").to_numpy()
    rows, genes = rng.permutation(len(X))[:n], rng.choice(X.shape[1], p, replace=False)
    return rng.permuted(X[np.ix_(rows, genes)], axis=0)


NOISE = {
    "normal": lambda rng, n, p: rng.standard_normal((n, p)),
    "heavy_tails": lambda rng, n, p: rng.standard_t(3, (n, p)),
    "permuted": permuted,
}


def noise(kind, n, seed, p=2000):
    rng = np.random.default_rng([int(seed), int(n), 2027])
    if kind != "counts":
        return Data(numbered(NOISE[kind](rng, int(n), p)))
    counts = noise_counts(rng, int(n), p)
    counts = counts[:, counts.std(axis=0) > 0]
    return Data(numbered(normalised(counts)), counts=counts)


def speed(kind, size):
    """Ten modules; cells have sparse counts, which are given dense, like their logarithms (float32)."""
    n, p = (int(part) for part in size.split("x"))
    rng = np.random.default_rng([n, p, 2027])
    members = disjoint_sets([p // 50] * 10, p, rng)
    weights = weights_of(members, rng)
    if kind == "bulk":
        return Data(numbered(rng.standard_normal((n, 10)) @ weights + rng.standard_normal((n, p))), members)
    scores, level = groups(n, 10, 0.1, rng).astype(np.float32), rng.normal(-2.0, 1.0, p)
    rate = np.exp((scores @ weights.astype(np.float32)) + level.astype(np.float32))
    counts = rng.poisson(rate).astype(np.int32)
    return Data(numbered(normalised(counts.astype(np.float32)).astype(np.float32)), members, counts=counts)


KINDS = {
    "planted": planted,
    "regulons": regulons,
    "labelled": labelled,
    "halves": half,
    "studies": study,
    "cohorts": cohort,
    "noise": noise,
    "speed": speed,
}
