"""Readers return data or refuse in one line, whatever a file contains; names are refused, or returned unchanged."""

import contextlib
import gzip
import re
import unicodedata
import warnings

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import netbic
from netbic.errors import InputError
from netbic.files import read_table, write_table
from netbic.io.dataset import open_dataset
from netbic.io.expression import read_expression
from netbic.io.names import read_id_map
from netbic.io.networks import read_network
from netbic.io.samples import read_gene_sets
from support.commands import run

SURROGATE = re.compile("[\ud800-\udfff]")
HOSTILE = ["", " ", "NA", "nan", "#", "#1.2", '"', '""', '"x', 'x"y', "'", "a\tb", "a\nb", "a\rb", "\r", "a\r"]
HOSTILE += ["a\r\nb", "a\0b", "a\x01b", "a\x1fb", "a\x7fb", "a\x85b", "a\x9fb", "\x1fa", " a ", "\u3000a", "+1"]
HOSTILE += ["-1", "1e5", "001", "=cmd|' /C calc'!A0", "@SUM(A1)", "\u202eevil\u202c", "\u2028", "\ufeffa", "🧬"]
HOSTILE += ["x" * 5000, "a,b;c d", "None"]
VALUES = np.random.default_rng(0).normal(8, 1, (5, 4))
CONTROLS = [chr(code) for code in range(256) if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\t\n"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("names")


def frame(gene="g0", sample="s0"):
    genes, samples = [gene, "g1", "g2", "g3", "g4"], [sample, "s1", "s2", "s3"]
    return pd.DataFrame(VALUES, index=pd.Index(genes, dtype=object), columns=pd.Index(samples, dtype=object))


def read_or_refuse(read, path):
    """What a reader returns; None if it refuses in one line that names the file."""
    try:
        return read(path)
    except InputError as problem:
        assert "\n" not in str(problem)  # noqa: PT017
        assert str(path) in str(problem) or read is dataset  # noqa: PT017  # there, two files may not match
        return None


def as_written(name, read):
    """Whether a name was returned, except for blanks around it (and a byte-order mark, which may start a file)."""
    plain = name.strip().removeprefix("\ufeff").strip()
    return read is None or plain in {str(one).strip().removeprefix("\ufeff").strip() for one in read}


def expression_names(path):
    read = read_or_refuse(read_expression, path)
    return None if read is None else [*read.genes, *read.samples]


def node_names(path, **options):
    read = read_or_refuse(lambda path: read_network(path, **options), path)
    return None if read is None else read.graph.names.tolist()


def tables(folder, name):
    for table in (frame(gene=name), frame(sample=name)):
        for separator in "\t,":
            table.to_csv(folder / "table.txt", sep=separator, index_label="gene")
            yield expression_names(folder / "table.txt")
        table.to_parquet(folder / "table.parquet")
        yield expression_names(folder / "table.parquet")


def tenx_folder(folder, name):
    cells = folder / "cells"
    cells.mkdir(exist_ok=True)
    scipy.io.mmwrite(cells / "matrix.mtx", sp.coo_array(VALUES))
    for gene, cell in ((name, "c0"), ("g0", name)):
        (cells / "barcodes.tsv").write_bytes(f"{cell}\nc1\nc2\nc3\n".encode())
        (cells / "features.tsv").write_bytes(f"ENSG0\t{gene}\nE1\tg1\nE2\tg2\nE3\tg3\nE4\tg4\n".encode())
        yield expression_names(cells)


def sif(folder, name):
    (folder / "net.sif").write_bytes(f"{name}\tbinds\tB\nB\tbinds\tC\n".encode())
    yield node_names(folder / "net.sif")


def networks(folder, name):
    edges = pd.DataFrame({"source": [name, "B"], "target": ["B", "C"]})
    edges.to_csv(folder / "net.tsv", sep="\t", index=False)
    edges.to_parquet(folder / "net.parquet")
    yield from (node_names(folder / "net.tsv"), node_names(folder / "net.parquet"))
    sp.save_npz(folder / "net.npz", sp.csr_array(np.eye(3)[::-1]))
    yield node_names(folder / "net.npz", names=np.array([name, "B", "C"], dtype=object))


def graphml(folder, name):
    written = "".join(f"&#{ord(letter)};" for letter in name)
    nodes = f'<node id="n0"><data key="name">{written}</data></node><node id="n1"/>'
    (folder / "net.graphml").write_text(f'<graphml>{nodes}<edge source="n0" target="n1"/></graphml>')
    read = node_names(folder / "net.graphml")
    yield None if read is None else [*read, *([""] if "n0" in read else [])]


def gmt(folder, name):
    for term, gene in ((name, "TP53"), ("GO:1", name)):
        (folder / "sets.gmt").write_bytes(f"{term}\tdescribed\t{gene}\tMDM2\n".encode())
        read = read_or_refuse(read_gene_sets, folder / "sets.gmt")
        yield None if read is None else [*read, *(gene for genes in read.values() for gene in genes)]


def id_map(folder, name):
    pd.DataFrame({"old": ["a", "b"], "new": [name, "B"]}).to_csv(folder / "map.tsv", sep="\t", index=False)
    read = read_or_refuse(lambda path: read_id_map(path, {"a", "b"}), folder / "map.tsv")
    yield None if read is None or "a" not in read else read.values()


READERS = {function.__name__: function for function in (tables, tenx_folder, sif, networks, graphml, gmt, id_map)}
LINES = {"tenx_folder", "sif", "gmt"}  # without quotes: a tab or a line break ends the name


@pytest.mark.filterwarnings("ignore")  # of names that occur twice
@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=20)
@given(names=st.text(max_size=6).map(lambda name: [name]))
@example(names=HOSTILE)
def test_readers_refuse_a_name_or_return_it_unchanged(folder, kind, names):
    for name in names:
        is_one_field = bool(name.strip()) and not set(name) & set('\t\n\r"')
        for read in READERS[kind](folder, name):
            assert (kind in LINES and not is_one_field) or as_written(name, read), name
            assert read is None or not any(set(CONTROLS) & set(str(found)) for found in read), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
