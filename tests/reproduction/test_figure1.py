"""Figure 1's numbers, against independent implementations of each method.

The reference values are means over 50 replicates, started from the leading singular pair, with n = p = 100, 50 of each
axis kept, sigma .1 on both sides, edges with probability .3 inside the first 50 vertices and .1 for every other pair.
Their standard errors are about .005.
"""

import numpy as np
import pytest

from netbic.simulate import paper
from reproduction.simulation import as_published, controls, found_columns, off_the_block, sensitivities

GAMMAS = (0.02, 0.03, 0.04, 0.05, 0.06)
REFERENCE = {
    ("same", "sgSVD*"): (1, 1, 0.994, 0.983, 0.961),
    ("same", "sgSVD"): (1, 1, 0.997, 0.988, 0.975),
    ("same", "L1-sgSVD*"): (1, 0.999, 0.988, 0.970, 0.941),
    ("same", "L0SVD"): (1, 0.985, 0.925, 0.844, 0.762),
    ("same", "PMD"): (1, 0.976, 0.891, 0.787, 0.695),
    ("same", "ALSVD"): (1, 0.978, 0.896, 0.790, 0.699),
    ("same", "SCADSVD"): (1, 0.968, 0.869, 0.767, 0.692),
    ("random", "sgSVD*"): (1, 1, 0.996, 0.983, 0.962),
    ("random", "sgSVD"): (0.842, 0.819, 0.787, 0.763, 0.729),
    ("random", "L1-sgSVD*"): (1, 0.998, 0.992, 0.968, 0.942),
    ("random", "L0SVD"): (1, 0.984, 0.927, 0.841, 0.752),
    ("random", "PMD"): (1, 0.974, 0.888, 0.781, 0.684),
    ("random", "ALSVD"): (1, 0.976, 0.892, 0.785, 0.685),
    ("random", "SCADSVD"): (1, 0.967, 0.869, 0.767, 0.678),
}
METHODS = tuple(name for signs, name in REFERENCE if signs == "same")


@pytest.mark.parametrize(
    ("replicates", "gammas"), [(50, (0.06,)), pytest.param(100, (0.04, 0.06), marks=pytest.mark.nightly)]
)
def test_sensitivities_agree_with_the_reference(replicates, gammas):
    table = sensitivities(replicates, gammas=gammas, methods=METHODS)
    cells = zip(table["signs"], table["method"], table["gamma"], strict=True)
    reference = [REFERENCE[signs, name][GAMMAS.index(gamma)] for signs, name, gamma in cells]
    off = table[np.abs(table["mean"] - reference) > 0.02]
    assert off.empty, off
    wide = table.pivot_table(index=["signs", "gamma"], columns="method", values="mean")
    assert (wide.loc["random", "sgSVD*"] > wide.loc["random", "sgSVD"] + 0.15).all()
    assert (wide["sgSVD*"] > wide["L0SVD"]).all()


def test_controls_show_the_effect_of_the_graph_alone():
    table = controls(30, methods=("sgSVD*", "L0SVD")).set_index(["control", "method"])
    assert 0.78 < table.loc[("no signal", "sgSVD*"), "in_block"] < 0.95
    assert table.loc[("no signal", "L0SVD"), "in_block"] == pytest.approx(0.5, abs=0.03)
    assert table.loc[("signal off the dense block", "sgSVD*"), "in_block"] == pytest.approx(0.78, abs=0.04)
    assert table.loc[("graphs permuted", "sgSVD*"), "in_block"] > 0.7  # it follows the graph even if that is wrong
    assert (
        table.loc[("graphs permuted", "sgSVD*"), "sensitivity"] < table.loc[("graphs permuted", "L0SVD"), "sensitivity"]
    )
    assert np.isnan(table.loc[("no signal", "sgSVD*"), "sensitivity"])


def test_without_a_graph_the_position_of_the_signal_does_not_matter():
    toy = paper(0.03, random_state=0)
    there, here = off_the_block(toy), as_published(toy)
    assert there.truth.tolist() == here.truth.tolist()[::-1]
    np.testing.assert_array_equal(found_columns(there, "L0SVD", 0)[::-1], found_columns(here, "L0SVD", 0))
