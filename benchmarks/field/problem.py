"""What a method is given, and what it returns. It needs NumPy only, so that every environment can import it."""

from __future__ import annotations

from statistics import NormalDist
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


def outlying(weights, signed=False):
    """Members of modules of methods that have weights for all features and no rule of their own for the members.

    It is netbic's own rule, so that the rule is no difference between netbic and them: features from the largest weight
    on, beyond what normal weights of this spread reach, until one is less than half as large as the mean of those
    before it; at most a quarter of all features, and 20 if fewer than five stand out. Weights are compared with their
    median, in both directions or, for weights that cannot be negative, upwards only (`signed`)."""
    p = len(weights)
    away = weights - np.median(weights, axis=0)
    edge = NormalDist().inv_cdf(1 - 0.5 / p) * 1.4826 * np.median(np.abs(away), axis=0)
    away = away if signed else np.abs(away)
    members = np.zeros(weights.shape, bool)
    for j, order in enumerate(np.argsort(-away, axis=0).T):
        sorted_ = away[order, j]
        beyond = sorted_[sorted_ > edge[j]][: p // 4]
        smaller = np.flatnonzero(beyond[1:] < 0.5 * np.cumsum(beyond)[:-1] / np.arange(1, max(beyond.size, 1)))
        size = int(smaller[0]) + 1 if smaller.size else beyond.size
        members[order[: size if size >= 5 else 20], j] = True
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
