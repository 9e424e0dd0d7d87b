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
from netbic.estimators.covariates import own_covariates
from netbic.estimators.results import name_features, names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.graph import Graph
from netbic.io.checks import check_expression
from netbic.io.expression import as_floats
from netbic.io.matching import Alignment, NamesDiffer, align, with_names
from netbic.io.stores import open_store
from netbic.io.tables import as_matrix
from netbic.operators.blocks import select_columns
from netbic.storage.models import SHAPES, ModelState, PairModel, model_from, state_of
from netbic.storage.tables import SIDES

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

PAIRS_KEY: Final = "netbic_pairs"
# Arrays of a model with a row for each cell (in obsm) or gene (in varm), and the ends of their keys; others are in uns.
_PER_CELL: Final = {"left_vectors": "", "covariates": "_covariates", "study_of_samples": "_studies"}
_PER_GENE: Final = {"components": "", "effects": "_covariates", "study_factors": "_studies"}
_AS_JSON: Final = ("covariates", "count", "studies")  # what else is stored in uns
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
    on_disk = adata.isbacked and layer is None and not adata.is_view
    if on_disk and find_spec("dask") is not None and getattr(values, "format", "") != "csc":
        values = open_store(Path(adata.filename)).blocks()  # blocks of cells
    if kind_of(values) == "dask":
        return select_columns(as_floats(values), kept)
    if kind_of(values) not in ("dense", "sparse"):
        values = values[:]  # on disk, sparse or dense
    matrix = as_matrix(values)
    return matrix if np.array_equal(kept, np.arange(matrix.shape[1])) else matrix[:, kept]


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
    try:
        return align(genes, named, samples=list(adata.obs_names))
    except NamesDiffer as problem:
        if (column := problem.column(adata.var)) is None:
            raise
        remedy = f"adata.var[{column!r}] has the names of the network: use adata.var_names = adata.var[{column!r}]"
        raise InputError(f"{problem}; or {remedy}, then adata.var_names_make_unique()") from None


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
    return model.transform(X, covariates=own_covariates(model), studies=model.study_labels_)


def store(adata: AnnData, model: SparseGraphSVD, key: str, kept: NDArray[np.intp], layer: str | None) -> None:
    """Write a fitted model to an AnnData object; `kept` are the genes that were used in the fit."""
    model = fitted_model(model)
    state, size = state_of(model), int(adata.n_vars)
    for part in (adata.obsm, adata.varm, adata.obsp, adata.varp, adata.uns):
        for end in ("_members", "_preparation", "_scores", "_groups", "_confidence", *_PER_CELL.values()):
            part.pop(f"{key}{end}", None)
    per_cell, per_gene = {"_members": model.rows_.T}, {"_members": model.columns_.T}
    offsets = state.arrays["offsets"]
    used = np.ones_like(offsets)
    per_gene["_preparation"] = np.column_stack([offsets, state.arrays.get("factors", used), used])
    found: dict[str, Any] = {}
    for name, values in state.arrays.items():
        if name in _PER_CELL:
            per_cell[_PER_CELL[name]] = values[:, None] if values.ndim == 1 else values
        elif name in _PER_GENE:
            per_gene[_PER_GENE[name]] = values.T
        elif name not in ("offsets", "factors", "diagnostics"):
            found[name] = values
    for end, values in per_cell.items():
        adata.obsm[f"{key}{end}"] = values
    for end, values in per_gene.items():
        full = np.zeros((size, values.shape[1]), dtype=values.dtype)  # zeros for genes that were not used
        full[kept] = values
        adata.varm[f"{key}{end}"] = full
    if "column_graph" in state.graphs:
        adata.varp[key] = graph_matrix(state.graphs["column_graph"], kept, size)
    if "row_graph" in state.graphs:
        adata.obsp[key] = state.graphs["row_graph"].weights
    about = {"class": state.kind, "settings": json.dumps(state.settings), "layer": layer or "X", "n_genes": len(kept)}
    about |= {name: json.dumps(state.further[name]) for name in _AS_JSON if name in state.further}
    tables = {"diagnostics": storable(name_features(model.diagnostics_, "gene"))}
    if "groups" in state.further:
        tables["kept_groups"] = storable(model.groups_)
    if model.studies_ is not None:
        tables["studies_table"] = storable(model.studies_)
    adata.uns[key] = found | tables | about | {"netbic": __version__}


