"""netbic enrich: what modules found before are enriched in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, Finite

_WRITTEN = ("edges.tsv", "gene_sets.tsv", "enrichment.json")


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--gene-sets", type=File, help="GMT file: over-represented sets go to FOLDER/gene_sets.tsv.")
@click.option("--level", default=0.05, show_default=True, type=Finite(0, 1), help="Largest adjusted p-value kept.")
@click.option("--by-sign", is_flag=True, help="Test up and down genes of a module apart.")
@click.option("--collapse", type=Finite(0, 1), help="Leave out terms that overlap a better one so much, e.g. 0.5.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the random sets.")
def enrich(folder: Path, gene_sets: str | None, level: float, by_sign: bool, collapse: float | None, seed: int) -> None:
    """Test the modules that netbic fit wrote into FOLDER for edges of their network and for gene sets.

    \b
    FOLDER/edges.tsv       edges inside each module: against chance (as in the paper),
                           and against random genes of the same numbers of neighbours
    FOLDER/gene_sets.tsv   over-represented gene sets (with --gene-sets)
    """
    model = netbic.load(folder)
    if model.column_graph is None and gene_sets is None:
        raise click.UsageError("there is nothing to test the modules with: give --gene-sets, or fit with --graph")
    if gene_sets is None and (by_sign or collapse is not None):
        raise click.UsageError("--by-sign and --collapse are about gene sets: give --gene-sets")
    netbic.files.check_not_input([folder / name for name in _WRITTEN], {"the gene sets": gene_sets})
    words: dict[str, Any] = {"level": level, "by_sign": by_sign, "collapse": collapse, "random_state": seed}
    with netbic.io.locked(folder):
        for line in netbic.enrichment.write_enrichment(model, folder, gene_sets, **words):
            click.echo(f"{folder}/{line}")
