"""netbic plot: figures of the results in a folder."""

import click

from netbic.cli.command import Command


@click.command(cls=Command)
def plot() -> None:
    """Draw."""
