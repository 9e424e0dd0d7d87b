"""What readers say when a file cannot be used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """A file that cannot be used; one line: which file, where in it, what is wrong and what to do."""


def unusable(
    path: Path | str, problem: str, remedy: str, *, line: int | None = None, column: str | None = None
) -> InputError:
    """The error for a place in a file."""
    place = str(path)
    if line is not None:
        place += f", line {line}"
    if column is not None:
        place += f", column {column}"
    return InputError(one_line(f"{place}: {problem}: {remedy}"))


def one_line(text: str, longest: int = 1000) -> str:
    """Text without line breaks or control characters, cut where it gets very long."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= longest else plain[:longest] + " ..."


def shown(value: str) -> str:
    """A value from a file as an error shows it."""
    return repr(value if len(value) <= 40 else value[:40] + "...")


def extra(module: str, name: str, purpose: str) -> Any:
    """Import a module that an extra brings, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f'{purpose} needs {module}: pip install "netbic[{name}]"') from None
