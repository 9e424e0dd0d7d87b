"""Decompression bombs are refused while they are unpacked, and special files before they are opened."""

import gzip
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from netbic.io import (
    InputError,
    convert,
    open_expression,
    parquet,
    read_expression,
    read_gene_sets,
    read_network,
    text,
    unpacking,
)
from netbic.io.text import read_bytes, text_pieces

ZEROS = b"gene\ts1\ts2\ts3\n" + b"".join(b"G%d\t0\t0\t0\n" % k for k in range(20_000))


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 20_000)
    monkeypatch.setattr(unpacking, "LARGEST_RATIO", 4)
    monkeypatch.setattr(unpacking, "PIECE", 1 << 14)


def packed(path, content):
    path.write_bytes(gzip.compress(content))
    return path


def in_pieces(path):
    return list(text_pieces(path, size=1 << 14))


@pytest.mark.parametrize("read", [read_bytes, in_pieces, read_gene_sets, read_network, read_expression])
def test_too_large_a_ratio_is_refused(tmp_path, small_limits, read):
    path = packed(tmp_path / "table.tsv.gz", ZEROS)
    with pytest.raises(InputError, match=r"its first .* kB unpack to .* kB: unpack it first") as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_graphml_and_10x_matrices_have_the_same_limits(tmp_path, small_limits):
    with pytest.raises(InputError, match=r"its first .* unpack to"):
        read_network(packed(tmp_path / "net.graphml.gz", b"<graphml>" + b" " * 200_000 + b"</graphml>"))
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    (tmp_path / "features.tsv").write_text("g1\ng2\n")
    market = b"%%MatrixMarket matrix coordinate integer general\n" + b"%\n" * 100_000 + b"2 2 1\n1 1 1\n"
    packed(tmp_path / "matrix.mtx.gz", market)
    with pytest.raises(InputError, match=r"its first .* unpack to"):
        read_expression(tmp_path)


def test_a_file_whose_compression_ratio_changes_later(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 20_000)
    monkeypatch.setattr(unpacking, "BEGINNING", 1 << 13)
    monkeypatch.setattr(unpacking, "PIECE", 1 << 12)
    letters = np.random.default_rng(0).integers(65, 91, 1 << 16).astype(np.uint8).tobytes()
    path = packed(tmp_path / "text.gz", letters + b"a" * 3_000_000)
    with pytest.raises(InputError, match=r"its first .* unpack to"):
        read_bytes(path)
    monkeypatch.setattr(unpacking, "LARGEST_CHANGE", 1000)
    assert len(read_bytes(path)) == len(letters) + 3_000_000


@pytest.mark.parametrize("name", ["table.tsv", "table.tsv.gz"])
def test_data_larger_than_memory_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 1000)
    monkeypatch.setattr(unpacking, "free_memory", lambda: 300_000.0)
    content = np.random.default_rng(0).integers(65, 91, 200_000).astype(np.uint8).tobytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(InputError, match="of the 300 kB of memory that are free: netbic convert"):
        read_bytes(path)
    assert len(in_pieces(path)) >= 1  # in chunks, memory does not matter


def test_zeros_are_detected_in_the_first_chunk(tmp_path, monkeypatch):
    path = packed(tmp_path / "zeros.gz", b"gene\ts1\n" + bytes(10_000_000))
    taken = []
    monkeypatch.setattr(unpacking.Unpacked, "_check", lambda self: taken.append(self._given))
    for read in (read_bytes, in_pieces):
        taken.clear()
        with pytest.raises(InputError, match=r"line 2: holds binary data"):
            read(path)
        assert max(taken) < 5_000_000


def test_archives_are_checked_by_their_declared_sizes(monkeypatch):
    zeros = io.BytesIO()
    with zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in range(3):
            archive.writestr(f"{member}.npy", bytes(1_000_000))
    unpacking.check_archive("net.npz", zeros)
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 1_000_000)
    with pytest.raises(InputError, match=r"net\.npz: unpacks from .* kB to 3 MB or more: write it without compression"):
        unpacking.check_archive("net.npz", zeros)
    assert zeros.tell() == 0
    unpacking.check_archive("other.npz", io.BytesIO(b"no archive"))


@pytest.mark.parametrize("read", [read_expression, read_network, read_gene_sets, in_pieces])
def test_pipes_and_devices_are_refused_before_they_are_opened(tmp_path, read):
    pipes = [tmp_path / f"pipe{suffix}" for suffix in (".tsv", ".h5ad", ".parquet", ".npy", ".npz", ".sif", ".zarr")]
    for path in pipes:
        os.mkfifo(path)
    for path in [*pipes, "/dev/zero"]:
        with pytest.raises(InputError, match="is not a regular file: save its content to a regular file first"):
            read(path)


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read", [read_bytes, in_pieces])
def test_other_encodings_are_named(tmp_path, encoding, read):
    (tmp_path / "table.tsv").write_bytes("\ufeffgene\ts1\ts2\nA\t1\t2\n".encode(encoding))
    with pytest.raises(InputError, match=f"is encoded as {encoding[:6].upper()}: save it as UTF-8"):
        read(tmp_path / "table.tsv")


