"""The solver: rounds (the paper's algorithm), one module from one start, starts, and modules one after another."""

from netbic.solver.half_steps import Side, State, Vector, rounds
from netbic.solver.modules import DEFLATIONS, SOLVERS, Axis, Module, ModuleSearch, Settings
from netbic.solver.one_start import IncompatibleSolver, Solution, solve
from netbic.solver.remarks import remarks
from netbic.solver.starts import Starts

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
    "Starts",
    "State",
    "Vector",
    "remarks",
    "rounds",
    "solve",
]
