"""What all commands share: errors in one line, exit codes, options for reading files."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from netbic.cli.wording import in_options

if TYPE_CHECKING:
    from netbic.study import Study

File = click.Path(exists=True, path_type=str)


class Finite(click.FloatRange):
    """A number in a range, neither infinite nor NaN (which click's own ranges let through)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


_KEPT = "netbic.kept"  # in a command's context: there is something to go on from


class Command(click.Command):
    """A command whose errors are one line each; `--debug` shows where they come from.

    Exit codes: 0 done, 1 failed, 2 wrong use.
    """

    goes_on = "repeat the command"  # after an interruption
    not_begun = "nothing was written yet: repeat the command"  # after one that came before anything was begun
    kept = "earlier results are as they were"  # what is left when a file cannot be written

    groups: ClassVar[dict[str, str]] = {}  # titles of the help's sections, and the names of their options

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.params.append(click.Option(["--debug"], is_flag=True, help="Show where an error comes from."))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options group by group; what no group names comes last."""
        options = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        sections = {title: [options.pop(name) for name in names.split()] for title, names in self.groups.items()}
        sections["Other options" if sections else "Options"] = list(options.values())
        for title, members in sections.items():
            with formatter.section(title):
                formatter.write_dl([row for member in members if (row := member.get_help_record(ctx)) is not None])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        debug, quiet = ctx.params.pop("debug"), ctx.params.get("quiet", False)

        def show(message: Any, *_: Any, **__: Any) -> None:
            if not quiet:
                click.echo(f"warning: {message}", err=True)

        try:
            with warnings.catch_warnings(), stopping_on_signals():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = show
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            what_now = self.goes_on if ctx.meta.get(_KEPT) else self.not_begun
            raise click.ClickException(f"interrupted ({what_now})") from None
        except BrokenPipeError:  # the reader of our output has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (so that nothing is flushed into the broken pipe)
            ctx.exit(0)
        except Exception as problem:
            if debug:
                raise
            raise _in_one_line(problem, self.goes_on if ctx.meta.get(_KEPT) else None, self.kept) from None


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP stop a command as Ctrl-C does: what it was writing is removed, what it found is kept."""
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    before = {}

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup's wish counts
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def now_keeping() -> None:
    """Have the present command say, if it fails, that what was done so far is kept."""
    click.get_current_context().meta[_KEPT] = True


def _in_one_line(problem: Exception, goes_on: str | None, kept: str) -> click.ClickException:
    from netbic.files import FolderInUse, WriteError
    from netbic.outofcore import BlockError, ClusterError

    text = in_options(" ".join(str(problem).split()))
    if isinstance(problem, WriteError):
        return click.ClickException(
            f"{text} ({kept if goes_on is None else f'modules found so far are kept: {goes_on}'})"
        )
    if isinstance(problem, FolderInUse):
        return click.UsageError(text)
    if isinstance(problem, (BlockError, ClusterError)) and goes_on is not None:
        return click.ClickException(f"{text} ({goes_on}: modules found so far are kept)")
    if isinstance(problem, (ValueError, OSError, BlockError, ClusterError)):
        return click.ClickException(text)
    if isinstance(problem, MemoryError):
        return click.ClickException(
            "there is not enough memory: keep fewer genes (--top-genes), or use a sparse format"
        )
    return click.ClickException(
        f"{type(problem).__name__}: {text} (this is a bug: please report it with --debug's output)"
    )


_READING_EXPRESSION = [
    click.option("--samples-in-rows", is_flag=True, help="The table has samples in rows (default: genes in rows)."),
    click.option("--layer", help="Layer of an .h5ad file or .zarr store to use instead of X."),
    click.option(
        "--gene-names", metavar="COLUMN", help="Column of var (.h5ad, .zarr) with the genes' names; 10x: id or symbol."
    ),
    click.option(
        "--skip-columns", metavar="NAME,...", default="", help="Columns of the table that hold no expression."
    ),
]


_READING_A_STUDY = [
    *_READING_EXPRESSION,
    click.option("--relations", metavar="NAME,...", default="", help="Keep edges of these relations only."),
    click.option("--min-score", type=Finite(0), help="Keep edges of at least this weight (STRING: 0 to 1000)."),
    click.option("--string-info", type=File, help="STRING's protein.info, to name proteins by their genes."),
    click.option("--graph-names", type=File, help="Node names of an .npz network, a line each."),
    click.option(
        "--header/--no-header", default=None, help="Whether the edge table has a header line (default: guessed)."
    ),
    click.option(
        "--source", metavar="COLUMN", help="Column of the edge table with one end (default: told by its name)."
    ),
    click.option("--target", metavar="COLUMN", help="Column of the edge table with the other end."),
    click.option("--id-map", type=File, help="Two-column table from the data's gene names to the network's."),
    click.option("--strip-versions", is_flag=True, help="Drop the versions of Ensembl ids (ENSG00000141510.5)."),
    click.option(
        "--duplicates",
        type=click.Choice(["highest", "mean", "error"]),
        default="highest",
        show_default=True,
        help="Several genes of one name: keep that of the highest mean, average them, or refuse.",
    ),
    click.option("--cpm", is_flag=True, help="Scale samples to counts per million."),
    click.option("--log1p", is_flag=True, help="Take log(1 + x)."),
    click.option(
        "--top-genes", "n_variable", type=click.IntRange(2), metavar="N", help="Keep the N most variable genes."
    ),
    click.option("--matched-only", is_flag=True, help="Drop genes that are not in the network."),
]


READING: Final = "samples_in_rows layer gene_names skip_columns duplicates strip_versions id_map"
NETWORK: Final = "relations min_score string_info graph_names header source target matched_only"
PREPARATION: Final = "cpm log1p n_variable center zscore missing"
CENTERS = {"genes": "columns", "samples": "rows", "none": None}
_PREPARING = [
    click.option(
        "--center",
        type=click.Choice(["genes", "samples", "both", "grand", "none"]),
        default="genes",
        show_default=True,
        help="Which means to subtract.",
    ),
    click.option("--zscore", is_flag=True, help="Bring genes to unit standard deviation."),
    click.option(
        "--missing",
        type=click.Choice(["error", "ignore", "impute"]),
        default="error",
        show_default=True,
        help="Missing values.",
    ),
]


def prepares_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what happens to the matrix before modules are sought in it."""
    return _with(command, _PREPARING)


def preparation(study: Study, center: str, zscore: bool, missing: str) -> dict[str, Any]:
    """Those options as words of SparseGraphSVD."""
    if missing == "error" and (holes := study.expression.holes()):
        raise click.ClickException(f"{holes}: use --missing ignore or --missing impute, or fill them")
    return {"center": CENTERS.get(center, center), "scale": zscore, "missing": missing}


@contextmanager
def progress_bar(what: str, total: int, done: int, silent: bool) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, to be told how many are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=silent or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total, completed=done)
        yield lambda number: progress.update(task, completed=number)


def say(line: str, silent: bool) -> None:
    """Print a line, unless nothing is to be printed."""
    if not silent:
        click.echo(line)


def reads_a_study(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to read, prepare and match an expression matrix and a network."""
    return _with(command, _READING_A_STUDY)


def reads_expression(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to read an expression matrix."""
    return _with(command, _READING_EXPRESSION)


def _with(command: Callable[..., Any], options: list[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def listed(words: dict[str, Any]) -> dict[str, Any]:
    """Options with comma-separated values as lists."""
    for name in {"skip_columns", "relations"} & set(words):
        words[name] = [word.strip() for word in words[name].split(",") if word.strip()]
    return words
