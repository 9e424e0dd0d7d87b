"""Names of samples and genes in AnnData's data frames, in HDF5 or Zarr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from netbic.arrays import Array, bounds_problem
from netbic.errors import InputError, shown, unusable
from netbic.io.matrices import NameArray
from netbic.io.zarr_arrays import check_zarr


class OldLayout(InputError):
    """A file written by AnnData before 0.7, whose data frames are tables."""


def names_in(path: Path, frame: Any, place: str, column: str | None = None) -> NameArray:
    """The index of a data frame, or one of its columns; `place` is its name in the file."""
    if not is_group(frame):
        raise OldLayout(str(unusable(path, "was written by an old AnnData", "read it with anndata and write it again")))
    attributes = dict(frame.attrs)
    index = str(attributes.get("_index", "_index"))
    if column is not None and column not in frame:
        known = ", ".join(map(str, attributes.get("column-order", []))) or "none"
        raise unusable(path, f"has no column {shown(column)} in {place}", f"it has {known}")
    values = _values(path, frame, column or index, f"{place}/")
    if values.ndim != 1:
        raise unusable(path, f"{place}/{column or index} has {values.ndim} dimensions", "one name each is needed")
    return np.array([_text(name) for name in values], dtype=object)


def is_group(element: Any) -> bool:
    """Whether an element of a file holds others."""
    return hasattr(element, "keys")


def _values(path: Path, frame: Any, name: str, place: str) -> Array:
    """A column of a data frame: plain, categorical or with a mask."""
    element = frame[name]
    check_zarr(path, element)
    if is_group(element) and "categories" in element:
        labels, codes = (_values(path, element, part, f"{place}{name}/") for part in ("categories", "codes"))
        return _labelled(path, labels, codes, f"{place}{name}/")
    if is_group(element):
        values, mask = (_values(path, element, part, f"{place}{name}/") for part in ("values", "mask"))
        return np.where(mask.astype(bool), "<NA>", values.astype(object))
    attributes = dict(element.attrs)
    if "categories" in attributes:  # AnnData 0.7: a reference to where the labels are
        labels = _plain(frame[attributes["categories"]])
        return _labelled(path, labels, _plain(element), f"{place}{name}/")
    return _plain(element)


def _labelled(path: Path, labels: Array, codes: Array, place: str) -> Array:
    """Labels by their numbers; -1 is a missing one."""
    if codes.dtype.kind not in "iu":
        raise unusable(path, f"{place}codes holds {codes.dtype}, not integers", "write it again")
    known = codes[codes != -1] if codes.dtype.kind == "i" else codes
    if problem := bounds_problem(known, len(labels), "categories", place, "codes"):
        raise unusable(path, problem, "write it again")
    named: Array = np.append(np.asarray(labels, dtype=object), "nan")
    return np.asarray(named[codes])


def _plain(element: Any) -> Array:
    return np.asarray(element.asstr()[:] if hasattr(element, "asstr") and element.dtype.kind in "OS" else element[:])


def _text(name: Any) -> str:
    return (name.decode(errors="replace") if isinstance(name, bytes) else str(name)).strip()
