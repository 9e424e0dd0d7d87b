"""Sample tables and gene sets: separators, missing values, row names of R, Parquet, obs, files that cannot be used."""

import gzip

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


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_text_tables(tmp_path, separator):
    path = tmp_path / "table.txt"
    TABLE.to_csv(path, sep=separator, na_rep="NA")
    assert_same(read_sample_info(path))
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert_same(read_sample_info(packed))


def test_row_names_as_r_writes_them_and_quotes(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text('"age" "subtype" "drug"\n"p1" 61 "Basal" "None"\n"p2" NA "LumA" "A"\n"p3" 45 NA "B"\n')
    assert_same(read_sample_info(path))


def test_parquet_and_obs(tmp_path):
    TABLE.to_parquet(tmp_path / "a.parquet")
    TABLE.reset_index().to_parquet(tmp_path / "b.parquet")
    for name in "ab":
        assert_same(read_sample_info(tmp_path / f"{name}.parquet"))
    anndata = pytest.importorskip("anndata")
    stage = pd.Categorical(["I", "II", "I"], ["I", "II"], ordered=True)
    data = anndata.AnnData(np.ones((3, 2)), obs=pd.DataFrame({"stage": stage}, index=["p1", "p2", "p3"]))
    data.write_h5ad(tmp_path / "c.h5ad")
    found = read_sample_info(tmp_path / "c.h5ad")
    assert found["stage"].cat.ordered
    assert found["stage"].tolist() == ["I", "II", "I"]


def test_numbers_with_words_for_missing_values(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("sample\tage\tstage\np1\t[Not Available]\t[Unknown]\np2\tNone\tII\np3\t4\tI\n")
    found = read_sample_info(path)
    assert found["age"].tolist()[2] == 4
    assert found["age"].isna().tolist() == [True, True, False]
    assert found["stage"].isna().tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample\np1\np2\n", "one column only"),
        ("sample\tage\tage\np1\t1\t2\np2\t1\t2\n", "2 columns 'age'"),
        ("sample\tage\t\np1\t1\t2\np2\t1\t2\n", "column 3 has no name"),
        ("sample\tage\n", "only a header"),
        ("sample\tage\np1\t1\np2\n", "fields"),
        ("a\tb\tc\td\te\np1\t1\t2\np2\t1\t2\n", "make them agree"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "table.tsv"
    path.write_text(text)
    with pytest.raises(netbic.InputError, match=message):
        read_sample_info(path)


@pytest.mark.parametrize("kind", ["tsv", "parquet", "h5ad"])
def test_words_for_missing_values(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    table = pd.DataFrame({"grade": ["low", "Unknown", "?", "high"], "centre": list("abab")}, index=list("pqrs"))
    if kind == "h5ad":
        obs = table.astype({"grade": "category"})
        pytest.importorskip("anndata").AnnData(np.eye(4), obs=obs).write_h5ad(path)
    elif kind == "parquet":
        table.rename_axis("sample").reset_index().to_parquet(path)
    else:
        table.to_csv(path, sep="\t")
    found = read_sample_info(path)
    assert found["grade"].isna().tolist() == [False, True, True, False]
    assert found.attrs["taken_as_missing"] == {"grade": {"Unknown": 1, "?": 1}}
    assert read_sample_info(path, na_values=[])["grade"].tolist() == ["low", "Unknown", "?", "high"]
    assert read_sample_info(path, na_values=["LOW"])["grade"].isna().tolist() == [True, False, False, False]


def test_numbers_with_a_word_for_missing_are_numbers(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("sample\tage\np\t61\nq\tnot reported\nr\t45\n")
    assert read_sample_info(path)["age"].tolist() == pytest.approx([61, np.nan, 45], nan_ok=True)


@pytest.mark.parametrize("value", ["12345678901234567890123", "1e400", "007"])
def test_digits_that_no_number_keeps_are_text(tmp_path, value):
    (tmp_path / "table.tsv").write_text(f"sample\tid\tage\na\t{value}\t61\nb\t5\tNA\n")
    table = read_sample_info(tmp_path / "table.tsv")
    assert table["id"].tolist() == [value, "5"]
    assert table["age"].tolist()[0] == 61


def test_names_of_digits_in_a_second_column_match(tmp_path):
    (tmp_path / "table.tsv").write_text("row\tsample\tgroup\n1\t001\tx\n2\t002\ty\n3\t010\tx\n")
    found = netbic.association.match_samples(pd.Index(["001", "002", "010"]), read_sample_info(tmp_path / "table.tsv"))
    assert (found.matched, found.column) == (3, "sample")


GMT = "GO:1\tDNA repair\tBRCA1\tBRCA2\tATM\nGO:2\t\tTP53\tTP53\t\tMDM2\n# a comment\n\nGO:3\tapoptosis\tBAX\n"


@pytest.mark.parametrize("packed", [False, True])
def test_gmt(tmp_path, packed):
    path = tmp_path / "sets.gmt"
    path.write_bytes(gzip.compress(GMT.encode()) if packed else GMT.encode())
    sets = read_gene_sets(path)
    assert dict(sets) == {"GO:1": ("BRCA1", "BRCA2", "ATM"), "GO:2": ("TP53", "MDM2"), "GO:3": ("BAX",)}
    assert sets.names == {"GO:1": "DNA repair", "GO:2": "GO:2", "GO:3": "apoptosis"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GO:1\tx\tA\n\tdescription\tB\n", "line 2: the set has no name"),
        ("GO:1 x A B\n", "line 1: the set 'GO:1 x A B' has no genes.*tabs"),
        ("GO:1\tx\tA\nGO:2\ty\t\t\n", "line 2: the set 'GO:2' has no genes"),
        ("GO:1\tx\tA\nGO:1\ty\tB\n", "line 2: the set 'GO:1' occurs again"),
        ("# nothing\n", "holds no gene set"),
        ("", "is empty"),
    ],
)
def test_bad_gmt(tmp_path, text, message):
    (tmp_path / "sets.gmt").write_text(text)
    with pytest.raises(netbic.InputError, match=message):
        read_gene_sets(tmp_path / "sets.gmt")


def test_the_real_gene_ontology(real_data):
    sets = read_gene_sets(real_data / "go_bp_human.gmt.gz")
    assert len(sets) == 9373
    assert "TP53" in sets["GO:0006915"]
    assert sets.names["GO:0006915"] == "apoptotic process"


def test_web_addresses_are_not_names(tmp_path):
    path = tmp_path / "msigdb.gmt"
    path.write_text("HALLMARK_A\thttps://example.org/A\tTP53\nB\tna\tATM\nC\tNAD metabolism\tATM\nD\t\tATM\n")
    names = read_gene_sets(path).names
    assert names == {"HALLMARK_A": "HALLMARK_A", "B": "B", "C": "NAD metabolism", "D": "D"}
