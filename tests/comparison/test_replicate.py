"""Modules looked for in another study."""

import copy

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import kstest, t
from sklearn.metrics import roc_auc_score

import netbic
from netbic.comparison.replicate import OtherStudy, _verdict, density_interval, matched_sets, preservation


@pytest.fixture(scope="module")
def other(study):
    return study.expression[200:]


def test_modules_hold_in_new_samples_and_not_in_other_genes(model, other):
    found = netbic.replicate(model, other, random_state=0)
    assert found.table["verdict"].tolist() == ["strong"] * 3
    assert found.verdict == "Of 3 modules, 3 are replicated in the other study (900 features in common, 200 samples)."
    beside = found.verdict_beside({1: "strong", 2: "doubtful", 3: "moderate"})
    assert "3 are replicated (1 of them doubtful in the fit) in the other study" in beside
    assert "Module 2 is doubtful in the fit, but its features move together here too" in beside
    shuffled = other.set_axis(np.random.default_rng(0).permutation(other.columns), axis=1)
    found = netbic.replicate(model, shuffled, random_state=0)
    assert found.table["verdict"].tolist() == ["not replicated"] * 3
    assert found.verdict_beside({2: "doubtful"}) == found.verdict
    assert found.table["reason"].str.startswith("Not replicated: ").all()


def test_numbers_are_those_of_plain_computations(model, other):
    found = netbic.replicate(model, other, n_draws=10, random_state=0)
    for row in found.table.itertuples():
        v = model.components_[row.module - 1]
        inside = np.flatnonzero(v)
        v = v[inside]
        Z = other.to_numpy()[:, inside]
        Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        signed = np.corrcoef(Z.T) * np.outer(np.sign(v), np.sign(v))
        assert row.density == pytest.approx(signed[np.triu_indices(len(v), 1)].mean())
        rest = np.array([np.cov(Z[:, j], Z @ v - v[j] * Z[:, j])[0, 1] for j in range(len(v))])
        assert row.loading_correlation == pytest.approx(np.corrcoef(v, rest)[0, 1])
        assert row.sign_agreement == pytest.approx(np.mean(np.sign(rest) == np.sign(v)))
        leading = np.argsort(-np.abs(v))[:20]
        inner = signed[np.ix_(leading, leading)][np.triu_indices(20, 1)]
        assert row.leading_density == pytest.approx(inner.mean())
        scores = found.scores[row.module]
        np.testing.assert_allclose(scores, Z @ v / np.std(Z @ v), atol=1e-9)
        assert scores.index.tolist() == other.index.tolist()


def test_the_interval_is_the_jackknife():
    generator = np.random.default_rng(0)
    Z, signs = generator.normal(size=(7, 40)) + generator.normal(size=40), np.array([1, -1, 1, 1, 1, -1, 1])

    def scale(values):
        density = (np.corrcoef(values) * np.outer(signs, signs))[np.triu_indices(7, 1)].mean()
        return np.log((1 + 6 * density) / (1 - density))

    without = np.array([scale(np.delete(Z, sample, axis=1)) for sample in range(40)])
    error = np.sqrt(39 / 40 * np.sum((without - without.mean()) ** 2))
    ends = np.exp(scale(Z) + t.ppf([0.025, 0.975], 39) * error)
    centred = Z - Z.mean(axis=1, keepdims=True)
    found = density_interval(centred / np.linalg.norm(centred, axis=1, keepdims=True), signs)
    np.testing.assert_allclose(found, (ends - 1) / (ends + 6), rtol=1e-9)


@pytest.mark.parametrize("kind", ["noise", "signed factors"])
def test_intervals_contain_the_density_of_the_population(kind):
    generator, covered = np.random.default_rng(len(kind)), []
    members, signs = np.arange(20), generator.choice([-1, 1], 20)
    factors = generator.uniform(0, 0.8, (2, 20)) * (kind != "noise")
    lengths = np.sqrt(1 + np.sum(factors**2, axis=0))
    true = factors.T @ factors / np.outer(lengths, lengths) * np.outer(signs, signs)
    true = true[np.triu_indices(20, 1)].mean()
    for _ in range(400):
        X = generator.standard_normal((50, 20)) + generator.standard_normal((50, 2)) @ factors
        low, high = density_interval(OtherStudy.of(X, False)[0].features(members), signs)
        covered.append(low <= true <= high)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_the_form_of_the_data_does_not_matter(model, other):
    values, options = other.to_numpy(), {"n_draws": 50, "random_state": 0}
    table = netbic.replicate(model, other, **options).table
    for form in (anndata.AnnData(other), other.iloc[:, ::-1], values):
        pd.testing.assert_frame_equal(netbic.replicate(model, form, **options).table, table, rtol=1e-6)
    for form in (values, sp.csr_array(values)):
        found = netbic.replicate(model, form, features=other.columns, **options).table
        pd.testing.assert_frame_equal(found, table, rtol=1e-6)


