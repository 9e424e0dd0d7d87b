"""What all commands share: help in two lengths, errors in one line, exit codes, progress, a Dask cluster."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import click

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

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
    "netbic.io.read_id_map": "--id-map",
}
_OF_FIT: Final = {"covariates": "--covariates", "groups": "--by"}  # if the command that runs has no such option
_GAP = 5.0  # seconds between lines of progress, and before the first one
_REDRAWN = 0.1  # seconds between pictures of a bar
_SECONDS = 10  # to wait for an answer of a Dask scheduler
_IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # also for restarted workers
_COLLECTED = 100_000  # new objects after which reference cycles are searched for
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
        more: Any = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        more["hidden"] = not any(hasattr(param, "section") for param in self.params)  # it would say what --help says
        self.params.append(click.Option(["--help-all"], **more, help="Show all options and exit."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option without a value, such as that of an unset shell variable, is an error."""
        for name, value in zip(args, [*args[1:], None], strict=False):
            if name.startswith("--") and (value == "" or (name.endswith("=") and name.count("=") == 1)):
                raise click.UsageError(f"{name.rstrip('=')} is empty: give a value, or leave the option out")
        given = Counter(each.partition("=")[0] for each in args[: args.index("--") if "--" in args else None])
        for param in self.get_params(ctx):  # of numbers, the last one counts, as usual; a second file would be lost
            once = isinstance(param, click.Option) and not param.multiple and isinstance(param.type, click.Path)
            if once and (again := [each for each in param.opts if given[each] > 1]):
                remedy = " (several GMT files: zcat -f a.gmt b.gmt.gz > all.gmt)" * (again[0] == "--gene-sets")
                raise click.UsageError(f"{again[0]} is given {given[again[0]]} times: give it once{remedy}")
        return super().parse_args(ctx, args)

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
        debug, ctx.meta[QUIET] = ctx.params.pop("debug"), ctx.params.pop("quiet", False)
        try:
            with (
                warnings.catch_warnings(action="always", category=UserWarning),
                _signals_as_interrupts(),
                _rare_collections(),
            ):
                said = set[str]()  # a table may be read twice
                warnings.showwarning = lambda message, *_, **__: echo_once(in_options(str(message)), said)
                return super().invoke(ctx)
        except click.UsageError as problem:
            problem.ctx = None  # the message says what to do: print it without the usage of the command
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as problem:
            hint = str(problem) or (self.resume_hint if ctx.meta.get(RESUMABLE) else self.restart_hint)
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
        if isinstance(problem, FolderInUse):
            return click.UsageError(text)
        is_gone = isinstance(problem, WriteError) and problem.is_gone  # then nothing is kept
        if resumable and isinstance(problem, (WriteError, BlockError, ClusterError)) and not is_gone:
            text += f" (modules found so far are kept: {self.resume_hint})"
        elif isinstance(problem, WriteError) and not is_gone:
            text += f" ({self.unchanged_hint})"
        elif isinstance(problem, MemoryError):
            text = "not enough memory: keep fewer genes (--top-genes), use a sparse format, or --dask"
        elif not isinstance(problem, (ValueError, OSError, BlockError, ClusterError)):
            bug = "this is a bug: please report it with the output of --debug"
            text = f"{type(problem).__name__}: {text} ({bug})"
        return click.ClickException(text)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Search for reference cycles rarely: with hundreds of imported modules it takes one second in fifteen."""
    usual = gc.get_threshold()
    gc.set_threshold(_COLLECTED, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C: unfinished files are removed, finished modules are kept."""
    names = ("SIGTERM", "SIGHUP", "SIGALRM") if threading.current_thread() is threading.main_thread() else ()
    before, hook = {}, sys.unraisablehook

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def again(lost: Any) -> None:
        """Interrupt a moment later, if Python was about to free an object, where it ignores exceptions."""
        if isinstance(lost.exc_value, KeyboardInterrupt) and getattr(signal, "SIGALRM", None) in before:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            hook(lost)

    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as set by nohup
            before[number] = signal.signal(number, stop)
    if names:
        sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = hook
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
        param = param or (by_option.get(_OF_FIT.get(name, "")) if found[1] else None)
        if param is None and value and name in _OF_FIT:
            return f"netbic fit {_OF_FIT[name]} {value}"
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


