"""Modules of AnnData objects: found, scored, judged, compared with what is known about the cells; pairs of MuData."""

from __future__ import annotations

import json
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import Array, Matrix, check_choice, kind_of, stored_values, to_dense
from netbic.association.associate import Removed, associate_scores
from netbic.association.variables import Survival, listed_names
from netbic.enrichment import shared_names
from netbic.errors import InputError, import_optional, shown
from netbic.estimators.covariates import covariate_names, own_covariates
from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.estimators.prediction import module_scores
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.io.dataset import check_keywords, fit_by_name, scores_by_name
from netbic.methods import usual_sizes
from netbic.penalties import L0, BeyondBulk, Dense
from netbic.selection import SampleGroups, pair_tests
from netbic.selection import verdicts as judge
from netbic.solver.count import MOST_MODULES
from netbic.storage.models import PairModel, settings_of
from netbic.storage.tables import pairs_table
from netbic.tl import objects
from netbic.tl.objects import PAIRS_KEY

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

_OF_MODEL = [name for name in signature(SparseGraphSVD).parameters if name != "column_graph"]
_MEANT = {"n_samples": "n_rows", "column_graph": "graph", "network": "graph", "key": "key_added"}
_OF_PRESET = ("center", "row_penalty", "column_penalty", "signs")  # parameters that the preset sets
DEFAULT_PAIRS: Final = 3
_METHODS: Final[dict[str, type[PairModel]]] = {"cca": SparseGraphCCA, "pls": SparseGraphPLS}
_MEANT_IN_PAIRS = {
    **dict.fromkeys(("n_x", "n_y", "n_genes", "n_columns"), "n_features"),
    **dict.fromkeys(("x_graph", "y_graph", "graphs", "network"), "graph"),
    **dict.fromkeys(("x_smoothness", "y_smoothness"), "smoothness"),
    **dict.fromkeys(("x_penalty", "y_penalty"), "penalty"),
}
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
        Number of modules (either name). Default: as many as are found again in halves of the cells, or 10 if cells are
        selected.
    mods : pair of str, optional
        Two modalities of a MuData object, whose features are paired by :func:`pairs`. `graph`, `layer` and `mask_var`
        are then mappings from a modality to what they are here, and other parameters are those of :func:`pairs`.
    n_rows, n_cells : int, optional
        Cells per module (either name). Default: all cells.
    n_columns, n_genes : int, optional
        Genes per module (either name). Default: those beyond the bulk of the weights, for each module.
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
        own: dict[str, Any] = {"n_rows": n_rows, "n_columns": n_columns, "preset": preset, "covariates": covariates}
        for name, value in (own | {"obs_columns": obs_columns, "study_key": study_key}).items():
            if value is not None and value is not False:
                remedy = "use n_features={modality: number}" if name == "n_columns" else "leave it out"
                raise InputError(f"{name}={value!r} is for AnnData objects, not for two modalities of MuData: {remedy}")
        chosen = {"layer": layer, "mask_var": mask_var, "key_added": PAIRS_KEY if key_added == "netbic" else key_added}
        return pairs(adata, mods, graph, n_components, copy=copy, **chosen, **parameters)
    check_keywords("tl.modules", parameters, [*signature(modules).parameters, *_OF_MODEL], _MEANT)
    adata, number = objects.writable(adata, copy), "auto" if n_components is None else n_components
    earlier = [str(name) for name in adata.uns.get(key_added, {}).get(_OBS_COLUMNS, ())]
    most: Any = MOST_MODULES if number == "auto" else number
    columns = objects.columns_of_modules(key_added, most if obs_columns else 0)
    if taken := [name for name in columns if name in adata.obs.columns and name not in earlier]:
        raise InputError(f"obs has a column {taken[0]!r} already: rename it, or choose another `key_added`")
    X = objects.read_matrix(adata, layer, kept := objects.chosen_genes(adata, mask_var))
    genes = np.asarray(adata.var_names[kept], dtype=object)
    aligned, alignment = (None, None) if graph is None else objects.aligned_graph(adata, graph, genes)
    model = SparseGraphSVD(number, n_rows=n_rows, n_columns=n_columns, column_graph=aligned, **parameters)
    if preset is not None:
        _set_preset(model, preset, X, parameters)
    objects.warn_before_fit(X, adata.obs_names, genes, scaled=model.scaled_for(X).scale_power > 0.5)
    given = {"covariates": _covariates_in(adata, covariates), "studies": _studies_in(adata, study_key)}
    names = adata.obs_names, pd.Index(genes)
    deque(model.iter_fit(X, names=names, feature_name="gene", **given), maxlen=0)
    objects.store(adata, model, key_added, kept, layer)
    adata.obsm[f"X_{key_added}"] = objects.own_scores(model, X)
    adata.uns[key_added] |= {} if alignment is None else {"alignment": json.dumps(alignment.to_dict())}
    for name in adata.obs.columns.intersection(earlier):
        del adata.obs[name]
    if obs_columns:
        columns = objects.columns_of_modules(key_added, model.n_components_)
        for name, column in zip(columns, module_scores(model, X).T, strict=True):
            adata.obs[name] = column
        adata.uns[key_added][_OBS_COLUMNS] = np.array(columns, dtype=object)
    return adata if copy else None


