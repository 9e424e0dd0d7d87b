"""netbic pairs: features of two tables of the same samples that vary together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, Progress, counted, echo, in_options
from netbic.cli.fit import check_data, report_lines
from netbic.cli.samples import SampleTable, covariate_lines, covariates_in, sample_table_of

if TYPE_CHECKING:
    import pandas as pd

    from netbic.io.dataset import PairedDatasets
    from netbic.io.expression import Expression
    from netbic.selection import PairTests
    from netbic.storage.models import PairModel

_STAGES = {"pairs": "finding pairs", "tests": "testing pairs", "report": "writing the report"}
_FEWEST = 20  # samples from which on pairs are tested
_MOST, _UNTESTED = 10, 3  # pairs that are searched for unless their number is given
_LISTED, _SHOWN = 10, 3  # pairs, and names of features in a line
_NOT_INDEPENDENT = (
    "pairs are not tested, because samples belong together (--by): permutations of samples need independent ones. Use "
    "tables of averages to test pairs"
)
_SAME = "TABLE1 and TABLE2 have the same values, so that every feature is paired with itself: give two different tables"
_SETTINGS = ("method", "pairs", "features1", "features2", "smoothness1", "smoothness2", "ridge", "missing", "seed")
_SIZE = "1.5%, 50 to 200, at most a fifth"


@click.command(cls=Command)
@click.argument("table1", type=options.File)
@click.argument("table2", type=options.File)
@options.out
@option(
    "--names",
    type=options.two_names,
    metavar="NAME1,NAME2",
    show_default="those of the files",
    help="What the tables are called, for example RNA,protein.",
)
@option("--graph1", type=options.File, help="Network of the features of TABLE1.")
@option("--graph2", type=options.File, help="Network of the features of TABLE2.")
@option(
    "--pairs",
    type=options.COUNT,
    show_default=f"until two in a row are doubtful, at most {_MOST}; {_UNTESTED} without tests",
    help="Number of pairs.",
)
@option("--features1", type=options.COUNT, show_default=_SIZE, help="Features of TABLE1 in each pair.")
@option("--features2", type=options.COUNT, show_default=_SIZE, help="Features of TABLE2 in each pair.")
@option(
    "--method",
    type=click.Choice(["cca", "pls"]),
    default="cca",
    help="cca: canonical correlation analysis, both tables alike; pls: partial least squares, TABLE1 predicts TABLE2.",
)
@options.group(
    option(
        "--ridge",
        type=options.Finite(0, 1, min_open=True),
        show_default="correlations are ignored",
        help="Remove correlations between the features of one table, the less the larger the ridge (cca).",
    ),
    option("--smoothness1", type=options.Finite(0), show_default="0.6", help="Weight of the network of TABLE1."),
    option("--smoothness2", type=options.Finite(0), show_default="0.6", help="Weight of the network of TABLE2."),
    option(
        "--permutations",
        default=199,
        type=click.IntRange(0),
        help="Permutations of the samples for the p-value of each pair, at most; 0: pairs are not tested.",
    ),
    section="Search",
)
@option(
    "--missing",
    type=click.Choice(["error", "ignore"]),
    default="error",
    help="Missing values: stop, or use only the observed ones.",
)
@option("--gene-sets", type=options.File, help="GMT file with gene sets, for tables whose features are genes.")
@options.sample_info
@options.covariates
@options.seed
@options.report
@option("--force", is_flag=True, help="Replace the results of an earlier run in the folder.")
@options.quiet
@options.group(options.tests_samples, section="Sample table")
@options.reads_two_tables
def pairs(
    table1: str, table2: str, graph1: str | None, graph2: str | None, out: Path, force: bool, **reading: Any
) -> None:
    """Find features of TABLE1 and of TABLE2 that vary together in the samples of both.

    Each pair is a set of features of TABLE1 and a set of features of TABLE2 whose weighted sums (scores of the
    samples) are correlated, such as genes and lipids of the same mice. Both are tables like those of netbic fit
    (features in rows). Samples are matched by name; features are centred and scaled.

    \b
    DIR/pairs.tsv        one row per pair: verdict, sizes, correlation
    DIR/weights.tsv      features of each pair, with a confidence
    DIR/scores.tsv       scores of the samples in both tables
    DIR/same_names.tsv   correlation of features of the same name (RNA, protein)
    DIR/gene_sets.tsv    enriched gene sets of both sides (with --gene-sets)
    DIR/associations.tsv labels, numbers, survival (with --sample-info)
    DIR/alignment.json   how samples and networks were matched
    DIR/report.html      all results as a web page
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    from netbic.association.shared_features import same_names_line
    from netbic.enrichment import shared_names, untested_tables, write_enrichment
    from netbic.files import scratch_folder
    from netbic.io.dataset import digest, fit_by_name, open_paired_datasets
    from netbic.io.samples import read_gene_sets
    from netbic.selection.pair_tests import FEWEST_PERMUTATIONS
    from netbic.storage.runs import Run, check_folder, write_results
    from netbic.storage.tables import pair_scores_table, pairs_table, weights_table

    settings, tests = ({name: reading.pop(name) for name in names} for names in (_SETTINGS, options.TESTS))
    sample_info, report, permutations = (reading.pop(name) for name in ("sample_info", "report", "permutations"))
    names, gene_sets, covariates = (reading.pop(name) for name in ("names", "gene_sets", "covariates"))
    inputs: dict[str, Any] = {"table1": table1, "table2": table2, "graph1": graph1, "graph2": graph2}
    inputs |= {"gene_sets": gene_sets}
    files = {f"TABLE{k}": table for k, table in ((1, table1), (2, table2))} | {"the sample table": sample_info}
    files |= {"the gene sets": gene_sets}
    files |= {f"the network of TABLE{k}": graph for k, graph in ((1, graph1), (2, graph2))}
    for name, label in (("string_info", "STRING's names"), ("graph_names", "names of nodes"), ("id_map", "the id map")):
        files |= {f"{label} ({k})": path for k, path in enumerate(reading[name], start=1)}
    check_folder(out, force=force, pairs=True, inputs=files)
    for number, graph in ((1, graph1), (2, graph2)):
        without = settings[f"smoothness{number}"] and graph is None
        options.refuse((f"--smoothness{number} needs a network: use --graph{number}", without))
    least, too_few = f"{1 / (1 + permutations):.2g}", 0 < permutations < FEWEST_PERMUTATIONS
    few = f"--permutations {permutations}: no p-value can be below {least}, so no pair can be significant"
    options.refuse((f"{few}: use at least {FEWEST_PERMUTATIONS}, or 0", too_few))
    predicts = settings["method"] == "pls" and settings["ridge"] is not None
    options.refuse(("--ridge is for --method cca: leave it out, or use --method cca", predicts))
    sets = None if gene_sets is None else read_gene_sets(gene_sets)
    given = [_of_table(reading, number, graph is not None) for number, graph in enumerate((graph1, graph2))]
    called: Any = {"missing": settings["missing"], "names": names}
    tables = open_paired_datasets(table1, table2, (graph1, graph2), (given[0], given[1]), **called)
    echo(*tables.lines())
    if sets is not None:  # an error before the long part if neither table can be tested
        untested_tables(sets, dict(zip(tables.names, (each.expression.genes for each in tables.datasets), strict=True)))
    described = table1 if sample_table_of(None, table1) else table2
    samples = tables.first.expression.samples
    labels = SampleTable.read(sample_info, described, samples, tests)
    removed = covariates_in(labels, covariates, samples, tests["types"])
    echo(*covariate_lines(removed))
    first, second = (
        check_data(each, scaled=True, table=(number, name))
        for number, (name, each) in enumerate(zip(tables.names, tables.datasets, strict=True), 1)
    )
    tables = replace(tables, first=first, second=second)
    data = tables.fingerprint()
    same_values = os.path.samefile(table1, table2) or data["expression1"] == data["expression2"]
    if same_values:
        warnings.warn(_SAME, stacklevel=1)
    if removed is not None:
        settings["covariates"] = ",".join(covariates)
        data["covariates"] = digest(*(removed[name].astype(str).to_numpy(dtype=object) for name in removed))
    one, other = (each.expression for each in tables.datasets)
    is_tested = bool(permutations) and len(one.samples) >= _FEWEST and not tests["by"]
    most = _MOST if is_tested and settings["pairs"] is None else None
    model = _estimator(tables, settings, n_pairs=settings["pairs"] or most or _UNTESTED)
    asked = reading | {"permutations": permutations} | ({} if labels is None else labels.record())
    inputs |= {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items() if value}
    lines: list[str] = []
    with Run.open_pairs(out, settings, data, inputs, force=force) as run, Progress(_STAGES) as progress:
        progress.update("pairs", 0, 1)
        both = (one.matrix, other.matrix, one.samples, one.genes, other.genes, tables.names, removed)
        with warnings.catch_warnings(record=True, action="always") as caught:
            fit_by_name(model, *both)
        tested = None
        if is_tested and model.n_components_:
            tested = _test(model, tables, removed, permutations, most, progress)
        if most is not None and tested is not None:  # the same pairs, without those that are not tested
            model.set_params(n_components=len(tested.table))
            with warnings.catch_warnings(record=True, action="always") as caught:
                fit_by_name(model, *both)
        texts = [_SAME] * same_values + [text for each in tables.datasets for text in each.alignment.warnings()]
        texts += [in_options(str(each.message)) for each in caught]
        with scratch_folder(out) as staged:
            about = [shared_names(model), None if tested is None else tested.table]
            found = pairs_table(model, *(each for each in about if each is not None))
            weights = weights_table(model, None if tested is None else tested.features)
            scores = pair_scores_table(model, None if tested is None else tested.scores)
            written = {"pairs": found, "weights": weights, "scores": scores}
            if len(same := _same_names(model, tables)):
                written["same_names"] = same
                lines.append(f"{same_names_line(same, tables.names)}: {out}/same_names.tsv")
            write_results(staged, model, tables.to_dict(), written)
            progress.update("report", 0, 1)
            if sets is not None and model.n_components_:
                lines.extend(write_enrichment(model, staged, sets))
            if labels is not None and not model.n_components_:
                lines.append("there are no pairs to compare with the sample table")
            elif labels is not None:
                data = {f"features of {name}": each.X for name, each in zip(tables.names, tables.datasets, strict=True)}
                lines.extend(labels.write(model, staged, out, data))
            lines.extend(report_lines(out, staged, model, run.record(texts)) if report else ())
            run.finish(staged, texts)
    for each in caught:
        warnings.warn(each.message, stacklevel=1)
    echo(
        *[_SAME] * same_values,
        *_summary(out, found, tested, tables.names),
        *[_NOT_INDEPENDENT] * bool(tests["by"]),
        *lines,
    )


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