def test_units_of_genes_and_the_sign_of_a_module_do_not_matter(model, other):
    columns = ["density", "ci_low", "ci_high", "leading_density", "sign_agreement", "loading_correlation"]
    table = netbic.replicate(model, other, n_draws=20, random_state=0).table
    units = np.random.default_rng(0).uniform(0.1, 10, other.shape[1])
    scaled = netbic.replicate(model, other * units + 3, n_draws=20, random_state=0).table
    np.testing.assert_allclose(scaled[columns], table[columns], rtol=1e-8)
    turned = copy.deepcopy(model)
    turned.components_ = -model.components_
    found = netbic.replicate(turned, other, n_draws=20, random_state=0).table
    pd.testing.assert_frame_equal(found, table, rtol=1e-9)


def test_a_model_that_subtracts_sample_means_is_judged_without_them(study):
    shifts = np.random.default_rng(3).normal(0, 3, 400)[:, None]
    shifted = study.expression + shifts
    model = netbic.SparseGraphSVD(2, n_columns=60, center="both").fit(shifted[:200])
    found = netbic.replicate(model, shifted[200:], n_draws=20, random_state=0).table
    plain = shifted[200:].to_numpy()
    plain = plain - plain.mean(axis=1, keepdims=True)
    by_hand = netbic.replicate(model, pd.DataFrame(plain, columns=shifted.columns), n_draws=20, random_state=0).table
    columns = ["density", "ci_low", "ci_high", "sign_agreement"]
    np.testing.assert_allclose(found[columns], by_hand[columns], rtol=1e-6)


def studies(kind, generator, n_genes=600, n_samples=60):
    """Studies without modules."""
    sd = np.exp(generator.standard_normal(n_genes)) if kind != "noise" else np.ones(n_genes)
    X = generator.standard_normal((n_samples, n_genes))
    if kind == "all genes follow":
        X += np.outer(generator.standard_normal(n_samples), generator.uniform(0.5, 1.5, n_genes))
    if kind == "signed factors":
        X += generator.standard_normal((n_samples, 3)) @ generator.standard_normal((3, n_genes))
    return X * sd + generator.normal(8, 2, n_genes)


@pytest.mark.parametrize("kind", ["noise", "uneven genes", "all genes follow", "signed factors"])
@pytest.mark.parametrize("signs", ["same", pytest.param("mixed", marks=pytest.mark.nightly)])
def test_p_values_are_not_too_small_without_the_module(kind, signs):
    generator = np.random.default_rng([11, len(kind), len(signs)])
    p_values = []
    for _ in range(50):
        study, _ = OtherStudy.of(studies(kind, generator), False)
        for _ in range(2):
            members = generator.choice(600, 20, replace=False)
            weights = generator.uniform(0.3, 1.5, 20) * (1 if signs == "same" else generator.choice([-1, 1], 20))
            traits = [study.means, study.lengths, study.connectivity(generator)]
            p_values.append(preservation(study, traits, members, weights, 99, generator)["p"])
    # Matched sets follow a factor as the module does: p-values may be too large, but not too small.
    assert kstest(p_values, "uniform", alternative="greater").pvalue > 0.001
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_replicated_modules_are_told_from_others():
    """Pairs of studies with other samples, variances of genes and a factor that all genes follow."""
    excess, truth, verdicts = [], [], []
    for seed in range(8):
        generator = np.random.default_rng([7, seed])
        genes = generator.permutation(600)[:120].reshape(4, 30)
        loadings = generator.uniform(0.5, 1.5, (4, 30)) * generator.choice([-1, 1], (4, 30))
        parts = []
        for n_samples, n_modules in ((120, 4), (50, 2)):
            X = studies("all genes follow" if seed % 2 else "signed factors", generator, 600, n_samples)
            spread = X.std(axis=0)
            for own, weights in zip(genes[:n_modules], loadings, strict=False):
                X[:, own] += spread[own] * np.outer(generator.standard_normal(n_samples), weights)
            parts.append(pd.DataFrame(X, columns=[f"g{k}" for k in range(600)]))
        model = netbic.SparseGraphSVD(1, n_columns=30).fit(parts[0])
        model.components_ = np.zeros((4, 600))
        np.put_along_axis(model.components_, genes, loadings + generator.normal(0, 0.3, (4, 30)), axis=1)
        model.components_ /= np.linalg.norm(model.components_, axis=1, keepdims=True)
        model.n_components_ = 4
        found = netbic.replicate(model, parts[1], n_draws=199, random_state=seed).table
        excess += (found["density"] - found["density_expected"]).tolist()
        verdicts += found["verdict"].tolist()
        truth += [1, 1, 0, 0]
    assert roc_auc_score(truth, excess) >= 0.95
    absent = [verdict for verdict, true in zip(verdicts, truth, strict=True) if not true]
    assert set(absent) == {"not replicated"}
    present = [verdict for verdict, true in zip(verdicts, truth, strict=True) if true]
    assert len([verdict for verdict in present if verdict in ("strong", "weak")]) >= 14


