"""Verdicts: planted modules are strong, noise and graph artefacts are doubtful, repeated signals are named."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import Graph, SparseGraphSVD
from netbic.estimators.studies import coherence
from netbic.selection import verdicts
from netbic.selection.confidence import confidence
from netbic.selection.halves import Part, Splits, judged_features, resized
from netbic.selection.independence import successive_correlation
from netbic.selection.technical import SampleProperties, carriers, depth_of


def two_groups(n=80, p=300, k=30, strength=1.5, seed=0):
    """Noise with two modules: two disjoint sets of genes, each shifted in a third of the samples."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, p))
    for module in range(2):
        rows = generator.choice(n, n // 3, replace=False)
        X[np.ix_(rows, np.arange(k) + module * k)] += strength * generator.choice([-1, 1], k)
    return X


def fitted(X, n_components=3, **parameters):
    parameters = {"n_columns": 30, "deflation": "schur", "random_state": 0} | parameters
    return SparseGraphSVD(n_components, **parameters).fit(X)


def cliques(p, size=3):
    """Disjoint cliques of neighbouring nodes."""
    groups = np.arange(p) // size
    linked = groups[:, None] == groups
    np.fill_diagonal(linked, False)
    return Graph(sp.csr_array(linked.astype(float)))


X = two_groups()
model = fitted(X)
found = verdicts(model, X, random_state=0)


# Measures


def test_time_series_without_groups_are_noticed():
    noise = np.random.default_rng(0).standard_normal((200, 40))
    series = np.empty_like(noise)
    series[0] = noise[0]
    for time in range(1, 200):
        series[time] = 0.8 * series[time - 1] + 0.6 * noise[time]
    holes = np.where(np.random.default_rng(1).random(series.shape) < 0.05, np.nan, series)
    assert abs(successive_correlation(noise)) < 0.1
    assert abs(successive_correlation(noise + np.repeat([0, 5], 100)[:, None])) < 0.1  # two batches
    assert 0.7 < successive_correlation(series) < 0.85
    assert 0.6 < successive_correlation(pd.DataFrame(holes)) < 0.85
    assert successive_correlation(sp.csr_array(series)) == 0
    model = fitted(series, 2, n_columns=10)
    with pytest.warns(
        UserWarning, match=r"successive samples are alike .* give replicates, or blocks of time points, as `groups`"
    ):
        verdicts(model, series, n_pairs=3, random_state=0)
    verdicts(model, series, n_pairs=3, groups=np.arange(200) // 10, random_state=0)  # without a warning


def test_coherence_is_1_for_orthogonal_genes_and_their_number_for_equal_ones():
    generator = np.random.default_rng(0)
    orthogonal = np.linalg.qr(generator.standard_normal((20, 5)))[0] * np.array([1, 2, 3, 4, 5])
    weights = generator.standard_normal((5, 3))
    outlier = np.vstack([orthogonal, 100 * np.sign(weights[:, 0])])  # moves all genes together, and is left out
    assert coherence(outlier, weights[:, :1]) == pytest.approx(1)
    np.testing.assert_allclose(
        coherence(orthogonal, weights), [coherence(orthogonal, w)[0] for w in weights.T[..., None]]
    )
    equal = np.outer(generator.standard_normal(20), np.ones(5))
    assert coherence(equal, np.ones((5, 1))) == pytest.approx(5)
    assert coherence(np.zeros((20, 5)), weights).tolist() == [0, 0, 0]


def test_columns_of_a_part_are_centred_and_scaled():
    part = Part(X[::2] + 5, SparseGraphSVD(scale=True))
    columns = part.columns(np.array([3, 40, 200]))
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(columns.std(axis=0), 1)
    np.testing.assert_allclose(part.lengths**2, 40)


def test_measures_of_one_pair_equal_those_computed_directly():
    measures = Splits(model, X, np.arange(80), seed=0).halves((5, 0, (0,)))[0]
    generator = np.random.default_rng([5, 0])
    inside = np.isin(np.arange(80), generator.permutation(80)[:40])
    refitted = fitted(X[inside], 5)  # two more than the model
    other = X[~inside] - X[~inside].mean(axis=0)
    scores, again = other @ model.components_.T, other @ refitted.components_.T
    matrix = np.abs(np.corrcoef(scores.T, again.T)[:3, 3:])
    np.testing.assert_allclose(measures.score[0], matrix[0].max())
    partner = int(matrix[0].argmax())
    sign = np.sign(refitted.components_[partner] @ model.components_[0])
    np.testing.assert_array_equal(measures.selected[0], sign * np.sign(refitted.components_[partner]))


@pytest.mark.parametrize("others", [[], [1]])
def test_partial_correlations_leave_the_gene_itself_and_other_scores_out(others):
    part, vectors = Part(X.copy(), SparseGraphSVD(scale=False)), model.components_.astype(float)
    scores, columns = part.scores(vectors), X - X.mean(axis=0)
    products, at = part.products(scores), np.array(others, dtype=int)
    found = part.partial_correlations(scores[0], products[0], vectors[0], scores[at], products[at])
    basis = np.linalg.qr(scores[others].T)[0]
    for gene in (0, 5, 100, int(np.flatnonzero(vectors[0])[-1])):
        rest = columns @ np.where(np.arange(300) == gene, 0, vectors[0])
        pair = [one - basis @ (basis.T @ one) for one in (rest, columns[:, gene])]
        assert found[gene] == pytest.approx(np.corrcoef(pair)[0, 1], abs=1e-9)


def test_modules_found_again_get_the_size_of_the_module():
    own, found, loadings = np.zeros(8), np.array([0.6, -0.8, 0, 0, 0, 0, 0, 0]), np.array([9, 9, 1, -3, 2, 0, 0, 0.0])
    own[:4] = 0.5
    assert np.sign(resized(own, found, loadings)).tolist() == [1, -1, 0, -1, 1, 0, 0, 0]
    own[1:] = 0
    assert np.flatnonzero(resized(own, found, loadings)).tolist() == [1]


def test_a_dense_module_is_judged_by_its_heaviest_genes():
    vector = np.concatenate([np.full(10, 1.0), np.full(90, 1e-3)])
    assert sorted(judged_features(vector)) == list(range(10))
    assert judged_features(np.ones(100)).size == 50


# Verdicts


def test_modules_that_may_be_technical_are_counted_in_the_sentence():
    table = pd.DataFrame({"verdict": ["strong", "strong", "moderate", "doubtful"]})
    table["technical"] = [
        "may be technical: its scores follow the depth",
        None,
        "two samples carry it",
        "may be technical",
    ]
    text = "Of 4 modules, 2 are strong (1 of them may be technical), 1 is moderate, 1 is doubtful."
    assert netbic.selection.verdict_sentence(table) == text


def test_planted_modules_are_strong_and_what_is_left_is_doubtful():
    assert found.table["verdict"].tolist() == ["strong", "strong", "doubtful"]
    assert (found.table["z"][:2] > 5).all()
    assert (found.table["features_found_again"][:2] > 0.5).all()
    assert found.table["repeats"].isna().all()
    assert found.n_pairs == 5  # the last two changed no verdict
    assert found.table["reason"][0].startswith("Strong: in samples not used to find it, its features move together ")
    assert str(found).splitlines()[0] == (
        "Of 3 modules, 2 are strong, 1 is doubtful (judged in 5 pairs of halves of the samples)."
    )


def test_a_module_of_half_of_the_genes_is_compared_with_the_other_half():
    toy = netbic.simulate.paper(0.02, random_state=0)
    result = verdicts(fitted(toy.X, 1, n_rows=50, n_columns=50, center=None), toy.X, random_state=0)
    assert result.table["verdict"][0] == "strong"
    assert result.table["ratio"][0] > 5


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3, 4))])
def test_uneven_noise_is_doubtful_although_the_same_scores_come_back(seed):
    noise = np.random.default_rng(seed).standard_normal((60, 200)) * np.exp(1.5 * np.linspace(-1, 1, 200))
    result = verdicts(fitted(noise, n_columns=10), noise, random_state=0)
    assert (result.table["verdict"] == "doubtful").all()
    assert result.table["score"].max() > 0.6


