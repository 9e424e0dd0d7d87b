"""netbic associate: compare modules with what is known about the samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.command import Command, File, echo, echo_report_is_older, in_terms_of_command, options, take

if TYPE_CHECKING:
    import pandas as pd

    from netbic.association import Associations
    from netbic.estimators import SparseGraphSVD

_NOTHING = "no column of the sample table can be tested"
types_option = click.option(
    "--types",
    metavar="NAME=TYPE",
    multiple=True,
    help="Type of a column: categorical, ordered, numeric, or its levels in order (grade=low<middle<high). Guessed by "
    "default. May be repeated.",
)
describes_samples = options(
    click.option(
        "--variables", metavar="NAME,...", show_default="all that can be tested", help="Columns of the sample table."
    ),
    click.option(
        "--adjust", metavar="NAME,...", help="Adjust all tests for these columns of the sample table (batch, age, ...)."
    ),
    click.option(
        "--survival",
        metavar="TIME,EVENT",
        multiple=True,
        help="Columns with the time and the event (1 seen, 0 not seen). May be repeated.",
    ),
    types_option,
)


@dataclass(frozen=True)
class AssociationOptions:
    """The sample table, and which of its columns are tested how."""

    sample_info: str | None
    variables: str | None
    adjust: str | None
    survival: tuple[str, ...]
    types: tuple[str, ...]

    def keywords(self) -> dict[str, Any]:
        """As parameters of `netbic.associate`."""
        return {
            "variables": None if self.variables is None else _names(self.variables),
            "adjust": _names(self.adjust or ""),
            "survival": [_pair(text) for text in self.survival] or None,
            "types": given_types(self.types),
        }

    def check(self, expression: str) -> None:
        """Refuse options that cannot be read, or need a sample table if there is none."""
        self.keywords()
        given = [name for name in ("variables", "adjust", "survival", "types") if getattr(self, name)]
        if given and self.sample_info is None and not has_obs(expression):
            raise click.UsageError(f"--{given[0]} needs --sample-info")


def has_obs(expression: str) -> bool:
    """Whether an expression file has a sample table of its own (obs of AnnData)."""
    return expression.lower().rstrip("/").endswith((".h5ad", ".zarr"))


def sample_table_of(sample_info: str | None, expression: str) -> str | None:
    """The file with the sample table: the one that was given, or the expression file if it has one."""
    return sample_info or (expression if has_obs(expression) else None)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pair(text: str) -> tuple[str, str]:
    if len(names := _names(text)) != 2:
        raise click.UsageError(f"--survival {text!r}: name two columns, TIME,EVENT")
    return names[0], names[1]


def given_types(texts: tuple[str, ...]) -> dict[str, str | list[str]]:
    """The values of --types by column."""
    return dict(map(_type, texts))


def _type(text: str) -> tuple[str, str | list[str]]:
    name, equals, kind = (part.strip() for part in text.rpartition("="))
    if not equals or not name or not kind:
        raise click.UsageError(f"--types {text!r}: write NAME=TYPE, for example grade=ordered")
    return name, [level.strip() for level in kind.split("<")] if "<" in kind else kind


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--sample-info",
    required=True,
    type=File,
    help="Table with a row for each sample: .tsv, .csv, .parquet, or the obs of an .h5ad file.",
)
@describes_samples
def associate(folder: Path, **given: Any) -> None:
    """Compare the modules in FOLDER (written by netbic fit) with labels, numbers and survival times of the samples.

    \b
    FOLDER/associations.tsv   a row per module, variable, level and test
    FOLDER/sample_info.tsv    the sample table, in the order of samples.tsv
    FOLDER/associations.json  types of the variables, covariates
    """
    chosen = take(AssociationOptions, given)
    written = [folder / name for name in netbic.association.WRITTEN]
    netbic.files.check_not_input(written, {"the sample table": chosen.sample_info})
    table = netbic.io.read_sample_info(str(chosen.sample_info))
    with netbic.io.locked(folder):
        scores, groups = netbic.association.stored_scores(folder)
        removed = netbic.association.Removed.of(netbic.load(folder))
        found = netbic.association.associate_scores(scores, groups, table, **chosen.keywords(), removed=removed)
        for line in map(in_terms_of_command, found.lines()):
            click.echo(line)
        if found.table.empty:
            raise click.ClickException(f"{_NOTHING} (reasons above), and nothing is written: give other columns")
        netbic.association.write_associations(found, folder)
    for line in written_lines(found, folder):
        click.echo(line)
    echo_report_is_older(folder)


def written_lines(found: Associations, out: Path) -> Iterator[str]:
    """What was written."""
    n_variables = found.table["variable"].nunique()
    if not n_variables:
        yield _NOTHING
    yield f"{out}/associations.tsv: {len(found.table):,} tests of {n_variables} variable{'s' * (n_variables != 1)}"


@dataclass(frozen=True)
class SampleTable:
    """A sample table that was matched and checked before the fit."""

    table: pd.DataFrame
    asked: AssociationOptions
    origin: str

    @property
    def keywords(self) -> dict[str, Any]:
        """Parameters of `netbic.associate`."""
        return self.asked.keywords()

    def recorded(self) -> dict[str, Any]:
        """The table and the options of the tests, as recorded in run.json."""
        asked = asdict(self.asked) | {"sample_info": self.origin}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items()}

    def write(
        self, model: SparseGraphSVD, folder: Path, out: Path, scores: pd.DataFrame, groups: pd.DataFrame
    ) -> Iterator[str]:
        """Test all modules, write the tables to a folder whose files end up in `out`; yield what was found."""
        removed = netbic.association.Removed.of(model)
        found = netbic.association.associate_scores(scores, groups, self.table, **self.keywords, removed=removed)
        netbic.association.write_associations(found, folder)
        yield from map(in_terms_of_command, found.findings())
        yield from written_lines(found, out)


def open_sample_table(chosen: AssociationOptions, expression: str, samples: Any, silent: bool) -> SampleTable | None:
    """The table that was given, or the obs of the expression file; None if there is neither.

    How it was matched is printed. A table that was asked for and cannot be used is an error; obs is then not used.
    """
    chosen.check(expression)
    keywords = chosen.keywords()
    path = sample_table_of(chosen.sample_info, expression)
    if path is None:
        return None
    try:
        return SampleTable(_described(path, samples, keywords, silent), chosen, path)
    except netbic.InputError as problem:
        if chosen.sample_info is not None or any(keywords.values()):
            raise
        if not str(problem).startswith(f"{path}: has n"):  # no obs, or no columns in it: nothing to report
            echo(f"obs is not used: {problem}", silent)
        return None


def _described(path: str, samples: Any, keywords: dict[str, Any], silent: bool) -> pd.DataFrame:
    """The table, after a test that it can be used; what is in it is printed."""
    import pandas as pd

    table = netbic.io.read_sample_info(path)
    match = netbic.association.match_samples(pd.Index(samples), table)
    variables = netbic.association.read_variables(match.table, **keywords)
    for line in [*match.lines(), *(netbic.association.variable_line(variable.record()) for variable in variables)]:
        echo(line, silent)
    return table
