"""Gene-set enrichment: scipy's p-values, Benjamini-Hochberg over all tests, no false positives in controls."""

from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, fisher_exact, hypergeom

import netbic
from netbic import InputError
from netbic.enrichment import gene_sets
from netbic.enrichment.gene_sets import hypergeometric_tail

generator = np.random.default_rng(0)
GENES = np.array([f"g{k}" for k in range(400)], dtype=object)
SETS = {f"t{k}": generator.choice(GENES, generator.integers(12, 60), replace=False).tolist() for k in range(30)}
SETS["planted"] = GENES[:40].tolist()
MODULE = np.concatenate([GENES[:25], GENES[300:315]])


def test_p_values_are_fishers_and_adjusted_over_all_sets_tested():
    table = gene_sets([MODULE], SETS, names=GENES).set_index("term")
    p_values = {}
    for term, members in SETS.items():
        both = len(set(members) & set(MODULE))
        counts = [[both, len(MODULE) - both], [len(members) - both, 400 - len(MODULE) - len(members) + both]]
        p_values[term] = fisher_exact(counts, alternative="greater").pvalue
    adjusted = dict(zip(p_values, false_discovery_control(list(p_values.values())), strict=True))
    for term, row in table.iterrows():
        assert row["p_value"] == pytest.approx(p_values[term], rel=1e-9)
        assert row["q_value"] == pytest.approx(adjusted[term], rel=1e-9)
        both = set(SETS[term]) & set(MODULE)
        assert set(row["genes"].split(", ")) == both
        assert row["fold_change"] == pytest.approx(len(both) / (len(MODULE) * len(SETS[term]) / 400))
    assert table.index[0] == "planted"
    assert table["p_value"].is_monotonic_increasing
    numbers = {term: [int(gene[1:]) + 1000 for gene in members] for term, members in {**SETS, "own": MODULE}.items()}
    own = gene_sets([numbers.pop("own")], numbers, names=np.arange(1000, 1400))  # Entrez ids
    assert own["p_value"].tolist() == table["p_value"].tolist()
    few = gene_sets([[], ["g0"], MODULE], SETS, names=GENES, background=GENES[:200], min_size=20, max_size=40)
    assert few["n_term"].between(20, 40).all()
    assert few.groupby("module")["n_module"].first().to_dict() == {2: 1, 3: 25}
    planted = few[few["module"] == 3].set_index("term").loc["planted"]
    assert (planted["n_term"], planted["fold_change"]) == (40, pytest.approx(25 / (25 * 40 / 200)))
    assert gene_sets([], SETS, names=GENES).columns.tolist() == few.columns.tolist()


@pytest.mark.parametrize("n", [2, 3, 7, 40, 400, 2500, 20_000])
def test_tails_are_exact(n):
    rng = np.random.default_rng(n)
    marked, drawn = rng.integers(1, min(n, 900) + 1, (2, 60))
    fewest, most = np.maximum(1, marked + drawn - n), np.minimum(marked, drawn)
    least = rng.integers(fewest, most + 1)
    least = np.concatenate([least, np.minimum(fewest + rng.integers(0, 60, 60), most), fewest, most])
    marked, drawn = np.tile(marked, 4), np.tile(drawn, 4)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        found = hypergeometric_tail(least, n, marked, drawn)
    for k, m, d, p in zip(least.tolist(), marked.tolist(), drawn.tolist(), found.tolist(), strict=True):
        exact = Fraction(sum(comb(m, j) * comb(n - m, d - j) for j in range(k, min(m, d) + 1)), comb(n, d))
        assert p == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
    scipys = hypergeom.sf(least - 1, n, marked, drawn)
    assert found == pytest.approx(scipys, rel=1e-11, abs=1e-300)
    assert n < 400 or found[found > 0].min() < 1e-50


def test_genes_listed_twice_count_once():
    twice = {term: [*members, *members[:3]] for term, members in SETS.items()}
    pd.testing.assert_frame_equal(gene_sets([MODULE], twice, names=GENES), gene_sets([MODULE], SETS, names=GENES))


