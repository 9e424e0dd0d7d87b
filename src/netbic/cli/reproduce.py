"""netbic reproduce: the paper's figures and table."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

import netbic
from netbic.cli.command import Command
from netbic.errors import InputError


@click.command(cls=Command)
@click.argument("part", type=click.Choice(["fig1", "table1", "fig2", "all"]))
@click.option(
    "--out", default="reproduced", show_default=True, type=click.Path(path_type=Path), help="Folder to write to."
)
@click.option(
    "--data",
    envvar="NETBIC_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the real data (or NETBIC_DATA).",
)
@click.option(
    "--replicates", default=50, show_default=True, type=click.IntRange(2), help="Simulated matrices per setting."
)
@click.option("--jobs", default=-1, show_default=True, type=int, help="Processes for the simulation; -1 is all cores.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def reproduce(part: str, out: Path, data: Path | None, replicates: int, jobs: int, seed: int, quiet: bool) -> None:
    """Rerun a PART of the paper and set its claims beside what is found: tables, figures and a page.

    fig1 is simulated and needs no data. table1 and fig2 take the real data sets that the documentation names.
    """
    paper = _reproduction()
    parts = paper.PARTS if part == "all" else (part,)
    tell = (lambda line: None) if quiet else (lambda line: click.echo(line, err=True))
    paper.reproduce(parts, out, data, replicates=replicates, seed=seed, n_jobs=jobs, tell=tell)
    if not quiet:
        click.echo(f"{out}/README.md")


def _reproduction() -> ModuleType:
    """Load the package `reproduction`, which is part of the source tree but not of an installed netbic."""
    source_tree = Path(netbic.__file__).parents[2]
    if not (source_tree / "reproduction" / "run.py").is_file():
        raise InputError(
            "netbic reproduce needs netbic's source tree, which is not installed with the package: "
            "git clone https://github.com/netbic/netbic, then run `make paper` there"
        )
    sys.path.insert(0, str(source_tree))
    return import_module("reproduction")
