"""Words and numbers for the sign of an edge: whether it activates or inhibits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.arrays import Floats

_ACTIVATES = """+ +1 1 1.0 > -> --> activation activates activate activating activator activated stimulation stimulates
stimulate stimulating stimulator induction induces inducer upregulation upregulates upregulated up positive pos plus
positively_regulates positive_regulation enhances enhancer promotes increases agonist"""
_INHIBITS = """- -1 -1.0 \u2212 \u22121 -| |- --| -[ inhibition inhibits inhibit inhibiting inhibitor inhibited
repression represses repress repressor repressing suppression suppresses downregulation downregulates downregulated
down negative neg minus negatively_regulates negative_regulation blocks decreases antagonist"""
_UNKNOWN = """0 0.0 ? . na n/a nan none null unknown undefined unspecified unclear ambiguous both dual"""
_REGULATES = {"upregulates": 1.0, "downregulates": -1.0}  # SIGNOR: "up-regulates quantity by expression"

SIGN_WORDS: Final[dict[str, float]] = {
    **dict.fromkeys(_ACTIVATES.split(), 1.0),
    **dict.fromkeys(_INHIBITS.split(), -1.0),
    **dict.fromkeys(_UNKNOWN.split(), 0.0),
    "": 0.0,
    "form_complex": 0.0,
}


def sign_of(word: Any) -> float | None:
    """1 for an edge that activates, -1 for one that inhibits, 0 if the sign is not known; None for other words.

    Examples
    --------
    >>> [sign_of(word) for word in ("activates", "Inhibition", "-|", "-1", "up-regulates activity", "?", "binds")]
    [1.0, -1.0, -1.0, -1.0, 1.0, 0.0, None]
    """
    text = "" if word is None or word is pd.NA else str(word).strip().lower()
    if text in SIGN_WORDS:
        return SIGN_WORDS[text]
    words = re.split(r"[\s_]+", text.replace("up-reg", "upreg").replace("down-reg", "downreg"))
    if words[0] in _REGULATES:
        return _REGULATES[words[0]]
    return SIGN_WORDS.get("_".join(words)) if len(words[0]) > 1 else None


def check_signed(signed: object) -> None:
    """Raise unless `signed` is True or False."""
    if not isinstance(signed, (bool, np.bool_)):
        raise TypeError(f"signed={signed!r}: use True if negative weights are those of edges that inhibit, else False")


def signs_of(words: Iterable[Any]) -> Floats:
    """The signs of edges: 1, -1, or 0 where the sign is not known.

    Raises
    ------
    ValueError
        If words are not known; the message names them.

    Examples
    --------
    >>> signs_of(["activation", "inhibition", "unknown"]).tolist()
    [1.0, -1.0, 0.0]
    """
    codes, levels = pd.factorize(np.asarray(list(words), dtype=object), use_na_sentinel=True)
    found = [sign_of(level) for level in levels]
    odd = [str(level) for level, sign in zip(levels, found, strict=True) if sign is None]
    if odd:
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        raise ValueError(
            f"the sign of an edge is {', '.join(map(repr, odd[:5]))}{more}: 1 and -1, + and -, activation and "
            "inhibition and similar words are known; replace others, by 'unknown' to drop their edges, or drop the "
            "column `sign` to keep all edges without signs"
        )
    known = np.array([*(0.0 if sign is None else sign for sign in found), 0.0])  # the last: missing
    return np.asarray(known[codes])
