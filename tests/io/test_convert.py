"""`netbic convert` writes the same numbers in blocks of samples from every format, in bounded memory."""

import gzip

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import netbic
from netbic.errors import InputError
from netbic.io.conversion import convert
from netbic.io.expression import open_expression, read_expression
from netbic.io.preprocessing import prepare
from netbic.operators.executors import BlockError
from support.commands import run
from support.peak_memory import peak_memory

generator = np.random.default_rng(1)
VALUES = np.round(generator.normal(size=(57, 40)), 6) * (generator.random((57, 40)) < 0.6)  # samples by genes
SAMPLES, GENES = [f"s{k}" for k in range(57)], [f"g{k}" for k in range(40)]
TABLE = pd.DataFrame(VALUES.T, index=pd.Index(GENES, name="gene"), columns=SAMPLES)


def text(path):
    TABLE.to_csv(path, sep="\t")


def h5ad(kind):
    names = {"obs": pd.DataFrame(index=SAMPLES), "var": pd.DataFrame(index=GENES)}
    return lambda path: anndata.AnnData(kind(VALUES), **names).write_h5ad(path)


def tenx(path):
    path.mkdir()
    with_others = np.vstack([VALUES.T, generator.random((2, 57))])
    scipy.io.mmwrite(path / "matrix.mtx", sp.coo_matrix(with_others))
    (path / "matrix.mtx.gz").write_bytes(gzip.compress((path / "matrix.mtx").read_bytes()))
    (path / "matrix.mtx").unlink()
    (path / "barcodes.tsv").write_text("\n".join(SAMPLES))
    kinds = ["Gene Expression"] * 40 + ["Antibody Capture"] * 2
    lines = [f"ENSG{k}\t{name}\t{kinds[k]}\n" for k, name in enumerate([*GENES, "CD3", "CD4"])]
    (path / "features.tsv").write_text("".join(lines))


FORMS = {
    "table.tsv": (text, {}),
    "table.tsv.gz": (text, {}),
    "turned.csv": (TABLE.T.to_csv, {"samples_in_rows": True}),
    "single.parquet": (TABLE.astype(np.float32).to_parquet, {}),
    "turned.parquet": (lambda path: TABLE.T.to_parquet(path, row_group_size=10), {"samples_in_rows": True}),
    "dense.h5ad": (h5ad(np.asarray), {}),
    "csr.h5ad": (h5ad(sp.csr_matrix), {}),
    "csc.h5ad": (h5ad(sp.csc_matrix), {}),
    "tenx": (tenx, {}),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("block_rows", [None, 13])
def test_every_form_becomes_the_same_store(tmp_path, name, block_rows, monkeypatch):
    monkeypatch.setattr("netbic.io.conversion._BATCH", 1 << 10)  # so that there are several chunks
    write, options = FORMS[name]
    write(tmp_path / name)
    read = read_expression(tmp_path / name, **options)
    made = convert(tmp_path / name, tmp_path / "out.zarr", block_rows=block_rows, **options)
    assert made.matrix.chunks[0] == ((57,) if block_rows is None else (13, 13, 13, 13, 5))
    for again in (made, read_expression(tmp_path / "out.zarr"), open_expression(tmp_path / "out.zarr")):
        assert again.samples.tolist() == SAMPLES
        assert again.genes.tolist() == GENES
        assert again.matrix.dtype == read.matrix.dtype
    whole = read_expression(tmp_path / "out.zarr").matrix
    assert sp.issparse(whole) == sp.issparse(read.matrix)
    as_dense = [np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix) for matrix in (whole, read.matrix)]
    np.testing.assert_array_equal(*as_dense)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    data = anndata.read_zarr(tmp_path / "out.zarr")
    assert (data.obs_names.tolist(), data.var_names.tolist()) == (SAMPLES, GENES)
    np.testing.assert_array_equal(data.X.toarray() if sp.issparse(data.X) else data.X, as_dense[0])


def test_a_text_file_read_in_chunks_and_its_errors(tmp_path, monkeypatch):
    """Chunks end at line ends, and an error names the line of the file."""
    pieces = netbic.io.tables.text_pieces
    monkeypatch.setattr("netbic.io.conversion.text_pieces", lambda path, progress: pieces(path, 700, progress))
    text(tmp_path / "table.tsv")
    assert sum(1 for _ in pieces(tmp_path / "table.tsv", 700)) > 5
    made = convert(tmp_path / "table.tsv", tmp_path / "out.zarr")
    np.testing.assert_array_equal(made.matrix.compute(), VALUES)
    lines = (tmp_path / "table.tsv").read_text().splitlines()
    for damage, message in (
        (lambda line: line.replace("\t", "\tx", 1), "is not a number"),
        (lambda line: line + "\t1", "has 59 fields"),
    ):
        damaged = [*lines]
        damaged[38] = damage(damaged[38])
        (tmp_path / "bad.tsv").write_text("\n".join(damaged))
        with pytest.raises(InputError, match=rf"line 39.*{message}"):
            convert(tmp_path / "bad.tsv", tmp_path / "bad.zarr")
        assert not (tmp_path / "bad.zarr").exists()


