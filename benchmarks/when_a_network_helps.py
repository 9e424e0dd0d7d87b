"""When does a network help? Modules of some tumours, judged on other tumours.

NETBIC_DATA=folder python benchmarks/when_a_network_helps.py [first seed] [runs] [file.csv]      (default: 0 10)

Prints the variance of unseen samples that ten modules of 100 genes explain without a network, and its change (in
percent of that) with a network: as a graph term (the default) or by diffusion with `diffusion="cv"`.

- Networks: coexpression (each gene's 10 most correlated genes in TCGA BRCA RNA-seq), the same rewired and with permuted
  nodes, and Pathway Commons.
- "weak": 15, 30 or 60 samples of TCGA COADREAD, after the ten leading principal components were regressed out of the
  whole matrix; judged on the other samples. Modules keep all samples, or 30% of them.
- "raw": the same with the leading components.
- "across": 40 samples of BRCA, judged on COADREAD.

Genes are those that both studies have, centred and scaled to unit variance in each whole study; single precision.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from netbic import Graph, SparseGraphSVD
from netbic.graph import coexpression

SIZES, ACROSS = (15, 30, 60), 40
N_GENES, SHARE_OF_SAMPLES = 100, 0.3


def read(folder, name):
    """Samples x genes, in double precision."""
    return pd.read_parquet(folder / f"expr_tcga_{name}_rnaseq.parquet").T.astype(np.float64)


def scaled(frame):
    """Genes with mean 0 and variance 1."""
    return ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy()


def without_components(X, count):
    """X without its leading principal components."""
    left = np.linalg.eigh(X @ X.T)[1][:, -count:]
    return X - left @ (left.T @ X)


def prepare(folder):
    """Both studies, and the networks of their genes."""
    other, own = read(folder, "brca"), read(folder, "coadread")
    genes = own.columns.intersection(other.columns)
    own, other = own[genes], other[genes]
    edges = pd.read_parquet(folder / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    curated = Graph(Graph.from_edges(edges).align(genes).weights)
    own, weak, other_study = scaled(own), without_components(scaled(own), 10), scaled(other)
    studies = [X.astype(np.float32) for X in (own, weak, other_study)]
    return *studies, Graph(coexpression(other).weights), curated


def permuted(graph, seed):
    """The same graph between other genes."""
    order = np.random.default_rng(seed).permutation(graph.n_nodes)
    return Graph(graph.weights[order][:, order])


def compare(train, test, networks, kept="all"):
    """A row per network and its use: scores with and without it. `networks` are triples of name, graph and use."""
    n_rows = None if kept == "all" else max(2, round(SHARE_OF_SAMPLES * len(train)))
    model = SparseGraphSVD(10, n_columns=N_GENES, n_rows=n_rows)
    none = model.fit(train).score(test)
    for name, graph, use in networks:
        options = {"column_graph": graph, "diffusion": "cv" if use == "diffusion" else None}
        fitted = SparseGraphSVD(10, n_columns=N_GENES, n_rows=n_rows, **options).fit(train)
        score = fitted.score(test)
        change = 100 * (score / none - 1)
        yield {"samples": len(train), "kept": kept, "network": name, "use": use, "none": none, "score": score,
               "change": change, "diffusion": fitted.diffusion_}  # fmt: skip


def one_run(own, weak, other, prior, curated, seed):
    """All comparisons for one seed."""
    generator = np.random.default_rng(seed)
    order, order_of_other = generator.permutation(len(own)), generator.permutation(len(other))
    rewired = prior.rewire(seed)
    true = [("coexpression", prior, "diffusion"), ("coexpression", prior, "term")]
    wrong = [("rewired", rewired, "diffusion"), ("permuted", permuted(prior, seed), "diffusion")]
    known = [("Pathway Commons", curated, "diffusion"), ("Pathway Commons", curated, "term")]
    for n_samples in SIZES:
        train, test = order[:n_samples], order[n_samples:]
        for kept, networks in (("all", [*true, *wrong, *known]), ("30%", [*true[:1], *wrong])):
            yield from ({"data": "weak", **row} for row in compare(weak[train], weak[test], networks, kept))
        yield from ({"data": "raw", **row} for row in compare(own[train], own[test], [*true, *known]))
    rewired_known = ("Pathway Commons, rewired", curated.rewire(seed), "term")
    networks = [known[1], rewired_known]
    yield from ({"data": "across", **row} for row in compare(other[order_of_other[:ACROSS]], own, networks))


def main():
    warnings.simplefilter("ignore")  # about single fits
    first, runs = (int(value) for value in (sys.argv[1:3] + ["0", "10"][len(sys.argv[1:3]) :]))
    studies_and_networks = prepare(Path(os.environ["NETBIC_DATA"]))
    rows = []
    for seed in range(first, first + runs):
        rows += [{"seed": seed, **row} for row in one_run(*studies_and_networks, seed)]
        if len(sys.argv) > 3:
            pd.DataFrame(rows).to_csv(sys.argv[3], index=False)
    groups = pd.DataFrame(rows).groupby(["data", "kept", "network", "use", "samples"], sort=False)
    columns = {"none": ("none", "mean"), "change": ("change", "mean"), "error": ("change", "sem")}
    summary = groups.agg(**columns, diffusion=("diffusion", "median"), runs=("seed", "nunique"))
    print(summary.sort_index().round({"none": 4, "change": 1, "error": 1}).to_string())


if __name__ == "__main__":
    main()
