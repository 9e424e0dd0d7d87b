"""netbic judge: verdicts on gene sets that other programs have found."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, Progress, echo
from netbic.cli.fit import read_data
from netbic.cli.samples import SampleTable, covariate_lines, read_covariates

if TYPE_CHECKING:
    import pandas as pd

_RECORD = "judged.json"
_LISTED = 20  # sets in the terminal


@click.command(cls=Command)
@click.argument("expression", type=options.File)
@click.argument("gene_sets", type=options.File)
@options.out
@option(
    "--found-elsewhere",
    is_flag=True,
    help="The sets come from other data, such as the literature or another study: nothing in EXPRESSION was used to "
    "choose their genes (if it was, even noise may be called strong).",
)
@options.sample_info
@options.covariates
@option("--by", **options.SOME, help="Columns such as donor of which samples with the same values stay together.")
@options.missing
@options.seed
@options.jobs("Number of fits at the same time.")
@option("--force", is_flag=True, help="Replace earlier verdicts in the folder.")
@options.quiet
@options.reads_expression
@options.preprocesses_genes
def judge(
    expression: str,
    gene_sets: str,
    out: Path,
    found_elsewhere: bool,
    sample_info: str | None,
    covariates: list[str],
    by: list[str],
    seed: int,
    jobs: int | None,
    force: bool,
    missing: str,
    **reading: Any,
) -> None:
    """Judge GENE_SETS, such as the modules of WGCNA or cNMF, in EXPRESSION, as netbic fit judges its own modules.

    GENE_SETS is a GMT file: a line for each set, with its name, a description and its genes, separated by tabs.

    \b
    DIR/judged.tsv         a line for each set: its verdict, reason and numbers
    DIR/judged_genes.tsv   the confidence of every gene of a set
    DIR/judged_scores.tsv  the score of every sample in every set
    """
    from netbic import files
    from netbic.io.samples import read_gene_sets
    from netbic.selection import judge as judge_sets

    unused = "--sample-info is used for --covariates and --by only: add one of them, or omit it"
    options.refuse((unused, sample_info and not (covariates or by)))
    inputs = {"expression": expression, "gene_sets": gene_sets, "sample_info": sample_info}
    files.check_writable(out, [*files.RECORDS[_RECORD], _RECORD], files.labelled(inputs | reading))
    if not force and files.read_record(out, _RECORD) is not None:
        raise click.UsageError(f"{out} has verdicts already: choose another folder, or use --force to replace them")
    sets = read_gene_sets(gene_sets)
    dataset = read_data(expression, None, False, missing, gene_sets=sets, **reading)
    sets = dataset.gene_sets or sets
    labels = None
    if by or covariates:
        tests = dict.fromkeys(options.TESTS) | {"by": by, "adjust": [], "types": {}}
        labels = SampleTable.read(sample_info, expression, dataset.names[0], tests)
    removed = read_covariates(covariates, None if labels is None else labels.matched, {})
    echo(*covariate_lines(removed))
    echo(f"judging {len(sets):,} gene sets in samples that were not used to find them ...")
    with Progress({"pairs": "fits to halves of the samples"}) as progress:
        found = judge_sets(
            dataset.X,
            sets,
            found_elsewhere=found_elsewhere,
            groups=None if labels is None else labels.units(),
            covariates=removed,
            missing=missing,
            progress=lambda done, total: progress.update("pairs", done, total),
            random_state=seed,
            n_jobs=jobs,
            feature_name="gene",
            names=dataset.names,
        )
    scores = found.scores.rename_axis("sample").reset_index()
    tables = dict(zip(files.RECORDS[_RECORD], (found.table, found.features, scores), strict=True))
    parts = {name: files.table_bytes(out / name, table) for name, table in tables.items()}
    record = {"expression": expression, "gene_sets": gene_sets, "found_elsewhere": found_elsewhere, "seed": seed}
    files.write_files(out, parts, _RECORD, record | {"verdict": found.verdict})
    echo(found.verdict, *_table(found.table))
    more = f"{len(found.table) - _LISTED:,} more sets, reasons" if len(found.table) > _LISTED else "reasons"
    echo(f"{more} and numbers: {out}/judged.tsv; genes: {out}/judged_genes.tsv; scores: {out}/judged_scores.tsv")


def _table(judged: pd.DataFrame) -> Iterator[str]:
    """The best sets, a line for each."""
    from netbic.selection import KINDS, kind_of_verdict

    rank = judged["verdict"].map(lambda verdict: [*KINDS, "unknown"].index(kind_of_verdict(verdict)))
    best = judged.assign(rank=rank).sort_values(["rank", "confidence"], ascending=[True, False], kind="stable")
    lines = [("set", "genes", "verdict", "expected right", "note")]
    for row in best.head(_LISTED).to_dict("records"):
        right = "-" if isnan(row["confidence"]) else f"{floor(100 * row['confidence'])} %"
        lines.append((row["set"], f"{row['n_available']}/{row['n_genes']}", row["verdict"], right, _note(row)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, genes, verdict, right, note in lines:
        fields = name.ljust(widths[0]), genes.rjust(widths[1]), verdict.ljust(widths[2]), right.rjust(widths[3]), note
        yield f"  {'  '.join(fields)}".rstrip()


def _note(row: dict[Any, Any]) -> str:
    """What else must be known about a set."""
    from netbic.selection import OPPOSITE
    from netbic.solver.search import SIMILAR

    notes = [f"{row['opposite']:.0%} opposite sign".replace("%", " %")] * (row["opposite"] >= OPPOSITE)
    notes += ["may be technical"] * row["technical"].startswith("may be")
    if row["verdict"] != "doubtful" and abs(row["correlation"]) >= SIMILAR:
        notes.append(f"similar to {row['closest']} ({row['correlation']:.2f})")
    return "; ".join(notes)