def test_a_store_is_replaced_only_with_force_and_other_folders_never(tmp_path):
    text(tmp_path / "table.tsv")
    (TABLE * 2).to_csv(tmp_path / "double.tsv", sep="\t")
    (tmp_path / "bad.tsv").write_text("gene\ta\tb\nx\t1\toops\n")
    TABLE.iloc[:0].to_csv(tmp_path / "none.tsv", sep="\t")
    TABLE.iloc[:0].to_parquet(tmp_path / "none.parquet")
    (tmp_path / "mine.zarr").write_text("precious")
    (tmp_path / "notes.zarr").mkdir()
    (tmp_path / "notes.zarr" / "thesis.txt").write_text("precious")
    convert(tmp_path / "table.tsv", tmp_path / "out.zarr")
    made = convert(tmp_path / "double.tsv", tmp_path / "out.zarr", force=True)
    np.testing.assert_array_equal(made.matrix.compute(), 2 * VALUES)
    for source, target, options, message in (
        ("table.tsv", "out.zarr", {}, "exists: choose another name, or `force=True`"),
        ("bad.tsv", "out.zarr", {"force": True}, "'oops' is not a number"),
        ("none.tsv", "other.zarr", {}, "none.tsv: contains only a header"),
        ("none.parquet", "other.zarr", {}, "none.parquet: contains only a header"),
        ("table.tsv", "mine.zarr", {"force": True}, "is not a Zarr store"),
        ("table.tsv", "notes.zarr", {"force": True}, "is not a Zarr store"),
        ("out.zarr", "out.zarr", {"force": True}, "is an input"),
        ("table.tsv", "out", {}, r"does not end in \.zarr"),
        ("table.tsv", "nowhere/out.zarr", {}, "is not a folder"),
        ("table.tsv", "other.zarr", {"block_rows": 10**9}, "choose 1 to"),
    ):
        with pytest.raises(InputError, match=message):
            convert(tmp_path / source, tmp_path / target, **options)
    np.testing.assert_array_equal(read_expression(tmp_path / "out.zarr").matrix, 2 * VALUES)
    assert (tmp_path / "mine.zarr").read_text() == "precious"
    assert (tmp_path / "notes.zarr" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("name", ["table.tsv", "csr.h5ad"])
def test_a_damaged_store_is_detected(tmp_path, name):
    """Zarr reads missing chunks as zeros."""
    FORMS[name][0](tmp_path / name)
    convert(tmp_path / name, tmp_path / "out.zarr", block_rows=20)
    chunk = tmp_path / "out.zarr" / "X" / ("1.0" if name == "table.tsv" else "data/0")
    content = chunk.read_bytes()
    chunk.write_bytes(content[:100])
    with pytest.raises(BlockError, match=r"block 1.*out\.zarr: rows 20 to 39 cannot be read|block 0.*rows 0 to"):
        prepare(open_expression(tmp_path / "out.zarr", block_rows=20))
    chunk.unlink()
    for read in (open_expression, read_expression):
        with pytest.raises(InputError, match="lacks 1 of its"):
            read(tmp_path / "out.zarr")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("general", "symmetric"), "is symmetric"),
        (lambda text: text + "1 x 1\n", "cannot be read as a MatrixMarket file"),
        (lambda text: text + "900 1 1\n", "has an entry at 900 of 42"),
        (lambda text: "nothing\n", "is not a MatrixMarket file"),
    ],
)
def test_damaged_10x_folders_are_one_line_errors(tmp_path, damage, message):
    tenx(tmp_path / "cells")
    file = tmp_path / "cells" / "matrix.mtx.gz"
    file.write_bytes(gzip.compress(damage(gzip.decompress(file.read_bytes()).decode()).encode()))
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "cells", tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_missing_values_are_kept_with_a_warning_and_blocks_of_zeros_are_not_damage(tmp_path):
    (tmp_path / "table.tsv").write_text("g\ta\tb\tc\nx\t1\tNA\t3\ny\t\t5\t6\n")
    with pytest.warns(UserWarning, match="2 values are missing: fits that read data in blocks need complete data"):
        convert(tmp_path / "table.tsv", tmp_path / "out.zarr")
    np.testing.assert_array_equal(read_expression(tmp_path / "out.zarr").matrix, [[1, np.nan], [np.nan, 5], [3, 6]])
    np.save(tmp_path / "X.npy", np.vstack([np.zeros((20, 40)), VALUES]))
    made = convert(tmp_path / "X.npy", tmp_path / "zeros.zarr", block_rows=20)
    np.testing.assert_array_equal(made.matrix[:20].compute(), 0)


def test_the_command(tmp_path):
    text(tmp_path / "table.tsv")
    arguments = ["convert", tmp_path / "table.tsv", tmp_path / "out.zarr"]
    done = run(*arguments, "--block-rows", "20", "--dtype", "float32")
    assert (done.exit_code, run(*arguments).exit_code) == (0, 2)
    assert "57 samples x 40 genes, dense float32, 3 blocks of 20" in done.output
    np.testing.assert_array_equal(read_expression(tmp_path / "out.zarr").matrix, VALUES.astype(np.float32))
    assert run(*arguments, "--force", "--quiet").output == ""


@pytest.mark.nightly
def test_memory_stays_far_below_the_table(tmp_path):
    """Genes in rows, 480 MB as text and as single-precision numbers."""
    line = "\t".join(["0.5"] * 30_000)
    with (tmp_path / "table.tsv").open("w") as file:
        file.write("gene\t" + "\t".join(f"s{k}" for k in range(30_000)) + "\n")
        for gene in range(4000):
            file.write(f"g{gene}\t{line}\n")
    code = "netbic.io.conversion.BLOCK_BYTES = 8_000_000\nnetbic.io.convert(*sys.argv[1:], dtype='float32')"
    assert peak_memory(code, tmp_path / "table.tsv", tmp_path / "out.zarr") < 200  # MB
    assert open_expression(tmp_path / "out.zarr").shape == (30_000, 4000)
