"""Sparse principal components by penalised matrix decomposition (Witten et al., Biostatistics 2009).

netbic's implementation of `PMA::SPC` with its default bound for the features, sumabsv=4, on centred features; all
samples have a weight. 10 components if no number is asked for. Members are the features with a weight.
"""

from problem import Found

from netbic import Dense, L1Ball, method

NAME, ENVIRONMENT = "SPC", "netbic"


def run(problem):
    settings = {"center": "columns", "random_state": problem.seed}
    settings |= {"row_penalty": Dense(), "column_penalty": L1Ball(4.0)}
    model = method("PMD", problem.k or 10, **settings).fit(problem.X)
    return Found(model.components_.T, model.columns_)
