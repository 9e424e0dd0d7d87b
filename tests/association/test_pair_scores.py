"""Associations of pairs of two tables."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import netbic
from netbic import InputError
from netbic.association.associate import associate_scores
from netbic.association.pairs import associate_pairs
from netbic.selection import pair_tests
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
    assert lines[1].startswith("p-values are too small, because")  # the pairs were not tested
    assert any(line.startswith("age: rises with pair 2, Y (partial Spearman") for line in lines)
    with pytest.raises(ValueError, match="not fitted"):
        associate_pairs(netbic.SparseGraphCCA(1), labels)


def test_labels_of_one_table_are_not_found_in_an_independent_one():
    random, p_values = np.random.default_rng(0), []
    samples = [f"s{k}" for k in range(54)]
    ill = pd.DataFrame({"ill": np.repeat(["no", "yes"], 27)}, index=samples)
    for seed in range(20):
        X, Y = (pd.DataFrame(random.standard_normal((54, 60)), samples) for _ in range(2))
        X.iloc[27:, :20] += 1.5
        model = netbic.SparseGraphCCA(1, n_x=15, n_y=15)
        tests = pair_tests(model, X, Y, n_permutations=19, n_folds=2, n_repeats=1, random_state=seed)
        both = [associate_pairs(each, ill).table for each in (tests, tests.reference)]
        p_values.append([own.set_index(["table", "test"])["p"].xs("Kruskal-Wallis", level="test") for own in both])
        assert set(both[0]["scores"]) == {"held out"}
        assert set(both[1]["scores"]) == {"fit"}
    held_out, of_fit = (pd.DataFrame(list(own)) for own in zip(*p_values, strict=True))
    assert (of_fit["Y"] <= 0.05).sum() >= 15  # so that the scores of the fit must not be tested
    assert (held_out["Y"] <= 0.05).sum() <= 4  # 99.7 % of the binomial distribution
    assert (held_out["X"] <= 1e-4).all()  # what is there is found
    with pytest.raises(InputError, match="about other pairs or samples"):
        associate_pairs(tests.reference, ill, held_out=tests.scores.iloc[::-1])
