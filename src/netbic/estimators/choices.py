"""What penalties that choose their sizes chose, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from netbic.penalties import Choice

CHOSEN: Final = ["module", "axis", "size", "sigma", "noise", "strength", "unevenness", "expected_f1", "doubt"]


def choices_table(axis: str, sizes: Sequence[int], choices: Sequence[Choice]) -> pd.DataFrame:
    """A row per module: what was chosen on one axis."""
    lines = [
        (module, axis, size, c.sigma, c.noise, c.strength, c.unevenness, c.expected_f1, c.doubt)
        for module, (size, c) in enumerate(zip(sizes, choices, strict=True))
    ]
    return pd.DataFrame(lines, columns=CHOSEN)