@pytest.mark.parametrize("name", ["a\rb", "a\x9fb", "a\tb", "a\nb", '"', "NA", "=1", "🧬", " a ", "\u202e"])
def test_stores_refuse_a_name_or_return_it_unchanged(tmp_path, suffix, name):
    path = tmp_path / f"cells{suffix}"
    data = anndata.AnnData(frame(gene=name).T)
    data.write_h5ad(path) if suffix == ".h5ad" else data.write_zarr(path)
    read = read_or_refuse(read_expression, path)
    assert (read is None) == bool(set(CONTROLS) & set(name))
    assert read is None or as_written(name, read.genes)


def test_the_refusal_names_the_place(tmp_path):
    table, net = tmp_path / "table.parquet", tmp_path / "net.parquet"
    for name, text in {
        "links.txt": "protein1 protein2 combined_score\n9606.A 9606.B 900\n9606.B 9606.C 900\n",
        "info.txt": "#string_protein_id\tpreferred_name\n9606.A\tA\n9606.B\tB\x07\n9606.C\tC\n",
        "sets.gmt": "GO:1\tfirst\tA\tB\nGO:2\tsecond\tA\tB\x07\n",
        "names.txt": "A\nB\x07\nC\n",
    }.items():
        (tmp_path / name).write_text(text)
    sp.save_npz(tmp_path / "net.npz", sp.csr_array(np.eye(3)[::-1]))
    holds = "holds the control character '.*': rename it"
    for character in "\r\x07\x9f":
        frame().rename(index={"g2": f"GENE{character}2"}).to_parquet(table)
        pd.DataFrame({"source": ["A", f"B{character}C"], "target": ["B", "C"]}).to_parquet(net)
        for read, path, options, message in (
            (read_expression, table, {}, rf"table\.parquet: the name of gene 3, 'GENE.*2', {holds}"),
            (read_expression, table, {"samples_in_rows": True}, "the name of (sample|column) 3"),
            (read_network, net, {}, f"the name of the source of edge 2, 'B.*C', {holds}"),
            (read_network, "links.txt", {"string_info": tmp_path / "info.txt"}, r"info\.txt: the name of protein 2"),
            (read_gene_sets, "sets.gmt", {}, r"sets\.gmt, line 2: the name of field 4, 'B\\x07'"),
            (read_network, "net.npz", {"names": tmp_path / "names.txt"}, r"names\.txt: the name of node 2"),
        ):
            with pytest.raises(InputError, match=message):
                read(tmp_path / path, **options)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('gene\ts1\ts2\n"A\nB"\t1\t2\nC\t3\t4\n', 2),
        ('gene\t"s\n1"\ts2\nA\t1\t2\nC\t3\t4\n', 1),
        ('gene\ts1\ts2\nA\t1\t2\n"C""\t3\t4\n', 3),
    ],
)
def test_line_breaks_in_quotes_are_reported(tmp_path, text, line):
    for name, read in (("table.tsv", read_expression), ("table.sif", read_network), ("net.tsv", read_network)):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=rf"{name}, line {line}: a quoted field does not end on its line"):
            read(tmp_path / name)
    with pytest.raises(InputError, match="a quoted field does not end on its line"):
        netbic.io.convert(tmp_path / "table.tsv", tmp_path / "table.zarr")


