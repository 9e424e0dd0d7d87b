"""netbic report: what a fit found, as one page to look at."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

import netbic
from netbic.cli.command import Command


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file [default: FOLDER/report.html].")
@click.option("--force", is_flag=True, help="Replace the file that --out names.")
def report(folder: Path, out: Path | None, force: bool) -> None:
    """Show what netbic fit wrote into FOLDER as one HTML file, to be opened from disk or mailed.

    netbic fit does so itself. Do it again after netbic enrich, to see other gene sets.
    """
    in_place = out is None or out.absolute().parent == folder.absolute()
    with netbic.io.locked(folder) if in_place else nullcontext():
        click.echo(f"{netbic.report.write_report(folder, out, force=force)}")
