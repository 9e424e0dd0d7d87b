"""The grid of parameters to try, as in scikit-learn, checked before anything is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from netbic.estimators import AXES, SparseGraphSVD, TwoTables

Parameters = dict[str, Any]  # of an estimator, by name
Grid = Mapping[str, Any] | list[Mapping[str, Any]]

# By scale; in units of the leading singular value ("relative") the quality drops steeply beyond 0.5 on real data.
_SMOOTHNESS = {"module": [0.0, 0.25, 0.5, 0.75], "relative": [0.0, 0.05, 0.1, 0.25], "absolute": [0.0, 0.05, 0.1, 0.25]}
_SMALLEST_SHARE = {"row": 1 / 16, "column": 1 / 64}
_RIDGES = [0.1, 0.3, 0.6, 0.9]
_FEWEST = 5
_N_SIZES = 5


def default_grid(model: SparseGraphSVD | TwoTables, shape: tuple[int, int]) -> Parameters:
    """Sizes up to the whole axis where no penalty is set, and smoothness where there is a graph.

    Numbers of samples are tried only if the model has one: otherwise it keeps all of them. For a model of two tables,
    `shape` has the numbers of features of X and of Y, and the ridge is tried where the model has one.
    """
    if isinstance(model, TwoTables):
        return _grid_of_pairs(model, shape)
    grid: Parameters = {}
    for axis, size in zip(AXES, shape, strict=True):
        keeps_all = axis == "row" and model.n_rows is None
        if getattr(model, f"{axis}_penalty") is None and not keeps_all:
            grid[f"n_{axis}s"] = _sizes(size, _SMALLEST_SHARE[axis])
        if getattr(model, f"{axis}_graph") is not None:
            grid[f"{axis}_smoothness"] = _SMOOTHNESS[model.smoothness_scale]
    return grid


def _grid_of_pairs(model: TwoTables, sizes: tuple[int, int]) -> Parameters:
    """Sizes, smoothness and ridge of a model of two tables; `covariance="full"` has none of them."""
    grid: Parameters = {}
    covariance = model.get_params(deep=False).get("covariance")
    for side, size in zip(("x", "y"), sizes, strict=True):
        if getattr(model, f"{side}_penalty") is None and covariance != "full":
            grid[f"n_{side}"] = _sizes(size, _SMALLEST_SHARE["column"])
        if getattr(model, f"{side}_graph") is not None:
            grid[f"{side}_smoothness"] = _SMOOTHNESS[model.smoothness_scale]
    return grid | {"ridge": _RIDGES} if covariance == "ridge" else grid


def _sizes(size: int, smallest_share: float) -> list[int]:
    """Numbers of entries to keep, in equal ratios."""
    fewest = min(size, max(_FEWEST, size * smallest_share))
    sizes: list[int] = np.unique(np.geomspace(fewest, size, _N_SIZES).round().astype(int)).tolist()
    return sizes


def points_of(model: SparseGraphSVD | TwoTables, grid: Grid | None, shape: tuple[int, int]) -> list[Parameters]:
    """Every point of a grid (the default one depends on the shape of X), with known parameter names."""
    points = list(ParameterGrid(_listed(default_grid(model, shape) if grid is None else grid)))
    known = model.get_params(deep=False)
    for point in points:
        if unknown := sorted(set(point) - set(known)):
            raise ValueError(
                f"{unknown[0]!r} is no parameter of {type(model).__name__}: choose among {', '.join(known)}"
            )
    if not points or points == [{}]:
        size = "n_x" if isinstance(model, TwoTables) else "n_columns"
        raise ValueError(f"the grid is empty: give at least one value to one parameter, e.g. {{'{size}': [50, 200]}}")
    return points


def _listed(grid: Grid) -> Grid:
    """A valid grid, with arrays of numbers as plain numbers."""
    if isinstance(grid, Mapping):
        return {name: _plain_values(name, values) for name, values in grid.items()}
    if isinstance(grid, (list, tuple)) and all(isinstance(part, Mapping) for part in grid):
        return [{name: _plain_values(name, part[name]) for name in part} for part in grid]
    raise ValueError(f"grid={grid!r}: a dict of lists is needed, or a list of such dicts")


def _plain_values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not (isinstance(values, Sized) and np.iterable(values)):
        raise ValueError(f"grid[{name!r}]={values!r}: a list of values is needed, e.g. [{values!r}]")
    if len(values) == 0:
        raise ValueError(f"grid[{name!r}] is empty: give at least one value, or leave it out")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


@contextmanager
def named(point: Parameters) -> Iterator[None]:
    """Add the point of the grid to error messages."""
    try:
        yield
    except (ValueError, TypeError) as problem:
        shown = ", ".join(f"{name}={value!r}" for name, value in point.items())
        raise type(problem)(f"grid point {shown}: {problem}") from None
