"""Effects of associations as numbers from -1 to 1, for heatmaps of modules by variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from netbic.errors import InputError

_NEEDED = ("module", "variable", "level", "effect", "effect_name", "q")
_MINUS = "\N{MINUS SIGN}"

Signed = Callable[[NDArray[Any]], NDArray[Any]]
# Effects with a direction, by the end of their names: as a number from -1 to 1, and what the legend calls it. The first
# one that a variable has is drawn.
_EFFECTS: Final[dict[str, tuple[Signed, str]]] = {
    "AUC": (lambda auc: 2 * auc - 1, f"2 AUC {_MINUS} 1"),
    "standardised difference": (
        lambda d: 2 * ndtr(d / np.sqrt(2)) - 1,
        f"2 AUC {_MINUS} 1, from standardised difference",
    ),
    "Spearman rho": (lambda rho: rho, "Spearman rho"),
    "Pearson r": (lambda r: r, "Pearson r"),
    "hazard ratio per sd": (
        lambda ratio: np.clip(np.log2(ratio), -1, 1),
        "log2 HR per sd, cut at \u00b11",
    ),
}


def signed_effects(table: pd.DataFrame) -> pd.DataFrame:
    """The effects with a direction, each as a number from -1 to 1.

    Parameters
    ----------
    table : DataFrame
        The `table` of `netbic.associate`, or the content of associations.tsv.

    Returns
    -------
    DataFrame
        The rows of the table that have a direction, one per module and level (of two levels only the first, because the
        second one is its opposite), with the further columns `column` (variable and level), `signed` and `scale` (what
        the number is).

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["module", "variable", "level", "effect", "effect_name", "q"]
    >>> table = pd.DataFrame([(0, "pam50", "Basal", 0.05, "AUC", 1e-9)], columns=columns)
    >>> signed_effects(table)[["column", "signed"]].values.tolist()
    [['pam50: Basal', -0.9]]
    """
    if missing := [name for name in _NEEDED if name not in getattr(table, "columns", ())]:
        raise InputError(f"the table has no column {missing[0]!r}: give the table of netbic.associate")
    parts = list[pd.DataFrame]()
    for variable, own in table.groupby("variable", sort=False):
        kind = next((end for end in _EFFECTS if own["effect_name"].astype(str).str.endswith(end).any()), None)
        if kind is None:
            continue
        own = own[own["effect_name"].astype(str).str.endswith(kind)]
        level = own["level"].fillna("").astype(str)
        levels = list(dict.fromkeys(level))
        own = own[level == levels[0]] if len(levels) == 2 else own
        texts = [f"{variable}: {each}" if each else str(variable) for each in own["level"].fillna("").astype(str)]
        signed, scale = _EFFECTS[kind]
        with np.errstate(divide="ignore", invalid="ignore"):
            effects = signed(own["effect"].to_numpy(dtype=float))
        parts.append(own.assign(column=texts, signed=effects, scale=scale))
    empty = pd.DataFrame(columns=[*table.columns, "column", "signed", "scale"])
    return pd.concat(parts) if parts else empty
