"""Edge enrichment: the paper's test, and null models that preserve degrees."""

import warnings
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare, fisher_exact, kstest
from sklearn.exceptions import NotFittedError

import netbic
from netbic import Graph
from netbic.edges import swap_sweep
from netbic.enrichment import edges, fit_used_graph, held_out_edges, is_decided, sequential_p_values
from netbic.enrichment.edges import (
    _edges_in_sets,
    _upward,
    _weighted,
    degree_bins,
    matching_weights,
    rewired_counts,
    split_edges,
    trait_bins,
)


def graph_and_names():
    generator = np.random.default_rng(0)
    upper = np.triu(generator.random((30, 30)) < 0.2, 1)
    upper[:6, :6] = np.triu(np.ones((6, 6)), 1)
    return Graph((upper | upper.T).astype(float), names=[f"g{i}" for i in range(30)])


def test_equals_fisher_on_pairs():
    graph = graph_and_names()
    row = edges([np.arange(8)], graph).iloc[0]
    inside = graph.weights.toarray()[:8, :8].sum() / 2
    pairs, own = 30 * 29 // 2, 8 * 7 // 2
    counts = [[inside, own - inside], [graph.n_edges - inside, pairs - own - graph.n_edges + inside]]
    assert row["n_edges"] == inside
    assert row["p_value"] == pytest.approx(fisher_exact(counts, alternative="greater").pvalue)
    assert row["fold_change"] == pytest.approx((inside / own) / (graph.n_edges / pairs))
    assert row["expected"] == pytest.approx(own * graph.n_edges / pairs)


def test_modules_may_be_indices_masks_names_or_a_model_whose_graph_is_matched_by_name():
    graph, generator = graph_and_names(), np.random.default_rng(1)
    for sets in (np.arange(30) < 8, {f"g{i}" for i in range(8)}):
        pd.testing.assert_frame_equal(edges([sets], graph), edges([np.arange(8)], graph))
    model = netbic.SparseGraphSVD(2, n_rows=4, n_columns=8).fit(generator.standard_normal((10, 30)))
    with pytest.warns(UserWarning, match=r"the column graph has node names \(g0, ...\) but X has none"):
        assert edges(model, graph)["n_nodes"].tolist() == [8, 8]
    assert edges(model, Graph(np.ones((10, 10)) - np.eye(10)), axis="rows")["n_edges"].tolist() == [6, 6]
    # In any order of the nodes, and with a gene that the graph lacks.
    frame = pd.DataFrame(generator.standard_normal((10, 31)), columns=[*graph.names, "extra"])
    frame = frame[frame.columns[generator.permutation(31)]]
    model = netbic.SparseGraphSVD(2, n_rows=4, n_columns=8).fit(frame)
    members = [frame.columns[mask].difference(["extra"]).tolist() for mask in model.columns_]
    table = edges(model, graph)
    assert table["n_edges"].tolist() == edges(members, graph)["n_edges"].tolist()
    assert table["expected"].iloc[0] == pytest.approx(28 * graph.n_edges / (31 * 30 / 2))
    with pytest.raises(NotFittedError):
        edges(netbic.SparseGraphSVD(), graph)


def test_modules_too_small_for_an_edge_and_graphs_without():
    graph = graph_and_names()
    for null in ("hypergeometric", "degree", "rewired"):
        table = edges([[], [3]], graph, null=null, random_state=0, n_draws=9)
        assert table["p_value"].tolist() == [1, 1]
        assert table["fold_change"].isna().all()
        assert edges([[0, 1]], np.zeros((4, 4)), null=null, random_state=0, n_draws=9)["p_value"].tolist() == [1]
        assert edges([], graph, null=null).empty


