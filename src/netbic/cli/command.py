"""What all commands share: errors in one line, exit codes, options for reading files."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import click

from netbic.cli.wording import from_one, in_genes, in_options

if TYPE_CHECKING:
    from netbic.io import Dataset

Options = TypeVar("Options")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
File = click.Path(exists=True, path_type=str)


class Finite(click.FloatRange):
    """A finite number in a range; click's own ranges accept infinity and NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Jobs(click.types.IntParamType):
    """A number of threads or processes, as joblib counts them: negative numbers are counted from all cores."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        number = int(super().convert(value, param, ctx))
        if not number:
            self.fail("0 is not possible: use a number of at least 1, or -1 for all cores.", param, ctx)
        return number


_RESUMABLE = "netbic.resumable"  # in the context of a command that can be resumed


class Command(click.Command):
    """A command whose errors are one line each; `--debug` shows the traceback.

    Exit codes: 0 success, 1 failure, 2 incorrect use.
    """

    resume_hint = "repeat the command"  # after an interruption or error
    restart_hint = "nothing was written yet: repeat the command"  # the same, before anything was stored
    unchanged_hint = "earlier results are unchanged"  # if a file cannot be written

    groups: ClassVar[dict[str, str]] = {}  # sections of the help, and the names of their options

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.params.append(click.Option(["--debug"], is_flag=True, help="Show the full traceback of an error."))

    def words(self, text: str) -> str:
        """A warning in the words of the command."""
        return in_genes(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by group; options without a group come last."""
        options = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        sections = {title: [options.pop(name) for name in names.split()] for title, names in self.groups.items()}
        sections["Other options" if sections else "Options"] = list(options.values())
        for title, members in sections.items():
            with formatter.section(title):
                formatter.write_dl([row for member in members if (row := member.get_help_record(ctx)) is not None])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        debug, quiet = ctx.params.pop("debug"), ctx.params.get("quiet", False)

        def show(message: Warning | str, *_: object, **__: object) -> None:
            if not quiet:
                text = _with_options(str(message), [*_OF_COMMAND, *(str(param.name) for param in self.params)])
                click.echo(f"warning: {from_one(self.words(text))}", err=True)

        try:
            with warnings.catch_warnings(), signals_as_interrupts():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = show
                return super().invoke(ctx)
        except click.UsageError as problem:
            problem.ctx = None  # the message says what to do: print it without the usage of the command
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            hint = self.resume_hint if ctx.meta.get(_RESUMABLE) else self.restart_hint
            raise click.ClickException(f"interrupted ({hint})") from None
        except BrokenPipeError:  # the output was closed, e.g. by head
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nothing must be flushed into the broken pipe)
            ctx.exit(0)
        except Exception as problem:
            if debug:
                raise
            raise _in_one_line(
                problem, self.resume_hint if ctx.meta.get(_RESUMABLE) else None, self.unchanged_hint
            ) from None


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
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


def mark_resumable() -> None:
    """From now on the current command can be resumed; its errors say so."""
    click.get_current_context().meta[_RESUMABLE] = True


_OF_COMMAND = {"lazy": "dask", "scale": "zscore", "k": "neighbours"}  # parameters whose option has another name


def _with_options(text: str, parameters: Sequence[str]) -> str:
    """Replace parameters in backticks (`id_map`, `force=True`) by the options of the command that runs."""
    options = {param.name: param for param in click.get_current_context().command.params}

    def option(found: re.Match[str]) -> str:
        name, value = _OF_COMMAND.get(found[1], found[1]), found[2]
        if found[1] not in parameters or name not in options:
            return found[0]
        if value == "False" and options[name].secondary_opts:
            return str(options[name].secondary_opts[0])
        return options[name].opts[0] + ("" if value in (None, "True") else f" {value}")

    return re.sub(r"`(\w+)(?:=([^`]*))?`", option, text)


def in_terms_of_command(line: str) -> str:
    """A line of the library with the options of the command that runs."""
    return _with_options(line, [str(param.name) for param in click.get_current_context().command.params])


def _in_one_line(problem: Exception, resume_hint: str | None, unchanged_hint: str) -> click.ClickException:
    from netbic.files import FolderInUse, WriteError
    from netbic.operators import BlockError, ClusterError

    text = " ".join(str(problem).split())
    text = in_options(_with_options(text, getattr(problem, "parameters", ())))
    if isinstance(problem, WriteError):
        return click.ClickException(
            f"{text} ({unchanged_hint if resume_hint is None else f'modules found so far are kept: {resume_hint}'})"
        )
    if isinstance(problem, FolderInUse):
        return click.UsageError(text)
    if isinstance(problem, (BlockError, ClusterError)) and resume_hint is not None:
        return click.ClickException(f"{text} (modules found so far are kept: {resume_hint})")
    if isinstance(problem, (ValueError, OSError, BlockError, ClusterError)):
        return click.ClickException(text)
    if isinstance(problem, MemoryError):
        return click.ClickException("not enough memory: keep fewer genes (--top-genes), use a sparse format, or --dask")
    return click.ClickException(
        f"{type(problem).__name__}: {text} (this is a bug: please report it with the output of --debug)"
    )


