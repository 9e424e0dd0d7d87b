"""Membership of all genes in all modules as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from netbic.association import gene_membership
from netbic.exports.output import check_file, write_file
from netbic.exports.results import Results, Source
from netbic.files import table_bytes


def write_membership(source: Source, X: Any, path: Path | str, *, force: bool = False) -> Path:
    r"""Write the correlation of every gene with the scores of every module (kME) as a tab-separated table.

    Parameters
    ----------
    source : model, folder of a fit, or Results
    X : DataFrame, array, sparse matrix or Dask array
        The data of the fit.
    path, force : as for `write_gmt`

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = netbic.exports.write_membership(model, study.expression, f"{folder}/membership.tsv")
    ...     path.read_text().splitlines()[:2]
    ['gene\tmodule_1', 'GENE0000\t...']
    """
    results, path = Results.of(source), Path(path)
    check_file(results, path, force=force)
    values = gene_membership(results.model, X)
    table = pd.DataFrame(values, columns=[f"module_{k + 1}" for k in range(results.n_modules)]).round(6)
    table.insert(0, "gene", results.gene_names)
    return write_file(results, path, table_bytes(path, table), force=force)
