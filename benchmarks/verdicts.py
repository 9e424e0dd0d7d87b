"""How often `selection.verdicts` is right: data without modules, planted modules, broad and technical factors.

python benchmarks/verdicts.py noise|planted|broad|technical|series [--runs 200] [--seed 1] [--jobs 2] [--kinds "a;b"]
                              [--modules out.tsv]

`noise`: share of data sets with a strong module, and with a strong or moderate one. `planted`: verdicts of modules that
are recovered (F1 of at least .8), precision of their features, agreement of two seeds, and how often features of a
given confidence are right. `broad`: factors on all features. `technical`: quality, depth and outliers, and clean data.
`series`: time series without modules, with and without blocks of time points as groups (five modules only).
Every data set is searched with the number of modules from the data, with five modules, and with five of 25 features.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import Parallel, delayed

from field.scenarios import SCENARIOS, Planted, disjoint_sets, groups, made, weights_of
from netbic import Graph, SparseGraphSVD
from netbic.selection import kind_of_verdict, verdicts
from problems import breast_tumours
from problems import simulations as sim

SETTINGS = {"chosen": {}, "five": {"n_components": 5}, "five of 25": {"n_components": 5, "n_columns": 25}}
# Only for some kinds of noise: graphs favour hubs and cliques, a tenth of the samples is selected.
FURTHER = {
    "heavy graph": {"n_components": 5, "n_columns": 25, "column_smoothness": 2.0, "smoothness_scale": "relative",
                    "graph_term": "normalized"},
    "tenth": {"n_components": 5, "n_columns": 25, "n_rows": 10},
}  # fmt: skip
WITH_FURTHER = ("normal", "permuted tumours", "uneven genes", "outlier samples")
BINS = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0001])  # of confidence


# Data without modules: a matrix, and groups of samples or None


def permuted(rng, n, p):
    """Real data in which every column is permuted on its own."""
    real = breast_tumours()
    rows, columns = rng.choice(len(real), min(n, len(real)), replace=False), rng.choice(real.shape[1], p, replace=False)
    return rng.permuted(real[np.ix_(rows, columns)], axis=0)


def raw_counts(rng, n, p, mean=1.0, depth=0.6, spread=1.5):
    expected = np.exp(rng.normal(mean, spread, p) + rng.normal(0, depth, (n, 1)))
    return rng.poisson(expected * rng.gamma(5, 1 / 5, expected.shape)).astype(float)


def log_counts(rng, n, p, **options):
    return np.log1p(raw_counts(rng, n, p, **options))


def normalised(rng, n, p, mean=1.0, depth=0.6):
    return sim.counts(rng, rng.normal(mean, 1.5, p), rng.normal(0, depth, n))


def cells(rng, n, p, mean=-2.5, depth=0.7):
    """Counts of single cells with one profile, normalised, as logarithms; the genes that vary most for their mean."""
    counts = rng.poisson(np.exp(rng.normal(mean, 1.7, 4 * p) + rng.normal(0, depth, (n, 1)))).astype(np.float32)
    counts = counts[:, (counts > 0).sum(axis=0) >= 5]
    shares = 1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    means = shares.mean(axis=0)
    dispersion = pd.Series(np.log(shares.var(axis=0) / means))
    groups = dispersion.groupby(pd.cut(np.log1p(means), 20, labels=False))
    standardised = (dispersion - groups.transform("mean")) / groups.transform("std").fillna(1)
    return sp.csr_array(np.log1p(shares[:, np.sort(np.argsort(-standardised.to_numpy())[:p])]))


def zeros(rng, n, p):
    return np.maximum(rng.normal(0, 1, p) + rng.standard_normal((n, p)), 0) * (rng.random((n, p)) < 0.7)


NOISE = {
    "normal": (sim.normal, (20, 60, 400)),
    "heavy tails (t3)": (sim.heavy_tails, (25, 100)),
    "lognormal": (sim.lognormal, (40, 200)),
    "uneven genes": (sim.uneven_genes, (30, 100, 300)),
    "very uneven genes": (partial(sim.uneven_genes, spread=1.5), (80,)),
    "uneven samples": (sim.uneven_samples, (20, 30, 100)),
    "outlier samples": (sim.outlier_samples, (40, 120)),
    "autocorrelated 0.3": (partial(sim.autocorrelated, rho=0.3), (80,)),
    "replicates, as groups": (sim.replicates, (90,)),
    "permuted tumours": (permuted, (20, 80, 240)),
    "counts, log, depth .3": (partial(normalised, depth=0.3), (60, 300)),
    "counts, log, depth .6": (normalised, (20, 30, 80, 300)),
    "few counts, log, depth .6": (partial(normalised, mean=-1.5), (30, 100, 400)),
    "counts with their depth .6": (log_counts, (24, 80, 300)),
    "few counts with their depth .6": (partial(log_counts, mean=-1.0), (30, 300)),
    "raw counts, depth .6": (raw_counts, (80,)),
    "cells, normalised, variable genes": (cells, (1000, 4000)),
    "half zeros": (zeros, (30, 200)),
    "binary": (lambda rng, n, p: (rng.random((n, p)) < rng.uniform(0.02, 0.5, p)).astype(float), (60, 300)),
    "uniform": (lambda rng, n, p: rng.random((n, p)), (50,)),
    "rounded": (lambda rng, n, p: np.round(2 * rng.standard_normal((n, p))), (50,)),
    "few wild entries": (
        lambda rng, n, p: rng.standard_normal((n, p)) + 15 * (rng.random((n, p)) < 0.002), (60, 200)
    ),
    "two scales of samples": (
        lambda rng, n, p: rng.standard_normal((n, p)) * np.where(rng.random((n, 1)) < 0.2, 2.5, 1.0), (50, 150)
    ),
}  # fmt: skip


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


# Data with modules


def small(rng, n, sizes, strength, p=2000, share=None):
    """Modules of few features, active in all samples or in a share of them."""
    members = disjoint_sets(sizes, p, rng)
    scores = rng.standard_normal((n, len(sizes))) if share is None else groups(n, len(sizes), share, rng)
    return made(strength * scores, weights_of(members, rng, signs=(-1.0, 1.0)), rng)


PLANTED = dict(SCENARIOS) | {
    "10 to 25 features, 60 samples": partial(small, n=60, sizes=(10, 15, 20, 25), strength=1.2),
    "10 to 25 features, 200 samples": partial(small, n=200, sizes=(10, 15, 20, 25), strength=0.9),
    "15 features in groups": partial(small, n=120, sizes=(15,) * 5, strength=2.5, share=0.25),
    "10 to 40 features, 30 samples": partial(small, n=30, sizes=(10, 20, 40), strength=2.0),
    "25 samples": partial(small, n=25, sizes=(30, 60), strength=1.5),
    "6 to 10 features, 300 samples": partial(small, n=300, sizes=(6, 8, 10), strength=1.0),
    "weak": partial(small, n=100, sizes=(60, 60, 60), strength=0.45),
}


def dense(rng, n=150, p=2000, strength=0.7, signs=False, modules=4):
    """A factor on all features, and modules."""
    weights = strength * (rng.standard_normal(p) if signs else rng.uniform(0.4, 1.4, p))
    if not modules:
        X = rng.standard_normal((n, p))
        planted = Planted(X, np.zeros((0, p), bool), np.zeros((n, 0)))
    else:
        planted = made(rng.standard_normal((n, modules)), weights_of(disjoint_sets([50] * modules, p, rng), rng), rng)
    score = rng.standard_normal(n)
    return planted._replace(X=planted.X + np.outer(score, weights)), score


BROAD = {
    "a factor of one sign": dense,
    "a factor of both signs": partial(dense, signs=True),
    "alone, one sign": partial(dense, modules=0),
    "alone, both signs": partial(dense, modules=0, signs=True),
    "weak, both signs": partial(dense, signs=True, strength=0.35),
    "30 samples": partial(dense, n=30, strength=0.8),
    "heavy-tailed loadings": lambda rng: heavy_loadings(rng),
}


def heavy_loadings(rng, n=150, p=2000):
    score, planted = (
        rng.standard_normal(n),
        made(rng.standard_normal((n, 4)), weights_of(disjoint_sets([50] * 4, p, rng), rng), rng),
    )
    return planted._replace(X=planted.X + 0.5 * np.outer(score, rng.laplace(size=p))), score


def quality(rng, n=120, p=3000):
    """Array quality: poor arrays have a smaller spread, because low values are raised."""
    planted = made(rng.standard_normal((n, 4)), weights_of(disjoint_sets([60] * 4, p, rng), rng), rng)
    level, poor = rng.normal(8, 2, p), rng.gamma(1.0, 1.0, n)
    X = level + 0.6 * planted.X
    return planted._replace(X=X - 0.15 * np.outer(poor, level - level.mean())), poor


def depth(rng, n=150, p=2000, log=True):
    """Counts whose depth was not corrected."""
    planted = made(rng.standard_normal((n, 3)), weights_of(disjoint_sets([60] * 3, p, rng), rng), rng, noise=0.3)
    depths = rng.normal(0, 0.6, n)
    raw = rng.poisson(np.exp(rng.normal(1, 1.2, p) + 0.6 * planted.X + depths[:, None])).astype(float)
    return planted._replace(X=np.log1p(raw) if log else raw), depths


def detection(rng, n=300, p=2000):
    """Cells of uneven depth: library sizes are equal after normalisation, numbers of detected genes are not."""
    planted = made(groups(n, 3, 0.25, rng), weights_of(disjoint_sets([60] * 3, p, rng), rng), rng, noise=0.1)
    depths = rng.normal(0, 0.8, n)
    raw = rng.poisson(np.exp(rng.normal(-1, 1.2, p) + planted.X + depths[:, None])).astype(float)
    library = np.maximum(raw.sum(axis=1, keepdims=True), 1)
    return planted._replace(X=np.log1p(raw / library * np.median(library))), depths


def one_outlier(rng, n=80, p=1500):
    planted = made(rng.standard_normal((n, 3)), weights_of(disjoint_sets([60] * 3, p, rng), rng), rng)
    X, at, score = planted.X.copy(), rng.choice(n, rng.integers(1, 3), replace=False), np.zeros(n)
    X[np.ix_(at, rng.choice(p, 80, replace=False))] += 8
    score[at] = 1
    return planted._replace(X=X), score


TECHNICAL = {"quality": quality, "depth": depth, "detected genes": detection, "outliers": one_outlier}


# Runs


def judged(X, setting, seed, groups=None, repeat=False):
    """A fitted model, its verdicts, and those of another seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_components": "auto"} | (SETTINGS | FURTHER)[setting]
        if setting == "heavy graph":
            options["column_graph"] = graph_of(np.random.default_rng(seed), X.shape[1])
        model = SparseGraphSVD(**options).fit(X)
        found = verdicts(model, X, random_state=seed, groups=groups)
        again = verdicts(model, X, random_state=seed + 10_000, groups=groups) if repeat else found
    table = found.table.assign(size=model.columns_.sum(axis=1), other_seed=again.table["verdict"].to_numpy())
    return model, found, table.drop(columns="reason")


