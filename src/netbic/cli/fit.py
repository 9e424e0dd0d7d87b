"""netbic fit: from files to modules by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.cluster import lazily, runs_on_dask
from netbic.cli.command import (
    NETWORK,
    PREPARATION,
    READING,
    Command,
    File,
    Finite,
    listed,
    now_keeping,
    preparation,
    prepares_data,
    progress_bar,
    reads_a_study,
    say,
)
from netbic.cli.wording import in_genes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netbic.estimators import SparseGraphSVD
    from netbic.readers import GeneSets
    from netbic.storage import Run
    from netbic.study import Study


class FitCommand(Command):
    """A command that can be gone on with."""

    goes_on = "netbic fit goes on with --resume"
    groups: ClassVar[dict[str, str]] = {
        "Options to begin with": "graph out modules genes samples auto gene_sets zscore resume force",
        "Reading the expression data": READING,
        "Reading the network": NETWORK,
        "Preparing the data": PREPARATION.replace(" zscore", ""),
        "How modules are sought": "smoothness graph_term method restarts seed jobs",
        "Output": "report quiet as_json",
        "Data larger than memory": "dask dask_workers dask_memory block_rows",
    }


_SHOWN = 3  # modules that are listed at the end
_TERMS = ["normalized", "adjacency", "laplacian", "normalized_laplacian"]


@click.command(cls=FitCommand)
@click.argument("expression", type=File)
@click.option("--graph", type=File, help="The network: SIF, edge table, STRING, GraphML, Parquet or .npz.")
@click.option("--gene-sets", type=File, help="GMT file to test the modules with; also: netbic enrich.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--modules", default=10, show_default=True, type=click.IntRange(1), help="Modules to look for.")
@click.option("--genes", type=click.IntRange(1), help="Genes per module [default: 200, at most a fifth].")
@click.option("--samples", type=click.IntRange(1), help="Samples per module [default: a tenth].")
@click.option("--smoothness", type=Finite(0), help="Weight of the network [default: 0.2]; with --method, sigma.")
@click.option(
    "--auto",
    is_flag=True,
    help="Choose sizes, number of modules (at most --modules) and smoothness, and say why; about 640 fits.",
)
@click.option("--method", help="A method of the literature: sgSVD*, sgSVD, L0SVD, PMD, ALSVD, ... (genes centred).")
@click.option("--graph-term", type=click.Choice(_TERMS), help="How the network counts [default: normalized].")
@prepares_data
@click.option("--restarts", default=1, show_default=True, type=click.IntRange(1), help="Starts per module.")
@click.option("--jobs", type=int, help="Threads over restarts; the result does not depend on it.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the restarts.")
@reads_a_study
@runs_on_dask
@click.option("--report/--no-report", default=True, show_default=True, help="Write DIR/report.html.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with an interrupted fit; add gene sets or a report to a finished one.",
)
@click.option("--force", is_flag=True, help="Replace what an earlier fit wrote into the folder.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON, and nothing else.")
def fit(
    expression: str,
    graph: str | None,
    out: Path,
    quiet: bool,
    as_json: bool,
    resume: bool,
    force: bool,
    report: bool,
    **words: Any,
) -> None:
    """Find modules in EXPRESSION and write them to a folder.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. With --dask it may be larger than memory.

    \b
    DIR/modules.tsv      genes and samples of every module, with weights
    DIR/summary.tsv      a row per module
    DIR/edges.tsv        edges inside the modules, against two kinds of chance
    DIR/gene_sets.tsv    enriched gene sets (with --gene-sets)
    DIR/alignment.json   what of the network matched
    DIR/auto.json        what was chosen and why (with --auto)
    DIR/report.html      all of it as a page to look at
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    files = {name: words[name] for name in ("gene_sets", "id_map", "string_info", "graph_names")}
    files |= {"expression": expression, "graph": graph}
    netbic.io.check_folder(out, resume=resume, force=force, inputs=files)
    sets_file, lines = words.pop("gene_sets"), list[str]()
    gene_sets = None if sets_file is None else netbic.io.read_gene_sets(sets_file)
    opening = lazily(words)
    modelling = {name: words.pop(name) for name in _MODELLING}
    reading = listed(words)
    study = netbic.io.open_study(expression, graph, **reading, **opening)
    silent = quiet or as_json
    for line in [] if silent else study.alignment.lines():
        click.echo(line)
    model = _estimator(study, **modelling)
    settings = {name: value for name, value in modelling.items() if name != "jobs"}
    if opening:
        settings["dask"] = True
    inputs = {"expression": expression, "graph": graph, "gene_sets": sets_file, **reading}
    run = netbic.io.Run.open(out, settings, study.fingerprint(), inputs, resume=resume, force=force)
    if run is None:
        lines += _caught_up(study, out, gene_sets, sets_file, modelling["seed"], report)
        say(f"{out} is finished already: {'the modules stay as they are' if lines else 'nothing to do'}", silent)
    else:
        click.get_current_context().with_resource(run)
        now_keeping()
        if run.known:
            say(f"going on after {len(run.known)} modules", silent)
        if modelling["auto"]:
            for line in _choose(model, study, run, modelling, silent):
                say(line, silent)
        with progress_bar("modules", model.n_components, len(run.known), silent) as tell:
            run.fit(
                model,
                study,
                tell,
                write_extra=lambda staged: lines.extend(
                    _added(model, study, staged, out, gene_sets, modelling["seed"])
                ),
                write_report=lambda staged, record: lines.extend(_reported(model, staged, out, record, report)),
            )
        lines += _passes(model, study)
    for line in lines:
        say(line, silent)
    _conclude(out, as_json, silent)


