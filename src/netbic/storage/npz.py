"""Arrays in .npz files, read without running code (no pickle)."""

from __future__ import annotations

import io
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from netbic.arrays import Array
from netbic.errors import one_line, unusable
from netbic.io import check_archive

Arrays: TypeAlias = dict[str, Array]


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Arrays as the content of a compressed .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
    return buffer.getvalue()


def npz_arrays(path: Path, content: bytes, names: Container[str] | None = None) -> Arrays:
    """The arrays of an .npz file (only those of certain names)."""
    check_archive(path, io.BytesIO(content), ratio=np.inf)  # vectors that are nearly all zeros pack extremely well
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {name: file[name] for name in file.files if names is None or name in names}
    except Exception as problem:  # zip and numpy raise many kinds of errors for damaged files
        raise unusable(path, f"cannot be read ({one_line(str(problem), 80)})", "it is damaged: fit again") from None
