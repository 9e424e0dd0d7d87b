"""Enrichment: whether modules have more edges or genes of gene sets than expected by chance."""

from netbic.enrichment.edges import adjust_p_values as adjust_p_values
from netbic.enrichment.edges import edges, held_out_edges
from netbic.enrichment.edges import is_decided as is_decided
from netbic.enrichment.edges import repeated_in_rows as repeated_in_rows
from netbic.enrichment.edges import sequential_p_values as sequential_p_values
from netbic.enrichment.gene_sets import DEFAULT_LEVEL as DEFAULT_LEVEL
from netbic.enrichment.gene_sets import ONE_SIDE as ONE_SIDE
from netbic.enrichment.gene_sets import check_sizes as check_sizes
from netbic.enrichment.gene_sets import enrichment_record as enrichment_record
from netbic.enrichment.gene_sets import fit_used_graph as fit_used_graph
from netbic.enrichment.gene_sets import gene_sets, module_names, naming_sets, shared_names, write_enrichment
from netbic.enrichment.gene_sets import shared_sentence as shared_sentence
from netbic.enrichment.gene_sets import untested_tables as untested_tables

__all__ = ["edges", "gene_sets", "held_out_edges", "module_names", "naming_sets", "shared_names", "write_enrichment"]


def __dir__() -> list[str]:
    return sorted(__all__)
