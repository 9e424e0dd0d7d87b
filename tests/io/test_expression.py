"""Expression matrices are the same in every format; unusual files are read as meant, or refused with the place."""

import gzip
import itertools
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from netbic.errors import InputError
from netbic.io.expression import read_expression
from netbic.io.networks import read_network
from netbic.io.preprocessing import prepare
from netbic.io.samples import read_gene_sets

GENES, SAMPLES = ["TP53", "MDM2", "EGFR", "MYC"], ["s1", "s2", "s3"]
VALUES = np.array([[1.5, 2.0, -3.25], [0.0, 4.5, 1e-3], [7.0, 8.0, 9.0], [1e5, 0.1, 0.2]])
TABLE = pd.DataFrame(VALUES, index=pd.Index(GENES, name="gene"), columns=SAMPLES)
LARGE = pd.DataFrame(
    np.random.default_rng(0).normal(8, 1, (40, 12)).round(3),
    index=[f"GENE{k:03d}" for k in range(40)],
    columns=[f"s{k}" for k in range(12)],
)


def agrees(expression, table=TABLE):
    np.testing.assert_array_equal(np.asarray(expression.frame()), table.to_numpy().T)
    assert expression.genes.tolist() == table.index.tolist()
    assert expression.samples.tolist() == table.columns.tolist()


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_text_tables_of_any_separator(tmp_path):
    for separator, name in itertools.product("\t,; ", ("table.txt", "table.txt.gz")):
        TABLE.to_csv(tmp_path / name, sep=separator)
        agrees(read_expression(tmp_path / name))
    table = LARGE.set_axis([f"Tumor {k} left" for k in range(12)], axis=1).rename(index=lambda gene: f"Probe {gene}")
    agrees(read_expression(written(tmp_path / "table.tsv", table.to_csv(sep="\t"))), table)
    turned = written(tmp_path / "turned.tsv", table.T.to_csv(sep="\t", index_label="sample"))
    agrees(read_expression(turned, samples_in_rows=True), table)


EDITS = {
    "as R writes it": lambda text: text.removeprefix("gene\t"),
    "byte-order mark": lambda text: "\ufeff" + text,
    "Windows line ends": lambda text: text.replace("\n", "\r\n"),
    "no last line end": lambda text: text.rstrip("\n"),
    "comments and blank lines": lambda text: "# made by hand\n#\n" + text.replace("\nMYC", "\n\nMYC"),
    "header begins with a hash": lambda text: "#" + text,
    "quoted": lambda text: text.replace("TP53", '"TP53"').replace("s2", '"s2"'),
    "blanks around fields": lambda text: text.replace("\t", " \t ").replace("TP53", " TP53"),
}


@pytest.mark.parametrize("case", EDITS)
def test_text_tables_as_programs_write_them(tmp_path, case):
    text = EDITS[case](TABLE.to_csv(sep="\t", lineterminator="\n"))
    agrees(read_expression(written(tmp_path / "table.tsv", text)))


NAN = float("nan")
READ = {
    "missing at the end": ("gene\ta\tb\tc\nx\t1\t\t\ny\tNA\t5\t\n", "abc", [[1, NAN, NAN], [NAN, 5, NAN]]),
    "missing in words": ("g\ta\tb\tc\nx\t1\tNA\t3\ny\t\t5\tnan\n", "abc", [[1, NAN, 3], [NAN, 5, NAN]]),
    "blanks around missing": ("gene\ta\tb\tc\nx\t 1 \t NA \t3\ny\t4\t5\t6\n", "abc", [[1, NAN, 3], [4, 5, 6]]),
    "blank lines": ("gene\ta\tb\r\nx\t1\t2\r\n\r\ny\t3\t4\r\n", "ab", [[1, 2], [3, 4]]),
    "blanks": ("gene\ta\tb\n x\t 1\t2\ny \t3 \t4\n", "ab", [[1, 2], [3, 4]]),
    "quoted numbers": ('gene,a,b\n"x",1,"2"\ny,3,4\n', "ab", [[1, 2], [3, 4]]),
    "several spaces": ("gene a b\nx  1 2\ny 3 4\n", "ab", [[1, 2], [3, 4]]),
    "comments": ("# made\ngene\ta\tb\nx\t1e-3\t-2\ny\t3\tnan", "ab", [[1e-3, -2], [3, NAN]]),
    "GCT": ("#1.2\n2\t2\nName\tDescription\ta\tb\nx\tna\t1\t2\ny\tna\t3\t4\n", "ab", [[1, 2], [3, 4]]),
    "numbers as samples": ("gene\t1\t2\nx\t1\t2\ny\t3\t4\n", "12", [[1, 2], [3, 4]]),
    "a number as sample": ("gene\t1.1\t1E5\tc\td\te\nx\t1\t2\t3\t4\t5\ny\t3\t4\t5\t6\t7\n", None, None),
}