def is_silent() -> bool:
    """Whether the command runs with --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def echo(*lines: str) -> None:
    """Print lines, unless the command runs with --quiet."""
    for line in () if is_silent() else lines:
        click.echo(line)


def echo_warning(text: str) -> None:
    """Print a warning to standard error, unless the command runs with --quiet."""
    if not is_silent():
        click.echo(f"warning: {text}", err=True)


def echo_once(text: str, said: set[str]) -> None:
    """Print a warning that was not said before."""
    if text not in said:
        said.add(text)
        echo_warning(text)


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
        self._stages, self._silent, self._printed = stages, is_silent(), monotonic()
        self._bar: Any = None
        self._stage = ""

    def update(self, stage: str, done: float, total: float) -> None:
        """So many of the steps of a stage are done."""
        name = self._stages.get(stage, stage)
        if self._bar is not None:
            if stage != self._stage:
                self._bar.reset(self._bar.task_ids[0], description=name, total=total, completed=done)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
            if stage != self._stage or monotonic() - self._printed >= _REDRAWN:
                self._printed = monotonic()
                self._bar.refresh()
        elif not self._silent and monotonic() - self._printed >= _GAP:
            self._printed = monotonic()
            click.echo(f"{name}: {done / total:.0%} done" if total > 1 else name, err=True)
        self._stage = stage

    def __enter__(self) -> Self:
        if not self._silent and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            console, redirected = Console(stderr=True), sys.stdout.isatty()  # otherwise lines belong to a file or pipe
            # Without a thread that redraws it, this process can be copied (netbic.selection.fits).
            self._bar = progress.Progress(
                console=console, transient=True, redirect_stdout=redirected, auto_refresh=False
            )
            self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()


# The cluster of --dask: on this machine or elsewhere


@contextmanager
def client_of(where: str | None, n_workers: int | None = None) -> Iterator[Client | None]:
    """A client of workers on this machine ("local") or of the scheduler at an address; None without `where`."""
    if where is None:
        yield None
        return
    from netbic.errors import import_optional

    distributed, dask = import_optional("distributed", "dask", "--dask"), import_optional("dask", "dask", "--dask")
    import_optional("dask.array", "dask", "--dask")
    if where != "local" and "://" not in where:
        raise click.UsageError(
            f"--dask {where} is not an address: use 'local' or a scheduler's address such as tcp://host:8786"
        )
    for name in [*logging.root.manager.loggerDict, "distributed", "asyncio", "tornado"]:
        if name.split(".")[0] in ("distributed", "asyncio", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # errors that matter are reported by this command
    warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
    with ExitStack() as closing:
        # A client that cannot connect, or that lost its cluster, does not reset Dask's configuration.
        closing.callback(dask.config.set, scheduler=dask.config.get("scheduler", None))
        address = closing.enter_context(_local(distributed, n_workers)) if where == "local" else where
        try:
            if isinstance(address, str):  # a client that cannot connect would otherwise stay the current one of Dask
                distributed.Client(address, timeout=_SECONDS, set_as_default=False).close()
            client = distributed.Client(address, timeout=_SECONDS)
        except ValueError as problem:  # an unknown scheme, no port
            what = " ".join(str(problem).split())
            raise click.UsageError(f"--dask {where}: {what}: use an address such as tcp://host:8786") from None
        except OSError as problem:
            raise click.ClickException(
                f"--dask {where}: no Dask scheduler answered within {_SECONDS} seconds ({type(problem).__name__}): "
                "start one (dask scheduler, and dask worker on every machine), or use --dask local for this machine"
            ) from None
        yield closing.enter_context(client)


def _local(distributed: Any, n_workers: int | None) -> LocalCluster:
    """Workers on this machine: processes with one thread each, so that none waits for another."""
    from joblib import effective_n_jobs

    count, before = effective_n_jobs(n_workers or -1), None
    if threading.current_thread() is threading.main_thread():
        # Processes started meanwhile ignore Ctrl-C: this process handles it, and they end with this process.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port, on this machine only: 8787 may be in use
            silence_logs=logging.CRITICAL + 1,
            preload=[_IGNORE_CTRL_C],
        )
    except (RuntimeError, OSError) as problem:  # a worker or its nanny died or did not answer; no port, no process
        what = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
        raise click.ClickException(
            f"--dask local: the {count} Dask workers could not be started ({what}), probably because there was not "
            "enough memory or they were killed: try again, or use fewer workers (--jobs)"
        ) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
