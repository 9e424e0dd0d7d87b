"""Associations: p-values of permuted scores, and coverage of the confidence intervals of AUCs.

python benchmarks/associations.py [--runs 2000] [--seed 1]
"""

import argparse

import numpy as np
from scipy import stats

from netbic.association import (
    chi_squared,
    fisher,
    kruskal_wallis,
    linear_model,
    log_rank,
    mann_whitney,
    pearson,
    spearman,
    standardised_difference,
)
from netbic.association.tests import Result, cox

N = 120


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
        "log-rank": lambda scores: log_rank(times, events, (scores > 0).astype(int)),
        "log-rank, ties": lambda scores: log_rank(tied, events, (scores > 0).astype(int)),
    }
    return continuous, discrete


def p_values(test, runs, seed):
    generator = np.random.default_rng(seed + 1000)
    scores = generator.standard_normal(N)
    found = np.array([test(generator.permutation(scores)).p for _ in range(runs)])
    return found[~np.isnan(found)]


def coverage(sizes, shift, runs, seed):
    generator, inside = np.random.default_rng(seed), np.repeat([True, False], sizes)
    true = stats.norm.cdf(shift / np.sqrt(2))
    found = [mann_whitney(generator.standard_normal(sum(sizes)) + shift * inside, inside) for _ in range(runs)]
    return true, np.mean([each.low <= true <= each.high for each in found])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.runs} permutations, seed {given.seed}")
    for kind, members in zip(("continuous", "discrete"), tests(given.seed), strict=True):
        for name, test in members.items():
            p = p_values(test, given.runs, given.seed)
            shares = "  ".join(f"P(p <= {level}) = {np.mean(p <= level):.4f}" for level in (0.01, 0.05, 0.1))
            allowed = all(np.mean(p <= a) <= a + 2 * np.sqrt(a * (1 - a) / p.size) for a in (0.01, 0.05, 0.1))
            ks = (
                f"KS p = {stats.kstest(p, 'uniform').pvalue:.3f}" if kind == "continuous" else f"within 2 se: {allowed}"
            )
            print(f"{kind:11} {name:25} {shares}  {ks}")
    for sizes, shift in (((30, 60), 0), ((30, 60), 1), ((20, 200), 2), ((8, 12), 0.5), ((50, 450), 3), ((10, 40), 2)):
        true, covered = coverage(sizes, shift, given.runs, given.seed)
        print(f"AUC {true:.3f}, {sizes[0]} against {sizes[1]}: the interval covers it in {covered:.1%}")


if __name__ == "__main__":
    main()
