"""Commands about data: netbic align, convert, graph, simulate and demo."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, Progress, echo, in_options
from netbic.cli.fit import check_data, fit

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from netbic.simulate import Cohort

_ALL_OR_NOTHING = {"restart_hint": "nothing was written", "unchanged_hint": "nothing was written"}
_FOUND = 0.5  # F1 of genes from which a program of the demo counts as found


@click.command(cls=Command)
@click.argument("expression", type=options.File)
@option("--graph", required=True, type=options.File, help="Network: SIF, edge table, STRING, GraphML, Parquet, .npz.")
@options.reads_dataset
@option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def align(expression: str, graph: str, as_json: bool, **reading: Any) -> None:
    """Report which genes of EXPRESSION are in the network, and how many edges connect them.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder.
    """
    from netbic.io.dataset import open_dataset

    dataset = open_dataset(expression, graph, **reading)
    if not as_json:
        echo(*map(in_options, dataset.alignment.lines()))
    dataset = check_data(dataset)
    if as_json:
        echo(json.dumps(dataset.alignment.to_dict(), indent=1))


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("expression", type=options.File)
@click.argument("out", type=click.Path(path_type=str))
@options.reads_expression
@option("--block-rows", type=options.COUNT, show_default="about 64 MB", help="Samples per block.")
@option("--dtype", type=click.Choice(["float32", "float64"]), show_default="as in the file", help="Type of numbers.")
@option("--force", is_flag=True, help="Replace an existing store.")
@options.quiet
def convert(expression: str, out: str, **given: Any) -> None:
    """Convert EXPRESSION to a Zarr store OUT.zarr, which netbic fit --dask reads in blocks of samples.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array or a 10x
    folder. It may be larger than memory. OUT.zarr has AnnData's layout and can also be read by anndata.read_zarr.
    """
    from netbic import io
    from netbic.arrays import kind_of

    with Progress({"percent": "converting"}) as progress:
        made = io.convert(expression, out, **given, progress=lambda percent: progress.update("percent", percent, 100))
    heights = made.matrix.chunks[0]
    blocks = f"{len(heights):,} blocks of {heights[0]:,}" if len(heights) > 1 else "1 block"
    size = f"{made.shape[0]:,} samples x {made.shape[1]:,} genes"
    echo(f"{out}: {size}, {kind_of(made.matrix._meta)} {made.matrix.dtype}, {blocks}")
    echo(f"next: netbic fit {out} --graph NETWORK --out FOLDER --dask local")


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("reference", type=options.File)
@option("--out", required=True, type=options.Output, help="Network file to write (.npz).")
@option("--neighbours", default=10, type=options.COUNT, help="Most correlated genes to connect each gene to.")
@option("--absolute", is_flag=True, help="Use absolute correlations, not only positive ones.")
@options.reads_expression
@options.preprocesses_genes
@option("--force", is_flag=True, help="Replace an existing file.")
@options.quiet
def graph(reference: str, out: Path, neighbours: int, absolute: bool, force: bool, **reading: Any) -> None:
    """Connect each gene to its most correlated genes in REFERENCE, a study other than the one to analyse.

    REFERENCE is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. The network can be used by netbic fit --graph.
    """
    from netbic.graph import coexpression
    from netbic.io.dataset import open_dataset
    from netbic.storage.tables import check_network_file, write_network

    inputs = {"the reference data": reference, "the id map": reading["id_map"]}
    check_network_file(out, inputs, force=force)
    started = perf_counter()
    dataset = open_dataset(reference, **reading)
    if missing_text := dataset.expression.missing_entries():
        raise click.ClickException(f"{missing_text}: fill the missing entries, or remove those genes")
    made = coexpression(dataset.X, neighbours, positive=not absolute)
    named = made if made.names is not None else made.renamed(dataset.expression.genes)
    write_network(named, out, force=force, inputs=inputs)
    found = f"{made.n_edges:,} edges between genes correlated in {dataset.expression.shape[0]:,} samples"
    echo(
        f"{out}: {made.n_nodes:,} genes, {found} ({perf_counter() - started:.1f} s)",
        f"next: netbic fit EXPRESSION --graph {out} --diffusion cv --out FOLDER",
        "EXPRESSION must have other samples: with the same ones, their correlations would be used twice",
    )


@click.command(cls=Command)
@click.argument("folder", type=options.Output)
@option("--samples", default=400, type=click.IntRange(20), help="Number of samples.")
@option("--genes", default=3000, type=click.IntRange(50), help="Number of genes.")
@option("--modules", default=5, type=options.COUNT, help="Number of planted modules.")
@option("--strength", default=0.75, type=options.Finite(0, 100), help="Strength of the modules; 0.5 is hard to find.")
@options.seed
@option("--force", is_flag=True, help="Replace an earlier simulation in the folder.")
def simulate(folder: Path, samples: int, genes: int, modules: int, strength: float, seed: int, force: bool) -> None:
    """Write a simulated cohort: expression.tsv.gz, network.sif, labels.tsv and truth.tsv (what was planted)."""
    from netbic.files import recorded_files
    from netbic.simulate import cohort
    from netbic.storage.tables import write_cohort

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
@option("--out", default="netbic-demo", type=options.Output, help="Folder for data and results.")
@options.seed
@option("--force", is_flag=True, help="Replace the results of an earlier demo in the folder.")
def demo(out: Path, seed: int, force: bool) -> None:
    """Simulate patients, find the gene programs that were planted in them, and judge each module.

    Data and results, with a report, are left in a folder (--out).
    """
    from rich.console import Console

    from netbic.report import missing_library
    from netbic.simulate import patients
    from netbic.storage.runs import check_folder
    from netbic.storage.tables import write_cohort

    results = out / "modules"
    if not force and out.is_dir() and any(out.iterdir()):
        raise click.UsageError(
            f"{out} is not empty: choose another folder with --out, or use --force to replace an earlier demo"
        )
    check_folder(results, force=force)
    click.echo("simulating 400 patients, finding modules and judging them (about ten seconds) ...", err=True)
    cohort = patients(400, 800, random_state=seed)
    write_cohort(cohort, out)
    arguments = [str(out / "expression.tsv.gz"), "--graph", str(out / "network.sif"), "--modules", "6"]
    arguments += ["--out", str(results)]
    fit.main([*arguments, "--quiet", *["--force"] * force], prog_name="netbic fit", standalone_mode=False)
    console = Console(highlight=False)
    for part in _answer(cohort, results):
        console.print(part)
    page = f"Open the report in a browser: {results}/report.html"
    if missing := missing_library():
        install = f'pip install "netbic[report]", then netbic report {results}'
        page = f"No report was written: it needs {missing}. Run {install}"
    found_by = f"These modules were found by: netbic fit {shlex.join(arguments)}"
    echo("", page, found_by, "Next, with your own data: netbic fit expression.tsv --graph network.sif --out modules")


def _answer(cohort: Cohort, folder: Path) -> Iterator[Any]:
    """What was planted and what was found: the verdicts, a table, how to read it, and reasons."""
    from netbic.files import read_table
    from netbic.selection import kind_of_verdict, verdict_sentence
    from netbic.simulate import recovery
    from netbic.storage.models import load_modules

    verdicts = read_table(folder / "verdicts.tsv")
    columns = load_modules(folder).columns_
    recovered = recovery(columns, cohort.genes)
    found = recovered[recovered["f1"] >= _FOUND]
    kinds = verdicts["verdict"].map(kind_of_verdict)
    yield (
        f"[bold]netbic found {len(found)} of {len(recovered)} planted gene programs, without being told how many genes "
        f"or patients they have.[/]\n{verdict_sentence(verdicts)}"
    )
    yield ""
    module_of = dict(zip(found["planted"], found["found"] + 1, strict=True))
    yield _table(cohort, recovered["f1"], module_of, folder)
    yield (
        "F1 compares the genes of a module with those planted; ARI (adjusted Rand index) compares the patients in "
        "whom it is up (1: the same)."
    )
    cells, interferon = (list(cohort.names).index(name) for name in ("T cells", "interferon"))
    own, shared = cohort.genes[interferon], ""
    if cells in module_of and (n_shared := int((columns[module_of[cells] - 1] & own).sum())):
        shared = f"module {module_of[cells]} also contains {n_shared} of the {own.sum()} interferon genes, and "
    yield (
        "Interferon was planted in nearly the same patients as the T cells. "
        f"So {shared}the scores of the interferon module are similar to those of the T cells."
    )
    yield "Five programs were planted; further modules can only be noise."
    yield ""
    first = verdicts[~kinds.duplicated()]  # of each kind
    for module, reason in zip(first["module"], first["reason"], strict=True):
        yield f"Module {module}. {reason}"


def _table(cohort: Cohort, f1: pd.Series[float], module_of: dict[int, int], folder: Path) -> Table:
    """A row per planted program, then a row per module that is none of them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from sklearn.metrics import adjusted_rand_score

    from netbic.files import read_table

    summary = read_table(folder / "summary.tsv").set_index("module")
    is_up = (read_table(folder / "samples.tsv")["group"] == "up").to_numpy().reshape(len(summary), -1)

    def cells(module: int, program: int | None) -> tuple[str, ...]:
        up, agreement = is_up[module - 1], ("", "")
        if program is not None:
            agreement = f"{f1[program]:.2f}", f"{adjusted_rand_score(cohort.samples[program], up):.2f}"
        n_genes, verdict = (str(summary.loc[module, name]) for name in ("n_genes", "verdict"))
        groups = str(up.sum()) if up.any() else "-"
        return f"module {module}", n_genes, agreement[0], groups, agreement[1], verdict

    n_samples, n_genes = cohort.expression.shape
    title = f"{n_samples:,} simulated patients, {n_genes:,} genes, a network with {cohort.network.n_edges:,} edges"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for heading in ("planted", "genes", "patients", "found as", "genes", "F1", "up", "ARI", "verdict"):
        table.add_column(heading, justify="left" if heading in ("planted", "verdict") else "right")
    for k, name in enumerate(cohort.names):
        planted = (name, str(cohort.genes[k].sum()), str(cohort.samples[k].sum()))
        table.add_row(*planted, *(cells(module_of[k], k) if k in module_of else ("not found",)))
    table.add_section()
    for module in sorted({*summary.index} - {*module_of.values()}):
        table.add_row("(nothing)", "", "", *cells(module, None))
    return table