def test_a_model_its_names_and_its_signs(tmp_path):
    study = netbic.simulate.cohort(200, 800, n_modules=1, random_state=0)
    model = netbic.SparseGraphSVD(1, n_rows=40, n_columns=60).fit(study.expression)
    sets = {
        "up": study.expression.columns[model.components_[0] > 0].tolist(),
        "down": study.expression.columns[model.components_[0] < 0].tolist(),
    }
    together = gene_sets(model, sets, by_sign=False)
    assert {*together["term"]} == {"up", "down"}
    assert {*together["side"]} == {"both"}
    assert {*together["n_module"]} == {60}
    apart = gene_sets(model, sets, by_sign=True)
    assert apart[["sign", "term", "side"]].to_numpy().tolist() == [[1, "up", "up"], [-1, "down", "down"]]
    by_default = gene_sets(model, sets)
    pd.testing.assert_frame_equal(by_default, apart.drop(columns="sign"))
    path = tmp_path / "sets.gmt"
    path.write_text(
        "".join(f"{term}\tgenes going {term}\t" + "\t".join(members) + "\n" for term, members in sets.items())
    )
    from_file = gene_sets(model, path)
    assert set(from_file["name"]) == {"genes going up", "genes going down"}
    array = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression.to_numpy())
    assert len(gene_sets(array, sets, names=study.expression.columns))
    with pytest.raises(InputError, match="fitted to an array"):
        gene_sets(array, sets)
    # A side with fewer than ten genes is not tested separately.
    genes, weights = study.expression.columns, np.zeros((2, study.expression.shape[1]))
    weights[:, :40], weights[0, 40:50], weights[1, 40:49] = 0.1, -0.1, -0.1
    model.components_, model.columns_ = weights, weights != 0
    sets = {"front": genes[:50].tolist(), "up": genes[:40].tolist()}
    table = gene_sets(model, sets)
    assert table.groupby("module")["side"].unique().map(list).tolist() == [["up", "down"], ["both"]]
    assert table.groupby(["module", "side"], sort=False)["n_module"].first().tolist() == [40, 10, 49]
    down = table[table["side"] == "down"]
    assert down[["term", "n_overlap"]].to_numpy().tolist() == [["front", 10]]


def test_redundant_terms_can_be_left_out():
    sets = SETS | {"nearly planted": [*GENES[:38], "g399"], "other": GENES[300:330].tolist()}
    everything = gene_sets([MODULE], sets, names=GENES)
    fewer = gene_sets([MODULE], sets, names=GENES, collapse=0.5)
    assert set(fewer["term"]) < set(everything["term"])
    assert "planted" in set(fewer["term"]) or "nearly planted" in set(fewer["term"])
    assert not {"planted", "nearly planted"} <= set(fewer["term"])
    assert "other" in set(fewer["term"])
    both = everything.set_index("term").loc[fewer["term"], "q_value"]
    assert both.tolist() == fewer["q_value"].tolist()


def test_random_modules_find_nothing():
    modules = [GENES[k : k + 40] for k in range(0, 360, 40)]
    sets = {f"s{k}": GENES[k : k + 40].tolist() for k in range(0, 360, 40)}
    assert (gene_sets(modules, sets, names=GENES).groupby("module")["q_value"].min() < 1e-10).all()
    smallest = []
    for seed in range(30):
        random = np.random.default_rng(seed).permutation(GENES[:360]).reshape(9, 40)
        smallest.append(gene_sets(list(random), sets, names=GENES).groupby("module")["q_value"].min())
    assert (pd.concat(smallest) <= 0.05).mean() < 0.08


def test_bad_input():
    for options, message in (
        (
            {"gene_sets": {"mouse": ["Trp53", "Mdm2"]}},
            r"none of the genes of the 1 gene sets.*'g0'.*'Trp53'.*gene sets have gene symbols as of mouse",
        ),
        ({"min_size": 300}, "none of 31 gene sets has 300 to 500 genes"),
        ({"background": GENES[:5]}, "none of 31 gene sets has 10 to 500 genes among the 5"),
        ({"background": ["x"]}, "none of the genes of the data is in the background"),
        ({"names": None}, "give the names of all genes"),
        ({"by_sign": True}, "needs a fitted model"),
        ({"collapse": 0.0}, "above 0 and up to 1"),
        ({"names": [*GENES, "g0"]}, "'g0' occurs more than once"),
    ):
        with pytest.raises(InputError, match=message):
            gene_sets([MODULE], **({"gene_sets": SETS, "names": GENES} | options))
