"""Independent component analysis of the genes (scikit-learn's FastICA, once).

10 components if no number is asked for. It has no rule for the members of a module: they are the features with outlying
weights. The scores are the columns of its mixing matrix.
"""

from problem import Found, outlying
from sklearn.decomposition import FastICA

NAME, ENVIRONMENT = "ICA", "netbic"


def run(problem):
    model = FastICA(problem.k or 10, random_state=problem.seed, max_iter=300, whiten="unit-variance")
    weights = model.fit_transform((problem.X - problem.X.mean(axis=0)).T)
    return Found(weights, outlying(weights), model.mixing_)
