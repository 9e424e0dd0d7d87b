"""Simulated data with known modules: the paper's design, a larger cohort, patients; scores of recovery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from netbic.arrays import Array, Bools, Floats, Indices, RandomState, check_choice
from netbic.graph import Graph

__all__ = ["Cohort", "PaperSimulation", "SimulatedStudies", "cohort", "paper", "patients", "recovery", "studies"]


class PaperSimulation(NamedTuple):
    """A rank-one signal u v' in noise, with a graph on each side."""

    X: Floats
    row_graph: Graph
    column_graph: Graph
    u: Floats
    v: Floats


def paper(
    gamma: float,
    *,
    signs: str = "random",
    cross_edges: bool = True,
    n_rows: int = 100,
    n_columns: int = 100,
    n_row_support: int = 50,
    n_column_support: int = 50,
    random_state: RandomState = None,
) -> PaperSimulation:
    """Simulate the paper's Figure 1: X = u v' + gamma * noise.

    Parameters
    ----------
    gamma : float
        Standard deviation of the noise; the signal has singular value 1.
    signs : {"random", "same"}
        Random signs (Figure 1C), or all of u positive and all of v negative (Figure 1B).
    cross_edges : bool
        Pairs of the first nodes (those with signal) are connected with probability 0.3. True: every other pair with
        probability 0.1. False: pairs of the remaining nodes with probability 0.1, and no edges between the two groups.
        The paper is ambiguous here.
    n_rows, n_columns, n_row_support, n_column_support : int
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.04, random_state=0)
    >>> toy.X.shape, int((toy.v != 0).sum())
    ((100, 100), 50)
    """
    check_choice("signs", signs, ("random", "same"))
    if not 0 <= gamma < np.inf:
        raise ValueError(f"gamma={gamma!r}: the standard deviation of the noise must be a finite number of at least 0")
    generator = np.random.default_rng(random_state)
    u = _sparse_unit_vector(n_rows, n_row_support, generator)
    v = _sparse_unit_vector(n_columns, n_column_support, generator)
    if signs == "same":
        u, v = np.abs(u), -np.abs(v)
    X = np.outer(u, v) + gamma * generator.standard_normal((n_rows, n_columns))
    row_graph = _block_graph(n_rows, n_row_support, cross_edges, generator)
    column_graph = _block_graph(n_columns, n_column_support, cross_edges, generator)
    return PaperSimulation(X, row_graph, column_graph, u, v)


def _sparse_unit_vector(size: int, support: int, generator: np.random.Generator) -> Floats:
    if not 1 <= support <= size:
        raise ValueError(f"a support of {support} does not fit an axis of {size}: choose 1 to {size}")
    vector = np.zeros(size)
    vector[:support] = generator.choice([-1.0, 1.0], support) / np.sqrt(support)
    return vector


def _block_graph(size: int, block: int, cross_edges: bool, generator: np.random.Generator) -> Graph:
    inside = np.arange(size) < block
    probability = np.where(np.outer(inside, inside), 0.3, 0.1)
    if not cross_edges:
        probability[inside[:, None] != inside[None, :]] = 0.0
    upper = np.triu(generator.random((size, size)) < probability, k=1)
    return Graph((upper | upper.T).astype(np.float64))


@dataclass(frozen=True)
class Cohort:
    """A simulated study: expression of genes in samples, a gene network, and the planted modules.

    `samples` and `genes` are boolean, a row per module; `weights` holds the genes' signed weights, `names` the names of
    the modules, if they have any.
    """

    expression: pd.DataFrame
    network: Graph
    samples: Bools
    genes: Bools
    weights: Floats
    names: tuple[str, ...] = ()


