"""The scores of the samples in two tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from netbic.pl.canvas import PALETTE, SMALL, axes_for, despine, set_title
from netbic.storage import fitted_pair_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.storage import PairModel


def pairs(model: PairModel, pair: int = 0, *, labels: Sequence[Any] | None = None, ax: Axes | None = None) -> Axes:
    """Plot the scores of the samples in table 1 (X) and in table 2 (Y), a point per sample.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Fitted.
    pair : int
        Pairs are numbered from 0; titles count from 1.
    labels : sequence, optional
        A label for each sample, in the order of the fit, for the colours of the points.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
    >>> netbic.pl.pairs(model).get_title(loc="left")
    'Pair 1: correlation 0.84'
    """
    found = fitted_pair_model(model)
    if isinstance(pair, bool) or pair not in range(found.n_components_):
        raise ValueError(f"pair={pair!r} does not exist: pairs are numbered from 0 (there are {found.n_components_})")
    x, y = found.x_scores_[:, pair], found.y_scores_[:, pair]
    if labels is not None and len(labels) != len(x):
        raise ValueError(f"there are {len(labels)} labels but {len(x)} samples: give one for each sample of the fit")
    ax = axes_for(ax, (4.8, 4.2))
    codes, names = pd.factorize(np.zeros(len(x)) if labels is None else np.asarray(labels), sort=True)
    for code in range(-1, len(names)):  # -1: missing
        own = codes == code
        if own.any():
            colour = "0.7" if code < 0 else PALETTE[code % len(PALETTE)]
            ax.scatter(x[own], y[own], s=22, color=colour, label="missing" if code < 0 else str(names[code]))
    if labels is not None:
        ax.legend(frameon=False, fontsize=SMALL)
    ax.set(xlabel="score in table 1", ylabel="score in table 2")
    despine(ax)
    set_title(ax, f"Pair {pair + 1}: correlation {found.correlations_[pair]:.2f}")
    return ax
