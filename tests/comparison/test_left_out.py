"""Leave one study out: shared modules are found without each study and hold in it, private ones are not."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic


@pytest.fixture(scope="module")
def simulated():
    lives = ((0, 1, 2), (0, 2), (1,))
    return netbic.simulate.studies((60, 80, 100), 300, lives=lives, module_genes=30, background=0.0, random_state=0)


@pytest.fixture(scope="module")
def model(simulated):
    return netbic.SparseGraphSVD(3, n_columns=30, scale=True).fit(simulated.X, studies=simulated.studies)


def test_modules_replicate_where_they_live_and_another_study_has_them(simulated, model):
    found = netbic.leave_one_study_out(model, simulated.X, random_state=0)
    planted = netbic.simulate.recovery(model.columns_, simulated.genes)
    assert (planted["f1"] > 0.8).all()
    for row in planted.itertuples():
        own = found.table[found.table["module"] == row.found + 1]
        lives = simulated.lives[row.planted]
        expected = lives & (lives.sum() > 1)
        np.testing.assert_array_equal(own["verdict"] == "replicated", expected)
        assert found.counts[row.found + 1] == expected.sum()
    private = found.table[found.table["module"] == planted["found"][2] + 1].set_index("study")
    assert private.loc["study_2", "verdict"] == "not found without it"
    assert "3 of 3 studies left out" in repr(found)
    replicated = found.table[found.table["verdict"] == "replicated"]
    assert replicated["n_features"].eq(30).all()
    assert replicated["overlap"].gt(0.5).all()  # nearly the same features as with the study
    done = []
    again = netbic.leave_one_study_out(model, simulated.X, progress=lambda *n: done.append(n), random_state=0, n_jobs=2)
    pd.testing.assert_frame_equal(again.table, found.table)
    assert done[-1] == (len(simulated.lives[0]), len(simulated.lives[0]))


def test_sparse_data_and_covariates(simulated, model):
    sparse = netbic.SparseGraphSVD(3, n_columns=30, scale=True)
    sparse.fit(sp.csr_array(simulated.X.to_numpy()), studies=simulated.studies)
    one = netbic.leave_one_study_out(model, simulated.X, n_draws=200, random_state=0).table
    two = netbic.leave_one_study_out(sparse, sp.csr_array(simulated.X.to_numpy()), n_draws=200, random_state=0).table
    np.testing.assert_array_equal(one["verdict"], two["verdict"])
    table = pd.DataFrame({"age": np.random.default_rng(0).normal(size=len(simulated.X))}, index=simulated.X.index)
    given = netbic.SparseGraphSVD(3, n_columns=30, scale=True)
    given.fit(simulated.X, studies=simulated.studies, covariates=table)
    found = netbic.leave_one_study_out(given, simulated.X, covariates=table, n_draws=200, random_state=0).table
    assert found["verdict"].tolist() == one["verdict"].tolist()
    with pytest.raises(netbic.InputError, match="with covariates"):
        netbic.leave_one_study_out(given, simulated.X)


def test_penalties_of_samples_are_those_of_the_samples_left(simulated):
    """Samples are given by name (text or numbers) or by position."""
    for names in (simulated.X.index, np.arange(240)[::-1] + 5, None):
        X = simulated.X.to_numpy() if names is None else simulated.X.set_axis(names)
        own = np.arange(240) if names is None else names
        penalty = netbic.GroupL0([list(own[start::6]) for start in range(6)], 2)
        model = netbic.SparseGraphSVD(2, row_penalty=penalty, n_columns=30, scale=True)
        found = netbic.leave_one_study_out(model.fit(X, studies=simulated.studies), X, n_draws=200, random_state=0)
        assert (found.counts >= 2).all()
        assert (found.table.loc[found.table["verdict"] == "replicated", "score"] > 0.9).all()


def test_samples_without_a_score_and_a_model_without_modules(simulated, model):
    X = simulated.X.copy()
    X.iloc[0, np.flatnonzero(model.columns_[0])[1:]] = np.nan  # hardly any gene of module 1 is known in this sample
    given = netbic.SparseGraphSVD(3, n_columns=30, scale=True, missing="ignore").fit(X, studies=simulated.studies)
    found = netbic.leave_one_study_out(given, X, n_draws=200, random_state=0)
    expected = netbic.leave_one_study_out(model, simulated.X, n_draws=200, random_state=0)
    assert found.table["verdict"].tolist() == expected.table["verdict"].tolist()
    assert netbic.comparison.LeftOut(expected.table[:0]).verdict.startswith("The model has no modules")


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_rare_state_of_cells_is_replicated_in_every_donor_that_has_it_in_spite_of_counting_noise(everywhere):
    """Sixty genes are expressed more in 10 % of the cells, and rarely counted: they correlate by about 0.1."""
    generator = np.random.default_rng(0)
    donors, depth = np.repeat(["a", "b", "c", "d"], 500), generator.gamma(5, 0.2, (2000, 1))
    active = (generator.random(2000) < 0.1) & (everywhere | (donors == "b"))
    means = np.tile(generator.gamma(0.5, 0.4, 400), (2000, 1)) * depth
    means[:, :60] = depth * (0.05 + (0.25 if everywhere else 1.0) * active[:, None])
    X = sp.csr_array(np.log1p(generator.poisson(means)))
    model = netbic.SparseGraphSVD(3).fit(X, studies=donors)
    module = int(model.columns_[:, :60].sum(axis=1).argmax()) + 1
    assert model.columns_[module - 1, :60].mean() > 0.7
    found = netbic.leave_one_study_out(model, X, n_draws=200, random_state=0, study_name="donor")
    own = found.table[found.table["module"] == module]
    lives = model.studies_.loc[model.studies_["module"] == module, "lives_here"].tolist()
    if everywhere:
        assert own["density"].max() < 0.15
        assert own["verdict"].tolist() == ["replicated"] * 4
        assert lives == [True] * 4
        assert found.summary[module] == "replicated in 4 of 4 donors left out"
    else:
        assert "replicated" not in own["verdict"].tolist()
        assert lives == [False, True, False, False]
