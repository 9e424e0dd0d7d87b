"""Independent component analysis, run 100 times, and clusters of the components: the procedure of iModulons.

As in the iModulon workflow (Sastry et al., Nature Communications 2019): FastICA with a tolerance of 1e-7 from random
starts, DBSCAN of 1 - |r| with eps=0.1; a cluster needs half as many components as there are runs, and its mean is a
module. The number of components of each run is told (10 otherwise); there may be fewer modules. Members are chosen as
in pymodulon 0.2.1 without known regulators: the upper of three k-means clusters of the absolute weights.
"""

import numpy as np
from problem import Found
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import FastICA

NAME, ENVIRONMENT = "consensus ICA", "netbic"
RUNS = 100


def run(problem):
    X, random = (problem.X - problem.X.mean(axis=0)).T, np.random.RandomState(problem.seed)
    starts = [FastICA(problem.k or 10, random_state=random, max_iter=1000, tol=1e-7) for _ in range(RUNS)]
    components = np.hstack([model.fit_transform(X) for model in starts]).T
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    distance = np.clip(1.0 - np.abs(components @ components.T), 0.0, None)
    labels = DBSCAN(eps=0.1, min_samples=RUNS // 2, metric="precomputed").fit_predict(distance)
    weights = np.array([mean_direction(components[labels == label]) for label in range(labels.max() + 1)])
    weights = weights.reshape(-1, X.shape[0]).T
    chosen = np.array([members(own) for own in weights.T], bool).reshape(weights.T.shape)
    return Found(weights, chosen, X.T @ np.linalg.pinv(weights).T)


def mean_direction(components):
    """Mean of components that agree but for their signs."""
    return (components * np.sign(components @ components[0])[:, None]).mean(axis=0)


def members(weights):
    """Features above the midpoint between the smallest of three k-means clusters of |weights| and the next one."""
    away = np.abs(weights)
    labels = KMeans(3, random_state=1).fit_predict(away[:, None])
    first, second = np.argsort(np.bincount(labels))[:2]
    return away > (away[labels == first].min() + away[labels == second].max()) / 2
