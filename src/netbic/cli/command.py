"""What all commands share: help in two lengths, errors in one line, exit codes, progress."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, Self

import click

# Parameters of the library whose options have other names.
_OPTIONS: Final = {
    "n_columns": "--genes",
    "n_rows": "--samples",
    "column_smoothness": "--smoothness",
    "n_components": "--modules",
    "n_variable": "--top-genes",
    "scale": "--zscore",
    "lazy": "--dask",
    "k": "--neighbours",
    "n_x": "--features1",
    "n_y": "--features2",
    "x_smoothness": "--smoothness1",
    "y_smoothness": "--smoothness2",
}
_GAP = 5.0  # seconds between lines of progress, and before the first one
RESUMABLE, QUIET = "netbic.resumable", "netbic.quiet"  # in the context of a command that can be resumed, is silent


class Command(click.Command):
    """A command with a short help (`--help`) and a complete one (`--help-all`), whose errors are one line each.

    Options with a `section` are in the complete help only. `--debug` shows the traceback of an error. Exit codes: 0
    success, 1 failure, 2 incorrect use. Hints say what to do after an interruption, when something was stored
    (`resume_hint`) and before (`restart_hint`), and what remains if a file cannot be written (`unchanged_hint`).
    """

    def __init__(
        self,
        *args: Any,
        resume_hint: str = "repeat the command",
        restart_hint: str = "nothing was written yet: repeat the command",
        unchanged_hint: str = "earlier results are unchanged",
        **keywords: Any,
    ) -> None:
        super().__init__(*args, **keywords)
        self.resume_hint, self.restart_hint, self.unchanged_hint = resume_hint, restart_hint, unchanged_hint
        self.params.append(click.Option(["--debug"], is_flag=True, help="Show the full traceback of an error."))
        if any(hasattr(param, "section") for param in self.params):
            more: Any = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
            self.params.append(click.Option(["--help-all"], **more, help="Show all options and exit."))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options; those of a section only if all are asked for."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(row)
        for title, rows in sections.items():
            if title == "Options" or "all" in ctx.meta:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        debug = ctx.params.pop("debug")

        def show(message: Warning | str, *_: object, **__: object) -> None:
            echo_warning(in_options(str(message)))

        try:
            with warnings.catch_warnings(), _signals_as_interrupts():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = show
                return super().invoke(ctx)
        except click.UsageError as problem:
            problem.ctx = None  # the message says what to do: print it without the usage of the command
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            hint = self.resume_hint if ctx.meta.get(RESUMABLE) else self.restart_hint
            raise click.ClickException(f"interrupted ({hint})") from None
        except BrokenPipeError:  # the output was closed, e.g. by head
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nothing must be flushed into the broken pipe)
            ctx.exit(0)
        except Exception as problem:
            if debug:
                raise
            raise self._in_one_line(problem, bool(ctx.meta.get(RESUMABLE))) from None

    def _in_one_line(self, problem: Exception, resumable: bool) -> click.ClickException:
        from netbic.files import FolderInUse, WriteError
        from netbic.operators.executors import BlockError, ClusterError

        text = in_options(" ".join(str(problem).split()))
        kept = f"modules found so far are kept: {self.resume_hint}"
        if isinstance(problem, FolderInUse):
            return click.UsageError(text)
        if isinstance(problem, WriteError):
            return click.ClickException(f"{text} ({kept if resumable else self.unchanged_hint})")
        if isinstance(problem, (BlockError, ClusterError)):
            return click.ClickException(f"{text} ({kept})" if resumable else text)
        if isinstance(problem, (ValueError, OSError)):
            return click.ClickException(text)
        if isinstance(problem, MemoryError):
            remedy = "keep fewer genes (--top-genes), use a sparse format, or --dask"
            return click.ClickException(f"not enough memory: {remedy}")
        bug = "this is a bug: please report it with the output of --debug"
        return click.ClickException(f"{type(problem).__name__}: {text} ({bug})")


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C: unfinished files are removed, finished modules are kept."""
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    before = {}

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as set by nohup
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def in_options(text: str, table: str = "") -> str:
    """Parameters of the library, in backticks or in the table above, as options of the command that runs.

    For a command about two tables, `log1p2=True` is --log1p 2, and so is `log1p=True` in a sentence about table 2.
    """
    params = click.get_current_context().command.params
    known = {str(param.name): param for param in params if isinstance(param, click.Option)}
    by_option = {option: param for param in known.values() for option in param.opts}

    def option(found: re.Match[str]) -> str:
        name, value = found[1] or found[3], found[2] if found[1] else None
        number = name[-1] if name not in known and name[:-1] in known else ""
        param = known.get(name.removesuffix(number)) or by_option.get(_OPTIONS.get(name, ""))
        if param is None:
            return found[0]
        if value == "False" and param.secondary_opts:
            return str(param.secondary_opts[0])
        if value in (None, "True"):
            value = number or table if isinstance(param.type, click.Choice) else ""
        return f"{param.opts[0]}{' ' * bool(value or found[4])}{value}"

    return re.sub(rf"`(\w+)(?:=([^`]*))?`|(?<![\w./])({'|'.join(_OPTIONS)})\b(?![\w./])(=?)", option, text)


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 module, 1,200 genes."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _is_silent() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def echo(*lines: str) -> None:
    """Print lines, unless the command runs with --quiet."""
    for line in () if _is_silent() else lines:
        click.echo(line)


def echo_warning(text: str) -> None:
    """Print a warning to standard error, unless the command runs with --quiet."""
    if not _is_silent():
        click.echo(f"warning: {text}", err=True)


def echo_report_is_older(folder: Path) -> None:
    """Say that the report of a folder does not show its tables, which were just written."""
    if (folder / "report.html").is_file():
        echo(f"next: netbic report {folder} (report.html is older than these tables)")


class Progress:
    """Shows the stage of a command and how much of it is done, on standard error; a context manager.

    On a terminal this is a bar with the time that is left, otherwise a line now and then. `stages` are what the user
    reads for each stage.
    """

    def __init__(self, stages: Mapping[str, str]) -> None:
        self._stages, self._silent, self._printed = stages, _is_silent(), monotonic()
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
            click.echo(f"{name}: {done / total:.0%} done" if total > 1 else name, err=True)
        self._stage = stage

    def __enter__(self) -> Self:
        if not self._silent and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            console, redirected = Console(stderr=True), sys.stdout.isatty()  # otherwise lines belong to a file or pipe
            self._bar = progress.Progress(console=console, transient=True, redirect_stdout=redirected)
            self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
