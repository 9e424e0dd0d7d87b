"""netbic associate: compare modules with what is known about the samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.command import Command, File, echo, echo_report_is_older, in_terms_of_command, options, take
from netbic.errors import one_line

if TYPE_CHECKING:
    import pandas as pd

    from netbic.association import Associations
    from netbic.estimators import SparseGraphSVD
    from netbic.storage import PairModel

_WORDS = ("unknown", "not known", "not reported", "not available", "missing", "na", "?")  # readers.NA_VALUES
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
    click.option(
        "--by",
        metavar="NAME,...",
        help="Columns such as donor of which samples with the same values belong together: their averages are tested "
        "(netbic fit keeps them in the same half for the verdicts, and netbic pairs does not test pairs).",
    ),
    click.option(
        "--na",
        "na_values",
        metavar="VALUE,...",
        show_default=", ".join(_WORDS),
        help="Values of the sample table that mean missing, besides empty fields and NA.",
    ),
)


@dataclass(frozen=True)
class AssociationOptions:
    """The sample table, and which of its columns are tested how."""

    sample_info: str | None
    variables: str | None
    adjust: str | None
    survival: tuple[str, ...]
    types: tuple[str, ...]
    by: str | None
    na_values: str | None

    def keywords(self) -> dict[str, Any]:
        """As parameters of `netbic.associate`."""
        return {
            "variables": None if self.variables is None else _names(self.variables),
            "adjust": _names(self.adjust or ""),
            "survival": [_pair(text) for text in self.survival] or None,
            "types": given_types(self.types),
            "by": _names(self.by or "") or None,
        }

    def read(self, path: str) -> pd.DataFrame:
        """The sample table in a file."""
        return netbic.io.read_sample_info(path, na_values=None if self.na_values is None else _names(self.na_values))

    def check(self, expression: str) -> None:
        """Refuse options that cannot be read, or need a sample table if there is none."""
        self.keywords()
        options = ("variables", "adjust", "survival", "types", "by", "na_values")
        given = [name for name in options if getattr(self, name)]
        if given and self.sample_info is None and not has_obs(expression):
            raise click.UsageError(f"--{given[0].removesuffix('_values')} needs --sample-info")


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

    FOLDER may also be one of netbic pairs: then the scores of both tables are compared, and associations.tsv has a row
    per pair and table instead of module.

    \b
    FOLDER/associations.tsv   a row per module, variable, level and test
    FOLDER/sample_info.tsv    the sample table, samples in the order of the fit
    FOLDER/associations.json  types of the variables, covariates
    """
    chosen = take(AssociationOptions, given)
    written = [folder / name for name in netbic.association.WRITTEN]
    netbic.files.check_not_input(written, {"the sample table": chosen.sample_info})
    table = chosen.read(str(chosen.sample_info))
    for line in missing_lines(table):
        click.echo(line)
    with netbic.io.locked(folder):
        found = _associated(folder, table, chosen.keywords())
        known = netbic.association.stored_verdicts(folder)
        for line in map(in_terms_of_command, found.lines(known)):
            click.echo(line)
        if found.table.empty:
            raise click.ClickException(f"{_NOTHING} (reasons above), and nothing is written: give other columns")
        netbic.association.write_associations(found, folder)
    for line in written_lines(found, folder):
        click.echo(line)
    echo_report_is_older(folder)


def _associated(folder: Path, table: pd.DataFrame, keywords: dict[str, Any]) -> Associations:
    """Associations of the modules or pairs in a folder."""
    if netbic.storage.contains_pairs(folder):
        model = netbic.storage.load(folder)
        if not model.n_components_:
            raise click.ClickException(f"{folder} contains no pairs: there is nothing to compare")
        return netbic.association.associate_pairs(model, table, **keywords)
    scores, groups = netbic.association.stored_scores(folder)
    removed = netbic.association.Removed.of(netbic.storage.load_modules(folder))
    return netbic.association.associate_scores(scores, groups, table, **keywords, removed=removed)


