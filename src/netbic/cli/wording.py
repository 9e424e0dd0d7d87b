"""Messages of the library in the terms of the command line: options for parameters, genes for columns.

Errors may quote names and files of the user, so in errors only parameters are replaced; in sentences of the library
itself (reasons, verdicts) also columns and rows.
"""

from __future__ import annotations

import re

import netbic

OPTIONS = {
    "smoothness_scale": "--smoothness-scale",
    "graph_term": "--graph-term",
    "diagnostics_": "summary.tsv",
    "n_columns": "--genes",
    "n_rows": "--samples",
    "column_smoothness": "--smoothness",
    "n_components": "--modules",
    "skip_columns": "--skip-columns",
    "graph_share_": "graph_share in summary.tsv",
    "n_x": "--features1",
    "n_y": "--features2",
    "x_smoothness": "--smoothness1",
    "y_smoothness": "--smoothness2",
}
_OF_TABLES = {"features of X": "features of table 1", "features of Y": "features of table 2"}
_PYTHON_ONLY = "increase max_iter or tol"
_OPTION = re.compile(rf"\b({'|'.join(OPTIONS)})\b(=?)")


def in_options(text: str) -> str:
    """Parameters as options.

    Examples
    --------
    >>> in_options("n_columns=900 of features.tsv (skip_columns)")
    '--genes 900 of features.tsv (--skip-columns)'
    >>> in_options("module 0 did not converge: increase max_iter or tol")
    'module 0 did not converge: in Python, increase max_iter or tol'
    """
    text = text.replace(_PYTHON_ONLY, f"in Python, {_PYTHON_ONLY}")
    return _OPTION.sub(lambda found: OPTIONS[found[1]] + (" " if found[2] else ""), text)


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> counted(1, "module"), counted(1200, "gene")
    ('1 module', '1,200 genes')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def in_genes(text: str) -> str:
    """Parameters as options, columns and rows as genes and samples.

    Examples
    --------
    >>> in_genes("The data do not identify n_rows: the best is at the edge (all 150 rows)")
    'The data do not identify --samples: the best is at the edge (all 150 samples)'
    """
    return netbic.report.in_genes(in_options(text))


def in_tables(text: str) -> str:
    """Parameters as options, X and Y as the tables of netbic pairs.

    Examples
    --------
    >>> in_tables("pair 0 holds fewer than 9 features of X: no other has a positive score (n_x)")
    'pair 0 holds fewer than 9 features of table 1: no other has a positive score (--features1)'
    """
    for part, other in _OF_TABLES.items():
        text = text.replace(part, other)
    text = in_options(text.replace("graph_share_", "graph_share in pairs.tsv"))
    return re.sub(r"\b(the )graph\b", r"\1network", text)


def from_one(text: str) -> str:
    """A warning in which modules count from 1, as in everything that the command line prints.

    Examples
    --------
    >>> from_one("module 0 did not converge")
    'module 1 did not converge'
    """
    return netbic.report.from_one(text)
