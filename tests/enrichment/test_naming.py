import pandas as pd
import pytest

import netbic
from netbic.enrichment import gene_sets, module_names, naming_sets
from netbic.errors import InputError

GENES = [f"g{k}" for k in range(20)]


def table(*rows):
    """Gene sets: module, term, name, q-value, and its genes by their numbers."""
    found = pd.DataFrame(rows, columns=["module", "term", "name", "q_value", "genes"])
    return found.assign(genes=[", ".join(f"g{k}" for k in own) for own in found["genes"]], side="both")


def members(weights):
    """A module of the genes g0, g1, ... with these weights."""
    rows = [(1, "gene", name, weight) for name, weight in zip(GENES, weights, strict=False)]
    return pd.DataFrame(rows, columns=["module", "axis", "name", "weight"])


def falling(n_up, n_down=0):
    """Weights by decreasing absolute value, the positive ones first."""
    return [(1 - k / 100) * (1 if k < n_up else -1) for k in range(n_up + n_down)]


def test_the_best_set_and_its_leading_genes():
    genes = members(falling(20))
    assert module_names(genes) == ["g0, g1, g2"]
    found = table((1, "GO:1", "first", 0.04, range(5)), (1, "GO:2", "best", 0.01, range(9, 2, -1)))
    assert module_names(genes, found) == ["best: g3, g4, g5"]
    assert naming_sets(genes, found) == ["best"]
    assert module_names(members(falling(20)[::-1]), found) == ["best: g9, g8, g7"]


def test_the_direction_is_that_of_the_genes_of_the_set():
    genes = members(falling(10, 10))
    for side in ("both", "down"):  # the genes that were tested say nothing about those that were found
        found = table((1, "GO:1", "set", 0.01, range(12, 18))).assign(side=side)
        assert module_names(genes, found) == ["set (down): g12, g13, g14"]
    assert module_names(genes, table((1, "GO:1", "set", 0.01, range(4, 10)))) == ["set: g4, g5, g6"]
    nearly = [0, *range(10, 15)]  # five of six are down
    assert module_names(genes, table((1, "GO:1", "set", 0.01, nearly))) == ["set (down): g10, g11, g12"]
    mixed = table((1, "GO:1", "mixed", 0.001, range(8, 17)), (1, "GO:2", "next", 0.01, range(5)))
    assert module_names(genes, mixed) == ["next: g0, g1, g2"]  # two up, seven down: 78 %
    assert module_names([GENES], table((1, "GO:1", "set", 0.01, range(5)))) == ["set: g0, g1, g2"]  # no weights


def test_sets_of_few_genes_and_those_that_are_not_significant_give_no_name():
    assert module_names(members(falling(20)), table((1, "GO:1", "four genes", 1e-9, range(4)))) == ["g0, g1, g2"]
    many = [f"g{k}" for k in range(40)]
    assert module_names([many], table((1, "GO:1", "12.5 %", 1e-9, range(5)))) == ["g0, g1, g2"]
    assert module_names([many], table((1, "GO:1", "15 %", 1e-9, range(10, 16)))) == ["15 %: g10, g11, g12"]
    few_down = members(falling(14, 4))  # all of the side, but not five
    assert module_names(few_down, table((1, "GO:1", "set", 1e-9, range(14, 18)))) == ["g0, g1, g2"]
    unknown = table((1, "GO:1", "set", 1e-9, range(9)))
    for genes in ("", None, "x, y"):
        assert module_names([GENES], unknown.assign(genes=genes)) == ["g0, g1, g2"]
    assert module_names([GENES], unknown.drop(columns="genes")) == ["g0, g1, g2"]
    assert module_names([GENES], table((1, "GO:1", "set", 0.051, range(5)))) == ["g0, g1, g2"]
    assert module_names([GENES], table((1, "GO:1", "set", 0.05, range(5)))) == ["set: g0, g1, g2"]
    for empty in (" ", None):
        assert module_names([GENES], table((1, "GO:1", empty, 0.05, range(5)))) == ["GO:1: g0, g1, g2"]


def test_no_two_modules_have_the_same_name():
    found = table(
        (1, "GO:1", "set", 0.01, range(5)), (2, "GO:1", "set", 0.001, range(5)), (2, "GO:2", "next", 0.01, range(5)),
        (3, "GO:1", "set", 0.001, range(5)),
    )  # fmt: skip
    assert module_names([GENES] * 4, found) == ["set: g0, g1, g2", "next: g0, g1, g2", "g0, g1, g2", "g0, g1, g2 (2)"]
    assert naming_sets([GENES] * 4, found) == ["set", "next", "", ""]
    modules = [["a", "b"], ["a", "b"], ["c"], [], []]
    assert module_names(modules) == ["a, b", "a, b (2)", "c", "no genes", "no genes (2)"]
    assert module_names([["a", "b"], ["a, b"], ["a, b"]]) == ["a, b", "a, b (2)", "a, b (3)"]


def test_names_are_one_short_line():
    genes = ["=cmd|'x'\n\tY", "x" * 200, *GENES[:5]]
    long = table((1, "GO:1", "a very\nlong " + "set " * 50, 0.0, ())).assign(genes=", ".join(genes))
    name = module_names([genes], long)[0]
    assert name.isprintable()
    assert len(name) < 140
    assert "a very long set" in name


def test_a_model_and_its_table_have_the_same_names_and_other_tables_are_refused():
    study = netbic.simulate.cohort(200, 800, n_modules=3, random_state=1)
    model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    sets = {f"planted{k}": study.expression.columns[mask].tolist() for k, mask in enumerate(study.genes)}
    found = gene_sets(model, sets)
    names = module_names(model, found)
    assert names == module_names(netbic.storage.modules_table(model), found)
    assert sorted(name.split(" (down)")[0].split(":")[0] for name in names) == ["planted0", "planted1", "planted2"]
    top = netbic.storage.summary_table(model)["top_features"]
    assert module_names(model) == [", ".join(genes.split(", ")[:3]) for genes in top]
    with pytest.raises(InputError, match="no column 'q_value'"):
        module_names([["a"]], pd.DataFrame({"module": [1], "term": ["x"]}))
    with pytest.raises(InputError, match="no column 'axis'"):
        module_names(pd.DataFrame({"module": [1]}))
