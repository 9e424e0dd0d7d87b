"""Principal component analysis of the centred features (10 components if no number is asked for).

It has no rule for the members of a module: they are the features with outlying weights.
"""

import numpy as np
from problem import Found, outlying

NAME, ENVIRONMENT = "PCA", "netbic"


def run(problem):
    _, _, Vt = np.linalg.svd(problem.X - problem.X.mean(axis=0), full_matrices=False)
    weights = Vt[: problem.k or 10].T
    return Found(weights, outlying(weights))
