"""Compare the modules of two fits: which are the same, which are new, which are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import RandomState
from netbic.comparison.matching import GONE, NEW, NOT_COMPARABLE, SAME, SIMILAR, Labels, matching_table
from netbic.comparison.named_modules import NamedModules
from netbic.comparison.pairs import Pairs
from netbic.estimators import check_count


@dataclass(frozen=True)
class Comparison:
    """The modules of two fits, matched one to one.

    Attributes
    ----------
    table : DataFrame
        A row per pair of matched modules, in the order of the first fit, then a row per module of the second fit that
        has no counterpart.

        - `module_a`, `module_b`: numbers, from 0; missing where a module has no counterpart.
        - `status`: "same", "similar", "gone" (only in the first fit), "new" (only in the second), or "not comparable"
          (too few genes and samples in common).
        - `sign`: 1, or -1 if up and down are exchanged.
        - `similarity`: 0 (by chance) to 1 (identical), see `compare`.
        - `genes_a`, `genes_b`: numbers of genes; `genes_in_common`: of both modules; `jaccard`: their number divided by
          that of all genes of the two modules (among genes that both fits have).
        - `cosine`: of the weights of the genes; `score_correlation`: of the scores of common samples;
          `sample_jaccard`: overlap of the groups of samples (missing where a module has all samples).
        - `p_genes`: how often any two modules would be as similar if the genes of one fit were random ones.
        - `reason`: the row as a sentence.
    similarity : dict of DataFrame
        All pairs of modules: `"similarity"`, `"cosine"`, `"jaccard"`, `"score_correlation"` and `"sample_jaccard"`.
    n_genes, n_samples : int
        Genes and samples that both fits have.
    labels : tuple of str
        What the two fits are called.
    """

    table: pd.DataFrame
    similarity: Mapping[str, pd.DataFrame]
    n_genes: int
    n_samples: int
    labels: Labels = ("a", "b")

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        first, second = self.labels
        status = self.table["status"].tolist()
        words = {
            SAME: "the same in both",
            SIMILAR: "similar",
            GONE: f"only in {first}",
            NEW: f"only in {second}",
            NOT_COMPARABLE: "not comparable",
        }
        parts = [f"{number} {'is' if number == 1 else 'are'} {words[kind]}" for kind, number in _counted(status)]
        n_first, n_second = self.similarity["similarity"].shape
        compared = f"Of {n_first} module{'s' * (n_first != 1)} of {first} and {n_second} of {second}"
        given = f"{self.n_genes:,} genes and {self.n_samples:,} samples in common"
        return f"{compared}, {', '.join(parts) or 'none'} ({given})."

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {reason}" for reason in self.table["reason"])])


def _counted(status: list[str]) -> list[tuple[str, int]]:
    kinds = (SAME, SIMILAR, GONE, NEW, NOT_COMPARABLE)
    return [(kind, status.count(kind)) for kind in kinds if kind in status]


def compare(
    a: Any,
    b: Any,
    *,
    key: str = "netbic",
    same_samples: bool = False,
    labels: Labels | None = None,
    n_draws: int = 1000,
    random_state: RandomState = 0,
) -> Comparison:
    """Match the modules of two fits one to one, and say which are the same, similar, new or gone.

    Modules are matched by their genes and, if the fits have samples in common, by the scores of these samples. The sign
    of a module is arbitrary and does not matter. Two numbers are computed for every pair of modules: the absolute
    cosine of the weights over the genes that both fits have, and the absolute correlation of the scores. What they
    reach by chance is found by permuting the names of the genes or samples of one fit: the chance levels of all pairs
    are such that in 95 % of the permutations no pair exceeds its own. The agreement of two modules is (observed -
    chance) / (1 - chance), which is 0 for modules of random genes of the same sizes and 1 for identical ones, and their
    similarity is the mean of the agreements of genes and samples (if only one is known, that one).

    Matched modules are *the same* if their similarity is at least 0.7 and the agreement of their genes at least 0.5,
    and *similar* from 0.3. Modules of the first fit that are matched to none are *gone*, those of the second one *new*.
    Modules with different genes but the same scores are therefore similar: they are the same contrast of samples.

    Parameters
    ----------
    a, b : fitted model, AnnData object after `tl.modules`, or output folder of `netbic fit`
        Folders know the scores of all samples. For models and AnnData objects their weights (left vectors) are used.
    key : str
        Key of the modules in AnnData objects.
    same_samples : bool
        The samples are the same ones, in the same order: for models that were fitted to arrays without names.
    labels : tuple of str, optional
        What sentences call the two fits. Default: the names of the folders, or a and b.
    n_draws : int
        Permutations.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Comparison
        With a `table`, the matrices of `similarity`, and the `verdict` as a sentence.

    See Also
    --------
    replicate : look for the modules in another study, without fitting it.
    pl.comparison : the similarities as a heatmap.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    >>> fewer = netbic.SparseGraphSVD(2, n_columns=50).fit(study.expression)
    >>> found = netbic.compare(model, fewer)
    >>> found.table[["module_a", "module_b", "status"]].to_numpy().tolist()
    [[0, 0, 'same'], [1, 1, 'same'], [2, <NA>, 'gone']]
    >>> print(found.verdict)
    Of 3 modules of a and 2 of b, 2 are the same in both, 1 is only in a (500 genes and 200 samples in common).
    """
    check_count("n_draws", n_draws)
    first, second = NamedModules.of(a, key), NamedModules.of(b, key)
    pairs = Pairs.of(first, second, same_samples, n_draws, np.random.default_rng(random_state))
    names = labels or _labels(a, b)
    return Comparison(matching_table(pairs, names), pairs.matrices(), pairs.n_genes, pairs.n_samples, names)


def _labels(a: Any, b: Any) -> Labels:
    """The names of two folders, or as much of their paths as distinguishes them."""
    if not (isinstance(a, str | Path) and isinstance(b, str | Path)):
        return "a", "b"
    names = Path(a).name, Path(b).name
    paths = str(a), str(b)
    return names if names[0] != names[1] else paths if paths[0] != paths[1] else ("a", "b")
