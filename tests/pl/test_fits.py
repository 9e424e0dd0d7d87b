"""Loadings."""

import numpy as np
import pytest
from matplotlib.colors import same_color

import netbic
from netbic import pl
from netbic.pl.base import NEGATIVE, POSITIVE


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_loadings_are_the_heaviest_members_by_name(study, model, axis):
    ax = pl.loadings(model, 1, axis=axis, n=8)
    weights = model.components_[1] if axis == "columns" else model.left_vectors_[:, 1]
    top = np.argsort(-np.abs(weights), kind="stable")[:8]
    names = study.expression.columns if axis == "columns" else study.expression.index
    assert [label.get_text() for label in ax.get_yticklabels()] == names[top].tolist()
    dots = np.asarray(ax.collections[1].get_offsets())
    np.testing.assert_allclose(dots, np.column_stack([weights[top], np.arange(8)]))
    lines = ax.collections[0].get_segments()
    np.testing.assert_allclose([line[:, 0] for line in lines], np.column_stack([np.zeros(8), weights[top]]))
    expected = [POSITIVE if weight > 0 else NEGATIVE for weight in weights[top]]
    assert all(same_color(*pair) for pair in zip(ax.collections[1].get_facecolors(), expected, strict=True))
    low, high = ax.get_ylim()
    assert low > 7 > 0 > high  # heaviest on top
    size, noun = (50, "genes") if axis == "columns" else (30, "samples")
    assert ax.get_title(loc="left") == f"Module 2: 8 of {size} {noun}"


def test_loadings_of_a_small_module_and_of_unnamed_data():
    toy = netbic.simulate.paper(0.02, random_state=0)
    model = netbic.SparseGraphSVD(1, n_rows=5, n_columns=3).fit(toy.X)
    ax = pl.loadings(model)
    top = np.argsort(-np.abs(model.components_[0]), kind="stable")[:3]
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(k) for k in top]
    assert ax.get_title(loc="left") == "Module 1: 3 genes"
    with pytest.raises(netbic.InputError, match="unknown axis='genes': choose 'columns'"):
        pl.loadings(model, axis="genes")
    with pytest.raises(ValueError, match="n=0: at least 1"):
        pl.loadings(model, n=0)
