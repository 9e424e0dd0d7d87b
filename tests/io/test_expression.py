"""Expression matrices are the same in every format, and errors name the problem and the place."""

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
from netbic.io.samples import read_gene_sets

GENES, SAMPLES = ["TP53", "MDM2", "EGFR", "MYC"], ["s1", "s2", "s3"]
VALUES = np.array([[1.5, 2.0, -3.25], [0.0, 4.5, 1e-3], [7.0, 8.0, 9.0], [1e5, 0.1, 0.2]])
TABLE = pd.DataFrame(VALUES, index=pd.Index(GENES, name="gene"), columns=SAMPLES)


def agrees(expression):
    np.testing.assert_array_equal(np.asarray(expression.frame()), VALUES.T)
    assert expression.genes.tolist() == GENES
    assert expression.samples.tolist() == SAMPLES


def test_text_tables_of_any_separator(tmp_path):
    for separator, name in itertools.product("\t,; ", ("table.txt", "table.txt.gz")):
        TABLE.to_csv(tmp_path / name, sep=separator)
        agrees(read_expression(tmp_path / name))


@pytest.mark.parametrize(
    "edit",
    {
        "as R writes it": lambda text: text.removeprefix("gene\t"),
        "byte-order mark": lambda text: "\ufeff" + text,
        "Windows line ends": lambda text: text.replace("\n", "\r\n"),
        "no last line end": lambda text: text.rstrip("\n"),
        "comments and blank lines": lambda text: "# made by hand\n#\n" + text.replace("\nMYC", "\n\nMYC"),
        "header begins with a hash": lambda text: "#" + text,
        "quoted": lambda text: text.replace("TP53", '"TP53"').replace("s2", '"s2"'),
        "blanks around fields": lambda text: text.replace("\t", " \t ").replace("TP53", " TP53"),
    }.items(),
    ids=lambda item: item[0],
)
def test_text_tables_as_programs_write_them(tmp_path, edit):
    path = tmp_path / "table.tsv"
    path.write_bytes(edit[1](TABLE.to_csv(sep="\t", lineterminator="\n")).encode())
    agrees(read_expression(path))


def test_samples_in_rows(tmp_path):
    TABLE.T.to_csv(tmp_path / "turned.csv")
    agrees(read_expression(tmp_path / "turned.csv", samples_in_rows=True))
    TABLE.T.to_parquet(tmp_path / "turned.parquet")
    agrees(read_expression(tmp_path / "turned.parquet", samples_in_rows=True))


def test_parquet_with_names_in_the_index_or_the_first_column_keeps_precision(tmp_path):
    TABLE.to_parquet(tmp_path / "index.parquet")
    TABLE.reset_index().to_parquet(tmp_path / "column.parquet", index=False)
    for name in ("index", "column"):
        agrees(read_expression(tmp_path / f"{name}.parquet"))
    TABLE.astype(np.float32).to_parquet(tmp_path / "single.parquet")
    assert read_expression(tmp_path / "single.parquet").matrix.dtype == np.float32
    (TABLE * 0).astype(np.int16).to_parquet(tmp_path / "counts.parquet")
    assert read_expression(tmp_path / "counts.parquet").matrix.dtype == np.float32


def test_a_10x_folder(tmp_path):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sp.coo_matrix(VALUES))
    (tmp_path / "barcodes.tsv").write_text("\n".join(SAMPLES))
    (tmp_path / "features.tsv").write_text("".join(f"ENSG{k}\t{g}\tGene Expression\n" for k, g in enumerate(GENES)))
    agrees(read_expression(tmp_path))
    for path in list(tmp_path.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    agrees(read_expression(tmp_path))
    assert read_expression(tmp_path, gene_names="id").genes.tolist() == ["ENSG0", "ENSG1", "ENSG2", "ENSG3"]


def test_columns_that_hold_no_expression_can_be_skipped(tmp_path):
    annotated = TABLE.copy()
    annotated.insert(0, "function", ["guardian", "ubiquitin", "receptor", "factor"])
    annotated.to_csv(tmp_path / "table.tsv", sep="\t")
    with pytest.raises(InputError, match=r"line 2, column 2 \(function\): 'guardian' is not a number"):
        read_expression(tmp_path / "table.tsv")
    agrees(read_expression(tmp_path / "table.tsv", skip_columns=["function"]))
    agrees(read_expression(tmp_path / "table.tsv", skip_columns="function"))
    with pytest.raises(InputError, match="no column 'notes' to skip"):
        read_expression(tmp_path / "table.tsv", skip_columns=["notes"])


def test_missing_values_stay_missing(tmp_path):
    (tmp_path / "table.tsv").write_text("g\ta\tb\tc\nx\t1\tNA\t3\ny\t\t5\tnan\n")
    np.testing.assert_array_equal(
        np.asarray(read_expression(tmp_path / "table.tsv").frame()), [[1, np.nan], [np.nan, 5], [3, np.nan]]
    )


TEXT = "gene\ta\tb\tc\nx\t1\t2\t3\ny\t4\t5\t6\nz\t7\t8\t9\n"
BAD = {
    "text among numbers": (TEXT.replace("5", "five").encode(), r"line 3, column 3 \(b\): 'five' is not a number"),
    "decimal commas": (TEXT.replace("5", "5,5").encode(), "line 3.*'5,5'.*decimals with a point"),
    "ragged": (TEXT.replace("\t6", "").encode(), "line 3: has 3 fields where 4 are expected"),
    "too long a line": (TEXT.replace("6", "6\t7").encode(), "line 3: has 5 fields where 4 are expected"),
    "header too short": (TEXT.replace("\tb\tc", "").encode(), "line 1: names 2 columns"),
    "empty": (b"", "is empty"),
    "blank": (b"\n  \n\t\n", "only blanks"),
    "header only": (b"gene\ta\tb\n", "contains only a header"),
    "no header": (b"x\t1.5\t2.5\ny\t3.5\t4.5\n", "add a header line"),
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
    "duplicated samples": (TEXT.replace("\tb", "\ta").encode(), "sample 'a' occurs more than once"),
    "infinite": (TEXT.replace("5", "inf").encode(), r"infinite values \(gene 'y', sample 'b'\)"),
    "nameless sample": (TEXT.replace("\tb", "\t").encode(), "column 3 has no name"),
    "one gene": (b"gene\ta\tb\nx\t1\t2\n", "1 genes"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_in_a_table_name_the_problem_and_the_place(tmp_path, case):
    content, expected = BAD[case]
    path = tmp_path / "table.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected) as caught:
        read_expression(path)
    message = str(caught.value)
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


def test_10x_files_that_do_not_belong_together(tmp_path):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sp.coo_matrix(VALUES))
    (tmp_path / "barcodes.tsv").write_text("only\n")
    (tmp_path / "genes.tsv").write_text("".join(f"{gene}\t{gene}\n" for gene in GENES))
    with pytest.raises(InputError, match="do not belong together"):
        read_expression(tmp_path)
    (tmp_path / "matrix.mtx").write_text("not a matrix")
    with pytest.raises(InputError, match="MatrixMarket"):
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
