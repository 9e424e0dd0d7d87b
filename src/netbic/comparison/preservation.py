"""How far the genes of a module move together in another study, compared with random genes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from netbic.arrays import Floats, Indices
from netbic.comparison.matched_sets import matched_sets
from netbic.comparison.other_study import OtherStudy


class Preservation(NamedTuple):
    """Numbers for one module; `expected` means the average over random sets of genes.

    Attributes
    ----------
    variance_explained, variance_expected : float
        Share of the variance of its genes (each scaled to variance 1) along the weights of the module.
    ratio : float
        Their ratio.
    z : float
        Distance from the average of random sets, in standard deviations of these.
    p : float
        Share of random sets that reach the module: (1 + reached) / (1 + draws).
    density, density_expected, p_density : float
        Mean correlation of pairs of genes, with the sign that the weights predict.
    loading_correlation, p_loadings : float
        Correlation of the weights with those fitted to the same genes in the other study, and the share of
        permutations of the weights among the genes that reach it.
    sign_agreement : float
        Share of genes whose correlation with the score of the other genes has the sign of their weight.
    """

    variance_explained: float
    variance_expected: float
    ratio: float
    z: float
    p: float
    density: float
    density_expected: float
    p_density: float
    loading_correlation: float
    p_loadings: float
    sign_agreement: float


UNKNOWN = Preservation(*[np.nan] * len(Preservation._fields))


def preservation(
    study: OtherStudy, members: Indices, weights: Floats, n_draws: int, generator: np.random.Generator
) -> Preservation:
    """Judge a module in a study.

    Every gene of a random set replaces a gene of the module, has similar mean and variance in this study, and takes
    over its weight. A factor that all genes follow therefore moves random sets as well.
    """
    weights = weights / np.linalg.norm(weights)
    sets = matched_sets([study.means, study.lengths], members, n_draws, generator)
    sets = np.vstack([members, sets])
    size = members.size
    shares = study.energies(sets, weights) / size
    densities = (study.energies(sets, np.sign(weights)) - size) / (size * (size - 1))
    genes = study.genes(members)
    loadings = genes @ (genes.T @ weights) - weights  # of every gene on the score of the others
    return Preservation(
        float(shares[0]),
        float(shares[1:].mean()),
        float(shares[0] / shares[1:].mean()),
        _distance(shares),
        _p_value(shares),
        float(densities[0]),
        float(densities[1:].mean()),
        _p_value(densities),
        *_loading_correlation(weights, leading_loadings(genes), n_draws, generator),
        float(np.mean(np.sign(loadings) == np.sign(weights))),
    )


def leading_loadings(genes: Floats) -> Floats:
    """The leading left singular vector of a matrix with genes in rows.

    Examples
    --------
    >>> import numpy as np
    >>> leading_loadings(np.outer([3.0, 4.0], [1.0, -1.0, 0.0])).round(6).tolist()
    [0.6, 0.8]
    """
    wide = genes.shape[0] <= genes.shape[1]
    gram = genes @ genes.T if wide else genes.T @ genes
    vector = eigh(gram, subset_by_index=[len(gram) - 1] * 2)[1][:, 0]
    vector = vector if wide else genes @ vector
    vector = vector / (np.linalg.norm(vector) or 1.0)
    return np.asarray(vector * (1.0 if vector[np.abs(vector).argmax()] >= 0 else -1.0))


def _distance(values: Floats) -> float:
    """Distance of the first value from the mean of the others, in their standard deviations; NaN if these are equal."""
    spread = float(values[1:].std())
    return float((values[0] - values[1:].mean()) / spread) if spread > 0 else np.nan


def _p_value(values: Floats) -> float:
    return float((1 + np.sum(values[1:] >= values[0])) / values.size)


def _loading_correlation(
    weights: Floats, loadings: Floats, n_draws: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Correlation of weights and loadings, and its p-value; NaN if all weights or all loadings are equal.

    The sign of a vector of loadings is arbitrary: it is chosen so that their product with the weights is positive.
    """
    rows = np.vstack([weights, [generator.permutation(weights) for _ in range(n_draws)]])
    spreads = weights.std() * loadings.std()
    if spreads <= 1e-12:
        return np.nan, np.nan
    covariances = rows @ (loadings - loadings.mean()) / weights.size
    values = covariances / spreads * np.where(rows @ loadings >= 0, 1.0, -1.0)
    return float(values[0]), _p_value(values)
