"""Options that several commands have, and types of values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click
from click import option

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
File = click.Path(exists=True, path_type=str)
Folder = click.Path(exists=True, file_okay=False, path_type=Path)
Output = click.Path(path_type=Path)
COUNT = click.IntRange(1)
NA_WORDS: Final = ("unknown", "not known", "not reported", "not available", "missing", "na", "?")  # of netbic.io
# Parameters of a command that describe the tests of the samples, besides those for reading the data.
TESTS: Final = ("variables", "adjust", "survival", "types", "by", "na_values")


class Finite(click.FloatRange):
    """A finite number in a range, or a word; click's own ranges accept infinity and NaN."""

    def __init__(self, *args: Any, word: str | None = None, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or the word."""
        if value == self._word:
            return value
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def words(value: str) -> list[str]:
    """Words separated by commas, each once."""
    return list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def names(value: str) -> list[str]:
    """Names separated by commas, each once; an error if there are only commas."""
    if value and not words(value):
        raise click.UsageError(f"{value!r} contains no name: give names, or leave the option out")
    return words(value)


def two_columns(value: str) -> tuple[str, ...]:
    """The columns of --survival."""
    if len(found := names(value)) != 2:
        raise click.UsageError(f"--survival {value!r}: name two columns, TIME,EVENT")
    return tuple(found)


def columns_of_survival(value: str) -> tuple[str, ...]:
    """The columns of --survival; none of "none"."""
    return () if value == "none" else two_columns(value)


def two_names(value: str) -> tuple[str, ...]:
    """The names of two tables."""
    if len(found := names(value)) != 2:
        raise click.UsageError(f"--names {value!r}: give two different names, NAME1,NAME2")
    return tuple(found)


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers separated by commas."""

    name = "n,..."

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


def check_size(name: str, size: int | None, available: int, data: str = "the data have") -> None:
    """Refuse a number of genes, samples or features that the data do not have."""
    if size is not None and size > available:
        noun = f"{name.rstrip('12')[:-1]}{'s' * (available != 1)}"
        raise click.UsageError(f"--{name} {size:,} but {data} {available:,} {noun}: choose 1 to {available:,}")


def refuse(*problems: tuple[str, object]) -> None:
    """Raise the first message whose condition holds."""
    for message, applies in problems:
        if applies:
            raise click.UsageError(message)


def _check_jobs(ctx: click.Context, param: click.Parameter, number: int | None) -> int | None:
    if number == 0:
        raise click.BadParameter("0 is not possible: use a number of at least 1, or -1 for all cores.")
    return number


def jobs(text: str) -> Decorator:
    """The number of threads or processes, as joblib counts them: negative numbers are counted from all cores."""
    return option("--jobs", type=int, callback=_check_jobs, show_default="all cores", help=text)


def group(*decorators: Decorator, section: str | None = None) -> Decorator:
    """One decorator that adds several options, listed in this order; those of a section by --help-all only."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        before = len(getattr(command, "__click_params__", ()))
        command = reduce(lambda decorated, option: option(decorated), reversed(decorators), command)
        for param in command.__click_params__[before:] if section else ():  # type: ignore[attr-defined]
            param.section = section
        return command

    return decorate


_Settings = dict[str, dict[str, Any]]
_NAMES: Final[dict[str, Any]] = {"type": names, "default": "", "show_default": False, "metavar": "NAME,..."}
_COLUMN: Final[dict[str, Any]] = {"metavar": "COLUMN"}
_ID_MAP: Final[dict[str, Any]] = {
    "type": File,
    "help": "Two-column table that translates gene names, such as Ensembl ids to symbols, where they do not match.",
}
_EXPRESSION: Final[_Settings] = {
    "--samples-in-rows": {"is_flag": True, "help": "The table has samples in rows and genes in columns."},
    "--layer": {"metavar": "NAME", "help": "Layer of an .h5ad file or .zarr store to use instead of X."},
    "--gene-names": _COLUMN
    | {"help": "Column of var with the gene names (.h5ad, .zarr); for 10x folders: id or symbol."},
    "--skip-columns": _NAMES | {"help": "Columns to ignore."},
}
_GENES: Final[_Settings] = {
    "--id-map": _ID_MAP,
    "--strip-versions": {"is_flag": True, "help": "Remove versions of Ensembl ids (the .5 of ENSG00000141510.5)."},
    "--duplicates": {
        **{"type": click.Choice(["highest", "mean", "error"]), "default": "highest"},
        "help": "Of genes with the same name, keep the one with the highest mean, average them, or stop.",
    },
    "--cpm": {"is_flag": True, "help": "Normalise each sample to counts per million."},
    "--log1p": {"is_flag": True, "help": "Transform values to log(1 + x)."},
    "--top-genes": {"type": click.IntRange(2), "metavar": "N", "help": "Keep the N most variable genes."},
}
_NETWORK: Final[_Settings] = {
    "--relations": _NAMES | {"help": "Keep only these relations."},
    "--min-score": {"type": Finite(0), "help": "Keep only edges of at least this score (STRING: 0 to 1000)."},
    "--string-info": {"type": File, "help": "STRING's protein.info file, to translate proteins to gene names."},
    "--graph-names": {"type": File, "help": "File with the node names of an .npz network, one per line."},
    "--source": _COLUMN
    | {"show_default": "detected by its name", "help": "Column of the edge table with the first gene."},
    "--target": _COLUMN | {"help": "Column of the edge table with the second gene."},
    "--matched-only": {"is_flag": True, "help": "Remove genes that are not in the network."},
}
_ONE_NETWORK: Final[_Settings] = {
    "--weighted/--unweighted": {
        **{"default": None, "show_default": "weighted, except for STRING"},
        "help": "Whether scores of edges are used as their weights.",
    },
    "--signs/--no-signs": {
        **{"default": None, "show_default": "detected"},
        "help": "Whether edges activate or inhibit, by a column of signs, relations or negative weights.",
    },
}


def _built(specified: _Settings, section: str, twice: bool = False) -> Decorator:
    """A decorator for options; `twice`: for two tables, each given for both at once, or once for each."""
    made = []
    for name, settings in specified.items():
        parameter = "n_variable" if name == "--top-genes" else name.partition("/")[0][2:].replace("-", "_")
        if twice:
            name = name.replace("gene", "feature")
            settings = settings | {"help": settings["help"].replace("gene", "feature")}
            if settings.pop("is_flag", False):
                settings["type"] = click.Choice(["1", "2", "both"])
            else:
                settings["multiple"] = True
                settings.pop("default", None)
        made.append(option(name, parameter, **settings))
    return group(*made, section=section)


id_map = option("--id-map", **_ID_MAP)
reads_expression = _built(_EXPRESSION, "Reading the data")
preprocesses_genes = _built(_GENES, "Preprocessing")
reads_dataset = group(reads_expression, _built(_NETWORK | _ONE_NETWORK, "Reading the network"), preprocesses_genes)
_TWICE = "(once for both tables, or twice: for TABLE1, then for TABLE2)"
reads_two_tables = group(
    _built(_EXPRESSION, f"Reading the tables {_TWICE}", twice=True),
    _built(_NETWORK, f"Reading the networks {_TWICE}", twice=True),
    _built(_GENES, f"Preprocessing {_TWICE}", twice=True),
)
missing = option(
    "--missing",
    type=click.Choice(["error", "ignore", "impute"]),
    default="error",
    help="Missing entries: stop, use only observed ones, or impute.",
)
scales_data = group(option("--zscore", is_flag=True, help="Scale each gene to unit standard deviation."), missing)
seed = option("--seed", default=0, type=click.IntRange(0), help="Random seed.")
quiet = option("--quiet", is_flag=True, help="Print only errors.")
out = option("--out", required=True, type=Output, help="Folder for the results.")
report = option("--report/--no-report", default=True, help="Write DIR/report.html.")
graph = option("--graph", type=File, help="Network: SIF, edge table, STRING, GraphML, Parquet, .npz.")
sample_info = option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with a row for each sample: labels, numbers, survival times.",
)
covariates = option("--covariates", **_NAMES, help="Columns of it to remove from the data (batch).")


def _types(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str | list[str]]:
    """The values of --types by column; levels in order as a list."""
    types: dict[str, str | list[str]] = {}
    for text in texts:
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not kind:
            raise click.UsageError(f"--types {text!r}: write NAME=TYPE, for example grade=ordered")
        types[name] = [level.strip() for level in kind.split("<")] if "<" in kind else kind
    return types


types = option(
    "--types",
    metavar="NAME=TYPE",
    multiple=True,
    callback=_types,
    help="Type of a column: categorical, ordered, numeric, or its levels in order (grade=low<middle<high). Guessed by "
    "default. May be repeated.",
)
SOME: Final[dict[str, Any]] = {"type": names, "metavar": "NAME,..."}
tests_samples = group(
    option("--variables", **SOME, show_default="all that can be tested", help="Columns to compare with the modules."),
    option("--adjust", **_NAMES, help="Columns to adjust all tests for."),
    option(
        "--survival",
        type=columns_of_survival,
        metavar="TIME,EVENT|none",
        multiple=True,
        callback=lambda ctx, param, pairs: [pair for pair in pairs if pair] if pairs else None,
        show_default="found by name",
        help="Columns with the time and the event (1 seen, 0 not seen). May be repeated.",
    ),
    types,
    option(
        "--by",
        **SOME,
        help="Columns such as donor of which samples with the same values belong together: their averages are tested "
        "(netbic fit keeps them in the same half for the verdicts, and netbic pairs does not test pairs).",
    ),
    option(
        "--na",
        "na_values",
        type=words,
        metavar="VALUE,...",
        show_default=", ".join(NA_WORDS),
        help="Values of the sample table that mean missing, besides empty fields and NA.",
    ),
)
