"""How many modules, how sparse, how smooth, and whether to believe them."""

from netbic.selection.graph_value import GraphValue, graph_value

__all__ = ["GraphValue", "graph_value"]
