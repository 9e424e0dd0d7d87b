"""Prior graphs: node names, symmetric weights, the graph terms of the model, rewiring, coexpression."""

from netbic.graphs.edges import contradicted
from netbic.graphs.graph import Graph, match
from netbic.graphs.neighbours import coexpression
from netbic.graphs.signs import sign_of, signs_of
from netbic.graphs.terms import TERMS, GraphTerm

__all__ = ["TERMS", "Graph", "GraphTerm", "coexpression", "contradicted", "match", "sign_of", "signs_of"]


def __dir__() -> list[str]:
    return sorted(__all__)
