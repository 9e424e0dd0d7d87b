"""Options that several commands have, and types of values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
File = click.Path(exists=True, path_type=str)
Folder = click.Path(exists=True, file_okay=False, path_type=Path)
Output = click.Path(path_type=Path)
NA_WORDS: Final = ("unknown", "not known", "not reported", "not available", "missing", "na", "?")  # of netbic.io
CENTERS: Final = {"genes": "columns", "samples": "rows", "both": "both", "grand": "grand", "none": None}


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


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas; so many of them, if their number is given."""

    name = "name,..."

    def __init__(self, count: int | None = None) -> None:
        self._count = count

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The names, each once."""
        if isinstance(value, list):
            return value
        names = list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        if self._count is not None and len(names) != self._count:
            option = "" if param is None else param.opts[0]
            raise click.UsageError(f"{option} {value!r}: name two columns, {getattr(param, 'metavar', '')}")
        return names


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers separated by commas."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float], least: float) -> None:
        self._kind, self._least = kind, least

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """A list of numbers."""
        try:
            numbers = [self._kind(word) for word in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers: use e.g. 50,100,200", param, ctx)
        if any(not self._least <= number < float("inf") for number in numbers):
            self.fail(f"{value!r}: expected numbers of at least {self._least:g}", param, ctx)
        return numbers


class NumberOr(Finite):
    """A finite number in a range, or a word."""

    def __init__(self, word: str, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or the word."""
        return value if value == self._word else super().convert(value, param, ctx)