# Names given in Python


def fitted(name):
    return netbic.SparseGraphSVD(1, n_rows=2, n_columns=3).fit(frame(gene=name, sample=name).T)


def round_trip(path, table):
    """The table as it is read back; None if it was refused and nothing was written."""
    path.unlink(missing_ok=True)
    try:
        write_table(path, table)
    except InputError as problem:
        assert "rename it" in str(problem)  # noqa: PT017
        assert not path.exists()
        return None
    return read_table(path)


@settings(max_examples=15)
@given(name=st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec=None), max_size=4)))
@example(name="a\udc80b")
@example(name="\ud800")
@example(name="GENE\r0")
@example(name="a\0")
def test_writers_refuse_a_name_or_preserve_it(folder, name):
    if pd.__version__ >= "3":
        assume(not SURROGATE.search(name))  # the strings of pandas 3 cannot hold one
    model = fitted(name)
    for table in (
        netbic.storage.modules_table(model),
        netbic.storage.summary_table(model),
        netbic.io.scores_table(model.transform(frame(gene=name).T), [name, "b", "c", "d"]),
    ):
        read = round_trip(folder / "table.tsv", table)
        assert (read is None) == any(not can_be_written(text) for text in table.astype(str).to_numpy().ravel())
        if read is not None:
            pd.testing.assert_frame_equal(read, table)
            assert pd.read_csv(folder / "table.tsv", sep="\t").shape == table.shape
    netbic.save(model, folder / "model")
    for again in (netbic.load(folder / "model"), netbic.tl.from_anndata(netbic.tl.to_anndata(model))):
        assert list(again.names_["columns"]) == list(model.names_["columns"])
        assert list(again.names_["rows"]) == list(model.names_["rows"])


def can_be_written(text):
    return "\0" not in text and not SURROGATE.search(text)


@pytest.mark.parametrize("name", ["GENE\r0", "GENE\t0", "GENE\n0", "GENE\0", "GENE\udc80"])
def test_enrichment_of_hostile_names(tmp_path, name):
    genes = [name, *(f"g{k}" for k in range(1, 12))]
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 12)), columns=pd.Index(genes, dtype=object))
    model = netbic.SparseGraphSVD(1, n_rows=4, n_columns=12).fit(data)
    netbic.save(model, tmp_path)
    before = set(tmp_path.iterdir())
    written = netbic.enrichment.write_enrichment(model, tmp_path, {f"set {name}": genes}, level=1.0)
    if can_be_written(name):
        list(written)
        found = read_table(tmp_path / "gene_sets.tsv")
        assert found["term"].tolist() == [f"set {name}"]
        assert name in found["genes"][0]
    else:
        with pytest.raises(InputError, match="which no table can hold: rename it"):
            list(written)
        assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["GENE\r0", "GENE\0", "GENE\x01", "GENE\udc80"])
