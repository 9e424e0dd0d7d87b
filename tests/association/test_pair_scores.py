"""Associations of pairs of two tables."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import netbic
from netbic.association.associate import associate_pairs, associate_scores
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


def test_the_tests_are_those_of_the_scores_of_each_table(fitted):
    model, labels = fitted
    found = associate_pairs(model, labels.sample(frac=1, random_state=0)).table
    same = ["variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p"]
    for table, scores in (("X", model.x_scores_), ("Y", model.y_scores_)):
        expected = associate_scores(pd.DataFrame(scores, index=labels.index), None, labels).table
        own = found[found["table"] == table].reset_index(drop=True)
        pd.testing.assert_frame_equal(own[same], expected[same])
        assert own["pair"].tolist() == expected["module"].tolist()
    overall = found[(found["test"] == "Kruskal-Wallis") & (found["variable"] == "plate")]
    assert len(overall) == 2 * model.x_scores_.shape[1]  # q-values count the tests of both tables
    np.testing.assert_allclose(overall["q"], scipy.stats.false_discovery_control(overall["p"]))
    donors = labels.assign(donor=np.repeat([f"d{k}" for k in range(10)], 4), drug=np.repeat(["yes", "no"], 20))
    averages = associate_pairs(model, donors[["donor", "drug"]], by="donor", variables="drug")
    assert set(averages.table["n"]) == {10}
    lines = [*associate_pairs(model, labels, adjust="plate").findings()]
    assert lines[0] == "adjusted for plate"
    assert any(line.startswith("age: rises with pair 2, Y (partial Spearman") for line in lines)
    with pytest.raises(ValueError, match="not fitted"):
        associate_pairs(netbic.SparseGraphCCA(1), labels)
