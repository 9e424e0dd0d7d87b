"""Names of features and samples in two studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Indices
from netbic.errors import InputError, shown
from netbic.identifiers import explain_mismatch


def text_names(names: Any) -> Array:
    """Names as text."""
    return np.array([str(name) for name in names], dtype=object)


def common_names(
    some: Array, others: Array, where: tuple[str, str], nouns: str = "features"
) -> tuple[Indices, Indices]:
    """Positions of the names in common, in the first and in the second list, in the order of the first.

    `where` and `nouns` say in the error for repeated names whose names of what they are.
    """
    for names, place in zip((some, others), where, strict=True):
        index = pd.Index(names)
        if not index.is_unique:
            repeated = shown(str(index[index.duplicated()][0]))
            raise InputError(f"{place} has several {nouns} {repeated}: rename or drop them")
    at = pd.Index(others).get_indexer(pd.Index(some))
    first = np.flatnonzero(at >= 0)
    return first, np.asarray(at[first], dtype=np.intp)


def no_common_names(some: Array, others: Array) -> InputError:
    """The error for two studies without a common feature, with the most likely reason."""
    mine, theirs = (", ".join(map(shown, names[:3])) for names in (some, others))
    what = f"no name of the modules is in the other study (modules: {mine}, ...; other study: {theirs}, ...)"
    why = explain_mismatch(others, some, ("other study", "modules"))
    return InputError(f"{what}. {why.text()}")


def shared_samples(fitted: Array, others: Array) -> Bools:
    """Which of the other samples seem to be among the fitted ones.

    Their names are the same, or one is the other one followed by "-", "." or "_" and more, as in TCGA's barcodes of
    patients and of their samples.
    """
    known, starts = set(fitted.tolist()), {start for name in fitted.tolist() for start in _starts(name)}
    return np.array(
        [name in known or name in starts or not known.isdisjoint(_starts(name)) for name in others.tolist()], dtype=bool
    )


def _starts(name: str) -> list[str]:
    """Everything before a separator, if it has a digit: "batch" is no name of a sample."""
    ends = (at for at, letter in enumerate(name) if letter in "-._")
    return [name[:end] for end in ends if any(map(str.isdigit, name[:end]))]
