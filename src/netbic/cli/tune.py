"""netbic tune: choose module sizes and smoothness by cross-validation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.associate import types_option
from netbic.cli.checks import checked
from netbic.cli.cluster import client_of
from netbic.cli.command import (
    NETWORK,
    PREPROCESSING,
    READING,
    Command,
    File,
    Jobs,
    echo,
    in_terms_of_command,
    preprocesses_data,
    preprocessing,
    reads_a_study,
    split_lists,
    take,
)
from netbic.cli.covariates import CovariateOptions, covariate_lines, covariates_option
from netbic.cli.progress import Progress
from netbic.cli.wording import OPTIONS, in_genes

if TYPE_CHECKING:
    import pandas as pd

    from netbic.estimators import SparseGraphSVD
    from netbic.io import Dataset
    from netbic.selection import Tuning

_RECORD = "tuning.json"


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


class TuneCommand(Command):
    """A command that continues by itself when it is run again."""

    resume_hint = restart_hint = "run the same command again to continue"
    groups: ClassVar[dict[str, str]] = {
        "Main options": "graph out modules genes samples smoothness folds best resume force",
        "Sample table": "sample_info covariates types",
        "Reading the expression data": READING,
        "Reading the network": NETWORK,
        "Preprocessing": PREPROCESSING,
    }
    unchanged_hint = "finished fits are kept: run the same command again to continue"


@dataclass(frozen=True)
class TuningOptions:
    """Which models are compared, and how."""

    modules: int
    genes: list[int] | None
    samples: list[int] | None
    smoothness: list[float] | None
    folds: int
    best: bool
    center: str
    zscore: bool
    missing: str
    jobs: int | None
    dask: str | None
    seed: int

    def model(self, study: Dataset) -> SparseGraphSVD:
        """The model whose parameters are varied."""
        if self.smoothness and study.graph is None:
            raise click.UsageError("--smoothness needs a network: use --graph")
        parameters = preprocessing(study, self.center, self.zscore, self.missing)
        return netbic.SparseGraphSVD(self.modules, column_graph=study.graph, random_state=self.seed, **parameters)

    def grid(self, model: SparseGraphSVD, shape: tuple[int, int]) -> dict[str, list[Any]]:
        """The values of each parameter: those given, defaults otherwise."""
        given = {"n_columns": self.genes, "n_rows": self.samples, "column_smoothness": self.smoothness}
        default = netbic.selection.default_grid(model, shape)
        return default | {name: values for name, values in given.items() if values is not None}

    def parameters(self) -> dict[str, Any]:
        """Parameters of `selection.tune`."""
        return {
            "n_folds": self.folds,
            "n_jobs": "dask" if self.dask else self.jobs,
            "rule": "best" if self.best else "one_se",
            "random_state": self.seed,
        }


@click.command(cls=TuneCommand)
@click.argument("expression", type=File)
@click.option("--graph", type=File, help="Network file, as for netbic fit.")
@click.option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with a row for each sample, for --covariates.",
)
@covariates_option
@types_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--modules", default=10, type=click.IntRange(1), help="Number of modules per fit.")
@click.option(
    "--genes",
    type=Numbers(int, 1),
    metavar="N,...",
    show_default="five values, up to all genes",
    help="Numbers of genes to try.",
)
@click.option(
    "--samples",
    type=Numbers(int, 1),
    metavar="N,...",
    show_default="all samples are kept",
    help="Numbers of samples to try.",
)
@click.option(
    "--smoothness",
    type=Numbers(float, 0),
    metavar="S,...",
    show_default="0,0.25,0.5,0.75",
    help="Smoothness values to try, for a network.",
)
@click.option("--folds", default=5, type=click.IntRange(2), help="Number of cross-validation folds.")
@click.option("--best", is_flag=True, help="Choose the best setting instead of the simplest within one standard error.")
@preprocesses_data
@click.option(
    "--jobs", type=Jobs(), show_default="all cores", help="Number of processes; it does not affect the result."
)
@click.option(
    "--dask", metavar="local|ADDRESS", help="Run the fits on a Dask cluster: on this machine (local) or tcp://..."
)
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the folds.")
@reads_a_study
@click.option("--resume", is_flag=True, help="Continue an interrupted tuning (this is also the default).")
@click.option("--force", is_flag=True, help="Replace the results of an earlier tuning in the folder.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def tune(
    expression: str, graph: str | None, out: Path, resume: bool, force: bool, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Choose sizes and smoothness for EXPRESSION by cross-validation: by how well modules explain held-out data.

    \b
    DIR/tuning.tsv    settings, score and standard error of every grid point
    DIR/tuning.json   the chosen settings and a conclusion

    After an interruption, run the same command again to continue.
    """
    inputs = options | {"expression": expression, "graph": graph}
    _check_folder(out, force, {role: inputs.get(name) for name, role in netbic.files.INPUT_LABELS.items()})
    asked, removed, silent = take(TuningOptions, options), take(CovariateOptions, options), quiet or as_json
    removed.check()
    if asked.dask is not None and asked.jobs is not None:
        raise click.UsageError(
            "--jobs (processes on this machine) and --dask (a cluster) cannot be combined: use one of them"
        )
    study = netbic.io.open_dataset(expression, graph, **split_lists(options))
    for line in map(in_terms_of_command, study.alignment.lines()):
        echo(line, silent)
    covariates = removed.read(expression, study.names[0], silent)
    study = checked(study, scaled=asked.zscore, silent=silent)
    out.mkdir(parents=True, exist_ok=True)
    with netbic.io.locked(out):
        if force:
            netbic.files.remove_folder(out / netbic.storage.TUNING_PIECES)
        tuning = _tuned(study, out / netbic.storage.TUNING_PIECES, asked, covariates, silent)
        found = {"best_params": netbic.storage.settings_of(tuning.best_params_), "verdict": tuning.verdict}
        with netbic.files.scratch_folder(out) as staged:
            netbic.io.write_table(staged / "tuning.tsv", tuning.table)
            netbic.files.commit_files(staged, out, _RECORD, found)
        netbic.files.remove_folder(out / netbic.storage.TUNING_PIECES)
    if as_json:
        click.echo(json.dumps(found, indent=1))
    for line in _conclusion(tuning, asked.modules, removed.covariates, out):
        echo(line, silent)


