"""How often `replicate` finds modules in studies with and without them, and `compare` in unrelated and related fits.

python benchmarks/replication.py [--runs 60] [--seed 1]
python benchmarks/replication.py --real      (needs NETBIC_DATA)

Six modules are planted in a study, and seven are searched for. The second study has other samples, other variances of
its genes and three of the modules; a factor that all genes follow is in both studies, in the second one only, or
absent.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from netbic import SparseGraphSVD, compare, replicate
from netbic.simulate import cohort

N_GENES, N_PLANTED, N_KEPT = 1500, 6, 3
FACTORS = ("none", "positive", "signed", "positive, new", "signed, new")
NAMES = [f"g{number}" for number in range(N_GENES)]


class Pair:
    """Two studies, and the modules found in the first one."""

    def __init__(self, seed):
        generator = np.random.default_rng(seed)
        self.factor = FACTORS[generator.integers(len(FACTORS))]
        self.n_samples = int(generator.choice([30, 60, 200]))
        size, strength = int(generator.choice([15, 30, 60])), generator.choice([0.7, 1.0, 1.4])
        self.genes = generator.permutation(N_GENES)[: N_PLANTED * size].reshape(N_PLANTED, size)
        signs = generator.choice([-1, 1], self.genes.shape, p=[0.3, 0.7]) if generator.random() < 0.5 else 1
        self.patterns = strength * generator.uniform(0.5, 1.5, self.genes.shape) * signs
        self.spread = np.exp(0.5 * generator.standard_normal(N_GENES))
        loadings = self._loadings(generator)
        is_new = self.factor.endswith("new")
        first = self._study(
            generator, int(generator.choice([100, 200])), N_PLANTED, 0 * loadings if is_new else loadings
        )
        self.other = self._study(generator, self.n_samples, N_KEPT, loadings)
        self.model = SparseGraphSVD(N_PLANTED + 1, n_columns=size * 6 // 5).fit(first)

    def _loadings(self, generator):
        if self.factor == "none":
            return np.zeros(N_GENES)
        strength = generator.choice([0.3, 0.6])
        return strength * (
            generator.uniform(0.5, 1.5, N_GENES) if "positive" in self.factor else generator.standard_normal(N_GENES)
        )

    def _study(self, generator, n_samples, n_modules, loadings):
        X = generator.standard_normal((n_samples, N_GENES)) + np.outer(generator.standard_normal(n_samples), loadings)
        for members, pattern in zip(self.genes[:n_modules], self.patterns, strict=False):
            X[:, members] += np.outer(generator.standard_normal(n_samples), pattern)
        X = X * self.spread * np.exp(0.3 * generator.standard_normal(N_GENES)) + generator.normal(8, 2, N_GENES)
        return pd.DataFrame(X, columns=NAMES)

    def truth(self):
        """For each module found: 1 if it is one that the second study has, 0 if one that it lacks, else -1."""
        shares = np.array([[np.sum(v[members] ** 2) for members in self.genes] for v in self.model.components_])
        kept, lost = shares[:, :N_KEPT], shares[:, N_KEPT:]
        pure = (lost.max(axis=1) > 0.8) & (kept.sum(axis=1) < 0.03)
        return np.where(kept.max(axis=1) > 0.8, 1, np.where(pure, 0, -1))


def without_modules(pair, generator):
    """Studies without the modules, by name."""
    shape = pair.other.shape
    spread = np.exp(generator.standard_normal(N_GENES))
    noise = generator.standard_normal(shape)
    one, five = generator.standard_normal((shape[0], 1)), generator.standard_normal((shape[0], 5))
    yield "permuted genes", pair.other.to_numpy()[:, generator.permutation(N_GENES)]
    yield "noise", noise
    yield "uneven genes", noise * spread
    yield "heavy tails, uneven genes", generator.standard_t(3, shape) * spread
    yield "all genes follow one factor", (noise + one @ generator.uniform(0.5, 1.5, (1, N_GENES))) * spread
    yield "one signed factor", (noise + one @ generator.standard_normal((1, N_GENES))) * spread
    yield "five signed factors", (noise + five @ generator.standard_normal((5, N_GENES))) * spread


def replications(runs, seed):
    parts = []
    for run in range(runs):
        pair = Pair([seed, run])
        found = replicate(pair.model, pair.other, n_draws=300, random_state=run).table
        about = {"factor": pair.factor, "samples": pair.n_samples}
        parts.append(found.assign(study="pair", truth=pair.truth(), **about))
        for name, X in without_modules(pair, np.random.default_rng([seed, run, 1])):
            found = replicate(pair.model, pd.DataFrame(X, columns=NAMES), n_draws=300, random_state=run).table
            parts.append(found.assign(study=name))
    return pd.concat(parts, ignore_index=True)


def show_replications(table):
    null = table[table["study"] != "pair"].assign(
        **{f"p <= {level}": table["p"] <= level for level in (0.05, 0.2, 0.5)},
        replicated=table["verdict"] == "replicated",
        partly=table["verdict"] == "partly",
    )
    columns = ["p <= 0.05", "p <= 0.2", "p <= 0.5", "replicated", "partly"]
    print(null.groupby("study")[columns].mean().assign(modules=null.groupby("study").size()).round(3), "\n")
    pairs = table[(table["study"] == "pair") & (table["truth"] >= 0)]
    print(pd.crosstab(pairs["truth"], pairs["verdict"]), "\n")
    for name in ("z", "ratio", "density", "loading_correlation", "sign_agreement"):
        by = {
            key: round(roc_auc_score(part["truth"], part[name]), 3)
            for column in ("factor", "samples")
            for key, part in pairs.groupby(column)
            if part["truth"].nunique() == 2
        }
        print(f"AUC of {name}: {roc_auc_score(pairs['truth'], pairs[name]):.3f}", by)


def comparisons(runs, seed):
    """Statuses of modules: fits to halves of a cohort, with other seeds, and to unrelated cohorts."""
    rows = []
    for run in range(runs):
        study = cohort(400, 1000, n_modules=4, module_samples=100, strength=1.2, random_state=[seed, run])
        other = cohort(400, 1000, n_modules=4, module_samples=100, strength=1.2, random_state=[seed, run, 1])
        halves = study.expression[:200], study.expression[200:], other.expression[:200]
        one, two, unrelated = (SparseGraphSVD(5, n_columns=60, n_init=3, random_state=run).fit(X) for X in halves)
        fresh = SparseGraphSVD(5, n_columns=60, n_init=3, random_state=run + 1000).fit(halves[0])
        unrelated.names_ = {**unrelated.names_, "rows": None}
        for name, model in (("other half", two), ("another seed", fresh), ("unrelated", unrelated)):
            table = compare(one, model, n_draws=300).table
            rows += [(name, status) for status in table.dropna(subset=["module_a"])["status"]]
    found = pd.DataFrame(rows, columns=["fits", "status"])
    return pd.crosstab(found["fits"], found["status"])


def real():
    folder = Path(os.environ["NETBIC_DATA"])
    read = {
        name: pd.read_parquet(folder / f"expr_tcga_{name}.parquet").T
        for name in ("brca_rnaseq", "brca_agilent2012", "coadread_rnaseq")
    }
    for name, other in (("brca_rnaseq", "brca_agilent2012"), ("coadread_rnaseq", "brca_rnaseq")):
        model = SparseGraphSVD(10, n_columns=100).fit(read[name])
        print(f"{name} in {other}:", replicate(model, read[other], new_samples_only=True, random_state=0), "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    pd.set_option("display.width", 200, "display.max_columns", 20)
    if given.real:
        real()
    else:
        show_replications(replications(given.runs, given.seed))
        print("\n", comparisons(given.runs // 2, given.seed))
