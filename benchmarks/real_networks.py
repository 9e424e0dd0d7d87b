"""Modules of real tumours with real networks: does the network put genes on top that the data do not?

python benchmarks/real_networks.py FOLDER [--data NAME] [--network NAME] [--thin]

FOLDER holds the expression sets and networks. For every set, network, scaling and size, ten modules with the default
network settings are compared with ten modules without a network:

- worst: rank, by the data alone, of the worst of the 20 leading genes of a module (median and largest over modules);
- led: genes among the ten leading ones of half of the modules or more, and how many of them are not without a network;
- hubs: share of module genes in the top 1 % by degree, minus that without a network;
- rank: effective rank of the scores of the ten modules (all samples kept only).

With --thin, 96 % of the edges are deleted at random.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic import Graph, SparseGraphSVD
from netbic.estimators.results import recurrent_features
from problems import DATA, NETWORKS

SIZES = (
    (None, None),
    (50, None),
    (200, None),
    (500, None),
    (50, 25),
    (200, 50),
)  # genes (None: from the data), samples


def load(folder, data, network):
    """Samples x genes of the network, and the network between them."""
    expression = pd.read_parquet(folder / DATA[data]).T.dropna(axis=1)
    edges = pd.read_parquet(folder / NETWORKS[network])[["gene_a", "gene_b"]]
    known = expression.columns.isin(pd.unique(edges.to_numpy().ravel())) & (expression.std() > 0).to_numpy()
    expression = expression.loc[:, known].astype(np.float64)
    return expression.to_numpy(), Graph.from_edges(edges).align(expression.columns)


def thinned(graph, share, seed):
    """The graph with a random share of its edges."""
    tails, heads, values = graph.edges()
    kept = np.random.default_rng(seed).random(tails.size) < share
    upper = sp.coo_array((values[kept], (tails[kept], heads[kept])), shape=graph.weights.shape)
    return Graph(upper + upper.T)


def effective_rank(scores):
    """Exponential of the entropy of the eigenvalues of the correlation matrix."""
    values = np.linalg.eigvalsh(np.corrcoef(scores)).clip(1e-12)
    values /= values.sum()
    return float(np.exp(-(values * np.log(values)).sum()))


def fit(X, genes, samples, scale, graph):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGraphSVD(10, n_columns=genes, n_rows=samples, scale=scale, column_graph=graph).fit(X)


def compare(X, graph, genes, samples, scale):
    """A row of the table."""
    plain, model = (fit(X, genes, samples, scale, used) for used in (None, graph))
    hubs = graph.degrees >= np.sort(graph.degrees)[-max(1, graph.n_nodes // 100)]
    led, led_plain = (set(recurrent_features(list(made.components_))) for made in (model, plain))
    shares = [np.mean([hubs[members].mean() for members in made.columns_]) for made in (model, plain)]
    worst = model.diagnostics_["worst_rank"]
    return {
        "worst_median": float(worst.median()),
        "worst_largest": int(worst.max()),
        "led": len(led),
        "led_by_network": len(led - led_plain),
        "hubs": round(shares[0] - shares[1], 4),
        "rank": round(effective_rank(model.left_vectors_.T), 2),
        "rank_plain": round(effective_rank(plain.left_vectors_.T), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", choices=DATA, action="append")
    parser.add_argument("--network", choices=NETWORKS, action="append")
    parser.add_argument("--thin", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="of the deleted edges")
    asked = parser.parse_args()
    rows = []
    for data in asked.data or DATA:
        for network in asked.network or NETWORKS:
            X, graph = load(asked.folder, data, network)
            if asked.thin:
                graph = thinned(graph, 0.04, asked.seed)
            for scale in (None, True):
                for genes, samples in SIZES:
                    setting = {"data": data, "network": network, "scale": scale, "genes": genes, "samples": samples}
                    rows.append(setting | compare(X, graph, genes, samples, scale))
                    print(*rows[-1].values(), sep="\t", flush=True)
    print(pd.DataFrame(rows).to_string())


if __name__ == "__main__":
    main()