def test_a_graph_that_chooses_the_genes_is_found_out():
    generator = np.random.default_rng(3)
    noise = generator.standard_normal((60, 300))
    options = {"column_smoothness": 2.0, "smoothness_scale": "relative", "graph_term": "normalized"}
    with pytest.warns(UserWarning, match="graph"):
        heavy = fitted(noise, column_graph=cliques(300), **options)
    result = verdicts(heavy, noise, random_state=0)
    assert (result.table["verdict"] == "doubtful").all()
    assert result.table["by_data_alone"].max() < 0.9
    assert (found.table["by_data_alone"] == 1).all()  # no graph


def test_diffusion_of_the_data_does_not_make_genes_move_together():
    noise = np.random.default_rng(8).standard_normal((60, 300))
    for diffusion in (0.9, "cv"):
        smoothed = fitted(noise, 2, n_columns=20, column_graph=cliques(300, 10), diffusion=diffusion)
        result = verdicts(smoothed, noise, random_state=0, n_pairs=5)
        assert (result.table["verdict"] == "doubtful").all()


def test_a_module_that_repeats_an_earlier_one_is_named():
    generator = np.random.default_rng(4)
    contrast = generator.standard_normal(80)
    dense = np.outer(contrast, np.r_[np.full(60, 1.2), np.zeros(240)]) + generator.standard_normal((80, 300))
    result = verdicts(fitted(dense, 2, n_columns=30, deflation="hotelling"), dense, random_state=0)
    assert result.table["verdict"].tolist()[0] in ("strong", "moderate")
    assert result.table["verdict"][1] == "repeats 1"
    assert result.table["repeats"].fillna(0).tolist() == [0, 1]
    assert abs(result.table["correlation"][1]) >= 0.9
    assert result.table["feature_overlap"][1] < 0.5
    correlation, shared = result.table["correlation"][1], f"{result.table['feature_overlap'][1]:.0%}".replace("%", " %")
    alike = "it is high and low in similar samples as module 1"
    alike = alike if correlation > 0 else "it is high in samples in which module 1 is low"
    assert result.table["reason"][1] == (
        f"Repeats module 1: {alike} (correlation of scores {correlation:.2f}); {shared} of their features are in both. "
        "By itself, it is strong."
    )
    assert result.table["sample_overlap"].isna().all()


