"""Methods: each takes a matrix (samples x features) and a number of modules, and returns weights and members."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.decomposition import NMF, FastICA


class Found(NamedTuple):
    weights: np.ndarray  # features x modules: the score of a sample is its centred values times these
    members: np.ndarray  # modules x features, boolean


def outlying(weights, limit=4.0, least=3):
    """Features whose weight is more than `limit` robust standard deviations from the median (`least` at least)."""
    away = np.abs(weights - np.median(weights, axis=0))
    members = away > limit * 1.4826 * np.median(away, axis=0)
    for own, order in zip(members.T, np.argsort(-away, axis=0).T, strict=True):
        if own.sum() < least:
            own[order[:least]] = True
    return members.T


def principal(X, k):
    _, d, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return d[:k], Vt[:k].T


def pca(X, k, seed=0, limit=4.0):
    weights = principal(X, k)[1]
    return Found(weights, outlying(weights, limit))


def varimax(X, k, seed=0, limit=4.0):
    """Principal components, rotated to a few large loadings per component."""
    d, V = principal(X, k)
    loadings = V * d
    rotation = np.eye(loadings.shape[1])
    for _ in range(200):
        z = loadings @ rotation
        u, _, w = np.linalg.svd(loadings.T @ (z**3 - z * (z**2).mean(axis=0)))
        before, rotation = rotation, u @ w
        if np.abs(rotation - before).max() < 1e-6:
            break
    weights = loadings @ rotation
    return Found(weights, outlying(weights, limit))


def ica(X, k, seed=0, limit=4.0):
    """Independent gene weights, as for iModulons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = FastICA(k, random_state=seed, max_iter=300, whiten="unit-variance").fit_transform(
            (X - X.mean(axis=0)).T
        )
    return Found(weights, outlying(weights, limit))


def nmf(X, k, seed=0, limit=4.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low = np.minimum(X.min(axis=0), 0.0) if (X < 0).any() else 0.0
        H = NMF(k, init="nndsvda", random_state=seed, max_iter=300).fit(X - low).components_.T
    weights = H / np.maximum(np.linalg.norm(H, axis=0), 1e-12)
    weights = weights - weights.mean(axis=1, keepdims=True)  # what is particular to a component
    return Found(weights, outlying(weights, limit))


def correlation_clusters(X, k, seed=0):
    """Average linkage of 1 - |r|, cut where most clusters have ten features or more, up to k of them."""
    R = np.corrcoef(X.T + 0.0)
    R = np.nan_to_num(R)
    distance = 1.0 - np.abs(R)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    best, most = None, -1
    for height in np.quantile(tree[:, 2], np.linspace(0.02, 0.999, 60)):
        labels = fcluster(tree, height, "distance")
        large = (np.bincount(labels) >= 10).sum()
        if most < large <= k or (large <= k and large == most):
            best, most = labels, large
    sizes = np.bincount(best)
    chosen = np.argsort(-sizes)[: min(k, int((sizes >= 5).sum()))]
    members = np.array([best == label for label in chosen])
    Y, weights = X - X.mean(axis=0), np.zeros((X.shape[1], len(chosen)))
    for j, own in enumerate(members):
        weights[own, j] = np.linalg.svd(Y[:, own] / np.maximum(Y[:, own].std(axis=0), 1e-9), full_matrices=False)[2][0]
    return Found(weights, members)


def netbic(X, k, seed=0):
    from netbic import SparseGraphSVD

    model = SparseGraphSVD(k, search="joint", tol=1e-5, random_state=seed).fit(X)
    factors = 1.0 if model.scaler_.factors is None else model.scaler_.factors
    return Found((model.components_ * factors).T, model.columns_)


METHODS = {
    "PCA": pca,
    "varimax": varimax,
    "ICA": ica,
    "NMF": nmf,
    "correlation": correlation_clusters,
    "netbic": netbic,
}
