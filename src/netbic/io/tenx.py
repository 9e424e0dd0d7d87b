"""Folders in 10x format: matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), each compressed with gzip or not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import scipy.io
import scipy.sparse as sp

from netbic.arrays import Array, Indices, Matrix
from netbic.errors import InputError, one_line, unusable
from netbic.io.matrices import NameArray, Step, as_matrix, as_names
from netbic.io.text import Progress, checked_file, read_lines, single_spaced, text_lines, text_pieces
from netbic.io.text import read_bytes as read_text
from netbic.io.unpacking import Unpacked

_ENTRIES_PER_BYTE = 500  # of a compressed MatrixMarket file, more than gzip can reach
_DOWNLOAD = "download it again"


@dataclass(frozen=True)
class TenX:
    """A 10x folder: the file of its matrix, its names, and which features are genes."""

    matrix_file: Path
    barcodes: NameArray
    features: NameArray
    kept: Indices

    @classmethod
    def open(cls, folder: Path, gene_names: str | None) -> TenX:
        """Find the files and read the names; other features than genes are kept only if there are no genes."""
        if gene_names not in (None, "id", "symbol"):
            what = f"`gene_names={gene_names}` is not known for a 10x folder: choose 'id' or 'symbol'"
            raise InputError(what, ["gene_names"])
        matrix_file = _part(folder, "matrix.mtx")
        barcodes = read_lines(_part(folder, "barcodes.tsv"))
        lines = text_lines(read_text(_part(folder, "features.tsv", "genes.tsv")))
        rows = [line.split("\t") for line in lines if line.strip()]  # id, symbol and kind, or ids alone
        features = as_names(row[1] if len(row) > 1 and gene_names != "id" else row[0] for row in rows)
        genes = np.array([len(row) < 3 or row[2].strip() == "Gene Expression" for row in rows])
        return cls(matrix_file, barcodes, features, np.flatnonzero(genes if genes.any() else ~genes))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is left out."""
        others = np.delete(self.features, self.kept).tolist()
        return ({"step": "features other than gene expression left out", "named": others},) if others else ()

    def read(self) -> Matrix:
        """The counts, cells in rows."""
        try:
            return as_matrix(self._read())[:, self.kept] if self.steps else as_matrix(self._read())
        except InputError:
            raise
        except Exception as problem:  # the parser's own errors, truncated gzip, text among numbers
            raise self._not_matrix_market(problem) from None

    def _read(self) -> Matrix:
        """All features, after a check of the header: its size, its type, and no more entries than the file can hold."""
        path = checked_file(self.matrix_file)
        with Unpacked(path) as stream:
            n_genes, n_cells, n_entries, _, field, _ = scipy.io.mminfo(cast("IO[bytes]", stream))
        self._check_size(n_cells, n_genes)
        if field == "complex":
            raise unusable(path, "holds complex numbers", "real numbers are needed")
        if n_entries > min(n_cells * n_genes, _ENTRIES_PER_BYTE * path.stat().st_size):
            size = f"{n_genes:,} x {n_cells:,} in {path.stat().st_size:,} bytes"
            raise unusable(path, f"declares {n_entries:,} entries of a matrix of {size}", _DOWNLOAD)
        with Unpacked(path) as stream, warnings.catch_warnings():
            # SciPy 1.18 warns unless `spmatrix` is given, which SciPy 1.12 does not know
            warnings.filterwarnings("ignore", "The default value for `spmatrix`", DeprecationWarning)
            return sp.csr_array(scipy.io.mmread(cast("IO[bytes]", stream)).T)  # the file has genes in rows

    def entries(self, progress: Progress) -> Iterator[tuple[Array, Array, Array]]:
        """Cells, genes and values of the entries, some lines of the file at a time."""
        columns_of = np.full(self.features.size, -1)
        columns_of[self.kept] = np.arange(self.kept.size)
        n_fields = 0
        for _, data in text_pieces(self.matrix_file, progress=progress):
            if not n_fields:
                n_fields, data = self._header(data)
            if data.strip():
                genes, cells, values = self._parsed(data, n_fields)
                kept = columns_of[genes] >= 0
                yield cells[kept], columns_of[genes][kept], values[kept]

    def _parsed(self, data: bytes, n_fields: int) -> list[Array]:
        """Genes, cells and values, counted from 0."""
        try:
            table = _columns(data, n_fields)
        except pa.ArrowException as problem:
            raise self._not_matrix_market(problem) from None
        places = [table.column(at).to_numpy() - 1 for at in (0, 1)]
        for numbers, size in zip(places, (self.features.size, self.barcodes.size), strict=True):
            if numbers.min() < 0 or numbers.max() >= size:
                what = f"has an entry at {numbers.max() + 1:,} of {size:,}"
                raise unusable(self.matrix_file, what, _DOWNLOAD)
        return [*places, table.column(2).to_numpy() if n_fields == 3 else np.ones(places[0].size)]

    def _header(self, data: bytes) -> tuple[int, bytes]:
        """Fields per line, and the text after the header; an error if its size is not that of the names."""
        first, _, rest = data.partition(b"\n")
        banner = first.decode(errors="replace").lower().split()
        line = b"%"
        while line.startswith(b"%") or (rest and not line.strip()):
            line, _, rest = rest.partition(b"\n")
        sizes = [int(size) if size.isdigit() else 0 for size in line.split()]
        coordinates = len(banner) == 5 and banner[2] == "coordinate" and banner[3] in ("integer", "real", "pattern")
        if not coordinates or len(sizes) != 3:
            raise unusable(self.matrix_file, "is not a MatrixMarket file of coordinates", _DOWNLOAD)
        if banner[4] != "general":
            raise unusable(self.matrix_file, f"is {banner[4]}", "a general matrix of genes by cells is needed")
        self._check_size(sizes[1], sizes[0])
        return 2 if banner[3] == "pattern" else 3, rest

    def _check_size(self, n_cells: int, n_features: int) -> None:
        """Raise unless the matrix has as many cells and features as are named."""
        if (n_cells, n_features) != (self.barcodes.size, self.features.size):
            what = f"has {n_features:,} genes x {n_cells:,} cells, but there are {self.features.size:,} features"
            remedy = "the files do not belong together"
            raise unusable(self.matrix_file, f"{what} and {self.barcodes.size:,} barcodes", remedy)

    def _not_matrix_market(self, problem: Exception) -> InputError:
        what = f"cannot be read as a MatrixMarket file ({one_line(str(problem), 120)})"
        return unusable(self.matrix_file, what, _DOWNLOAD)


def _part(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / f"{name}.gz", folder / name):
            if candidate.exists():
                return candidate
    needed = "matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), each with or without .gz"
    raise unusable(folder, f"is a folder without {' or '.join(names)}", f"a 10x folder has {needed}")


def _columns(data: bytes, n_fields: int) -> pa.Table:
    """Lines of two integers, and a value if there are three fields."""
    if b"  " in data or b"\t" in data or b" \n" in data or b"\n " in data or data[:1] == b" ":
        data = single_spaced(data)
    types = {"f0": pa.int64(), "f1": pa.int64()} | ({"f2": pa.float64()} if n_fields == 3 else {})
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 24),
        arrow_csv.ParseOptions(delimiter=" "),
        arrow_csv.ConvertOptions(column_types=types),
    )
    if table.num_columns != n_fields:
        raise pa.ArrowInvalid(f"{table.num_columns} columns where {n_fields} are expected")
    return table
