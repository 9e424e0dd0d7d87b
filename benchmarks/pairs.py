"""Two tables: are p-values of pairs calibrated, are supports recovered, and what do the pairs of nutrimouse show?

python benchmarks/pairs.py PART [--runs 200] [--jobs 2]

calibration: share of data sets in which a pair without signal has p <= 0.05 (`selection.pair_tests`, 19 permutations):
    the first pair of independent tables, and the second pair after a real first one, with the power of the first.
residuals: the level of the second pair after a strong first one, if residuals are mapped to the dimensions that are
    left, and if they are permuted themselves (as with a single stratum).
statistics: level and power if the strength d, or the held-out correlation, is compared with permuted tables.
recovery: F1 of the features of planted pairs, with a graph, by the rule of PMA, and with a permuted graph whose
    smoothness is tuned. Differences are paired over data sets.
missing: level, and power, with 30 % missing values: at random, low values in uneven samples, or by feature.
verdicts: share of data sets in which a pair is called strong, moderate or doubtful: tables without a relation
    (simulated, and nutrimouse with permuted samples), and planted pairs; coverage of the held-out correlation.
nutrimouse: p-values, and associations of scores with genotype and diet (NETBIC_DATA names the folder of the data).
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy import stats
from sklearn.model_selection import KFold

from netbic import Graph, KeepSoft, SparseGraphCCA, SparseGraphPLS
from netbic.selection import pair_tests, tune
from netbic.selection.fits import quiet

NOISE = {
    "normal": lambda generator, *shape: generator.standard_normal(shape),
    "t, 3 degrees of freedom": lambda generator, *shape: generator.standard_t(3, shape),
    "correlated features": lambda generator, *shape: correlated(generator.standard_normal(shape)),
}
N_X, N_Y = 8, 5


def correlated(noise, correlation=0.8):
    """Neighbouring features have this correlation."""
    for j in range(1, noise.shape[1]):
        noise[:, j] = correlation * noise[:, j - 1] + np.sqrt(1 - correlation**2) * noise[:, j]
    return noise


def tables(generator, noise, n, p, strength):
    """Two tables of p features; a common variable changes the first N_X and N_Y of them."""
    X, Y = NOISE[noise](generator, n, p), NOISE[noise](generator, n, p)
    common = strength * generator.standard_normal((n, 1))
    X[:, :N_X] += common
    Y[:, :N_Y] += common
    return X, Y


def tested(model, noise, n, p, strength, seed, **options):
    """P-values of all pairs."""
    X, Y = tables(np.random.default_rng(seed), noise, n, p, strength)
    with quiet():
        found = pair_tests(model, X, Y, n_permutations=19, n_folds=2, random_state=seed, n_jobs=1, **options)
    return found.table["p_value"].to_numpy()


def rate(p_values):
    share = float(np.mean(np.asarray(p_values) <= 0.05))
    return f"{share:.3f} +- {np.sqrt(share * (1 - share) / len(p_values)):.3f}"


def calibration(run, runs):
    for p in (50, 200):
        for noise in NOISE:
            for n in (30, 100):
                sizes = {"n_x": N_X, "n_y": N_Y}
                first = run(tested, SparseGraphCCA(1, **sizes), noise, n, p, 0.0, runs=runs)
                print(f"{noise}, n = {n}, {p} + {p} features: level of the first pair {rate(first)}", flush=True)
                for model in (SparseGraphCCA(2, **sizes), SparseGraphPLS(2, **sizes)) if p == 50 else ():
                    one, two = np.transpose(run(tested, model, noise, n, p, 1.5, runs=runs))
                    kind = type(model).__name__
                    print(f"  {kind}: power of a first pair {rate(one)}, level of the second {rate(two)}", flush=True)


def both_ways(n, seed):
    """P-values of the second pair, with mapped and with plain residuals."""
    model = SparseGraphCCA(2, n_x=N_X, n_y=N_Y)
    return [tested(model, "normal", n, 50, 4.0, seed, strata=strata)[1] for strata in (None, np.zeros(n))]


def residuals(run, runs):
    for n in (30, 100):
        mapped, plain = np.transpose(run(both_ways, n, runs=runs))
        print(f"n = {n}: level of the second pair {rate(mapped)}, of plain permutations {rate(plain)}", flush=True)


def held_out(model, X, Y, seed):
    """Mean correlation of the first pair in five folds."""
    found = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        found.append(model.fit(X[train], Y[train]).transform(X[test], Y[test]))
    return float(np.mean([np.corrcoef(x[:, 0], y[:, 0])[0, 1] for x, y in found]))


STATISTICS = {
    "d": lambda model, X, Y, seed: model.fit(X, Y).singular_values_[0],
    "correlation in the fit": lambda model, X, Y, seed: model.fit(X, Y).correlations_[0],
    "held-out correlation": held_out,
}


def compared(name, noise, n, p, strength, seed):
    """The p-value of the first pair by some statistic, with 19 permutations at most."""
    generator = np.random.default_rng(seed)
    X, Y = tables(generator, noise, n, p, strength)
    statistic, model = STATISTICS[name], SparseGraphCCA(1, n_x=N_X, n_y=N_Y)
    with quiet():
        observed, reached = statistic(model, X, Y, seed), 0
        for _ in range(19):
            reached += statistic(model, X, Y[generator.permutation(n)], seed) >= observed
            if reached:  # p > 0.05 is certain
                break
    return 1.0 if reached else 0.05


def statistics(run, runs):
    for noise in NOISE:
        for strength in (0.0, 0.6):
            found = {name: rate(run(compared, name, noise, 40, 50, strength, runs=runs)) for name in STATISTICS}
            print(f"{noise}, n = 40, strength {strength}:", found, flush=True)


def block_graph(generator, size, block, within=0.3, across=0.01):
    """A graph of blocks of nodes, with edges within (and fewer across) blocks."""
    same = np.arange(size)[:, None] // block == np.arange(size)[None] // block
    drawn = np.triu(generator.random((size, size)) < np.where(same, within, across), 1)
    return Graph(sp.csr_array((drawn | drawn.T).astype(float)))


def permuted(graph, generator):
    order = generator.permutation(graph.weights.shape[0])
    return Graph(sp.csr_array(graph.weights)[order][:, order])


def f1(found, planted):
    return 2 * np.sum(found & planted) / (found.sum() + planted.sum())


def recovered(n, strength, seed):
    """F1 on both sides for every method."""
    generator = np.random.default_rng(seed)
    (p, a), (q, b) = (200, 20), (150, 15)
    x_graph, y_graph = block_graph(generator, p, a), block_graph(generator, q, b)
    X, Y = generator.standard_normal((n, p)), generator.standard_normal((n, q))
    common = strength * generator.standard_normal((n, 1))
    planted = np.arange(p) < a, np.arange(q) < b
    X[:, :a] += common * generator.uniform(0.5, 1.5, a) * generator.choice([-1, 1], a)
    Y[:, :b] += common * generator.uniform(0.5, 1.5, b) * generator.choice([-1, 1], b)
    plain = {"n_x": a, "n_y": b}
    others = {"x_graph": permuted(x_graph, generator), "y_graph": permuted(y_graph, generator)}
    soft = {"x_penalty": KeepSoft(a, 0.5), "y_penalty": KeepSoft(b, 0.5)}
    grid = {f"{side}_smoothness": [0.0, 0.25, 0.5, 0.75] for side in "xy"}
    with quiet():
        models = {
            "PMA's rule": SparseGraphCCA(1, **soft, deflation="hotelling").fit(X, Y),
            "no graph": SparseGraphCCA(1, **plain).fit(X, Y),
            "graph": SparseGraphCCA(1, **plain, x_graph=x_graph, y_graph=y_graph).fit(X, Y),
            "permuted graph": SparseGraphCCA(1, **plain, **others).fit(X, Y),
        }
        for name, graphs in {"graph": {"x_graph": x_graph, "y_graph": y_graph}, "permuted graph": others}.items():
            model = SparseGraphCCA(1, **plain, **graphs)
            found = tune(model, X, grid, Y=Y, random_state=seed, n_jobs=1)
            models[f"{name}, tuned"] = found.best_estimator_
    return {
        name: (f1(model.x_support_[0], planted[0]), f1(model.y_support_[0], planted[1]))
        for name, model in models.items()
    }


def recovery(run, runs):
    for n, strength in ((50, 0.6), (100, 0.5)):
        found = run(recovered, n, strength, runs=runs)
        values = {name: np.array([each[name] for each in found]) for name in found[0]}
        print(f"n = {n}, strength {strength}, {runs} data sets: F1 of the features of X and of Y")
        for name, f in values.items():
            gain = f - values["PMA's rule"]
            errors = gain.std(axis=0, ddof=1) / np.sqrt(runs)
            shown = ", ".join(f"{m:+.3f} +- {e:.3f}" for m, e in zip(gain.mean(axis=0), errors, strict=True))
            print(f"  {name:22s} {f[:, 0].mean():.3f} {f[:, 1].mean():.3f}   minus PMA's rule: {shown}", flush=True)


def nutrimouse(run, runs):
    folder = Path(os.environ["NETBIC_DATA"])
    genes, lipids = (pd.read_parquet(folder / f"small_nutrimouse_{name}.parquet").T for name in ("genes", "lipids"))
    samples = pd.read_csv(folder / "small_nutrimouse_samples.tsv", sep="\t", index_col=0).loc[genes.index]
    models = {
        "CCA, ridge 0.5": SparseGraphCCA(3, n_x=20, n_y=5, covariance="ridge", ridge=0.5),
        "CCA, diagonal": SparseGraphCCA(3, n_x=20, n_y=5),
        "PLS": SparseGraphPLS(3, n_x=20, n_y=5),
    }
    for name, model in models.items():
        found = pair_tests(model, genes, lipids, random_state=0)
        table = found.table.round(4)
        for label in samples:
            for side in "xy":
                scores = getattr(found.reference, f"{side}_scores_")
                parts = [scores[samples[label] == level] for level in samples[label].unique()]
                table[f"{label} {side}"] = [f"{p:.1g}" for p in stats.kruskal(*parts).pvalue]
        print(name, table.to_string(index=False), found.verdict, sep="\n", flush=True)


def with_holes(kind, planted, seed, n=40, share=0.3):
    """Two tables with background factors and, if planted, a common variable; a share of the values is missing."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, 60)), rng.standard_normal((n, 40))
    for table in (X, Y):
        table += 0.7 * rng.standard_normal((n, 1)) * (rng.random((1, table.shape[1])) < 0.4)
    if planted:
        common = 2 * rng.standard_normal((n, 1))
        X[:, :N_X] += common
        Y[:, :N_Y] += common
    for table in (X, Y):
        if kind == "at random":
            table[rng.random(table.shape) < share] = np.nan
        if kind == "low values":
            seen = table + rng.standard_normal(table.shape) + np.maximum(rng.standard_normal((n, 1)), -1)
            table[seen < np.quantile(seen, share)] = np.nan
        if kind == "by feature":
            of_features = np.clip(rng.beta(1, 1 / share - 1, (1, table.shape[1])), 0, 0.85)
            table[rng.random(table.shape) < of_features] = np.nan
    return X, Y


