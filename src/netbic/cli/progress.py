"""Progress of a command on standard error: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from time import monotonic
from types import TracebackType
from typing import Any, Self

import click

_GAP = 5.0  # seconds between lines, and before the first one


class Progress:
    """Shows the stage of a command, how much of it is done and how much time is left for it; a context manager.

    Parameters
    ----------
    stages : dict of str
        What the user reads for each stage.
    silent : bool
        Show nothing.
    """

    def __init__(self, stages: Mapping[str, str], silent: bool = False) -> None:
        self._stages, self._silent, self._printed = stages, silent, monotonic()
        self._bar: Any = None
        self._stage = ""

    def update(self, stage: str, done: float, total: float) -> None:
        """So many of the steps of a stage are done."""
        name = self._stages.get(stage, stage)
        if self._bar is not None:
            if stage != self._stage:
                self._bar.reset(self._bar.task_ids[0], description=name, total=total, completed=done)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        elif not self._silent and monotonic() - self._printed >= _GAP:
            self._printed = monotonic()
            click.echo(f"{name}: {done / max(total, 1):.0%} done" if total > 1 else name, err=True)
        self._stage = stage

    def __enter__(self) -> Self:
        if not self._silent and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            columns = (
                *progress.Progress.get_default_columns()[:3],
                progress.TimeRemainingColumn(elapsed_when_finished=True),
            )
            console, redirected = Console(stderr=True), sys.stdout.isatty()  # otherwise lines belong to a file or pipe
            self._bar = progress.Progress(*columns, console=console, transient=True, redirect_stdout=redirected)
            self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
