"""Prior graphs: node names, symmetric non-negative weights, the graph terms of the model, rewiring."""

from netbic.graphs.graph import Graph, match
from netbic.graphs.terms import TERMS, GraphTerm

__all__ = ["TERMS", "Graph", "GraphTerm", "match"]
