"""Stabilised independent component analysis (stabilized-ica 2.0.0): FastICA many times, and clusters of components.

30 runs, as in its example, on centred genes; defaults otherwise (average linkage, centrotypes). 10 components if no
number is asked for. It has no rule for the members of a module: they are the features with outlying weights.
"""

import numpy as np
from problem import Found, outlying
from sica.base import StabilizedICA

NAME, ENVIRONMENT = "stabilised ICA", "stabilized_ica"


def run(problem):
    np.random.seed(problem.seed)  # noqa: NPY002 (it has no argument for a seed)
    X = problem.X - problem.X.mean(axis=0)
    model = StabilizedICA(n_components=problem.k or 10, n_runs=30).fit(X)
    return Found(model.S_.T, outlying(model.S_.T), X @ np.linalg.pinv(model.S_))
