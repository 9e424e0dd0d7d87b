"""What modules of AnnData objects mean: columns of obs and gene sets that go with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from netbic.association.associate import Removed, associate_scores
from netbic.association.batches import batch_effects, removed_design
from netbic.association.variables import Survival, listed_names
from netbic.enrichment import adjust_p_values
from netbic.enrichment.gene_sets import SIZES
from netbic.enrichment.gene_sets import gene_sets as over_represented
from netbic.errors import InputError, some_names
from netbic.tl import objects
from netbic.tl.tools import OBS_COLUMNS, sample_groups

if TYPE_CHECKING:
    from anndata import AnnData


def associate(
    adata: AnnData,
    keys: str | Iterable[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    within: str | None = None,
    name: str = "",
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
        After `modules`, whose groups are found by `sample_groups` unless they are stored; or after `score`, if the
        modules are those of another object: then the scores in `obsm` are tested, and no groups.
    keys : str or list of str, optional
        Columns of obs. Default: all that can be tested.
    by : str or list of str, optional
        Columns of obs, such as "donor". The scores of cells with the same values are averaged, and the averages are
        tested (pseudobulk). If each donor was measured under both conditions, use `by=["donor", "condition"]` and
        `adjust="donor"`. Numbers that differ in one average are averaged as well. Cells of which a value of `by` is
        missing are left out, and so are other columns that differ in one average: test them without `by`, under another
        `name`. Groups are not tested.
    within : str, optional
        A column of obs, such as "cell_type": the tests are made inside each of its levels, as `keys="disease",
        within="cell_type", by="donor"`. See :func:`netbic.associate`.
    name : str
        Store the tests as `uns[key]["associations_NAME"]` and so on, beside those of an earlier call.
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
        :class:`netbic.association.Associations`, `uns[key]["association_notes"]` its notes, and
        `uns[key]["association_params"]` says what was averaged and adjusted for; tests of other
        variables by an earlier call with the same `name` remain, if they were made in the same way, and are replaced,
        with a warning, if not.

    Warns
    -----
    UserWarning
        If columns are the same in all cells of one donor, patient and the like, and there is no `by`; if a batch (or
        donor) explains most of the scores of a module.

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
    >>> netbic.tl.associate(adata, keys="age", by="donor", name="donors")
    >>> adata.uns["netbic"]["associations_donors"]["n"].unique().tolist()
    [20]
    """
    adata = objects.writable(adata, copy)
    scores, groups, removed = _scores_and_groups(adata, key)
    # columns of obs that hold the modules themselves: those that `modules` wrote, and groups that were joined
    own = [found.get(OBS_COLUMNS, []) for found in adata.uns.values() if isinstance(found, Mapping)]
    own += [getattr(adata.obsm.get(f"{other}_groups"), "columns", []) for other in adata.uns]
    table = adata.obs.drop(columns=[str(column) for each in own for column in each], errors="ignore")
    for parameter, columns in {"keys": keys, "by": by, "within": within}.items():
        objects.check_obs(adata, listed_names(columns), parameter)
    options: dict[str, Any] = {"types": types, "survival": survival, "adjust": adjust, "by": by, "within": within}
    kinds = ("associations", "variables", "association_notes", "association_params")
    tables = {each: objects.of_name(each, name) for each in kinds}
    found = associate_scores(scores, groups, table, variables=keys, **options, removed=removed, sample_name="cell")
    if (model := objects.from_anndata(adata, key) if key in adata.varm else None) is not None:
        X = objects.matrix_of_model(adata, key)
        design = removed_design(model, X)
        found = found.noting(batch_effects(X, found.match.table, listed_names(keys), design=design, features="genes"))
    for note in found.of_batches:
        warnings.warn(note, UserWarning, stacklevel=2)
    asked = listed_names(keys)
    if lost := [each for each in asked if each in found.not_averaged]:
        what = "differs" if len(lost) == 1 else "differ"
        warnings.warn(
            f"{some_names(lost)} {what} within {', '.join(found.by)} and cannot be tested with `by`",
            UserWarning,
            stacklevel=2,
        )
    stored = adata.uns.setdefault(key, {})
    params = {"by": ", ".join(found.by), "adjust": ", ".join(found.adjusted_for), "within": within or ""}
    tests, variables, notes = found.table, found.variables, list(found.notes)
    if tables["associations"] in stored:
        before, earlier = (pd.DataFrame(stored[tables[each]]) for each in ("associations", "variables"))
        kept = sorted({*before["variable"]} - {*tests["variable"]})
        if kept and dict(stored[tables["association_params"]]) == params:
            tests = pd.concat([before[before["variable"].isin(kept)], tests], ignore_index=True)
            tests["q_all"] = adjust_p_values(tests["p"].astype(np.float64))
            known = earlier["name"].isin({*earlier["name"]} - {*variables["name"]})
            variables = pd.concat([earlier[known], variables], ignore_index=True)
            notes = list(dict.fromkeys([*map(str, stored[tables["association_notes"]]), *notes]))
        elif kept:
            what = f"tests of {some_names(kept, 5, quoted=False)}, made in another way (by, adjust or within)"
            warnings.warn(f"{what}, are replaced: give these ones a `name` to keep both", UserWarning, stacklevel=2)
    stored[tables["associations"]] = objects.storable(tests)
    stored[tables["variables"]] = objects.storable(variables)
    stored[tables["association_notes"]] = np.array(notes, dtype=object)
    stored[tables["association_params"]] = params
    return adata if copy else None


