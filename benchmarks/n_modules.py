"""How often `selection.n_modules` finds the right number, with three planted modules and with none.

python benchmarks/n_modules.py [runs]      (default 50 with modules, four times as many without)
"""

import sys

import numpy as np
from joblib import Parallel, delayed

from netbic import SparseGraphSVD
from netbic.selection import n_modules


def noise(kind, generator):
    return generator.standard_normal((100, 100)) if kind == "normal" else generator.standard_t(4, (100, 100))


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


def counted(X, seed):
    model = SparseGraphSVD(n_rows=20, n_columns=20, center=None)
    return n_modules(model, X, most=6, random_state=seed).n


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for gamma in (0.03, 0.04):
        jobs = (delayed(counted)(planted(gamma, seed), seed) for seed in range(runs))
        found = np.array(Parallel(n_jobs=-1)(jobs))
        exact, near = np.mean(found == 3), np.mean(abs(found - 3) < 2)
        print(f"three planted, noise {gamma:g}: exact {exact:.2f}, within one {near:.2f}")
    for kind in ("normal", "t4"):
        matrices = (noise(kind, np.random.default_rng(10_000 + seed)) for seed in range(4 * runs))
        found = np.array(Parallel(n_jobs=-1)(delayed(counted)(X, seed) for seed, X in enumerate(matrices)))
        print(f"none planted, {kind} noise: at least one module in {np.mean(found > 0):.3f} of {4 * runs}")


if __name__ == "__main__":
    main()
