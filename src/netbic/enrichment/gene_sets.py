"""Gene sets: those that share more genes with a module than expected by chance, names after them, and result files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats

from netbic.arrays import Array, Bools, Floats, Matrix, RandomState, kind_of
from netbic.enrichment.edges import (
    Modules,
    adjust_p_values,
    column_traits,
    edge_table,
    masks_over,
    stored_traits,
)
from netbic.errors import InputError, one_line
from netbic.estimators.inputs import check_same_data
from netbic.estimators.parameters import is_number
from netbic.estimators.results import heaviest, names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.files import add_files, json_bytes, read_bytes, read_json, table_bytes
from netbic.identifiers import explain_mismatch, hardly_match
from netbic.io.samples import GeneSets, read_gene_sets
from netbic.storage.models import PairModel, fitted_pair_model, is_pair_model, npz_arrays, npz_bytes
from netbic.storage.tables import SIDES, feature_names, read_results_table, sides_of

Sets = Mapping[str, Iterable[str]]  # term to genes

FEWEST_PER_SIDE: Final = 10  # genes that both sides of a module need to be tested separately
_COLUMNS = ["module", "term", "name", "n_overlap", "n_module", "n_term", "fold_change", "p_value", "q_value", "genes"]
SIZES: Final = (10, 500)  # genes of the data in the sets that are tested
DEFAULT_LEVEL: Final = 0.05  # largest adjusted p-value of a gene set that is written, or gives a module its name
# A set that stands for the module has at least so many of its genes. In tumours, sets with a smaller share were found
# on the side of a few genes, or say nothing about the leading ones.
FEWEST_GENES: Final = 5
SMALLEST_SHARE: Final = 0.15  # of the genes of the module
ONE_SIDE: Final = 0.8  # share of these genes that are on the same side
_NAMING = ["module", "term", "name", "q_value", "p_value", "genes"]
_N_GENES, _N_OF_SIDE = 3, 2  # in the names of modules, and of either side of a pair
_LONGEST_SET, _LONGEST_GENE = 60, 30  # characters
RECORD, MOMENTS = "enrichment.json", "gene_moments.npz"


def gene_sets(
    modules: Modules,
    gene_sets: Sets | Path | str,
    *,
    names: Iterable[object] | None = None,
    background: Iterable[object] | None = None,
    min_size: int = SIZES[0],
    max_size: int = SIZES[1],
    by_sign: bool | None = None,
    collapse: float | None = None,
) -> pd.DataFrame:
    """Test modules for gene sets that are over-represented in them (hypergeometric, right tail).

    Parameters
    ----------
    modules : fitted model, or list of gene names, index arrays or boolean masks over `names`
        Of a model of two tables, both sides of every pair are tested, each among the features of its table. A table of
        which no feature is in a set is left out.
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

    Returns
    -------
    DataFrame
        `module`, `term`, `name`, `n_overlap`, `n_module`, `n_term`, `fold_change`, `p_value`, `q_value`
        (Benjamini-Hochberg over all terms tested in these genes, including those without overlap), `genes`, and
        `side`: the genes that were tested, "up", "down" or "both" (all genes of the module, of which there are
        `n_module`). Only terms with an overlap are listed, most significant first within each module and side. Of a
        model of two tables, `pair` and `table` stand for `module`.

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
    sets = read_gene_sets(gene_sets) if isinstance(gene_sets, (str, Path)) else gene_sets
    options: dict[str, Any] = {"min_size": min_size, "max_size": max_size, "by_sign": by_sign, "collapse": collapse}
    universe = None if background is None else [str(name) for name in background]
    if is_pair_model(modules):
        if names is not None:
            raise InputError("names are for modules of one table: fit the model to tables with names instead")
        return _sets_of_pairs(fitted_pair_model(modules), sets, universe, options)
    return _tests(*_tested_genes(modules, names, by_sign), sets, universe, **options)


