"""Associations of pairs of two tables: the scores of both tables are compared with what is known about the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from netbic.association.associations import Associations, associate_scores
from netbic.association.sample_table import Survival
from netbic.association.variables import Types
from netbic.storage import PairModel, fitted_pair_model, sample_names


def associate_pairs(
    model: PairModel,
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
) -> Associations:
    r"""Test which pairs are associated with labels, numbers and survival times of the samples.

    The tests are those of `associate`, for the scores of the samples of the fit in both tables. In the table of the
    result, `pair` (from 0) and `table` (1 for X, 2 for Y) stand where that of `associate` has `module`. The tests of
    both tables count for the q-values.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Fitted. Samples of arrays, which have no names, are called 0, 1, 2, ...
    table : DataFrame
        A row per sample, matched by name: the index, or a column of names.
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
    >>> model = netbic.SparseGraphCCA(1, n_x=10, n_y=10).fit(X, Y)
    >>> labels = pd.DataFrame({"group": np.repeat(["healthy", "ill"], 30)}, index=samples)
    >>> print(*netbic.association.associate_pairs(model, labels).findings(), sep="\n")
    group: ill is higher in pair 1, table 1 (AUC 0.9967, q = 2e-16)
    """
    model = fitted_pair_model(model)
    scores = pd.DataFrame(  # columns 0, 1, 2, 3, ...: pair 0 in both tables, pair 1 in both tables, ...
        np.stack([model.x_scores_, model.y_scores_], axis=2).reshape(len(model.x_scores_), -1),
        index=pd.Index(sample_names(model), name="sample"),
    )
    found = associate_scores(
        scores, None, table, variables=variables, types=types, survival=survival, adjust=adjust, by=by
    )
    number = found.table["module"].astype(np.int64)
    place = pd.DataFrame({"pair": number // 2, "table": number % 2 + 1})
    return replace(found, table=pd.concat([place, found.table.drop(columns="module")], axis=1))
