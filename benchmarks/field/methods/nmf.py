"""Non-negative matrix factorisation (scikit-learn, its defaults; 10 components if no number is asked for).

A feature with negative values is shifted so that its minimum is zero. Components share much of the mean of each
feature, so a weight is what a component of unit length has beyond the mean of all components. There is no rule for the
members of a module: they are the features with outlying high weights. The scores are those of the factorisation.
"""

import numpy as np
from problem import Found, outlying
from sklearn.decomposition import NMF

NAME, ENVIRONMENT = "NMF", "netbic"


def run(problem):
    model = NMF(problem.k or 10, random_state=problem.seed, max_iter=300)
    scores = model.fit_transform(problem.X - np.minimum(problem.X.min(axis=0), 0.0))
    H = model.components_.T
    weights = H / np.maximum(np.linalg.norm(H, axis=0), 1e-12)
    weights -= weights.mean(axis=1, keepdims=True)
    return Found(weights, outlying(weights, signed=True), scores)
