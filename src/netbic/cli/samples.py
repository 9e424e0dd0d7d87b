"""What is known about the samples (sample tables, covariates, studies); netbic associate and netbic score."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, echo, echo_report_is_older, echo_warning, in_options

if TYPE_CHECKING:
    import pandas as pd

    from netbic.association.associate import Associations
    from netbic.association.variables import SampleMatch
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.io.expression import Expression
    from netbic.storage.models import PairModel

_CODES = 10  # up to so many different whole numbers are the codes of groups, unless their type is given
_LISTED = 5
_FAR = 5.0  # standard deviations of the scores of the fit
_NOTHING = "no column of the sample table can be tested"
_ALL_DOUBTFUL = "no pair is tested: all are doubtful"
_TYPES = "types are guessed: change one with --types NAME=TYPE (categorical, ordered, numeric, or low<middle<high)"


@dataclass(frozen=True)
class SampleTable:
    """A sample table that was matched and checked before a fit; `tests` are parameters of `netbic.associate`."""

    table: pd.DataFrame
    matched: pd.DataFrame  # a row for each sample of the fit
    tests: dict[str, Any]
    origin: str
    na_values: list[str] | None

    @classmethod
    def read(
        cls, sample_info: str | None, expression: str, samples: Any, tests: dict[str, Any], studies: str | None = None
    ) -> SampleTable | None:
        """The table that was given, or the obs of the expression file; None if there is neither.

        What is in it and how it was matched is printed. A table that was asked for and cannot be used is an error; obs
        is then not used. `studies` is the column of studies.
        """
        given = [name.removesuffix("_values") for name, value in tests.items() if value]
        path = sample_table_of(sample_info, expression)
        if path is None:
            if given:
                raise click.UsageError(f"--{given[0]} needs --sample-info")
            return None
        import pandas as pd

        from netbic.association.variables import Averages, match_samples, read_variables
        from netbic.errors import InputError
        from netbic.io.samples import read_sample_info

        tests = dict(tests)
        na_values = tests.pop("na_values")
        try:
            table = read_sample_info(path, na_values=na_values)
            match = match_samples(pd.Index(samples), table)
            own, asked = match.table, {name: value for name, value in tests.items() if name != "by"}
            averages = None
            if tests["by"]:
                needed = [*(asked["variables"] or []), *asked["adjust"]]
                kinds = {name: asked[name] for name in ("types", "survival")}
                averages = Averages.of(own, tests["by"], needed, **kinds)
                own = averages.table
            variables = read_variables(own, **asked, studies=own.get(studies))
            variables = variables if averages is None else list(averages.described(variables))
        except InputError as problem:
            if sample_info is not None or given:
                raise
            if not str(problem).startswith(f"{path}: has n"):  # no obs, or no columns in it: nothing to report
                echo(f"obs is not used: {problem}")
            return None
        echo(*_missing_lines(table), *_described(match, [variable.record() for variable in variables]))
        return cls(table, match.table, tests, path, na_values)

    def record(self) -> dict[str, Any]:
        """The table and the options of the tests, as recorded in run.json."""
        asked = {"sample_info": self.origin, "na_values": self.na_values, **self.tests}
        return {name: value for name, value in json.loads(json.dumps(asked)).items() if value is not None}

    def units(self) -> Any:
        """A label per sample, the same for samples that belong together (--by); None if all are independent.

        Of columns such as donor and condition, those that the tests are adjusted for (the donor) say which samples
        belong together.
        """
        from netbic.association.variables import Averages

        if not (by := self.tests["by"]):
            return None
        chosen = [name for name in by if name in self.tests["adjust"]] or by
        unknown = Averages.of(self.matched, chosen).numbers < 0
        labels = self.matched[chosen].astype(str).agg(" ".join, axis=1)
        # A sample without a value belongs to no other one.
        alone = [f"{name} alone" for name in self.matched.index]
        return labels.where(~unknown, alone).rename(chosen[0] if len(chosen) == 1 else None).reset_index(drop=True)

    def write(
        self, model: SparseGraphSVD | PairModel, folder: Path, out: Path, data: Mapping[str, Any]
    ) -> Iterator[str]:
        """Test all modules or pairs, write the tables to a folder whose files end up in `out`; yield what was found.

        `data` are the matrices of the fit, by what their features are called.
        """
        from netbic.association import stored

        found = _associate(model, folder, self.table, self.tests)
        found = _with_batch_effects(found, model, data, self.tests["variables"])
        written = stored.write_associations(found, folder)
        yield from map(in_options, found.findings(stored.stored_verdicts(folder)))
        if found.not_averaged:
            names = ",".join(found.not_averaged)
            again = ["netbic", "associate", str(out), "--sample-info", self.origin, "--variables", names]
            yield f"single samples: {shlex.join([*again, '--name', 'cells'])}"
        nothing = _ALL_DOUBTFUL if _are_doubtful_pairs(model, folder) else _NOTHING
        yield f"{'' if len(found.table) else f'{nothing}; '}{out}/{written}"


def _associate(model: SparseGraphSVD | PairModel, folder: Path, table: Any, tests: dict[str, Any]) -> Associations:
    """Compare the modules, with the scores in a folder, or the pairs of a model with a sample table."""
    from netbic import association
    from netbic.association import stored
    from netbic.estimators.results import names_of
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.storage.tables import HELD_OUT, read_results_table

    with warnings.catch_warnings(action="ignore", category=UserWarning):  # they are notes as well, which are printed
        if not isinstance(model, SparseGraphSVD):
            known = read_results_table(folder, "scores", "pair")
            held_out = None
            if known is not None and HELD_OUT[0] in known:
                verdicts = stored.stored_verdicts(folder)
                held_out = known[[verdicts.get(int(pair)) != "doubtful" for pair in known["pair"]]]
            return association.associate_pairs(model, table, held_out=held_out, **tests)
        scores = association.stored_scores(folder, names_of(model, "rows"), model.n_components_)
        return association.associate_scores(*scores, table, **tests, removed=association.Removed.of(model))


def _are_doubtful_pairs(model: SparseGraphSVD | PairModel, folder: Path) -> bool:
    """Whether the folder has pairs that are all doubtful, so that none is compared with labels."""
    from netbic.association.stored import stored_verdicts
    from netbic.storage.models import is_pair_model

    return is_pair_model(model) and set(stored_verdicts(folder).values()) == {"doubtful"}


def _with_batch_effects(
    found: Associations, model: SparseGraphSVD | PairModel, data: Mapping[str, Any], variables: list[str] | None
) -> Associations:
    """The same associations with notes about batches that differ in the data (matrices by the names of features).

    All notes name options of the command, also where they are stored.
    """
    from netbic.association.batches import batch_effects, removed_design

    for features, X in data.items():
        design = removed_design(model, X)
        found = found.noting(batch_effects(X, found.match.table, variables or (), design=design, features=features))
    notes, of_batches = (tuple(map(in_options, lines)) for lines in (found.notes, found.of_batches))
    return replace(found, notes=notes, of_batches=of_batches)


def _data_of(folder: Path, table: pd.DataFrame) -> dict[str, Any]:
    """The data of a fit, if the table has batches and the data can be read again; nothing is said otherwise."""
    from netbic.association.words import batch_columns
    from netbic.storage.runs import read_again

    with suppress(OSError, ValueError), warnings.catch_warnings(action="ignore"):
        return {"genes": read_again(folder).matrix} if batch_columns(table) else {}
    return {}


def sample_table_of(sample_info: str | None, expression: str) -> str | None:
    """The file with the sample table: the one that was given, or the expression file if it has one (obs of AnnData)."""
    return sample_info or (expression if expression.lower().rstrip("/").endswith((".h5ad", ".zarr")) else None)


def _missing_lines(table: pd.DataFrame) -> Iterator[str]:
    """Which values of a sample table were taken as missing."""
    for name, counts in table.attrs.get("taken_as_missing", {}).items():
        values = ", ".join(f"{value!r} ({number:,} samples)" for value, number in counts.items())
        yield f"{name}: {values} taken as missing (--na names other values)"


def _described(match: SampleMatch, records: Sequence[dict[Any, Any]]) -> Iterator[str]:
    """How the samples were matched, and what each column of the sample table was taken for."""
    from netbic.association.variables import variable_line
    from netbic.errors import one_line

    yield from map(one_line, match.lines())
    yield from (in_options(one_line(variable_line(record))) for record in records)
    yield _TYPES


def match_sample_table(path: str, samples: Any) -> SampleMatch:
    """The sample table in a file with a row for each sample; words such as "unknown" are values."""
    import pandas as pd

    from netbic.association.variables import match_samples
    from netbic.io.samples import read_sample_info

    return match_samples(pd.Index(samples), read_sample_info(path, na_values=()))


def read_covariates(
    names: Sequence[str], matched: pd.DataFrame | None, types: Mapping[str, Any]
) -> pd.DataFrame | None:
    """The covariates of the samples, columns of the matched sample table; None if there are none.

    Whole numbers of which there are few different ones, or that name batches, are groups, unless `types` says that they
    are numbers: groups include a linear effect, numbers do not include any other.
    """
    if not names:
        return None
    known = _columns(names, matched, "covariates")
    return known.assign(**{name: _typed(known[name], types.get(name)) for name in names})


def covariates_in(
    labels: SampleTable | None, names: Sequence[str], samples: Any, types: Mapping[str, Any]
) -> pd.DataFrame | None:
    """The covariates that were asked for; unless --na says otherwise, a word such as "unknown" is a group of one."""
    matched = None if labels is None else labels.matched
    if names and labels is not None and labels.na_values is None:
        matched = match_sample_table(labels.origin, samples).table
    return read_covariates(names, matched, types)


def _columns(names: Sequence[str], matched: pd.DataFrame | None, option: str) -> pd.DataFrame:
    """Columns of the matched sample table that an option names."""
    from netbic.association.variables import check_known

    if matched is None:
        raise click.UsageError(f"--{option} needs a sample table: use --sample-info")
    check_known(names, matched.columns, option)
    return matched[list(names)]


def _typed(column: pd.Series[Any], kind: Any) -> Any:
    """The values of a column as groups or numbers; categories are groups."""
    import pandas as pd
    from pandas.api import types

    from netbic.association.guesses import is_batch

    if isinstance(column.dtype, pd.CategoricalDtype):
        if kind != "numeric":
            return column.astype(object).where(column.isna(), column.astype(str)).to_numpy(dtype=object)
        column = pd.to_numeric(column.astype(object))
    numeric = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    whole = numeric and bool((column.dropna() % 1 == 0).all())
    few = whole and (2 < column.nunique() <= _CODES or is_batch(column))
    if kind == "numeric":
        return column.astype(float).to_numpy()
    if (kind is not None or few) and not column.isna().any():
        return (column.astype("Int64") if whole else column).astype(str).astype("category").to_numpy()
    return column.astype(float).to_numpy() if numeric else column.to_numpy(dtype=object)


def covariate_lines(covariates: pd.DataFrame | None) -> Iterator[str]:
    """How each covariate is used."""
    from netbic.errors import some_names
    from netbic.estimators.covariates import CovariateCoding

    if covariates is None:
        return
    for one in CovariateCoding.learn(covariates, len(covariates), covariates.index.to_numpy())[0].covariates:
        kind = "a number"
        if one.levels is not None:
            kind = f"{len(one.levels)} groups ({some_names(one.levels, _LISTED, quoted=False)})"
        yield f"covariate {one.name}: {kind}"


def read_studies(name: str | None, matched: pd.DataFrame | None) -> Any:
    """The study of each sample, a column of the matched sample table; None if there is one study."""
    if name is None:
        return None
    from netbic.estimators.studies import study_labels

    found = _columns([name], matched, "studies")[name]
    study_labels(found, len(found), found.index.to_numpy())  # an error if one is missing
    return found


@click.command(cls=Command)
@click.argument("folder", type=options.Folder)
@option("--sample-info", required=True, type=options.File, help="Table with a row for each sample, or .h5ad.")
@options.tests_samples
@option("--name", default="", metavar="NAME", show_default=False, help="Write associations_NAME.tsv beside the others.")
@option("--force", is_flag=True, help="Replace all earlier tests, also those of other variables.")
def associate(
    folder: Path, sample_info: str, na_values: list[str] | None, name: str, force: bool, **tests: Any
) -> None:
    """Compare the modules in FOLDER (written by netbic fit) with labels, numbers and survival times of the samples.

    FOLDER may also be one of netbic pairs: then the scores of both tables are compared, and associations.tsv has a row
    per pair and table instead of module. Tests are added to those that FOLDER has; those of the same variables are
    replaced.

    \b
    FOLDER/associations.tsv   a row per module, variable, level and test
    FOLDER/sample_info.tsv    the sample table, samples in the order of the fit
    FOLDER/associations.json  types of the variables, covariates
    """
    from netbic.association import stored
    from netbic.files import check_not_input, locked
    from netbic.io.samples import read_sample_info
    from netbic.storage.models import is_pair_model, load

    written = (*stored.files_of_associations(name), *[stored.SAMPLES] * (not name))
    check_not_input([folder / each for each in written], {"the sample table": sample_info})
    table = read_sample_info(sample_info, na_values=na_values)
    echo(*_missing_lines(table))
    with locked(folder):
        model = load(folder)
        if is_pair_model(model) and not model.n_components_:
            raise click.ClickException(f"{folder} contains no pairs: there is nothing to compare")
        found = _associate(model, folder, table, tests)
        data = {} if is_pair_model(model) else _data_of(folder, found.match.table)
        found = _with_batch_effects(found, model, data, tests["variables"])
        lines = [*_described(found.match, found.variables.to_dict("records"))]
        lines += map(in_options, found.findings(stored.stored_verdicts(folder)))
        if found.adjusted_for:
            lines += map(in_options, _before_and_after(found, folder))
        if found.table.empty:
            echo(*lines)
            if _are_doubtful_pairs(model, folder):
                raise click.ClickException(f"{_ALL_DOUBTFUL}, and nothing is written")
            raise click.ClickException(f"{_NOTHING} (reasons above), and nothing is written: give other columns")
        try:
            added = stored.write_associations(found, folder, name=name, force=force)
        except stored.OtherTests as problem:
            raise click.UsageError(f"{problem}: --name NAME writes these beside them, --force replaces them") from None
    echo(*lines, f"{folder}/{added}")
    if not name:
        echo_report_is_older(folder)


def _before_and_after(found: Associations, folder: Path) -> Iterator[str]:
    """Associations in a folder that were significant without adjustment, and what is left of them."""
    from netbic.association import stored
    from netbic.association.words import adjusted_lines
    from netbic.files import read_table

    record = stored.stored_record(folder)
    if record and not record.get("adjusted_for") and list(record.get("by") or ()) == list(found.by):
        before = read_table(folder / stored.TABLE).fillna({"level": ""})
        if lines := list(adjusted_lines(before, found.table, stored.stored_verdicts(folder))):
            yield "what was found without adjustment:"
            yield from (f"  {line}" for line in lines)


@click.command(cls=Command)
@click.argument("folder", type=options.Folder)
@click.argument("expression", type=options.File)
@option("--out", type=options.Output, show_default="print to the terminal", help="Output table.")
@option("--force", is_flag=True, help="Replace an existing table.")
@option("--standardise", is_flag=True, help="Centre and scale genes and scores in these samples: another platform.")
@options.sample_info
@option("--studies", metavar="NAME", show_default="as in the fit", help="Column of it with the study of each sample.")
@options.id_map
@options.reads_expression
def score(folder: Path, expression: str, out: Path | None, force: bool, standardise: bool, **reading: Any) -> None:
    """Compute scores of the samples in EXPRESSION on the modules in FOLDER (of netbic fit or netbic.save).

    A score is a weighted sum of the genes of a module, as in FOLDER/samples.tsv. The file is read and preprocessed like
    the data of the fit, unless options say otherwise. Genes are matched by name, and centred (and scaled) as in the
    fit: the same platform is needed, or --standardise. Scores are empty if fewer than 5 genes of a module, or fewer
    than a fifth, are in EXPRESSION. Missing values are replaced by the mean of their gene, or left out if the fit has
    used --missing. For modules that were found with covariates or studies, --sample-info has these columns for the
    new samples.
    """
    from netbic.comparison import standardised_scores
    from netbic.files import check_output_file, files_of, write_table
    from netbic.io.dataset import scores_by_name, scores_table
    from netbic.storage.models import load_modules
    from netbic.storage.runs import read_like

    sample_info, studies = reading.pop("sample_info"), reading.pop("studies")
    inputs = {"the samples to score": expression, "the sample table": sample_info, "the id map": reading["id_map"]}
    inputs |= files_of(folder)
    if out is not None:
        check_output_file(out, inputs, force=force)
    options.refuse(
        (
            "--standardise needs no --sample-info: the effects found in the fit are not used",
            standardise and sample_info,
        ),
        ("--standardise needs no --studies: the samples are one study", standardise and studies),
    )
    model = load_modules(folder)
    data = read_like(folder, expression, **{name: value for name, value in reading.items() if value})
    if standardise:
        _say_filled(data)
        scores = standardised_scores(model, data.matrix, list(data.genes), feature_name="gene")
    else:
        known = _about_samples(model, folder, sample_info, studies, expression, data.samples)
        given = _filled(data) if model.missing == "error" else (data.matrix, data.genes)
        scores = scores_by_name(model, *given, **known)
        _warn_if_far(model, scores)
    table = scores_table(scores, data.samples)
    if out is None:
        click.echo(table.to_csv(sep="\t", index=False), nl=False)
    else:
        check_output_file(out, inputs, force=force)  # it may have been created meanwhile
        write_table(out, table)
        click.echo(f"{len(table):,} samples x {model.n_components_} modules: {out}")


def _say_filled(data: Expression) -> int:
    """Say on the error stream how many values are missing, if any are; how many."""
    from netbic.comparison.replicate import filled_line, n_missing

    number = 0 if data.is_lazy else n_missing(data.matrix)
    if number:
        click.echo(f"{filled_line(number, 'gene')}", err=True)
    return number


def _filled(data: Expression) -> tuple[Any, Any]:
    """Values and genes; missing values replaced by the mean of their gene, genes that are hardly observed left out."""
    import numpy as np

    from netbic.comparison.replicate import MIN_OBSERVED, fill_missing

    if not _say_filled(data) or not isinstance(data.matrix, np.ndarray):
        return data.matrix, data.genes
    # Of one or two samples, those genes are kept that are observed in all.
    kept = np.sum(~np.isnan(data.matrix), axis=0) >= min(MIN_OBSERVED, len(data.matrix))
    return fill_missing(np.asarray(data.matrix[:, kept], dtype=np.float64)), np.asarray(data.genes)[kept]


def _warn_if_far(model: SparseGraphSVD, scores: Any) -> None:
    """Warn if samples are much further from the mean of the fit than its own samples."""
    from netbic.errors import some_names
    from netbic.estimators.prediction import distance_from_fit

    far = {at + 1: each for at, each in enumerate(distance_from_fit(model, scores)) if each > _FAR}
    if far:
        modules = f"module{'s' * (len(far) > 1)} {some_names(list(far), _LISTED, quoted=False)}"
        most = f"the median sample is {max(far.values()):,.0f} standard deviations from the mean of the fit"
        remedy = "if they are of another platform or batch, use --standardise"
        echo_warning(f"scores on {modules} leave the range of the fit ({most}): {remedy}")


def _about_samples(
    model: SparseGraphSVD, folder: Path, sample_info: str | None, studies: str | None, expression: str, samples: Any
) -> dict[str, Any]:
    """The covariates and studies of new samples that a model needs."""
    from netbic.estimators.covariates import covariate_names
    from netbic.files import finished_record

    coding = model.covariate_coding_
    if coding is None:
        if sample_info is not None or studies is not None:
            what = "--sample-info" if studies is None else "--studies"
            raise click.UsageError(f"{what}: the modules were found without covariates, so no table is needed")
        return {}
    path, names = sample_table_of(sample_info, expression), covariate_names(model)
    several = model.study_scaling_ is not None
    if path is None:
        found = "in several studies" if several else f"with covariates ({', '.join(names)})"
        raise click.UsageError(f"the modules were found {found}: give --sample-info")
    matched = match_sample_table(path, samples).table
    numeric = {each.name for each in coding.covariates if each.levels is None}
    if several:  # each covariate is coded in each study
        numeric = {name.rpartition(" in ")[0] for name in numeric}
    types = {name: "numeric" if name in numeric else "categorical" for name in names}
    known = {"covariates": read_covariates(names, matched, types)}
    if several:
        column = studies or (finished_record(folder) or {}).get("settings", {}).get("studies")
        if column is None:
            raise click.UsageError(
                "the modules were found in several studies: name the column of the sample table, --studies"
            )
        known["studies"] = read_studies(str(column), matched)
    return known