def test_too_few_samples_and_no_module():
    few = X[:19]
    result = verdicts(fitted(few), few)
    assert (result.table["verdict"] == "too few samples to tell").all()
    assert result.n_pairs == 0
    assert result.table["score"].isna().all()
    assert result.verdict == "Too few samples to tell: 19 samples, at least 20 are needed."
    flat = np.ones((30, 10))
    with pytest.warns(UserWarning, match="module"):
        empty = verdicts(SparseGraphSVD(2).fit(flat), flat)
    assert empty.table.empty
    assert "No module" in repr(empty)


def test_replicates_stay_together_if_they_are_given_as_groups():
    # Four copies of every sample: nearly all of them are in both halves.
    noise = np.repeat(np.random.default_rng(5).standard_normal((25, 200)), 4, axis=0)
    noisy = fitted(noise, n_columns=20)
    grouped = verdicts(noisy, noise, groups=np.repeat(np.arange(25), 4), random_state=0)
    assert (grouped.table["verdict"] == "doubtful").all()
    with pytest.warns(UserWarning, match="if they are replicates or a time series, noise can be called strong"):
        alone = verdicts(noisy, noise, random_state=0)
    assert alone.table["z"][0] > 5 > grouped.table["z"][0]


def donors(seed, n_donors=5, own=True):
    """Samples of donors: a module in all of them and, if `own`, one in which each donor has a value of its own."""
    generator = np.random.default_rng(seed)
    donor = np.repeat(np.arange(n_donors), 30)
    X = generator.standard_normal((donor.size, 300))
    X[:, :30] += 1.5 * generator.standard_normal((donor.size, 1))
    if own:
        X[:, 30:60] += 3 * (donor == 0)[:, None]
    return X, donor


