"""The tutorials on real data, and the files they use."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
DONORS = "## Cells of one donor are not independent"  # from here on, the page needs no files
FILES = {
    "breast-tumours": {
        "expression.parquet": "expr_tcga_brca_agilent2012.parquet",
        "samples.tsv": "expr_tcga_brca_agilent2012_samples.tsv",
        "network.parquet": "network_biogrid_3.4.133.parquet",
        "go.gmt.gz": "go_bp_human.gmt.gz",
        "rnaseq.parquet": "expr_tcga_brca_rnaseq.parquet",
        "gse7390.parquet": "small_breast_gse7390.parquet",
        "gse7390_samples.tsv": "small_breast_gse7390_samples.tsv",
    },
    "single-cells": {"counts.parquet": "small_pbmc_kang_counts.parquet", "cells.tsv": "small_pbmc_kang_cells.tsv"},
}


def text_of(page):
    return (FOLDER / f"{page}.md").read_text()


def link_data(page, folder, data):
    """Give the files the names that they have on the page."""
    for name, original in FILES[page].items():
        (folder / name).symlink_to(data / original)