def noise_run(kind, n, setting, seed, run):
    make = NOISE[kind][0]
    rng = np.random.default_rng([seed, run, n])
    X = make(rng, n, 1000)
    _, _, table = judged(X, setting, run, np.arange(n) // 3 if "as groups" in kind else None)
    return table.assign(kind=kind, n=n, setting=setting, run=run), None


def best_match(columns, members):
    """Of every module: the F1 with the planted one that is most similar, and the share of its features in it."""
    if not len(members) or not len(columns):
        return np.zeros(len(columns)), np.zeros(len(columns)), np.full(len(columns), -1)
    shared = columns.astype(float) @ members.T
    f1 = 2 * shared / np.maximum(columns.sum(axis=1)[:, None] + members.sum(axis=1), 1)
    best = f1.argmax(axis=1)
    rows = np.arange(len(columns))
    return f1[rows, best], shared[rows, best] / np.maximum(columns.sum(axis=1), 1), best


def planted_run(kinds, kind, setting, seed, run):
    """Modules compared with planted members and with a known factor, and right features by confidence."""
    rng = np.random.default_rng([seed, run, 7])
    result = kinds[kind](rng)
    planted, factor = result if isinstance(result[0], Planted) else (result, None)
    model, found, table = judged(planted.X, setting, run, repeat=True)
    f1, precision, best = best_match(model.columns_, planted.members)
    # Features are right if they belong to the planted module with the most similar scores.
    scores = (planted.X - planted.X.mean(axis=0)) @ model.components_.T
    follows = np.zeros(len(table))
    if factor is not None and len(table):
        follows = np.abs(np.nan_to_num(np.corrcoef(scores.T, factor)[-1, :-1]))
    table = table.assign(f1=f1, precision=precision, follows=follows, true_size=[
        planted.members[k].sum() if k >= 0 else 0 for k in best
    ])  # fmt: skip
    counts = np.zeros((2, len(BINS) - 1))
    for k in range(len(table)):
        own = found.features[found.features["module"] == k + 1]
        if not len(planted.members) or f1[k] < 0.2 or own["confidence"].isna().any():
            right = np.zeros(len(own), bool)
        else:
            right = planted.members[best[k]][own["feature"].to_numpy(dtype=int)]
        if kind_of_verdict(table["verdict"][k]) in ("strong", "moderate"):
            at = np.digitize(own["confidence"].fillna(0), BINS) - 1
            counts += [np.bincount(at, minlength=len(BINS) - 1), np.bincount(at, right, minlength=len(BINS) - 1)]
    return table.assign(kind=kind, n=len(planted.X), setting=setting, run=run), counts


def run_all(task, seed, runs, jobs, kinds):
    """All data sets: a row per module, and counts of features by confidence."""
    if task == "noise":
        calls = [
            delayed(noise_run)(kind, n, setting, seed, run)
            for kind, (_, sizes) in NOISE.items() if not kinds or kind in kinds
            for n in sizes for setting in (*SETTINGS, *(FURTHER if kind in WITH_FURTHER else ()))
            for run in range(-(-runs // len(sizes)))
        ]  # fmt: skip
    else:
        made_of = {"planted": PLANTED, "broad": BROAD, "technical": TECHNICAL}[task]
        settings = SETTINGS if task != "planted" else {name: SETTINGS[name] for name in ("chosen", "five")}
        calls = [
            delayed(planted_run)(made_of, kind, setting, seed, run)
            for kind in made_of if not kinds or kind in kinds
            for setting in settings for run in range(runs)
        ]  # fmt: skip
    found = Parallel(jobs)(calls)
    tables = pd.concat([table for table, _ in found], ignore_index=True)
    tables["word"] = tables["verdict"].map(kind_of_verdict)
    return tables, sum(counts for _, counts in found if counts is not None)


def show(table):
    print(table.to_string(float_format=lambda value: f"{value:.3f}"), flush=True)


def show_noise(modules, runs):
    flags = modules.assign(
        strong=modules["word"] == "strong", passed=modules["word"].isin(["strong", "moderate"]),
        broad=modules["word"] == "broad axis",
    )  # fmt: skip
    keys = ["kind", "n", "setting"]
    sets = flags.groupby([*keys, "run"])[["strong", "passed", "broad"]].any()
    table = sets.groupby(keys).sum()
    # Data sets without any module count as well.
    table = table.div([-(-runs // len(NOISE[kind][1])) for kind, _, _ in table.index], axis=0)
    show(table.reset_index().pivot_table(["strong", "passed"], ["kind", "n"], "setting", fill_value=0))
    show(table.groupby("kind").mean())
    print("all:", len(sets), "searches that found modules; mean", table.mean().to_dict())


def show_planted(modules, counts):
    real = modules[modules["f1"] >= 0.8]
    good = real["word"].isin(["strong", "moderate"]) | (real["word"] == "repeats")
    by = pd.DataFrame({
        "recovered": real.groupby(["kind", "setting"]).size(),
        "believed": good.groupby([real["kind"], real["setting"]]).mean(),
        "strong": (real["word"] == "strong").groupby([real["kind"], real["setting"]]).mean(),
    })  # fmt: skip
    show(by)
    few = real["true_size"] <= 25
    print("recovered, at most 25 features:", few.sum(), "believed", good[few].mean(), "more:", good[~few].mean())
    same = modules["verdict"] == modules["other_seed"]
    show(
        pd.DataFrame(
            {
                "modules": modules.groupby("word").size(),
                "precision": modules.groupby("word")["precision"].mean(),
                "f1": modules.groupby("word")["f1"].mean(),
                "same by two seeds": same.groupby(modules["word"]).mean(),
            }
        )
    )
    print(
        "same verdict by two seeds:",
        same.mean(),
        "kind:",
        (modules["word"] == modules["other_seed"].map(kind_of_verdict)).mean(),
    )
    show(pd.DataFrame({"from": BINS[:-1], "features": counts[0], "right": counts[1] / np.maximum(counts[0], 1)}))
    above = BINS[:-1] >= 0.8
    print("right of those with a confidence of at least .8:", counts[1][above].sum() / counts[0][above].sum())


def show_factors(modules):
    own = modules[modules["follows"] >= 0.8]

    def share(column):
        return column.groupby([own["kind"], own["setting"]]).mean()

    show(pd.DataFrame({
        "modules": own.groupby(["kind", "setting"]).size(),
        "flagged": share(own["technical"] != ""), "strong": share(own["word"] == "strong"),
        "moderate": share(own["word"] == "moderate"), "broad": share(own["word"] == "broad axis"),
    }))  # fmt: skip
    clean = modules[modules["follows"] < 0.5]
    print("other modules flagged:", (clean["technical"] != "").mean(), "of", len(clean))
    show(clean.groupby("kind")["technical"].agg(lambda column: (column != "").mean()))


def series_run(correlation, seed, run):
    """Numbers of modules that are strong or moderate, without groups and with blocks of time points as groups."""
    rng = np.random.default_rng([seed, run, round(10 * correlation)])
    X = rng.standard_normal((500, 118))
    for time in range(1, 500):
        X[time] = correlation * X[time - 1] + np.sqrt(1 - correlation**2) * X[time]
    X = X[100:]
    model = SparseGraphSVD(5, random_state=0).fit(X)
    row = {"correlation": correlation}
    for block in (0, 10, 20, 50):
        blocks = np.arange(400) // block if block else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = verdicts(model, X, groups=blocks, random_state=0, n_jobs=1).table
        row[f"blocks of {block}" if block else "no groups"] = table["verdict"].isin(["strong", "moderate"]).sum()
    return row


def show_series(runs, seed, jobs):
    every = [delayed(series_run)(correlation, seed, run) for correlation in (0.5, 0.7, 0.9) for run in range(runs)]
    table = pd.DataFrame(Parallel(jobs)(every)).set_index("correlation")
    print((table > 0).groupby(level=0).sum().to_string(), f"\ndata sets, of {runs}, with a strong or moderate module")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["noise", "planted", "broad", "technical", "series"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="names of data, separated by semicolons")
    parser.add_argument("--modules", type=Path, help="a tab-separated file with a row per module")
    options = parser.parse_args()
    if options.task == "series":
        return show_series(options.runs, options.seed, options.jobs)
    kinds = [kind for kind in options.kinds.split(";") if kind]
    modules, counts = run_all(options.task, options.seed, options.runs, options.jobs, kinds)
    if options.modules:
        modules.to_csv(options.modules, sep="\t", index=False)
    if options.task == "noise":
        show_noise(modules, options.runs)
    elif options.task == "planted":
        show_planted(modules, counts)
    else:
        show_factors(modules)
    return None


if __name__ == "__main__":
    main()