def test_each_donor_is_left_out_if_there_are_few():
    X, donor = donors(0)
    result = verdicts(fitted(X, 2), X, groups=donor, random_state=0)
    assert result.n_pairs == 5
    assert result.verdict.endswith("(judged in 5 groups of samples, each left out in turn).")
    shared, own = (
        int(np.argmax([m[genes].sum() for m in fitted(X, 2).columns_])) for genes in (slice(30), slice(30, 60))
    )
    assert result.table["verdict"][shared] == "strong"
    assert result.table["verdict"][own] == "doubtful"  # no other donor has it
    assert verdicts(fitted(X, 2), X, random_state=0).table["verdict"].tolist() == ["strong", "strong"]
    few = verdicts(fitted(X, 2), X, groups=np.minimum(donor, 1), random_state=0)
    assert few.verdict == (
        "Too few samples to tell: 2 groups of samples, at least 20, or 3 groups of at least 10 samples are needed."
    )


def with_batch(seed, varies_in, n_donors=7, n_modules=2):
    """Donors with a module in all of them, and one that differs between donors, and inside `varies_in`."""
    X, donor = donors(seed, n_donors, own=False)
    generator = np.random.default_rng(seed + 100)
    late = np.isin(donor, varies_in) & (generator.random(donor.size) < 0.5)
    batch = np.where(np.isin(donor, varies_in), late, donor % 2).astype(float)
    X[:, 30:60] += 2 * batch[:, None]
    model = fitted(X, n_modules)
    at = [int(np.abs(model.components_[:, genes]).sum(axis=1).argmax()) for genes in (slice(30), slice(30, 60))]
    table = verdicts(model, X, groups=np.array([f"donor {k}" for k in donor]), random_state=0).table
    return [table.loc[k] for k in at]


@pytest.mark.parametrize("carrier", [0, 3, 6])
def test_a_module_that_one_donor_carries_is_doubtful_and_the_donor_is_named(carrier):
    shared, batch = with_batch(0, [carrier])
    assert shared["verdict"] == "strong"
    assert batch["z"] > 5  # the mean of all donors alone does not tell
    assert batch["verdict"] == "doubtful"
    assert batch["reason"].startswith(f"Doubtful: carried by donor {carrier}: without it, its features")


def test_a_module_of_fewer_than_half_of_the_donors_is_not_strong():
    shared, batch = with_batch(0, [0, 1, 4])
    assert shared["verdict"] == "strong"
    assert batch["verdict"] == "moderate"
    assert "but in half of the groups of samples they" in batch["reason"]
    assert with_batch(0, [0, 1, 2, 4, 5, 6])[1]["verdict"] == "strong"


def test_a_module_that_is_doubtful_by_part_of_the_donors_is_not_strong():
    batch = with_batch(0, [0, 2, 4], n_donors=5)[1]  # every second one
    assert batch["z"] > 5
    assert batch["verdict"] == "moderate"
    assert batch["reason"].endswith("Close to the limit: part of the evidence alone says doubtful.")


# Invariances, inputs and options


def same(one, other):
    pd.testing.assert_frame_equal(one.table.drop(columns="reason"), other.table.drop(columns="reason"), rtol=1e-6)


def test_scaling_the_data_and_the_order_of_genes_change_nothing():
    same(found, verdicts(fitted(8 * X), 8 * X, random_state=0))
    order = np.random.default_rng(6).permutation(X.shape[1])
    result = verdicts(fitted(X[:, order]), X[:, order], random_state=0)
    assert result.table["verdict"].tolist() == found.table["verdict"].tolist()
    columns = ["score", "confidence", "features_found_again", "correlation"]  # random genes are others
    pd.testing.assert_frame_equal(result.table[columns], found.table[columns], rtol=1e-6)


def test_tables_sparse_matrices_and_threads_give_the_same():
    table = pd.DataFrame(X, index=[f"s{i}" for i in range(80)], columns=[f"g{i}" for i in range(300)])
    same(found, verdicts(fitted(table), table, random_state=0))
    same(found, verdicts(fitted(sp.csr_array(X)), sp.csc_array(X), random_state=0))
    assert found.table.equals(verdicts(model, X, random_state=0, n_jobs=2).table)


