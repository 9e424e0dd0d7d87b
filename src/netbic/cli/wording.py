"""What the library says, in the words of the command line: options for parameters, genes for columns, samples for rows.

Whole words only. Sentences of the library's own making (reasons, verdicts) hold all of them; errors may quote names and
files of the user's, in which a noun must stay what it is, so there only parameters are put into options.
"""

from __future__ import annotations

import re

OPTIONS = {
    "n_columns": "--genes",
    "n_rows": "--samples",
    "column_smoothness": "--smoothness",
    "skip_columns": "--skip-columns",
}
_NOUNS = {"columns": "genes", "column": "gene", "rows": "samples", "row": "sample", "features": "genes"}
_OPTION = re.compile(rf"\b({'|'.join(OPTIONS)})\b(=?)")
_NOUN = re.compile(rf"\b({'|'.join(_NOUNS)})\b")


def in_options(text: str) -> str:
    """Parameters as options.

    Examples
    --------
    >>> in_options("n_columns=900 of features.tsv (skip_columns)")
    '--genes 900 of features.tsv (--skip-columns)'
    """
    return _OPTION.sub(lambda found: OPTIONS[found[1]] + (" " if found[2] else ""), text)


def in_genes(text: str) -> str:
    """Parameters as options, and genes and samples for what is in columns and rows.

    Examples
    --------
    >>> in_genes("The data do not identify n_rows: the best is at the edge (all 150 rows)")
    'The data do not identify --samples: the best is at the edge (all 150 samples)'
    """
    return _NOUN.sub(lambda found: _NOUNS[found[1]], in_options(text))
