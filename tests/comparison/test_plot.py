"""The heatmap of a comparison."""

import copy

import matplotlib
import numpy as np
import pytest

import netbic

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_matched_modules_are_outlined_and_in_order(model):
    other = copy.deepcopy(model)
    other.components_ = model.components_[[2, 0, 1]]
    other.left_vectors_ = model.left_vectors_[:, [2, 0, 1]]
    ax = netbic.pl.comparison(netbic.compare(model, other, labels=("$x", "y")))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "3", "1"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2", "3"]
    assert [patch.get_xy() for patch in ax.patches] == [(0, 0), (1, 1), (2, 2)]
    assert ax.get_ylabel() == "module of $x"
    values = np.asarray(ax.collections[0].get_array()).reshape(3, 3)
    np.testing.assert_allclose(np.diag(values), 1.0, atol=1e-9)
    ax.figure.canvas.draw()


def test_other_values_and_missing_ones(model):
    found = netbic.compare(model, model)
    assert netbic.pl.comparison(found, values="cosine").collections[0].get_clim() == (-1, 1)
    empty = netbic.pl.comparison(found, values="sample_jaccard")
    assert not empty.texts
    with pytest.raises(ValueError, match="values='overlap' is not known"):
        netbic.pl.comparison(found, values="overlap")
    with pytest.raises(TypeError, match=r"expected the result of netbic\.compare"):
        netbic.pl.comparison(model)
    none = copy.deepcopy(model)
    none.components_, none.left_vectors_ = model.components_[:0], model.left_vectors_[:, :0]
    with pytest.raises(ValueError, match="nothing to draw"):
        netbic.pl.comparison(netbic.compare(model, none))
