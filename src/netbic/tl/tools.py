"""Modules of AnnData objects: counted, found, scored, judged, compared with what is known about the cells."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from netbic.arrays import Matrix, check_choice, kind_of, stored_values
from netbic.association.variables import listed_names
from netbic.comparison.left_out import leave_one_study_out as leave_out
from netbic.errors import InputError, shown
from netbic.estimators.covariates import covariate_names, own_covariates
from netbic.estimators.prediction import module_scores
from netbic.estimators.studies import shared_by
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.io.dataset import check_keywords, scores_by_name
from netbic.penalties import L0, BeyondBulk, Dense
from netbic.selection import SampleGroups
from netbic.selection import n_modules as count
from netbic.selection import stability as assess
from netbic.selection import verdicts as judge
from netbic.solver.count import MOST_MODULES
from netbic.tl import objects
from netbic.tl.modalities import PAIRS_KEY, pairs

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

_OF_MODEL = [name for name in signature(SparseGraphSVD).parameters if name != "column_graph"]
_MEANT = {"n_samples": "n_rows", "column_graph": "graph", "network": "graph", "key": "key_added"}
_OF_PRESET = ("center", "row_penalty", "column_penalty", "signs")  # parameters that the preset sets
OBS_COLUMNS = "obs_columns"  # in uns: the columns of obs that the modules wrote


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
    mask_var: Any = objects.AUTO,
    covariates: str | Sequence[str] | pd.DataFrame | None = None,
    study_key: str | None = None,
    obs_columns: bool = False,
    random_state: Any = 0,
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
        Genes per module (either name). Default: for each module, those that stand out;
        `uns[key]["modules"]["size_reason"]` says why there are so many.
    preset : {"nonnegative"}, optional
        Modules as programs and their usages, as in non-negative matrix factorisation: all weights of genes and cells
        are positive or zero, and genes are not centred. X must have no negative values (log-normalised, not scaled).
        A module is then a set of genes that are expressed together, never one that is low where another one is high;
        the first module is usually what all cells express. `obsm["netbic"]` contains the usages.
    layer : str, optional
        Layer to use instead of X.
    mask_var : str or boolean array, optional
        Genes to use: a mask, or the name of a boolean column of `var`. Default: "highly_variable" if there is such a
        column, as in scanpy's PCA, and a line is printed that says so; None uses all genes. Other genes are in no
        module: their weights are zero.
    covariates : list of str or DataFrame, optional
        Columns of `obs` (such as `["batch"]`), or a table, whose effects are removed from the data before the search;
        see `SparseGraphSVD.fit`. Categories and text are groups, numbers are used as numbers.
    study_key : str, optional
        Column of `obs` with the study of each cell: each study is centred and scaled by itself, and modules are judged
        in each of them (`uns[key]["studies"]`); see the page "Several studies".
    obs_columns : bool
        Also store the scores Xv of the cells as columns of `obs`: `module_1`, `module_2`, ..., for
        `sc.pl.umap(adata, color="module_1")`; with another `key_added`, `key_1`, `key_2`, ...
    random_state : int, RandomState, Generator or None
        Seed of random starts, if `n_init` asks for any (by default nothing is random).
    key_added : str
        Key under which results are stored: the page "AnnData and scanpy" lists what is stored where. Earlier modules
        under the same key are replaced.
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
    >>> adata.obsm["X_netbic"].shape, (adata.varm["netbic"] != 0).sum().to_dict()
    ((150, 2), {'module_1': 60, 'module_2': 60})
    >>> adata.obs.columns.tolist()
    ['module_1', 'module_2']
    """
    n_components = objects.one_of("n_components", n_components, "n_modules", n_modules)
    n_rows = objects.one_of("n_rows", n_rows, "n_cells", n_cells)
    n_columns = objects.one_of("n_columns", n_columns, "n_genes", n_genes)
    if mods is not None or kind_of(adata) == "mudata":
        own: dict[str, Any] = {"n_rows": n_rows, "n_columns": n_columns, "preset": preset, "covariates": covariates}
        for name, value in (own | {"obs_columns": obs_columns, "study_key": study_key}).items():
            if value is not None and value is not False:
                remedy = "use n_features={modality: number}" if name == "n_columns" else "leave it out"
                raise InputError(f"{name}={value!r} is for AnnData objects, not for two modalities of MuData: {remedy}")
        masks = None if isinstance(mask_var, str) and mask_var == objects.AUTO else mask_var
        chosen = {"layer": layer, "mask_var": masks, "key_added": PAIRS_KEY if key_added == "netbic" else key_added}
        return pairs(adata, mods, graph, n_components, copy=copy, **chosen, random_state=random_state, **parameters)
    check_keywords("tl.modules", parameters, [*signature(modules).parameters, *_OF_MODEL], _MEANT)
    adata, number = objects.writable(adata, copy), "auto" if n_components is None else n_components
    objects.check_key(adata, key_added)
    earlier = [str(name) for name in adata.uns.get(key_added, {}).get(OBS_COLUMNS, ())]
    most: Any = MOST_MODULES if number == "auto" else number
    columns = objects.columns_of_modules(key_added, most if obs_columns else 0)
    if taken := [name for name in columns if name in adata.obs.columns and name not in earlier]:
        raise InputError(f"obs has a column {taken[0]!r} already: rename it, or choose another `key_added`")
    mask_var = objects.usual_mask(adata, mask_var)
    X = objects.read_matrix(adata, layer, kept := objects.chosen_genes(adata, mask_var))
    genes = np.asarray(adata.var_names[kept], dtype=object)
    aligned, alignment = (None, None) if graph is None else objects.aligned_graph(adata, graph, genes)
    sizes: dict[str, Any] = {"n_rows": n_rows, "n_columns": n_columns}
    model = SparseGraphSVD(number, **sizes, column_graph=aligned, random_state=random_state, **parameters)
    if preset is not None:
        _set_preset(model, preset, X, parameters)
    objects.warn_before_fit(X, adata.obs_names, genes, scaled=model.scaled_for(X).scale_power > 0.5)
    given = {"covariates": _covariates_in(adata, covariates), "studies": _studies_in(adata, study_key)}
    names = adata.obs_names, pd.Index(genes)
    deque(model.iter_fit(X, names=names, feature_name="gene", sample_name="cell", **given), maxlen=0)
    objects.store(adata, model, key_added, kept, layer, mask_var=mask_var, scores=module_scores(model, X))
    adata.uns[key_added] |= {} if alignment is None else {"alignment": json.dumps(alignment.to_dict())}
    if study_key is not None and model.studies_ is not None:
        adata.uns[key_added]["params"]["study_key"] = study_key
        adata.uns[key_added]["modules"]["studies"] = shared_by(model.studies_, study_key)
    for name in adata.obs.columns.intersection(earlier):
        del adata.obs[name]
    if obs_columns:
        columns = objects.columns_of_modules(key_added, model.n_components_)
        for name, column in zip(columns, adata.obsm[f"X_{key_added}"].T, strict=True):
            adata.obs[name] = column
        adata.uns[key_added][OBS_COLUMNS] = np.array(columns, dtype=object)
    return adata if copy else None


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
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Compute the scores Xv of cells on modules that were found in other cells.

    Parameters
    ----------
    adata : AnnData
        The cells, preprocessed like those of the fit, in memory or not (see `modules`). Genes are matched by name.
        Genes of the modules that are missing are replaced by their means, with a warning. Scores are NaN for modules
        of which fewer than 5 genes (unless a module has no others) or fewer than a fifth are there.
    reference : AnnData or SparseGraphSVD, optional
        Where the modules are stored. Default: in `adata`.
    key : str
        Key of the modules in `reference`.
    layer : str, optional
        Layer to use. Default: the one the modules were found in.
    covariates : list of str or DataFrame, optional
        Columns of `obs`, or a table, with the covariates of the fit. Default: columns of `obs` of the same names.
    study_key : str, optional
        Column of `obs` with the study of each cell, for modules that were found in several studies.
    key_added : str, optional
        Scores are stored as `obsm["X_" + key_added]`, an array with a column per module. Default: `key`.
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
    if source is not adata and objects.has_other_modules(adata, model, added := key_added or key):
        raise InputError(f"adata has other modules {shown(added)}, whose scores would be lost: choose a `key_added`")
    X = objects.read_matrix(adata, layer, np.arange(adata.n_vars))
    objects.warn_before_fit(X, adata.obs_names, adata.var_names, scaled=True, only=("raw counts", "not logarithms"))
    wanted = covariate_names(model)
    given = _covariates_in(adata, wanted if covariates is None else covariates) if wanted else covariates
    studies = _studies_in(adata, study_key)
    about = adata.var_names, given, adata.obs_names, studies
    adata.obsm[f"X_{key_added or key}"] = scores_by_name(model, X, *about)
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
    """Store which cells each module is up or down in.

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
        `obsm[key + "_groups"]` is a DataFrame with a categorical column per module ("up", "down", or missing if a cell
        belongs to neither), named `module_1_group`, `module_2_group`, ... (with another key, `key_1_group`, ...);
        `uns[key]["groups"]` is the table of `netbic.selection.group_summary`.

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
    ['up in 24 and down in 16 of 200 cells']
    """
    adata = objects.writable(adata, copy)
    model = objects.from_anndata(adata, key)
    X, names = objects.matrix_of_model(adata, key), list(adata.obs_names)
    found = SampleGroups.find(model, X, names=names, covariates=own_covariates(model), sample_name="cell")
    shape = (model.n_components_, adata.n_obs)
    groups = found.table["group"].to_numpy(dtype=object).reshape(shape)
    categories = pd.CategoricalDtype(["down", "up"])  # "" is neither: a missing value, which scanpy draws in grey
    named = zip(objects.columns_of_modules(key, len(groups)), groups, strict=True)
    columns = {f"{name}_group": pd.array(own, dtype=categories) for name, own in named}
    adata.obsm[f"X_{key}"] = np.ascontiguousarray(found.table["score"].to_numpy(dtype=np.float64).reshape(shape).T)
    adata.obsm[f"{key}_groups"] = pd.DataFrame(columns, index=adata.obs_names)
    adata.uns[key]["groups"] = objects.storable(found.summary)
    return adata if copy else None


