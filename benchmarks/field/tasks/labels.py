"""Do scores of modules separate known groups of samples?

Breast tumours (PAM50 subtype, oestrogen receptor), gastric tumours (subtype, sex, stage), ovarian tumours (type,
histology), cell lines (tissue), T cells of seven donors (type) and blood cells (type, interferon). Nobody is given the
labels. For each class of at least ten samples, the figure is the best area under the curve of any one module, in either
direction, averaged over the classes of a data set. Ten modules are asked for. Of a method that returns more, the ten
whose scores explain most of the variance of the data are used, because the best of many is better by chance.
A method's own scores are used where it has them, otherwise its weights. netbic's defaults were chosen with the breast
tumours, T cells and blood cells among the criteria, and the gastric tumours were looked at: the second column is the
figure for the two other data sets.
"""

import numpy as np

from ..metrics import auc, centred_scores, leading
from . import Asked

FIGURE, WORST = "AUC", 0.5
OTHERS = ("ovarian", "ccle")
NAMES = ("brca", "gastric", "ovarian", "ccle", "tcells", "pbmc")


def problems(small):
    names, seeds = (("gastric", "pbmc"), 1) if small else (NAMES, 3)
    return {f"{name}/{seed}": [Asked(f"labelled/{name}/{seed}", 10, seed)] for name in names for seed in range(seeds)}


def figures(found, load):
    ((asked, fitted),) = found.items()
    data = load(asked.instance)
    X = data.X.to_numpy()
    scores = centred_scores(X, fitted.weights) if fitted.scores is None else fitted.scores
    scores = scores[:, leading(X, scores)]
    best = [best_auc(scores, values) for values in data.targets.to_numpy().T]
    mean = float(np.mean(best))
    return {FIGURE: mean} | ({"AUC, other data": mean} if asked.instance.split("/")[1] in OTHERS else {})


def best_auc(scores, target):
    labelled = ~np.isnan(target)
    return max((auc(score, target[labelled] == 1) for score in scores[labelled].T), default=WORST)
