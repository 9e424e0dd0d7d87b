"""What summary.tsv and samples.tsv say about a module in addition to its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import netbic

if TYPE_CHECKING:
    import pandas as pd

    from netbic.estimators import SparseGraphSVD
    from netbic.io import Dataset
    from netbic.selection import SampleGroups


def sample_groups(model: SparseGraphSVD, study: Dataset) -> SampleGroups:
    """Groups of samples; if samples were selected, these are up or down by the signs of their weights.

    Selected samples have extreme scores, so that groups would be found in noise as well.
    """
    import numpy as np

    found = netbic.selection.SampleGroups.find(model, study.X, names=list(study.names[0]))
    selected = found.summary["selected"].to_numpy(dtype=bool) & ~model.rows_.all(axis=1)
    if not selected.any():
        return found
    weights, groups = model.left_vectors_.T, found.table["group"].to_numpy(dtype=object).reshape(len(selected), -1)
    by_sign = np.where(weights > 0, "up", np.where(weights < 0, "down", ""))
    groups = np.where(selected[:, None], by_sign, groups)
    summary = found.summary.assign(
        kind=found.summary["kind"].mask(selected, "selected"),
        up=(groups == "up").sum(axis=1),
        down=(groups == "down").sum(axis=1),
    )
    return netbic.selection.SampleGroups(found.table.assign(group=groups.ravel()), summary)


def module_sizes(model: SparseGraphSVD) -> pd.DataFrame:
    """Whether the data determine the number of genes of each module (`size_chosen`), and why a default was used.

    `size_diagnostic` is the reason for the default size; "" if the size was chosen by the data or given by the user.
    """
    import pandas as pd

    choices = model.choices_[model.choices_["axis"] == "columns"].set_index("module")
    default = choices["diagnostic"].where(choices["fallback"].astype(bool), "").reindex(range(model.n_components_))
    by_criterion = isinstance(model.column_penalty, netbic.penalties.ChosenByBIC)
    return pd.DataFrame({"size_chosen": default.eq("") | by_criterion, "size_diagnostic": default.fillna("")})


def closest_modules(groups: SampleGroups) -> pd.DataFrame:
    """The earlier module with the most correlated scores (`closest`; -1: none), and the `correlation` with its sign."""
    import pandas as pd

    n_modules = len(groups.summary)
    scores = groups.table["score"].to_numpy(dtype=float).reshape(max(n_modules, 1), -1)
    own = pd.DataFrame(scores.T).corr().fillna(0.0).to_numpy()
    closest = [-1 if not number else int(abs(own[number, :number]).argmax()) for number in range(n_modules)]
    values = [0.0 if other < 0 else float(own[number, other]) for number, other in enumerate(closest)]
    return pd.DataFrame({"closest": closest, "correlation": values})