def one_of(name: str, value: int | None, other: str, other_value: int | None, default: int | None = None) -> Any:
    """The value of a parameter that has two names."""
    if value is not None and other_value is not None:
        raise InputError(f"{name}={value!r} and {other}={other_value!r} are the same parameter: give one of them")
    return next((given for given in (value, other_value) if given is not None), default)


def _set_preset(model: SparseGraphSVD, preset: str, X: Matrix, given: dict[str, Any]) -> None:
    """Set the parameters of a preset."""
    check_choice("preset", preset, ("nonnegative",), InputError)
    if both := [name for name in _OF_PRESET if name in given]:
        raise InputError(f"preset={preset!r} sets {both[0]}: leave out one of them")
    if kind_of(X) != "dask" and stored_values(X).min(initial=0.0) < 0:
        raise InputError(f"preset={preset!r} but the data have negative values: use them before centring and scaling")
    model.center = None
    for axis in ("row", "column"):  # the same penalty, or that of the size, for weights that are positive or zero
        size, penalty = getattr(model, f"n_{axis}s"), getattr(model, f"{axis}_penalty")
        if penalty is None:
            usual = Dense() if axis == "row" else BeyondBulk()
            penalty = usual if size is None else L0(size)
        model.set_params(**{f"n_{axis}s": None, f"{axis}_penalty": replace(penalty, nonnegative=True)})


