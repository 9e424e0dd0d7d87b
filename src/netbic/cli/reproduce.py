"""netbic reproduce: the figures and the table of the paper."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

import netbic
from netbic.cli.command import Command, Jobs
from netbic.errors import InputError


@click.command(cls=Command)
@click.argument("part", type=click.Choice(["fig1", "table1", "fig2", "all"]))
@click.option("--out", default="reproduced", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option(
    "--data",
    envvar="NETBIC_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    show_default="NETBIC_DATA",
    help="Folder with the real data sets.",
)
@click.option("--replicates", default=50, type=click.IntRange(2), help="Number of simulated matrices per setting.")
@click.option("--jobs", default=-1, type=Jobs(), help="Number of processes for the simulation; -1 means all cores.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def reproduce(part: str, out: Path, data: Path | None, replicates: int, jobs: int, seed: int, quiet: bool) -> None:
    """Repeat PART of the paper's experiments and compare the results with its claims: tables, figures and a page.

    fig1 uses simulated data. table1 and fig2 need the real data sets listed in the documentation. The command needs
    a clone of netbic's repository.
    """
    paper = _reproduction()
    parts = paper.PARTS if part == "all" else (part,)
    progress = (lambda line: None) if quiet else (lambda line: click.echo(line, err=True))
    paper.reproduce(parts, out, data, replicates=replicates, seed=seed, n_jobs=jobs, progress=progress)
    if not quiet:
        click.echo(f"{out}/README.md")


def _reproduction() -> ModuleType:
    """Import the package `reproduction`, which is in the repository but not installed with netbic."""
    source_tree = Path(netbic.__file__).parents[2]
    if not (source_tree / "reproduction" / "run.py").is_file():
        raise InputError(
            "netbic reproduce needs a clone of netbic's repository: "
            "git clone https://github.com/netbic/netbic, then run `make paper` in it"
        )
    sys.path.insert(0, str(source_tree))
    return import_module("reproduction")
