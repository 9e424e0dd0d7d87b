r"""All modules together: sparse vectors v_j, and scores that are orthonormal.

Let U D V' be the leading part of X, of a rank r somewhat larger than the number K of modules, and W = U D^a V' with
a = 3/4: strong directions lose a part of their advantage. The search maximises

    F = sum_j u_j'W v_j + (s_j/2) |v_j|'M|v_j| - P(v_j)    over u_1, ..., u_K orthonormal and unit vectors v_j.

The scores u_j = U r_j matter only by their coordinates r_j, which are orthonormal as well. With the loadings A = V D^a,
a round consists of

    v_j: the half step of the paper with z_j = W'u_j = A r_j, for every j (`half_step`);
    (r_1 ... r_K) = polar(A'v_1 ... A'v_K), the orthonormal matrix that maximises sum_j r_j'A'v_j.

Neither decreases F: the first by the argument in `half_step`, the second because sum_j r_j'b_j over orthonormal r_j is
at most the sum of the singular values of (b_1 ... b_K), which the polar factor attains. Without a graph and with
P = L1 this is the block method of Journee, Nesterov, Richtarik and Sepulchre (2010). A round needs no product with X.

Sizes from the data (`BeyondBulk`) are set anew in the first rounds and then fixed; F is defined from then on. During
the search only the largest weights of a module count; the final vector has all entries that stand out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr

from netbic.arrays import Floats
from netbic.operators.corrected import Corrected
from netbic.penalties import L0, Penalty
from netbic.solver.half_step import Side, State, Vector, half_step, step_without_graph
from netbic.solver.problem import _REDUCTIONS, _reduced
from netbic.solver.search import Axis, Module, described
from netbic.solver.solve import Outcome, Settings, Solution

POWER: Final = 0.75  # a
SURPLUS: Final = 1.5  # rank of the subspace per module
N_STARTS: Final = 3
_RESIZED = range(2, 17, 2)  # rounds in which sizes are set anew
_FIRST_SHARE, _FEWEST = 0.01, 5  # features of a module before that, and by which starts are compared
_OVERSAMPLING = 10
_PASSES = 6  # over X for the subspace, if the Gram matrix is too large
_GRAM_SIZE = 24  # the Gram matrix costs less if the short side is at most this many times the rank


class Subspace(NamedTuple):
    """The leading part of a matrix: left vectors (n, r), singular values, and right vectors (r, p)."""

    left: Floats
    values: Floats
    right: Floats


def leading_subspace(operator: Corrected, rank: int, noise: float = 0.0) -> Subspace:
    """Singular vectors of the `rank` largest singular values, as far as they exceed the `noise` of rounding."""
    n, p = operator.shape
    short, block = min(n, p), min(rank + _OVERSAMPLING, n, p)
    factor = 1 / np.sqrt(operator.squared_norm) if operator.squared_norm_is_safe else 1.0
    if operator.tracks_gram and short <= max(_GRAM_SIZE * block, 64):
        gram = operator.gram(n <= p, factor, np.float64)
        squares, vectors = eigh(gram, lower=False, subset_by_index=[short - min(rank, short), short - 1])
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0.0)) / factor, vectors[:, ::-1]
        kept = values > max(noise, 1e-7 * values[0])
        values, vectors = values[kept], vectors[:, kept]
        if n <= p:
            return Subspace(vectors, values, operator.left_products(vectors) / values[:, None])
        every = np.arange(p)
        images = operator.products([(every, vector) for vector in vectors.T])
        return Subspace(images.T / values, values, vectors.T)
    directions = np.random.default_rng(0).standard_normal((p, block))
    images = np.empty((n, 0))
    for _ in range(_PASSES):
        directions = np.linalg.qr(directions)[0]
        products, images = operator.normal(directions)
        directions, basis = products, directions
    left, values, rotation = np.linalg.svd(images, full_matrices=False)
    kept = values[:rank] > max(noise, 1e-7 * values[0])
    return Subspace(left[:, :rank][:, kept], values[:rank][kept], (rotation[:rank] @ basis.T)[kept])


@dataclass(frozen=True)
class JointState:
    """The coordinates r_j of the scores, the vectors v_j, the products z_j (in rows) they were found with, and F."""

    rotation: Floats
    vectors: list[Vector]
    products: Floats
    objective: float = -np.inf


def joint_round(loadings: Floats, sides: list[Side], state: JointState, settings: Settings, feasible: bool) -> JointState:
    """Update all vectors v_j, then all scores; `loadings` has a row per direction of the subspace."""
    products = state.rotation.T @ loadings
    vectors = [
        half_step(side, z, old, old, settings.solver, feasible)
        for side, z, old in zip(sides, products, state.vectors, strict=True)
    ]
    images = np.column_stack([loadings[:, v.support] @ v.values for v in vectors])
    left, values, right = np.linalg.svd(images, full_matrices=False)
    objective = float(values.sum()) + sum(side.gain(v) for side, v in zip(sides, vectors, strict=True))
    return JointState(left @ right, vectors, products, objective)


def start_at(loadings: Floats, sides: list[Side], rotation: Floats) -> JointState:
    """The vectors v_j for given scores, without the graph."""
    products = rotation.T @ loadings
    vectors = [step_without_graph(side, z) for side, z in zip(sides, products, strict=True)]
    return JointState(rotation, vectors, products)


def converge(
    loadings: Floats, sides: list[Side], state: JointState, settings: Settings, feasible: bool
) -> tuple[JointState, Outcome, list[float]]:
    """Rounds until F changes by at most `tol` (relative) and no support changes."""
    objectives: list[float] = []
    for _ in range(settings.max_iter):
        new = joint_round(loadings, sides, state, settings, feasible)
        objectives.append(new.objective)
        same = all(v.has_support_of(old) for v, old in zip(new.vectors, state.vectors, strict=True))
        settled = abs(new.objective - state.objective) <= settings.tol * abs(new.objective)
        state, feasible = new, True
        if same and settled:
            return state, "converged", objectives
    return state, "max_iter", objectives


def with_penalty(sides: list[Side], penalties: list[Penalty]) -> list[Side]:
    """The same sides with other penalties."""
    return [replace(side, penalty=penalty) for side, penalty in zip(sides, penalties, strict=True)]


def joint_modules(
    operator: Corrected, columns: Axis, settings: Settings, n_modules: int, noise: float = 0.0
) -> tuple[list[Module], str]:
    """At most `n_modules` modules, the strongest first, and why there are not more of them."""
    space = leading_subspace(operator, ceil(SURPLUS * n_modules), noise)
    rank = min(n_modules, space.values.size)
    if not rank:
        return [], "X is zero up to rounding errors"
    # The leading singular value is that of X, so that penalties and weights of the graph keep their scale.
    loadings = space.right * (space.values[:, None] ** POWER * space.values[0] ** (1 - POWER))
    side = columns.side(float(space.values[0]), operator.squared_norm, operator.n_entries)
    sides, state, outcome, objectives = _best_start(loadings, [side] * rank, settings)
    if side.share:
        sides, state, outcome, further = _with_graph(loadings, sides, state, outcome, settings)
        objectives = [*objectives, *further]
    kept = [j for j, v in enumerate(state.vectors) if v.support.size]
    images = operator.products([(state.vectors[j].support, state.vectors[j].values) for j in kept])
    modules = [
        _module(side, state.vectors[j], state.products[j], image, outcome, np.array(objectives))
        for side, j, image in zip((sides[j] for j in kept), kept, images, strict=True)
    ]
    ended = f"X has only {rank} directions beyond rounding errors" if rank < n_modules else ""
    if len(kept) < rank:
        ended = "no feature has a large enough weight in the others: use a weaker penalty"
    return sorted(modules, key=lambda module: -module.d), ended


def _best_start(
    loadings: Floats, sides: list[Side], settings: Settings
) -> tuple[list[Side], JointState, Outcome, list[float]]:
    """The solution, without the graph, of the best start.

    The first start has the principal directions as scores, the second those of features that are large and as
    different as possible (a QR decomposition with pivoting), further ones are random. They are compared by the sum of
    squares of the norms of the largest z_j, as many for each module: F itself depends on sizes.
    """
    rank, p = loadings.shape
    n_modules = len(sides)
    size = min(max(int(_FIRST_SHARE * p), _FEWEST), p)
    plain = [replace(side, term=None, sigma=0.0) for side in sides]

    def start(number: int) -> Floats:
        if number == 0:
            return np.eye(rank, n_modules)
        if number == 1:
            return np.asarray(qr(loadings, mode="economic", pivoting=True)[0][:, :n_modules])
        drawn = np.random.default_rng([settings.seed, number]).standard_normal((rank, n_modules))
        return np.linalg.qr(drawn)[0]

    best, most = None, -np.inf
    for number in range(max(settings.n_init, 1)):
        found = _from_start(loadings, plain, start(number), size, settings)
        largest = np.partition(np.square(found[1].products), p - size, axis=1)[:, p - size :]
        if best is None or largest.sum() > most:
            best, most = found, float(largest.sum())
    assert best is not None
    penalised, state, outcome, objectives = best
    return [replace(side, penalty=own.penalty) for side, own in zip(sides, penalised, strict=True)], state, outcome, objectives


def _from_start(
    loadings: Floats, sides: list[Side], rotation: Floats, size: int, settings: Settings
) -> tuple[list[Side], JointState, Outcome, list[float]]:
    asked = sides[0].penalty
    if not asked.sizes_from_data:
        return sides, *converge(loadings, sides, start_at(loadings, sides, rotation), settings, feasible=True)
    first = L0(size, nonnegative=asked.nonnegative)
    fixed = with_penalty(sides, [first] * len(sides))
    state = start_at(loadings, fixed, rotation)
    for number in range(_RESIZED.stop):
        if number in _RESIZED:
            magnitudes = [_magnitudes(asked, z) for z in state.rotation.T @ loadings]
            fixed = with_penalty(sides, [asked.fixed_for(own, core=True) for own in magnitudes])
        state = joint_round(loadings, fixed, state, settings, feasible=False)
    state, outcome, objectives = converge(loadings, fixed, state, settings, feasible=True)
    products = state.rotation.T @ loadings
    fixed = with_penalty(sides, [asked.fixed_for(_magnitudes(asked, z)) for z in products])
    return fixed, replace(start_at(loadings, fixed, state.rotation), objective=state.objective), outcome, objectives


def _magnitudes(penalty: Penalty, z: Floats) -> Floats:
    return np.maximum(z, 0.0) if penalty.nonnegative else np.abs(z)


def _with_graph(
    loadings: Floats, sides: list[Side], plain: JointState, outcome: Outcome, settings: Settings
) -> tuple[list[Side], JointState, Outcome, list[float]]:
    """Continue with the graph, with weights in units of each module's strength, reduced where the graph leads."""
    weighted = []
    for side, v, z in zip(sides, plain.vectors, plain.products, strict=True):
        strength = float(z[v.support] @ v.values)
        sigma = side.share * strength / side.term.scale if side.term is not None else 0.0
        weighted.append(replace(side.trusting(v), sigma=sigma))
    state, objectives = plain, list[float]()
    for _ in range(_REDUCTIONS):
        smooth = [replace(side, term=side.term).smooth(replace(v, smoothed=None)) for side, v in zip(weighted, state.vectors, strict=True)]
        begin = replace(state, vectors=smooth, objective=-np.inf)
        state, outcome, objectives = converge(loadings, weighted, begin, settings, feasible=True)
        reduced = [
            _reduced(side, v, float(z[v.support] @ v.values), z)
            for side, v, z in zip(weighted, state.vectors, state.products, strict=True)
        ]
        if all(new is old for new, old in zip(reduced, weighted, strict=True)):
            return weighted, state, outcome, objectives
        weighted = reduced
    return sides, plain, outcome, []


def _module(side: Side, v: Vector, z: Floats, image: Floats, outcome: Outcome, objectives: Floats) -> Module:
    """The module of a vector v, with scores Xv = `image`."""
    d = float(z[v.support] @ v.values)
    found = described(Solution(State(v, v, d, 0.0, None, z), outcome, objectives), side, side)
    strength = float(np.linalg.norm(image))
    u = Vector.of(image) if found.v.values[0] == v.values[0] else Vector.of(-image)
    return replace(found, u=u, d=strength)
