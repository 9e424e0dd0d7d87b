"""netbic tune: choose module sizes and smoothness by cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netbic.cli import options
from netbic.cli.cluster import client_of
from netbic.cli.command import Command, Progress, echo, in_options
from netbic.cli.fit import read_data
from netbic.cli.samples import covariate_lines, read_covariates, sample_table_of

if TYPE_CHECKING:
    import pandas as pd

_RECORD = "tuning.json"
_AGAIN = "run the same command again to continue"


@click.command(cls=Command, resume_hint=_AGAIN, restart_hint=_AGAIN, unchanged_hint=f"finished fits are kept: {_AGAIN}")
@click.argument("expression", type=options.File)
@options.graph
@options.out
@click.option("--modules", default=10, type=click.IntRange(1), help="Number of modules per fit.")
@click.option(
    "--genes",
    type=options.Numbers(int, 1),
    metavar="N,...",
    show_default="five values, up to all genes",
    help="Numbers of genes to try.",
)
@click.option("--samples", type=options.Numbers(int, 1), show_default="all", help="Numbers of samples to try.")
@click.option(
    "--smoothness",
    type=options.Numbers(float, 0),
    metavar="S,...",
    show_default="0,0.25,0.5,0.75",
    help="Smoothness values to try, for a network.",
)
@click.option("--folds", default=5, type=click.IntRange(2), help="Number of cross-validation folds.")
@options.sample_info
@options.covariates
@options.scales_data
@options.seed
@click.option("--jobs", type=options.Jobs(), show_default="all cores", help="Number of processes.")
@click.option("--force", is_flag=True, help="Replace the results of an earlier tuning in the folder.")
@options.quiet
@options.group(options.types, section="Sample table")
@options.reads_dataset
@options.group(
    click.option("--dask", metavar="local|ADDRESS", help="Run the fits on a Dask cluster: local or tcp://..."),
    section="Other options",
)
def tune(
    expression: str, graph: str | None, out: Path, dask: str | None, jobs: int | None, force: bool, **given: Any
) -> None:
    """Choose sizes and smoothness for EXPRESSION by cross-validation: by how well modules explain held-out data.

    \b
    DIR/tuning.tsv    settings, score and standard error of every grid point
    DIR/tuning.json   the chosen settings and a conclusion

    After an interruption, run the same command again to continue.
    """
    from netbic import files
    from netbic.estimators import SparseGraphSVD
    from netbic.selection import default_grid
    from netbic.storage import TUNING_PIECES, settings_of

    names = ("modules", "seed", "zscore", "missing", "folds", "sample_info", "covariates", "types")
    asked = {name: given.pop(name) for name in names}
    tried = {"n_columns": given.pop("genes"), "n_rows": given.pop("samples")}
    tried["column_smoothness"] = given.pop("smoothness")
    sample_info, covariates = asked["sample_info"], asked["covariates"]
    inputs = given | {"expression": expression, "graph": graph, "sample_info": sample_info}
    _check_folder(out, force, {role: inputs.get(name) for name, role in files.INPUT_LABELS.items()})
    if sample_info is not None and not covariates:
        raise click.UsageError("--sample-info is used for covariates only: add --covariates, or omit it")
    if dask is not None and jobs is not None:
        raise click.UsageError(
            "--jobs (processes on this machine) and --dask (a cluster) cannot be combined: use one of them"
        )
    if tried["column_smoothness"] and graph is None:
        raise click.UsageError("--smoothness needs a network: use --graph")
    dataset = read_data(expression, graph, asked, **given)
    for name, option, available in zip(("n_rows", "n_columns"), ("samples", "genes"), dataset.X.shape, strict=True):
        if (largest := max(tried[name] or [0])) > available:
            raise click.UsageError(
                f"--{option} {largest:,} but the data have {available:,} {option}: choose 1 to {available:,}"
            )
    removed = _covariates(covariates, sample_table_of(sample_info, expression), dataset.names[0], asked["types"])
    echo(*covariate_lines(removed))
    how = {"scale": asked["zscore"], "missing": asked["missing"], "random_state": asked["seed"]}
    model = SparseGraphSVD(asked["modules"], column_graph=dataset.graph, **how)
    grid = default_grid(model, dataset.expression.shape)
    grid |= {name: values for name, values in tried.items() if values is not None}
    pieces = out / TUNING_PIECES
    out.mkdir(parents=True, exist_ok=True)
    with files.locked(out):
        if force:
            files.remove_folder(pieces)
        with client_of(dask), Progress({"fits": "fitting settings to folds"}) as progress:
            tuning = _tune(
                model,
                dataset.X,
                grid,
                covariates=removed,
                checkpoint=pieces,
                progress=lambda done, total: progress.update("fits", done, total),
                random_state=asked["seed"],
                feature_name="gene",
                n_folds=asked["folds"],
                n_jobs="dask" if dask else jobs,
            )
        found = {"best_params": settings_of(tuning.best_params_), "verdict": tuning.verdict}
        with files.scratch_folder(out) as staged:
            files.write_table(staged / "tuning.tsv", tuning.table)
            files.commit_files(staged, out, _RECORD, found)
        files.remove_folder(pieces)
    sizes = "with sizes of your choice, or with --auto"
    if not tuning.unidentified:
        chosen = " ".join(f"`{name}={value:g}`" for name, value in tuning.best_params_.items() if name in tried)
        sizes = f"--modules {asked['modules']} {in_options(chosen)}"
    if covariates:
        sizes = f"--covariates {','.join(covariates)} {sizes}"
    echo(in_options(tuning.verdict), f"all settings: {out}/tuning.tsv", f"next: netbic fit ... {sizes}")


def _covariates(names: list[str], path: str | None, samples: Any, types: dict[str, Any]) -> pd.DataFrame | None:
    """The covariates of the samples; how the sample table was matched is printed."""
    if not names or path is None:
        return read_covariates(names, None, samples, {})
    import pandas as pd

    from netbic.association import match_samples, read_variables
    from netbic.io.samples import read_sample_info

    match = match_samples(pd.Index(samples), read_sample_info(path, na_values=()))
    echo(*match.lines())
    if types:
        read_variables(match.table, variables=types, types=types)  # an error if one is wrong
    return read_covariates(names, match.table, samples, types)


def _check_folder(out: Path, force: bool, inputs: dict[str, Any]) -> None:
    """Refuse finished results, unless they are to be replaced, and files that netbic did not write."""
    from netbic import files
    from netbic.storage import TUNING_PIECES

    if out.exists() and not out.is_dir():
        raise click.UsageError(f"{out} is a file: give a folder for the results")
    files.check_writable(out, ["tuning.tsv", _RECORD], inputs)
    if not force and files.read_record(out, _RECORD) is not None:
        if any(path.name.startswith(".netbic-") for path in out.iterdir()):  # killed after its last file was written
            with files.locked(out):
                files.remove_folder(out / TUNING_PIECES)
        raise click.UsageError(
            f"{out} already contains a finished tuning: choose another folder, or use --force to replace it"
        )


def _tune(*given: Any, **options: Any) -> Any:
    """`netbic.selection.tune`, with errors in the words of the command."""
    from netbic.operators.executors import ClusterError
    from netbic.selection import tune
    from netbic.storage import CheckpointMismatch

    try:
        return tune(*given, **options)
    except CheckpointMismatch as problem:
        remedy = "use the same options, choose another folder, or use --force to start again"
        raise click.ClickException(in_options(f"{problem.problem}: {remedy}")) from None
    except ClusterError as problem:
        raise click.ClickException(f"{problem} ({_AGAIN})") from None
