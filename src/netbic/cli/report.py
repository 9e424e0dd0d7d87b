"""netbic report: the results of a fit as an HTML page."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

import netbic
from netbic.cli.command import Command


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), show_default="FOLDER/report.html", help="File to write."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def report(folder: Path, out: Path | None, force: bool) -> None:
    """Write the results in FOLDER as a single HTML file that can be opened in a browser or sent by e-mail.

    netbic fit already writes a report. Write it again after netbic enrich to include new gene sets.
    """
    in_place = out is None or out.absolute().parent == folder.absolute()
    with netbic.io.locked(folder) if in_place else nullcontext():
        click.echo(f"{netbic.report.write_report(folder, out, force=force)}")
