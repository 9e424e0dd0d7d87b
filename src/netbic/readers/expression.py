"""Expression matrices from files: samples in rows, genes in columns, names on both sides."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.arrays import checked
from netbic.errors import InputError, extra, one_line, shown, unusable
from netbic.outofcore import Scan, is_dask, of_columns, scan
from netbic.readers.annotations import OldLayout
from netbic.readers.characters import check_characters
from netbic.readers.hdf5 import check_hdf5
from netbic.readers.parquet import read_parquet
from netbic.readers.stores import BY_BLOCKS, describe, is_zarr, stored_whole
from netbic.readers.tables import NameArray, NumberTable, columns_to_skip, read_numbers
from netbic.readers.text import checked_file, read_bytes, text_lines
from netbic.readers.unpacking import Unpacked

_OUTLYING = 1000.0
_ENTRIES_PER_BYTE = 500  # of a packed MatrixMarket file, more than gzip can reach


@dataclass(frozen=True)
class Expression:
    """Values of genes (columns) in samples (rows), dense, CSR or a Dask array of such blocks, and their names."""

    matrix: Any
    samples: NameArray
    genes: NameArray
    steps: tuple[dict[str, Any], ...] = ()  # what the reader left out
    scan: Scan | None = field(default=None, repr=False, compare=False)  # of a matrix that stays in its file
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

    def select_genes(self, kept: NDArray[Any]) -> Expression:
        """Some genes only, by index or mask."""
        matrix = of_columns(self.matrix, kept) if self.is_lazy else self.matrix[:, kept]
        known = None if self.scan is None else self.scan.of_columns(kept)
        return replace(self, matrix=matrix, genes=self.genes[kept], scan=known)

    def scanned(self) -> Expression:
        """The same, knowing what one pass over a Dask array tells; an error if values are missing or infinite."""
        if self.scan is not None or not self.is_lazy:
            return self
        found = scan(self.matrix)
        if found.summary.fault is not None:
            row, column, value = found.summary.fault
            what = "a value is missing" if np.isnan(value) else "a value is infinite"
            raise InputError(
                f"{what} (gene {shown(self.genes[column])}, sample {shown(self.samples[row])}, the first one): "
                "a matrix that stays in its file has to be complete: fill or drop such values"
            )
        return replace(self, scan=found, origin=self.origin or f"{found.digest:032x}", passes=self.passes + 1)

    def missing_entries(self) -> str:
        """How many values are missing and where the first of them is, in words; empty if none is."""
        if self.is_lazy:
            self.scanned()
            return ""
        missing = np.isnan(stored_numbers(self.matrix))
        if not missing.any():
            return ""
        rows, columns = (
            np.isnan(self.matrix).nonzero() if isinstance(self.matrix, np.ndarray) else _nan_places(self.matrix)
        )
        first = f"gene {shown(self.genes[columns[0]])}, sample {shown(self.samples[rows[0]])}"
        return f"{np.count_nonzero(missing):,} values are missing (the first: {first})"

    def holes(self) -> str:
        """The earlier name of `missing_entries`."""
        warnings.warn("Expression.holes is called Expression.missing_entries now", FutureWarning, stacklevel=2)
        return self.missing_entries()

    def frame(self) -> pd.DataFrame:
        """As a DataFrame of dense numbers, samples in rows."""
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
    samples_in_rows : bool
        Text and Parquet tables have genes in rows unless this is set. The other formats have rules of their own.
    layer : str, optional
        Layer of an .h5ad file or .zarr store to take instead of X.
    gene_names : str, optional
        Column of their `var` that holds the genes' names (default: its index); for a 10x folder "id" or
        "symbol" (the default).
    skip_columns : sequence of str
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
    kind = file_format(path)
    check_options(path, kind, layer, gene_names, skip_columns, samples_in_rows)
    if kind == "10x":
        expression = _from_10x(path, gene_names)
    elif kind == ".h5ad":
        expression = _from_h5ad(checked_file(path), layer, gene_names)
    elif kind in ("zarr", ".npy"):
        expression = _from_store(path, layer, gene_names)
    elif kind == "parquet":
        expression = _oriented(
            number_table(path, read_parquet(path), skip_columns, not samples_in_rows), samples_in_rows
        )
    else:
        expression = _oriented(read_numbers(path, skip_columns, not samples_in_rows), samples_in_rows)
    _check(path, expression)
    return expression


def file_format(path: Path) -> str:
    """What a file is by its name: "10x", "zarr", ".h5ad", ".npy", "parquet", or a text table."""
    if path.is_dir():
        return "zarr" if is_zarr(path) else "10x"
    kind = path.suffix.lower()
    return {".pq": "parquet", ".parquet": "parquet", ".zarr": "zarr"}.get(kind, kind)


def check_options(
    path: Path, kind: str, layer: Any, gene_names: Any, skip_columns: Sequence[str], samples_in_rows: bool
) -> None:
    """Refuse words that say nothing about this kind of file."""
    tables = kind not in (".h5ad", "zarr", "10x", ".npy")
    for given, name, meant, applies in (
        (layer is not None, "a layer", ".h5ad files and .zarr stores", kind in (".h5ad", "zarr")),
        (gene_names is not None, "gene names", ".h5ad files, .zarr stores and 10x folders", not tables),
        (bool(skip_columns), "columns to skip", "tables", tables),
        (samples_in_rows, "samples in rows", "tables", tables),
    ):
        if given and not applies:
            raise unusable(path, f"{name} can be chosen for {meant} only", "leave that out")


def _oriented(table: NumberTable, samples_in_rows: bool) -> Expression:
    steps = ({"step": "columns left out", "named": list(table.skipped)},) if table.skipped else ()
    if samples_in_rows:
        return Expression(table.numbers, table.lines, table.columns, steps)
    return Expression(np.ascontiguousarray(table.numbers.T), table.columns, table.lines, steps)


def named_frame(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with names in its index, which may have been in its first column."""
    if not isinstance(frame.index, pd.RangeIndex):
        return frame
    if not frame.shape[1] or pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0]):
        raise unusable(path, "has no names: neither an index nor a first column of text", "write it with its index")
    return frame.set_index(frame.columns[0])