def test_a_report_of_hostile_names_is_refused(tmp_path, name):
    netbic.save(fitted(name), tmp_path)
    with pytest.raises(InputError, match=r"the name of gene 1, 'GENE.*', holds the (control )?character '.*': rename"):
        netbic.report.write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_tabs_and_line_feeds_survive_a_fit(tmp_path):
    genes = [f"a\t{k}" if k % 2 else f"b\n{k}" for k in range(20)]
    data = pd.DataFrame(np.random.default_rng(0).normal(8, 1, (20, 12)), genes, [f"s\t{k}" for k in range(12)])
    data.to_parquet(tmp_path / "data.parquet")
    pd.DataFrame({"source": genes[:-1], "target": genes[1:]}).to_parquet(tmp_path / "net.parquet")
    arguments = ["fit", "data.parquet", "--graph", "net.parquet", "--out", "out", "--modules", "2", "--no-report"]
    with contextlib.chdir(tmp_path):
        assert run(*arguments, "--genes", "6", "--samples", "5").exit_code == 0
        assert run("score", "out", "data.parquet", "--out", "scores.tsv").exit_code == 0
    members, model = read_table(tmp_path / "out" / "modules.tsv"), netbic.load(tmp_path / "out")
    pd.testing.assert_frame_equal(members, netbic.storage.modules_table(model, feature_name="gene"))
    assert read_table(tmp_path / "scores.tsv")["sample"].tolist() == data.columns.tolist()


# Any content

FIELDS = st.one_of(
    st.sampled_from(
        ["TP53", "MDM2", "1", "2.5", "-3", "1e400", "NA", "nan", "inf", "", " ", '"', '"x"', "#", "1,5", "é", "‮"]
    ),
    st.floats(width=32).map(str),
    st.text(max_size=5),
)


@st.composite
def almost_tables(draw):
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
    almost_tables(), st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)


def expression(path):
    read = read_expression(path)
    assert read.matrix.shape == (len(read.samples), len(read.genes))
    assert not np.isinf(read.matrix).any()


def network(path):
    read = read_network(path)
    assert read.graph.n_edges > 0
    assert (read.graph.weights.data > 0).all()


def genes_of_map(path):
    read_id_map(path, {"TP53", "MDM2"})


def dataset(path):
    open_dataset(path, path, log1p=True, cpm=True, n_variable=2)


CHECKS = {
    expression: [".tsv", ".parquet", ".h5ad"],
    network: [".tsv", ".sif", ".graphml", ".npz", ".parquet"],
    **{dataset: [".tsv"], read_gene_sets: [".gmt"], genes_of_map: [".tsv"]},
}


@pytest.mark.parametrize("reader", CHECKS, ids=lambda reader: reader.__name__)
@settings(max_examples=50)
@given(content=CONTENT)
@example(content=b"a\tb\n1\t2\n")
@example(content=b'a\t"b\n1\t2\n')
@example(content=b"A\tB\tC\tD\nA\tB\n")
@example(content=b'<graphml><node id="a"/><edge source="a" target="b"/></graphml>')
def test_any_content_is_read_or_refused(folder, reader, content):
    for suffix in CHECKS[reader]:
        path = folder / f"fuzz{suffix}"
        path.write_bytes(content)
        read_or_refuse(reader, path)


CELLS = st.one_of(st.none(), st.text(max_size=3), st.floats(), st.integers(-3, 10**6), st.booleans(), st.dates())


@settings(max_examples=50)
@given(
    columns=st.lists(st.tuples(st.text(max_size=6), st.lists(CELLS, min_size=3, max_size=3)), min_size=1, max_size=4)
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
    content[0] = b"%%MatrixMarket matrix coordinate integer general\n" + content[0]
    for name, data in zip(("matrix.mtx", "barcodes.tsv", "features.tsv"), content, strict=True):
        (cells / name).write_bytes(data)
    read_or_refuse(read_expression, cells)
