"""Biclusters of features that are up or down in some samples (UnPaSt 0.1.11, its defaults: k-means and Louvain).

It chooses the number of modules. Its samples are in or out of a bicluster; scores are those of `sets_to_weights`. In
this version, the Louvain clusters are those of the similarity cutoff at the knee of the modularity curve, even where
its documented rule (the smallest cutoff with a modularity of 1/3) chooses another; in simulated data, biclusters then
had two to eleven features. Clusters by WGCNA, its other choice, were better in one of three simulated data sets only.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from problem import Found, sets_to_weights
from unpast.run_unpast import unpast

NAME, ENVIRONMENT = "UnPaSt", "unpast"


def run(problem):
    with TemporaryDirectory() as folder:
        table = Path(folder) / "expression.tsv"
        pd.DataFrame(problem.X.T).rename("g{}".format).rename(columns="s{}".format).to_csv(table, sep="\t")
        biclusters = unpast(str(table), out_dir=f"{folder}/found", seed=problem.seed)
    members = np.zeros((len(biclusters), problem.X.shape[1]), bool)
    for own, genes in zip(members, biclusters.get("genes", ()), strict=True):
        own[[int(gene[1:]) for gene in genes]] = True
    return Found(sets_to_weights(problem.X, members), members)