def number_table(path: Path, frame: pd.DataFrame, skip_columns: Sequence[str], annotated: bool) -> NumberTable:
    """The numbers of a Parquet table (or of some of its lines) and their names."""
    frame = named_frame(path, frame).copy(deep=False)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns], dtype=object)
    check_characters(path, "column", frame.columns)
    skipped = columns_to_skip(path, list(frame.columns), skip_columns, annotated)
    frame = frame.drop(columns=skipped)
    for name, kind in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            place, remedy = shown(str(name)), "leave it out (`skip_columns`)"
            raise unusable(path, "holds text, not numbers", remedy, column=place, parameters=["skip_columns"])
    if not frame.shape[1]:
        raise unusable(path, "has no column of numbers", "write it again")
    nullable = any(pd.api.types.is_extension_array_dtype(kind) for kind in frame.dtypes)
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else frame.to_numpy()
    lines = np.array([str(name).strip() for name in frame.index], dtype=object)
    return NumberTable(_as_float(values), lines, frame.columns.to_numpy(dtype=object), tuple(skipped))


def float_type(dtype: Any) -> np.dtype[Any]:
    """Floats stay as they are (but for half precision); small integers fit single precision exactly."""
    dtype = np.dtype(dtype)
    small = dtype.kind in "iub" and dtype.itemsize <= 2
    return np.dtype(np.float32 if small or dtype in (np.float16, np.float32) else np.float64)


