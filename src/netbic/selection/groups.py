"""Groups of samples: which samples a module is up or down in, if its scores form groups at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pandas as pd

from netbic.arrays import Bools
from netbic.estimators.inputs import axis_names, one_blas_thread
from netbic.estimators.prediction import module_scores
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.files import add_files, table_bytes
from netbic.selection.score_groups import ScoreGroups, score_groups
from netbic.selection.verdicts import Verdicts

GROUP_NAMES: Final = {1: "up", -1: "down", 0: ""}
_COLUMNS = ["module", "sample", "score", "group"]


@dataclass(frozen=True)
class SampleGroups:
    """The groups of samples of every module.

    Attributes
    ----------
    table : DataFrame
        A row per module and sample: `module`, `sample`, `score` and `group`, as returned by `sample_groups`.
    summary : DataFrame
        A row per module, as returned by `group_summary`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> found = netbic.selection.SampleGroups.find(model, study.expression)
    >>> found.summary["result"].tolist()
    ['up in 24 and down in 16 of 200 samples']
    """

    table: pd.DataFrame
    summary: pd.DataFrame

    @classmethod
    def find(
        cls,
        model: Any,
        X: Any,
        *,
        names: Sequence[Any] | None = None,
        covariates: Any = None,
        sample_name: str = "sample",
    ) -> Self:
        """Find the groups of samples of a fitted model; the parameters are those of `sample_groups`.

        `sample_name` is the word for a sample in the results, such as "cell".
        """
        model = fitted_model(model)
        n_samples = np.shape(X)[0] if np.shape(X) else len(X)
        if names is not None and len(names) != n_samples:
            raise ValueError(
                f"names has {len(names)} entries but X has {n_samples} samples: one name per sample is needed"
            )
        own = axis_names(X)[0] if names is None else pd.Index(names).to_numpy()
        samples = np.arange(n_samples) if own is None else own
        selected = selected_samples(model) & (n_samples == len(model.left_vectors_))
        with one_blas_thread():
            every = module_scores(model, X, covariates).T
            groups = [score_groups(scores) for scores in every]
        tables, summaries = [], []
        for module, (scores, found) in enumerate(zip(every, groups, strict=True), start=1):
            labels = [GROUP_NAMES[label] for label in found.labels.tolist()]
            tables.append(pd.DataFrame({"module": module, "sample": samples, "score": scores, "group": labels}))
            summaries.append(_summary(module, n_samples, bool(selected[module - 1]), found, sample_name))
        table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)
        columns = list(_summary(0, 0, False, score_groups(np.empty(0))))
        return cls(table, pd.DataFrame(summaries, columns=columns))


def sample_groups(model: Any, X: Any, *, names: Sequence[Any] | None = None, covariates: Any = None) -> pd.DataFrame:
    """Say which samples each module is up or down in, if its scores form groups.

    The score of a sample is its Xv: the weighted sum of the module's features, after the centring and scaling of the
    fit. Up means that features with positive weights are high; the largest weight of a module is positive. Scores are
    described by one group or by two or three groups (normal distributions with free locations). Groups are reported if
    they describe the scores clearly better (by the Bayesian information criterion) than one normal distribution, and
    than one distribution that is skewed, heavy-tailed or flat. Otherwise the module is a gradient: no sample belongs to
    a group, and the scores themselves should be used. This is common in tumours, for example.

    "up" and "down" are relative to the bulk, which has no label: the group that is at least one and a half times as
    large as any other, or else the middle one of three groups. Two groups of similar size have no bulk: one of them is
    up, the other one down.

    Parameters
    ----------
    model : SparseGraphSVD or a fitted search such as GridSearchCV
    X : array, DataFrame, sparse matrix or Dask array of shape (n_samples, n_features)
        The data of the fit, or other samples of the same features. Groups are those among the samples in X; to detect
        them, about 200 samples are needed if groups are four standard deviations apart, and 50 if they are six.
    names : sequence, optional
        Names of the samples. Default: the index of X, or 0, 1, ... if it has none.
    covariates : as for `SparseGraphSVD.fit`, optional
        If the model was fitted with covariates, those of the samples in X. Not needed for the samples of the fit.

    Returns
    -------
    DataFrame
        Columns `module` (from 1), `sample`, `score` and `group` ("up", "down" or ""), with all samples in the order
        of X for every module. A score is NaN if too many of the module's entries are missing.

    Notes
    -----
    A model fitted with `n_rows` or a row penalty has selected samples with extreme scores, and groups are then found in
    noise as well: use a model that keeps all samples, or samples that were not part of the fit.

    See Also
    --------
    group_summary : one row per module.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> table = netbic.selection.sample_groups(model, study.expression)
    >>> list(table.columns), len(table)
    (['module', 'sample', 'score', 'group'], 200)
    >>> bool(((table["group"] != "") == study.samples[0]).all())
    True
    """
    return SampleGroups.find(model, X, names=names, covariates=covariates).table


def group_summary(model: Any, X: Any, *, names: Sequence[Any] | None = None, covariates: Any = None) -> pd.DataFrame:
    """Summarise the groups of samples, a row per module.

    Parameters
    ----------
    model, X, names, covariates : as for `sample_groups`

    Returns
    -------
    DataFrame
        `module`; `kind` ("groups" or "gradient"); `up`, `down` and `samples` (numbers of samples); `n_groups`;
        `up_above` and `down_below` (scores beyond which samples are up or down, NaN if there are none); `bic_gain` and
        `bic_margin` (gain in BIC of the best groups over one normal group, and over one group of any other shape:
        groups need at least 10 and 6); `selected` (whether the fit has selected samples with extreme scores, see
        `sample_groups`); `result`, the same in words.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> netbic.selection.group_summary(model, study.expression)["kind"].tolist()
    ['groups', 'gradient']
    """
    return SampleGroups.find(model, X, names=names, covariates=covariates).summary


def selected_samples(model: SparseGraphSVD) -> Bools:
    """Whether each module has kept samples for their extreme scores."""
    if model.n_rows is None and model.row_penalty is None:
        return np.zeros(len(model.rows_), dtype=bool)  # a sample that was left out has the score zero
    return np.asarray(~model.rows_.all(axis=1))


def _summary(
    module: int, n_samples: int, selected: bool, found: ScoreGroups, sample_name: str = "sample"
) -> dict[str, Any]:
    up, down = int((found.labels == 1).sum()), int((found.labels == -1).sum())
    if np.isnan(found.gain):
        result = "too few different scores to find groups: use the scores"
    elif found.is_gradient:
        result = "gradient: use the scores"
    else:
        parts = [f"{name} in {count}" for name, count in (("up", up), ("down", down)) if count]
        caution = f" (the fit selected {sample_name}s: no evidence of groups)" if selected else ""
        result = f"{' and '.join(parts)} of {n_samples} {sample_name}s{caution}"
    kind = "gradient" if found.is_gradient else "groups"
    counts = {"up": up, "down": down, "samples": n_samples, "n_groups": found.means.size}
    limits = {"up_above": found.up_above, "down_below": found.down_below}
    gains = {"bic_gain": found.gain, "bic_margin": found.margin}
    return {"module": module, "kind": kind, **counts, **limits, **gains, "selected": selected, "result": result}


class Judgement(NamedTuple):
    """The groups of samples of every module and, unless they were not asked for, the verdicts."""

    groups: SampleGroups
    verdicts: Verdicts | None

    @property
    def summary(self) -> pd.DataFrame:
        """Columns for the summary: `sample_kind`, `n_up`, `n_down` and, if known, `verdict` and `technical`."""
        groups = self.groups.summary
        table = pd.DataFrame({"sample_kind": groups["kind"], "n_up": groups["up"], "n_down": groups["down"]})
        return table if self.verdicts is None else table.join(self.verdicts.table[["verdict", "technical"]])

    @property
    def features(self) -> pd.DataFrame | None:
        """The confidence of the features of all modules, if it is known."""
        return None if self.verdicts is None else self.verdicts.features

    def write(self, folder: Path, further: Mapping[str, pd.DataFrame] = MappingProxyType({})) -> None:
        """Write samples.tsv, verdicts.tsv and further tables, by name; all appear at the same time."""
        tables = {"samples": self.groups.table, **further}
        if self.verdicts is not None:
            tables["verdicts"] = self.verdicts.table
        paths = {name: folder / f"{name}.tsv" for name in tables}
        add_files(folder, {path.name: table_bytes(path, tables[name]) for name, path in paths.items()})