def cohort(
    n_samples: int = 400,
    n_genes: int = 3000,
    *,
    n_modules: int = 5,
    module_samples: int = 40,
    module_genes: int = 60,
    overlap: int = 10,
    strength: float = 0.75,
    mean_degree: float = 12.0,
    inside_share: float = 0.5,
    random_state: RandomState = None,
) -> Cohort:
    """Simulate a cohort in which the structure of the graph is informative, but degrees are not.

    Degrees are heavy-tailed. A share `inside_share` of the edges of a module's genes are within the module, but these
    genes have the same expected degree as all others, so that favouring hubs does not help. Consecutive modules share
    `overlap` genes; signs are mixed.

    Parameters
    ----------
    n_samples, n_genes, n_modules : int
    module_samples, module_genes, overlap : int
    strength : float
        Amplitude of a module's pattern, in standard deviations of the noise.
    mean_degree, inside_share : float
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(100, 500, n_modules=2, random_state=0)
    >>> study.expression.shape, study.genes.sum(axis=1).tolist()
    ((100, 500), [60, 60])
    """
    generator = np.random.default_rng(random_state)
    genes = _random_sets([module_genes] * n_modules, n_genes, generator, overlap)
    samples = _random_sets([module_samples] * n_modules, n_samples, generator, overlap)
    weights = genes * generator.choice([-1.0, 1.0], genes.shape) * generator.uniform(0.6, 1.4, genes.shape)
    activity = samples * generator.choice([-1.0, 1.0], samples.shape) * generator.uniform(0.6, 1.4, samples.shape)
    expression = _expression(strength * activity.T @ weights, "sample", generator)
    network = _modular_network(genes, mean_degree, inside_share, expression.columns, generator)
    return Cohort(expression, network, samples, genes, weights)


def _expression(signal: Floats, sample: str, generator: np.random.Generator) -> pd.DataFrame:
    """A level per gene, noise and a signal; the names of samples begin with `sample`."""
    (n_samples, n_genes), noise = signal.shape, generator.standard_normal(signal.shape)
    samples = [f"{sample}{i:03d}" for i in range(n_samples)]
    genes = np.array([f"GENE{i:04d}" for i in range(n_genes)], dtype=object)
    return pd.DataFrame(generator.normal(8.0, 2.0, n_genes) + noise + signal, index=samples, columns=genes)


_PROGRAMS: Final[tuple[tuple[str, int, float, float], ...]] = (
    # name, genes, share of the patients in whom it is up, strength
    ("T cells", 120, 0.35, 1.2),
    ("stroma", 70, 0.25, 1.2),
    ("proliferation", 45, 0.30, 1.2),
    ("hypoxia", 25, 0.20, 1.2),
    ("interferon", 30, 0.35, 1.5),  # in nearly the same patients as the first
)
_SHARED = 0.84  # of the patients of the first program, those of the last one
_DOWN = 0.2  # share of a program's genes that are down where the others are up


def patients(n_samples: int = 400, n_genes: int = 800, *, random_state: RandomState = None) -> Cohort:
    """Simulate patients in whom five gene programs of unequal sizes are up.

    "T cells" (120 genes, up in 35% of the patients), "stroma" (70, 25%), "proliferation" (45, 30%) and "hypoxia" (25,
    20%) are up in random patients. "interferon" (30 genes) is up in 84% of the patients in whom the T cells are up and
    in a few others, so a module of these genes repeats the module of the T cells. A fifth of the genes of a program are
    down where the others are up. The names only serve as examples: genes are not real. The network is like that of
    `cohort`.

    Parameters
    ----------
    n_samples, n_genes : int
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.patients(random_state=0)
    >>> dict(zip(study.names, study.genes.sum(axis=1).tolist()))
    {'T cells': 120, 'stroma': 70, 'proliferation': 45, 'hypoxia': 25, 'interferon': 30}
    """
    generator = np.random.default_rng(random_state)
    genes = _random_sets([size for _, size, _, _ in _PROGRAMS], n_genes, generator)
    samples = np.zeros((len(_PROGRAMS), n_samples), dtype=bool)
    for up, (_, _, share, _) in zip(samples, _PROGRAMS, strict=True):
        up[generator.permutation(n_samples)[: round(share * n_samples)]] = True
    first, last = samples[0], samples[-1]  # the patients of the last program are mostly those of the first
    n_shared = round(_SHARED * first.sum())
    last[:] = False
    last[generator.permutation(np.flatnonzero(first))[:n_shared]] = True
    last[generator.permutation(np.flatnonzero(~first))[: first.sum() - n_shared]] = True
    signs = np.where(generator.random(genes.shape) < _DOWN, -0.7, 1.0)
    weights = genes * signs * generator.uniform(0.6, 1.4, genes.shape)
    strengths = np.array([strength for *_, strength in _PROGRAMS])[:, None]
    activity = samples * strengths * generator.uniform(0.8, 1.2, samples.shape)
    expression = _expression(activity.T @ weights, "patient", generator)
    network = _modular_network(genes, 12.0, 0.5, expression.columns, generator)
    return Cohort(expression, network, samples, genes, weights, tuple(name for name, *_ in _PROGRAMS))


