"""Files with invalid arrays are refused in one line that names the array; intact files are read."""

import hashlib
import itertools
import json
import shutil
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import netbic
from netbic.errors import InputError
from netbic.io.conversion import convert
from netbic.io.expression import open_expression, read_expression
from netbic.io.networks import read_network
from netbic.io.stores import open_store
from support.zarr_stores import write_zarr

COUNTS = np.random.default_rng(0).poisson(0.8, (30, 40)).astype(np.float32)
STORED = int((COUNTS != 0).sum())
PATH = sp.diags_array([np.full(9, 2.0), np.full(9, 2.0)], offsets=[-1, 1], shape=(10, 10))


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """A CSR matrix in both formats, to be copied and changed."""
    folder = tmp_path_factory.mktemp("intact")
    return {suffix: written(folder / f"cells{suffix}", sp.csr_matrix(COUNTS)) for suffix in (".h5ad", ".zarr")}


def copied(template, folder):
    return Path((shutil.copytree if template.is_dir() else shutil.copy)(template, folder / template.name))


def written(path, matrix, **options):
    """An AnnData object on disk."""
    names = {"obs": [f"cell{k}" for k in range(30)], "var": [f"gene{k}" for k in range(40)]}
    data = anndata.AnnData(matrix, **{axis: pd.DataFrame(index=index) for axis, index in names.items()})
    data.layers["double"] = data.X * 2
    data.var["symbol"] = pd.Categorical([f"symbol{k}" for k in range(39)] + [None])
    data.var["nullable"] = pd.array([f"n{k}" for k in range(39)] + [None], dtype="string")
    data.write_h5ad(path, **options) if path.suffix == ".h5ad" else write_zarr(data, path, version=3)
    return path


def change(path, part, **entries):
    """Set entries (`at_3=7`) of an array of X, or replace it (`whole`)."""
    is_hdf5 = path.suffix == ".h5ad"
    root = h5py.File(path, "r+") if is_hdf5 else zarr.open(str(path), mode="r+", use_consolidated=False)
    array = np.array(entries.pop("whole", root["X"][part][:]))
    for at, value in entries.items():
        array[int(at.removeprefix("at_"))] = value
    del root["X"][part]
    (root["X"].create_dataset if is_hdf5 else root["X"].create_array)(part, data=array)
    root.close() if is_hdf5 else zarr.consolidate_metadata(str(path))


def by_blocks(path):
    source = open_store(path)
    return [source.rows(first, min(first + 7, 30)) for first in range(0, 30, 7)]


MISFIT = "the index and pointer arrays of X do not fit its shape and its entries"
FAULTS = [
    ("indices", {"at_3": 1794}, "the index array of X holds 1,794 but X has 40 columns"),
    ("indices", {"at_3": -5}, "the index array of X holds -5 but X has 40 columns"),
    ("indices", {"whole": np.zeros(STORED)}, MISFIT),
    ("indices", {"whole": np.zeros(STORED - 1, dtype=np.int32)}, MISFIT),
    ("indptr", {"at_5": 10**9}, "pointer array of X decreases, from 1,000,000,000"),
    ("indptr", {"at_5": -9}, "pointer array of X decreases, from .* to -9"),
    ("indptr", {"at_0": 2}, MISFIT),
    ("indptr", {"at_-1": 10**9}, MISFIT),
    ("indptr", {"whole": np.zeros(7, dtype=np.int64)}, MISFIT),
    ("data", {"whole": np.ones(STORED, dtype=complex)}, "complex numbers"),
]


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
@pytest.mark.parametrize(("part", "entries", "message"), FAULTS)
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_broken_csr_matrix_on_disk(tmp_path, templates, suffix, part, entries, message):
    path = copied(templates[suffix], tmp_path)
    change(path, part, **entries)
    for read in (read_expression, by_blocks):
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_broken_csc_matrix_on_disk(tmp_path):
    for part, entries, message in (
        ("indices", {"at_3": 30}, "index array of X holds 30 but X has 30 rows"),
        ("indptr", {"at_5": 10**9}, "pointer array of X decreases, from 1,000,000,000"),
        ("indptr", {"whole": np.zeros(31, dtype=np.int64)}, MISFIT),
    ):
        path = written(tmp_path / "cells.h5ad", sp.csc_matrix(COUNTS))
        change(path, part, **entries)
        for read in (read_expression, lambda path: convert(path, tmp_path / "made.zarr")):
            with pytest.raises(InputError, match=message):
                read(path)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("packing", [None, "gzip"])
