"""Tables that describe samples, and gene sets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pandas as pd

from netbic.errors import shown, unusable
from netbic.io.expression import file_format
from netbic.io.stores import read_obs
from netbic.io.tables import (
    MISSING,
    check_characters,
    is_plain_number,
    read_bytes,
    read_columns,
    read_parquet,
    text_lines,
)

NA_VALUES: Final = ("unknown", "not known", "not reported", "not available", "missing", "na", "?")
_OF_NUMBERS = {"None"}  # missing in a column of numbers, but possibly a label ("no treatment") in others
_UNKNOWN = {"<NA>", "[Not Available]", "[Not Applicable]", "[Not Evaluated]", "[Unknown]", "[Discrepancy]"}  # TCGA
_NOT_KNOWN = (set(MISSING) - _OF_NUMBERS) | _UNKNOWN
# Collections of MSigDB, and what is added to the names of their sets.
_COLLECTIONS: Final = {
    **dict.fromkeys(("HALLMARK", "GOBP", "GOCC", "GOMF", "HP"), ""),
    **{"KEGG": "KEGG", "REACTOME": "Reactome", "WP": "WikiPathways", "BIOCARTA": "BioCarta", "PID": "PID"},
}
# Words of these names that keep their capitals.
_SYMBOLS: Final = re.compile(
    "AKT|AMPK|ATP|BCR|DNA|EGFR|ERK|FGFR|GTP|JAK|KRAS|MAPK|MHC|MTOR|MYC|NFKB|NMD|PDGF|RNA|TCA|TCR|TGF|TNFA?|UV|VEGF|WNT"
    r"|.*\d.*"
)
_NO_NAME = re.compile(r"$|na$|https?://", re.IGNORECASE)  # MSigDB has an address where others have a name


def read_sample_info(path: Path | str, *, na_values: Iterable[str] | None = None) -> pd.DataFrame:
    r"""Read a table that describes samples.

    Parameters
    ----------
    path : path
        A text table (.tsv, .csv, .txt, gzip or not; the separator is guessed) or .parquet with a row for each sample
        and names of columns in the first line; or the obs of an .h5ad file or .zarr store.
    na_values : list of str, optional
        Values that mean that a value is missing, in small or capital letters, in addition to empty fields, NA, NaN and
        the like. Default: unknown, not known, not reported, not available, missing, na, ?.

    Returns
    -------
    DataFrame
        The index contains the first column, the names of the samples. Columns in which all values are numbers are
        numbers, except codes and identifiers (001, whole numbers of more than 15 digits); missing values (empty, NA,
        NaN, ...) are NaN. `attrs["taken_as_missing"]` says which of the `na_values` were found in which columns, and
        how often: `{column: {value: number}}`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     _ = file.write("sample\tage\tsubtype\np1\t61\tBasal\np2\tNA\tLumA\n")
    ...     file.flush()
    ...     netbic.io.read_sample_info(file.name)
             age subtype
    sample
    p1      61.0   Basal
    p2       NaN    LumA
    """
    path, words = Path(path), {value.strip().lower() for value in (NA_VALUES if na_values is None else na_values)}
    kind = file_format(path)
    if ".gmt" in path.suffixes:
        raise unusable(path, "is a GMT file of gene sets, not a table of samples", "use it as `gene_sets`")
    is_text = kind not in ("zarr", ".h5ad", "parquet")
    if is_text:
        columns, _ = read_columns(path, header=True)
        check_characters(path, "column", columns.columns)
        if "" in (names := list(columns.columns[1:])):
            raise unusable(path, f"column {names.index('') + 2} has no name", "name it, or remove the column")
        _check_header(path, columns)
        check_characters(path, "sample", columns.iloc[:, 0])
        samples = pd.Index(columns.iloc[:, 0], name=columns.columns[0] or "sample", dtype=object)
        table: pd.DataFrame = columns.iloc[:, 1:].astype(object).set_axis(samples)
    elif kind == "parquet":
        table = read_parquet(path)
        table = table.set_index(table.columns[0]) if isinstance(table.index, pd.RangeIndex) else table
    else:
        table = read_obs(path)
    if not table.shape[1]:
        raise unusable(path, "has names of samples only", "add columns that describe the samples")
    most, times = Counter(map(str, table.columns)).most_common(1)[0]
    if times > 1:
        raise unusable(path, f"has {times} columns {shown(most)}", "rename or remove them")
    found, changed = dict[str, dict[str, int]](), dict[Any, "pd.Series[Any]"]()
    for name, column in table.items():
        if kind == "parquet":
            column = changed[name] = _plain_values(path, column)
        if column.dtype.kind in "OSU" or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
            given = [
                word for word in column.dropna().unique() if isinstance(word, str) and word.strip().lower() in words
            ]
            if given:
                found[str(name)] = {str(word): int((column == word).sum()) for word in given}
                is_categorical = isinstance(column.dtype, pd.CategoricalDtype)
                column = column.cat.remove_categories(given) if is_categorical else column.where(~column.isin(given))
            if is_text:
                numbers = column.where(~column.isin(_NOT_KNOWN | _OF_NUMBERS))
                is_numeric = numbers.notna().any() and all(map(is_plain_number, numbers.dropna().unique()))
                column = _as_numbers(numbers) if is_numeric else column.where(~column.isin(_NOT_KNOWN))
            changed[name] = column
    table = table.assign(**changed)
    table.attrs["taken_as_missing"] = found
    return table


def _check_header(path: Path, columns: pd.DataFrame) -> None:
    """Raise if the first line of a table is one of samples: it has numbers, or values of the lines below, for names."""
    names = list(columns.columns[1:])
    numbers = [name for name in names if is_plain_number(name)]
    values = [name for at, name in enumerate(names, start=1) if name in set(columns.iloc[:, at].cat.categories)]
    if numbers or (values and len(values) == len(names)):
        what = f"the first line holds values ({shown((numbers or values)[0])}) where names of columns are expected"
        raise unusable(path, what, "add a header line (if these are names, begin them with a letter)", line=1)


def _plain_values(path: Path, column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of a Parquet table, dates as such; an error if it holds lists or records."""
    values = column.dropna() if column.dtype == object else ()
    if any(not isinstance(value, Hashable) for value in values):
        remedy = "write text or numbers, or remove the column"
        raise unusable(path, "holds lists or records", remedy, column=str(column.name))
    is_date = len(values) and all(isinstance(value, date) for value in values)
    return pd.to_datetime(column) if is_date else column


