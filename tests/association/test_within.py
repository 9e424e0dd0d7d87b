"""Associations inside each level of a column, such as a disease inside each cell type."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from netbic.association import associate_scores
from netbic.errors import InputError


def cells_of(donors, types, rng, *, effect=0.0, spread=1.0):
    """Cells of donors in cell types; ill donors differ by `effect` in type A; donors differ in every type."""
    n = 20 * donors * types
    donor, kind = np.tile(np.arange(donors), 20 * types), np.repeat(list("ABCDE")[:types], 20 * donors)
    ill = donor < donors // 2
    own = spread * rng.standard_normal((donors, types))[donor, np.repeat(np.arange(types), 20 * donors)]
    score = 3.0 * (kind == "B") + own + effect * (ill & (kind == "A")) + rng.standard_normal(n)
    names = [f"cell {k}" for k in range(n)]
    table = pd.DataFrame({"donor": [f"d{k}" for k in donor], "type": kind}, names)
    table["disease"] = np.where(ill, "ill", "well")
    return pd.DataFrame({1: score, 2: rng.standard_normal(n)}, names), table


def test_each_level_has_the_tests_of_its_samples_and_q_values_count_all_levels():
    scores, table = cells_of(8, 3, np.random.default_rng(0), effect=4.0)
    found = associate_scores(scores, None, table, variables="disease", by="donor", within="type").table
    own = found[found["test"] == "Mann-Whitney"]
    assert own["within"].unique().tolist() == ["A", "B", "C"]
    assert own["variable"].unique().tolist() == [f"disease within {each}" for each in "ABC"]
    for (level, module, disease), row in own.set_index(["within", "module", "level"]).iterrows():
        inside = table["type"] == level
        means = scores.loc[inside, module].groupby(table.loc[inside, "donor"]).mean()
        ill = means.index.isin(table.loc[table["disease"] == disease, "donor"])
        expected = stats.mannwhitneyu(means[ill], means[~ill])
        assert (row["n"], row["p"]) == (8, pytest.approx(expected.pvalue))
    np.testing.assert_allclose(own["q"], stats.false_discovery_control(own["p"]))
    strongest = own.sort_values("p").iloc[0]
    assert (strongest["within"], strongest["module"]) == ("A", 1)


def test_without_an_effect_averages_of_donors_are_calibrated_and_cells_are_not():
    p_of_donors, p_of_cells = list[float](), list[float]()
    for seed in range(60):
        scores, table = cells_of(12, 3, np.random.default_rng(seed))
        for by, collected in (("donor", p_of_donors), (None, p_of_cells)):
            own = table if by else table.drop(columns="donor")
            found = associate_scores(scores, None, own, variables="disease", by=by, within="type").table
            chosen = (found["test"] == "Kruskal-Wallis") & (found["module"] == 1)
            collected += found.loc[chosen, "p"].tolist()
    assert len(p_of_donors) == 180
    assert stats.binomtest(int(np.sum(np.array(p_of_donors) <= 0.05)), 180, 0.05).pvalue > 0.01
    assert np.mean(np.array(p_of_cells) <= 0.05) > 0.5


def test_what_cannot_be_tested_in_a_level_is_said():
    scores, table = cells_of(8, 3, np.random.default_rng(1))
    with pytest.warns(UserWarning, match="disease is the same in all cells of one donor") as caught:
        associate_scores(scores, None, table, variables="disease", within="type", sample_name="cell")
    assert len(caught) == 1
    table.loc[table["type"] == "C", "disease"] = "well"
    table["age"] = table["donor"].str[1:].astype(int)
    table.iloc[-5:, table.columns.get_loc("type")] = None
    found = associate_scores(
        scores, None, table, variables=["disease", "age"], types={"age": "numeric"}, by="donor", within="type"
    )
    titles = {f"{name} within {level}" for name in ("disease", "age") for level in "ABC"}
    assert set(found.table["variable"]) == titles - {"disease within C"}
    notes = " ".join(found.notes)
    assert "disease within C is not tested: " in notes
    assert "5 samples without a value of type are left out" in notes
    assert any(line.startswith("age within A: ") for line in found.lines())
    for options, message in (
        ({"within": "tissue"}, "has no column 'tissue'"),
        ({"within": "type", "variables": "type"}, "'type' is the same in all samples inside a level of it"),
        ({"within": "type", "variables": "disease", "by": "batch"}, "no column 'batch'"),
    ):
        with pytest.raises(InputError, match=message):
            associate_scores(scores, None, table, **options)


def test_covariates_that_are_constant_in_a_level_are_left_out_there():
    scores, table = cells_of(8, 2, np.random.default_rng(2))
    table["batch"] = np.where(table["type"] == "A", "one", np.tile(["one", "two"], len(table) // 2))
    table = table.drop(columns="donor")
    found = associate_scores(scores, None, table, variables="disease", adjust="batch", within="type")
    tests = found.table.groupby("within")["test"].unique().map(list).to_dict()
    assert "Mann-Whitney" in tests["A"]
    assert tests["B"] == ["linear model", "linear model, level"]


def test_averages_of_few_cells_are_left_out_but_replicates_are_not():
    scores, table = cells_of(8, 2, np.random.default_rng(3))
    own = table["type"].eq("A") & table["donor"].isin(["d0", "d7"])
    kept = ~own | (table.groupby(["type", "donor"]).cumcount() < 4)  # four cells of type A of two donors
    scores, table = scores[kept], table[kept]
    found = associate_scores(scores, None, table, variables="disease", by="donor", within="type", sample_name="cell")
    assert found.table.groupby("within")["n"].unique().map(list).to_dict() == {"A": [6], "B": [8]}
    assert "A: 2 of 8 averages are left out, those of fewer than 10 cells ('d0', 'd7')" in found.notes
    few = table.groupby(["type", "donor"]).cumcount() < 3  # replicates
    found = associate_scores(scores[few], None, table[few], variables="disease", by="donor", within="type")
    assert (found.table["n"] == 8).all()
