"""Consensus: planted modules are found again, others are not, and random starts differ."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import SparseGraphSVD
from netbic.selection import consensus
from netbic.selection.consensus import _DistinctModules, _FromRandomStarts
from netbic.selection.matching import Layers

study = netbic.simulate.cohort(150, 300, n_modules=2, module_genes=40, module_samples=40, strength=1.2, random_state=0)
model = SparseGraphSVD(3, n_rows=40, n_columns=40)
QUICK = {"n_starts": 6, "n_pairs": 3, "random_state": 0}


def test_planted_modules_are_found_again_and_the_third_is_not():
    found = consensus(model, study.expression, **QUICK)
    often = found.table[(found.table["starts"] > 0.5) & (found.table["halves"] > 0.5)]
    assert often["module"].tolist() == [0, 1]
    assert (often["similarity"] > 0.8).all()
    scores = netbic.simulate.recovery(found.columns[:2], study.genes)
    assert (scores["f1"] > 0.8).all()
    assert found.verdict.startswith("2 of ")
    assert found.table["n_columns"].tolist() == found.columns.sum(axis=1).tolist()
    assert found.table["starts"].is_monotonic_decreasing


def test_the_result_does_not_depend_on_the_number_of_threads():
    one, two = (consensus(model, study.expression.to_numpy(), **QUICK, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table)


def test_shares_add_up():
    """Each start has the requested number of modules, and each of them is counted once."""
    found = consensus(model, study.expression, **QUICK)
    assert found.table["starts"].sum() * 6 == pytest.approx(3 * 6)


def test_starts_differ():
    noise = np.random.default_rng(0).standard_normal((80, 90))
    parameters = {"n_components": 1, "n_rows": 10, "n_columns": 10, "n_init": 1}
    values = {
        round(float(_FromRandomStarts(**parameters, random_state=seed).fit(noise).singular_values_[0]), 9)
        for seed in range(6)
    }
    assert len(values) > 3
    same = [_FromRandomStarts(**parameters, random_state=5).fit(noise).components_ for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_each_distinct_module_is_listed_once():
    generator = np.random.default_rng(0)
    left, right = generator.standard_normal((30, 3)), generator.standard_normal((3, 40))
    distinct = _DistinctModules(Layers(left[:, :2], right[:2]))
    distinct.add(Layers(-left[:, [2, 0]], -right[[2, 0]]))
    distinct.add(Layers(left[:, [1, 2]], right[[1, 2]]))
    table = distinct.result(2, np.zeros(3)).table
    assert sorted(table["starts"]) == [0.5, 0.5, 1.0]
    np.testing.assert_allclose(table["similarity"], 1)


@pytest.mark.parametrize("options", [{"n_starts": 0}, {"n_pairs": 0}])
def test_bad_input(options):
    with pytest.raises(ValueError, match="at least 1"):
        consensus(model, study.expression, **options)
