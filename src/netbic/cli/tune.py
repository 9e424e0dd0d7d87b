"""netbic tune: choose module sizes and smoothness by cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, Progress, client_of, echo, in_options
from netbic.cli.fit import read_data
from netbic.cli.samples import covariate_lines, match_sample_table, read_covariates, sample_table_of

_RECORD = "tuning.json"
_AGAIN = "run the same command again to continue"
_SIZES = options.Numbers(int, 1)


@click.command(cls=Command, resume_hint=_AGAIN, restart_hint=_AGAIN, unchanged_hint=f"finished fits are kept: {_AGAIN}")
@click.argument("expression", type=options.File)
@options.graph
@options.out
@option("--modules", default=10, type=options.COUNT, help="Number of modules per fit.")
@option("--genes", type=_SIZES, show_default="five values, up to all genes", help="Numbers of genes to try.")
@option("--samples", type=_SIZES, show_default="all", help="Numbers of samples to try.")
@option(
    "--smoothness", type=options.Numbers(float, 0), show_default="0,0.25,0.5,0.75", help="Values to try, for a network."
)
@option("--folds", default=5, type=click.IntRange(2), help="Number of cross-validation folds.")
@options.sample_info
@options.covariates
@options.scales_data
@options.seed
@options.jobs("Number of fits at the same time.")
@option("--force", is_flag=True, help="Replace the results of an earlier tuning in the folder.")
@options.quiet
@options.group(options.types, section="Sample table")
@options.reads_dataset
@options.group(
    option("--dask", metavar="local|ADDRESS", help="Run the fits on a Dask cluster: local or tcp://..."),
    section="Other options",
)
def tune(
    expression: str, graph: str | None, out: Path, modules: int, folds: int, seed: int, force: bool, **reading: Any
) -> None:
    """Choose sizes and smoothness for EXPRESSION by cross-validation: by how well modules explain held-out data.

    \b
    DIR/tuning.tsv    settings, score and standard error of every grid point
    DIR/tuning.json   the chosen settings and a conclusion

    After an interruption, run the same command again to continue.
    """
    from netbic import files
    from netbic.association.variables import read_variables
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.operators.executors import ClusterError
    from netbic.selection import default_grid
    from netbic.selection import tune as tune_settings
    from netbic.storage.models import settings_of
    from netbic.storage.runs import CheckpointMismatch

    genes, samples, smoothness = (reading.pop(name) for name in ("genes", "samples", "smoothness"))
    sample_info, covariates, types = (reading.pop(name) for name in ("sample_info", "covariates", "types"))
    zscore, missing, jobs, dask = (reading.pop(name) for name in ("zscore", "missing", "jobs", "dask"))
    inputs = {"expression": expression, "graph": graph, "sample_info": sample_info} | reading
    pieces = out / files.TUNING_PIECES
    files.check_writable(out, ["tuning.tsv", _RECORD], files.labelled(inputs))
    if not force and files.read_record(out, _RECORD) is not None:
        if any(path.name.startswith(".netbic-") for path in out.iterdir()):  # killed after its last file was written
            with files.locked(out):
                files.remove_folder(pieces)
        raise click.UsageError(
            f"{out} already contains a finished tuning: choose another folder, or use --force to replace it"
        )
    options.refuse(
        ("--sample-info is used for covariates only: add --covariates, or omit it", sample_info and not covariates),
        ("--jobs (processes here) and --dask (a cluster) cannot be combined: use one of them", dask and jobs),
        ("--smoothness needs a network: use --graph", smoothness and graph is None),
    )
    dataset = read_data(expression, graph, zscore, missing, **reading)
    for name, sizes, available in zip(("samples", "genes"), (samples, genes), dataset.X.shape, strict=True):
        options.check_size(name, max(sizes or [0]), available)
    path = sample_table_of(sample_info, expression)
    matched = match_sample_table(path, dataset.names[0]) if path is not None and covariates else None
    if matched is not None:
        echo(*matched.lines())
        if types:
            read_variables(matched.table, variables=types, types=types)  # an error if one is wrong
    removed = read_covariates(covariates, None if matched is None else matched.table, types)
    echo(*covariate_lines(removed))
    model = SparseGraphSVD(
        modules, column_graph=dataset.graph, scale=zscore or None, missing=missing, random_state=seed
    )
    tried: dict[str, Any] = {"n_columns": genes, "n_rows": samples, "column_smoothness": smoothness}
    grid = default_grid(model, dataset.expression.shape)
    grid |= {name: values for name, values in tried.items() if values is not None}
    with files.locked(out):
        if force:
            files.remove_folder(pieces)
        with client_of(dask), Progress({"fits": "fitting settings to folds"}) as progress:
            try:
                tuning = tune_settings(
                    model,
                    dataset.X,
                    grid,
                    covariates=removed,
                    checkpoint=pieces,
                    progress=lambda done, total: progress.update("fits", done, total),
                    random_state=seed,
                    feature_name="gene",
                    n_folds=folds,
                    n_jobs="dask" if dask else jobs,
                )
            except CheckpointMismatch as problem:
                remedy = "use the same options, choose another folder, or use --force to start again"
                raise click.ClickException(in_options(f"{problem.problem}: {remedy}")) from None
            except ClusterError as problem:
                raise click.ClickException(f"{problem} ({_AGAIN})") from None
        found = {"best_params": settings_of(tuning.best_params_), "verdict": tuning.verdict}
        content = files.table_bytes(out / "tuning.tsv", tuning.table)
        files.write_files(out, {"tuning.tsv": content}, _RECORD, found)
        files.remove_folder(pieces)
    advice = "(sizes from the data), or with sizes of your choice"
    if not tuning.unidentified:
        chosen = " ".join(f"`{name}={value:g}`" for name, value in tuning.best_params_.items() if name in tried)
        advice = f"--modules {modules} {in_options(chosen)}"
    if covariates:
        advice = f"--covariates {','.join(covariates)} {advice}"
    echo(in_options(tuning.verdict), f"all settings: {out}/tuning.tsv", f"next: netbic fit ... {advice}")
