"""netbic simulate: simulated files for the other commands."""

from __future__ import annotations

from pathlib import Path

import click

import netbic
from netbic.cli.command import Command, Finite


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--samples", default=400, type=click.IntRange(20), help="Number of samples.")
@click.option("--genes", default=3000, type=click.IntRange(50), help="Number of genes.")
@click.option("--modules", default=5, type=click.IntRange(1), help="Number of planted modules.")
@click.option(
    "--strength",
    default=0.75,
    type=Finite(0, 100),
    help="Strength of the modules; modules of strength 0.5 are hard to find.",
)
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed.")
@click.option("--force", is_flag=True, help="Replace an earlier simulation in the folder.")
def simulate(folder: Path, samples: int, genes: int, modules: int, strength: float, seed: int, force: bool) -> None:
    """Write a simulated cohort: expression.tsv.gz, network.sif, labels.tsv and truth.tsv (what was planted)."""
    if "expression.tsv.gz" in netbic.files.recorded_files(folder) and not force:
        raise click.UsageError(
            f"{folder} already contains a simulation: choose another folder, or use --force to replace it"
        )
    study = netbic.simulate.cohort(samples, genes, n_modules=modules, strength=strength, random_state=seed)
    netbic.storage.write_cohort(study, folder)
    click.echo(
        f"{folder}: expression.tsv.gz ({samples:,} samples x {genes:,} genes), network.sif, truth.tsv, labels.tsv"
    )
    data = f"{folder}/expression.tsv.gz --graph {folder}/network.sif"
    click.echo(f"next: netbic fit {data} --modules {modules} --out {folder}/modules")