def test_an_h5ad_file_is_read_as_anndata_reads_it(tmp_path, kind, packing):
    path = written(tmp_path / "cells.h5ad", kind(COUNTS), compression=packing)
    data = anndata.read_h5ad(path)
    for layer, column in ((None, None), ("double", "symbol"), (None, "nullable")):
        found = read_expression(path, layer=layer, gene_names=column)
        values = data.X if layer is None else data.layers[layer]
        np.testing.assert_array_equal(found.frame().to_numpy(), values.toarray() if sp.issparse(values) else values)
        assert found.matrix.dtype == np.float32
        assert found.samples.tolist() == data.obs_names.tolist()
        assert found.genes.tolist() == [str(name) for name in (data.var_names if column is None else data.var[column])]


def test_pickled_chunks_are_not_opened(tmp_path):
    options = {"shape": (3, 3), "dtype": "f8", "zarr_format": 2, "compressors": None}
    zarr.create_array(str(tmp_path / "pickled.zarr"), **options)[:] = 1.0
    header = json.loads((tmp_path / "pickled.zarr" / ".zarray").read_text())
    (tmp_path / "pickled.zarr" / ".zarray").write_text(json.dumps(header | {"compressor": {"id": "pickle"}}))
    for read in (read_expression, open_expression):
        with pytest.raises(InputError, match="pickle"):
            read(tmp_path / "pickled.zarr")


def test_a_matrix_larger_than_memory(templates, monkeypatch):
    path = templates[".h5ad"]
    monkeypatch.setattr(netbic.io.stores, "free_memory", lambda: 1000.0)
    with pytest.raises(InputError, match=r"of memory, of which .* GB are free: read it in blocks"):
        read_expression(path)
    assert len(by_blocks(path)) == 5


INVALID_POINTERS = np.array([0, 10**9, *range(3, 11), 18], dtype=np.int64)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("csr", {"indptr": INVALID_POINTERS}, "the pointer array of the matrix decreases, from 1,000,000,000"),
        ("csr", {"indptr": -np.arange(11)}, "the pointer array of the matrix decreases, from 0 to -1"),
        ("csr", {"indices": np.full(18, 10)}, "the index array of the matrix holds 10 but the matrix has 10 columns"),
        ("csc", {"indices": np.full(18, -1)}, "the index array of the matrix holds -1 but the matrix has 10 rows"),
        ("csr", {"data": np.ones(4)}, "cannot be read as a sparse matrix"),
        ("csr", {"data": np.ones(18) * 1j}, "holds complex128, not real numbers"),
        ("csr", {"data": np.array(3.0)}, "cannot be read as a sparse matrix"),
        ("csr", {"indices": np.ones(18)}, "the array indices of the matrix holds float64, not integers"),
        ("csr", {"shape": [10, -10]}, "cannot be read as a sparse matrix"),
        ("csr", {"shape": [10]}, "cannot be read as a sparse matrix"),
        ("bsr", {"indices": np.full(18, 77)}, "holds 77"),
        ("coo", {"row": np.full(18, 10)}, "cannot be read as a sparse matrix"),
        ("coo", {"shape": [10**12, 10**12]}, "has shape .* but 18 entries"),
        ("dia", {"offsets": np.array([1, 1])}, "cannot be read as a sparse matrix"),
        ("csr", {"format": b"lil"}, "sparse matrix of format lil"),
        ("csr", {"indices": np.array([None] * 18)}, "cannot be read as a sparse matrix"),
    ],
)
def test_graph_files_in_every_format_of_scipy_intact_and_broken(tmp_path, kind, changes, message):
    path = tmp_path / "graph.npz"
    for flavour, packed in itertools.product([sp.csr_matrix, sp.csr_array], [True, False]):
        sp.save_npz(path, flavour(PATH).asformat(kind), compressed=packed)
        np.testing.assert_array_equal(read_network(path).graph.weights.toarray(), PATH.toarray())
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | changes)
    with pytest.raises(InputError, match=f"graph.npz: .*{message}"):
        read_network(path)


def test_a_model_whose_graph_is_broken(tmp_path):
    netbic.save(netbic.SparseGraphSVD(1, n_rows=5, n_columns=4, column_graph=PATH).fit(COUNTS[:, :10]), tmp_path)
    path, header = tmp_path / "column_graph.npz", json.loads((tmp_path / "model.json").read_text())
    with np.load(path) as file:
        arrays = dict(file)
    arrays["indices"][0] = 10**6
    np.savez(path, **arrays)
    header["files"]["column_graph.npz"] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    (tmp_path / "model.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="the index array of it holds 1,000,000 but it has 10 columns"):
        netbic.load(tmp_path)
