import pandas as pd
import pytest

import netbic
from netbic.enrichment import gene_sets, module_names
from netbic.errors import InputError


def table(*rows):
    return pd.DataFrame(rows, columns=["module", "term", "name", "q_value", "side"])


def members(*rows):
    return pd.DataFrame(
        [(0, "gene", name, weight) for name, weight in rows], columns=["module", "axis", "name", "weight"]
    )


def test_the_best_set_and_the_leading_genes_of_its_side():
    genes = members(("b", 0.4), ("a", -0.9), ("c", 0.5), ("d", 0.1), ("e", -0.2))
    assert module_names(genes) == ["a, c, b"]
    assert module_names(genes, table((0, "GO:1", "first", 0.04, "up"), (0, "GO:2", "best", 0.01, "both"))) == [
        "best: a, c, b"
    ]
    assert module_names(genes, table((0, "GO:1", "set", 0.04, "up"))) == ["set: c, b, d"]
    assert module_names(genes, table((0, "GO:1", "set", 0.04, "down"))) == ["set (down): a, e"]


def test_the_genes_belong_to_the_set_if_it_is_known_which_do():
    genes = members(("b", 0.4), ("a", -0.9), ("c", 0.5), ("d", 0.1), ("e", -0.2))
    found = table((0, "GO:1", "set", 0.04, "up"))
    assert module_names(genes, found.assign(genes="a, b, d")) == ["set: b, d"]
    assert module_names(genes, found.assign(genes="d, b, c")) == ["set: c, b, d"]
    for unknown in ("", None, "x, y"):
        assert module_names(genes, found.assign(genes=unknown)) == ["set: c, b, d"]
    numbers = members((7, 0.4), (8, 0.5))
    assert module_names(numbers, found.assign(genes="7")) == ["set: 7"]


def test_sets_that_are_not_significant_give_no_name():
    genes = members(("b", 0.4), ("a", 0.9))
    assert module_names(genes, table((0, "GO:1", "set", 0.051, "both"))) == ["a, b"]
    assert module_names(genes, table((0, "GO:1", "set", 0.05, "both"))) == ["set: a, b"]
    assert module_names(genes, table((0, "GO:1", " ", 0.05, "both"))) == ["GO:1: a, b"]


def test_names_are_different_and_do_not_depend_on_other_modules():
    modules = [["a", "b"], ["a", "b"], ["c"], [], []]
    assert module_names(modules) == ["a, b", "a, b (2)", "c", "no genes", "no genes (2)"]
    assert module_names(modules[2:3]) == ["c"]
    found = table((1, "GO:1", "set", 0.01, "both"))
    assert module_names(modules, found)[:3] == ["a, b", "set: a, b", "c"]
    assert module_names([["a", "b"], ["a, b"], ["a, b"]]) == ["a, b", "a, b (2)", "a, b (3)"]


def test_names_are_one_short_line():
    name = module_names([["=cmd|'x'\n\tY", "x" * 200]], table((0, "GO:1", "a very\nlong " + "set " * 50, 0.0, "both")))[
        0
    ]
    assert name.isprintable()
    assert len(name) < 140
    assert "a very long set" in name


def test_a_model_and_its_table_have_the_same_names():
    study = netbic.simulate.cohort(200, 800, n_modules=3, random_state=1)
    model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    sets = {f"planted{k}": study.expression.columns[mask].tolist() for k, mask in enumerate(study.genes)}
    found = gene_sets(model, sets)
    names = module_names(model, found)
    assert names == module_names(netbic.io.modules_table(model), found)
    assert sorted(name.split(" (down)")[0].split(":")[0] for name in names) == ["planted0", "planted1", "planted2"]
    top = netbic.io.summary_table(model)["top_genes"]
    assert module_names(model) == [", ".join(genes.split(", ")[:3]) for genes in top]


def test_tables_of_something_else_are_refused():
    with pytest.raises(InputError, match="no column 'q_value'"):
        module_names([["a"]], pd.DataFrame({"module": [0], "term": ["x"]}))
    with pytest.raises(InputError, match="no column 'axis'"):
        module_names(pd.DataFrame({"module": [0]}))
