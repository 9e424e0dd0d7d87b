"""Prior graphs: node names, symmetric non-negative weights, the graph terms of the model, rewiring, coexpression."""

from netbic.graphs.graph import Graph, match
from netbic.graphs.neighbours import coexpression
from netbic.graphs.terms import TERMS, GraphTerm

__all__ = ["TERMS", "Graph", "GraphTerm", "coexpression", "match"]


def __dir__() -> list[str]:
    return sorted(__all__)
