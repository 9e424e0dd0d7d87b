"""Names that do not match: one line says which kinds they are, and with --id-map the same command works."""

import json
import re

import anndata
import numpy as np
import pandas as pd
import pytest

from support.commands import run, run_successfully

SAMPLES = [f"s{k}" for k in range(40)]
SYMBOLS = [f"GENE{k}" for k in range(120)]
IDS = [f"ENSG{k:011d}" for k in range(125)]  # the last five stand for the first five symbols too, or are not known


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Data with Ensembl ids (`ids.tsv`) and symbols (`symbols.tsv`), a network and gene sets, and `map.tsv`."""
    folder = tmp_path_factory.mktemp("names")
    values = np.random.default_rng(0).normal(8, 1, (125, 40))
    values[:30, :20] += 4
    values[120:] -= 3  # of two ids for one symbol, those with the lower mean
    pd.DataFrame(values, index=pd.Index([f"{name}.4" for name in IDS], name="gene"), columns=SAMPLES).to_csv(
        folder / "ids.tsv", sep="\t"
    )
    pd.DataFrame(values[:120], index=pd.Index(SYMBOLS, name="gene"), columns=SAMPLES).to_csv(
        folder / "symbols.tsv", sep="\t"
    )
    rows = [*zip(IDS[:110], SYMBOLS[:110], strict=True), *zip(IDS[120:123], SYMBOLS[:3], strict=True)]
    (folder / "map.tsv").write_text("ensembl\tsymbol\n" + "".join(f"{one}\t{other}\n" for one, other in rows))
    edges = [(SYMBOLS[a], SYMBOLS[a + b]) for a in range(100) for b in (1, 2)]
    (folder / "network.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    sets = {"first": SYMBOLS[:30], "other": SYMBOLS[50:80]}
    (folder / "sets.gmt").write_text("".join("\t".join([name, "", *own]) + "\n" for name, own in sets.items()))
    return folder


KINDS = "The data have Ensembl gene ids (ENSG...), the {} gene symbols: translate one into the other with a two-column"


def last_line(*arguments):
    done = run(*arguments)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_one_line_says_what_kinds_of_names_there_are(study, tmp_path):
    data, out = study / "ids.tsv", tmp_path / "out"
    sets, network = ("--gene-sets", study / "sets.gmt"), ("--graph", study / "network.tsv")
    for command in (("align", data, *network), ("fit", data, *network, "--out", out), ("tune", data, *network)):
        more = ("--out", tmp_path / "tune") if command[0] == "tune" else ()
        line = last_line(*command, *more)
        assert KINDS.format("network has") in line
        assert line.endswith("table (--id-map)\n")
    for command in (("fit", data, *sets), ("judge", data, study / "sets.gmt")):  # before the search
        line = last_line(*command, "--out", out)
        assert "no gene of the gene sets is in the data (data: 'ENSG00000000000.4'" in line
        assert KINDS.format("gene sets have") in line
    assert not (out / "modules.tsv").exists()
    run_successfully("fit", data, "--modules", 1, "--genes", 30, "--no-report", "--out", out)
    assert KINDS.format("gene sets have") in last_line("enrich", out, *sets)
    other = "The data have gene symbols, the modules have Ensembl gene ids (ENSG...): translate"
    assert other in last_line("score", out, study / "symbols.tsv")
    line = last_line("replicate", out, study / "symbols.tsv")
    assert "The other study has gene symbols, the modules have Ensembl gene ids (ENSG...): translate" in line
    assert line.endswith("(--id-map)\n")


def test_an_id_map_makes_the_same_commands_work(study, tmp_path):
    data, ids, sets = study / "ids.tsv", ("--id-map", study / "map.tsv"), ("--gene-sets", study / "sets.gmt")
    out, plain = tmp_path / "out", tmp_path / "plain"
    small = "--modules", 1, "--genes", 30, "--no-report", "--out"
    printed = run_successfully("fit", data, "--graph", study / "network.tsv", *sets, *ids, *small, out).output
    assert "preprocessed: rename (113 genes); 12 keep their names\n" in printed
    assert "preprocessed: duplicates: highest (3 genes, 3 lines merged): GENE0, GENE1, GENE2\n" in printed
    assert "gene sets: 2, with 60 of their 60 genes in the data\n" in printed
    found = pd.read_csv(out / "gene_sets.tsv", sep="\t")
    assert (found.loc[0, "term"], found.loc[0, "n_overlap"]) == ("first", 30)
    assert json.loads((out / "run.json").read_text())["inputs"]["id_map"].endswith("map.tsv")
    judged = run_successfully("judge", data, study / "sets.gmt", *ids, "--found-elsewhere", "--out", tmp_path / "j")
    assert re.search(r"first +30\b", judged.output)
    genes = pd.read_csv(tmp_path / "j" / "judged.tsv", sep="\t").set_index("set")["n_available"]
    assert genes.to_dict() == {"first": 30, "other": 30}
    # a fit with Ensembl ids; what is compared with it has symbols
    run_successfully("fit", data, *small, plain)
    run_successfully("enrich", plain, *sets, *ids)
    found = pd.read_csv(plain / "gene_sets.tsv", sep="\t")
    assert found.loc[0, "genes"].startswith("ENSG")
    assert found.loc[0, "n_overlap"] == 30
    scores = [
        pd.read_csv(tmp_path / f"{name}.tsv", sep="\t", index_col=0)
        for name, more in (("ids", ()), ("symbols", ids))
        if run_successfully("score", plain, study / f"{name}.tsv", *more, "--out", tmp_path / f"{name}.tsv")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0.05, atol=0.1)
    assert "Of 1 module, 1 is" in run_successfully("replicate", plain, study / "symbols.tsv", *ids, "--force").output
    assert "need --gene-sets" in run("enrich", plain, *ids).output


def test_new_samples_may_have_the_names_of_the_modules_already(study, tmp_path):
    out = tmp_path / "out"
    run_successfully(
        "fit", study / "ids.tsv", "--id-map", study / "map.tsv", "--modules", 1, "--no-report", "--out", out
    )
    for name in ("ids", "symbols"):  # the id map of the fit is used for what needs it
        done = run_successfully("score", out, study / f"{name}.tsv", "--out", tmp_path / f"{name}.tsv")
        assert "are missing" not in done.stderr


def test_pairs_use_an_id_map_for_the_table_that_has_its_names(study, tmp_path):
    proteins = pd.read_csv(study / "symbols.tsv", sep="\t", index_col=0).iloc[:20]
    proteins.set_axis([f"PROT_{k}x" for k in range(20)]).rename_axis("p").to_csv(tmp_path / "p.tsv", sep="\t")
    command = "pairs", study / "ids.tsv", tmp_path / "p.tsv", "--out", tmp_path / "out", "--permutations", 0
    printed = run_successfully(*command, "--id-map", study / "map.tsv", "--no-report").output
    assert "ids: preprocessed: rename (113 features); 12 keep their names\n" in printed
    assert "p: preprocessed: rename" not in printed
    line = last_line(*command[:-4], "--out", tmp_path / "two", "--graph1", study / "network.tsv")
    assert line.startswith("Error: ids: no feature of the data is in the network")
    assert "with a two-column table (--id-map 1)" in line or "(--id-map)" in line
    (tmp_path / "other.tsv").write_text("x\ty\nz\tw\n")
    line = last_line(*command[:-4], "--out", tmp_path / "two", "--id-map", tmp_path / "other.tsv")
    assert "other.tsv: has no feature of the data in any column (it has 'x', 'z', ...; the data have Ensembl" in line


def test_a_store_says_which_column_of_var_has_the_other_names(study, tmp_path):
    table = pd.read_csv(study / "ids.tsv", sep="\t", index_col=0).iloc[:100].T
    var = pd.DataFrame({"symbol": SYMBOLS[:100], "type": "coding"}, index=table.columns)
    anndata.AnnData(table.to_numpy(), pd.DataFrame(index=SAMPLES), var).write_h5ad(tmp_path / "data.h5ad")
    command = "align", tmp_path / "data.h5ad", "--graph", study / "network.tsv"
    assert last_line(*command).endswith("(--id-map); or use the names in column 'symbol' of var (--gene-names)\n")
    assert "matched: 100 of 100 genes" in run_successfully(*command, "--gene-names", "symbol").output


def test_dates_in_gene_sets_and_networks_are_named(study, tmp_path):
    (tmp_path / "sets.gmt").write_text("\t".join(["first", "", *SYMBOLS[:30], "1-Mar", "2-Sep"]) + "\n")
    (tmp_path / "network.tsv").write_text((study / "network.tsv").read_text() + "GENE0\t2001-09-02\nGENE1\t1-Dec\n")
    done = run("fit", study / "symbols.tsv", "--gene-sets", tmp_path / "sets.gmt", "--graph", tmp_path / "network.tsv",
        "--modules", 1, "--genes", 30, "--no-report", "--out", tmp_path / "out")  # fmt: skip
    said = " ".join(done.stderr.split())
    assert "2 names of the gene sets were changed to dates by a spreadsheet (1-Mar is MARCHF1 (formerly MARCH1)" in said
    assert "2 names of the network were changed to dates by a spreadsheet" in said
    assert said.count("or rename them (--id-map)") == 2


def test_gene_sets_without_enough_genes_are_refused_before_the_search(study, tmp_path):
    genes = pd.read_csv(study / "symbols.tsv", sep="\t", index_col=0).index
    (tmp_path / "few.gmt").write_text("".join(f"{k}\t\t" + "\t".join(genes[k : k + 5]) + "\n" for k in (0, 20)))
    line = last_line("fit", study / "symbols.tsv", "--gene-sets", tmp_path / "few.gmt", "--out", tmp_path / "out")
    assert line == (
        "Error: none of the 2 gene sets has 10 to 500 genes in the data, as sets that are tested (they have 5 to 5): "
        "give other sets\n"
    )
    assert not (tmp_path / "out").exists()
