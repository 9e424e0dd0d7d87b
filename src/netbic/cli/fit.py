"""netbic fit: find modules in files and write them as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click import option

from netbic.cli import command, options
from netbic.cli.command import Command, Progress, counted, echo, in_options
from netbic.cli.samples import SampleTable, covariate_lines, covariates_in, read_studies

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.io.dataset import Dataset
    from netbic.io.samples import GeneSets
    from netbic.selection import Judgement, Plan, SampleGroups
    from netbic.storage.runs import Run

_LITTLE_GRAPH = 0.05  # median share of the network in the scores of the genes, up to which it hardly matters
_SETTINGS = ("modules", "genes", "samples", "smoothness", "diffusion", "method", "zscore", "missing", "seed")
_MANY = 3  # samples per module below which the number of modules is remarkable
# The number of pairs of halves depends on the data only, not on the time they take: results are then reproducible.
_VERDICT_SECONDS: Final = 20  # budget for the verdicts, if a fit takes as long as expected; three pairs in any case
_SECONDS_PER_ENTRY = 1e-8  # time of a pair, per module and entry of X
_PAIRS = (3, 12)  # fewest and most
_STAGES: Final = {
    "modules": "finding modules",
    "pairs": "judging modules",
    "tables": "writing tables",
    "report": "writing the report",
}
_LISTED_MODULES = 10


@click.command(cls=Command, resume_hint="continue with netbic fit ... --resume")
@click.argument("expression", type=options.File)
@options.graph
@options.out
@option("--modules", type=options.COUNT, show_default="from the data", help="Number of modules.")
@option("--genes", type=options.COUNT, show_default="from the data", help="Genes per module.")
@option("--samples", type=options.COUNT, show_default="all, grouped by their scores", help="Samples per module.")
@option("--smoothness", type=options.Finite(0), show_default="0.6", help="Weight of the network.")
@option(
    "--gene-sets",
    type=options.File,
    help="GMT file with gene sets to test for enrichment (of several, zcat -f makes one).",
)
@options.sample_info
@options.covariates
@option("--studies", metavar="NAME", help="Column of it with the study of each sample, if there are several.")
@options.scales_data
@options.seed
@option("--resume", is_flag=True, help="Continue an interrupted fit, or add what is missing to a finished one.")
@option("--force", is_flag=True, help="Replace the results of an earlier fit in the folder.")
@option("--verdict/--no-verdict", default=True, help="Judge each module in samples not used to find it.")
@options.report
@option("--title", show_default="name of the file", help="Title of the report.")
@options.quiet
@options.group(
    option(
        "--diffusion",
        type=options.Finite(0, 1, max_open=True, word="cv"),
        metavar="FLOAT|cv",
        show_default="none",
        help="Smooth the data over the network before the search, by this much (0 to below 1), or cv to choose it by "
        "cross-validation; for networks of correlated genes (see netbic graph).",
    ),
    option(
        "--method",
        help="Published method: sgSVD*, sgSVD, L0SVD, PMD, ALSVD, ...; --smoothness is then the paper's sigma.",
    ),
    options.jobs("Number of fits at the same time, or of workers of --dask local."),
    section="Module search",
)
@options.group(options.tests_samples, section="Sample table")
@options.reads_dataset
@options.group(
    option(
        "--dask",
        metavar="local|ADDRESS",
        help="Read the matrix in blocks with Dask, without loading it into memory: `local` starts workers on this "
        "machine, an address such as tcp://host:8786 uses a running scheduler. Needs .zarr (see netbic convert), "
        ".h5ad, .npy, or Parquet with --samples-in-rows.",
    ),
    section="Data larger than memory",
)
def fit(
    expression: str, graph: str | None, out: Path, resume: bool, force: bool, dask: str | None, **given: Any
) -> None:
    """Find modules in EXPRESSION and write them as tables to a folder.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. With --dask it may be larger than memory.

    \b
    DIR/modules.tsv      genes and samples of each module, with weights
    DIR/summary.tsv      one row per module, with its verdict and diagnostics
    DIR/samples.tsv      score and group (up, down) of each sample in each module
    DIR/report.html      all results as a web page
    DIR/model/           the fitted model: netbic.load("DIR")
    """
    from netbic.enrichment import check_sizes
    from netbic.errors import some_names
    from netbic.files import labelled
    from netbic.io.dataset import digest
    from netbic.io.samples import read_gene_sets
    from netbic.storage.runs import Run, check_folder

    settings, tests = ({name: given.pop(name) for name in names} for names in (_SETTINGS, options.TESTS))
    verdict, report, jobs, gene_sets = (given.pop(name) for name in ("verdict", "report", "jobs", "gene_sets"))
    sample_info, studies, covariates = (given.pop(name) for name in ("sample_info", "studies", "covariates"))
    title = given.pop("title")
    inputs = {"expression": expression, "graph": graph, "gene_sets": gene_sets} | given
    check_folder(out, resume=resume, force=force, inputs=labelled(inputs | {"sample_info": sample_info}))
    sets = None if gene_sets is None else read_gene_sets(gene_sets)
    _check(settings, graph is not None, dask)
    context = click.get_current_context()
    context.with_resource(command.client_of(dask, jobs))
    reading = given | {"lazy": dask is not None, "gene_sets": sets}
    dataset = read_data(expression, graph, settings["zscore"], settings["missing"], **reading)
    names, sets = dataset.names[0], dataset.gene_sets
    if sets is not None:
        check_sizes(sets, dataset.names[1])
    labels = SampleTable.read(sample_info, expression, names, tests, studies)
    model = _estimator(dataset, settings, jobs)
    matched = None if labels is None else labels.matched
    study_of = read_studies(studies, matched)
    removed = covariates_in(labels, covariates, names, tests["types"])
    units = None if labels is None else labels.units()
    if study_of is not None:
        counts = study_of.astype(str).value_counts().sort_index()
        each = some_names([f"{study}: {count:,}" for study, count in counts.items()], 5, quoted=False)
        echo(f"{len(counts)} studies ({each}), each centred and scaled by itself")
    echo(*covariate_lines(removed))
    echo(*_cautions(len(names), units, settings["modules"], verdict))
    data = dataset.fingerprint()
    for name, table in (("covariates", removed), ("studies", None if study_of is None else study_of.to_frame())):
        if table is not None:
            data[name] = digest(*(table[column].astype(str).to_numpy(dtype=object) for column in table))
    used = {"covariates": ",".join(covariates) or None, "studies": studies, "dask": True if dask else None}
    settings |= {name: value for name, value in used.items() if value is not None}
    inputs |= ({} if labels is None else labels.record()) | ({} if title is None else {"title": title})
    run = Run.open(out, settings, data, inputs, resume=resume, force=force)
    if run is None:
        context.meta[command.RESUMABLE] = True
        lines = list(_complete(out, dataset, labels, sets, gene_sets, jobs, verdict=verdict, report=report))
        echo(f"{out} is already finished: {'the modules are unchanged' if lines else 'nothing to do'}")
    else:
        context.with_resource(run)
        context.meta[command.RESUMABLE] = True
        known: Any = {"covariates": removed, "studies": study_of}
        lines = _fit(run, model, dataset, labels, sets, known, verdict=verdict, report=report)
    if not command.is_silent():
        echo(*lines, *summary_lines(out))


def _check(settings: dict[str, Any], has_graph: bool, dask: str | None) -> None:
    """Refuse options that cannot be combined, before anything is read."""
    from netbic.methods import METHODS

    smoothness, diffusion, method = (settings[name] for name in ("smoothness", "diffusion", "method"))
    own = f"unknown --method {method}: choose one of {', '.join(METHODS)}"
    sigma = f"--method {method} needs --smoothness, the paper's sigma (0.4 in its applications)"
    uses_graph = method in METHODS and METHODS[method].uses_graph and has_graph
    options.refuse(
        ("--smoothness needs a network: use --graph", smoothness and not has_graph),
        ("--diffusion needs a network: use --graph", diffusion is not None and not has_graph),
        ("--diffusion cannot be combined with --method", diffusion is not None and method is not None),
        ("--dask does not support missing entries: fill them, or omit --dask", dask and settings["missing"] != "error"),
        (own, method is not None and method not in METHODS),
        (sigma, uses_graph and smoothness is None),
    )


def read_data(expression: str, graph: str | None, zscore: bool, missing: str, **reading: Any) -> Dataset:
    """Read data and network and print how they match; an error if there are missing entries and no --missing."""
    from netbic.arrays import kind_of
    from netbic.estimators.inputs import is_mostly_zero
    from netbic.io.dataset import open_dataset

    dataset = open_dataset(expression, graph, **reading)
    echo(*_unused_genes(expression, dataset.expression.shape[1]))
    echo(*map(in_options, dataset.alignment.lines()))
    matrix = dataset.expression.matrix
    dataset = check_data(dataset, scaled=zscore or (kind_of(matrix) != "dask" and is_mostly_zero(matrix)))
    if missing == "error" and (found := dataset.expression.missing_entries()):
        raise click.ClickException(f"{found}: use --missing ignore or --missing impute, or fill the missing entries")
    return dataset


def _unused_genes(expression: str, n_genes: int) -> Iterator[str]:
    """A line if the file of an AnnData object marks genes that `netbic.tl.modules` would use."""
    from netbic.io.stores import read_obs

    if expression.endswith((".h5ad", ".zarr")):
        try:
            marked = int(read_obs(Path(expression), "var")["highly_variable"].sum())
        except (KeyError, ValueError, TypeError):
            return
        if marked < n_genes:
            yield (
                f"var has {marked:,} genes marked as highly_variable: this command uses all {n_genes:,} "
                "(netbic.tl.modules uses these; or keep the most variable ones, --top-genes)"
            )


def check_data(dataset: Dataset, *, scaled: bool = False, table: tuple[int, str] | None = None) -> Dataset:
    """The same data, with what the checks found in its `alignment`; each finding is printed as a warning.

    `table` is the number and the name of one of two tables.
    """
    from netbic.estimators.inputs import one_blas_thread
    from netbic.io.checks import check_expression
    from netbic.io.dataset import in_features

    logged = any(step["step"] == "log1p" for step in dataset.alignment.steps)
    with one_blas_thread():
        every = check_expression(dataset.expression.matrix, *dataset.names, log1p=logged, scaled=scaled)
    findings = []
    for found in every:
        text = in_options(str(found)) if table is None else in_options(in_features(str(found)), str(table[0]))
        if table is not None:
            text = f"{table[1]}: {text.replace('modules', 'pairs')}"
        findings.append({"kind": found.kind, "text": text, "names": list(found.names)})
        command.echo_warning(text)
    return replace(dataset, alignment=replace(dataset.alignment, findings=findings))


def _estimator(dataset: Dataset, settings: dict[str, Any], jobs: int | None) -> SparseGraphSVD:
    """The estimator that the options describe."""
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.methods import method as published
    from netbic.methods import usual_sizes

    method, modules, smoothness = (settings[name] for name in ("method", "modules", "smoothness"))
    shape = dataset.expression.shape
    parameters: dict[str, Any] = {
        **{"column_graph": dataset.graph, "random_state": settings["seed"], "n_jobs": jobs},
        **{"center": "columns", "scale": settings["zscore"] or None, "missing": settings["missing"]},
    }
    usual = (None, None) if method in (None, "ALSVD", "SCADSVD") else usual_sizes(*shape)  # these choose their sizes
    for parameter, name, available, default in zip(
        ("n_rows", "n_columns"), ("samples", "genes"), shape, usual, strict=True
    ):
        options.check_size(name, settings[name], available)
        if (size := settings[name] or default) is not None:
            parameters[parameter] = size
    if method is not None:
        return published(method, modules or "auto", column_sigma=smoothness or 0.0, **parameters)
    return SparseGraphSVD(
        modules or "auto", column_smoothness=smoothness, diffusion=settings["diffusion"], **parameters
    )


def _plan(n_samples: int, units: Any, n_covariates: int = 0) -> Plan:
    """How modules will be judged; `units` are the labels of the samples that belong together, if some do."""
    from netbic.selection.verdicts import Plan, called, group_numbers

    return Plan.of(group_numbers(units, n_samples, None)[0], n_covariates, groups=called(units))


def _cautions(n_samples: int, units: Any, n_modules: int | None, verdict: bool) -> Iterator[str]:
    """What to know before the search: too few samples to judge modules, or as many modules as noise may contain."""
    plan = _plan(n_samples, units)
    if verdict and plan.too_few:
        yield f"{plan.too_few[0].lower()}{plan.too_few[1:-1]}; modules cannot be judged, any of them may be noise"
    what, n_units = ("samples", n_samples) if units is None else ("groups of samples", units.nunique())
    if plan.left_out.size:  # few groups of many samples
        what, n_units = "samples", n_samples
    if n_modules and _MANY * n_modules > n_units:
        yield (
            f"up to {counted(n_modules, 'module')} in {n_units:,} {what}: with more than a third as many modules as "
            f"{what}, most of them will probably be doubtful"
        )


def _fit(
    run: Run,
    model: SparseGraphSVD,
    dataset: Dataset,
    labels: SampleTable | None,
    sets: GeneSets | None,
    known: dict[str, Any],
    *,
    verdict: bool,
    report: bool,
) -> list[str]:
    """Fit the model, write everything, and return lines about it."""
    from netbic.enrichment import write_enrichment
    from netbic.files import scratch_folder
    from netbic.report import write_heatmaps
    from netbic.storage.runs import write_results
    from netbic.storage.tables import modules_table, summary_table

    def texts() -> list[str]:  # the warnings so far, for the record
        return dataset.alignment.warnings() + [in_options(str(each.message)) for each in caught]

    out, lines = run.folder, list[str]()
    if run.known:
        echo(f"continuing after {counted(len(run.known), 'module')}")
    with Progress(_STAGES) as progress:
        asked = 1 if isinstance(model.n_components, str) else model.n_components
        progress.update("modules", len(run.known), asked)
        with run, warnings.catch_warnings(record=True, action="always") as caught:
            found = model.iter_fit(dataset.X, run.known, dataset.names, feature_name="gene", **known)
            for number, module in enumerate(found, len(run.known)):
                run.keep(number, module)
                progress.update("modules", number + 1, max(number + 1, asked))
            if model.count_ is not None:
                echo(in_options(f"number of modules: {model.count_.sentence}"))
            with scratch_folder(out) as staged:
                judgement, told = _judge(model, dataset, labels, verdict, progress)
                lines.extend(told)
                progress.update("tables", 0, 1)
                write_heatmaps(staged, model, dataset.X)
                judgement.write(staged)
                if labels is not None and model.n_components_:
                    again = f"run netbic associate {out} --sample-info {labels.origin}"
                    with _results_are_kept("the modules were not compared with the sample table", again):
                        lines.extend(labels.write(model, staged, out, {"genes": dataset.X}))
                if model.column_graph is not None or sets is not None:
                    tested = write_enrichment(model, staged, sets, X=dataset.X, random_state=model.random_state)
                    lines.extend(f"{out}/{line}" for line in tested)
                summary = summary_table(model, judgement.summary, feature_name="gene")
                tables = {"modules": modules_table(model, "gene", judgement.features), "summary": summary}
                tables |= {} if model.studies_ is None else {"studies": model.studies_}
                write_results(staged, model, dataset.alignment.to_dict(), tables)
                if report:
                    progress.update("report", 0, 1)
                    lines.extend(report_lines(out, staged, model, run.record(texts())))
                run.finish(staged, texts())
    for warning in caught:
        warnings.warn(warning.message, stacklevel=1)
    lines.extend(_graph_lines(model))
    if model.diffusion == "cv":
        lines.append(f"diffusion chosen by cross-validation: {model.diffusion_:g}")
    if model.passes_ is not None:  # data that are read block by block: this is what takes time
        passes = f"{dataset.expression.passes} for preprocessing, {model.passes_:.1f} for the modules"
        lines.append(f"passes over the data: {passes}")
    return lines


def _graph_lines(model: SparseGraphSVD) -> Iterator[str]:
    """How much of the scores of the genes comes from the network, if it was used in the search."""
    import numpy as np

    from netbic.enrichment import fit_used_graph
    from netbic.solver.search import LARGE_GRAPH_SHARE

    if not fit_used_graph(model) or model.diffusion_ or not model.n_components_:
        return
    low, middle, high = (float(each) for each in np.quantile(model.graph_share_, (0, 0.5, 1)))
    said = "changed the modules a little" if middle < LARGE_GRAPH_SHARE else "dominates the modules"
    said = "hardly changed the modules" if middle < _LITTLE_GRAPH else said
    shares = f"{low:.1g} to {high:.1g}, median {middle:.1g}" if model.n_components_ > 1 else f"{middle:.1g}"
    yield f"the network {said} (graph share {shares})"


@contextmanager
def _results_are_kept(consequence: str, remedy: str) -> Iterator[None]:
    """Turn an error into a warning, so that the modules are written; a disk that is full remains an error."""
    from netbic.errors import one_line

    try:
        yield
    except OSError:
        raise
    except Exception as problem:
        warnings.warn(one_line(f"{consequence} ({problem}); all else is written: {remedy}"), stacklevel=2)


def _judge(
    model: SparseGraphSVD, dataset: Dataset, labels: SampleTable | None, verdict: bool, progress: Progress
) -> tuple[Judgement, list[str]]:
    """Groups of samples, and verdicts if they are wanted and the data are in memory; with lines about them."""
    from netbic.selection import Judgement, verdicts

    groups, units = _sample_groups(model, dataset), None if labels is None else labels.units()
    if not verdict or not model.n_components_:
        return Judgement(groups, None), []
    if dataset.expression.is_lazy:
        return Judgement(groups, None), ["no verdicts: they need the data in memory (without --dask)"]
    n_samples, n_genes = dataset.expression.shape
    affordable = _VERDICT_SECONDS / (_SECONDS_PER_ENTRY * n_samples * n_genes * model.n_components_)
    n_pairs = int(min(max(affordable, _PAIRS[0]), _PAIRS[1]))
    plan = _plan(n_samples, units, 0 if model.covariates_ is None else model.covariates_.shape[1])
    if not plan.too_few:  # if there are, this was said before the fit
        echo(f"judging the modules in {plan.unit} (--no-verdict skips this) ...")
        progress.update("pairs", 0, plan.left_out.size or n_pairs)
    found = verdicts(
        model,
        dataset.X,
        groups=units,
        n_pairs=n_pairs,
        progress=lambda done, total: progress.update("pairs", done, total),
        random_state=model.random_state,
        n_jobs=model.n_jobs,
        feature_name="gene",
    )
    return Judgement(groups, found), [] if plan.too_few else [found.verdict]


def _sample_groups(model: SparseGraphSVD, dataset: Dataset) -> SampleGroups:
    """Groups of samples; if samples were selected, these are up or down by the signs of their weights.

    Selected samples have extreme scores, so that groups would be found in noise as well.
    """
    import numpy as np

    from netbic.selection import SampleGroups
    from netbic.storage.tables import sides_of

    found = SampleGroups.find(model, dataset.X, names=list(dataset.names[0]))
    selected = found.summary["selected"].to_numpy(dtype=bool) & ~model.rows_.all(axis=1)
    if not selected.any():
        return found
    groups = found.table["group"].to_numpy(dtype=object).reshape(len(selected), -1)
    groups = np.where(selected[:, None], sides_of(model.left_vectors_.T), groups)
    summary = found.summary.assign(**{side: (groups == side).sum(axis=1) for side in ("up", "down")})
    summary["kind"] = summary["kind"].mask(selected, "selected")
    return SampleGroups(found.table.assign(group=groups.ravel()), summary)


def report_lines(out: Path, folder: Path, model: object, record: dict[str, Any]) -> Iterator[str]:
    """Write the report if its libraries are installed; a fit does not fail without them."""
    from netbic.errors import how_to_install
    from netbic.report import missing_library, write_report

    if missing := missing_library():
        yield f"no report was written: it needs {missing}; {how_to_install('report')}, then netbic report {out}"
        return
    with _results_are_kept("no report was written", f"run netbic report {out}"):
        page = write_report(folder, model=model, record=record)
        yield f"{out}/{page.name}: the report, to open in a browser"


def _complete(
    out: Path,
    dataset: Dataset,
    labels: SampleTable | None,
    sets: GeneSets | None,
    gene_sets: str | None,
    jobs: int | None,
    *,
    verdict: bool,
    report: bool,
) -> Iterator[str]:
    """Add to a finished fit what is asked for now and was not then: verdicts, gene sets, associations, a report."""
    from netbic import files
    from netbic.enrichment import write_enrichment
    from netbic.report import write_heatmaps
    from netbic.storage.models import load_modules
    from netbic.storage.tables import modules_table, summary_table

    def has(name: str) -> bool:
        return (out / name).is_file()

    model, inputs = load_modules(out).set_params(n_jobs=jobs), (files.finished_record(out) or {}).get("inputs", {})
    found = bool(model.n_components_)
    judge = found and verdict and not has("verdicts.tsv") and not dataset.expression.is_lazy
    enrich = found and sets is not None and not (has("gene_sets.tsv") and inputs.get("gene_sets") == gene_sets)
    asked = {} if labels is None else labels.record()
    associate = found and labels is not None and not (has("associations.tsv") and asked.items() <= inputs.items())
    if not (judge or enrich or associate) and (not report or has("report.html")):
        return
    with files.locked(out), Progress(_STAGES) as progress:
        if not has("heatmaps.npz"):
            write_heatmaps(out, model, dataset.X)
        if judge:
            judgement, lines = _judge(model, dataset, labels, verdict, progress)
            summary = summary_table(model, judgement.summary, feature_name="gene")
            judgement.write(out, {"modules": modules_table(model, "gene", judgement.features), "summary": summary})
            yield from lines
        progress.update("tables", 0, 1)
        if enrich:
            for line in write_enrichment(model, out, sets, X=dataset.X, random_state=model.random_state):
                yield f"{out}/{line}"
            inputs["gene_sets"] = gene_sets
        if associate and labels is not None:
            again = f"run netbic associate {out} --sample-info {labels.origin} with --name NAME or --force"
            with _results_are_kept("the modules were not compared with the sample table", again):
                yield from labels.write(model, out, out, {"genes": dataset.X})
                inputs |= asked
        record = (files.finished_record(out) or {}) | {"inputs": inputs}
        if enrich or associate:
            files.write_json(out / files.RUN_RECORD, record)
        if report:
            progress.update("report", 0, 1)
            yield from report_lines(out, out, model, record)
    if not report:
        command.echo_report_is_older(out)


def summary_lines(out: Path) -> Iterator[str]:
    """The modules in a folder in words, a line per module: the first ones, and those that associations named."""
    from netbic.enrichment import naming_sets
    from netbic.files import read_table

    table = read_table(out / "summary.tsv")
    names = [""] * len(table)  # of the gene sets that modules are called after, as in the report
    if (out / "gene_sets.tsv").is_file():
        names = naming_sets(*(read_table(out / name) for name in ("modules.tsv", "gene_sets.tsv")))
    variance = table["explained_variance_ratio"].sum()
    found = "1 module explains" if len(table) == 1 else f"{len(table)} modules explain"
    yield f"{found} {variance:.1%} of the variance. Tables: {out}/modules.tsv, {out}/summary.tsv"
    listed = {*table["module"].head(_LISTED_MODULES), *_named_modules(out)}
    for row, name in zip(table.to_dict("records"), names, strict=True):
        if row["module"] in listed:
            yield f"  module {row['module']}{f' ({name})' * bool(name)}: {_described(row)}"
    if n_more := int((~table["module"].isin(listed)).sum()):
        yield f"  and {n_more} more (see {out}/summary.tsv)"
    if "sample_kind" in table and table["sample_kind"].eq("gradient").any():
        yield f"gradient: the samples form no groups; use their scores ({out}/samples.tsv)"


def _named_modules(out: Path) -> set[int]:
    """Modules of the associations in a folder that are printed."""
    from netbic.association.stored import TABLE, stored_verdicts
    from netbic.association.words import strongest_found
    from netbic.files import read_table

    if not (out / TABLE).is_file():
        return set()
    return {*strongest_found(read_table(out / TABLE).fillna({"level": ""}), stored_verdicts(out))["module"]}


def _described(row: dict[Any, Any]) -> str:
    """A module in one line: verdict, genes and samples."""
    judged = isinstance(row.get("verdict"), str) and not row["verdict"].startswith("too few")  # said for all at once
    verdict = f"{row['verdict']}, " if judged else ""
    more = ", ..." if row["n_genes"] > len(row["top_genes"].split(", ")) else ""
    kind, up, down = row.get("sample_kind"), row.get("n_up", 0), row.get("n_down", 0)
    samples = "gradient" if kind == "gradient" else counted(row["n_samples"], "sample")
    if kind == "selected":
        samples += f" selected ({up:,} up, {down:,} down)"
    if kind == "groups":
        parts = [f"{side} in {number:,}" for side, number in (("up", up), ("down", down)) if number]
        samples = f"{', '.join(parts)} of {row['n_samples']:,} samples"
    is_doubtful = row.get("verdict") == "doubtful"  # where noise lives would mean nothing
    where = f", {row['studies']}" if isinstance(row.get("studies"), str) and not is_doubtful else ""
    technical = row.get("technical")
    remark = f"; {technical}" if isinstance(technical, str) and technical else ""
    return f"{verdict}{counted(row['n_genes'], 'gene')} ({row['top_genes']}{more}), {samples}{where}{remark}"
