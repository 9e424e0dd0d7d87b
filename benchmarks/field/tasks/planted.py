"""Are planted modules found?

18 simulations (30 to 400 samples; modules of 20 to 400 features, disjoint or overlapping, in all samples or in groups;
uneven, heavy-tailed and count noise), and three in which five modules are added to random genes of real breast and
gastric tumours. Four of the simulations and the three in tumours are new; the other 14, with other seeds, were among
those by which netbic's scaling, its rule for sizes and its number of starts were chosen. Two of the latter, uneven
variances and zero inflation, are hard without scaling. The number of planted modules is told; in real tumours, whose
own modules are found as well, 20. The figure is the Jaccard index of planted and found members, matched one to one and
averaged over the planted modules: additional modules are not counted against a method.
"""

from functools import cache

import numpy as np

from ..data import IN_REAL, NEW, PLANTED
from ..metrics import jaccard, matched
from . import Asked

FIGURE, WORST = "Jaccard index", 0.0
SMALL = ("disjoint", "counts", "thirty_samples", "in_gastric_tumours")


@cache
def told(scenario):
    return 20 if scenario in IN_REAL else len(PLANTED[scenario](np.random.default_rng(0)).members)


def problems(small):
    scenarios, seeds = (SMALL, 1) if small else (list(PLANTED), 5)
    return {
        f"{scenario}/{seed}": [Asked(f"planted/{scenario}/{seed}", told(scenario), seed)]
        for scenario in scenarios
        for seed in range(seeds)
    }


def figures(found, load):
    ((asked, fitted),) = found.items()
    truth = load(asked.instance).truth
    mean = matched(jaccard(fitted.members, truth)) / len(truth)
    new = asked.instance.split("/")[1] in (*NEW, *IN_REAL)
    return {FIGURE: mean} | ({"Jaccard index, new simulations": mean} if new else {})
