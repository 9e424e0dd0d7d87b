"""The solver: half steps (the paper's algorithm), solves, starts, and the search for one module after another."""

from netbic.solver.diagnostics import LARGE_GRAPH_SHARE as LARGE_GRAPH_SHARE
from netbic.solver.diagnostics import LOW_RANK as LOW_RANK
from netbic.solver.diagnostics import PAIR_WORDS as PAIR_WORDS
from netbic.solver.diagnostics import diagnostics
from netbic.solver.half_step import Side, rounds
from netbic.solver.pairs import PAIR_DEFLATIONS, Pair, PairSearch
from netbic.solver.residual import REPEATED, correlations
from netbic.solver.restarts import ModuleProblem as ModuleProblem
from netbic.solver.restarts import Settings
from netbic.solver.search import DEFLATIONS, SOLVERS, Axis, Module, ModuleSearch
from netbic.solver.search import deflation_terms as deflation_terms
from netbic.solver.solve import IncompatibleSolver, Solution, solve
from netbic.solver.starts import Direction as Direction
from netbic.solver.starts import Starts
from netbic.solver.starts import image as image
from netbic.solver.starts import random_direction as random_direction
from netbic.solver.vectors import State, Vector

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
