"""Find modules in an AnnData object."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Matrix, check_choice, kind_of, stored_values
from netbic.errors import InputError, reworded
from netbic.estimators import SparseGraphSVD, module_scores
from netbic.io import Alignment, check_keywords
from netbic.methods import usual_settings
from netbic.penalties import L0, Dense, Penalty
from netbic.tl.checks import warn_before_fit
from netbic.tl.choices import aligned_graph, chosen_genes, one_of
from netbic.tl.modalities import KEY, pairs
from netbic.tl.objects import columns_of_modules, covariates_in, own_scores, read_matrix, store, studies_in, writable

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

DEFAULT_MODULES: Final = 10
_OF_MODEL = [name for name in signature(SparseGraphSVD).parameters if name != "column_graph"]
_MEANT = {"n_samples": "n_rows", "column_graph": "graph", "network": "graph", "key": "key_added"}
_OF_PRESET = ("center", "row_penalty", "column_penalty", "signs")  # parameters that the preset sets
_OBS_COLUMNS = "obs_columns"  # in uns: the columns of obs that the modules wrote


def modules(
    adata: AnnData | MuData,
    graph: Any = None,
    n_components: int | None = None,
    *,
    mods: Sequence[str] | None = None,
    n_modules: int | None = None,
    n_rows: int | None = None,
    n_cells: int | None = None,
    n_columns: int | None = None,
    n_genes: int | None = None,
    preset: str | None = None,
    layer: Any = None,
    mask_var: Any = None,
    covariates: str | Sequence[str] | pd.DataFrame | None = None,
    study_key: str | None = None,
    obs_columns: bool = False,
    key_added: str = "netbic",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Find modules of cells and genes and store them in an AnnData object; of a MuData object, pairs of two modalities.

    Parameters
    ----------
    adata : AnnData or MuData
        Preprocessed expression data (usually normalised and log-transformed; there is a warning if they look like raw
        counts, see :func:`netbic.io.check_expression`). Sparse matrices stay sparse, centring is implicit. A Dask array
        (e.g. of `anndata.experimental.read_lazy`) or the X of a backed object is never loaded as a whole: it is read
        block by block, by the workers of the current Dask client or by threads (`netbic[dask]`; a backed matrix that is
        stored by columns is read into memory).
    graph : graph-like, optional
        Prior graph of the genes: Graph, networkx, igraph, edge DataFrame (matched by `var_names`), or a square matrix
        with a row per gene of `adata`.
    n_components, n_modules : int, optional
        Number of modules (either name). Default: 10.
    mods : pair of str, optional
        Two modalities of a MuData object, whose features are paired by :func:`pairs`. `graph`, `layer` and `mask_var`
        are then mappings from a modality to what they are here, and other parameters are those of :func:`pairs`.
    n_rows, n_cells : int, optional
        Cells per module (either name). Default: all cells.
    n_columns, n_genes : int, optional
        Genes per module (either name). Default: as many as the data identify, or, if they do not identify a
        number, 1.5% of the genes, 50 to 200, but at most a fifth of them.
    preset : {"nonnegative"}, optional
        Modules as programs and their usages, as in non-negative matrix factorisation: all weights of genes and cells
        are positive or zero, and genes are not centred. X must have no negative values (log-normalised, not scaled).
        A module is then a set of genes that are expressed together, never one that is low where another one is high;
        the first module is usually what all cells express. `obsm["netbic"]` contains the usages.
    layer : str, optional
        Layer to use instead of X.
    mask_var : str or boolean array, optional
        Genes to use: a mask, or the name of a boolean column of `var` such as "highly_variable".
    covariates : list of str or DataFrame, optional
        Columns of `obs` (such as `["batch"]`), or a table, whose effects are removed from the data before the search;
        see `SparseGraphSVD.fit`. Categories and text are groups, numbers are used as numbers.
    study_key : str, optional
        Column of `obs` with the study of each cell: each study is centred and scaled by itself, and modules are judged
        in each of them (`uns[key]["studies_table"]`); see the page "Several studies".
    obs_columns : bool
        Also store the scores Xv of the cells as columns of `obs`: `module_1`, `module_2`, ..., for
        `sc.pl.umap(adata, color="module_1")`; with another `key_added`, `key_1`, `key_2`, ...
    key_added : str
        Key under which results are stored, see the documentation of `netbic.tl`.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.
    **parameters
        Passed to :class:`netbic.SparseGraphSVD`.

    Returns
    -------
    AnnData (or MuData) or None

    Examples
    --------
    >>> import anndata, netbic, numpy as np
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, study.network, n_modules=2, n_cells=40, n_genes=60, obs_columns=True)
    >>> adata.obsm["X_netbic"].shape, adata.varm["netbic_members"].sum(axis=0).tolist()
    ((150, 2), [60, 60])
    >>> adata.obs.columns.tolist()
    ['module_1', 'module_2']
    """
    n_components = one_of("n_components", n_components, "n_modules", n_modules)
    n_rows, n_columns = one_of("n_rows", n_rows, "n_cells", n_cells), one_of("n_columns", n_columns, "n_genes", n_genes)
    if mods is not None or kind_of(adata) == "mudata":
        others = {"n_rows": n_rows, "n_columns": n_columns, "preset": preset, "covariates": covariates}
        _check_not_given(others | {"obs_columns": obs_columns, "study_key": study_key})
        chosen = {"layer": layer, "mask_var": mask_var, "key_added": KEY if key_added == "netbic" else key_added}
        return pairs(adata, mods, graph, n_components, copy=copy, **chosen, **parameters)
    check_keywords("tl.modules", parameters, [*signature(modules).parameters, *_OF_MODEL], _MEANT)
    n_components, adata = DEFAULT_MODULES if n_components is None else n_components, writable(adata, copy)
    earlier = _check_obs_columns(adata, key_added, n_components if obs_columns else 0)
    X = read_matrix(adata, layer, kept := chosen_genes(adata, mask_var))
    genes = np.asarray(adata.var_names[kept], dtype=object)
    aligned, alignment = (None, None) if graph is None else aligned_graph(adata, graph, genes)
    model = SparseGraphSVD(n_components, n_rows=n_rows, n_columns=n_columns, column_graph=aligned, **parameters)
    _complete(model, preset, X, parameters)
    _fit(model, adata, X, genes, (covariates, study_key), key_added)
    _add_to(adata, model, X, (key_added, kept, layer), alignment)
    _write_obs_columns(adata, key_added, earlier, module_scores(model, X) if obs_columns else None)
    return adata if copy else None


