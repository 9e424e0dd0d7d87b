"""The solver: rounds (the paper's algorithm), one module from one start, starts, and modules one after another."""

from netbic.solver.half_steps import Side, State, Vector, rounds
from netbic.solver.modules import DEFLATIONS, SOLVERS, Axis, Module, ModuleSearch, Settings
from netbic.solver.modules import imputing as imputing
from netbic.solver.modules import layers as layers
from netbic.solver.modules import solve_either_sign as solve_either_sign
from netbic.solver.one_start import IncompatibleSolver, Solution, solve
from netbic.solver.remarks import MUCH_GRAPH as MUCH_GRAPH
from netbic.solver.remarks import remarks
from netbic.solver.starts import Direction as Direction
from netbic.solver.starts import Starts
from netbic.solver.starts import image as image
from netbic.solver.starts import random_direction as random_direction

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