def graph_matrix(graph: Graph, kept: NDArray[np.intp], size: int) -> sp.csr_matrix:
    """The weights of the edges between the genes `kept`, in a matrix of all genes."""
    edges = sp.coo_array(graph.weights)
    return sp.csr_matrix((edges.data, (kept[edges.row], kept[edges.col])), shape=(size, size))


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
    arrays = {name: np.asarray(found[name]) for name in SHAPES if name in found and name not in _PER_CELL}
    arrays["diagnostics"] = found["diagnostics"].iloc[:, 1:].to_numpy(dtype=np.float64, na_value=np.nan)
    arrays["offsets"] = np.ascontiguousarray(preparation[used, 0])
    if (preparation[used, 1] != 1).any():
        arrays["factors"] = np.ascontiguousarray(preparation[used, 1])
    for name, end in _PER_CELL.items():
        if f"{key}{end}" in adata.obsm:
            values = np.asarray(adata.obsm[f"{key}{end}"])
            arrays[name] = values.reshape(values.shape[: len(SHAPES[name])])
    for name, end in _PER_GENE.items():
        if f"{key}{end}" in adata.varm:
            arrays[name] = np.ascontiguousarray(np.asarray(adata.varm[f"{key}{end}"])[used].T)
    cells, genes = (np.asarray(names, dtype=object) for names in (adata.obs_names, adata.var_names[used]))
    graphs = {}
    if key in adata.varp:
        graphs["column_graph"] = Graph(sp.csr_array(adata.varp[key])[used][:, used], genes, signed=True)
    if key in adata.obsp:
        graphs["row_graph"] = Graph(sp.csr_array(adata.obsp[key]), cells, signed=True)
    further = {name: json.loads(str(found[name])) for name in _AS_JSON if name in found}
    if "kept_groups" in found:
        further["groups"] = found["kept_groups"].to_numpy(dtype=object).tolist()
    names = {"rows": cells.tolist(), "columns": genes.tolist()}
    model: SparseGraphSVD = model_from(ModelState(str(found["class"]), settings, arrays, names, graphs, further))
    return model


def pair_state(model: PairModel) -> dict[str, Any]:
    """A model of two tables as arrays and JSON, which .h5mu files can hold; graphs are in the modalities."""
    state = state_of(model)
    names = {axis: np.array(known, dtype=object) for axis, known in state.names.items() if known is not None}
    return {"arrays": state.arrays, "names": names, "further": json.dumps(state.further)}


def from_mudata(mdata: MuData, key: str = PAIRS_KEY) -> PairModel:
    """The fitted model of two tables that `pairs` stored in a MuData object.

    Parameters
    ----------
    mdata : MuData
        After `pairs`.
    key : str
        Key of the pairs.

    Returns
    -------
    SparseGraphPLS or SparseGraphCCA
        For `netbic.pl.pairs`, `netbic.exports`, `netbic.enrichment.gene_sets`, `netbic.association.associate_pairs`
        and all else that takes such a model.
    """
    if kind_of(mdata) != "mudata" or key not in mdata.uns:
        known = ", ".join(getattr(mdata, "uns", ())) or "none"
        raise InputError(f"this object has no pairs {shown(key)} (there are: {known}): run tl.pairs on a MuData object")
    found = mdata.uns[key]
    stored, graphs = found["model"], {}
    names: dict[str, Any] = {axis: list(map(str, known)) for axis, known in stored["names"].items()}
    for name, side in zip(map(str, found["mods"]), SIDES, strict=True):
        adata = mdata.mod[name]
        if key in adata.varp:
            features = np.array(names[side], dtype=object)
            if (at := adata.var_names.get_indexer(features)).min(initial=0) < 0:
                raise InputError(f"{name!r} lacks features of the pairs: subset cells only, not features")
            graphs[f"{side}_graph"] = Graph(sp.csr_array(adata.varp[key])[at][:, at], features, signed=True)
    arrays = {name: np.asarray(values) for name, values in stored["arrays"].items()}
    settings, further = json.loads(str(found["settings"])), json.loads(str(stored["further"]))
    model: PairModel = model_from(ModelState(str(found["class"]), settings, arrays, names, graphs, further))
    return model


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