@pytest.mark.parametrize("columns", [1000, 1])
@pytest.mark.parametrize("case", READ)
def test_unusual_tables_are_read_with_few_and_with_many_columns(tmp_path, case, columns, monkeypatch):
    text, names, values = READ[case]
    monkeypatch.setattr("netbic.io.tables._WIDE", columns)
    read = read_expression(written(tmp_path / "table.txt", text))
    names, values = (["1.1", "1E5", *"cde"], [range(1, 6), range(3, 8)]) if names is None else (names, values)
    agrees(read, pd.DataFrame([[*row] for row in values], list("xy"), list(names)))


def test_parquet_with_names_in_the_index_or_the_first_column_keeps_precision(tmp_path):
    TABLE.to_parquet(tmp_path / "index.parquet")
    TABLE.reset_index().to_parquet(tmp_path / "column.parquet", index=False)
    for name in ("index", "column"):
        agrees(read_expression(tmp_path / f"{name}.parquet"))
    TABLE.T.to_parquet(tmp_path / "turned.parquet")
    agrees(read_expression(tmp_path / "turned.parquet", samples_in_rows=True))
    for number, table in enumerate((TABLE.astype(np.float32), (TABLE * 0).astype(np.int16))):
        table.to_parquet(tmp_path / f"{number}.parquet")
        assert read_expression(tmp_path / f"{number}.parquet").matrix.dtype == np.float32
    nullable = LARGE.astype("Float64")
    nullable.iloc[2, 3] = pd.NA
    nullable.to_parquet(tmp_path / "nullable.parquet")
    missing = read_expression(tmp_path / "nullable.parquet").missing_entries()
    assert missing.startswith("1 value is missing (the first: gene 'GENE002'")


def tenx(folder, features):
    scipy.io.mmwrite(folder / "matrix.mtx", sp.coo_matrix(VALUES))
    written(folder / "barcodes.tsv", "\n".join(SAMPLES))
    written(folder / "features.tsv", features)
    return folder


