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
    """A doubtful pair is not tested; one that both tables have is tested in both."""
    random = np.random.default_rng(0)
    samples = [f"s{k}" for k in range(54)]
    ill = pd.DataFrame({"ill": np.repeat(["no", "yes"], 27)}, index=samples)
    model, of_fit, held_out, found = netbic.SparseGraphCCA(1, n_x=15, n_y=15), [], [], []
    for seed in range(20):
        X, Y = (pd.DataFrame(random.standard_normal((54, 60)), samples) for _ in range(2))
        X.iloc[27:, :20] += 1.5
        common = seed % 2 * random.standard_normal((54, 1))  # in every second data set
        X.iloc[:, 10:30] += common
        Y.iloc[:, :20] += common
        tests = pair_tests(model, X, Y, n_permutations=19, n_repeats=2, random_state=seed)
        of_fit.append(p_value(associate_pairs(tests.reference, ill), "Y"))
        tested = associate_pairs(tests, ill)
        assert set(tested.table["scores"]) <= {"held out"}
        is_doubtful = tests.table["verdict"][0] == "doubtful"
        assert ("not compared with labels, because doubtful: pair 1" in tested.notes) == is_doubtful
        assert tested.table.empty or not is_doubtful
        if not is_doubtful:
            held_out.append(p_value(tested, "Y"))
            found.append(p_value(tested, "X"))
    assert np.sum(np.array(of_fit) <= 0.05) >= 8  # so that the scores of the fit must not be tested
    assert len(held_out) >= 8
    assert np.sum(np.array(held_out) <= 0.05) <= 3  # 99 % of the binomial distribution
    assert np.sum(np.array(found) <= 0.05) >= 3  # the label is in X
    with pytest.raises(InputError, match="about other pairs or samples"):
        associate_pairs(tests.reference, ill, held_out=tests.scores.iloc[::-1])


def p_value(found, table):
    """Of the Kruskal-Wallis test in a table."""
    return found.table.set_index(["table", "test"]).loc[(table, "Kruskal-Wallis"), "p"].item()


def test_scores_that_do_not_resemble_those_of_the_fit_are_not_tested(fitted):
    model, labels = fitted
    pairs, n = model.n_components_, len(labels)
    held_out = pd.DataFrame({"pair": np.repeat(np.arange(1, pairs + 1), n), "sample": np.tile(labels.index, pairs)})
    held_out["held_out_1"], held_out["held_out_2"] = model.x_scores_.T.ravel(), model.y_scores_.T.ravel()
    held_out.loc[held_out["pair"] == 2, "held_out_1"] = np.random.default_rng(0).standard_normal(n)
    found = associate_pairs(model, labels, held_out=held_out)
    assert set(zip(found.table["pair"], found.table["table"], strict=True)) == {(1, "X"), (1, "Y"), (2, "Y")}
    note = "not compared with labels, because held-out scores hardly resemble those of the fit: pair 2 in X"
    assert note in found.notes
