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
the search without the graph only the largest weights of a module count; the final vector has all entries that stand
out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr

from netbic.arrays import Floats
from netbic.operators.corrected import Corrected
from netbic.penalties import L0, Dense
from netbic.solver.half_step import Side, State, Vector, half_step, scored, step_without_graph
from netbic.solver.problem import REDUCTIONS, reduced_weight
from netbic.solver.search import LOW_RANK, Axis, Module, described, n_standing_out
from netbic.solver.solve import Outcome, Settings, Solution

POWER: Final = 0.75  # a
SURPLUS: Final = 1.5  # rank of the subspace per module
_SETTLING = 16  # rounds before starts are compared; sizes are set anew in every second one
_FIRST_SHARE, _FEWEST = 0.01, 5  # features of a module before that, and by which starts are compared
_OVERSAMPLING = 10
_LARGEST = 1e15  # singular value
_SMALLEST = 1e-7  # singular value, relative to the largest one, that is more than rounding error
_SINGLE = 0.01  # singular value, relative to the largest one, down to which a Gram matrix in single precision is enough
_MANY = 256  # rows or columns of a Gram matrix from which on single precision saves time
_FILLS, _SAME_FILL = 100, 1e-6  # rounds of imputation at most, and the relative change at which they end
_PASSES = 6  # over X for the subspace, if the Gram matrix is too large
_GRAM_SIZE, _SMALL = 24, 64  # the Gram matrix is used if the short side is at most so many times the rank, or small


class Subspace(NamedTuple):
    """The leading singular values of a matrix (r) and their right singular vectors (r, p)."""

    values: Floats
    right: Floats


def leading_subspace(
    operator: Corrected,
    rank: int,
    noise: float = 0.0,
    left_products: Callable[[Floats], Floats] | None = None,
    *,
    is_scaled: bool = False,
) -> Subspace:
    """Singular vectors of the `rank` largest singular values, as far as they exceed the `noise` of rounding.

    Instead of that of the operator, a faster method for `left_products` may be given. If the squares of its entries
    cannot overflow (`is_scaled`), no scaled copy is needed.
    """
    n, p = operator.shape
    short, block = min(n, p), min(rank + _OVERSAMPLING, n, p)
    factor = 1 / np.sqrt(operator.squared_norm) if operator.squared_norm_is_safe and not is_scaled else 1.0
    dtype = operator.data.dtype
    if operator.tracks_gram and short <= max(_GRAM_SIZE * block, _SMALL):
        for precision in (dtype if short > _MANY else np.float64, np.float64):
            gram = operator.gram(n <= p, factor, precision).astype(np.float64, copy=False)
            squares, vectors = eigh(gram, lower=False, subset_by_index=[short - min(rank, short), short - 1])
            if precision == np.float64 or squares[0] > _SINGLE**2 * squares[-1]:
                break
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0.0)) / factor, vectors[:, ::-1]
        kept = values > max(noise, _SMALLEST * values[0])
        values, vectors = values[kept], vectors[:, kept]
        if n <= p:
            right = (left_products or operator.left_products)(vectors)
            return Subspace(values, (right / values[:, None]).astype(dtype))
        return Subspace(values, np.ascontiguousarray(vectors.T, dtype=dtype))
    (space,) = subspaces_by_passes(operator, rank, np.ones((n, 1)), centred=False)
    kept = space.values > noise
    return Subspace(space.values[kept], space.right[kept].astype(dtype))