_MODELLING = ["modules", "genes", "samples", "smoothness", "method", "graph_term", "center", "zscore", "missing"]
_MODELLING += ["restarts", "jobs", "seed", "auto"]


def _estimator(
    study: Study,
    *,
    modules: int,
    genes: int | None,
    samples: int | None,
    smoothness: float | None,
    method: str | None,
    graph_term: str | None,
    center: str,
    zscore: bool,
    missing: str,
    restarts: int,
    jobs: int | None,
    seed: int,
    auto: bool,
) -> SparseGraphSVD:
    """The estimator that the options describe."""
    n_samples, n_genes = study.expression.shape
    usual_samples, usual_genes = netbic.methods.usual_sizes(n_samples, n_genes)
    if smoothness and study.graph is None:
        raise click.UsageError("--smoothness needs a network: give one by --graph")
    if auto and (method is not None or smoothness is not None):
        raise click.UsageError(
            "--auto chooses the smoothness for netbic's own method: leave out --smoothness, --method"
        )
    words: dict[str, Any] = {
        "n_rows": _size("--samples", samples, n_samples, None if auto else usual_samples),
        "n_columns": _size("--genes", genes, n_genes, None if auto else usual_genes),
        "column_graph": study.graph,
        "n_init": restarts,
        "n_jobs": jobs,
        "random_state": seed,
        **preparation(study, center, zscore, missing),
    }
    if graph_term is not None:
        words["graph_term"] = graph_term
    if method is None:
        return netbic.SparseGraphSVD(modules, column_smoothness=smoothness, **words)
    if method in ("ALSVD", "SCADSVD"):  # without sizes these choose their own
        words |= {"n_rows": samples, "n_columns": genes}
    return _published(method, modules, smoothness, words)


def _published(name: str, modules: int, smoothness: float | None, words: dict[str, Any]) -> SparseGraphSVD:
    """A method of the literature."""
    known = netbic.methods.METHODS
    if name not in known:
        raise click.UsageError(f"--method {name} is not known: choose one of {', '.join(known)}")
    if known[name].uses_graph and words["column_graph"] is not None and smoothness is None:
        raise click.UsageError(f"--method {name} needs --smoothness, the paper's sigma (0.4 in its applications)")
    return netbic.method(name, modules, column_sigma=smoothness or 0.0, **words)


