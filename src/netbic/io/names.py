"""Gene names: Ensembl versions, and tables that translate one kind of names into another."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from netbic.io.errors import shown, unusable
from netbic.io.tables import Names, read_columns

ENSEMBL = re.compile(r"^ENS[A-Z]*[GTP]\d{6,}")
_VERSION = re.compile(r"(?<=\d)\.\d+$")


def without_version(name: str) -> str:
    """An Ensembl id without its version; other names as they are."""
    return _VERSION.sub("", name) if ENSEMBL.match(name) else name


def renaming(strip_versions: bool, id_map: Path | str | None, genes: Names) -> Callable[[str], str] | None:
    """A function from the data's names to those of the network; None if nothing is to be done."""
    if id_map is None:
        return without_version if strip_versions else None
    table = read_id_map(id_map, {without_version(str(gene)) if strip_versions else str(gene) for gene in genes})

    def rename(name: str) -> str:
        plain = without_version(name) if strip_versions else name
        return table.get(plain, plain)

    return rename


def read_id_map(path: Path | str, genes: Collection[str]) -> dict[str, str]:
    """A two-column table as a mapping from the data's names; whichever column knows more of them is the first."""
    frame = read_columns(path, header=None).frame
    if frame.shape[1] < 2:
        raise unusable(path, "has one column", "an id map has two: a name in the data and the name to use")
    columns = [frame.iloc[:, at].astype(str) for at in range(2)]
    known = [int(column.isin(list(genes)).sum()) for column in columns]
    if not max(known):
        some = ", ".join(shown(name) for name in columns[0].head(3))
        raise unusable(path, f"knows no gene of the data (it has {some}, ...)", "check which names it maps")
    source, target = columns if known[0] >= known[1] else columns[::-1]
    usable = (source != "") & (target != "")
    return dict(zip(source[usable], target[usable], strict=True))
