"""Weighted correlation network analysis in Python (PyWGCNA 2.2.1, its defaults).

A signed hybrid network, signed topological overlap, the power by scale-free fit (R squared of 0.9, mean connectivity of
100), minModuleSize=50, MEDissThres=0.2, no blocks. Its filter of genes by TPM is off, since the data are filtered and
on a log scale. It chooses the number of modules. Members are the genes of a colour other than grey; scores are the
module eigengenes. It is no port of R's WGCNA: with its own cut of the tree, nearly all genes are in a module.
"""

from contextlib import redirect_stdout
from io import StringIO

import pandas as pd
from problem import Found, sets_to_weights
from PyWGCNA import WGCNA

NAME, ENVIRONMENT, CHOOSES = "PyWGCNA", "pywgcna", True


def run(problem):
    table = pd.DataFrame(problem.X).rename("s{}".format).rename(columns="g{}".format)
    with redirect_stdout(StringIO()):
        model = WGCNA(geneExp=table, TPMcutoff=float("-inf"))
        model.preprocess(show=False)
        try:
            model.findModules()
        except (SystemExit, UnboundLocalError):  # this version stops if there is only one colour, grey or another
            model.datExpr.var["moduleColors"] = model.datExpr.var["dynamicColors"]
    found = model.datExpr.var["moduleColors"].reindex(table.columns, fill_value="grey").to_numpy()
    colours = sorted(set(found) - {"grey"})
    members = found == pd.Series(colours, dtype=object).to_numpy()[:, None]
    eigengenes = None if model.datME is None else model.datME[[f"ME{colour}" for colour in colours]].to_numpy()
    return Found(sets_to_weights(problem.X, members), members, eigengenes)
