"""Are the modules of one half of a cohort those of the other half?

Breast, colorectal, gastric and ovarian tumours, randomly split. 20 modules of each half are asked for, and their
weights give scores of all samples. A module is reproduced if its scores correlate by at least .6 (absolute value) with
those of a module of the other half; pairs are matched one to one. Modules whose scores correlate by .9 or more with
those of an earlier module of the same half count as one. The figure is the number of pairs as a share of 20, or of the
larger number of modules if a method returns more than 20: few modules and unreproducible ones both score low. Methods
that choose fewer than 20 modules cannot reach 1: the second column divides by the mean number of modules of the halves.
netbic's defaults were chosen with the breast and colorectal tumours, and this count, among the criteria: the third
column is the figure for the two other cohorts.
"""

from ..data import expression
from ..metrics import centred_scores, n_reproduced
from . import Asked

FIGURE, WORST = "share", 0.0
COHORTS, OTHERS, NUMBER = ("brca", "coadread", "gastric", "ovarian"), ("gastric", "ovarian"), 20


def problems(small):
    names, seeds = (("gastric",), 1) if small else (COHORTS, 5)
    return {f"{name}/{seed}": halves_of(name, seed) for name in names for seed in range(seeds)}


def halves_of(name, seed):
    return [Asked(f"halves/{name}/{seed}/{part}", NUMBER, seed) for part in "ab"]


def figures(found, load):
    name = next(iter(found)).instance.split("/")[1]
    shares = reproduced(*(fitted.weights for fitted in found.values()), expression(name).to_numpy())
    return shares | ({"share, other data": shares[FIGURE]} if name in OTHERS else {})


def reproduced(one, two, X):
    """The number of pairs as a share of 20 (or more), and of the modules that a method has."""
    pairs, numbers = n_reproduced(centred_scores(X, one), centred_scores(X, two)), (one.shape[1], two.shape[1])
    return {FIGURE: pairs / max(NUMBER, *numbers), "of its modules": 2 * pairs / max(sum(numbers), 1)}
