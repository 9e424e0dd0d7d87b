"""Which modules of two fits are matched to each other, as a table with a sentence per row."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from netbic.comparison.pairs import Pairs

Labels = tuple[str, str]  # what the two fits are called
SAME, SIMILAR, NEW, GONE, NOT_COMPARABLE = "same", "similar", "new", "gone", "not comparable"
SAME_FROM: Final = 0.7  # similarity
GENES_FROM: Final = 0.5  # agreement of the genes of two modules that are the same
SIMILAR_FROM: Final = 0.3
_COLUMNS = [
    *("module_a", "module_b", "status", "sign", "similarity", "genes_a", "genes_b", "genes_in_common", "jaccard"),
    *("cosine", "score_correlation", "sample_jaccard", "p_genes", "reason"),
]
_INTEGERS = ("module_a", "module_b", "sign", "genes_a", "genes_b", "genes_in_common")


def matching_table(pairs: Pairs, labels: Labels) -> pd.DataFrame:
    """`Comparison.table`: the modules of the first fit in their order, then the new ones of the second fit."""
    matched = matched_modules(pairs)
    n_first, n_second = pairs.similarity.shape
    rows = [
        _pair(pairs, i, matched[i], labels) if i in matched else _alone(pairs, 0, i, labels) for i in range(n_first)
    ]
    rows += [_alone(pairs, 1, j, labels) for j in range(n_second) if j not in matched.values()]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    others = [name for name in _COLUMNS if name not in (*_INTEGERS, "status", "reason")]
    return table.astype(dict.fromkeys(_INTEGERS, "Int64") | dict.fromkeys(others, "float64"))


def matched_modules(pairs: Pairs) -> dict[int, int]:
    """Modules of the first fit and their partners, so that the sum of similarities is largest; similar ones only."""
    known = np.nan_to_num(pairs.similarity)
    first, second = (side.tolist() for side in linear_sum_assignment(-known))
    return {i: j for i, j in zip(first, second, strict=True) if known[i, j] >= SIMILAR_FROM}


def _pair(pairs: Pairs, i: int, j: int, labels: Labels) -> dict[str, Any]:
    genes = np.nan_to_num(pairs.genes.agreement[i, j], nan=1.0)  # not known: samples decide
    same = bool(pairs.similarity[i, j] >= SAME_FROM and genes >= GENES_FROM)
    turned = ", with up and down exchanged" if pairs.sign[i, j] < 0 else ""
    relation = f"{'is' if same else 'is similar to'} module {j + 1} of {labels[1]}{turned}"
    return {
        "module_a": i,
        "module_b": j,
        "status": SAME if same else SIMILAR,
        "sign": int(pairs.sign[i, j]),
        "similarity": pairs.similarity[i, j],
        "genes_a": pairs.sizes[0][i],
        "genes_b": pairs.sizes[1][j],
        "genes_in_common": pairs.shared[i, j],
        "jaccard": pairs.jaccard[i, j],
        "cosine": pairs.genes.cosine[i, j],
        "score_correlation": pairs.scores.cosine[i, j],
        "sample_jaccard": pairs.sample_jaccard[i, j],
        "p_genes": pairs.genes.p[i, j],
        "reason": f"Module {i + 1} of {labels[0]} {relation}: {_in_words(pairs, i, j)}.",
    }


def _alone(pairs: Pairs, side: int, module: int, labels: Labels) -> dict[str, Any]:
    """A module of the first (0) or second (1) fit without a counterpart."""
    similarities = pairs.similarity[module] if side == 0 else pairs.similarity[:, module]
    letter, status = "ab"[side], (GONE, NEW)[side]
    row = {f"module_{letter}": module, f"genes_{letter}": pairs.sizes[side][module]}
    subject, other = f"Module {module + 1} of {labels[side]}", labels[1 - side]
    if not similarities.size:
        return row | {"status": status, "reason": f"{subject} is only there: {other} has no modules."}
    if np.isnan(similarities).all():
        few = f"too few of its genes and samples are in {other}"
        return row | {"status": NOT_COMPARABLE, "reason": f"{subject} cannot be compared: {few}."}
    closest = int(np.nan_to_num(similarities).argmax())
    words = _in_words(pairs, *((module, closest) if side == 0 else (closest, module)))
    reason = f"{subject} is only there (closest is module {closest + 1} of {other}: {words})."
    return row | {"status": status, "similarity": similarities[closest], "reason": reason}


def _in_words(pairs: Pairs, i: int, j: int) -> str:
    first, second = pairs.sizes[0][i], pairs.sizes[1][j]
    sizes = f"{first}" if first == second else f"{first} and {second}"
    text, score = f"{pairs.shared[i, j]} of {sizes} genes in common", pairs.scores.cosine[i, j]
    return text if np.isnan(score) else f"{text}, correlation of scores {abs(score):.2f}"
