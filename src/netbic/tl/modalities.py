"""Pairs of two modalities of MuData objects."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import Array, Matrix, check_choice, kind_of, to_dense
from netbic.enrichment import shared_names
from netbic.errors import InputError, import_optional, shown
from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.graph import Graph
from netbic.io.dataset import check_keywords, fit_by_name
from netbic.methods import usual_sizes
from netbic.selection import pair_tests
from netbic.storage.models import ModelState, PairModel, model_from, settings_of, state_of
from netbic.storage.tables import SIDES, pairs_table
from netbic.tl import objects

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

PAIRS_KEY: Final = "netbic_pairs"
DEFAULT_PAIRS: Final = 3
MOST_PAIRS: Final = 10  # if their number comes from the data
_METHODS: Final[dict[str, type[PairModel]]] = {"cca": SparseGraphCCA, "pls": SparseGraphPLS}
_MEANT_IN_PAIRS = {
    **dict.fromkeys(("n_x", "n_y", "n_genes", "n_columns"), "n_features"),
    **dict.fromkeys(("x_graph", "y_graph", "graphs", "network"), "graph"),
    **dict.fromkeys(("x_smoothness", "y_smoothness"), "smoothness"),
    **dict.fromkeys(("x_penalty", "y_penalty"), "penalty"),
}


class Modality(NamedTuple):
    """One of the two modalities, with the parameters of the estimator about it."""

    name: str
    adata: AnnData
    kept: NDArray[np.intp]  # features that are used
    matrix: Matrix  # of these features in all cells of the modality
    features: Array  # their names
    settings: dict[str, Any]


def pairs(
    mdata: MuData,
    mods: Sequence[str] | None = None,
    graph: Mapping[str, Any] | None = None,
    n_components: int | None = None,
    *,
    n_pairs: int | None = None,
    n_features: Mapping[str, int] | None = None,
    method: str = "cca",
    smoothness: Mapping[str, float] | None = None,
    penalty: Mapping[str, Any] | None = None,
    layer: Mapping[str, str] | None = None,
    mask_var: Mapping[str, Any] | None = None,
    n_permutations: int = 0,
    key_added: str = PAIRS_KEY,
    copy: bool = False,
    **parameters: Any,
) -> MuData | None:
    """Find features of two modalities that vary together in the cells of both, and store them in the MuData object.

    Cells are matched by name. What is given for one modality is given by its name: `n_features={"rna": 50}`.

    Parameters
    ----------
    mdata : MuData
        With both modalities in memory, preprocessed. Sparse matrices stay sparse.
    mods : pair of str
        Names of two modalities. Default: both, if there are two. With `method="pls"` the first one predicts the second.
    graph : mapping of modality to graph, optional
        Prior graphs of the features, as for :func:`modules`.
    n_components, n_pairs : int, optional
        Number of pairs (either name). Default: 3 or, with permutations, until two in a row are doubtful, 10 at
        most.
    n_features : mapping of modality to int, optional
        Features of a modality in each pair. Default: 1.5% of the features, 50 to 200, but at most a fifth of them.
    method : {"cca", "pls"}
        :class:`netbic.SparseGraphCCA` or :class:`netbic.SparseGraphPLS`.
    smoothness, penalty : mapping of modality to float or penalty, optional
        Weights of the graphs; penalties instead of numbers of features.
    layer, mask_var : mapping of modality to what `modules` takes, optional
        Layers to use instead of X; features to use (default: highly variable ones, as for :func:`modules`).
    n_permutations : int
        Test the pairs with so many permutations of the cells (:func:`netbic.selection.pair_tests`); verdicts,
        held-out correlations and p-values become columns of the table of pairs. Cells have to be independent: samples
        of patients, not many cells of a donor. 0: pairs are not tested.
    key_added : str
        Key under which results are stored.
    copy : bool
        Return a copy with the results instead of writing them into `mdata`.
    **parameters
        Others of the estimator, such as `missing="ignore"`, `deflation` or `covariance`.

    Returns
    -------
    MuData or None
        In each modality `varm[key]` (weights of the features: a table with the columns `pair_1`, ..., or `key_1` with
        another key), `obsm["X_" + key]` (scores of all cells of the modality, also of those that are not in the other
        one) and `varp[key]` (the graph). In `mdata.uns[key]`: `pairs`, a table with a row per pair, `mods`, `class`,
        `settings`, numbers of cells, and `model`, from which :func:`from_mudata` makes the fitted model.

    Examples
    --------
    >>> import anndata, mudata, netbic, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> cells = [f"cell {k}" for k in range(60)]
    >>> X = pd.DataFrame(random.standard_normal((60, 40)), cells, [f"gene {k}" for k in range(40)])
    >>> Y = pd.DataFrame(random.standard_normal((60, 12)), cells, [f"protein {k}" for k in range(12)])
    >>> Y.iloc[:, :3] += X.iloc[:, :8].sum(axis=1).to_numpy()[:, None]
    >>> mdata = mudata.MuData({"rna": anndata.AnnData(X), "prot": anndata.AnnData(Y[::-1])})  # in any order
    >>> netbic.tl.pairs(mdata, ("rna", "prot"), n_pairs=1, n_features={"rna": 8, "prot": 3})
    >>> mdata["prot"].var_names[mdata["prot"].varm["netbic_pairs"]["pair_1"] != 0].tolist()
    ['protein 0', 'protein 1', 'protein 2']
    """
    by_name = {"graph": graph, "n_features": n_features, "smoothness": smoothness, "penalty": penalty}
    by_name |= {"layer": layer, "mask_var": mask_var}
    check_choice("method", method, _METHODS, InputError)
    of_model = [name for name in signature(_METHODS[method]).parameters if name not in _MEANT_IN_PAIRS]
    check_keywords("tl.pairs", parameters, [*signature(pairs).parameters, *of_model], _MEANT_IN_PAIRS)
    most = MOST_PAIRS if n_permutations and n_components is None and n_pairs is None else None
    n_components = objects.one_of("n_components", n_components, "n_pairs", n_pairs, most or DEFAULT_PAIRS)
    mods = _check_modalities(mdata, mods, by_name)
    mdata = mdata.copy() if copy else mdata
    first, second = (_modality(mdata, name, side, by_name) for name, side in zip(mods, SIDES, strict=True))
    names = [each.adata.obs_names for each in (first, second)]
    cells = names[0][names[0].isin(names[1])]
    if len(cells) < 3:
        some = [", ".join(map(str, own[:3])) for own in names]
        raise InputError(
            f"{first.name!r} and {second.name!r} have {len(cells)} cells in common ({first.name}: {some[0]}, ...; "
            f"{second.name}: {some[1]}, ...): cells are matched by name (obs_names)"
        )
    model = _METHODS[method](n_components, **first.settings, **second.settings, **parameters)
    for each in (first, second):
        objects.warn_before_fit(each.matrix, each.adata.obs_names, each.features, scaled=True, modality=each.name)
    tables = [each.matrix[own.get_indexer(cells)] for each, own in zip((first, second), names, strict=True)]
    with warnings.catch_warnings(record=True) as given:
        fit_by_name(model, tables[0], tables[1], cells, first.features, second.features, (first.name, second.name))
    about = [shared_names(model)]
    if n_permutations and model.n_components_:
        both = zip(tables, (first.features, second.features), strict=True)
        dense = [pd.DataFrame(to_dense(table, np.float64), cells, own) for table, own in both]
        with warnings.catch_warnings(action="ignore"):  # those of the same fit were shown
            options: Any = {"n_permutations": n_permutations, "random_state": model.random_state, "most": most}
            about.append((tested := pair_tests(model, *dense, **options)).table)
        if most is not None:  # the same pairs, without those that are not tested
            model.set_params(n_components=len(tested.table))
            with warnings.catch_warnings(record=True) as given:
                fit_by_name(model, tables[0], tables[1], cells, first.features, second.features, mods)
            about[0] = shared_names(model)
    for warning in given:  # again, for the caller
        warnings.warn(warning.message, warning.category, stacklevel=2)
    table = pairs_table(model, *(each for each in about if each is not None))
    _store(mdata, model, (first, second), key_added, table, len(cells))
    return mdata if copy else None


def _check_modalities(mdata: object, mods: Sequence[str] | None, by_name: Mapping[str, Any]) -> tuple[str, str]:
    """The names of the two modalities."""
    import_optional("mudata", "mudata", "a MuData object")
    if kind_of(mdata) != "mudata":
        raise TypeError(f"expected a MuData object, got {type(mdata).__name__}: for one modality leave out `mods`")
    known = list(mdata.mod)  # type: ignore[attr-defined]
    listed = ", ".join(map(shown, known)) or "none"
    if getattr(mdata, "axis", 0) != 0:
        raise InputError(
            "the modalities of this MuData object share their features, not their cells (axis=0 is needed)"
        )
    mods = known if mods is None and len(known) == 2 else mods
    if mods is None or isinstance(mods, str) or len(mods) != 2 or mods[0] == mods[1]:
        raise InputError(
            f"mods={mods!r}: give the names of two modalities, e.g. mods=('rna', 'prot') (there are: {listed})"
        )
    for name in mods:
        if name not in known:
            raise InputError(f"mods={tuple(mods)!r}: there is no modality {shown(str(name))} (there are: {listed})")
    for parameter, given in by_name.items():
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"{parameter} has to name the modality: {parameter}={{{mods[0]!r}: ...}}")
        for name in given or ():
            if name not in mods:
                raise InputError(f"{parameter} names {shown(str(name))}, which is not in mods={tuple(mods)!r}")
    return mods[0], mods[1]


def _modality(mdata: MuData, name: str, side: str, by_name: Mapping[str, Any]) -> Modality:
    adata, own = mdata.mod[name], {parameter: (given or {}).get(name) for parameter, given in by_name.items()}
    if not adata.obs_names.is_unique:
        twice = adata.obs_names[adata.obs_names.duplicated()][0]
        raise InputError(f"cell {shown(str(twice))} occurs twice in {name!r}: cells are matched by name")
    mask = objects.usual_mask(adata, (by_name["mask_var"] or {}).get(name, objects.AUTO))
    kept = objects.chosen_genes(adata, mask)
    matrix = objects.read_matrix(adata, own["layer"], kept)
    if kind_of(matrix) == "dask":
        raise InputError(f"{name!r} is not in memory, which pairs need: use mdata.mod[{name!r}].to_memory()")
    features = np.asarray(adata.var_names[kept], dtype=object)
    graph = None if own["graph"] is None else objects.aligned_graph(adata, own["graph"], features)[0]
    size, most = own["n_features"], len(kept)
    if size is not None and size > most:
        what = f"n_features={{{name!r}: {size}}} but {name!r} has {most} features"
        raise InputError(f"{what}: choose 1 to {most}")
    if size is None and own["penalty"] is None:
        size = usual_sizes(*matrix.shape)[1]
    about = {"graph": graph, "penalty": own["penalty"], "smoothness": own["smoothness"]}
    settings = {f"n_{side}": size} | {f"{side}_{parameter}": value for parameter, value in about.items()}
    return Modality(name, adata, kept, matrix, features, settings)


def _store(
    mdata: MuData, model: PairModel, both: tuple[Modality, Modality], key: str, table: pd.DataFrame, n_cells: int
) -> None:
    """Write a fitted model and the table of its pairs into a MuData object."""
    for modality, side in zip(both, SIDES, strict=True):
        adata, size = modality.adata, int(modality.adata.n_vars)
        weights = np.zeros((size, model.n_components_))
        weights[modality.kept] = getattr(model, f"{side}_weights_")
        columns = objects.columns_of_modules(key, model.n_components_)
        adata.varm[key] = pd.DataFrame(weights, index=adata.var_names, columns=columns)
        adata.obsm[f"X_{key}"] = model.scores_of(side, modality.matrix)
        adata.varp.pop(key, None)
        if (graph := modality.settings[f"{side}_graph"]) is not None:
            adata.varp[key] = objects.graph_matrix(graph, modality.kept, size)
    mdata.uns[key] = {
        "pairs": objects.storable(table),
        "mods": np.array([modality.name for modality in both], dtype=object),
        "class": type(model).__name__,
        "settings": json.dumps(settings_of(model.get_params(deep=False))),
        "model": _pair_state(model),
        "n_cells": {modality.name: int(modality.adata.n_obs) for modality in both} | {"both": n_cells},
        "netbic": __version__,
    }


def _pair_state(model: PairModel) -> dict[str, Any]:
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
