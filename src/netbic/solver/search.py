"""The search for modules, one after another: leading direction, solve (with restarts), deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from netbic.arrays import Floats, Indices, scatter
from netbic.graph_terms import GraphTerm
from netbic.operators.corrected import Corrected
from netbic.penalties import DIAGNOSTICS, Dense, Penalty
from netbic.solver.half_step import Side, Vector
from netbic.solver.problem import ROUGH, ModuleProblem, share_by_data, solve_with_graph, worst_rank
from netbic.solver.sizes import scores_of_all_rows, solve_sizes, with_all_rows, with_groups
from netbic.solver.solve import MAX_CHOOSING_ROUNDS, Deflation, Outcome, Settings, Solution
from netbic.solver.starts import Direction, Starts, image

SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("on_repeat", "hotelling", "projection", "schur")
MAX_MODULES: Final = 10_000  # of one search; modules of one row and one column could be as many as entries of X
REPEATED: Final = 0.7  # absolute correlation of scores from which a module repeats an earlier one
LARGE_GRAPH_SHARE: Final = 0.3  # share of the scores above which the graph dominates the data
LOW_RANK: Final = 200  # rank of a leading column by the data alone beyond which the graph has put it there

Solved = tuple[ModuleProblem, Solution]
Squares = tuple[Floats | None, Floats | None]  # squared norms of rows and columns
SmoothnessScale = Literal["module", "relative", "absolute"]
AxisName = Literal["rows", "columns"]
Stored = Floats | tuple[int, Indices, Floats]  # all entries, or the number of them and those that are not zero
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Axis:
    """The options of one axis; `side` turns them into the input of a half step for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    scale: SmoothnessScale = "relative"
    signed: bool = False
    centred: bool = False  # whether the scores of this axis have mean zero, because the other axis is centred

    def side(self, leading_value: float, squared_norm: float, n_entries: int, squares: Floats | None = None) -> Side:
        """Set sigma and data-driven penalties for a residual with this leading singular value and squared norm.

        `squares` are the squared norms of the rows (columns) of the residual, for penalties that choose their size.
        """
        sigma, share, limit = self.smoothness, 0.0, np.inf
        if self.term is not None and sigma > 0:
            if self.penalty.chooses_size and self.scale == "module" and self.term.largest_eigenvalue > 0:
                limit = sigma / self.term.largest_eigenvalue
            if self.scale == "relative" or self.penalty.chooses_size:
                sigma *= leading_value / self.term.scale
            elif self.scale == "module":
                sigma, share = 0.0, sigma  # set by `solve_with_graph`, after a solve without the graph
        penalty = self.penalty.for_matrix(squared_norm, n_entries)
        return Side(penalty, self.term, sigma, self.signed, squares, share, limit)

    @property
    def is_bounded(self) -> bool:
        """Whether the graph cannot dominate the data: there is none, or its weight is reduced until it does not."""
        return self.term is None or not self.smoothness or (self.scale == "module" and self.smoothness < 1)

    @property
    def is_trivial(self) -> bool:
        """Whether all entries are kept as they are, without a graph: then singular vectors are the solution."""
        return isinstance(self.penalty, Dense) and not self.penalty.nonnegative and not (self.term and self.smoothness)


@dataclass(frozen=True)
class Module:
    """A pair (u, v) with d = u'Xv, how its iteration ended, and the part of the graph in it.

    `graph_share` is the share of the graph in the scores of the kept entries, and `graph_weight` is sigma lambda_max(M)
    / d: from 1 on the graph alone can carry a set of entries; both are the larger ones of both axes. `worst_rank` is
    the worst rank, by abs(X'u) alone, of the 20 columns with the largest entries in v (without a graph 20, or the
    number of columns of a smaller module), `by_data_alone` the share of the columns that are among as many columns with
    the largest abs(X'u). The scores of the modules `regressed_out`, by their positions, were regressed out of X before
    this one was found (`deflation="on_repeat"`).
    """

    u: Vector
    v: Vector
    d: float
    outcome: Outcome
    objectives: Floats
    graph_share: float
    graph_weight: float = 0.0
    worst_rank: int = 0
    by_data_alone: float = 1.0
    regressed_out: tuple[int, ...] = ()

    @property
    def free_locations(self) -> bool:
        """Whether the rows are groups among the scores of all rows; then deflation subtracts the other rows too."""
        return self.u.choice is not None and bool(self.u.choice.free_locations)


