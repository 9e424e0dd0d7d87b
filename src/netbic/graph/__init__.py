"""Prior graphs: node names, symmetric weights, the graph terms of the model, rewiring, coexpression."""

from netbic.graph.edges import contradicted
from netbic.graph.graph import Graph, match
from netbic.graph.neighbours import coexpression
from netbic.graph.signs import sign_of, signs_of
from netbic.graph.terms import TERMS, GraphTerm

__all__ = ["TERMS", "Graph", "GraphTerm", "coexpression", "contradicted", "match", "sign_of", "signs_of"]


def __dir__() -> list[str]:
    return sorted(__all__)
