"""The search for modules, one after another: leading direction, solve (with restarts), deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from netbic.arrays import Floats
from netbic.graph_terms import GraphTerm
from netbic.operators.corrected import Corrected
from netbic.penalties import BeyondBulk, Dense, Penalty
from netbic.solver.half_step import Side, Vector, scored
from netbic.solver.problem import ROUGH, ModuleProblem, share_by_data, solve_with_graph, worst_rank
from netbic.solver.solve import Deflation, Outcome, Settings, Solution
from netbic.solver.starts import Direction, Starts, image

SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("hotelling", "projection", "schur")
MAX_MODULES: Final = 10_000  # of one search; modules of one row and one column could be as many as entries of X
SIMILAR: Final = 0.7  # absolute correlation of the scores of similar modules
REPEATED: Final = 0.9  # from which a module repeats an earlier one
LARGE_GRAPH_SHARE: Final = 0.3  # share of the scores above which the graph dominates the data
LOW_RANK: Final = 200  # rank of a leading column by the data alone beyond which the graph has put it there

Solved = tuple[ModuleProblem, Solution]
SmoothnessScale = Literal["module", "relative", "absolute"]
AxisName = Literal["rows", "columns"]
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Axis:
    """The options of one axis; `side` turns them into the input of a half step for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    scale: SmoothnessScale = "relative"
    signed: bool = False

    def side(self, leading_value: float, squared_norm: float, n_entries: int) -> Side:
        """Set sigma and data-driven penalties for a residual with this leading singular value and squared norm."""
        sigma, share = self.smoothness, 0.0
        if self.term is not None and sigma > 0:
            if self.scale == "relative":
                sigma *= leading_value / self.term.scale
            elif self.scale == "module":
                sigma, share = 0.0, sigma  # set by `solve_with_graph`, after a solve without the graph
        penalty = self.penalty.for_matrix(squared_norm, n_entries)
        return Side(penalty, self.term, sigma, self.signed, share)

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
    the largest abs(X'u), `standing_out` how many columns stand out if sizes come from the data.
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
    standing_out: float = float("nan")


class ModuleSearch:
    """Iterate over modules until X is exhausted; `ended` is then the reason why the search has ended.

    `known` modules, the first ones of an earlier search, are not searched for again. The others are bit-identical to
    those of that search. `starts` are those of the operator, if they have been computed already; they are modified.
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
        self.ended, self.count = "", None
        self._known, self._rows, self._columns, self._settings, self._noise = known, rows, columns, settings, noise
        own = operator.for_one_start()
        if known:
            own.data.prefetch(np.unique(np.concatenate([module.v.support for module in known])))
        starts = starts or Starts(operator, exact=settings.solver == "aisp")
        self._left = Residual(own, starts, noise)

    def __iter__(self) -> Iterator[Module]:
        for number in range(MAX_MODULES):
            leading = self._left.leading()
            if leading is None:
                self.ended = "nothing but rounding error is left of X"
                return
            module = self._known[number] if number < len(self._known) else self._next(leading, number)
            if module is None:
                return
            yield module
            self._left.operator.data.reset_cache()
            filled = residual = self._left.operator
            if residual.imputes:  # missing entries hold the prediction of the module
                filled = residual.with_prediction(module.d * module.u.full(), module.v.full())
            for left, right in deflation_terms(filled, module, self._settings.deflation):
                self._left.deflate(left, right)
        self.ended = f"no more than {MAX_MODULES:,} are searched for"

    def _next(self, leading: Direction, number: int) -> Module | None:
        """The best module of the residual; None, with the reason in `ended`, if there is none."""
        residual, axes = self._left.operator, (self._rows, self._columns)
        residual.data.reset_cache()
        problem, solution = solve_module(residual, axes, self._settings, leading, number)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} keeps no {axis}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining module explains nothing (d <= 0)"
            return None
        found = described(solution, problem.rows, problem.columns)
        state = solution.state
        return replace(
            found, standing_out=n_standing_out(self._columns.penalty, problem.columns, state.v, state.column_scores)
        )


def n_standing_out(asked: Penalty, side: Side, vector: Vector, scores: Floats | None) -> float:
    """How many entries stand out in the scores of a module, if its size comes from the data; NaN otherwise."""
    if not isinstance(asked, BeyondBulk) or scores is None:
        return float("nan")
    magnitudes = side.magnitudes(scored(side, scores, side.smooth(vector)))
    return float(asked.n_standing_out(np.maximum(magnitudes, 0.0)))


def solve_module(
    operator: Corrected, axes: tuple[Axis, Axis], settings: Settings, leading: Direction, number: int
) -> Solved:
    """The best module of a residual, and the problem with the sizes and weights of the graph it was found with."""
    norm, n_entries = operator.squared_norm, operator.n_entries
    rows, columns = (axis.side(leading.value, norm, n_entries) for axis in axes)
    with_graph = bool(rows.share or columns.share)
    # If a solve with the graph follows, the one without it need not converge fully.
    first = replace(settings, tol=max(settings.tol, ROUGH), rough=True) if with_graph else settings
    problem, solution = ModuleProblem(operator, rows, columns, first).with_sizes(leading, number)
    if with_graph:
        problem, solution = solve_with_graph(replace(problem, settings=settings), solution)
    if operator.imputes and not solution.state.is_empty:
        solution = problem.impute(solution)
    return problem, solution


def described(solution: Solution, rows: Side, columns: Side, signed_by: AxisName = "columns") -> Module:
    """A module and the part of the graph in it; the largest entry of the vector that fixes its sign is positive."""
    state = solution.state
    u, v, d = state.u, state.v, state.d
    shares, weights = [], []
    for side, vector in ((rows, u), (columns, v)):
        graph = abs(2 * side.graph_gain(side.smooth(vector)))  # sigma |w'Mw| against d
        shares.append(graph / (d + graph))
        weights.append(side.amplification / d)
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

    hotelling: X - d uv'.  projection: (I - uu') X (I - vv').  schur: X - (Xv)(X'u)' / d.
    """
    u, v, d = module.u, module.v, module.d
    if how == "hotelling":
        yield d * u.full(), v.full()
        return
    left = operator.matvec(v.support, v.values)
    right = operator.rmatvec(u.support, u.values)
    if how == "schur":
        yield left / d, right
    else:
        yield u.full(), right
        yield left - d * u.full(), v.full()


# --- X without the modules found so far ---


class Residual:
    """The residual of X and its leading direction.

    `starts` are modified, the operator (X) is not; `noise` is the norm that rounding errors alone can reach.
    """

    def __init__(self, operator: Corrected, starts: Starts, noise: float) -> None:
        self.operator = operator
        self._starts, self._noise = starts, noise
        self._norm_error = 0.0  # rounding error of the squared norm

    def leading(self) -> Direction | None:
        """The leading direction; None if nothing but rounding error is left."""
        is_left = self.operator.squared_norm > self._norm_error
        leading = self._starts.leading(self.operator) if is_left else None
        if leading is None or leading.value <= self._noise:
            return None
        self.operator.data.reset_cache()
        return leading

    def deflate(self, left: Floats, right: Floats) -> None:
        """Subtract the rank-one matrix `left right'`."""
        self._norm_error += _EPSILON * self.operator.squared_norm
        product = image(self.operator.matvec, right)
        self._starts.deflate(self.operator, left, right, product)
        self.operator = self.operator.minus(left, right, product)


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


def matrix_words(feature_name: str, sample_name: str = "sample") -> Words:
    """The words for the modules of one table."""
    features = AxisWords("column", feature_name, f"{feature_name}s", "n_columns")
    return Words("module", AxisWords("row", sample_name, f"{sample_name}s", "n_rows"), features)


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

    Too few modules, not converged, too small, dominated by the graph.
    """
    if len(modules) < n_asked:
        yield f"found {len(modules)} of {n_asked} {words.module}s: {ended}", UserWarning
    if not_converged := [k for k, module in enumerate(modules) if module.outcome != "converged"]:
        first = not_converged[0]
        how = _ENDS[modules[first].outcome].format(max_iter=settings.max_iter)
        which = "it" if len(not_converged) == 1 else words.listed([first])
        remedy = "use solver='auto'" if settings.solver == "aisp" else "increase max_iter or tol of the estimator"
        for called, asked in ((words.columns, columns), (words.rows, rows)):
            if not (asked.penalty.has_objective or asked.penalty.sizes_from_data):
                remedy = (
                    f"the {called.axis} penalty {asked.penalty!r} has no objective, so convergence is not "
                    "guaranteed; try a penalty with an objective (L0, L1, L1Ball)"
                )
        yield f"{words.listed(not_converged)} did not converge ({which} {how}): {remedy}", ConvergenceWarning
    for called, asked, vectors in (
        (words.rows, rows, [module.u for module in modules]),
        (words.columns, columns, [module.v for module in modules]),
    ):
        yield from ((message, UserWarning) for message in _too_small(words, called, asked, vectors))
    yield from ((message, UserWarning) for message in _led_by_the_graph(words, modules, rows, columns))


def _too_small(words: Words, called: AxisWords, asked: Axis, vectors: list[Vector]) -> Iterator[str]:
    """Modules that are too small."""
    size = asked.penalty.size()
    if short := [k for k, vector in enumerate(vectors) if size and vector.support.size < size]:
        why = "no other has a positive score" if asked.penalty.has_objective else "others are tied at the threshold"
        verb = "holds" if len(short) == 1 else "hold"
        yield f"{words.listed(short)} {verb} fewer than {size} {called.entries}: {why}"
    wanted, groups = asked.penalty.n_groups(), [vector.groups for vector in vectors]
    if few := [k for k, own in enumerate(groups) if wanted and own is not None and own.size < wanted]:
        fewer = f"fewer than {wanted} groups of {called.entries}"
        yield f"{words.listed(few)}: {fewer}, no other has a positive score to add"


def _led_by_the_graph(words: Words, modules: list[Module], rows: Axis, columns: Axis) -> Iterator[str]:
    """Modules in which the graph weighs too much."""
    dominated = [k for k, module in enumerate(modules) if module.graph_share > LARGE_GRAPH_SHARE]
    if dominated and not (rows.is_bounded and columns.is_bounded):
        yield (
            f"the graph makes up more than {LARGE_GRAPH_SHARE:.0%} of the scores of {words.listed(dominated)} "
            "(graph_share): lower the smoothness unless this is intended"
        )
    relative = rows.scale != "absolute" and columns.scale != "absolute"
    if heavy := [k for k, one in enumerate(modules) if relative and one.graph_weight >= 1 and k not in dominated]:
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