def test_a_10x_folder(tmp_path):
    agrees(read_expression(tenx(tmp_path, "".join(f"ENSG{k}\t{g}\tGene Expression\n" for k, g in enumerate(GENES)))))
    for path in list(tmp_path.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    agrees(read_expression(tmp_path))
    assert read_expression(tmp_path, gene_names="id").genes.tolist() == ["ENSG0", "ENSG1", "ENSG2", "ENSG3"]


def test_features_of_10x_folders_that_are_not_genes_and_files_that_do_not_belong_together(tmp_path):
    kinds = ["Gene Expression"] * 3 + ["Antibody Capture"]
    read = read_expression(tenx(tmp_path, "".join(f"id{k}\tG{k}\t{kind}\n" for k, kind in enumerate(kinds))))
    assert (read.genes.tolist(), read.steps[0]["named"]) == (["G0", "G1", "G2"], ["G3"])
    assert read_expression(tenx(tmp_path, "G0\nG1\nG2\nG3\n")).genes.tolist() == ["G0", "G1", "G2", "G3"]
    for name, content, message in (
        ("barcodes.tsv", "only\n", "do not belong together"),
        ("matrix.mtx", "not a matrix", "MatrixMarket"),
    ):
        written(tmp_path / name, content)
        with pytest.raises(InputError, match=message):
            read_expression(tmp_path)


@pytest.mark.parametrize("name", ["table.tsv", "table.parquet"])
def test_columns_that_annotate_genes_are_not_samples(tmp_path, name):
    table = LARGE.rename_axis("Hugo_Symbol")
    table.insert(0, "Entrez_Gene_Id", np.arange(40) * 1000)
    table.insert(1, "Description", "a gene")
    table.to_csv(tmp_path / name, sep="\t") if name.endswith("tsv") else table.to_parquet(tmp_path / name)
    read = read_expression(tmp_path / name)
    agrees(read, LARGE)
    assert prepare(read).steps == [{"step": "columns left out", "named": ["Entrez_Gene_Id", "Description"]}]


def test_columns_that_hold_no_expression_can_be_skipped(tmp_path):
    annotated = TABLE.copy()
    annotated.insert(0, "function", ["guardian", "ubiquitin", "receptor", "factor"])
    path = written(tmp_path / "table.tsv", annotated.to_csv(sep="\t"))
    for skipped in (["function"], "function"):
        agrees(read_expression(path, skip_columns=skipped))
    for options, message in (
        ({}, r"line 2, column 2 \(function\): 'guardian' is not a number"),
        ({"skip_columns": ["notes"]}, "no column 'notes' to skip"),
        ({"layer": "x"}, r"is for \.h5ad files"),
        ({"gene_names": "x"}, r"is for \.h5ad files"),
    ):
        with pytest.raises(InputError, match=message):
            read_expression(path, **options)
    numbered = LARGE.assign(probe_number=np.arange(40) * 100_000)
    with pytest.warns(UserWarning, match="sample 'probe_number' are .* times as large as usual"):
        read_expression(written(path, numbered.to_csv(sep="\t")))


TEXT = "gene\ta\tb\tc\nx\t1\t2\t3\ny\t4\t5\t6\nz\t7\t8\t9\n"
BAD = {
    "text among numbers": (TEXT.replace("5", "five"), r"line 3, column 3 \(b\): 'five' is not a number"),
    "decimal commas": (TEXT.replace("5", "5,5"), "line 3.*'5,5'.*decimals with a point"),
    "ragged": (TEXT.replace("\t6", ""), "line 3: has 3 fields where 4 are expected"),
    "too long a line": (TEXT.replace("6", "6\t7"), "line 3: has 5 fields where 4 are expected"),
    "header too short": (TEXT.replace("\tb\tc", ""), "line 1: names 2 columns"),
    "a separator at the end": ("gene\ts1\ts2\nA\t1\t2\t\nB\t3\t4\t\n", "a separator too many at the end"),
    "empty": (b"", "is empty"),
    "blank": (b"\n  \n\t\n", "only blanks"),
    "header only": (b"gene\ta\tb\n", "contains only a header"),
    "no header": (b"x\t1.5\t2.5\ny\t3.5\t4.5\n", "the first line holds numbers.*add a header line"),
    "no header, whole numbers": (b"A\t1\t2\nB\t3\t4\nC\t5\t6\n", "the first line holds numbers"),
    "one column": (b"gene\nx\ny\n", "one column only"),
    "latin-1": (TEXT.replace("x", "\xe9").encode("latin-1"), "line 2: byte 0xe9 is not UTF-8.*iconv"),
    "UTF-16": (("\ufeff" + TEXT).encode("utf-16-le"), "is encoded as UTF-16: save it as UTF-8"),
    "UTF-16, big end": (("\ufeff" + TEXT).encode("utf-16-be"), "is encoded as UTF-16"),
    "UTF-32": (("\ufeff" + TEXT).encode("utf-32-le"), "is encoded as UTF-32"),
    "UTF-32, big end": (("\ufeff" + TEXT).encode("utf-32-be"), "is encoded as UTF-32"),
    "binary": (TEXT.encode() + b"\0\0\0", "line 5: holds binary data"),
    "zip": (b"PK\x03\x04" + bytes(40), "compressed with zip"),
    "Excel": (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml" + bytes(40), "is an Excel file.*tab-separated text"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40), "is an Excel file"),
    "a network": (b"TP53\tbinds\tMDM2\nMDM2\tbinds\tMDM4\n", r"no column holds numbers: is it a network \(`graph`\)"),
    "a network with weights": (b"source\ttarget\tweight\nA\tB\t1\nB\tC\t2\n", "only one column holds numbers"),
    "prose": (b"Genes that act together\nare found by their\ncorrelation alone\n", "no column holds"),
    "decimal commas everywhere": (b"gene\ta\tb\nx\t1,5\t2,5\ny\t3,5\t4,5\n", "decimals with a point"),
    "truncated gzip": (gzip.compress(TEXT.encode() * 50)[:60], "is incomplete"),
    "damaged gzip": (gzip.compress(TEXT.encode())[:12] + b"garbage", "is incomplete or damaged"),
    "duplicated samples": (TEXT.replace("\tb", "\ta"), "sample 'a' occurs more than once"),
    "infinite": (TEXT.replace("5", "inf"), r"infinite values \(gene 'y', sample 'b'\)"),
    "nameless sample": (TEXT.replace("\tb", "\t"), "column 3 has no name"),
    "one gene": (b"gene\ta\tb\nx\t1\t2\n", "1 genes"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_in_a_table_name_the_problem_and_the_place(tmp_path, case, monkeypatch):
    path = written(tmp_path / "table.tsv", BAD[case][0])
    messages = set()
    for columns in (1000, 1):  # tables of many columns are parsed in another way
        monkeypatch.setattr("netbic.io.tables._WIDE", columns)
        with pytest.raises(InputError, match=BAD[case][1]) as caught:
            read_expression(path)
        messages.add(str(caught.value))
    (message,) = messages
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize("name", ["cells.h5ad", "table.parquet"])
def test_files_that_are_missing_empty_or_of_another_format(tmp_path, name):
    for content, message in ((None, "does not exist"), ("", "is empty"), (TEXT, "cannot be read as")):
        if content is not None:
            (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=message):
            read_expression(tmp_path / name)
    with pytest.raises(InputError, match="is a folder without matrix"):
        read_expression(tmp_path)


@pytest.mark.parametrize("read", [read_expression, read_network, read_gene_sets])
def test_pipes_and_devices_are_refused_before_they_are_opened(tmp_path, read):
    pipes = [tmp_path / f"pipe{suffix}" for suffix in (".tsv", ".h5ad", ".parquet", ".npy", ".npz", ".sif", ".zarr")]
    for path in pipes:
        os.mkfifo(path)
    for path in [*pipes, "/dev/zero"]:
        with pytest.raises(InputError, match="is not a regular file: save its content to a regular file first"):
            read(path)


def test_a_parquet_file_whose_schema_does_not_fit_its_columns_does_not_end_the_process(tmp_path):
    """An optional column is declared as required: pyarrow would abort if it read the metadata of the column."""
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
