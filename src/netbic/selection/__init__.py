"""How many modules, how sparse, how smooth, and whether to believe them."""

from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.n_modules import ModuleCount, n_modules

__all__ = ["GraphValue", "ModuleCount", "graph_value", "n_modules"]
