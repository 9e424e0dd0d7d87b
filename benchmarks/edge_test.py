"""Level and power of `enrichment.edges` on real networks: matched on degree, and on mean and variance as well.

NETBIC_DATA=... python benchmarks/edge_test.py [--runs 60] [--seed 100]

Level: share of random gene sets with p <= 0.05, drawn from the 2,000 most variable or most expressed genes, or with
probabilities proportional to the degree. Power: the same share for sets of which a fifth is a connected part of the
network (a random walk), and for half of the genes of a GO term together with as many random genes.
"""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd

from netbic import Graph
from netbic.enrichment import edges

STUDIES = ("tcga_coadread_rnaseq", "tcga_brca_rnaseq")
NETWORKS = ("pathway_commons_v7", "biogrid_3.4.133")
SELECTED = 2000
LEVEL = 0.05


def study_and_graph(folder, study, network):
    X = pd.read_parquet(folder / f"expr_{study}.parquet").T
    table = pd.read_parquet(folder / f"network_{network}.parquet")[["gene_a", "gene_b"]]
    inside = table.isin(set(X.columns)).all(axis=1)
    return X, Graph.from_edges(table[inside], nodes=X.columns.to_numpy())


def walked(graph, size, generator):
    """Nodes of a random walk that often returns to its start."""
    indptr, neighbours = graph.weights.indptr, graph.weights.indices
    start = at = int(generator.choice(np.flatnonzero(graph.degrees > 1)))
    found = {start}
    for _ in range(50 * size):
        at = int(generator.choice(neighbours[indptr[at] : indptr[at + 1]]))
        found.add(at)
        if len(found) == size:
            break
        at = start if generator.random() < 0.2 else at
    return list(found)


def terms(folder, genes, smallest=30, largest=200):
    """Positions of the genes of GO terms of moderate size."""
    where = {gene: position for position, gene in enumerate(genes)}
    with gzip.open(folder / "go_bp_human.gmt.gz", "rt") as lines:
        sets = ([where[gene] for gene in line.rstrip("\n").split("\t")[2:] if gene in where] for line in lines)
        return [members for members in sets if smallest <= len(members) <= largest]


def drawn_sets(X, graph, go, size, runs, seed):
    """Gene sets of each kind."""
    generator = np.random.default_rng(seed)
    values = X.to_numpy(dtype=float)
    variable, expressed = (np.argsort(-trait)[:SELECTED] for trait in (values.var(axis=0), values.mean(axis=0)))
    connected = np.flatnonzero(graph.degrees)

    def half_random(core):
        others = generator.choice(np.setdiff1d(connected, core), size - len(core), replace=False)
        return np.concatenate([core, others]).astype(int)

    def some_of_a_term():
        members = go[generator.integers(len(go))]
        return half_random(generator.choice(members, min(len(members) // 2, size // 2), replace=False))

    chances = graph.degrees / graph.degrees.sum()
    kinds = {
        "variable genes": lambda: generator.choice(variable, size, replace=False),
        "expressed genes": lambda: generator.choice(expressed, size, replace=False),
        "hubs": lambda: generator.choice(graph.n_nodes, size, replace=False, p=chances),
        "power, walk": lambda: half_random(np.array(walked(graph, size // 5, generator))),
        "power, GO": some_of_a_term,
    }
    return {kind: [draw() for _ in range(runs)] for kind, draw in kinds.items()}


def share(sets, graph, n_draws, **options):
    table = edges(sets, graph, random_state=0, n_draws=n_draws, **options)
    return (table["p_value"] <= LEVEL).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--draws", type=int, default=99)
    options = parser.parse_args()
    folder = Path(os.environ["NETBIC_DATA"])
    print("| sets | study, network | size | degree | degree, mean, variance |\n|---|---|---|---|---|")
    for study in STUDIES:
        for network in NETWORKS:
            X, graph = study_and_graph(folder, study, network)
            go = terms(folder, X.columns)
            for size in (50, 200):
                for kind, sets in drawn_sets(X, graph, go, size, options.runs, options.seed).items():
                    degree = share(sets, graph, options.draws, null="degree")
                    matched = share(sets, graph, options.draws, null="matched", X=X)
                    print(f"| {kind} | {study}, {network} | {size} | {degree:.2f} | {matched:.2f} |", flush=True)


if __name__ == "__main__":
    main()
