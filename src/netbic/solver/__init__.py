"""The solver: half steps (the paper's algorithm), solves, starts, and the search for one module after another."""

from netbic.solver.half_step import Side, State, Vector, rounds
from netbic.solver.pairs import PAIR_DEFLATIONS, Pair, PairSearch
from netbic.solver.problem import ModuleProblem  # noqa: F401
from netbic.solver.search import (  # noqa: F401
    DEFLATIONS,
    LARGE_GRAPH_SHARE,
    LOW_RANK,
    REPEATED,
    SOLVERS,
    Axis,
    Module,
    ModuleSearch,
    correlations,
    deflation_terms,
    diagnostics,
    matrix_words,
    pair_words,
)
from netbic.solver.solve import IncompatibleSolver, Settings, Solution, solve
from netbic.solver.starts import Direction, Starts, image, random_direction  # noqa: F401

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
