"""netbic demo: modules of ovarian tumours, or of simulated patients in whom it is known what was planted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, echo
from netbic.cli.fit import fit

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from netbic.datasets import TumourCohort
    from netbic.simulate import Cohort

Answer = Callable[[Path], Iterator[Any]]  # what to print about the results in a folder
_MODULES: Final = 15  # of the tumours: they fit on a screen; the number from the data (26) takes twice as long
_FOUND: Final = 0.5  # F1 of genes from which a planted program counts as found
_LEADING = 3


@click.command(cls=Command)
@option("--out", default="netbic-demo", type=options.Output, help="Folder for data and results.")
@option("--simulated", is_flag=True, help="Find gene programs that were planted in simulated patients instead.")
@options.seed
@option("--force", is_flag=True, help="Replace the results of an earlier demo in the folder.")
def demo(out: Path, simulated: bool, seed: int, force: bool) -> None:
    """Find modules in ovarian tumours, judge each of them, and compare them with labels and survival.

    The data are part of netbic: 3,000 genes in 172 samples of a published study. Data and results, with a report, are
    left in a folder (--out).
    """
    from rich.console import Console

    from netbic.errors import how_to_install
    from netbic.report import missing_library
    from netbic.storage.runs import check_folder

    results = out / "modules"
    if not force and out.is_dir() and any(out.iterdir()):
        raise click.UsageError(
            f"{out} is not empty: choose another folder with --out, or use --force to replace an earlier demo"
        )
    check_folder(results, force=force)
    arguments, answer = (_simulate if simulated else _tumours)(out, seed)
    arguments += ["--out", str(results)]
    fit.main([*arguments, "--quiet", *["--force"] * force], prog_name="netbic fit", standalone_mode=False)
    console = Console(highlight=False)
    for part in answer(results):
        console.print(part)
    page = f"Open the report in a browser: {results}/report.html"
    if missing := missing_library():
        install = f"{how_to_install('report')}, then netbic report {results}"
        page = f"No report was written: it needs {missing}; {install}"
    found_by = f"These modules were found by: netbic fit {shlex.join(arguments)}"
    own = "expression.tsv --graph network.sif" if simulated else "expression.tsv --sample-info samples.tsv"
    echo("", page, found_by, f"Next, with your own data: netbic fit {own} --out modules")


# Ovarian tumours


def _tumours(out: Path, seed: int) -> tuple[list[str], Answer]:
    """Write the cohort; the arguments of the fit, and what to print after it."""
    from netbic.datasets import ovarian
    from netbic.storage.tables import write_tumours

    click.echo("finding modules in 172 samples, judging them, testing labels and survival (seconds) ...", err=True)
    cohort = ovarian()
    write_tumours(cohort, out)
    arguments = [str(out / "expression.tsv.gz"), "--sample-info", str(out / "samples.tsv")]
    arguments += ["--modules", str(_MODULES)]
    arguments += ["--seed", str(seed)] * (seed != 0)
    return arguments, lambda folder: _found_in_tumours(cohort, folder)


def _found_in_tumours(cohort: TumourCohort, folder: Path) -> Iterator[Any]:
    """The verdicts, a table of the modules, the strongest association of each variable, how to read them, reasons."""
    from netbic.association import strongest
    from netbic.association.stored import stored_verdicts
    from netbic.association.words import LEVEL, in_words
    from netbic.files import read_table
    from netbic.selection import verdict_sentence

    verdicts, tests = (read_table(folder / name) for name in ("verdicts.tsv", "associations.tsv"))
    words = stored_verdicts(folder)
    tests["level"] = tests["level"].fillna("")
    yield (
        "[bold]netbic found modules in ovarian tumours: sets of genes that go up and down together.[/]\n"
        f"{verdict_sentence(verdicts)}"
    )
    yield ""
    yield _table_of_modules(cohort, tests, folder)
    yield ""
    yield "The strongest association of each label, number and survival time:"
    for variable, own in strongest(tests, words).groupby("variable", sort=False):
        row = own.iloc[0].to_dict()
        yield f"  {variable}: {in_words(row, words) if row['q'] <= LEVEL else 'no association'}"
    yield ""
    yield from _reasons(verdicts)


def _table_of_modules(cohort: TumourCohort, tests: pd.DataFrame, folder: Path) -> Table:
    """A row per module: size, verdict, leading genes, and the label or number that goes best with it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from netbic.association.words import LEVEL, main_tests
    from netbic.files import read_table

    n_samples, n_genes = cohort.expression.shape
    title = f"{n_samples:,} samples of the ovary (GSE51088), {n_genes:,} genes"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for heading in ("module", "genes", "verdict", "leading genes", "goes with"):
        table.add_column(heading, justify="right" if heading in ("module", "genes") else "left")
    best = main_tests(tests[tests["q"] <= LEVEL]).drop_duplicates("module").set_index("module")
    for row in read_table(folder / "summary.tsv").to_dict("records"):
        goes_with = _in_short(best.loc[row["module"]].to_dict()) if row["module"] in best.index else "-"
        leading = ", ".join(row["top_genes"].split(", ")[:_LEADING])
        table.add_row(str(row["module"]), str(row["n_genes"]), row["verdict"], leading, goes_with)
    return table


