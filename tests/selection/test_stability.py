"""Stability: frequencies equal those of separate fits to halves, and the error bound holds."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import netbic
from netbic import L0, Dense, SparseGraphSVD
from netbic.arrays import jaccard
from netbic.selection import stability
from netbic.selection.resampling import (
    correlation,
    cosines,
    fill_unobserved,
    geometric_mean,
    match_rows,
    partners,
)
from netbic.selection.stability import expected_false, threshold_for
from netbic.simulate import cohort, paper

toy = paper(0.03, random_state=0)
model = SparseGraphSVD(1, n_rows=50, n_columns=50, center=None)
study = cohort(200, 400, n_modules=2, module_genes=40, module_samples=40, strength=1.2, random_state=0)
pair = SparseGraphSVD(2, n_rows=40, n_columns=40, column_graph=study.network)
result = stability(pair, study.expression, n_pairs=10, random_state=0)


# Matching


def random_layers(n_modules, seed):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((60, n_modules)), generator.standard_normal((n_modules, 80))


def similarity(some, others):
    return geometric_mean(cosines(some[0].T, others[0].T), cosines(some[1], others[1]))


def test_modules_are_matched_in_any_order_and_with_any_signs():
    some, order = random_layers(4, 0), np.array([2, 0, 3, 1])
    matched, alike = match_rows(similarity(some, (-some[0][:, order], -5 * some[1][order])))
    np.testing.assert_array_equal(order[matched], np.arange(4))
    np.testing.assert_allclose(alike, 1)
    flipped = -some[0], some[1]  # another layer: what was high is low
    np.testing.assert_allclose(np.diag(similarity(some, flipped)), 0)


def test_the_square_of_the_similarity_is_the_cosine_of_the_layers():
    some, others = random_layers(2, 1), random_layers(3, 2)
    matrices = [[np.outer(left[:, k], right[k]) for k in range(len(right))] for left, right in (some, others)]
    for i, one in enumerate(matrices[0]):
        for j, other in enumerate(matrices[1]):
            cosine = (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)
            assert similarity(some, others)[i, j] ** 2 == pytest.approx(max(cosine, 0), abs=1e-12)
    assert similarity(some, others).max() < 0.5  # those of unrelated layers


def test_more_modules_than_partners():
    matched, alike = match_rows(np.array([[0.9], [0.8], [0.95]]))
    assert matched.tolist() == [-1, -1, 0]
    assert alike.tolist() == [0, 0, 0.95]
    assert partners(np.zeros((2, 0))).tolist() == [-1, -1]
    masks = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(jaccard(masks, np.array([[True, False, True], [False, False, False]])), [1 / 3, 0])
    assert correlation(np.ones((1, 5)), np.eye(5)[:1]) == 0


# Frequencies


def test_frequencies_are_those_of_plain_fits_to_disjoint_halves():
    """For any halves: one pair is two fits, and the two halves together are all the data."""
    seen = []
    original = SparseGraphSVD.fit

    def watched(self, X, y=None):
        seen.append(np.asarray(X))
        return original(self, X, y)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparseGraphSVD, "fit", watched)
        found = stability(model, toy.X, n_pairs=1, random_state=3)
    whole, *halves = seen
    assert [X.shape for X in halves] == [(50, 100)] * 2 + [(100, 50)] * 2
    np.testing.assert_array_equal(np.sort(np.vstack(halves[:2]), axis=0), np.sort(whole, axis=0))
    np.testing.assert_array_equal(np.sort(np.hstack(halves[2:]), axis=1), np.sort(whole, axis=1))
    by_samples = [SparseGraphSVD(1, n_rows=25, n_columns=50, center=None).fit(X).columns_[0] for X in halves[:2]]
    by_features = [SparseGraphSVD(1, n_rows=50, n_columns=25, center=None).fit(X).rows_[0] for X in halves[2:]]
    np.testing.assert_array_equal(found.columns.frequency["module_1"], np.mean(by_samples, axis=0))
    np.testing.assert_array_equal(found.rows.frequency["module_1"], np.mean(by_features, axis=0))
    own = found.reference.columns_[0]
    overlap = [(own & mask).sum() / (own | mask).sum() for mask in by_samples]
    assert found.columns.overlap[0] == pytest.approx(np.mean(overlap))
    assert found.columns.selected.tolist() == [50]


def test_planted_members_are_stable_and_others_are_not():
    assert result.columns.found.min() > 0.9
    for masks, planted in ((result.columns.members, study.genes), (result.rows.members, study.samples)):
        scores = netbic.simulate.recovery(masks, planted)
        assert (scores["precision"] == 1).all()
        assert (scores["sensitivity"] > 0.85).all()
    table = result.table
    assert table["stable_columns"].tolist() == result.columns.members.sum(axis=1).tolist()
    assert table["false_columns"].iloc[0] == expected_false(0.75, 40, 400, 10)
    assert result.verdict.startswith("2 of 2 modules are found again in most halves; per module, ")
    assert "at most 4" in result.verdict


@pytest.mark.nightly
def test_noise_has_few_stable_members_and_the_bound_holds():
    kept = []
    for seed in range(8):
        X = np.random.default_rng(seed).standard_normal((60, 60))
        noise = stability(SparseGraphSVD(1, n_rows=20, n_columns=20), X, n_pairs=10, threshold=0.6, random_state=seed)
        kept.append([noise.columns.members.sum(), noise.rows.members.sum()])
    assert np.mean(kept, axis=0).max() < expected_false(0.6, 20, 60, 10)


def test_frequencies_are_not_divided_by_halves_that_do_not_find_the_module():
    X = np.random.default_rng(0).standard_normal((60, 300))
    X[:20, :40] += 0.7
    part = stability(SparseGraphSVD(1, n_columns=40), X, n_pairs=25, random_state=0).columns
    assert 0.75 <= part.found[0] < 1  # some halves do not find it
    assert part.pairs_found[0] < part.n_pairs == 25
    frequency = part.frequency["module_1"]
    assert frequency.max() == 1  # not found[0]
    q, n = part.selected[0] / part.found[0], int(part.pairs_found[0])
    assert part.false[0] == expected_false(0.75, q, 300, n)
    np.testing.assert_array_equal(part.members[0], frequency >= 0.75)
    # No member is stable if the module is found less often than the threshold.
    X = np.random.default_rng(3).standard_normal((60, 300))
    part = stability(SparseGraphSVD(1, n_columns=40), X, n_pairs=10, random_state=0).columns
    assert part.found[0] < 0.75
    assert not part.members.any()
    assert part.false[0] == 0


def test_names_and_threads_and_storage_make_no_difference():
    X, few = study.expression.to_numpy(), {"n_pairs": 3, "random_state": 0}
    named = stability(pair, study.expression, **few)
    assert named.columns.frequency.index.tolist() == study.expression.columns.tolist()
    assert named.rows.frequency.index.tolist() == study.expression.index.tolist()
    nameless = SparseGraphSVD(**pair.get_params() | {"column_graph": study.network.weights})
    for values, n_jobs in ((X, 2), (sp.csr_array(X), 1)):
        plain = stability(nameless, values, **few, n_jobs=n_jobs)
        np.testing.assert_array_equal(plain.columns.frequency, named.columns.frequency)
        np.testing.assert_array_equal(plain.rows.frequency, named.rows.frequency)
        np.testing.assert_array_equal(plain.columns.overlap, named.columns.overlap)


def test_missing_entries():
    X = toy.X.copy()
    generator = np.random.default_rng(0)
    X[generator.random(X.shape) < 0.05] = np.nan
    X[:98, 60] = np.nan  # in one half at most one entry, in the other perhaps none
    X[70, 2:] = np.nan
    for missing in ("ignore", "impute"):
        tolerant = SparseGraphSVD(1, n_rows=50, n_columns=50, missing=missing, max_iter=50)
        found = stability(tolerant, X, n_pairs=3, random_state=0)
        assert found.columns.frequency.iloc[:50, 0].mean() > 0.8
        assert found.columns.frequency.iloc[60, 0] < 0.5
    # Rows and columns of a half without any observed entry are means.
    part = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [3.0, np.nan, 5.0]])
    np.testing.assert_array_equal(fill_unobserved(part), [[1, 3, 3], [2, 3, 4], [3, 3, 5]])
    assert np.isnan(part).sum() == 5


# Thresholds


def test_the_threshold_follows_from_the_error_allowed():
    strict, loose = result.at(max_false=1.0), result.at(max_false=8.0)
    assert (strict.columns.threshold > loose.columns.threshold).all()
    assert (strict.columns.false <= 1).all()
    assert (strict.columns.members <= loose.columns.members).all()
    np.testing.assert_array_equal(result.at(0.75).columns.members, result.columns.members)
    # No member is stable if no threshold achieves the error.
    none = result.at(max_false=1e-3)
    assert np.isinf(none.columns.threshold).all()
    assert not none.columns.members.any()
    assert (none.table["false_columns"] == 0).all()
    assert "no threshold achieves the requested error" in none.verdict


# Bounds on false members


def test_bounds_calculated_by_hand():
    # 20 of 88: 400 / 88 * 4 * (.2 + .01) / 1.02
    assert expected_false(0.8, 20, 88, 50) == pytest.approx(3.743316, abs=1e-6)  # as R's stabs prints it
    # 2 of 9 at .75: 4 / 9 / (2 * (.5 - .01))
    assert expected_false(0.75, 2, 9, 50) == pytest.approx(4 / 9 / 0.98)
    # Frequencies among 2 B = 10 halves are tenths: .71 requires .8
    assert expected_false(0.71, 3, 100, 5) == expected_false(0.8, 3, 100, 5)
    # No more than q / tau can reach tau at all
    assert expected_false(0.6, 90, 100, 50) == pytest.approx(150)


def test_a_larger_threshold_never_has_a_larger_bound():
    bounds = [expected_false(k / 40, 12, 150, 20) for k in range(21, 41)]
    assert np.all(np.diff(bounds) <= 1e-12)
    assert threshold_for(bounds[7], 12, 150, 20) == 28 / 40
    assert threshold_for(0.5 * bounds[-1], 12, 150, 20) == np.inf


def worst_unimodal_tail(mean, at_least, highest):
    """By linear programming: the largest tail of laws on 0 ... highest with this mean and a mode at any one place."""
    places = np.arange(highest + 1)
    tails = []
    for mode in places:
        rising = np.eye(highest + 1)[:mode] - np.eye(highest + 1)[1 : mode + 1]
        falling = np.eye(highest + 1)[mode + 1 :] - np.eye(highest + 1)[mode:-1]
        done = linprog(
            -(places >= at_least).astype(float),
            A_ub=np.vstack([rising, falling]), b_ub=np.zeros(highest),
            A_eq=np.vstack([np.ones(highest + 1), places]), b_eq=[1, mean],
        )  # fmt: skip
        tails.append(-done.fun if done.status == 0 else 0.0)
    return max(tails)


def test_the_unimodal_bound_is_attained():
    for q, halves in ((20, 15), (20, 19), (50, 18), (5, 13), (30, 20)):
        worst = worst_unimodal_tail((q / 100) ** 2 * 10, halves - 10, 10)
        assert expected_false(halves / 20, q, 100, 10) == pytest.approx(100 * worst, rel=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_random_selections_respect_the_bounds(shared):
    """Halves that select at random; `shared`: how similar the selections of different pairs (of the same data) are."""
    generator, p, q, n_pairs = np.random.default_rng(1), 100, 20, 25
    kept = {0.6: [], 0.75: [], 0.9: []}
    for _ in range(300):
        own = generator.standard_normal((1, 2, p))  # the two halves of a pair must stay independent of each other
        scores = np.sqrt(shared) * own + np.sqrt(1 - shared) * generator.standard_normal((n_pairs, 2, p))
        chosen = scores >= np.sort(scores, axis=2)[..., -q, None]
        for threshold, counts in kept.items():
            counts.append((chosen.mean(axis=(0, 1)) >= threshold).sum())
    for threshold, counts in kept.items():
        assert np.mean(counts) <= expected_false(threshold, q, p, n_pairs)
    assert np.mean(kept[0.6]) > (1.0 if shared else -1.0)


# Bad input


def test_bad_and_unusual_input():
    for options, message in (
        ({"n_pairs": 0}, "n_pairs=0: at least 1"),
        ({"threshold": 0.5}, "threshold=0.5"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"threshold": 0.8, "max_false": 1}, "threshold and max_false are given"),
        ({"max_false": -1}, "max_false=-1: a number above 0"),
        ({"model": SparseGraphSVD(1, column_penalty=Dense())}, "keeps all samples and features"),
        ({"model": SparseGraphSVD(1, n_columns=2), "X": toy.X[:3]}, "X has 3 samples: at least 4 are needed"),
        ({"model": SparseGraphSVD(1, n_rows=2), "X": toy.X[:, :3]}, "X has 3 features: at least 4 are needed"),
        ({"X": np.where(np.eye(100) > 0, np.nan, toy.X)}, "missing='ignore'"),
    ):
        with pytest.raises(ValueError, match=message):
            stability(**{"model": model, "X": toy.X} | options)
    wide = stability(SparseGraphSVD(1, column_penalty=L0(50, nonnegative=True)), toy.X, n_pairs=2, random_state=0)
    assert wide.rows is None  # all samples are kept
    tall = stability(SparseGraphSVD(1, n_rows=50), toy.X, n_pairs=2, random_state=0)
    assert [*tall.parts] == ["columns", "rows"]  # sizes of features come from the data
    # Constant data
    empty = stability(SparseGraphSVD(1, n_rows=5, n_columns=5), np.ones((20, 30)), n_pairs=2)
    assert empty.table.empty
    assert empty.verdict.startswith("No module was found")
