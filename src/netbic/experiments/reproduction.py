"""Run experiments and write what they show: tables, figures and a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from netbic.experiments import page
from netbic.experiments.figures import draw_figure_1, draw_figure_2
from netbic.experiments.simulation import controls, sensitivities, toy_vectors
from netbic.experiments.tumours import (
    DATASETS,
    GENE_SETS,
    NETWORKS,
    Sizes,
    compare,
    load_study,
    over_sigmas,
    random_modules,
    signed_ranks,
    summarise,
)
from netbic.io import InputError, read_gene_sets, write_table
from netbic.io.files import write_whole

PARTS: Final = ("fig1", "table1", "fig2")
Tell = Callable[[str], None]

_INTRODUCTION = """# What the paper claims, what we found

Written by `netbic reproduce all`. The claims are those of W. Min, J. Liu and S. Zhang, *L0-norm Sparse
Graph-regularized SVD for Biclustering* (2016). Its two expression matrices are not public in full, so percentages
cannot be the same; orderings can. Every verdict is computed from the tables beside it.
"""


def reproduce(
    parts: Sequence[str],
    out: Path | str,
    data: Path | str | None = None,
    *,
    replicates: int = 50,
    datasets: Sequence[str] = tuple(DATASETS),
    networks: Sequence[str] = tuple(NETWORKS),
    sizes: Sizes | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    tell: Tell = lambda line: None,
) -> None:
    """Rerun parts of the paper ("fig1", "table1", "fig2") and write tables (TSV), figures and a page (README.md).

    Parameters
    ----------
    parts : sequence of str
    out : path
        Folder to write to.
    data : path, optional
        Folder of the expression sets, networks and gene sets; needed for "table1" and "fig2".
    replicates : int
        Simulated matrices per setting of Figure 1.
    datasets, networks, sizes
        What to run Table 1 and Figure 2 on.
    seed, n_jobs, tell
        Seed, processes for the simulation, and a function that is told what goes on.
    """
    unknown = set(parts) - set(PARTS)
    if unknown or not parts:
        raise InputError(f"parts {sorted(unknown)} are not known: choose among {', '.join(PARTS)}")
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    text = [_INTRODUCTION]
    if "fig1" in parts:
        text += _figure_1(out, replicates, seed, n_jobs, tell)
    if "table1" in parts or "fig2" in parts:
        if data is None:
            raise InputError("Table 1 and Figure 2 need real data: name their folder (--data, or NETBIC_DATA)")
        text += _real_data(parts, out, Path(data), datasets, networks, sizes or Sizes(), seed, tell)
    write_whole(out / "README.md", "\n".join(text).encode())


def _figure_1(out: Path, replicates: int, seed: int, n_jobs: int | None, tell: Tell) -> list[str]:
    tell(f"Figure 1: {replicates} replicates")
    curves = sensitivities(replicates, seed=seed, n_jobs=n_jobs)
    tell("Figure 1: controls")
    checks = controls(replicates, seed=seed, n_jobs=n_jobs)
    write_table(out / "figure1.tsv", curves)
    write_table(out / "figure1_controls.tsv", checks)
    draw_figure_1(toy_vectors(), curves, checks, out / "figure1")
    return list(page.figure_1_text(curves, checks, replicates))


def _real_data(
    parts: Sequence[str],
    out: Path,
    data: Path,
    datasets: Sequence[str],
    networks: Sequence[str],
    sizes: Sizes,
    seed: int,
    tell: Tell,
) -> list[str]:
    modules = compare(data, datasets=datasets, networks=networks, sizes=sizes, seed=seed, tell=tell)
    summary, ranks = summarise(modules), signed_ranks(modules)
    write_table(out / "modules.tsv", modules)
    write_table(out / "table1.tsv", summary)
    write_table(out / "wilcoxon.tsv", ranks)
    text: list[str] = []
    if "table1" in parts:
        sigmas = over_sigmas(data, dataset=datasets[0], network=networks[0], sizes=sizes, seed=seed, tell=tell)
        write_table(out / "sigma.tsv", sigmas)
        text += [*page.table_1_text(summary), *page.sigma_text(sigmas)]
    if "fig2" in parts:
        chance = _random_terms(data, datasets, networks[0], sizes, seed)
        write_table(out / "random_modules.tsv", pd.DataFrame(chance).T.rename_axis("dataset").reset_index())
        draw_figure_2(modules[modules["network"] == networks[0]], chance, out / "figure2")
        text += page.figure_2_text(ranks, summary, chance)
    return text


def _random_terms(
    data: Path, datasets: Sequence[str], network: str, sizes: Sizes, seed: int
) -> dict[str, dict[str, int]]:
    sets = read_gene_sets(data / GENE_SETS)
    return {name: random_modules(load_study(data, name, network), sets, sizes, seed) for name in datasets}
