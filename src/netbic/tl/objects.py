"""AnnData objects: matrices and columns that are read, fitted models that are stored and read again."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import Array, Bools, Floats, Matrix, checked, kind_of
from netbic.errors import InputError, import_optional, shown
from netbic.estimators.prediction import module_scores
from netbic.estimators.results import DIAGNOSTIC_NUMBERS, name_features, names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.graph import Graph
from netbic.io.checks import check_expression
from netbic.io.expression import as_floats
from netbic.io.matching import Alignment, NamesDiffer, align, with_names
from netbic.io.stores import open_store
from netbic.io.tables import as_matrix
from netbic.operators.blocks import select_columns
from netbic.storage.models import SHAPES, ModelState, model_from, state_of
from netbic.storage.tables import summary_table

if TYPE_CHECKING:
    from anndata import AnnData

Mask: TypeAlias = "str | NDArray[np.bool_] | None"
AUTO: Final = "auto"  # the genes of the column below, if there is one: as scanpy's PCA
_HIGHLY_VARIABLE: Final = "highly_variable"
# Arrays of a model with a row for each cell (in obsm) or gene (in varm), and the ends of their keys; others are in uns.
_PER_CELL: Final = {"left_vectors": "", "covariates": "_covariates", "study_of_samples": "_studies"}
_PER_GENE: Final = {"components": "", "effects": "_covariates", "study_factors": "_studies"}
_ENDS: Final = ("_preparation", "_groups", "_confidence", "_stability")  # of tables that netbic writes, too
_AS_JSON: Final = ("covariates", "count", "studies")  # what else is stored in uns
_PREPARATION: Final = ("offset", "factor", "used")
_ROUNDING: Final = {4: 1e-5, 8: 1e-9}  # relative difference of equal scores, by the bytes of a number
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


def usual_mask(adata: AnnData, mask_var: Mask) -> Mask:
    """The mask itself; for "auto" the highly variable genes if they are known, and a line that says so."""
    if not (isinstance(mask_var, str) and mask_var == AUTO):
        return mask_var
    if _HIGHLY_VARIABLE not in adata.var.columns:
        return None
    n_kept, where = chosen_genes(adata, _HIGHLY_VARIABLE).size, f"adata.var[{_HIGHLY_VARIABLE!r}]"
    print(f"using the {n_kept:,} of {adata.n_vars:,} genes in {where} (mask_var=None uses all)")
    return _HIGHLY_VARIABLE


def chosen_genes(adata: AnnData, mask_var: Mask) -> NDArray[np.intp]:
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
    X: Matrix,
    cells: Any,
    genes: Any,
    *,
    scaled: bool,
    modality: str = "",
    only: Sequence[str] | None = None,
    stacklevel: int = 3,
) -> None:
    """Give a warning for what `netbic.io.check_expression` finds (or `only` some), with scanpy's remedies."""
    for finding in check_expression(X, list(cells), list(genes), scaled=scaled):
        if only is not None and finding.kind not in only:
            continue
        told = replace(finding, remedy=_REMEDIES.get(finding.kind, finding.remedy))
        text = re.sub(r"\bsamples\b", "cells", str(told))
        warnings.warn(f"{modality}: {text}" if modality else text, UserWarning, stacklevel=stacklevel)


def check_obs(adata: AnnData, names: Iterable[str], parameter: str) -> None:
    """Raise if names given for a parameter are not columns of `obs`."""
    for name in names:
        if name not in adata.obs.columns:
            known = ", ".join(map(str, adata.obs.columns)) or "none"
            raise InputError(f"{parameter}={name!r} is not a column of obs (there are: {known})")


def check_key(adata: AnnData, key: str) -> None:
    """Raise if results of another program are stored under a key."""
    stored = adata.uns.get(key, {"model": None})
    if not (isinstance(stored, Mapping) and any(str(each).startswith(("model", "association_")) for each in stored)):
        raise InputError(f"adata.uns[{key!r}] is not netbic's and would be replaced: choose another `key_added`")


def one_of(name: str, value: int | None, other: str, other_value: int | None, default: int | None = None) -> Any:
    """The value of a parameter that has two names."""
    if value is not None and other_value is not None:
        raise InputError(f"{name}={value!r} and {other}={other_value!r} are the same parameter: give one of them")
    return next((given for given in (value, other_value) if given is not None), default)


def columns_of_modules(key: str, n_modules: int) -> list[str]:
    """Names of modules (or pairs) as columns, numbered from 1: `module_1`, or `key_1` with another key."""
    prefix = {"netbic": "module", "netbic_pairs": "pair"}.get(key, key)
    return [f"{prefix}_{number}" for number in range(1, n_modules + 1)]


