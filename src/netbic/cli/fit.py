"""netbic fit: find modules in files and write them as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.cluster import lazily, runs_on_dask
from netbic.cli.command import (
    NETWORK,
    PREPROCESSING,
    READING,
    Command,
    File,
    Finite,
    Jobs,
    echo,
    mark_resumable,
    preprocesses_data,
    preprocessing,
    progress_bar,
    reads_a_study,
    split_lists,
    take,
)
from netbic.cli.wording import counted, in_genes

if TYPE_CHECKING:
    from netbic.estimators import SparseGraphSVD
    from netbic.readers import GeneSets
    from netbic.storage import Run
    from netbic.study import Study

_LISTED_MODULES = 3
_TERMS = ["normalized", "adjacency", "laplacian", "normalized_laplacian"]


class FitCommand(Command):
    """A command that can be resumed."""

    resume_hint = "continue with netbic fit ... --resume"
    groups: ClassVar[dict[str, str]] = {
        "Main options": "graph out modules genes samples auto gene_sets zscore resume force",
        "Reading the expression data": READING,
        "Reading the network": NETWORK,
        "Preprocessing": PREPROCESSING.replace(" zscore", ""),
        "Module search": "smoothness graph_term method restarts seed jobs",
        "Output": "report quiet as_json",
        "Data larger than memory": "dask dask_workers dask_memory block_rows",
    }


@dataclass(frozen=True)
class OutputOptions:
    """Where results go, and what is printed."""

    out: Path
    resume: bool
    force: bool
    report: bool
    quiet: bool
    as_json: bool

    @property
    def silent(self) -> bool:
        """Whether no text is printed."""
        return self.quiet or self.as_json


@dataclass(frozen=True)
class ModelOptions:
    """Which model is fitted; as recorded in run.json, but for `jobs`."""

    modules: int
    genes: int | None
    samples: int | None
    smoothness: float | None
    method: str | None
    graph_term: str | None
    center: str
    zscore: bool
    missing: str
    restarts: int
    jobs: int | None
    seed: int
    auto: bool

    def settings(self) -> dict[str, Any]:
        """All options that decide the result."""
        return {name: value for name, value in asdict(self).items() if name != "jobs"}

    def estimator(self, study: Study) -> SparseGraphSVD:
        """The estimator that the options describe."""
        parameters = self._sizes(study) | {
            "column_graph": study.graph,
            "n_init": self.restarts,
            "n_jobs": self.jobs,
            "random_state": self.seed,
            **preprocessing(study, self.center, self.zscore, self.missing),
        }
        if self.graph_term is not None:
            parameters["graph_term"] = self.graph_term
        if self.method is None:
            return netbic.SparseGraphSVD(self.modules, column_smoothness=self.smoothness, **parameters)
        return netbic.method(self.method, self.modules, column_sigma=self.smoothness or 0.0, **parameters)

    def check(self, has_graph: bool) -> None:
        """Refuse options that cannot be combined, before anything is read."""
        if self.smoothness and not has_graph:
            raise click.UsageError("--smoothness needs a network: use --graph")
        if self.auto and (self.method is not None or self.smoothness is not None):
            raise click.UsageError(
                "--auto chooses the smoothness, for netbic's own method only: omit --smoothness and --method"
            )
        if self.method is None:
            return
        known = netbic.methods.METHODS
        if self.method not in known:
            raise click.UsageError(f"unknown --method {self.method}: choose one of {', '.join(known)}")
        if known[self.method].uses_graph and has_graph and self.smoothness is None:
            raise click.UsageError(
                f"--method {self.method} needs --smoothness, the paper's sigma (0.4 in its applications)"
            )

    def _sizes(self, study: Study) -> dict[str, Any]:
        n_samples, n_genes = study.expression.shape
        chosen_by_method = self.auto or self.method in ("ALSVD", "SCADSVD")
        samples, genes = (None, None) if chosen_by_method else netbic.methods.usual_sizes(n_samples, n_genes)
        return {
            "n_rows": _size("--samples", self.samples, n_samples, samples),
            "n_columns": _size("--genes", self.genes, n_genes, genes),
        }


@dataclass(frozen=True)
class Extras:
    """What is written in addition to the modules: heatmaps, enrichment and the report."""

    study: Study
    out: Path
    gene_sets: GeneSets | None
    gene_sets_file: str | None
    seed: int
    report: bool

    def write(self, model: SparseGraphSVD, folder: Path) -> Iterator[str]:
        """Write heatmaps and enrichment to a folder whose files end up in `out`; yields a line per table."""
        netbic.report.write_heatmaps(folder, model, self.study.X)
        if model.column_graph is not None or self.gene_sets is not None:
            yield from self._enrichment(model, folder)

    def write_report(self, model: SparseGraphSVD, folder: Path, record: dict[str, Any]) -> Iterator[str]:
        """Write the report if it is wanted and its libraries are installed; a fit does not fail without them."""
        if self.report and (missing := netbic.report.missing_library()):
            install = f'pip install "netbic[report]", then netbic report {self.out}'
            yield f"no report was written: it needs {missing}. Run {install}"
        elif self.report:
            page = netbic.report.write_report(folder, model=model, record=record)
            yield f"{self.out}/{page.name}: the report, to open in a browser"

    def complete(self) -> Iterator[str]:
        """Add to a finished fit what is asked for now and was not then: other gene sets, a report."""
        out, record = self.out, netbic.io.finished_record(self.out) or {}
        tested = (out / "gene_sets.tsv").is_file()
        tested = tested and record.get("inputs", {}).get("gene_sets") == self.gene_sets_file
        wants_sets = self.gene_sets is not None and not tested
        if not wants_sets and (not self.report or (out / "report.html").is_file()):
            return
        model = netbic.load(out)
        with netbic.io.locked(out):
            if not (out / "heatmaps.npz").is_file():
                netbic.report.write_heatmaps(out, model, self.study.X)
            if wants_sets:
                yield from self._enrichment(model, out)
                record = netbic.io.finished_record(out) or record  # it lists those files now
                record.setdefault("inputs", {})["gene_sets"] = self.gene_sets_file
                netbic.io.write_json(out / "run.json", record)
            yield from self.write_report(model, out, record)

    def _enrichment(self, model: SparseGraphSVD, folder: Path) -> Iterator[str]:
        options: dict[str, Any] = {"X": self.study.X, "random_state": self.seed}
        for line in netbic.enrichment.write_enrichment(model, folder, self.gene_sets, **options):
            yield f"{self.out}/{line}"


@click.command(cls=FitCommand)
@click.argument("expression", type=File)
@click.option("--graph", type=File, help="Network file: SIF, edge table, STRING, GraphML, Parquet or .npz.")
@click.option("--gene-sets", type=File, help="GMT file with gene sets to test for enrichment (see netbic enrich).")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--modules", default=10, type=click.IntRange(1), help="Number of modules.")
@click.option(
    "--genes", type=click.IntRange(1), show_default="200, at most a fifth of all genes", help="Genes per module."
)
@click.option("--samples", type=click.IntRange(1), show_default="a tenth of all samples", help="Samples per module.")
@click.option(
    "--smoothness",
    type=Finite(0),
    show_default="0.2",
    help="Weight of the network; with --method, the sigma of the paper.",
)
@click.option(
    "--auto",
    is_flag=True,
    help="Choose sizes, number of modules (at most --modules) and smoothness from the data, and print the reasons; "
    "about 640 fits (under a minute for 500 samples and 3,000 genes).",
)
@click.option(
    "--method", help="Published method: sgSVD*, sgSVD, L0SVD, PMD, ALSVD, ...; genes are centred, see --center."
)
@click.option(
    "--graph-term",
    type=click.Choice(_TERMS),
    show_default="normalized",
    help="How edges count: adjacency rewards every edge between genes of a module, normalized gives less weight to "
    "hubs, the Laplacians penalise different weights of neighbours.",
)
@preprocesses_data
@click.option("--restarts", default=1, type=click.IntRange(1), help="Number of starts per module.")
@click.option("--jobs", type=Jobs(), help="Number of threads for the restarts; it does not affect the result.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the restarts.")
@reads_a_study
@runs_on_dask
@click.option("--report/--no-report", default=True, help="Write DIR/report.html.")
@click.option(
    "--resume", is_flag=True, help="Continue an interrupted fit, or add gene sets or a report to a finished one."
)
@click.option("--force", is_flag=True, help="Replace the results of an earlier fit in the folder.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print only a summary, as JSON.")
def fit(expression: str, graph: str | None, gene_sets: str | None, **options: Any) -> None:
    """Find modules in EXPRESSION and write them as tables to a folder.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. With --dask it may be larger than memory.

    \b
    DIR/modules.tsv      genes and samples of each module, with weights
    DIR/summary.tsv      one row per module
    DIR/edges.tsv        tests for edges inside the modules
    DIR/gene_sets.tsv    enriched gene sets (with --gene-sets)
    DIR/alignment.json   how genes and network were matched
    DIR/auto.json        chosen parameters and reasons (with --auto)
    DIR/report.html      all results as a web page
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    output = take(OutputOptions, options)
    inputs = {"expression": expression, "graph": graph, "gene_sets": gene_sets}
    netbic.io.check_folder(output.out, resume=output.resume, force=output.force, inputs=options | inputs)
    sets = None if gene_sets is None else netbic.io.read_gene_sets(gene_sets)
    lazy = lazily(options)
    modelling, reading = take(ModelOptions, options), split_lists(options)
    modelling.check(has_graph=graph is not None)
    study = netbic.io.open_study(expression, graph, **reading, **lazy)
    for line in study.alignment.lines():
        echo(line, output.silent)
    model = modelling.estimator(study)
    settings = modelling.settings() | ({"dask": True} if lazy else {})
    opened = {"resume": output.resume, "force": output.force}
    run = netbic.io.Run.open(output.out, settings, study.fingerprint(), inputs | reading, **opened)
    extras = Extras(study, output.out, sets, gene_sets, modelling.seed, output.report)
    if run is None:
        lines = list(extras.complete())
        done = "the modules are unchanged" if lines else "nothing to do"
        echo(f"{output.out} is already finished: {done}", output.silent)
    else:
        lines = _find_modules(run, model, modelling, extras, output.silent)
    for line in lines:
        echo(line, output.silent)
    _summarise(output)


