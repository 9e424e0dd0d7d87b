"""How often `selection.verdicts` calls a module strong or moderate: data without modules, with planted ones, tumours.

python benchmarks/verdicts.py [--runs 60] [--seed 1] [--kinds "permuted;counts"] [--settings "all samples;chosen"]
python benchmarks/verdicts.py --real      (needs NETBIC_DATA)

All settings have a graph of the genes with hubs and small cliques. "all samples": the defaults of `SparseGraphSVD`
with five modules of 25 genes. "chosen": sizes and number of modules from the data, as in `SparseGraphSVD()`. "tenth": a
tenth of the samples in each module, Hotelling deflation, the normalised graph term with relative smoothness 0.2.
"""

import argparse
import os
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic import Graph, SparseGraphSVD
from netbic.enrichment import gene_sets
from netbic.io.samples import read_gene_sets
from netbic.selection import verdicts
from netbic.simulate import cohort
from problems import simulations

N_SAMPLES, N_GENES, SIZE, N_MODULES = 80, 500, 25, 5
OLD = {"deflation": "hotelling", "graph_term": "normalized", "smoothness_scale": "relative"}


# ----------------------------------------------------------------------------------------------------------------
# Data without modules
# ----------------------------------------------------------------------------------------------------------------


@cache
def expression():
    """Breast tumours (samples x genes), or a simulated cohort if NETBIC_DATA is not set."""
    if "NETBIC_DATA" not in os.environ:
        return cohort(250, 2000, random_state=0).expression.to_numpy()
    return pd.read_parquet(Path(os.environ["NETBIC_DATA"]) / "expr_tcga_brca_rnaseq.parquet").T.to_numpy(dtype=float)


def permuted(generator, n, p):
    """Real data in which every column is permuted on its own."""
    real = expression()
    rows, columns = generator.choice(len(real), n, replace=False), generator.choice(real.shape[1], p, replace=False)
    return generator.permuted(real[np.ix_(rows, columns)], axis=0)


def counts(generator, n, p, mean=2.0, depth=0.5):
    means = generator.normal(mean, 1.5, p)
    return simulations.counts(generator, means, generator.normal(0, depth, n))


# Name: function, number of samples, of genes, smoothness (None: the default)
NULLS = {
    "permuted": (permuted, N_SAMPLES, N_GENES, None),
    "uneven genes": (simulations.uneven_genes, N_SAMPLES, N_GENES, None),
    "uneven samples": (simulations.uneven_samples, N_SAMPLES, N_GENES, None),
    "counts": (counts, N_SAMPLES, N_GENES, None),
    "few counts": (partial(counts, mean=-1.5, depth=0.6), N_SAMPLES, N_GENES, None),
    "outlier samples": (simulations.outlier_samples, N_SAMPLES, N_GENES, None),
    "permuted, heavy graph": (permuted, N_SAMPLES, N_GENES, 2.0),
    "permuted, smoothed 0.9": (permuted, N_SAMPLES, N_GENES, None),
    "heavy tails (t3)": (simulations.heavy_tails, N_SAMPLES, N_GENES, None),
    "permuted, 20 samples": (permuted, 20, N_GENES, None),
    "uneven samples, 30 samples": (simulations.uneven_samples, 30, N_GENES, None),
    "outlier samples, 40 samples": (simulations.outlier_samples, 40, N_GENES, None),
    "uneven genes, 50 genes": (simulations.uneven_genes, N_SAMPLES, 50, None),
    "autocorrelated 0.3": (partial(simulations.autocorrelated, rho=0.3), N_SAMPLES, N_GENES, None),
    "autocorrelated 0.7": (partial(simulations.autocorrelated, rho=0.7), N_SAMPLES, N_GENES, None),
    "replicates": (simulations.replicates, N_SAMPLES, N_GENES, None),
    "replicates, as groups": (simulations.replicates, N_SAMPLES, N_GENES, None),
}


# ----------------------------------------------------------------------------------------------------------------
# Data with modules
# ----------------------------------------------------------------------------------------------------------------


def planted(generator, n, p, share, strength):
    """Three sets of genes in normal noise, each shifted up and down in a share of the samples; the sets."""
    X, genes = generator.standard_normal((n, p)), generator.permutation(p)
    sets = [genes[start : start + SIZE] for start in (0, SIZE, 2 * SIZE)]
    for members in sets:
        rows = generator.choice(n, round(share * n), replace=False)
        X[np.ix_(rows, members)] += strength * generator.choice([-1, 1], SIZE)
    return X, sets


