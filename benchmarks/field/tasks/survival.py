"""Does a module predict survival in patients who were not used to find it?

Modules are found in one half of the gastric or ovarian cohort (those of the task on halves), or in all of one cohort on
genes that both have. There, a Cox model of each module chooses the one with the most significant score test, and the
direction of its effect. The figure is Harrell's concordance index C of its scores in the other half, or in the other
cohort: .5 is chance. Both halves are used to choose in turn, and their C are averaged. Nearly all predictions are
weak: a few per cent of C are worth much to nobody, so read this as a check that modules mean anything for patients.
"""

import numpy as np

from ..data import expression, survival
from ..metrics import centred_scores, concordance, cox_score_test
from . import Asked
from .halves import NUMBER, halves_of

FIGURE, WORST = "C", 0.5


def problems(small):
    names, seeds = (["gastric"], 1) if small else (["gastric", "ovarian"], 5)
    units = {f"{name}/{seed}": halves_of(name, seed) for name in names for seed in range(seeds)}
    return units | {
        f"{name} to {other}/{seed}": [Asked(f"cohorts/{name}/{seed}", NUMBER, seed)]
        for name, other in (("gastric", "ovarian"), ("ovarian", "gastric"))
        for seed in range(seeds if not small else 0)
    }


def figures(found, load):
    if len(found) == 1:
        ((asked, fitted),) = found.items()
        name = asked.instance.split("/")[1]
        other = "ovarian" if name == "gastric" else "gastric"
        X, tested = load(asked.instance).X, load(f"cohorts/{other}/0").X
        return {FIGURE: c_of_best(fitted.weights, X, survival(name), tested, survival(other))}
    name = next(iter(found)).instance.split("/")[1]
    patients, whole, c = survival(name), expression(name), []
    for asked, fitted in found.items():
        X = load(asked.instance).X
        c.append(c_of_best(fitted.weights, X, patients, whole.drop(index=X.index), patients))
    return {FIGURE: float(np.mean(c))}


def c_of_best(weights, X, patients, tested, tested_patients):
    """C in `tested` of the module that is most significant in X."""
    if not weights.shape[1]:
        return WORST
    scores, time, event = with_survival(weights, X, patients)
    z = np.array([cox_score_test(score, time, event) for score in scores.T])
    best = np.abs(z).argmax()
    scores, time, event = with_survival(weights[:, [best]], tested, tested_patients)
    return concordance(np.sign(z[best]) * scores[:, 0], time, event)


def with_survival(weights, X, patients):
    known = X.index.isin(patients.index)
    table = patients.loc[X.index[known]]
    return centred_scores(X.to_numpy(), weights)[known], table["time"].to_numpy(), table["event"].to_numpy()
