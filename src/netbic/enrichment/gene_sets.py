"""Gene-set enrichment: which annotated sets a module's genes are drawn from more often than chance would have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, hypergeom

from netbic.enrichment.masks import Masks, masks_over
from netbic.errors import InputError
from netbic.estimators import fitted_model, is_model
from netbic.readers import read_gene_sets

Names = NDArray[Any]

_COLUMNS = ["module", "term", "name", "n_overlap", "n_module", "n_term", "fold_change", "p_value", "q_value", "genes"]


def gene_sets(
    modules: Any,
    gene_sets: Mapping[str, Iterable[str]] | Path | str,
    *,
    names: Any = None,
    background: Any = None,
    min_size: int = 10,
    max_size: int = 500,
    by_sign: bool = False,
    collapse: float | None = None,
    shuffle: Any = None,
) -> pd.DataFrame:
    """Test modules for gene sets that are over-represented in them (hypergeometric, right tail).

    Parameters
    ----------
    modules : fitted model, or list of gene names, index arrays or boolean masks over `names`
    gene_sets : mapping of term to genes, or path of a GMT file
        What `netbic.io.read_gene_sets` returns brings descriptions too.
    names : sequence of str, optional
        Names of all genes, if the model was fitted to an array or modules are positions.
    background : sequence of str, optional
        Genes that could have been found. Default: all genes of the data. Terms and modules count inside it only.
    min_size, max_size : int
        Sizes of terms to test, counted inside the background.
    by_sign : bool
        Test the genes of either sign of a fitted model's modules apart; a column `sign` (1 or -1) says which.
    collapse : float, optional
        Leave out terms whose genes in the module overlap those of a more significant term by this Jaccard index or
        more, e.g. .5. Adjusted p-values are those of all tests.
    shuffle : int or numpy.random.Generator, optional
        A control: shuffle the genes' labels first. Nothing should then be significant.

    Returns
    -------
    DataFrame
        `module`, `term`, `name`, `n_overlap`, `n_module`, `n_term`, `fold_change`, `p_value`, `q_value`
        (Benjamini-Hochberg over all sets tested in the module, those without an overlap included), `genes`. Rows with
        an overlap only, most significant first within each module.

    Examples
    --------
    >>> import netbic
    >>> sets = {"abc": ["a", "b", "c"], "xyz": ["x", "y", "z", "a"]}
    >>> table = netbic.enrichment.gene_sets([["a", "b", "c"]], sets, names=list("abcdefghijxyz"), min_size=2)
    >>> table[["term", "n_overlap", "genes"]].to_numpy().tolist()
    [['abc', 3, 'a, b, c'], ['xyz', 1, 'a']]
    """
    if collapse is not None and not 0 < collapse <= 1:
        raise InputError(f"collapse={collapse!r}: a number above 0 and up to 1 is needed")
    if isinstance(shuffle, bool):
        raise InputError(f"shuffle={shuffle!r}: give a seed, or leave it out")
    genes, masks, signs = _genes_and_masks(modules, names, by_sign)
    genes, masks = _inside(genes, masks, background)
    if shuffle is not None:
        genes = genes[np.random.default_rng(shuffle).permutation(genes.size)]
    sets = read_gene_sets(gene_sets) if isinstance(gene_sets, (str, Path)) else gene_sets
    terms = _Terms.of(sets, genes, min_size, max_size)
    overlaps = np.asarray((sp.csr_array(masks.astype(np.int32)) @ terms.members.T).toarray(), dtype=np.int64)
    p_values = _right_tails(overlaps, genes.size, terms.sizes, masks.sum(axis=1))
    tables = [_tested(*case, terms, genes, collapse) for case in zip(overlaps, p_values, masks, strict=True)]
    for k, table in enumerate(tables):
        table.insert(0, "module", k // 2 if by_sign else k)
        if by_sign:
            table.insert(1, "sign", signs[k % 2])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


class _Terms:
    """The terms to test: their names and, as a sparse matrix, their genes."""

    def __init__(self, labels: Names, names: Names, members: sp.csr_array) -> None:
        self.labels, self.names, self.members = labels, names, members
        self.sizes = np.diff(members.indptr)

    @classmethod
    def of(cls, sets: Mapping[str, Iterable[str]], genes: Names, min_size: int, max_size: int) -> _Terms:
        labels = list(sets)
        given = [list(dict.fromkeys(map(str, sets[label]))) for label in labels]
        lengths = np.array([len(members) for members in given], dtype=np.intp)
        flat = pd.Index([gene for members in given for gene in members], dtype=object)
        columns = pd.Index(genes).get_indexer(flat)
        rows = np.repeat(np.arange(len(labels)), lengths)
        known = columns >= 0
        _check_shared(known, flat, genes, len(labels))
        shape = (len(labels), genes.size)
        members = sp.csr_array((np.ones(known.sum(), dtype=np.int32), (rows[known], columns[known])), shape=shape)
        sizes = np.diff(members.indptr)
        wanted = np.flatnonzero((sizes >= min_size) & (sizes <= max_size))
        if not wanted.size:
            raise InputError(
                f"none of {len(labels):,} gene sets has {min_size} to {max_size} genes among the {genes.size:,} of the "
                f"background (sizes there run from {sizes.min()} to {sizes.max()}): change min_size or max_size"
            )
        described = getattr(sets, "names", {})
        texts = np.array([described.get(labels[at], labels[at]) for at in wanted], dtype=object)
        return cls(np.array(labels, dtype=object)[wanted], texts, members[wanted])


def _check_shared(known: NDArray[np.bool_], flat: pd.Index[Any], genes: Names, n_sets: int) -> None:
    if not known.any():
        theirs, mine = (", ".join(map(repr, map(str, some[:5]))) for some in (flat, genes))
        raise InputError(
            f"not one gene of the {n_sets:,} gene sets is among the {genes.size:,} genes of the data (sets: {theirs}; "
            f"data: {mine}): bring both to one kind of names"
        )


def _genes_and_masks(modules: Any, names: Any, by_sign: bool) -> tuple[Names, Masks, tuple[int, int]]:
    """All genes, a row per module (two per module if signs are kept apart), and the signs."""
    signs = (1, -1)
    if is_model(modules):
        modules = fitted_model(modules)
        known = modules.names_["columns"] if names is None else np.asarray(names, dtype=object)
        if known is None:
            raise InputError("the model was fitted to an array: give the genes' names (names=...)")
        if known.size != modules.n_features_in_:
            raise InputError(f"{known.size:,} names are given but the model has {modules.n_features_in_:,} genes")
        genes = _distinct_names(known)
        if by_sign:
            parts = np.stack([modules.components_ > 0, modules.components_ < 0], axis=1)
            return genes, parts.reshape(-1, genes.size), signs
        return genes, modules.columns_, signs
    if by_sign:
        raise InputError("by_sign=True needs a fitted model: lists of genes have no signs")
    if names is None:
        raise InputError("give the names of all genes (names=...): they are what could have been found by chance")
    if np.asarray(names).dtype.kind in "iu":  # Entrez ids: members are names too, not positions
        modules = [[str(member) for member in module] for module in modules]
    genes = _distinct_names(names)
    return genes, masks_over(modules, genes.size, genes, "list of names"), signs


def _distinct_names(names: Any) -> Names:
    genes = np.array([str(name) for name in names], dtype=object)
    if not pd.Index(genes).is_unique:
        raise InputError(f"gene {genes[pd.Index(genes).duplicated()][0]!r} occurs more than once: make names unique")
    return genes


def _inside(genes: Names, masks: Masks, background: Any) -> tuple[Names, Masks]:
    """Genes and modules as far as they are in the background."""
    if background is None:
        return genes, masks
    kept = pd.Index(genes).isin([str(name) for name in background])
    if not kept.any():
        raise InputError("not one gene of the data is in the background: check its names")
    return genes[kept], masks[:, kept]


def _tested(
    overlaps: NDArray[Any],
    p_values: NDArray[np.float64],
    mask: NDArray[np.bool_],
    terms: _Terms,
    genes: Names,
    collapse: float | None,
) -> pd.DataFrame:
    """One module against all terms: those it overlaps, most significant first."""
    order = np.lexsort((-overlaps, p_values))
    order = order[overlaps[order] > 0]
    shared = sp.csr_array(terms.members[order].multiply(mask.astype(np.int32)[None, :]))
    shared.eliminate_zeros()
    if collapse is not None:
        kept = _distinct(shared, collapse)
        order, shared = order[kept], shared[kept]
    shared.sort_indices()
    n_module = int(mask.sum())
    return pd.DataFrame(
        {
            "term": terms.labels[order],
            "name": terms.names[order],
            "n_overlap": overlaps[order],
            "n_module": n_module,
            "n_term": terms.sizes[order],
            "fold_change": overlaps[order] * genes.size / (terms.sizes[order] * max(n_module, 1)),
            "p_value": p_values[order],
            "q_value": false_discovery_control(p_values)[order],
            "genes": [", ".join(genes[row]) for row in np.split(shared.indices, shared.indptr[1:-1])[: order.size]],
        }
    )


def _right_tails(
    overlaps: NDArray[Any], n_genes: int, sizes: NDArray[Any], n_modules: NDArray[Any]
) -> NDArray[np.float64]:
    """P(overlap or more) for every module (rows) and term; equal cases are computed once, empty overlaps are 1."""
    p_values = np.ones(overlaps.shape)
    rows, columns = np.nonzero(overlaps)
    cases = np.column_stack([overlaps[rows, columns], sizes[columns], n_modules[rows]])
    distinct, inverse = np.unique(cases, axis=0, return_inverse=True)
    tails = hypergeom.sf(distinct[:, 0] - 1, n_genes, distinct[:, 1], distinct[:, 2])
    p_values[rows, columns] = np.asarray(tails, dtype=np.float64)[inverse.ravel()]
    return p_values


def _distinct(members: sp.csr_array, jaccard: float) -> list[int]:
    """Rows, in their order, that overlap no earlier kept row too much."""
    sizes = np.diff(members.indptr)
    shared = (members @ members.T).toarray()
    kept, covered = [], np.zeros(len(sizes), dtype=bool)
    for at in range(len(sizes)):
        if not covered[at]:
            kept.append(at)
            covered |= shared[at] >= jaccard * (sizes[at] + sizes - shared[at])
    return kept
