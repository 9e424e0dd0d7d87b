"""The solver: rounds (the paper's algorithm), one module from one start, starts, and modules one after another."""

from netbic.solver.modules import DEFLATIONS, SOLVERS, Axis, Module, ModuleSearch, Settings
from netbic.solver.remarks import remarks
from netbic.solver.rounds import Side, State, Vector, rounds
from netbic.solver.solve import IncompatibleSolver, Solution, solve

__all__ = [
    "DEFLATIONS",
    "SOLVERS",
    "Axis",
    "IncompatibleSolver",
    "Module",
    "ModuleSearch",
    "Settings",
    "Side",
    "Solution",
    "State",
    "Vector",
    "remarks",
    "rounds",
    "solve",
]