class ModuleSearch:
    """Iterate over modules until X is exhausted; `ended` is then the reason why the search has ended.

    `known` modules, the first ones of an earlier search, are not searched for again. The others are bit-identical to
    those of that search. `starts` are those of the operator, if they have been computed already; they are modified.

    `scores` are the products Xv of the modules so far.
    """

    def __init__(
        self,
        operator: Corrected,
        rows: Axis,
        columns: Axis,
        settings: Settings,
        noise: float,
        known: Sequence[Module] = (),
        starts: Starts | None = None,
    ) -> None:
        self.ended = ""
        self.scores: list[Floats] = []
        self._known, self._rows, self._columns, self._settings, self._noise = known, rows, columns, settings, noise
        own = operator.for_one_start()
        if known:
            own.data.prefetch(np.unique(np.concatenate([module.v.support for module in known])))
        starts = starts or Starts(operator, exact=settings.solver == "aisp")
        chooses = rows.penalty.chooses_size or columns.penalty.chooses_size
        self._left = Residual(own, starts, noise, with_squares=chooses)

    def __iter__(self) -> Iterator[Module]:
        for number in range(MAX_MODULES):
            module = self._replay(self._known[number]) if number < len(self._known) else self._new(number)
            if module is None:
                return
            yield module
            self._left.operator.data.reset_cache()
            filled = residual = self._left.operator
            if residual.imputes:  # missing entries hold the prediction of the module
                left = scores_of_all_rows(residual, module.v) if module.free_locations else module.d * module.u.full()
                filled = residual.with_prediction(left, module.v.full())
            hotelling = self._settings.deflation in ("hotelling", "on_repeat")
            for left, right in deflation_terms(filled, module, self._settings.deflation):
                self._left.deflate(left, right, module.v if hotelling else None)
        self.ended = f"no more than {MAX_MODULES:,} are searched for"

    def _replay(self, module: Module) -> Module | None:
        """A known module, after the same steps as when it was found."""
        for repeated in (*module.regressed_out, None):
            if self._leading() is None:
                return None
            if repeated is not None:
                self._left.regress_out(repeated, self.scores[repeated])
        self.scores.append(self._left.scores(module.v))
        return module

    def _leading(self) -> Direction | None:
        leading = self._left.leading()
        if leading is None:
            self.ended = "nothing but rounding error is left of X"
        return leading

    def _new(self, number: int) -> Module | None:
        """The next module; with "on_repeat", one whose scores are not those of an earlier module, if there is one."""
        regressed: tuple[int, ...] = ()
        while True:
            leading = self._leading()
            module = None if leading is None else self._next(leading, number)
            if module is None:
                return None
            scores = self._left.scores(module.v)
            avoids_repeats = self._settings.deflation == "on_repeat"
            repeated = self._left.repeated(scores, self.scores) if avoids_repeats else None
            if repeated is None:
                self.scores.append(scores)
                return replace(module, regressed_out=regressed)
            self._left.regress_out(repeated, self.scores[repeated])
            regressed = (*regressed, repeated)

    def _next(self, leading: Direction, number: int) -> Module | None:
        """The best module of the residual; None, with the reason in `ended`, if there is none."""
        squares = self._left.squares()
        residual = self._left.operator
        residual.data.reset_cache()
        axes = self._rows, self._columns
        problem, fixed = problems_of(residual, axes, leading.value, squares, self._settings)
        groups = None
        if self._rows.centred and self._rows.penalty.chooses_size:  # rows may be groups among the scores of all rows
            both = with_all_rows(problem), with_all_rows(fixed)
            dense, solution = solve_module(*both, self._settings, leading, number)
            groups = with_groups(solution, dense, self._rows.penalty)
        if groups is not None:
            problem, solution = dense, groups
        else:
            problem, solution = solve_module(problem, fixed, self._settings, leading, number)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} keeps no {axis}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining module explains nothing (d <= 0)"
            return None
        return described(solution, problem.rows, problem.columns)


def problems_of(
    operator: Corrected, axes: tuple[Axis, Axis], leading_value: float, squares: Squares, settings: Settings
) -> tuple[ModuleProblem, ModuleProblem]:
    """The search for a module of a residual, as asked for and with the sizes used where chosen ones are unreliable."""

    def made(axes: Sequence[Axis]) -> ModuleProblem:
        norm, size = operator.squared_norm, operator.n_entries
        rows, columns = (axis.side(leading_value, norm, size, own) for axis, own in zip(axes, squares, strict=True))
        own = settings
        if (rows.share or columns.share) and not (rows.penalty.chooses_size or columns.penalty.chooses_size):
            # A solve with the graph follows: the one without it need not converge fully.
            own = replace(settings, tol=max(settings.tol, ROUGH), rough=True)
        return ModuleProblem(operator, rows, columns, own)

    return made(axes), made([replace(axis, penalty=axis.penalty.when_unreliable() or axis.penalty) for axis in axes])