def _sets_of_pairs(model: PairModel, sets: Sets, background: list[str] | None, options: dict[str, Any]) -> pd.DataFrame:
    """The tests of both sides of every pair; of tables that `untested_tables` names, there are none."""
    names = {table: feature_names(model, side) for side, table in zip(SIDES, model.table_names_, strict=True)}
    inside = names if background is None else {table: own[np.isin(own, background)] for table, own in names.items()}
    untested = untested_tables(sets, inside, (options["min_size"], options["max_size"]))
    parts = list[pd.DataFrame]()
    for side, (table, own) in zip(SIDES, names.items(), strict=True):
        if table in untested:
            continue
        genes = unique_names(own)
        weights = getattr(model, f"{side}_weights_").T
        found = _tests(genes, *_signed_sides(weights, options["by_sign"]), sets, background, **options)
        parts.append(found.rename(columns={"module": "pair"}).assign(table=table))
    joined = pd.concat(parts, ignore_index=True).sort_values("pair", kind="stable", ignore_index=True)
    return joined[["pair", "table", *(name for name in joined if name not in ("pair", "table"))]]


def _tests(
    genes: Array,
    tested: list[tuple[int, str]],
    masks: Bools,
    sets: Sets,
    background: list[str] | None,
    *,
    min_size: int,
    max_size: int,
    by_sign: bool | None,
    collapse: float | None,
) -> pd.DataFrame:
    """The tests of some sides of modules: a row of `masks` over the genes for each number and side in `tested`."""
    if background is not None:
        inside = pd.Index(genes).isin(background)
        if not inside.any():
            raise InputError("none of the genes of the data is in the background: check its names")
        genes, masks = genes[inside], masks[:, inside]
    labels, members = _tested_sets(sets, genes, min_size, max_size)
    descriptions = sets.names if isinstance(sets, GeneSets) else {}
    titles = np.array([descriptions.get(label, label) for label in labels], dtype=object)
    sizes, n_modules = np.diff(members.indptr), masks.sum(axis=1)
    overlaps = np.asarray((sp.csr_array(masks.astype(np.int32)) @ members.T).toarray(), dtype=np.int64)
    p_values, tables = _right_tails(overlaps, genes.size, sizes, n_modules), []
    for row, (module, side) in enumerate(tested):
        order = np.lexsort((-overlaps[row], p_values[row]))  # most significant first
        order = order[overlaps[row, order] > 0]
        shared = sp.csr_array(members[order].multiply(masks[row].astype(np.int32)[None, :]))
        shared.eliminate_zeros()
        if collapse is not None:
            kept = _not_redundant(shared, collapse)
            order, shared = order[kept], shared[kept]
        shared.sort_indices()
        shared_names = genes[shared.indices].tolist()
        table = {
            "module": module,
            **({"sign": 1 if side == "up" else -1} if by_sign else {}),
            "term": labels[order],
            "name": titles[order],
            "n_overlap": overlaps[row, order],
            "n_module": int(n_modules[row]),
            "n_term": sizes[order],
            "fold_change": overlaps[row, order] * genes.size / (sizes[order] * max(int(n_modules[row]), 1)),
            "p_value": p_values[row, order],
            "q_value": adjust_p_values(p_values[row])[order],
            "genes": [", ".join(shared_names[start:end]) for start, end in pairwise(shared.indptr.tolist())],
            "side": side,
        }
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*_COLUMNS, "side"])


def check_sizes(sets: Sets, genes: Iterable[object]) -> None:
    """An error if none of the sets has as many genes of the data as a set that is tested by default."""
    known = set(map(str, genes))
    if not any(SIZES[0] <= len(known.intersection(own)) <= SIZES[1] for own in sets.values()):
        sizes = [len(known.intersection(own)) for own in sets.values()]
        raise InputError(
            f"none of the {len(sizes):,} gene sets has {SIZES[0]} to {SIZES[1]} genes in the data, as sets that are "
            f"tested (they have {min(sizes)} to {max(sizes)}): give other sets"
        )


def untested_tables(sets: Sets, names: Mapping[str, Iterable[object]], size: tuple[int, int] = SIZES) -> dict[str, str]:
    """The tables, of which `names` has the features, that have no set of a size to test, and why; an error if all are.

    Examples
    --------
    >>> untested_tables({"A": ["g1", "g2"]}, {"RNA": ["g1", "g2", "g3"], "lipids": ["C16:0"]}, (2, 500))
    {'lipids': 'lipids: no feature is in a gene set, so they are not tested'}
    """
    found, known = dict[str, str](), {str(gene) for genes in sets.values() for gene in genes}
    features = {table: set(map(str, own)) for table, own in names.items()}
    for table, own in features.items():
        sizes = [len(own.intersection(map(str, genes))) for genes in sets.values()]
        if own.isdisjoint(known):
            found[table] = f"{table}: no feature is in a gene set, so they are not tested"
        elif not any(size[0] <= number <= size[1] for number in sizes):
            has = f"none of the {len(sizes):,} gene sets has {size[0]} to {size[1]} of its {len(own):,} features"
            found[table] = f"{table}: {has} (they have {min(sizes)} to {max(sizes)}), so they are not tested"
    if len(found) < len(features):
        return found
    if not any(known & own for own in features.values()):
        theirs = ", ".join(map(repr, sorted(known)[:3]))
        ours = "; ".join(f"{table}: {', '.join(map(repr, sorted(own)[:3]))}, ..." for table, own in features.items())
        raise InputError(
            f"no feature of either table is in the {len(sets):,} gene sets (sets: {theirs}, ...; {ours}): use the same "
            "type of gene identifiers in both"
        )
    raise InputError(f"neither table can be tested with these gene sets ({'; '.join(found.values())}): give other sets")


def _tested_sets(sets: Sets, genes: Array, min_size: int, max_size: int) -> tuple[Array, sp.csr_array]:
    """The sets that have a size to test: their identifiers, and a sparse matrix of sets by genes."""
    labels = np.array(list(sets), dtype=object)
    given = [tuple(sets[label]) for label in labels]
    flat = list(map(str, chain.from_iterable(given)))
    position = {gene: at for at, gene in enumerate(genes)}
    columns = np.fromiter(map(position.get, flat, repeat(-1)), np.intp, len(flat))
    known = columns >= 0
    if not known.any():
        theirs, ours = (", ".join(map(repr, map(str, some[:5]))) for some in (flat, genes))
        why = explain_mismatch(genes, flat, ("data", "gene sets")).text()
        raise InputError(
            f"none of the genes of the {len(labels):,} gene sets is among the {genes.size:,} genes of the data (data: "
            f"{ours}; gene sets: {theirs}). {why}"
        )
    rows = np.repeat(np.arange(len(labels)), list(map(len, given)))[known]
    members = sp.csr_array((np.ones(rows.size, dtype=np.int32), (rows, columns[known])), (len(labels), genes.size))
    members.data[:] = 1  # a gene that is listed twice
    sizes = np.diff(members.indptr)
    tested = np.flatnonzero((sizes >= min_size) & (sizes <= max_size))
    if not tested.size:
        remedy = "change min_size or max_size"
        if hardly_match(int(members.nnz), len(set(flat)), genes.size):
            remedy += f". {explain_mismatch(genes, flat, ('data', 'gene sets')).text()}"
        raise InputError(
            f"none of {len(labels):,} gene sets has {min_size} to {max_size} genes among the {genes.size:,} of the "
            f"background (sizes there run from {sizes.min()} to {sizes.max()}): {remedy}"
        )
    return labels[tested], members[tested]


def _tested_genes(
    modules: Modules, names: Iterable[object] | None, by_sign: bool | None
) -> tuple[Array, list[tuple[int, str]], Bools]:
    """All genes, and what is tested: module and side ("up", positive weights, comes first), and a row of genes each."""
    if kind_of(modules) == "anndata":
        raise InputError("an AnnData object was given: netbic.tl.enrich(adata, gene_sets) tests its modules")
    model = fitted_model(modules) if is_model(modules) else None
    if model is None and by_sign:
        raise InputError("by_sign=True needs a fitted model: lists of genes have no signs")
    if model is not None and names is None:
        names = model.names_["columns"]
    if names is None:
        of_array = "the model was fitted to an array: " * (model is not None)
        raise InputError(f"{of_array}give the names of all genes (names=...): they are the background of the test")
    genes = unique_names(names)
    if model is not None and genes.size != model.n_features_in_:
        raise InputError(f"{genes.size:,} names are given but the model has {model.n_features_in_:,} genes")
    if model is None:
        if np.asarray(names).dtype.kind in "iu":  # Entrez ids: members are names too, not positions
            modules = [[str(member) for member in module] for module in modules]
        masks = masks_over(modules, genes.size, genes, "list of names")
        return genes, [(module, "both") for module in range(1, len(masks) + 1)], masks
    return genes, *_signed_sides(model.components_, by_sign)


