"""Gene names: Ensembl versions, and tables that translate names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from netbic.errors import shown, unusable
from netbic.io.characters import check_characters
from netbic.io.matrices import NameArray
from netbic.io.tables import read_columns
from netbic.io.text import MISSING

ENSEMBL = re.compile(r"^ENS[A-Z]*[GTP]\d{6,}")
_SAMPLE = re.compile(
    r"TCGA-|GTEX-|(GSM|SRR|ERR|DRR|SAMN)\d+|[ACGT]{10,}(-\d+)?$|(sample|patient|cell)\b", re.IGNORECASE
)
# Genes that nearly every table of human or mouse genes has.
_COMMON = frozenset({"ACTB", "B2M", "CDK1", "CD4", "EGFR", "GAPDH", "KRAS", "MYC", "PTEN", "STAT1", "TP53", "VIM"})
_VERSION = re.compile(r"(?<=\d)\.\d+$")


def without_version(name: str) -> str:
    """An Ensembl id without its version; other names unchanged."""
    return _VERSION.sub("", name) if ENSEMBL.match(name) else name


def look_exchanged(samples: NameArray, genes: NameArray) -> bool:
    """Whether the names of the samples look like genes, and those of the genes do not.

    Examples
    --------
    >>> import numpy as np
    >>> symbols, barcodes = np.array(["A4GALT", "TP53", "MYC"]), np.array(["TCGA-AO-A03P", "TCGA-AR-A1AH"])
    >>> look_exchanged(symbols, barcodes), look_exchanged(barcodes, symbols)
    (True, False)
    """

    def gene_names(names: NameArray) -> bool:
        known = _COMMON.intersection(str(name).upper() for name in names)
        return len(known) > 1 or 2 * sum(bool(ENSEMBL.match(str(name))) for name in names) > len(names)

    if gene_names(genes):
        return False
    like_samples = 2 * sum(bool(_SAMPLE.match(str(name))) for name in genes) > len(genes)
    in_capitals = 2 * sum(str(name)[:1].isalpha() and str(name).isupper() for name in samples) > len(samples)
    return gene_names(samples) or (
        like_samples and in_capitals and not any(_SAMPLE.match(str(name)) for name in samples)
    )


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
