"""Checks of a loaded model: shapes, types, ranges and missing values of every array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from netbic.arrays import Array
from netbic.errors import InputError

Sizes = Mapping[str, int]
_ROUNDING = 1e-3  # tolerance for the length of a vector in single precision


class Expected(NamedTuple):
    """An array of a model; the letters of `shape` stand for modules (K), rows (n), columns (p) and rounds (R).

    C stands for the numbers that describe a choice, c for columns of covariates, S for studies; a digit for itself.
    """

    shape: str
    kinds: str = "f"  # values of NumPy's dtype.kind
    finite: bool = True
    least: float | None = None
    most: float | None = None
    required: bool = True


ARRAYS: Final[dict[str, Expected]] = {
    "left_vectors": Expected("nK", least=-1.001, most=1.001),
    "components": Expected("Kp", least=-1.001, most=1.001),
    "singular_values": Expected("K", least=0.0),
    "explained_variance_ratio": Expected("K"),
    "graph_share": Expected("K", least=0.0, most=1.0),
    "converged": Expected("K", "b"),
    "rounds": Expected("K", "iu", least=0),
    "objectives": Expected("R", finite=False),  # unknown for models from tables
    "offsets": Expected("p"),
    "factors": Expected("p", least=0.0, required=False),
    "rows_posteriors": Expected("Kn", finite=False, least=0.0, most=1.0, required=False),
    "columns_posteriors": Expected("Kp", finite=False, least=0.0, most=1.0, required=False),
    "rows_choices": Expected("KC", finite=False, least=0.0, required=False),
    "columns_choices": Expected("KC", finite=False, least=0.0, required=False),
    "diffusion": Expected("", least=0.0, most=1.0, required=False),
    "kept": Expected("K", "iu", least=0, required=False),
    "diagnostics": Expected("K8", finite=False, required=False),  # unknown for models of earlier versions
    "regressed_out": Expected("KK", "b", required=False),
    "covariates": Expected("nc", required=False),
    "effects": Expected("cp", required=False),
    "study_of_samples": Expected("n", "iu", least=0, required=False),
    "study_weights": Expected("S", least=0.0, required=False),
    "study_factors": Expected("Sp", least=0.0, required=False),
    "study_d": Expected("KS", least=0.0, required=False),
    "study_share": Expected("KS", least=0.0, required=False),
    "study_ratio": Expected("KS", finite=False, least=0.0, required=False),
}


def check_arrays(arrays: Mapping[str, Array]) -> None:
    """Raise unless these are the arrays of one fitted model."""
    check_present(arrays, ARRAYS, ("left_vectors", "components", "rounds"))
    check_expected(arrays, ARRAYS, _sizes(arrays))


def check_present(arrays: Mapping[str, Array], table: Mapping[str, Expected], measured: tuple[str, ...]) -> None:
    """Raise if a required array is missing, or one from which sizes are taken has another number of dimensions."""
    for name, expected in table.items():
        if name not in arrays and expected.required:
            raise InputError(f"the model lacks the array {name}: it is incomplete, fit again")
    for name in measured:
        if arrays[name].ndim != len(table[name].shape):
            raise InputError(f"the model's array {name} has {arrays[name].ndim} dimensions: it is damaged, fit again")


def check_expected(arrays: Mapping[str, Array], table: Mapping[str, Expected], sizes: Sizes) -> None:
    """Raise unless all arrays have the shapes, types and ranges of a table; `sizes` are those of its letters."""
    for name, expected in table.items():
        if name in arrays:
            for problem in _problems(arrays[name], expected, sizes):
                raise InputError(f"the model's array {name} {problem}: it is damaged or was changed, fit again")


def number_of_rounds(rounds: Array) -> int:
    """The number of values of the objective of all modules; -1 if these are not numbers of rounds."""
    return int(rounds.sum()) if rounds.dtype.kind in "iu" and not (rounds < 0).any() else -1


def _sizes(arrays: Mapping[str, Array]) -> Sizes:
    """Numbers of rows, columns, modules and rounds."""
    (rows, modules), columns = arrays["left_vectors"].shape, arrays["components"].shape[1]
    rounds = number_of_rounds(arrays["rounds"])
    # Models of earlier versions have four or seven numbers that describe a choice.
    earlier = {array.shape[1] for name, array in arrays.items() if name.endswith("_choices") and array.ndim == 2}
    numbers = next((number for number in (4, 7) if number in earlier), 8)
    effects = arrays.get("effects")
    covariates = len(effects) if effects is not None and effects.ndim else 0
    sizes = {"n": rows, "K": modules, "p": columns, "R": rounds, "C": numbers, "8": 8}
    return sizes | {"c": covariates, "S": int(arrays["study_weights"].size) if "study_weights" in arrays else 0}


def _problems(array: Array, expected: Expected, sizes: Sizes) -> Iterator[str]:
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
    check_lengths(arrays, {"left_vectors": 0, "components": 1}, "module")


def check_lengths(arrays: Mapping[str, Array], axes: Mapping[str, int], module: str) -> None:
    """Raise unless the vectors along these axes of arrays have length 1."""
    for name, axis in axes.items():
        lengths = np.linalg.norm(arrays[name].astype(np.float64), axis=axis)
        wrong = np.flatnonzero(np.abs(lengths - 1) > _ROUNDING)
        if wrong.size:
            what = f"contains a vector of length {lengths[wrong[0]]:.3g} ({module} {wrong[0]}), not 1"
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