def verdicts(
    adata: AnnData,
    *,
    groups: str | ArrayLike | None = None,
    n_pairs: int = 12,
    key: str = "netbic",
    random_state: Any = 0,
    n_jobs: int | str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Judge every module in cells that were not used to find it, and store the verdicts.

    See :func:`netbic.selection.verdicts` for how modules are judged. Cells of one donor are not independent: give the
    donors as `groups`; with fewer than 20 donors, each is left out in turn.

    Parameters
    ----------
    adata : AnnData
        After `modules`, with the matrix in memory.
    groups : str or array, optional
        Labels of cells that belong together, such as those of a donor: a column of `obs`, or an array.
    n_pairs, random_state, n_jobs
        As for :func:`netbic.selection.verdicts`.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["verdicts"]` is the table of :class:`netbic.selection.Verdicts`, a row per module;
        `uns[key]["genes"]` its features, a row per module and gene; `varm[f"{key}_confidence"]` the confidence of each
        gene in each module, missing for other genes; `uns[key]["verdicts_params"]` says which groups were kept
        together, and in what the modules were judged, such as "7 donors, each left out in turn".

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, n_components=2, n_rows=200, n_columns=60)
    >>> netbic.tl.verdicts(adata, n_pairs=4)
    >>> adata.uns["netbic"]["verdicts"]["verdict"].tolist()
    ['strong', 'doubtful']
    """
    adata = objects.writable(adata, copy)
    model, X = objects.from_anndata(adata, key), _in_memory(adata, key, "verdicts")
    column = groups if isinstance(groups, str) else "" if groups is None else "an array"
    if isinstance(groups, str):
        objects.check_obs(adata, [groups], "groups")
        groups = pd.Series(adata.obs[groups].to_numpy(), name=groups)
    options: dict[str, Any] = {"n_pairs": n_pairs, "random_state": random_state, "n_jobs": n_jobs}
    found = judge(model, X, groups=groups, **options, feature_name="gene", sample_name="cell")
    adata.uns[key] |= {"verdicts": objects.storable(found.table), "genes": objects.storable(found.features)}
    adata.uns[key]["verdicts_params"] = {"groups": column, "judged_in": f"{found.n_pairs} {found.unit}"}
    names = objects.columns_of_modules(key, model.n_components_)
    table = found.features.assign(module=[names[module - 1] for module in found.features["module"]])
    confidence = table.pivot_table("confidence", "gene", "module", "first") if len(table) else pd.DataFrame()
    adata.varm[f"{key}_confidence"] = confidence.reindex(index=adata.var_names, columns=names)
    return adata if copy else None


def n_modules(
    adata: AnnData,
    *,
    layer: str | None = None,
    mask_var: Any = objects.AUTO,
    covariates: str | Sequence[str] | pd.DataFrame | None = None,
    most: int = 20,
    n_permutations: int = 19,
    key_added: str = "netbic_n_modules",
    random_state: Any = 0,
    n_jobs: int | str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Count the modules that stand out against noise, before they are searched for.

    See :func:`netbic.selection.n_modules` for the test. It takes far longer than `modules`, which counts modules that
    are found again in halves of the cells, and treats cells as independent. It looks for modules one after another and
    stops at the first that does not stand out (of cells, whose modules are alike, often early): a lower bound.

    Parameters
    ----------
    adata : AnnData
        As for `modules`, in memory. The matrix is made dense.
    layer, mask_var, covariates
        As for `modules`.
    most, n_permutations, random_state, n_jobs
        As for :func:`netbic.selection.n_modules`.
    key_added : str
        Key in `uns`.
    copy : bool
        Return a copy with the result instead of writing it into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key_added]`: the number `n`, the `verdict` in words, and the `table` of
        :class:`netbic.selection.ModuleCount`, a row per module tested.

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.5, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.n_modules(adata, most=4)
    >>> adata.uns["netbic_n_modules"]["n"]
    2
    """
    adata = objects.writable(adata, copy)
    X = objects.read_matrix(adata, layer, objects.chosen_genes(adata, objects.usual_mask(adata, mask_var)))
    given = _covariates_in(adata, covariates)
    options: dict[str, Any] = {"most": most, "n_permutations": n_permutations, "n_jobs": n_jobs}
    found = count(SparseGraphSVD(), X, covariates=given, **options, random_state=random_state)
    adata.uns[key_added] = {"n": found.n, "verdict": found.verdict, "table": objects.storable(found.table)}
    return adata if copy else None


def stability(
    adata: AnnData,
    *,
    n_pairs: int = 50,
    threshold: float | None = None,
    max_false: float | None = None,
    key: str = "netbic",
    random_state: Any = 0,
    n_jobs: int | str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Store how often each gene is selected in halves of the cells, and which genes are stable members of modules.

    See :func:`netbic.selection.stability` for the method, and its assumptions.

    Parameters
    ----------
    adata : AnnData
        After `modules`, with the matrix in memory.
    n_pairs, threshold, max_false, random_state, n_jobs
        As for :func:`netbic.selection.stability`.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["stability"]` is the table of :class:`netbic.selection.Stability`, a row per module;
        `varm[key + "_stability"]` the frequency of each gene in each module, a column per module.

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, n_modules=2, n_genes=60)
    >>> netbic.tl.stability(adata, n_pairs=5)
    >>> adata.uns["netbic"]["stability"][["module", "found"]].to_dict("list")
    {'module': [1, 2], 'found': [1.0, 1.0]}
    >>> adata.varm["netbic_stability"].columns.tolist()
    ['module_1', 'module_2']
    """
    adata = objects.writable(adata, copy)
    model, X = objects.from_anndata(adata, key), _in_memory(adata, key, "stability")
    limits: dict[str, Any] = {"n_pairs": n_pairs, "threshold": threshold, "max_false": max_false, "n_jobs": n_jobs}
    found = assess(model, X, covariates=own_covariates(model), **limits, random_state=random_state)
    adata.uns[key]["stability"] = objects.storable(found.table)
    if found.columns is not None:
        frequency = pd.DataFrame(0.0, adata.var_names, objects.columns_of_modules(key, model.n_components_))
        frequency.loc[objects.used_genes(adata, key)] = found.columns.frequency.to_numpy()
        adata.varm[f"{key}_stability"] = frequency
    return adata if copy else None


def leave_one_study_out(
    adata: AnnData,
    *,
    n_draws: int = 1000,
    key: str = "netbic",
    progress: Callable[[int, int], object] | None = None,
    random_state: Any = 0,
    n_jobs: int | str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Leave out each study (or donor) in turn, find the modules without it, and look for them in it.

    See :func:`netbic.leave_one_study_out`. What is left out are the studies of `modules(study_key="donor")`. It answers
    in which donors each module holds that were not used to find it; `verdicts(groups="donor")` gives one answer for all
    of them together. Modules are searched for again without each donor, which takes as long as so many calls of
    `modules`: `progress=print` shows how far it is.

    Parameters
    ----------
    adata : AnnData
        After `modules` with a `study_key`, with the matrix in memory.
    n_draws, progress, random_state, n_jobs
        As for :func:`netbic.leave_one_study_out`.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["left_out"]` is the table of :class:`netbic.comparison.LeftOut`, a row per module and study;
        the column `left_out` of `uns[key]["modules"]` says for each module in how many it is replicated.

    Examples
    --------
    >>> import anndata, netbic
    >>> simulated = netbic.simulate.studies((60, 80, 100), 400, lives=((0, 1, 2), (1,)), random_state=0)
    >>> adata = anndata.AnnData(simulated.X)
    >>> adata.obs["donor"] = simulated.studies
    >>> netbic.tl.modules(adata, n_modules=2, n_genes=50, scale=True, study_key="donor")
    >>> netbic.tl.leave_one_study_out(adata)
    >>> adata.uns["netbic"]["modules"]["left_out"].tolist()
    ['replicated in 3 of 3 donors left out', 'replicated in 0 of 3 donors left out']
    >>> adata.uns["netbic"]["left_out"].query("module == 1")["verdict"].tolist()
    ['replicated', 'replicated', 'replicated']
    """
    adata = objects.writable(adata, copy)
    model, X = objects.from_anndata(adata, key), _in_memory(adata, key, "leave_one_study_out")
    if model.studies_ is None:
        raise InputError(
            f"the modules {shown(key)} were found in all cells as one study: run tl.modules with the column of obs "
            'whose levels are left out, such as study_key="donor"'
        )
    names = covariate_names(model)
    given = _covariates_in(adata, names) if names else None
    options: dict[str, Any] = {"n_draws": n_draws, "progress": progress, "random_state": random_state, "n_jobs": n_jobs}
    study_name = str(adata.uns[key]["params"].get("study_key", "study"))
    found = leave_out(model, X, covariates=given, **options, feature_name="gene", study_name=study_name)
    adata.uns[key]["left_out"] = objects.storable(found.table)
    adata.uns[key]["modules"]["left_out"] = found.summary.to_numpy()
    return adata if copy else None


def _in_memory(adata: AnnData, key: str, purpose: str) -> Matrix:
    """The matrix of the fit, if it is in memory."""
    X = objects.matrix_of_model(adata, key)
    if kind_of(X) == "dask":
        raise InputError(f"{purpose} needs the data in memory: use adata.to_memory() if they fit")
    return X
