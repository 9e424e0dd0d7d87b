"""Associations of pairs of two tables."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import netbic
from netbic.association import associate_pairs, associate_scores
from support.pair_folders import model_of


@pytest.fixture(scope="module")
def fitted():
    model, X, _ = model_of()
    random = np.random.default_rng(1)
    labels = pd.DataFrame(
        {
            "group": np.where(model.x_scores_[:, 0] > 0, "high", "low"),
            "age": 50 + 10 * model.y_scores_[:, 1] + random.standard_normal(len(X)),
            "plate": random.choice(list("abc"), len(X)),
        },
        index=X.index,
    )
    return model, labels


@pytest.mark.parametrize("table", [1, 2])
def test_the_tests_are_those_of_the_scores_of_each_table(fitted, table):
    model, labels = fitted
    scores = pd.DataFrame(model.x_scores_ if table == 1 else model.y_scores_, index=labels.index)
    expected = associate_scores(scores, None, labels).table
    found = associate_pairs(model, labels.sample(frac=1, random_state=0)).table
    own = found[found["table"] == table].reset_index(drop=True)
    same = ["variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p"]
    pd.testing.assert_frame_equal(own[same], expected[same])
    assert own["pair"].tolist() == expected["module"].tolist()


def test_q_values_count_the_tests_of_both_tables(fitted):
    model, labels = fitted
    found = associate_pairs(model, labels, variables="plate").table
    one = associate_scores(pd.DataFrame(model.x_scores_, index=labels.index), None, labels, variables="plate").table
    assert len(found) == 2 * len(one)
    overall = found[found["test"] == "Kruskal-Wallis"]
    np.testing.assert_allclose(overall["q"], scipy.stats.false_discovery_control(overall["p"]))


def test_the_strongest_associations_name_pair_and_table(fitted):
    model, labels = fitted
    lines = [*associate_pairs(model, labels).findings()]
    assert any(line.startswith("group: high is higher in pair 1, table 1 (AUC 1.00") for line in lines)
    assert any(line.startswith("age: rises with pair 2, table 2 (Spearman") for line in lines)
    adjusted = [*associate_pairs(model, labels, adjust="plate").findings()]
    assert adjusted[0] == "adjusted for plate"


def test_averages_of_samples_that_belong_together(fitted):
    model, labels = fitted
    donors = labels.assign(donor=np.repeat([f"d{k}" for k in range(10)], 4), drug=np.repeat(["yes", "no"], 20))
    found = associate_pairs(model, donors[["donor", "drug"]], by="donor", variables="drug")
    assert set(found.table["n"]) == {10}


def test_a_model_that_is_not_fitted_is_refused(fitted):
    with pytest.raises(ValueError, match="not fitted"):
        associate_pairs(netbic.SparseGraphCCA(1), fitted[1])
