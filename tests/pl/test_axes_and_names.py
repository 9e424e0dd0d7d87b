"""Properties of all pictures: given axes, text in vector files, names, lazy import of matplotlib."""

import html
import inspect
import io
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import netbic
from netbic import pl
from netbic.pl.base import apart, label_text

HOSTILE = [
    "$\\frac{",
    "a$b$c",
    "x" * 500,
    "two\nlines",
    "\u202eright to left",
    "\N{DNA DOUBLE HELIX}",
    "<script>",
    "\x00\ud800",
    "_a",
    "100%",
]


@pytest.fixture(scope="module")
def pictures(study, model, stable, tuned, terms):
    names = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    found = pd.DataFrame([(1, "age", "", "Spearman", 0.3, "Spearman rho", 0.1)], columns=names)
    days = np.arange(1.0, 1 + len(study.expression))
    times = pd.DataFrame({"days": days, "event": 1}, index=study.expression.index)
    survival = {"X": study.expression, "table": times, "survival": ("days", "event")}
    halves = study.expression.iloc[:, ::2], study.expression.iloc[:, 1::2]
    counted = netbic.SparseGraphSVD().fit(study.expression)
    two_tables = netbic.SparseGraphCCA(1, n_x=5, n_y=5).fit(*halves)
    return {
        "survival": lambda ax=None, **given: pl.survival(model, 1, **survival, ax=ax, **given),
        "associations": lambda ax=None, **given: pl.associations(found, ax=ax, **given),
        "comparison": lambda ax=None, **given: pl.comparison(netbic.compare(model, model), ax=ax, **given),
        "heatmap": lambda ax=None, **given: pl.heatmap(model, study.expression, ax=ax, **given),
        "network": lambda ax=None, **given: pl.network(model, ax=ax, **given),
        "loadings": lambda ax=None, **given: pl.loadings(model, ax=ax, **given),
        "scores": lambda ax=None, **given: pl.scores(model, study.expression, ax=ax, **given),
        "stability": lambda ax=None, **given: pl.stability(stable, ax=ax, **given),
        "tuning": lambda ax=None, **given: pl.tuning(tuned, ax=ax, **given),
        "enrichment": lambda ax=None, **given: pl.enrichment(terms, ax=ax, **given),
        "n_modules": lambda ax=None, **given: pl.n_modules(counted, ax=ax, **given),
        "pairs": lambda ax=None, **given: pl.pairs(two_tables, ax=ax, **given),
        "pair_loadings": lambda ax=None, **given: pl.pair_loadings(two_tables, ax=ax, **given),
    }


@pytest.mark.parametrize("name", pl.__all__)
def test_given_axes_are_drawn_into_and_text_stays_text_in_vector_files(pictures, name):
    figure = Figure(figsize=(9, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    ax, settings = left.subplots(), dict(matplotlib.rcParams)
    assert pictures[name](ax) is ax
    assert ax.has_data()
    assert not right.axes
    assert plt.get_fignums() == []  # neither pyplot nor its memory is touched
    ax = pictures[name](None)
    assert ax.figure.number in plt.get_fignums()
    assert dict(matplotlib.rcParams) == settings
    file = io.BytesIO()
    with plt.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    low, high = sorted(ax.get_ylim())
    ticks = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    texts = [label.get_text() for place, label in ticks if low <= place <= high]
    texts += [*ax.get_title(loc="left").split("\n"), ax.get_xlabel()]
    drawn = file.getvalue().decode()
    plain = [html.escape(text, quote=False) for text in texts if text and "$" not in text]
    assert not [text for text in plain if f">{text}<" not in drawn]
    cells = ("heatmap", "tuning", "network", "enrichment", "associations", "comparison")  # and colour bars
    assert ("<image" in drawn) == (name in cells)


@pytest.mark.parametrize("name", pl.__all__)
def test_titles_labels_and_sizes_are_arguments(pictures, name):
    given = {"title": "two\nlines of $x$", "xlabel": "", "ylabel": "y_1", "size": (7, 4.5)}
    assert list(inspect.signature(getattr(pl, name)).parameters)[-4:] == ["title", "xlabel", "ylabel", "size"]
    ax = pictures[name](**given)
    ax.figure.draw_without_rendering()  # a $ is a $
    assert [ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()] == ["two\nlines of $x$", "", "y_1"]
    assert ax.figure.get_size_inches().tolist() == [7, 4.5]
    with pytest.raises(netbic.InputError, match=r"size=\(7, 4.5\) is that of a new figure"):
        pictures[name](ax, **given)
    with pytest.raises(netbic.InputError, match="size=5: expected the width and the height"):
        pictures[name](size=5)
    with pytest.raises(TypeError, match="'titel' is not an argument of this plot"):
        pictures[name](titel="a")


def test_hostile_names_are_shortened_and_never_parsed(study):
    X = study.expression.iloc[:40, :10].copy()
    X.columns = pd.Index(HOSTILE, dtype=object)
    graph = netbic.Graph(np.ones((10, 10)) - np.eye(10))
    model = netbic.SparseGraphSVD(1, n_rows=10, n_columns=10, column_graph=graph.weights).fit(X.to_numpy())
    model.names_["columns"] = X.columns.to_numpy()
    terms = pd.DataFrame({"module": 1, "term": HOSTILE, "n_overlap": 3, "q_value": 0.01})
    for ax in (
        pl.heatmap(model, X.to_numpy()), pl.loadings(model), pl.network(model), pl.enrichment(terms)
    ):  # fmt: skip
        ax.figure.savefig(io.BytesIO(), format="svg")  # every warning is an error here
    labels = [label.get_text() for label in pl.loadings(model).get_yticklabels()]
    assert {"$\\frac{", "a$b$c", "two lines", "right to left", "<script>", "_a", "100%"} <= set(labels)
    assert max(map(len, labels)) <= 24


def test_names_are_cut_in_the_middle_and_those_kept_apart_have_the_highest_priorities():
    assert label_text("a" * 30 + "z" * 30, 10) == "aaaaaa…zzz"
    assert [label_text(name) for name in (17, "Ångström µ")] == ["17", "Ångström µ"]
    assert label_text("\N{DNA DOUBLE HELIX}!") == "\N{WHITE SQUARE}!"
    places, priority = np.array([0.0, 4.0, 10.0, 11.0, 30.0]), np.array([1.0, 3.0, 2.0, 9.0, 0.0])
    assert apart(places, priority, 5.0).tolist() == [1, 3, 4]
    assert apart(places, priority, 0.0).tolist() == [0, 1, 2, 3, 4]
    assert apart(np.empty(0), np.empty(0), 1.0).size == 0


def test_matplotlib_is_imported_only_when_needed(model, monkeypatch):
    code = "import sys, netbic; netbic.pl.heatmap; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(netbic.InputError, match=r"a plot needs matplotlib.pyplot: run pip install '.\[plot\]'"):
        pl.loadings(model)
