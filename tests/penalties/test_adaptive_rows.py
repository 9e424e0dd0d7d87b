"""Rows of centred data chosen by `AdaptiveSupport`: groups with free locations instead of others at zero."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from netbic import AdaptiveSupport, SparseGraphSVD
from netbic.penalties.adaptive import located_choice
from netbic.simulate import paper
from netbic.storage.models import module_arrays, module_from
from support.problems import quiet_fit

ROWS = {"row_penalty": AdaptiveSupport(clip=None)}


def shifted(shares, shift=1.5, seed=0, n=150, size=40, p=500):
    """X, and the samples in which each of some disjoint sets of genes is shifted."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, p))
    members = np.array([generator.permutation(n) < round(share * n) for share in shares])
    for number, rows in enumerate(members):
        X[np.ix_(rows, np.arange(number * size, (number + 1) * size))] += shift
    return X, members


def test_a_group_of_any_size_is_found():
    """With others at zero, most samples were members for a share of 0.3, and two samples for 0.5."""
    for share in (0.1, 0.3, 0.5):
        X, members = shifted([share])
        model = SparseGraphSVD(1, n_columns=40, **ROWS).fit(X)
        assert adjusted_rand_score(members[0], model.rows_[0]) > 0.95
        assert model.choices_["diagnostic"].tolist() == [""]
        assert model.choices_["size"][0] == model.rows_.sum() <= 80


def test_several_groups_are_found_one_after_another():
    """The others are subtracted with the members: a module is not found a second time in the others."""
    X, members = shifted([0.2, 0.3, 0.4, 0.5, 0.25], seed=1)
    model = SparseGraphSVD(5, n_columns=40, **ROWS).fit(X)
    found = [int(np.argmax(model.columns_[:, k * 40 : (k + 1) * 40].sum(axis=1))) for k in range(5)]
    assert sorted(found) == [0, 1, 2, 3, 4]
    for rows, module in zip(members, found, strict=True):
        assert adjusted_rand_score(rows, model.rows_[module]) > 0.95


@pytest.mark.parametrize("missing", ["error", "impute"])
def test_d_and_vectors_belong_together(missing):
    """Imputed entries of rows that are not members are predicted by their own scores, not by zero."""
    X, _ = shifted([0.3], seed=3)
    complete = SparseGraphSVD(1, n_columns=40, **ROWS).fit(X)
    lost = np.random.default_rng(0).random(X.shape) < (0.4 if missing == "impute" else 0)
    X = np.where(lost, np.nan, X)
    model = SparseGraphSVD(1, n_columns=40, missing=missing, **ROWS).fit(X)
    u, v, d = model.left_vectors_[:, 0], model.components_[0], model.singular_values_[0]
    centred = np.where(lost, 0, X - np.nanmean(X, axis=0))
    scores = centred @ v / (~lost @ v**2)  # of the regression on the observed entries of each row
    filled = np.where(lost, np.outer(scores, v), centred)
    assert np.linalg.norm(u) == pytest.approx(1)
    assert u @ filled @ v == pytest.approx(d)
    np.testing.assert_allclose(filled @ v, scores)
    np.testing.assert_allclose(u[model.rows_[0]], scores[model.rows_[0]] / d, rtol=1e-6)
    assert d == pytest.approx(complete.singular_values_[0], rel=0.05)


def test_imputed_entries_of_all_rows_are_deflated():
    """Of a matrix of rank one with missing entries, one module leaves nothing.

    Entries are missing in pairs of rows around the location of their group, as many in each group and column: observed
    columns have the mean of complete ones.
    """
    generator = np.random.default_rng(0)
    width = generator.normal(0, 0.3, 50)
    location = np.where(np.arange(50) < 15, 5.0, 0.0)
    scores = np.concatenate([location - width, location + width])
    X = np.outer(scores, generator.uniform(1, 2, 60))
    for column in X.T:
        pairs = np.append(generator.permutation(15)[:6], 15 + generator.permutation(35)[:14])
        column[np.append(pairs, 50 + pairs)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the second module is rounding error
        first, *others = SparseGraphSVD(2, n_columns=60, missing="impute", **ROWS).iter_fit(X)
    assert first.free_locations
    assert first.u.support.size == 30
    assert all(module.d < 1e-5 * first.d for module in others)


def test_order_scale_and_sign_do_not_matter():
    X, _ = shifted([0.35, 0.2], seed=4)
    order = np.random.default_rng(0).permutation(150)
    one = SparseGraphSVD(2, n_columns=40, **ROWS).fit(X)
    other = SparseGraphSVD(2, n_columns=40, **ROWS).fit(-8 * X[order])
    assert (other.rows_ == one.rows_[:, order]).all()
    assert (other.columns_ == one.columns_).all()
    np.testing.assert_allclose(other.left_vectors_, -one.left_vectors_[order], atol=1e-5)


def test_members_of_both_signs_and_others_at_zero_are_chosen_as_before():
    """The paper's modules: free locations are not used, with and without centring."""
    toy = paper(0.03, random_state=0)
    for center in (None, "columns"):
        adaptive = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport(), "center": center}
        (module,) = SparseGraphSVD(1, **adaptive).iter_fit(toy.X)
        assert not module.free_locations
        assert (module.u.full() != 0)[toy.u != 0].mean() > 0.9
    X, _ = shifted([0.3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most samples are taken for members
        (module,) = SparseGraphSVD(1, n_columns=40, center=None, **ROWS).iter_fit(X - X.mean(axis=0))
    assert not module.free_locations


def test_free_locations_need_others_off_zero():
    noise = np.random.default_rng(5).standard_normal(200)
    assert located_choice(noise) is None
    for members in (10, 40):
        both = np.append(np.resize([8.0, -8.0], members), np.zeros(200 - members))
        assert located_choice(noise + both) is None
        one_sided = noise + np.abs(both)
        assert located_choice(one_sided - one_sided.mean()).support.tolist() == list(range(members))


def test_samples_that_form_a_gradient_are_not_groups():
    generator = np.random.default_rng(6)
    X = generator.standard_normal((150, 300))
    X[:, :40] += generator.standard_normal(150)[:, None]
    with pytest.warns(UserWarning, match="do not identify how many samples"):
        (module,) = SparseGraphSVD(1, n_columns=40, **ROWS).iter_fit(X)
    assert not module.free_locations


def test_known_modules_are_followed_by_the_same_ones():
    X, _ = shifted([0.3, 0.4, 0.25], seed=7)
    parameters = {"n_columns": 40, **ROWS}
    found = list(SparseGraphSVD(3, **parameters).iter_fit(X))
    assert all(module.free_locations for module in found)
    (last,) = SparseGraphSVD(3, **parameters).iter_fit(X, known=found[:2])
    np.testing.assert_array_equal(last.v.full(), found[2].v.full())
    np.testing.assert_array_equal(last.u.full(), found[2].u.full())
    stored = {name: np.asarray(array) for name, array in module_arrays(found[0]).items()}
    assert module_from(stored).free_locations


def test_nonnegative_rows_are_above():
    X, members = shifted([0.3], seed=9)
    for sign in (1, -1):
        penalty = AdaptiveSupport(nonnegative=True, clip=None)
        model = quiet_fit(sign * X, n_components=1, n_columns=40, row_penalty=penalty)
        assert (model.left_vectors_ >= 0).all()
        assert adjusted_rand_score(members[0], model.rows_[0]) > 0.95
