"""An experiment: sizes and smoothness chosen by a two-group mixture, half step by half step.

python benchmarks/adaptive_support.py [runs]      (default 24; a table over noise and kinds of graphs)

Scores z of one axis are taken for a mixture: members z ~ N(+-m, g^2 + t^2), others z ~ N(0, g^2), with
logit P(member) = a + b (M|u|). Keeping posterior > .5 is the paper's rule with sigma = b g^2 / m. If b does not earn
its keep (likelihood ratio below a gate), the graph is left out. Each entry's own part in the scores is taken off first.
"""

import sys

import numpy as np
from joblib import Parallel, delayed
from scipy import special

from netbic import SparseGraphSVD
from netbic.simulate import paper

GATE = 6.0
STARTS = (0.15, 0.5, 0.75)  # shares of members to begin from; the likeliest end is kept
PRIOR = 20.0  # observations the prior on t counts for; it pulls t towards m / 6


def log_normal(z, mean, variance):
    return -0.5 * ((z - mean) ** 2 / variance + np.log(2 * np.pi * variance))


def mixture(z, graph_scores=None):
    """Posterior of membership, and sigma / |z| as the graph's weight (0 where it is left out)."""
    plain = max((expectation_maximisation(z, None, share) for share in STARTS), key=lambda found: found[0])
    if graph_scores is None or np.ptp(graph_scores) == 0:
        return plain[1:]
    guided = max((expectation_maximisation(z, graph_scores, share) for share in STARTS), key=lambda found: found[0])
    return (guided if 2 * (guided[0] - plain[0]) >= GATE and guided[2] > 0 else plain)[1:]


def expectation_maximisation(z, graph_scores, share, rounds=60):
    """Log-likelihood, posterior, sigma and g^2 reached from the largest `share` of the scores as members."""
    order = np.argsort(-np.abs(z))
    top, low = np.split(order, [max(2, int(share * z.size))])
    m = np.abs(z[top]).mean()
    g2 = max((z[low] ** 2).mean(), 1e-4 * m * m)
    t2 = max(np.abs(z[top]).var() - g2, 0.01 * m * m)
    spread = 1.0 if graph_scores is None else graph_scores.std()
    x = np.zeros(z.size) if graph_scores is None else (graph_scores - graph_scores.mean()) / spread
    a = b = 0.0
    for _ in range(rounds):
        eta = a + b * x
        either = np.logaddexp(log_normal(z, m, g2 + t2), log_normal(z, -m, g2 + t2)) - np.log(2)
        member, other = either - np.logaddexp(0, -eta), log_normal(z, 0, g2) - np.logaddexp(0, eta)
        total = np.logaddexp(member, other)
        r = np.exp(member - total)
        signed = z * np.tanh(m * z / (g2 + t2))
        m = max((r @ signed) / r.sum(), 1e-12)
        variance = r @ (z * z - 2 * m * signed + m * m) / r.sum()
        g2 = max((1 - r) @ (z * z) / max((1 - r).sum(), 1e-12), 1e-3 * m * m)
        t2 = max((r.sum() * (variance - g2) + PRIOR * (m / 6) ** 2) / (r.sum() + PRIOR), 1e-4 * m * m)
        a, b = logistic_step(r, x, a, b, graph_scores is not None)
    return total.sum(), r, b / spread * g2 / m, g2


def logistic_step(r, x, a, b, guided):
    """Two damped Newton steps for logit P = a + b x, with a slight ridge on b; closed form without x."""
    if not guided:
        return special.logit(np.clip(r.mean(), 1e-3, 1 - 1e-3)), 0.0
    for _ in range(2):
        p = special.expit(a + b * x)
        w = p * (1 - p) + 1e-6
        curvature = np.array([[w.sum(), w @ x], [w @ x, w @ (x * x) + 0.5]])
        step = np.linalg.solve(curvature, [(r - p).sum(), (r - p) @ x - 0.5 * b])
        a, b = np.clip(np.array([a, b]) + np.clip(step, -1, 1), -12, 12)
    return a, b


def fit(X, row_term=None, column_term=None, rounds=60):
    """u and v from the dense leading pair, each half step choosing its own size and smoothness."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    u, v, d, g2 = left[:, 0], right[0], values[0], X.var()
    for _ in range(rounds):
        before = u, v
        u, g2 = half_step(X @ v, u, row_term, g2 * np.count_nonzero(v) / d)
        v, g2 = half_step(X.T @ u, v, column_term, g2 * np.count_nonzero(u) / d)
        d = max(u @ X @ v, 1e-12)
        if max(np.linalg.norm(u - before[0]), np.linalg.norm(v - before[1])) < 1e-6:
            break
    return u, v


def half_step(z, old, term, own):
    """The next vector, and the noise variance seen on the way; `own` is each entry's share in its own score."""
    smoothed = None if term is None else term @ np.abs(old)
    posterior, sigma, g2 = mixture(z - own * old, smoothed)
    kept = posterior > 0.5
    if kept.sum() < 2:
        kept = posterior >= np.sort(posterior)[-2]
    scores = np.abs(z) if smoothed is None else np.abs(z) + sigma * smoothed
    new = np.where(kept, np.copysign(scores, z), 0.0)
    return new / np.linalg.norm(new), g2


def normalised(graph, order=None):
    weights = graph.weights.toarray()
    weights = weights if order is None else weights[np.ix_(order, order)]
    factors = 1 / np.sqrt(np.maximum(weights.sum(axis=0), 1))
    return weights * np.outer(factors, factors)


def f1(found, truth):
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


def one_run(gamma, kind, seed):
    """Whether both sizes are within 20 %, the F1 reached, and that of the fit told the truth (mean of both axes)."""
    toy = paper(gamma, random_state=seed)
    generator = np.random.default_rng(seed + 10_000)
    orders = [generator.permutation(100) if kind == "permuted" else None for _ in range(2)]
    graphs = [toy.row_graph, toy.column_graph]
    terms = [None, None] if kind == "none" else [normalised(g, o) for g, o in zip(graphs, orders, strict=True)]
    u, v = fit(toy.X, *terms)
    words = {"row_graph": toy.row_graph, "column_graph": toy.column_graph} if kind == "true" else {}
    words |= {"row_smoothness": 1.0, "column_smoothness": 1.0} if kind == "true" else {}
    told = SparseGraphSVD(1, n_rows=50, n_columns=50, center=None, **words).fit(toy.X)
    truths = toy.u != 0, toy.v != 0
    found, oracle = (u != 0, v != 0), (told.rows_[0], told.columns_[0])
    right = all(abs(mask.sum() - 50) <= 10 for mask in found)
    return right, *(np.mean([f1(*pair) for pair in zip(masks, truths, strict=True)]) for masks in (found, oracle))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    for gamma in (0.03, 0.04, 0.05):
        for kind in ("none", "true", "permuted"):
            rows = Parallel(n_jobs=-1)(delayed(one_run)(gamma, kind, seed) for seed in range(runs))
            right, reached, oracle = np.mean(rows, axis=0)
            scores = f"F1 {reached:.3f}, told the truth {oracle:.3f}"
            print(f"noise {gamma:g}, graph {kind:8s}: sizes right {right:.2f}, {scores}", flush=True)


if __name__ == "__main__":
    main()
