"""What a method is given, and what it returns. It needs NumPy only, so that every environment can import it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    X: np.ndarray  # samples x features, on a log scale, without missing entries
    k: int | None = None  # how many modules are asked for; None: the method decides
    seed: int = 0
    counts: np.ndarray | None = None  # raw counts behind X, if it is single-cell data
    edges: np.ndarray | None = None  # a network: two columns of feature numbers


class Found(NamedTuple):
    """`members` (modules x features, boolean), and `weights` (features x modules) that give scores of any samples.

    The score of a sample is the product of its features, centred by their means over all samples, with the weights.
    `scores` (samples x modules) are those of the method itself, if it has its own; only tasks within the same samples
    use them.
    """

    weights: np.ndarray
    members: np.ndarray
    scores: np.ndarray | None = None


def outlying(weights, limit=4.0, least=3):
    """Features whose weight is more than `limit` robust standard deviations from the median (`least` at least).

    For methods that have weights for all features and no rule of their own for which of them belong to a module.
    """
    away = np.abs(weights - np.median(weights, axis=0))
    members = away > limit * 1.4826 * np.median(away, axis=0)
    for own, order in zip(members.T, np.argsort(-away, axis=0).T, strict=True):
        if own.sum() < least:
            own[order[:least]] = True
    return members.T


def sets_to_weights(X, members):
    """Weights of sets of features: those of the first principal component of the standardised members."""
    Y = X - X.mean(axis=0)
    scale = np.maximum(Y.std(axis=0), 1e-9)
    weights = np.zeros((X.shape[1], len(members)))
    for j, own in enumerate(members):
        if own.any():
            weights[own, j] = np.linalg.svd(Y[:, own] / scale[own], full_matrices=False)[2][0] / scale[own]
    return weights
