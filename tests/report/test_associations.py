"""The sample table in the report: cards and grid of associations."""

import re

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.report.associations import AssociationGrid, distinct_terms, findings
from netbic.report.contents import gather
from support import report_folders

TIME = f"<b>days</b>{report_folders.TRAP}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return report_folders.labelled(tmp_path_factory.mktemp("labelled"))


def test_cards_and_grid_show_the_tests(folder):
    contents, table = gather(folder), netbic.io.read_table(folder / "associations.tsv")
    grid = contents.associations
    sites = {f"site: {site}" for site in report_folders.SITES}
    assert set(grid.columns) == {"type: in", "age", "grade", TIME} | sites
    auc = table[(table["variable"] == "type") & (table["level"] == "in") & (table["effect_name"] == "AUC")]
    best = auc.loc[(auc["effect"] - 0.5).abs().idxmax()]
    cell = grid.rows[int(best["module"])][grid.columns.index("type: in")]
    assert cell.text == f"{2 * best['effect'] - 1:.2f}".replace("-", "\N{MINUS SIGN}") + "***"
    assert cell.colour == (6 if best["effect"] > 0.5 else 0)
    finding = contents.modules[int(best["module"])].findings[0]
    assert finding.startswith("type: in higher" if best["effect"] > 0.5 else "type: in lower")
    for cell in (cell for row in grid.rows for cell in row if cell):
        assert (cell.colour != 3) == cell.text.endswith("*")
    weak = grid.rows[int(best["module"])][grid.columns.index("age")]
    assert weak.colour == 3


def test_the_page_holds_them_as_text(folder):
    page = (folder / "report.html").read_text()
    assert page.index('id="glance"') < page.index('id="associations"') < page.index('id="details"')
    assert page.index('id="details"') < page.index('id="modules"') < page.index('id="background"')
    assert "<img src=x" not in page
    assert "<b>days" not in page
    assert len(re.findall("Scores by <bdi>type</bdi>", page)) == 2


def test_a_variable_without_levels_is_named_without_one(folder):
    for module in gather(folder).modules:
        assert not [text for text in module.findings if "nan" in text]
    table = netbic.io.read_table(folder / "associations.tsv")
    assert table.loc[table["variable"] == "age", "level"].isna().all()


def test_without_a_sample_table_there_is_neither(folder):
    assert AssociationGrid.of(None, 3) is None
    assert findings(None, 0) == []


def test_a_label_of_samples_that_are_up_and_down_is_found():
    samples = [f"s{k}" for k in range(60)]
    groups = pd.DataFrame({0: ["up"] * 10 + ["down"] * 10 + [""] * 40}, index=samples)
    scores = pd.DataFrame({0: np.repeat([5.0, -5, 0], [10, 10, 40]) + np.linspace(-1, 1, 60) ** 3}, index=samples)
    labels = pd.DataFrame({"type": ["in"] * 20 + ["out"] * 40}, index=samples)
    table = netbic.association.associate_scores(scores, groups, labels).table
    assert (table.loc[table["test"] == "Mann-Whitney", "q"] > 0.05).all()
    assert findings(table, 0)[0].startswith("type: in more often up and down (odds ratio \N{INFINITY}, q = ")


def test_gene_sets_that_repeat_one_before_are_left_out():
    terms = [{"genes": "A, B, C, D"}, {"genes": "A, B"}, {"genes": "C, X, Y"}, {"genes": "P"}, {"genes": "Q"}]
    assert distinct_terms(terms) == [terms[0], terms[2], terms[3]]
