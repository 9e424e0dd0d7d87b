"""Edges: whether the members of a module are connected more than expected by chance, and the null models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from netbic.arrays import (
    Array,
    Bools,
    Floats,
    Indices,
    Matrix,
    RandomState,
    check_choice,
    check_in_memory,
    checked,
    is_sparse,
    kind_of,
    to_dense,
)
from netbic.estimators.covariates import covariates_of
from netbic.estimators.inputs import axis_names
from netbic.estimators.parameters import check_count
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model, unwrapped
from netbic.graph import Graph, match
from netbic.io.preprocessing import column_means, variances
from netbic.io.tables import as_matrix
from netbic.operators.base import as_operator
from netbic.operators.blocks import RowBlocks

Counts = NDArray[np.int64]
Modules = Any  # a fitted model, or a list of index arrays, boolean masks or names
GraphLike = Any  # anything that `Graph.of` accepts
Traits = dict[str, Floats]  # "mean" and "variance" of features, where they are known and differ between them

_DRAWS = {"hypergeometric": 0, "degree": 999, "matched": 999, "rewired": 99}
_ENOUGH = 10  # rewired graphs with as many edges in a module, after which it is not enriched
_BIN_WIDTH = 0.15  # degrees in a bin differ by about this share
_ENTRIES = 4_000_000  # neighbours per batch
_QUANTILES = (20, 10, 5)  # bins of a trait: the most with which a module is not mostly compared with itself
_MOSTLY_ITSELF = 0.5
_RAKING_ROUNDS = 50
_EQUAL = 1e-9  # relative differences of traits up to this are rounding errors
_IN_MEMORY = "modules are judged on data in memory"


def edges(
    modules: Modules,
    graph: GraphLike,
    *,
    null: str = "hypergeometric",
    axis: str = "columns",
    X: Matrix | None = None,
    random_state: RandomState = None,
    n_draws: int | None = None,
    early_stopping: bool = True,
) -> pd.DataFrame:
    """Test modules for more edges of `graph` than expected; edges that activate and that inhibit count alike.

    Parameters
    ----------
    modules : fitted model, or list of index arrays, boolean masks or node names
    graph : graph-like
        All its nodes, including isolated ones, are the background. With a fitted model it is first matched to the
        features (or samples) of the model, which are then the background.
    null : {"hypergeometric", "degree", "matched", "rewired"}
        "hypergeometric", as in the paper: the pairs of nodes in the module as draws without replacement from all pairs;
        any set of hubs is then significant. "degree": random sets with the same number of nodes of every degree (in
        bins 15% wide; a hub without nodes of similar degree is always drawn itself). "matched": random sets with the
        same degrees and also the module's distribution of mean and variance, in 20 quantiles each; highly expressed or
        highly variable genes have more edges with each other than their degrees explain, so that a set of them is
        often significant under "degree". Quantiles are wider, or only degrees are matched, where a module has most
        of the nodes of similar mean and variance. It needs X or a model that knows the means or variances of its
        columns; without either it is the same as "degree". "rewired": the same sets in rewired graphs, in which every
        node keeps its number of neighbours. All are circular for the graph with which the model was fitted: see
        `held_out_edges`, and compare with a fit to shuffled data.
    axis : {"columns", "rows"}
        Which side of a fitted model to test.
    X : array, DataFrame, sparse matrix or Dask array, optional
        For null="matched": the data, whose columns (rows, with axis="rows") are the nodes of the graph, by name if both
        have names. Default: what the model stores of its columns (the means if it centred them, the variances if it
        scaled them).
    random_state : None, int or numpy.random.Generator
        For the null models with random draws.
    n_draws : int, optional
        Number of random sets (default 999) or rewired graphs (99). No p-value is below 1 / (n_draws + 1).
    early_stopping : bool
        For null="rewired", which takes most time: make no more draws when ten of them have as many edges as the module,
        for every module. Then p = 10 / l, where l is the draw at which this happens (Besag and Clifford 1991); such
        p-values are valid: without enrichment, P(p <= a) <= a for every a.

    Returns
    -------
    DataFrame
        Columns `module`, `n_nodes`, `n_edges`, `expected`, `fold_change`, `p_value` (right tail), `q_value`
        (Benjamini-Hochberg over the modules), `matched_on` (what random sets have in common with the module: "size",
        "degree" or e.g. "degree, mean, variance"). A module of fewer than two nodes has no pairs: `fold_change` is NaN
        and `p_value` 1. If no edge is expected but some are found, `fold_change` is infinite.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> triangle_and_point = np.zeros((4, 4))
    >>> triangle_and_point[:3, :3] = 1 - np.eye(3)
    >>> table = netbic.enrichment.edges([[0, 1, 2]], triangle_and_point)
    >>> table[["n_edges", "expected", "fold_change", "p_value"]].iloc[0].round(12).tolist()
    [3.0, 1.5, 2.0, 0.05]
    """
    check_choice("null", null, tuple(_DRAWS))
    check_count("n_draws", 1 if n_draws is None else n_draws)
    check_choice("axis", axis, ("columns", "rows"))
    model = fitted_model(modules) if is_model(modules) else None
    if model is not None:
        masks = getattr(model, f"{axis}_")
        graph = match(graph, masks.shape[1], model.names_[axis], axis.removesuffix("s"))
    else:
        graph = Graph.of(graph)
        masks = masks_over(modules, graph.n_nodes, graph.names, "graph")
    if X is not None and null != "matched":
        raise ValueError(f"X is only used by null='matched', but null={null!r}: leave it out")
    traits: Traits = {}
    if X is not None:
        if axis == "rows":
            check_in_memory(X, _IN_MEMORY)
            X = X.T
        names = graph.names if model is None else model.names_[axis]
        if names is not None and isinstance(X, pd.DataFrame):
            if missing := [name for name in names if name not in X.columns]:
                whose = "graph's nodes" if model is None else "model's features"
                raise ValueError(f"X lacks {len(missing)} of the {whose}, such as {missing[0]!r}: add them")
            X = X[list(names)]
        if X.shape[1] != graph.n_nodes:
            raise ValueError(
                f"X has {X.shape[1]} {axis} but the graph has {graph.n_nodes} nodes: give those, in its order"
            )
        traits = column_traits(X)
    elif null == "matched" and model is not None and axis == "columns":
        traits = stored_traits(model)
    enough = _ENOUGH if early_stopping and null == "rewired" else None
    return edge_table(masks, graph, null, traits, n_draws, random_state, enough)


def held_out_edges(
    model: SparseGraphSVD,
    X: Matrix,
    graph: GraphLike = None,
    *,
    share: float = 0.1,
    null: str = "matched",
    random_state: RandomState = None,
    n_draws: int | None = None,
    shuffled: bool = False,
) -> pd.DataFrame:
    """Fit with part of a graph's edges and test modules for the edges that were held out.

    The held-out edges are not used in the fit. But graphs are clustered, so that known edges predict held-out ones even
    if the data are uninformative: compare the result with that on `shuffled` data.

    Parameters
    ----------
    model : SparseGraphSVD
        A clone of it is fitted, with the remaining edges as its `column_graph`, and with the covariates of the model if
        it was fitted to X with any.
    X : array, DataFrame or sparse matrix
        A sparse matrix is made dense.
    graph : graph-like, optional
        Default: the model's `column_graph`.
    share : float
        Share of the edges to hold out.
    null, random_state, n_draws
        See `edges`; degrees are counted in the graph of held-out edges, means and variances are those of X.
    shuffled : bool
        Shuffle the entries of every column of X first, which shows the effect of the graph alone.

    Returns
    -------
    DataFrame
        As `edges`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 1500, n_modules=3, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_rows=40, n_columns=60, column_graph=study.network)
    >>> found, chance = (
    ...     netbic.enrichment.held_out_edges(model, study.expression, share=0.3, random_state=1, shuffled=shuffled)
    ...     for shuffled in (False, True)
    ... )
    >>> bool((found["p_value"] < 0.01).all()), bool((chance["p_value"] < 0.01).any())
    (True, False)
    """
    check_choice("null", null, tuple(_DRAWS))
    check_count("n_draws", 1 if n_draws is None else n_draws)
    if not 0 < share < 1:
        raise ValueError(f"share={share!r}: a number between 0 and 1 is needed")
    check_in_memory(X, _IN_MEMORY)
    model, generator = unwrapped(model), np.random.default_rng(random_state)
    source = model.column_graph if graph is None else graph
    if source is None:
        raise ValueError("there is no graph whose edges could be held out: give one")
    names, covariates = axis_names(X)[1], covariates_of(model, X)
    X = to_dense(checked(X, missing=model.missing))
    known, held_out = split_edges(match(source, X.shape[1], names, "column"), share, generator)
    if not held_out.n_edges:
        raise ValueError(f"share={share} of {known.n_edges} edges is less than one edge: choose a larger share")
    values = generator.permuted(X, axis=0) if shuffled else X
    fitted = clone(model).set_params(column_graph=known.renamed(None))
    fitted = fitted.fit(values) if covariates is None else fitted.fit(values, covariates=covariates)
    return edge_table(
        fitted.columns_, held_out, null, column_traits(X) if null == "matched" else {}, n_draws, generator
    )


def split_edges(graph: Graph, share: float, random_state: RandomState) -> tuple[Graph, Graph]:
    """Two graphs on the same nodes: one without a random share of the edges, one with only those."""
    generator = np.random.default_rng(random_state)
    tails, heads, weights = graph.edges()
    held_out = np.zeros(tails.size, dtype=bool)
    held_out[generator.permutation(tails.size)[: round(share * tails.size)]] = True
    table = pd.DataFrame({"source": tails, "target": heads, "weight": weights})
    parts = (Graph.from_edges(table[part], np.arange(graph.n_nodes), signed=True) for part in (~held_out, held_out))
    known, hidden = (part.renamed(graph.names) for part in parts)
    return known, hidden


def edge_table(
    masks: Bools,
    graph: Graph,
    null: str,
    traits: Traits,
    n_draws: int | None = None,
    random_state: RandomState = None,
    enough: int | None = None,
) -> pd.DataFrame:
    """What `edges` returns. The traits of the nodes are for null="matched".

    No more rewired graphs are drawn if `enough` of them have as many edges as a module, for every module.
    """
    n_draws = n_draws or _DRAWS[null]
    sizes, counts = masks.sum(axis=1), edges_inside(masks, graph)
    similar: Any = "size" if null == "hypergeometric" else "degree"
    if null == "hypergeometric":  # the paper's test: FC = (m / (n choose 2)) / (M / (N choose 2)), and the right tail
        n_pairs, own_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2, sizes * (sizes - 1) // 2
        expected = own_pairs * (graph.n_edges / n_pairs if n_pairs else 0.0)
        p_values = np.asarray(stats.hypergeom.sf(counts - 1, n_pairs, graph.n_edges, own_pairs))
    else:
        if null == "rewired":
            by_chance = rewired_counts(masks, graph, n_draws, random_state, enough)
        else:
            by_chance, matched, alone = matched_counts(masks, graph, list(traits.values()), n_draws, random_state)
            if alone:
                others = f" and {len(alone) - 1} others" if len(alone) > 1 else ""
                warnings.warn(
                    f"most nodes of module {alone[0]}{others} have no other node of similar degree to be compared "
                    "with: the test against random nodes of the same degree cannot judge such modules",
                    stacklevel=3,
                )
            similar = np.where(matched, ", ".join(["degree", *traits]), "degree")
        expected = by_chance.mean(axis=1)
        p_values = sequential_p_values(counts, by_chance, n_draws, enough)
    table = pd.DataFrame(
        {"module": np.arange(1, len(masks) + 1), "n_nodes": sizes, "n_edges": counts, "expected": expected}
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        table["fold_change"] = np.where(sizes > 1, counts / expected, np.nan)
    table["p_value"] = np.where(sizes > 1, p_values, 1.0)
    table["q_value"] = adjust_p_values(table["p_value"])
    table["matched_on"] = similar
    return table


def adjust_p_values(p_values: Any) -> Floats:
    """Adjusted for their number by Benjamini and Hochberg; those that are NaN do not count."""
    p_values = np.asarray(p_values, dtype=np.float64)
    adjusted, known = np.full(p_values.shape, np.nan), ~np.isnan(p_values)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p_values[known])
    return adjusted


# Null models: numbers of edges inside a module that are expected by chance, given degrees and other traits


def edges_inside(masks: Bools, graph: Graph) -> Counts:
    """Number of edges between the members of each module."""
    return np.array([graph.subgraph(mask).n_edges for mask in masks], dtype=np.int64)


def degree_bins(degrees: Indices) -> Indices:
    """The bin of each node: isolated nodes, then bins 15% wide in degree.

    Bins must not be wider: in the top one of ten bins of equal size, which has most edges, degrees differ tenfold. A
    hub without nodes of similar degree is alone in its bin.
    """
    steps = np.floor(np.log(np.maximum(degrees, 1)) / np.log1p(_BIN_WIDTH)) + 1
    return np.asarray(np.unique(np.where(degrees == 0, 0, steps), return_inverse=True)[1], dtype=np.intp)


def trait_bins(trait: Floats, n_bins: int) -> Indices:
    """The bin of each node: quantiles of a trait such as the mean; ties share a bin."""
    ranks = np.ceil(stats.rankdata(trait)) - 1
    return np.asarray(np.unique(ranks * n_bins // max(trait.size, 1), return_inverse=True)[1], dtype=np.intp)


def matching_weights(mask: Bools, margins: Sequence[Indices]) -> Floats:
    """Probabilities of drawing each node, so that random sets have the module's distribution over several bins.

    Raking: a product of one factor per margin (the bins of one trait). The expected number of nodes in every bin of
    every margin is that of the module. Unlike cells of all traits at once, this also works for hubs, of which there are
    few.
    """
    wanted = [np.bincount(bins[mask], minlength=int(bins.max(initial=0)) + 1) for bins in margins]
    weights = np.full(mask.size, float(mask.mean()))
    for _ in range(_RAKING_ROUNDS):
        for bins, counts in zip(margins, wanted, strict=True):
            found = np.bincount(bins, weights=weights, minlength=counts.size)
            weights *= np.divide(counts, found, out=np.zeros(counts.size), where=found > 0)[bins]
    return weights


def matched_counts(
    masks: Bools, graph: Graph, traits: Sequence[Floats], n_draws: int, random_state: RandomState
) -> tuple[Counts, Bools, list[int]]:
    """Edges inside random sets with the module's degrees and its distribution of every trait: (n_modules, n_draws).

    Also whether traits were used: if a module has most of the nodes of similar traits, the bins are made wider, and if
    that is not enough, or if there are no traits, only degrees are matched. The numbers of modules that have most of
    the nodes of similar degree, and so are compared with themselves, are returned too.
    """

    def mostly_itself(mask: Bools, weights: Floats) -> bool:
        """Whether more than half of a random set are nodes of the module, given probabilities of drawing each node."""
        return float(np.minimum(weights[mask], 1).sum()) > _MOSTLY_ITSELF * int(mask.sum())

    generator = np.random.default_rng(random_state)
    degrees, upward = degree_bins(graph.degrees), _upward(graph)
    margins = [[trait_bins(trait, n_bins) for trait in traits] for n_bins in _QUANTILES] if traits else []
    counts, matched = np.zeros((len(masks), n_draws), dtype=np.int64), np.ones(len(masks), dtype=bool)
    alone = list[int]()
    for module, mask in enumerate(masks):
        candidates = (matching_weights(mask, [degrees, *bins]) for bins in margins)
        found = next((each for each in candidates if not mostly_itself(mask, each)), None)
        if found is None:
            matched[module] = False
            alone += [module + 1] * mostly_itself(mask, matching_weights(mask, [degrees]))
        weights = np.ones(mask.size) if found is None else found
        connected = mask & (graph.degrees > 0)  # isolated nodes have no edges, so none need to be drawn
        draws = [
            _weighted(np.flatnonzero(degrees == number), weights, int(count), n_draws, generator)
            for number, count in enumerate(np.bincount(degrees[connected]))
            if count
        ]
        if draws:
            counts[module] = _edges_in_sets(np.hstack(draws), upward)
    return counts, matched, alone


def _weighted(pool: Indices, weights: Floats, count: int, n_draws: int, generator: np.random.Generator) -> Indices:
    """`n_draws` sets of `count` different members of a pool, drawn one after another with the given weights."""
    pool = pool[weights[pool] > 0]
    if count >= pool.size:
        return np.tile(pool, (n_draws, 1))
    total = np.cumsum(weights[pool])
    if 4 * count * weights[pool].max() < total[-1]:  # few repeated draws, which are drawn again
        places, again = np.zeros((n_draws, count), dtype=np.intp), np.ones((n_draws, count), dtype=bool)
        while again.any():
            drawn = np.searchsorted(total, total[-1] * generator.random(np.count_nonzero(again)), side="right")
            places[again] = np.minimum(drawn, total.size - 1)
            again = repeated_in_rows(places)
        return pool[places]
    chosen = np.empty((n_draws, count), dtype=np.intp)
    for part in np.array_split(chosen, 1 + n_draws * pool.size // _ENTRIES):
        # The smallest of independent exponential times with these rates are such a sample.
        times = generator.standard_exponential((len(part), pool.size))
        times *= 1 / weights[pool]
        part[:] = pool[np.argpartition(times, count - 1, axis=1)[:, :count]]
    return chosen


def repeated_in_rows(rows: Indices) -> Bools:
    """Entries that occur in their row before."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    repeated = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated


