"""Commands about data: netbic align, convert, graph, simulate and demo."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from netbic.cli.command import Command, Progress, counted, echo, in_options
from netbic.cli.options import (
    File,
    Finite,
    Output,
    preprocesses_genes,
    quiet_option,
    reads_dataset,
    reads_expression,
    seed_option,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from netbic.io import Dataset
    from netbic.simulate import Cohort

_ALL_OR_NOTHING = {"restart_hint": "nothing was written", "unchanged_hint": "nothing was written"}
_FOUND = 0.5  # F1 of genes from which a program of the demo counts as found
_VERDICTS = {"strong": "strong", "moderate": "moderate", "repeats": "repeats another one", "doubtful": "doubtful"}


def check_data(dataset: Dataset, *, scaled: bool = False, silent: bool = False, table: int | None = None) -> Dataset:
    """The same data, with what the checks found in its `alignment`; each finding is printed as a warning.

    `table` is the number of one of two tables.
    """
    from netbic.io import check_expression, in_features

    logged = any(step["step"] == "log1p" for step in dataset.alignment.steps)
    findings = []
    for found in check_expression(dataset.expression.matrix, *dataset.names, log1p=logged, scaled=scaled):
        text = in_options(str(found)) if table is None else in_options(in_features(str(found)), str(table))
        if table is not None:
            text = f"table {table}: {text.replace('modules', 'pairs')}"
        findings.append({"kind": found.kind, "text": text, "names": list(found.names)})
        if not silent:
            click.echo(f"warning: {text}", err=True)
    return replace(dataset, alignment=replace(dataset.alignment, findings=findings))


@click.command(cls=Command)
@click.argument("expression", type=File)
@click.option("--graph", required=True, type=File, help="Network: SIF, edge table, STRING, GraphML, Parquet, .npz.")
@reads_dataset
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def align(expression: str, graph: str, as_json: bool, **reading: Any) -> None:
    """Report which genes of EXPRESSION are in the network, and how many edges connect them.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder.
    """
    from netbic.io import open_dataset

    dataset = open_dataset(expression, graph, **reading)
    for line in dataset.alignment.lines():
        echo(in_options(line), as_json)
    dataset = check_data(dataset, silent=as_json)
    if as_json:
        click.echo(json.dumps(dataset.alignment.to_dict(), indent=1))


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("expression", type=File)
@click.argument("out", type=click.Path(path_type=str))
@reads_expression
@click.option("--block-rows", type=click.IntRange(1), show_default="about 64 MB", help="Samples per block.")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), show_default="as in the file", help="Floating-point type."
)
@click.option("--force", is_flag=True, help="Replace an existing store.")
@quiet_option
def convert(expression: str, out: str, quiet: bool, **options: Any) -> None:
    """Convert EXPRESSION to a Zarr store OUT.zarr, which netbic fit --dask reads in blocks of samples.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array or a 10x
    folder. It may be larger than memory. OUT.zarr has AnnData's layout and can also be read by anndata.read_zarr.
    """
    from netbic import io
    from netbic.arrays import kind_of

    with Progress({"percent": "converting"}, quiet) as progress:
        made = io.convert(expression, out, **options, progress=lambda percent: progress.update("percent", percent, 100))
    heights = made.matrix.chunks[0]
    blocks = f"{len(heights):,} blocks of {heights[0]:,}" if len(heights) > 1 else "1 block"
    size = f"{made.shape[0]:,} samples x {made.shape[1]:,} genes"
    echo(f"{out}: {size}, {kind_of(made.matrix._meta)} {made.matrix.dtype}, {blocks}", quiet)
    echo(f"next: netbic fit {out} --graph NETWORK --out FOLDER --dask local", quiet)


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("reference", type=File)
@click.option("--out", required=True, type=Output, help="Network file to write (.npz).")
@click.option("--neighbours", default=10, type=click.IntRange(1), help="Most correlated genes to connect each gene to.")
@click.option("--absolute", is_flag=True, help="Use absolute correlations, not only positive ones.")
@reads_expression
@preprocesses_genes
@click.option("--force", is_flag=True, help="Replace an existing file.")
@quiet_option
def graph(reference: str, out: Path, neighbours: int, absolute: bool, force: bool, quiet: bool, **reading: Any) -> None:
    """Connect each gene to its most correlated genes in REFERENCE, a study other than the one to analyse.

    REFERENCE is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. The network can be used by netbic fit --graph.
    """
    from netbic.graph import coexpression
    from netbic.io import open_dataset
    from netbic.storage import check_network_file, write_network

    inputs = {"the reference data": reference, "the id map": reading["id_map"]}
    check_network_file(out, inputs, force=force)
    started = perf_counter()
    dataset = open_dataset(reference, **reading)
    if missing_text := dataset.expression.missing_entries():
        raise click.ClickException(f"{missing_text}: fill the missing entries, or remove those genes")
    made = coexpression(dataset.X, neighbours, positive=not absolute)
    named = made if made.names is not None else made.renamed(dataset.expression.genes)
    write_network(named, out, force=force, inputs=inputs)
    samples = f"correlated in {dataset.expression.shape[0]:,} samples"
    seconds = f"{perf_counter() - started:.1f} s"
    echo(f"{out}: {made.n_nodes:,} genes, {made.n_edges:,} edges between genes {samples} ({seconds})", quiet)
    echo(f"next: netbic fit EXPRESSION --graph {out} --diffusion cv --out FOLDER", quiet)
    echo("EXPRESSION must have other samples: with the same ones, their correlations would be used twice", quiet)


@click.command(cls=Command)
@click.argument("folder", type=Output)
@click.option("--samples", default=400, type=click.IntRange(20), help="Number of samples.")
@click.option("--genes", default=3000, type=click.IntRange(50), help="Number of genes.")
@click.option("--modules", default=5, type=click.IntRange(1), help="Number of planted modules.")
@click.option("--strength", default=0.75, type=Finite(0, 100), help="Strength of the modules; 0.5 is hard to find.")
@seed_option
@click.option("--force", is_flag=True, help="Replace an earlier simulation in the folder.")
def simulate(folder: Path, samples: int, genes: int, modules: int, strength: float, seed: int, force: bool) -> None:
    """Write a simulated cohort: expression.tsv.gz, network.sif, labels.tsv and truth.tsv (what was planted)."""
    from netbic.files import recorded_files
    from netbic.simulate import cohort
    from netbic.storage import write_cohort

    if "expression.tsv.gz" in recorded_files(folder) and not force:
        raise click.UsageError(
            f"{folder} already contains a simulation: choose another folder, or use --force to replace it"
        )
    write_cohort(cohort(samples, genes, n_modules=modules, strength=strength, random_state=seed), folder)
    click.echo(
        f"{folder}: expression.tsv.gz ({samples:,} samples x {genes:,} genes), network.sif, truth.tsv, labels.tsv"
    )
    data = f"{folder}/expression.tsv.gz --graph {folder}/network.sif"
    click.echo(f"next: netbic fit {data} --modules {modules} --out {folder}/modules")


@click.command(cls=Command)
@click.option("--out", default="netbic-demo", type=Output, help="Folder for data and results.")
@click.option("--samples", default=400, type=click.IntRange(100), help="Number of patients.")
@click.option("--genes", default=800, type=click.IntRange(500), help="Number of genes.")
@click.option("--modules", default=6, type=click.IntRange(1), help="Number of modules to find; five are planted.")
@seed_option
@click.option("--force", is_flag=True, help="Replace the results of an earlier demo in the folder.")
def demo(out: Path, samples: int, genes: int, modules: int, seed: int, force: bool) -> None:
    """Simulate patients, find the gene programs that were planted in them, and judge each module.

    Data and results, with a report, are left in a folder (--out).
    """
    from rich.console import Console

    from netbic.cli.fit import fit
    from netbic.report import missing_library
    from netbic.simulate import patients
    from netbic.storage import check_folder, write_cohort

    results = out / "modules"
    if not force and out.is_dir() and any(out.iterdir()):
        raise click.UsageError(
            f"{out} is not empty: choose another folder with --out, or use --force to replace an earlier demo"
        )
    check_folder(results, resume=False, force=force)
    click.echo(f"simulating {samples:,} patients, finding modules and judging them (about ten seconds) ...", err=True)
    cohort = patients(samples, genes, random_state=seed)
    write_cohort(cohort, out)
    given = ["--graph", str(out / "network.sif"), "--modules", str(modules), "--out", str(results)]
    arguments = [str(out / "expression.tsv.gz"), *given]
    fit.main([*arguments, "--quiet", *["--force"] * force], prog_name="netbic fit", standalone_mode=False)
    console = Console(highlight=False)
    for part in _answer(cohort, results):
        console.print(part)
    page = f"Open the report in a browser: {results}/report.html"
    if missing := missing_library():
        install = f'pip install "netbic[report]", then netbic report {results}'
        page = f"No report was written: it needs {missing}. Run {install}"
    for line in (
        "",
        page,
        f"These modules were found by: netbic fit {shlex.join(arguments)}",
        "Next, with your own data: netbic fit expression.tsv --graph network.sif --out modules",
    ):
        click.echo(line)


def _answer(cohort: Cohort, folder: Path) -> Iterator[Any]:
    """What was planted and what was found: the verdicts, a table, how to read it, and reasons."""
    from netbic.files import read_table
    from netbic.simulate import recovery
    from netbic.storage import load_modules

    summary, verdicts, samples = (read_table(folder / f"{name}.tsv") for name in ("summary", "verdicts", "samples"))
    columns = load_modules(folder).columns_
    recovered = recovery(columns, cohort.genes)
    found = recovered[recovered["f1"] >= _FOUND]
    kinds = verdicts["verdict"].str.split().str[0]
    counts = kinds.value_counts()
    parts = [f"{counts[verdict]} {text}" for verdict, text in _VERDICTS.items() if verdict in counts]
    yield (
        f"[bold]netbic found {len(found)} of {len(recovered)} planted gene programs, without being told how many genes "
        f"or patients they have.[/]\nVerdicts on the {counted(len(verdicts), 'module')}: {', '.join(parts)}."
    )
    yield ""
    module_of = dict(zip(found["planted"], found["found"], strict=True))
    yield _table(cohort, recovered["f1"], module_of, summary, samples)
    yield (
        "F1 compares the genes of a module with those planted; ARI (adjusted Rand index) compares the patients in "
        "whom it is up (1: the same)."
    )
    cells, interferon = (list(cohort.names).index(name) for name in ("T cells", "interferon"))
    own, shared = cohort.genes[interferon], ""
    if cells in module_of and (n_shared := int((columns[module_of[cells]] & own).sum())):
        number = module_of[cells] + 1
        shared = f"module {number} also contains {n_shared} of the {own.sum()} interferon genes, and "
    yield (
        "Interferon was planted in nearly the same patients as the T cells. "
        f"So {shared}the interferon module repeats the patients of the T cells."
    )
    yield "Five programs were planted; further modules can only be noise."
    yield ""
    first = verdicts[~kinds.duplicated()]  # of each kind
    for module, reason in zip(first["module"], first["reason"], strict=True):
        yield f"Module {module + 1}. {reason}"


def _table(
    cohort: Cohort, f1: pd.Series[float], module_of: dict[int, int], summary: pd.DataFrame, samples: pd.DataFrame
) -> Table:
    """A row per planted program, then a row per module that is none of them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from sklearn.metrics import adjusted_rand_score

    def cells(module: int, program: int | None) -> tuple[str, ...]:
        row = summary[summary["module"] == module].iloc[0]
        up = (samples["group"][samples["module"] == module] == "up").to_numpy()
        agreement = ("", "")
        if program is not None:
            agreement = f"{f1[program]:.2f}", f"{adjusted_rand_score(cohort.samples[program], up):.2f}"
        groups = str(up.sum()) if up.any() else "-"
        return f"module {module + 1}", str(row["n_genes"]), agreement[0], groups, agreement[1], str(row["verdict"])

    n_samples, n_genes = cohort.expression.shape
    title = f"{n_samples:,} simulated patients, {n_genes:,} genes, a network with {cohort.network.n_edges:,} edges"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for heading in ("planted", "genes", "patients", "found as", "genes", "F1", "up", "ARI", "verdict"):
        table.add_column(heading, justify="left" if heading in ("planted", "verdict") else "right")
    for k, name in enumerate(cohort.names):
        planted = (name, str(cohort.genes[k].sum()), str(cohort.samples[k].sum()))
        table.add_row(*planted, *(cells(module_of[k], k) if k in module_of else ("not found",)))
    table.add_section()
    for module in sorted(set(summary["module"]) - set(module_of.values())):
        table.add_row("(nothing)", "", "", *cells(module, None))
    return table
