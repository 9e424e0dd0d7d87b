"""Tools for AnnData: modules of cells and genes, stored where scanpy users look for them.

With `key_added="netbic"` an object gets

- `obsm["X_netbic"]`: scores of all cells (least squares), `obsm["netbic"]`: weights of the cells in each module;
- `varm["netbic"]`: weights of the genes, `varm["netbic_preparation"]`: means and scales taken off, and who was used;
- `obsm["netbic_members"]`, `varm["netbic_members"]`: who belongs to which module;
- `varp["netbic"]`: the graph, brought to the genes;
- `uns["netbic"]`: settings, singular values, and the account of how each module was found.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import checked
from netbic.errors import InputError, extra, shown
from netbic.estimators import SparseGraphSVD, fitted_model, is_model, matched_graph, names_of
from netbic.graphs import Graph
from netbic.methods import usual_sizes
from netbic.outofcore import is_dask, of_columns
from netbic.readers import as_floats, as_matrix, describe, store_source
from netbic.storage import ModelState, model_from, state_of
from netbic.study import Alignment, align, scores_by_name, with_names

_FURTHER = ("rows_choices", "columns_choices", "kept")  # what only some models have
_PER_MODULE = ("singular_values", "explained_variance_ratio", "graph_share", "converged", "rounds")


def modules(
    adata: Any,
    graph: Any = None,
    n_components: int = 10,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
    layer: str | None = None,
    mask_var: Any = None,
    key_added: str = "netbic",
    copy: bool = False,
    **keywords: Any,
) -> Any:
    """Find modules of cells and genes and store them in an AnnData object.

    Parameters
    ----------
    adata : AnnData
        Expression as it is to be analysed (usually normalised and logarithmic). Sparse matrices stay sparse, centring
        is implicit. A Dask array (as of `anndata.experimental.read_lazy`) or the X of a backed object is never
        gathered: it is read block by block, by the workers of the present Dask client or by threads (`netbic[dask]`;
        a backed matrix that is stored by columns is read into memory).
    graph : graph-like, optional
        Prior graph of the genes: Graph, networkx, igraph, edge DataFrame (matched by `var_names`), or a square matrix
        with a row per gene of `adata`.
    n_components : int
        Modules to look for.
    n_rows, n_columns : int, optional
        Cells and genes per module. Default: a tenth of the cells, 200 genes (at most a fifth of all).
    layer : str, optional
        Layer to use instead of X.
    mask_var : str or boolean array, optional
        Genes to use: a mask, or the name of a boolean column of `var` such as "highly_variable".
    key_added : str
        Name of what is stored, see the module's documentation.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.
    **keywords
        Passed on to :class:`netbic.SparseGraphSVD`.

    Returns
    -------
    AnnData or None

    Examples
    --------
    >>> import anndata, netbic, numpy as np
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, study.network, n_components=2, n_rows=40, n_columns=60)
    >>> adata.obsm["X_netbic"].shape, adata.varm["netbic_members"].sum(axis=0).tolist()
    ((150, 2), [60, 60])
    """
    _check_anndata(adata)
    adata = _copied(adata) if copy else adata
    kept = _mask(adata, mask_var)
    X = _matrix(adata, layer, kept)
    genes = np.asarray(adata.var_names[kept], dtype=object)
    aligned, account = (None, None) if graph is None else _aligned(adata, graph, genes)
    usual = usual_sizes(*X.shape)
    model = SparseGraphSVD(
        n_components,
        n_rows=_unless_penalised(keywords, "row", n_rows, usual[0]),
        n_columns=_unless_penalised(keywords, "column", n_columns, usual[1]),
        column_graph=aligned,
        **keywords,
    )
    for _ in model.iter_fit(X, names=(adata.obs_names, pd.Index(genes))):
        pass
    store(adata, model, key_added, kept, layer)
    adata.obsm[f"X_{key_added}"] = model.transform(X)
    if account is not None:
        adata.uns[key_added]["alignment"] = json.dumps(account.to_dict())
    return adata if copy else None


def score(
    adata: Any, reference: Any = None, *, key: str = "netbic", layer: str | None = None, copy: bool = False
) -> Any:
    """Project cells on modules that were found in other cells.

    Parameters
    ----------
    adata : AnnData
        The cells, prepared as those were in which the modules were found, in memory or not (see `modules`). Genes are
        matched by name; where some of the modules' genes are missing they are taken to be at their mean, and a warning
        says how many.
    reference : AnnData or SparseGraphSVD, optional
        Where the modules are. Default: in `adata` itself.
    key : str
        The modules' key in `reference`; scores are stored as `obsm["X_" + key]`.
    layer : str, optional
        Layer to use. Default: the one the modules were found in.
    copy : bool
        Return a copy with the scores instead of writing them into `adata`.
    """
    _check_anndata(adata)
    adata = _copied(adata) if copy else adata
    holder = adata if reference is None else reference
    if is_model(holder):
        model = fitted_model(holder)
    else:
        model = from_anndata(holder, key)
        layer = _stored_layer(holder, key) if layer is None else layer
    X = _matrix(adata, layer, np.arange(adata.n_vars))
    adata.obsm[f"X_{key}"] = scores_by_name(model, X, adata.var_names)
    return adata if copy else None


def _stored_layer(adata: Any, key: str) -> str | None:
    layer = str(adata.uns[key]["layer"])
    return None if layer == "X" else layer


def to_anndata(model: SparseGraphSVD, X: Any = None, key: str = "netbic") -> Any:
    """A fitted model as an AnnData object of its samples and features (with the data, if X is given).

    A Dask array stays one.
    """
    anndata, model = extra("anndata", "anndata", "an AnnData object"), fitted_model(model)
    rows, columns = (pd.Index([str(name) for name in names_of(model, axis)]) for axis in ("rows", "columns"))
    X = checked(X)
    values = X if X is None or sp.issparse(X) or is_dask(X) else np.asarray(X)
    adata = anndata.AnnData(values, obs=pd.DataFrame(index=rows), var=pd.DataFrame(index=columns))
    store(adata, model, key, np.arange(len(columns)), None)
    if X is not None:
        adata.obsm[f"X_{key}"] = model.transform(X)
    return adata


def store(adata: Any, model: SparseGraphSVD, key: str, kept: NDArray[Any], layer: str | None) -> None:
    """Write a fitted model into an AnnData object, whose genes `kept` it was fitted to."""
    model = fitted_model(model)
    state = state_of(model)
    for part in (adata.obsm, adata.varm, adata.obsp, adata.varp, adata.uns):
        for name in (key, f"{key}_members", f"{key}_preparation", f"{key}_posteriors"):
            part.pop(name, None)
    adata.obsm[key] = model.left_vectors_
    adata.obsm[f"{key}_members"] = model.rows_.T
    factors = model.scaler_.factors
    ones = np.ones_like(model.scaler_.offsets)
    per_gene = [model.scaler_.offsets, ones if factors is None else factors, ones]  # the last marks genes used
    adata.varm[key] = _spread(model.components_.T, kept, adata.n_vars)
    adata.varm[f"{key}_members"] = _spread(model.columns_.T, kept, adata.n_vars)
    adata.varm[f"{key}_preparation"] = _spread(np.column_stack(per_gene), kept, adata.n_vars)
    graph, sample_graph = matched_graph(model, "column"), matched_graph(model, "row")
    if graph is not None:
        adata.varp[key] = _spread_square(graph.weights, kept, adata.n_vars)
    if sample_graph is not None:
        adata.obsp[key] = sample_graph.weights
    if "rows_posteriors" in state.arrays:
        adata.obsm[f"{key}_posteriors"] = state.arrays["rows_posteriors"].T
    if "columns_posteriors" in state.arrays:
        adata.varm[f"{key}_posteriors"] = _spread(state.arrays["columns_posteriors"].T, kept, adata.n_vars)
    further = [name for name in _FURTHER if name in state.arrays]
    adata.uns[key] = {name: state.arrays[name] for name in (*_PER_MODULE, "objectives", *further)} | {
        "class": state.kind,
        "settings": json.dumps(state.settings),
        "layer": layer or "X",
        "n_genes": len(kept),
        "netbic": __version__,
    }


def from_anndata(adata: Any, key: str = "netbic") -> SparseGraphSVD:
    """The fitted model that `modules` or `to_anndata` stored in an AnnData object."""
    _check_anndata(adata)
    if key not in adata.uns or key not in adata.varm:
        known = ", ".join(name for name in adata.uns if name in adata.varm) or "none"
        raise InputError(
            f"there are no modules {shown(key)} in this AnnData object (there are: {known}): run tl.modules"
        )
    found = adata.uns[key]
    preparation = np.asarray(adata.varm[f"{key}_preparation"])
    used = preparation[:, 2] == 1
    if used.sum() != int(found["n_genes"]):
        raise InputError(
            f"{key!r} was found with {int(found['n_genes']):,} genes, {used.sum():,} are left: select cells only"
        )
    preparation = preparation[used]
    arrays = {name: np.asarray(found[name]) for name in (*_PER_MODULE, "objectives")} | {
        "left_vectors": np.asarray(adata.obsm[key]),
        "components": np.ascontiguousarray(np.asarray(adata.varm[key])[used].T),
        "offsets": np.ascontiguousarray(preparation[:, 0]),
    }
    arrays |= {name: np.asarray(found[name]) for name in _FURTHER if name in found}
    if "rows_choices" in found:
        arrays["rows_posteriors"] = np.asarray(adata.obsm[f"{key}_posteriors"]).T
    if "columns_choices" in found:
        arrays["columns_posteriors"] = np.asarray(adata.varm[f"{key}_posteriors"])[used].T
    settings = json.loads(str(found["settings"]))
    if settings["scale"]:
        arrays["factors"] = np.ascontiguousarray(preparation[:, 1])
    genes = adata.var_names[used]
    graphs = {}
    if key in adata.varp:
        weights = sp.csr_array(adata.varp[key])[used][:, used]
        graphs["column_graph"] = Graph(weights, np.asarray(genes, dtype=object))
    if key in adata.obsp:
        graphs["row_graph"] = Graph(sp.csr_array(adata.obsp[key]), np.asarray(adata.obs_names, dtype=object))
    names: dict[str, Any] = {"rows": list(adata.obs_names), "columns": list(genes)}
    kind = str(found.get("class", "SparseGraphSVD"))
    return model_from(ModelState(settings, arrays, names, graphs, kind=kind))


def matrix_of(adata: Any, key: str = "netbic") -> Any:
    """The matrix the modules were sought in, X or a layer, with all its genes; X where there are no modules."""
    _check_anndata(adata)
    layer = _stored_layer(adata, key) if key in adata.uns else None
    return _matrix(adata, layer, np.arange(adata.n_vars))


def _check_anndata(adata: Any) -> None:
    anndata = extra("anndata", "anndata", "an AnnData object")
    if not isinstance(adata, anndata.AnnData):
        raise TypeError(
            f"an AnnData object is needed, got {type(adata).__name__}: for arrays use netbic.SparseGraphSVD"
        )
    if adata.isbacked and adata.is_view:
        raise InputError(
            "adata is a view of an object on disk, which cannot hold results: use adata.to_memory(), or write it and "
            "open that"
        )


def _copied(adata: Any) -> Any:
    if adata.isbacked:
        raise InputError("copy=True needs the data in memory: use adata.to_memory(), or copy=False")
    return adata.copy()


def _mask(adata: Any, mask_var: Any) -> NDArray[np.intp]:
    """Indices of the genes to use."""
    if mask_var is None:
        return np.arange(adata.n_vars)
    if isinstance(mask_var, str):
        if mask_var not in adata.var.columns:
            known = ", ".join(map(str, adata.var.columns)) or "none"
            raise InputError(f"mask_var={mask_var!r} is no column of var (there are: {known})")
        mask_var = adata.var[mask_var]
    mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise InputError(
            f"mask_var must be {adata.n_vars} truth values, one per gene; it is {mask.dtype} of shape {mask.shape}"
        )
    if mask.sum() < 2:
        raise InputError(f"mask_var keeps {mask.sum()} genes: at least two are needed")
    return np.flatnonzero(mask)


def _matrix(adata: Any, layer: str | None, kept: NDArray[np.intp]) -> Any:
    """The expression matrix, dense or CSR in memory or a Dask array, some genes of it."""
    layers = [name for name in adata.layers if name is not None]  # None is X, since anndata 0.13
    if layer is not None and layer not in layers:
        raise InputError(f"layer={layer!r} is not there (there are: {', '.join(layers) or 'none'})")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise InputError(f"this AnnData object has no X: name a layer ({', '.join(layers) or 'there is none'})")
    if adata.isbacked and layer is None and not adata.is_view and (stored := _on_disk(adata)) is not None:
        values = stored
    if is_dask(values):
        return of_columns(as_floats(values), kept)
    if hasattr(values, "to_memory"):  # a sparse matrix on disk
        values = values.to_memory()
    elif not isinstance(values, np.ndarray) and not sp.issparse(values):
        values = np.asarray(values[...] if hasattr(values, "chunks") else values)
    matrix = as_matrix(values)
    return matrix if kept.size == matrix.shape[1] and np.array_equal(kept, np.arange(kept.size)) else matrix[:, kept]


def _on_disk(adata: Any) -> Any:
    """The X of a backed object as a Dask array; None where blocks of cells cannot be read, or without Dask."""
    if find_spec("dask") is None:
        return None
    stored = describe(Path(adata.filename), is_open=True)
    return None if stored.encoding == "csc_matrix" else store_source(stored).expression().matrix


def _aligned(adata: Any, graph: Any, genes: NDArray[Any]) -> tuple[Graph, Alignment]:
    """The graph of the genes used; nodes without names are the genes of the object, in their order."""
    named = with_names(Graph.of(graph), np.asarray(adata.var_names, dtype=object))
    return align(genes, named, samples=list(adata.obs_names))


def _unless_penalised(keywords: dict[str, Any], axis: str, asked: int | None, usual: int) -> int | None:
    return usual if asked is None and keywords.get(f"{axis}_penalty") is None else asked


def _spread(values: NDArray[Any], kept: NDArray[Any], size: int) -> NDArray[Any]:
    """Rows for all genes, zeros for those that were not used."""
    full = np.zeros((size, values.shape[1]), dtype=values.dtype)
    full[kept] = values
    return full


def _spread_square(weights: sp.csr_array, kept: NDArray[Any], size: int) -> sp.csr_matrix:
    entries = sp.coo_array(weights)
    return sp.csr_matrix((entries.data, (kept[entries.row], kept[entries.col])), shape=(size, size))
