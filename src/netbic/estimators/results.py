"""The modules of a search as the fitted attributes of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from netbic.arrays import Bools, Floats
from netbic.estimators.diagnostics import diagnostics_table
from netbic.estimators.projection import explained
from netbic.operators import Corrected
from netbic.penalties import Choice, Penalty
from netbic.solver import Module, Vector

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD

_NUMBERS = ["sigma", "noise", "strength", "heteroscedasticity", "background", "gradation", "expected_f1"]
_COLUMNS = ["module", "axis", "size", *_NUMBERS, "fallback", "free_locations", "diagnostic"]
_GROUP_COLUMNS = ["module", "axis", "group", "size", "share"]
_EARLIER = {"unevenness": "heteroscedasticity", "doubt": "diagnostic"}  # earlier names of columns, kept at the end


def store_modules(
    model: SparseGraphSVD,
    operator: Corrected,
    modules: list[Module],
    dtype: DTypeLike,
    data: Corrected,
    scores: Sequence[Floats] | None = None,
) -> None:
    """Set the fitted attributes that describe the modules found in a matrix.

    `data` is the matrix before diffusion; `scores` are the products Xv with the matrix itself, if they are known.
    """
    n, p = operator.shape
    left, right = _stacked(n, [module.u for module in modules]), _stacked(p, [module.v for module in modules])
    model.n_components_ = len(modules)
    model.left_vectors_ = np.ascontiguousarray(left.T, dtype=dtype)
    model.components_ = right.astype(dtype, copy=False)  # no second copy of what may be a large array
    model.singular_values_ = np.array([module.d for module in modules], dtype=dtype)
    model.rows_, model.columns_ = left != 0, right != 0
    model.objectives_ = [module.objectives for module in modules]
    model.n_iter_ = max([1, *map(len, model.objectives_)])
    model.converged_ = np.array([module.outcome == "converged" for module in modules], dtype=bool)
    model.graph_share_ = np.array([module.graph_share for module in modules])
    store_choices(model, [module.u.choice for module in modules], [module.v.choice for module in modules])
    if scores is None:
        products = operator.products([(module.v.support, module.v.values) for module in modules])
    else:
        products = np.array(scores).reshape(len(modules), n)
    model.diagnostics_ = diagnostics_table(modules, products)
    model.groups_ = groups_table(())
    model.regressed_out_ = _regressed_out(modules)
    if data is not operator:  # models with and without diffusion explain the same data
        products = data.products([(module.v.support, module.v.values) for module in modules])
    model.explained_variance_ratio_ = explained(right, products) / max(data.squared_norm, np.finfo(float).tiny)


def groups_of(modules: Sequence[Module], rows: Penalty, columns: Penalty) -> Iterator[tuple[int, str, str, int, float]]:
    """Module, axis, name, size and share of every group that penalties of groups have chosen."""
    for number, module in enumerate(modules):
        for axis, vector, penalty in (("rows", module.u, rows), ("columns", module.v, columns)):
            if vector.groups is not None:
                yield from ((number, axis, *group) for group in penalty.described(vector.full(), vector.groups))


def groups_table(rows: Iterable[tuple[int, str, str, int, float]]) -> pd.DataFrame:
    """The table of the groups of all modules."""
    types = dict(zip(_GROUP_COLUMNS, (np.int64, object, object, np.int64, np.float64), strict=True))
    return pd.DataFrame(list(rows), columns=_GROUP_COLUMNS).astype(types)


def _stacked(size: int, vectors: Sequence[Vector]) -> Floats:
    """Vectors as the rows of an array."""
    rows = np.zeros((len(vectors), size))
    for row, vector in zip(rows, vectors, strict=True):
        row[vector.support] = vector.values
    return rows


def _regressed_out(modules: list[Module]) -> Bools:
    """The modules (columns) that were regressed out before each module (rows) was found."""
    table = np.zeros((len(modules), len(modules)), dtype=bool)
    for number, module in enumerate(modules):
        table[number, list(module.regressed_out)] = True
    return table


def store_choices(model: SparseGraphSVD, rows: Sequence[Choice | None], columns: Sequence[Choice | None]) -> None:
    """Set `choices_` and `posteriors_` from the choice of every module on both axes."""
    made = {"rows": [c for c in rows if c is not None], "columns": [c for c in columns if c is not None]}
    sizes = {"rows": model.rows_.sum(axis=1).tolist(), "columns": model.columns_.sum(axis=1).tolist()}
    tables = [_choices_table(axis, sizes[axis], choices) for axis, choices in made.items() if choices]
    model.posteriors_ = {
        axis: np.array([choice.posterior for choice in choices]) if choices else None for axis, choices in made.items()
    }
    empty = pd.DataFrame(columns=[*_COLUMNS, *_EARLIER])
    model.choices_ = pd.concat(tables, ignore_index=True) if tables else empty


def _choices_table(axis: str, sizes: Sequence[int], choices: Sequence[Choice]) -> pd.DataFrame:
    """A row per module: the choice on one axis."""
    rows = [
        (
            *(module, axis, size, *(getattr(c, number) for number in _NUMBERS)),
            *(bool(c.fallback), bool(c.free_locations), c.diagnostic),
        )
        for module, (size, c) in enumerate(zip(sizes, choices, strict=True))
    ]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return table.assign(**{earlier: table[now] for earlier, now in _EARLIER.items()})
