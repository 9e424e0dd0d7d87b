"""How often `replicate` finds modules in studies with and without them, and `compare` in unrelated and related fits.

python benchmarks/replication.py {absent,present,intervals,fits} [--runs 40] [--seed 1]
python benchmarks/replication.py real      (needs NETBIC_DATA)

Six modules are planted in a study, and those that are found are looked for in other studies:

- absent: studies with other structure: background factors that all genes follow (the first study follows them, too,
  or not), other modules, heavy tails, counts of samples of uneven depth. In "half", three of the planted modules are
  there, so that the others are judged next to modules that hold.
- present: studies on another platform, without 30 % of the genes: other units, saturation, more noise, counts.
- intervals: how often the 95 % interval of the density contains the density of the population.
- fits: statuses of `compare`.
- real: modules of gastric tumours in other tumours, as they are and with permuted names of genes.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from netbic import SparseGraphSVD, compare, replicate
from netbic.comparison.replicate import OtherStudy, density_interval
from netbic.simulate import cohort

N_GENES, N_PLANTED = 1500, 6
NAMES = [f"g{number}" for number in range(N_GENES)]
ABSENT = (
    *("noise, uneven genes", "heavy tails, uneven genes", "one factor", "one factor, in both", "five factors"),
    *("five factors, in both", "other modules", "other modules and five factors", "counts, uneven depth", "half"),
)
PRESENT = (
    *("the same", "other units", "saturated", "skewed", "twice the noise", "counts", "counts, uneven depth"),
    "counts of uneven depth, per million",
)
STUDIES = {
    "ovarian": "bulk_ovarian_gse51088",
    "breast, arrays": "expr_tcga_brca_agilent2012",
    "breast, RNA-seq": "expr_tcga_brca_rnaseq",
    "colorectal": "expr_tcga_coadread_rnaseq",
}


class Planted:
    """A study with six modules, what it takes to draw others like it, and the modules found in it."""

    def __init__(self, seed, factors=0):
        self.generator = generator = np.random.default_rng(seed)
        size, strength = int(generator.choice([15, 30, 60])), generator.choice([0.7, 1.0, 1.4])
        self.genes = generator.permutation(N_GENES)[: N_PLANTED * size].reshape(N_PLANTED, size)
        signs = generator.choice([-1, 1], self.genes.shape, p=[0.3, 0.7]) if generator.random() < 0.5 else 1
        self.patterns = strength * generator.uniform(0.5, 1.5, self.genes.shape) * signs
        self.gated = generator.random() < 0.5  # a module acts in 30 % of the samples, or in all
        self.spread, self.means = np.exp(0.5 * generator.standard_normal(N_GENES)), generator.normal(8, 2, N_GENES)
        self.factors = self.loadings(factors)
        first = self.study(int(generator.choice([100, 200])), range(N_PLANTED), self.factors)
        self.model = SparseGraphSVD(N_PLANTED, n_columns=size * 6 // 5).fit(self.named(first))

    def loadings(self, number):
        """Of all genes, on background factors: positive for one, of both signs for several."""
        drawn = self.generator.uniform(0.3, 0.9, (number, N_GENES))
        return drawn if number == 1 else drawn * self.generator.choice([-1, 1], drawn.shape) * 0.7

    def study(self, n, modules, factors=(), noise=1.0, tails=None):
        generator, shape = self.generator, (n, N_GENES)
        X = noise * (generator.standard_normal(shape) if tails is None else generator.standard_t(tails, shape))
        X += generator.standard_normal((n, len(factors))) @ np.reshape(factors, (len(factors), N_GENES))
        for module in modules:
            X[:, self.genes[module]] += np.outer(self.activity(n), self.patterns[module])
        return X * self.spread + self.means

    def activity(self, n):
        gate = (self.generator.random(n) < 0.3) / np.sqrt(0.3) if self.gated else 1
        return gate * self.generator.standard_normal(n)

    @staticmethod
    def named(X):
        return pd.DataFrame(X, columns=NAMES)

    def found(self):
        """The planted module of each one found (the 0.8 of its squared weights are there), or -1."""
        shares = np.array([[np.sum(v[members] ** 2) for members in self.genes] for v in self.model.components_])
        return np.where(shares.max(axis=1) > 0.8, shares.argmax(axis=1), -1)

    def counts(self, X, depth):
        """Counts of sequenced molecules, on a logarithmic scale."""
        rates = np.exp((X - X.mean(axis=0)) / 2 + self.generator.normal(2, 1, X.shape[1]))
        rates *= np.exp(depth * self.generator.standard_normal((len(X), 1)))
        return np.log1p(self.generator.poisson(self.generator.gamma(5, rates / 5)))

    def other_modules(self, number=10):
        """Modules of other sizes, made of any genes."""
        self.genes = [self.generator.choice(N_GENES, size, replace=False) for size in [30, 60, 120, 200] * number]
        self.genes = self.genes[:number]
        self.patterns = [self.generator.uniform(0.5, 1.5, len(genes)) for genes in self.genes]
        return range(number)


def without(kind, seed):
    """A study that lacks the modules, and which of those found it has nevertheless."""
    shared = {"one factor, in both": 1, "five factors, in both": 5}.get(kind, 0)
    planted = Planted(seed, shared)
    found, n = planted.found(), int(planted.generator.choice([30, 60, 200]))
    planted.spread = np.exp(planted.generator.standard_normal(N_GENES)) if "uneven genes" in kind else planted.spread
    modules, factors = [], planted.factors
    if kind in ("one factor", "five factors", "other modules and five factors"):
        factors = planted.loadings(1 if kind == "one factor" else 5)
    if kind == "half":
        modules = range(N_PLANTED // 2)
    if kind.startswith("other modules"):
        modules = planted.other_modules()
    X = planted.study(n, modules, factors, tails=3 if "tails" in kind else None)
    X = planted.counts(X, 0.7) if "counts" in kind else X
    return planted, X, (found >= 0) & ~(np.isin(found, range(3)) & (kind == "half"))


def absent(runs, seed):
    rows = []
    for kind in ABSENT:
        for run in range(runs):
            planted, X, lacks = without(kind, [seed, run, ABSENT.index(kind)])
            table = replicate(planted.model, planted.named(X), random_state=run).table
            rows.append(table[lacks].assign(study=kind))
    return rates(pd.concat(rows))


def present(runs, seed):
    rows = []
    for kind in PRESENT:
        for run in range(runs):
            planted = Planted([seed, run, PRESENT.index(kind), 1])
            generator, n = planted.generator, int(planted.generator.choice([60, 200]))
            planted.spread = planted.spread * np.exp(0.3 * generator.standard_normal(N_GENES))
            X = planted.study(n, range(N_PLANTED), noise=2 if "noise" in kind else 1)
            scaled = (X - X.mean(axis=0)) / X.std(axis=0)
            if kind == "other units":
                X = X * np.exp(generator.standard_normal(N_GENES)) + generator.normal(0, 100, N_GENES)
            elif kind == "saturated":
                X = np.tanh(scaled + generator.uniform(-1, 1, N_GENES))
            elif kind == "skewed":
                X = np.exp(generator.uniform(0.2, 1, N_GENES) * scaled)
            elif kind.startswith("counts"):
                X = planted.counts(X, 0.7 if "uneven" in kind else 0.2)
            if "per million" in kind:
                X = np.log1p(1e4 * np.expm1(X) / np.expm1(X).sum(axis=1, keepdims=True))
            kept = np.sort(generator.permutation(N_GENES)[: int(0.7 * N_GENES)])
            table = replicate(planted.model, planted.named(X).iloc[:, kept], random_state=run).table
            rows.append(table[planted.found() >= 0].assign(study=kind))
    return rates(pd.concat(rows))


def rates(table):
    """Shares of the grades by kind of study."""
    grades = pd.crosstab(table["study"], table["verdict"], normalize="index")
    grades = grades.reindex(columns=["strong", "weak", "not replicated", "too few to tell"], fill_value=0)
    grades["p <= 0.05"] = (table["p"] <= 0.05).groupby(table["study"]).mean()
    grades["density"] = table["density"].groupby(table["study"]).median()
    grades["modules"] = table.groupby("study").size()
    return grades.reindex(table["study"].unique()).round(3)


def density(X, signs):
    """The mean correlation of pairs of features with these signs, and its interval."""
    features = OtherStudy.of(X, False)[0].features(np.arange(signs.size))
    whole = (np.sum((signs @ features) ** 2) - signs.size) / signs.size / (signs.size - 1)
    return whole, density_interval(features, signs)


def intervals(runs, seed):
    """Coverage of the interval; the density of the population is that of 20,000 samples."""
    rows = []
    for number in range(max(runs // 4, 1)):
        planted = Planted([seed, number, 2], int(np.random.default_rng(number).choice([0, 1, 5])))
        members, signs = planted.genes[0], np.sign(planted.patterns[0])
        for tails in (None, 5):
            one = (range(N_PLANTED), planted.factors, 1.0, tails)
            truth = density(planted.study(20_000, *one)[:, members], signs)[0]
            kind = f"{'acts in 30 %' if planted.gated else 'acts in all'}, {'normal' if tails is None else 't5'}"
            for n in np.repeat([30, 60, 200], 10):
                low, high = density(planted.study(n, *one)[:, members], signs)[1]
                rows.append((kind, n, low <= truth <= high, high - low))
    table = pd.DataFrame(rows, columns=["module", "samples", "covered", "width"])
    return table.groupby(["module", "samples"]).agg({"covered": ["mean", "size"], "width": "median"}).round(3)


def fits(runs, seed):
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


def permuted(X, generator, n_strata):
    """The study with permuted names of genes; with several strata, among genes of similar mean and variance."""
    strata = pd.Series(np.zeros(X.shape[1]))
    if n_strata > 1:
        means, spreads = (pd.Series(np.asarray(values)) for values in (X.mean(), X.std()))
        strata = pd.qcut(means.rank(method="first"), n_strata, labels=False) * 1.0
        strata += (
            spreads.groupby(strata).rank(pct=True).mul(n_strata).clip(upper=n_strata - 1e-9).floordiv(1) * n_strata
        )
    names = np.empty(X.shape[1], dtype=object)
    for members in strata.groupby(strata).groups.values():
        names[members] = generator.permutation(X.columns[members])
    return X.set_axis(names, axis=1)


def real(runs, seed):
    folder, rows = Path(os.environ["NETBIC_DATA"]), []
    read = {name: pd.read_parquet(folder / f"{file}.parquet").T for name, file in STUDIES.items()}
    gastric = pd.read_parquet(folder / "bulk_gastric_gse26901.parquet").T
    for n_modules in (15, 30):
        model = SparseGraphSVD(n_modules, random_state=0).fit(gastric)
        leading = [", ".join(gastric.columns[np.argsort(-np.abs(v))[:3]]) for v in model.components_]
        grades = {name: replicate(model, X, random_state=0).table["verdict"] for name, X in read.items()}
        print(pd.DataFrame({"leading genes": leading, **grades}).to_string(), "\n")
    for name, X in read.items():
        for kind, n_strata in (("permuted", 1), ("permuted in strata", 10)):
            for run in range(max(runs // 5, 1)):
                other = permuted(X, np.random.default_rng([seed, run, n_strata]), n_strata)
                rows.append(replicate(model, other, random_state=run).table.assign(study=f"{name}, {kind}"))
    return rates(pd.concat(rows))


if __name__ == "__main__":
    kinds = {"absent": absent, "present": present, "intervals": intervals, "fits": fits, "real": real}
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=list(kinds))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    pd.set_option("display.width", 200, "display.max_columns", 20)
    print(kinds[given.kind](given.runs, given.seed).to_string())