def unique_names(names: Iterable[object]) -> Array:
    """Names of genes as text; an error if two are the same."""
    genes = np.array([str(name) for name in names], dtype=object)
    if (repeated := pd.Index(genes).duplicated()).any():
        raise InputError(f"gene {genes[repeated][0]!r} occurs more than once: make names unique")
    return genes


def _signed_sides(components: Array, by_sign: bool | None) -> tuple[list[tuple[int, str]], Bools]:
    """What is tested of each row of weights: its number and side, and a row of genes for each."""
    tested, rows = list[tuple[int, str]](), list[Bools]()
    for module, weights in enumerate(components, start=1):
        sides = {"up": weights > 0, "down": weights < 0}
        few = min(side.sum() for side in sides.values()) < FEWEST_PER_SIDE
        if by_sign is False or (few and not by_sign):
            sides = {"both": weights != 0}
        tested += [(module, side) for side in sides]
        rows += sides.values()
    return tested, np.array(rows, dtype=bool).reshape(len(rows), components.shape[1])


def _right_tails(overlaps: Array, n_genes: int, sizes: Array, n_module: Array) -> Floats:
    """P(overlap or more) for every module (rows) and term; 1 without overlap."""
    p_values = np.ones(overlaps.shape)
    rows, columns = np.nonzero(overlaps)
    p_values[rows, columns] = hypergeometric_tail(overlaps[rows, columns], n_genes, sizes[columns], n_module[rows])
    return p_values


def hypergeometric_tail(least: Array, n: int, marked: Array, drawn: Array) -> Floats:
    """P(`least` or more marked members among those `drawn` from n without replacement), for many cases at once.

    `scipy.stats.hypergeom.sf` has the same values and takes 50 times as long: it computes the first probability from
    the prime factors of all factorials. Here it is a product of binomial probabilities with the same mean, and the
    others follow from the ratios of neighbours.

    >>> float(hypergeometric_tail(np.array([2]), 5, np.array([2]), np.array([2]))[0].round(12))
    0.1
    """
    # Tails that begin below the mode are one minus the tail of the members without a mark, so that all terms decrease.
    below = least * (n + 2.0) <= (marked + 1.0) * (drawn + 1.0)
    number, marked = np.where(below, drawn - least + 1, least), np.where(below, n - marked, marked)
    share, total, term = drawn / n, np.ones(number.shape), np.ones(number.shape)
    first = stats.binom.pmf(number, marked, share) * stats.binom.pmf(drawn - number, n - marked, share)
    cases, k = np.arange(number.size), number.astype(np.float64)
    while cases.size:
        at, free, left = k[cases], marked[cases], drawn[cases]
        term[cases] *= (free - at) * (left - at) / ((at + 1) * (n - free - left + at + 1))
        total[cases] += term[cases]
        k[cases] += 1
        cases = cases[term[cases] > np.finfo(float).eps / 8 * total[cases]]
    tail = first * total / stats.binom.pmf(drawn, n, share)
    return np.where(below, 1 - tail, tail)


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


# Names of modules


