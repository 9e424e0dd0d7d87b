"""Multi-omics factor analysis with one view (mofapy2 0.7.5, its default options: spike and slab weights, ARD).

10 factors, its default, if no number is asked for; its default drops none. Members are the features whose posterior
probability of a weight other than zero, under the spike and slab prior, is more than a half. The scores are its
factors.
"""

from contextlib import redirect_stdout
from io import StringIO

from mofapy2.run.entry_point import entry_point
from problem import Found

NAME, ENVIRONMENT = "MOFA", "mofa"


def run(problem):
    with redirect_stdout(StringIO()):
        fit = entry_point()
        fit.set_data_options()
        fit.set_data_matrix([[problem.X]])
        fit.set_model_options(factors=problem.k or 10)
        fit.set_train_options(seed=problem.seed, quiet=True)
        fit.build()
        fit.run()
    posterior = fit.model.nodes["W"].getExpectations()[0]
    return Found(posterior["E"], posterior["EB"].T > 0.5, fit.model.nodes["Z"].getExpectations()["E"])
