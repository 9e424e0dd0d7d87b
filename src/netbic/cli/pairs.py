"""netbic pairs: features of two tables of the same samples that vary together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netbic.cli.command import TABLES, Command, Progress, counted, echo, in_options, in_own_words
from netbic.cli.data import check_data
from netbic.cli.options import (
    File,
    Finite,
    options,
    out_option,
    quiet_option,
    reads_two_tables,
    sample_info_option,
    seed_option,
    tests_samples_of_fit,
)
from netbic.cli.samples import SampleTable, sample_table_of

if TYPE_CHECKING:
    from netbic.io import PairedDatasets
    from netbic.selection import PairTests
    from netbic.storage import PairModel

_STAGES = {"pairs": "finding pairs", "tests": "testing pairs", "report": "writing the report"}
_FEWEST = 20  # samples from which on pairs are tested
_LISTED, _SHOWN = 10, 3  # pairs, and names of features in a line
_NOT_INDEPENDENT = (
    "pairs are not tested, because samples belong together (--by): permutations of samples need independent ones. Use "
    "tables of averages to test pairs"
)
_SAME = "TABLE1 and TABLE2 have the same values, so that every feature is paired with itself: give two different tables"
_SIZE = "1.5%, 50 to 200, at most a fifth"


@click.command(cls=Command, words=TABLES)
@click.argument("table1", type=File)
@click.argument("table2", type=File)
@out_option
@click.option("--graph1", type=File, help="Network of the features of TABLE1.")
@click.option("--graph2", type=File, help="Network of the features of TABLE2.")
@click.option("--pairs", default=3, type=click.IntRange(1), help="Number of pairs.")
@click.option("--features1", type=click.IntRange(1), show_default=_SIZE, help="Features of TABLE1 in each pair.")
@click.option("--features2", type=click.IntRange(1), show_default=_SIZE, help="Features of TABLE2 in each pair.")
@click.option(
    "--method",
    type=click.Choice(["cca", "pls"]),
    default="cca",
    help="cca: canonical correlation analysis, both tables alike; pls: partial least squares, TABLE1 predicts TABLE2.",
)
@options(
    click.option(
        "--covariance",
        type=click.Choice(["diagonal", "ridge", "full"]),
        show_default="diagonal",
        help="Correlations between the features of one table: ignored, removed as far as --ridge allows, or removed "
        "completely (not sparse, needs more samples than features).",
    ),
    click.option("--ridge", type=Finite(0, 1, min_open=True), show_default="0.1", help="For --covariance ridge."),
    click.option("--smoothness1", type=Finite(0), show_default="0.6", help="Weight of the network of TABLE1."),
    click.option("--smoothness2", type=Finite(0), show_default="0.6", help="Weight of the network of TABLE2."),
    click.option(
        "--permutations",
        default=199,
        type=click.IntRange(0),
        help="Permutations of the samples for the p-value of each pair, at most; 0: pairs are not tested.",
    ),
    section="Search",
)
@sample_info_option
@seed_option
@click.option("--report/--no-report", default=True, help="Write DIR/report.html.")
@click.option("--force", is_flag=True, help="Replace the results of an earlier run in the folder.")
@quiet_option
@tests_samples_of_fit
@reads_two_tables
def pairs(
    table1: str,
    table2: str,
    out: Path,
    graph1: str | None,
    graph2: str | None,
    pairs: int,
    features1: int | None,
    features2: int | None,
    method: str,
    covariance: str | None,
    ridge: float | None,
    smoothness1: float | None,
    smoothness2: float | None,
    permutations: int,
    sample_info: str | None,
    variables: list[str] | None,
    adjust: list[str],
    survival: Any,
    types: dict[str, Any],
    by: list[str] | None,
    na_values: list[str] | None,
    seed: int,
    report: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Find features of TABLE1 and of TABLE2 that vary together in the samples of both.

    Each pair is a set of features of TABLE1 and a set of features of TABLE2 whose weighted sums (scores of the
    samples) are correlated, such as genes and lipids of the same mice. Both are tables like those of netbic fit
    (features in rows). Samples are matched by name; features are centred and scaled.

    \b
    DIR/pairs.tsv        one row per pair: sizes, correlation, p-value
    DIR/weights.tsv      features of each pair, with weights
    DIR/scores.tsv       scores of the samples in both tables
    DIR/associations.tsv labels, numbers, survival (with --sample-info)
    DIR/alignment.json   how samples and networks were matched
    DIR/report.html      all results as a web page
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    from netbic import io, storage
    from netbic.files import scratch_folder

    inputs: dict[str, Any] = {"table1": table1, "table2": table2, "graph1": graph1, "graph2": graph2}
    files = {f"TABLE{k}": table for k, table in ((1, table1), (2, table2))} | {"the sample table": sample_info}
    files |= {f"the network of TABLE{k}": graph for k, graph in ((1, graph1), (2, graph2))}
    for name, label in (("string_info", "STRING's names"), ("graph_names", "names of nodes"), ("id_map", "the id map")):
        files |= {f"{label} ({k})": path for k, path in enumerate(reading[name], start=1)}
    storage.check_pair_folder(out, force=force, inputs=files)
    settings: dict[str, Any] = {
        **{"method": method, "pairs": pairs, "features1": features1, "features2": features2},
        **{"smoothness1": smoothness1, "smoothness2": smoothness2, "covariance": covariance, "ridge": ridge},
        "seed": seed,
    }
    _check(settings, graph1, graph2)
    given = [_of_table(reading, number, graph is not None) for number, graph in enumerate((graph1, graph2))]
    tables = io.open_paired_datasets(table1, table2, (graph1, graph2), (given[0], given[1]))
    for line in tables.lines():
        echo(line, quiet)
    tests: dict[str, Any] = {"variables": variables, "adjust": adjust, "types": types, "by": by}
    tests["survival"] = [tuple(pair) for pair in survival] or None
    described = table1 if sample_table_of(None, table1) else table2
    samples = tables.first.expression.samples
    labels = SampleTable.read(sample_info, described, samples, tests, na_values, silent=quiet)
    first, second = (check_data(each, scaled=True, silent=quiet, table=k) for k, each in enumerate(tables.datasets, 1))
    tables = replace(tables, first=first, second=second)
    data = tables.fingerprint()
    if os.path.samefile(table1, table2) or data["expression1"] == data["expression2"]:
        warnings.warn(_SAME, stacklevel=1)
    model = _estimator(tables, settings)
    asked = reading | {"permutations": permutations} | ({} if labels is None else labels.record())
    inputs |= {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items() if value}
    record: dict[str, Any] = {"settings": settings, "data": data, "inputs": inputs}
    lines: list[str] = []
    with storage.Run.open_pairs(out, **record, force=force) as run, Progress(_STAGES, quiet) as progress:
        progress.update("pairs", 0, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one, other = (each.expression for each in tables.datasets)
            io.fit_by_name(model, one.matrix, other.matrix, one.samples, one.genes, other.genes)
        tested = None
        if permutations and model.n_components_ and len(one.samples) >= _FEWEST and not by:
            tested = _test(model, tables, permutations, progress)
        texts = [text for each in tables.datasets for text in each.alignment.warnings()]
        texts += [in_own_words(str(each.message)) for each in caught]
        with scratch_folder(out) as staged:
            storage.write_pair_results(staged, model, tables.to_dict(), None if tested is None else tested.table)
            progress.update("report", 0, 1)
            lines.extend(() if labels is None else labels.write_pairs(model, staged, out))
            lines.extend(_report(out, staged, model, run.record(texts)) if report else ())
            run.finish(staged, texts)
    for each in caught:
        warnings.warn(each.message, stacklevel=1)
    for line in [*_summary(out, model, tested), *[_NOT_INDEPENDENT] * bool(by), *lines]:
        echo(line, quiet)


def _check(settings: dict[str, Any], graph1: str | None, graph2: str | None) -> None:
    """Refuse options that cannot be combined, before anything is read."""
    covariance, ridge = settings["covariance"], settings["ridge"]
    for number, graph in ((1, graph1), (2, graph2)):
        if settings[f"smoothness{number}"] and graph is None:
            raise click.UsageError(f"--smoothness{number} needs a network: use --graph{number}")
    if settings["method"] == "pls" and (covariance or ridge is not None):
        given = "--covariance" if covariance else "--ridge"
        raise click.UsageError(f"{given} is for --method cca: leave it out, or use --method cca")
    if ridge is not None and covariance != "ridge":
        raise click.UsageError("--ridge needs --covariance ridge")
    sparse = {name: settings[name] for name in ("features1", "features2")} | {"graph1": graph1, "graph2": graph2}
    used = [name for name, value in sparse.items() if value is not None]
    if covariance == "full" and used:
        raise click.UsageError(f"--covariance full is not sparse: leave out --{used[0]}, or use --covariance ridge")


def _of_table(reading: dict[str, Any], position: int, has_graph: bool) -> dict[str, Any]:
    """The options for reading one table: flags name the table, other options are given for both or for each."""
    own: dict[str, Any] = {}
    for name, given in reading.items():
        if isinstance(given, tuple):
            if len(given) > 2:
                raise click.UsageError(in_options(f"`{name}` is given {len(given)} times, but there are two tables"))
            if given:
                own[name] = given[min(position, len(given) - 1)]
        elif given is not None:
            own[name] = given in ("both", str(position + 1))
    network = ("relations", "min_score", "string_info", "graph_names", "source", "target", "matched_only")
    return own if has_graph else {name: value for name, value in own.items() if name not in network}


def _estimator(tables: PairedDatasets, settings: dict[str, Any]) -> PairModel:
    """The estimator that the options describe."""
    import netbic
    from netbic.methods import usual_sizes

    parameters: dict[str, Any] = {"random_state": settings["seed"]}
    parameters |= {name: settings[name] for name in ("covariance", "ridge") if settings[name] is not None}
    covariance = settings["covariance"]
    for number, side, dataset in zip((1, 2), "xy", tables.datasets, strict=True):
        n_samples, n_features = dataset.expression.shape
        if covariance == "full" and n_samples <= n_features + 1:
            raise click.UsageError(
                f"--covariance full needs more samples than features, but table {number} has {n_samples:,} samples "
                f"and {counted(n_features, 'feature')}: use --covariance ridge"
            )
        size = settings[f"features{number}"]
        if size is not None and size > n_features:
            raise click.UsageError(
                f"--features{number} {size:,} but table {number} has {counted(n_features, 'feature')}: choose 1 to "
                f"{n_features:,}"
            )
        if size is None and covariance != "full":
            size = usual_sizes(0, n_features)[1]
        parameters |= {f"n_{side}": size, f"{side}_graph": dataset.graph}
        parameters[f"{side}_smoothness"] = settings[f"smoothness{number}"]
    kind = netbic.SparseGraphCCA if settings["method"] == "cca" else netbic.SparseGraphPLS
    return kind(settings["pairs"], **parameters)


def _test(model: PairModel, tables: PairedDatasets, permutations: int, progress: Progress) -> PairTests:
    """P-values and held-out correlations of the pairs."""
    import pandas as pd

    from netbic.arrays import is_sparse
    from netbic.selection import pair_tests

    def named(each: Any) -> Any:  # networks are matched by name
        return each.matrix if is_sparse(each.matrix) else pd.DataFrame(each.matrix, each.samples, each.genes)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the same fit were shown
        return pair_tests(
            model,
            *(named(each.expression) for each in tables.datasets),
            n_permutations=permutations,
            random_state=model.random_state,
            progress=lambda done, total: progress.update("tests", done, total),
        )


def _report(out: Path, folder: Path, model: PairModel, record: dict[str, Any]) -> Iterator[str]:
    """Write the report if its libraries are installed; the results are kept without it."""
    from netbic.report import missing_library, write_report

    if missing := missing_library():
        yield f'no report was written: it needs {missing}. Run pip install "netbic[report]", then netbic report {out}'
        return
    page = write_report(folder, model=model, record=record)
    yield f"{out}/{page.name}: the report, to open in a browser"


def _summary(out: Path, model: PairModel, tests: PairTests | None) -> Iterator[str]:
    """What was found, a line per pair."""
    from netbic.storage import pairs_table

    table = pairs_table(model, None if tests is None else tests.table)
    yield f"{counted(len(table), 'pair')}. Tables: {out}/pairs.tsv, {out}/weights.tsv, {out}/scores.tsv"
    for row in table.head(_LISTED).to_dict("records"):
        sides = []
        for number in (1, 2):
            count, names = row[f"n_features_{number}"], row[f"top_features_{number}"].split(", ")[:_SHOWN]
            more = ", ..." if count > len(names) else ""
            sides.append(f"{counted(count, 'feature')} of table {number} ({', '.join(names)}{more})")
        held_out = "" if tests is None else f" ({row['held_out_correlation']:.2f} held out, p = {row['p_value']:.2g})"
        yield f"  {row['label']}: correlation {row['correlation']:.2f}{held_out}, {' and '.join(sides)}"
    if len(table) > _LISTED:
        yield f"  and {len(table) - _LISTED} more (see {out}/pairs.tsv)"
    if tests is not None:
        yield tests.verdict
        yield "held out: the correlation in samples that were not used to find the pair; the other one is too large"
    elif len(table):
        yield "expect smaller correlations in new samples: the features were chosen for these samples"
