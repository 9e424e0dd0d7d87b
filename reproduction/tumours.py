"""Table 1 and Figure 2: modules of real expression data, evaluated as in the paper and with controls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from netbic.enrichment import edges, gene_sets
from netbic.errors import InputError
from netbic.estimators.svd import SparseGraphSVD
from netbic.graph import Graph
from netbic.io.dataset import Dataset, open_dataset
from netbic.io.samples import GeneSets, read_gene_sets
from netbic.methods import method
from reproduction.published import LEVELS

DATASETS: Final = {
    "BRCA (Agilent)": "expr_tcga_brca_agilent2012.parquet",
    "BRCA (RNA-seq)": "expr_tcga_brca_rnaseq.parquet",
    "COADREAD": "expr_tcga_coadread_rnaseq.parquet",
    "CGP (excerpt)": "small_cgp_garnett2012_subset.parquet",
}
NETWORKS: Final = {
    "Pathway Commons": "network_pathway_commons_v7.parquet",
    "BioGRID": "network_biogrid_3.4.133.parquet",
}
GENE_SETS: Final = "go_bp_human.gmt.gz"
TERM_LEVELS: Final = (1e-1, 1e-2, 1e-3, 1e-4)
SIGMAS: Final = (0.1, 0.2, 0.4, 1.0, 4.0)
OURS: Final = "netbic"
METHODS: Final = ("L0SVD", "sgSVD", "sgSVD*", OURS)


@dataclass(frozen=True)
class Sizes:
    """How many modules, and how many genes and samples in each."""

    modules: int = 40
    genes: int = 200
    samples: int = 50


def check_data(folder: Path, datasets: Sequence[str], networks: Sequence[str]) -> None:
    """Refuse unknown names and missing files before anything is computed."""
    for asked, known in ((datasets, DATASETS), (networks, NETWORKS)):
        unknown = [name for name in asked if name not in known]
        if unknown or not asked:
            raise InputError(f"{', '.join(unknown) or 'nothing'} is unknown: choose from {', '.join(known)}")
    files = [*(DATASETS[name] for name in datasets), *(NETWORKS[name] for name in networks), GENE_SETS]
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder / missing[0]} does not exist: see docs/paper/README.md for the data that are needed")


def load_study(folder: Path, dataset: str, network: str) -> Dataset:
    """A data set restricted to the genes of a network, as in the paper."""
    check_data(folder, [dataset], [network])
    study = open_dataset(folder / DATASETS[dataset], folder / NETWORKS[network], matched_only=True)
    double = replace(study.expression, matrix=study.expression.matrix.astype(np.float64))
    return replace(study, expression=double)


def estimator(name: str, graph: Graph | None, sizes: Sizes, sigma: float = 0.4) -> SparseGraphSVD:
    """A method of the paper in its convention (genes centred, adjacency, absolute sigma), or netbic's own default."""
    sigma = 0.0 if name == "L0SVD" or graph is None else sigma
    options: dict[str, Any] = {"n_rows": sizes.samples, "n_columns": sizes.genes, "column_graph": graph}
    if name == OURS:
        return SparseGraphSVD(sizes.modules, **options)
    return method(name, sizes.modules, column_sigma=sigma, center="columns", **options)


