"""Associations of modules with the columns of obs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from netbic.association import Removed, associate_scores, listed_names
from netbic.errors import InputError
from netbic.tl.objects import from_anndata, sample_groups, storable, writable

if TYPE_CHECKING:
    from anndata import AnnData


def associate(
    adata: AnnData,
    keys: str | Iterable[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    key: str = "netbic",
    types: Mapping[str, str | Sequence[object]] | None = None,
    survival: tuple[str, str] | Sequence[tuple[str, str]] | None = None,
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

    Twenty donors with ten cells each:

    >>> adata.obs["donor"] = [f"donor {k % 20}" for k in range(200)]
    >>> adata.obs["age"] = [30 + k % 20 for k in range(200)]
    >>> netbic.tl.associate(adata, keys="age", by="donor")
    >>> adata.uns["netbic"]["associations"]["n"].unique().tolist()
    [20]
    """
    adata = writable(adata, copy)
    removed = Removed.of(from_anndata(adata, key))
    if f"{key}_scores" not in adata.obsm or f"{key}_groups" not in adata.obsm:
        sample_groups(adata, key=key)
    names = pd.Index(adata.obs_names)
    if names.has_duplicates:
        raise InputError(f"{names[names.duplicated()][0]!r} occurs more than once in obs_names: make names unique")
    scores = pd.DataFrame(np.asarray(adata.obsm[f"{key}_scores"]), index=names)
    table = adata.obs.drop(columns=_columns_of_modules(adata))
    groups = adata.obsm[f"{key}_groups"].astype(object).set_axis(scores.columns, axis=1)
    groups = groups.where(groups.notna(), "")
    for name in listed_names(by):
        if name not in table.columns:
            known = ", ".join(map(str, table.columns)) or "none"
            raise InputError(f"by={name!r} is not a column of obs (there are: {known})")
    options: dict[str, Any] = {"types": types, "survival": survival, "adjust": adjust, "by": by}
    found = associate_scores(scores, groups, table, variables=keys, **options, removed=removed)
    adata.uns[key]["associations"] = storable(found.table)
    adata.uns[key]["variables"] = storable(found.variables)
    return adata if copy else None


def _columns_of_modules(adata: AnnData) -> list[str]:
    """Columns of obs that hold the modules themselves: those that `modules` wrote, and groups that were joined."""
    written = [found.get("obs_columns", []) for found in adata.uns.values() if isinstance(found, Mapping)]
    groups = [getattr(adata.obsm.get(f"{key}_groups"), "columns", []) for key in adata.uns]
    return [name for names in [*written, *groups] for name in map(str, names) if name in adata.obs]
