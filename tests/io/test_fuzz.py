"""Readers return data or raise InputError, whatever a file contains."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netbic.io import InputError, open_dataset, read_expression, read_gene_sets, read_network
from netbic.io.names import read_id_map

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


def result_of(reader, *paths):
    """What the reader returns; None if it refuses, in one line that names the file."""
    problem = None
    try:
        return reader(*paths)
    except InputError as caught:
        problem = str(caught)
    assert "\n" not in problem
    assert any(str(path) in problem for path in paths) or len(paths) > 1
    return None


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".h5ad"])
@settings(max_examples=50)
@given(content=CONTENT)
@example(content=b"a\tb\n1\t2\n")
@example(content=b'a\t"b\n1\t2\n')
def test_expression(folder, suffix, content):
    path = folder / f"fuzz{suffix}"
    path.write_bytes(content)
    expression = result_of(read_expression, path)
    if expression is not None:
        assert expression.matrix.shape == (len(expression.samples), len(expression.genes))
        assert not np.isinf(expression.matrix).any()


@pytest.mark.parametrize("suffix", [".tsv", ".sif", ".graphml", ".npz", ".parquet"])
@settings(max_examples=50)
@given(content=CONTENT)
@example(content=b"A\tB\tC\tD\nA\tB\n")
@example(content=b'<graphml><node id="a"/><edge source="a" target="b"/></graphml>')
def test_networks(folder, suffix, content):
    path = folder / f"fuzz{suffix}"
    path.write_bytes(content)
    network = result_of(read_network, path)
    if network is not None:
        assert network.graph.n_edges > 0
        assert (network.graph.weights.data > 0).all()


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
            result_of(read_expression, folder / "frame.parquet")
        result_of(read_network, folder / "frame.parquet")


@settings(max_examples=50)
@given(content=CONTENT)
def test_gene_sets_and_id_maps(folder, content):
    path = folder / "fuzz.gmt"
    path.write_bytes(content)
    result_of(read_gene_sets, path)
    result_of(lambda path: read_id_map(path, {"TP53", "MDM2"}), path)


@settings(max_examples=50)
@given(content=st.lists(CONTENT, min_size=3, max_size=3))
def test_10x_folders(folder, content):
    cells = folder / "cells"
    cells.mkdir(exist_ok=True)
    (cells / "matrix.mtx").write_bytes(b"%%MatrixMarket matrix coordinate integer general\n" + content[0])
    (cells / "barcodes.tsv").write_bytes(content[1])
    (cells / "features.tsv").write_bytes(content[2])
    result_of(read_expression, cells)


@settings(max_examples=50)
@given(one=CONTENT, other=CONTENT)
def test_studies(folder, one, other):
    paths = folder / "study.tsv", folder / "study.sif"
    for path, content in zip(paths, (one, other), strict=True):
        path.write_bytes(content)
    result_of(lambda *paths: open_dataset(*paths, log1p=True, cpm=True, n_variable=2), *paths)