def solve_module(
    problem: ModuleProblem, fixed: ModuleProblem, settings: Settings, leading: Direction, number: int
) -> Solved:
    """The best solution, and the problem with the sizes and weights of the graph that it was found with.

    Its vectors tell which choices of sizes were not relied on.
    """
    problem, solution, rejected = solve_sizes(problem, fixed, leading, number)
    if problem.rows.share or problem.columns.share:
        problem, solution = solve_with_graph(replace(problem, settings=settings), solution)
    if problem.operator.imputes and not solution.state.is_empty:
        solution = problem.impute(solution)
    state, sides = solution.state, (problem.rows, problem.columns)
    u, v = (
        vector if choice is None else replace(vector, choice=replace(choice, sigma=side.sigma, fallback=True))
        for vector, choice, side in zip((state.u, state.v), rejected, sides, strict=True)
    )
    return problem, replace(solution, state=replace(state, u=u, v=v))


def described(solution: Solution, rows: Side, columns: Side, signed_by: AxisName = "columns") -> Module:
    """A module and the part of the graph in it; the largest entry of the vector that fixes its sign is positive."""
    state = solution.state
    u, v, d = state.u, state.v, state.d
    shares, weights = [], []
    for side, vector in ((rows, u), (columns, v)):
        graph = abs(2 * side.graph_gain(side.smooth(vector)))  # sigma |w'Mw| against d
        shares.append(graph / (d + graph))
        sigma = side.sigma if vector.choice is None else vector.choice.sigma
        weights.append(0.0 if side.term is None or not sigma else sigma * side.term.largest_eigenvalue / d)
    alone = columns, v, state.column_scores if weights[1] else None
    numbers = max(shares), max(weights), worst_rank(*alone), share_by_data(*alone)
    values = (u if signed_by == "rows" else v).values
    free = not (rows.penalty.nonnegative or columns.penalty.nonnegative)
    if free and not values[np.argmax(np.abs(values))] > 0:
        u, v = -u, -v
    u, v = u.with_smoothed(None), v.with_smoothed(None)  # as long as the axis, and not needed any more
    return Module(u, v, d, solution.outcome, solution.objectives, *numbers)


def deflation_terms(operator: Corrected, module: Module, how: Deflation) -> Iterator[tuple[Floats, Floats]]:
    """The rank-one matrices to subtract, one after another, to remove a module.

    hotelling and on_repeat: X - d uv', or X - Xvv' with free locations.  projection: (I - uu') X (I - vv').
    schur: X - (Xv)(X'u)' / d.
    """
    u, v, d = module.u, module.v, module.d
    if how in ("hotelling", "on_repeat") and not module.free_locations:
        yield d * u.full(), v.full()
        return
    left = operator.matvec(v.support, v.values)
    if how in ("hotelling", "on_repeat"):
        yield left, v.full()
        return
    right = operator.rmatvec(u.support, u.values)
    if how == "schur":
        yield left / d, right
    else:
        yield u.full(), right
        yield left - d * u.full(), v.full()


# --- X without the modules found so far ---


