"""Heatmap of associations: signed effects, stars, which columns are drawn."""

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import netbic
from netbic import pl
from netbic.pl.tables import effect_grid

COLUMNS = ["module", "variable", "level", "test", "effect", "effect_name", "q"]


def table(*rows):
    return pd.DataFrame(rows, columns=COLUMNS)


MIXED = table(
    (1, "age", np.nan, "Spearman", -0.5, "Spearman rho", 0.02),
    (1, "age", np.nan, "Pearson", 0.9, "Pearson r", 0.0),
    (1, "type", "", "Kruskal-Wallis", 0.3, "epsilon squared", 0.0),
    (1, "type", "a", "Mann-Whitney", 0.75, "AUC", 0.001),
    (1, "type", "b", "Mann-Whitney", 0.499, "AUC", 0.9),
    (1, "type", "c", "Mann-Whitney", 0.25, "AUC", 0.06),
    (1, "type", "a", "Fisher, up", 7.0, "odds ratio", 0.0),
    (1, "er", "yes", "Mann-Whitney", 1.0, "AUC", 0.01),
    (1, "er", "no", "Mann-Whitney", 0.0, "AUC", 0.01),
    (1, "alive", "", "Cox score", 2**0.5, "hazard ratio per sd", 0.3),
    (1, "alive", "", "log-rank", 9.0, "hazard ratio up/down", 0.0),
    (3, "age", "", "Spearman", np.nan, "Spearman rho", np.nan),
    (3, "alive", "", "Cox score", 0.1, "hazard ratio per sd", 0.04),
)


def test_effects_are_signed_and_opposite_levels_are_drawn_once():
    ax = pl.associations(MIXED)
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert columns == ["age", "type: a", "type: b", "type: c", "er: yes", "alive"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "3"]
    values = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_allclose(values[0], [-0.5, 0.5, -0.002, -0.5, 1.0, 0.5])
    np.testing.assert_allclose(values[1], [np.nan] * 5 + [-1.0])
    assert ax.images[0].get_clim() == (-1, 1)
    written = {(round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in ax.texts}
    minus = "\N{MINUS SIGN}"
    assert written == {
        (0, 0): f"{minus}0.50*",
        (1, 0): "0.50***",
        (2, 0): "0.00",
        (3, 0): f"{minus}0.50",
        (4, 0): "1.00**",
        (5, 0): "0.50",
        (5, 1): f"{minus}1.00*",
    }


def test_doubtful_modules_are_marked_and_paler():
    ax = pl.associations(MIXED, names=["one", "two", "three"], verdicts={1: "strong", 2: "repeats 1", 3: "doubtful"})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1: one", "3: three (doubtful)"]
    opaque, pale = ax.images[0].get_alpha()
    significant = np.array([True, True, False, False, True, False])
    assert (opaque[significant] == 1).all()
    assert (opaque[~significant] < 0.5).all()
    assert (pale < 0.5).all()
    bar = next(each for each in ax.figure.axes if each is not ax)
    assert all(each.get_alpha() is None for each in bar.collections)  # the scale is that of the others
    sets = {"module": [1, 3], "term": ["a", "b"], "n_overlap": [5, 5], "q_value": [0.01, 0.01]}
    ax = pl.enrichment(pd.DataFrame(sets), verdicts={3: "doubtful"})
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "3 (doubtful)"]


def test_adjusted_differences_are_on_the_scale_of_the_auc():
    sizes = (1, 0, -2)
    rows = [
        (1, "x", level, "linear model, level", d, "standardised difference", 0.5)
        for level, d in zip("abc", sizes, strict=True)
    ]
    ax = pl.associations(table(*rows))
    values = np.asarray(ax.images[0].get_array())[0]
    bar = ax.figure.axes[-1].get_ylabel()
    assert bar.startswith("2 AUC \N{MINUS SIGN} 1, from standardised difference\n* q")
    np.testing.assert_allclose(values, 2 * norm.cdf(np.array(sizes) / np.sqrt(2)) - 1)  # P(N(d, 1) > N(0, 1))


def test_of_two_levels_the_one_that_is_higher_in_the_strongest_module_is_drawn():
    rows = [
        (module, "subtype", level, "Mann-Whitney", effect if level == "EP" else 1 - effect, "AUC", q)
        for module, effect, q in ((1, 0.6, 0.2), (2, 0.05, 1e-9), (3, 0.9, 1e-4))
        for level in ("EP", "MP")
    ]
    ax = pl.associations(table(*rows))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["subtype: MP"]
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array())[:, 0], [-0.2, 0.9, -0.8])
    long = table((1, "somatic rearrangement of the gene", "with a fusion partner", "Mann-Whitney", 0.6, "AUC", 0.2))
    (label,) = pl.associations(long).get_xticklabels()
    assert " ".join(label.get_text().split()) == "somatic rearrangement of the gene: with a fusion partner"


