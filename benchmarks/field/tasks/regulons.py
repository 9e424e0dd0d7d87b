"""Are modules the targets of known regulators?

Compendia of *Escherichia coli* (278 conditions) and *Bacillus subtilis* (265), and their known regulons of at least
five genes. Methods are told the number of published components (92 and 83). The figure, F, is the harmonic mean of
recovery (the Jaccard index of each regulon with the most similar module, on average) and relevance (that of each module
with the most similar regulon): few good modules and many poor ones both score low. The published components of these
compendia, which are curated, have an F of .267 and .303. netbic's rule for sizes, its scaling and its starts were
chosen with these two compendia and F among the criteria.
"""

from ..metrics import f_of_sets, jaccard
from . import Asked

FIGURE, WORST = "F", 0.0
NUMBERS = {"bsubtilis": 83, "ecoli": 92}


def problems(small):
    names, seeds = (["bsubtilis"], 1) if small else (list(NUMBERS), 3)
    return {
        f"{name}/{seed}": [Asked(f"regulons/{name}/{seed}", NUMBERS[name], seed)]
        for name in names
        for seed in range(seeds)
    }


def figures(found, load):
    ((asked, fitted),) = found.items()
    truth = load(asked.instance).truth
    index = jaccard(fitted.members, truth)
    recovered = (index.max(axis=0) >= 0.5).sum() if len(index) else 0
    return {FIGURE: f_of_sets(fitted.members, truth), "regulons recovered": float(recovered)}
