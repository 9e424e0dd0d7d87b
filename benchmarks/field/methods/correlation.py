"""Clusters of features by average linkage of 1 - |r| (SciPy; 10 clusters if no number is asked for).

The tree is cut, at one height of 60, where most clusters have ten features or more, but no more clusters than are asked
for. A cluster of at least five features is a module. Clusters have no scores: see `sets_to_weights`.
"""

import numpy as np
from problem import Found, sets_to_weights
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

NAME, ENVIRONMENT = "correlation", "netbic"


def run(problem):
    k = problem.k or 10
    distance = 1.0 - np.abs(np.nan_to_num(np.corrcoef(problem.X.T)))
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    cuts = [fcluster(tree, height, "distance") for height in np.quantile(tree[:, 2], np.linspace(0.02, 0.999, 60))]
    labels = max(reversed(cuts), key=lambda cut: n_large(cut, k))
    sizes = np.bincount(labels)
    members = np.array([labels == label for label in np.argsort(-sizes)[:k] if sizes[label] >= 5], bool)
    members = members.reshape(-1, problem.X.shape[1])
    return Found(sets_to_weights(problem.X, members), members)


def n_large(labels, k):
    """Number of clusters of ten features or more; -1 if there are more than k."""
    number = (np.bincount(labels) >= 10).sum()
    return number if number <= k else -1
