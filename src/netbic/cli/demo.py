"""netbic demo: find planted modules in simulated data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import netbic
from netbic.cli.command import Command, progress_bar
from netbic.cli.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from netbic.estimators import SparseGraphSVD
    from netbic.simulate import Cohort

_WITH = "with the network"


@click.command(cls=Command)
@click.option("--samples", default=400, type=click.IntRange(100), help="Number of samples.")
@click.option("--genes", default=3000, type=click.IntRange(500), help="Number of genes.")
@click.option("--modules", default=5, type=click.IntRange(1, 8), help="Number of planted modules.")
@click.option("--cohorts", default=10, type=click.IntRange(1), help="Number of cohorts for the conclusion.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed of the first cohort.")
def demo(samples: int, genes: int, modules: int, cohorts: int, seed: int) -> None:
    """Simulate a cohort, find the planted modules, and show how much the network helps.

    The table shows the first cohort; the conclusion is based on all cohorts (--cohorts).
    """
    from rich.console import Console

    means: dict[str, float] = {}
    lines: list[str | Table] = []
    with progress_bar("cohorts", cohorts, 0, silent=False) as update:
        for number in range(cohorts):
            study = netbic.simulate.cohort(samples, genes, n_modules=modules, random_state=seed + number)
            models = _fits(study, seed + number)
            scores = {name: netbic.simulate.recovery(model.columns_, study.genes) for name, model in models.items()}
            if number == 0:
                lines = [_description(study), _module_table(study, models[_WITH], scores)]
            for name, table in scores.items():
                means[name] = means.get(name, 0.0) + float(table["f1"].mean()) / cohorts
            update(number + 1)
    console = Console()
    for line in lines:
        console.print(line)
    console.print(f"Mean F1 of the genes over {counted(cohorts, 'simulated cohort')}: {_conclusion(means)}")
    console.print("Next, with your own data: netbic fit expression.tsv --graph network.sif --out modules")


def _fits(study: Cohort, seed: int) -> dict[str, SparseGraphSVD]:
    """The model fitted with each network."""
    from sklearn.base import clone

    networks = {_WITH: study.network, "with a rewired one": study.network.rewire(seed), "without": None}
    model = netbic.SparseGraphSVD(
        len(study.samples), n_rows=int(study.samples[0].sum()), n_columns=int(study.genes[0].sum())
    )
    return {
        name: clone(model).set_params(column_graph=network).fit(study.expression) for name, network in networks.items()
    }


def _description(study: Cohort) -> str:
    n_samples, n_genes = study.expression.shape
    return (
        f"[bold]{n_samples:,} samples x {n_genes:,} genes[/], {study.network.n_edges:,} edges, "
        f"{len(study.genes)} planted modules of {study.samples[0].sum()} samples and {study.genes[0].sum()} genes "
        "(overlapping, mixed signs)"
    )


def _module_table(study: Cohort, model: SparseGraphSVD, scores: dict[str, pd.DataFrame]) -> Table:
    """One row per planted module: how well it was found with each network."""
    from rich.table import Table

    title = "Recovery of each planted module (F1; 1 = all members found and no others)"
    table = Table(title=title, title_justify="left")
    columns = ("samples", "genes", "genes, rewired network", "genes, no network")
    for heading in ("planted", "found", "strength", *columns):
        table.add_column(heading, justify="right")
    samples, found = netbic.simulate.recovery(model.rows_, study.samples)["f1"], scores[_WITH]["found"]
    for k, at in enumerate(found.tolist()):
        facts = ("-", "-")
        if at >= 0:
            facts = f"{at}", f"{model.singular_values_[at]:.1f}"
        table.add_row(f"{k}", *facts, f"{samples[k]:.2f}", *(f"{own['f1'][k]:.2f}" for own in scores.values()))
    means = [samples.mean(), *(own["f1"].mean() for own in scores.values())]
    table.add_section()
    table.add_row("mean", "", "", *(f"[bold]{mean:.2f}[/]" for mean in means))
    return table


def _conclusion(means: dict[str, float]) -> str:
    shown = ", ".join(f"{mean:.2f} {name}" for name, mean in means.items())
    if means[_WITH] <= max(mean for name, mean in means.items() if name != _WITH):
        return f"{shown}. The network did not help."
    why = (
        "The network helps because of which genes it connects: a rewired one, in which every gene keeps its number of "
        "neighbours but not the neighbours themselves, helps less."
    )
    return f"{shown}. {why}"
