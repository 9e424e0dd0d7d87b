"""Run the experiments and write their results: tables, figures and a page.

python -m reproduction.run all --out docs/paper
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from netbic.errors import InputError
from netbic.files import write_table
from netbic.io.samples import read_gene_sets
from reproduction import page
from reproduction.figures import draw_figure_1, draw_figure_2, plotting
from reproduction.simulation import controls, sensitivities, toy_vectors
from reproduction.tumours import (
    DATASETS,
    GENE_SETS,
    NETWORKS,
    Sizes,
    check_data,
    compare,
    load_study,
    over_sigmas,
    random_modules,
    signed_ranks,
    summarise,
    terms_column,
)

PARTS: Final = ("fig1", "table1", "fig2")


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
) -> None:
    """Repeat parts of the paper ("fig1", "table1", "fig2") and write tables (TSV), figures and a page (README.md).

    Parameters
    ----------
    parts : sequence of str
    out : path
        Folder to write to; files of an earlier run are replaced.
    data : path, optional
        Folder with the expression data, networks and gene sets; needed for "table1" and "fig2".
    replicates : int
        Simulated matrices per setting of Figure 1.
    datasets, networks, sizes
        Data sets, networks and module sizes of Table 1 and Figure 2.
    seed, n_jobs
        Random seed, and number of processes for the simulation.
    """
    unknown = set(parts) - set(PARTS)
    if isinstance(parts, str) or unknown or not parts:
        raise InputError(f"unknown parts {sorted(unknown) or parts}: choose from {', '.join(PARTS)}")
    if replicates < 2:
        raise InputError(f"replicates={replicates}: at least 2 are needed for a standard error")
    real = "table1" in parts or "fig2" in parts
    if real and data is None:
        raise InputError("Table 1 and Figure 2 need real data: give their folder (--data, or NETBIC_DATA)")
    if real:
        check_data(Path(str(data)), datasets, networks)
    plotting()  # an error now if matplotlib is not installed, not after minutes
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if "fig1" in parts:
        _write_section(out, "figure1", _figure_1(out, replicates, seed, n_jobs))
    if real:
        _real_data(parts, out, Path(str(data)), datasets, networks, sizes or Sizes(), seed)
    _write_page(out)


def _write_page(out: Path) -> None:
    """Write the page from all parts that have been run."""
    sections = [out / f"{name}.md" for name in ("figure1", "table1", "figure2")]
    written = [path.read_text() for path in sections if path.exists()]
    (out / "README.md").write_text("\n".join([page.INTRODUCTION, *written, page.DATA]))


def _write_section(out: Path, name: str, lines: list[str]) -> None:
    """Write one part of the page to a file, so that parts can be run one by one."""
    (out / f"{name}.md").write_text("\n".join(lines))


def _figure_1(out: Path, replicates: int, seed: int, n_jobs: int | None) -> list[str]:
    curves = sensitivities(replicates, seed=seed, n_jobs=n_jobs)
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
) -> None:
    modules = compare(data, datasets=datasets, networks=networks, sizes=sizes, seed=seed)
    summary, ranks = summarise(modules), signed_ranks(modules)
    write_table(out / "modules.tsv", modules)
    write_table(out / "table1.tsv", summary)
    write_table(out / "wilcoxon.tsv", ranks)
    if "table1" in parts:
        sigmas = over_sigmas(data, dataset=datasets[0], network=networks[0], sizes=sizes, seed=seed)
        write_table(out / "sigma.tsv", sigmas)
        _write_section(out, "table1", list(page.table_1_text(summary, sigmas, sizes)))
    if "fig2" in parts:
        chance = _random_terms(data, datasets, networks[0], sizes, seed)
        write_table(out / "random_modules.tsv", pd.DataFrame(chance).T.rename_axis("dataset").reset_index())
        draw_figure_2(modules[modules["network"] == networks[0]], chance, out / "figure2")
        term_ranks = signed_ranks(modules, terms_column(0.01))
        _write_section(out, "figure2", list(page.figure_2_text(ranks, term_ranks, summary, chance, sizes)))


def _random_terms(
    data: Path, datasets: Sequence[str], network: str, sizes: Sizes, seed: int
) -> dict[str, dict[str, int]]:
    sets = read_gene_sets(data / GENE_SETS)
    return {name: random_modules(load_study(data, name, network), sets, sizes, seed) for name in datasets}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.run", description="Repeat the paper's experiments.")
    parser.add_argument(
        "part", choices=[*PARTS, "all"], help="fig1 needs no data; the others: see docs/paper/README.md"
    )
    parser.add_argument("--out", default="reproduced", help="folder for the results")
    parser.add_argument("--data", default=os.environ.get("NETBIC_DATA"), help="folder with the real data sets")
    parser.add_argument("--replicates", type=int, default=50, help="simulated matrices per setting")
    parser.add_argument("--jobs", type=int, default=-1, help="processes for the simulation; -1 means all cores")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    parts = PARTS if given.part == "all" else (given.part,)
    try:
        reproduce(parts, given.out, given.data, replicates=given.replicates, seed=given.seed, n_jobs=given.jobs)
    except InputError as problem:
        parser.error(str(problem))
    print(f"{given.out}/README.md")


if __name__ == "__main__":
    main()