def _estimator(tables: PairedDatasets, settings: dict[str, Any], n_pairs: int) -> PairModel:
    """The estimator that the options describe."""
    from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
    from netbic.methods import usual_sizes

    parameters: dict[str, Any] = {"random_state": settings["seed"], "missing": settings["missing"]}
    if settings["ridge"] is not None:
        parameters |= {"covariance": "ridge", "ridge": settings["ridge"]}
    for number, side, dataset in zip((1, 2), "xy", tables.datasets, strict=True):
        n_features, size = dataset.expression.shape[1], settings[f"features{number}"]
        options.check_size(f"features{number}", size, n_features, f"{tables.names[number - 1]} has")
        parameters |= {f"n_{side}": size or usual_sizes(0, n_features)[1], f"{side}_graph": dataset.graph}
        parameters[f"{side}_smoothness"] = settings[f"smoothness{number}"]
    kind = SparseGraphCCA if settings["method"] == "cca" else SparseGraphPLS
    return kind(n_pairs, **parameters)


def _named(each: Expression) -> pd.DataFrame:
    """A table with names, as a dense copy."""
    import pandas as pd

    from netbic.arrays import is_sparse

    values = each.matrix
    return pd.DataFrame(values.toarray() if is_sparse(values) else values, each.samples, each.genes)