def heavy_tailed(n=3000, seed=0):
    """A graph with hubs, like biological networks."""
    generator = np.random.default_rng(seed)
    weights = np.minimum(generator.pareto(1.2, n) + 0.3, 200)
    ends = generator.choice(n, size=(40_000, 2), p=weights / weights.sum())
    ends = ends[ends[:, 0] != ends[:, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(pd.DataFrame(ends), nodes=np.arange(n))


def test_sets_of_hubs_are_significant_in_the_papers_test_but_not_in_the_degree_test():
    graph = heavy_tailed()
    generator = np.random.default_rng(1)
    chances = graph.degrees / graph.degrees.sum()
    sets = [generator.choice(graph.n_nodes, 60, replace=False, p=chances) for _ in range(200)]
    assert (edges(sets, graph)["p_value"] < 0.05).mean() > 0.9
    p_values = edges(sets, graph, null="degree", random_state=2, n_draws=99)["p_value"]
    assert (p_values <= 0.05).mean() < 0.08
    assert kstest(p_values, "uniform").statistic < 0.12
    members = np.array([np.argsort(-graph.degrees)[:50], np.arange(0, 3000, 60)])
    counts = [graph.weights.toarray()[np.ix_(own, own)].sum() / 2 for own in members]
    assert _edges_in_sets(members, _upward(graph)).tolist() == edges(members, graph)["n_edges"].tolist() == counts


def with_clique(graph, members):
    weights = graph.weights.tolil()
    for a in members:
        weights[[a], members[members != a]] = 1.0
        weights[members[members != a], [a]] = 1.0
    return Graph(weights.tocsr())


@pytest.mark.parametrize("null", ["degree", "rewired"])
def test_a_clique_is_enriched_under_every_null(null):
    graph = heavy_tailed(1000)
    clique = np.flatnonzero((graph.degrees > 5) & (graph.degrees < 60))[:30]
    table, again = (
        edges([clique], with_clique(graph, clique), null=null, random_state=0, n_draws=19) for _ in range(2)
    )
    assert table["p_value"].iloc[0] == 0.05
    assert table["fold_change"].iloc[0] > 3
    pd.testing.assert_frame_equal(table, again)  # draws depend on the seed only


def assortative(n=2000, seed=0):
    """Genes of similar mean are connected more often than their degrees explain; X has these means."""
    generator = np.random.default_rng(seed)
    means = generator.standard_normal(n)
    ends = generator.integers(n, size=(60_000, 2))
    gap = means[ends[:, 0]] - means[ends[:, 1]]
    ends = ends[(generator.random(len(ends)) < np.exp(-(gap**2))) & (ends[:, 0] != ends[:, 1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = Graph.from_edges(pd.DataFrame(ends), nodes=np.arange(n))
    X = means + 0.1 * np.exp(generator.normal(0, 0.5, n)) * generator.standard_normal((40, n))
    return Graph(graph.weights), X, generator


def test_matched_sets_are_calibrated_where_edges_depend_on_the_mean():
    graph, X, generator = assortative()
    high = np.argsort(-X.mean(axis=0))[:400]
    sets = [generator.choice(high, 60, replace=False) for _ in range(60)]
    assert (edges(sets, graph, null="degree", random_state=0, n_draws=99)["p_value"] <= 0.05).mean() > 0.9
    table = edges(sets, graph, null="matched", X=X, random_state=0, n_draws=99)
    assert (table["p_value"] <= 0.05).mean() < 0.15  # .05 is meant; 60 sets cannot say more
    assert set(table["matched_on"]) == {"degree, mean, variance"}
    members = generator.choice(2000, 20, replace=False)
    found = edges([members], with_clique(graph, members), null="matched", X=X, random_state=0, n_draws=99)
    assert found["p_value"].iloc[0] == 0.01


def test_matching_weights_have_the_margins_of_the_module():
    graph, X, generator = assortative()
    mask = np.zeros(2000, dtype=bool)
    mask[generator.choice(np.argsort(-X.mean(axis=0))[:600], 80, replace=False)] = True
    margins = [degree_bins(graph.degrees), trait_bins(X.mean(axis=0), 20), trait_bins(X.var(axis=0), 20)]
    weights = matching_weights(mask, margins)
    for bins in margins:
        np.testing.assert_allclose(
            np.bincount(bins, weights=weights), np.bincount(bins[mask], minlength=bins.max() + 1), atol=0.5
        )
    assert (np.bincount(trait_bins(np.arange(100.0), 20)) == 5).all()
    assert (trait_bins(np.ones(50), 20) == 0).all()


def test_what_sets_are_matched_on():
    """On what is known: X, or what a model stores; on degrees where a module has most of the similar nodes."""
    graph, X, generator = assortative(600)
    some = [np.arange(0, 600, 10)]

    def matched_on(modules, **options):
        return edges(modules, graph, random_state=0, n_draws=9, **options)["matched_on"].tolist()

    assert matched_on(some) == ["size"]
    assert matched_on(some, null="degree") == matched_on(some, null="matched") == ["degree"]
    for same in (pd.DataFrame(X), sp.csr_array(X), np.where(generator.random(X.shape) < 0.1, np.nan, X)):
        assert matched_on(some, null="matched", X=same) == ["degree, mean, variance"]
    assert matched_on(some, null="matched", X=X - X.mean(axis=0)) == ["degree, variance"]
    top = [np.argsort(-X.var(axis=0))[:150]]
    assert matched_on(top, null="matched", X=X) == ["degree"]
    noisy = X + generator.normal(0, 1, X.shape)
    for options, known in (({"scale": False}, "degree, mean"), ({}, "degree, mean, variance")):
        for unit in (1.0, 1e-12):
            model = netbic.SparseGraphSVD(1, n_columns=40, **options).fit(unit * noisy)
            assert matched_on(model, null="matched") == [known]
        model.fit(unit * (noisy - noisy.mean(axis=0)))  # rounding errors of means are not matched
        assert matched_on(model, null="matched") == [known.replace(", mean", "")]
    names = [f"g{i}" for i in range(600)]
    named, frame = Graph(graph.weights, names), pd.DataFrame(X, columns=names)
    tables = [
        edges(some, named, null="matched", X=part, random_state=0, n_draws=9) for part in (frame, frame.iloc[:, ::-1])
    ]
    pd.testing.assert_frame_equal(*tables)
    for options, message in (
        ({"null": "degree", "X": X}, "X is only used by null='matched'"),
        ({"null": "matched", "X": X[:, :9]}, "X has 9 columns but the graph has 600 nodes"),
    ):
        with pytest.raises(ValueError, match=message):
            edges(some, graph, **options)
    with pytest.raises(ValueError, match="X lacks 5 of the graph's nodes, such as 'g0'"):
        edges(some, named, null="matched", X=frame.iloc[:, 5:])


def test_random_sets_keep_the_number_of_nodes_in_every_degree_bin():
    graph = heavy_tailed()
    bins = degree_bins(graph.degrees)
    for number in np.unique(bins):
        inside = graph.degrees[bins == number]
        assert inside.max() <= 1.15 * max(inside.min(), 1) + 1
    pool, equal = np.arange(100, 120), np.ones(120)
    for count in (1, 3, 19, 20):
        drawn = _weighted(pool, equal, count, 200, np.random.default_rng(0))
        assert drawn.shape == (200, count)
        assert all(len(set(row)) == count for row in drawn.tolist())
        assert set(drawn.ravel()) <= set(pool)


@pytest.mark.parametrize("count", [2, 8])  # the two ways of drawing
def test_nodes_are_drawn_one_after_another_by_their_weights(count):
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 16)
    drawn = _weighted(np.arange(16), weights, count, 40_000, np.random.default_rng(0))
    generator, expected = np.random.default_rng(2), np.zeros(16)
    for _ in range(4_000):
        expected[generator.choice(16, count, replace=False, p=weights / weights.sum())] += 1 / 4_000
    found = np.bincount(drawn.ravel(), minlength=16) / 40_000
    assert np.abs(found - expected).max() < 4.5 * np.sqrt(0.25 / 4_000)
    if count == 2:  # the pairs, exactly
        chances = weights / weights.sum()
        pairs = np.outer(chances, chances) * (1 / (1 - chances[:, None]) + 1 / (1 - chances[None, :]))
        at = np.triu_indices(16, 1)
        seen = np.zeros((16, 16))
        np.add.at(seen, tuple(np.sort(drawn, axis=1).T), 1)
        assert chisquare(seen[at], pairs[at] * 40_000).pvalue > 0.001


def test_every_graph_of_given_degrees_is_equally_likely():
    """All seven graphs with the degrees of a path of five nodes, counted over a long chain."""
    degrees = np.array([1, 2, 2, 2, 1])
    pairs = list(combinations(range(5), 2))
    graphs = [four for four in combinations(pairs, 4) if (np.bincount(np.ravel(four), minlength=5) == degrees).all()]
    assert len(graphs) == 7
    tails, heads, generator = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]), np.random.default_rng(0)
    seen = dict.fromkeys(graphs, 0)
    for _ in range(6_000):
        for _ in range(4):
            swap_sweep(tails, heads, 5, generator)
        seen[tuple(sorted((min(a, b), max(a, b)) for a, b in zip(tails.tolist(), heads.tolist(), strict=True)))] += 1
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_a_module_without_nodes_of_similar_degree_cannot_be_tested():
    clique = np.zeros((60, 60))
    clique[:6, :6] = 1 - np.eye(6)
    for k in range(6, 59):
        clique[k, k + 1] = clique[k + 1, k] = 1
    with pytest.warns(UserWarning, match="most nodes of module 1 have no other node of similar degree"):
        assert edges([range(6)], clique, null="degree", random_state=0, n_draws=19)["p_value"].iloc[0] == 1
    assert edges([range(6)], clique, null="rewired", random_state=0)["p_value"].iloc[0] == 0.01
    pairs = np.kron(np.eye(200), [[0, 1], [1, 0]])  # a random pair is one of the 200 edges with probability 1 / 399
    table = edges([[0, 1], [0, 2]], pairs, null="degree", random_state=0, n_draws=9)
    assert table["expected"].tolist() == [0, 0]
    np.testing.assert_array_equal(table["fold_change"], [np.inf, np.nan])
    assert table["p_value"].tolist() == [0.1, 1.0]


def test_held_out_edges_are_enriched_for_the_true_graph_but_not_for_a_rewired_one():
    study = netbic.simulate.cohort(300, 1500, n_modules=3, random_state=0)
    model = netbic.SparseGraphSVD(3, n_rows=40, n_columns=60)
    true = held_out_edges(model, study.expression, study.network, share=0.3, random_state=1)
    assert (true["p_value"] < 0.01).all()
    rewired = held_out_edges(model, study.expression, study.network.rewire(0), share=0.3, random_state=1)
    assert (rewired["p_value"] > 0.01).all()
    known, hidden = split_edges(study.network, 0.3, 0)
    assert known.n_edges + hidden.n_edges == study.network.n_edges
    assert hidden.n_edges == round(0.3 * study.network.n_edges)
    assert (known.weights + hidden.weights - study.network.weights).nnz == 0
    cases = ({"share": 1.0}, "between 0 and 1"), ({"graph": None}, "no graph"), ({"share": 1e-7}, "less than one edge")
    for options, message in (*cases, ({"null": "magic"}, "is not known"), ({"n_draws": 0}, "n_draws=0")):
        with pytest.raises(ValueError, match=message):
            held_out_edges(model, study.expression, **({"graph": study.network} | options))
    model.set_params(n_components=1, column_graph=study.network.weights)
    for shuffled in (False, True):
        matrices = study.expression.to_numpy(), sp.csr_array(study.expression.to_numpy())
        found = (held_out_edges(model, X, random_state=1, shuffled=shuffled) for X in matrices)
        pd.testing.assert_frame_equal(*found)


def test_bad_input():
    for modules, options, message in (
        ([[0, 1]], {"null": "degree", "n_draws": 0}, "n_draws=0"),
        ([[0, 1]], {"null": "magic"}, "null='magic' is not known"),
        ([[0, 1]], {"axis": "genes"}, "axis='genes' is not known"),
        ([np.ones(3, dtype=bool)], {}, "mask has length 3 but the graph has 30 nodes"),
        ([["g1", "TP53"]], {}, "'TP53' is not in the graph"),
        ([[-1, 3]], {}, "member -1 but the graph has nodes 0 to 29"),
        ([[30]], {}, "member 30 but the graph has nodes 0 to 29"),
        ([[0.5, 3]], {}, "members are of type float64"),
        (np.arange(3), {}, "list of single members"),
        ((np.arange(30) < 6).astype(int)[None, :], {}, "zeros and ones"),
        ([0, 1, 2], {}, "list of single members"),
        (["g0", "g1"], {}, "list of single members"),
        ({"a": ["g0"]}, {}, "modules is a dict"),
        (None, {}, "modules is a NoneType"),
    ):
        with pytest.raises(ValueError, match=message):
            edges(modules, graph_and_names(), **options)
    with pytest.raises(ValueError, match="the graph has no node names"):
        edges([["a"]], np.zeros((3, 3)))


def test_a_network_counts_as_used_only_if_it_had_a_weight(tmp_path):
    study = netbic.simulate.cohort(90, 300, n_modules=1, random_state=0)

    def used(**options):
        model = netbic.SparseGraphSVD(1, n_columns=30, **{"column_graph": study.network} | options)
        netbic.save(model.fit(study.expression), tmp_path)
        loaded = netbic.load(tmp_path)
        (line,) = netbic.enrichment.write_enrichment(loaded, tmp_path, random_state=0)
        assert ("not independent evidence" in line) == fit_used_graph(model) == fit_used_graph(loaded)
        return fit_used_graph(model), loaded

    assert used()[0]
    assert used(diffusion=0.3)[0]
    assert used(diffusion=0.0, column_smoothness=0.2)[0]
    assert not used(column_smoothness=0.0)[0]
    assert not used(diffusion=0.0)[0]
    by_cv, model = used(diffusion="cv")
    assert by_cv == (model.diffusion_ > 0)
    assert model.diffusion_ == 0  # otherwise this shows nothing: neighbours of this network are not correlated enough
    model.diagnostics_ = model.diagnostics_.assign(graph_weight=np.nan)
    model.set_params(diffusion=None)
    assert fit_used_graph(model)  # by its parameters
    model.diagnostics_ = model.diagnostics_.assign(graph_weight=0.0)
    assert not fit_used_graph(model)
    assert not fit_used_graph(netbic.SparseGraphSVD(1, n_columns=30).fit(study.expression))


def test_rewiring_ends_when_no_module_can_be_enriched():
    links = np.triu(np.random.default_rng(3).random((60, 60)) < 0.2, 1)
    graph = Graph((links + links.T).astype(float))
    sets = [np.arange(0, 20), np.arange(30, 55)]
    options = {"null": "rewired", "random_state": 0}
    early, whole = edges(sets, graph, **options), edges(sets, graph, **options, early_stopping=False)
    draws = rewired_counts(np.array([np.isin(np.arange(60), nodes) for nodes in sets]), graph, 99, 0)
    reached = np.cumsum(draws >= whole["n_edges"].to_numpy()[:, None], axis=1)
    np.testing.assert_allclose(whole["p_value"], (1 + reached[:, -1]) / 100)
    needed = 1 + (reached >= 10).argmax(axis=1)
    assert needed.max() < 99
    np.testing.assert_allclose(early["p_value"], 10 / needed)
    np.testing.assert_allclose(early["expected"], draws[:, : needed.max()].mean(axis=1))


def test_sequential_p_values_are_exactly_valid():
    """All orders of seven different values are equally likely: the first one is observed."""
    orders = np.array(list(permutations(range(7))), dtype=float)
    for enough in (1, 2, 3, None):
        p = sequential_p_values(orders[:, 0], orders[:, 1:], 6, enough)
        for value in np.unique(p):
            assert np.mean(p <= value) == pytest.approx(value)
    assert not is_decided(np.zeros(1), np.ones((1, 1000)), None)  # all draws are made
