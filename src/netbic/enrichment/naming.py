"""Names of modules: the best gene set and its leading genes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.errors import InputError, one_line
from netbic.estimators import fitted_model, heaviest, is_model, names_of
from netbic.storage import sides_of

LEVEL: Final = 0.05  # largest adjusted p-value of a gene set that gives a module its name
_N_GENES = 3
_LONGEST_SET, _LONGEST_GENE = 60, 30  # characters
_NEEDED = ("module", "term", "q_value")


def module_names(modules: Any, gene_sets_table: pd.DataFrame | None = None) -> list[str]:
    """Name modules after their most significant gene set and their leading genes.

    A module whose best gene set has an adjusted p-value of at most 0.05 is called like "nuclear division: CDK1, AURKB,
    BUB1": the three genes of the set with the largest absolute weights on the side of the module in which the set was
    found (of all genes on that side, if the table does not list the genes of the set). If this is the side of negative
    weights, "(down)" is added to the set: these genes are low in samples that are up. Other modules are called after
    the three genes with the largest absolute weights.

    Parameters
    ----------
    modules : fitted model, table of `netbic.io.modules_table`, or list of lists of gene names
        The genes of a list are ordered by decreasing weight.
    gene_sets_table : DataFrame, optional
        The result of `netbic.enrichment.gene_sets`, or the content of gene_sets.tsv.

    Returns
    -------
    list of str
        A name for each module, in their order; all are different. The name of a module depends on no other module,
        except that a name that occurs again gets a number.

    Examples
    --------
    >>> import netbic
    >>> genes = [["CDK1", "AURKB", "BUB1", "PLK1"], ["CD3D", "CD3E"]]
    >>> sets = {"GO:1": ["CDK1", "AURKB", "BUB1"]}
    >>> names = ["CDK1", "AURKB", "BUB1", "PLK1", "CD3D", "CD3E", *"abcdefghijklmnopq"]
    >>> table = netbic.enrichment.gene_sets(genes, sets, names=names, min_size=2)
    >>> netbic.enrichment.module_names(genes, table)
    ['GO:1: CDK1, AURKB, BUB1', 'CD3D, CD3E']
    """
    members = _members(modules)
    best = {} if gene_sets_table is None else _best_sets(gene_sets_table)
    return _distinct(_name(own, best.get(number)) for number, own in enumerate(members))


Genes = pd.DataFrame  # the genes of a module by decreasing weight: columns `name` and `side`


def _members(modules: Any) -> list[Genes]:
    if is_model(modules):
        model = fitted_model(modules)
        names = names_of(model, "columns")
        order = [heaviest(vector) for vector in model.components_]
        return [
            pd.DataFrame({"name": names[own], "side": sides_of(vector[own])})
            for own, vector in zip(order, model.components_, strict=True)
        ]
    if isinstance(modules, pd.DataFrame):
        return _of_table(modules)
    return [pd.DataFrame({"name": list(genes), "side": ""}) for genes in modules]


def _of_table(table: pd.DataFrame) -> list[Genes]:
    if missing := [name for name in ("module", "axis", "name", "weight") if name not in table]:
        raise InputError(
            f"the table of modules has no column {missing[0]!r}: give what netbic.io.modules_table returns"
        )
    genes = table[table["axis"] == "gene"]
    genes = genes.assign(side=sides_of(genes["weight"].to_numpy(dtype=float)))
    genes = genes.iloc[np.argsort(-genes["weight"].abs().to_numpy(dtype=float), kind="stable")]
    n_modules = 0 if table.empty else int(table["module"].max()) + 1
    return [genes.loc[genes["module"] == number, ["name", "side"]] for number in range(n_modules)]


class _Set(NamedTuple):
    """A gene set found in a module: its name, the side, and its genes there (empty: unknown)."""

    text: str
    side: str
    genes: frozenset[str]


def _best_sets(table: pd.DataFrame) -> dict[int, _Set]:
    """The most significant set of each module that has one."""
    if missing := [name for name in _NEEDED if name not in table]:
        raise InputError(f"the table of gene sets has no column {missing[0]!r}: give what enrichment.gene_sets returns")
    known = table[table["q_value"] <= LEVEL]
    order = [name for name in ("q_value", "p_value") if name in known]
    best = known.sort_values(order, kind="stable").drop_duplicates("module")
    sides = best["side"] if "side" in best else pd.Series("both", index=best.index)
    texts = (
        best["name"].where(best["name"].astype(str).str.strip() != "", best["term"]) if "name" in best else best["term"]
    )
    listed = best["genes"].fillna("") if "genes" in best else pd.Series("", index=best.index)
    return {
        int(module): _Set(_short(text, _LONGEST_SET), str(side), frozenset(str(genes).split(", ")))
        for module, text, side, genes in zip(best["module"], texts, sides, listed, strict=True)
    }


def _name(genes: Genes, best: _Set | None) -> str:
    text, side, of_set = best or _Set("", "both", frozenset())
    own = genes[genes["side"] == side] if side in ("up", "down") else genes
    if (shared := own["name"].astype(str).isin(of_set)).any():
        own = own[shared]
    leading = ", ".join(_short(gene, _LONGEST_GENE) for gene in own["name"].iloc[:_N_GENES])
    if not best:
        return leading or "no genes"
    return f"{text}{' (down)' * (side == 'down')}{': ' * bool(leading)}{leading}"


def _short(text: object, longest: int) -> str:
    """Text in one line, cut if it is long."""
    plain = " ".join(one_line(str(text)).split())
    return plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _distinct(names: Iterable[str]) -> list[str]:
    """The names; those that occur again are numbered."""
    distinct: dict[str, None] = {}
    for name in names:
        number, own = 1, name
        while own in distinct:
            number += 1
            own = f"{name} ({number})"
        distinct[own] = None
    return list(distinct)
