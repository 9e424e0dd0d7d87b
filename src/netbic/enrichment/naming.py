"""Names of modules: a gene set that stands for the module, or its leading genes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.errors import InputError, one_line
from netbic.estimators import fitted_model, heaviest, is_model, names_of
from netbic.storage import sides_of

LEVEL: Final = 0.05  # largest adjusted p-value of a gene set that gives a module its name
# A set that stands for the module has at least so many of its genes. In tumours, sets with a smaller share were found
# on the side of a few genes, or say nothing about the leading ones.
FEWEST_GENES: Final = 5
SMALLEST_SHARE: Final = 0.15  # of the genes of the module
ONE_SIDE: Final = 0.8  # share of these genes that are on the same side
_N_GENES = 3
_LONGEST_SET, _LONGEST_GENE = 60, 30  # characters
_NEEDED = ("module", "term", "q_value")


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
    modules : fitted model, table of `netbic.io.modules_table`, or list of lists of gene names
        The genes of a list are ordered by decreasing weight; all are on the same side.
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
    members = _members(modules)
    titles = _titles(members, gene_sets_table)
    return _distinct([_name(own, title) for own, title in zip(members, titles, strict=True)])


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
    return ["" if title is None else title.text for title in _titles(_members(modules), gene_sets_table)]


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


class _Title(NamedTuple):
    """A gene set that stands for a module: its name with the direction, and its genes there, by decreasing weight."""

    text: str
    genes: list[str]


def _titles(members: list[Genes], table: pd.DataFrame | None) -> list[_Title | None]:
    """The title of each module that has one; no two modules have the same."""
    if table is None:
        return [None] * len(members)
    if missing := [name for name in _NEEDED if name not in table]:
        raise InputError(f"the table of gene sets has no column {missing[0]!r}: give what enrichment.gene_sets returns")
    known = table[table["q_value"] <= LEVEL]
    known = known.sort_values([name for name in ("q_value", "p_value") if name in known], kind="stable")
    titles, taken = list[_Title | None](), set[str]()
    for number, own in enumerate(members):
        found = _candidates(own, known[known["module"] == number])
        title = next((each for each in found if each.text not in taken), None)
        titles.append(title)
        taken |= set() if title is None else {title.text}
    return titles


def _candidates(genes: Genes, sets: pd.DataFrame) -> Iterator[_Title]:
    """The gene sets that contain enough of the genes of a module, all or nearly all on one side; the best one first."""
    names, sides = genes["name"].astype(str).to_numpy(), genes["side"].to_numpy()
    for row in sets.fillna({"name": "", "genes": ""}).to_dict("records"):
        of_set = np.isin(names, str(row.get("genes", "")).split(", "))
        side = _main_side(sides[of_set])
        own = of_set & (sides == side)
        if own.sum() < max(FEWEST_GENES, SMALLEST_SHARE * len(genes), ONE_SIDE * of_set.sum()):
            continue
        text = str(row.get("name", "")).strip() or str(row["term"])
        yield _Title(_short(text, _LONGEST_SET) + " (down)" * (side == "down"), names[own].tolist())


def _main_side(sides: NDArray[Any]) -> str:
    """The side of most genes."""
    return max(("up", "down", ""), key=lambda side: int((sides == side).sum()))


def _name(genes: Genes, title: _Title | None) -> str:
    own = genes["name"].tolist() if title is None else title.genes
    leading = ", ".join(_short(gene, _LONGEST_GENE) for gene in own[:_N_GENES])
    return leading or "no genes" if title is None else f"{title.text}: {leading}"


def _short(text: object, longest: int) -> str:
    """Text in one line, cut if it is long."""
    plain = " ".join(one_line(str(text)).split())
    return plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _distinct(names: list[str]) -> list[str]:
    """The names; those that occur again are numbered."""
    distinct: dict[str, None] = {}
    for name in names:
        number, own = 1, name
        while own in distinct:
            number += 1
            own = f"{name} ({number})"
        distinct[own] = None
    return list(distinct)