def _as_float(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(float_type(values.dtype), copy=False)


def _from_store(path: Path, layer: str | None, gene_names: str | None) -> Expression:
    stored = describe(path, layer, gene_names)
    try:
        return Expression(as_matrix(stored_whole(stored)), stored.samples, stored.genes)
    except MemoryError:
        raise unusable(path, "does not fit into memory", BY_BLOCKS, parameters=["lazy"]) from None


def _from_h5ad(path: Path, layer: str | None, gene_names: str | None) -> Expression:
    try:
        return _from_store(path, layer, gene_names)
    except OldLayout:
        return _from_old_h5ad(path, layer, gene_names)


def _from_old_h5ad(path: Path, layer: str | None, gene_names: str | None) -> Expression:
    """A file of AnnData before 0.7: AnnData knows how to read it."""
    check_hdf5(path, whole=True)
    anndata = extra("anndata", "anndata", "an .h5ad file")
    try:
        data = anndata.read_h5ad(path)
    except Exception as problem:  # h5py and anndata have many ways to say that a file is damaged
        what = f"cannot be read as .h5ad ({one_line(str(problem), 120)})"
        raise unusable(path, what, "check that it is one, or write it again") from None
    values = _old_values(path, data, layer)
    return Expression(values, _as_text(data.obs_names), _as_text(gene_column(data, gene_names, path)))


def _old_values(path: Path, data: Any, layer: str | None) -> Any:
    if layer is not None and layer not in data.layers:
        raise unusable(path, f"has no layer {shown(layer)}", f"its layers are {', '.join(data.layers) or 'none'}")
    values = data.X if layer is None else data.layers[layer]
    if values is None:
        raise unusable(path, "has no X", f"name a layer: {', '.join(data.layers) or 'there is none'}")
    try:
        return as_matrix(values)
    except ValueError as problem:
        raise unusable(path, one_line(str(problem), 300), "write it again") from None


def gene_column(data: Any, column: str | None, path: Path | str) -> Any:
    """The genes' names in an AnnData object: its index, or a column of `var`."""
    if column is None:
        return data.var_names
    if column not in data.var.columns:
        raise unusable(
            path, f"has no column {shown(column)} in var", f"it has {', '.join(map(str, data.var.columns)) or 'none'}"
        )
    return data.var[column]


def as_matrix(values: Any) -> Any:
    """A dense array or CSR matrix of floats; masked entries of a masked array are missing (NaN)."""
    values = checked(values)
    sparse: Any = values if sp.issparse(values) else None
    if sparse is None:
        return _as_float(np.asarray(values))
    matrix = sp.csr_array(sparse)
    return matrix.astype(float_type(matrix.dtype), copy=False)


def stored_numbers(matrix: Any) -> NDArray[Any]:
    """All entries of a dense matrix, the stored ones of a sparse one."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.data)


def _as_text(names: Any) -> NameArray:
    return np.array([str(name).strip() for name in names], dtype=object)


def _from_10x(folder: Path, gene_names: str | None) -> Expression:
    parts = parts_of_10x(folder, gene_names)
    try:
        counts = _market_matrix(parts)
    except InputError:
        raise
    except Exception as problem:  # the parser's own errors, truncated gzip, text among numbers
        what = f"cannot be read as a MatrixMarket file ({one_line(str(problem), 120)})"
        raise unusable(parts.matrix_file, what, "download it again") from None
    expression = Expression(as_matrix(counts), parts.barcodes, parts.features)
    return replace(expression.select_genes(parts.kept), steps=parts.steps) if parts.steps else expression


def _market_matrix(parts: TenX) -> Any:
    """The counts, cells in rows.

    First the header must have the size of the names, real numbers, and no more entries than the file can hold.
    """
    path = checked_file(parts.matrix_file)
    with Unpacked(path) as stream:
        n_genes, n_cells, n_entries, _, field, _ = scipy.io.mminfo(cast("IO[bytes]", stream))
    parts.check_size(n_cells, n_genes)
    if field == "complex":
        raise unusable(path, "holds complex numbers", "real numbers are needed")
    if n_entries > min(n_cells * n_genes, _ENTRIES_PER_BYTE * path.stat().st_size):
        size = f"{n_genes:,} x {n_cells:,} in {path.stat().st_size:,} bytes"
        what = f"declares {n_entries:,} entries of a matrix of {size}"
        raise unusable(path, what, "download it again")
    with Unpacked(path) as stream:
        return sp.csr_array(scipy.io.mmread(cast("IO[bytes]", stream)).T)  # the file has genes in rows


@dataclass(frozen=True)
class TenX:
    """A 10x folder: its matrix' file, its names, and which features are genes."""

    matrix_file: Path
    barcodes: NameArray
    features: NameArray
    kept: NDArray[np.intp]

    @property
    def steps(self) -> tuple[dict[str, Any], ...]:
        """What is left out."""
        others = np.delete(self.features, self.kept).tolist()
        return ({"step": "features other than gene expression left out", "named": others},) if others else ()

    def check_size(self, n_cells: int, n_features: int) -> None:
        """Raise unless the matrix has as many cells and features as are named."""
        if (n_cells, n_features) != (self.barcodes.size, self.features.size):
            what = f"has {n_features:,} genes x {n_cells:,} cells, but there are {self.features.size:,} features"
            remedy = "the files do not belong together"
            raise unusable(self.matrix_file, f"{what} and {self.barcodes.size:,} barcodes", remedy)


def parts_of_10x(folder: Path, gene_names: str | None) -> TenX:
    """The files of a 10x folder, names read; other features than genes are kept where there are no genes."""
    if gene_names not in (None, "id", "symbol"):
        raise InputError(f"gene names {gene_names!r} are not known for a 10x folder: choose 'id' or 'symbol'")
    matrix_file = _part(folder, "matrix.mtx")
    barcodes = read_lines(_part(folder, "barcodes.tsv"))
    features, kinds = _features(_part(folder, "features.tsv", "genes.tsv"), gene_names)
    genes = kinds == "Gene Expression"
    return TenX(matrix_file, barcodes, features, np.flatnonzero(genes if genes.any() else ~genes))


def _features(path: Path, gene_names: str | None) -> tuple[NameArray, NameArray]:
    """Names and kinds of the features: id, symbol and kind by tabs, or ids alone."""
    rows = [line.split("\t") for line in text_lines(read_bytes(path)) if line.strip()]
    at = 1 if gene_names != "id" else 0
    names = np.array([row[at if len(row) > at else 0].strip() for row in rows], dtype=object)
    return names, np.array([row[2].strip() if len(row) > 2 else "Gene Expression" for row in rows], dtype=object)


def _part(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / f"{name}.gz", folder / name):
            if candidate.exists():
                return candidate
    needed = "matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), each with or without .gz"
    raise unusable(folder, f"is a folder without {' or '.join(names)}", f"a 10x folder has {needed}")


def _check(path: Path, expression: Expression) -> None:
    """What `check_names` asks for, and no infinity."""
    check_names(path, expression.samples, expression.genes)
    numbers = stored_numbers(expression.matrix)
    if np.isinf(numbers).any():
        raise unusable(path, f"holds infinite values{_place(expression)}", "remove them, or give missing values as NA")
    _note_outliers(path, expression)


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


def _note_outliers(path: Path, expression: Expression) -> None:
    """Say so if one sample is far beyond all others: it may be a column that annotates genes."""
    matrix = expression.matrix
    filled = np.nan_to_num(matrix) if isinstance(matrix, np.ndarray) else matrix
    sizes = np.asarray(abs(filled).mean(axis=1)).ravel()
    largest, usual = int(np.argmax(sizes)), float(np.median(sizes))
    if expression.shape[0] > 3 and usual > 0 and sizes[largest] > _OUTLYING * usual:
        warnings.warn(
            f"{path}: the values of sample {shown(expression.samples[largest])} are {sizes[largest] / usual:,.0f} "
            "times as large as usual: if that column is no sample, leave it out (`skip_columns`)",
            stacklevel=3,
        )


def _place(expression: Expression) -> str:
    """Where the first infinite value is."""
    rows, columns = (expression.matrix == np.inf).nonzero()
    if not len(rows):
        rows, columns = (expression.matrix == -np.inf).nonzero()
    return f" (gene {shown(expression.genes[columns[0]])}, sample {shown(expression.samples[rows[0]])})"


def _nan_places(matrix: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    entries = sp.coo_array(matrix)
    missing = np.isnan(entries.data)
    return entries.row[missing], entries.col[missing]


def read_lines(path: Path | str) -> NameArray:
    """The lines of a text file as names."""
    lines = [line.strip() for line in text_lines(read_bytes(path))]
    return np.array([line.split("\t")[0] for line in lines if line], dtype=object)
