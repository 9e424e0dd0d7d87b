import gzip

import pytest

from netbic.io import InputError, read_gene_sets

TEXT = "GO:1\tDNA repair\tBRCA1\tBRCA2\tATM\nGO:2\t\tTP53\tTP53\t\tMDM2\n# a comment\n\nGO:3\tapoptosis\tBAX\n"


@pytest.mark.parametrize("packed", [False, True])
def test_gmt(tmp_path, packed):
    path = tmp_path / "sets.gmt"
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
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
    with pytest.raises(InputError, match=message):
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
