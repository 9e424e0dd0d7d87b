"""Sentences of the library in the words of the page and of the command line.

The library speaks of columns, rows and graphs, and numbers modules from 0. Only these functions change its sentences.
"""

from __future__ import annotations

import re

_NOUNS = {"columns": "genes", "column": "gene", "rows": "samples", "row": "sample", "features": "genes"}
_NOUNS |= {"graph": "network", "graphs": "networks", "Graph": "Network"}


def in_genes(text: str) -> str:
    """A sentence of the library about genes, samples and the network instead of columns, rows and the graph.

    Examples
    --------
    >>> from netbic.report import in_genes
    >>> in_genes("rows.tsv: the best is at the edge of the grid (all 150 rows); omit --graph")
    'rows.tsv: the best is at the edge of the grid (all 150 samples); omit --graph'
    >>> in_genes("the file has genes in rows")  # a table's orientation
    'the file has genes in rows'
    """
    outside_names = rf"(?<![-\w./'])(?<!\bin )({'|'.join(_NOUNS)})(?![-\w/']|\.\w)"
    return re.sub(outside_names, lambda found: _NOUNS[found[1]], text)


def from_one(text: str) -> str:
    """A warning of the library, in which modules count from 0, with the numbers of the page, which count from 1.

    Examples
    --------
    >>> from netbic.report import from_one
    >>> from_one("found 4 of 5 modules; modules 0, 3 did not converge (module 0 ran into a cycle)")
    'found 4 of 5 modules; modules 1, 4 did not converge (module 1 ran into a cycle)'
    """
    return re.sub(
        r"\b((?:module|pair)s? )(\d+(?:, \d+)*)",
        lambda found: found[1] + re.sub(r"\d+", lambda number: str(int(number[0]) + 1), found[2]),
        text,
    )
