"""Expression matrices of any form as Zarr stores of blocks of samples, in AnnData's layout, a block at a time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from netbic.arrays import stored_values
from netbic.errors import InputError, import_optional, one_line
from netbic.files import (
    FolderInUse,
    check_not_input,
    locked,
    remove_folder,
    scratch_folder,
    scratch_path,
    write_errors,
)
from netbic.io.expression import Expression, check_names, file_format
from netbic.io.external_transpose import csc_source, table_source, tenx_source
from netbic.io.lazy import BLOCK_BYTES, RowSource, open_expression, store_source
from netbic.io.matrices import NameArray
from netbic.io.options import ExpressionOptions, with_changes
from netbic.io.stores import WHOLE, describe, foreign_files, is_store
from netbic.io.text import Progress

_LARGEST = 2_000_000_000  # bytes of a chunk that compressors take
_ENTRIES = 1 << 20  # of a sparse matrix, in a chunk
_EVERY_CHUNK = {"write_empty_chunks": True}  # zeros too, so that a missing chunk is noticed
_STORE, _REPLACED = "store", "replaced"  # in the scratch folder
_READING = 60  # per cent of the work, if a file has to be transposed first


def convert(
    source: Path | str,
    target: Path | str,
    options: ExpressionOptions | None = None,
    *,
    block_rows: int | None = None,
    dtype: str | None = None,
    force: bool = False,
    progress: Callable[[int], object] = lambda percent: None,
    **changes: Any,
) -> Expression:
    r"""Write an expression matrix as a Zarr store of blocks of samples, which `open_expression` reads block by block.

    The layout is AnnData's (`anndata.read_zarr` reads it). Memory holds a few blocks at a time, whatever the file's
    size; a table with genes in rows, a 10x folder and a matrix stored by columns are transposed in temporary files
    beside the target. The target is written completely or not at all.

    Parameters
    ----------
    source : path
        Anything `read_expression` reads.
    target : path
        A name that ends in .zarr.
    options : ExpressionOptions, optional
        How the source is read.
    block_rows : int, optional
        Samples per block. Default: about 64 MB.
    dtype : {"float32", "float64"}, optional
        Default: that of the file; text is read as float64.
    force : bool
        Replace a Zarr store of that name.
    progress : function, optional
        Called with the percentage done.
    **changes
        Options by name: `samples_in_rows`, `layer`, `gene_names`, `skip_columns`; see `ExpressionOptions`.

    Returns
    -------
    Expression
        The target, opened: its matrix is a Dask array.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/table.tsv", "w") as file:
    ...         _ = file.write("gene\ts1\ts2\ts3\nTP53\t1.5\t2\t0\nMDM2\t0\t3\t1\n")
    ...     made = netbic.io.convert(f"{folder}/table.tsv", f"{folder}/table.zarr")
    ...     made.samples.tolist(), made.matrix.compute().tolist()
    (['s1', 's2', 's3'], [[1.5, 0.0], [2.0, 3.0], [0.0, 1.0]])
    """
    if "told" in changes:
        warnings.warn("told is called progress now", FutureWarning, stacklevel=2)
        progress = changes.pop("told")
    options = with_changes(options or ExpressionOptions(), "convert", changes)
    source, target = Path(source), Path(target)
    if target.parent.is_dir():
        with locked(target.parent, target.name):
            _put_back(target)
            remove_folder(scratch_path(target.parent, target.name))
    _check_target(source, target, force)
    if dtype not in (None, "float32", "float64"):
        raise InputError(f"dtype={dtype!r} is not known: choose 'float32' or 'float64'")
    with (
        locked(target.parent, target.name),
        scratch_folder(target.parent, target.name) as scratch,
        write_errors(target, full_only=True),
    ):
        rows = _row_source(source, scratch, dtype, options, lambda share: progress(int(_READING * share)))
        check_names(source, rows.samples, rows.genes)
        write_store(rows, scratch / _STORE, block_rows, np.dtype(dtype or rows.dtype), progress)
        with write_errors(target):
            _check_target(source, target, force)  # it may have been written meanwhile
            try:
                if os.path.lexists(target):
                    os.replace(target, scratch / _REPLACED)
                os.replace(scratch / _STORE, target)
            finally:
                _put_back(target)
    return open_expression(target, block_rows=block_rows)


def _put_back(target: Path) -> None:
    """Move a store that was replaced back to its place, unless something else is there."""
    scratch = scratch_path(target.parent, target.name)
    if os.path.lexists(scratch / _REPLACED) and not os.path.lexists(target):
        os.replace(scratch / _REPLACED, target)


def _check_target(source: Path, target: Path, force: bool) -> None:
    if target.suffix.lower() != ".zarr":
        raise InputError(f"{target} does not end in .zarr: give the store a name that does")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a folder: make it first, or write elsewhere")
    check_not_input([target], {"the expression data": source})
    if not os.path.lexists(target):
        return
    if not force:
        raise FolderInUse(f"{target} exists: choose another name, or `force=True` to replace it", ["force"])
    if not is_store(target):
        raise FolderInUse(f"{target} is not a Zarr store: choose another name")
    if others := foreign_files(target):
        some = one_line(", ".join(others[:5]) + (", ..." if len(others) > 5 else ""), 300)
        raise FolderInUse(f"{target} holds files that Zarr did not write ({some}): move them away, or write elsewhere")


def _row_source(
    path: Path, scratch: Path, dtype: str | None, options: ExpressionOptions, progress: Progress
) -> RowSource:
    """The file if rows can be read from it, otherwise its transpose in temporary files."""
    kind = file_format(path)
    options.check(path, kind)
    if kind == "10x":
        return tenx_source(path, scratch, options.gene_names, dtype, progress)
    if kind not in ("zarr", ".h5ad", ".npy"):
        return table_source(path, scratch, options, dtype, progress)
    stored = describe(path, options.layer, options.gene_names)
    return csc_source(stored, scratch, dtype, progress) if stored.encoding == "csc_matrix" else store_source(stored)


def write_store(
    rows: RowSource, path: Path, block_rows: int | None, dtype: np.dtype[Any], progress: Callable[[int], object]
) -> None:
    """Write a Zarr store in AnnData's layout, a block of rows at a time."""
    zarr = import_optional("zarr", "dask", "a .zarr store")
    root = zarr.open_group(str(path), mode="w", zarr_format=2)  # the format that every AnnData reads
    root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    for name, names in (("obs", rows.samples), ("var", rows.genes)):
        _write_names(root.create_group(name), names)
    height = _height(rows, block_rows, dtype)
    bounds = [*range(0, rows.shape[0], height), rows.shape[0]]
    writer = (_Sparse if rows.is_sparse else _Dense)(root, rows.shape, height, dtype)
    missing = 0
    for first, last in pairwise(bounds):
        block = rows.rows(first, last).astype(dtype, copy=False)
        missing += int(np.count_nonzero(np.isnan(stored_values(block))))
        writer.write(block, first, last)
        progress(_READING + int((100 - _READING) * last / rows.shape[0]))
    writer.close()
    zarr.consolidate_metadata(str(path))
    if missing:
        what = f"{missing:,} values are missing: fits that read data in blocks need complete data, fill them in first"
        warnings.warn(what, stacklevel=3)


