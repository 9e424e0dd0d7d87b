"""Are the modules of one half of a cohort those of the other half?

Breast, colorectal, gastric and ovarian tumours, randomly split. 20 modules of each half are asked for, and their
weights give scores of all samples. A module is reproduced if its scores correlate by at least .6 (absolute value) with
those of a module of the other half; pairs are matched one to one. Modules whose scores correlate by .9 or more with
those of an earlier module of the same half count as one. The figure is the number of pairs as a share of 20, or of the
larger number of modules if a method returns more than 20: few modules and unreproducible ones both score low.
"""

from ..data import expression
from ..metrics import centred_scores, n_reproduced
from . import Asked

FIGURE, WORST = "share", 0.0
COHORTS, NUMBER = ("brca", "coadread", "gastric", "ovarian"), 20


def problems(small):
    names, seeds = (("gastric",), 1) if small else (COHORTS, 5)
    return {f"{name}/{seed}": halves_of(name, seed) for name in names for seed in range(seeds)}


def halves_of(name, seed):
    return [Asked(f"halves/{name}/{seed}/{part}", NUMBER, seed) for part in "ab"]


def figures(found, load):
    name = next(iter(found)).instance.split("/")[1]
    return {FIGURE: share(*(fitted.weights for fitted in found.values()), expression(name).to_numpy())}


def share(one, two, X):
    pairs = n_reproduced(centred_scores(X, one), centred_scores(X, two))
    return pairs / max(NUMBER, one.shape[1], two.shape[1])
