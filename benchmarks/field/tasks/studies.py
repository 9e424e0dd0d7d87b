"""Are the modules of one study those of another study of the same disease?

Breast tumours by RNA sequencing (248 patients) and by arrays (365 others), on 2,487 common genes. 20 modules of each
are asked for. The weights of both are applied to the samples of one study, and modules are reproduced as for halves:
scores correlate by at least .6, one to one. The figure is the share of 20 (or of the larger number of modules),
averaged over the two studies to which the weights are applied; the second column is that of halves, too. One disease
says little about others.
"""

from . import Asked
from .halves import NUMBER, reproduced

FIGURE, WORST = "share", 0.0


def problems(small):
    return {
        f"brca/{seed}": [Asked(f"studies/brca/{seed}/{study}", NUMBER, seed) for study in ("rnaseq", "arrays")]
        for seed in range(1 if small else 5)
    }


def figures(found, load):
    weights = [fitted.weights for fitted in found.values()]
    one, two = (reproduced(*weights, load(asked.instance).X.to_numpy()) for asked in found)
    return {name: (one[name] + two[name]) / 2 for name in one}