def score(
    adata: AnnData,
    reference: AnnData | SparseGraphSVD | None = None,
    *,
    key: str = "netbic",
    layer: str | None = None,
    covariates: str | Sequence[str] | pd.DataFrame | None = None,
    study_key: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Compute scores of cells on modules that were found in other cells.

    Parameters
    ----------
    adata : AnnData
        The cells, preprocessed like those of the fit, in memory or not (see `modules`). Genes are matched by name.
        Genes of the modules that are missing are replaced by their means, with a warning.
    reference : AnnData or SparseGraphSVD, optional
        Where the modules are stored. Default: in `adata`.
    key : str
        Key of the modules in `reference`; scores are stored as `obsm["X_" + key]`.
    layer : str, optional
        Layer to use. Default: the one the modules were found in.
    covariates : list of str or DataFrame, optional
        Columns of `obs`, or a table, with the covariates of the fit. Default: columns of `obs` of the same names.
    study_key : str, optional
        Column of `obs` with the study of each cell, for modules that were found in several studies.
    copy : bool
        Return a copy with the scores instead of writing them into `adata`.
    """
    adata = objects.writable(adata, copy)
    source = adata if reference is None else reference
    if is_model(source):
        model = fitted_model(source)
    else:
        model = objects.from_anndata(source, key)
        layer = objects.stored_layer(source, key) if layer is None else layer
    X = objects.read_matrix(adata, layer, np.arange(adata.n_vars))
    wanted = covariate_names(model)
    given = _covariates_in(adata, wanted if covariates is None else covariates) if wanted else covariates
    studies = _studies_in(adata, study_key)
    adata.obsm[f"X_{key}"] = scores_by_name(model, X, adata.var_names, given, adata.obs_names, studies)
    return adata if copy else None


def _covariates_in(adata: AnnData, chosen: str | Sequence[str] | pd.DataFrame | None) -> pd.DataFrame | None:
    """Covariates of the cells: a table, or columns of `obs`."""
    if chosen is None or isinstance(chosen, pd.DataFrame):
        return chosen
    objects.check_obs(adata, names := listed_names(chosen), "covariates")
    return pd.DataFrame(adata.obs[names])


def _studies_in(adata: AnnData, study_key: str | None) -> Any:
    """The study of each cell: a column of `obs`."""
    objects.check_obs(adata, listed_names(study_key), "study_key")
    return None if study_key is None else adata.obs[study_key]


def sample_groups(adata: AnnData, *, key: str = "netbic", copy: bool = False) -> AnnData | None:
    """Store which cells (or samples) each module is up or down in, and their scores.

    See :func:`netbic.selection.sample_groups` for how groups are found.

    Parameters
    ----------
    adata : AnnData
        After `modules`.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `obsm[key + "_scores"]` contains the scores Xv, a column per module (`obsm["X_" + key]` are the least-squares
        scores on all modules together); `obsm[key + "_groups"]` is a DataFrame with a categorical column per module
        ("up", "down", or missing if a cell belongs to neither), named `module_1_group`, `module_2_group`, ... (with
        another key, `key_1_group`, ...); `uns[key]["groups"]` is the table of `netbic.selection.group_summary`.

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, n_components=1, n_columns=60)
    >>> netbic.tl.sample_groups(adata)
    >>> adata.obsm["netbic_groups"]["module_1_group"].value_counts().to_dict()
    {'up': 24, 'down': 16}
    >>> adata.uns["netbic"]["groups"]["result"].tolist()
    ['up in 24 and down in 16 of 200 samples']
    """
    adata = objects.writable(adata, copy)
    model = objects.from_anndata(adata, key)
    X, names = objects.matrix_of_model(adata, key), list(adata.obs_names)
    found = SampleGroups.find(model, X, names=names, covariates=own_covariates(model))
    shape = (model.n_components_, adata.n_obs)
    groups = found.table["group"].to_numpy(dtype=object).reshape(shape)
    categories = pd.CategoricalDtype(["down", "up"])  # "" is neither: a missing value, which scanpy draws in grey
    named = zip(objects.columns_of_modules(key, len(groups)), groups, strict=True)
    columns = {f"{name}_group": pd.array(own, dtype=categories) for name, own in named}
    adata.obsm[f"{key}_scores"] = np.ascontiguousarray(found.table["score"].to_numpy(dtype=np.float64).reshape(shape).T)
    adata.obsm[f"{key}_groups"] = pd.DataFrame(columns, index=adata.obs_names)
    adata.uns[key]["groups"] = objects.storable(found.summary)
    return adata if copy else None


def verdicts(adata: AnnData, *, key: str = "netbic", copy: bool = False, **options: Any) -> AnnData | None:
    """Judge every module in cells (or samples) that were not used to find it, and store the verdicts.

    See :func:`netbic.selection.verdicts` for how modules are judged. Cells of one donor are not independent: give the
    donors as `groups`; with fewer than 20 donors, each is left out in turn.

    Parameters
    ----------
    adata : AnnData
        After `modules`, with the matrix in memory.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.
    **options
        Passed to :func:`netbic.selection.verdicts`: `n_pairs`, `random_state`, `n_jobs`, and `groups`,
        which may also be the name of a column of `obs`.

    Returns
    -------
    AnnData or None
        `uns[key]["verdicts"]` is the table of :class:`netbic.selection.Verdicts`, a row per module;
        `uns[key]["genes"]` its features, a row per module and gene; `varm[f"{key}_confidence"]` the confidence of each
        gene in each module, missing for other genes.

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, n_components=2, n_rows=200, n_columns=60)
    >>> netbic.tl.verdicts(adata, n_pairs=4, random_state=0)
    >>> adata.uns["netbic"]["verdicts"]["verdict"].tolist()
    ['strong', 'doubtful']
    """
    adata = objects.writable(adata, copy)
    model = objects.from_anndata(adata, key)
    if isinstance(groups := options.get("groups"), str):
        objects.check_obs(adata, [groups], "groups")
        options["groups"] = adata.obs[groups].to_numpy()
    X = objects.matrix_of_model(adata, key)
    if kind_of(X) == "dask":
        raise InputError("verdicts need the data in memory: use adata.to_memory() if they fit")
    found = judge(model, X, **{"feature_name": "gene"} | options)
    adata.uns[key] |= {"verdicts": objects.storable(found.table), "genes": objects.storable(found.features)}
    names = objects.columns_of_modules(key, model.n_components_)
    table = found.features.assign(module=[names[module - 1] for module in found.features["module"]])
    confidence = table.pivot_table("confidence", "gene", "module", "first") if len(table) else pd.DataFrame()
    adata.varm[f"{key}_confidence"] = confidence.reindex(index=adata.var_names, columns=names)
    return adata if copy else None


def associate(
    adata: AnnData,
    keys: str | Iterable[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    key: str = "netbic",
    types: Mapping[str, str | Sequence[object]] | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Test which modules are associated with columns of obs, and store the tests.

    See :func:`netbic.associate` for the tests. Cells of one donor are not independent, so that p-values of donors'
    properties (treatment, disease) are far too small if there are several cells of each donor. Use them to rank
    modules, and test the averages of donors: `by="donor"`.

    Parameters
    ----------
    adata : AnnData
        After `modules`. Scores and groups are computed by `sample_groups` unless they are stored.
    keys : str or list of str, optional
        Columns of obs. Default: all that can be tested.
    by : str or list of str, optional
        Columns of obs, such as "donor". The scores of cells with the same values are averaged, and the averages are
        tested (pseudobulk). If each donor was measured under both conditions, use `by=["donor", "condition"]` and
        `adjust="donor"`. Cells of which a value of `by` is missing are left out, and so are columns with several values
        in one average. Groups are not tested.
    key : str
        Key of the modules.
    types, survival, adjust
        As of :func:`netbic.associate`: types of columns, columns with time and event (found by name by default),
        covariates.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["associations"]` and `uns[key]["variables"]` are the tables of
        :class:`netbic.association.Associations`, `uns[key]["association_notes"]` its notes; those of an earlier call
        are replaced.

    Warns
    -----
    UserWarning
        If columns are the same in all cells of one donor, patient and the like, and there is no `by`.

    Examples
    --------
    >>> import anndata, netbic, numpy as np
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> adata.obs["planted"] = np.where(study.samples[0], "yes", "no")
    >>> netbic.tl.modules(adata, n_components=1, n_columns=60)
    >>> netbic.tl.associate(adata, keys=["planted"])
    >>> table = adata.uns["netbic"]["associations"]
    >>> table.loc[table["test"] == "Fisher, up", ["level", "effect_name"]].to_dict("list")
    {'level': ['no', 'yes'], 'effect_name': ['odds ratio', 'odds ratio']}

    Twenty donors with ten cells each:

    >>> adata.obs["donor"] = [f"donor {k % 20}" for k in range(200)]
    >>> adata.obs["age"] = [30 + k % 20 for k in range(200)]
    >>> netbic.tl.associate(adata, keys="age", by="donor")
    >>> adata.uns["netbic"]["associations"]["n"].unique().tolist()
    [20]
    """
    adata = objects.writable(adata, copy)
    removed = Removed.of(objects.from_anndata(adata, key))
    if f"{key}_scores" not in adata.obsm or f"{key}_groups" not in adata.obsm:
        sample_groups(adata, key=key)
    names = pd.Index(adata.obs_names)
    if names.has_duplicates:
        raise InputError(f"{names[names.duplicated()][0]!r} occurs more than once in obs_names: make names unique")
    values = np.asarray(adata.obsm[f"{key}_scores"])
    scores = pd.DataFrame(values, index=names, columns=range(1, values.shape[1] + 1))
    # columns of obs that hold the modules themselves: those that `modules` wrote, and groups that were joined
    own = [found.get(_OBS_COLUMNS, []) for found in adata.uns.values() if isinstance(found, Mapping)]
    own += [getattr(adata.obsm.get(f"{other}_groups"), "columns", []) for other in adata.uns]
    table = adata.obs.drop(columns=[str(name) for each in own for name in each], errors="ignore")
    groups = adata.obsm[f"{key}_groups"].astype(object).set_axis(scores.columns, axis=1)
    groups = groups.where(groups.notna(), "")
    objects.check_obs(adata, listed_names(by), "by")
    options: dict[str, Any] = {"types": types, "survival": survival, "adjust": adjust, "by": by}
    found = associate_scores(scores, groups, table, variables=keys, **options, removed=removed)
    adata.uns[key]["associations"] = objects.storable(found.table)
    adata.uns[key]["variables"] = objects.storable(found.variables)
    adata.uns[key]["association_notes"] = np.array(found.notes, dtype=object)
    return adata if copy else None


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
        Number of pairs (either name). Default: 3.
    n_features : mapping of modality to int, optional
        Features of a modality in each pair. Default: 1.5% of the features, 50 to 200, but at most a fifth of them.
    method : {"cca", "pls"}
        :class:`netbic.SparseGraphCCA` or :class:`netbic.SparseGraphPLS`.
    smoothness, penalty : mapping of modality to float or penalty, optional
        Weights of the graphs; penalties instead of numbers of features.
    layer, mask_var : mapping of modality to what `modules` takes, optional
        Layers to use instead of X; features to use.
    n_permutations : int
        Test the pairs with so many permutations of the cells (:func:`netbic.selection.pair_tests`); p-values and
        held-out correlations become columns of the table of pairs. Cells have to be independent: samples of patients,
        not many cells of a donor. 0: pairs are not tested.
    key_added : str
        Key under which results are stored.
    copy : bool
        Return a copy with the results instead of writing them into `mdata`.
    **parameters
        Others of the estimator, such as `missing="ignore"`, `deflation` or `covariance`.

    Returns
    -------
    MuData or None
        In each modality `varm[key]` (weights of the features), `varm[key + "_members"]`, `obsm["X_" + key]` (scores of
        all cells of the modality, also of those that are not in the other one) and `varp[key]` (the graph). In
        `mdata.uns[key]`: `pairs`, a table with a row per pair, `mods`, `class`, `settings`, numbers of cells, and
        `model`, from which :func:`from_mudata` makes the fitted model.

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
    >>> mdata["prot"].var_names[mdata["prot"].varm["netbic_pairs_members"][:, 0]].tolist()
    ['protein 0', 'protein 1', 'protein 2']
    """
    by_name = {"graph": graph, "n_features": n_features, "smoothness": smoothness, "penalty": penalty}
    by_name |= {"layer": layer, "mask_var": mask_var}
    check_choice("method", method, _METHODS, InputError)
    of_model = [name for name in signature(_METHODS[method]).parameters if name not in _MEANT_IN_PAIRS]
    check_keywords("tl.pairs", parameters, [*signature(pairs).parameters, *of_model], _MEANT_IN_PAIRS)
    n_components = one_of("n_components", n_components, "n_pairs", n_pairs, DEFAULT_PAIRS)
    mods = _check_modalities(mdata, mods, by_name)
    mdata = mdata.copy() if copy else mdata
    first, second = (_modality(mdata, name, side, by_name) for name, side in zip(mods, ("x", "y"), strict=True))
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
    for warning in given:  # again, for the caller
        warnings.warn(warning.message, warning.category, stacklevel=2)
    about = [shared_names(model)]
    if n_permutations and model.n_components_:
        both = zip(tables, (first.features, second.features), strict=True)
        dense = [pd.DataFrame(to_dense(table, np.float64), cells, own) for table, own in both]
        with warnings.catch_warnings(action="ignore"):  # those of the same fit were shown
            options: Any = {"n_permutations": n_permutations, "random_state": model.random_state}
            about.append(pair_tests(model, *dense, **options).table)
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
    kept = objects.chosen_genes(adata, own["mask_var"])
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
    for modality, side in zip(both, ("x", "y"), strict=True):
        adata, size = modality.adata, int(modality.adata.n_vars)
        weights = np.zeros((size, model.n_components_))
        weights[modality.kept] = getattr(model, f"{side}_weights_")
        adata.varm[key], adata.varm[f"{key}_members"] = weights, weights != 0
        adata.obsm[f"X_{key}"] = model.scores_of(side, modality.matrix)
        adata.varp.pop(key, None)
        if (graph := modality.settings[f"{side}_graph"]) is not None:
            adata.varp[key] = objects.graph_matrix(graph, modality.kept, size)
    mdata.uns[key] = {
        "pairs": objects.storable(table),
        "mods": np.array([modality.name for modality in both], dtype=object),
        "class": type(model).__name__,
        "settings": json.dumps(settings_of(model.get_params(deep=False))),
        "model": objects.pair_state(model),
        "n_cells": {modality.name: int(modality.adata.n_obs) for modality in both} | {"both": n_cells},
        "netbic": __version__,
    }