class Residual:
    """The residual of X, its leading direction, squared norms of rows and columns, and the scores Xv of modules.

    Scores refer to X itself: those of the residual plus the part that was subtracted. If entries are missing, deflation
    is not a low-rank update, and squared norms are computed for every module. `starts` are modified, the operator (X)
    is not; `noise` is the norm that rounding errors alone can reach; penalties that choose sizes need squared norms.
    """

    def __init__(self, operator: Corrected, starts: Starts, noise: float, with_squares: bool = False) -> None:
        self.operator = operator
        self._starts, self._noise, self._with_squares = starts, noise, with_squares
        self._squares = operator.squared_lengths() if with_squares and operator.tracks_gram else None
        self._norm_error = 0.0  # rounding error of the squared norm
        self._layers: list[tuple[Stored, Stored]] = []
        self._image: tuple[Vector, Floats] | None = None  # the last vector of `scores`, and the residual's product
        self._regressed: set[int] = set()

    def leading(self) -> Direction | None:
        """The leading direction; None if nothing but rounding error is left."""
        is_left = self.operator.squared_norm > self._norm_error
        leading = self._starts.leading(self.operator) if is_left else None
        if leading is None or leading.value <= self._noise:
            return None
        self.operator.data.reset_cache()
        return leading

    def squares(self) -> Squares:
        """Squared norms of rows and columns, if they are needed."""
        if not self._with_squares:
            return None, None
        return self.operator.squared_lengths() if self._squares is None else self._squares

    def deflate(self, left: Floats, right: Floats, v: Vector | None = None) -> None:
        """Subtract the rank-one matrix `left right'`; `v` is `right` as a vector, if it is the v of a module."""
        self._norm_error += _EPSILON * self.operator.squared_norm
        known, self._image = self._image, None
        product = known[1] if known is not None and known[0] is v else image(self.operator.matvec, right)
        self._starts.deflate(self.operator, left, right, product)
        if self._squares is not None:
            # |x_i - left_i right|^2 = |x_i|^2 - 2 left_i (x_i'right) + left_i^2 |right|^2, at least 0
            rows, columns = self._squares
            transposed = image(self.operator.rmatvec, left)
            rows = np.maximum(rows - 2 * left * product + left**2 * float(right @ right), 0.0)
            columns = np.maximum(columns - 2 * right * transposed + right**2 * float(left @ left), 0.0)
            self._squares = rows, columns
        self.operator = self.operator.minus(left, right, product)
        self._layers.append((_stored(left), _stored(right)))

    def scores(self, v: Vector) -> Floats:
        """The product of X (not of the residual) with a vector."""
        self.operator.data.reset_cache()
        product = self.operator.matvec(v.support, v.values)
        self._image = v, product
        subtracted = np.zeros(self.operator.shape[0])
        for stored in self._layers:
            left, right = (one if isinstance(one, np.ndarray) else scatter(one[1], one[2], one[0]) for one in stored)
            subtracted += float(right[v.support] @ v.values) * left
        return product + subtracted

    def repeated(self, scores: Floats, earlier: Sequence[Floats]) -> int | None:
        """The earlier module with the most similar scores, if they are correlated and were not regressed out yet."""
        if not earlier:
            return None
        similar = np.abs(correlations(scores, np.array(earlier)))
        similar[list(self._regressed)] = 0.0
        best = int(np.argmax(similar))
        return best if similar[best] >= REPEATED else None

    def regress_out(self, module: int, scores: Floats) -> None:
        """Keep only what the scores of an earlier module do not explain."""
        self._regressed.add(module)
        scores = scores / np.linalg.norm(scores)
        self.operator.data.reset_cache()
        self.deflate(scores, image(self.operator.rmatvec, scores))


def _stored(entries: Floats) -> Stored:
    """An array as its non-zero entries if these are less."""
    support = np.flatnonzero(entries)
    return entries if 2 * support.size >= entries.size else (entries.size, support, entries[support])


def correlations(one: Floats, others: Floats) -> Floats:
    """Pearson correlations of a vector with the rows of an array; 0 where one of both is constant."""
    one, others = one - one.mean(), others - others.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(one) * np.linalg.norm(others, axis=1)
    found: Floats = np.divide(others @ one, norms, out=np.zeros(len(others)), where=norms > 0)
    return found


# --- Warnings ---

_ENDS: Final[dict[Outcome, str]] = {
    "cycle": "ran into a cycle",
    "max_iter": "reached max_iter={max_iter}",
    "size_not_converged": f"kept changing its size for {MAX_CHOOSING_ROUNDS} iterations; its last size was kept",
}


class AxisWords(NamedTuple):
    """What messages call an axis, one of its entries, all of them, and the parameter that is their number."""

    axis: str
    entry: str
    entries: str
    size: str


class Words(NamedTuple):
    """What messages call a module and its axes."""

    module: str
    rows: AxisWords
    columns: AxisWords

    def listed(self, numbers: list[int]) -> str:
        """Some modules (their positions) by their numbers, which count from 1."""
        shown = ", ".join(str(number + 1) for number in numbers[:5])
        more = f", ... ({len(numbers)} in all)" if len(numbers) > 5 else ""
        return f"{self.module}{'s' if len(numbers) > 1 else ''} {shown}{more}"


def matrix_words(feature_name: str) -> Words:
    """The words for the modules of one table."""
    features = AxisWords("column", feature_name, f"{feature_name}s", "n_columns")
    return Words("module", AxisWords("row", "sample", "samples", "n_rows"), features)


def pair_words(table_names: tuple[str, str]) -> Words:
    """The words for the pairs of two tables."""
    sides = zip(("x", "y"), table_names, strict=True)
    return Words("pair", *(AxisWords(side, "feature", f"features of {table}", f"n_{side}") for side, table in sides))


