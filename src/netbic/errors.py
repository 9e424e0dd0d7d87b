"""Errors about input that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Input that cannot be used: one line that says where the problem is, what is wrong and what to do.

    Parameters
    ----------
    message : str
        Parameters are written in backticks, with or without a value: `id_map`, `force=True`.
    parameters : sequence of str, optional
        The parameters that the message names; the command line prints its own options for them. Default: those in
        backticks.

    Examples
    --------
    >>> problem = InputError("no gene matches: give a table of names (`id_map`)")
    >>> str(problem), problem.parameters
    ('no gene matches: give a table of names (`id_map`)', ('id_map',))
    """

    def __init__(self, message: str = "", parameters: Sequence[str] | None = None) -> None:
        super().__init__(message)
        named = re.findall(r"`(\w+)(?:=[^`]*)?`", message) if parameters is None else parameters
        self.parameters = tuple(dict.fromkeys(named))


def unusable(
    path: Path | str,
    problem: str,
    remedy: str,
    *,
    line: int | None = None,
    column: str | None = None,
    parameters: Sequence[str] | None = None,
) -> InputError:
    """The error for a place in a file."""
    place = str(path)
    if line is not None:
        place += f", line {line}"
    if column is not None:
        place += f", column {column}"
    return InputError(one_line(f"{place}: {problem}: {remedy}"), parameters)


def plural(name: str) -> str:
    """Several of what a column is called: donors, batches, studies; "levels of" a name that is no single word.

    Examples
    --------
    >>> plural("donor"), plural("batch"), plural("study"), plural("sample_id")
    ('donors', 'batches', 'studies', 'levels of sample_id')
    """
    if not (name.isalpha() and (name.islower() or name.istitle())):
        return f"levels of {name}"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}{'es' if name.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def one_line(text: str, longest: int = 1000) -> str:
    """Text without line breaks or control characters, cut where it gets very long."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= longest else plain[:longest] + " ..."


def shown(value: str) -> str:
    """A value from a file as an error shows it."""
    return repr(value if len(value) <= 40 else value[:40] + "...")


def some_names(names: Any, most: int = 3, *, quoted: bool = True) -> str:
    """The first names of many, for a message: 'a', 'b', 'c' and 4 more."""
    listed = ", ".join(shown(str(name)) if quoted else str(name) for name in names[:most])
    return listed + (f" and {len(names) - most:,} more" if len(names) > most else "")


def import_optional(module: str, name: str, purpose: str) -> Any:
    """Import a module of an optional dependency; the error says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{purpose} needs {module}: {how_to_install(name)}") from None


def how_to_install(name: str) -> str:
    """The command that installs an extra of netbic, which is not on the package index yet."""
    return f"run pip install '.[{name}]' in the netbic folder"
