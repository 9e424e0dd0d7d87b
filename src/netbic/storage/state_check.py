"""Checks of a loaded model: shapes, types, ranges and missing values of every array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from netbic.arrays import Array
from netbic.errors import InputError

Sizes = Mapping[str, int]
_ROUNDING = 1e-3  # tolerance for the length of a vector in single precision


class _Expected(NamedTuple):
    """An array of a model; the letters of `shape` stand for modules (K), rows (n), columns (p) and rounds (R).

    C stands for the numbers that describe a choice, c for columns of covariates, S for studies; a digit for itself.
    """

    shape: str
    kinds: str = "f"  # values of NumPy's dtype.kind
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
    "objectives": _Expected("R", finite=False),  # unknown for models from tables
    "offsets": _Expected("p"),
    "factors": _Expected("p", least=0.0, required=False),
    "rows_posteriors": _Expected("Kn", finite=False, least=0.0, most=1.0, required=False),
    "columns_posteriors": _Expected("Kp", finite=False, least=0.0, most=1.0, required=False),
    "rows_choices": _Expected("KC", finite=False, least=0.0, required=False),
    "columns_choices": _Expected("KC", finite=False, least=0.0, required=False),
    "smoothing": _Expected("", least=0.0, most=1.0, required=False),
    "kept": _Expected("K", "iu", least=0, required=False),
    "diagnostics": _Expected("K8", finite=False, required=False),  # unknown for models of earlier versions
    "regressed_out": _Expected("KK", "b", required=False),
    "optimality_gap": _Expected("K", finite=False, least=0.0, required=False),
    "covariates": _Expected("nc", required=False),
    "effects": _Expected("cp", required=False),
    "study_of_samples": _Expected("n", "iu", least=0, required=False),
    "study_weights": _Expected("S", least=0.0, required=False),
    "study_factors": _Expected("Sp", least=0.0, required=False),
    "study_d": _Expected("KS", least=0.0, required=False),
    "study_share": _Expected("KS", least=0.0, required=False),
    "study_ratio": _Expected("KS", finite=False, least=0.0, required=False),
}


def check_arrays(arrays: Mapping[str, Array]) -> None:
    """Raise unless these are the arrays of one fitted model."""
    for name, expected in ARRAYS.items():
        if name not in arrays and expected.required:
            raise InputError(f"the model lacks the array {name}: it is incomplete, fit again")
    sizes = _sizes(arrays)
    for name, expected in ARRAYS.items():
        if name in arrays:
            for problem in _problems(arrays[name], expected, sizes):
                raise InputError(f"the model's array {name} {problem}: it is damaged or was changed, fit again")


def _sizes(arrays: Mapping[str, Array]) -> Sizes:
    """Numbers of rows, columns, modules and rounds."""
    for name in ("left_vectors", "components", "rounds"):
        if arrays[name].ndim != len(ARRAYS[name].shape):
            raise InputError(f"the model's array {name} has {arrays[name].ndim} dimensions: it is damaged, fit again")
    (rows, modules), columns = arrays["left_vectors"].shape, arrays["components"].shape[1]
    rounds = arrays["rounds"]
    whole = rounds.dtype.kind in "iu" and not (rounds < 0).any()
    # Models of earlier versions have four or seven numbers that describe a choice.
    earlier = {array.shape[1] for name, array in arrays.items() if name.endswith("_choices") and array.ndim == 2}
    numbers = next((number for number in (4, 7) if number in earlier), 8)
    effects = arrays.get("effects")
    covariates = len(effects) if effects is not None and effects.ndim else 0
    sizes = {"n": rows, "K": modules, "p": columns, "R": int(rounds.sum()) if whole else -1, "C": numbers, "8": 8}
    return sizes | {"c": covariates, "S": int(arrays["study_weights"].size) if "study_weights" in arrays else 0}


def _problems(array: Array, expected: _Expected, sizes: Sizes) -> Iterator[str]:
    """What is wrong with one array."""
    if array.dtype.kind not in expected.kinds:
        yield f"has the type {array.dtype}"
    if expected.least is not None and (array < expected.least).any():
        yield f"contains {array.min()}, the smallest possible value is {expected.least:g}"
    wanted = tuple(sizes[letter] for letter in expected.shape)
    if array.shape != wanted:
        yield f"has shape {array.shape}, not {wanted}"
    if expected.finite and not np.isfinite(array).all():
        yield "contains NaN or infinity"
    if expected.most is not None and (array > expected.most).any():
        yield f"contains {np.nanmax(array)}, the largest possible value is {expected.most:g}"


def check_unit_vectors(arrays: Mapping[str, Array]) -> None:
    """Raise unless all vectors have length 1; vectors from an AnnData object need not, it may be a subset."""
    for name, axis in (("left_vectors", 0), ("components", 1)):
        lengths = np.linalg.norm(arrays[name].astype(np.float64), axis=axis)
        wrong = np.flatnonzero(np.abs(lengths - 1) > _ROUNDING)
        if wrong.size:
            what = f"contains a vector of length {lengths[wrong[0]]:.3g} (module {wrong[0]}), not 1"
            raise InputError(f"the model's array {name} {what}: it is damaged or was changed, fit again")


def _is_name(name: object) -> bool:
    return type(name) is str or (type(name) is int and -(2**63) <= name < 2**63)


def check_names(names: object, sizes: Mapping[str, int]) -> None:
    """Raise unless there is, for each axis, None or a list with as many names as the axis has entries."""
    for axis, size in sizes.items():
        known = names.get(axis) if isinstance(names, dict) else ()
        if known is None:
            continue
        if not isinstance(known, list) or not all(_is_name(name) for name in known):
            raise InputError(f"the names of the model's {axis} are not a list of text or integers: fit again")
        if len(known) != size:
            raise InputError(f"the model has {size:,} {axis} but {len(known):,} names: fit again")
