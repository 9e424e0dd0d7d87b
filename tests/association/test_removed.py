"""Tests of scores from which covariates were removed in the fit."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.association.associate import Removed


def pairs(generator, n_pairs=20):
    """Noise of pairs of samples, and a label that differs within every pair."""
    names = [f"s{k}" for k in range(2 * n_pairs)]
    X = pd.DataFrame(generator.standard_normal((2 * n_pairs, 60)), index=names)
    flips = generator.integers(0, 2, n_pairs)
    label = np.where(np.column_stack([flips, 1 - flips]).ravel() == 1, "a", "b")
    return X, pd.DataFrame({"pair": [f"p{k // 2}" for k in range(2 * n_pairs)], "label": label}, index=names)


def test_many_covariates_are_adjusted_for():
    X, table = pairs(np.random.default_rng(0))
    model = netbic.SparseGraphSVD(1, n_columns=10).fit(X, covariates=table[["pair"]])
    found = netbic.associate(model, X, table)
    assert found.adjusted_for == ("pair",)
    cases = [((), (), ["pair"]), (("age",), (), ["age", "pair"]), (("pair",), (), ["pair"]), ((), ("pair",), [])]
    for adjust, variables, expected in cases:  # what is asked for is kept
        assert Removed(("pair",), 19).adjustment(adjust, variables, ["pair", "age"], 40)[0] == expected
    assert Removed(("pair",), 2).adjustment((), (), ["pair"], 40) == ([], "")  # few degrees of freedom: nothing changes
    assert any("took 19 of 40 degrees of freedom" in line for line in found.findings())
    expected = netbic.associate(model, X, table, adjust="pair")
    pd.testing.assert_frame_equal(found.table, expected.table)
    alone = netbic.associate(model, X, table.drop(columns="pair"))
    assert any(
        "p-values are too small: pair (not in the sample table): removed in the fit" in line
        for line in alone.findings()
    )


@pytest.mark.nightly
def test_labels_without_an_effect_are_not_significant_too_often():
    p = []
    for seed in range(150):
        X, table = pairs(np.random.default_rng([7, seed]))
        model = netbic.SparseGraphSVD(1, n_columns=10).fit(X, covariates=table[["pair"]])
        p += netbic.associate(model, X, table, variables="label").table["p"].tolist()
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 150)  # 0.16 without the adjustment


def test_a_removed_covariate_that_differs_in_spread_is_remarked():
    table = pd.DataFrame({"variable": ["batch", "age", "batch"], "q": [0.5, 0.01, 0.6]})
    assert list(Removed(("batch",), 2).remarks(table)) == []
    remarks = list(Removed(("batch",), 2).remarks(table.assign(q=[0.5, 0.01, 0.01])))
    assert remarks == ["batch: its mean effect was removed before the search; a difference in spread can remain"]
