"""How often `selection.n_modules` finds modules in data without any, and how often it finds planted ones.

python benchmarks/n_modules.py [--runs 40] [--seed 10000]

Level: share of data sets without modules in which at least one is reported (0.05 is meant). Power: share of data sets
with one weak module, added to the same noise with independent normal entries, in which it is reported.
"""

import argparse

import numpy as np
from joblib import Parallel, delayed

from netbic import SparseGraphSVD
from netbic.selection import n_modules
from problems import simulations

SETTINGS = {
    "100 x 100, 20 x 20 kept": ((100, 100), {"n_rows": 20, "n_columns": 20}),
    "100 x 100, all samples x 20 kept": ((100, 100), {"n_columns": 20}),
    "100 x 1000, 20 x 100 kept": ((100, 1000), {"n_rows": 20, "n_columns": 100}),
    "100 x 1000, all samples x 100 kept": ((100, 1000), {"n_columns": 100}),
}
STRENGTHS = dict(zip(SETTINGS, (0.7, 0.3, 0.55, 0.25), strict=True))  # for a power between 0.8 and 1


def weak_module(setting, generator):
    """Normal noise and one module of the sizes that are kept, with random members and signs."""
    shape, kept = SETTINGS[setting]
    vectors = [np.zeros(size) for size in shape]
    for vector, name in zip(vectors, ("n_rows", "n_columns"), strict=True):
        size = kept.get(name, vector.size)
        members = generator.choice(vector.size, size, replace=False)
        vector[members] = generator.choice([-1.0, 1.0], size) if name in kept else generator.standard_normal(size)
    return simulations.normal(generator, *shape) + STRENGTHS[setting] * np.outer(*vectors)


def counted(X, seed, most=6, **kept):
    model = SparseGraphSVD(**(kept or {"n_rows": 20, "n_columns": 20}), center="columns" if kept else None)
    return n_modules(model, X, most=most, random_state=seed).n


def found(setting, kind, seed):
    """Whether a module is reported: in noise, or with a weak module ("power")."""
    generator = np.random.default_rng(seed)
    shape, kept = SETTINGS[setting]
    X = weak_module(setting, generator) if kind == "power" else simulations.NOISE[kind](generator, *shape)
    return counted(X, seed, most=1, **kept) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=10_000)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.runs)
    run = Parallel(n_jobs=-1)
    columns = [*simulations.NOISE, "power"]
    print("| | " + " | ".join(columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    for setting in SETTINGS:
        shares = [np.mean(run(delayed(found)(setting, kind, seed) for seed in seeds)) for kind in columns]
        print(f"| {setting} | " + " | ".join(f"{share:.2f}" for share in shares) + " |", flush=True)
    for gamma in (0.03, 0.04):
        matrices = (simulations.three_modules_in_noise(gamma, seed) for seed in seeds)
        numbers = np.array(run(delayed(counted)(X, seed) for X, seed in zip(matrices, seeds, strict=True)))
        exact, near = np.mean(numbers == 3), np.mean(abs(numbers - 3) < 2)
        print(f"three planted, noise {gamma:g}: exact {exact:.2f}, within one {near:.2f}")


if __name__ == "__main__":
    main()
