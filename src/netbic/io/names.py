"""Gene names: Ensembl versions, tables that translate names, and names that a spreadsheet changed to dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta
from pathlib import Path

import pandas as pd

from netbic.errors import shown, unusable
from netbic.io.tables import MISSING, NameArray, check_characters, read_columns

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
    """Whether the names of the samples look like genes, and those of the genes do not."""

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
    frame, _ = read_columns(path, header=None)
    if frame.shape[1] < 2:
        raise unusable(path, "has one column", "an id map has two: a name in the data and the name to use")
    columns = [frame.iloc[:, at].astype(str).map(plain) for at in range(frame.shape[1])]
    wanted, known = set(genes), set() if nodes is None else {str(node) for node in nodes}
    source = max(range(len(columns)), key=lambda at: int(columns[at].isin(wanted).sum()))
    if not columns[source].isin(wanted).any():
        some = ", ".join(shown(name) for name in columns[0].head(3))
        remedy = "check which names it maps, and remove Ensembl versions if names differ by them (`strip_versions`)"
        what = f"has no gene of the data in any column (it has {some}, ...)"
        raise unusable(path, what, remedy)
    others = [at for at in range(len(columns)) if at != source]
    target = max(others, key=lambda at: int(columns[at].isin(known).sum()))
    check_characters(path, "row", columns[target])
    table = pd.DataFrame({"name": columns[source], "to": columns[target], "foreign": ~columns[target].isin(known)})
    table = table[~table[["name", "to"]].isin(MISSING).any(axis=1)].sort_values("foreign", kind="stable")
    table = table.drop_duplicates("name")
    return dict(zip(table["name"], table["to"], strict=True))


# Names that a spreadsheet changed to dates: MARCH1 to 1-Mar, SEPT2 to 2-Sep or 2001-09-02

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_OTHER_MONTHS = {"mär": 3, "mrz": 3, "mars": 3, "mai": 5, "sept": 9, "okt": 10, "dez": 12}
_DATES = [
    re.compile(r"(?P<day>\d{1,2})(?:-|\. ?)(?P<month>[^\W\d]{3,4})\.?(?:-\d{2,4})?$"),  # 1-Mar, 01-Mar-01, 1. Dez
    re.compile(r"(?P<month>[A-Z][a-z]{2})-(?P<day>\d{1,2})$"),  # Mar-01
    re.compile(r"(?:19|20)\d\d-(?P<month>\d\d)-(?P<day>\d\d)(?:[ T]00:00(?::00(?:\.0+)?)?)?$"),  # 2001-03-01 00:00:00
    re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?:\d\d)?\d\d$"),  # 3/1/2001; or the day first
]
_DAY_ZERO = date(1899, 12, 30)  # of the serial numbers of spreadsheets
_YEARS = range(1995, 2050)  # those in which a symbol can have become a date
_MOST = 100  # far more than the symbols that look like dates: otherwise these are dates and not genes


def genes_as_dates(genes: Sequence[str]) -> dict[str, str]:
    """Names that look like dates, each with the gene it stands for, such as "MARCHF1 (formerly MARCH1)"; "" if unknown.

    Numbers such as 44256 are taken for dates only if nearly all other names are not numbers, and only on days that
    stand for a gene; Entrez ids are numbers too.
    """
    names = [str(gene).strip() for gene in genes]
    numbers = [name for name in names if name.isdecimal()]
    marked = (name for name in names if name[:1].isalnum() and not name.isalnum())  # as all dates but numbers are
    found = {name: gene for name in marked if (gene := _gene_of_date(name)) is not None}
    if len(numbers) <= min(_MOST, 0.05 * len(names)):
        for name in numbers:
            when = _DAY_ZERO + timedelta(days=int(name) if len(name) == 5 else 0)
            if when.year in _YEARS and (gene := _gene(when.month, when.day)):
                found[name] = gene
    return found if len(found) <= min(_MOST, 0.5 * len(names)) else {}


def _gene_of_date(name: str) -> str | None:
    """The gene that a date stands for, "" if it is not known; None if the name is not a date."""
    parts = next(filter(None, (pattern.match(name) for pattern in _DATES)), None)
    if parts is None:
        return None
    word, day = parts["month"].lower(), int(parts["day"])
    month = int(word) if word.isdecimal() else _OTHER_MONTHS.get(word, 0)
    if word in _MONTHS:
        month = _MONTHS.index(word) + 1
    if "/" in name and not _gene(month, day):
        month, day = day, month
    return _gene(month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _gene(month: int, day: int) -> str:
    """The human gene whose earlier symbol spreadsheets read as this day."""
    if month == 3 and day <= 11:
        return f"MARCHF{day} (formerly MARCH{day})"
    if month == 9 and day <= 14:
        return f"SEPTIN{day} (formerly SEPT{day})"
    return {(9, 15): "SELENOF (formerly SEP15)", (12, 1): "DELEC1 (formerly DEC1)"}.get((month, day), "")
