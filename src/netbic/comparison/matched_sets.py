"""Random sets of genes in which every gene of a module is replaced by another one of similar mean and variance."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from netbic.arrays import Bools, Floats, Indices

_SMALLEST_POOL = 100  # genes that may replace a gene
_DIGITS = 9  # differences beyond these are rounding errors


def matched_sets(traits: list[Floats], members: Indices, n_draws: int, generator: np.random.Generator) -> Indices:
    """`n_draws` sets (rows) of different genes, none of which is a member; column j holds replacements of member j.

    A replacement is drawn from the genes whose ranks in all traits are closest to those of the member: at least 100 of
    them and twice as many as there are members, so that a set without repetitions always exists.

    Parameters
    ----------
    traits : list of arrays of shape (n_genes,)
        Numbers to match. One that is the same for all genes is ignored.
    members : array of shape (n_members,)
        At most a third of the genes.
    n_draws : int
    generator : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> sets = matched_sets([np.arange(1000.0)], np.array([10, 990]), 500, np.random.default_rng(0))
    >>> bool((sets[:, 0] <= 120).all()), bool((sets[:, 1] >= 880).all())
    (True, True)
    """
    others = np.setdiff1d(np.arange(traits[0].size), members)
    n_pool = max(_SMALLEST_POOL, 2 * members.size)
    places = [_ranks(trait, generator) for trait in traits if _varies(trait)]
    if not places or n_pool >= others.size:
        pools = np.tile(others, (members.size, 1))
    else:
        grid = np.column_stack(places)
        pools = others[KDTree(grid[others]).query(grid[members], k=n_pool)[1]]
    return _without_repetitions(pools, n_draws, generator)


def _varies(trait: Floats) -> bool:
    return bool(np.ptp(trait) > 10.0**-_DIGITS * np.abs(trait).max(initial=0.0))


def _ranks(trait: Floats, generator: np.random.Generator) -> Floats:
    """Ranks from 0 to 1; ties in random order, or the genes nearest to a tie would always be the same ones."""
    rounded = np.round(trait / np.abs(trait).max(), _DIGITS)  # the same for sparse and dense matrices
    order = np.lexsort([generator.random(trait.size), rounded])
    ranks = np.empty(trait.size)
    ranks[order] = np.arange(trait.size) / max(trait.size - 1, 1)
    return ranks


def _without_repetitions(pools: Indices, n_draws: int, generator: np.random.Generator) -> Indices:
    """Rows with one member of every pool each, all different."""
    at = np.arange(len(pools))
    drawn = pools[at, generator.integers(pools.shape[1], size=(n_draws, at.size))]
    while (again := _repeated(drawn)).any():
        _, columns = np.nonzero(again)
        drawn[again] = pools[columns, generator.integers(pools.shape[1], size=columns.size)]
    return drawn


def _repeated(rows: Indices) -> Bools:
    """Entries that occur in their row before."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    repeated = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated
