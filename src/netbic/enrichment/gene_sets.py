"""Gene-set enrichment: gene sets that share more genes with a module than expected by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import false_discovery_control, hypergeom

from netbic.arrays import Array, Bools, Floats, RandomState
from netbic.enrichment.masks import Modules, masks_over
from netbic.errors import InputError
from netbic.estimators import fitted_model, is_model
from netbic.io import GeneSets, read_gene_sets

Sets = Mapping[str, Iterable[str]]  # term to genes

FEWEST_PER_SIDE: Final = 10  # genes that both sides of a module need to be tested separately
_SIGNS: Final = {"up": 1, "down": -1}
_COLUMNS = ["module", "term", "name", "n_overlap", "n_module", "n_term", "fold_change", "p_value", "q_value", "genes"]
_COLUMNS += ["side"]


def gene_sets(
    modules: Modules,
    gene_sets: Sets | Path | str,
    *,
    names: Iterable[object] | None = None,
    background: Iterable[object] | None = None,
    min_size: int = 10,
    max_size: int = 500,
    by_sign: bool | None = None,
    collapse: float | None = None,
    shuffle: RandomState = None,
) -> pd.DataFrame:
    """Test modules for gene sets that are over-represented in them (hypergeometric, right tail).

    Parameters
    ----------
    modules : fitted model, or list of gene names, index arrays or boolean masks over `names`
    gene_sets : mapping of term to genes, or path of a GMT file
        The result of `netbic.io.read_gene_sets` includes descriptions.
    names : sequence of str, optional
        Names of all genes, if the model was fitted to an array or modules are positions.
    background : sequence of str, optional
        Genes that could have been found. Default: all genes of the data. Other genes of terms and modules are ignored.
    min_size, max_size : int
        Sizes of terms to test, counted inside the background.
    by_sign : bool, optional
        Whether the genes of positive weight (the side "up") and of negative weight ("down") of a fitted model are
        tested separately. Default: in modules with at least 10 genes on both sides. With True, in all modules, and a
        column `sign` (1 or -1) is added; with False, in none.
    collapse : float, optional
        Remove terms whose genes in the module overlap those of a more significant term with this Jaccard index or
        more, e.g. 0.5. Adjusted p-values still account for all tests.
    shuffle : int or numpy.random.Generator, optional
        A negative control: the seed of a permutation of the gene names, after which nothing should be significant.

    Returns
    -------
    DataFrame
        `module`, `term`, `name`, `n_overlap`, `n_module`, `n_term`, `fold_change`, `p_value`, `q_value`
        (Benjamini-Hochberg over all terms tested in these genes, including those without overlap), `genes`, and
        `side`: the genes that were tested, "up", "down" or "both" (all genes of the module, of which there are
        `n_module`). Only terms with an overlap are listed, most significant first within each module and side.

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
    genes, masks = _genes_and_masks(modules, names, by_sign)
    tested, masks = _by_side(modules, masks, by_sign)
    genes, masks = _inside(genes, masks, background)
    if shuffle is not None:
        genes = genes[np.random.default_rng(shuffle).permutation(genes.size)]
    sets = read_gene_sets(gene_sets) if isinstance(gene_sets, (str, Path)) else gene_sets
    terms = _Terms.of(sets, genes, min_size, max_size)
    overlaps = np.asarray((sp.csr_array(masks.astype(np.int32)) @ terms.members.T).toarray(), dtype=np.int64)
    p_values = _right_tails(overlaps, genes.size, terms.sizes, masks.sum(axis=1))
    tables = [terms.table(*module, collapse) for module in zip(masks, overlaps, p_values, strict=True)]
    for (module, side), table in zip(tested, tables, strict=True):
        table.insert(0, "module", module)
        if by_sign:
            table.insert(1, "sign", _SIGNS[side])
        table["side"] = side
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


@dataclass(frozen=True)
class _Terms:
    """The terms to test: identifiers, names, and their genes as a sparse matrix (terms by genes)."""

    labels: Array
    names: Array
    genes: Array
    members: sp.csr_array

    @classmethod
    def of(cls, sets: Sets, genes: Array, min_size: int, max_size: int) -> _Terms:
        labels = np.array(list(sets), dtype=object)
        given = [list(dict.fromkeys(map(str, sets[label]))) for label in labels]
        flat = pd.Index([gene for members in given for gene in members], dtype=object)
        columns = pd.Index(genes).get_indexer(flat)
        rows = np.repeat(np.arange(len(labels)), np.array([len(members) for members in given], dtype=np.intp))
        known = columns >= 0
        _check_shared(known, flat, genes, len(labels))
        ones, shape = np.ones(known.sum(), dtype=np.int32), (len(labels), genes.size)
        members = sp.csr_array((ones, (rows[known], columns[known])), shape=shape)
        sizes = np.diff(members.indptr)
        tested = np.flatnonzero((sizes >= min_size) & (sizes <= max_size))
        if not tested.size:
            raise InputError(
                f"none of {len(labels):,} gene sets has {min_size} to {max_size} genes among the {genes.size:,} of the "
                f"background (sizes there run from {sizes.min()} to {sizes.max()}): change min_size or max_size"
            )
        descriptions = sets.names if isinstance(sets, GeneSets) else {}
        names = np.array([descriptions.get(label, label) for label in labels[tested]], dtype=object)
        return cls(labels[tested], names, genes, members[tested])

    @property
    def sizes(self) -> Array:
        return np.diff(self.members.indptr)

    def table(self, mask: Bools, overlaps: Array, p_values: Floats, collapse: float | None) -> pd.DataFrame:
        """The terms that overlap a module, most significant first."""
        order = np.lexsort((-overlaps, p_values))
        order = order[overlaps[order] > 0]
        shared = sp.csr_array(self.members[order].multiply(mask.astype(np.int32)[None, :]))
        shared.eliminate_zeros()
        if collapse is not None:
            kept = _not_redundant(shared, collapse)
            order, shared = order[kept], shared[kept]
        shared.sort_indices()
        n_module, sizes = int(mask.sum()), self.sizes[order]
        genes = [self.genes[row] for row in np.split(shared.indices, shared.indptr[1:-1])[: order.size]]
        return pd.DataFrame(
            {
                "term": self.labels[order],
                "name": self.names[order],
                "n_overlap": overlaps[order],
                "n_module": n_module,
                "n_term": sizes,
                "fold_change": overlaps[order] * self.genes.size / (sizes * max(n_module, 1)),
                "p_value": p_values[order],
                "q_value": false_discovery_control(p_values)[order],
                "genes": [", ".join(each) for each in genes],
            }
        )


