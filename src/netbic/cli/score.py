"""netbic score: scores of new samples on the modules of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.associate import sample_table_of
from netbic.cli.command import Command, File, reads_expression, split_lists
from netbic.cli.covariates import read_covariates, read_studies

if TYPE_CHECKING:
    from netbic.estimators import SparseGraphSVD


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("expression", type=File)
@click.option("--out", type=click.Path(path_type=Path), show_default="print to the terminal", help="Output table.")
@click.option("--force", is_flag=True, help="Replace an existing table.")
@click.option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with the covariates of the samples, for modules that were found with --covariates.",
)
@click.option(
    "--studies",
    metavar="NAME",
    show_default="the column of the fit",
    help="Column of this table with the study of each sample, for modules that were found with --studies.",
)
@reads_expression
def score(
    folder: Path,
    expression: str,
    out: Path | None,
    force: bool,
    sample_info: str | None,
    studies: str | None,
    **options: Any,
) -> None:
    """Compute scores of the samples in EXPRESSION on the modules in FOLDER (of netbic fit or netbic.save).

    The file is read and preprocessed like the data of the fit, unless options say otherwise. Genes are matched by name.
    """
    inputs: dict[str, str | list[Path]] = {
        "the samples to score": expression,
        "the modules": netbic.files.recorded_paths(folder),
    }
    if sample_info is not None:
        inputs["the sample table"] = sample_info
    if out is not None:
        netbic.files.check_output_file(out, inputs, force=force)
    model = netbic.storage.load_modules(folder)
    given = {name: value for name, value in split_lists(options).items() if value}
    data = netbic.storage.read_like(folder, expression, **given)
    if model.missing == "error" and (missing_text := data.missing_entries()):
        raise click.ClickException(f"{missing_text}: fill them, or fit with --missing ignore")
    given_samples = _of_samples(model, folder, sample_info, studies, expression, data.samples)
    scores = netbic.io.scores_by_name(model, data.matrix, data.genes, **given_samples)
    table = netbic.io.scores_table(scores, data.samples)
    if out is None:
        click.echo(table.to_csv(sep="\t", index=False), nl=False)
    else:
        netbic.files.check_output_file(out, inputs, force=force)  # it may have been created meanwhile
        netbic.io.write_table(out, table)
        click.echo(f"{len(table):,} samples x {scores.shape[1]} modules: {out}")


def _of_samples(
    model: SparseGraphSVD, folder: Path, sample_info: str | None, studies: str | None, expression: str, samples: Any
) -> dict[str, Any]:
    """The covariates and studies of new samples that a model needs."""
    from netbic.estimators import covariate_names

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
    table = netbic.io.read_sample_info(path, na_values=())
    if not several:
        types = {each.name: "numeric" if each.levels is None else "categorical" for each in coding.covariates}
        return {"covariates": read_covariates(names, table, samples, types)}
    column = studies or (netbic.io.finished_record(folder) or {}).get("settings", {}).get("studies")
    if column is None:
        raise click.UsageError(
            "the modules were found in several studies: name the column of the sample table, --studies"
        )
    numeric = {each.name.rpartition(" in ")[0] for each in coding.covariates if each.levels is None}
    types = {name: "numeric" if name in numeric else "categorical" for name in names}
    return {
        "covariates": read_covariates(names, table, samples, types),
        "studies": read_studies(str(column), table, samples),
    }
