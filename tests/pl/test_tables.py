"""Enrichment dots."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

import netbic
from netbic import pl


def test_dots_are_terms_by_modules(terms):
    ax = pl.enrichment(terms, n_terms=9)
    names = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert columns == ["1", "2", "3"]
    dots = ax.collections[0]
    table = terms.set_index(["module", "term"])
    assert len(dots.get_offsets()) == terms["term"].isin(names).sum()
    for (x, y), shade, area, edge in zip(
        dots.get_offsets().tolist(), dots.get_array(), dots.get_sizes(), dots.get_edgecolors(), strict=True
    ):
        row = table.loc[int(columns[int(x)]) - 1, names[int(y)]]
        assert shade == pytest.approx(-np.log10(row["q_value"]), abs=1e-9)
        assert area == pytest.approx(15 + 145 * row["n_overlap"] / terms["n_overlap"].max())
        assert same_color(edge, "black") == (row["q_value"] <= 0.05)
    assert dots.get_clim()[0] == 0


def test_terms_are_the_modules_best_in_turn_and_read_from_the_top(terms):
    ax = pl.enrichment(terms, n_terms=3)
    best = terms.sort_values("q_value").drop_duplicates("module").sort_values("module")["term"].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == best
    assert sorted(best) == ["planted 0", "planted 1", "planted 2"]
    low, high = ax.get_ylim()
    assert low > high


def test_insignificant_terms_are_drawn_only_if_there_are_no_significant_ones(terms):
    names = [label.get_text() for label in pl.enrichment(terms, n_terms=20).get_yticklabels()]
    significant = set(terms.loc[terms["q_value"] <= 0.05, "term"])
    assert set(names) == significant
    assert len(significant) < terms["term"].nunique()
    rest = terms[~terms["term"].isin(significant)]
    ax = pl.enrichment(rest, n_terms=4)
    assert len(ax.get_yticklabels()) == 4
    assert ax.get_title(loc="left") == "no term is significant at 0.05"


def test_sides_have_separate_columns_and_zero_is_not_infinite(terms):
    table = pd.concat([terms.assign(side="down"), terms.assign(side="up")], ignore_index=True)
    table.loc[0, "q_value"] = 0.0
    ax = pl.enrichment(table)
    minus = "\N{MINUS SIGN}"
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"{k} {s}" for k in (1, 2, 3) for s in ("+", minus)]
    assert np.isfinite(ax.collections[0].get_array()).all()


def test_empty_and_wrong_tables(terms):
    ax = pl.enrichment(terms[:0])
    assert [text.get_text() for text in ax.texts] == ["no gene set shares a gene with a module"]
    with pytest.raises(netbic.InputError, match=r"no column 'n_overlap': give what enrichment\.gene_sets returns"):
        pl.enrichment(terms.drop(columns="n_overlap"))
