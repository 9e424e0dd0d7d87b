"""Consensus non-negative matrix factorisation (cnmf 1.7.1): 100 runs, its default density threshold 0.5.

It gets counts if there are any (without cells and genes that have none). Otherwise it gets X, with features that have
negative values shifted so that their minimum is zero, both as the data and as their normalised form, so that it does
not normalise by depth. The 2,000 most overdispersed genes are factorised, its default; all genes get a score. 10
programmes if no number is asked for. Weights are its gene scores (regression coefficients of standardised genes); it
has no rule for the members of a module: they are the genes with outlying high scores. The scores of samples are its
usages.
"""

from contextlib import redirect_stdout
from io import StringIO
from tempfile import TemporaryDirectory

import anndata
import numpy as np
from cnmf import cNMF
from problem import Found, outlying
from scipy.sparse import csr_matrix

NAME, ENVIRONMENT = "cNMF", "cnmf"


def run(problem):
    k, threshold = problem.k or 10, 0.5
    data = problem.X - np.minimum(problem.X.min(axis=0), 0.0) if problem.counts is None else problem.counts
    kept = data.std(axis=0) > 0
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        file = f"{folder}/data.h5ad"
        anndata.AnnData(csr_matrix(data[:, kept].astype(float))).write_h5ad(file)
        model = cNMF(folder, "run")
        normalised = file if problem.counts is None else None
        model.prepare(file, [k], n_iter=100, seed=problem.seed, tpm_fn=normalised)
        model.factorize()
        model.combine()
        model.consensus(k, density_threshold=threshold, show_clustering=False)
        usages, gene_scores, _, _ = model.load_results(k, threshold)
    coefficients = np.zeros((len(kept), k))
    coefficients[kept] = gene_scores.to_numpy()
    weights = coefficients / np.maximum(problem.X.std(axis=0), 1e-9)[:, None]
    return Found(weights, outlying(coefficients, signed=True), usages.to_numpy())