def missing_lines(table: pd.DataFrame) -> Iterator[str]:
    """Which values of a sample table were taken as missing."""
    for name, counts in table.attrs.get("taken_as_missing", {}).items():
        values = ", ".join(f"{value!r} ({number:,} samples)" for value, number in counts.items())
        yield f"{name}: {values} taken as missing (--na names other values)"


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

    def for_covariates(self) -> pd.DataFrame:
        """The table in which "unknown" is a group of its own, unless --na says that it is missing."""
        return self.table if self.asked.na_values is not None else netbic.io.read_sample_info(self.origin, na_values=())

    def recorded(self) -> dict[str, Any]:
        """The table and the options of the tests, as recorded in run.json."""
        asked = asdict(self.asked) | {"sample_info": self.origin}
        for name in ("by", "na_values"):  # as in earlier versions
            if asked[name] is None:
                del asked[name]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items()}

    def units(self, samples: Any) -> Any:
        """A label per sample, the same for samples that belong together (--by); None if all are independent.

        Of columns such as donor and condition, those that the tests are adjusted for (the donor) say which samples
        belong together.
        """
        import pandas as pd

        if (by := self.keywords["by"]) is None:
            return None
        table = netbic.association.match_samples(pd.Index(samples), self.table).table
        own = [name for name in by if name in self.keywords["adjust"]] or by
        numbers = netbic.association.Averages.of(table, own).numbers.copy()
        alone = numbers < 0  # a sample without a value belongs to no other one
        numbers[alone] = numbers.max() + 1 + range(alone.sum())
        return numbers

    def write(
        self, model: SparseGraphSVD, folder: Path, out: Path, scores: pd.DataFrame, groups: pd.DataFrame
    ) -> Iterator[str]:
        """Test all modules, write the tables to a folder whose files end up in `out`; yield what was found."""
        removed = netbic.association.Removed.of(model)
        found = netbic.association.associate_scores(scores, groups, self.table, **self.keywords, removed=removed)
        netbic.association.write_associations(found, folder)
        known = netbic.association.stored_verdicts(folder)
        yield from map(in_terms_of_command, found.findings(known))
        yield from written_lines(found, out)

    def write_pairs(self, model: PairModel, folder: Path, out: Path) -> Iterator[str]:
        """The same for the pairs of a model of two tables."""
        if not model.n_components_:
            yield "there are no pairs to compare with the sample table"
            return
        found = netbic.association.associate_pairs(model, self.table, **self.keywords)
        netbic.association.write_associations(found, folder)
        yield from map(in_terms_of_command, found.findings())
        yield from written_lines(found, out)


def open_sample_table(
    chosen: AssociationOptions, expression: str, samples: Any, silent: bool, studies: str | None = None
) -> SampleTable | None:
    """The table that was given, or the obs of the expression file; None if there is neither.

    How it was matched is printed. A table that was asked for and cannot be used is an error; obs is then not used.
    """
    chosen.check(expression)
    keywords = chosen.keywords()
    path = sample_table_of(chosen.sample_info, expression)
    if path is None:
        return None
    try:
        return SampleTable(_described(chosen, path, samples, silent, studies), chosen, path)
    except netbic.InputError as problem:
        if chosen.sample_info is not None or any(keywords.values()):
            raise
        if not str(problem).startswith(f"{path}: has n"):  # no obs, or no columns in it: nothing to report
            echo(f"obs is not used: {problem}", silent)
        return None


def _described(chosen: AssociationOptions, path: str, samples: Any, silent: bool, studies: str | None) -> pd.DataFrame:
    """The table, after a test that it can be used; what is in it is printed. `studies` is its column of studies."""
    import pandas as pd

    table, keywords = chosen.read(path), chosen.keywords()
    match = netbic.association.match_samples(pd.Index(samples), table)
    own, by = match.table, keywords.pop("by")
    if by is not None:
        needed = [keywords["variables"] or [], keywords["adjust"], *(keywords["survival"] or [])]
        own = netbic.association.Averages.of(own, by, [name for names in needed for name in names]).table
    variables = netbic.association.read_variables(own, **keywords, studies=own.get(studies))
    for line in [
        *missing_lines(table),
        *match.lines(),
        *(netbic.association.variable_line(variable.record()) for variable in variables),
    ]:
        echo(one_line(line), silent)
    return table
