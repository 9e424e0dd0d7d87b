"""Figures of the samples of a module: box plots, Kaplan-Meier curves, strips above the heatmap, lists to copy."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import netbic
from netbic.association.tests import kaplan_meier
from netbic.association.variables import Variable
from netbic.pl.base import LABELS, variable_colours
from netbic.report.charts import charts
from netbic.report.contents import for_script, gather
from netbic.report.pictures import SampleScores, box_plot, strips, subnetwork, survival_plot
from support import report_folders

TIME = f"<b>days</b>{report_folders.TRAP}"
NO_TESTS = pd.DataFrame({"test": [], "p": []})


@pytest.fixture(scope="module")
def contents(labelled_folder):
    return gather(labelled_folder)


def categorical(labels):
    table = pd.Series(labels, dtype="category")
    values = np.where(table.cat.codes < 0, np.nan, table.cat.codes)
    return Variable("label", "categorical", "", values, tuple(map(str, table.cat.categories)))


def drawn(strip):
    """The colours of a strip."""
    image = Image.open(io.BytesIO(base64.b64decode(strip["image"].partition(",")[2]))).convert("RGB")
    return ["#{:02X}{:02X}{:02X}".format(*image.getpixel((at, 0))) for at in range(image.width)]


def test_box_plots_are_quartiles():
    generator = np.random.default_rng(3)
    labels, scores = generator.choice(["a", "b", "c"], 60), generator.normal(size=60)
    plot = box_plot(scores, categorical(labels), 0.5)
    medians = [np.median(scores[labels == box["label"]]) for box in plot["boxes"]]
    assert medians == sorted(medians)
    for box in plot["boxes"]:
        own = scores[labels == box["label"]]
        assert box["n"] == own.size
        expected = plot["width"] * (np.quantile(own, [0, 0.25, 0.5, 0.75, 1]) - scores.min()) / np.ptp(scores)
        np.testing.assert_allclose(
            [box[end] for end in ("low", "first", "median", "third", "high")], expected, atol=0.06
        )
        points = [float(point.split()[0]) for point in box["points"].split("M")[1:]]  # one for each sample
        places = plot["width"] * (np.sort(own) - scores.min()) / np.ptp(scores)
        np.testing.assert_allclose(points, places, atol=0.6)
    numbers = np.array([float(label.replace("\N{MINUS SIGN}", "-")) for _, label in plot["ticks"]])
    assert 0 in numbers
    assert 3 <= len(numbers) <= 6
    places = plot["width"] * (numbers - scores.min()) / np.ptp(scores)
    np.testing.assert_allclose([place for place, _ in plot["ticks"]], places, atol=0.1)
    many = box_plot(np.tile(scores, 20), categorical(np.tile(labels, 20)), 0.5)
    assert plot["all"]
    assert not many["all"]
    assert 250 < sum(box["points"].count("M") for box in many["boxes"]) < 320
    assert box_plot(scores, categorical(["a"] * 60), 0.5) is None
    assert box_plot(scores, categorical([f"l{k % 20}" for k in range(60)]), 0.5) is None


def test_plots_begin_with_the_strongest_association(contents, folder_of_all_samples):
    for module in contents.modules:
        assert [plot["q"] for plot in module.plots] == sorted(plot["q"] for plot in module.plots)
        assert {plot["variable"] for plot in module.plots} == {"type", "site", "grade", TIME}
    grade = next(plot for plot in contents.modules[0].plots if plot["variable"] == "grade")
    assert [box["label"] for box in grade["boxes"]] == ["low", "middle", "high"]
    plain = gather(folder_of_all_samples)  # without a sample table
    assert for_script(plain)["labels"] == {}
    assert plain.sample_settings == []
    assert all(not module.plots and not module.strips for module in plain.modules)


def test_survival_curves_are_those_of_the_tested_groups(labelled_folder, contents):
    info, table = (netbic.io.read_table(labelled_folder / name) for name in ("sample_info.tsv", "associations.tsv"))
    plot = next(plot for plot in contents.modules[0].plots if plot["kind"] == "survival")
    row = table[(table["module"] == 1) & table["test"].str.startswith("log-rank")].iloc[0]
    known = info["event"].notna().to_numpy()
    assert row["effect_name"] == "hazard ratio " + "/".join(curve["name"] for curve in plot["curves"])
    assert (plot["log_rank"]["p"], sum(curve["n"] for curve in plot["curves"])) == (row["p"], 89)
    inside = contents.modules[0].scores.groups[known] == plot["curves"][0]["name"]
    times, events = info[TIME].to_numpy()[known], info["event"].to_numpy()[known] == 1
    left, width, height = (plot[side] for side in ("left", "width", "height"))
    ticks = [float(label.replace(",", "")) for _, label in plot["x_ticks"]]
    for curve, own in zip(plot["curves"], (inside, ~inside), strict=True):
        assert (curve["n"], curve["n_events"]) == (own.sum(), events[own].sum())
        steps = kaplan_meier(times[own], events[own]).query("n_events > 0")
        x, y = np.array(re.findall(r"H([\d.]+)V([\d.]+)", curve["path"]), dtype=float).T
        np.testing.assert_allclose((x - left) / width * times.max(), steps["time"], atol=0.001 * times.max())
        np.testing.assert_allclose(1 - y / height, steps["survival"], atol=0.001)
        assert curve["at_risk"] == [(times[own] >= tick).sum() for tick in ticks]


def curves(scores, groups, times):
    events = np.ones(len(times), dtype=bool)
    own = SampleScores(np.array(scores, dtype=float), np.array(groups, dtype=object))
    return survival_plot(own, Variable("t", "survival", "", np.array(times, float), events=events), 0.1, "", NO_TESTS)


def test_curves_say_which_samples_they_compare_at_round_times():
    for groups, split in (
        (["up", "up", "down", "", ""], "groups"), (["up", "", "", "", ""], "others"), ([""] * 5, "median")
    ):  # fmt: skip
        plot = curves([3, 2, -2, 0, 1], groups, [4, 3, 2, 1, 7])
        assert (plot["split"], plot["log_rank"]) == (split, None)
    assert curves([1, 1, 1], [""] * 3, [4, 3, 2]) is None  # one group
    for longest in (0.37, 1, 7, 12, 99, 2500, 9130):
        ticks = curves([0, 1], ["", ""], [longest / 2, longest])["x_ticks"]
        assert 3 <= len(ticks) <= 7
        assert ticks[0][1] == "0"
        assert longest * 0.6 < float(ticks[-1][1].replace(",", "")) <= longest


def test_strips_have_shades_for_numbers_and_the_colours_of_plots_for_labels():
    ages = Variable("age", "numeric", "", np.array([10.0, np.nan, 30, 20]))
    grades = Variable("grade", "ordered", "", np.array([0.0, 2, 1, 1]), ("low", "middle", "high"))
    labels = categorical(["a", "b", None, "a"])
    for variable, levels, order in (
        (ages, ["10", "20", "30", "missing"], [0, 3, 2, 1]),
        (grades, ["low", "middle", "high"], [0, 2, 1, 1]),
        (labels, ["a", "b", "missing"], [0, 1, 2, 0]),
    ):
        (strip,) = strips([variable], np.array([3, 2, 1, 0]), variable_colours([labels]))
        assert [label for label, _ in strip["legend"]] == levels
        assert drawn(strip) == [strip["legend"][at][1] for at in order[::-1]]
    assert strip["legend"][:2] == [("a", LABELS[0]), ("b", LABELS[1])]


def test_at_most_four_strips_the_strongest_first(labelled_folder, contents):
    table = netbic.io.read_table(labelled_folder / "associations.tsv")
    for module in contents.modules:
        own = table[(table["module"] == module.number) & (table["variable"] != TIME)]
        best = own.groupby("variable")["q"].min()
        assert best[[strip["variable"] for strip in module.strips]].is_monotonic_increasing
        assert [len(drawn(strip)) for strip in module.strips] == [module.heatmap.samples.size] * 4


def test_overlaps_are_of_members_or_of_scores():
    def jaccard(one, other):
        return (one & other).sum() / (one | other).sum()

    study = netbic.simulate.cohort(100, 200, n_modules=2, random_state=0)
    for n_rows, title in ((20, "Samples in common"), (None, "Similarity of sample scores")):
        model = netbic.SparseGraphSVD(2, n_rows=n_rows, n_columns=20).fit(study.expression)
        table = netbic.storage.summary_table(model, feature_name="gene").assign(diagnostics="")
        scores = np.asarray(model.transform(study.expression)).T
        found = {chart.name: chart for chart in charts(model, table, 0.05, scores)}
        assert found["samples"].title == title
        expected = jaccard(*model.rows_) if n_rows else np.abs(np.corrcoef(scores))[0, 1]
        for name, share in (("samples", expected), ("shared", jaccard(*model.columns_))):
            groups = found[name].drawing["groups"]
            assert [group["module"] for group in groups] == [1, 2]
            for group, other in zip(groups, (2, 1), strict=True):
                (mark,) = group["marks"]  # none for the module itself
                assert mark["share"] == pytest.approx(share, abs=0.001)  # whatever the largest is
                assert mark["text"].startswith(f"modules {group['module']} and {other}\n")
                assert group["text"].startswith(f"module {group['module']}, closest to module {other}\n")
                assert ("x" in mark) == (share >= 0.005)  # where the number is written


def test_settings_name_covariates_of_the_fit_and_of_the_tests(tmp_path):
    out = report_folders.labelled(tmp_path, "--covariates", "grade,age", "--adjust", "age")
    contents = gather(out)
    assert ("covariates removed from the data", "grade (3 levels), age") in contents.settings
    assert "covariates" not in dict(contents.settings)
    assert ("tests adjusted for", "age") in contents.sample_settings
    assert ("survival", f"{TIME}, event: event") in contents.sample_settings
    assert ("samples matched", "90 of 90") in contents.sample_settings
    assert contents.as_fitted.endswith("effects of the covariates removed")
    page = (out / "report.html").read_text()
    assert "Tests are adjusted for <bdi>age</bdi>" in page
    assert "the curves are not adjusted" in page
    assert "log-rank p" not in page


def test_a_histogram_counts_every_sample_once():
    rng = np.random.default_rng(0)
    scores = np.append(rng.normal(size=500), [np.nan, 8.0])
    groups = np.where(scores > 1, "up", np.where(scores < -1.5, "down", ""))
    drawn = SampleScores(scores, groups.astype(object)).histogram
    bars = pd.DataFrame(drawn["bars"])
    tallest = bars.groupby("x")["height"].sum().max()
    assert tallest == pytest.approx(drawn["height"], abs=0.3)
    for group in ("up", "down", ""):
        counted = bars.loc[bars["group"] == group, "text"].str.split().str[0].astype(int).sum()
        assert counted == np.count_nonzero((groups == group) & np.isfinite(scores))
    assert (drawn["low"], drawn["high"]) == (np.nanmin(scores), 8.0)
    assert drawn["zero"] == pytest.approx(-drawn["low"] / (drawn["high"] - drawn["low"]) * drawn["width"])
    assert SampleScores(np.full(3, np.nan), np.array(["", "", ""], dtype=object)).histogram is None


def test_labels_of_a_network_cover_neither_each_other_nor_nodes():
    study = netbic.simulate.cohort(150, 700, n_modules=1, random_state=0)
    members = np.flatnonzero(study.genes[0])
    drawn = subnetwork(
        study.network.align(study.expression.columns),
        members,
        np.linspace(1, 0.1, members.size),
        study.expression.columns,
    )
    boxes = []
    for label in drawn.labels:
        width = 15 * len(label["text"])
        left = label["x"] - {"start": 0, "middle": width / 2, "end": width}[label["anchor"]]
        boxes.append((left, label["y"] - 22, left + width, label["y"] + 6))
    assert len(boxes) > 5
    discs = [
        (n["x"] - n["radius"], n["y"] - n["radius"], n["x"] + n["radius"], n["y"] + n["radius"]) for n in drawn.nodes
    ]
    for at, (left, top, right, bottom) in enumerate(boxes):
        for x0, y0, x1, y1 in (*boxes[:at], *discs):
            assert left >= x1 - 1 or x0 >= right - 1 or top >= y1 - 1 or y0 >= bottom - 1  # positions are rounded
