"""All modules as a workbook for spreadsheet programs."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.errors import import_optional
from netbic.exports.output import check_file, write_file
from netbic.exports.results import Results, Source, label_of
from netbic.exports.text import plain

_WIDEST, _LONGEST = 60, 32_000  # characters of a column and of a cell
_MOST_SAMPLES = 50_000  # of a sheet
_REFERENCES = ("module", "repeats", "closest")  # columns with numbers of modules, from 0
_TEXT_FORMAT = "@"  # text that a spreadsheet program leaves alone, also when the cell is edited


def write_workbook(source: Source, path: Path | str, *, force: bool = False) -> Path:
    """Write a workbook (.xlsx) with a summary, a sheet per module, gene sets and associations.

    The sheet of a module lists its genes with weights and sides, and the samples with their scores and groups, or with
    their weights if scores are not known. All names are cells of text: SEPT1 does not become a date, and a name that
    starts with =, +, - or @ is not a formula.

    Parameters
    ----------
    source, path, force : as for `write_gmt`
        The path ends in .xlsx.

    Notes
    -----
    Needs openpyxl (``pip install "netbic[excel]"``).
    """
    openpyxl = import_optional("openpyxl", "excel", "a workbook")
    results, path = Results.of(source), Path(path)
    check_file(results, path, force=force)
    book = openpyxl.Workbook(write_only=True)
    _add_sheet(book, "Summary", _summary(results))
    for module in range(results.n_modules):
        _add_sheet(book, label_of(module), _genes(results, module), _samples(results, module))
    for title, name in (("Gene sets", "gene_sets"), ("Associations", "associations")):
        if name in results.tables:
            _add_sheet(book, title, _labelled(results.tables[name]))
    content = io.BytesIO()
    book.save(content)
    return write_file(results, path, content.getvalue(), force=force)


def _summary(results: Results) -> pd.DataFrame:
    table = _labelled(results.summary).drop(columns="label", errors="ignore")  # which is that of `module`
    table.insert(1, "name", results.names)
    return table


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with modules as labels; those that it refers to as well, empty where there is none (-1 or missing)."""
    labels = {name: table[name].map(_label_or_empty) for name in _REFERENCES if name in table}
    if "verdict" in table:
        labels["verdict"] = table["verdict"].replace(r"^repeats (\d+)$", r"repeats Module \1", regex=True)
    return table.assign(**labels)


def _label_or_empty(module: float) -> str:
    return label_of(int(module)) if module >= 0 else ""


def _genes(results: Results, module: int) -> pd.DataFrame:
    return results.genes(module).rename(columns={"name": "gene"})


def _samples(results: Results, module: int) -> pd.DataFrame:
    """The samples by decreasing score; those of the module by decreasing weight if scores are not known."""
    names = np.array(results.sample_names, dtype=object)
    if (known := results.scores()) is not None:
        table = pd.DataFrame({"sample": names, "score": known[0][module], "group": known[1][module]})
        return table.sort_values("score", ascending=False, kind="stable")[:_MOST_SAMPLES]
    weights = results.model.left_vectors_[:, module].astype(float)
    table = pd.DataFrame({"sample": names[weights != 0], "weight": weights[weights != 0]})
    return table.sort_values("weight", ascending=False, kind="stable")[:_MOST_SAMPLES]


def _add_sheet(book: Any, title: str, *tables: pd.DataFrame) -> None:
    """A sheet with tables side by side, an empty column between them."""
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    blocks = [_columns(table) for table in tables]
    columns = [column for block in blocks for column in [*block, ["", []]]][:-1]
    for number, (header, values) in enumerate(columns, start=1):
        widest = max((len(value) for value in [header, *values[:200]] if isinstance(value, str)), default=0)
        sheet.column_dimensions[get_column_letter(number)].width = min(max(widest, 10), _WIDEST) + 2
    bold = Font(bold=True)
    sheet.append([_cell(sheet, header, bold) for header, _ in columns])
    for row in range(max(len(values) for _, values in columns)):
        sheet.append([_cell(sheet, values[row]) if row < len(values) else None for _, values in columns])


def _columns(table: pd.DataFrame) -> list[Any]:
    return [[plain(name), _values(column)] for name, column in table.items()]


def _values(column: Iterable[Any]) -> list[Any]:
    return [value.item() if isinstance(value, np.generic) else value for value in column]


def _cell(sheet: Any, value: Any, font: Any = None) -> Any:
    """A cell; text stays text, whatever it looks like."""
    from openpyxl.cell import WriteOnlyCell

    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, int, float)) and math.isfinite(value):
        return value
    cell = WriteOnlyCell(sheet, value=plain(value, _LONGEST))  # infinite numbers, which no cell holds, as text
    cell.data_type = "s"  # openpyxl takes text that starts with = for a formula, and #N/A for an error
    cell.number_format = _TEXT_FORMAT
    if font is not None:
        cell.font = font
    return cell