def test_names_count_from_one_and_the_most_significant_columns_are_kept_in_order():
    rows = [(1, "v", f"l{k:03d}", "Mann-Whitney", 0.6, "AUC", 1 / (k + 1)) for k in range(1000)]
    ax = pl.associations(table(*rows), n_columns=3)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["v: l997", "v: l998", "v: l999"]
    ax = pl.associations(MIXED, names=["$x_1$\n", "b", "c"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1: $x_1$", "3: c"]
    ax.figure.canvas.draw()
    with pytest.raises(netbic.InputError, match=r"2 names are given but the table has module 3"):
        pl.associations(MIXED, names=["a", "b"])


def test_tables_without_a_direction_and_other_tables():
    ax = pl.associations(MIXED[MIXED["effect_name"] == "odds ratio"])
    assert [text.get_text() for text in ax.texts] == ["no association has a direction"]
    with pytest.raises(netbic.InputError, match="no column 'effect'"):
        pl.associations(MIXED.drop(columns="effect"))


def test_an_annotated_object_has_its_own_table():
    study = netbic.simulate.cohort(60, 100, n_modules=1, strength=2, random_state=0)
    adata = anndata.AnnData(study.expression)
    netbic.tl.modules(adata, n_modules=1, n_genes=20, key_added="own")
    with pytest.raises(netbic.InputError, match=r"no table of associations: .* tl.associate for AnnData"):
        pl.associations(adata, key="own")
    adata.obs["type"] = np.where(np.arange(60) % 2, "a", "b")
    netbic.tl.associate(adata, keys=["type"], key="own")
    model = netbic.SparseGraphSVD(1, n_columns=20).fit(study.expression)
    found = netbic.associate(model, study.expression, adata.obs[["type"]])
    sources = (adata, adata.uns["own"]["associations"], found, found.table)
    (texts,) = {tuple(text.get_text() for text in pl.associations(source, key="own").texts) for source in sources}
    assert len(texts) == 1
    with pytest.raises(TypeError, match=r"table=int: expected the result of netbic.associate or its \.table"):
        pl.associations(3)


def test_two_levels_inside_the_levels_of_a_column_are_drawn_in_the_same_direction():
    """Red has one meaning in neighbouring columns, whatever is stronger inside each level."""
    rows = [
        (1, f"age within {cell}", cell, level, "Mann-Whitney", effect, "AUC", p)
        for cell, above, p in (("B", 0.9, 0.001), ("T", 0.2, 0.002))
        for level, effect in (("old", above), ("young", 1 - above))
    ]
    names = ["module", "variable", "within", "level", "test", "effect", "effect_name", "p"]
    table = pd.DataFrame(rows, columns=names).assign(q=lambda own: own["p"], n=40)
    assert effect_grid(table, 10).columns == ["age within B: old", "age within T: old"]


def test_the_title_says_that_cells_of_one_donor_are_not_independent():
    study = netbic.simulate.cohort(120, 300, n_modules=1, strength=2, random_state=0)
    adata = anndata.AnnData(study.expression)
    adata.obs["donor"] = [f"d{k % 12}" for k in range(120)]
    adata.obs["age"] = np.arange(120) % 7
    netbic.tl.modules(adata, n_modules=1, n_genes=40)
    netbic.tl.associate(adata, "age")
    netbic.tl.associate(adata, "age", by="donor", name="donors")
    title = pl.associations(adata).get_title(loc="left")
    assert "those of one donor are not independent" in " ".join(title.split())
    assert pl.associations(adata, name="donors").get_title(loc="left") == ""
    assert pl.associations(adata, title="mine").get_title(loc="left") == "mine"


def test_batches_come_last_with_their_strongest_level():
    random = np.random.default_rng(0)
    names = [f"s{k}" for k in range(60)]
    table = pd.DataFrame({"tmt_plex": np.arange(60) % 6, "stage": list("abc") * 20, "age": random.random(60)}, names)
    scores = pd.DataFrame({1: 3.0 * (table["tmt_plex"] == 4) + random.standard_normal(60)}, names)
    found = netbic.association.associate_scores(scores, None, table)
    grid = effect_grid(found.table, 24)
    assert grid.columns == ["stage: a", "stage: b", "stage: c", "age", "tmt_plex: 4"]
    assert grid.n_left_out == 5
