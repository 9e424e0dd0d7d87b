"""netbic pairs: features of two tables of the same samples that vary together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.associate import AssociationOptions, SampleTable, describes_samples, has_obs, open_sample_table
from netbic.cli.checks import checked
from netbic.cli.command import NETWORK, READING, Command, File, Finite, echo, reads_a_study, split_lists, take
from netbic.cli.progress import Progress
from netbic.cli.wording import counted, in_tables

if TYPE_CHECKING:
    from netbic.arrays import Array
    from netbic.io import TwoTables
    from netbic.selection import PairTests
    from netbic.storage import PairModel

_RENAMED = {"--gene-names": "--feature-names", "--top-genes": "--top-features"}
_STAGES = {"pairs": "finding pairs", "tests": "testing pairs", "report": "writing the report"}
_SHOWN = 3  # names of features in a line
_FEWEST = 20  # samples from which on pairs are tested
_LISTED = 10  # pairs
_NOT_INDEPENDENT = (
    "pairs are not tested, because samples belong together (--by): permutations of samples need independent ones. Use "
    "tables of averages to test pairs"
)
_SAME = "TABLE1 and TABLE2 have the same values, so that every feature is paired with itself: give two different tables"


def _table_options(number: int) -> list[click.Parameter]:
    """The options of `netbic fit` for reading a table and its network, with the number of the table at their ends."""

    @reads_a_study
    def read() -> None:
        """Has the options."""

    found = []
    for option in reversed(read.__click_params__):  # type: ignore[attr-defined]
        option = copy(option)
        option.name = f"{option.name}{number}"
        option.opts = [f"{_RENAMED.get(name, name)}{number}" for name in option.opts]
        option.secondary_opts = [f"{name}{number}" for name in option.secondary_opts]
        option.help = _in_features(option.help)
        option.hidden = number > 1  # one list is enough to read
        found.append(option)
    return found


def _in_features(text: str) -> str:
    for word, other in (("genes", "features"), ("gene", "feature"), ("Genes", "Features")):
        text = text.replace(word, other)
    return text


def _numbered(names: str, number: int) -> str:
    return " ".join(f"{name}{number}" for name in names.split())


class PairsCommand(Command):
    """A command about two tables."""

    groups: ClassVar[dict[str, str]] = {
        "Main options": "out graph1 graph2 pairs features1 features2 method force",
        "Search": "covariance ridge deflation smoothness1 smoothness2 permutations seed",
        "Reading TABLE1 (for TABLE2, options end with 2)": _numbered(f"{READING} cpm log1p n_variable", 1),
        "Reading the network of TABLE1 (for TABLE2, options end with 2)": _numbered(NETWORK, 1),
        "Sample table": "sample_info variables adjust survival types by na_values",
        "Output": "report quiet",
    }

    def words(self, text: str) -> str:
        """A warning about the tables."""
        return in_tables(text)


@dataclass(frozen=True)
class PairOptions:
    """Which model is fitted; as recorded in run.json."""

    method: str
    pairs: int
    features1: int | None
    features2: int | None
    smoothness1: float | None
    smoothness2: float | None
    covariance: str | None
    ridge: float | None
    deflation: str | None
    seed: int

    def check(self, graph1: str | None, graph2: str | None) -> None:
        """Refuse options that cannot be combined, before anything is read."""
        for number, smoothness, graph in ((1, self.smoothness1, graph1), (2, self.smoothness2, graph2)):
            if smoothness and graph is None:
                raise click.UsageError(f"--smoothness{number} needs a network: use --graph{number}")
        if self.method == "pls" and (self.covariance or self.ridge is not None):
            given = "--covariance" if self.covariance else "--ridge"
            raise click.UsageError(f"{given} is for --method cca: leave it out, or use --method cca")
        if self.ridge is not None and self.covariance != "ridge":
            raise click.UsageError("--ridge needs --covariance ridge")
        sparse = {"--features1": self.features1, "--features2": self.features2, "--graph1": graph1, "--graph2": graph2}
        used = [name for name, value in sparse.items() if value is not None]
        if self.covariance == "full" and used:
            raise click.UsageError(f"--covariance full is not sparse: leave out {used[0]}, or use --covariance ridge")

    def estimator(self, tables: TwoTables) -> PairModel:
        """The estimator that the options describe."""
        for number, dataset in enumerate(tables.datasets if self.covariance == "full" else (), start=1):
            n_samples, n_features = dataset.expression.shape
            if n_samples <= n_features + 1:
                raise click.UsageError(
                    f"--covariance full needs more samples than features, but table {number} has {n_samples:,} samples "
                    f"and {counted(n_features, 'feature')}: use --covariance ridge"
                )
        sizes = [
            _size(number, self, dataset.expression.shape[1]) for number, dataset in enumerate(tables.datasets, start=1)
        ]
        parameters: dict[str, Any] = {
            **dict(zip(("n_x", "n_y"), sizes, strict=True)),
            **{"x_graph": tables.first.graph, "y_graph": tables.second.graph},
            **{"x_smoothness": self.smoothness1, "y_smoothness": self.smoothness2, "random_state": self.seed},
        }
        given = {name: getattr(self, name) for name in ("deflation", "covariance", "ridge")}
        parameters |= {name: value for name, value in given.items() if value is not None}
        kind = netbic.SparseGraphCCA if self.method == "cca" else netbic.SparseGraphPLS
        return kind(self.pairs, **parameters)


def _size(number: int, options: PairOptions, available: int) -> int | None:
    """How many features of a table each pair has."""
    asked: int | None = getattr(options, f"features{number}")
    if asked is not None and asked > available:
        raise click.UsageError(
            f"--features{number} {asked:,} but table {number} has {counted(available, 'feature')}: choose 1 to "
            f"{available:,}"
        )
    if asked is None and options.covariance != "full":
        return netbic.methods.usual_sizes(0, available)[1]
    return asked


_SIZE = "1.5% of the features, 50 to 200, but at most a fifth of them"


@click.command(cls=PairsCommand)
@click.argument("table1", type=File)
@click.argument("table2", type=File)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--graph1", type=File, help="Network of the features of TABLE1.")
@click.option("--graph2", type=File, help="Network of the features of TABLE2.")
@click.option("--pairs", "--modules", "pairs", default=3, type=click.IntRange(1), help="Number of pairs.")
@click.option("--features1", type=click.IntRange(1), show_default=_SIZE, help="Features of TABLE1 in each pair.")
@click.option("--features2", type=click.IntRange(1), show_default=_SIZE, help="Features of TABLE2 in each pair.")
@click.option(
    "--method",
    type=click.Choice(["cca", "pls"]),
    default="cca",
    help="cca: canonical correlation analysis, both tables alike; pls: partial least squares, TABLE1 predicts TABLE2.",
)
@click.option(
    "--covariance",
    type=click.Choice(["diagonal", "ridge", "full"]),
    show_default="diagonal",
    help="Correlations between the features of one table: ignored, removed as far as --ridge allows, or removed "
    "completely (not sparse, needs more samples than features).",
)
@click.option("--ridge", type=Finite(0, 1, min_open=True), show_default="0.1", help="For --covariance ridge.")
@click.option(
    "--deflation",
    type=click.Choice(["canonical", "regression", "hotelling"]),
    show_default="canonical for cca, regression for pls",
    help="What is removed before the next pair: the scores of each table from that table, the scores of TABLE1 from "
    "both tables, or the pair from the cross-product.",
)
@click.option("--smoothness1", type=Finite(0), show_default="0.6", help="Weight of the network of TABLE1.")
@click.option("--smoothness2", type=Finite(0), show_default="0.6", help="Weight of the network of TABLE2.")
@click.option(
    "--permutations",
    default=199,
    type=click.IntRange(0),
    help="Permutations of the samples for the p-value of each pair, at most; 0: pairs are not tested.",
)
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed.")
@click.option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with a row for each sample (labels, numbers, survival times): pairs are compared with its columns, as "
    "modules are by netbic associate.",
)
@describes_samples
@click.option("--report/--no-report", default=True, help="Write DIR/report.html.")
@click.option("--force", is_flag=True, help="Replace the results of an earlier run in the folder.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def pairs(table1: str, table2: str, graph1: str | None, graph2: str | None, out: Path, **options: Any) -> None:
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
    report, force, quiet = (options.pop(name) for name in ("report", "force", "quiet"))
    permutations = options["permutations"]
    modelling = take(PairOptions, options)
    inputs = {"table1": table1, "table2": table2, "graph1": graph1, "graph2": graph2}
    _check_folder(out, force, inputs | options)
    modelling.check(graph1, graph2)
    comparing, described = take(AssociationOptions, options), table1 if has_obs(table1) else table2
    comparing.check(described)
    reading = [_of_table(options, number) for number in (1, 2)]
    tables = netbic.io.open_two_tables(table1, table2, (graph1, graph2), (reading[0], reading[1]))
    for line in tables.lines():
        echo(line, quiet)
    labels = open_sample_table(comparing, described, tables.first.expression.samples, quiet)
    tables = _checked(tables, quiet)
    if _same(table1, table2, tables):
        warnings.warn(_SAME, stacklevel=1)
    model = modelling.estimator(tables)
    options |= {} if labels is None else labels.recorded()
    given = {name: value for name, value in options.items() if value not in (None, False, [], (), "highest")}
    record = {"settings": asdict(modelling), "data": tables.fingerprint(), "inputs": inputs | given}
    for line in _run(out, model, tables, labels, record, permutations, report, force, quiet):
        echo(line, quiet)


pairs.params += [*_table_options(1), *_table_options(2)]


def _of_table(options: dict[str, Any], number: int) -> dict[str, Any]:
    """The options for reading one table, without its number; values with commas as lists."""
    own = {name[:-1]: value for name, value in options.items() if name.endswith(str(number))}
    return split_lists(own)


def _check_folder(out: Path, force: bool, given: dict[str, Any]) -> None:
    """Refuse a folder that must not be written to."""
    labels = {"table1": "TABLE1", "table2": "TABLE2"}
    for number in (1, 2):
        known = ("graph", "string_info", "graph_names", "id_map")
        labels |= {f"{name}{number}": f"{netbic.files.INPUT_LABELS[name]} of TABLE{number}" for name in known}
    named = {label: given.get(name) for name, label in labels.items()}
    named["the sample table"] = given.get("sample_info")
    netbic.storage.check_pair_folder(out, force=force, inputs=named)


def _checked(tables: TwoTables, quiet: bool) -> TwoTables:
    """The same tables, with what the checks found in their summaries."""
    first, second = (
        checked(dataset, scaled=True, silent=quiet, table=k) for k, dataset in enumerate(tables.datasets, 1)
    )
    return replace(tables, first=first, second=second)


def _same(table1: str, table2: str, tables: TwoTables) -> bool:
    digests = tables.fingerprint()
    return os.path.samefile(table1, table2) or digests["expression1"] == digests["expression2"]


def _run(
    out: Path,
    model: PairModel,
    tables: TwoTables,
    labels: SampleTable | None,
    record: dict[str, Any],
    permutations: int,
    report: bool,
    force: bool,
    quiet: bool,
) -> Iterator[str]:
    """Fit and test the model and write everything; lines about what was found."""
    lines: list[str] = []
    run = netbic.storage.Run.open_pairs(out, **record, force=force)
    with run, Progress(_STAGES, quiet) as progress:
        progress.update("pairs", 0, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first, second = (dataset.expression for dataset in tables.datasets)
            netbic.io.fit_by_name(model, first.matrix, second.matrix, first.samples, first.genes, second.genes)
        independent = labels is None or labels.keywords["by"] is None
        tests = _tested(model, tables, permutations if independent else 0, progress)
        findings = [text for dataset in tables.datasets for text in dataset.alignment.warnings()]
        texts = findings + [in_tables(str(each.message)) for each in caught]
        found = None if tests is None else tests.table
        with netbic.files.scratch_folder(out) as staged:
            netbic.storage.write_pair_results(staged, model, tables.to_dict(), found)
            progress.update("report", 0, 1)
            lines.extend(() if labels is None else labels.write_pairs(model, staged, out))
            lines.extend(_report(out, staged, model, run.record(texts)) if report else ())
            run.finish(staged, texts)
    for each in caught:
        warnings.warn(each.message, stacklevel=1)
    yield from _summary(out, model, tests)
    if not independent:
        yield _NOT_INDEPENDENT
    yield from lines


def _tested(model: PairModel, tables: TwoTables, permutations: int, progress: Progress) -> PairTests | None:
    """P-values and held-out correlations of the pairs; None if there are none, or too few samples."""
    first, second = (dataset.expression for dataset in tables.datasets)
    if not (permutations and model.n_components_) or len(first.samples) < _FEWEST:
        return None
    X, Y = (_named(each.matrix, each.samples, each.genes) for each in (first, second))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the same fit were shown
        return netbic.selection.pair_tests(
            model,
            X,
            Y,
            n_permutations=permutations,
            random_state=model.random_state,
            progress=lambda done, total: progress.update("tests", done, total),
        )


def _named(matrix: Any, samples: Array, features: Array) -> Any:
    """A dense matrix with names, by which networks are matched; a sparse one as it is."""
    import pandas as pd

    from netbic.arrays import is_sparse

    if is_sparse(matrix):
        return matrix
    return pd.DataFrame(matrix, pd.Index(samples), pd.Index(features))


def _report(out: Path, folder: Path, model: PairModel, record: dict[str, Any]) -> Iterator[str]:
    """Write the report if its libraries are installed; the results are kept without it."""
    if missing := netbic.report.missing_library():
        yield f'no report was written: it needs {missing}. Run pip install "netbic[report]", then netbic report {out}'
        return
    page = netbic.report.write_report(folder, model=model, record=record)
    yield f"{out}/{page.name}: the report, to open in a browser"


def _summary(out: Path, model: PairModel, tests: PairTests | None) -> Iterator[str]:
    """What was found, a line per pair."""
    table = netbic.storage.pairs_table(model, None if tests is None else tests.table)
    yield f"{counted(len(table), 'pair')}. Tables: {out}/pairs.tsv, {out}/weights.tsv, {out}/scores.tsv"
    for row in table.head(_LISTED).to_dict("records"):
        sides = [
            f"{counted(row[f'n_features_{number}'], 'feature')} of table {number} "
            f"({_first(row[f'top_features_{number}'], row[f'n_features_{number}'])})"
            for number in (1, 2)
        ]
        held_out = "" if tests is None else f" ({row['held_out_correlation']:.2f} held out, p = {row['p_value']:.2g})"
        yield f"  {row['label']}: correlation {row['correlation']:.2f}{held_out}, {' and '.join(sides)}"
    if len(table) > _LISTED:
        yield f"  and {len(table) - _LISTED} more (see {out}/pairs.tsv)"
    if tests is not None:
        yield tests.verdict
        yield "held out: the correlation in samples that were not used to find the pair; the other one is too large"
    elif len(table):
        yield "expect smaller correlations in new samples: the features were chosen for these samples"


def _first(names: str, count: int) -> str:
    some = names.split(", ")[:_SHOWN]
    return ", ".join(some) + (", ..." if count > len(some) else "")
