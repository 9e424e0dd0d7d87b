"""Characters that are not allowed in names of genes, samples, nodes, sets and columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netbic.errors import InputError, shown, unusable

# Control characters except tab and line feed, which quoted fields may contain; and lone surrogates.
_FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def check_characters(path: Path | str, kind: str, names: Iterable[Any], line: int | None = None) -> None:
    r"""Raise if a name holds a control character.

    Parameters
    ----------
    path : path
        The file that the names come from.
    kind : str
        What they name: "gene", "sample", "node", ...
    names : iterable of str
    line : int, optional
        The line of the file that all of them are in.

    Examples
    --------
    >>> check_characters("table.parquet", "gene", ["TP53", "MDM2"])
    >>> check_characters("table.tsv", "gene", ["TP53", "MD\rM2"])
    Traceback (most recent call last):
    netbic.errors.InputError: table.tsv: the name of gene 2, 'MD\rM2', holds the control character '\r': rename it
    """
    if (found := _first(names)) is not None:
        raise _refusal(path, f"{kind} {found[0] + 1}", found[1], line)


def check_categories(path: Path | str, kind: str, column: Any) -> None:
    """The same for a column of categories; the error names the first row with such a name."""
    if (found := _first(column.categories)) is not None:
        row = int((column.codes == found[0]).argmax())
        raise _refusal(path, f"{kind} {row + 1}", found[1], None)


def _first(names: Iterable[Any]) -> tuple[int, str] | None:
    """Position and text of the first name with such a character."""
    texts = [str(name) for name in names]
    if not _FORBIDDEN.search("\n".join(texts)):  # one search for all of them is many times faster
        return None
    return next((at, text) for at, text in enumerate(texts) if _FORBIDDEN.search(text))


def _refusal(path: Path | str, place: str, name: str, line: int | None) -> InputError:
    character = _FORBIDDEN.findall(name)[0]
    kind = "control character" if character < "\ud800" else "character"
    return unusable(path, f"the name of {place}, {shown(name)}, holds the {kind} {character!r}", "rename it", line=line)
