"""How many modules are reported where there are none?

Normal and heavy-tailed noise (Student's t, three degrees of freedom), normalised counts of uneven depth, and gastric
tumours in which the samples of each gene are permuted on their own; 2,000 genes and 30 or 200 samples (109 of the
tumours). No number is told. The figure is the number of modules reported, and fewer are better. A method that must be
told a number reports what it was told, ten by default: that is not its error, but its users have nothing to warn them.
"""

from . import Asked

FIGURE = "modules"
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
    accepted = judged(fitted, load(asked.instance).X)
    return reported | ({} if accepted is None else {"judged": -float(accepted)})


def judged(fitted, X):
    """Number of the modules that netbic's verdicts accept; None, because verdicts of any modules are not ready yet."""
    return


def SHOWN(mean):
    return -mean
