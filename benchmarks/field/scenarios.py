"""Simulated data with planted modules: scenarios, each a function of a random generator.

A scenario returns the matrix (samples x features), the planted members (modules x features, boolean) and the planted
scores (samples x modules). Sizes, signs, noise and backgrounds differ; nothing is told to a method but the number of
modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Planted(NamedTuple):
    X: np.ndarray
    members: np.ndarray
    scores: np.ndarray
    counts: np.ndarray | None = None


SCENARIOS: dict[str, Callable[[np.random.Generator], Planted]] = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def disjoint_sets(sizes, p, rng):
    members, order = np.zeros((len(sizes), p), bool), rng.permutation(p)
    for own, part in zip(members, np.split(order, np.cumsum(sizes)), strict=False):
        own[part] = True
    return members


def random_sets(sizes, p, rng):
    """Sets that share members by chance."""
    members = np.zeros((len(sizes), p), bool)
    for own, size in zip(members, sizes, strict=True):
        own[rng.choice(p, size, replace=False)] = True
    return members


def weights_of(members, rng, low=0.6, high=1.4, signs=(1.0,)):
    return members * rng.uniform(low, high, members.shape) * rng.choice(signs, members.shape)


def groups(n, k, share, rng):
    """0/1 activity: each module is on in its own random samples."""
    active = np.zeros((n, k))
    for own in active.T:
        own[rng.choice(n, round(share * n), replace=False)] = 1.0
    return active


def made(scores, weights, rng, noise=1.0):
    X = scores @ weights + noise * rng.standard_normal((len(scores), weights.shape[1]))
    return Planted(X, weights != 0, scores)


@scenario
def disjoint(rng):
    members = disjoint_sets([60] * 8, 2000, rng)
    return made(1.2 * groups(150, 8, 0.2, rng), weights_of(members, rng), rng)


@scenario
def overlapping(rng):
    members = random_sets([100] * 8, 2000, rng)
    return made(rng.standard_normal((200, 8)), weights_of(members, rng, signs=(-1.0, 1.0)), rng)


@scenario
def unequal(rng):
    members = disjoint_sets([30, 50, 80, 120, 200, 400], 2000, rng)
    return made(0.9 * rng.standard_normal((200, 6)), weights_of(members, rng, 0.5, 1.2), rng)


@scenario
def subtypes(rng):
    """Exclusive groups with their markers; a third of the samples belongs to none."""
    members, label = disjoint_sets([30] * 6, 3000, rng), rng.integers(0, 9, 180)
    return made(np.eye(9)[label][:, :6], weights_of(members, rng, 1.0, 2.0), rng)


@scenario
def cell_types(rng):
    """Exclusive groups that make up all samples."""
    members, label = disjoint_sets([40] * 6, 2000, rng), rng.integers(0, 6, 240)
    return made(np.eye(6)[label], weights_of(members, rng, 1.0, 2.0), rng)


@scenario
def gradients(rng):
    """Every sample has a value; modules of 20 to 400 features."""
    members = disjoint_sets([20, 40, 80, 160, 400], 2500, rng)
    return made(rng.uniform(-1.2, 1.2, (120, 5)), weights_of(members, rng), rng)


@scenario
def graded(rng):
    """Loadings fall off gradually, so that there is no clear end of a module."""
    members = disjoint_sets([100] * 6, 2000, rng)
    weights = members * rng.exponential(1.0, members.shape)
    planted = made(rng.standard_normal((150, 6)), weights, rng)
    return planted._replace(members=weights > 0.3)


@scenario
def mixed_signs_and_background(rng):
    """A dense factor on which every feature loads is stronger than any module."""
    members = disjoint_sets([50] * 6, 2000, rng)
    planted = made(rng.standard_normal((150, 6)), weights_of(members, rng, signs=(-1.0, 1.0)), rng)
    background = np.outer(rng.standard_normal(150), 0.7 * rng.standard_normal(2000))
    return planted._replace(X=planted.X + background)


@scenario
def counts(rng):
    """Negative binomial counts of uneven depth, then log(1 + counts per 10,000)."""
    members = disjoint_sets([40, 60, 80, 100], 2000, rng)
    scores = groups(300, 4, 0.25, rng)
    rate = np.exp(rng.normal(0.0, 1.0, 2000) + scores @ weights_of(members, rng, 0.8, 1.4))
    rate *= np.exp(rng.normal(0.0, 0.4, (300, 1)))
    raw = rng.poisson(rate * rng.gamma(5.0, 0.2, rate.shape))
    X = np.log1p(1e4 * raw / np.maximum(raw.sum(axis=1, keepdims=True), 1))
    return Planted(X, members, scores, raw)


@scenario
def zero_inflated(rng):
    """Features of very different means and detection; half of the values are zero."""
    members = disjoint_sets([50] * 5, 2000, rng)
    scores, level = groups(300, 5, 0.2, rng), rng.normal(0.0, 1.0, 2000)
    X = np.maximum(level + scores @ weights_of(members, rng, 0.8, 1.6) + rng.standard_normal((300, 2000)), 0.0)
    return Planted(X * (rng.random(X.shape) < 0.7) * np.exp(rng.normal(0.0, 0.5, 2000)), members, scores)


@scenario
def heavy_tails(rng):
    """Noise of Student's t distribution with three degrees of freedom, and a few wild entries."""
    members = disjoint_sets([60] * 5, 1500, rng)
    scores = rng.standard_normal((150, 5))
    X = scores @ weights_of(members, rng) + rng.standard_t(3, (150, 1500)) / np.sqrt(3)
    X[rng.random(X.shape) < 0.001] += 15.0
    return Planted(X, members, scores)


