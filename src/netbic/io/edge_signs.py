"""Which edges of a file activate and which inhibit: from a column of signs, relations, or negative weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from netbic.arrays import Bools, Floats
from netbic.errors import shown, unusable
from netbic.graph import sign_of
from netbic.io.edge_files import Edges, line_of_edge

_NAMED: Final = 5  # words in an error
_IGNORE: Final = "`signs=False` ignores them"


class EdgeSigns(NamedTuple):
    """Signs of edges (1, -1, or 0 if not known), and where they were read from."""

    values: Floats
    source: str


def signs_of_edges(path: Path, edges: Edges, kept: Bools, wanted: bool | None) -> EdgeSigns | None:
    """The signs of all edges; None if the file has none for the edges that are kept, or if they are not wanted.

    `wanted`: None reads a column of signs, and relations if each of them has a sign; True reads negative weights as
    well, and raises an error if there are no signs.
    """
    negative = edges.weight is not None and bool((edges.weight < 0).any())
    if wanted is False:
        return None
    if edges.sign is not None:
        if negative:
            what = f"has a column of signs ({_column(edges)}) and negative weights"
            raise unusable(path, what, "keep one of them", parameters=["signs"])
        return EdgeSigns(_of_column(path, edges), f"column {_column(edges)}")
    if edges.weight is not None and negative:
        if wanted is None:
            raise _negative_weight(path, edges)
        return EdgeSigns(np.sign(edges.weight), "negative weights")
    found = None if edges.relation is None else _of_relations(edges.relation, kept)
    if wanted and found is None:
        what = "has no signs of edges"
        remedy = "give a column `sign`, relations that all activate or inhibit (`relations` selects them), or negative "
        raise unusable(path, what, f"{remedy}weights", parameters=["signs", "relations"])
    return found


def _column(edges: Edges) -> str:
    return (edges.columns or {}).get("sign", "sign")


def _of_column(path: Path, edges: Edges) -> Floats:
    found = [sign_of(level) for level in edges.sign.categories]
    odd = [str(level) for level, sign in zip(edges.sign.categories, found, strict=True) if sign is None]
    if odd:
        words = ", ".join(map(shown, odd[:_NAMED])) + (f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else "")
        what = f"its column of signs ({_column(edges)}) contains {words}"
        remedy = f"1 and -1, + and -, activation and inhibition and similar words are known ({_IGNORE})"
        raise unusable(path, what, remedy, parameters=["signs"])
    return _by_level(found, edges.sign)


def _by_level(signs: Sequence[float | None], column: Any) -> Floats:
    levels = np.array([0.0 if sign is None else sign for sign in signs])
    return np.asarray(levels[column.codes])


def _of_relations(relation: Any, kept: Bools) -> EdgeSigns | None:
    """Signs, if every relation of the edges that are kept has one and some inhibit."""
    found = [_of_relation(str(level)) for level in relation.categories]
    used = [found[code] for code in np.unique(relation.codes[kept])]
    if any(sign is None for sign in used) or -1.0 not in used:
        return None
    return EdgeSigns(_by_level(found, relation), "relations")


def _of_relation(level: str) -> float | None:
    """The sign of an edge with one or several relations; 0 if they contradict each other, None without signs."""
    signs = {sign_of(word) for word in level.split(";")}
    if None in signs or signs == {0.0}:
        return None
    known = signs - {0.0}
    return known.pop() if len(known) == 1 else 0.0


def _negative_weight(path: Path, edges: Edges) -> Exception:
    weights = np.asarray(edges.weight)
    at = int(np.argmax(weights < 0))
    what = f"edge {at + 1} has the weight '{weights[at]:g}'"
    remedy = (
        "weights must be numbers of at least 0, unless negative ones mean that an edge inhibits (`signs=True`); "
        "`signs=False` uses absolute values"
    )
    return unusable(path, what, remedy, line=line_of_edge(path, at, edges.n_header), parameters=["signs"])
