"""Associations of modules with the columns of obs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from netbic.association import associate_scores
from netbic.errors import InputError
from netbic.tl.objects import from_anndata, sample_groups, storable, writable

if TYPE_CHECKING:
    from anndata import AnnData

_SCORES = re.compile(r"module_\d+")  # columns of obs that hold the modules themselves


def associate(
    adata: AnnData,
    keys: str | Iterable[str] | None = None,
    *,
    key: str = "netbic",
    types: Mapping[str, str | Sequence[object]] | None = None,
    survival: tuple[str, str] | Sequence[tuple[str, str]] | None = None,
    adjust: str | Iterable[str] | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Test which modules are associated with columns of obs, and store the tests.

    See :func:`netbic.associate` for the tests. Cells of one donor are not independent, so that p-values of donors'
    properties (treatment, disease) are far too small if there are several cells of each donor. Use them to rank
    modules, and test averages per donor.

    Parameters
    ----------
    adata : AnnData
        After `modules`. Scores and groups are computed by `sample_groups` unless they are stored.
    keys : str or list of str, optional
        Columns of obs. Default: all that can be tested.
    key : str
        Key of the modules.
    types, survival, adjust
        As of :func:`netbic.associate`: types of columns, columns with time and event, covariates.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["associations"]` and `uns[key]["variables"]` are the tables of
        :class:`netbic.association.Associations`.

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
    """
    adata = writable(adata, copy)
    from_anndata(adata, key)  # raises if there are no modules
    if f"{key}_scores" not in adata.obsm or f"{key}_groups" not in adata.obsm:
        sample_groups(adata, key=key)
    names = pd.Index(adata.obs_names)
    if names.has_duplicates:
        raise InputError(f"{names[names.duplicated()][0]!r} occurs more than once in obs_names: make names unique")
    scores = pd.DataFrame(np.asarray(adata.obsm[f"{key}_scores"]), index=names)
    groups = adata.obsm[f"{key}_groups"].astype(object).set_axis(scores.columns, axis=1)
    found = associate_scores(
        scores,
        groups.where(groups.notna(), ""),
        adata.obs.drop(columns=[name for name in adata.obs.columns if _SCORES.match(str(name))]),
        variables=[keys] if isinstance(keys, str) else keys,
        types=types,
        survival=survival,
        adjust=[adjust] if isinstance(adjust, str) else adjust,
    )
    adata.uns[key]["associations"] = storable(found.table)
    adata.uns[key]["variables"] = storable(found.variables)
    return adata if copy else None