def _check_shared(known: Bools, flat: pd.Index[str], genes: Array, n_sets: int) -> None:
    if not known.any():
        theirs, ours = (", ".join(map(repr, map(str, some[:5]))) for some in (flat, genes))
        raise InputError(
            f"none of the genes of the {n_sets:,} gene sets is among the {genes.size:,} genes of the data (sets: "
            f"{theirs}; data: {ours}): use the same type of gene identifiers in both"
        )


def _genes_and_masks(modules: Modules, names: Iterable[object] | None, by_sign: bool | None) -> tuple[Array, Bools]:
    """All genes, and a row per module."""
    if is_model(modules):
        modules = fitted_model(modules)
        known = modules.names_["columns"] if names is None else np.asarray(names, dtype=object)
        if known is None:
            raise InputError("the model was fitted to an array: give the names of the genes (names=...)")
        if known.size != modules.n_features_in_:
            raise InputError(f"{known.size:,} names are given but the model has {modules.n_features_in_:,} genes")
        return _distinct_names(known), modules.columns_
    if by_sign:
        raise InputError("by_sign=True needs a fitted model: lists of genes have no signs")
    if names is None:
        raise InputError("give the names of all genes (names=...): they are the background of the test")
    if np.asarray(names).dtype.kind in "iu":  # Entrez ids: members are names too, not positions
        modules = [[str(member) for member in module] for module in modules]
    genes = _distinct_names(names)
    return genes, masks_over(modules, genes.size, genes, "list of names")


def _by_side(modules: Modules, masks: Bools, by_sign: bool | None) -> tuple[list[tuple[int, str]], Bools]:
    """The sets of genes to test: their module and side, and a row for each; positive weights come first."""
    if not is_model(modules) or by_sign is False:
        return [(module, "both") for module in range(len(masks))], masks
    tested, rows = list[tuple[int, str]](), list[Bools]()
    for module, weights in enumerate(fitted_model(modules).components_):
        sides = {"up": weights > 0, "down": weights < 0}
        if not by_sign and min(side.sum() for side in sides.values()) < FEWEST_PER_SIDE:
            sides = {"both": masks[module]}
        tested += [(module, side) for side in sides]
        rows += sides.values()
    return tested, np.array(rows, dtype=bool).reshape(len(rows), masks.shape[1])


def _distinct_names(names: Iterable[object]) -> Array:
    genes = np.array([str(name) for name in names], dtype=object)
    if (repeated := pd.Index(genes).duplicated()).any():
        raise InputError(f"gene {genes[repeated][0]!r} occurs more than once: make names unique")
    return genes


def _inside(genes: Array, masks: Bools, background: Iterable[object] | None) -> tuple[Array, Bools]:
    """The genes and modules restricted to the background."""
    if background is None:
        return genes, masks
    kept = pd.Index(genes).isin([str(name) for name in background])
    if not kept.any():
        raise InputError("none of the genes of the data is in the background: check its names")
    return genes[kept], masks[:, kept]


def _right_tails(overlaps: Array, n_genes: int, sizes: Array, n_module: Array) -> Floats:
    """P(overlap or more) for every module (rows) and term; equal cases are computed once, 1 without overlap."""
    p_values = np.ones(overlaps.shape)
    rows, columns = np.nonzero(overlaps)
    cases = np.column_stack([overlaps[rows, columns], sizes[columns], n_module[rows]])
    distinct, inverse = np.unique(cases, axis=0, return_inverse=True)
    tails = hypergeom.sf(distinct[:, 0] - 1, n_genes, distinct[:, 1], distinct[:, 2])
    p_values[rows, columns] = np.asarray(tails, dtype=np.float64)[inverse.ravel()]
    return p_values


def _not_redundant(members: sp.csr_array, jaccard: float) -> list[int]:
    """Rows whose Jaccard index with each earlier row that is kept is below a limit."""
    sizes = np.diff(members.indptr)
    shared = (members @ members.T).toarray()
    kept, covered = [], np.zeros(len(sizes), dtype=bool)
    for at in range(len(sizes)):
        if not covered[at]:
            kept.append(at)
            covered |= shared[at] >= jaccard * (sizes[at] + sizes - shared[at])
    return kept