def tested_with_holes(kind, planted, seed):
    model = SparseGraphCCA(1 + planted, n_x=N_X, n_y=N_Y, missing="ignore")
    with quiet():
        found = pair_tests(model, *with_holes(kind, planted, seed), n_permutations=19, n_folds=2, random_state=seed)
    return found.table["p_value"].to_numpy() <= 0.05


def missing(run, runs):
    rows = {}
    for kind in ("complete", "at random", "low values", "by feature"):
        none, both = (np.mean(run(tested_with_holes, kind, planted, runs=runs), axis=0) for planted in (False, True))
        rows[kind] = {"no pair": none[0], "planted": both[0], "second pair": both[1]}
    print(pd.DataFrame(rows).T.round(3).to_string())


def judged(noise, n, p, strength, share, seed):
    """The verdict on the first pair, and whether the interval has the correlation in new samples."""
    generator = np.random.default_rng(seed)
    X, Y, new_X, new_Y = (*tables(generator, noise, n, p, strength), *tables(generator, noise, 4000, p, strength))
    for table in (X, Y, new_X, new_Y):
        table[generator.random(table.shape) < share] = np.nan
    model = SparseGraphCCA(2, n_x=N_X, n_y=N_Y, missing="ignore")
    with quiet():
        found = pair_tests(model, X, Y, most=3, n_permutations=39, n_repeats=5, random_state=seed, n_jobs=1)
    x, y = found.reference.transform(new_X, new_Y)
    row = found.table.iloc[0]
    covered = row["held_out_low"] <= np.corrcoef(x[:, 0], y[:, 0])[0, 1] <= row["held_out_high"]
    return row["verdict"], covered, (found.table["verdict"] != "doubtful").any()