def _choose(model: SparseGraphSVD, study: Study, run: Run, modelling: dict[str, Any], silent: bool) -> list[str]:
    """Set the model to what the data speak for; returns the reasons. An interrupted run has them from before."""
    kept = run.chosen
    if kept is None:
        say("choosing sizes, number of modules and smoothness, by up to 640 fits ...", silent)
        words = {"most": modelling["modules"], "random_state": modelling["seed"], "n_jobs": modelling["jobs"]}
        chosen = netbic.selection.choose_settings(model, study.X, **words)
        reasons = [in_genes(reason) for reason in chosen.reasons]
        kept = {"settings": netbic.io.settings_of(chosen.settings), "reasons": reasons}
        run.keep_chosen(kept)
    model.set_params(**netbic.io.settings_from(kept["settings"]))
    return list(kept["reasons"])


def _added(
    model: SparseGraphSVD, study: Study, folder: Path, out: Path, gene_sets: GeneSets | None, seed: int
) -> Iterator[str]:
    """Write what goes with the modules, to a folder whose files end up in `out`: heatmaps, and their enrichment."""
    netbic.report.write_heatmaps(folder, model, study.X)
    if model.column_graph is not None or gene_sets is not None:
        for line in netbic.enrichment.write_enrichment(model, folder, gene_sets, random_state=seed):
            yield f"{out}/{line}"


def _passes(model: SparseGraphSVD, study: Study) -> Iterator[str]:
    """How often the data were read, where that is what takes time."""
    if model.passes_ is not None:
        yield f"passes over the data: {study.expression.passes} to prepare them, {model.passes_:.1f} to find modules"


def _caught_up(
    study: Study, out: Path, gene_sets: GeneSets | None, sets_file: str | None, seed: int, report: bool
) -> Iterator[str]:
    """Do for a finished fit what is asked for now and was not then: other gene sets, a report."""
    record = netbic.io.finished_record(out) or {}
    tested = (out / "gene_sets.tsv").is_file() and record.get("inputs", {}).get("gene_sets") == sets_file
    wants_sets = gene_sets is not None and not tested
    if not wants_sets and (not report or (out / "report.html").is_file()):
        return
    model = netbic.load(out)
    with netbic.io.locked(out):
        if not (out / "heatmaps.npz").is_file():
            netbic.report.write_heatmaps(out, model, study.X)
        if wants_sets:
            for line in netbic.enrichment.write_enrichment(model, out, gene_sets, random_state=seed):
                yield f"{out}/{line}"
            record = netbic.io.finished_record(out) or record  # it lists those files now
            record.setdefault("inputs", {})["gene_sets"] = sets_file
            netbic.io.write_json(out / "run.json", record)
        yield from _reported(model, out, out, record, report)


def _reported(model: SparseGraphSVD, folder: Path, out: Path, record: dict[str, Any], wanted: bool) -> Iterator[str]:
    """Write the report if it is wanted and its libraries are there; a fit does not fail for want of a picture."""
    if wanted and (missing := netbic.report.missing_library()):
        yield f'no report: it needs {missing}: pip install "netbic[report]", then netbic report {out}'
    elif wanted:
        page = netbic.report.write_report(folder, model=model, record=record)
        yield f"{out}/{page.name}: all of it as a page to look at"


def _size(option: str, asked: int | None, available: int, usual: int | None) -> int | None:
    if asked is None:
        return usual
    if asked > available:
        raise click.UsageError(f"{option} {asked:,} but the data have {available:,}: choose 1 to {available:,}")
    return asked


def _conclude(out: Path, as_json: bool, silent: bool) -> None:
    """Say what was found."""
    summary = netbic.io.read_table(out / "summary.tsv")
    if as_json:
        facts = {"out": str(out), "modules": json.loads(summary.to_json(orient="records", double_precision=15))}
        click.echo(json.dumps(facts, indent=1))
    if silent:
        return
    variance = summary["explained_variance_ratio"].sum()
    click.echo(f"{len(summary)} modules, {variance:.1%} of the variance: {out}/modules.tsv, {out}/summary.tsv")
    for row in summary.head(_SHOWN).itertuples():
        click.echo(f"  module {row.module}: {row.n_samples} samples, {row.n_genes} genes ({row.top_genes}, ...)")
    if len(summary) > _SHOWN:
        click.echo(f"  and {len(summary) - _SHOWN} more")