def of_name(table: str, name: str) -> str:
    """What a table in uns is called that is stored under a name of its own, beside the usual one.

    Examples
    --------
    >>> of_name("associations", ""), of_name("associations", "cells")
    ('associations', 'associations_cells')
    """
    if name and not re.fullmatch(r"[A-Za-z0-9][\w-]*", name, re.ASCII):
        raise InputError(f"name={name!r}: use letters, digits, - and _")
    return f"{table}_{name}" if name else table


def storable(table: pd.DataFrame) -> pd.DataFrame:
    """A table that files of AnnData can hold, with text as its index."""
    return table.set_axis(table.index.astype(str))


def to_anndata(model: SparseGraphSVD, X: object = None, key: str = "netbic") -> AnnData:
    """Store a fitted model in a new AnnData object of its samples and features, with data and scores if X is given.

    A Dask array is not computed.
    """
    anndata, model = import_optional("anndata", "anndata", "an AnnData object"), fitted_model(model)
    rows, columns = (pd.Index([str(name) for name in names_of(model, axis)]) for axis in ("rows", "columns"))
    X = checked(X)
    values = X if X is None or kind_of(X) in ("sparse", "dask") else np.asarray(X)
    adata: AnnData = anndata.AnnData(values, obs=pd.DataFrame(index=rows), var=pd.DataFrame(index=columns))
    store(adata, model, key, np.arange(len(columns)), None, scores=None if X is None else module_scores(model, X))
    return adata


def store(
    adata: AnnData,
    model: SparseGraphSVD,
    key: str,
    kept: NDArray[np.intp],
    layer: str | None,
    *,
    mask_var: object = None,
    scores: Floats | None = None,
) -> None:
    """Write a fitted model to an AnnData object; `kept` are the genes that were used in the fit.

    If the `scores` Xv of the cells are given, weights of the cells are only stored where they say something else.
    """
    model = fitted_model(model)
    state, size = state_of(model), int(adata.n_vars)
    for part in (adata.obsm, adata.varm, adata.obsp, adata.varp, adata.uns):
        for end in (*_ENDS, *_PER_CELL.values()):
            part.pop(f"{key}{end}", None)
    adata.obsm.pop(f"X_{key}", None)
    modules, arrays = columns_of_modules(key, model.n_components_), dict(state.arrays)
    effects, studies = model.covariate_effects_, model.study_scaling_
    columns = {"left_vectors": modules, "components": modules, "study_of_samples": ["study"]}
    columns |= {} if effects is None else dict.fromkeys(("covariates", "effects"), _column_names(effects.index))
    columns |= {} if studies is None else {"study_factors": _column_names(studies.names)}
    if scores is not None:
        adata.obsm[f"X_{key}"] = scores
        if _are_proportional(scores, arrays["left_vectors"], arrays["singular_values"]):
            del arrays["left_vectors"]
    for name, end in _PER_CELL.items():
        if name in arrays:
            values = arrays.pop(name)
            values = values[:, None] if values.ndim == 1 else values
            adata.obsm[f"{key}{end}"] = pd.DataFrame(values, index=adata.obs_names, columns=columns[name])
    offsets = arrays.pop("offsets")
    used = np.ones_like(offsets)
    preparation = np.column_stack([offsets, arrays.pop("factors", used), used])
    per_gene = {"_preparation": (preparation, list(_PREPARATION))}
    per_gene |= {end: (arrays.pop(name).T, columns[name]) for name, end in _PER_GENE.items() if name in arrays}
    for end, (values, names) in per_gene.items():
        full = np.zeros((size, values.shape[1]), dtype=values.dtype)  # zeros for genes that were not used
        full[kept] = values
        adata.varm[f"{key}{end}"] = pd.DataFrame(full, index=adata.var_names, columns=names)
    if "column_graph" in state.graphs:
        adata.varp[key] = graph_matrix(state.graphs["column_graph"], kept, size)
    if "row_graph" in state.graphs:
        adata.obsp[key] = state.graphs["row_graph"].weights
    # What `from_anndata` needs; users read the tables.
    internal: dict[str, Any] = {name: values for name, values in arrays.items() if name != "diagnostics"}
    internal |= {name: json.dumps(state.further[name]) for name in _AS_JSON if name in state.further}
    masked = mask_var if isinstance(mask_var, str) else "" if mask_var is None else "an array"
    params = {"layer": layer or "X", "mask_var": masked, "n_genes": len(kept), "settings": json.dumps(state.settings)}
    tables = {"modules": summary_table(model, feature_name="gene").set_axis(modules)}
    if "groups" in state.further:
        tables["kept_groups"] = storable(model.groups_)
    if model.studies_ is not None:
        tables["studies"] = storable(model.studies_)
    params |= {"class": state.kind, "netbic": __version__}
    adata.uns[key] = {**tables, "params": params, "model": internal}


