"""netbic told the number of modules (10 if no number is asked for); their sizes come from the data."""

from problem import Found

from netbic import SparseGraphSVD

NAME, ENVIRONMENT, RANKED = "netbic, number told", "netbic", False


def run(problem):
    model = SparseGraphSVD(problem.k or 10, random_state=problem.seed).fit(problem.X)
    factors = 1.0 if model.scaler_.factors is None else model.scaler_.factors
    return Found((model.components_ * factors).T, model.columns_)