def options(*decorators: Decorator) -> Decorator:
    """One decorator that adds several options, listed in this order in the help."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        return reduce(lambda decorated, option: option(decorated), reversed(decorators), command)

    return decorate


reads_expression = options(
    click.option(
        "--samples-in-rows", is_flag=True, help="The table has samples in rows and genes in columns, not genes in rows."
    ),
    click.option("--layer", help="Layer of an .h5ad file or .zarr store to use instead of X."),
    click.option(
        "--gene-names",
        metavar="COLUMN",
        help="Column of var with the gene names (.h5ad, .zarr); for 10x folders: id or symbol.",
    ),
    click.option("--skip-columns", metavar="NAME,...", help="Columns of the table to ignore."),
)

preprocesses_genes = options(
    click.option(
        "--id-map", type=File, help="Two-column table that translates gene names of the data to those of the network."
    ),
    click.option(
        "--strip-versions", is_flag=True, help="Remove the version of Ensembl ids (the .5 of ENSG00000141510.5)."
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["highest", "mean", "error"]),
        default="highest",
        help="If several genes have the same name: keep the one with the highest mean, average them, or stop with an "
        "error.",
    ),
    click.option("--cpm", is_flag=True, help="Normalise each sample to counts per million."),
    click.option("--log1p", is_flag=True, help="Transform values to log(1 + x)."),
    click.option(
        "--top-genes", "n_variable", type=click.IntRange(2), metavar="N", help="Keep the N most variable genes."
    ),
)

reads_a_study = options(
    reads_expression,
    click.option("--relations", metavar="NAME,...", help="Keep only edges with these relations (SIF: second column)."),
    click.option("--min-score", type=Finite(0), help="Keep only edges with at least this score (STRING: 0 to 1000)."),
    click.option("--string-info", type=File, help="STRING's protein.info file, to translate proteins to gene names."),
    click.option("--graph-names", type=File, help="File with the node names of an .npz network, one per line."),
    click.option(
        "--header/--no-header", default=None, show_default="detected", help="Whether the edge table has a header line."
    ),
    click.option(
        "--source",
        metavar="COLUMN",
        show_default="detected by its name",
        help="Column of the edge table with the first gene.",
    ),
    click.option("--target", metavar="COLUMN", help="Column of the edge table with the second gene."),
    click.option(
        "--weighted/--unweighted",
        default=None,
        show_default="weighted, except for STRING",
        help="Whether scores of edges are used as their weights.",
    ),
    click.option(
        "--signs/--no-signs",
        default=None,
        show_default="detected",
        help="Whether edges activate or inhibit, by a column of signs, relations or negative weights.",
    ),
    preprocesses_genes,
    click.option("--matched-only", is_flag=True, help="Remove genes that are not in the network."),
)

preprocesses_data = options(
    click.option(
        "--center",
        type=click.Choice(["genes", "samples", "both", "grand", "none"]),
        default="genes",
        help="Centre the data by subtracting these means (both: genes and samples; grand: mean of all values).",
    ),
    click.option("--zscore", is_flag=True, help="Scale each gene to unit standard deviation."),
    click.option(
        "--missing",
        type=click.Choice(["error", "ignore", "impute"]),
        default="error",
        help="How to treat missing entries: stop with an error, use only the observed entries, or impute them.",
    ),
)

# Groups of options in the help, by the names of their parameters.
READING: Final = "samples_in_rows layer gene_names skip_columns duplicates strip_versions id_map"
NETWORK: Final = "relations min_score string_info graph_names header source target weighted signs matched_only"
PREPROCESSING: Final = "cpm log1p n_variable center zscore missing"
CENTERS: Final = {"genes": "columns", "samples": "rows", "none": None}


def take(kind: type[Options], parameters: dict[str, Any]) -> Options:
    """Move parameters of a command into a dataclass of options, which has a field for each.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> parameters = {"seed": 0, "jobs": 2, "out": "modules"}
    >>> take(make_dataclass("Search", ["seed", "jobs"]), parameters), parameters
    (Search(seed=0, jobs=2), {'out': 'modules'})
    """
    return kind(**{field.name: parameters.pop(field.name) for field in fields(kind)})  # type: ignore[arg-type]


def split_lists(parameters: dict[str, Any]) -> dict[str, Any]:
    """The same parameters, comma-separated values as lists."""
    lists = {name: parameters[name] or "" for name in ("skip_columns", "relations") if name in parameters}
    return parameters | {
        name: [part.strip() for part in text.split(",") if part.strip()] for name, text in lists.items()
    }


def preprocessing(study: Dataset, center: str, zscore: bool, missing: str) -> dict[str, Any]:
    """The options of `preprocesses_data` as parameters of SparseGraphSVD."""
    if missing == "error" and (missing_text := study.expression.missing_entries()):
        raise click.ClickException(
            f"{missing_text}: use --missing ignore or --missing impute, or fill the missing entries"
        )
    return {"center": CENTERS.get(center, center), "scale": zscore, "missing": missing}


def echo(line: str, silent: bool) -> None:
    """Print a line, unless the command is silent."""
    if not silent:
        click.echo(line)


def echo_report_is_older(folder: Path, silent: bool = False) -> None:
    """Say that the report of a folder does not show its tables, which were just written."""
    if (folder / "report.html").is_file():
        echo(f"next: netbic report {folder} (report.html is older than these tables)", silent)
