"""Names as text of other formats: one line, no control characters, all different."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from netbic.errors import one_line, shown

_LONGEST = 1000


def plain(text: object, longest: int = _LONGEST) -> str:
    r"""Text in one line, cut if it is longer; tabs, line breaks and other unprintable characters become spaces.

    Examples
    --------
    >>> plain("a\tb\n")
    'a b'
    """
    return one_line(str(text), longest).strip()


def plain_names(names: Iterable[object], kind: str) -> list[str]:
    """Names in one line each, numbered where they would be equal or empty; a warning says how many were changed.

    Examples
    --------
    >>> plain_names(["TP53", "MDM2", 7], "gene")
    ['TP53', 'MDM2', '7']
    """
    given = [str(name) for name in names]
    taken = {name for name in given if name and name == plain(name)}  # these keep their names
    seen, written = set[str](), list[str]()
    for name in given:
        text = own = plain(name) or "unnamed"
        number = 1
        while own in seen or (own in taken and own != name):
            number += 1
            own = f"{text}_{number}"
        seen.add(own)
        written.append(own)
    _warn_about_changes(given, written, kind)
    return written


def _warn_about_changes(given: list[str], written: list[str], kind: str) -> None:
    changed = [pair for pair in zip(given, written, strict=True) if pair[0] != pair[1]]
    if changed:
        number = f"{len(changed):,} name{'s' * (len(changed) > 1)} of {kind}s"
        before, after = map(shown, changed[0])
        warnings.warn(f"{number} cannot be written unchanged: {before} is written as {after}", stacklevel=4)
