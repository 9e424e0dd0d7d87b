"""Tasks: each runs one method and returns a dict of figures (larger is better).

Data are read from the folder in NETBIC_DATA (not part of the repository). Nothing is tuned to a data set: a method gets
the matrix and the number of modules.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from .scenarios import SCENARIOS


def data_folder() -> Path:
    return Path(os.environ["NETBIC_DATA"])


@cache
def expression(name, n_features=0):
    """Samples x features, as a DataFrame; of many features those with the largest variance."""
    X = pd.read_parquet(data_folder() / f"{name}.parquet").T.astype(float)
    return X[X.var().nlargest(n_features).index] if n_features else X


def labels(name, samples):
    return pd.read_csv(data_folder() / f"{name}_samples.tsv", sep="\t", index_col=0).reindex(samples)


def jaccard(found, truth):
    shared = found.astype(float) @ truth.astype(float).T
    return shared / np.maximum(found.sum(1)[:, None] + truth.sum(1)[None] - shared, 1)


def scores_of(X, weights):
    return (X - X.mean(axis=0)) @ weights


def auc(score, positive):
    n = positive.sum()
    area = (rankdata(score)[positive].sum() - n * (n + 1) / 2) / (n * (~positive).sum())
    return max(area, 1 - area)


def regulons(method, seed):
    """F of recovery and relevance (best Jaccard index), and the regulons found with an index of at least .5."""
    figures = {}
    for name, k in (("regulon_ecoli", 92), ("regulon_bsubtilis", 83)):
        X = expression(name)
        table = pd.read_csv(data_folder() / f"{name}_regulons.tsv", sep="\t").groupby("regulator").gene_id.agg(set)
        truth = np.array([X.columns.isin(list(genes)) for genes in table if len(genes) >= 5])
        members = method(X.to_numpy(), k, seed).members
        index = jaccard(members[members.any(axis=1)], truth)
        recovery, relevance = index.max(axis=0).mean(), index.max(axis=1).mean()
        short = name.removeprefix("regulon_")
        figures[f"{short} F"] = 2 * recovery * relevance / (recovery + relevance)
        figures[f"{short} n"] = int((index.max(axis=0) >= 0.5).sum())
        figures[f"{short} size"] = float(np.median(members.sum(axis=1)))
    return figures


def tumours(method, seed):
    """Ten modules of 516 breast tumours: the best area under the curve for each subtype."""
    name = "expr_tcga_brca_agilent2012"
    X = expression(name)
    known = labels(name, X.index)
    scores = scores_of(X.to_numpy(), method(X.to_numpy(), 10, seed).weights)
    called = known["pam50"].notna().to_numpy()
    figures = {
        kind: max(auc(score, (known["pam50"] == kind).to_numpy()[called]) for score in scores[called].T)
        for kind in ("Basal", "Her2", "LumA", "LumB")
    }
    figures["ER"] = max(auc(score, (known["er_status"] == "ER+").to_numpy()) for score in scores.T)
    return figures


def halves(method, seed):
    """Modules of one half of the samples whose scores (of all samples) correlate by .6 with one of the other half."""
    figures = {}
    for name, n_features in (("expr_tcga_brca_agilent2012", 0), ("expr_tcga_coadread_rnaseq", 6000)):
        X = expression(name, n_features).to_numpy()
        order = np.random.default_rng(seed).permutation(len(X))
        for k in (20, 40):
            one, two = (scores_of(X, method(X[part], k, seed).weights) for part in np.array_split(order, 2))
            r = np.abs(np.corrcoef(one.T, two.T)[: one.shape[1], one.shape[1] :])
            pairs = linear_sum_assignment(-r)
            figures[f"{name.split('_')[2]} {k}"] = int((r[pairs] >= 0.6).sum())
    return figures


def cells(method, seed):
    """Ten modules of T cells of seven donors: the best area under the curve of a cell type, on average."""
    import anndata

    adata = anndata.read_h5ad(data_folder() / "sc_tcells_7donors.h5ad")
    counts = np.asarray(adata.X.todense() if hasattr(adata.X, "todense") else adata.X, dtype=float)
    X = np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    X = X[:, X.var(axis=0) > 0]
    key = next(name for name in adata.obs if "type" in name.lower() or "cluster" in name.lower())
    types = adata.obs[key].astype(str).to_numpy()
    figures = {}
    for k in (10, 20):
        scores = scores_of(X, method(X, k, seed).weights)
        figures[f"cells {k}"] = np.mean([max(auc(s, types == kind) for s in scores.T) for kind in np.unique(types)])
    return figures


def planted(method, seed, factor=1):
    """Gene Jaccard index of planted and found modules, matched one to one, in every scenario."""
    figures = {}
    for name, scenario in SCENARIOS.items():
        X, truth, _ = scenario(np.random.default_rng(seed))
        index = jaccard(method(X, factor * len(truth), seed).members, truth)
        figures[name] = index[linear_sum_assignment(-index)].sum() / len(truth)
    return figures


def planted_twice(method, seed):
    """The same, if twice as many modules are asked for as there are."""
    return planted(method, seed, factor=2)


TASKS = {
    "regulons": regulons,
    "tumours": tumours,
    "halves": halves,
    "cells": cells,
    "planted": planted,
    "planted_twice": planted_twice,
}