def _same_names(model: PairModel, tables: PairedDatasets) -> pd.DataFrame:
    """How far features follow those of the same name in the other table, without the effects of covariates."""
    import numpy as np
    import pandas as pd

    from netbic.arrays import is_sparse
    from netbic.association import same_names
    from netbic.storage.tables import SIDES

    one, other = (each.expression for each in tables.datasets)
    parts = []
    for side, own, others in zip(SIDES, (one, other), (other, one), strict=True):
        kept = np.flatnonzero(np.isin(own.genes, others.genes))
        values = model.residuals(side, own.matrix[:, kept], kept)
        parts.append(pd.DataFrame(values.toarray() if is_sparse(values) else values, own.samples, own.genes[kept]))
    return same_names(*parts)


def _test(
    model: PairModel,
    tables: PairedDatasets,
    covariates: pd.DataFrame | None,
    permutations: int,
    most: int | None,
    progress: Progress,
) -> PairTests:
    """P-values, held-out correlations and verdicts of the pairs."""
    from netbic.selection import pair_tests

    with warnings.catch_warnings(action="ignore"):  # those of the same fit were shown
        return pair_tests(
            model,
            *(_named(each.expression) for each in tables.datasets),  # networks are matched by name
            covariates=covariates,
            most=most,
            n_permutations=permutations,
            random_state=model.random_state,
            progress=lambda done, total: progress.update("tests", done, total),
        )