def judged_mice(seed):
    """The same for nutrimouse, with the samples of lipids in random order."""
    folder = Path(os.environ["NETBIC_DATA"])
    genes, lipids = (
        pd.read_parquet(folder / f"small_nutrimouse_{name}.parquet").to_numpy().T for name in ("genes", "lipids")
    )
    order, options = np.random.default_rng(seed).permutation(len(lipids)), {"n_permutations": 39, "n_repeats": 5}
    with quiet():
        model = SparseGraphCCA(3, n_x=24, n_y=4)
        found = pair_tests(model, genes, lipids[order], most=3, **options, random_state=seed, n_jobs=1)
    return found.table["verdict"][0], np.nan, (found.table["verdict"] != "doubtful").any()


def verdicts(run, runs):
    settings = [(40, 50, 0.0, 0.0), (40, 50, 0.0, 0.3), (60, 100, 1.5, 0.0), (60, 100, 1.5, 0.3)]
    for noise, *setting in [("nutrimouse",), *((noise, *setting) for noise in NOISE for setting in settings)]:
        found = run(judged, noise, *setting, runs=runs) if setting else run(judged_mice, runs=runs)
        kinds, covered, trusted = zip(*found, strict=True)
        shares = ", ".join(f"{kind} {kinds.count(kind) / runs:.3f}" for kind in ("strong", "moderate", "doubtful"))
        print(noise, "n = {}, {} features, strength {}, missing {}".format(*setting) if setting else "permuted")
        numbers = f"{np.mean(trusted):.3f}; in the interval {np.mean(covered):.3f}"
        print(f"  first pair {shares}; any pair not doubtful {numbers}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        each.__name__: each for each in (calibration, residuals, statistics, recovery, missing, verdicts, nutrimouse)
    }
    parser.add_argument("part", choices=parts)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()

    def run(function, *arguments, runs):
        return Parallel(chosen.jobs)(delayed(function)(*arguments, 10_000 + seed) for seed in range(runs))

    parts[chosen.part](run, chosen.runs)


if __name__ == "__main__":
    main()
