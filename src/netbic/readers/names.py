"""Gene names: Ensembl versions, and tables that translate names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from netbic.errors import shown, unusable
from netbic.readers.characters import check_characters
from netbic.readers.matrices import NameArray
from netbic.readers.tables import read_columns
from netbic.readers.text import MISSING

ENSEMBL = re.compile(r"^ENS[A-Z]*[GTP]\d{6,}")
_VERSION = re.compile(r"(?<=\d)\.\d+$")


def without_version(name: str) -> str:
    """An Ensembl id without its version; other names unchanged."""
    return _VERSION.sub("", name) if ENSEMBL.match(name) else name


def renaming(
    strip_versions: bool, id_map: Path | str | None, genes: NameArray, nodes: NameArray | None
) -> Callable[[str], str] | None:
    """A function from the gene names of the data to those of the network; None if they are not changed."""
    if id_map is None:
        return without_version if strip_versions else None
    plain = without_version if strip_versions else str
    table = read_id_map(id_map, {plain(str(gene)) for gene in genes}, nodes, plain)
    return lambda name: table.get(plain(name), plain(name))


def read_id_map(
    path: Path | str, genes: Collection[str], nodes: NameArray | None = None, plain: Callable[[str], str] = str
) -> dict[str, str]:
    """A dictionary from the column of a table with most genes of the data to the column with most nodes of the network.

    A gene with several translations gets the first one that is a node of the network, otherwise the first one.
    """
    frame = read_columns(path, header=None).frame
    if frame.shape[1] < 2:
        raise unusable(path, "has one column", "an id map has two: a name in the data and the name to use")
    columns = [frame.iloc[:, at].astype(str).map(plain) for at in range(frame.shape[1])]
    wanted, known = set(genes), set() if nodes is None else {str(node) for node in nodes}
    source = max(range(len(columns)), key=lambda at: int(columns[at].isin(wanted).sum()))
    if not columns[source].isin(wanted).any():
        some = ", ".join(shown(name) for name in columns[0].head(3))
        remedy = "check which names it maps, and remove Ensembl versions if names differ by them (`strip_versions`)"
        what = f"has no gene of the data in any column (it has {some}, ...)"
        raise unusable(path, what, remedy, parameters=["strip_versions"])
    others = [at for at in range(len(columns)) if at != source]
    target = max(others, key=lambda at: int(columns[at].isin(known).sum()))
    check_characters(path, "row", columns[target])
    table: dict[str, str] = {}
    for name, translation in zip(columns[source], columns[target], strict=True):
        if name in MISSING or translation in MISSING:
            continue
        if name not in table or (table[name] not in known and translation in known):
            table[name] = translation
    return table