def subspaces_by_passes(operator: Corrected, rank: int, parts: Floats, *, centred: bool) -> list[Subspace]:
    """The leading subspaces of parts of the rows, a column of 0 and 1 for each, all in the same few passes over X.

    These are subspace iterations from random directions. With `centred`, the mean of each part is subtracted.
    """
    p, sizes = operator.shape[1], parts.sum(axis=0)
    block = min(rank + _OVERSAMPLING, int(sizes.min()), p)
    weights = np.repeat(parts, block, axis=1)
    sums = np.repeat(operator.left_products(parts), block, axis=0).T if centred else 0.0

    def multiply(bases: Floats) -> tuple[Floats, Floats]:
        """Y'Yv and Yv for the columns v of all bases, where Y is the (centred) part of each; a stack of arrays each."""
        products, images = operator.normal(np.concatenate(bases, axis=1), weights)
        if centred:
            means = images.sum(axis=0) / np.repeat(sizes, block)
            products, images = products - sums * means, images - weights * means
        return np.array(np.hsplit(products, len(sizes))), np.array(np.hsplit(images, len(sizes)))

    bases = np.random.default_rng(0).standard_normal((len(sizes), p, block))
    for _ in range(_PASSES - 1):
        bases, _ = multiply(np.linalg.qr(bases)[0])
    bases = np.linalg.qr(bases)[0]
    spaces = []
    for basis, images in zip(bases, multiply(bases)[1], strict=True):
        _, values, rotation = np.linalg.svd(images, full_matrices=False)
        kept = values[:rank] > _SMALLEST * values[0]
        spaces.append(Subspace(values[:rank][kept], (rotation[:rank] @ basis.T)[kept]))
    return spaces


def imputed(operator: Corrected, rank: int, noise: float = 0.0) -> Corrected:
    """The matrix with its missing entries predicted by its leading subspace, repeatedly until that hardly changes.

    Singular values d are shrunk to (d^2 - s^2) / d, where s^2 is the mean square of the others: without that the
    predictions would fit noise (Josse and Husson 2012).
    """
    filled, before, every = operator, -np.inf, np.arange(operator.shape[1])
    for _ in range(_FILLS):
        space = leading_subspace(filled, rank, noise)
        strength = float(np.sum(space.values**2))
        if abs(strength - before) <= _SAME_FILL * strength:
            break
        rest = max(filled.squared_norm - strength, 0.0) / max(min(operator.shape) - space.values.size, 1)
        shrunk = np.maximum(1 - rest / space.values**2, 0.0)
        images = filled.products([(every, line) for line in space.right])
        filled, before = operator.with_prediction((shrunk[:, None] * images).T, space.right.T), strength
    return filled


@dataclass(frozen=True)
class JointState:
    """The coordinates r_j of the scores (r, K), the vectors v_j, the products z_j they were found with, and F."""

    rotation: Floats
    vectors: list[Vector]
    products: Floats
    objective: float = -np.inf


@dataclass(frozen=True)
class JointProblem:
    """The search for K modules in a subspace: its loadings, a row per direction, and a side per module."""

    loadings: Floats
    sides: list[Side]
    settings: Settings

    def products(self, rotation: Floats) -> Floats:
        """The products z_j = W'u_j, a row each, in the precision of the loadings."""
        return np.asarray(rotation.T.astype(self.loadings.dtype, copy=False) @ self.loadings)

    def at(self, rotation: Floats) -> JointState:
        """The vectors v_j for given scores, without the graph."""
        products = self.products(rotation)
        vectors = [step_without_graph(side, z) for side, z in zip(self.sides, products, strict=True)]
        return JointState(rotation, vectors, products)

    def round(self, state: JointState, *, feasible: bool) -> JointState:
        """Update all vectors, then all scores. From a `feasible` state F does not decrease."""
        products = self.products(state.rotation)
        vectors = [
            half_step(side, z, old, self.settings.solver, feasible)
            for side, z, old in zip(self.sides, products, state.vectors, strict=True)
        ]
        images = np.column_stack([self.loadings[:, v.support] @ v.values for v in vectors]).astype(np.float64)
        left, values, right = np.linalg.svd(images, full_matrices=False)
        gains = sum(side.gain(v) for side, v in zip(self.sides, vectors, strict=True))
        return JointState(left @ right, vectors, products, float(values.sum()) + gains)

    def converge(self, state: JointState) -> tuple[JointState, Outcome, list[float]]:
        """Rounds from a feasible state until F changes by at most `tol` (relative) and no support changes."""
        objectives: list[float] = []
        for _ in range(self.settings.max_iter):
            new = self.round(state, feasible=True)
            objectives.append(new.objective)
            same = all(v.has_support_of(old) for v, old in zip(new.vectors, state.vectors, strict=True))
            settled = abs(new.objective - state.objective) <= self.settings.tol * abs(new.objective)
            state = new
            if same and settled:
                return state, "converged", objectives
        return state, "max_iter", objectives

    def settle(self, state: JointState, asked: Side) -> tuple[JointProblem, JointState]:
        """The first rounds, in which sizes that come from the data are set anew."""
        problem = self
        for number in range(_SETTLING):
            if asked.penalty.sizes_from_data and number % 2 == 0 and state.objective > -np.inf:
                problem = problem.resized(state, asked, core=True)
            state = problem.round(state, feasible=False)
        return problem, state

    def resized(self, state: JointState, asked: Side, *, core: bool = False) -> JointProblem:
        """The problem with the sizes that the scores of the current state suggest."""
        products = self.products(state.rotation)
        sides = []
        for side, z, v in zip(self.sides, products, state.vectors, strict=True):
            magnitudes = np.maximum(side.magnitudes(scored(side, z, side.smooth(v))), 0.0)
            sides.append(replace(side, penalty=asked.penalty.fixed_for(magnitudes, core=core)))
        return replace(self, sides=sides)