def _height(rows: RowSource, asked: int | None, dtype: np.dtype[Any]) -> int:
    """Samples per block: as asked for, or about 64 MB."""
    row_bytes = rows.row_bytes if rows.is_sparse else float(rows.shape[1] * dtype.itemsize)
    if asked is None:
        return min(rows.shape[0], max(1, int(BLOCK_BYTES / max(row_bytes, 1.0))))
    if asked < 1 or asked * row_bytes > _LARGEST:
        most = max(1, int(_LARGEST / max(row_bytes, 1.0)))
        what = f"`block_rows={asked}`: choose 1 to {most:,}, so that blocks stay below 2 GB"
        raise InputError(what, ["block_rows"])
    return min(asked, rows.shape[0])


def _write_names(group: Any, names: NameArray) -> None:
    """A data frame of AnnData's with an index and nothing else."""
    group.attrs.update(
        {"_index": "_index", "column-order": [], "encoding-type": "dataframe", "encoding-version": "0.2.0"}
    )
    index = group.create_array("_index", shape=(names.size,), dtype=str)
    index[:] = np.array([str(name) for name in names], dtype=object)
    index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


class _Dense:
    """X as an array, a chunk per block."""

    def __init__(self, root: Any, shape: tuple[int, int], height: int, dtype: np.dtype[Any]) -> None:
        self._array = root.create_array("X", shape=shape, chunks=(height, shape[1]), dtype=dtype, config=_EVERY_CHUNK)
        self._array.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0", WHOLE: True})

    def write(self, block: Any, first: int, last: int) -> None:
        self._array[first:last] = block

    def close(self) -> None:
        """Nothing is left to do."""


class _Sparse:
    """X as a CSR group."""

    def __init__(self, root: Any, shape: tuple[int, int], height: int, dtype: np.dtype[Any]) -> None:
        self._group = root.create_group("X")
        self._group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(shape)})
        layout: dict[str, Any] = {"shape": (0,), "chunks": (_ENTRIES,), "config": _EVERY_CHUNK}
        self._data = self._group.create_array("data", dtype=dtype, **layout)
        self._indices = self._group.create_array("indices", dtype=np.int32, **layout)
        self._counts = [np.zeros(1, dtype=np.int64)]

    def write(self, block: Any, first: int, last: int) -> None:
        self._data.append(block.data)
        self._indices.append(block.indices.astype(np.int32, copy=False))
        self._counts.append(np.diff(block.indptr))

    def close(self) -> None:
        """Write where rows begin."""
        starts = np.cumsum(np.concatenate(self._counts))
        self._group.create_array("indptr", data=starts.astype(np.int64), config=_EVERY_CHUNK)
        self._group.attrs.update({WHOLE: True})
