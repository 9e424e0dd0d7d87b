"""Associations of pairs, the components of two tables, with what is known about the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.association.associate import Associations, Removed, associate_scores
from netbic.association.variables import Survival, Types
from netbic.errors import InputError
from netbic.selection import PairTests
from netbic.storage.models import PairModel, fitted_pair_model
from netbic.storage.tables import HELD_OUT, sample_names

_HELD_OUT = "tested are held-out scores of the samples: by fits that did not use them"
_ALIKE = 0.5  # smallest correlation of held-out scores with those of the fit
_NOT_TESTED = "not compared with labels, because"
_OF_THE_FIT = (
    "p-values are too small, because the weights of one table were chosen for the other one: test the pairs, so that "
    "there are held-out scores"
)


def associate_pairs(
    model: PairModel | PairTests,
    table: pd.DataFrame,
    *,
    held_out: pd.DataFrame | None = None,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
) -> Associations:
    r"""Test which pairs are associated with labels, numbers and survival times of the samples.

    The tests are those of `associate`, for the scores of the samples in both tables. In the table of the result, `pair`
    (from 1) and `table` (its name) stand where that of `associate` has `module`, and `scores` says which ones were
    tested: "held out", or those of the "fit". The weights of one table are chosen for the other one, so that the scores
    of the fit have a part of its labels, even if the tables are independent. Give the result of
    `netbic.selection.pair_tests`: the scores of each sample are then by fits that did not use it. Pairs that are
    doubtful, and scores whose correlation with those of the fit is below 0.5, are not tested: labels of one table would
    be found in another one that has nothing to do with it.

    Parameters
    ----------
    model : PairTests, SparseGraphPLS or SparseGraphCCA
        Tested or fitted. Samples of arrays, which have no names, are called 0, 1, 2, ...
    table : DataFrame
        A row per sample, matched by name: the index, or a column of names.
    held_out : DataFrame, optional
        Held-out scores of a fitted model: `PairTests.scores`, or scores.tsv of `netbic pairs`. Leave doubtful pairs
        out: pairs without scores are not tested.
    variables, types, survival, adjust, by : as for `associate`

    Returns
    -------
    Associations

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> samples = [f"s{k}" for k in range(60)]
    >>> ill = np.repeat([0.0, 1.0], 30)[:, None]
    >>> X, Y = (pd.DataFrame(random.standard_normal((60, 20)) + ill, index=samples) for _ in range(2))
    >>> model = netbic.SparseGraphCCA(1, n_x=10, n_y=10).fit(X, Y, table_names=("RNA", "protein"))
    >>> labels = pd.DataFrame({"group": np.repeat(["healthy", "ill"], 30)}, index=samples)
    >>> tests = netbic.selection.pair_tests(model, X, Y, n_permutations=99, random_state=0)
    >>> found = netbic.association.associate_pairs(tests, labels)
    >>> found.table["scores"].unique().tolist()
    ['held out']
    """
    if isinstance(model, PairTests):
        trusted = model.table.loc[model.table["verdict"] != "doubtful", "pair"]
        model, held_out = model.reference, model.scores[model.scores["pair"].isin(trusted)]
    model = fitted_pair_model(model)
    both = (model.x_scores_, model.y_scores_) if held_out is None else _held_out(model, held_out)
    names = np.array(model.table_names_, dtype=object)
    scores = pd.DataFrame(  # the first pair in both tables, the second pair in both tables, ...
        np.stack(both, axis=2).reshape(len(model.x_scores_), -1),
        index=pd.Index(sample_names(model), name="sample"),
        columns=range(1, 2 * model.n_components_ + 1),
    )
    notes = [_OF_THE_FIT if held_out is None else _HELD_OUT]
    if held_out is not None:
        fitted = np.stack([model.x_scores_, model.y_scores_], axis=2).reshape(scores.shape)
        doubtful = scores.isna().all().to_numpy()
        alike = [_correlation(*own) for own in zip(fitted.T, scores.to_numpy().T, strict=True)]
        unlike = ~doubtful & (np.array(alike) < _ALIKE)
        if doubtful.any():
            which = ", ".join(f"pair {at + 1}" for at in np.flatnonzero(doubtful[::2]))
            notes.append(f"{_NOT_TESTED} doubtful: {which}")
        if unlike.any():
            which = ", ".join(f"pair {at // 2 + 1} in {names[at % 2]}" for at in np.flatnonzero(unlike))
            notes.append(f"{_NOT_TESTED} held-out scores hardly resemble those of the fit: {which}")
        scores = scores.loc[:, ~doubtful & ~unlike]
        notes = notes[scores.empty :]
    asked: dict[str, Any] = {"variables": variables, "types": types, "survival": survival, "adjust": adjust, "by": by}
    found = associate_scores(scores, None, table, **asked, removed=Removed.of(model))
    number = found.table["module"].astype(np.int64) - 1
    place = pd.DataFrame({"pair": number // 2 + 1, "table": names[number % 2]})
    place["scores"] = "fit" if held_out is None else "held out"
    tests_of_pairs = pd.concat([place, found.table.drop(columns="module")], axis=1)
    return replace(found, table=tests_of_pairs, notes=(*notes, *found.notes))


def _correlation(one: Floats, other: Floats) -> float:
    """0 if either is constant."""
    one, other = one - one.mean(), other - other.mean()
    return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), np.finfo(float).tiny))


def _held_out(model: PairModel, table: pd.DataFrame) -> tuple[Floats, Floats]:
    """The held-out scores in a table, samples by pairs, of both tables of a model; NaN for pairs without any."""
    samples, n_pairs = sample_names(model).astype(str), model.n_components_
    if missing := [name for name in ("pair", "sample", *HELD_OUT) if name not in table]:
        raise InputError(f"the table of held-out scores has no column {missing[0]}: give the scores of `pair_tests`")
    pairs = table["pair"].unique()
    expected = np.repeat(pairs, len(samples)), np.tile(samples, len(pairs))
    known = table["pair"].to_numpy(), table["sample"].astype(str).to_numpy()
    is_same = all(np.array_equal(one, other) for one, other in zip(known, expected, strict=True))
    if not is_same or not np.isin(pairs, np.arange(1, n_pairs + 1)).all():
        raise InputError("the table of held-out scores is about other pairs or samples: test the pairs again")
    found = np.full((2, len(samples), n_pairs), np.nan)
    for own, name in zip(found, HELD_OUT, strict=True):
        own[:, pairs - 1] = table[name].to_numpy(dtype=np.float64).reshape(len(pairs), len(samples)).T
    return found[0], found[1]
