"""Gene sets, names and features of the same name in pairs of two tables."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import netbic
from netbic import InputError
from netbic.enrichment import gene_sets, module_names, shared_names
from netbic.io import read_table
from support.commands import run, run_successfully

GENES = [f"gene {k}" for k in range(60)]
SETS = {"GO:1": GENES[:12], "GO:2": GENES[30:44]}


def rna_and_protein(lipids=False):
    """Twelve genes and eight of their proteins vary together."""
    random = np.random.default_rng(0)
    samples = [f"s{k}" for k in range(50)]
    rna = pd.DataFrame(random.standard_normal((50, 60)), samples, GENES)
    protein = pd.DataFrame(random.standard_normal((50, 30)), samples, GENES[:20] + [f"other {k}" for k in range(10)])
    common = 2 * random.standard_normal((50, 1))
    rna.iloc[:, :12] += common
    protein.iloc[:, :8] -= common
    return rna, protein.set_axis([f"C{k}" for k in range(30)], axis=1) if lipids else protein


@pytest.fixture(scope="module")
def fitted():
    return netbic.SparseGraphCCA(1, n_x=12, n_y=8).fit(*rna_and_protein(), table_names=("RNA", "protein"))


def test_both_sides_of_a_pair_are_tested_in_their_own_table(fitted):
    table = gene_sets(fitted, SETS, min_size=5, by_sign=False)
    assert table.columns[:3].tolist() == ["pair", "table", "term"]
    for row, (n_genes, n_module) in zip(table.to_dict("records"), ((60, 12), (30, 8)), strict=True):
        assert row["n_overlap"] == row["n_module"] == n_module
        expected = scipy.stats.hypergeom.sf(n_module - 1, n_genes, 12, n_module)
        assert row["p_value"] == pytest.approx(expected)
    assert table["table"].tolist() == ["RNA", "protein"]
    (name,) = module_names(fitted, table)
    assert name == "GO:1 with GO:1 (down)"  # proteins are low where genes are high
    turned = netbic.SparseGraphCCA(1, n_x=12, n_y=8).fit(rna_and_protein()[0], -rna_and_protein()[1])
    assert module_names(turned, gene_sets(turned, SETS, min_size=5, by_sign=False)) == ["GO:1"]


def test_tables_without_genes_are_left_out():
    lipids = netbic.SparseGraphCCA(1, n_x=12, n_y=8).fit(*rna_and_protein(lipids=True))
    assert set(gene_sets(lipids, SETS, min_size=5)["table"]) == {"X"}
    few = netbic.SparseGraphCCA(1, n_x=12, n_y=8).fit(rna_and_protein()[0], rna_and_protein()[1].iloc[:, 8:])
    assert set(gene_sets(few, SETS)["table"]) == {"X"}  # Y has 4 of the 12 genes of GO:1
    with pytest.raises(InputError, match=r"neither table can be tested .* none of the 1 gene sets has 10 to 500"):
        gene_sets(few, {"small": GENES[9:15]})
    assert shared_names(lipids) is None
    with pytest.raises(InputError, match="no feature of either table is in the 1 gene sets"):
        gene_sets(lipids, {"a": ["TP53"]})
    arrays = netbic.SparseGraphCCA(1, n_x=12, n_y=8).fit(*(table.to_numpy() for table in rna_and_protein()))
    assert shared_names(arrays) is None


def test_features_of_the_same_name_are_counted_and_compared_with_chance(fitted):
    (row,) = shared_names(fitted).to_dict("records")
    assert row["n_same_name"] == 8
    assert row["expected_same_name"] == pytest.approx(12 * 8 / 20)  # 20 names are in both tables
    assert row["same_name_p_value"] == pytest.approx(scipy.stats.hypergeom.sf(7, 20, 12, 8))


def test_the_command_writes_them(tmp_path):
    for name, table in zip(("x_rna", "x_protein"), rna_and_protein(), strict=True):
        table.iloc[:5, -1] = np.nan
        table.T.rename_axis("gene").to_csv(tmp_path / f"{name}.tsv", sep="\t")
    lines = [f"{term}\tname of {term}\t" + "\t".join(genes) for term, genes in SETS.items()]
    (tmp_path / "sets.gmt").write_text("\n".join(lines))
    out, sizes = tmp_path / "out", ("--features1", 12, "--features2", 8, "--pairs", 1, "--permutations", 19)
    given = ("pairs", tmp_path / "x_rna.tsv", tmp_path / "x_protein.tsv", "--out", out, *sizes)
    shown = run_successfully(*given, "--missing", "ignore", "--gene-sets", tmp_path / "sets.gmt").output
    assert "protein: 0.3% of the values are missing; they add nothing" in shown
    assert "8 of 8 features of protein have the name of a feature of rna in the pair (4.8 expected" in shown
    assert "gene_sets.tsv: 2 enriched gene sets in 1 pair" in shown
    assert f"0 with rho >= 0.5 (q <= 0.05): {out}/same_names.tsv" in shown
    same, (rna, protein) = read_table(out / "same_names.tsv").set_index("name"), rna_and_protein()
    assert f"20 names are in rna and in protein: median Spearman rho {same['rho'].median():.2f}, 0 with" in shown
    assert same["rho"].is_monotonic_decreasing
    expected = scipy.stats.spearmanr(rna["gene 3"], protein["gene 3"])
    assert tuple(same.loc["gene 3", ["n", "rho", "p"]]) == pytest.approx((50, *expected))
    weights = read_table(out / "weights.tsv")
    assert set(weights.loc[weights["in_both"], "name"]) == {*GENES[:8]}
    table = read_table(out / "gene_sets.tsv")
    assert table[["pair", "table"]].to_numpy().tolist() == [[1, "rna"], [1, "protein"]]
    page = (out / "report.html").read_text()
    assert "<h1><bdi>rna and protein</bdi></h1>" in page
    assert "It is stronger than expected by chance (p &lt;= 0.05 with 19 permutations): there may be more" in page
    assert page.count("name of GO:1") >= 4  # name of the pair, card, both tables of sets
    assert "name of GO:1 is up in rna and down in protein" in page
    again = run_successfully("enrich", out, "--gene-sets", tmp_path / "sets.gmt").output
    assert "2 enriched gene sets in 1 pair" in again
    (tmp_path / "small.gmt").write_text("GO:2\tname\t" + "\t".join(SETS["GO:2"]))
    again = run_successfully("enrich", out, "--gene-sets", tmp_path / "small.gmt").output
    assert "\nprotein: no feature is in a gene set, so they are not tested" in again
    run_successfully("enrich", out, "--gene-sets", tmp_path / "sets.gmt")
    assert (out / "gene_sets.tsv").read_bytes() == read_again(table, tmp_path)
    assert run("pairs", *given[1:], "--names", "a,a", "--force").exit_code == 2


def read_again(table, folder):
    """The content of a table as netbic writes it."""
    netbic.io.write_table(folder / "again.tsv", table)
    return (folder / "again.tsv").read_bytes()