def _check_folder(out: Path, force: bool, inputs: dict[str, Any]) -> None:
    """Refuse finished results, unless they are to be replaced, and files that netbic did not write."""
    if out.exists() and not out.is_dir():
        raise click.UsageError(f"{out} is a file: give a folder for the results")
    netbic.files.check_writable(out, ["tuning.tsv", _RECORD], inputs)
    record = netbic.files.read_record(out, _RECORD)
    if not force and record is not None:
        _remove_leftovers(out)
        raise click.UsageError(
            f"{out} already contains a finished tuning: choose another folder, or use --force to replace it"
        )


def _remove_leftovers(out: Path) -> None:
    """Remove what remains if a tuning was killed after its last file was written."""
    if any(path.name.startswith(".netbic-") for path in out.iterdir()):
        with netbic.io.locked(out):
            netbic.files.remove_folder(out / netbic.storage.TUNING_PIECES)


def _tuned(
    study: Dataset, checkpoint: Path, asked: TuningOptions, covariates: pd.DataFrame | None, silent: bool
) -> Tuning:
    from netbic.operators import ClusterError

    model = asked.model(study)
    grid = asked.grid(model, study.expression.shape)
    parameters = asked.parameters() | {"checkpoint": checkpoint, "covariates": covariates}
    try:
        with client_of(asked.dask), Progress({"fits": "fitting settings to folds"}, silent) as progress:
            return netbic.selection.tune(
                model, study.X, grid, progress=lambda done, total: progress.update("fits", done, total), **parameters
            )
    except netbic.storage.CheckpointMismatch as problem:
        remedy = "use the same options, choose another folder, or use --force to start again"
        raise click.ClickException(in_genes(f"{problem.problem}: {remedy}")) from None
    except netbic.InputError:
        raise
    except ValueError as problem:
        raise click.ClickException(in_genes(str(problem))) from None
    except ClusterError as problem:
        raise click.ClickException(f"{problem} ({TuneCommand.resume_hint})") from None


def _conclusion(tuning: Tuning, n_modules: int, covariates: str | None, out: Path) -> list[str]:
    """How covariates were used, the verdict, where the table is, and the command to run next."""
    sizes = " ".join(f"{OPTIONS[name]} {value:g}" for name, value in tuning.best_params_.items() if name in OPTIONS)
    chosen = f"--modules {n_modules} {sizes}"
    if tuning.unidentified:
        chosen = "with sizes of your choice, or with --auto"
    if covariates:
        chosen = f"--covariates {covariates} {chosen}"
    coding = tuning.best_estimator_.covariate_coding_
    used = [] if coding is None else covariate_lines(coding)
    return [*used, in_genes(tuning.verdict), f"all settings: {out}/tuning.tsv", f"next: netbic fit ... {chosen}"]
