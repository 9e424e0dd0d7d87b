"""The sample table in the report: cards, grid and box plots."""

import re

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.report.associations import AssociationGrid, box_plots, distinct_terms, findings
from netbic.report.contents import gather
from support.commands import run

LABELS = ["a<b>", "b", "none"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fit with a sample table: a label that goes with the first module, a hostile one, and an age."""
    at = tmp_path_factory.mktemp("associations")
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.standard_normal((90, 200)), columns=[f"g{k}" for k in range(200)])
    X.index = [f"s{k}" for k in range(90)]
    X.iloc[:30, :40] += 2.0
    X.T.to_csv(at / "x.tsv", sep="\t")
    labels = pd.DataFrame({"type": ["in"] * 30 + ["other"] * 60, "site": generator.choice(LABELS, 90)}, index=X.index)
    labels["age"] = generator.normal(60, 10, 90)
    labels.rename_axis("sample").to_csv(at / "labels.tsv", sep="\t")
    options = ["--modules", "2", "--genes", "40", "--sample-info", str(at / "labels.tsv"), "--no-verdict"]
    done = run("fit", str(at / "x.tsv"), "--out", str(at / "out"), *options)
    assert done.exit_code == 0, done.output
    return at / "out"


def test_cards_and_grid_show_the_tests(folder):
    contents, table = gather(folder), netbic.io.read_table(folder / "associations.tsv")
    grid = contents.associations
    assert set(grid.columns) == {"type: in", "site: a<b>", "site: b", "site: none", "age"}
    auc = table[(table["variable"] == "type") & (table["level"] == "in") & (table["effect_name"] == "AUC")]
    best = auc.loc[(auc["effect"] - 0.5).abs().idxmax()]
    cell = grid.rows[int(best["module"])][grid.columns.index("type: in")]
    assert cell.text == f"{2 * best['effect'] - 1:.2f}".replace("-", "\N{MINUS SIGN}") + "***"
    assert cell.colour == (6 if best["effect"] > 0.5 else 0)
    finding = contents.modules[int(best["module"])].findings[0]
    assert finding.startswith("type: in higher" if best["effect"] > 0.5 else "type: in lower")
    weak = grid.rows[int(best["module"])][grid.columns.index("age")]
    assert weak.colour == 3


def test_the_page_holds_them_as_text(folder):
    page = (folder / "report.html").read_text()
    assert page.index('id="glance"') < page.index('id="associations"') < page.index('id="details"')
    assert page.index('id="details"') < page.index('id="modules"') < page.index('id="background"')
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert len(re.findall("Scores by <bdi>type</bdi>", page)) == 2


def test_box_plots_are_quartiles(folder):
    scores = netbic.io.read_table(folder / "samples.tsv").query("module == 0")["score"].to_numpy()
    info, table = (netbic.io.read_table(folder / name) for name in ("sample_info.tsv", "associations.tsv"))
    plot = next(plot for plot in box_plots(scores, info, table) if plot.variable == "type")
    low, high = scores.min(), scores.max()
    for box in plot.boxes:
        own = scores[(info["type"] == box.label).to_numpy()]
        assert box.n == own.size
        expected = plot.width * (np.quantile(own, [0, 0.25, 0.5, 0.75, 1]) - low) / (high - low)
        np.testing.assert_allclose(box[2:], expected, atol=0.06)
    assert not box_plots(scores[:-1], info, table)  # of other samples


def test_without_a_sample_table_there_is_neither(folder):
    assert AssociationGrid.of(None, 3) is None
    assert findings(None, 0) == []


def test_gene_sets_that_repeat_one_before_are_left_out():
    terms = [{"genes": "A, B, C, D"}, {"genes": "A, B"}, {"genes": "C, X, Y"}, {"genes": "P"}, {"genes": "Q"}]
    assert distinct_terms(terms) == [terms[0], terms[2], terms[3]]
