"""Results as tables, from a fitted model, an AnnData object, or the folder of a fit; modules are numbered from 1."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import check_choice, kind_of
from netbic.association.associate import matched_scores
from netbic.association.membership import gene_membership
from netbic.errors import InputError
from netbic.estimators.covariates import own_covariates
from netbic.estimators.prediction import module_scores
from netbic.estimators.results import names_of, position_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.files import read_table
from netbic.storage.models import fitted_pair_model, load, load_modules
from netbic.storage.runs import read_again
from netbic.storage.tables import modules_table, pairs_table, read_results_table, summary_table
from netbic.tl.objects import columns_of_modules, from_anndata, matrix_of_model, of_name

__all__ = [
    "associations_df",
    "gene_sets_df",
    "membership_df",
    "modules_df",
    "pairs_df",
    "samples_df",
    "scores_df",
    "summary_df",
    "verdicts_df",
]


def modules_df(source: Any, module: int | None = None, *, axis: str = "features", key: str = "netbic") -> pd.DataFrame:
    """The members of modules, largest absolute weight first, as in modules.tsv.

    Parameters
    ----------
    source : SparseGraphSVD, AnnData, or folder of a fit
    module : int, optional
        Its number, from 1. Default: all modules.
    axis : {"features", "samples"}
        Which members; "genes" and "cells" are other words for them.
    key : str
        Key of the modules in an AnnData object (`key_added` of `tl.modules`).

    Returns
    -------
    DataFrame
        `module`; for an AnnData object `label`, the name of the module in obs, obsm and varm (`module_1`, or `key_1`
        with another key); `name`; `weight`; `side` ("up": positive weight, "down": negative weight). In samples with
        positive weights, features of the side "up" are above their means and those of the side "down" below. If modules
        were judged, `found_again`, `kme` and `confidence` of each feature, as in :class:`netbic.selection.Verdicts`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> netbic.get.modules_df(model, module=1).head(3).round(2)
       module      name  weight side
    0       1  GENE0185    0.16   up
    1       1  GENE0435    0.16   up
    2       1  GENE0437    0.16   up
    """
    check_choice("axis", axis, ("features", "genes", "samples", "cells"), InputError)
    model = _model(source, key)
    table = modules_table(model, judged=_judged_features(source, key))
    wanted = (table["axis"] == "sample") == (axis in ("samples", "cells"))
    table = table[wanted].drop(columns="axis")
    if kind_of(source) == "anndata":
        labels = columns_of_modules(key, model.n_components_)
        table.insert(1, "label", [labels[number - 1] for number in table["module"]])
    return _chosen(table, model, module, key)


def summary_df(source: Any, *, key: str = "netbic") -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, edges inside, diagnostics, top features.

    Parameters
    ----------
    source : SparseGraphSVD, AnnData, or folder of a fit
        That of a folder is summary.tsv, with verdicts and groups of samples. Columns are about genes (`n_genes`) for
        an AnnData object and for the folder of a command, and about features (`n_features`) otherwise.
    key : str
        Key of the modules in an AnnData object.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> netbic.get.summary_df(model)[["module", "n_features", "features_up", "features_down"]]
       module  n_features  features_up  features_down
    0       1          60           35             25
    1       2          60           28             32
    """
    if isinstance(source, (str, Path)) and (known := read_results_table(Path(source), "summary")) is not None:
        return known
    feature_name = "gene" if kind_of(source) == "anndata" else "feature"
    return summary_table(_model(source, key), feature_name=feature_name)


def samples_df(source: Any) -> pd.DataFrame:
    """Score and group ("up", "down" or neither) of each sample in each module, as in samples.tsv.

    Parameters
    ----------
    source : folder of a fit
        For a model and its data, see :func:`netbic.selection.sample_groups`.

    Returns
    -------
    DataFrame
        `module`, `sample`, `score` and `group`.
    """
    if kind_of(source) == "anndata":
        raise InputError("the groups of the cells of an AnnData object are in obsm and obs: run tl.sample_groups")
    return _stored(source, "samples", "", "fit again")


