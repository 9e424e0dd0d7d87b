"""How long does it take, and how much memory?

Simulated data with ten modules: 200 x 2,000, 500 x 5,000 and 1,000 x 20,000 (samples x genes), and sparse counts of
5,000 and 50,000 cells x 2,000 genes, which are given dense, as counts and as logarithms in single precision. Ten
modules are asked for. Seconds are those that the processor worked, on one thread where a method allows it, without
imports in Python, but with the start of R, files that a method writes, and compilation; memory is the largest of the
process, data and interpreter included. A method that does not finish within 2 minutes counts with these. Tables show
geometric means.
"""

import math

from . import Asked

LIMIT = 2 * 60  # seconds of wall time
FIGURE, WORST, DIFFERENCE = "seconds", -math.log10(LIMIT), "times the first"
SIZES = ("bulk/200x2000", "bulk/500x5000", "bulk/1000x20000", "cells/5000x2000", "cells/50000x2000")


def problems(small):
    return {f"{size}/0": [Asked(f"speed/{size}", 10, 0)] for size in (SIZES[:1] if small else SIZES)}


def figures(found, load):
    (fitted,) = found.values()
    return {FIGURE: -math.log10(max(fitted.seconds, 1e-3)), "GB": -math.log10(fitted.gigabytes)}


def SHOWN(mean):
    return 10**-mean