def _find_modules(run: Run, model: SparseGraphSVD, modelling: ModelOptions, extras: Extras, silent: bool) -> list[str]:
    """Fit the model, write everything, and return lines about what was written."""
    click.get_current_context().with_resource(run)
    mark_resumable()
    study, lines = extras.study, list[str]()
    if run.known:
        echo(f"continuing after {counted(len(run.known), 'module')}", silent)
    if modelling.auto:
        for reason in _choose(model, study, run, modelling, silent):
            echo(reason, silent)
    with progress_bar("modules", model.n_components, len(run.known), silent) as update:
        run.fit(
            model,
            study,
            update,
            write_extra=lambda folder: lines.extend(extras.write(model, folder)),
            write_report=lambda folder, record: lines.extend(extras.write_report(model, folder, record)),
        )
    if model.passes_ is not None:  # data that are read block by block: this is what takes time
        passes = f"{study.expression.passes} for preprocessing, {model.passes_:.1f} for the modules"
        lines.append(f"passes over the data: {passes}")
    return lines


def _choose(model: SparseGraphSVD, study: Study, run: Run, modelling: ModelOptions, silent: bool) -> list[str]:
    """Set the model's parameters from the data; returns the reasons. A resumed run reads them from its checkpoint."""
    kept = run.chosen
    if kept is None:
        echo("choosing sizes, number of modules and smoothness (up to 640 fits) ...", silent)
        chosen = netbic.selection.choose_settings(
            model, study.X, most=modelling.modules, random_state=modelling.seed, n_jobs=modelling.jobs
        )
        reasons = [in_genes(reason) for reason in chosen.reasons]
        kept = {"settings": netbic.io.settings_of(chosen.settings), "reasons": reasons}
        run.keep_chosen(kept)
    model.set_params(**netbic.io.settings_from(kept["settings"]))
    return list(kept["reasons"])