def test_ordinary_compressed_text_is_accepted(tmp_path):
    assert text.read_bytes(packed(tmp_path / "table.tsv.gz", ZEROS)) == ZEROS
    assert b"".join(piece for _, piece in in_pieces(tmp_path / "table.tsv.gz")) == ZEROS


def narrow(monkeypatch):
    monkeypatch.setattr(parquet, "ALWAYS_ALLOWED", 20_000)
    monkeypatch.setattr(parquet, "LARGEST_RATIO", 4)


def constant_table(path, n_rows=5000, name="a"):
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, dtype=np.int32)), [name])
    table = pa.table({"gene": names, "s1": np.zeros(n_rows), "s2": np.ones(n_rows)})
    pq.write_table(table, path, store_schema=False)  # names are read as texts, written out
    return path


def opened_lazily(path):
    return open_expression(path, samples_in_rows=True)


def converted(path):
    return convert(path, path.parent / "out.zarr")


@pytest.mark.parametrize("read", [read_expression, read_network, opened_lazily, converted])
def test_parquet_files_are_checked_by_their_metadata(tmp_path, monkeypatch, read):
    path = constant_table(tmp_path / "table.parquet")
    narrow(monkeypatch)
    monkeypatch.setattr(parquet.pd, "read_parquet", None)
    with pytest.raises(InputError, match=r"unpacks from .* bytes to .* kB or more: write it without compression"):
        read(path)
    assert not (tmp_path / "out.zarr").exists()


def test_a_long_name_in_every_row_of_a_parquet_table(tmp_path):
    path = constant_table(tmp_path / "table.parquet", 100_000, "x" * 20_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match=r"unpacks from .* kB to 2(\.\d*)? GB or more"):
        read_network(path)


def test_parquet_that_does_not_fit_into_memory(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 20))).rename(columns=str).rename(index=str)
    table.to_parquet(path)
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 1000)
    monkeypatch.setattr(unpacking, "free_memory", lambda: 100_000.0)
    with pytest.raises(InputError, match="of the 100 kB of memory that are free"):
        read_expression(path)
    monkeypatch.setattr(unpacking, "free_memory", lambda: 1e6)
    assert read_expression(path).shape == (20, 500)


BOMB = """
import re
from pathlib import Path
from netbic.io import InputError, read_expression
try:
    read_expression("bomb.tsv.gz")
except InputError as problem:
    print(problem)
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024)
"""


# The peak that getrusage gives a new process includes the memory of the one that started it: VmHWM does not.
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs the memory statistics of Linux")
def test_a_decompression_bomb_takes_little_memory(tmp_path):
    part = gzip.compress(b"G1\t0\t0\t0\n" * 1_000_000)  # gzip files may be concatenated
    with (tmp_path / "bomb.tsv.gz").open("wb") as file:
        file.write(gzip.compress(b"gene\ts1\ts2\ts3\n") + part * 400)
    assert (tmp_path / "bomb.tsv.gz").stat().st_size < 10_000_000  # and 3.6 GB when unpacked
    command = [sys.executable, "-c", BOMB]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    message, megabytes = done.stdout.splitlines()
    assert "unpack to 2" in message
    assert float(megabytes) < 1000


def test_sparse_counts_are_not_refused_as_a_decompression_bomb(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    counts = np.where(generator.random((200, 400)) < 0.97, 0, generator.integers(1, 9, (200, 400)))
    table = pd.DataFrame(counts).rename(columns=str).rename(index="g{}".format)
    table.to_csv(tmp_path / "table.tsv.gz", sep="\t")
    table.to_parquet(tmp_path / "table.parquet")
    for module in (unpacking, parquet):
        monkeypatch.setattr(module, "ALWAYS_ALLOWED", 0)
    monkeypatch.setattr(unpacking, "BEGINNING", 1 << 10)
    for name in ("table.tsv.gz", "table.parquet"):
        np.testing.assert_array_equal(read_expression(tmp_path / name).matrix, counts.T)


def test_a_parquet_file_whose_schema_does_not_fit_its_columns_does_not_end_the_process(tmp_path):
    """An optional column is declared as required: pyarrow would abort when it reads the metadata."""
    path = tmp_path / "net.parquet"
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}).to_parquet(path)
    optional = b"\x25\x02\x18\x06source"  # in the footer: repetition type, and the name with its length
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, b"\x25\x00" + optional[2:]))
    code = f"import netbic.io; netbic.io.read_network({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "InputError" in done.stderr
