"""A small file that unpacks to very much is refused while it is unpacked; what is no regular file, before opening."""

import gzip
import io
import os
import zipfile

import numpy as np
import pytest

from netbic.io import InputError, read_expression, read_gene_sets, read_network, text, unpacking
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
    with pytest.raises(InputError, match=r"unpacks from .* kB to .* kB or more: unpack it first") as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_graphml_and_10x_matrices_have_the_same_limits(tmp_path, small_limits):
    with pytest.raises(InputError, match="unpacks from"):
        read_network(packed(tmp_path / "net.graphml.gz", b"<graphml>" + b" " * 200_000 + b"</graphml>"))
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    (tmp_path / "features.tsv").write_text("g1\ng2\n")
    market = b"%%MatrixMarket matrix coordinate integer general\n" + b"%\n" * 100_000 + b"2 2 1\n1 1 1\n"
    packed(tmp_path / "matrix.mtx.gz", market)
    with pytest.raises(InputError, match="unpacks from"):
        read_expression(tmp_path)


def test_a_file_that_turns_out_otherwise_than_it_began(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 20_000)
    monkeypatch.setattr(unpacking, "BEGINNING", 1 << 13)
    monkeypatch.setattr(unpacking, "PIECE", 1 << 12)
    letters = np.random.default_rng(0).integers(65, 91, 1 << 16).astype(np.uint8).tobytes()
    path = packed(tmp_path / "text.gz", letters + b"a" * 3_000_000)
    with pytest.raises(InputError, match="unpacks from"):
        read_bytes(path)
    monkeypatch.setattr(unpacking, "LARGEST_CHANGE", 1000)
    assert len(read_bytes(path)) == len(letters) + 3_000_000


@pytest.mark.parametrize("name", ["table.tsv", "table.tsv.gz"])
def test_what_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 1000)
    monkeypatch.setattr(unpacking, "free_memory", lambda: 300_000.0)
    content = np.random.default_rng(0).integers(65, 91, 200_000).astype(np.uint8).tobytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(InputError, match="of the 300 kB of memory that are free: netbic convert"):
        read_bytes(path)
    assert len(in_pieces(path)) >= 1  # piece by piece, memory does not matter


def test_zeros_are_noticed_in_the_first_piece(tmp_path, monkeypatch):
    path = packed(tmp_path / "zeros.gz", b"gene\ts1\n" + bytes(10_000_000))
    taken = []
    monkeypatch.setattr(unpacking.Unpacked, "_check", lambda self: taken.append(self._given))
    for read in (read_bytes, in_pieces):
        taken.clear()
        with pytest.raises(InputError, match=r"line 2: holds binary data"):
            read(path)
        assert max(taken) < 5_000_000


def test_archives_are_judged_by_what_they_declare(tmp_path):
    with zipfile.ZipFile(tmp_path / "net.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(1000))
    unpacking.check_archive(tmp_path / "net.npz")
    huge = io.BytesIO()
    with zipfile.ZipFile(huge, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member in range(30):
            archive.writestr(f"{member}.npy", bytes(10_000_000))
    with pytest.raises(InputError, match=r"net\.npz: unpacks from 1\.\d* MB to 300 MB or more"):
        unpacking.check_archive("net.npz", huge)
    unpacking.check_archive("other.npz", io.BytesIO(b"no archive"))


@pytest.mark.parametrize("read", [read_expression, read_network, read_gene_sets, in_pieces])
def test_pipes_and_devices_are_refused_before_they_are_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.tsv")
    for path in (tmp_path / "pipe.tsv", "/dev/zero"):
        with pytest.raises(InputError, match="is not a regular file: save what it holds to a file first"):
            read(path)


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read", [read_bytes, in_pieces])
def test_encodings_are_called_by_their_names(tmp_path, encoding, read):
    (tmp_path / "table.tsv").write_bytes("\ufeffgene\ts1\ts2\nA\t1\t2\n".encode(encoding))
    with pytest.raises(InputError, match=f"is encoded as {encoding[:6].upper()}: save it as UTF-8"):
        read(tmp_path / "table.tsv")


def test_legitimate_text_passes(tmp_path):
    assert text.read_bytes(packed(tmp_path / "table.tsv.gz", ZEROS)) == ZEROS
    assert b"".join(piece for _, piece in in_pieces(tmp_path / "table.tsv.gz")) == ZEROS
