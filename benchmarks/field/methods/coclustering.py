"""Spectral co-clustering (scikit-learn's SpectralCoclustering, its defaults; Dhillon 2001).

Each feature belongs to one of as many clusters as are asked for (10 otherwise); there is no background. A feature with
negative values is shifted so that its minimum is zero. Clusters have no scores: see `sets_to_weights`.
"""

import numpy as np
from problem import Found, sets_to_weights
from sklearn.cluster import SpectralCoclustering

NAME, ENVIRONMENT = "co-clustering", "netbic"


def run(problem):
    X = problem.X - np.minimum(problem.X.min(axis=0), 0.0)
    used = X.any(axis=0)
    model = SpectralCoclustering(problem.k or 10, random_state=problem.seed).fit(X[:, used])
    members = np.zeros((len(model.columns_), len(used)), bool)
    members[:, used] = model.columns_
    return Found(sets_to_weights(problem.X, members), members)
