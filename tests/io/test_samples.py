"""Sample tables and gene sets: separators, missing values, row names of R, Parquet, obs, files that cannot be used."""

import gzip
from datetime import date

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.io.samples import read_gene_sets, read_sample_info

TABLE = pd.DataFrame(
    {"age": [61.0, np.nan, 45.0], "subtype": ["Basal", "LumA", None], "drug": ["None", "A", "B"]},
    index=pd.Index(["p1", "p2", "p3"], name="sample", dtype=object),
)


def assert_same(found):
    assert found["age"].isna().tolist() == [False, True, False]
    expected, found = (table.astype(object).where(table.notna(), "missing") for table in (TABLE, found))
    pd.testing.assert_frame_equal(found, expected, check_names=False, check_dtype=False)


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_text_tables(tmp_path):
    for separator in "\t,;":
        text = TABLE.to_csv(sep=separator, na_rep="NA")
        assert_same(read_sample_info(written(tmp_path / "table.txt", text)))
        assert_same(read_sample_info(written(tmp_path / "table.csv.gz", gzip.compress(text.encode()))))
    of_r = '"age" "subtype" "drug"\n"p1" 61 "Basal" "None"\n"p2" NA "LumA" "A"\n"p3" 45 NA "B"\n'
    assert_same(read_sample_info(written(tmp_path / "table.txt", of_r)))


def test_parquet_and_obs(tmp_path):
    TABLE.to_parquet(tmp_path / "a.parquet")
    TABLE.reset_index().to_parquet(tmp_path / "b.parquet")
    for name in "ab":
        assert_same(read_sample_info(tmp_path / f"{name}.parquet"))
    stage = pd.Categorical(["I", "II", "I"], ["I", "II"], ordered=True)
    data = anndata.AnnData(np.ones((3, 2)), obs=pd.DataFrame({"stage": stage}, index=["p1", "p2", "p3"]))
    data.write_h5ad(tmp_path / "c.h5ad")
    found = read_sample_info(tmp_path / "c.h5ad")
    assert found["stage"].cat.ordered
    assert found["stage"].tolist() == ["I", "II", "I"]


NAN = float("nan")
COLUMNS = {  # a column as written, and as read
    "TCGA's words": (["[Not Available]", "None", "4"], [NAN, NAN, 4]),
    "a stage": (["[Unknown]", "II", "I"], [NAN, "II", "I"]),
    "a word for missing": (["61", "not reported", "45"], [61, NAN, 45]),
    "too many digits": (["12345678901234567890123", "5", "6"], ["12345678901234567890123", "5", "6"]),
    "too large a number": (["1e400", "5", "6"], ["1e400", "5", "6"]),
    "a code": (["007", "5", "6"], ["007", "5", "6"]),
}


def test_numbers_codes_and_missing_values(tmp_path):
    table = pd.DataFrame({case: values for case, (values, _) in COLUMNS.items()}, index=list("pqr"))
    read = read_sample_info(written(tmp_path / "table.tsv", table.to_csv(sep="\t")))
    for case, (_, expected) in COLUMNS.items():
        assert read[case].isna().tolist() == [value is NAN for value in expected]
        assert read[case].dropna().tolist() == [value for value in expected if value is not NAN]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_sample_info, "sample\np1\np2\n", "one column only"),
        (read_sample_info, "sample\tage\tage\np1\t1\t2\np2\t1\t2\n", "2 columns 'age'"),
        (read_sample_info, "sample\tage\t\np1\t1\t2\np2\t1\t2\n", "column 3 has no name"),
        (read_sample_info, "sample\tage\n", "only a header"),
        (read_sample_info, "sample\tage\np1\t1\np2\n", "fields"),
        (read_sample_info, "a\tb\tc\td\te\np1\t1\t2\np2\t1\t2\n", "make them agree"),
        (read_gene_sets, "GO:1\tx\tA\n\tdescription\tB\n", "line 2: the set has no name"),
        (read_gene_sets, "GO:1 x A B\n", "line 1: the set 'GO:1 x A B' has no genes.*tabs"),
        (read_gene_sets, "GO:1\tx\tA\nGO:2\ty\t\t\n", "line 2: the set 'GO:2' has no genes"),
        (read_gene_sets, "GO:1\tx\tA\nGO:1\ty\tB\n", "line 2: the set 'GO:1' occurs again"),
        (read_gene_sets, "# nothing\n", "holds no gene set"),
        (read_gene_sets, "", "is empty"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, read, text, message):
    with pytest.raises(netbic.InputError, match=message):
        read(written(tmp_path / "table.tsv", text))


def test_names_of_digits_in_a_second_column_match(tmp_path):
    path = written(tmp_path / "table.tsv", "row\tsample\tgroup\n1\t001\tx\n2\t002\ty\n3\t010\tx\n")
    found = netbic.association.match_samples(pd.Index(["001", "002", "010"]), read_sample_info(path))
    assert (found.matched, found.column) == (3, "sample")