def rewired_counts(
    masks: Bools, graph: Graph, n_draws: int, random_state: RandomState, enough: int | None = None
) -> Counts:
    """Edges inside the modules in rewired graphs: (n_modules, n_draws), or fewer draws if they decide all modules."""
    rewired, observed = graph.rewired_edges(random_state), edges_inside(masks, graph)
    counts = np.zeros((len(masks), n_draws), dtype=np.int64)
    for draw in range(n_draws):
        if draw and is_decided(observed, counts[:, :draw], enough):
            return counts[:, :draw]
        tails, heads, *_ = next(rewired)
        counts[:, draw] = [np.count_nonzero(mask[tails] & mask[heads]) for mask in masks]
    return counts


def _upward(graph: Graph) -> sp.csr_array:
    """Each edge once, in the row of its end of lower degree: the rows of hubs are then short."""
    rank = np.argsort(np.argsort(graph.degrees, kind="stable"), kind="stable")
    tails, heads, _ = graph.edges()
    up = rank[tails] < rank[heads]
    low, high = np.where(up, tails, heads), np.where(up, heads, tails)
    return sp.csr_array((np.ones(tails.size, dtype=bool), (low, high)), shape=graph.weights.shape)


def _edges_in_sets(sets: Indices, upward: sp.csr_array) -> Counts:
    """Edges inside each of many sets (a row each), from the neighbours of their members only."""
    counts = list[Counts]()
    n_entries = int(np.diff(upward.indptr)[sets].sum())
    for members in np.array_split(sets, 1 + n_entries // _ENTRIES):
        pointers = np.arange(0, members.size + 1, members.shape[1])
        ones, shape = np.ones(members.size, dtype=np.int32), (len(members), upward.shape[0])
        inside = sp.csr_array((ones, members.ravel(), pointers), shape=shape)
        counts.append((inside @ upward).multiply(inside).sum(axis=1))
    return np.concatenate(counts)


# Sequential Monte Carlo p-values (Besag and Clifford 1991): no more draws than the answer needs.
#
# Draws are made until `enough` of them reach the observed value, at most n. If that happens at draw l, p = enough / l;
# otherwise p = (1 + g) / (1 + n), where g of the n draws reach it. Such p-values are valid: if the observed value and
# the draws are exchangeable, then P(p <= a) <= a for every a. (p <= enough / l only if fewer than `enough` of the first
# l - 1 draws reach the observed value, so that its rank among l exchangeable values is at most `enough`.)


def sequential_p_values(observed: Array, by_chance: Array, n_draws: int, enough: int | None) -> Floats:
    """The p-value of every observed value, given draws (a row each, in the order in which they were made).

    There are at most `n_draws`; no more are made if `is_decided`. If `enough` is None, all are made.
    """
    reached = np.cumsum(by_chance >= observed[:, None], axis=1)
    p = (1 + reached[:, -1]) / (1 + n_draws)
    if enough is None:
        return np.asarray(p)
    stopped = reached >= enough
    return np.where(stopped.any(axis=1), enough / (1 + stopped.argmax(axis=1)), p)


def is_decided(observed: Array, by_chance: Array, enough: int | None) -> bool:
    """Whether no more draws are needed for any of the observed values."""
    return enough is not None and bool(((by_chance >= observed[:, None]).sum(axis=1) >= enough).all())


# Means and variances of features


def column_traits(X: Matrix) -> Traits:
    """Mean and variance of the observed entries of every column; one that is the same for all columns is left out."""
    X = checked(X)
    if kind_of(X) == "dask" or is_sparse(X):
        data = as_operator(RowBlocks(X, hold=False) if kind_of(X) == "dask" else X, low_memory=True)
        means = data.column_sums() / data.shape[0]
        squares = data.column_squares(np.zeros(data.shape[0]), means) / data.shape[0]
    else:
        values = as_matrix(X)
        means, squares = column_means(values), variances(values)
    return _varying({"mean": means, "variance": squares}, float(np.sqrt(np.max(squares, initial=0.0))))


def stored_traits(model: SparseGraphSVD) -> Traits:
    """What a fitted model knows of its columns: means if it centred them, variances if it scaled them."""
    if model.study_scaling_ is not None:
        return {}  # genes have other means and variances in every study
    scaler, traits = model.scaler_, {}
    # A lower bound of the standard deviation of all entries, not far below it.
    unit = float(model.singular_values_.max(initial=0.0)) / np.sqrt(model.left_vectors_.shape[0] * model.n_features_in_)
    if model.center in ("columns", "both"):
        traits["mean"] = np.asarray(scaler.offsets, dtype=np.float64)
    if scaler.factors is not None:
        traits["variance"] = 1 / np.asarray(scaler.factors, dtype=np.float64) ** 2
        unit = float(np.sqrt(np.median(traits["variance"])))
    return _varying(traits, unit)


def _varying(traits: Traits, unit: float) -> Traits:
    """Traits that differ between columns by more than rounding errors."""
    limits = {"mean": _EQUAL * unit, "variance": _EQUAL * unit**2}
    return {name: values for name, values in traits.items() if values.size and np.ptp(values) > limits[name]}


# Modules in any form


def masks_over(modules: Modules, size: int, names: Array | None, whole: str) -> Bools:
    """A row per module over `size` members of a `whole`, which is what error messages call it."""
    if isinstance(modules, (str, dict)) or not isinstance(modules, Iterable):
        raise ValueError(f"modules is a {type(modules).__name__}: give a fitted model or a list of modules")
    modules = [sorted(module) if isinstance(module, (set, frozenset)) else module for module in modules]
    if any(isinstance(module, str) or np.ndim(module) == 0 for module in modules):
        raise ValueError("modules is a list of single members: give a list of modules, e.g. [members]")
    masks = np.zeros((len(modules), size), dtype=bool)
    for mask, module in zip(masks, modules, strict=True):
        members = np.asarray(module)
        if members.dtype == bool:
            if members.shape != mask.shape:
                raise ValueError(f"a module's mask has length {members.size} but the {whole} has {size} nodes")
            members = np.flatnonzero(members)
        elif members.shape == mask.shape and size > 2 and members.dtype.kind in "iuf" and set(members) <= {0, 1}:
            raise ValueError(f"a module is given by {size} zeros and ones: make it boolean, e.g. mask.astype(bool)")
        elif members.dtype.kind in "OUS" and members.size:
            if names is None:
                raise ValueError(f"modules are given by name but the {whole} has no node names: make it with names=...")
            members, given = pd.Index(names).get_indexer(pd.Index(members.astype(object))), members
            if (members < 0).any():
                unknown = str(given[members.argmin()])
                raise ValueError(f"module member {unknown!r} is not in the {whole}: drop or rename it")
        if members.size and not np.issubdtype(members.dtype, np.integer):
            raise ValueError(f"module members are of type {members.dtype}: give positions, names or a boolean mask")
        if (outside := members[(members < 0) | (members >= size)]).size:
            raise ValueError(f"a module has member {outside[0]} but the {whole} has nodes 0 to {size - 1}")
        mask[members.astype(np.intp)] = True
    return masks
