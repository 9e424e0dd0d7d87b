"""Gene names: tables that translate them, samples that look like genes, names that a spreadsheet changed to dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import permutations
from pathlib import Path

import pandas as pd

from netbic.errors import shown, unusable
from netbic.identifiers import ENSEMBL, hardly_match, kind_of_names, without_version
from netbic.io.tables import MISSING, NameArray, check_characters, read_columns

_SAMPLE = re.compile(
    r"TCGA-|GTEX-|(GSM|SRR|ERR|DRR|SAMN)\d+|[ACGT]{10,}(-\d+)?$|(sample|patient|cell)\b", re.IGNORECASE
)
# Genes that nearly every table of human or mouse genes has.
_COMMON = frozenset({"ACTB", "B2M", "CDK1", "CD4", "EGFR", "GAPDH", "KRAS", "MYC", "PTEN", "STAT1", "TP53", "VIM"})
_STRAY = 0.01  # a column with fewer names of the data than this share of another one has them by chance


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


@dataclass(frozen=True)
class Renaming:
    """How names become others: by a table; those that are not in it without Ensembl versions, if these are removed."""

    table: Mapping[str, str]
    strip_versions: bool = False

    def __call__(self, name: object) -> str:
        """The name to use."""
        plain = without_version(str(name)) if self.strip_versions else str(name)
        return self.table.get(str(name), plain)

    def changed(self, names: Iterable[object], known: Iterable[object]) -> dict[str, str]:
        """The names that become others; those that are `known` stay."""
        given, stay = map(str, names), set(map(str, known))
        return {name: new for name in given if name not in stay and (new := self(name)) != name}


def renaming(
    strip_versions: bool, id_map: Path | str | None, genes: Iterable[object], others: Iterable[object] = ()
) -> Renaming | None:
    """How the genes of the data, and other names that are matched to them, are renamed; None if they are not."""
    table = {} if id_map is None else read_id_map(id_map, genes, others, strip_versions=strip_versions)
    return Renaming(table, strip_versions) if table or strip_versions else None


def read_id_map(
    path: Path | str, names: Iterable[object], others: Iterable[object] = (), *, strip_versions: bool = False
) -> dict[str, str]:
    r"""Read a table that translates names, such as Ensembl ids into gene symbols.

    Parameters
    ----------
    path : path
        A table as text, with or without a header. Two of its columns are used; Ensembl versions do not matter.
    names : sequence of str
        The names to translate, such as the genes of the data. The column with most of them is translated.
    others : sequence of str, optional
        The names to be matched, such as those of a network or of gene sets. They decide into which column `names` are
        translated, if there are several, and which one of several translations is used. If a name in their column has
        fewer translations than one in that of `names`, they are translated instead: of several Ensembl ids with one
        symbol, each becomes the symbol.
    strip_versions : bool
        Whether the names to use are Ensembl ids without their versions.

    Returns
    -------
    dict
        The new name of each of `names` and `others` that is translated. Names that are not in the table are not in it,
        and keep their names.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     _ = file.write("ensembl\tsymbol\nENSG00000141510\tTP53\nENSG00000135679\tMDM2\n")
    ...     file.flush()
    ...     netbic.io.read_id_map(file.name, ["ENSG00000141510.18", "ENSG00000000003.15"])
    {'ENSG00000141510.18': 'TP53'}

    For an AnnData object: ``adata.var_names = [table.get(name, name) for name in adata.var_names]``, then
    ``adata.var_names_make_unique()``.
    """
    columns, keys = _id_map_columns(path)
    given, known = ({without_version(str(name)) for name in some} for some in (names, others))
    if not any(key.isin(given).any() for key in keys):
        some = ", ".join(shown(name) for name in columns[0].head(3))
        kinds = [f"the {side} {kind}" for side, kind in _kinds_of(given, columns) if kind]
        what = f"has no gene of the data in any column (it has {some}, ...{'; ' * bool(kinds)}{', '.join(kinds)})"
        raise unusable(path, what, "give a table with the names of the data in one of its columns")
    source, target = _direction(keys, given, known)
    check_characters(path, "row", columns[target])
    table = pd.DataFrame({"name": keys[source], "to": (keys if strip_versions else columns)[target]})
    table["foreign"] = ~keys[target].isin(given | known)
    table = table[~table[["name", "to"]].isin(MISSING).any(axis=1)].sort_values("foreign", kind="stable")
    new = dict(zip(*(table.drop_duplicates("name")[part] for part in ("name", "to")), strict=True))
    plain = {str(name): without_version(str(name)) for some in (names, others) for name in some}
    return {name: new[key] for name, key in plain.items() if key in new}


def _id_map_columns(path: Path | str) -> tuple[list[pd.Series[str]], list[pd.Series[str]]]:
    """The columns of a table of names, as they are and without Ensembl versions."""
    frame, _ = read_columns(path, header=None)
    if frame.shape[1] < 2:
        raise unusable(path, "has one column", "an id map has two: a name in the data and the name to use")
    columns = [frame.iloc[:, at].astype(str) for at in range(frame.shape[1])]
    return columns, [column.map(without_version) for column in columns]


def has_names(path: Path | str, names: Iterable[object]) -> bool:
    """Whether an id map has some of these names."""
    wanted = {without_version(str(name)) for name in names}
    return any(bool(key.isin(wanted).any()) for key in _id_map_columns(path)[1])


def names_among(
    names: Iterable[object], known: Iterable[object], id_map: Path | str | None = None
) -> dict[str, list[str]]:
    """For names that are not `known`, the known ones they stand for: by an id map, or without Ensembl versions.

    >>> names_among(["ENSG00000141510", "x"], ["ENSG00000141510.5"])
    {'ENSG00000141510': ['ENSG00000141510.5']}
    """
    stay, given = dict.fromkeys(map(str, known)), dict.fromkeys(map(str, names))
    wanted = [name for name in given if name not in stay]
    table = dict[str, str]()
    # A table without these names is an error if they are needed.
    few = hardly_match(len(given) - len(wanted), len(given), len(stay))
    if id_map is not None and wanted and (few or has_names(id_map, wanted)):
        table = read_id_map(id_map, wanted, stay)
    standing, versions = dict[str, list[str]](), dict[str, list[str]]()
    for name in stay:
        standing.setdefault(table.get(name, name), []).append(name)
        if name not in given:
            versions.setdefault(without_version(name), []).append(name)
    found = {name: standing.get(table.get(name, name)) or versions.get(without_version(name)) for name in wanted}
    return {name: each for name, each in found.items() if each}


def _kinds_of(genes: Collection[str], columns: list[pd.Series[str]]) -> Iterator[tuple[str, str]]:
    """What kinds of names the data and the columns of a table have."""
    yield "data have", kind_of_names(sorted(genes))
    for number, column in enumerate(columns, start=1):
        yield f"column {number} has", kind_of_names(column)


def _direction(keys: list[pd.Series[str]], given: set[str], known: set[str]) -> tuple[int, int]:
    """Which column of a table of names is translated into which.

    Those by which most names of the data that are not known become known. Of these two, the column is translated that
    has several names for one of the other column.
    """
    pairs = list(permutations(range(len(keys)), 2))
    is_known = [key.isin(known) for key in keys]
    for wanted in (given - known, given):
        is_wanted = [key.isin(wanted) for key in keys]
        rows = {(one, other): is_wanted[one] & is_known[other] for one, other in pairs}
        one, other = max(pairs, key=lambda pair: int(keys[pair[0]][rows[pair]].nunique()))
        if (both := rows[one, other]).any():
            return (other, one) if keys[other][both].nunique() > keys[one][both].nunique() else (one, other)
    different = ~pd.concat(keys, axis=1).eq(keys[0], axis=0).all(axis=1)
    counts = [int(key[different & key.isin(given)].nunique()) for key in keys]
    source = next(at for at, count in enumerate(counts) if count >= _STRAY * max(counts))
    return source, int(source == 0)


# Names that a spreadsheet changed to dates: MARCH1 to 1-Mar, SEPT2 to 2-Sep or 2001-09-02

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_OTHER_MONTHS = {"mär": 3, "mrz": 3, "mars": 3, "mai": 5, "sept": 9, "okt": 10, "dez": 12}
_DATES = [
    re.compile(r"(?P<day>\d{1,2})(?:-|\. ?)(?P<month>[^\W\d]{3,4})\.?(?:-\d{2,4})?$"),  # 1-Mar, 01-Mar-01, 1. Dez
    re.compile(r"(?P<month>[A-Z][a-z]{2})-(?P<day>\d{1,2})$"),  # Mar-01
    re.compile(r"(?:19|20)\d\d-(?P<month>\d\d)-(?P<day>\d\d)(?:[ T]00:00(?::00(?:\.0+)?)?)?$"),  # 2001-03-01 00:00:00
    re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?:\d\d)?\d\d$"),  # 3/1/2001; or the day first
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?:\d\d)?\d\d$"),  # 01.03.2001
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
