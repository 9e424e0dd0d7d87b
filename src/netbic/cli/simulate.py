"""netbic simulate: files to try the other commands on."""

from __future__ import annotations

from pathlib import Path

import click

import netbic
from netbic.cli.command import Command, Finite


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--samples", default=400, show_default=True, type=click.IntRange(20), help="Samples to simulate.")
@click.option("--genes", default=3000, show_default=True, type=click.IntRange(50), help="Genes to simulate.")
@click.option("--modules", default=5, show_default=True, type=click.IntRange(1), help="Modules to plant.")
@click.option(
    "--strength",
    default=0.75,
    show_default=True,
    type=Finite(0, 100),
    help="Strength of the modules; .5 is hard to see.",
)
@click.option("--seed", default=0, show_default=True, help="Seed.")
@click.option("--force", is_flag=True, help="Replace an earlier simulation in the folder.")
def simulate(folder: Path, samples: int, genes: int, modules: int, strength: float, seed: int, force: bool) -> None:
    """Write a simulated cohort into FOLDER: expression.tsv.gz, network.sif and the planted truth.tsv."""
    if "expression.tsv.gz" in netbic.files.recorded_files(folder) and not force:
        raise click.UsageError(f"{folder} holds a simulation already: choose another folder, or --force to replace it")
    study = netbic.simulate.cohort(samples, genes, n_modules=modules, strength=strength, random_state=seed)
    netbic.io.write_cohort(study, folder)
    click.echo(f"{folder}: expression.tsv.gz ({samples:,} samples x {genes:,} genes), network.sif, truth.tsv")
    kept = f"--modules {modules} --genes {study.genes[0].sum()} --samples {study.samples[0].sum()}"
    click.echo(
        f"next: netbic fit {folder}/expression.tsv.gz --graph {folder}/network.sif {kept} --out {folder}/modules"
    )
