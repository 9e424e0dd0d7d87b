"""Values printed in the paper, for comparison with ours.

W. Min, J. Liu, S. Zhang: L0-norm Sparse Graph-regularized SVD for Biclustering (2016), Table 1.
"""

from __future__ import annotations

from typing import Final

LEVELS: Final = (0.10, 0.05, 0.01, 0.005, 0.001)
PAPER_METHODS: Final = ("L0SVD", "sgSVD", "sgSVD*")

# Per cent of 40 modules that are edge-enriched, at each of LEVELS.
TABLE_1: Final = {
    "BRCA": {
        "L0SVD": (57.5, 57.5, 55.0, 55.0, 55.0),
        "sgSVD": (60.0, 57.5, 57.5, 57.5, 57.5),
        "sgSVD*": (70.0, 70.0, 65.0, 65.0, 65.0),
    },
    "CGP": {
        "L0SVD": (57.5, 57.5, 57.5, 57.5, 55.0),
        "sgSVD": (62.5, 60.0, 57.5, 57.5, 57.5),
        "sgSVD*": (67.5, 65.0, 62.5, 62.5, 60.0),
    },
}
