"""AnnData objects: matrices and columns that are read, fitted models that are stored and read again."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import Matrix, checked, kind_of
from netbic.errors import InputError, import_optional, shown
from netbic.estimators import (
    DIAGNOSTIC_NUMBERS,
    SparseGraphSVD,
    fitted_model,
    names_of,
    own_covariates,
    own_studies,
)
from netbic.graph import Graph
from netbic.io import Alignment, align, as_floats, as_matrix, check_expression, open_store, with_names
from netbic.operators import select_columns
from netbic.storage import ModelState, model_from, state_of

if TYPE_CHECKING:
    from anndata import AnnData

_OPTIONAL = (  # arrays of some models only
    *("rows_choices", "columns_choices", "kept", "diffusion", "regressed_out"),
    *("study_weights", "study_d", "study_share", "study_ratio"),
)
_PER_MODULE = ("singular_values", "explained_variance_ratio", "graph_share", "converged", "rounds")
_REMEDIES: Final = {
    "raw counts": "run sc.pp.normalize_total(adata) and sc.pp.log1p(adata) first",
    "not logarithms": "run sc.pp.log1p(adata) first",
    "dates": "rename them in adata.var_names",
    "empty genes": "remove them with sc.pp.filter_genes(adata, min_cells=3), or leave them out by mask_var",
    "dominating genes": "scale=True gives all genes the same weight",
}


def _check_anndata(adata: object) -> None:
    anndata = import_optional("anndata", "anndata", "an AnnData object")
    if not isinstance(adata, anndata.AnnData):
        raise TypeError(f"expected an AnnData object, got {type(adata).__name__}: for arrays use netbic.SparseGraphSVD")
    if adata.isbacked and adata.is_view:
        raise InputError(
            "adata is a view of an object on disk, in which results cannot be stored: use adata.to_memory(), or write "
            "it to a file and open that"
        )


def writable(adata: AnnData, copy: bool) -> AnnData:
    """The object to store results in."""
    _check_anndata(adata)
    if copy and adata.isbacked:
        raise InputError("copy=True needs the data in memory: use adata.to_memory(), or copy=False")
    return adata.copy() if copy else adata


def read_matrix(adata: AnnData, layer: str | None, kept: NDArray[np.intp]) -> Matrix:
    """The expression matrix of the genes `kept`: dense or CSR in memory, or a Dask array."""
    names = [name for name in adata.layers if name is not None]  # None is X, since anndata 0.13
    layers = ", ".join(names) or "none"
    if layer is not None and layer not in names:
        raise InputError(f"layer={layer!r} does not exist (there are: {layers})")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise InputError(f"this AnnData object has no X: choose a layer (there are: {layers})")
    if adata.isbacked and layer is None and not adata.is_view and (stored := _on_disk(adata)) is not None:
        values = stored
    if kind_of(values) == "dask":
        return select_columns(as_floats(values), kept)
    if kind_of(values) not in ("dense", "sparse"):
        values = values[:]  # on disk, sparse or dense
    matrix = as_matrix(values)
    return matrix if np.array_equal(kept, np.arange(matrix.shape[1])) else matrix[:, kept]


def _on_disk(adata: AnnData) -> Matrix:
    """The X of a backed object as a Dask array; None if it cannot be read in blocks of cells, or without Dask."""
    if find_spec("dask") is None or getattr(adata.X, "format", "") == "csc":
        return None
    return open_store(Path(adata.filename)).blocks()


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


def warn_before_fit(
    X: Matrix, cells: Any, genes: Any, *, scaled: bool, modality: str = "", stacklevel: int = 3
) -> None:
    """Give a warning for everything that `netbic.io.check_expression` finds, with the remedy in scanpy's functions."""
    for finding in check_expression(X, list(cells), list(genes), scaled=scaled):
        told = replace(finding, remedy=_REMEDIES.get(finding.kind, finding.remedy))
        warnings.warn(f"{modality}: {told}" if modality else str(told), UserWarning, stacklevel=stacklevel)


def check_obs(adata: AnnData, names: Iterable[str], parameter: str) -> None:
    """Raise if names given for a parameter are not columns of `obs`."""
    for name in names:
        if name not in adata.obs.columns:
            known = ", ".join(map(str, adata.obs.columns)) or "none"
            raise InputError(f"{parameter}={name!r} is not a column of obs (there are: {known})")


def columns_of_modules(key: str, n_modules: int) -> list[str]:
    """Names of columns with the scores of the cells, numbered from 1: `module_1`, or `key_1` with another key."""
    prefix = "module" if key == "netbic" else key
    return [f"{prefix}_{number}" for number in range(1, n_modules + 1)]


