"""How many modules are reported where there are none?

Normal and heavy-tailed noise (Student's t, three degrees of freedom), normalised counts of uneven depth, and gastric
tumours in which the samples of each gene are permuted on their own; 2,000 genes and 30 or 200 samples (109 of the
tumours). No number is told. The figure is the number of modules reported, and fewer are better. It compares methods
that choose the number; one that must be told reports what it was told, here ten. The last column, which ranks nothing,
says how many of these modules netbic's verdicts accept (`netbic judge`: strong or moderate).
"""

import numpy as np

import netbic
from netbic.selection.judge import FEWEST

from . import Asked

FIGURE, ONLY_CHOOSING = "modules", True
KINDS = {"normal": (30, 200), "heavy_tails": (30, 200), "counts": (30, 200), "permuted": (30, 109)}


def problems(small):
    kinds, seeds = ({"normal": (30,), "permuted": (30,)}, 1) if small else (KINDS, 5)
    return {
        f"{kind}, {n}/{seed}": [Asked(f"noise/{kind}/{n}/{seed}", None, seed)]
        for kind, sizes in kinds.items()
        for n in sizes
        for seed in range(seeds)
    }


def figures(found, load):
    ((asked, fitted),) = found.items()
    reported = {FIGURE: -float(fitted.members.any(axis=1).sum())}
    return reported | {"accepted by netbic judge": -float(accepted(fitted.members, load(asked.instance).X.to_numpy()))}


def accepted(members, X):
    """How many of these modules netbic's verdicts call strong or moderate."""
    sets = {str(k): np.flatnonzero(own) for k, own in enumerate(members)}
    sets = {name: features for name, features in sets.items() if features.size >= FEWEST}
    if not sets:
        return 0
    table = netbic.selection.judge(X, sets, random_state=0, n_jobs=1).table
    return int(table["verdict"].isin(["strong", "moderate"]).sum())


def SHOWN(mean):
    return -mean