def _are_proportional(scores: Floats, weights: Array, d: Array) -> bool:
    """Whether the weights of the cells are the scores Xv / d: they are not if cells are selected or values imputed."""
    limit = _ROUNDING[weights.dtype.itemsize] * np.abs(weights).max(axis=0, initial=0.0)
    return bool((d > 0).all() and (np.abs(scores / d - weights) <= limit).all())


def _column_names(names: Iterable[object]) -> list[str]:
    """Names of columns that files of AnnData can hold: a slash would be the path of a group."""
    return [str(name).replace("/", "_") for name in names]


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
    stored, params = adata.uns[key], adata.uns[key]["params"]
    internal, preparation = stored["model"], np.asarray(adata.varm[f"{key}_preparation"])
    used = used_genes(adata, key)
    if used.sum() != int(params["n_genes"]):
        raise InputError(
            f"the modules {key!r} use {int(params['n_genes']):,} genes, but only {used.sum():,} of them are in this "
            "object: subset cells only, not genes"
        )
    settings = json.loads(str(params["settings"]))
    arrays = {name: np.asarray(internal[name]) for name in SHAPES if name in internal}
    numbers = stored["modules"][[*name_features(pd.DataFrame(columns=DIAGNOSTIC_NUMBERS), "gene").columns]]
    arrays["diagnostics"] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    arrays["offsets"] = np.ascontiguousarray(preparation[used, 0])
    if (preparation[used, 1] != 1).any():
        arrays["factors"] = np.ascontiguousarray(preparation[used, 1])
    for name, end in _PER_GENE.items():
        if f"{key}{end}" in adata.varm:
            arrays[name] = np.ascontiguousarray(np.asarray(adata.varm[f"{key}{end}"])[used].T)
    for name, end in _PER_CELL.items():
        if f"{key}{end}" in adata.obsm:
            values = np.asarray(adata.obsm[f"{key}{end}"])
            arrays[name] = values.reshape(values.shape[: len(SHAPES[name])])
    if "left_vectors" not in arrays:
        if f"X_{key}" not in adata.obsm:
            raise InputError(f"the scores obsm['X_{key}'] of the modules {shown(key)} were removed: run tl.modules")
        scores, d = np.asarray(adata.obsm[f"X_{key}"]), arrays["singular_values"]
        arrays["left_vectors"] = (scores / d).astype(arrays["components"].dtype)
    cells, genes = (np.asarray(names, dtype=object) for names in (adata.obs_names, adata.var_names[used]))
    graphs = {}
    if key in adata.varp:
        graphs["column_graph"] = Graph(sp.csr_array(adata.varp[key])[used][:, used], genes, signed=True)
    if key in adata.obsp:
        graphs["row_graph"] = Graph(sp.csr_array(adata.obsp[key]), cells, signed=True)
    further = {name: json.loads(str(internal[name])) for name in _AS_JSON if name in internal}
    if "kept_groups" in stored:
        further["groups"] = stored["kept_groups"].to_numpy(dtype=object).tolist()
    names = {"rows": cells.tolist(), "columns": genes.tolist()}
    model: SparseGraphSVD = model_from(ModelState(str(params["class"]), settings, arrays, names, graphs, further))
    return model


def stored_layer(adata: AnnData, key: str) -> str | None:
    """The layer in which the modules were found; None is X."""
    layer = str(adata.uns[key]["params"]["layer"])
    return None if layer == "X" else layer


def matrix_of(adata: AnnData, key: str = "netbic") -> Matrix:
    """The matrix in which the modules were found (X or a layer), with all genes; X if there are no modules."""
    _check_anndata(adata)
    layer = stored_layer(adata, key) if key in adata.uns else None
    return read_matrix(adata, layer, np.arange(adata.n_vars))


def matrix_of_model(adata: AnnData, key: str) -> Matrix:
    """The matrix in which the modules were found, with the genes that were used."""
    return read_matrix(adata, stored_layer(adata, key), np.flatnonzero(used_genes(adata, key)))


def used_genes(adata: AnnData, key: str) -> Bools:
    """Which genes were used to find the modules."""
    return np.asarray(adata.varm[f"{key}_preparation"]["used"] == 1)


def has_other_modules(adata: AnnData, model: SparseGraphSVD, key: str) -> bool:
    """Whether the object has modules under this key that are not those of the model."""
    if key not in adata.uns or key not in adata.varm:
        return False
    weights = pd.DataFrame(model.components_.T, index=[str(name) for name in names_of(model, "columns")])
    own, others = np.asarray(adata.varm[key]), weights.reindex(adata.var_names.astype(str), fill_value=0.0).to_numpy()
    return own.shape != others.shape or not np.allclose(own, others, atol=1e-6)
