"""Projection on modules that are not orthogonal: least-squares scores and adjusted explained variance."""

from __future__ import annotations

import numpy as np
from scipy.linalg import orth, solve_triangular

from netbic.arrays import Array, Floats

_WELL_CONDITIONED = 1e-3  # smallest part of a v outside the span of earlier ones for which normal equations are safe
_LEAST_OBSERVED = 0.1  # share of the squared entries of v without which a score is not computed
_DEPENDENT = 1e-6  # a v closer than this to the span of earlier ones adds nothing


def scoring(vectors: Floats) -> Floats:
    """The matrix V'(VV')^+ that maps samples to scores; `vectors` has a row per module."""
    triangle = _cholesky(vectors)
    if triangle is None:
        return np.asarray(np.linalg.pinv(vectors))
    return np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, vectors)).T)


def observed_scores(scaled: Array, vectors: Array) -> Array:
    """Least-squares scores from the observed entries of each row (zeros for a row without any)."""
    scores = np.zeros((len(scaled), len(vectors)), dtype=scaled.dtype)
    for row, entries in enumerate(scaled):
        seen = ~np.isnan(entries)
        scores[row] = np.linalg.lstsq(vectors[:, seen].T, entries[seen], rcond=None)[0]
    return scores


def scores_of_observed(scaled: Array, vectors: Floats) -> Floats:
    """Xv from the observed entries of each row, a column per module: sum of x v, divided by that of v^2.

    This is what imputation with the prediction of the module converges to. NaN if hardly any entry is observed.
    """
    seen = ~np.isnan(scaled)
    products, observed = np.where(seen, scaled, 0.0) @ vectors.T, seen @ (vectors**2).T
    return np.where(observed < _LEAST_OBSERVED, np.nan, products / np.maximum(observed, _LEAST_OBSERVED))


def span(vectors: Floats) -> Floats:
    """An orthonormal basis (in columns) of the span of the rows, without nearly dependent directions."""
    return np.asarray(orth(vectors.T, rcond=_DEPENDENT)) if len(vectors) else np.empty((vectors.shape[1], 0))


def explained(vectors: Floats, products: Floats) -> Floats:
    """Increase of |X V'(VV')^+ V|^2 by each module (Shen and Huang 2008); the rows of `products` are Xv.

    The v are orthogonalised one after another and each new direction q adds |Xq|^2; a dependent v adds nothing.
    """
    triangle = _cholesky(vectors)
    if triangle is None:
        images = _images_one_by_one(vectors, products)
    else:
        images = np.asarray(solve_triangular(triangle.T, products, lower=True), dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", images, images))


def _images_one_by_one(vectors: Floats, products: Floats) -> Floats:
    """Xq for the v orthogonalised by Gram-Schmidt, applied twice; zero if a v lies in the span of earlier ones."""
    basis, images = np.zeros_like(vectors), np.zeros_like(products)
    for k, (rest, image) in enumerate(zip(vectors, products, strict=True)):
        for _ in range(2):
            along = basis[:k] @ rest
            rest, image = rest - along @ basis[:k], image - along @ images[:k]
        length = np.linalg.norm(rest)
        if length > _DEPENDENT:
            basis[k], images[k] = rest / length, image / length
    return images


def _cholesky(vectors: Floats) -> Floats | None:
    """The upper triangle R with VV' = R'R; None if the v are nearly dependent."""
    try:
        triangle: Floats = np.linalg.cholesky(vectors @ vectors.T).T.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return triangle if np.diag(triangle).min(initial=1.0) > _WELL_CONDITIONED else None