def _scores_and_groups(adata: AnnData, key: str) -> tuple[pd.DataFrame, pd.DataFrame | None, Removed | None]:
    """Scores and groups of the cells, and covariates of the fit; scores alone if the modules are not in the object."""
    names = pd.Index(adata.obs_names)
    if names.has_duplicates:
        raise InputError(f"{names[names.duplicated()][0]!r} occurs more than once in obs_names: make names unique")
    is_scored = key not in adata.varm and f"X_{key}" in adata.obsm
    removed = None if is_scored else Removed.of(objects.from_anndata(adata, key))
    if not is_scored and f"{key}_groups" not in adata.obsm:
        sample_groups(adata, key=key)
    values = np.asarray(adata.obsm[f"X_{key}"])
    scores = pd.DataFrame(values, index=names, columns=range(1, values.shape[1] + 1))
    if is_scored:
        return scores, None, removed
    groups = adata.obsm[f"{key}_groups"].astype(object).set_axis(scores.columns, axis=1)
    return scores, groups.where(groups.notna(), ""), removed


def enrich(
    adata: AnnData,
    gene_sets: Mapping[str, Iterable[str]] | Path | str,
    *,
    background: Iterable[object] | None = None,
    min_size: int = SIZES[0],
    max_size: int = SIZES[1],
    collapse: float | None = None,
    key: str = "netbic",
    copy: bool = False,
) -> AnnData | None:
    """Test modules for gene sets that are over-represented in them, and store the tests.

    See :func:`netbic.enrichment.gene_sets`.

    Parameters
    ----------
    adata : AnnData
        After `modules`.
    gene_sets : mapping of term to genes, or path of a GMT file
        Genes are matched by `var_names`.
    background, min_size, max_size, collapse
        As for :func:`netbic.enrichment.gene_sets`. Default background: the genes of the fit.
    key : str
        Key of the modules.
    copy : bool
        Return a copy with the results instead of writing them into `adata`.

    Returns
    -------
    AnnData or None
        `uns[key]["gene_sets"]` is the table of :func:`netbic.enrichment.gene_sets`.

    Examples
    --------
    >>> import anndata, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> adata = anndata.AnnData(study.expression)
    >>> netbic.tl.modules(adata, n_modules=1, n_genes=60)
    >>> planted = adata.var_names[study.genes[0]]
    >>> netbic.tl.enrich(adata, {"planted": planted, "others": adata.var_names[:50]})
    >>> netbic.get.gene_sets_df(adata)["term"].iloc[0]
    'planted'
    """
    adata = objects.writable(adata, copy)
    sizes: dict[str, Any] = {"min_size": min_size, "max_size": max_size}
    model = objects.from_anndata(adata, key)
    found = over_represented(model, gene_sets, background=background, **sizes, collapse=collapse)
    adata.uns[key]["gene_sets"] = objects.storable(found)
    return adata if copy else None
