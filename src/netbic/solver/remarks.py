"""What a user should be told about what was found: too few modules, unsettled, too small, or driven by the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sklearn.exceptions import ConvergenceWarning

from netbic.penalties import DOUBTS
from netbic.solver.half_steps import Vector
from netbic.solver.modules import Axis, Module, Settings
from netbic.solver.one_start import CHOOSING, Outcome

Remark = tuple[str, type[Warning]]

MUCH_GRAPH = 0.3  # share of the scores above which the graph decides rather than the data

_ENDS: Final[dict[Outcome, str]] = {
    "cycle": "ran into a cycle",
    "max_iter": "hit max_iter={max_iter}",
    "unsettled": f"kept changing its size for {CHOOSING} rounds, then kept the last one",
}


def remarks(
    modules: list[Module], n_asked: int, ended: str, rows: Axis, columns: Axis, settings: Settings
) -> Iterator[Remark]:
    """All that is worth a warning, as (message, category)."""
    if len(modules) < n_asked:
        yield f"found {len(modules)} of {n_asked} modules: {ended}", UserWarning
    if unsettled := [k for k, module in enumerate(modules) if module.outcome != "converged"]:
        first = unsettled[0]
        how = _ENDS[modules[first].outcome].format(max_iter=settings.max_iter)
        what = f"{_listed(unsettled)} did not converge (module {first} {how}): {_remedy(rows, columns, settings)}"
        yield what, ConvergenceWarning
    yield from _short("row", rows, [module.u for module in modules])
    yield from _short("column", columns, [module.v for module in modules])
    yield from _doubtful("row", [module.u for module in modules])
    yield from _doubtful("column", [module.v for module in modules])
    # Where a penalty has weighed the graph against the data itself, its weight is not the user's to lower.
    stated = [k for k, module in enumerate(modules) if module.u.choice is None and module.v.choice is None]
    if heavy := [k for k in stated if modules[k].graph_share > MUCH_GRAPH]:
        yield (
            f"the graph makes up more than {MUCH_GRAPH:.0%} of the scores of {_listed(heavy)} (graph_share_): "
            "lower the smoothness unless the graph is meant to decide",
            UserWarning,
        )


def _remedy(rows: Axis, columns: Axis, settings: Settings) -> str:
    for axis, asked in (("row", rows), ("column", columns)):
        if not asked.penalty.has_objective:
            return (
                f"the {axis} penalty {asked.penalty!r} has no objective and promises nothing; "
                "try a penalty with one (L0, L1, L1Ball)"
            )
    return "use solver='auto'" if settings.solver == "aisp" else "raise max_iter or tol"


def _short(axis: str, asked: Axis, vectors: list[Vector]) -> Iterator[Remark]:
    size = asked.penalty.size()
    short = [k for k, vector in enumerate(vectors) if size and vector.support.size < size]
    if short:
        why = "no other has a positive score" if asked.penalty.has_objective else "others are tied at the threshold"
        yield f"{_listed(short)} holds fewer than {size} {axis}s: {why}", UserWarning


def _doubtful(axis: str, vectors: list[Vector]) -> Iterator[Remark]:
    found = {k: vector.choice.doubt for k, vector in enumerate(vectors) if vector.choice and vector.choice.doubt}
    if found:
        why = "; ".join(DOUBTS[doubt].format(axis=axis) for doubt in DOUBTS if doubt in found.values())
        remedy = "use scale=True" if "uneven" in found.values() and axis == "column" else f"state a size (n_{axis}s)"
        yield (
            f"the data do not identify how many {axis}s {_listed(list(found))} should hold ({why}; see choices_): "
            f"{remedy} instead",
            UserWarning,
        )


def _listed(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"module {numbers[0]}"
    shown = ", ".join(map(str, numbers[:5]))
    return f"modules {shown}" if len(numbers) <= 5 else f"modules {shown}, ... ({len(numbers)} in all)"
