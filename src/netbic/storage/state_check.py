"""Whether what was read back can be a fitted model: shapes, types, finite numbers and ranges of every array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.errors import InputError

Sizes = Mapping[str, int]
_ROUNDING = 1e-3  # of the length of a vector in single precision


class _Expected(NamedTuple):
    """What an array of a model looks like; letters of `shape` stand for modules, rows, columns, rounds."""

    shape: str
    kinds: str = "f"  # of NumPy's dtype.kind
    finite: bool = True
    least: float | None = None
    most: float | None = None
    required: bool = True


ARRAYS: Final[dict[str, _Expected]] = {
    "left_vectors": _Expected("nK", least=-1.001, most=1.001),
    "components": _Expected("Kp", least=-1.001, most=1.001),
    "singular_values": _Expected("K", least=0.0),
    "explained_variance_ratio": _Expected("K"),
    "graph_share": _Expected("K", least=0.0, most=1.0),
    "converged": _Expected("K", "b"),
    "rounds": _Expected("K", "iu", least=0),
    "objectives": _Expected("R", finite=False),  # not known of models that come from tables
    "offsets": _Expected("p"),
    "factors": _Expected("p", least=0.0, required=False),
    "rows_posteriors": _Expected("Kn", finite=False, least=0.0, most=1.0, required=False),
    "columns_posteriors": _Expected("Kp", finite=False, least=0.0, most=1.0, required=False),
    "rows_choices": _Expected("K4", finite=False, least=0.0, required=False),
    "columns_choices": _Expected("K4", finite=False, least=0.0, required=False),
    "kept": _Expected("K", "iu", least=0, required=False),
}


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise unless these are the arrays of one fitted model."""
    for name, expected in ARRAYS.items():
        if name not in arrays and expected.required:
            raise InputError(f"the model lacks the array {name}: it is incomplete, fit again")
    sizes = _sizes(arrays)
    for name, expected in ARRAYS.items():
        if name in arrays:
            for problem in _problems(arrays[name], expected, sizes):
                raise InputError(f"the model's array {name} {problem}: it is damaged or was changed, fit again")


def _sizes(arrays: Mapping[str, NDArray[Any]]) -> Sizes:
    """Rows, columns, modules and rounds, as the vectors have them."""
    for name in ("left_vectors", "components", "rounds"):
        if arrays[name].ndim != len(ARRAYS[name].shape):
            raise InputError(f"the model's array {name} has {arrays[name].ndim} dimensions: it is damaged, fit again")
    (rows, modules), columns = arrays["left_vectors"].shape, arrays["components"].shape[1]
    rounds = arrays["rounds"]
    whole = rounds.dtype.kind in "iu" and not (rounds < 0).any()
    return {"n": rows, "K": modules, "p": columns, "R": int(rounds.sum()) if whole else -1, "4": 4}


def _problems(array: NDArray[Any], expected: _Expected, sizes: Sizes) -> Iterator[str]:
    """What is wrong with one array, the first thing first."""
    if array.dtype.kind not in expected.kinds:
        yield f"holds {array.dtype}"
    if expected.least is not None and (array < expected.least).any():
        yield f"holds {array.min()}, at least {expected.least:g} is possible"
    wanted = tuple(sizes[letter] for letter in expected.shape)
    if array.shape != wanted:
        yield f"has shape {array.shape}, not {wanted}"
    if expected.finite and not np.isfinite(array).all():
        yield "holds NaN or infinity"
    if expected.most is not None and (array > expected.most).any():
        yield f"holds {np.nanmax(array)}, at most {expected.most:g} is possible"


def check_unit_vectors(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise unless all vectors have length 1, as those of a whole model do (of an AnnData object some may be left)."""
    for name, axis in (("left_vectors", 0), ("components", 1)):
        lengths = np.linalg.norm(arrays[name].astype(np.float64), axis=axis)
        wrong = np.flatnonzero(np.abs(lengths - 1) > _ROUNDING)
        if wrong.size:
            what = f"holds a vector of length {lengths[wrong[0]]:.3g} (module {wrong[0]}), not 1"
            raise InputError(f"the model's array {name} {what}: it is damaged or was changed, fit again")


def _is_name(name: Any) -> bool:
    return type(name) is str or (type(name) is int and -(2**63) <= name < 2**63)


def check_names(names: Any, sizes: Mapping[str, int]) -> None:
    """Raise unless there is, for each of these, None or a list with so many names."""
    for axis, size in sizes.items():
        known = names.get(axis) if isinstance(names, dict) else ()
        if known is None:
            continue
        if not isinstance(known, list) or not all(_is_name(name) for name in known):
            raise InputError(f"the names of the model's {axis} are no list of text or integers: fit again")
        if len(known) != size:
            raise InputError(f"the model has {size:,} {axis} but {len(known):,} names of them: fit again")