def storable(table: pd.DataFrame) -> pd.DataFrame:
    """A table that files of AnnData can hold, with text as its index."""
    return table.set_axis(table.index.astype(str))


def to_anndata(model: SparseGraphSVD, X: object = None, key: str = "netbic") -> AnnData:
    """Store a fitted model in a new AnnData object of its samples and features, with the data if X is given.

    A Dask array is not computed.
    """
    anndata, model = import_optional("anndata", "anndata", "an AnnData object"), fitted_model(model)
    rows, columns = (pd.Index([str(name) for name in names_of(model, axis)]) for axis in ("rows", "columns"))
    X = checked(X)
    values = X if X is None or kind_of(X) in ("sparse", "dask") else np.asarray(X)
    adata: AnnData = anndata.AnnData(values, obs=pd.DataFrame(index=rows), var=pd.DataFrame(index=columns))
    store(adata, model, key, np.arange(len(columns)), None)
    if X is not None:
        adata.obsm[f"X_{key}"] = own_scores(model, X)
    return adata


def own_scores(model: SparseGraphSVD, X: Matrix) -> NDArray[Any]:
    """Scores of the cells that a model was fitted to."""
    return model.transform(X, covariates=own_covariates(model), studies=own_studies(model))


def store(adata: AnnData, model: SparseGraphSVD, key: str, kept: NDArray[np.intp], layer: str | None) -> None:
    """Write a fitted model to an AnnData object; `kept` are the genes that were used in the fit."""
    model = fitted_model(model)
    state, size = state_of(model), int(adata.n_vars)
    for part in (adata.obsm, adata.varm, adata.obsp, adata.varp, adata.uns):
        for end in ("", "_members", "_preparation", "_posteriors", "_scores", "_groups", "_covariates", "_studies"):
            part.pop(f"{key}{end}", None)
    offsets = state.arrays["offsets"]
    used = np.ones_like(offsets)
    preparation = np.column_stack([offsets, state.arrays.get("factors", used), used])
    of_cells, of_genes = _per_cell_and_gene(model, state, key, preparation)
    for name, values in of_cells.items():
        adata.obsm[name] = values
    for name, values in of_genes.items():
        adata.varm[name] = _for_all_genes(values, kept, size)
    if "column_graph" in state.graphs:
        edges = sp.coo_array(state.graphs["column_graph"].weights)
        adata.varp[key] = sp.csr_matrix((edges.data, (kept[edges.row], kept[edges.col])), shape=(size, size))
    if "row_graph" in state.graphs:
        adata.obsp[key] = state.graphs["row_graph"].weights
    optional = [name for name in _OPTIONAL if name in state.arrays]
    adata.uns[key] = {name: state.arrays[name] for name in (*_PER_MODULE, "objectives", *optional)} | {
        "diagnostics": storable(model.diagnostics_),
        "class": state.kind,
        "settings": json.dumps(state.settings),
        "layer": layer or "X",
        "n_genes": len(kept),
        "netbic": __version__,
    }
    if "groups" in state.further:
        adata.uns[key]["kept_groups"] = storable(model.groups_)
    if model.studies_ is not None:
        adata.uns[key]["studies_table"] = storable(model.studies_)
    for name in ("covariates", "studies"):
        if name in state.further:
            adata.uns[key][name] = json.dumps(state.further[name])


