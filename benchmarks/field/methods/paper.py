"""Sparse graph-regularised SVD with L0 penalties (L0-sgSVD*; Min et al.), which netbic extends.

netbic's implementation of the published algorithm and of the convention of its tumour application: centred genes,
sigma 0.4. There, a module has 50 of about 500 samples and 200 of about 13,000 genes. Here it has the same shares, but
at least 50 features (`netbic.methods.usual_sizes`). 10 modules if no number is asked for; without a network sigma
has no effect, and the method is L0-SVD. The scores are those of the modules: zero for samples outside.
"""

import numpy as np
import pandas as pd
from problem import Found

from netbic import Graph, method
from netbic.methods import usual_sizes

NAME, ENVIRONMENT = "sgSVD*", "netbic"


def run(problem):
    n_rows, n_columns = usual_sizes(*problem.X.shape)
    sizes = {"n_rows": n_rows, "n_columns": n_columns, "center": "columns", "random_state": problem.seed}
    if problem.edges is not None:
        network = Graph.from_edges(pd.DataFrame(problem.edges), nodes=np.arange(problem.X.shape[1]))
        sizes |= {"column_graph": network, "column_sigma": 0.4}
    model = method("sgSVD*", problem.k or 10, **sizes).fit(problem.X)
    return Found(model.components_.T, model.columns_, model.left_vectors_ * model.singular_values_)