@pytest.mark.parametrize("kind", ["tsv", "parquet", "h5ad"])
def test_words_for_missing_values(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    table = pd.DataFrame({"grade": ["low", "Unknown", "?", "high"], "centre": list("abab")}, index=list("pqrs"))
    if kind == "h5ad":
        anndata.AnnData(np.eye(4), obs=table.astype({"grade": "category"})).write_h5ad(path)
    elif kind == "parquet":
        table.rename_axis("sample").reset_index().to_parquet(path)
    else:
        table.to_csv(path, sep="\t")
    found = read_sample_info(path)
    assert found["grade"].isna().tolist() == [False, True, True, False]
    assert found.attrs["taken_as_missing"] == {"grade": {"Unknown": 1, "?": 1}}
    assert read_sample_info(path, na_values=[])["grade"].tolist() == ["low", "Unknown", "?", "high"]
    assert read_sample_info(path, na_values=["LOW"])["grade"].isna().tolist() == [True, False, False, False]


GMT = "GO:1\tDNA repair\tBRCA1\tBRCA2\tATM\nGO:2\t\tTP53\tTP53\t\tMDM2\n# a comment\n\nGO:3\tapoptosis\tBAX\n"


def test_gmt(tmp_path):
    for content in (GMT.encode(), gzip.compress(GMT.encode())):
        sets = read_gene_sets(written(tmp_path / "sets.gmt", content))
        assert dict(sets) == {"GO:1": ("BRCA1", "BRCA2", "ATM"), "GO:2": ("TP53", "MDM2"), "GO:3": ("BAX",)}
        assert sets.names == {"GO:1": "DNA repair", "GO:2": "GO:2", "GO:3": "apoptosis"}
    text = "HALLMARK_A\thttps://example.org/A\tTP53\nB\tna\tATM\nC\tNAD metabolism\tATM\nD\t\tATM\n"
    names = read_gene_sets(written(tmp_path / "msigdb.gmt", text)).names  # web addresses are not names
    assert names == {"HALLMARK_A": "a", "B": "B", "C": "NAD metabolism", "D": "D"}


def test_the_real_gene_ontology(real_data):
    sets = read_gene_sets(real_data / "go_bp_human.gmt.gz")
    assert (len(sets), sets.names["GO:0006915"]) == (9373, "apoptotic process")
    assert "TP53" in sets["GO:0006915"]


def test_a_table_without_a_header_is_refused(tmp_path):
    rows = "p1\t61\tLumA\np2\t45\tBasal\np3\t50\tLumA\n"
    labels = "p1\tLumA\tx\np2\tBasal\ty\np3\tLumA\tx\n"
    for text, value in ((rows, "61"), (labels, "LumA")):
        with pytest.raises(netbic.InputError, match=f"line 1: the first line holds values \\('{value}'\\)"):
            read_sample_info(written(tmp_path / "table.tsv", text))
    kept = read_sample_info(written(tmp_path / "table.tsv", "sample\tx\tgrade\np1\tx\t1\np2\ty\t2\n"))
    assert list(kept) == ["x", "grade"]  # one column is called like one of its values


def test_digits_of_other_scripts_are_numbers(tmp_path):
    digits = {ord(str(digit)): chr(0x660 + digit) for digit in range(10)}
    text = "".join(f"p{age}\t{str(age).translate(digits)}\n" for age in (61, 45, 50))
    assert read_sample_info(written(tmp_path / "table.tsv", f"sample\tage\n{text}"))["age"].tolist() == [61, 45, 50]


def test_columns_of_parquet_tables(tmp_path):
    path, names = tmp_path / "table.parquet", ["p1", "p2", "p3"]
    for values in ([[1, 2], [3], [4]], [{"a": 1}, {"a": 2}, {"a": 3}]):
        pd.DataFrame({"sample": names, "odd": values, "age": [1, 2, 3]}).to_parquet(path)
        with pytest.raises(netbic.InputError, match="column odd: holds lists or records: write text or numbers"):
            read_sample_info(path)
    pd.DataFrame({"sample": names, "day": [date(2020, 1, 1), None, date(2020, 1, 1)]}).to_parquet(path)
    assert read_sample_info(path)["day"].dtype.kind == "M"


def test_tables_and_gene_sets_are_not_mistaken_for_each_other(tmp_path):
    table, sets = tmp_path / "clinical.tsv", tmp_path / "sets.gmt"
    table.write_text("sample\tage\tstage\n" + "".join(f"p{k}\t{40 + k}\tII\n" for k in range(5)))
    sets.write_text("one\t\tA\tB\ntwo\t\tC\tD\nthree\t\tE\tF\n")
    with pytest.raises(ValueError, match="looks like a table with a header, not like a GMT file"):
        read_gene_sets(table)
    with pytest.raises(ValueError, match="is a GMT file of gene sets, not a table of samples"):
        read_sample_info(sets)
    assert len(read_gene_sets(sets)) == 3