def test_any_centring_and_missing_values():
    for center in (None, "rows", "both", "grand"):
        options = {"center": center, "scale": center == "both"}
        result = verdicts(fitted(X, 2, **options), X, random_state=0, n_pairs=3)
        assert (result.table["verdict"] == "strong").all()
        sparse = sp.csr_array(X)
        same(result, verdicts(fitted(sparse, 2, **options), sparse, random_state=0, n_pairs=3))
    holes = np.where(np.random.default_rng(7).random(X.shape) < 0.1, np.nan, X)
    for missing in ("ignore", "impute"):
        result = verdicts(fitted(holes, 2, missing=missing), holes, random_state=0, n_pairs=3)
        assert (result.table["verdict"] == "strong").all()


def test_graphs_on_both_axes_and_sizes_chosen_by_the_data():
    graph = cliques(300, 30)
    weights = {"row_smoothness": 0.1, "column_smoothness": 0.1}
    both = fitted(X, 2, n_rows=30, row_graph=cliques(80, 4), column_graph=graph, **weights)
    assert verdicts(both, X, random_state=0, n_pairs=4).table["verdict"].isin(["strong", "moderate"]).all()
    small = two_groups(40, 100, 15, strength=2.5)
    adaptive = fitted(small, 2, n_columns=None, deflation=None)
    assert (verdicts(adaptive, small, random_state=0, n_pairs=3).table["verdict"] == "strong").all()


@pytest.mark.nightly
def test_early_stopping_changes_only_verdicts_that_are_close_to_a_limit():
    used = []
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        data = rng.standard_normal((60, 200))
        data[:, :30] += np.linspace(0.25, 0.75, 12)[seed] * rng.standard_normal((60, 1))
        judged = fitted(data, 2)
        early, whole = (verdicts(judged, data, early_stopping=stop, random_state=seed).table for stop in (True, False))
        close = early["reason"].str.contains("Close") | whole["reason"].str.contains("Close")
        assert (early["verdict"] == whole["verdict"])[~close].all()
        used.append(bool((early["verdict"] == whole["verdict"]).all()))
    assert sum(used) >= 10


