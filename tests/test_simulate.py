"""The simulations have the documented properties."""

import numpy as np
import pytest

from netbic.simulate import cohort, paper, patients, recovery


def test_signal_noise_and_edges_of_the_paper():
    for signs in ("same", "random"):
        toy = paper(0.0, signs=signs, random_state=0)
        np.testing.assert_allclose([np.linalg.norm(toy.u), np.linalg.norm(toy.v)], 1)
        np.testing.assert_allclose(toy.X, np.outer(toy.u, toy.v))
        assert (toy.v != 0).tolist() == [True] * 50 + [False] * 50
        found = {*np.sign(toy.u[:50])}, {*np.sign(toy.v[:50])}
        assert found == (({1.0}, {-1.0}) if signs == "same" else ({-1.0, 1.0}, {-1.0, 1.0}))
    toys = [paper(0.05, random_state=seed) for seed in range(20)]
    noise = np.concatenate([(toy.X - np.outer(toy.u, toy.v)).ravel() for toy in toys])
    assert noise.std() == pytest.approx(0.05, rel=0.01)
    weights = np.mean([toy.column_graph.weights.toarray() for toy in toys], axis=0)
    off_diagonal = ~np.eye(50, dtype=bool)
    assert weights[:50, :50][off_diagonal].mean() == pytest.approx(0.3, abs=0.01)
    assert weights[50:, 50:][off_diagonal].mean() == pytest.approx(0.1, abs=0.01)
    assert weights[:50, 50:].mean() == pytest.approx(0.1, abs=0.01)
    assert paper(0.05, cross_edges=False, random_state=0).row_graph.weights.toarray()[:50, 50:].sum() == 0


def test_paper_sizes_seeds_and_errors():
    toy = paper(0.1, n_rows=30, n_columns=40, n_row_support=5, n_column_support=8, random_state=3)
    assert toy.X.shape == (30, 40)
    assert (np.count_nonzero(toy.u), np.count_nonzero(toy.v)) == (5, 8)
    np.testing.assert_array_equal(paper(0.1, random_state=1).X, paper(0.1, random_state=1).X)
    for given, message in (
        ({"gamma": 0.1, "signs": "mixed"}, "signs='mixed' is not known"),
        ({"gamma": -1}, "gamma=-1"),
        ({"gamma": 0.1, "n_rows": 30}, "a support of 50 does not fit an axis of 30"),
    ):
        with pytest.raises(ValueError, match=message):
            paper(**given)


def test_cohort_modules_are_denser_but_not_of_higher_degree():
    inside, outside, within, expected = [], [], [], []
    for seed in range(8):
        study = cohort(random_state=seed)
        degrees, members = study.network.degrees, study.genes.any(axis=0)
        inside.append(degrees[members].mean())
        outside.append(degrees[~members].mean())
        for genes in study.genes:
            within.append(study.network.weights[genes][:, genes].nnz / 2)
            expected.append(degrees[genes].sum() ** 2 / degrees.sum() / 2)
    assert np.mean(inside) == pytest.approx(np.mean(outside), rel=0.04)
    assert np.mean(within) > 10 * np.mean(expected)
    assert degrees.max() > 5 * degrees.mean()


def test_cohort_has_the_planted_modules():
    study = cohort(random_state=0)
    assert study.expression.shape == (400, 3000)
    assert study.network.names.tolist() == study.expression.columns.tolist()
    assert study.samples.sum(axis=1).tolist() == [40] * 5
    assert [int((study.genes[k] & study.genes[k + 1]).sum()) for k in range(4)] == [10] * 4
    np.testing.assert_array_equal(study.weights != 0, study.genes)
    assert {*np.sign(study.weights[0][study.genes[0]])} == {-1.0, 1.0}
    loud = cohort(strength=50.0, random_state=0).expression
    spread = loud.to_numpy().std(axis=0)
    assert spread[study.genes.any(axis=0)].min() > 5 * spread[~study.genes.any(axis=0)].max()
    with pytest.raises(ValueError, match="5 modules of 40 with 10 shared need 160 members, but there are 100"):
        cohort(100, 3000)


def test_recovery_by_hand():
    planted = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]], dtype=bool)
    found = np.array([[0, 1, 1, 1, 0], [1, 1, 0, 0, 0]], dtype=bool)
    table = recovery(found, planted)
    assert table["found"].tolist() == [1, 0, -1]
    assert table["sensitivity"].tolist() == [1, 1, 0]
    assert table["precision"].tolist() == pytest.approx([1, 2 / 3, 0])
    assert table["specificity"].tolist() == pytest.approx([1, 2 / 3, 1])
    assert table["f1"].tolist() == pytest.approx([1, 0.8, 0])
    with pytest.raises(ValueError, match="found sets have 3 members to choose from, planted ones 5"):
        recovery(np.ones((1, 3), dtype=bool), planted)


def test_programs_of_patients_have_the_documented_sizes_and_overlap():
    study = patients(random_state=0)
    assert study.expression.shape == (400, 800)
    assert study.genes.sum(axis=1).tolist() == [120, 70, 45, 25, 30]
    assert study.genes.sum(axis=0).max() == 1
    assert study.samples.sum(axis=1).tolist() == [140, 100, 120, 80, 140]
    assert (study.samples[0] & study.samples[4]).sum() == round(0.84 * 140)
    assert ((study.weights != 0) == study.genes).all()
    assert (study.weights < 0).sum() / study.genes.sum() == pytest.approx(0.2, abs=0.05)
    up, genes = study.samples[1], study.genes[1] & (study.weights[1] > 0)
    others = ~study.samples[[0, 2, 3, 4]].any(axis=0)
    means = study.expression.to_numpy()[:, genes].mean(axis=1)
    assert means[up & others].mean() - means[~up & others].mean() == pytest.approx(1.2, abs=0.2)
    assert patients(random_state=1).network.n_edges == patients(random_state=1).network.n_edges
    with pytest.raises(ValueError, match="with 0 shared need 290 members, but there are 200"):
        patients(n_genes=200)
