"""Expression matrices from files: samples in rows, genes in columns, names on both sides."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Matrix, stored_values
from netbic.errors import InputError, import_optional, one_line, shown, unusable
from netbic.io.annotations import OldLayout
from netbic.io.characters import check_characters
from netbic.io.hdf5 import check_hdf5
from netbic.io.matrices import NameArray, Step, as_matrix, as_names
from netbic.io.options import ExpressionOptions
from netbic.io.parquet import number_table, read_parquet
from netbic.io.stores import BY_BLOCKS, describe, is_zarr, stored_whole
from netbic.io.tables import NumberTable, read_numbers
from netbic.io.tenx import TenX
from netbic.operators import ColumnStatistics, column_statistics, is_dask, select_columns

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
        return is_dask(self.matrix)

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
        if self.is_lazy:
            self.scanned()
            return ""
        count, first = self.find(np.isnan)
        return f"{count:,} {'value is' if count == 1 else 'values are'} missing (the first: {first})" if count else ""

    def holes(self) -> str:
        """The earlier name of `missing_entries`."""
        warnings.warn("Expression.holes is called Expression.missing_entries now", FutureWarning, stacklevel=2)
        return self.missing_entries()

    def find(self, test: Callable[[Array], Bools]) -> tuple[int, str]:
        """How many stored values pass a test, and gene and sample of the first one."""
        found = test(stored_values(self.matrix))
        if not found.any():
            return 0, ""
        if isinstance(self.matrix, np.ndarray):
            row, column = np.unravel_index(int(np.argmax(found)), found.shape)
        else:
            entries = self.matrix.tocoo()
            row, column = (part[int(np.argmax(found))] for part in (entries.row, entries.col))
        return int(np.count_nonzero(found)), self._place(int(row), int(column))

    def _place(self, row: int, column: int) -> str:
        return f"gene {shown(self.genes[column])}, sample {shown(self.samples[row])}"

    def frame(self) -> pd.DataFrame:
        """A DataFrame of dense numbers, samples in rows."""
        if self.is_lazy:
            raise InputError("this matrix stays in its file: use .matrix, a Dask array, or read_expression")
        values = self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.toarray()
        return pd.DataFrame(values, index=self.samples, columns=self.genes)


def read_expression(
    path: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: Sequence[str] = (),
) -> Expression:
    r"""Read an expression matrix.

    Parameters
    ----------
    path : path
        A text table (.tsv, .csv, .txt, gzip or not; the separator is guessed), .parquet, .h5ad, .zarr, .npy, or a
        folder in 10x format (matrix.mtx, barcodes.tsv and features.tsv or genes.tsv, each gzip or not).
    samples_in_rows, layer, gene_names, skip_columns
        See `ExpressionOptions`.

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
    path, options = Path(path), ExpressionOptions(samples_in_rows, layer, gene_names, skip_columns)
    kind = file_format(path)
    options.check(path, kind)
    if kind == "10x":
        folder = TenX.open(path, gene_names)
        expression = Expression(folder.read(), folder.barcodes, folder.features[folder.kept], folder.steps)
    elif kind in ("zarr", ".npy", ".h5ad"):
        expression = _from_store(path, options)
    elif kind == "parquet":
        table = number_table(path, read_parquet(path), options.skip_columns, not samples_in_rows)
        expression = _from_table(table, samples_in_rows)
    else:
        expression = _from_table(read_numbers(path, options.skip_columns, not samples_in_rows), samples_in_rows)
    check_names(path, expression.samples, expression.genes)
    if (infinite := expression.find(np.isinf))[0]:
        raise unusable(path, f"holds infinite values ({infinite[1]})", "remove them, or give missing values as NA")
    _warn_about_outliers(path, expression)
    return expression


def file_format(path: Path) -> str:
    """The format of a file by its name: "10x", "zarr", ".h5ad", ".npy", "parquet"; all others are text tables."""
    if path.is_dir():
        return "zarr" if is_zarr(path) else "10x"
    kind = path.suffix.lower()
    return {".pq": "parquet", ".parquet": "parquet", ".zarr": "zarr"}.get(kind, kind)


def _from_table(table: NumberTable, samples_in_rows: bool) -> Expression:
    if samples_in_rows:
        return Expression(table.numbers, table.lines, table.columns, table.steps)
    return Expression(np.ascontiguousarray(table.numbers.T), table.columns, table.lines, table.steps)


def _from_store(path: Path, options: ExpressionOptions) -> Expression:
    try:
        stored = describe(path, options.layer, options.gene_names)
        return Expression(as_matrix(stored_whole(stored)), stored.samples, stored.genes)
    except OldLayout:
        return _from_old_h5ad(path, options)
    except MemoryError:
        raise unusable(path, "does not fit into memory", BY_BLOCKS, parameters=["lazy"]) from None


def _from_old_h5ad(path: Path, options: ExpressionOptions) -> Expression:
    """A file written by AnnData before 0.7, read by AnnData."""
    check_hdf5(path, whole=True)
    anndata = import_optional("anndata", "anndata", "an .h5ad file")
    try:
        data = anndata.read_h5ad(path)
    except Exception as problem:  # h5py and anndata raise many kinds of errors for damaged files
        what = f"cannot be read as .h5ad ({one_line(str(problem), 120)})"
        raise unusable(path, what, "check that it is one, or write it again") from None
    layers = {None: data.X, **data.layers}
    if layers.get(options.layer) is None:
        what = "X" if options.layer is None else f"layer {shown(options.layer)}"
        known = ", ".join(name for name in layers if name is not None) or "none"
        raise unusable(path, f"has no {what}", f"its layers are {known}")
    names = data.var_names if options.gene_names is None else data.var.get(options.gene_names)
    if names is None:
        known = ", ".join(map(str, data.var.columns)) or "none"
        raise unusable(path, f"has no column {shown(str(options.gene_names))} in var", f"it has {known}")
    try:
        return Expression(as_matrix(layers[options.layer]), as_names(data.obs_names), as_names(names))
    except ValueError as problem:
        raise unusable(path, one_line(str(problem), 300), "write it again") from None


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


def _warn_about_outliers(path: Path, expression: Expression) -> None:
    """Warn if the values of one sample are far larger than all others: it may be a column that annotates genes."""
    matrix = expression.matrix
    filled = np.nan_to_num(matrix) if isinstance(matrix, np.ndarray) else matrix
    sizes = np.asarray(abs(filled).mean(axis=1)).ravel()
    largest, usual = int(np.argmax(sizes)), float(np.median(sizes))
    if expression.shape[0] > 3 and usual > 0 and sizes[largest] > _OUTLYING * usual:
        warnings.warn(
            f"{path}: the values of sample {shown(expression.samples[largest])} are {sizes[largest] / usual:,.0f} "
            "times as large as usual: if it is not a sample, leave it out (`skip_columns`)",
            stacklevel=3,
        )
