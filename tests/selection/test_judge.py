"""Verdicts on sets of features that were given."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic.selection import judge
from netbic.simulate import cohort

study = cohort(200, 800, n_modules=3, strength=1.2, random_state=0)
X, planted = study.expression, [np.flatnonzero(own) for own in study.genes]
genes = X.columns
rng = np.random.default_rng(0)
sets = {f"planted {k}": genes[own] for k, own in enumerate(planted)}
sets |= {f"random {k}": genes[rng.choice(800, 50, replace=False)] for k in range(6)}


def clusters_of_noise(noise, size, number):
    """For each of some features, those that are most correlated with it: what a clustering of noise may find."""
    R = np.corrcoef(noise.T)
    return {str(k): np.argsort(-np.abs(R[k]))[:size] for k in range(number)}


@pytest.mark.parametrize("found_elsewhere", [False, True])
def test_planted_sets_are_strong_and_random_ones_are_not(found_elsewhere):
    found = judge(X, sets, found_elsewhere=found_elsewhere, random_state=0)
    verdicts = dict(zip(found.table["set"], found.table["verdict"], strict=True))
    assert [verdicts[name] for name in sets if name.startswith("planted")] == ["strong"] * 3
    assert not {"strong", "moderate"} & {verdicts[name] for name in sets if name.startswith("random")}
    assert found.table["n_available"].tolist() == [len(own) for own in sets.values()]
    of_first = found.features[found.features["set"] == "planted 0"]
    assert set(of_first["feature"]) == set(sets["planted 0"])
    assert of_first["confidence"].mean() > 0.9


@pytest.mark.parametrize("n", [30, 100])
def test_sets_chosen_in_noise_because_they_are_correlated_there_are_doubtful(n):
    for seed in range(3):
        noise = np.random.default_rng(seed).standard_normal((n, 600))
        chosen = clusters_of_noise(noise, 25, 10)
        found = judge(noise, chosen, random_state=0).table
        assert not {"strong", "moderate"} & set(found["verdict"])


def test_names_positions_sparse_and_missing_values_give_the_same_verdicts():
    by_name = judge(X, {"one": sets["planted 0"]}, n_pairs=3, random_state=0).table
    by_position = judge(X.to_numpy(), {"one": planted[0]}, n_pairs=3, random_state=0).table
    pd.testing.assert_frame_equal(by_name, by_position)
    counts = np.maximum(X.to_numpy(), 0.0)
    dense, sparse = (
        judge(each, {"one": planted[0]}, n_pairs=3, random_state=0) for each in (counts, sp.csr_array(counts))
    )
    assert dense.table["verdict"].tolist() == sparse.table["verdict"].tolist() == ["strong"]
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    for missing in ("ignore", "impute"):
        judged = judge(holes, {"one": sets["planted 0"]}, missing=missing, n_pairs=3, random_state=0)
        assert judged.table["verdict"].tolist() == ["strong"]


def test_similar_sets_are_named():
    both = {"all": sets["planted 0"], "most": sets["planted 0"][:-5]}
    found = judge(X, both, n_pairs=3, random_state=0)
    assert found.table["verdict"].tolist() == ["strong", "strong"]
    assert found.table["closest"].tolist() == [None, "all"]
    assert "similar to those of 'all'" in found.table["reason"][1]
    assert repr(found).splitlines()[1].startswith("  all  Strong: ")


def test_sets_without_enough_features_are_left_out_and_unknown_ones_refused():
    with pytest.warns(UserWarning, match="1 of 2 sets have fewer than 5 genes in X and are not judged: 'few'"):
        found = judge(X, {"few": genes[:4], "one": sets["planted 0"]}, n_pairs=3, feature_name="gene")
    assert found.table["set"].tolist() == ["one"]
    assert found.table["n_genes"].tolist() == [len(planted[0])]
    with pytest.raises(ValueError, match=r"none of the 1 sets has at least 5 features in X \(at most 0\)"):
        judge(X, {"other": ["TP53"] * 9})
    with pytest.raises(ValueError, match="a set has the column 800: X has 800"):
        judge(X.to_numpy(), {"one": [1, 2, 3, 4, 800]})


def with_background():
    """Data with a background that most features follow, and a program that the first 40 follow as well."""
    rng = np.random.default_rng(0)
    background, program = rng.standard_normal((2, 150))
    Y = rng.standard_normal((150, 600)) + np.outer(background, rng.standard_normal(600))
    Y[:, :40] += 2.0 * program[:, None]
    return Y, program


def test_a_set_from_elsewhere_need_not_be_complete():
    Y, program = with_background()
    given = {"mixed": np.r_[0:25, 100:115]}  # part of the program, and others
    found = judge(Y, given, found_elsewhere=True, random_state=0)
    mixed = found.features.set_index("feature")["confidence"]
    assert found.table["verdict"][0] == "moderate"
    assert mixed[mixed.index < 25].mean() > 0.7  # although 15 other features follow the program as well
    assert mixed[mixed.index >= 100].mean() < 0.2
    assert np.corrcoef(found.scores["mixed"], program)[0, 1] > 0.8


def test_random_sets_are_doubtful_in_data_with_a_background():
    Y = with_background()[0]
    rng = np.random.default_rng(0)
    sizes = np.repeat([10, 30, 100], 10)
    given = {str(k): 40 + rng.choice(560, size, replace=False) for k, size in enumerate(sizes)}
    found = judge(Y, given, found_elsewhere=True, random_state=0).table
    assert set(found["verdict"]) == {"doubtful"}


def test_the_score_follows_most_of_its_set_and_opposite_signs_are_named():
    signs = np.where(np.arange(50) < 30, 1.0, -1.0)
    signal = np.random.default_rng(0).standard_normal(100)
    Y = np.random.default_rng(1).standard_normal((100, 400))
    Y[:, :50] += np.outer(signal, signs)
    Y[:, 49] -= 3 * signal  # the largest weight is not that of most genes
    frame = pd.DataFrame(Y, index=[f"s{k}" for k in range(100)])
    found = judge(frame, {"both": range(50), "one": range(30)}, found_elsewhere=True, random_state=0)
    assert found.table["opposite"].tolist() == [0.4, 0.0]
    assert found.table["reason"][0].endswith("40 % of its features have the opposite sign.")
    assert "opposite" not in found.table["reason"][1]
    assert found.scores.index.tolist() == frame.index.tolist()
    assert found.scores.corrwith(pd.Series(signal, frame.index)).min() > 0.9


def test_covariates_are_removed():
    batch = np.random.default_rng(0).integers(0, 2, 200)
    shifted = X + 3.0 * np.outer(batch, np.arange(800) < 100)
    chosen = {"batch": genes[:100]}
    assert judge(shifted, chosen, n_pairs=3, random_state=0).table["verdict"].tolist() == ["strong"]
    known = pd.DataFrame({"batch": batch.astype(str)}, index=X.index)
    assert judge(shifted, chosen, covariates=known, n_pairs=3, random_state=0).table["verdict"].tolist() == ["doubtful"]


def test_modules_of_a_fit_get_the_verdicts_of_the_fit():
    model = netbic.SparseGraphSVD(random_state=0).fit(X)
    own = {str(k): np.flatnonzero(line) for k, line in enumerate(model.columns_, start=1)}
    as_sets = judge(X, {name: genes[at] for name, at in own.items()}, random_state=0).table["verdict"]
    verdicts = netbic.selection.verdicts(model, X, random_state=0).table["verdict"]
    assert as_sets.tolist() == verdicts.tolist()
