"""How well shared and private modules of several studies are found, and told apart.

python benchmarks/studies.py [--runs 20] [--seed 1]
python benchmarks/studies.py --left-out [--runs 20]    leave one study out: ten times as many fits
python benchmarks/studies.py --noise [--runs 20]       studies without any module
python benchmarks/studies.py --cells [--runs 20]       modules planted in T cells of one donor, or of all donors
python benchmarks/studies.py --real                    three sets of tumours (needs NETBIC_DATA)

Eight modules of 50 genes are planted in four studies: two in all of them, one in three, one in two, and one in each
study alone. Each study has other means and scales of the genes, and a factor that all genes follow.
"""

import argparse
import os
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import netbic
from netbic.simulate import recovery, studies

LIVES = ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2), (1, 3), (0,), (1,), (2,), (3,))
SETTINGS = {
    "strong": {"strength": 1.0},
    "moderate": {"strength": 0.7},
    "weak": {"strength": 0.5},
    "moderate, small studies": {"strength": 0.7, "sizes": (20, 30, 40, 60)},
    "moderate, very different sizes": {"strength": 0.7, "sizes": (15, 30, 100, 400)},
}
N_MODULES = len(LIVES) + 4  # the factors of the studies are found as modules, too
FILES = {
    "BRCA Agilent": "expr_tcga_brca_agilent2012",
    "BRCA RNA-seq": "expr_tcga_brca_rnaseq",
    "COADREAD": "expr_tcga_coadread_rnaseq",
}
KNOWN = 0.5  # smallest F1 of a module that counts as found


def model(scale=True, **more):
    return netbic.SparseGraphSVD(N_MODULES, n_columns=50, scale=scale, **more)


def recovered(simulated):
    """Mean F1 of shared and of private modules by three ways to fit."""
    X, labels = simulated.X, simulated.studies
    together = model().fit(X, studies=labels)
    ways = {
        "studies": together.columns_,
        "stacked": model().fit(X).columns_,
        "each alone": np.vstack([model().fit(X[labels == name]).columns_ for name in simulated.names]),
    }
    shared = simulated.lives.sum(axis=1) > 1
    rows = {}
    for name, columns in ways.items():
        f1 = recovery(columns, simulated.genes)["f1"].to_numpy()
        rows[name] = f1[shared].mean(), f1[~shared].mean()
    return together, rows


def told_apart(simulated, fitted):
    """Ratio, answer (whether it lives there) and truth for every study, of each module that was found."""
    paired = recovery(fitted.columns_, simulated.genes)
    ratios, answers = (
        fitted.studies_[name].to_numpy().reshape(-1, len(simulated.names)) for name in ("ratio", "lives_here")
    )
    return [
        each
        for row in paired[paired["f1"] >= KNOWN].itertuples()
        for each in zip(ratios[row.found], answers[row.found], simulated.lives[row.planted], strict=True)
    ]


def simulate(runs, seed):
    lines, f1s = [], []
    for name, options in SETTINGS.items():
        pairs, rows = [], []
        for run in range(runs):
            simulated = studies(lives=LIVES, random_state=[seed, run], **options)
            fitted, found = recovered(simulated)
            pairs += told_apart(simulated, fitted)
            rows.append(found)
        ratios, answers, truth = (np.array(column) for column in zip(*pairs, strict=True))
        own = {"setting": name, "with": truth.sum(), "without": (~truth).sum()}
        own |= {"AUC": roc_auc_score(truth, ratios), "false": answers[~truth].mean()}
        lines.append(own | {"found": answers[truth].mean(), "largest false": ratios[~truth].max()})
        for way in rows[0]:
            both = np.mean([found[way] for found in rows], axis=0)
            f1s.append({"setting": name, "fit": way, "shared F1": both[0], "private F1": both[1]})
    print(pd.DataFrame(lines).round(3).to_string(index=False))
    print(pd.DataFrame(f1s).round(2).to_string(index=False))


def left_out(runs, seed):
    """Modules that another study has should be replicated where they live, and nowhere else."""
    rows = []
    for name, options in SETTINGS.items():
        right, wrong, with_, without = 0, 0, 0, 0
        for run in range(runs):
            simulated = studies(lives=LIVES, random_state=[seed, run], **options)
            fitted = model().fit(simulated.X, studies=simulated.studies)
            table = netbic.leave_one_study_out(fitted, simulated.X, random_state=0).table
            holds = (table["verdict"] == "replicated").to_numpy().reshape(-1, len(simulated.names))
            paired = recovery(fitted.columns_, simulated.genes)
            for row in paired[paired["f1"] >= KNOWN].itertuples():
                lives = simulated.lives[row.planted] & (simulated.lives[row.planted].sum() > 1)
                right, wrong = right + holds[row.found][lives].sum(), wrong + holds[row.found][~lives].sum()
                with_, without = with_ + lives.sum(), without + (~lives).sum()
        rates = {"replicated": right / with_, "of": with_, "false": wrong / without, "among": without}
        rows.append({"setting": name} | rates)
    print(pd.DataFrame(rows).round(3).to_string(index=False))


