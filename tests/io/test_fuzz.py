"""Readers return data or raise InputError, whatever a file contains."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netbic.errors import InputError
from netbic.io.dataset import open_dataset
from netbic.io.expression import read_expression
from netbic.io.names import read_id_map
from netbic.io.networks import read_network
from netbic.io.samples import read_gene_sets

FIELDS = st.one_of(
    st.sampled_from(
        ["TP53", "MDM2", "1", "2.5", "-3", "1e400", "NA", "nan", "inf", "", " ", '"', '"x"', "#", "1,5", "é", "‮"]
    ),
    st.floats(width=32).map(str),
    st.text(max_size=5),
)


@st.composite
def tables(draw):
    """Almost a table: lines that are mostly equal, with any separator, sometimes damaged."""
    width = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(FIELDS, min_size=width, max_size=width), max_size=6))
    if draw(st.booleans()) and rows:
        rows[draw(st.integers(0, len(rows) - 1))].append("1")
    separator = draw(st.sampled_from(["\t", ",", ";", " ", "  ", "|"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    data = end.join(separator.join(row) for row in rows).encode("utf-8", "surrogatepass")
    return draw(st.sampled_from([data, gzip.compress(data), gzip.compress(data)[:-4], b"\xef\xbb\xbf" + data]))


CONTENT = st.one_of(
    tables(), st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def read_or_refuse(reader, path):
    """A reader refuses in one line that names the file (except where two files do not match)."""
    try:
        reader(path)
    except InputError as caught:
        problem = str(caught)
        assert "\n" not in problem
        assert str(path) in problem or reader is dataset


def expression(path):
    read = read_expression(path)
    assert read.matrix.shape == (len(read.samples), len(read.genes))
    assert not np.isinf(read.matrix).any()


def network(path):
    read = read_network(path)
    assert read.graph.n_edges > 0
    assert (read.graph.weights.data > 0).all()


def dataset(path):
    open_dataset(path, path, log1p=True, cpm=True, n_variable=2)


def id_map(path):
    read_id_map(path, {"TP53", "MDM2"})


READERS = {
    expression: [".tsv", ".parquet", ".h5ad"],
    network: [".tsv", ".sif", ".graphml", ".npz", ".parquet"],
    **{dataset: [".tsv"], read_gene_sets: [".gmt"], id_map: [".tsv"]},
}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@settings(max_examples=50)
@given(content=CONTENT)
@example(content=b"a\tb\n1\t2\n")
@example(content=b'a\t"b\n1\t2\n')
@example(content=b"A\tB\tC\tD\nA\tB\n")
@example(content=b'<graphml><node id="a"/><edge source="a" target="b"/></graphml>')
def test_any_content_is_read_or_refused(folder, reader, content):
    for suffix in READERS[reader]:
        path = folder / f"fuzz{suffix}"
        path.write_bytes(content)
        read_or_refuse(reader, path)


VALUES = st.one_of(st.none(), st.text(max_size=3), st.floats(), st.integers(-3, 10**6), st.booleans(), st.dates())


@settings(max_examples=50)
@given(
    columns=st.lists(st.tuples(st.text(max_size=6), st.lists(VALUES, min_size=3, max_size=3)), min_size=1, max_size=4)
)
def test_tables_that_pandas_wrote(folder, columns):
    frame = pd.DataFrame({f"{name}{k}": pd.Series(values, dtype=object) for k, (name, values) in enumerate(columns)})
    for change in (lambda table: table, lambda table: table.convert_dtypes(), lambda table: table.astype("category")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, and about unusual samples
            try:
                change(frame).to_parquet(folder / "frame.parquet")
            except (pa.ArrowException, OverflowError):
                continue  # columns of mixed types cannot be written
            read_or_refuse(read_expression, folder / "frame.parquet")
        read_or_refuse(read_network, folder / "frame.parquet")


@settings(max_examples=50)
@given(content=st.lists(CONTENT, min_size=3, max_size=3))
def test_10x_folders(folder, content):
    cells = folder / "cells"
    cells.mkdir(exist_ok=True)
    (cells / "matrix.mtx").write_bytes(b"%%MatrixMarket matrix coordinate integer general\n" + content[0])
    (cells / "barcodes.tsv").write_bytes(content[1])
    (cells / "features.tsv").write_bytes(content[2])
    read_or_refuse(read_expression, cells)
