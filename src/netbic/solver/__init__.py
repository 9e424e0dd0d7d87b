"""The solver: half steps (the paper's algorithm), solves, starts, and the search for one module after another."""

from netbic.solver.half_step import Side, State, Vector, rounds
from netbic.solver.pairs import PAIR_DEFLATIONS, Pair, PairSearch
from netbic.solver.search import DEFLATIONS, REPEATED, SOLVERS, Axis, Module, ModuleSearch, correlations, diagnostics
from netbic.solver.search import LARGE_GRAPH_SHARE as LARGE_GRAPH_SHARE
from netbic.solver.search import LOW_RANK as LOW_RANK
from netbic.solver.search import matrix_words as matrix_words
from netbic.solver.search import pair_words as pair_words
from netbic.solver.solve import IncompatibleSolver, Settings, Solution, solve
from netbic.solver.starts import Starts
from netbic.solver.starts import random_direction as random_direction

__all__ = [
    "DEFLATIONS",
    "PAIR_DEFLATIONS",
    "REPEATED",
    "SOLVERS",
    "Axis",
    "IncompatibleSolver",
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
