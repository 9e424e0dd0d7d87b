"""Parameters are chosen where the data identify them, set to defaults where they do not, with the reasons."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import netbic
from netbic import AdaptiveSupport, SparseGraphSVD
from netbic.selection import AutoSVD, choose_settings
from netbic.simulate import cohort, paper
from support.commands import run

QUICK = {"n_rewired": 3, "most": 4, "random_state": 0, "n_jobs": 2}
study = cohort(150, 600, n_modules=2, strength=1.5, random_state=0)


def low_rank(seed=0):
    """Dense and low-rank, as real expression is: every entry is a member of every module."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((80, 4)) @ generator.standard_normal((4, 300)) + generator.standard_normal(
        (80, 300)
    )


def test_planted_modules_are_chosen_with_their_sizes():
    chosen = choose_settings(SparseGraphSVD(column_graph=study.network), study.expression, **QUICK)
    assert chosen.identified
    assert chosen.settings["n_components"] == 2
    assert chosen.settings["column_penalty"] == AdaptiveSupport(clip=None, fallback=50)
    assert "row_penalty" not in chosen.settings  # all samples are kept
    assert chosen.reasons[0].startswith("Sizes: the data identify them")
    assert "in 2 of 2 modules" in chosen.reasons[2]
    model = SparseGraphSVD(column_graph=study.network, **chosen.settings).fit(study.expression)
    assert netbic.simulate.recovery(model.columns_, study.genes)["f1"].min() > 0.9


def test_dense_data_get_default_sizes():
    graph = cohort(80, 300, n_modules=1, random_state=0).network.weights
    chosen = choose_settings(SparseGraphSVD(column_graph=graph), low_rank(), **QUICK)
    assert not chosen.identified
    assert chosen.settings | netbic.methods.usual_settings((80, 300)) == chosen.settings
    assert "do not identify" in chosen.reasons[0]
    assert "50 features per module are used" in chosen.reasons[0]
    assert chosen.settings["column_smoothness"] == 0.0
    assert "No evidence" in chosen.reasons[2]


def test_sizes_are_chosen_module_by_module():
    """A module of 40 features and a dense factor: one size is identified, the fallback is used for the other."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((120, 800)) + np.outer(generator.standard_normal(120), generator.normal(0, 0.6, 800))
    X[:30, :40] += 2.5
    auto = AutoSVD(most=3, random_state=0).fit(X)
    choices = auto.best_estimator_.choices_
    assert choices["fallback"].tolist() == (choices["diagnostic"] != "").tolist()
    assert sorted(choices["size"][:2]) == [40, 50]
    assert "Sizes: identified in 1 of " in auto.reasons_[0]
    assert "50 features in the others" in auto.reasons_[0]


@pytest.mark.nightly
def test_given_sizes_are_kept_and_noise_is_reported_as_noise():
    chosen = choose_settings(SparseGraphSVD(n_columns=50), study.expression, **QUICK)
    assert chosen.reasons[0] == "Sizes: as given."
    assert list(chosen.settings) == ["n_components"]
    chosen = choose_settings(SparseGraphSVD(), np.random.default_rng(0).standard_normal((60, 80)), **QUICK)
    assert chosen.settings["n_components"] == 1
    assert "data with random signs: no module stands out" in chosen.reasons[1]
    assert "it is probably noise" in chosen.reasons[1]
    assert not chosen.identified
    with pytest.raises(ValueError, match=r"^n_permutations=3: "):
        AutoSVD(SparseGraphSVD(center=None), n_permutations=3, random_state=0).fit(paper(0.03, random_state=0).X)


@pytest.mark.nightly
def test_features_that_differ_in_noise_are_scaled():
    generator, toy = np.random.default_rng(0), paper(0.02, random_state=0)
    X = np.outer(toy.u, toy.v) + 0.02 * np.exp(0.5 * generator.standard_normal(100)) * generator.standard_normal(
        (100, 100)
    )
    auto = AutoSVD(SparseGraphSVD(), **{name: QUICK[name] for name in ("most", "random_state")}).fit(X)
    assert auto.best_params_["scale"]
    assert "after scaling" in auto.reasons_[0]
    assert (auto.best_estimator_.columns_[0] == (toy.v != 0)).mean() > 0.9


@pytest.mark.nightly
def test_sparse_matrices():
    X = sp.csr_array(paper(0.02, random_state=0).X)
    chosen = choose_settings(SparseGraphSVD(center=None), X, **QUICK)
    assert chosen.settings["n_components"] == 1
    huge = sp.csr_array((20_000, 20_000))
    with pytest.raises(ValueError, match="20,000 x 20,000 are too many entries"):
        choose_settings(SparseGraphSVD(), huge, **QUICK)


def test_scikit_learn_interface():
    X = paper(0.02, random_state=0).X
    auto = AutoSVD(SparseGraphSVD(center=None), random_state=0, most=2)
    assert clone(auto).get_params()["most"] == 2
    pipeline = make_pipeline(FunctionTransformer(), auto).fit(X)
    fitted = pipeline[-1]
    assert fitted.best_estimator_.get_shape(0) == (100, 50)
    np.testing.assert_array_equal(pipeline.transform(X), fitted.best_estimator_.transform(X))
    assert fitted.score(X) == fitted.best_estimator_.score(X)
    assert fitted.get_feature_names_out().tolist() == ["autosvd0"]
    assert len(fitted.reasons_) == 2


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    netbic.storage.write_cohort(cohort(100, 400, n_modules=2, strength=2, random_state=0), folder)
    return folder


def automatic(files, out, *more):
    expression, network = files / "expression.tsv.gz", files / "network.sif"
    options = ["--auto", "--modules", "3", "--no-report", *more]
    return run("fit", str(expression), "--graph", str(network), "--out", str(out), *options)


@pytest.mark.nightly
def test_the_command_prints_the_choice_and_resumes_with_it(files, tmp_path, monkeypatch):
    done = automatic(files, tmp_path / "out", "--jobs", "2")
    assert done.exit_code == 0, done.output
    assert "Sizes: the data identify them" in done.output
    assert "genes per module" in done.output
    record = json.loads((tmp_path / "out" / "auto.json").read_text())
    assert record["settings"]["n_components"] == 2
    assert netbic.load(tmp_path / "out").column_penalty == AdaptiveSupport(clip=None, fallback=50)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("netbic.storage.runs.save", killed)
        assert automatic(files, tmp_path / "cut").exit_code == 1
    with monkeypatch.context() as patch:
        patch.setattr("netbic.selection.choose_settings", killed)  # the choice is not repeated
        again = automatic(files, tmp_path / "cut", "--resume")
    assert again.exit_code == 0, again.output
    names = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    for name in names:
        if name.name != "run.json":  # it holds the path of the folder's inputs, the same here, and no more
            assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name