@scenario
def uneven_variances(rng):
    """Features have scales of their own (a factor of e^.7)."""
    planted = made(rng.standard_normal((150, 6)), weights_of(disjoint_sets([60] * 6, 2000, rng), rng), rng)
    return planted._replace(X=planted.X * np.exp(rng.normal(0.0, 0.7, 2000)))


@scenario
def few_samples(rng):
    members = disjoint_sets([60] * 4, 2000, rng)
    return made(rng.standard_normal((30, 4)), weights_of(members, rng, signs=(-1.0, 1.0)), rng)


@scenario
def correlated_modules(rng):
    """Neighbouring modules have correlated scores (.5) and share a fifth of their features."""
    p, k = 2000, 6
    order, members = rng.permutation(p), np.zeros((k, p), bool)
    for j, own in enumerate(members):
        own[order[48 * j : 48 * j + 60]] = True
    shared = rng.standard_normal((150, k + 1))
    return made((shared[:, :-1] + shared[:, 1:]) / np.sqrt(2), weights_of(members, rng), rng)


# Added for the comparison of methods (data.py): netbic was not developed with them.
NEW: dict[str, Callable[[np.random.Generator], Planted]] = {}


def new(function):
    NEW[function.__name__] = function
    return function


@new
def thirty_samples(rng):
    """Modules of 20 to 400 features; every sample has a value."""
    members = disjoint_sets([20, 40, 80, 160, 400], 2000, rng)
    return made(1.3 * rng.standard_normal((30, 5)), weights_of(members, rng), rng)


@new
def thirty_samples_in_groups(rng):
    """Exclusive groups of about seven samples with their markers; the other samples belong to none."""
    members, label = disjoint_sets([20, 50, 100], 2000, rng), rng.permutation(np.arange(30) % 4)
    return made(np.eye(4)[label][:, :3], weights_of(members, rng, 1.5, 2.5), rng)


@new
def four_hundred_samples(rng):
    """Weak modules of 20 to 400 features."""
    members = disjoint_sets([20, 20, 40, 40, 80, 80, 160, 400], 2500, rng)
    return made(0.4 * rng.standard_normal((400, 8)), weights_of(members, rng), rng)


@new
def four_hundred_samples_overlapping(rng):
    """Modules of both signs that share features, of which two or three act in a sample, with uneven noise."""
    members = random_sets([20, 40, 60, 80, 100, 150, 200, 300, 400, 400], 3000, rng)
    scores = groups(400, 10, 0.25, rng) * rng.gamma(4.0, 0.3, (400, 10))
    return made(scores, weights_of(members, rng, signs=(-1.0, 1.0)), rng, noise=rng.uniform(0.5, 1.5, 3000))
