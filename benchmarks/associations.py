"""Associations: p-values of permuted scores, and coverage of the 95 % confidence intervals.

python benchmarks/associations.py [--runs 2000] [--seed 1]       p-values of scores that are permuted
python benchmarks/associations.py --coverage [--runs 2000]       intervals, scores that are given
python benchmarks/associations.py --fits [--runs 200] [--folds]  intervals, scores of modules that were fitted
"""

import argparse
import warnings
from itertools import product

import numpy as np
from scipy import stats

import netbic
from netbic.association.tests import (
    Result,
    chi_squared,
    cox,
    fisher,
    kaplan_meier,
    kruskal_wallis,
    linear_model,
    log_rank,
    mann_whitney,
    pearson,
    spearman,
    standardised_difference,
)

N = 120
SIZES, EFFECTS = (24, 80, 300), ("no", "medium", "large")
NEW = 4000  # further samples, for the effects in the population


def tests(seed):
    """Tests of scores with one fixed set of labels, numbers and times."""
    generator = np.random.default_rng(seed)
    levels, number, design = generator.integers(3, size=N), generator.standard_normal(N), generator.normal(size=(N, 2))
    times, events = generator.exponential(size=N), generator.uniform(size=N) < 0.6
    tied = np.ceil(4 * times)
    few = np.repeat([0, 1, 2], [16, 5, 3])

    def cox_score(scores, *more):
        model = cox(times, events, scores, *more)
        return Result(model.score, model.p(model.score), model.hazard_ratio()[0])

    def simulated(scores):
        groups = np.digitize(scores[:24], [-0.8, 0.8])
        return chi_squared(np.array([np.bincount(few[groups == group], minlength=3) for group in range(3)]))[0]

    continuous = {
        "Kruskal-Wallis": lambda scores: kruskal_wallis(scores, levels),
        "Mann-Whitney": lambda scores: mann_whitney(scores, levels == 0),
        "Spearman": lambda scores: spearman(scores, number),
        "Pearson": lambda scores: pearson(scores, number),
        "partial Spearman": lambda scores: spearman(scores, number, design),
        "partial Pearson": lambda scores: pearson(scores, number, design),
        "linear model": lambda scores: linear_model(scores, levels, design),
        "linear model, level": lambda scores: standardised_difference(scores, levels == 0, design),
        "Cox score": cox_score,
        "Cox score, adjusted": lambda scores: cox_score(scores, design),
    }
    discrete = {
        "Mann-Whitney, exact": lambda scores: mann_whitney(scores[:12], np.arange(12) < 4),
        "Mann-Whitney, ties": lambda scores: mann_whitney(np.round(scores), levels == 0),
        "Spearman, exact": lambda scores: spearman(scores[:7], np.arange(7.0)),
        "Fisher": lambda scores: fisher(scores > 0.8, levels == 0),
        "chi-squared": lambda scores: chi_squared(
            np.array([np.bincount(levels[side], minlength=3) for side in (scores > 0.8, scores <= 0.8)])
        )[0],
        "chi-squared, Monte Carlo": simulated,
        "log-rank": lambda scores: log_rank(times, events, scores > 0),
        "log-rank, ties": lambda scores: log_rank(tied, events, scores > 0),
    }
    return continuous, discrete


def print_p_values(runs, seed):
    generator = np.random.default_rng(seed + 1000)
    scores = generator.standard_normal(N)
    for kind, members in zip(("continuous", "discrete"), tests(seed), strict=True):
        for name, test in members.items():
            p = np.array([test(generator.permutation(scores)).p for _ in range(runs)])
            p = p[~np.isnan(p)]
            shares = "  ".join(f"P(p <= {level}) = {np.mean(p <= level):.4f}" for level in (0.01, 0.05, 0.1))
            allowed = all(np.mean(p <= a) <= a + 2 * np.sqrt(a * (1 - a) / p.size) for a in (0.01, 0.05, 0.1))
            ks = f"KS p = {stats.kstest(p, 'uniform').pvalue:.3f}"
            print(f"{kind:11} {name:25} {shares}  {ks if kind == 'continuous' else f'within 2 se: {allowed}'}")


# Coverage: each function draws data and returns the result and the true effect


def auc(generator, n, effect, share=1 / 3):
    inside, shift = np.arange(n) < round(share * n), (0, 1, 3)[effect]
    return mann_whitney(generator.standard_normal(n) + shift * inside, inside), stats.norm.cdf(shift / np.sqrt(2))


