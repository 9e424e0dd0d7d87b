"""The workbook holds the tables, and its text is never a formula, a date or a number."""

import warnings

import pandas as pd
import pytest

import netbic
from netbic import exports

openpyxl = pytest.importorskip("openpyxl")


def frames(path):
    return pd.read_excel(path, sheet_name=None, keep_default_na=False, na_values=[""])


def test_sheets_hold_the_tables(results, cohort, tmp_path):
    long = ", ".join(f"GENE{k:05}" for k in range(600))
    effects = {"effect": [0.9, float("nan")], "ci_high": [float("inf"), 1.0]}
    associations = pd.DataFrame({"module": [1, 2], "variable": ["=er", "pam50"], "level": [long, "b"], **effects})
    known = exports.Results(results.model, dict(results.tables) | {"associations": associations})
    sheets = frames(exports.write_workbook(known, tmp_path / "modules.xlsx"))
    assert list(sheets) == ["Summary", "Module 1", "Module 2", "Gene sets", "Associations", "Numbers"]
    assert sheets["Summary"]["module"].tolist() == [1, 2]
    assert sheets["Summary"]["name"].tolist() == results.names
    first = netbic.get.modules_df(results.model, 1)
    own = sheets["Module 1"]
    assert own["gene"].dropna().tolist() == first["name"].tolist()
    assert own["weight"].dropna().tolist() == pytest.approx(first["weight"].tolist())
    assert own["side"].dropna().tolist() == first["side"].tolist()
    scores = netbic.get.scores_df(results.model, cohort.expression)["module_1"].sort_values(ascending=False)
    assert own["sample"].tolist() == scores.index.tolist()
    assert own["score"].tolist() == pytest.approx(scores.tolist())
    sets = results.tables["gene_sets"]
    assert sheets["Gene sets"]["q_value"].tolist() == pytest.approx(sets["q_value"].tolist())
    assert sheets["Associations"]["variable"].tolist() == ["=er", "pam50"]
    assert sheets["Associations"]["effect"].isna().tolist() == [False, True]
    assert sheets["Associations"]["ci_high"].tolist() == [float("inf"), 1]
    assert sheets["Associations"]["level"][0] == long


def test_the_overview_has_the_surest_genes_and_the_strongest_findings(results, tmp_path):
    rows = [
        *((1, "er", "pos", "Mann-Whitney", 0.9, "AUC", 1e-9), (1, "er", "neg", "Mann-Whitney", 0.1, "AUC", 1e-9)),
        *((2, "age", "", "Spearman", 0.1, "Spearman rho", 0.5), (1, "os", "", "Cox score", 1.1, "hazard ratio", 0.4)),
        *(
            (2, "os", "", "Cox score", 2.0, "hazard ratio", 0.01),
            (1, "rfs", "", "Cox score", 3.0, "hazard ratio", 1e-4),
        ),
    ]  # of two endpoints, the first one is in the column
    columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    tests = pd.DataFrame(rows, columns=columns).assign(p=lambda table: table["q"])
    genes = netbic.get.modules_df(results.model).assign(axis="gene", found_again=1.0, kme=0.5)
    genes["confidence"] = genes.groupby("module").cumcount() / 1000  # the last ones are the surest
    known = exports.Results(results.model, dict(results.tables) | {"associations": tests, "modules": genes})
    found = pd.read_table(exports.write_overview(known, tmp_path / "overview.tsv", n_genes=3)).fillna("")
    surest = genes[genes["module"] == 1]["name"].tolist()[::-1][:3]
    assert found.loc[0, ["gene_1", "gene_2", "gene_3"]].tolist() == surest
    assert found["association"].tolist() == ["er: pos is higher (AUC 0.90, q = 1e-09)", ""]
    assert found["survival"].tolist() == [
        *("os: no association (hazard ratio 1.10, q = 0.4)", "os: the risk rises (hazard ratio 2.00, q = 0.01)")
    ]


def test_every_name_is_text(hostile, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that had to be changed
        book = openpyxl.load_workbook(exports.write_workbook(hostile, tmp_path / "modules.xlsx"))
        names = hostile.gene_names
    cells = [cell for cell in book["Module 1"]["A"][1:] if cell.value is not None]
    assert len(cells) == 40
    assert {cell.data_type for cell in cells} == {"s"}
    assert {cell.number_format for cell in cells} == {"@"}
    assert {"=1+1", "+1", "-2", "@SUM(A1)", "SEPT1", "1-Mar", "#N/A", "TRUE", "007", "1e5"} <= {c.value for c in cells}
    assert {cell.value for cell in cells} <= set(names)
    assert not [cell for sheet in book for row in sheet for cell in row if cell.data_type == "f"]


def test_without_scores_the_samples_have_weights_and_missing_modules_are_empty_cells(model, tmp_path):
    closest = pd.array([None, 1], dtype="Int64")
    known = exports.Results(model, {"summary": netbic.get.summary_df(model).assign(closest=closest)})
    sheets = frames(exports.write_workbook(known, tmp_path / "modules.xlsx"))
    assert sheets["Numbers"]["closest"].fillna(0).tolist() == [0, 1]
    assert sheets["Numbers"]["repeats"].isna().tolist() == [True, True]
    samples = netbic.get.modules_df(model, 2, axis="samples").sort_values("weight", ascending=False)
    assert sheets["Module 2"]["sample"].tolist() == samples["name"].tolist()
    assert sheets["Module 2"]["weight.1"].tolist() == pytest.approx(samples["weight"].tolist())