def _per_cell_and_gene(
    model: SparseGraphSVD, state: ModelState, key: str, preparation: NDArray[np.float64]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `obsm` and `varm` (for the genes that were used) hold of a model."""
    of_cells = {key: model.left_vectors_, f"{key}_members": model.rows_.T}
    of_genes = {key: model.components_.T, f"{key}_members": model.columns_.T, f"{key}_preparation": preparation}
    for axis, stored in (("rows", of_cells), ("columns", of_genes)):
        if f"{axis}_posteriors" in state.arrays:
            stored[f"{key}_posteriors"] = state.arrays[f"{axis}_posteriors"].T
    if "covariates" in state.further:
        of_cells[f"{key}_covariates"] = state.arrays["covariates"]
        of_genes[f"{key}_covariates"] = state.arrays["effects"].T
    if "study_of_samples" in state.arrays:
        of_cells[f"{key}_studies"] = state.arrays["study_of_samples"][:, None]
    if "study_factors" in state.arrays:
        of_genes[f"{key}_studies"] = state.arrays["study_factors"].T
    return of_cells, of_genes


def _for_all_genes(values: NDArray[Any], kept: NDArray[np.intp], size: int) -> NDArray[Any]:
    """Rows for all genes, zeros for those that were not used."""
    full = np.zeros((size, values.shape[1]), dtype=values.dtype)
    full[kept] = values
    return full


def from_anndata(adata: AnnData, key: str = "netbic") -> SparseGraphSVD:
    """The fitted model that `modules` or `to_anndata` stored in an AnnData object."""
    _check_anndata(adata)
    if key not in adata.uns or key not in adata.varm:
        known = ", ".join(name for name in adata.uns if name in adata.varm) or "none"
        raise InputError(f"this AnnData object has no modules {shown(key)} (there are: {known}): run tl.modules")
    found = adata.uns[key]
    preparation = np.asarray(adata.varm[f"{key}_preparation"])
    used = preparation[:, 2] == 1
    if used.sum() != int(found["n_genes"]):
        raise InputError(
            f"the modules {key!r} use {int(found['n_genes']):,} genes, but only {used.sum():,} of them are in this "
            "object: subset cells only, not genes"
        )
    settings = json.loads(str(found["settings"]))
    arrays = _arrays(adata, key, used, settings["scale"] and "studies" not in found)
    cells, genes = adata.obs_names, adata.var_names[used]
    graphs = {}
    if key in adata.varp:
        weights, labels = sp.csr_array(adata.varp[key])[used][:, used], np.asarray(genes, dtype=object)
        graphs["column_graph"] = Graph(weights, labels, signed=True)
    if key in adata.obsp:
        graphs["row_graph"] = Graph(sp.csr_array(adata.obsp[key]), np.asarray(cells, dtype=object), signed=True)
    names: dict[str, list[Any] | None] = {"rows": list(cells), "columns": list(genes)}
    kind = str(found.get("class", "SparseGraphSVD"))
    further = {name: json.loads(str(found[name])) for name in ("covariates", "studies") if name in found}
    if "kept_groups" in found:
        further["groups"] = found["kept_groups"].to_numpy(dtype=object).tolist()
    model: SparseGraphSVD = model_from(ModelState(kind, settings, arrays, names, graphs, further))
    return model


def _arrays(adata: AnnData, key: str, used: NDArray[np.bool_], scaled: bool) -> dict[str, NDArray[Any]]:
    """The arrays of a model that an object holds; `used` marks its genes."""
    found, preparation = adata.uns[key], np.asarray(adata.varm[f"{key}_preparation"])
    arrays = {name: np.asarray(found[name]) for name in (*_PER_MODULE, "objectives", *_OPTIONAL) if name in found}
    arrays |= {
        "left_vectors": np.asarray(adata.obsm[key]),
        "components": np.ascontiguousarray(np.asarray(adata.varm[key])[used].T),
        "offsets": np.ascontiguousarray(preparation[used, 0]),
    }
    if "diagnostics" in found:
        arrays["diagnostics"] = found["diagnostics"][list(DIAGNOSTIC_NUMBERS)].to_numpy(dtype=np.float64)
    if scaled:
        arrays["factors"] = np.ascontiguousarray(preparation[used, 1])
    if "rows_choices" in found:
        arrays["rows_posteriors"] = np.asarray(adata.obsm[f"{key}_posteriors"]).T
    if "columns_choices" in found:
        arrays["columns_posteriors"] = np.asarray(adata.varm[f"{key}_posteriors"])[used].T
    if "covariates" in found:
        arrays["covariates"] = np.asarray(adata.obsm[f"{key}_covariates"], dtype=np.float64)
        arrays["effects"] = np.ascontiguousarray(np.asarray(adata.varm[f"{key}_covariates"])[used].T)
    if "studies" in found:
        arrays["study_of_samples"] = np.asarray(adata.obsm[f"{key}_studies"], dtype=np.int64)[:, 0]
        if f"{key}_studies" in adata.varm:
            arrays["study_factors"] = np.ascontiguousarray(np.asarray(adata.varm[f"{key}_studies"])[used].T)
    return arrays


def stored_layer(adata: AnnData, key: str) -> str | None:
    """The layer in which the modules were found; None is X."""
    layer = str(adata.uns[key]["layer"])
    return None if layer == "X" else layer


def matrix_of(adata: AnnData, key: str = "netbic") -> Matrix:
    """The matrix in which the modules were found (X or a layer), with all genes; X if there are no modules."""
    _check_anndata(adata)
    layer = stored_layer(adata, key) if key in adata.uns else None
    return read_matrix(adata, layer, np.arange(adata.n_vars))


def matrix_of_model(adata: AnnData, key: str) -> Matrix:
    """The matrix in which the modules were found, with the genes that were used."""
    used = np.asarray(adata.varm[f"{key}_preparation"])[:, 2] == 1
    return read_matrix(adata, stored_layer(adata, key), np.flatnonzero(used))
