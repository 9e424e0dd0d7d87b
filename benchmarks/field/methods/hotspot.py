"""Modules of genes with local correlations among similar cells (hotspotsc 1.1.3), for counts of single cells only.

As in its manual: the null model is "danb", cells have 30 neighbours, and modules are made of all genes with an
autocorrelation of FDR below 0.05, with core genes only, at an FDR of 0.05, and 30 genes at least. As in its tutorial of
CD4 T cells: genes are in more than 10 cells, and neighbours are those in the first 10 principal components of
standardised log counts. It chooses the number of modules. Scores are its module scores.
"""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import anndata
import numpy as np
from hotspot import Hotspot
from problem import Found, sets_to_weights
from scipy.sparse import csc_matrix
from sklearn.decomposition import PCA

NAME, ENVIRONMENT, CHOOSES = "Hotspot", "hotspot", True


def run(problem):
    if problem.counts is None:
        raise NotImplementedError("it is meant for counts of single cells")
    genes = np.flatnonzero((problem.counts > 0).sum(axis=0) > 10)
    adata = anndata.AnnData(csc_matrix(problem.counts[:, genes].astype(float)))
    adata.var_names = [str(gene) for gene in genes]
    adata.obs["total_counts"] = problem.counts.sum(axis=1).astype(float)
    adata.obsm["X_pca"] = components(problem.counts[:, genes], problem.counts.sum(axis=1), problem.seed)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        model = Hotspot(adata, model="danb", latent_obsm_key="X_pca", umi_counts_obs_key="total_counts")
        model.create_knn_graph(weighted_graph=False, n_neighbors=30)
        results = model.compute_autocorrelations()
        model.compute_local_correlations(results.index[results["FDR"] < 0.05])
        module = model.create_modules(min_gene_threshold=30, core_only=True, fdr_threshold=0.05)
        scores = model.calculate_module_scores()
    numbers = sorted(set(module) - {-1})
    members = np.zeros((len(numbers), problem.X.shape[1]), bool)
    for own, number in zip(members, numbers, strict=True):
        own[module.index[module == number].astype(int)] = True
    return Found(sets_to_weights(problem.X, members), members, scores[numbers].to_numpy())


def components(counts, depth, seed):
    """Ten principal components of standardised log counts."""
    X = np.log1p(1e4 * counts / depth[:, None])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    return PCA(10, random_state=seed).fit_transform(np.minimum(X, 10.0))
