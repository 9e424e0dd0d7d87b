"""Checks of the data before a fit: a line each, printed and stored with the summary of the matching."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

import netbic

if TYPE_CHECKING:
    from netbic.io import Dataset, Finding

_OPTIONS = {"scale": "--zscore", "n_variable": "--top-genes", "id_map": "--id-map"}


def checked(study: Dataset, *, scaled: bool = False, silent: bool = False, table: int | None = None) -> Dataset:
    """The same study, with what the checks found in its `alignment`; each finding is printed as a warning.

    `table` is the number of one of two tables, whose options end with it.
    """
    logged = any(step["step"] == "log1p" for step in study.alignment.steps)
    found = netbic.io.check_expression(study.expression.matrix, *study.names, log1p=logged, scaled=scaled)
    findings = [{"kind": each.kind, "text": _in_options(each, table), "names": list(each.names)} for each in found]
    for finding in [] if silent else findings:
        click.echo(f"warning: {finding['text']}", err=True)
    return replace(study, alignment=replace(study.alignment, findings=findings))


def _in_options(finding: Finding, table: int | None = None) -> str:
    """A finding as a sentence, with the options of the command line.

    Examples
    --------
    >>> _in_options(netbic.io.Finding("raw counts", "these look like raw counts", "add `cpm=True` `log1p=True`"))
    'these look like raw counts: add --cpm --log1p'
    >>> _in_options(netbic.io.Finding("empty genes", "90 of 500 genes are empty", "use `n_variable=410`"))
    '90 of 500 genes are empty: use --top-genes 410'
    >>> _in_options(netbic.io.Finding("raw counts", "these look like raw counts", "add `log1p=True`"), table=2)
    'table 2: these look like raw counts: add --log1p2'
    """
    number = "" if table is None else str(table)

    def option(found: re.Match[str]) -> str:
        value = "" if found[2] in (None, "True") else f" {found[2]}"
        return _OPTIONS.get(found[1], f"--{found[1]}") + number + value

    remedy = re.sub(r"`(\w+)(?:=(\w+))?`", option, finding.remedy)
    if table is None:
        return str(replace(finding, remedy=remedy))
    problem = netbic.io.in_features(finding.problem).replace("modules", "pairs")
    remedy = netbic.io.in_features(remedy).replace("--top-genes", "--top-features")
    return f"table {table}: {replace(finding, problem=problem, remedy=remedy)}"
