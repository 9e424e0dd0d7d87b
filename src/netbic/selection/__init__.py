"""How many modules, how sparse, how smooth, and whether to believe them."""

from netbic.selection.auto import AutoSVD, Chosen, choose_settings
from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.n_modules import ModuleCount, n_modules

__all__ = ["AutoSVD", "Chosen", "GraphValue", "ModuleCount", "choose_settings", "graph_value", "n_modules"]
