"""Every study in turn as the other one: modules found without it are looked for in it."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Array, Bools, RandomState, check_in_memory
from netbic.comparison.replicate import STRONG, WEAK, replicate
from netbic.errors import InputError
from netbic.estimators.covariates import as_table, covariate_names
from netbic.estimators.inputs import axis_names, check_same_data
from netbic.estimators.parameters import check_count
from netbic.estimators.prediction import module_scores
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.selection.resampling import for_part, graphs_by_position, match_rows, n_asked, n_searched_again

NOT_FOUND: Final = "not found without it"
HOLDS: Final = (STRONG, WEAK)
_FOUND_FROM = 0.6  # smallest |correlation| of scores of a module that is found again, as for verdicts
_NUMBERS = ["density", "ci_low", "ci_high", "density_expected", "q"]
_LEFT_OUT_COLUMNS = ["module", "study", "verdict", "score", *_NUMBERS, "reason"]


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The result of `leave_one_study_out`.

    Attributes
    ----------
    table : DataFrame
        A row per module and study.

        - `verdict`: "strong", "weak", "not replicated" or "too few to tell", as for :func:`netbic.replicate`, of
          the module that the other studies give; "not found without it" if they give none
          that is similar.
        - `score`: absolute correlation, in the other studies, of the scores of the module with those of the module
          found without the study.
        - `density`, `ci_low`, `ci_high`, `density_expected`, `q`, `reason`: as for :func:`netbic.replicate`.
    """

    table: pd.DataFrame

    @property
    def counts(self) -> pd.Series[int]:
        """In how many studies each module is replicated (strong or weak) without having been fitted to them."""
        return self.table["verdict"].isin(HOLDS).astype(int).groupby(self.table["module"]).sum()

    @property
    def verdict(self) -> str:
        """One line per module."""
        if self.table.empty:
            return "The model has no modules, so there is none to look for in the studies left out."
        total = self.table["study"].nunique()
        lines = []
        for module, part in self.table.groupby("module", sort=True):
            own = part.loc[part["verdict"].isin(HOLDS), "study"].tolist()
            more = f" ({', '.join(own)})" if own else ""
            lines.append(f"module {module}: replicated in {len(own)} of {total} studies left out{more}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.verdict


def leave_one_study_out(
    model: Any, X: Any, *, covariates: Any = None, n_draws: int = 1000, random_state: RandomState = None
) -> LeftOut:
    """Fit without each study in turn, and look for the modules in the study that was left out.

    The modules of the other studies are matched one to one to those of the whole fit by the correlation of their scores
    in the other studies, and :func:`netbic.replicate` judges them in the study that was not used. A module that only
    one study has is not found without it, and not replicated in the others.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted with `studies`; one clone of it per study is fitted (with a third more modules).
    X : array, DataFrame or sparse matrix
        The same data (stacked: for a dict, `netbic.stack_studies(...).X`).
    covariates : as for `SparseGraphSVD.fit`, optional
        Needed if the model was fitted with covariates. Their effects are removed from the studies of each fit.
    n_draws : int
        Random sets of features per module.
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies((60, 80, 100), 400, lives=((0, 1, 2), (1,)), random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    >>> print(netbic.leave_one_study_out(model, simulated.X, random_state=0))
    module 1: replicated in 3 of 3 studies left out (study_1, study_2, study_3)
    module 2: replicated in 0 of 3 studies left out
    """
    model, generator = fitted_model(model), np.random.default_rng(random_state)
    if model.study_scaling_ is None:
        raise InputError("the model was fitted to one study: fit it with `studies`, one label per sample", ["studies"])
    check_same_data(model, X)
    check_in_memory(X, "a study is left out of data in memory")
    check_count("n_draws", n_draws)
    if bool(covariate_names(model)) != (covariates is not None):
        had = "with" if covariate_names(model) else "without"
        raise InputError(f"the model was fitted {had} covariates: give the same ones (`covariates`)", ["covariates"])
    if model.row_graph is not None:
        raise InputError("studies cannot be left out of a graph of the samples: fit without `row_graph`")
    if covariates is not None:
        covariates = as_table(covariates, int(X.shape[0]), axis_names(X)[0])[0]
    labels, n_modules, tables = np.asarray(model.study_labels_), model.n_components_, []
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    for study in model.study_scaling_.names:
        kept = labels != study
        others = _fit_without(model, X, rows[np.flatnonzero(kept)], kept, labels, covariates)
        both = copy.copy(model)
        both.components_ = np.vstack([model.components_, others.components_])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X (has feature names|does not have valid)")
            scores = module_scores(both, X)[kept].T
        known = pd.DataFrame(scores.T).corr(min_periods=3)  # over samples in which both are known
        similar = np.abs(np.nan_to_num(known.to_numpy()[:n_modules, n_modules:]))
        partner, found = match_rows(similar)
        judged = replicate(others, rows[np.flatnonzero(~kept)], n_draws=n_draws, random_state=generator).table
        table = judged.reindex(partner).assign(module=np.arange(1, n_modules + 1), score=found, study=study)
        unlike = found < _FOUND_FROM
        table.loc[unlike, ["verdict", "reason"]] = NOT_FOUND, "The other studies have no module with similar scores."
        table.loc[unlike, _NUMBERS] = np.nan
        tables.append(table)
    return LeftOut(pd.concat(tables).sort_values("module", kind="stable", ignore_index=True)[_LEFT_OUT_COLUMNS])


def _fit_without(
    model: SparseGraphSVD, X: Any, part: Any, kept: Bools, labels: Array, covariates: pd.DataFrame | None
) -> SparseGraphSVD:
    """The model, fitted to the other studies.

    Groups of samples become known by position, because their names are looked up among the samples of all studies.
    Groups of features stay as they are: every fit has the same features.
    """
    given: dict[str, Any] = {"studies": labels[kept]} if len(set(labels[kept].tolist())) > 1 else {}
    if covariates is not None:
        given["covariates"] = covariates[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given by the whole fit already, as about modules that repeat others
        parameters = graphs_by_position(
            model.get_params(deep=False), X.shape[:1], (model.names_["rows"],), axes=("row",)
        )
        made = for_part(clone(model).set_params(**parameters), "row", np.flatnonzero(kept), kept.size)
        made.set_params(n_components=n_searched_again(model, n_asked(model)), verbose=0)
        made.fit(part.reset_index(drop=True) if isinstance(part, pd.DataFrame) else part, **given)
    return made