def module_names(modules: Any, gene_sets_table: pd.DataFrame | None = None) -> list[str]:
    """Name modules after a gene set that stands for them, or after their leading genes.

    A module is called like "nuclear division: CDK1, AURKB, BUB1" after the most significant gene set

    - with an adjusted p-value of at most 0.05,
    - that contains at least five genes and 15 % of the genes of the module,
    - of which at least 80 % are on the same side (have weights of the same sign); only these are counted.

    The genes are the three of the set with the largest absolute weights on this side. "(down)" is added to the set if
    this is the side of negative weights: these genes are low in samples that are up. A set that already names an
    earlier module is not used again; the next one is. All other modules are called after the three genes with the
    largest absolute weights.

    Parameters
    ----------
    modules : fitted model, table of `netbic.storage.modules_table`, or list of lists of gene names
        The genes of a list are ordered by decreasing weight; all are on the same side. A pair of two tables is called
        after both sides, "nuclear division with C16.0, C18.0", or once if both have the same name.
    gene_sets_table : DataFrame, optional
        The result of `netbic.enrichment.gene_sets`, or the content of gene_sets.tsv. Sets whose genes are not listed
        (in the column `genes`) name no module.

    Returns
    -------
    list of str
        A name for each module, in their order; all are different.

    Examples
    --------
    >>> import netbic
    >>> genes = [["CDK1", "AURKB", "BUB1", "PLK1", "CCNB1", "TTK"], ["CD3D", "CD3E"]]
    >>> sets = {"GO:1": ["CDK1", "AURKB", "BUB1", "PLK1", "CCNB1"]}
    >>> names = [*genes[0], *genes[1], *"abcdefghijklmnopq"]
    >>> table = netbic.enrichment.gene_sets(genes, sets, names=names, min_size=2)
    >>> netbic.enrichment.module_names(genes, table)
    ['GO:1: CDK1, AURKB, BUB1', 'CD3D, CD3E']
    """
    names: dict[str, None] = {}
    for first in _first_names(modules, gene_sets_table):
        name, number = first, 1
        while name in names:
            number += 1
            name = f"{first} ({number})"
        names[name] = None
    return list(names)


def _first_names(modules: Any, table: pd.DataFrame | None) -> Iterator[str]:
    """The names of modules or pairs, which may be equal."""
    if is_pair_model(modules):
        model, sides = fitted_pair_model(modules), list[Iterable[str]]()
        for side, name in zip(SIDES, model.table_names_, strict=True):
            own = None if table is None else table[table["table"] == name].rename(columns={"pair": "module"})
            members = _members_of(getattr(model, f"{side}_weights_").T, feature_names(model, side))
            sides.append(_side_names(members, own))
        for one, other in zip(*sides, strict=True):
            yield one if one == other else f"{one} with {other}"
        return
    members = _members(modules)
    for own, title in zip(members, _titles(members, table), strict=True):
        text, genes = title or ("", own["name"].tolist())
        leading = _leading(genes, _N_GENES)
        yield f"{text}: {leading}" if text else leading or "no genes"


def _side_names(members: list[pd.DataFrame], table: pd.DataFrame | None) -> Iterator[str]:
    """Short names of one side of each pair: a gene set, or the first features."""
    for own, title in zip(members, _titles(members, table), strict=True):
        yield title[0] if title else _leading(own["name"].tolist(), _N_OF_SIDE) or "no features"


def _leading(names: list[Any], n: int) -> str:
    return ", ".join(_short(name, _LONGEST_GENE) for name in names[:n])


def naming_sets(modules: Any, gene_sets_table: pd.DataFrame | None = None) -> list[str]:
    """The gene sets in the names of modules, without genes; "" for a module that is called after its leading genes.

    Parameters
    ----------
    modules, gene_sets_table : as for `module_names`

    Examples
    --------
    >>> import netbic
    >>> netbic.enrichment.naming_sets([["CDK1", "AURKB"]])
    ['']
    """
    return ["" if title is None else title[0] for title in _titles(_members(modules), gene_sets_table)]