def joint_modules(
    operator: Corrected,
    columns: Axis,
    settings: Settings,
    n_modules: int,
    noise: float = 0.0,
    space: Subspace | None = None,
) -> tuple[list[Module], str]:
    """At most `n_modules` modules, the strongest first, and why there are not more of them.

    A leading subspace that is known already (`space`) is used if it is large enough.
    """
    needed = ceil(SURPLUS * n_modules)
    if space is None or space.values.size < needed:
        space = leading_subspace(operator, needed, noise)
    space = Subspace(space.values[:needed], space.right[:needed])
    rank = min(n_modules, space.values.size)
    if not rank:
        return [], "nothing but rounding error is left of X"
    asked = columns.side(float(space.values[0]), operator.squared_norm, operator.n_entries)
    problem, state, outcome, objectives = solve_jointly(space, asked, rank, settings)
    found = zip(problem.sides, state.vectors, state.products, strict=True)
    kept = [(side, v, z) for side, v, z in found if v.support.size]
    images = operator.products([(v.support, v.values) for _, v, _ in kept])
    modules = [
        replace(
            _module(side, v, z, image, outcome, np.array(objectives)),
            standing_out=n_standing_out(columns.penalty, side, v, z),
        )
        for (side, v, z), image in zip(kept, images, strict=True)
    ]
    ended = "X has no further direction" if len(kept) == rank < n_modules else ""
    if len(kept) < rank:
        ended = f"the column penalty {columns.penalty!r} keeps no column in {rank - len(kept)} directions of X"
    return sorted(modules, key=lambda module: -module.d), ended


def joint_vectors(space: Subspace, asked: Side, n_modules: int, settings: Settings) -> list[Vector]:
    """The vectors v of at most `n_modules` modules in a subspace, without those that are empty."""
    kept = ceil(SURPLUS * n_modules)
    space = Subspace(space.values[:kept], space.right[:kept])
    _, state, _, _ = solve_jointly(space, asked, min(n_modules, space.values.size), settings)
    return [v for v in state.vectors if v.support.size]


def solve_jointly(
    space: Subspace, asked: Side, n_modules: int, settings: Settings
) -> tuple[JointProblem, JointState, Outcome, list[float]]:
    """The modules in a subspace, with the sides they ended with, how the iteration ended, and F after every round."""
    # The leading singular value is that of X, so that penalties and weights of the graph keep their scale.
    scale = space.values[:, None] ** POWER * space.values[0] ** (1 - POWER)
    is_safe = 1 / _LARGEST < space.values[0] < _LARGEST  # for squares in single precision
    # Random starts need signs that do not depend on the order of rows and columns.
    scale[np.einsum("ij,ij,ij->i", space.right, space.right, space.right) < 0] *= -1
    loadings = space.right * scale.astype(space.right.dtype if is_safe else np.float64)
    problem, state = _best_start(loadings, asked, n_modules, settings)
    state, outcome, objectives = problem.converge(state)
    if asked.penalty.sizes_from_data:
        problem = problem.resized(state, asked)
        state = problem.at(state.rotation)
    if asked.share or asked.has_graph:
        return _with_graph(problem, state, outcome, objectives, asked)
    return problem, state, outcome, objectives