def auc_mixture(generator, n, effect):
    """A tenth inside, some like the others and the rest above all others: the hardest case."""
    inside, true = np.arange(n) < max(n // 10, 3), (0.5, 0.75, 0.95)[effect]
    above = inside & (generator.uniform(size=n) < 2 * true - 1)
    return mann_whitney(generator.standard_normal(n) + 10 * above, inside), true


def odds_ratio(generator, n, effect):
    up, ratio = np.arange(n) < 0.3 * n, (1.0, 4.0, 20.0)[effect]
    odds = np.where(up, ratio, 1.0) * 3 / 7
    return fisher(up, generator.uniform(size=n) < odds / (1 + odds)), ratio


def normal_pair(generator, n, effect):
    x, rho = generator.standard_normal(n), (0.0, 0.5, 0.95)[effect]
    return x, rho * x + np.sqrt(1 - rho**2) * generator.standard_normal(n), rho


def pearson_r(generator, n, effect):
    x, y, rho = normal_pair(generator, n, effect)
    return pearson(x, y), rho


def spearman_rho(generator, n, effect):
    x, y, rho = normal_pair(generator, n, effect)
    return spearman(x, y), 6 / np.pi * np.arcsin(rho / 2)


def partial_pearson(generator, n, effect):
    x, y, rho = normal_pair(generator, n, effect)
    design = generator.standard_normal((n, 2))
    return pearson(x + design.sum(axis=1), y - design[:, 0], design), rho


def partial_spearman(generator, n, effect):
    x, y, rho = normal_pair(generator, n, effect)
    return spearman(x, y, generator.standard_normal((n, 2))), 6 / np.pi * np.arcsin(rho / 2)


def difference(generator, n, effect):
    inside, design, shift = np.arange(n) < n // 3, generator.standard_normal((n, 2)), (0, 2, 6)[effect]
    scores = generator.standard_normal(n) + shift * inside + design.sum(axis=1)
    return standardised_difference(scores, inside, design), shift


def hazard(generator, n, effect, *, grouped=False, adjusted=False):
    """Censored at random, 60 % events; the true ratio is per standard deviation of these samples."""
    x = (np.arange(n) < n // 2) * 1.0 if grouped else generator.standard_normal(n)
    design = generator.standard_normal((n, 2)) if adjusted else None
    beta, sd = np.log((1, 2, 5)[effect]), 1.0 if grouped else x.std(ddof=1)
    risk = beta * x + (0 if design is None else design[:, 0])
    times, ends = generator.exponential(size=n) * np.exp(-risk), generator.exponential(size=n) * 1.5
    model = cox(np.minimum(times, ends), times <= ends, x / sd, design)
    return Result(np.nan, np.nan, *model.hazard_ratio()), np.exp(beta * sd)


def survival(generator, n, effect):
    """The curve where the true value is 0.95, 0.7 or 0.3; no interval after the last sample."""
    true = (0.95, 0.7, 0.3)[effect]
    times, ends = generator.exponential(size=n), generator.uniform(0, 4, size=n)
    curve = kaplan_meier(np.minimum(times, ends), times <= ends)
    before = curve[curve["time"] <= -np.log(true)]
    row = before.iloc[-1] if 0 < len(before) < len(curve) else None
    return Result(np.nan, np.nan, np.nan, *(() if row is None else (row["ci_low"], row["ci_high"]))), true


GIVEN = {
    "AUC, a third inside": auc,
    "AUC, a tenth inside (at least 3)": lambda generator, n, effect: auc(generator, n, effect, max(0.1, 3 / n)),
    "AUC, a tenth inside, a mixture": auc_mixture,
    "odds ratio": odds_ratio,
    "Pearson r": pearson_r,
    "partial Pearson r": partial_pearson,
    "Spearman rho": spearman_rho,
    "partial Spearman rho": partial_spearman,
    "standardised difference": difference,
    "hazard ratio per sd": hazard,
    "hazard ratio per sd, adjusted": lambda generator, n, effect: hazard(generator, n, effect, adjusted=True),
    "hazard ratio of two groups": lambda generator, n, effect: hazard(generator, n, effect, grouped=True),
    "survival curve": survival,
}


def covered(drawn):
    """The share of intervals that contain the truth, and how many there are."""
    inside = [result.low <= true <= result.high for result, true in drawn if not np.isnan(result.low)]
    return np.mean(inside), len(inside)


def print_coverage(runs, seed):
    print("| |", " | ".join(f"{effect}, n = {n}" for n, effect in product(SIZES, EFFECTS)), "|")
    for name, draw in GIVEN.items():
        generator, cells = np.random.default_rng(seed), []
        for n, effect in product(SIZES, range(3)):
            share, number = covered([draw(generator, n, effect) for _ in range(runs)])
            cells.append(f"{share:.3f}{f' of {number}' if number < 0.9 * runs else ''}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


# Coverage of the intervals of fitted modules


def fitted_scores(X, activity, weights, generator, folds):
    """Scores of the module that follows the first activity: in the fit, cross-fitted, and in further samples."""
    model = netbic.SparseGraphSVD(2).fit(X)
    own, V = np.asarray(model.transform(X)), np.asarray(model.components_)
    root = np.linalg.cholesky(V @ V.T + 1e-12 * np.eye(len(V)))  # noise of the scores of further samples
    new = activity @ (weights @ V.T) + generator.standard_normal((NEW, len(V))) @ root.T
    known = np.corrcoef(new.T, activity[:, 0])[-1, :-1]
    best = int(np.argmax(np.abs(known)))
    own, new = np.sign(known[best]) * own[:, best], np.sign(known[best]) * new[:, best]
    if not folds:
        return {"": own}, new
    crossed, fold = np.zeros(len(own)), generator.permutation(len(own)) % 10
    for number in range(10):
        out = fold == number
        others = np.asarray(netbic.SparseGraphSVD(2).fit(X[~out]).transform(X))
        alike = np.corrcoef(others.T, own)[-1, :-1]
        match = int(np.argmax(np.abs(alike)))
        crossed[out] = np.sign(alike[match]) * (others[out, match] - others[~out, match].mean())
    return {"": own, ", cross-fitted": crossed}, new


def outcomes(generator, activity, effect):
    """A number, a group and survival times that depend on an activity."""
    n, rho = len(activity), (0, 0.5, 0.9)[effect]
    number = rho * activity + np.sqrt(1 - rho**2) * generator.standard_normal(n)
    group = (0, 1, 3)[effect] * activity + generator.logistic(size=n) > 0
    times = generator.exponential(size=n) * np.exp(-np.log((1, 2, 5)[effect]) * activity)
    ends = generator.exponential(size=n) * 1.5
    return number, group, np.minimum(times, ends), times <= ends


def all_results(scores, number, group, times, events):
    model = cox(times, events, scores / np.std(scores, ddof=1))
    return {
        "AUC": mann_whitney(scores, group),
        "Pearson r": pearson(scores, number),
        "Spearman rho": spearman(scores, number),
        "standardised difference": standardised_difference(scores, group),
        "hazard ratio per sd": Result(np.nan, np.nan, *model.hazard_ratio()),
    }


def print_fits(runs, seed, folds):
    """Intervals of fitted scores: of the effect of scores with these weights, and of the effect of the activity."""
    for n, p, strength in ((24, 600, 0.6), (24, 2000, 1.0), (80, 600, 0.35), (300, 600, 0.25)):
        drawn, alike = {}, []
        for run in range(runs):
            generator = np.random.default_rng([seed, n, p, run])
            weights = np.zeros((2, p))
            for module in range(2):
                signs = strength * generator.choice([-1, 1], 60)
                weights[module, 60 * module : 60 * module + 60] = signs * generator.uniform(0.6, 1.4, 60)
            activity, further = generator.standard_normal((n, 2)), generator.standard_normal((NEW, 2))
            X = activity @ weights + generator.standard_normal((n, p))
            scores, new = fitted_scores(X, further, weights, generator, folds)
            alike.append(np.corrcoef(new, further[:, 0])[0, 1])
            for effect in range(3):
                own, others = (outcomes(generator, each[:, 0], effect) for each in (activity, further))
                truths = {"given weights": all_results(new, *others), "activity": all_results(further[:, 0], *others)}
                for which, each in scores.items():
                    for name, result in all_results(each, *own).items():
                        for truth, of in truths.items():
                            cell = drawn.setdefault((name + which, truth), [[], [], []])
                            cell[effect].append((result, of[name].effect))
        print(f"n = {n}, {p} genes, correlation of score and activity in further samples {np.mean(alike):.2f}:")
        for (name, truth), cells in sorted(drawn.items()):
            print(f"  {name}, {truth}: {', '.join(f'{covered(each)[0]:.3f}' for each in cells)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--fits", action="store_true")
    parser.add_argument("--folds", action="store_true", help="with --fits: also scores from ten-fold cross-fitting")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.coverage:
        print_coverage(given.runs, given.seed)
    elif given.fits:
        print_fits(given.runs, given.seed, given.folds)
    else:
        print_p_values(given.runs, given.seed)


if __name__ == "__main__":
    main()
