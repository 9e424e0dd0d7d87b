"""Biclusters of features that are up or down in some samples (UnPaSt 0.1.11, its defaults: k-means and Louvain).

It chooses the number of modules. Its samples are in or out of a bicluster; scores are those of `sets_to_weights`. It
looks for features that are clearly on or off in some samples: in simulations, shifts of 4 standard deviations are
found, and most of those planted here are smaller. This version takes the Louvain clusters of another similarity cutoff
than its documented rule chooses, which breaks up biclusters (planted ones at 4 standard deviations: Jaccard index 0.47,
and 0.98 with the cutoff of the rule). Here that line is corrected.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from problem import Found, sets_to_weights
from unpast import run_unpast
from unpast.core import feature_clustering

NAME, ENVIRONMENT, CHOOSES = "UnPaSt", "unpast", True


def corrected():
    """Its Louvain clustering, with the clusters of the cutoff that its rule chooses."""
    source, scope = Path(feature_clustering.__file__).read_text(), dict(vars(feature_clustering))
    wrong, right = "labels_m = feature_clusters[best_cutoff]", "labels_m = feature_clusters[similarity_cutoffs[i]]"
    assert source.count(wrong) == 1
    exec(compile(source.replace(wrong, right), feature_clustering.__file__, "exec"), scope)
    return scope["run_Louvain"]


def run(problem):
    run_unpast.run_Louvain = corrected()
    with TemporaryDirectory() as folder:
        table = Path(folder) / "expression.tsv"
        pd.DataFrame(problem.X.T).rename("g{}".format).rename(columns="s{}".format).to_csv(table, sep="\t")
        biclusters = run_unpast.unpast(str(table), out_dir=f"{folder}/found", seed=problem.seed)
    members = np.zeros((len(biclusters), problem.X.shape[1]), bool)
    for own, genes in zip(members, biclusters.get("genes", ()), strict=True):
        own[[int(gene[1:]) for gene in genes]] = True
    return Found(sets_to_weights(problem.X, members), members)
