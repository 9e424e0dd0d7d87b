"""Which genes and which graph are used, and parameters that have two names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netbic.errors import InputError
from netbic.graph import Graph
from netbic.io import Alignment, align, with_names

if TYPE_CHECKING:
    from anndata import AnnData


def one_of(name: str, value: int | None, other: str, other_value: int | None, default: int | None = None) -> Any:
    """The value of a parameter that has two names."""
    if value is not None and other_value is not None:
        raise InputError(f"{name}={value!r} and {other}={other_value!r} are the same parameter: give one of them")
    return next((given for given in (value, other_value) if given is not None), default)


def chosen_genes(adata: AnnData, mask_var: str | NDArray[np.bool_] | None) -> NDArray[np.intp]:
    """Positions of the genes to use."""
    if mask_var is None:
        return np.arange(adata.n_vars)
    if isinstance(mask_var, str) and mask_var not in adata.var.columns:
        known = ", ".join(map(str, adata.var.columns)) or "none"
        raise InputError(f"mask_var={mask_var!r} is not a column of var (there are: {known})")
    mask = np.asarray(adata.var[mask_var] if isinstance(mask_var, str) else mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise InputError(
            f"mask_var has type {mask.dtype} and shape {mask.shape}: expected {adata.n_vars} booleans, one per gene"
        )
    if mask.sum() < 2:
        raise InputError(f"mask_var keeps {mask.sum()} genes: at least two are needed")
    return np.flatnonzero(mask)


def aligned_graph(adata: AnnData, graph: object, genes: NDArray[Any]) -> tuple[Graph, Alignment]:
    """The graph of these genes; nodes without names are the genes of the object, in their order."""
    named = with_names(Graph.of(graph), np.asarray(adata.var_names, dtype=object))
    return align(genes, named, samples=list(adata.obs_names))