def diagnostics(
    modules: list[Module],
    n_asked: int,
    ended: str,
    rows: Axis,
    columns: Axis,
    settings: Settings,
    words: Words,
) -> Iterator[tuple[str, type[Warning]]]:
    """Yield everything to warn about, as (message, category).

    Too few modules, not converged, too small, size not identified, dominated by the graph.
    """
    if len(modules) < n_asked:
        yield f"found {len(modules)} of {n_asked} {words.module}s: {ended}", UserWarning
    if not_converged := [k for k, module in enumerate(modules) if module.outcome != "converged"]:
        first = not_converged[0]
        how = _ENDS[modules[first].outcome].format(max_iter=settings.max_iter)
        which = "it" if len(not_converged) == 1 else words.listed([first])
        remedy = "use solver='auto'" if settings.solver == "aisp" else "increase max_iter or tol of the estimator"
        for called, asked in ((words.columns, columns), (words.rows, rows)):
            if not asked.penalty.has_objective:
                remedy = (
                    f"the {called.axis} penalty {asked.penalty!r} has no objective, so convergence is not "
                    "guaranteed; try a penalty with an objective (L0, L1, L1Ball)"
                )
        yield f"{words.listed(not_converged)} did not converge ({which} {how}): {remedy}", ConvergenceWarning
    for called, asked, vectors in (
        (words.rows, rows, [module.u for module in modules]),
        (words.columns, columns, [module.v for module in modules]),
    ):
        yield from ((message, UserWarning) for message in _of_unexpected_size(words, called, asked, vectors))
    yield from ((message, UserWarning) for message in _led_by_the_graph(words, modules, rows, columns))


def _of_unexpected_size(words: Words, called: AxisWords, asked: Axis, vectors: list[Vector]) -> Iterator[str]:
    """Modules that are too small, or whose size is not identified."""
    size = asked.penalty.size()
    if short := [k for k, vector in enumerate(vectors) if size and vector.support.size < size]:
        why = "no other has a positive score" if asked.penalty.has_objective else "others are tied at the threshold"
        verb = "holds" if len(short) == 1 else "hold"
        yield f"{words.listed(short)} {verb} fewer than {size} {called.entries}: {why}"
    wanted, groups = asked.penalty.n_groups(), [vector.groups for vector in vectors]
    if few := [k for k, own in enumerate(groups) if wanted and own is not None and own.size < wanted]:
        fewer = f"fewer than {wanted} groups of {called.entries}"
        yield f"{words.listed(few)}: {fewer}, no other has a positive score to add"
    chosen = {k: vector.choice for k, vector in enumerate(vectors) if vector.choice is not None}
    # Where a fallback was used, nothing is left to be done: `choices_` and the summary of a run tell so.
    if found := {k: choice.diagnostic for k, choice in chosen.items() if choice.diagnostic and not choice.fallback}:
        reasons = [text.format(axis=called.entry) for name, text in DIAGNOSTICS.items() if name in found.values()]
        scaling = "heteroscedastic" in found.values() and called.axis == "column"
        remedy = "use `scale=True`" if scaling else f"set the size ({called.size}) or a fallback"
        yield (
            f"the data do not identify how many {called.entries} {words.listed(list(found))} should contain "
            f"({'; '.join(reasons)}): {remedy} instead"
        )


def _led_by_the_graph(words: Words, modules: list[Module], rows: Axis, columns: Axis) -> Iterator[str]:
    """Modules in which the graph weighs too much."""
    # The user states the weight of the graph, unless a penalty that chooses a size chooses it as well.
    choices = [[vector.choice for vector in (module.u, module.v)] for module in modules]
    stated = [k for k, both in enumerate(choices) if all(one is None or one.fallback for one in both)]
    dominated = [k for k in stated if modules[k].graph_share > LARGE_GRAPH_SHARE]
    if dominated and not (rows.is_bounded and columns.is_bounded):
        yield (
            f"the graph makes up more than {LARGE_GRAPH_SHARE:.0%} of the scores of {words.listed(dominated)} "
            "(graph_share): lower the smoothness unless this is intended"
        )
    relative = rows.scale != "absolute" and columns.scale != "absolute"
    if heavy := [k for k in stated if relative and modules[k].graph_weight >= 1 and k not in dominated]:
        yield (
            f"the graph weighs as much as the data, or more, in {words.listed(heavy)} (graph_weight up to "
            f"{max(modules[k].graph_weight for k in heavy):.1f}): lower the smoothness unless this is intended"
        )
    if led := [k for k, module in enumerate(modules) if module.worst_rank > LOW_RANK]:
        yield (
            f"the graph puts a {words.columns.entry} on top of {words.listed(led)} whose rank by the data alone is "
            f"{max(modules[k].worst_rank for k in led):,} (worst_rank): lower the smoothness, or use "
            "smoothness_scale='module' and graph_term='modularity'"
        )
