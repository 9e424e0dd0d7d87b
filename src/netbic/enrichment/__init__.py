"""Enrichment: whether modules have more edges, genes of gene sets or co-expression than expected by chance."""

from netbic.enrichment.coexpression import coexpression
from netbic.enrichment.edges import edges, held_out_edges
from netbic.enrichment.gene_sets import gene_sets
from netbic.enrichment.naming import ONE_SIDE as ONE_SIDE
from netbic.enrichment.naming import module_names, naming_sets
from netbic.enrichment.sequential import is_decided as is_decided
from netbic.enrichment.sequential import sequential_p_values as sequential_p_values
from netbic.enrichment.writing import DEFAULT_LEVEL as DEFAULT_LEVEL
from netbic.enrichment.writing import enrichment_record as enrichment_record
from netbic.enrichment.writing import fit_used_graph as fit_used_graph
from netbic.enrichment.writing import write_enrichment

__all__ = ["coexpression", "edges", "gene_sets", "held_out_edges", "module_names", "naming_sets", "write_enrichment"]


def __dir__() -> list[str]:
    return sorted(__all__)
