"""netbic demo: find planted modules in simulated data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.command import Command

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from netbic.estimators import SparseGraphSVD
    from netbic.graphs import Graph
    from netbic.simulate import Cohort


@click.command(cls=Command)
@click.option("--samples", default=400, show_default=True, type=click.IntRange(100), help="Number of samples.")
@click.option("--genes", default=3000, show_default=True, type=click.IntRange(500), help="Number of genes.")
@click.option("--modules", default=5, show_default=True, type=click.IntRange(1, 8), help="Number of planted modules.")
@click.option(
    "--cohorts",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Number of cohorts for the conclusion.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed of the first cohort.")
def demo(samples: int, genes: int, modules: int, cohorts: int, seed: int) -> None:
    """Simulate a cohort, find the planted modules, and show how much the network helps.

    The table shows the first cohort; the conclusion is based on all cohorts (--cohorts).
    """
    from rich.console import Console

    console = Console()
    with _progress(console) as progress:
        step = progress.add_task("simulating and fitting", total=cohorts)
        for number in range(cohorts):
            study = _simulated(samples, genes, modules, seed + number)
            models = _fits(study, seed + number)
            scores = {name: netbic.simulate.recovery(model.columns_, study.genes) for name, model in models.items()}
            if number == 0:
                first, means = (study, models, scores), dict.fromkeys(scores, 0.0)
            means = {name: mean + float(scores[name]["f1"].mean()) / cohorts for name, mean in means.items()}
            progress.advance(step)
    _show_demo(console, *first)
    console.print(f"Mean F1 of the genes over {cohorts} simulated cohorts: {_verdict(means)}")
    console.print("Next, with your own data: netbic fit expression.tsv --graph network.sif --out modules")


def _simulated(samples: int, genes: int, modules: int, seed: int) -> Cohort:
    try:
        return netbic.simulate.cohort(samples, genes, n_modules=modules, random_state=seed)
    except ValueError as problem:
        raise click.ClickException(f"{problem}: choose fewer --modules, or more --genes and --samples") from None


def _fits(study: Cohort, seed: int) -> dict[str, SparseGraphSVD]:
    graphs = {"with the network": study.network, "with a rewired one": study.network.rewire(seed), "without": None}
    return {name: _fit(study, graph) for name, graph in graphs.items()}


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _fit(study: Cohort, graph: Graph | None) -> SparseGraphSVD:
    n_modules, module_samples = len(study.samples), int(study.samples[0].sum())
    model = netbic.SparseGraphSVD(
        n_modules, n_rows=module_samples, n_columns=int(study.genes[0].sum()), column_graph=graph
    )
    return model.fit(study.expression)


def _show_demo(
    console: Console, study: Cohort, models: dict[str, SparseGraphSVD], scores: dict[str, pd.DataFrame]
) -> None:
    n_samples, n_genes = study.expression.shape
    console.print(
        f"[bold]{n_samples:,} samples x {n_genes:,} genes[/], {study.network.n_edges:,} edges, "
        f"{len(study.genes)} planted modules of {study.samples[0].sum()} samples and {study.genes[0].sum()} genes "
        "(overlapping, mixed signs)"
    )
    console.print(_module_table(study, models["with the network"], scores))


def _module_table(study: Cohort, model: SparseGraphSVD, genes: dict[str, pd.DataFrame]) -> Table:
    """A row per planted module: how well it was found with each network."""
    from rich.table import Table

    table = Table(
        title="Recovery of each planted module (F1; 1 = all members found and no others)", title_justify="left"
    )
    for heading in (
        "planted",
        "found as",
        "d",
        "iterations",
        "samples, with the network",
        *(f"genes, {name}" for name in genes),
    ):
        table.add_column(heading, justify="right")
    samples = netbic.simulate.recovery(model.rows_, study.samples)["f1"]
    found = genes["with the network"]["found"]
    for k in range(len(study.genes)):
        at = int(found[k])
        facts: tuple[Any, ...] = ("-", "-", "-")
        if at >= 0:
            rounds = len(model.objectives_[at])
            facts = f"module {at}", f"{model.singular_values_[at]:.1f}", f"{rounds}"
        table.add_row(f"{k + 1}", *facts, f"{samples[k]:.2f}", *(f"{scores['f1'][k]:.2f}" for scores in genes.values()))
    means = [samples.mean(), *(scores["f1"].mean() for scores in genes.values())]
    table.add_section()
    table.add_row("mean", "", "", "", *(f"[bold]{mean:.2f}[/]" for mean in means))
    return table


def _verdict(means: dict[str, float]) -> str:
    shown = ", ".join(f"{mean:.2f} {name}" for name, mean in means.items())
    own, rewired, none = means.values()
    if own <= max(rewired, none):
        return f"{shown}. The network did not help."
    why = "The network helps because of which genes it connects: a rewired one with the same degrees helps less."
    return f"{shown}. {why}"
