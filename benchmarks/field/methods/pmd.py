"""Penalised matrix decomposition (Witten et al., Biostatistics 2009), on centred features.

netbic's implementation of `PMA::PMD` with its default bound for both sides, sumabs=0.4. (`PMD.cv`, which tunes the
bound for one factor, chose its largest value, 0.7, on simulated data with several modules: no sparsity and worse
modules.) 10 factors if no number is asked for. Members are the features with a weight. The scores are those of the
factors: zero for samples outside.
"""

from problem import Found

from netbic import L1Ball, method

NAME, ENVIRONMENT = "PMD", "netbic"


def run(problem):
    row, column = (L1Ball(max(1.0, 0.4 * size**0.5)) for size in problem.X.shape)
    settings = {"center": "columns", "random_state": problem.seed}
    model = method("PMD", problem.k or 10, row_penalty=row, column_penalty=column, **settings).fit(problem.X)
    return Found(model.components_.T, model.columns_, model.left_vectors_ * model.singular_values_)