def test_grades_rest_on_leading_genes_and_signs_too(model, other):
    members = np.argsort(-np.abs(model.components_[0]))[:60]
    generator = np.random.default_rng(0)

    def judged(values):
        return netbic.replicate(model, values, random_state=0).table.set_index("module")

    exchanged = other.copy()
    exchanged.iloc[:, members[:20]] = generator.permuted(other.iloc[:, members[:20]], axis=0)
    found = judged(exchanged)
    assert found["verdict"].tolist() == ["not replicated", "strong", "strong"]
    assert "its leading features correlate hardly more than random ones" in found.loc[1, "reason"]
    turned = other.copy()
    turned.iloc[:, members[40:55]] *= -1
    found = judged(turned)
    assert found["verdict"].tolist() == ["weak", "strong", "strong"]
    assert "80 % have to move in the expected direction" in found.loc[1, "reason"]


def test_missing_genes_and_entries_are_counted(model, other):
    part = other.iloc[:, 300:].copy()
    part.iloc[:, 100] = 1.0
    part.iloc[:, 101] = np.nan
    part.iloc[:5, ::7] = np.nan
    found = netbic.replicate(model, part, n_draws=50, random_state=0)
    available = model.columns_[:, 300:]
    assert found.table["n_available"].tolist() == np.delete(available, [100, 101], axis=1).sum(axis=1).tolist()
    assert found.table["n_features"].tolist() == [60, 60, 60]
    assert found.n_features == 600
    assert found.table["reason"].str.contains("of its 60 features").any()
    judged = found.table[found.table["verdict"] != "too few to tell"]
    assert np.isfinite(judged[["density", "p", "q"]].to_numpy()).all()
    n_missing = int(part.isna().sum().sum())
    assert found.n_missing == n_missing
    assert f"{n_missing:,} missing values are replaced by the mean of their feature." in found.verdict


def test_too_little_to_tell(model, other):
    few = netbic.replicate(model, other[:3], random_state=0)
    assert set(few.table["verdict"]) == {"too few to tell"}
    assert few.table["p"].isna().all()
    assert few.table["q"].isna().all()
    assert (
        few.table["reason"][0] == "Cannot be judged: number of samples in the other study: 3, at least 10 are needed."
    )
    assert "3 cannot be judged" in few.verdict
    genes = [*other.columns[model.columns_[0]][:3], *other.columns[~model.columns_.any(axis=0)]]
    few = netbic.replicate(model, other[genes], n_draws=20, random_state=0)
    assert few.table["verdict"][0] == "too few to tell"
    assert "has 3 of its 60 features (that vary), at least 5 are needed" in few.table["reason"][0]
    crowded = netbic.replicate(model, other.loc[:, model.columns_.any(axis=0)], random_state=0)
    assert "random sets can be drawn from only" in crowded.table["reason"][0]