def scores_df(source: Any, X: Any = None, *, key: str = "netbic", covariates: Any = None) -> pd.DataFrame:
    """The scores Xv of the samples, a row per sample and a column per module.

    Columns are called `module_1`, `module_2`, ...; with another key of an AnnData object `key_1`, `key_2`, ...

    Parameters
    ----------
    source : SparseGraphSVD, AnnData, or folder of a fit
    X : array, DataFrame or sparse matrix, optional
        The data, if the source is a model.
    key : str
        Key of the modules in an AnnData object.
    covariates : as for `SparseGraphSVD.fit`, optional
        Of the samples in X, if the model was fitted with covariates to other samples.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> netbic.get.scores_df(model, study.expression).shape
    (200, 2)
    """
    if isinstance(source, (str, Path)):
        model = load_modules(source)
        samples = names_of(model, "rows")
        known = matched_scores(samples_df(source), model.n_components_, samples)
        if known is None:
            raise InputError(f"samples.tsv in {source} is about other samples or modules: fit again")
        return _by_module(known[0].to_numpy(), samples)
    if kind_of(source) == "anndata" and f"X_{key}" in source.obsm:
        return _by_module(np.asarray(source.obsm[f"X_{key}"]), source.obs_names, key)
    model = _model(source, key)
    if kind_of(source) == "anndata":
        scores = module_scores(model, matrix_of_model(source, key), own_covariates(model))
        return _by_module(scores, source.obs_names, key)
    if X is None:
        raise InputError("the scores of a model need the data: give X")
    samples = X.index if isinstance(X, pd.DataFrame) else range(X.shape[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (has feature names|does not have valid)")  # as of a model from AnnData
        return _by_module(module_scores(model, X, covariates=covariates), samples)


def membership_df(source: Any, X: Any = None, *, key: str = "netbic") -> pd.DataFrame:
    """The membership of all features in all modules: a row per feature, a column per module, as in `scores_df`.

    It is the correlation of the feature with the scores of the module, which WGCNA calls kME; see
    :func:`netbic.association.gene_membership`.

    Parameters
    ----------
    source : SparseGraphSVD, AnnData, or folder of a fit
    X : array, DataFrame, sparse matrix or Dask array, optional
        The data, if the source is a model. Default for a folder: they are read from where they were at the fit.
    key : str
        Key of the modules in an AnnData object.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> netbic.get.membership_df(model, study.expression).loc[["GENE0345", "GENE0148"]].round(2)
              module_1  module_2
    GENE0345      0.03      0.77
    GENE0148      0.06     -0.81
    """
    model = _model(source, key)
    if X is None and kind_of(source) == "anndata":
        X = matrix_of_model(source, key)
    elif X is None and isinstance(source, (str, Path)):
        X = read_again(source).matrix
    elif X is None:
        raise InputError("the membership of features needs the data: give X")
    return _by_module(gene_membership(model, X), names_of(model, "columns"), key)


def gene_sets_df(source: Any, *, module: int | None = None, key: str = "netbic") -> pd.DataFrame:
    """Gene sets that are over-represented in modules, as in gene_sets.tsv; `netbic.enrichment.gene_sets` tests others.

    Parameters
    ----------
    source : AnnData after `tl.enrich`, or folder of a fit
    module : int, optional
        Its number, from 1. Default: all modules.
    key : str
        Key of the modules in an AnnData object.
    """
    table = _stored(source, "gene_sets", key, "run netbic enrich for a folder, tl.enrich for AnnData")
    return _chosen(table, source, module, key)


def associations_df(
    source: Any,
    *,
    module: int | None = None,
    variable: str | None = None,
    test: str | None = None,
    name: str = "",
    key: str = "netbic",
) -> pd.DataFrame:
    """Associations of modules with what is known about the samples.

    Parameters
    ----------
    source : AnnData after `tl.associate`, or folder of a fit
    module : int, optional
        Its number, from 1. Default: all modules.
    variable, test : str, optional
        Only the tests of this variable, only this test (for example "Mann-Whitney").
    name : str
        The name under which the tests were stored, if any (of `tl.associate` or of `netbic associate --name`).
    key : str
        Key of the modules in an AnnData object.

    Examples
    --------
    >>> import anndata, netbic, numpy as np
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> adata.obs["planted"] = np.where(study.samples[0], "yes", "no")
    >>> netbic.tl.modules(adata, n_modules=1, n_genes=60)
    >>> netbic.tl.associate(adata, keys=["planted"])
    >>> netbic.get.associations_df(adata, test="Mann-Whitney")[["variable", "level", "effect_name"]]
      variable level effect_name
    0  planted    no         AUC
    1  planted   yes         AUC
    """
    remedy = "run netbic associate for a folder, tl.associate for AnnData"
    table = _stored(source, of_name("associations", name), key, remedy)
    for column, chosen in (("variable", variable), ("test", test)):
        if chosen is not None:
            check_choice(column, chosen, dict.fromkeys(table[column]), InputError)
            table = table[table[column] == chosen]
    return _chosen(table, source, module, key)


def verdicts_df(source: Any, *, key: str = "netbic") -> pd.DataFrame:
    """The verdicts on the modules, a row per module.

    Parameters
    ----------
    source : AnnData after `tl.verdicts`, or folder of a fit
    key : str
        Key of the modules in an AnnData object.
    """
    table = _stored(source, "verdicts", key, "run tl.verdicts for AnnData, or fit with verdicts")
    return table.reset_index(drop=True)


def pairs_df(source: Any, *, key: str = "netbic_pairs") -> pd.DataFrame:
    """The pairs of two tables, a row per pair: sizes, correlation and top features.

    `d` is u'X'Yv in the deflated tables, `correlation` that of the scores of both tables in the samples of the fit,
    which is too large.

    Parameters
    ----------
    source : SparseGraphPLS or SparseGraphCCA, MuData after `tl.pairs`, or folder of `netbic pairs`
    key : str
        Key of the pairs in a MuData object.

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
    >>> netbic.get.pairs_df(model)["correlation"].round(2).tolist()
    [0.84]
    """
    if kind_of(source) == "mudata":
        if key not in source.uns:
            raise InputError(f"this MuData object has no pairs {key!r}: run tl.pairs")
        return pd.DataFrame(source.uns[key]["pairs"]).reset_index(drop=True)
    return pairs_table(fitted_pair_model(load(source) if isinstance(source, (str, Path)) else source))


def _model(source: Any, key: str) -> SparseGraphSVD:
    if isinstance(source, (str, Path)):
        return load_modules(source)
    if kind_of(source) == "anndata":
        return from_anndata(source, key)
    if is_model(source):
        return fitted_model(source)
    raise TypeError(
        f"source={type(source).__name__}: expected a fitted model, an AnnData object or the folder of a fit"
    )


def _judged_features(source: Any, key: str) -> pd.DataFrame | None:
    """Columns about each feature of a module, if modules were judged: with `module`, `feature` and `weight`."""
    if kind_of(source) == "anndata":
        table = source.uns.get(key, {}).get("genes")
        return None if table is None else pd.DataFrame(table).rename(columns={"gene": "feature"})
    path = Path(source) / "modules.tsv" if isinstance(source, (str, Path)) else None
    if path is None or not path.is_file() or "confidence" not in (table := read_table(path)):
        return None
    table = table[table["axis"] != "sample"].rename(columns={"name": "feature"})
    return pd.DataFrame(table.drop(columns=["axis", "side"], errors="ignore"))


def _by_module(values: np.ndarray, names: Any, key: str = "netbic") -> pd.DataFrame:
    return pd.DataFrame(values, index=pd.Index(names), columns=columns_of_modules(key, values.shape[1]))


def _stored(source: Any, name: str, key: str, remedy: str) -> pd.DataFrame:
    """A table that was stored with the modules."""
    if isinstance(source, (str, Path)):
        table = read_results_table(Path(source), name)
    elif kind_of(source) == "anndata":
        table = source.uns.get(key, {}).get(name)
    else:
        raise TypeError(f"source={type(source).__name__}: expected an AnnData object or the folder of a fit")
    if table is None:
        raise InputError(f"there is no table of {name.replace('_', ' ')}: {remedy}")
    return pd.DataFrame(table)


def _chosen(table: pd.DataFrame, source: Any, module: int | None, key: str) -> pd.DataFrame:
    """Rows of a module, or all."""
    if module is not None:
        position_of(module, _model(source, key).n_components_)
        table = table[table["module"] == module]
    return table.reset_index(drop=True)


def __dir__() -> list[str]:
    return sorted(__all__)