def _best_start(loadings: Floats, asked: Side, n_modules: int, settings: Settings) -> tuple[JointProblem, JointState]:
    """The best of several starts after the first rounds, which do not use the graph.

    The scores of the first start are principal directions, those of the second one features that are large and as
    different as possible (QR decomposition with pivoting); further ones are random. Starts are compared by F or, if
    sizes come from the data, by the sum of squares of the largest z_j, equally many for each module.
    """
    rank, p = loadings.shape
    size = min(max(int(_FIRST_SHARE * p), _FEWEST), p)
    plain = replace(asked, sigma=0.0, share=0.0)
    first = replace(plain, penalty=L0(size, nonnegative=asked.penalty.nonnegative))
    sides = [first if asked.penalty.sizes_from_data else plain] * n_modules

    def rotation(number: int) -> Floats:
        if number == 0:
            return np.eye(rank, n_modules)
        if number == 1:
            directions, coordinates, _ = qr(loadings, mode="economic", pivoting=True)
            signs = np.where(np.diag(coordinates) < 0, -1.0, 1.0)  # the features have positive scores
            return np.asarray((directions[:, : signs.size] * signs)[:, :n_modules])
        drawn = np.random.default_rng([settings.seed, number]).standard_normal((rank, n_modules))
        return np.asarray(np.linalg.qr(drawn)[0])

    found = []
    for number in range(max(settings.n_init, 1)):
        problem = JointProblem(loadings, sides, settings)
        problem, state = problem.settle(problem.at(rotation(number)), plain)
        value = state.objective
        if asked.penalty.sizes_from_data:
            usable = np.maximum(state.products, 0.0) if asked.penalty.nonnegative else state.products
            value = float(np.partition(np.square(usable), p - size, axis=1)[:, p - size :].sum())
        found.append((value, problem, state))
    _, problem, state = max(found, key=lambda one: one[0])
    return problem, state


def _with_graph(
    problem: JointProblem, plain: JointState, outcome: Outcome, objectives: list[float], asked: Side
) -> tuple[JointProblem, JointState, Outcome, list[float]]:
    """Continue from the modules without the graph, with weights that are reduced until the graph leads no module.

    If it still does after many reductions, the modules without the graph are kept.
    """
    scale = 1.0 if asked.term is None else asked.term.scale
    sides = []
    for side, v, z in zip(problem.sides, plain.vectors, plain.products, strict=True):
        sigma = asked.share * float(z[v.support] @ v.values) / scale if asked.share else asked.sigma
        sides.append(replace(side.trusting(v), share=asked.share, sigma=sigma))
    state = plain
    for _ in range(REDUCTIONS):
        found, state = _settle_with_graph(replace(problem, sides=sides), state, asked)
        state, ended, with_graph = found.converge(state)
        sides = [
            reduced_weight(side, v, float(z[v.support] @ v.values), z, lowest_rank=min(2 * v.support.size, LOW_RANK))
            for side, v, z in zip(found.sides, state.vectors, state.products, strict=True)
        ]
        if all(new is old for new, old in zip(sides, found.sides, strict=True)):
            return found, state, ended, with_graph
    return problem, plain, outcome, objectives


def _settle_with_graph(problem: JointProblem, state: JointState, asked: Side) -> tuple[JointProblem, JointState]:
    """A state whose products with the graph term are those of the problem, after rounds in which sizes are set anew."""
    vectors = [side.smooth(replace(v, smoothed=None)) for side, v in zip(problem.sides, state.vectors, strict=True)]
    state = replace(state, vectors=vectors, objective=-np.inf)
    for _ in range(_SETTLING // 2 if asked.penalty.sizes_from_data else 0):
        problem = problem.resized(state, asked)
        state = problem.round(state, feasible=False)
    return problem, state


def _module(side: Side, v: Vector, z: Floats, image: Floats, outcome: Outcome, objectives: Floats) -> Module:
    """The module of a vector v with scores Xv = `image`; d = |Xv|."""
    strength = float(z[v.support] @ v.values)
    row = Vector.of(image)
    found = described(Solution(State(row, v, strength, 0.0, None, z), outcome, objectives), Side(Dense()), side)
    return replace(found, d=float(np.linalg.norm(image)))
