"""The solver: half steps (the paper's algorithm), and the search for modules, together or one after another."""

from netbic.solver.count import Count, JointSearch
from netbic.solver.half_step import Side, State, Vector, rounds
from netbic.solver.pairs import PAIR_DEFLATIONS, Pair, PairSearch
from netbic.solver.search import (
    DEFLATIONS,
    REPEATED,
    SIMILAR,
    SOLVERS,
    Axis,
    Module,
    ModuleSearch,
    correlations,
    diagnostics,
)
from netbic.solver.solve import IncompatibleSolver, Settings, Solution, solve
from netbic.solver.starts import Starts

__all__ = [
    "DEFLATIONS",
    "PAIR_DEFLATIONS",
    "REPEATED",
    "SIMILAR",
    "SOLVERS",
    "Axis",
    "Count",
    "IncompatibleSolver",
    "JointSearch",
    "Module",
    "ModuleSearch",
    "Pair",
    "PairSearch",
    "Settings",
    "Side",
    "Solution",
    "Starts",
    "State",
    "Vector",
    "correlations",
    "diagnostics",
    "rounds",
    "solve",
]