class SimulatedStudies(NamedTuple):
    """Several studies of the same genes: samples stacked in `X`, the study of each, and the planted modules.

    `genes` is boolean, a row per module; `lives` says in which studies (columns, named by `names`) each module is.
    """

    X: pd.DataFrame
    studies: Array
    names: tuple[str, ...]
    genes: Bools
    lives: Bools


def studies(
    sizes: tuple[int, ...] = (60, 100, 150, 250),
    n_genes: int = 1000,
    *,
    lives: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3), (0, 1, 2), (1, 3), (2,)),
    module_genes: int = 50,
    strength: float = 0.8,
    background: float = 0.2,
    random_state: RandomState = None,
) -> SimulatedStudies:
    """Simulate studies with shared and private modules, other scales, and other means of every gene.

    Parameters
    ----------
    sizes : tuple of int
        Samples of each study.
    n_genes : int
    lives : tuple of tuples of int
        For each module, the studies it lives in.
    module_genes : int
        Genes of a module; modules have no gene in common.
    strength : float
        Standard deviation of the signal of a gene of a module; that of the noise is 1.
    background : float
        Standard deviation of a factor that all genes of a study follow, with other weights in each study.
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies(random_state=0)
    >>> simulated.X.shape, simulated.lives.sum(axis=1).tolist()
    ((560, 1000), [4, 3, 2, 1])
    """
    generator = np.random.default_rng(random_state)
    genes = _random_sets([module_genes] * len(lives), n_genes, generator)
    weights = np.where(genes, generator.choice([-1, 1], genes.shape) * generator.uniform(0.6, 1.4, genes.shape), 0.0)
    present = np.array([np.isin(np.arange(len(sizes)), own) for own in lives]).reshape(len(lives), len(sizes))
    parts = []
    for study, size in enumerate(sizes):
        scores = strength * generator.standard_normal((size, len(lives))) * present[:, study]
        values = scores @ weights + generator.standard_normal((size, n_genes))
        values += background * np.outer(generator.standard_normal(size), generator.standard_normal(n_genes))
        scales = np.exp(generator.normal(0, 0.3, n_genes)) * generator.uniform(0.5, 3)
        parts.append(values * scales + generator.normal(0, 5, n_genes))
    names = tuple(f"study_{study + 1}" for study in range(len(sizes)))
    labels = np.repeat(np.array(names, dtype=object), sizes)
    X = pd.DataFrame(np.vstack(parts), columns=[f"g{gene}" for gene in range(n_genes)])
    return SimulatedStudies(X.set_axis([f"s{row}" for row in range(len(X))], axis=0), labels, names, genes, present)


def _random_sets(sizes: Sequence[int], universe: int, generator: np.random.Generator, overlap: int = 0) -> Bools:
    """Random sets of these sizes, each sharing `overlap` members with the next."""
    starts = np.cumsum([0, *sizes]) - overlap * np.arange(len(sizes) + 1)
    needed = int(starts[-1]) + overlap
    if not 0 <= overlap < min(sizes, default=1) or needed > universe:
        raise ValueError(
            f"{len(sizes)} modules of {', '.join(map(str, dict.fromkeys(sizes)))} with {overlap} shared need {needed} "
            f"members, but there are {universe}: choose fewer or smaller modules, or more samples and genes"
        )
    members, sets = generator.permutation(universe), np.zeros((len(sizes), universe), dtype=bool)
    for own, start, size in zip(sets, starts[:-1], sizes, strict=True):
        own[members[start : start + size]] = True
    return sets


