"""Expression matrices from files: samples in rows, genes in columns, with names; in memory or as Dask arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from netbic.arrays import Array, Bools, Indices, Matrix, kind_of, row_blocks, stored_values, to_dense
from netbic.errors import InputError, shown, unusable
from netbic.io.stores import BLOCK_BYTES, RowSource, TenX, is_store, open_store, read_store, readable
from netbic.io.tables import (
    NameArray,
    Step,
    as_matrix,
    as_names,
    check_characters,
    check_file,
    float_type,
    named_frame,
    number_pieces,
    number_table,
    parquet_errors,
    read_bytes,
    read_parquet,
)
from netbic.operators.blocks import ColumnStatistics, column_statistics, map_rows, select_columns

READING = ("samples_in_rows", "layer", "gene_names", "skip_columns")  # parameters of `read_expression`
_LARGE_GROUP = 16 * BLOCK_BYTES
_OUTLYING = 1000.0


@dataclass(frozen=True)
class Expression:
    """Expression values of genes (columns) in samples (rows), and their names.

    The matrix is dense, CSR, or a Dask array of blocks of samples if it stays in its file.
    """

    matrix: Matrix
    samples: NameArray
    genes: NameArray
    steps: tuple[Step, ...] = ()  # what the reader left out
    scan: ColumnStatistics | None = field(default=None, repr=False, compare=False)  # of a matrix that stays in its file
    origin: str = ""  # digest of such a matrix as it is in the file
    passes: int = 0  # over such a matrix so far

    def __post_init__(self) -> None:
        if self.matrix.shape != self.shape:
            raise InputError(f"the matrix has shape {self.matrix.shape} but there are {self.shape} samples and genes")

    def __repr__(self) -> str:
        samples, genes = self.shape
        kind = "dense" if isinstance(self.matrix, np.ndarray) else "in its file" if self.is_lazy else "sparse"
        return f"Expression({samples:,} samples x {genes:,} genes, {kind} {self.matrix.dtype})"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return int(self.samples.size), int(self.genes.size)

    @property
    def is_lazy(self) -> bool:
        """Whether the matrix is a Dask array."""
        return kind_of(self.matrix) == "dask"

    def select_genes(self, kept: Array) -> Expression:
        """Some genes only, by index or mask."""
        matrix = select_columns(self.matrix, kept)
        known = None if self.scan is None else self.scan.select_columns(kept)
        return replace(self, matrix=matrix, genes=self.genes[kept], scan=known)

    def select_samples(self, kept: Array) -> Expression:
        """Some samples only, by index, in this order; of a matrix in memory."""
        if np.array_equal(kept, np.arange(self.shape[0])):
            return self
        return replace(self, matrix=self.matrix[kept], samples=self.samples[kept])

    def scanned(self) -> Expression:
        """The same with summaries from one pass over a Dask array; an error if values are missing or infinite."""
        if self.scan is not None or not self.is_lazy:
            return self
        found = column_statistics(self.matrix)
        if found.summary.fault is not None:
            row, column, value = found.summary.fault
            raise InputError(
                f"a value is {'missing' if np.isnan(value) else 'infinite'} ({self._place(row, column)}, the first "
                "one): a matrix that stays in its file must be complete: fill in or drop such values"
            )
        return replace(self, scan=found, origin=self.origin or f"{found.digest:032x}", passes=self.passes + 1)

    def missing_entries(self) -> str:
        """How many values are missing and where the first of them is, as text; empty if none is missing."""
        count, first = (0, "") if self.scanned().is_lazy else self.find(np.isnan)
        return f"{count:,} {'value is' if count == 1 else 'values are'} missing (the first: {first})" if count else ""

    def find(self, test: Callable[[Array], Bools]) -> tuple[int, str]:
        """How many stored values are not finite and pass a test, and gene and sample of the first one."""
        values = stored_values(self.matrix)
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()):  # then all values are
                return 0, ""
        found = test(values)
        if not found.any():
            return 0, ""
        if isinstance(self.matrix, np.ndarray):
            row, column = np.unravel_index(int(np.argmax(found)), found.shape)
        else:
            row, column = (part[int(np.argmax(found))] for part in self.matrix.tocoo().coords)
        return int(np.count_nonzero(found)), self._place(int(row), int(column))

    def _place(self, row: int, column: int) -> str:
        return f"gene {shown(self.genes[column])}, sample {shown(self.samples[row])}"

    def frame(self) -> pd.DataFrame:
        """A DataFrame of dense numbers, samples in rows."""
        if self.is_lazy:
            raise InputError("this matrix stays in its file: use .matrix, a Dask array, or read_expression")
        return pd.DataFrame(to_dense(self.matrix), index=self.samples, columns=self.genes, copy=False)


def read_expression(
    path: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: str | Sequence[str] = (),
) -> Expression:
    r"""Read an expression matrix.

    Parameters
    ----------
    path : path
        A text table (.tsv, .csv, .txt, gzip or not; the separator is guessed), .parquet, .h5ad, .zarr, .npy, or a
        folder in 10x format (matrix.mtx, barcodes.tsv and features.tsv or genes.tsv, each gzip or not).
    samples_in_rows : bool
        Text and Parquet tables have genes in rows unless this is set. All other formats have samples in rows, apart
        from 10x folders, whose layout is fixed.
    layer : str, optional
        Layer of an .h5ad file or .zarr store to read instead of X.
    gene_names : str, optional
        Column of `var` (.h5ad, .zarr) that holds the names of the genes (default: its index); for a 10x folder "id"
        or "symbol" (the default).
    skip_columns : str or sequence of str
        Columns of a table to leave out.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     _ = file.write("gene\ts1\ts2\nTP53\t1.5\t2\nMDM2\t0\t3\n")
    ...     file.flush()
    ...     netbic.io.read_expression(file.name).frame()
        TP53  MDM2
    s1   1.5   0.0
    s2   2.0   3.0
    """
    path = Path(path)
    kind = check_format(path, samples_in_rows, layer, gene_names, skip_columns)
    if kind == "10x":
        folder = TenX(path, gene_names)
        expression = Expression(folder.read(), folder.barcodes, folder.genes, folder.steps)
    elif kind in ("zarr", ".npy", ".h5ad"):
        expression = Expression(*read_store(path, layer, gene_names))
    else:
        if kind == "parquet":
            table = number_table(path, read_parquet(path), skip_columns, not samples_in_rows)
        else:
            table = next(number_pieces(path, [(0, read_bytes(path))], skip_columns, not samples_in_rows))
        numbers = table.numbers if samples_in_rows else np.ascontiguousarray(table.numbers.T)
        names = (table.lines, table.columns) if samples_in_rows else (table.columns, table.lines)
        expression = Expression(numbers, *names, table.steps)
    check_names(path, expression.samples, expression.genes)
    if (infinite := expression.find(np.isinf))[0]:
        raise unusable(path, f"holds infinite values ({infinite[1]})", "remove them, or give missing values as NA")
    matrix = expression.matrix
    if isinstance(matrix, np.ndarray):
        sizes = np.concatenate([np.where(np.isnan(rows), 0, np.abs(rows)).mean(axis=1) for rows in row_blocks(matrix)])
    else:
        sizes = np.asarray(abs(matrix).mean(axis=1)).ravel()
    largest, usual = int(np.argmax(sizes)), float(np.median(sizes))
    if sizes.size > 3 and usual > 0 and sizes[largest] > _OUTLYING * usual:  # a column that annotates genes?
        ratio, remedy = sizes[largest] / usual, "if it is not a sample, leave it out (`skip_columns`)"
        what = f"the values of sample {shown(expression.samples[largest])} are {ratio:,.0f} times as large as usual"
        warnings.warn(f"{path}: {what}: {remedy}", stacklevel=2)
    return expression


def open_expression(
    path: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: str | Sequence[str] = (),
    block_rows: int | None = None,
) -> Expression:
    """Open an expression matrix that stays in its file.

    Parameters
    ----------
    path : path
        A .zarr store (AnnData's layout, dense or CSR, as `netbic convert` writes it, or a bare array), an .h5ad file,
        a Parquet table with samples in rows, or an .npy array. Bare arrays have samples in rows, which are called
        sample_0, sample_1, ...; their genes are called 0, 1, ...
    samples_in_rows, layer, gene_names, skip_columns
        See `read_expression`.
    block_rows : int, optional
        Samples per block. Default: what the file stores together (chunks, row groups), joined to about 64 MB. Row
        groups of a Parquet table are never cut.

    Returns
    -------
    Expression
        Its matrix is a Dask array of blocks of samples. Every task opens the file itself.

    Examples
    --------
    >>> import tempfile, netbic.io, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/counts.npy", np.arange(12.0).reshape(6, 2))
    ...     expression = netbic.io.open_expression(f"{folder}/counts.npy", block_rows=4)
    ...     expression.matrix.chunks, float(expression.matrix.sum().compute()), expression.samples[:2].tolist()
    (((4, 2), (2,)), 66.0, ['sample_0', 'sample_1'])
    """
    if block_rows is not None and block_rows < 1:
        raise InputError(f"`block_rows={block_rows}`: at least 1 is needed")
    path = Path(path)
    kind = check_format(path, samples_in_rows, layer, gene_names, skip_columns)
    if kind in ("zarr", ".h5ad", ".npy"):
        source = open_store(path, layer, gene_names)
    elif kind == "parquet" and samples_in_rows:
        source = _open_parquet_rows(path, skip_columns)
    else:
        what = {"10x": "is a 10x folder", "parquet": "has genes in rows"}.get(kind, "is a text table")
        what += ", from which blocks of samples cannot be read"
        remedy = f"convert it first (netbic convert {path} {path.name.split('.')[0]}.zarr)"
        remedy += ", or `samples_in_rows=True` if samples are in rows" if kind == "parquet" else ""
        raise unusable(path if kind == "10x" else check_file(path), what, remedy)
    check_names(path, source.samples, source.genes)
    return Expression(source.blocks(block_rows), source.samples, source.genes, source.steps)


def file_format(path: Path) -> str:
    """The format of a file by its name: "10x", "zarr", ".h5ad", ".npy", "parquet"; all others are text tables."""
    if path.is_dir():
        return "zarr" if path.suffix.lower() == ".zarr" or is_store(path) else "10x"
    kind = path.suffix.lower()
    return {".pq": "parquet", ".parquet": "parquet", ".zarr": "zarr"}.get(kind, kind)


def check_format(path: Path, samples_in_rows: object, layer: object, gene_names: object, skip_columns: object) -> str:
    """The format of a file; an error if a parameter does not apply to it."""
    kind = file_format(path)
    table = kind not in (".h5ad", "zarr", "10x", ".npy")
    for name, given, meant, applies in (
        ("layer", layer, ".h5ad files and .zarr stores", kind in (".h5ad", "zarr")),
        ("gene_names", gene_names, ".h5ad files, .zarr stores and 10x folders", not table),
        ("skip_columns", skip_columns, "tables", table),
        ("samples_in_rows", samples_in_rows, "tables", table),
    ):
        if given and not applies:
            raise unusable(path, f"`{name}` is for {meant} only", "leave it out")
    return kind


def check_names(path: Path, samples: NameArray, genes: NameArray) -> None:
    """At least two samples and two genes, no control character in their names, no sample twice."""
    if samples.size < 2 or genes.size < 2:
        what = f"has {samples.size} samples and {genes.size} genes"
        raise unusable(path, what, "at least two of each are needed")
    check_characters(path, "sample", samples)
    check_characters(path, "gene", genes)
    twice = pd.Index(samples).duplicated()
    if twice.any():
        what = f"sample {shown(samples[twice][0])} occurs more than once"
        raise unusable(path, what, "rename or remove the copies")


def as_floats(X: Matrix) -> Matrix:
    """A Dask array of floats, in the precision `read_expression` would take."""
    dtype = float_type(X.dtype)
    return X if X.dtype == dtype else map_rows(X, as_matrix, dtype=dtype)


# Blocks of samples of a Parquet table


def _open_parquet_rows(path: Path, skip_columns: str | Sequence[str]) -> RowSource:
    """A table with samples in rows; a row group is read whole."""
    with parquet_errors(path):
        file = pq.ParquetFile(path)
        empty, starts = file.schema_arrow.empty_table().to_pandas(), _group_starts(file)
    table = number_table(path, empty, skip_columns, False)
    has_index = named_frame(path, empty) is empty
    names = read_parquet(path, [] if has_index else [str(empty.columns[0])])
    dtype = table.numbers.dtype
    largest = int(np.diff(starts).max(initial=0)) * table.columns.size * dtype.itemsize
    if largest > _LARGE_GROUP:
        what = f"{path}: a row group holds {largest / 1e9:.1f} GB, which is read as a whole"
        warnings.warn(f"{what}: netbic convert writes smaller blocks", stacklevel=3)
    return RowSource(
        read_parquet_rows,
        (str(path.absolute()), skip_columns, dtype.str),
        as_names(names.index if has_index else names.iloc[:, 0]),
        table.columns,
        dtype,
        float(table.columns.size * dtype.itemsize),
        cuts=starts[:-1],
        steps=table.steps,
        divisible=False,
    )


def _group_starts(file: pq.ParquetFile) -> Indices:
    """The first row of every row group, and the number of rows."""
    heights = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    return np.concatenate([[0], np.cumsum(heights)]).astype(np.intp)


def read_parquet_rows(path: str, skip_columns: str | Sequence[str], dtype: str, first: int, last: int) -> Array:
    """Rows of a Parquet table; the row groups that hold them are read."""
    with readable(path, first, last):
        file = pq.ParquetFile(path)
        starts = _group_starts(file)
        groups = np.flatnonzero((starts[1:] > first) & (starts[:-1] < last))
        frame = file.read_row_groups(groups.tolist()).to_pandas()
        numbers = number_table(Path(path), frame, skip_columns, False).numbers
        start = first - int(starts[groups[0]])
        return np.ascontiguousarray(numbers[start : start + last - first], dtype=dtype)
