"""Biclusters by sparse SVD with adaptive lasso penalties (SSVD, also called ALSVD; Lee et al., Biometrics 2010).

netbic's implementation of the published algorithm (equal to the R package s4vd within 1e-10), with the weight
parameters (gamma 2) and the choice of sizes by BIC of the publication, on centred features. Layers are found one after
another (10 if no number is asked for). Members are the features with a weight. The scores are those of the biclusters:
zero for samples outside.
"""

from problem import Found

from netbic import method

NAME, ENVIRONMENT = "SSVD", "netbic"


def run(problem):
    model = method("ALSVD", problem.k or 10, center="columns", random_state=problem.seed).fit(problem.X)
    return Found(model.components_.T, model.columns_, model.left_vectors_ * model.singular_values_)
