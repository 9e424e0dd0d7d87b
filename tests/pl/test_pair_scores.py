"""The plot of the scores in two tables."""

import numpy as np
import pytest

import netbic
from support.pair_folders import model_of

pytest.importorskip("matplotlib")


def test_points_are_the_scores_and_the_title_has_the_correlation():
    model = model_of()[0]
    ax = netbic.pl.pairs(model, 1)
    drawn = ax.collections[0].get_offsets()
    np.testing.assert_array_equal(drawn, np.column_stack([model.x_scores_[:, 1], model.y_scores_[:, 1]]))
    assert ax.get_title(loc="left") == f"Pair 2: correlation {model.correlations_[1]:.2f}"
    assert ax.get_legend() is None


def test_labels_give_a_colour_and_an_entry_of_the_legend_each():
    model = model_of()[0]
    labels = np.array(["wild type"] * 15 + ["PPAR"] * 20 + [None] * 5, dtype=object)
    ax = netbic.pl.pairs(model, labels=labels)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing", "PPAR", "wild type"]
    assert [len(points.get_offsets()) for points in ax.collections] == [5, 20, 15]
    assert len({tuple(points.get_facecolor()[0]) for points in ax.collections}) == 3


def test_unusable_arguments_are_explained():
    model = model_of()[0]
    with pytest.raises(ValueError, match="pair=2 does not exist: pairs are numbered from 0"):
        netbic.pl.pairs(model, 2)
    with pytest.raises(ValueError, match="there are 3 labels but 40 samples"):
        netbic.pl.pairs(model, labels=["a", "b", "c"])
    with pytest.raises(TypeError, match="a SparseGraphPLS or SparseGraphCCA is needed"):
        netbic.pl.pairs(netbic.SparseGraphSVD())