def fitted(model: SparseGraphSVD, X: Any) -> SparseGraphSVD:
    """Fit without warnings: cycles and large graph shares are part of the comparison."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def evaluate(
    study: Dataset,
    name: str,
    sets: GeneSets | Mapping[str, Any] | None,
    sizes: Sizes,
    seed: int = 0,
    sigma: float = 0.4,
) -> pd.DataFrame:
    """One row per module: the scores of the paper, and scores relative to degree-matched sets.

    Columns `method`, `module`, `converged`, `fold_change` and `p_value` (hypergeometric), `degree_fold_change` and
    `degree_p_value`, `shuffled_p_value` (the same for modules of shuffled data), `rewired_fold_change` (on the true
    graph, fitted with a rewired one), `correlation` (mean |r| over that of random sets), and `terms_...`: GO terms
    below each level (Benjamini-Hochberg).
    """
    if study.graph is None:
        raise InputError("the experiment needs a network")
    X = study.X
    model = fitted(estimator(name, study.graph, sizes, sigma), X)
    paper = edges(model, study.graph)
    degree = edges(model, study.graph, null="degree", random_state=seed, n_draws=199)
    table = pd.DataFrame({"method": name, "module": paper["module"], "converged": model.converged_})
    table["fold_change"], table["p_value"] = paper["fold_change"], paper["p_value"]
    table["degree_fold_change"], table["degree_p_value"] = degree["fold_change"], degree["p_value"]
    table["shuffled_p_value"] = _on_shuffled(study, name, sizes, seed, sigma).reindex(table.index)
    rewired = fitted(estimator(name, study.graph.rewire(seed), sizes, sigma), X)
    # A column by position: with a rewired graph fewer modules may be found.
    table["rewired_fold_change"] = edges(rewired, study.graph)["fold_change"].reindex(table.index)
    table["correlation"] = correlation_ratios(model.columns_, X.to_numpy(dtype=np.float64), 19, seed)
    if sets is not None:
        found = gene_sets(model, sets, by_sign=False)
        for level in TERM_LEVELS:
            counts = found[found["q_value"] < level].groupby("module").size()
            table[terms_column(level)] = counts.reindex(table["module"], fill_value=0).to_numpy()
    return table


def correlation_ratios(modules: np.ndarray, X: np.ndarray, n_draws: int, seed: int) -> list[float]:
    """Mean |r| within each module (a row of booleans over the columns of X), over that of random sets of its size."""
    centred = np.nan_to_num(X - np.nanmean(X, axis=0))
    lengths = np.linalg.norm(centred, axis=0)
    varying = lengths > 1e-10 * np.sqrt(len(X)) * np.nanmax(np.abs(X), axis=0)  # above rounding error
    standard = np.where(varying, centred / np.where(varying, lengths, 1.0), 0.0)

    def mean_correlation(members: np.ndarray) -> float:
        correlations = np.abs(standard[:, members].T @ standard[:, members])
        size = len(correlations)
        return float((correlations.sum() - np.trace(correlations)) / (size * (size - 1))) if size > 1 else 0.0

    generator, expected = np.random.default_rng(seed), dict[int, float]()
    for size in dict.fromkeys(modules.sum(axis=1).tolist()):
        sets = (generator.choice(X.shape[1], size, replace=False) for _ in range(n_draws))
        expected[size] = float(np.mean([mean_correlation(members) for members in sets]))
    ratios = [(mean_correlation(module), expected[int(module.sum())]) for module in modules]
    return [own / by_chance if by_chance else np.nan for own, by_chance in ratios]


def _on_shuffled(study: Dataset, name: str, sizes: Sizes, seed: int, sigma: float) -> pd.Series[float]:
    """Degree-aware p-values of modules found in shuffled data: the effect of the graph alone."""
    values = np.random.default_rng(seed).permuted(study.expression.matrix, axis=0)
    graph = Graph(study.graph.weights) if study.graph is not None else None
    model = fitted(estimator(name, graph, sizes, sigma), values)
    return edges(model, graph, null="degree", random_state=seed, n_draws=99)["p_value"]


def terms_column(level: float) -> str:
    """Name of the column with the number of gene sets below a level."""
    return f"terms_{level:g}"


def enriched_shares(table: pd.DataFrame, column: str = "p_value") -> list[float]:
    """Per cent of modules below each of the paper's levels."""
    return [100 * float((table[column] <= level).mean()) for level in LEVELS]