def _summary(out: Path, table: pd.DataFrame, tests: PairTests | None, names: tuple[str, str]) -> Iterator[str]:
    """What was found, two lines per pair and more."""
    from netbic.enrichment import shared_sentence
    from netbic.selection.pair_verdicts import held_out_text, p_text

    yield f"{counted(len(table), 'pair')}. Tables: {out}/pairs.tsv, {out}/weights.tsv, {out}/scores.tsv"
    for row in table.head(_LISTED).to_dict("records"):
        sides = []
        for number, name in enumerate(names, start=1):
            count, top = row[f"n_features_{number}"], row[f"top_features_{number}"].split(", ")[:_SHOWN]
            more = ", ..." if count > len(top) else ""
            sides.append(f"{counted(count, 'feature')} of {name} ({', '.join(top)}{more})")
        if tests is None:
            yield f"  pair {row['pair']}: correlation {row['correlation']:.2f}, {' and '.join(sides)}"
        else:
            yield f"  pair {row['pair']} ({row['verdict']}): correlation {held_out_text(row)} held out; {p_text(row)}"
            yield f"    {' and '.join(sides)}"
            if row["verdict"] != "strong":
                yield f"    {row['reason']}"
            if row["carried_by"]:
                yield f"    carried by few samples: {row['carried_by']}"
            if row["extreme_samples"]:
                yield f"    {row['extreme_samples']}"
        if same := shared_sentence(row, names):
            yield f"    {same}"
    if len(table) > _LISTED:
        yield f"  and {len(table) - _LISTED} more (see {out}/pairs.tsv)"
    if tests is not None:
        yield tests.verdict
        if len(table) and table["verdict"].iloc[-1] != "doubtful":
            yield f"search for more pairs with --pairs {2 * len(table)}"
        yield "held out: the correlation in samples that were not used to find the pair"
    elif len(table):
        yield "expect smaller correlations in new samples: the features were chosen for these samples"
