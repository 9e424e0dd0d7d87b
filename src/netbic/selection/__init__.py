"""How many modules, how sparse, how smooth, and whether to believe them."""

from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.n_modules import ModuleCount, n_modules
from netbic.selection.tune import Tuning, tune

__all__ = ["GraphValue", "ModuleCount", "Tuning", "graph_value", "n_modules", "tune"]