def test_options_are_checked():
    for options, message in (
        ({"n_pairs": 2}, "n_pairs=2: at least 3"),
        ({"groups": np.zeros(3)}, "groups have 3 rows but X has 80 samples"),
        ({"groups": [None] * 80}, "groups has no label for 80 samples"),
        ({"groups": ["a"] * 79 + [np.nan]}, "groups has no label for 1 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            verdicts(model, X, **options)
    with pytest.raises(ValueError, match="the modules were found in one of shape"):
        verdicts(model, X[:-1])


@pytest.mark.parametrize(("shift", "n_close"), [(0.0, 0), (1.1, 1), (2.0, 0)])
def test_a_verdict_close_to_a_limit_says_so(shift, n_close):
    generator = np.random.default_rng(200)
    X = generator.standard_normal((80, 300))
    for first in (0, 25, 50):
        X[np.ix_(generator.choice(80, 24, replace=False), np.arange(first, first + 25))] += shift
    result = verdicts(SparseGraphSVD(5, n_columns=25).fit(X), X, random_state=200)
    close = (
        result.table["reason"].str.extract(r"Close to the limit: part of the evidence alone says (\w+).$")[0].dropna()
    )
    assert len(close) == n_close
    assert (close != result.table["verdict"][close.index]).all()


# Confidence of features


def test_confidence_of_chance_is_small_and_does_not_depend_on_the_scale_of_z():
    generator = np.random.default_rng(0)
    z, members = generator.standard_normal(2000), np.arange(2000) < 50
    assert confidence(z, members).mean() < 0.1
    z[members] += 6
    sure = confidence(z, members)
    assert sure[members].min() > 0.8
    assert sure[~members].mean() < 0.1
    np.testing.assert_allclose(confidence(10 * z, members), sure, atol=1e-9)  # the bulk is as wide as the data say
    assert confidence(1e-3 * z, members).max() < 0.5  # but not narrower than independent features


def test_confidence_is_calibrated():
    """Of the features with a confidence of .8 to 1, at least so many are right."""
    expected, right = [], []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        z, true = generator.standard_normal(2000), np.arange(2000) < 100
        z[true] += generator.uniform(1, 5, 100)
        found = confidence(z, true)
        expected.append(found[found >= 0.8])
        right.append(true[found >= 0.8])
    assert np.mean(np.concatenate(right)) >= np.mean(np.concatenate(expected)) - 0.02


def test_features_are_listed_with_their_confidence():
    table = found.features
    assert table.groupby("module").size().tolist() == [30, 30, 30]
    own = table[table["module"] == 1]
    planted = np.arange(30) + 30 * int(own["feature"].between(30, 59).mean() > 0.5)
    assert own["feature"][own["confidence"] >= 0.8].isin(planted).all()
    assert own["confidence"].is_monotonic_decreasing
    assert own["confidence"].mean() == pytest.approx(found.table["confidence"][0])
    assert (own["found_again"][own["confidence"] >= 0.9] > 0.5).all()
    assert (own["kme"][own["confidence"] >= 0.9] > found.table["kme_by_chance"][0]).all()


# Broad axes and technical modules


@pytest.mark.parametrize("both_signs", [False, True])
def test_a_factor_on_all_features_has_no_list_of_features_to_interpret(both_signs):
    generator = np.random.default_rng(3)
    loadings = generator.choice([-1, 1], 500) if both_signs else np.ones(500)
    data = generator.standard_normal((100, 500)) + np.outer(generator.standard_normal(100), 0.8 * loadings)
    result = verdicts(SparseGraphSVD(1, n_columns=50).fit(data), data, random_state=0)
    assert result.table["verdict"][0] == "broad axis"
    assert "Interpret the scores of samples" in result.table["reason"][0]
    assert bool(result.table["technical"][0]) is not both_signs


def properties_of(X, names=None):
    return SampleProperties(X, names, np.random.default_rng(0))


def follow(X, score, members=slice(0), names=None):
    mask, centred = np.zeros(X.shape[1], dtype=bool), X - X.mean(axis=0)
    mask[members] = True
    score = score - score.mean()
    correlations = score @ centred / np.linalg.norm(score) / np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
    return properties_of(X, names).followed_by(score, mask, correlations)


def test_modules_that_follow_a_property_of_the_samples():
    generator = np.random.default_rng(1)
    depth, noise = generator.normal(0, 0.6, 100), generator.standard_normal((100, 400))
    counts = generator.poisson(np.exp(generator.normal(1, 1, 400) + depth[:, None])).astype(float)
    followed = follow(np.log1p(counts), depth)
    assert followed.is_depth
    assert followed.correlation > 0.9
    assert follow(sp.csr_array(counts).toarray(), depth).is_depth
    poor, levels = generator.gamma(1, 1, 100), generator.normal(8, 2, 400)
    arrays = levels + 0.6 * noise - 0.15 * np.outer(poor, levels - levels.mean())
    quality = ("the standard deviation of the samples", "the share of low values of the samples")
    assert follow(arrays, poor).name in quality
    assert follow(noise, generator.standard_normal(100)).name == ""
    mitochondrial = np.array([f"MT-{k}" if k < 8 else f"G{k}" for k in range(400)])
    stressed = noise.copy()
    stressed[:, :8] += 2 * depth[:, None]
    assert follow(stressed, depth, names=mitochondrial).name == "the mean of mitochondrial genes"
    assert follow(stressed, depth).name == ""


def test_a_large_module_is_not_technical_though_the_means_of_the_samples_follow_it():
    generator = np.random.default_rng(2)
    score = generator.standard_normal(100)
    X = generator.standard_normal((100, 300))
    X[:, :60] += 1.2 * score[:, None]
    assert abs(np.corrcoef(X.mean(axis=1), score)[0, 1]) > 0.9
    assert follow(X, score, slice(60)).name == follow(X, score, slice(30)).name == ""


def test_outliers_that_carry_a_module_are_named():
    data = np.random.default_rng(4).standard_normal((60, 300))
    data[7, :40] += 12
    table = pd.DataFrame(data, index=[f"s{k}" for k in range(60)])
    result = verdicts(fitted(table, 1, n_columns=30), table, random_state=0)
    assert result.table["technical"][0] == "one sample carries it: 's7'"
    assert result.table["verdict"][0] == "doubtful"
    assert carriers(np.random.default_rng(0).standard_normal(60)).size == 0


def test_a_module_of_all_features_is_compared_with_those_of_small_weight():
    generator = np.random.default_rng(5)
    data = generator.standard_normal((80, 200))
    data[:, :40] += 2 * generator.standard_normal((80, 1))
    result = verdicts(SparseGraphSVD(1, n_columns=200, scale=False).fit(data), data, random_state=0)
    assert result.table["z"][0] > 5
    assert (result.features["confidence"][:40] > 0.9).all()
    assert set(result.features["feature"][:40]) == set(range(40))


def test_properties_that_only_the_module_has_are_not_technical():
    generator = np.random.default_rng(6)
    score = generator.standard_normal(100)
    X = generator.normal(5, 1, (100, 300))
    X[:, :60] = np.maximum(score[:, None] + 0.3 * generator.standard_normal((100, 60)), 0)
    assert follow(X, score, slice(60)).name == ""


def test_groups_in_a_series_are_matched_by_name():
    table = pd.DataFrame(X, index=[f"s{k}" for k in range(80)])
    groups = pd.Series(np.arange(80) // 4, index=table.index)
    options = {"n_pairs": 3, "random_state": 0}
    expected = verdicts(fitted(table), table, groups=groups, **options)
    same(verdicts(fitted(table), table, groups=groups.sample(frac=1, random_state=0), **options), expected)
    assert expected.verdict.endswith("(judged in 3 pairs of halves of the groups of samples).")


def test_a_slow_trend_under_noise_is_noticed_and_sorted_groups_are_not():
    generator = np.random.default_rng(0)
    noise = generator.standard_normal((200, 60))
    season = noise + 3 * np.sin(np.linspace(0, 6, 200))[:, None]
    sorted_groups = noise + np.repeat([0.0, 1.0], 100)[:, None]
    model = SparseGraphSVD(1, random_state=0)
    with pytest.warns(UserWarning, match=r"successive days are alike \(scores of modules change"):
        verdicts(model.fit(season), season, n_pairs=3, random_state=0, sample_name="day")
    verdicts(model.fit(sorted_groups), sorted_groups, n_pairs=3, random_state=0)  # a warning would be an error


def test_the_mean_of_all_features_can_be_removed_and_the_hint_says_how():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((100, 200)) + 2 * generator.standard_normal((100, 1))
    found = verdicts(SparseGraphSVD(1, random_state=0).fit(X), X, n_pairs=3, random_state=0)
    assert found.hint.startswith("1 module follows the mean of the samples: center=")
    assert repr(found).endswith(found.hint)
    assert "sequencing" not in repr(found)
    both = SparseGraphSVD(1, center="both", random_state=0).fit(X)
    assert not verdicts(both, X, n_pairs=3, random_state=0).hint


def test_noise_of_normalised_cells_is_no_module():
    """Logarithms of normalised counts depend on the depth of the cell in all genes: that is no module."""
    generator = np.random.default_rng(0)
    profile = generator.lognormal(0, 1.5, 600)
    counts = generator.poisson(np.exp(generator.normal(0, 0.7, (1500, 1))) * 600 * profile / profile.sum())
    X = np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    X = sp.csr_array(X)
    model = SparseGraphSVD(2, n_columns=30, random_state=0).fit(X)
    assert (verdicts(model, X, n_pairs=5, random_state=0).table["verdict"] == "doubtful").all()
    depth = depth_of(X)
    assert np.corrcoef(depth[0], np.log(counts.sum(axis=1)))[0, 1] < -0.95
    np.testing.assert_allclose(depth, depth_of(X.toarray()), atol=1e-9)
    assert depth_of(generator.standard_normal((50, 20))) is None
    assert depth_of(sp.csr_array(counts.astype(float))) is None  # counts: the smallest is always 1


def test_noise_that_neighbours_share_is_remarked():
    generator, p = np.random.default_rng(0), 150
    noise = generator.standard_normal((120, p + 1))
    chain = Graph(sp.diags_array([1.0, 1.0], offsets=[1, -1], shape=(p, p)))
    for X, shared in ((noise[:, 1:] + noise[:, :-1], True), (noise[:, 1:], False)):
        model = SparseGraphSVD(2, n_columns=15, column_graph=chain, random_state=0).fit(X)
        hint = verdicts(model, X, n_pairs=3, random_state=0).hint
        assert hint.startswith("Neighbours in the graph are correlated") == shared
