"""Sequential Monte Carlo p-values (Besag and Clifford 1991): no more draws than the answer needs.

Draws are made until `enough` of them reach the observed value, at most n. If that happens at draw l, p = enough / l;
otherwise p = (1 + g) / (1 + n), where g of the n draws reach it. Such p-values are valid: if the observed value and the
draws are exchangeable, then P(p <= a) <= a for every a. (p <= enough / l only if fewer than `enough` of the first
l - 1 draws reach the observed value, so that its rank among l exchangeable values is at most `enough`.)
"""

from __future__ import annotations

import numpy as np

from netbic.arrays import Array, Floats


def sequential_p_values(observed: Array, by_chance: Array, n_draws: int, enough: int | None) -> Floats:
    """The p-value of every observed value, given draws (a row each, in the order in which they were made).

    Parameters
    ----------
    observed : array of shape (m,)
    by_chance : array of shape (m, l)
        All `n_draws` draws or, if `is_decided`, fewer.
    n_draws : int
        Number of draws at most.
    enough : int or None
        Number of draws at or above the observed value after which no more are made; None: all draws are made.

    Examples
    --------
    >>> import numpy as np
    >>> sequential_p_values(np.array([2.0, 9.0]), np.array([[1.0, 3.0, 0.0, 2.0], [8.0, 7.0, 8.0, 6.0]]), 4, 2)
    array([0.5, 0.2])
    """
    reached = np.cumsum(by_chance >= observed[:, None], axis=1)
    p = (1 + reached[:, -1]) / (1 + n_draws)
    if enough is None:
        return np.asarray(p)
    stopped = reached >= enough
    return np.where(stopped.any(axis=1), enough / (1 + stopped.argmax(axis=1)), p)


def is_decided(observed: Array, by_chance: Array, enough: int | None) -> bool:
    """Whether no more draws are needed for any of the observed values."""
    return enough is not None and bool(((by_chance >= observed[:, None]).sum(axis=1) >= enough).all())
