"""Expression matrices of any form as Zarr stores of blocks of samples, in AnnData's layout, a block at a time.

Matrices that are stored by genes are transposed first, in temporary files from which samples can be read.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import Array, Matrix, stored_values
from netbic.errors import InputError, import_optional, one_line, unusable
from netbic.files import (
    FolderInUse,
    check_not_input,
    locked,
    remove_folder,
    scratch_folder,
    scratch_path,
    write_errors,
)
from netbic.io.expression import Expression, check_format, check_names, open_expression
from netbic.io.stores import BLOCK_BYTES, RowSource, TenX, is_store, open_matrix, open_store
from netbic.io.tables import (
    NameArray,
    NumberTable,
    Progress,
    float_type,
    number_pieces,
    number_table,
    parquet_errors,
    text_pieces,
)

Entries = tuple[Array, Array, Array]  # rows, columns, values
_LARGEST = 2_000_000_000  # bytes of a chunk that compressors take
_ENTRIES = 1 << 20  # of a sparse matrix, in a chunk
_EVERY_CHUNK = {"write_empty_chunks": True}  # zeros too, so that a missing chunk is noticed
_BATCH = 1 << 25  # bytes of a table, or entries' bytes, at a time
_FILES = 256  # for entries of sparse matrices that are transposed
_READING = 60  # per cent of the work, if a file has to be transposed first
_STORED = re.compile(r"zarr\.json|\.z(group|array|attrs|metadata)|c|\d+([./]\d+)*")  # files that Zarr writes


def convert(
    source: Path | str,
    target: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: str | Sequence[str] = (),
    block_rows: int | None = None,
    dtype: str | None = None,
    force: bool = False,
    progress: Callable[[int], object] = lambda percent: None,
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
    samples_in_rows, layer, gene_names, skip_columns
        How the source is read; see `read_expression`.
    block_rows : int, optional
        Samples per block. Default: about 64 MB.
    dtype : {"float32", "float64"}, optional
        Default: that of the file; text is read as float64.
    force : bool
        Replace a Zarr store of that name.
    progress : function, optional
        Called with the percentage done.

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
    source, target = Path(source), Path(target)
    replaced = scratch_path(target.parent, target.name) / "replaced"

    def put_back() -> None:  # a store that was replaced, unless something else is in its place
        if os.path.lexists(replaced) and not os.path.lexists(target):
            os.replace(replaced, target)

    if target.parent.is_dir():
        with locked(target.parent, target.name):
            put_back()
            remove_folder(replaced.parent)
    _check_target(source, target, force)
    if dtype not in (None, "float32", "float64"):
        raise InputError(f"dtype={dtype!r} is not known: choose 'float32' or 'float64'")
    kind = check_format(source, samples_in_rows, layer, gene_names, skip_columns)
    with (
        locked(target.parent, target.name),
        scratch_folder(target.parent, target.name) as scratch,
        write_errors(target, full_only=True),
    ):

        def reading(share: float) -> None:
            progress(int(_READING * share))

        if kind in ("zarr", ".h5ad", ".npy"):
            with open_matrix(source, layer, gene_names) as stored:
                if stored.format == "csc":
                    entries, values = stored.columns(_BATCH // 8, reading), dtype or float_type(stored.values.dtype)
                    rows = _transpose(entries, scratch, stored.samples, stored.genes, values)
                else:
                    rows = open_store(source, layer, gene_names)
        elif kind == "10x":
            tenx = TenX(source, gene_names)
            rows = _transpose(tenx.entries(reading), scratch, tenx.barcodes, tenx.genes, dtype or np.float64)
        else:
            if kind == "parquet":
                pieces = _parquet_pieces(source, skip_columns, not samples_in_rows, reading)
            else:
                text = text_pieces(source, progress=reading)
                pieces = number_pieces(source, text, skip_columns, not samples_in_rows)
            rows = _table_source(pieces, scratch, samples_in_rows, dtype)
        check_names(source, rows.samples, rows.genes)
        write_store(rows, scratch / "store", block_rows, np.dtype(dtype or rows.dtype), progress)
        with write_errors(target):
            _check_target(source, target, force)  # it may have been written meanwhile
            try:
                if os.path.lexists(target):
                    os.replace(target, replaced)
                os.replace(scratch / "store", target)
            finally:
                put_back()
    return open_expression(target, block_rows=block_rows)


def _check_target(source: Path, target: Path, force: bool) -> None:
    if target.suffix.lower() != ".zarr":
        raise InputError(f"{target} does not end in .zarr: give the store a name that does")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a folder: make it first, or write elsewhere")
    check_not_input([target], {"the expression data": source})
    if not os.path.lexists(target):
        return
    if not force:
        raise FolderInUse(f"{target} exists: choose another name, or `force=True` to replace it")
    if not is_store(target):
        raise FolderInUse(f"{target} is not a Zarr store: choose another name")
    others = sorted(
        str(Path(folder).relative_to(target) / name)
        for folder, _, names in os.walk(target)
        for name in names
        if not _STORED.fullmatch(name)
    )
    if others:
        some = one_line(", ".join(others[:5]) + (", ..." if len(others) > 5 else ""), 300)
        raise FolderInUse(f"{target} holds files that Zarr did not write ({some}): move them away, or write elsewhere")


def write_store(
    rows: RowSource, path: Path, block_rows: int | None, dtype: np.dtype[Any], progress: Callable[[int], object]
) -> None:
    """Write a Zarr store in AnnData's layout, a block of rows at a time.

    Missing chunks would be read as the fill values: NaN and -1, so that they are noticed.
    """
    zarr = import_optional("zarr", "anndata", "a .zarr store")
    write_elem = import_optional("anndata.io", "anndata", "a .zarr store").write_elem
    shape = rows.shape
    row_bytes = max(1.0, rows.row_bytes if rows.is_sparse else float(shape[1] * dtype.itemsize))
    highest = max(1, int(_LARGEST / row_bytes))
    if block_rows is not None and not 1 <= block_rows <= highest:
        raise InputError(f"`block_rows={block_rows}`: choose 1 to {highest:,}, so that blocks stay below 2 GB")
    height = min(shape[0], block_rows or max(1, int(BLOCK_BYTES / row_bytes)))
    root = zarr.open_group(str(path), mode="w", zarr_format=2)  # the format that every AnnData reads
    root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    for axis, names in (("obs", rows.samples), ("var", rows.genes)):
        write_elem(root, axis, pd.DataFrame(index=pd.Index([str(name) for name in names], dtype=object)))
    layout: dict[str, Any] = {"fill_value": np.nan, "dtype": dtype, "config": _EVERY_CHUNK}
    if rows.is_sparse:
        X = root.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(shape)})
        data = X.create_array("data", shape=(0,), chunks=(_ENTRIES,), **layout)
        layout |= {"fill_value": -1, "dtype": np.int32}
        indices = X.create_array("indices", shape=(0,), chunks=(_ENTRIES,), **layout)
    else:
        X = root.create_array("X", shape=shape, chunks=(height, shape[1]), **layout)
        X.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    missing, sizes = 0, [np.zeros(1, dtype=np.int64)]
    for first, last in pairwise([*range(0, shape[0], height), shape[0]]):
        block = rows.rows(first, last).astype(dtype, copy=False)
        missing += int(np.count_nonzero(np.isnan(stored_values(block))))
        if rows.is_sparse:
            data.append(block.data)
            indices.append(block.indices.astype(np.int32, copy=False))
            sizes.append(np.diff(block.indptr))
        else:
            X[first:last] = block
        progress(_READING + int((100 - _READING) * last / shape[0]))
    if rows.is_sparse:
        pointers = np.cumsum(np.concatenate(sizes)).astype(np.int64)
        X.create_array("indptr", shape=pointers.shape, **layout | {"dtype": np.int64})[:] = pointers
    zarr.consolidate_metadata(str(path))
    if missing:
        what = f"{missing:,} values are missing: fits that read data in blocks need complete data, fill them in first"
        warnings.warn(what, stacklevel=3)


# Tables


def _table_source(
    pieces: Iterable[NumberTable], scratch: Path, samples_in_rows: bool, dtype: DTypeLike | None
) -> RowSource:
    """A text or Parquet table with samples or genes in rows; its lines are written to a file one after the other."""
    lines = list[Any]()
    with (scratch / "lines").open("wb") as file:
        for piece in pieces:
            dtype = piece.numbers.dtype if dtype is None else dtype
            file.write(np.ascontiguousarray(piece.numbers, dtype=dtype).data)
            lines.extend(piece.lines)
    named, kind = np.array(lines, dtype=object), np.dtype(dtype)
    samples, genes = (named, piece.columns) if samples_in_rows else (piece.columns, named)
    arguments = (str(scratch / "lines"), kind.str, (len(lines), piece.columns.size), samples_in_rows)
    return RowSource(_read_table, arguments, samples, genes, kind, float(genes.size * kind.itemsize))


def _parquet_pieces(
    path: Path, skip: str | Sequence[str], annotated: bool, progress: Progress
) -> Iterator[NumberTable]:
    with parquet_errors(path):
        file = pq.ParquetFile(path)
        if not file.metadata.num_rows:
            raise unusable(path, "contains only a header", "write or download it again")
        height = max(1, _BATCH // (8 * max(1, len(file.schema_arrow.names))))
        done = 0
        for batch in file.iter_batches(height):
            yield number_table(path, pa.Table.from_batches([batch]).to_pandas(), skip, annotated)
            done += batch.num_rows
            progress(done / file.metadata.num_rows)


def _read_table(path: str, dtype: str, shape: tuple[int, int], in_rows: bool, first: int, last: int) -> Array:
    """Some lines, or some columns as rows; read by hand, since pages of a memory map would count as memory in use."""
    size = np.dtype(dtype).itemsize
    if in_rows:
        return np.fromfile(path, dtype, (last - first) * shape[1], offset=first * shape[1] * size).reshape(-1, shape[1])
    values = np.empty((shape[0], last - first), dtype=dtype)
    with open(path, "rb", buffering=0) as file:
        for line in range(shape[0]):
            file.seek((line * shape[1] + first) * size)
            file.readinto(values[line].data)
    return np.ascontiguousarray(values.T)


# Entries of sparse matrices


def _transpose(pieces: Iterable[Entries], scratch: Path, samples: NameArray, genes: NameArray, dtype: Any) -> RowSource:
    """Entries of a sparse matrix in any order, written to files of some rows each."""
    entry = np.dtype([("row", np.int32), ("column", np.int32), ("value", dtype)])
    height, n_entries = -(-samples.size // _FILES), 0
    for rows, columns, values in pieces:
        order = np.argsort(rows // height, kind="stable")
        part = np.empty(rows.size, dtype=entry)
        part["row"], part["column"], part["value"] = rows[order], columns[order], values[order]
        bounds = np.searchsorted(part["row"] // height, np.arange(_FILES + 1))
        for number in np.flatnonzero(np.diff(bounds)):
            with (scratch / f"{number}.entries").open("ab") as file:
                file.write(part[bounds[number] : bounds[number + 1]].data)
        n_entries += rows.size
    row_bytes = n_entries * (np.dtype(dtype).itemsize + 4) / samples.size
    arguments = (str(scratch), height, int(genes.size), entry)
    return RowSource(_read_entries, arguments, samples, genes, np.dtype(dtype), row_bytes, is_sparse=True)


def _read_entries(folder: str, height: int, n_columns: int, entry: np.dtype[Any], first: int, last: int) -> Matrix:
    """Some rows, as CSR; entries at the same place are added up."""
    files = [Path(folder, f"{number}.entries") for number in range(first // height, (last - 1) // height + 1)]
    parts = np.concatenate([np.empty(0, entry), *(np.fromfile(file, entry) for file in files if file.exists())])
    parts = parts[(parts["row"] >= first) & (parts["row"] < last)]
    places = parts["row"] - first, parts["column"]
    return sp.csr_array(sp.coo_array((parts["value"], places), shape=(last - first, n_columns)))