def options(*decorators: Decorator, section: str | None = None) -> Decorator:
    """One decorator that adds several options, listed in this order; those of a section by --help-all only."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        before = len(getattr(command, "__click_params__", ()))
        command = reduce(lambda decorated, option: option(decorated), reversed(decorators), command)
        for param in command.__click_params__[before:] if section else ():  # type: ignore[attr-defined]
            param.section = section
        return command

    return decorate


_EXPRESSION: Final[dict[str, dict[str, Any]]] = {
    "--samples-in-rows": {"is_flag": True, "help": "The table has samples in rows and genes in columns."},
    "--layer": {"metavar": "NAME", "help": "Layer of an .h5ad file or .zarr store to use instead of X."},
    "--gene-names": {
        "metavar": "COLUMN",
        "help": "Column of var with the gene names (.h5ad, .zarr); for 10x folders: id or symbol.",
    },
    "--skip-columns": {
        "type": Names(),
        "default": "",
        "show_default": False,
        "metavar": "NAME,...",
        "help": "Columns to ignore.",
    },
}
_GENES: Final[dict[str, dict[str, Any]]] = {
    "--id-map": {"type": File, "help": "Two-column table that translates gene names to those of the network."},
    "--strip-versions": {"is_flag": True, "help": "Remove versions of Ensembl ids (the .5 of ENSG00000141510.5)."},
    "--duplicates": {
        "type": click.Choice(["highest", "mean", "error"]),
        "default": "highest",
        "help": "Of genes with the same name, keep the one with the highest mean, average them, or stop.",
    },
    "--cpm": {"is_flag": True, "help": "Normalise each sample to counts per million."},
    "--log1p": {"is_flag": True, "help": "Transform values to log(1 + x)."},
    "--top-genes": {"type": click.IntRange(2), "metavar": "N", "help": "Keep the N most variable genes."},
}
_NETWORK: Final[dict[str, dict[str, Any]]] = {
    "--relations": {
        "type": Names(),
        "default": "",
        "show_default": False,
        "metavar": "NAME,...",
        "help": "Keep only these relations.",
    },
    "--min-score": {"type": Finite(0), "help": "Keep only edges of at least this score (STRING: 0 to 1000)."},
    "--string-info": {"type": File, "help": "STRING's protein.info file, to translate proteins to gene names."},
    "--graph-names": {"type": File, "help": "File with the node names of an .npz network, one per line."},
    "--source": {
        "metavar": "COLUMN",
        "show_default": "detected by its name",
        "help": "Column of the edge table with the first gene.",
    },
    "--target": {"metavar": "COLUMN", "help": "Column of the edge table with the second gene."},
    "--matched-only": {"is_flag": True, "help": "Remove genes that are not in the network."},
}
_ONE_NETWORK: Final[dict[str, dict[str, Any]]] = {
    "--weighted/--unweighted": {
        "default": None,
        "show_default": "weighted, except for STRING",
        "help": "Whether scores of edges are used as their weights.",
    },
    "--signs/--no-signs": {
        "default": None,
        "show_default": "detected",
        "help": "Whether edges activate or inhibit, by a column of signs, relations or negative weights.",
    },
}
_PARAMETERS: Final = {"--top-genes": "n_variable"}


def _built(specified: dict[str, dict[str, Any]], section: str, twice: bool = False) -> Decorator:
    """A decorator for options; `twice`: for two tables, each given for both at once, or once for each."""
    made = []
    for name, settings in specified.items():
        if twice and settings.get("is_flag"):
            settings = settings | {"is_flag": False, "type": click.Choice(["1", "2", "both"])}
        elif twice:
            settings = {key: value for key, value in settings.items() if key != "default"} | {"multiple": True}
        if twice:
            settings["help"] = settings["help"].replace("gene", "feature")
        parameter = _PARAMETERS.get(name) or name.partition("/")[0][2:].replace("-", "_")
        made.append(click.option(name.replace("gene", "feature") if twice else name, parameter, **settings))
    return options(*made, section=section)


reads_expression = _built(_EXPRESSION, "Reading the data")
preprocesses_genes = _built(_GENES, "Preprocessing")
reads_dataset = options(reads_expression, _built(_NETWORK | _ONE_NETWORK, "Reading the network"), preprocesses_genes)
_TWICE = "(once for both tables, or twice: for TABLE1, then for TABLE2)"
reads_two_tables = options(
    _built(_EXPRESSION, f"Reading the tables {_TWICE}", twice=True),
    _built(_NETWORK, f"Reading the networks {_TWICE}", twice=True),
    _built(_GENES, f"Preprocessing {_TWICE}", twice=True),
)
scales_data = options(
    click.option("--zscore", is_flag=True, help="Scale each gene to unit standard deviation."),
    click.option(
        "--missing",
        type=click.Choice(["error", "ignore", "impute"]),
        default="error",
        help="Missing entries: stop, use only the observed ones, or impute.",
    ),
    options(
        click.option(
            "--center",
            type=click.Choice(list(CENTERS)),
            default="genes",
            help="Centre the data by subtracting these means (both: genes and samples; grand: mean of all values).",
        ),
        section="Preprocessing",
    ),
)
seed_option = click.option("--seed", default=0, type=click.IntRange(0), help="Random seed.")
quiet_option = click.option("--quiet", is_flag=True, help="Print only errors.")
out_option = click.option("--out", required=True, type=Output, help="Folder for the results.")
graph_option = click.option("--graph", type=File, help="Network: SIF, edge table, STRING, GraphML, Parquet, .npz.")
sample_info_option = click.option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with a row for each sample: labels, numbers, survival times.",
)
covariates_option = click.option(
    "--covariates",
    type=Names(),
    default="",
    show_default=False,
    metavar="NAME,...",
    help="Columns of it to remove from the data (batch).",
)
studies_option = click.option(
    "--studies", metavar="NAME", help="Column of it with the study of each sample, if there are several."
)


def _types(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str | list[str]]:
    """The values of --types by column; levels in order as a list."""
    types: dict[str, str | list[str]] = {}
    for text in texts:
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not kind:
            raise click.UsageError(f"--types {text!r}: write NAME=TYPE, for example grade=ordered")
        types[name] = [level.strip() for level in kind.split("<")] if "<" in kind else kind
    return types


types_option = click.option(
    "--types",
    metavar="NAME=TYPE",
    multiple=True,
    callback=_types,
    help="Type of a column: categorical, ordered, numeric, or its levels in order (grade=low<middle<high). Guessed by "
    "default. May be repeated.",
)
_TESTS: Final = [
    click.option(
        "--variables",
        type=Names(),
        metavar="NAME,...",
        show_default="all that can be tested",
        help="Columns of the sample table to compare with the modules.",
    ),
    click.option(
        "--adjust",
        type=Names(),
        default="",
        show_default=False,
        metavar="NAME,...",
        help="Columns to adjust all tests for.",
    ),
    click.option(
        "--survival",
        type=Names(2),
        metavar="TIME,EVENT",
        multiple=True,
        help="Columns with the time and the event (1 seen, 0 not seen). May be repeated.",
    ),
    types_option,
    click.option(
        "--by",
        type=Names(),
        metavar="NAME,...",
        help="Columns such as donor of which samples with the same values belong together: their averages are tested "
        "(netbic fit keeps them in the same half for the verdicts, and netbic pairs does not test pairs).",
    ),
    click.option(
        "--na",
        "na_values",
        type=Names(),
        metavar="VALUE,...",
        show_default=", ".join(NA_WORDS),
        help="Values of the sample table that mean missing, besides empty fields and NA.",
    ),
]
tests_samples = options(*_TESTS)
tests_samples_of_fit = options(*_TESTS, section="Sample table")
runs_on_dask = options(
    click.option(
        "--dask",
        metavar="local|ADDRESS",
        help="Read the matrix in blocks with Dask, without loading it into memory: `local` starts workers on this "
        "machine, an address such as tcp://host:8786 uses a running scheduler. Needs .zarr (see netbic convert), "
        ".h5ad, .npy, or Parquet with --samples-in-rows.",
    ),
    click.option(
        "--dask-workers", type=click.IntRange(1), show_default="one per core", help="Workers for --dask local."
    ),
    click.option("--dask-memory", metavar="SIZE", show_default="an equal share", help="Memory per worker, e.g. 2GB."),
    click.option("--block-rows", type=click.IntRange(1), show_default="about 64 MB", help="Samples per block."),
    section="Data larger than memory",
)