def _members(modules: Any) -> list[pd.DataFrame]:
    """The genes of each module by decreasing weight: columns `name` and `side`."""
    if is_model(modules):
        model = fitted_model(modules)
        return _members_of(model.components_, names_of(model, "columns"))
    if not isinstance(modules, pd.DataFrame):
        return [pd.DataFrame({"name": list(genes), "side": ""}) for genes in modules]
    if missing := [name for name in ("module", "axis", "name", "weight") if name not in modules]:
        raise InputError(
            f"the table of modules has no column {missing[0]!r}: give what netbic.storage.modules_table returns"
        )
    genes = modules[modules["axis"] != "sample"]
    genes = genes.assign(side=sides_of(genes["weight"].to_numpy(dtype=float)))
    genes = genes.iloc[np.argsort(-genes["weight"].abs().to_numpy(dtype=float), kind="stable")]
    n_modules = 0 if modules.empty else int(modules["module"].max())
    return [genes.loc[genes["module"] == number, ["name", "side"]] for number in range(1, n_modules + 1)]


def _members_of(components: Array, names: Array) -> list[pd.DataFrame]:
    """The same for rows of weights."""
    return [
        pd.DataFrame({"name": names[own], "side": sides_of(vector[own])})
        for vector in components
        for own in [heaviest(vector)]
    ]


def shared_names(model: PairModel) -> pd.DataFrame | None:
    """How many features of Y in each pair have the name of a feature of X in the pair: proteins and their genes.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Fitted to tables with names.

    Returns
    -------
    DataFrame or None
        A row per pair: `pair`, `n_same_name`, `expected_same_name` (features of either side are drawn at random from
        those whose names are in both tables) and `same_name_p_value` (hypergeometric, right tail). None if the tables
        have no name in common.

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> random, genes = np.random.default_rng(0), [f"gene {k}" for k in range(60)]
    >>> rna = pd.DataFrame(random.standard_normal((50, 60)), columns=genes)
    >>> rna.iloc[:, :6] += 2 * random.standard_normal((50, 1))
    >>> protein = rna.iloc[:, :30] + random.standard_normal((50, 30))
    >>> model = netbic.SparseGraphCCA(1, n_x=6, n_y=6).fit(rna, protein)
    >>> shared_names(model).round(3).to_dict("records")
    [{'pair': 1, 'n_same_name': 6, 'expected_same_name': 1.2, 'same_name_p_value': 0.0}]
    """
    model = fitted_pair_model(model)
    known = [names for side in SIDES if (names := model.names_[side]) is not None]
    if len(known) < len(SIDES):
        return None
    one, other = (pd.Index(names.astype(str)) for names in known)
    both = one[one.isin(other)].unique()
    if both.empty:
        return None
    counts = []
    for x, y in zip(model.x_support_, model.y_support_, strict=True):
        inside = both.isin(one[x]), both.isin(other[y])
        counts.append([int(mask.sum()) for mask in (*inside, inside[0] & inside[1])])
    first, second, same = np.array(counts, dtype=np.int64).reshape(-1, 3).T
    p_values = np.ones(len(same))
    found = same > 0
    p_values[found] = hypergeometric_tail(same[found], len(both), first[found], second[found])
    return pd.DataFrame(
        {
            "pair": np.arange(1, len(same) + 1),
            "n_same_name": same,
            "expected_same_name": first * second / len(both),
            "same_name_p_value": np.clip(p_values, 0, 1),
        }
    )


def shared_sentence(row: Mapping[Any, Any], names: tuple[str, str]) -> str:
    """`shared_names` of a pair in words; "" if the tables have no name in common. `names` are those of the tables."""
    if not row.get("expected_same_name", 0) > 0:
        return ""
    of_second = f"{int(row['n_same_name'])} of {int(row['n_features_2'])} features of {names[1]}"
    chance = f"{row['expected_same_name']:.2g} expected by chance, p = {row['same_name_p_value']:.1g}"
    have = "has" if row["n_same_name"] == 1 else "have"
    return f"{of_second} {have} the name of a feature of {names[0]} in the pair ({chance})"