def _as_numbers(texts: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return pd.to_numeric(texts)
    except ValueError:  # digits of another script
        return texts.map(float, na_action="ignore").astype(float)


class GeneSets(dict[str, tuple[str, ...]]):
    """Terms and their genes, in the order of the file; `names` holds the description of each term.

    Parameters
    ----------
    members : mapping of term to genes
    names : mapping of term to description, optional
    """

    def __init__(self, members: Mapping[str, tuple[str, ...]], names: Mapping[str, str] | None = None) -> None:
        super().__init__(members)
        self.names = {term: (names or {}).get(term, term) for term in self}

    def __repr__(self) -> str:
        return f"GeneSets({len(self):,} terms)"


def read_gene_sets(path: Path | str) -> GeneSets:
    r"""Read a GMT file: a line per set with its term, a description and its genes, separated by tabs (gzip or not).

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".gmt") as file:
    ...     _ = file.write("GO:1\tDNA repair\tBRCA1\tBRCA2\tATM\n")
    ...     file.flush()
    ...     sets = netbic.io.read_gene_sets(file.name)
    >>> sets, sets["GO:1"], sets.names["GO:1"]
    (GeneSets(1 terms), ('BRCA1', 'BRCA2', 'ATM'), 'DNA repair')
    """
    members: dict[str, tuple[str, ...]] = {}
    names: dict[str, str] = {}
    lines, stripped = list(text_lines(read_bytes(path))), cache(str.strip)  # most genes are in many sets
    is_plain = "".join(lines).replace("\t", "").isprintable()
    if _is_table(lines):
        remedy = "a line is: term, description, genes, separated by tabs (a table of samples is `sample_info`)"
        raise unusable(path, "looks like a table with a header, not like a GMT file of gene sets", remedy)
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = list(map(stripped, line.split("\t")))
        term = fields[0]
        if not term:
            raise unusable(path, "the set has no name", "name it in the first field", line=number)
        if len(fields) < 3 or not any(fields[2:]):
            remedy = "a line is: term, description, genes, separated by tabs"
            raise unusable(path, f"the set {shown(term)} has no genes", remedy, line=number)
        if not is_plain:
            check_characters(path, "field", fields, line=number)
        if term in members:
            raise unusable(path, f"the set {shown(term)} occurs again", "rename or remove one of them", line=number)
        members[term] = tuple(dict.fromkeys(filter(None, fields[2:])))
        names[term] = readable_term(term) if _NO_NAME.match(fields[1]) else fields[1]
    if not members:
        raise unusable(path, "holds no gene set", "a line is: term, description, genes, separated by tabs")
    return GeneSets(members, names)


def _is_table(lines: Sequence[str]) -> bool:
    """Whether lines have a header, and numbers below it in the same fields."""
    rows = [line.split("\t") for line in lines[:20] if line.strip()]
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        return False
    below = [[is_plain_number(each.strip()) for each in column[1:]] for column in zip(*rows, strict=True)]
    return any(all(own) and not is_plain_number(name.strip()) for name, own in zip(rows[0], below, strict=True))


def readable_term(term: str) -> str:
    """The name of a set of MSigDB in plain words; other terms are unchanged.

    Examples
    --------
    >>> [readable_term(term) for term in ("HALLMARK_E2F_TARGETS", "REACTOME_CELL_CYCLE", "MY_SET")]
    ['E2F targets', 'cell cycle (Reactome)', 'MY_SET']
    """
    collection, _, rest = term.partition("_")
    if collection not in _COLLECTIONS or not rest or term != term.upper():
        return term
    words = re.sub("_DN$", "_DOWN", rest).split("_")
    plain = " ".join(each if _SYMBOLS.fullmatch(each) else each.lower() for each in words)
    origin = _COLLECTIONS[collection]
    return f"{plain} ({origin})" if origin else plain


def translate_gene_sets(sets: Mapping[str, Iterable[str]], names: Mapping[str, Sequence[str]]) -> GeneSets:
    """The sets with other names, one or several, of some genes; each is in a set once."""
    flat = {term: chain.from_iterable(names.get(gene, (gene,)) for gene in own) for term, own in sets.items()}
    members = {term: tuple(dict.fromkeys(own)) for term, own in flat.items()}
    return GeneSets(members, sets.names if isinstance(sets, GeneSets) else None)
