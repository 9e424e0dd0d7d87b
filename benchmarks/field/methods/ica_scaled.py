"""ICA after netbic's default scaling, to show what the scaling alone changes.

Features are divided by the square root of their standard deviation (by its power 0.8 if most values are zero). All else
is as for ICA.
"""

import numpy as np
from problem import Found, outlying
from sklearn.decomposition import FastICA

NAME, ENVIRONMENT, RANKED = "ICA, scaled", "netbic", False


def run(problem):
    power = 0.8 if np.mean(problem.X == 0) > 0.5 else 0.5
    factors = np.maximum(problem.X.std(axis=0), 1e-9) ** -power
    model = FastICA(problem.k or 10, random_state=problem.seed, max_iter=300, whiten="unit-variance")
    weights = model.fit_transform(((problem.X - problem.X.mean(axis=0)) * factors).T)
    return Found(weights * factors[:, None], outlying(weights), model.mixing_)
