"""netbic demo: find planted modules in simulated patients, and say which of them can be trusted."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import netbic
from netbic.cli.command import Command
from netbic.cli.fit import fit
from netbic.cli.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from netbic.arrays import Bools
    from netbic.simulate import Cohort

_FOUND = 0.5  # F1 of genes from which a program counts as found
_VERDICTS = {"strong": "strong", "moderate": "moderate", "repeats": "repeats another one", "doubtful": "doubtful"}
_HEADINGS = ("planted", "genes", "patients", "found as", "genes", "F1", "up", "ARI", "verdict")


@click.command(cls=Command)
@click.option("--out", default="netbic-demo", type=click.Path(path_type=Path), help="Folder for data and results.")
@click.option("--samples", default=400, type=click.IntRange(100), help="Number of patients.")
@click.option("--genes", default=800, type=click.IntRange(500), help="Number of genes.")
@click.option("--modules", default=6, type=click.IntRange(1), help="Number of modules to find; five are planted.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed of the simulation.")
@click.option("--force", is_flag=True, help="Replace the results of an earlier demo in the folder.")
def demo(out: Path, samples: int, genes: int, modules: int, seed: int, force: bool) -> None:
    """Simulate patients, find the gene programs that were planted in them, and judge each module.

    Data and results, with a report, are left in a folder (--out).
    """
    from rich.console import Console

    results = out / "modules"
    _check_folder(out, results, force)
    click.echo(f"simulating {samples:,} patients, finding modules and judging them (about ten seconds) ...", err=True)
    study = netbic.simulate.patients(samples, genes, random_state=seed)
    netbic.storage.write_cohort(study, out)
    arguments = _arguments(out, results, modules)
    fit.main([*arguments, "--quiet", *["--force"] * force], prog_name="netbic fit", standalone_mode=False)
    outcome = Outcome.read(study, results)
    console = Console(highlight=False)
    for part in (outcome.answer(), "", outcome.table(), *outcome.notes(), "", *outcome.reasons()):
        console.print(part)
    for line in ("", *_next_steps(results, arguments)):
        click.echo(line)


def _check_folder(out: Path, results: Path, force: bool) -> None:
    """Refuse a folder with files, unless they are those of an earlier demo that is replaced."""
    if not force and out.is_dir() and any(out.iterdir()):
        raise click.UsageError(
            f"{out} is not empty: choose another folder with --out, or use --force to replace an earlier demo"
        )
    netbic.storage.check_folder(results, resume=False, force=force)


@dataclass(frozen=True)
class Outcome:
    """What was planted and what was found: a row per program of `recovery`, a row per module of the other tables."""

    study: Cohort
    columns: Bools  # genes of every module
    recovery: pd.DataFrame
    summary: pd.DataFrame
    verdicts: pd.DataFrame
    samples: pd.DataFrame

    @classmethod
    def read(cls, study: Cohort, folder: Path) -> Outcome:
        """The results of the fit in a folder."""
        tables = (netbic.io.read_table(folder / f"{name}.tsv") for name in ("summary", "verdicts", "samples"))
        columns = netbic.storage.load_modules(folder).columns_
        return cls(study, columns, netbic.simulate.recovery(columns, study.genes), *tables)

    @property
    def found(self) -> pd.DataFrame:
        """The programs that were found."""
        return self.recovery[self.recovery["f1"] >= _FOUND]

    def answer(self) -> str:
        """The result in two sentences."""
        n_found, n_planted = len(self.found), len(self.recovery)
        counts = self.verdicts["verdict"].str.split().str[0].value_counts()
        parts = [f"{counts[verdict]} {text}" for verdict, text in _VERDICTS.items() if verdict in counts]
        return (
            f"[bold]netbic found {n_found} of {n_planted} planted gene programs, without being told how many genes or "
            f"patients they have.[/]\nVerdicts on the {counted(len(self.verdicts), 'module')}: {', '.join(parts)}."
        )

    def table(self) -> Table:
        """A row per program, then a row per module that is none of them."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(title=_title(self.study), title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
        for heading in _HEADINGS:
            table.add_column(heading, justify="left" if heading in ("planted", "verdict") else "right")
        found = dict(zip(self.found["planted"], self.found["found"], strict=True))
        for k, name in enumerate(self.study.names):
            planted = (name, str(self.study.genes[k].sum()), str(self.study.samples[k].sum()))
            table.add_row(*planted, *(self._module(found[k], k) if k in found else ("not found",)))
        table.add_section()
        for module in sorted(set(self.summary["module"]) - set(found.values())):
            table.add_row("(nothing)", "", "", *self._module(module, None))
        return table

    def _module(self, module: int, program: int | None) -> tuple[str, ...]:
        """The cells of a module; `program` is the one it was compared with."""
        up = (self.samples["group"][self.samples["module"] == module] == "up").to_numpy()
        row = self.summary[self.summary["module"] == module].iloc[0]
        f1, ari = "", ""
        if program is not None:
            from sklearn.metrics import adjusted_rand_score

            f1 = f"{self.recovery['f1'][program]:.2f}"
            ari = f"{adjusted_rand_score(self.study.samples[program], up):.2f}"
        groups = str(up.sum()) if up.any() else "-"
        return f"module {module + 1}", str(row["n_genes"]), f1, groups, ari, str(row["verdict"])

    def notes(self) -> list[str]:
        """How to read the table."""
        return [
            "F1 compares the genes of a module with those planted; ARI (adjusted Rand index) compares the patients in "
            "whom it is up (1: the same).",
            "Interferon was planted in nearly the same patients as the T cells. "
            f"So {self._shared_genes()}the interferon module repeats the patients of the T cells.",
            "Five programs were planted; further modules can only be noise.",
        ]

    def _shared_genes(self) -> str:
        """How many interferon genes are in the module of the T cells, as part of a sentence."""
        cells, interferon = (list(self.study.names).index(name) for name in ("T cells", "interferon"))
        own = self.study.genes[interferon]
        for module in self.found.loc[self.found["planted"] == cells, "found"]:
            if n_shared := int((self.columns[module] & own).sum()):
                return f"module {module + 1} also contains {n_shared} of the {own.sum()} interferon genes, and "
        return ""

    def reasons(self) -> list[str]:
        """The reason for the first verdict of each kind."""
        kinds = self.verdicts["verdict"].str.split().str[0]
        first = self.verdicts[~kinds.duplicated()]
        return [f"Module {k + 1}. {reason}" for k, reason in zip(first["module"], first["reason"], strict=True)]


def _title(study: Cohort) -> str:
    n_samples, n_genes = study.expression.shape
    return f"{n_samples:,} simulated patients, {n_genes:,} genes, a network with {study.network.n_edges:,} edges"


def _arguments(out: Path, results: Path, modules: int) -> list[str]:
    """The arguments of netbic fit."""
    graph, folder = out / "network.sif", results
    return [str(out / "expression.tsv.gz"), "--graph", str(graph), "--modules", str(modules), "--out", str(folder)]


def _next_steps(results: Path, arguments: list[str]) -> list[str]:
    if missing := netbic.report.missing_library():
        install = f'pip install "netbic[report]", then netbic report {results}'
        report = f"No report was written: it needs {missing}. Run {install}"
    else:
        report = f"Open the report in a browser: {results}/report.html"
    return [
        report,
        f"These modules were found by: netbic fit {shlex.join(arguments)}",
        "Next, with your own data: netbic fit expression.tsv --graph network.sif --out modules",
    ]