def _modular_network(
    genes: Bools, mean_degree: float, inside_share: float, names: pd.Index, generator: np.random.Generator
) -> Graph:
    """Chung-Lu graph with heavy-tailed expected degrees; a share of the edges of module genes are within modules."""
    n_genes = genes.shape[1]
    degrees = np.minimum(generator.pareto(1.8, n_genes) + 0.6, 8.0)
    degrees *= mean_degree / degrees.mean()
    memberships = genes.sum(axis=0)
    inside = inside_share * degrees / np.maximum(memberships, 1)
    parts = [_chung_lu(np.where(members, inside, 0.0), generator) for members in genes]
    parts.append(_chung_lu(degrees - inside * memberships, generator))
    edges = np.unique(np.concatenate(parts), axis=0)
    upper = sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_genes, n_genes))
    return Graph(upper + upper.T, names=np.asarray(names, dtype=object))


def _chung_lu(expected: Floats, generator: np.random.Generator) -> Indices:
    """Edges (lower index first) between i and j with probability expected_i expected_j / sum, at most 1."""
    nodes, pairs = np.flatnonzero(expected), [np.empty((0, 2), dtype=np.intp)]
    degrees = expected[nodes]
    for i, node in enumerate(nodes[:-1]):
        hit = generator.random(nodes.size - 1 - i) < degrees[i] * degrees[i + 1 :] / degrees.sum()
        partners = nodes[i + 1 :][hit]
        pairs.append(np.column_stack([np.full(partners.size, node), partners]))
    return np.concatenate(pairs)


def recovery(found: Bools, planted: Bools) -> pd.DataFrame:
    """Compare found with planted sets, paired one to one so that the sum of F1 is largest.

    Parameters
    ----------
    found, planted : bool arrays of shapes (n_found, size) and (n_planted, size)

    Returns
    -------
    DataFrame
        A row per planted set: `planted`, `found` (-1 if no overlapping set is paired with it), `sensitivity`,
        `specificity`, `precision`, `f1`.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> planted = np.array([[True, True, False, False]])
    >>> netbic.simulate.recovery(np.array([[True, False, True, False]]), planted)["f1"].tolist()
    [0.5]
    """
    found, planted = np.atleast_2d(found).astype(bool), np.atleast_2d(planted).astype(bool)
    if found.shape[1] != planted.shape[1]:
        raise ValueError(f"found sets have {found.shape[1]} members to choose from, planted ones {planted.shape[1]}")
    shared = planted.astype(int) @ found.T.astype(int)
    f1 = 2 * shared / np.maximum(planted.sum(axis=1)[:, None] + found.sum(axis=1), 1)
    partner = np.full(len(planted), -1)
    rows, columns = linear_sum_assignment(-f1)
    partner[rows] = np.where(shared[rows, columns] > 0, columns, -1)
    paired = np.vstack([found, np.zeros(found.shape[1], dtype=bool)])[partner]  # the last row, for -1, is empty
    both, neither = (paired & planted).sum(axis=1), (~paired & ~planted).sum(axis=1)
    n_found, n_planted, n_outside = (sets.sum(axis=1) for sets in (paired, planted, ~planted))
    table = pd.DataFrame({"planted": np.arange(len(planted)), "found": partner})
    table["sensitivity"] = both / np.maximum(n_planted, 1)
    table["specificity"] = np.where(n_outside > 0, neither / np.maximum(n_outside, 1), 1.0)
    table["precision"] = both / np.maximum(n_found, 1)
    table["f1"] = 2 * both / np.maximum(n_found + n_planted, 1)
    return table


def __dir__() -> list[str]:
    return sorted(__all__)
