"""netbic tune: which sizes and which smoothness explain what was not fitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.cluster import client_of
from netbic.cli.command import (
    NETWORK,
    PREPARATION,
    READING,
    Command,
    File,
    listed,
    preparation,
    prepares_data,
    progress_bar,
    reads_a_study,
    say,
)
from netbic.cli.wording import OPTIONS, in_genes

if TYPE_CHECKING:
    from collections.abc import Callable

    from netbic.selection import Tuning
    from netbic.study import Study

_RECORD = "tuning.json"


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers with commas between them."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float], least: float) -> None:
        self._kind, self._least = kind, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """A list of numbers."""
        try:
            numbers = [self._kind(word) for word in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} are no numbers: write e.g. 50,100,200", param, ctx)
        if any(not self._least <= number < float("inf") for number in numbers):
            self.fail(f"{value!r}: numbers of at least {self._least:g} are needed", param, ctx)
        return numbers


class TuneCommand(Command):
    """A command that goes on by itself."""

    goes_on = not_begun = "run the same command again to go on"
    groups: ClassVar[dict[str, str]] = {
        "Options to begin with": "graph out modules genes samples smoothness criterion folds best force",
        "Reading the expression data": READING,
        "Reading the network": NETWORK,
        "Preparing the data": PREPARATION,
    }
    kept = "fits finished so far are kept: run the same command again to go on"


@click.command(cls=TuneCommand)
@click.argument("expression", type=File)
@click.option("--graph", type=File, help="The network, as for netbic fit.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--modules", default=10, show_default=True, type=click.IntRange(1), help="Modules per fit.")
@click.option("--genes", type=Numbers(int, 1), metavar="N,...", help="Sizes to try [default: five up to all genes].")
@click.option("--samples", type=Numbers(int, 1), metavar="N,...", help="Sizes to try [default: five up to all].")
@click.option(
    "--smoothness", type=Numbers(float, 0), metavar="S,...", help="Weights to try [default: 0,0.05,0.1,0.25]."
)
@click.option(
    "--criterion",
    type=click.Choice(["held_out", "wold", "gabriel", "bic"]),
    default="held_out",
    show_default=True,
    help="Held-out samples and genes, held-out entries, a held-out corner, or BIC.",
)
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2), help="Parts that are held out in turn.")
@click.option("--best", is_flag=True, help="Take the largest score, not the simplest within one standard error.")
@prepares_data
@click.option("--jobs", type=int, help="Processes; the result does not depend on it.")
@click.option("--dask", metavar="local|ADDRESS", help="Fit on a Dask cluster: workers on this machine, or tcp://...")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the folds.")
@reads_a_study
@click.option("--force", is_flag=True, help="Replace what an earlier tuning wrote into the folder.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
def tune(expression: str, graph: str | None, out: Path, force: bool, quiet: bool, as_json: bool, **words: Any) -> None:
    """Choose sizes and smoothness for EXPRESSION by how well modules explain what was not fitted.

    \b
    DIR/tuning.tsv    every point of the grid: settings, score, standard error
    DIR/tuning.json   what was chosen, and a sentence on what the data identify

    After an interruption, the same command goes on where it was.
    """
    given = words | {"expression": expression, "graph": graph}
    _check_folder(out, force, {role: given.get(name) for name, role in netbic.files.INPUT_LABELS.items()})
    if words["dask"] is not None and words["jobs"] is not None:
        raise click.UsageError("--jobs is about this machine's processes, --dask about a cluster: give one of them")
    names = ("modules", "genes", "samples", "smoothness", "criterion", "folds", "best")
    asked = {name: words.pop(name) for name in (*names, "center", "zscore", "missing", "jobs", "dask", "seed")}
    study = netbic.io.open_study(expression, graph, **listed(words))
    silent = quiet or as_json
    for line in study.alignment.lines():
        say(line, silent)
    out.mkdir(parents=True, exist_ok=True)
    with netbic.io.locked(out):
        if force:
            (out / netbic.files.TUNING_CHECKPOINT).unlink(missing_ok=True)
        tuning = _tuned(study, out / netbic.files.TUNING_CHECKPOINT, asked, silent)
        found = {"best_params": netbic.io.settings_of(tuning.best_params_), "verdict": tuning.verdict}
        with netbic.files.signals_deferred():
            with netbic.files.scratch_folder(out, _RECORD) as staged:
                netbic.io.write_table(staged / "tuning.tsv", tuning.table)
                netbic.files.commit_files(staged, out, _RECORD, netbic.files.with_version(found))
            (out / netbic.files.TUNING_CHECKPOINT).unlink()
    if as_json:
        click.echo(json.dumps(found, indent=1))
    say(in_genes(tuning.verdict), silent)
    identified = "do not identify" not in tuning.verdict
    onwards = (
        f"--modules {asked['modules']} {_as_options(tuning)}"
        if identified
        else "with the sizes you want to look at, or --auto"
    )
    say(f"all points: {out}/tuning.tsv; to go on: netbic fit ... {onwards}", silent)


def _check_folder(out: Path, force: bool, inputs: dict[str, Any]) -> None:
    """Refuse finished results, unless they are to be replaced, and files that netbic did not write."""
    if out.exists() and not out.is_dir():
        raise click.UsageError(f"{out} is a file: name a folder for the results")
    netbic.files.check_writable(out, ["tuning.tsv", _RECORD], inputs)
    netbic.files.check_not_input([out / netbic.files.TUNING_CHECKPOINT], inputs)
    netbic.storage.read_header(out / netbic.files.TUNING_CHECKPOINT, "tuning")  # an error if this is another file
    record = netbic.files.read_record(out, _RECORD)
    if not force and record is not None and record.get("state") != "running":
        _tidy(out)
        raise click.UsageError(f"{out} holds a finished tuning: choose another folder, or --force to replace it")


def _tidy(out: Path) -> None:
    """Remove what a kill after the very last file left of a finished tuning."""
    if (out / netbic.files.TUNING_CHECKPOINT).exists() or netbic.files.has_stale_files(out):
        with netbic.io.locked(out):
            netbic.files.remove_stale_files(out)
            (out / netbic.files.TUNING_CHECKPOINT).unlink(missing_ok=True)


def _tuned(study: Study, checkpoint: Path, asked: dict[str, Any], silent: bool) -> Tuning:
    from netbic.outofcore import ClusterError

    words = preparation(study, asked["center"], asked["zscore"], asked["missing"])
    model = netbic.SparseGraphSVD(asked["modules"], column_graph=study.graph, random_state=asked["seed"], **words)
    given = {"n_columns": asked["genes"], "n_rows": asked["samples"], "column_smoothness": asked["smoothness"]}
    if given["column_smoothness"] and study.graph is None:
        raise click.UsageError("--smoothness needs a network: give one by --graph")
    grid = netbic.selection.default_grid(model, study.expression.shape)
    grid |= {name: values for name, values in given.items() if values is not None}
    n_fits = asked["folds"] if asked["criterion"] != "bic" else 1
    for values in grid.values():
        n_fits *= len(values)
    words = {
        "criterion": asked["criterion"],
        "n_folds": asked["folds"],
        "n_jobs": "dask" if asked["dask"] else asked["jobs"],
    }
    words |= {"rule": "best" if asked["best"] else "one_se", "random_state": asked["seed"], "checkpoint": checkpoint}
    try:
        with client_of(asked["dask"]), progress_bar("fits", n_fits, 0, silent) as tell:
            return netbic.selection.tune(model, study.X, grid, progress=_counting(tell), **words)
    except netbic.storage.CheckpointMismatch as problem:
        remedy = "repeat those, choose another folder, or --force to start again"
        raise click.ClickException(in_genes(f"{problem.problem}: {remedy}")) from None
    except ValueError as problem:
        raise click.ClickException(in_genes(str(problem))) from None
    except ClusterError as problem:
        raise click.ClickException(f"{problem} ({TuneCommand.goes_on})") from None


def _counting(tell: Callable[[int], None]) -> Callable[[int, int], None]:
    return lambda done, total: tell(done)


def _as_options(tuning: Tuning) -> str:
    return " ".join(f"{OPTIONS[name]} {value:g}" for name, value in tuning.best_params_.items() if name in OPTIONS)
