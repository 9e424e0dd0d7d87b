"""netbic with its defaults: the number of modules and their sizes come from the data."""

from problem import Found

from netbic import SparseGraphSVD

NAME, ENVIRONMENT, CHOOSES = "netbic", "netbic", True


def run(problem):
    model = SparseGraphSVD(random_state=problem.seed).fit(problem.X)
    factors = 1.0 if model.scaler_.factors is None else model.scaler_.factors
    return Found((model.components_ * factors).T, model.columns_)
