"""The penalties of docs/extending.md work with every feature, and errors name what a penalty lacks."""

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import netbic
from netbic import L0, SparseGraphSVD
from netbic.penalties import Kept, Penalty
from netbic.simulate import paper
from support.problems import searched_for_one

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
toy = paper(0.03, random_state=0)


def penalties_of_the_page():
    """A module with the classes that the page defines, so that they can be pickled."""
    cells = re.findall(r"```\{code-cell\} python\n(.*?)```", PAGE, re.DOTALL)
    page = types.ModuleType("penalties_of_the_page")
    sys.modules[page.__name__] = page
    for cell in cells:
        if "(Penalty):" in cell:
            exec(cell, page.__dict__)
    return page


page = penalties_of_the_page()
Above, PricePerEntry = page.Above, page.PricePerEntry
PENALTIES = pytest.mark.parametrize("penalty", [Above(0.07), PricePerEntry(0.008)], ids=["Above", "PricePerEntry"])


def model(penalty, **options):
    return SparseGraphSVD(1, n_rows=50, column_penalty=penalty, center=None, **options)


def is_fixed_point(fitted, penalty, X=toy.X, u=None):
    """Whether v is the normalised threshold of |X'u| (there is no graph)."""
    scores = np.abs(X.T @ (fitted.left_vectors_[:, 0] if u is None else u))
    kept = penalty.threshold(scores)
    expected = kept.values / np.linalg.norm(kept.values)
    same = np.array_equal(np.flatnonzero(fitted.columns_[0]), kept.support)
    return same and np.allclose(np.abs(fitted.components_[0, kept.support]), expected, atol=1e-5)


@PENALTIES
def test_fits_end_at_a_fixed_point(penalty):
    for options in ({}, {"n_init": 3, "random_state": 0}, {"solver": "aisp"}):
        fitted = model(penalty, **options).fit(toy.X)
        assert fitted.converged_.all()
        assert is_fixed_point(fitted, penalty)
    here, blocks = (model(penalty).fit(X) for X in (toy.X, da.from_array(toy.X, chunks=(30, 100))))
    np.testing.assert_allclose(blocks.components_, here.components_, atol=1e-9)
    assert clone(fitted).get_params()["column_penalty"] == penalty


@PENALTIES
def test_a_joint_search_ends_at_a_fixed_point(penalty):
    fitted = SparseGraphSVD(1, column_penalty=penalty, center=None, scale=False).fit(toy.X)
    searched = searched_for_one(toy.X)
    u = searched @ fitted.components_[0]
    assert fitted.converged_.all()
    assert is_fixed_point(fitted, penalty, searched, u / np.linalg.norm(u))


@PENALTIES
def test_tune_chooses_among_its_parameters_and_stability_fits_it_to_halves(penalty, tmp_path):
    field = {"Above": "level", "PricePerEntry": "price"}[type(penalty).__name__]
    grid = {"column_penalty": [type(penalty)(factor * getattr(penalty, field)) for factor in (0.2, 1.0, 2.0)]}
    options = {"n_folds": 3, "random_state": 0, "checkpoint": tmp_path / "tuning"}
    tuning = netbic.selection.tune(model(penalty), toy.X, grid, **options)
    assert tuning.best_params_["column_penalty"] in grid["column_penalty"]
    assert tuning.best_estimator_.column_penalty == tuning.best_params_["column_penalty"]
    assert len(set(tuning.cv_results_["mean_test_score"])) == 3
    again = netbic.selection.tune(model(penalty), toy.X, grid, **options)  # read from the checkpoint
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], tuning.cv_results_["mean_test_score"])
    found = netbic.selection.stability(model(penalty), toy.X, n_pairs=2, random_state=0)
    frequency = found.columns.frequency["module_1"].to_numpy()
    assert frequency[toy.v != 0].mean() > frequency[toy.v == 0].mean() + 0.4


@PENALTIES
def test_missing_values_are_imputed(penalty):
    X = toy.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    fitted = model(penalty, missing="impute").fit(X)
    assert fitted.converged_.all()
    imputed = np.where(np.isnan(X), fitted.singular_values_[0] * fitted.left_vectors_ @ fitted.components_, X)
    assert is_fixed_point(fitted, penalty, imputed)


@PENALTIES
def test_a_saved_model_transforms_as_before(penalty, tmp_path):
    fitted = model(penalty).fit(toy.X)
    netbic.save(fitted, tmp_path)
    loaded = netbic.load(tmp_path)
    with pytest.raises(ValueError, match="the code of this penalty was not saved"):
        loaded.fit(toy.X)
    np.testing.assert_array_equal(loaded.components_, fitted.components_)
    np.testing.assert_array_equal(loaded.transform(toy.X), fitted.transform(toy.X))
    assert loaded.score(toy.X) == fitted.score(toy.X)


# What the page does not show: penalties with a size, given or from the data


@dataclass(frozen=True, repr=False)
class Largest(Penalty):
    """L0 under another field name, without `resized`."""

    count: int

    def threshold(self, magnitudes):
        return L0(self.count).threshold(magnitudes)

    def size(self):
        return self.count


class Resizable(Largest):
    def resized(self, k):
        return Resizable(k)


@dataclass(frozen=True, repr=False)
class WithK(Penalty):
    k: int

    def threshold(self, magnitudes):
        return L0(self.k).threshold(magnitudes)

    def size(self):
        return self.k


@dataclass(frozen=True, repr=False)
class Half(Penalty):
    """Keep the entries above half of the largest score."""

    has_objective: ClassVar[bool] = False
    sizes_from_data: ClassVar[bool] = True

    def threshold(self, magnitudes):
        support = np.flatnonzero(magnitudes > 0.5 * magnitudes.max())
        return Kept(support, magnitudes[support])

    def fixed_for(self, magnitudes, *, core=False):
        return L0(self.threshold(magnitudes).support.size)


def test_a_user_defined_size_shrinks_with_its_axis_if_it_can():
    assert model(Largest(50)).fit(toy.X).columns_.sum() == 50
    with pytest.raises(NotImplementedError, match=r"^Largest has no resized\(k\): fits to a part of the data need it"):
        Largest(50).for_share(0.5)
    assert Resizable(50).for_share(0.5).size() == WithK(50).for_share(0.5).size() == L0(50).for_share(0.5).size() == 25


def test_what_a_penalty_must_implement_is_named():
    with pytest.raises(NotImplementedError, match=r"Penalty has no threshold\(magnitudes\)"):
        model(Penalty()).fit(toy.X)


def test_a_user_defined_penalty_may_take_sizes_from_the_data():
    joint = SparseGraphSVD(1, column_penalty=Half(), center=None).fit(toy.X)
    both = SparseGraphSVD(1, row_penalty=Half(), column_penalty=Half(), center=None).fit(toy.X)
    weights = np.abs(joint.components_[0, joint.columns_[0]])
    assert weights.min() > 0.5 * weights.max()
    assert is_fixed_point(both, L0(both.columns_.sum()))
    for fitted in (joint, both):
        assert fitted.converged_.all()
        assert fitted.columns_[0][toy.v != 0].mean() > 0.5 > fitted.columns_[0][toy.v == 0].mean()
