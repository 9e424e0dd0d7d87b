"""A matrix read in blocks gives the same results as in memory and is never read completely."""

import pickle
import shutil

import anndata
import dask
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import netbic
from netbic.errors import InputError
from netbic.io.dataset import open_dataset
from netbic.io.expression import open_expression, read_expression
from netbic.io.preprocessing import prepare, variances
from netbic.operators.executors import BlockError
from support.peak_memory import peak_memory
from support.zarr_stores import write_zarr

COHORT = netbic.simulate.cohort(90, 300, n_modules=2, random_state=3)
COUNTS = np.random.default_rng(0).poisson(np.exp(COHORT.expression.to_numpy() / 2).clip(0, 50)).astype(np.float64)
COUNTS[:, 7] = 2.0  # constant
GENES = [*map(str, COHORT.expression.columns)]
GENES[11] = GENES[10]  # twice
SAMPLES = [*map(str, COHORT.expression.index)]
KINDS = ["dense.zarr", "sparse.zarr", "dense.h5ad", "sparse.h5ad", "table.parquet", "array.npy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same counts in every form."""
    folder = tmp_path_factory.mktemp("stores")
    frame = pd.DataFrame(COUNTS, index=SAMPLES, columns=GENES)
    distinct = frame.set_axis([f"{gene}|{at}" for at, gene in enumerate(GENES)], axis=1)
    distinct.to_parquet(folder / "table.parquet", row_group_size=8)
    for kind, matrix in (("dense", COUNTS), ("sparse", sp.csr_matrix(COUNTS))):
        data = anndata.AnnData(matrix, obs=pd.DataFrame(index=SAMPLES), var=pd.DataFrame(index=distinct.columns))
        data.var["symbol"] = pd.Categorical(GENES)
        data.layers["double"] = data.X * 2
        data.write_h5ad(folder / f"{kind}.h5ad")
        write_zarr(data, folder / f"{kind}.zarr")
        write_zarr(data, folder / f"{kind}-shards.zarr", version=3, shards=True)
    np.save(folder / "array.npy", COUNTS)
    return folder


def options_for(name):
    return {"samples_in_rows": True} if name.endswith("parquet") else {}


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def in_memory(matrix):
    blocks = [dense(block) for block in dask.compute(*matrix.to_delayed().ravel(), scheduler="sync")]
    return np.vstack(blocks)


@pytest.mark.parametrize("name", [*KINDS, "dense-shards.zarr", "sparse-shards.zarr"])
@pytest.mark.parametrize("block_rows", [None, 17])
def test_values_and_names_are_those_of_the_file(folder, name, block_rows):
    lazy = open_expression(folder / name, **options_for(name), block_rows=block_rows)
    read = read_expression(folder / name, **options_for(name))
    assert lazy.matrix.dtype == read.matrix.dtype == np.float64
    assert sp.issparse(lazy.matrix._meta) == sp.issparse(read.matrix) == name.startswith("sparse")
    np.testing.assert_array_equal(in_memory(lazy.matrix), COUNTS)
    assert lazy.samples.tolist() == read.samples.tolist()
    assert lazy.genes.tolist() == read.genes.tolist()
    assert all(len(pickle.dumps(task)) < 1000 for task in dict(lazy.matrix.__dask_graph__()).values())
    cut = (16, 16, 16, 16, 16, 10) if name.endswith("parquet") else (17, 17, 17, 17, 17, 5)
    assert lazy.matrix.chunks[0] == ((90,) if block_rows is None else cut)


def test_layers_and_names_from_var(folder):
    for name in ("dense.zarr", "sparse.zarr", "dense.h5ad", "sparse.h5ad"):
        lazy = open_expression(folder / name, layer="double", gene_names="symbol", block_rows=40)
        np.testing.assert_array_equal(in_memory(lazy.matrix), 2 * COUNTS)
        assert lazy.genes.tolist() == GENES
        for read in (open_expression, read_expression):
            with pytest.raises(InputError, match="its layers are double"):
                read(folder / name, layer="raw")
            with pytest.raises(InputError, match="it has symbol"):
                read(folder / name, gene_names="id")


def test_precision_equals_that_in_memory_and_bare_arrays_are_numbered(tmp_path):
    for stored in (np.int16, np.float16, np.float32, np.int64):
        np.save(tmp_path / "array.npy", COUNTS.astype(stored))
        frame = pd.DataFrame(COUNTS.astype(stored), index=SAMPLES, columns=[f"g{at}" for at in range(300)])
        frame.to_parquet(tmp_path / "table.parquet")
        for name in ("array.npy", "table.parquet"):
            lazy = open_expression(tmp_path / name, **options_for(name), block_rows=40)
            assert lazy.matrix.dtype == read_expression(tmp_path / name, **options_for(name)).matrix.dtype
            assert lazy.matrix.blocks[0, 0].compute(scheduler="sync").dtype == lazy.matrix.dtype
    zarr.create_array(str(tmp_path / "bare.zarr"), data=COUNTS, chunks=(30, 100))
    for name in ("bare.zarr", "array.npy"):
        lazy = open_expression(tmp_path / name, block_rows=30)
        np.testing.assert_array_equal(in_memory(lazy.matrix), COUNTS)
        assert (lazy.samples[89], lazy.genes[299]) == ("sample_89", "299")


def test_chunks_are_joined_but_not_cut(tmp_path, folder, monkeypatch):
    monkeypatch.setattr("netbic.io.stores.BLOCK_BYTES", 50 * 300 * 8)
    for chunk, heights in ((20, (40, 50)), (60, (60, 30)), (90, (90,)), (7, (49, 41))):
        path = tmp_path / f"{chunk}.zarr"
        zarr.create_array(str(path), data=COUNTS, chunks=(chunk, 300))
        assert open_expression(path).matrix.chunks[0] == heights
    monkeypatch.setattr("netbic.io.expression._LARGE_GROUP", 8 * 300 * 8 - 1)
    with pytest.warns(UserWarning, match="a row group holds 0.0 GB, which is read as a whole: netbic convert"):
        open_expression(folder / "table.parquet", samples_in_rows=True)


PREPROCESSING = [
    {},
    {"log1p": True},
    {"cpm": True, "log1p": True},
    {"cpm": True, "n_variable": 120},
    {"duplicates": "mean", "log1p": True},
    {"only": GENES[:150], "n_variable": 80},
    {"rename": str.lower, "keep_constant": True},
]


@pytest.mark.parametrize("name", ["dense.h5ad", "sparse.zarr"])
@pytest.mark.parametrize("steps", PREPROCESSING, ids=str)
def test_preprocessing_equals_that_in_memory(folder, name, steps):
    lazy = prepare(open_expression(folder / name, gene_names="symbol", block_rows=25), **steps)
    read = prepare(read_expression(folder / name, gene_names="symbol"), **steps)
    assert lazy.steps == read.steps
    assert lazy.expression.genes.tolist() == read.expression.genes.tolist()
    np.testing.assert_allclose(in_memory(lazy.expression.matrix), dense(read.expression.matrix), rtol=1e-12)
    assert lazy.expression.matrix.dtype == read.expression.matrix.dtype
    if not {"cpm", "log1p", "duplicates"} & set(steps):
        np.testing.assert_array_equal(in_memory(lazy.expression.matrix), dense(read.expression.matrix))


FITS = [{"log1p": True}, {"cpm": True, "log1p": True, "n_variable": 200, "matched_only": True}]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("steps", FITS, ids=str)
def test_modules_equal_those_in_memory(folder, name, steps, tmp_path):
    network = tmp_path / "network.tsv"
    edges = sp.coo_array(sp.triu(COHORT.network.weights))
    labels = [str(at) for at in range(300)] if name.endswith("npy") else [f"{gene}|{k}" for k, gene in enumerate(GENES)]
    lines = [f"{labels[a]}\t{labels[b]}" for a, b in zip(edges.row, edges.col, strict=True)]
    network.write_text("source\ttarget\n" + "\n".join(lines))
    models = []
    for more in ({"lazy": True, "block_rows": 24}, {}):
        dataset = open_dataset(folder / name, network, **options_for(name), **steps, **more)
        model = netbic.SparseGraphSVD(3, n_rows=20, n_columns=30, column_graph=dataset.graph, tol=1e-10)
        for _ in model.iter_fit(dataset.X, names=dataset.names):
            pass
        models.append(model)
    lazy, read = models
    assert lazy.rows_.tobytes() == read.rows_.tobytes()
    assert lazy.columns_.tobytes() == read.columns_.tobytes()
    assert lazy.names_["columns"].tolist() == read.names_["columns"].tolist()
    np.testing.assert_allclose(lazy.components_, read.components_, atol=1e-8)
    assert lazy.passes_ > 0


def test_the_fingerprint_depends_on_the_data_and_not_on_the_blocks(folder, tmp_path):
    def of(path, **more):
        return open_dataset(path, lazy=True, **more).fingerprint()["expression"]

    path, changed = folder / "array.npy", COUNTS.copy()
    changed[40, 40] += 1
    assert of(path, block_rows=7) == of(path, block_rows=50)
    assert of(folder / "sparse.zarr", block_rows=7) == of(folder / "sparse.h5ad", block_rows=50)
    digests = {of(path), of(path, log1p=True)}
    for number, other in enumerate((changed, COUNTS[np.r_[1, 0, 2:90]], COUNTS.astype(np.float32))):
        np.save(tmp_path / f"{number}.npy", other)
        digests.add(of(tmp_path / f"{number}.npy"))
    assert len(digests) == 5


def test_files_that_cannot_be_read_in_blocks(tmp_path):
    for name, content in (
        *(("a.npy", b"not an array"), ("a.h5ad", b"not HDF5"), ("a.parquet", b"not Parquet"), ("empty.h5ad", b"")),
        ("a.tsv", b"gene\ta\tb\nx\t1\t2\n"),
    ):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "nothing.zarr").mkdir()
    zarr.create_array(str(tmp_path / "cube.zarr"), data=np.zeros((2, 2, 2)))
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w").create_group("X")
    anndata.AnnData(sp.csc_matrix(COUNTS)).write_h5ad(tmp_path / "csc.h5ad")
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file.create_group("X").attrs["h5sparse_shape"] = (2, 3)
        file["obs"], file["var"] = (np.zeros(size, dtype=[("index", "S3")]) for size in (2, 3))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    for name, options, message in (
        ("a.npy", {}, "cannot be read as .npy"),
        ("a.h5ad", {}, "cannot be read as .h5ad"),
        ("a.parquet", {}, "netbic convert"),
        ("a.tsv", {}, "is a text table.*convert it first .netbic convert .*a.tsv a.zarr"),
        ("gone.npy", {}, "does not exist"),
        ("gone.zarr", {}, "does not exist"),
        ("empty.h5ad", {}, "is empty"),
        ("nothing.zarr", {}, "cannot be read as"),
        ("cube.zarr", {}, "has 3 dimensions"),
        ("group.zarr", {}, "has no obs and var"),
        ("csc.h5ad", {}, r"stored by columns \(CSC\).*netbic convert"),
        ("old.h5ad", {}, "was written by an old AnnData"),
        ("text.npy", {}, "not numbers"),
        ("text.npy", {"samples_in_rows": True}, "`samples_in_rows` is for tables only"),
        ("text.npy", {"block_rows": 0}, "block_rows=0"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            open_expression(tmp_path / name, **options)
        assert "\n" not in str(caught.value)
        assert str(tmp_path) in str(caught.value) or "block_rows" in options


def test_incomplete_data_and_files_that_a_worker_does_not_see(folder, tmp_path):
    missing = "a value is missing .gene '4', sample 'sample_0'"
    for value, message in ((np.nan, missing), (np.inf, "a value is infinite")):
        np.save(tmp_path / "X.npy", np.where(np.arange(300) == 4, value, COUNTS))
        with pytest.raises(InputError, match=message):
            prepare(open_expression(tmp_path / "X.npy", block_rows=25))
    for name in ("array.npy", "table.parquet"):
        shutil.copy(folder / name, tmp_path / name)
        lazy = open_expression(tmp_path / name, **options_for(name), block_rows=40)
        (tmp_path / name).unlink()
        with pytest.raises(BlockError, match=f"block 0.*{name} does not exist here: all workers need it"):
            prepare(lazy)


SCRIPT = """
prepared = netbic.io.prepare(netbic.io.open_expression(sys.argv[1], block_rows=2000), log1p=True)
netbic.SparseGraphSVD(1, n_rows=500, n_columns=50, max_iter=3).fit(prepared.expression.matrix)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["npy", "zarr", "h5ad"])
def test_memory_stays_far_below_the_matrix(tmp_path, kind):
    path = tmp_path / f"large.{kind}"
    values = np.lib.format.open_memmap(tmp_path / "large.npy", mode="w+", dtype=np.float32, shape=(200_000, 400))
    generator = np.random.default_rng(0)
    for start in range(0, 200_000, 20_000):
        values[start : start + 20_000] = generator.random((20_000, 400), dtype=np.float32)
    values.flush()
    if kind == "zarr":
        zarr.create_array(str(path), data=values, chunks=(2000, 400))
    if kind == "h5ad":
        anndata.AnnData(np.asarray(values)).write_h5ad(path)
    assert peak_memory(SCRIPT, path) < 150  # MB; the matrix has 320


@pytest.mark.parametrize(("kind", "dtype"), [(np.asarray, np.float64), (sp.csr_matrix, np.float32)])
def test_ties_go_to_the_first_gene_in_memory_and_in_blocks(tmp_path, kind, dtype):
    """Genes seen in one sample each, all with the same count: their means and variances are the same."""
    generator = np.random.default_rng(0)
    values = np.zeros((300, 60), dtype=dtype)
    values[:, :10] = generator.poisson(3, (300, 10))
    values[generator.integers(300, size=50), np.arange(10, 60)] = 3
    data = anndata.AnnData(kind(np.log1p(values)))
    data.var["symbol"] = [f"{at}" if at < 10 else f"{at // 2}+" for at in range(60)]
    data.write_h5ad(tmp_path / "data.h5ad")
    for block_rows in (None, 7, 50):
        lazily = {} if block_rows is None else {"lazy": True, "block_rows": block_rows}
        variable = open_dataset(tmp_path / "data.h5ad", n_variable=30, **lazily).expression
        assert sorted(variable.genes.tolist(), key=int) == [f"{at}" for at in range(30)]
        distinct = open_dataset(tmp_path / "data.h5ad", gene_names="symbol", **lazily).expression
        found = dense(distinct.matrix) if block_rows is None else in_memory(distinct.matrix)
        assert found.tobytes() == dense(data.X)[:, [*range(10), *range(10, 60, 2)]].tobytes()


def test_variances_of_sparse_data_do_not_cancel():
    values = np.random.default_rng(0).standard_normal((40, 5)) + 1e6
    np.testing.assert_allclose(variances(sp.csr_array(values)), values.var(axis=0), rtol=1e-9)
    mostly = np.where(values > 1e6, values, 0)
    np.testing.assert_allclose(variances(sp.csr_array(mostly)), mostly.var(axis=0), rtol=1e-12)
