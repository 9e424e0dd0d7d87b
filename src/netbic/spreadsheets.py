"""Tables for spreadsheets: an overview with a row per module, and workbooks."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from netbic.association.words import LEVEL, direction, is_survival, main_tests, numbers
from netbic.errors import one_line

_TESTS: Final = {"module", "variable", "level", "test", "effect", "effect_name", "p", "q"}
_MOST_SETS: Final = 3
_WIDEST, _LONGEST_CELL = 60, 32_000  # characters of a column and of a cell


def overview(
    names: Sequence[str],
    genes: Sequence[Sequence[str]],
    tables: Mapping[str, pd.DataFrame],
    verdicts: Sequence[str],
    n_genes: int,
) -> pd.DataFrame:
    """A row per module: verdict, name, the first `n_genes` genes in columns of their own, and findings in words.

    `genes` are in the order in which they are to be listed, `tables` those of the folder of a fit. Columns of tables
    that are not there are left out.
    """
    modules = pd.RangeIndex(1, len(names) + 1, name="module")
    table = pd.DataFrame({"name": list(names), "verdict": list(verdicts)}, index=modules)
    for place in range(n_genes):
        table[f"gene_{place + 1}"] = [own[place] if place < len(own) else "" for own in genes]
    table["n_genes"] = [len(own) for own in genes]
    summary = tables.get("summary", pd.DataFrame())
    if {"sample_kind", "n_up", "n_down"} <= {*summary}:
        table["samples"] = [_samples(row) for row in summary.to_dict("records")]
    tests = tables.get("associations", pd.DataFrame())
    if {*tests} >= _TESTS:
        table = table.join(_associations(tests))
    if "gene_sets" in tables:
        table["gene_sets"] = _leading_sets(tables["gene_sets"]).reindex(modules)
    if "replication" in tables:
        table["replication"] = tables["replication"].set_index("module")["verdict"].reindex(modules)
    judged = tables.get("verdicts", pd.DataFrame())
    if {"technical", "reason"} <= {*judged}:
        table = table.join(judged.set_index("module")[["technical", "reason"]])
    return table.reset_index()


def _samples(row: Mapping[Any, Any]) -> str:
    """The groups of the samples in words."""
    if row["sample_kind"] == "gradient":
        return "gradient"
    return ", ".join(f"{int(row[f'n_{side}'])} {side}" for side in ("up", "down") if row[f"n_{side}"])


def _associations(tests: pd.DataFrame) -> pd.DataFrame:
    """The strongest association of each module that is significant, and that with the first survival endpoint."""
    main = main_tests(tests.assign(level=tests["level"].fillna("").astype(str)), ["module", "variable"])
    main = main.sort_values("q", kind="stable")
    survival, found = main[is_survival(main)], main[(main["q"] <= LEVEL) & ~is_survival(main)]
    survival = survival[survival["variable"] == next(iter(tests.loc[is_survival(tests), "variable"]), None)]
    parts = {"association": found} | ({"survival": survival} if len(survival) else {})
    columns: dict[str, pd.Series[str]] = {}
    for name, own in parts.items():
        first = own.drop_duplicates("module").set_index("module")
        columns[name] = pd.Series([_said(row) for row in first.to_dict("records")], first.index, dtype=object)
    return pd.DataFrame(columns)


def _said(row: dict[Any, Any]) -> str:
    """An association of a module in words."""
    what = f"{row['level']} is {direction(row)}" if row["level"] else direction(row)
    what = what if row["q"] <= LEVEL else "no association"
    return f"{row['variable']}: {what} ({numbers(row)})"


def _leading_sets(sets: pd.DataFrame) -> pd.Series[str]:
    """The most significant gene sets of each module in words."""
    first = sets.sort_values("q_value", kind="stable").drop_duplicates(["module", "term"])
    first = first.groupby("module").head(_MOST_SETS)
    called = first["term"].astype(str)
    if "name" in first:
        named = first["name"].fillna("").astype(str).str.strip()
        called = named.where(named != "", called)
    texts = [f"{name} (q = {q:.1g})" for name, q in zip(called, first["q_value"], strict=True)]
    return pd.Series(texts, first.index, dtype=object).groupby(first["module"]).agg("; ".join)


# Workbooks


def workbook_bytes(sheets: Mapping[str, Sequence[pd.DataFrame]]) -> bytes:
    """A workbook (.xlsx) with the tables of each sheet side by side; equal tables are equal bytes."""
    content = io.BytesIO()
    with pd.ExcelWriter(content, engine="openpyxl") as book:
        for title, tables in sheets.items():
            _add_sheet(book, title, tables)
    return _undated(content.getvalue())


def _undated(workbook: bytes) -> bytes:
    """The same workbook without the time at which it was made, so that equal results are equal files."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as book, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as undated:
        for name in book.namelist():
            part = book.read(name)
            if name == "docProps/core.xml":
                part = re.sub(rb"<dcterms:(created|modified)\b.*?</dcterms:\1>", b"", part)
            undated.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)  # dated 1980-01-01
    return made.getvalue()


def _add_sheet(book: Any, title: str, tables: Sequence[pd.DataFrame]) -> None:
    """A sheet with tables side by side, an empty column between them; text stays text, whatever it looks like."""
    start = 0
    for table in tables:
        own = table.map(lambda value: plain(value, _LONGEST_CELL) if isinstance(value, str) else value)
        own.columns = [plain(name) for name in table.columns]
        own.to_excel(book, sheet_name=title, index=False, startcol=start, freeze_panes=(1, 0))
        start += len(table.columns) + 1
    for column in book.sheets[title].columns:
        texts = [cell for cell in column if isinstance(cell.value, str)]
        for cell in texts:
            cell.data_type = "s"  # openpyxl takes text that starts with = for a formula, and #N/A for an error
            cell.number_format = "@"  # text that a spreadsheet program leaves alone, also when the cell is edited
        widest = max((len(cell.value) for cell in texts[:200]), default=0)
        book.sheets[title].column_dimensions[column[0].column_letter].width = min(max(widest, 10), _WIDEST) + 2


def plain(text: object, longest: int = 1000) -> str:
    """Text in one line, cut if it is longer; tabs, line breaks and other unprintable characters become spaces."""
    return one_line(str(text), longest).strip()
