"""The page about pairs of two tables: both sides, the scores, and names that contain markup."""

import html
import re

import numpy as np
import pytest

import netbic
from netbic import InputError
from netbic.report.pairs import scatter
from support.commands import run_successfully
from support.pair_folders import model_of, saved


def test_the_page_shows_both_sides_of_every_pair(tmp_path):
    model = saved(tmp_path)
    page = netbic.report.write_report(tmp_path).read_text()
    weights = netbic.storage.weights_table(model)
    for _, own in weights.groupby("pair"):
        for name in own.groupby("table").head(15)["name"]:
            assert f"<bdi>{name}</bdi>" in page
    for value in model.correlations_:
        assert f"Scores of the samples in the fit: correlation {value:.2f}" in page
    assert page.count("<circle") == 2 * len(model.x_scores_)
    assert page.count("<title>") == 1 + 2 * len(model.x_scores_)  # names of the samples at the points
    assert "script-src 'none'" in html.unescape(page)
    assert "<script" not in page


def test_the_page_of_a_run_has_samples_settings_and_warnings(tmp_path):
    X, Y = model_of()[1:]
    for name, table in (("one", X), ("two", Y)):
        table.T.rename_axis("feature").to_csv(tmp_path / f"{name}.csv")
    out = tmp_path / "out"
    run_successfully("pairs", tmp_path / "one.csv", tmp_path / "two.csv", "--out", out, "--features1", 5)
    first = (out / "report.html").read_text()
    assert "<h1><bdi>one and two</bdi></h1>" in first
    assert "samples: 40 in one, 40 in two, 40 in both" in first
    assert re.search(r"<dt>features1</dt><dd><bdi>5</bdi></dd>", first)
    assert re.search(r"<dt>features2</dt><dd><bdi>3</bdi></dd>", first)
    run_successfully("report", out)
    assert (out / "report.html").read_text() == first


def test_columns_of_tests_are_shown_if_pairs_tsv_has_them(tmp_path):
    saved(tmp_path)
    table = netbic.storage.pairs_table(netbic.load(tmp_path))
    path = tmp_path / "pairs.tsv"
    tested = table.assign(
        verdict=["strong", "doubtful"], reason=["Strong: it is.", "Doubtful: it is."], carried_by="", found_again=1.0,
        held_out_correlation=[0.51, 0.02], held_out_low=[0.4, -0.3], held_out_high=[0.6, 0.3],
        p_value=[0.001, 0.4], n_permutations=[999, 60], confidence_1=0.9, confidence_2=0.8,
    )  # fmt: skip
    netbic.io.write_table(path, tested)
    page = netbic.report.write_report(tmp_path).read_text()
    assert "correlation 0.51 (95% interval 0.40 to 0.60) in samples not used, p &lt;= 0.001 with 999" in page
    assert "Of 2 pairs, 1 is strong, 1 is doubtful. 1 is stronger than expected by chance (p &lt;= 0.05)" in page
    assert "expect smaller ones" not in page
    for word in ("strong", "doubtful"):  # above, in the details and in the table
        assert page.count(f'<span class="verdict {word}">{word}</span>') == 3
    netbic.io.write_table(path, table.drop(columns=["d"]))
    with pytest.raises(InputError, match=r"pairs\.tsv: has no column d"):
        netbic.report.write_report(tmp_path)
    path.unlink()
    netbic.io.write_json(tmp_path / "alignment.json", {"samples": {"in_third": 3}})
    with pytest.raises(InputError, match=r"alignment\.json was not written by netbic"):
        netbic.report.write_report(tmp_path)


def test_a_model_without_pairs_has_a_page(tmp_path):
    with pytest.warns(UserWarning, match="found 0 of 1 pairs"):
        model = netbic.SparseGraphCCA(1, n_x=2, n_y=2).fit(np.ones((5, 4)), np.ones((5, 3)))
    netbic.save(model, tmp_path)
    assert "<b>0</b> pairs" in netbic.report.write_report(tmp_path).read_text()


def test_points_are_where_the_scores_are():
    random = np.random.default_rng(0)
    x, y = random.standard_normal(50), 3 * random.standard_normal(50) + 7
    drawn = scatter(x, y, np.arange(50), ("one", "two"))
    across, up = (np.array([point[axis] for point in drawn["points"]]) for axis in "xy")
    assert np.corrcoef(across, x)[0, 1] > 0.9999
    assert np.corrcoef(up, y)[0, 1] < -0.9999  # the vertical axis of drawings points down
    assert (across >= drawn["left"]).all()
    assert (across <= drawn["left"] + drawn["width"]).all()
    slope, start = np.polyfit(across, x, 1)
    for at, label in drawn["x_ticks"]:
        assert float(label.replace("\N{MINUS SIGN}", "-")) == pytest.approx(slope * at + start, abs=0.02)
    drawn = scatter(*random.standard_normal((2, 5000)), np.arange(5000), ("one", "two"))  # very many are drawn in part
    assert (len({point["text"] for point in drawn["points"]}), drawn["n"]) == (2000, 5000)
    constant = scatter(np.zeros(4), np.arange(4.0), np.arange(4), ("one", "two"))
    assert len({point["x"] for point in constant["points"]}) == 1