def _size(option: str, asked: int | None, available: int, default: int | None) -> int | None:
    if asked is not None and asked > available:
        raise click.UsageError(
            f"{option} {asked:,} but the data have {available:,} {option[2:]}: choose 1 to {available:,}"
        )
    return default if asked is None else asked


def _summarise(output: OutputOptions) -> None:
    """Print what was found."""
    out, summary = output.out, netbic.io.read_table(output.out / "summary.tsv")
    if output.as_json:
        facts = {"out": str(out), "modules": json.loads(summary.to_json(orient="records", double_precision=15))}
        click.echo(json.dumps(facts, indent=1))
    if output.silent:
        return
    variance = summary["explained_variance_ratio"].sum()
    found = "1 module explains" if len(summary) == 1 else f"{len(summary)} modules explain"
    click.echo(f"{found} {variance:.1%} of the variance. Tables: {out}/modules.tsv, {out}/summary.tsv")
    for row in summary.head(_LISTED_MODULES).to_dict("records"):
        size = f"{counted(row['n_samples'], 'sample')}, {counted(row['n_genes'], 'gene')}"
        more = ", ..." if row["n_genes"] > len(row["top_genes"].split(", ")) else ""
        click.echo(f"  module {row['module']}: {size} ({row['top_genes']}{more})")
    if len(summary) > _LISTED_MODULES:
        click.echo(f"  and {len(summary) - _LISTED_MODULES} more (see {out}/summary.tsv)")
