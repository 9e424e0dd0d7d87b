"""netbic told the number of modules (10 if no number is asked for), with a network of the features."""

import numpy as np
import pandas as pd
from problem import Found

from netbic import Graph, SparseGraphSVD

NAME, ENVIRONMENT, RANKED = "netbic, network", "netbic", False


def run(problem):
    if problem.edges is None:
        raise NotImplementedError("it is meant for data with a network")
    network = Graph.from_edges(pd.DataFrame(problem.edges), nodes=np.arange(problem.X.shape[1]))
    model = SparseGraphSVD(problem.k or 10, column_graph=network, random_state=problem.seed).fit(problem.X)
    factors = 1.0 if model.scaler_.factors is None else model.scaler_.factors
    return Found((model.components_ * factors).T, model.columns_)
