"""netbic fit: find modules in files and write them as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

import netbic
from netbic.cli.associate import AssociationOptions, SampleTable, describes_samples, open_sample_table
from netbic.cli.checks import checked
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
    in_terms_of_command,
    mark_resumable,
    preprocesses_data,
    preprocessing,
    reads_a_study,
    split_lists,
    take,
)
from netbic.cli.covariates import (
    coded_lines,
    covariate_names,
    covariates_option,
    fingerprint,
    read_covariates,
    read_studies,
    studies_option,
    study_lines,
)
from netbic.cli.extras import STAGES, VERDICT_SECONDS, Extras
from netbic.cli.progress import Progress
from netbic.cli.summary import summary_json, summary_lines
from netbic.cli.wording import counted, in_genes

if TYPE_CHECKING:
    import pandas as pd

    from netbic.estimators import SparseGraphSVD
    from netbic.io import Dataset
    from netbic.selection import StageProgress
    from netbic.storage import Run

_MANY = 3  # samples per module below which the number of modules is remarkable
_STANDING_OUT = (
    "A module stands out if it is stronger than noise; its verdict also depends on whether it is found again in other "
    "samples."
)
_TERMS = ["modularity", "normalized", "adjacency", "laplacian", "normalized_laplacian"]


class Diffusion(click.ParamType):  # type: ignore[type-arg]
    """A number of at least 0 and below 1, or "cv"."""

    name = "float|cv"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """The number, or "cv"."""
        if value == "cv":
            return "cv"
        return Finite(0, 1, max_open=True).convert(value, param, ctx)


class FitCommand(Command):
    """A command that can be resumed."""

    resume_hint = "continue with netbic fit ... --resume"
    groups: ClassVar[dict[str, str]] = {
        "Main options": "graph out modules genes samples auto gene_sets sample_info zscore resume force",
        "Sample table": "covariates studies variables adjust survival types by na_values",
        "Reading the expression data": READING,
        "Reading the network": NETWORK,
        "Preprocessing": PREPROCESSING.replace(" zscore", ""),
        "Module search": "smoothness smoothness_scale diffusion graph_term method restarts seed jobs",
        "Output": "verdict report quiet as_json",
        "Data larger than memory": "dask dask_workers dask_memory block_rows",
    }


@dataclass(frozen=True)
class OutputOptions:
    """Where results go, and what is printed."""

    out: Path
    resume: bool
    force: bool
    verdict: bool
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
    smoothness_scale: str | None
    diffusion: float | str | None
    method: str | None
    graph_term: str | None
    center: str
    zscore: bool
    missing: str
    restarts: int
    jobs: int | None
    seed: int
    auto: bool
    covariates: str | None
    studies: str | None

    def settings(self) -> dict[str, Any]:
        """All options that decide the result."""
        settings = {name: value for name, value in asdict(self).items() if name != "jobs"}
        for name in ("diffusion", "smoothness_scale", "covariates", "studies"):  # as in earlier versions
            if settings[name] is None:
                del settings[name]
        return settings

    def estimator(self, study: Dataset) -> SparseGraphSVD:
        """The estimator that the options describe."""
        parameters = self._sizes(study) | {
            "column_graph": study.graph,
            "n_init": self.restarts,
            "n_jobs": -1 if self.jobs is None and self.restarts > 1 else self.jobs,
            "random_state": self.seed,
            **preprocessing(study, self.center, self.zscore, self.missing),
        }
        for name in ("graph_term", "smoothness_scale", "diffusion"):
            if (given := getattr(self, name)) is not None:
                parameters[name] = given
        if self.method is None:
            model = netbic.SparseGraphSVD(self.modules, column_smoothness=self.smoothness, **parameters)
            if not self.auto and self.genes is None:
                model.set_params(**netbic.methods.usual_settings(study.expression.shape, model))
            return model
        return netbic.method(self.method, self.modules, column_sigma=self.smoothness or 0.0, **parameters)

    def check(self, has_graph: bool) -> None:
        """Refuse options that cannot be combined, before anything is read."""
        if self.smoothness and not has_graph:
            raise click.UsageError("--smoothness needs a network: use --graph")
        if self.diffusion is not None and not has_graph:
            raise click.UsageError("--diffusion needs a network: use --graph")
        if self.diffusion is not None and (self.auto or self.method is not None):
            raise click.UsageError("--diffusion cannot be combined with --auto (which tries it) or --method")
        if self.auto and (self.method is not None or self.smoothness is not None):
            raise click.UsageError(
                "--auto chooses the smoothness, for netbic's own method only: omit --smoothness and --method"
            )
        if self.auto and self.studies is not None:
            raise click.UsageError("--auto cannot be combined with --studies: omit one of them")
        if self.method is None:
            return
        known = netbic.methods.METHODS
        if self.method not in known:
            raise click.UsageError(f"unknown --method {self.method}: choose one of {', '.join(known)}")
        if known[self.method].uses_graph and has_graph and self.smoothness is None:
            raise click.UsageError(
                f"--method {self.method} needs --smoothness, the paper's sigma (0.4 in its applications)"
            )

    def _sizes(self, study: Dataset) -> dict[str, Any]:
        shape = n_samples, n_genes = study.expression.shape
        given = {
            "n_rows": _size("--samples", self.samples, n_samples),
            "n_columns": _size("--genes", self.genes, n_genes),
        }
        sizes = {name: size for name, size in given.items() if size is not None}
        if self.method is None or self.method in ("ALSVD", "SCADSVD"):  # which choose them
            return sizes
        return dict(zip(given, netbic.methods.usual_sizes(*shape), strict=True)) | sizes


@click.command(cls=FitCommand)
@click.argument("expression", type=File)
@click.option("--graph", type=File, help="Network file: SIF, edge table, STRING, GraphML, Parquet or .npz.")
@click.option("--gene-sets", type=File, help="GMT file with gene sets to test for enrichment (see netbic enrich).")
@click.option(
    "--sample-info",
    type=File,
    show_default="obs of an .h5ad file",
    help="Table with a row for each sample (labels, numbers, survival times) to compare with the modules; see netbic "
    "associate.",
)
@covariates_option
@studies_option
@describes_samples
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--modules", default=10, type=click.IntRange(1), help="Number of modules.")
@click.option(
    "--genes",
    type=click.IntRange(1),
    show_default="chosen for each module; if the data do not identify it, 1.5% of the genes, 50 to 200, but at most a "
    "fifth of them",
    help="Genes per module.",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    show_default="all; groups of samples are found from their scores",
    help="Samples per module.",
)
@click.option(
    "--smoothness",
    type=Finite(0),
    show_default="0.6",
    help="Weight of the network, see --smoothness-scale; with --method, the sigma of the paper.",
)
@click.option(
    "--smoothness-scale",
    type=click.Choice(["module", "relative", "absolute"]),
    show_default="module",
    help="Unit of --smoothness: the strength of the module without the network (then use values below 1), the leading "
    "singular value of the data, or 1 (the paper).",
)
@click.option(
    "--diffusion",
    type=Diffusion(),
    show_default="none",
    help="Smooth the data over the network before the search, by this much (0 to below 1), or cv to choose it by "
    "cross-validation; for networks of correlated genes (see netbic graph).",
)
@click.option(
    "--auto",
    is_flag=True,
    help="Choose sizes, number of modules (at most --modules) and smoothness from the data, and print the reasons; "
    "about a hundred fits (ten seconds for 500 samples and 3,000 genes), several hundred if the network helps.",
)
@click.option(
    "--method", help="Published method: sgSVD*, sgSVD, L0SVD, PMD, ALSVD, ...; genes are centred, see --center."
)
@click.option(
    "--graph-term",
    type=click.Choice(_TERMS),
    show_default="modularity",
    help="How edges count: modularity rewards more edges inside a module than the degrees of its genes lead to expect, "
    "adjacency every edge, normalized gives less weight to hubs, the Laplacians penalise different weights of "
    "neighbours.",
)
@preprocesses_data
@click.option("--restarts", default=1, type=click.IntRange(1), help="Number of starts per module.")
@click.option(
    "--jobs",
    type=Jobs(),
    show_default="all cores",
    help="Number of threads for --auto, verdicts and restarts; it does not affect the result.",
)
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the restarts.")
@reads_a_study
@runs_on_dask
@click.option(
    "--verdict/--no-verdict",
    default=True,
    help="Judge each module in samples that were not used to find it: six to ten fits to halves of the "
    f"samples, or fewer (at least three) if they would take longer than about {VERDICT_SECONDS} seconds.",
)
@click.option("--report/--no-report", default=True, help="Write DIR/report.html.")
@click.option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted fit, or add verdicts, gene sets, associations or a report to a finished one.",
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
    DIR/summary.tsv      one row per module, with its verdict and diagnostics
    DIR/samples.tsv      score and group (up, down) of each sample in each module
    DIR/verdicts.tsv     verdict on each module, with its reasons
    DIR/studies.tsv      strength of each module in each study (with --studies)
    DIR/edges.tsv        tests for edges inside the modules
    DIR/gene_sets.tsv    enriched gene sets (with --gene-sets)
    DIR/associations.tsv labels, numbers, survival (with --sample-info)
    DIR/alignment.json   how genes and network were matched
    DIR/auto.json        chosen parameters and reasons (with --auto)
    DIR/report.html      all results as a web page
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    output = take(OutputOptions, options)
    inputs = {"expression": expression, "graph": graph, "gene_sets": gene_sets}
    netbic.storage.check_folder(output.out, resume=output.resume, force=output.force, inputs=options | inputs)
    sets = None if gene_sets is None else netbic.io.read_gene_sets(gene_sets)
    comparing, lazy = take(AssociationOptions, options), lazily(options)
    comparing.check(expression)
    modelling, reading = take(ModelOptions, options), split_lists(options)
    modelling.check(has_graph=graph is not None)
    study = netbic.io.open_dataset(expression, graph, **reading, **lazy)
    for line in map(in_terms_of_command, study.alignment.lines()):
        echo(line, output.silent)
    samples = open_sample_table(comparing, expression, study.names[0], output.silent, modelling.studies)
    units = None if samples is None else samples.units(study.names[0])
    inputs |= {} if samples is None else samples.recorded()
    study = checked(study, scaled=modelling.zscore, silent=output.silent)
    model, covariates = modelling.estimator(study), _covariates(modelling, samples, study)
    n_units = study.expression.shape[0] if units is None else int(units.max()) + 1
    studies = read_studies(modelling.studies, None if samples is None else samples.table, study.names[0])
    described = [*study_lines(studies), *coded_lines(covariates)]
    for line in [*described, *_cautions(n_units, modelling.modules, output.verdict, units is not None)]:
        echo(line, output.silent)
    settings = modelling.settings() | ({"dask": True} if lazy else {})
    opened = {"resume": output.resume, "force": output.force}
    run = netbic.storage.Run.open(
        output.out, settings, fingerprint(study, covariates, studies), inputs | reading, **opened
    )
    shown = (output.verdict, output.report, output.silent)
    extras = Extras(study, output.out, samples, sets, gene_sets, modelling.seed, modelling.jobs, *shown, units=units)
    if run is None:
        lines = list(extras.complete())
        done = "the modules are unchanged" if lines else "nothing to do"
        echo(f"{output.out} is already finished: {done}", output.silent)
    else:
        lines = _find_modules(run, model, modelling, extras, {"covariates": covariates, "studies": studies})
    for line in lines:
        echo(line, output.silent)
    _summarise(output)


def _covariates(modelling: ModelOptions, samples: SampleTable | None, study: Dataset) -> pd.DataFrame | None:
    """The covariates that were asked for."""
    names = covariate_names(modelling.covariates)
    if not names or samples is None:
        return read_covariates(names, None, study.names[0], {})
    return read_covariates(names, samples.for_covariates(), study.names[0], samples.keywords["types"])


def _cautions(n_samples: int, n_modules: int, verdict: bool, grouped: bool = False) -> Iterator[str]:
    """What to know before the search: too few samples to judge modules, or as many modules as noise may contain."""
    what = "groups of samples" if grouped else "samples"
    if verdict and n_samples < (fewest := netbic.selection.FEWEST_SAMPLES):
        yield f"fewer than {fewest} {what} ({n_samples}): modules cannot be judged, any of them may be noise"
    if _MANY * n_modules > n_samples:
        yield (
            f"up to {counted(n_modules, 'module')} in {n_samples:,} {what}: with more than a third as many modules as "
            f"{what}, most of them will probably be doubtful"
        )


def _find_modules(
    run: Run, model: SparseGraphSVD, modelling: ModelOptions, extras: Extras, given: dict[str, Any]
) -> list[str]:
    """Fit the model, write everything, and return lines about what was written."""
    click.get_current_context().with_resource(run)
    mark_resumable()
    study, silent, lines = extras.study, extras.silent, list[str]()
    if run.known:
        echo(f"continuing after {counted(len(run.known), 'module')}", silent)
    with Progress(STAGES, silent) as progress:
        if modelling.auto:
            for reason in _choose(model, study, run, modelling, progress.update, given["covariates"]):
                echo(reason, silent)
        progress.update("modules", len(run.known), model.n_components)
        with run, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for number, module in enumerate(model.iter_fit(study.X, run.known, study.names, **given), len(run.known)):
                run.keep(number, module)
                progress.update("modules", number + 1, model.n_components)
            with netbic.files.scratch_folder(run.folder) as staged:
                columns = extras.write(model, staged, lines, progress)
                netbic.storage.write_results(staged, model, study.alignment.to_dict(), columns)
                texts = study.alignment.warnings() + [str(warning.message) for warning in caught]
                lines.extend(extras.write_report(model, staged, run.record(texts), progress))
                texts = study.alignment.warnings() + [str(warning.message) for warning in caught]
                run.finish(staged, texts)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=1)
    if modelling.diffusion == "cv":
        lines.append(f"diffusion chosen by cross-validation: {model.diffusion_:g}")
    if model.passes_ is not None:  # data that are read block by block: this is what takes time
        passes = f"{study.expression.passes} for preprocessing, {model.passes_:.1f} for the modules"
        lines.append(f"passes over the data: {passes}")
    return lines


def _choose(
    model: SparseGraphSVD,
    study: Dataset,
    run: Run,
    modelling: ModelOptions,
    progress: StageProgress,
    covariates: pd.DataFrame | None,
) -> list[str]:
    """Set the model's parameters from the data; returns the reasons. A resumed run reads them from its checkpoint."""
    kept = run.chosen
    if kept is None:
        chosen = netbic.selection.choose_settings(
            model,
            study.X,
            covariates=covariates,
            most=modelling.modules,
            progress=progress,
            random_state=modelling.seed,
            n_jobs=modelling.jobs,
        )
        reasons = [in_genes(reason) for reason in chosen.reasons]
        if any("stand out" in reason or "stands out" in reason for reason in reasons):
            reasons.append(_STANDING_OUT)
        kept = {"settings": netbic.storage.settings_of(chosen.settings), "reasons": reasons}
        run.keep_chosen(kept)
    model.set_params(**netbic.storage.settings_from(kept["settings"]))
    return list(kept["reasons"])


def _size(option: str, asked: int | None, available: int) -> int | None:
    if asked is not None and asked > available:
        raise click.UsageError(
            f"{option} {asked:,} but the data have {available:,} {option[2:]}: choose 1 to {available:,}"
        )
    return asked


def _summarise(output: OutputOptions) -> None:
    """Print what was found."""
    if output.as_json:
        click.echo(summary_json(output.out))
    elif not output.silent:
        for line in summary_lines(output.out):
            click.echo(line)