def _in_short(test: dict[Any, Any]) -> str:
    """An association without its numbers: higher in serous histology, rises with age."""
    from netbic.association.words import direction

    if test["effect_name"].startswith("hazard"):
        return "the risk of death " + direction(test).removeprefix("the risk ")
    what = f"in {test['level']} {test['variable']}" if test["level"] else f"with {test['variable']}"
    return f"{direction(test)} {what}"


# Simulated patients


def _simulate(out: Path, seed: int) -> tuple[list[str], Answer]:
    """Simulate patients and write them; the arguments of the fit, and what to print after it."""
    from netbic.simulate import patients
    from netbic.storage.tables import write_cohort

    click.echo("simulating 400 patients, finding modules and judging them (about ten seconds) ...", err=True)
    cohort = patients(400, 800, random_state=seed)
    write_cohort(cohort, out)
    arguments = [str(out / "expression.tsv.gz"), "--graph", str(out / "network.sif"), "--modules", "6"]
    return arguments, lambda folder: _planted(cohort, folder)


def _planted(cohort: Cohort, folder: Path) -> Iterator[Any]:
    """What was planted and what was found: the verdicts, a table, how to read it, and reasons."""
    from netbic.files import read_table
    from netbic.selection import verdict_sentence
    from netbic.simulate import recovery
    from netbic.storage.models import load_modules

    verdicts = read_table(folder / "verdicts.tsv")
    columns = load_modules(folder).columns_
    recovered = recovery(columns, cohort.genes)
    found = recovered[recovered["f1"] >= _FOUND]
    yield (
        f"[bold]netbic found {len(found)} of {len(recovered)} planted gene programs, without being told how many genes "
        f"or patients they have.[/]\n{verdict_sentence(verdicts)}"
    )
    yield ""
    module_of = dict(zip(found["planted"], found["found"] + 1, strict=True))
    yield _table_of_planted(cohort, recovered["f1"], module_of, folder)
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
    yield from _reasons(verdicts)


def _table_of_planted(cohort: Cohort, f1: pd.Series[float], module_of: dict[int, int], folder: Path) -> Table:
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


# Both


def _reasons(verdicts: pd.DataFrame) -> Iterator[str]:
    """Why a module has its verdict, for the first module with each kind of verdict."""
    from netbic.selection import kind_of_verdict

    first = verdicts[~verdicts["verdict"].map(kind_of_verdict).duplicated()]
    for module, reason in zip(first["module"], first["reason"], strict=True):
        yield f"Module {module}. {reason}"
