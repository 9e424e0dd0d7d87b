"""Warnings about the modules found: too few, not converged, too small, size not identified, dominated by the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from netbic.penalties import DIAGNOSTICS
from netbic.solver.restarts import Settings
from netbic.solver.search import Axis, Module
from netbic.solver.solve import MAX_CHOOSING_ROUNDS, Outcome
from netbic.solver.vectors import Vector

Message = tuple[str, type[Warning]]

LARGE_GRAPH_SHARE: Final = 0.3  # share of the scores above which the graph dominates the data
LOW_RANK: Final = 200  # rank of a leading column by the data alone beyond which the graph has put it there

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
    """What messages call a module and its axes, and where they say that details are."""

    module: str
    details: str
    rows: AxisWords
    columns: AxisWords

    def listed(self, numbers: list[int]) -> str:
        """Some modules by their numbers."""
        if len(numbers) == 1:
            return f"{self.module} {numbers[0]}"
        shown = ", ".join(map(str, numbers[:5]))
        return (
            f"{self.module}s {shown}" if len(numbers) <= 5 else f"{self.module}s {shown}, ... ({len(numbers)} in all)"
        )


_MATRIX: Final = Words(
    "module",
    "; see choices_",
    AxisWords("row", "row", "rows", "n_rows"),
    AxisWords("column", "column", "columns", "n_columns"),
)
PAIR_WORDS: Final = Words(
    "pair",
    "",
    AxisWords("x", "feature", "features of X", "n_x"),
    AxisWords("y", "feature", "features of Y", "n_y"),
)


def diagnostics(
    modules: list[Module],
    n_asked: int,
    ended: str,
    rows: Axis,
    columns: Axis,
    settings: Settings,
    words: Words = _MATRIX,
) -> Iterator[Message]:
    """Yield everything to warn about, as (message, category)."""
    if len(modules) < n_asked:
        yield f"found {len(modules)} of {n_asked} {words.module}s: {ended}", UserWarning
    if not_converged := [k for k, module in enumerate(modules) if module.outcome != "converged"]:
        first = not_converged[0]
        how = _ENDS[modules[first].outcome].format(max_iter=settings.max_iter)
        which = "it" if len(not_converged) == 1 else f"{words.module} {first}"
        what = (
            f"{words.listed(not_converged)} did not converge ({which} {how}): {_remedy(rows, columns, settings, words)}"
        )
        yield what, ConvergenceWarning
    yield from _short(words, words.rows, rows, [module.u for module in modules])
    yield from _short(words, words.columns, columns, [module.v for module in modules])
    yield from _not_identified(words, words.rows, [module.u for module in modules])
    yield from _not_identified(words, words.columns, [module.v for module in modules])
    yield from _led_by_the_graph(words, modules, rows, columns)


def _led_by_the_graph(words: Words, modules: list[Module], rows: Axis, columns: Axis) -> Iterator[Message]:
    """Modules in which the graph weighs too much."""
    dominated = _dominated(modules)
    if dominated and not (rows.is_bounded and columns.is_bounded):
        yield (
            f"the graph makes up more than {LARGE_GRAPH_SHARE:.0%} of the scores of {words.listed(dominated)} "
            "(graph_share_): lower the smoothness unless this is intended",
            UserWarning,
        )
    relative = all(axis.scale != "absolute" for axis in (rows, columns))
    heavy = [k for k in _stated(modules) if relative and modules[k].graph_weight >= 1 and k not in dominated]
    if heavy:
        largest = max(modules[k].graph_weight for k in heavy)
        yield (
            f"the graph weighs as much as the data, or more, in {words.listed(heavy)} (graph_weight in diagnostics_: "
            f"up to {largest:.1f}): lower the smoothness unless this is intended",
            UserWarning,
        )
    if led := [k for k, module in enumerate(modules) if module.worst_rank > LOW_RANK]:
        yield (
            f"the graph puts a column on top of {words.listed(led)} whose rank by the data alone is "
            f"{max(modules[k].worst_rank for k in led):,} (worst_rank in diagnostics_): lower the smoothness, or use "
            "smoothness_scale='module' and graph_term='modularity'",
            UserWarning,
        )


def _dominated(modules: list[Module]) -> list[int]:
    """Modules with a large share of the graph."""
    return [k for k in _stated(modules) if modules[k].graph_share > LARGE_GRAPH_SHARE]


def _stated(modules: list[Module]) -> list[int]:
    """Modules for which the user states the weight of the graph: penalties that choose a size choose it as well."""
    choices = [[vector.choice for vector in (module.u, module.v)] for module in modules]
    return [k for k, both in enumerate(choices) if all(one is None or one.fallback for one in both)]


def _remedy(rows: Axis, columns: Axis, settings: Settings, words: Words) -> str:
    for called, asked in ((words.rows, rows), (words.columns, columns)):
        if not asked.penalty.has_objective:
            return (
                f"the {called.axis} penalty {asked.penalty!r} has no objective, so convergence is not "
                "guaranteed; try a penalty with an objective (L0, L1, L1Ball)"
            )
    return "use solver='auto'" if settings.solver == "aisp" else "increase max_iter or tol"


def _short(words: Words, called: AxisWords, asked: Axis, vectors: list[Vector]) -> Iterator[Message]:
    size = asked.penalty.size()
    short = [k for k, vector in enumerate(vectors) if size and vector.support.size < size]
    if short:
        why = "no other has a positive score" if asked.penalty.has_objective else "others are tied at the threshold"
        verb = "holds" if len(short) == 1 else "hold"
        yield f"{words.listed(short)} {verb} fewer than {size} {called.entries}: {why}", UserWarning


def _not_identified(words: Words, called: AxisWords, vectors: list[Vector]) -> Iterator[Message]:
    chosen = {k: vector.choice for k, vector in enumerate(vectors) if vector.choice is not None}
    # Where a fallback was used, nothing is left to be done: `choices_` and the summary of a run tell so.
    found = {k: choice.diagnostic for k, choice in chosen.items() if choice.diagnostic and not choice.fallback}
    if found:
        reasons = [text.format(axis=called.entry) for name, text in DIAGNOSTICS.items() if name in found.values()]
        scaling = "heteroscedastic" in found.values() and called.axis == "column"
        remedy = "use `scale=True`" if scaling else f"set the size ({called.size}) or a fallback"
        yield (
            f"the data do not identify how many {called.entries} {words.listed(list(found))} should contain "
            f"({'; '.join(reasons)}{words.details}): {remedy} instead",
            UserWarning,
        )
