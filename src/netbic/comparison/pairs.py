"""All pairs of modules of two fits: similarity of their genes and of their samples."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats, Indices
from netbic.comparison.agreement import Agreement, combined, correlated_rows, overlaps
from netbic.comparison.named_modules import NamedModules
from netbic.comparison.names import common_names, no_common_names
from netbic.errors import InputError

_MIN_GENES = 3  # of a module that the other fit has too
_MIN_SAMPLES = 5  # in common


class Pairs(NamedTuple):
    """Matrices with the modules of the first fit in rows and those of the second one in columns.

    Attributes
    ----------
    genes, scores : Agreement
    similarity, sign : array
        Of genes and scores together.
    shared : array
        Numbers of genes in common.
    jaccard, sample_jaccard : array
        Overlaps of genes, and of groups of samples.
    sizes : tuple of two arrays
        Numbers of genes of the modules.
    n_genes, n_samples : int
        Genes and samples that both fits have.
    """

    genes: Agreement
    scores: Agreement
    similarity: Floats
    sign: Floats
    shared: Array
    jaccard: Floats
    sample_jaccard: Floats
    sizes: tuple[Array, Array]
    n_genes: int
    n_samples: int

    @classmethod
    def of(
        cls, a: NamedModules, b: NamedModules, same_samples: bool, n_draws: int, generator: np.random.Generator
    ) -> Self:
        """Compare the modules of two fits."""
        in_a, in_b = _common_genes(a, b)
        at_a, at_b = _common_samples(a, b, same_samples)
        if not in_a.size and not at_a.size:
            raise no_common_names(*(np.empty(0) if fit.genes is None else fit.genes for fit in (a, b)))
        some, others = a.weights[:, in_a], b.weights[:, in_b]
        genes = Agreement.between(_comparable(some), _comparable(others), n_draws, generator)
        rows = correlated_rows(a.scores[:, at_a]), correlated_rows(b.scores[:, at_b])
        scores = Agreement.between(*rows, n_draws, generator)
        sizes = np.count_nonzero(a.weights, axis=1), np.count_nonzero(b.weights, axis=1)
        return cls(
            genes,
            scores,
            *combined(genes, scores),
            *overlaps(some != 0, others != 0),
            _group_overlaps(a.in_group[:, at_a], b.in_group[:, at_b]),
            sizes,
            in_a.size,
            at_a.size,
        )

    def matrices(self) -> dict[str, pd.DataFrame]:
        """`Comparison.similarity`."""
        named = {
            "similarity": self.similarity,
            "cosine": self.genes.cosine,
            "jaccard": self.jaccard,
            "score_correlation": self.scores.cosine,
            "sample_jaccard": self.sample_jaccard,
        }
        return {name: pd.DataFrame(values).rename_axis(index="a", columns="b") for name, values in named.items()}


def _common_genes(a: NamedModules, b: NamedModules) -> tuple[Indices, Indices]:
    """Positions of the genes in common; without names, the features of both fits if there are equally many."""
    if a.genes is not None and b.genes is not None:
        return common_names(a.genes, b.genes, "gene")
    sizes = a.weights.shape[1], b.weights.shape[1]
    if (a.genes is None) != (b.genes is None) or sizes[0] != sizes[1]:
        problem = f"{sizes[0]:,} and {sizes[1]:,} features, not all of them with names"
        raise InputError(f"the fits have {problem}, so they cannot be matched: fit both to DataFrames")
    return np.arange(sizes[0]), np.arange(sizes[0])


def _common_samples(a: NamedModules, b: NamedModules, same_samples: bool) -> tuple[Indices, Indices]:
    """Positions of the samples in common; none if there are too few to correlate scores."""
    sizes = a.scores.shape[1], b.scores.shape[1]
    if same_samples and sizes[0] != sizes[1]:
        raise InputError(f"same_samples=True but the fits have {sizes[0]:,} and {sizes[1]:,} samples")
    if same_samples:
        return np.arange(sizes[0]), np.arange(sizes[0])
    none = np.empty(0, dtype=np.intp)
    if a.samples is None or b.samples is None:
        return none, none
    found = common_names(a.samples, b.samples, "sample")
    return found if found[0].size >= _MIN_SAMPLES else (none, none)


def _comparable(weights: Floats) -> Floats:
    """Weights of modules with enough genes in common with the other fit; 0 for the others."""
    enough = np.count_nonzero(weights, axis=1) >= _MIN_GENES
    return np.asarray(np.where(enough[:, None], weights, 0.0))


def _group_overlaps(some: Bools, others: Bools) -> Floats:
    """Jaccard indices of groups of samples; NaN for a module that has all samples, or none."""
    has_group = [rows.any(axis=1) & ~rows.all(axis=1) for rows in (some, others)]
    return np.where(np.logical_and.outer(*has_group), overlaps(some, others)[1], np.nan)
