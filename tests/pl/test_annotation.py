"""Annotation of samples: strips of heatmaps, lanes of histograms, their colours and legends."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import netbic
from netbic import pl
from netbic.pl.base import LABELS, annotation_strips, annotation_table, variable_colours
from netbic.pl.heatmap import module_order, standardised


def strips(table, colours=None):
    return annotation_strips(table, None, table.index, colours)


@pytest.fixture
def info(study):
    samples = study.expression.index
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], len(samples)), "age": rng.normal(60, 10, len(samples))})
    table = table.set_index(samples)
    table.iloc[:2] = None, np.nan
    return table


def test_strips_show_the_colours_of_the_samples_in_the_order_of_the_columns(study, model, info):
    X = study.expression
    ax = pl.heatmap(model, X, annotation=info.sample(frac=1, random_state=0))
    scores = netbic.get.scores_df(model, X).to_numpy().T
    order = module_order(standardised(scores, model.rows_)).members
    n_drawn = len(order)
    kind, age = sorted(
        (image for image in ax.images if image.get_array().shape[:2] == (1, n_drawn)),  # a row of colours
        key=lambda image: min(image.get_extent()[2:]),
    )
    known = {text.get_text(): patch.get_facecolor() for text, patch in zip(
        ax.get_legend().get_texts(), ax.get_legend().get_patches(), strict=True
    )}  # fmt: skip
    expected = [known["missing"] if pd.isna(value) else known[value] for value in info["kind"].iloc[order]]
    np.testing.assert_allclose(np.asarray(kind.get_array())[0], expected, atol=1e-6)
    values = info["age"].iloc[order].to_numpy()
    brightness = np.asarray(age.get_array())[0].sum(axis=1)
    seen = np.isfinite(values)
    assert np.corrcoef(np.argsort(np.argsort(values[seen])), np.argsort(np.argsort(brightness[seen])))[0, 1] > 0.99
    above = [max(each.get_extent()[2:]) for each in (kind, age)]  # the first one is on top
    assert above[0] < above[1] < min(ax.images[1].get_extent()[2:]) < ax.images[0].get_extent()[3]
    assert ax.get_ylim()[1] <= min(kind.get_extent()[2:])
    ax.figure.canvas.draw()
    legend, drawn = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.x0 > drawn.x1  # it covers nothing
    assert legend.y0 > 0


def test_a_series_and_columns_of_obs(study, model, info):
    anndata = pytest.importorskip("anndata")
    X = study.expression
    ax = pl.heatmap(model, X, modules=[3, 1], annotation=info["kind"], names=["a$b$", "b", "c"])
    ax.figure.canvas.draw()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["module", "3: c", "1: a$b$", "kind", "a", "b", "c", "missing"]
    ax = pl.heatmap(model, X, modules=[1], names=["a$b$", "b", "c"])
    assert ax.get_title(loc="left") == "Module 1: a$b$"
    assert ax.get_legend() is None
    adata = anndata.AnnData(X, obs=info)
    netbic.tl.modules(adata, n_components=2, n_rows=40, n_columns=60)
    ax = pl.heatmap(adata, annotation=["kind"])
    assert ax.get_legend().get_texts()[0].get_text() == "kind"
    with pytest.raises(netbic.InputError, match=r"'x' is not a column of obs \(there are: kind, age\)"):
        pl.heatmap(adata, annotation="x")
    with pytest.raises(netbic.InputError, match="annotation is given by names"):
        pl.heatmap(model, X, annotation="kind")


def test_colours_of_variables_differ_and_rare_levels_are_pooled():
    first, second = strips(pd.DataFrame({"x": list("aabb"), "y": list("cdcd")}))
    assert not {colour for _, colour in first.legend} & {colour for _, colour in second.legend}
    (many,) = strips(pd.DataFrame({"x": [f"l{k}" for k in range(1000)] + ["l0"] * 5 + [None]}))
    assert len(many.legend) == 21
    assert [label for label, _ in many.legend[-2:]] == ["other", "missing"]
    assert (many.codes == 19).sum() == 1000 - 19
    assert many.colours[-1] == dict(many.legend)["missing"]
    numbers, few, flags, empty = strips(
        pd.DataFrame({"n": np.arange(10.0), "f": [0, 1] * 5, "b": [True] * 10, "e": [None] * 10})
    )
    assert [numbers.is_numeric, few.is_numeric, flags.is_numeric, empty.is_numeric] == [True, False, False, False]
    assert [label for label, _ in few.legend] == ["0", "1"]
    assert [label for label, _ in empty.legend] == ["missing"]


def test_samples_are_matched_by_name():
    samples = np.array(["s1", "s2", "s3"], dtype=object)
    table = pd.DataFrame({"x": [1, 2]}, index=["s3", "s1"])
    assert annotation_table(table, None, samples)["x"].tolist()[::2] == [2, 1]
    assert np.isnan(annotation_table(table, None, samples)["x"].tolist()[1])
    assert annotation_table(pd.Series([1, 2, 3]), None, samples).to_numpy().ravel().tolist() == [1, 2, 3]
    with pytest.raises(netbic.InputError, match="has none of the samples"):
        annotation_table(table.set_axis(["a", "b"]), None, samples)
    with pytest.raises(netbic.InputError, match="'s1' twice"):
        annotation_table(table.set_axis(["s1", "s1"]), None, samples)
    with pytest.raises(TypeError, match="expected a table or series"):
        annotation_table(3, None, samples)


def test_lanes_hold_the_scores_of_each_level(study, model, info):
    X = study.expression
    values = netbic.get.scores_df(model, X)["module_2"]
    ax = pl.scores(model, X, 2, annotation=info["kind"])
    lanes = [[segment[0, 0] for segment in lane.get_segments()] for lane in ax.collections]
    for lane, level in zip(lanes, ["a", "b", "c"], strict=False):
        assert sorted(lane) == pytest.approx(sorted(values[info["kind"] == level]))
    assert sorted(lanes[3]) == pytest.approx(sorted(values[info["kind"].isna()]))
    assert [text.get_text() for text in ax.texts] == ["kind: a", "kind: b", "kind: c", "kind: missing"]
    assert min(ax.get_yticks()) >= 0
    assert ax.get_ylim()[0] < 0
    ax = pl.scores(model, X, 2, annotation=info[["age", "kind"]])
    low, high = info["age"].min(), info["age"].max()
    assert ax.texts[0].get_text() == f"age: {low:.4g} (dark) to {high:.4g} (light)"
    levels = {"a": "low", "b": "middle", "c": "high"}
    long = info["kind"].map(levels).astype(pd.CategoricalDtype([*levels.values()], ordered=True))
    ax = pl.scores(model, X, 2, annotation=long.rename("somatic " + "r" * 60))
    assert [text.get_text().split(": ")[1] for text in ax.texts] == ["low", "middle", "high", "missing"]
    assert all(text.get_text().startswith("somatic rr") for text in ax.texts)
    shades = [to_hex(lane.get_color()[0]) for lane in ax.collections]
    assert shades[:3] == [colour.lower() for _, colour in strips(long.to_frame())[0].legend[:3]]
    given = {"kind": {"a": "#000000", "b": "#111111", "c": "#222222"}}
    ax = pl.scores(model, X, 2, annotation=info["kind"], colours=given, names=["x", "y", "z"])
    assert to_hex(ax.collections[0].get_color()[0]) == "#000000"
    assert ax.get_title(loc="left").startswith("Module 2: y\n")
    table = netbic.selection.sample_groups(model, X)
    from_table, from_model = pl.scores(table, module=2), pl.scores(model, X, 2)
    assert from_table.get_title(loc="left") == from_model.get_title(loc="left")
    assert [bar.get_height() for bar in from_table.patches] == [bar.get_height() for bar in from_model.patches]
    with pytest.raises(netbic.InputError, match="module=9: modules are numbered from 1; this model has 3"):
        pl.scores(table, module=9)
    with pytest.raises(netbic.InputError, match="no column 'group'"):
        pl.scores(table.drop(columns="group"))


def test_colours_are_those_of_the_report_and_of_the_user():
    info = pd.DataFrame({"er": list("++--+-"), "kind": list("abcabc"), "size": [1, 2, 3, 1, 2, 3]})
    variables = netbic.association.read_variables(info)
    chosen = variable_colours(variables)
    for strip in strips(info)[:2]:
        assert dict(strip.legend) == chosen[strip.name]
    assert [colour for own in chosen.values() for colour in own.values()] == list(LABELS[:5])
    assert strips(info)[2].is_numeric
    own = strips(info, {"kind": {"b": "red"}})[1]  # the others have their colours
    assert dict(own.legend) == chosen["kind"] | {"b": "red"}


def test_strips_and_lanes_of_many_samples_mix_no_colours():
    many = netbic.simulate.cohort(1200, 120, n_modules=1, strength=2, random_state=0)
    fitted = netbic.SparseGraphSVD(1, n_columns=30).fit(many.expression)
    levels = np.random.default_rng(0).choice(["a", "b"], 1200, p=[0.9, 0.1])
    kind = pd.Series(levels, many.expression.index, name="kind")
    ax = pl.heatmap(fitted, many.expression, annotation=kind)
    (strip,) = (image for image in ax.images if image.get_array().shape[:2] == (1, 1200))
    shown = pd.Series([to_hex(colour) for colour in np.asarray(strip.get_array())[0]])
    ax.figure.canvas.draw()
    drawn = np.asarray(strip.make_image(ax.figure.canvas.get_renderer())[0])[..., :3].reshape(-1, 3)
    assert {to_hex(colour / 255) for colour in np.unique(drawn, axis=0)} <= {*shown}
    assert shown.value_counts().tolist() == kind.value_counts().tolist()
    assert (shown != shown.shift()).sum() <= 2 * 40  # sorted nearby: two runs in each part
    ax = pl.scores(fitted, many.expression, annotation=kind)
    assert [len(each.get_paths()) for each in ax.collections] == [1, 1]  # an area for each level, not 1,200 lines
    areas = [each.get_datalim(ax.transData) for each in ax.collections]
    assert areas[0].y0 > areas[1].y1 - 1e-9