def test_samples_of_the_fit_are_recognised(study, model):
    found = netbic.replicate(model, study.expression[150:], n_draws=20, random_state=0)
    assert found.n_shared == 50
    assert found.verdict.startswith("Not independent: 50 of 250 samples may be in the first study too, by name. Of 3 ")
    assert "hardly noise" not in found.verdict_beside({1: "doubtful"})
    same = netbic.replicate(model, study.expression[:200], n_draws=20, random_state=0)
    assert same.verdict.startswith("Not independent: all 200 samples may be")
    new = netbic.replicate(model, study.expression[150:], new_samples_only=True, n_draws=20, random_state=0)
    assert (new.n_samples, new.n_shared) == (200, 0)
    barcodes = study.expression[150:].rename(index=lambda name: f"{name}-01A")
    assert netbic.replicate(model, barcodes, n_draws=20, random_state=0).n_shared == 50
    with pytest.raises(ValueError, match="all 200 samples of X_other are samples of the fit"):
        netbic.replicate(model, study.expression[:200], new_samples_only=True)


def test_bad_input(model, other):
    for X, options, message in (
        (other.add_prefix("x"), {}, "no name of the modules is in the other study"),
        (other.rename(columns=str.lower), {}, "differ in capital letters"),
        (other.set_axis(["A"] * 900, axis=1), {}, "X_other has several features 'A': rename or drop them"),
        (other.to_numpy()[:, :800], {}, "800 columns without names"),
        (other.to_numpy(), {"features": ["a", "b"]}, "features has 2 names"),
        (other.replace(other.iloc[0, 0], np.inf), {}, "infinite"),
        (other * 1e155, {}, "X_other has entries up to .* leave the range of numbers"),
        (other, {"n_draws": 0}, "n_draws"),
    ):
        with pytest.raises(ValueError, match=message):
            netbic.replicate(model, X, **options)
    with pytest.raises(TypeError, match="SparseGraphSVD is needed"):
        netbic.replicate("model", other)


def test_random_sets_have_similar_means_and_variances_and_no_repetitions():
    generator = np.random.default_rng(0)
    traits = [generator.normal(size=3000), generator.lognormal(size=3000)]
    members = np.argsort(traits[1])[-80:]  # of the largest variance
    sets = matched_sets(traits, members, 200, generator)
    assert sets.shape == (200, 80)
    assert not np.isin(sets, members).any()
    assert all(len(set(row)) == 80 for row in sets.tolist())
    ranks = [np.argsort(np.argsort(trait)) / 3000 for trait in traits]
    assert np.abs(ranks[1][sets] - ranks[1][members]).mean() < 0.12
    assert np.abs(ranks[0][sets] - ranks[0][members]).mean() < 0.12
    same = matched_sets([np.zeros(500), np.ones(500)], np.arange(10), 400, generator)  # not matched
    assert set(np.unique(same)) == set(range(10, 500))


@pytest.mark.parametrize("center_rows", [False, True])
def test_constant_genes_of_sparse_data_are_left_out(center_rows):
    X = np.random.default_rng(0).poisson(0.5, (53, 30)).astype(float)
    X[:, :6], X[:, 6] = [0.1, 0.3, 0.7, 1.1, 12.3, 45.6], 0.0
    dense, sparse = (OtherStudy.of(each, center_rows) for each in (X, sp.csr_array(X)))
    assert sparse[1].tolist() == dense[1].tolist()
    assert sp.issparse(sparse[0].matrix)  # it is not made dense
    if not center_rows:
        assert dense[1].tolist() == [*range(7, 30)]
    np.testing.assert_allclose(sparse[0].lengths, dense[0].lengths, rtol=1e-12)
    expected = X - X.mean(axis=0) - (X.mean(axis=1, keepdims=True) - X.mean() if center_rows else 0)
    np.testing.assert_allclose(dense[0].lengths, np.linalg.norm(expected[:, dense[1]], axis=0), rtol=1e-12)


def test_a_value_below_its_limit_is_written_as_such():
    shares = {"n_features": 60, "n_available": 60, "n_leading": 20, "n_leading_available": 20, "q": 0.01}
    shares |= {"density": 0.098, "density_expected": 0.0, "ci_low": 0.08, "ci_high": 0.12, "p_loadings": 0.01}
    shares |= {"sign_agreement": 0.9, "leading_density": 0.2, "leading_expected": 0.0, "p_leading": 0.001}
    verdict, text = _verdict(shares, "gene")
    assert verdict == "weak"
    assert "only 0.09 more than random ones (0.1 is needed)" in text
    verdict, text = _verdict(shares | {"p_loadings": 0.3}, "gene")
    assert verdict == "not replicated"
    verdict, text = _verdict(shares | {"leading_density": np.nan, "n_leading_available": 2, "density": 0.2}, "gene")
    assert verdict == "weak"
    assert "only 2 of its 20 leading genes are there" in text
