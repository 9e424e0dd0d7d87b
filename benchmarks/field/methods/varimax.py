"""Principal components whose loadings are rotated by varimax (10 components if no number is asked for).

The raw criterion, without Kaiser's normalisation, as is usual for loadings of genes. It has no rule for the members of
a module: they are the features with outlying loadings.
"""

import numpy as np
from problem import Found, outlying

NAME, ENVIRONMENT = "varimax", "netbic"


def run(problem):
    k = problem.k or 10
    _, d, Vt = np.linalg.svd(problem.X - problem.X.mean(axis=0), full_matrices=False)
    weights = rotated(Vt[:k].T * d[:k])
    return Found(weights, outlying(weights))


def rotated(loadings, max_iter=200, tol=1e-6):
    rotation = np.eye(loadings.shape[1])
    for _ in range(max_iter):
        z = loadings @ rotation
        u, _, vt = np.linalg.svd(loadings.T @ (z**3 - z * (z**2).mean(axis=0)))
        before, rotation = rotation, u @ vt
        if np.abs(rotation - before).max() < tol:
            break
    return loadings @ rotation
