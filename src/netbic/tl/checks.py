"""Warnings about the data of an AnnData object before modules are searched for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Final

from netbic.arrays import Matrix
from netbic.io import check_expression

_REMEDIES: Final = {
    "raw counts": "run sc.pp.normalize_total(adata) and sc.pp.log1p(adata) first",
    "not logarithms": "run sc.pp.log1p(adata) first",
    "dates": "rename them in adata.var_names",
    "empty genes": "remove them with sc.pp.filter_genes(adata, min_cells=3), or leave them out by mask_var",
    "dominating genes": "scale=True gives all genes the same weight",
}


def warn_before_fit(
    X: Matrix, cells: Any, genes: Any, *, scaled: bool, modality: str = "", stacklevel: int = 3
) -> None:
    """Give a warning for everything that `netbic.io.check_expression` finds, with the remedy in scanpy's functions."""
    for finding in check_expression(X, list(cells), list(genes), scaled=scaled):
        told = replace(finding, remedy=_REMEDIES.get(finding.kind, finding.remedy))
        warnings.warn(f"{modality}: {told}" if modality else str(told), UserWarning, stacklevel=stacklevel)
