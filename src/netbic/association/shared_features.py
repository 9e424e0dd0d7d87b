"""Features of the same name in two tables, such as a gene and its protein: how far one follows the other."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from netbic.association import tests
from netbic.association.words import LEVEL
from netbic.enrichment import adjust_p_values
from netbic.errors import InputError

_FOLLOWS: Final = 0.5  # Spearman correlation from which a feature follows the other one
_FEWEST = 3  # samples with both values


def same_names(X: pd.DataFrame, Y: pd.DataFrame) -> pd.DataFrame:
    """The Spearman correlation of every feature of X with the feature of the same name in Y, the largest first.

    Parameters
    ----------
    X, Y : DataFrame of shape (n_samples, n_features)
        Of the same samples in the same order. Missing values are left out.

    Returns
    -------
    DataFrame
        A row per shared name: `name`, `n` (samples with both values), `rho`, `p` and `q` (Benjamini and Hochberg).

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> rna = pd.DataFrame(random.standard_normal((40, 3)), columns=["A", "B", "C"])
    >>> protein = pd.DataFrame({"B": rna["B"] + 0.1 * random.standard_normal(40), "C": random.standard_normal(40)})
    >>> netbic.association.same_names(rna, protein)[["name", "rho"]].round(2).to_numpy().tolist()
    [['B', 0.99], ['C', -0.12]]
    """
    if len(X) != len(Y):
        raise InputError(f"X has {len(X):,} samples and Y {len(Y):,}: give the same ones in the same order")
    places = [{str(name): at for at, name in enumerate(table.columns)} for table in (X, Y)]
    rows = list[tuple[str, int, float, float]]()
    for name in places[0].keys() & places[1].keys():
        one, other = (t.iloc[:, at[name]].to_numpy(dtype=np.float64) for t, at in zip((X, Y), places, strict=True))
        known = ~np.isnan(one) & ~np.isnan(other)
        n = int(known.sum())
        found = tests.spearman(one[known], other[known]) if n >= _FEWEST else tests.UNDEFINED
        rows.append((name, n, found.effect, found.p))
    table = pd.DataFrame(rows, columns=["name", "n", "rho", "p"])
    table = table.assign(q=adjust_p_values(table["p"].astype(np.float64)))
    return table.sort_values(["rho", "name"], ascending=[False, True], ignore_index=True)


def same_names_line(table: pd.DataFrame, names: tuple[str, str]) -> str:
    """How far features follow those of the same name in the other table, in words; `names` are those of the tables."""
    n, follows = len(table), int(((table["rho"] >= _FOLLOWS) & (table["q"] <= LEVEL)).sum())
    text = f"{n:,} name{'s are' if n != 1 else ' is'} in {names[0]} and in {names[1]}"
    text += f": median Spearman rho {table['rho'].median():.2f}"
    return f"{text}, {follows:,} with rho >= {_FOLLOWS:g} (q <= {LEVEL:g})"