def _titles(members: list[pd.DataFrame], table: pd.DataFrame | None) -> list[tuple[str, list[str]] | None]:
    """The gene set that stands for each module: its name with the direction, and its genes there, largest weight first.

    It contains enough of the genes of the module, all or nearly all on one side. No two modules have the same one.
    """
    if table is None:
        return [None] * len(members)
    if missing := [name for name in ("module", "term", "q_value") if name not in table]:
        raise InputError(f"the table of gene sets has no column {missing[0]!r}: give what enrichment.gene_sets returns")
    known = table[table["q_value"] <= DEFAULT_LEVEL].reindex(columns=_NAMING).fillna({"name": "", "genes": ""})
    known = known.sort_values(["q_value", "p_value"], kind="stable")
    titles: list[tuple[str, list[str]] | None] = [None] * len(members)
    taken = set[str]()
    for module, genes in enumerate(members):
        names, sides = list(map(str, genes["name"])), genes["side"].to_numpy()
        fewest = max(FEWEST_GENES, SMALLEST_SHARE * len(genes))
        own_sets = known[known["module"] == module + 1]
        for term, name, listed in own_sets[["term", "name", "genes"]].itertuples(index=False, name=None):
            of_set = set(str(listed).split(", "))
            if len(of_set) < fewest:
                continue
            inside = np.array([name in of_set for name in names])
            side = max(("up", "down", ""), key=lambda side: int((sides[inside] == side).sum()))
            own = inside & (sides == side)
            text = _short(str(name).strip() or str(term), _LONGEST_SET) + " (down)" * (side == "down")
            if own.sum() >= max(fewest, ONE_SIDE * inside.sum()) and text not in taken:
                titles[module] = text, [names[at] for at in np.flatnonzero(own)]
                taken.add(text)
                break
    return titles


def _short(text: object, longest: int) -> str:
    """Text in one line, cut if it is long."""
    plain = " ".join(one_line(str(text)).split())
    return plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


# Result files


def write_enrichment(
    model: SparseGraphSVD | PairModel,
    folder: Path,
    sets: Sets | Path | str | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    by_sign: bool | None = None,
    collapse: float | None = None,
    X: Matrix | None = None,
    random_state: RandomState = None,
) -> Iterator[str]:
    """Write edges.tsv (if the model has a graph) and gene_sets.tsv (if sets are given); yield a summary of each.

    The options go to enrichment.json, for the report. Everything is read and tested before anything is written, and all
    files appear at the same time, so that an invalid file of gene sets or a full disk leaves the folder unchanged. If a
    file of one of these names was not written by netbic, an error is raised.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted, with names. Edges are tested in modules of one table only.
    folder : path
    sets : mapping or path of a GMT file, optional
    level : float
        Gene sets with a larger adjusted p-value are not written; up to it, modules count as enriched in edges.
    by_sign, collapse
        See `gene_sets`.
    X : matrix, optional
        The data the model was fitted to. Random sets of genes are then matched on mean and variance as well as degree,
        and both are stored in gene_moments.npz for later tests in the same folder. Without it, on what that file or
        the model knows.
    random_state : None, int or numpy.random.Generator
        For the matched sets.
    """
    if is_pair_model(model):
        if sets is not None:
            yield from _write_sets_of_pairs(model, folder, sets, level, by_sign, collapse)
        return
    model = fitted_model(model)
    graph = model.graphs_["columns"]
    if graph is None and sets is None:
        yield "no network and no gene sets: no enrichment to test"
        return
    tables: dict[str, pd.DataFrame] = {}
    files: dict[str, bytes] = {}
    options: dict[str, dict[str, Any]] = {}
    summaries = list[str]()
    if graph is not None:
        if X is not None:
            check_same_data(model, X)
            traits = column_traits(X)
            files[MOMENTS] = npz_bytes(traits)
        else:
            path, known = folder / MOMENTS, dict[str, Any]()
            if path.is_file():
                known = npz_arrays(path, read_bytes(path))
            traits = {name: np.asarray(known[name]) for name in ("mean", "variance") if name in known}
            if not traits or any(values.shape != (model.n_features_in_,) for values in traits.values()):
                traits = stored_traits(model)
        # The paper's test, and in further columns the comparison with matched sets.
        table = edge_table(model.columns_, graph, "hypergeometric", {}).drop(columns="matched_on")
        matched = edge_table(model.columns_, graph, "matched", traits, random_state=random_state)
        for name in ("expected", "fold_change", "p_value", "q_value", "matched_on"):
            table[f"degree_{name}"] = matched[name]
        tables["edges"], options["edges"] = table, {"level": level}
        others = max(table["degree_matched_on"], key=len, default="degree").split(", ")[1:]
        similar = "as many neighbours" + (f" and a similar {' and '.join(others)}" if others else "")
        summaries.append(
            f"edges.tsv: in {(table['degree_q_value'] <= level).sum()} of {len(table)} modules, the genes have more "
            f"edges with each other than random genes with {similar} (q <= {level:g})"
            f"{'; this is not independent evidence, because the fit used this network' * fit_used_graph(model)}"
        )
    if sets is not None:
        found = gene_sets(model, sets, by_sign=by_sign, collapse=collapse)
        tables["gene_sets"] = found = found[found["q_value"] <= level]
        options["gene_sets"] = {"level": level, "by_sign": by_sign, "collapse": collapse}
        summaries.append(_sets_line(found, "module", level, read_results_table(folder, "verdicts")))
    files[RECORD] = json_bytes(dict(sorted((enrichment_record(folder) | options).items())))
    files |= {f"{name}.tsv": table_bytes(folder / f"{name}.tsv", table) for name, table in tables.items()}
    add_files(folder, files)
    yield from summaries


