"""netbic enrich: test modules for network edges and gene sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, Finite, echo_report_is_older

_WRITTEN = ("edges.tsv", "gene_sets.tsv", "enrichment.json")


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--gene-sets", type=File, help="GMT file with gene sets; results are written to FOLDER/gene_sets.tsv.")
@click.option("--level", default=0.05, type=Finite(0, 1), help="Largest adjusted p-value to report.")
@click.option(
    "--by-sign/--together",
    default=None,
    show_default="separately in modules with at least 10 genes on both sides",
    help="Test the genes with positive weights (up) and with negative weights (down) of a module separately, or all of "
    "them together.",
)
@click.option(
    "--collapse",
    type=Finite(0, 1),
    help="Omit gene sets whose genes in the module overlap those of a more significant set by at least this Jaccard "
    "index, e.g. 0.5.",
)
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the random gene sets.")
def enrich(folder: Path, gene_sets: str | None, by_sign: bool | None, **options: Any) -> None:
    """Test the modules in FOLDER (written by netbic fit) for enrichment in network edges and gene sets.

    \b
    FOLDER/edges.tsv       edges inside each module, compared with random genes
                           (the paper's test) and random genes of the same degrees
                           and, where known, similar mean and variance
    FOLDER/gene_sets.tsv   enriched gene sets (with --gene-sets)
    """
    model = netbic.storage.load_modules(folder)
    if model.column_graph is None and gene_sets is None:
        raise click.UsageError("nothing to test: use --gene-sets, or fit with --graph")
    if gene_sets is None and (by_sign is not None or options["collapse"] is not None):
        raise click.UsageError("--by-sign, --together and --collapse need --gene-sets")
    netbic.files.check_not_input([folder / name for name in _WRITTEN], {"the gene sets": gene_sets})
    options |= {"by_sign": by_sign, "random_state": options.pop("seed")}
    with netbic.io.locked(folder):
        for line in netbic.enrichment.write_enrichment(model, folder, gene_sets, **options):
            click.echo(f"{folder}/{line}")
    echo_report_is_older(folder)