def _fit(model: SparseGraphSVD, adata: AnnData, X: Matrix, genes: Any, columns: tuple[Any, Any], key: str) -> None:
    """Fit the model, without covariates and by studies (`columns`); warnings are for the caller of `modules`."""
    warn_before_fit(X, adata.obs_names, genes, scaled=bool(model.scale), stacklevel=4)
    with reworded({"columns": "genes", "diagnostics_": f'uns["{key}"]["diagnostics"]'}, stacklevel=5):
        given, studies = covariates_in(adata, columns[0]), studies_in(adata, columns[1])
        deque(model.iter_fit(X, names=(adata.obs_names, pd.Index(genes)), covariates=given, studies=studies), maxlen=0)


def _add_to(
    adata: AnnData, model: SparseGraphSVD, X: Matrix, how: tuple[str, Any, str | None], alignment: Alignment | None
) -> None:
    """Store the model (by a key, for genes of a layer), the scores of all cells, and how the graph was matched."""
    key, kept, layer = how
    store(adata, model, key, kept, layer)
    adata.obsm[f"X_{key}"] = own_scores(model, X)
    adata.uns[key] |= {} if alignment is None else {"alignment": json.dumps(alignment.to_dict())}


def _check_not_given(parameters: Mapping[str, object]) -> None:
    """Raise if there are parameters that pairs of two modalities do not have."""
    for name, value in parameters.items():
        if value is not None and value is not False:
            remedy = "use n_features={modality: number}" if name == "n_columns" else "leave it out"
            raise InputError(f"{name}={value!r} is for AnnData objects, not for two modalities of MuData: {remedy}")


def _complete(model: SparseGraphSVD, preset: str | None, X: Matrix, given: dict[str, Any]) -> None:
    """Set the parameters that are not given: the sizes, and those of a preset."""
    if model.n_columns is None and model.column_penalty is None:
        model.set_params(**usual_settings(X.shape, model))
    if preset is None:
        return
    check_choice("preset", preset, ("nonnegative",), InputError)
    if both := [name for name in _OF_PRESET if name in given]:
        raise InputError(f"preset={preset!r} sets {both[0]}: leave out one of them")
    if kind_of(X) != "dask" and stored_values(X).min(initial=0.0) < 0:
        raise InputError(f"preset={preset!r} but the data have negative values: use them before centring and scaling")
    model.set_params(
        center=None,
        row_penalty=_nonnegative(model.row_penalty, model.n_rows),
        column_penalty=_nonnegative(model.column_penalty, model.n_columns),
        n_rows=None,
        n_columns=None,
    )


def _nonnegative(penalty: Penalty | None, size: int | None) -> Penalty:
    """The same penalty, or that of a size, for weights that are positive or zero."""
    if penalty is None:
        return Dense(nonnegative=True) if size is None else L0(size, nonnegative=True)
    return replace(penalty, nonnegative=True)


def _check_obs_columns(adata: AnnData, key: str, n_modules: int) -> list[str]:
    """The columns of obs that earlier modules wrote; raises if others would be replaced."""
    earlier = [str(name) for name in adata.uns.get(key, {}).get(_OBS_COLUMNS, ())]
    present = set(adata.obs.columns) - set(earlier)
    if others := [name for name in columns_of_modules(key, n_modules) if name in present]:
        raise InputError(f"obs has a column {others[0]!r} already: rename it, or choose another `key_added`")
    return earlier


def _write_obs_columns(adata: AnnData, key: str, earlier: list[str], scores: NDArray[np.float64] | None) -> None:
    """Store scores as columns of obs, and remove those of earlier modules."""
    for name in earlier:
        if name in adata.obs.columns:
            del adata.obs[name]
    if scores is not None:
        names = columns_of_modules(key, scores.shape[1])
        for name, column in zip(names, scores.T, strict=True):
            adata.obs[name] = column
        adata.uns[key][_OBS_COLUMNS] = np.array(names, dtype=object)