def _sets_line(found: pd.DataFrame, unit: str, level: float, judged: pd.DataFrame | None) -> str:
    """How many sets are enriched, and how many of them in doubtful modules or pairs, by a table of verdicts."""
    n_sets, n_units = len(found), found[unit].nunique()
    enriched = f"{n_sets:,} enriched gene set{'s' * (n_sets != 1)} in {n_units} {unit}{'s' * (n_units != 1)}"
    n_doubtful = 0
    if judged is not None and "verdict" in judged:
        n_doubtful = int(found[unit].isin(judged.loc[judged["verdict"] == "doubtful", unit]).sum())
    which = f", {'all' if n_doubtful == n_sets else f'{n_doubtful:,}'} of them in doubtful {unit}s"
    return f"gene_sets.tsv: {enriched} (q <= {level:g}){which * (n_doubtful > 0)}"


def _write_sets_of_pairs(
    model: PairModel, folder: Path, sets: Sets | Path | str, level: float, by_sign: bool | None, collapse: float | None
) -> Iterator[str]:
    """gene_sets.tsv of pairs, with the columns `pair` and `table`; yield how many sets there are in each table."""
    sets = sets if isinstance(sets, Mapping) else read_gene_sets(sets)
    tested = gene_sets(model, sets, by_sign=by_sign, collapse=collapse)
    found = tested[tested["q_value"] <= level]
    options = {"gene_sets": {"level": level, "by_sign": by_sign, "collapse": collapse}}
    contents = {"gene_sets.tsv": table_bytes(folder / "gene_sets.tsv", found)}
    add_files(folder, contents | {RECORD: json_bytes(enrichment_record(folder) | options)})
    yield _sets_line(found, "pair", level, read_results_table(folder, "pairs", "pair"))
    names = {table: feature_names(model, side) for side, table in zip(SIDES, model.table_names_, strict=True)}
    yield from untested_tables(sets, names).values()


def fit_used_graph(model: SparseGraphSVD) -> bool:
    """Whether the graph of the columns had an influence on the modules: by its weight, or by diffusion of the data.

    The weight that was used counts, not the one that was asked for: cross-validation may choose no diffusion, and a
    penalty may choose a weight of 0 for every module.
    """
    if model.column_graph is None or model.diffusion_ > 0:
        return model.column_graph is not None
    not_in_search = model.diffusion is not None and model.column_smoothness is None
    if not_in_search or model.column_smoothness == 0:
        return False
    weights = model.diagnostics_["graph_weight"]
    return bool((weights.isna() | (weights > 0)).any())


def enrichment_record(folder: Path) -> dict[str, dict[str, Any]]:
    """The options for the tables of a folder, "edges" and "gene_sets"; empty if they are not known."""
    try:
        content = read_json(folder / RECORD)
    except InputError:
        return {}
    known = content if isinstance(content, dict) else {}
    return {name: each for name, each in known.items() if isinstance(each, dict) and is_number(each.get("level"))}
