"""Measures on arrays. `found` and `truth` are modules x features, boolean; `scores` are samples x modules."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata


def jaccard(found, truth):
    """Jaccard index of each found module with each true one."""
    shared = found.astype(float) @ truth.astype(float).T
    return shared / np.maximum(found.sum(axis=1)[:, None] + truth.sum(axis=1) - shared, 1)


def matched(index):
    """Sum of a matrix of similarities over pairs, matched one to one so that the sum is the largest."""
    return index[linear_sum_assignment(-index)].sum()


def f_of_sets(found, truth):
    """Harmonic mean of recovery and relevance: the best index of each true and of each found set, on average."""
    found = found[found.any(axis=1)]
    if not len(found):
        return 0.0
    index = jaccard(found, truth)
    recovery, relevance = index.max(axis=0).mean(), index.max(axis=1).mean()
    return 2 * recovery * relevance / max(recovery + relevance, 1e-12)


def centred_scores(X, weights):
    return (X - X.mean(axis=0)) @ weights


def leading(X, scores, number=10):
    """Numbers of the components whose scores explain most of the variance of X, each on its own."""
    if scores.shape[1] <= number:
        return np.arange(scores.shape[1])
    Z = standardised(scores)
    return np.sort(np.argsort(-((Z.T @ (X - X.mean(axis=0))) ** 2).sum(axis=1), kind="stable")[:number])


def standardised(scores):
    """Columns of mean 0 and variance 1; of a constant column, zeros."""
    away = scores - scores.mean(axis=0)
    spread = away.std(axis=0)
    constant = spread <= 1e-12 * np.maximum(np.abs(scores).max(axis=0), 1e-300)
    return np.where(constant, 0.0, away / np.where(constant, 1.0, spread))


def correlations(one, two):
    """Absolute correlations of the columns of two tables of scores."""
    return np.abs(standardised(one).T @ standardised(two)) / len(one)


def distinct(scores, limit=0.9):
    """Columns without those that correlate by the limit with an earlier one, and without constant ones."""
    r, kept = correlations(scores, scores), []
    for j in range(scores.shape[1]):
        if r[j, j] > 0 and not (r[j, kept] >= limit).any():
            kept.append(j)
    return scores[:, kept]


def n_reproduced(one, two, limit=0.6):
    """Number of pairs of columns, matched one to one, whose scores correlate by at least the limit."""
    return int(matched((correlations(distinct(one), distinct(two)) >= limit).astype(float)))


def auc(score, positive):
    """Area under the curve of a score in either direction."""
    n = positive.sum()
    area = (rankdata(score)[positive].sum() - n * (n + 1) / 2) / (n * (~positive).sum())
    return max(area, 1 - area)


def cox_score_test(score, time, event):
    """Signed square root of the score test of Cox's model: positive if high scores die earlier. Ties as Breslow."""
    order = np.argsort(-time, kind="stable")
    x, time, event = standardised(score[order, None])[:, 0], time[order], event[order]
    last = np.searchsorted(-time, -time, side="right")  # samples at risk: those whose time is at least as long
    mean, square = (np.cumsum(part)[last - 1] / last for part in (x, x**2))
    variance = (square - mean**2)[event].sum()
    return (x - mean)[event].sum() / np.sqrt(variance) if variance > 1e-12 else 0.0


def concordance(risk, time, event):
    """Harrell's C: the share of pairs with a known order of death in which the higher risk died first; ties half."""
    first = event[:, None] & ((time[:, None] < time) | ((time[:, None] == time) & ~event))
    higher = (risk[:, None] > risk) + 0.5 * (risk[:, None] == risk)
    return float(higher[first].mean()) if first.any() else 0.5