def held_out(study: Dataset, name: str, sizes: Sizes, seed: int = 0, sigma: float = 0.4) -> dict[str, float]:
    """Variance of the other half of the samples that modules of one half explain: true, rewired and no graph."""
    X = study.X
    order = np.random.default_rng(seed).permutation(X.shape[0])
    half = X.shape[0] // 2
    train, test = X.iloc[order[:half]], X.iloc[order[half:]]
    if study.graph is None:
        raise InputError("the experiment needs a network")
    small = Sizes(sizes.modules, sizes.genes, max(2, sizes.samples // 2))
    graphs = {"true": study.graph, "rewired": study.graph.rewire(seed), "none": None}
    return {
        kind: float(fitted(estimator(name, graph, small, sigma), train).score(test)) for kind, graph in graphs.items()
    }


def compare(
    folder: Path,
    *,
    datasets: Sequence[str] = tuple(DATASETS),
    networks: Sequence[str] = tuple(NETWORKS),
    methods: Sequence[str] = METHODS,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Every method on every data set and network: a row per module, with `dataset`, `network` and held-out variance."""
    sizes = sizes or Sizes()
    check_data(folder, datasets, networks)
    sets = read_gene_sets(folder / GENE_SETS)
    load = lru_cache(1)(load_study)  # once for all methods

    def one(dataset: str, network: str, name: str) -> pd.DataFrame:
        study = load(folder, dataset, network)
        table = _with_held_out(study, name, sets, _limited(sizes, study), seed)
        table.insert(0, "dataset", dataset)
        table.insert(1, "network", network)
        return table

    cases = [(dataset, network, name) for dataset in datasets for network in networks for name in methods]
    return pd.concat([one(*case) for case in cases], ignore_index=True)


def _with_held_out(
    study: Dataset, name: str, sets: GeneSets | None, sizes: Sizes, seed: int, sigma: float = 0.4
) -> pd.DataFrame:
    table = evaluate(study, name, sets, sizes, seed, sigma)
    for kind, value in held_out(study, name, sizes, seed, sigma).items():
        table[f"held_out_{kind}"] = value
    return table


def _limited(sizes: Sizes, study: Dataset) -> Sizes:
    """Sizes limited to half of the data."""
    n_samples, n_genes = study.expression.shape
    return Sizes(sizes.modules, min(sizes.genes, n_genes // 2), min(sizes.samples, n_samples // 2))


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, network and method: the percentages of Table 1, and additional columns."""
    return pd.DataFrame(list(_summaries(table)))


def _summaries(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (dataset, network, name), part in table.groupby(["dataset", "network", "method"], sort=False):
        row: dict[str, Any] = {"dataset": dataset, "network": network, "method": name, "modules": len(part)}
        row |= {f"{level:g}": share for level, share in zip(LEVELS, enriched_shares(part), strict=True)}
        row["degree, 0.05"] = 100 * float((part["degree_p_value"] <= 0.05).mean())
        row["degree, shuffled"] = 100 * float((part["shuffled_p_value"] <= 0.05).mean())
        for kind in ("fold_change", "degree_fold_change", "rewired_fold_change"):
            row[f"log {kind}"] = _median_log(part[kind])
        row |= {f"held out, {kind}": part[f"held_out_{kind}"].iloc[0] for kind in ("true", "rewired", "none")}
        row["correlation"] = float(part["correlation"].median())
        row |= {
            f"terms, {level:g}": int(part[terms_column(level)].sum())
            for level in TERM_LEVELS
            if terms_column(level) in part
        }
        row["converged"] = 100 * float(part["converged"].mean())
        yield row


def _median_log(values: pd.Series[float]) -> float:
    """Median of the natural logarithm; a module without an edge counts as the lowest."""
    with np.errstate(divide="ignore"):
        return float(np.median(np.log(values.fillna(0.0))))


def signed_ranks(table: pd.DataFrame, column: str = "fold_change") -> pd.DataFrame:
    """Wilcoxon's signed-rank test between methods, modules paired by their number, one-sided (first > second)."""
    rows = []
    pairs = (("sgSVD*", "sgSVD"), ("sgSVD*", "L0SVD"), ("sgSVD", "L0SVD"), (OURS, "L0SVD"))
    for (dataset, network), part in table.groupby(["dataset", "network"], sort=False):
        wide = part.pivot_table(index="module", columns="method", values=column)
        for first, second in pairs:
            if first in wide and second in wide:
                difference = (wide[first] - wide[second]).dropna()
                p_value = float(wilcoxon(difference, alternative="greater").pvalue) if difference.any() else 1.0
                rows.append((dataset, network, first, second, float(difference.median()), p_value))
    return pd.DataFrame(rows, columns=["dataset", "network", "first", "second", "median_difference", "p_value"])


def random_modules(study: Dataset, sets: Mapping[str, Any], sizes: Sizes, seed: int = 0) -> dict[str, int]:
    """GO terms below each level in modules of random genes: the paper's control."""
    generator = np.random.default_rng(seed)
    genes = study.expression.genes
    modules = [generator.choice(genes.size, sizes.genes, replace=False) for _ in range(sizes.modules)]
    found = gene_sets(modules, sets, names=genes)
    return {terms_column(level): int((found["q_value"] < level).sum()) for level in TERM_LEVELS}


def over_sigmas(
    folder: Path,
    *,
    dataset: str = "BRCA (Agilent)",
    network: str = "Pathway Commons",
    sigmas: Sequence[float] = SIGMAS,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """The row of sgSVD* in Table 1 for several sigma, with additional columns."""
    study = load_study(folder, dataset, network)
    fit = _limited(sizes or Sizes(), study)

    def one(sigma: float) -> pd.DataFrame:
        table = _with_held_out(study, "sgSVD*", None, fit, seed, sigma)
        return table.assign(dataset=dataset, network=network, method=f"sigma {sigma:g}")

    return summarise(pd.concat(map(one, sigmas), ignore_index=True))