def noise(runs, seed):
    """Modules of noise: in how many studies they seem to live, and what the verdicts say."""
    lives, verdicts = [], []
    for run in range(runs):
        simulated = studies(lives=(), random_state=[seed, run], background=0.0)
        fitted = netbic.SparseGraphSVD(3, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
        lives += fitted.studies_["lives_here"].tolist()
        verdicts += netbic.selection.verdicts(fitted, simulated.X, n_pairs=3, random_state=0).table["verdict"].tolist()
    doubtful = np.mean([verdict == "doubtful" for verdict in verdicts])
    print(f"noise: lives_here {np.mean(lives):.3f} of {len(lives)}; doubtful {doubtful:.3f} of {len(verdicts)}")


def cells(runs, seed):
    """Forty genes that are high together in 4 % of the T cells of all donors, or in 30 % of those of one donor."""
    adata = netbic.datasets.t_cells()
    counts, donors = adata.X.toarray(), adata.obs["donor"].to_numpy()
    X = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    often = np.flatnonzero((X > 0).mean(axis=0) > 0.05)
    rows = []
    for run, where in product(range(runs), ("one donor", "all donors")):
        generator = np.random.default_rng([seed, run])
        genes, own = generator.choice(often, 40, replace=False), generator.choice(np.unique(donors))
        made = X.copy()
        draws, everywhere = generator.random(len(X)), where == "all donors"
        chosen = draws < 0.04 if everywhere else (draws < 0.3) & (donors == own)
        for gene in genes:
            high = chosen & (generator.random(len(X)) < 0.6)
            values = X[:, gene][X[:, gene] > 0]
            made[high, gene] = np.maximum(made[high, gene], generator.choice(values, high.sum()))
        fitted = netbic.SparseGraphSVD(12).fit(sp.csr_matrix(made), studies=donors)
        found = netbic.leave_one_study_out(fitted, sp.csr_matrix(made), n_draws=200, random_state=0).table
        planted = fitted.columns_[:, genes].sum(axis=1) / np.sqrt(fitted.columns_.sum(axis=1) * 40)
        module = int(planted.argmax()) + 1
        table, lives = found[found["module"] == module], fitted.studies_[fitted.studies_["module"] == module]
        about = {"genes": where, "found": planted.max() > 0.5, "other donors": (table["study"] != own).to_numpy()}
        about |= {"replicated": (table["verdict"] == "replicated").to_numpy()}
        rows.append(pd.DataFrame(about | {"lives here": lives["lives_here"].to_numpy()}))
    table = pd.concat(rows)
    print(table[table["found"]].groupby(["genes", "other donors"])[["replicated", "lives here"]].agg(["mean", "size"]))
    print(table.groupby("genes")["found"].mean())


def tumours():
    """Modules of three sets of tumours, with their gene sets, the studies they live in, and labels of one of them."""
    folder = Path(os.environ["NETBIC_DATA"])
    parts = {name: pd.read_parquet(folder / f"{file}.parquet").T.astype(float) for name, file in FILES.items()}
    stacked = netbic.stack_studies(parts)
    print(f"{len(parts)} studies, {stacked.X.shape[0]} samples, {stacked.X.shape[1]} genes")
    labels = pd.read_csv(folder / "expr_tcga_brca_agilent2012_samples.tsv", sep="\t", index_col=0)
    labels = labels.reindex(parts["BRCA Agilent"].index)
    sets = netbic.io.read_gene_sets(folder / "go_bp_human.gmt.gz")
    fitted = netbic.SparseGraphSVD(12, n_columns=40).fit(stacked.X, studies=stacked.studies)
    without = netbic.leave_one_study_out(fitted, stacked.X, random_state=0).table
    scores = fitted.transform(stacked.X, studies=stacked.studies)[: len(labels)]
    summary, found = netbic.storage.summary_table(fitted), netbic.enrichment.gene_sets(fitted, sets)
    for at, module in enumerate(summary["module"]):
        ratios = fitted.studies_.loc[fitted.studies_["module"] == module, "ratio"].round(1).tolist()
        again = without.loc[without["module"] == module, "verdict"].tolist()
        aucs = [auc(labels["er_status"] == "ER+", scores[:, at]), auc(labels["pam50"] == "Her2", scores[:, at])]
        best = found[found["module"] == module].sort_values("p_value").iloc[0]
        print(f"{module:2d} {summary['top_features'][at]}: {summary['studies'][at]} {ratios}")
        print(f"   left out: {again}; ER {aucs[0]:.2f}, HER2 {aucs[1]:.2f}; {best['name']} (q {best['q_value']:.0e})")


def auc(truth, score):
    value = roc_auc_score(truth, score)
    return max(value, 1 - value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    for name in ("left-out", "noise", "cells", "real"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.real:
        tumours()
    elif given.left_out:
        left_out(given.runs, given.seed)
    elif given.cells:
        cells(given.runs, given.seed)
    elif given.noise:
        noise(given.runs, given.seed)
    else:
        simulate(given.runs, given.seed)


if __name__ == "__main__":
    main()