def two_batches(generator, n, p):
    """Half of the samples are shifted in every gene, by a random amount; every gene is a member."""
    X = generator.standard_normal((n, p))
    X[: n // 2] += 0.7 * generator.standard_normal(p)
    return X, []


def duplicated(generator, n, p):
    """Eight noisy copies of one gene, as many probes of it would be."""
    X, members = generator.standard_normal((n, p)), generator.choice(p, 8, replace=False)
    X[:, members] = 2 * X[:, members[:1]] + 0.3 * generator.standard_normal((n, 8))
    return X, [members]


ALL_SAMPLES = {
    "planted, 30 % of samples, shift 1": partial(planted, share=0.3, strength=1.0),
    "planted, 30 % of samples, shift 1.25": partial(planted, share=0.3, strength=1.25),
    "planted, 30 % of samples, shift 1.75": partial(planted, share=0.3, strength=1.75),
    "eight copies of a gene": duplicated,
    "two batches": two_batches,
}
PLANTED = {
    "all samples": ALL_SAMPLES,
    "chosen": ALL_SAMPLES,
    "tenth": {
        "planted, 10 % of samples, shift 2": partial(planted, share=0.1, strength=2.0),
        "planted, 10 % of samples, shift 2.5": partial(planted, share=0.1, strength=2.5),
        "planted, 10 % of samples, shift 3.5": partial(planted, share=0.1, strength=3.5),
    },
}


# ----------------------------------------------------------------------------------------------------------------
# Runs
# ----------------------------------------------------------------------------------------------------------------


def graph_of(generator, p):
    """A graph with hubs (degrees about 8, of any size) and many small cliques without other edges."""
    weights = generator.permutation((np.arange(p) + 1.0) ** -0.5)
    weights *= 8 / weights.mean()
    edges = np.triu(generator.random((p, p)) < np.outer(weights, weights) / weights.sum(), 1)
    edges |= edges.T
    for _ in range(p // 40):
        clique = generator.choice(p, generator.integers(2, 9), replace=False)
        edges[clique], edges[:, clique] = False, False
        edges[np.ix_(clique, clique)] = True
    np.fill_diagonal(edges, False)
    return Graph(sp.csr_array(edges.astype(float)))


def model_for(setting, generator, n, p, smoothness=None):
    options = {"n_columns": min(SIZE, p // 5), "column_graph": graph_of(generator, p), "random_state": 0}
    if setting == "tenth":
        options |= OLD | {"n_rows": max(2, n // 10)}
    elif setting == "chosen":
        del options["n_columns"]
    if setting != "tenth" and smoothness is not None:
        options |= {"graph_term": "normalized", "smoothness_scale": "relative"}  # the default limits its own weight
    n_modules = "auto" if setting == "chosen" else N_MODULES
    return SparseGraphSVD(n_modules, column_smoothness=smoothness, **options)


def judged(model, X, seed, groups=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return verdicts(model, X, random_state=seed, groups=groups).table


def null_row(kind, setting, runs, seed):
    """Share of data sets with a strong or moderate module, and the largest ratio of a module with a good score."""
    make, n, p, smoothness = NULLS[kind]
    groups = np.arange(n) // 3 if "as groups" in kind else None
    passed, repeats, ratios = 0, 0, []
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        X = make(generator, n, p)
        model = model_for(setting, generator, n, p, smoothness)
        table = judged(model.set_params(diffusion=0.9 if "smoothed" in kind else None), X, run, groups)
        passed += table["verdict"].isin(["strong", "moderate"]).any()
        repeats += table["repeats"].notna().any()
        ratios.append(table["ratio"].where(table["score"] >= 0.6, 0.0).max())
    return {
        "data": kind, "setting": setting, "samples": n, "genes": p, "runs": runs,
        "strong or moderate": f"{passed / runs:.3f}", "repeats": f"{repeats / runs:.3f}",
        "largest ratio": f"{max(ratios):.2f}",
    }  # fmt: skip


def planted_row(kind, setting, runs, seed):
    """Verdicts of the modules in which at least 80 % of the genes of a planted one are found."""
    found, verdicts_of, others = [], [], 0
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        X, sets = PLANTED[setting][kind](generator, N_SAMPLES, N_GENES)
        model = model_for(setting, generator, N_SAMPLES, N_GENES)
        names = judged(model, X, run)["verdict"].to_numpy()
        shares = np.array([[model.columns_[k][members].mean() for k in range(len(names))] for members in sets])
        found += (shares.max(axis=1) >= 0.8).tolist() if sets else [True]
        verdicts_of += names[shares.argmax(axis=1)][shares.max(axis=1) >= 0.8].tolist() if sets else [names[0]]
        unrelated = shares.max(axis=0) < 0.2 if sets else np.zeros(len(names), dtype=bool)
        others += int(np.isin(names[unrelated], ["strong", "moderate"]).sum())
    return {
        "data": kind, "setting": setting, "runs": runs, "found": f"{np.mean(found):.2f}",
        "strong": f"{np.mean(np.array(verdicts_of) == 'strong'):.2f}",
        "strong or moderate": f"{np.isin(verdicts_of, ['strong', 'moderate']).mean():.2f}", "false": others,
    }  # fmt: skip


def print_simulations(runs, seed, kinds, settings):
    nulls = [kind for kind in NULLS if not kinds or kind in kinds]
    for setting in settings:
        for number, kind in enumerate(nulls):
            show(null_row(kind, setting, runs, seed), number == 0)
        names = [kind for kind in PLANTED[setting] if not kinds or kind in kinds]
        for number, kind in enumerate(names):
            show(planted_row(kind, setting, max(runs // 3, 1), seed), number == 0)


def show(row, header):
    cells = [f"{value!s:>{max(len(name), 8)}}" for name, value in list(row.items())[1:]]
    if header:
        print(f"\n{'data':38}" + "  ".join(f"{name:>8}" for name in list(row)[1:]))
    print(f"{row['data']:38}" + "  ".join(cells), flush=True)


# ----------------------------------------------------------------------------------------------------------------
# Tumours
# ----------------------------------------------------------------------------------------------------------------

STUDIES = {
    "COADREAD": ("expr_tcga_coadread_rnaseq", "expr_tcga_coadread_samples", ["site", "missing_block"]),
    "BRCA RNA-seq": ("expr_tcga_brca_rnaseq", "expr_tcga_brca_agilent2012_samples", ["pam50", "er_status"]),
    "BRCA Agilent": ("expr_tcga_brca_agilent2012", "expr_tcga_brca_agilent2012_samples", ["pam50", "er_status"]),
}


def in_network(X, network):
    """The genes of X that are in the network, and the network."""
    X = X.loc[:, X.columns.isin(pd.unique(network.to_numpy().ravel()))]
    return X, Graph.from_edges(network).align(X.columns)


def auc(scores, members):
    """Area under the curve of a group against all others, in either direction."""
    ranks = pd.Series(scores).rank().to_numpy()
    inside = int(members.sum())
    area = (ranks[members].sum() - inside * (inside + 1) / 2) / (inside * (len(members) - inside))
    return max(area, 1 - area)


def best_label(scores, labels):
    """The group of samples that the scores separate best."""
    areas = {
        f"{name} {value}": auc(scores[known], (labels.loc[known, name] == value).to_numpy())
        for name in labels
        for known in [labels[name].notna().to_numpy()]
        for value in labels.loc[known, name].unique()
    }
    name = max(areas, key=areas.get)
    return f"{name} {areas[name]:.2f}"


def real(folder, seed):
    network = pd.read_parquet(folder / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    terms = read_gene_sets(folder / "go_bp_human.gmt.gz")
    for study, (file, samples, names) in STUDIES.items():
        X, graph = in_network(pd.read_parquet(folder / f"{file}.parquet").T.astype(np.float64), network)
        labels = pd.read_csv(folder / f"{samples}.tsv", sep="\t", index_col=0)[names]
        labels = labels.set_axis(labels.index.str[:12]).reindex(X.index.str[:12])  # by patient
        for setting in ("all samples", "tenth"):
            options = {"n_columns": 100, "column_graph": graph, "random_state": 0}
            options |= (OLD | {"n_rows": len(X) // 10}) if setting == "tenth" else {}
            model = SparseGraphSVD(10, **options)
            table = judged(model, X, seed)
            scores = (X - X.mean()).to_numpy() @ model.components_.T
            best = gene_sets(model, terms, by_sign=False).drop_duplicates("module").set_index("module")
            named = best["name"].str[:40] + best["q_value"].map(" (q = {:.0e})".format)
            table["best GO term"] = named.reindex(table["module"]).to_numpy()
            table["best label (AUC)"] = [best_label(column, labels) for column in scores.T]
            columns = ["module", "verdict", "score", "ratio", "ratio_alone", "features_found_again", "by_data_alone"]
            shown = table[[*columns, "best GO term", "best label (AUC)"]]
            print(f"\n{study}, {setting}: {X.shape[0]} samples, {X.shape[1]} genes")
            print(shown.round(2).to_string(index=False), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="names of data, separated by semicolons")
    parser.add_argument("--settings", default=";".join(PLANTED), help="all samples, chosen or tenth, by semicolons")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        real(Path(os.environ["NETBIC_DATA"]), options.seed)
    else:
        kinds = [kind for kind in options.kinds.split(";") if kind]
        print_simulations(options.runs, options.seed, kinds, options.settings.split(";"))


if __name__ == "__main__":
    main()
