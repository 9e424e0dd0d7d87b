"""netbic told the number of modules, without scaling of the features, to show what the scaling alone changes."""

from problem import Found

from netbic import SparseGraphSVD

NAME, ENVIRONMENT, RANKED = "netbic, unscaled", "netbic", False


def run(problem):
    model = SparseGraphSVD(problem.k or 10, scale=False, random_state=problem.seed).fit(problem.X)
    return Found(model.components_.T, model.columns_)
