"""netbic reproduce: the figures and the table of the paper."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

import netbic
from netbic.cli.command import Command, Jobs
from netbic.cli.durations import STARTUP, n_parallel
from netbic.cli.progress import Progress, Stage
from netbic.errors import InputError

# Expected seconds of a step, on one core.
_SIMULATIONS = {"replicates": Stage("Figure 1: replicates", 0.08), "controls": Stage("Figure 1: controls", 0.25)}
_REAL_DATA = {
    "methods": Stage("Table 1 and Figure 2: methods", 7.0, 32),
    "sigmas": Stage("Table 1: values of sigma", 5.0, 5),
}


class ReproduceCommand(Command):
    """A command that continues by itself when it is run again."""

    resume_hint = restart_hint = "run the same command again to continue"


@click.command(cls=ReproduceCommand)
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
@click.option("--resume", is_flag=True, help="Continue after an interruption (this is also the default).")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def reproduce(
    part: str, out: Path, data: Path | None, replicates: int, jobs: int, seed: int, resume: bool, quiet: bool
) -> None:
    """Repeat PART of the paper's experiments and compare the results with its claims: tables, figures and a page.

    fig1 uses simulated data. table1 and fig2 need the real data sets listed in the documentation. The command needs
    a clone of netbic's repository.

    Finished steps are kept: after an interruption, run the same command again to continue.
    """
    paper = _reproduction()
    parts = paper.PARTS if part == "all" else (part,)
    options = {"replicates": replicates, "seed": seed, "n_jobs": jobs}
    try:
        with Progress(_stages(parts, replicates, jobs), quiet) as progress:
            paper.reproduce(parts, out, data, **options, progress=progress.update)
    except netbic.storage.CheckpointMismatch as problem:
        remedy = "use the same options, choose another folder, or delete this file to start again"
        raise click.ClickException(f"{problem.problem}: {remedy}") from None
    if not quiet:
        click.echo(f"{out}/README.md")


def _stages(parts: tuple[str, ...], replicates: int, jobs: int) -> dict[str, Stage]:
    """The stages of these parts."""
    n_jobs = n_parallel(jobs)
    stages: dict[str, Stage] = {}
    for key, stage in _SIMULATIONS.items() if "fig1" in parts else ():
        steps = replicates if key == "controls" else 18 * replicates
        startup = STARTUP if n_jobs > 1 and not stages else 0.0
        stages[key] = Stage(stage.name, stage.seconds / n_jobs, steps, 0, n_jobs, startup)
    if "table1" in parts or "fig2" in parts:
        stages |= _REAL_DATA if "table1" in parts else {"methods": _REAL_DATA["methods"]}
    return stages


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
