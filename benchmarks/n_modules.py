"""How often `selection.n_modules` finds modules in data without any, and how often it finds planted ones.

python benchmarks/n_modules.py [--runs 40] [--seed 10000]

Level: share of data sets without modules in which at least one is reported (0.05 is meant). Power: share of data sets
with one weak module, added to the same noise with independent normal entries, in which it is reported.
"""

import argparse

import numpy as np
from joblib import Parallel, delayed
from scipy.signal import lfilter

from netbic import SparseGraphSVD
from netbic.selection import n_modules

SETTINGS = {
    "100 x 100, 20 x 20 kept": ((100, 100), {"n_rows": 20, "n_columns": 20}),
    "100 x 100, all samples x 20 kept": ((100, 100), {"n_columns": 20}),
    "100 x 1000, 20 x 100 kept": ((100, 1000), {"n_rows": 20, "n_columns": 100}),
    "100 x 1000, all samples x 100 kept": ((100, 1000), {"n_columns": 100}),
}
STRENGTHS = dict(zip(SETTINGS, (0.7, 0.3, 0.55, 0.25), strict=True))  # for a power between 0.8 and 1


def autocorrelated(generator, n, p, correlation=0.5):
    """AR(1) along the rows (samples)."""
    return lfilter([1.0], [1.0, -correlation], generator.standard_normal((n + 50, p)), axis=0)[50:]


def counts(generator, n, p):
    """Logarithms of overdispersed counts, normalised to the same library size; depths vary by a factor of e^0.3."""
    expected = np.outer(np.exp(generator.normal(0, 0.3, n)), np.exp(generator.normal(2, 1.2, p)))
    found = generator.poisson(expected * generator.gamma(5, 0.2, (n, p)))
    library = found.sum(axis=1, keepdims=True)
    return np.log1p(found * np.median(library) / library)


NOISE = {
    "normal": lambda generator, n, p: generator.standard_normal((n, p)),
    "t4": lambda generator, n, p: generator.standard_t(4, (n, p)),
    "lognormal": lambda generator, n, p: np.exp(generator.standard_normal((n, p))),
    "uneven genes": lambda generator, n, p: generator.standard_normal((n, p)) * np.exp(generator.normal(0, 0.5, p)),
    "uneven samples": lambda generator, n, p: (
        generator.standard_normal((n, p)) * np.exp(generator.normal(0, 0.3, (n, 1)))
    ),
    "counts": counts,
    "AR(1) samples": autocorrelated,
    "AR(1) genes": lambda generator, n, p: autocorrelated(generator, p, n).T,
}


def noise(kind, generator, shape=(100, 100)):
    return NOISE[kind](generator, *shape)


def planted(gamma, seed):
    """Three modules of 20 x 20 with random members and signs, d = 1, 0.8 and 0.6, in Gaussian noise."""
    generator = np.random.default_rng(seed)
    X = gamma * noise("normal", generator)
    for d in (1.0, 0.8, 0.6):
        vectors = np.zeros((2, 100))
        for vector in vectors:
            vector[generator.choice(100, 20, replace=False)] = generator.choice([-1.0, 1.0], 20) / np.sqrt(20)
        X += d * np.outer(*vectors)
    return X


def weak_module(setting, generator):
    """Normal noise and one module of the sizes that are kept, with random members and signs."""
    shape, kept = SETTINGS[setting]
    vectors = [np.zeros(size) for size in shape]
    for vector, name in zip(vectors, ("n_rows", "n_columns"), strict=True):
        size = kept.get(name, vector.size)
        members = generator.choice(vector.size, size, replace=False)
        vector[members] = generator.choice([-1.0, 1.0], size) if name in kept else generator.standard_normal(size)
    return noise("normal", generator, shape) + STRENGTHS[setting] * np.outer(*vectors)


def counted(X, seed, most=6, **kept):
    model = SparseGraphSVD(**(kept or {"n_rows": 20, "n_columns": 20}), center="columns" if kept else None)
    return n_modules(model, X, most=most, random_state=seed).n


def found(setting, kind, seed):
    """Whether a module is reported: in noise, or with a weak module ("power")."""
    generator = np.random.default_rng(seed)
    shape, kept = SETTINGS[setting]
    X = weak_module(setting, generator) if kind == "power" else noise(kind, generator, shape)
    return counted(X, seed, most=1, **kept) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=10_000)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.runs)
    run = Parallel(n_jobs=-1)
    columns = [*NOISE, "power"]
    print("| | " + " | ".join(columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    for setting in SETTINGS:
        shares = [np.mean(run(delayed(found)(setting, kind, seed) for seed in seeds)) for kind in columns]
        print(f"| {setting} | " + " | ".join(f"{share:.2f}" for share in shares) + " |", flush=True)
    for gamma in (0.03, 0.04):
        numbers = np.array(run(delayed(counted)(planted(gamma, seed), seed) for seed in seeds))
        exact, near = np.mean(numbers == 3), np.mean(abs(numbers - 3) < 2)
        print(f"three planted, noise {gamma:g}: exact {exact:.2f}, within one {near:.2f}")


if __name__ == "__main__":
    main()
