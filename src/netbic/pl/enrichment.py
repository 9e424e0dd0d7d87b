"""Gene sets that are enriched in modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.errors import InputError
from netbic.estimators import check_count
from netbic.pl.canvas import SMALL, axes_for, colour_bar, set_title
from netbic.pl.names import LITERAL, label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEEDED = ("module", "term", "n_overlap", "q_value")
_LEVEL = 0.05
_SMALLEST_DOT, _LARGEST_DOT = 15.0, 160.0  # areas in square points
_LONGEST_TERM = 48
_EVIDENCE = "Blues"  # white: no evidence


def enrichment(table: pd.DataFrame, *, n_terms: int = 10, ax: Axes | None = None) -> Axes:
    """Plot gene sets by modules: the colour is -log10 of the adjusted p-value, the size the number of shared genes.

    Terms are selected in turn from the most significant ones of each module. Terms that are not significant (0.05) in
    any module are drawn only if no term is significant. A black outline marks significant pairs; pairs without a shared
    gene have no dot.

    Parameters
    ----------
    table : DataFrame
        The result of `enrichment.gene_sets`. Modules whose sides were tested separately have two columns, + and -.
        Modules are numbered from 0 in the table, and from 1 in the plot.
    n_terms : int
        Maximum number of terms, for all modules together.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> sets = {"abc": ["a", "b", "c"], "xyz": ["x", "y", "z", "a"]}
    >>> table = netbic.enrichment.gene_sets([["a", "b", "c"]], sets, names=list("abcdefghijxyz"), min_size=2)
    >>> [label.get_text() for label in netbic.pl.enrichment(table).get_yticklabels()]
    ['abc']
    """
    _check(table, n_terms)
    table = table.assign(column=_columns(table))
    columns = _columns_in_order(table)
    terms = _chosen_terms(table, columns, n_terms)
    ax = axes_for(ax, (3.6 + 0.35 * len(columns) + 1.5, 1.4 + 0.25 * len(terms)))
    drawn = table[table["term"].isin(terms)]
    if drawn.empty:
        ax.text(0.5, 0.5, "no gene set shares a gene with a module", transform=ax.transAxes, ha="center", size=SMALL)
        ax.set_axis_off()
        return ax
    _draw_dots(ax, drawn, columns, terms)
    ax.set_xticks(range(len(columns)), columns, fontsize=SMALL)
    ax.set_yticks(range(len(terms)), _term_names(drawn, terms), fontsize=SMALL, **LITERAL)
    ax.set(xlabel="module", xlim=(-0.6, len(columns) - 0.4), ylim=(len(terms) - 0.4, -0.6))
    ax.grid(color="0.93", lw=0.6)
    ax.set_axisbelow(True)
    if (drawn["q_value"] > _LEVEL).all():
        set_title(ax, f"no term is significant at {_LEVEL}")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _check(table: pd.DataFrame, n_terms: int) -> None:
    check_count("n_terms", n_terms)
    missing = [name for name in _NEEDED if name not in getattr(table, "columns", ())]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}: give what enrichment.gene_sets returns")


def _columns(table: pd.DataFrame) -> list[str]:
    """The label of the column of each row: the number of its module, and + or - if one side was tested."""
    marks = _sides(table).map({1: " +", 0: "", -1: " \N{MINUS SIGN}"})
    return [f"{module + 1}{mark}" for module, mark in zip(table["module"], marks, strict=True)]


def _columns_in_order(table: pd.DataFrame) -> list[str]:
    order = pd.DataFrame({"column": table["column"], "module": table["module"], "side": -_sides(table)})
    return list(dict.fromkeys(order.sort_values(["module", "side"], kind="stable")["column"]))


def _sides(table: pd.DataFrame) -> pd.Series[int]:
    """1 (up), -1 (down) or 0 (both); tables of earlier versions have a column `sign` or none."""
    if "side" in table:
        return table["side"].map({"up": 1, "down": -1}).fillna(0).astype(int)
    return table["sign"].astype(int) if "sign" in table else pd.Series(0, index=table.index)


def _chosen_terms(table: pd.DataFrame, columns: list[str], n_terms: int) -> list[Any]:
    """The most significant terms of each module in turn; in the order of the modules."""
    ranked = table.sort_values(["q_value", "n_overlap"], ascending=[True, False], kind="stable")
    turn = ranked.groupby("column").cumcount()
    if (ranked["q_value"] <= _LEVEL).any():
        ranked = ranked[ranked["q_value"] <= _LEVEL]
    first = ranked.assign(turn=turn).sort_values(["turn", "q_value"], kind="stable").drop_duplicates("term")[:n_terms]
    order = {column: number for number, column in enumerate(columns)}
    return first.assign(order=first["column"].map(order)).sort_values(["order", "turn"])["term"].tolist()


def _term_names(table: pd.DataFrame, terms: list[Any]) -> list[str]:
    """Descriptions of the terms if the table has them, otherwise the terms."""
    named = table.drop_duplicates("term").set_index("term")
    printable = named["name"].to_dict() if "name" in named else {}
    return [label_text(printable.get(term) or term, _LONGEST_TERM) for term in terms]


def _draw_dots(ax: Axes, table: pd.DataFrame, columns: list[str], terms: list[Any]) -> None:
    table = table.sort_values("n_overlap", ascending=False)
    shown = minus_log10(table["q_value"].to_numpy(dtype=float))
    x = table["column"].map({column: k for k, column in enumerate(columns)})
    y = table["term"].map({term: k for k, term in enumerate(terms)})
    most = float(table["n_overlap"].max()) or 1.0
    areas = dot_areas(table["n_overlap"].to_numpy(dtype=float), most)
    outline = np.where(table["q_value"] <= _LEVEL, "black", "0.8").tolist()
    dots = ax.scatter(
        x, y, s=areas, c=shown, cmap=_EVIDENCE, vmin=0, vmax=float(shown.max()) or 1.0, edgecolors=outline, lw=0.9
    )
    colour_bar(dots, ax, r"$-\log_{10}$ q", anchor=(0.0, 0.0))
    _size_legend(ax, most)


def minus_log10(q_values: NDArray[Any]) -> NDArray[Any]:
    """-log10 of q-values; 0, a rounding error, is replaced by the smallest positive q-value.

    Examples
    --------
    >>> import numpy as np
    >>> minus_log10(np.array([0.1, 0.001, 0.0])).round(6).tolist()
    [1.0, 3.0, 3.0]
    """
    positive = q_values[q_values > 0]
    return np.asarray(-np.log10(np.maximum(q_values, positive.min() if positive.size else 1e-300))) + 0.0


def dot_areas(overlaps: NDArray[Any], most: float) -> NDArray[Any]:
    """Areas that increase linearly with the number of genes."""
    return np.asarray(_SMALLEST_DOT + (_LARGEST_DOT - _SMALLEST_DOT) * overlaps / most)


def _size_legend(ax: Axes, most: float) -> None:
    sizes = sorted({1, max(1, round(most / 2)), round(most)})
    handles = [ax.scatter([], [], s=dot_areas(np.array([size]), most), c="0.6", label=f"{size}") for size in sizes]
    ax.legend(
        handles=handles, title="genes", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL,
        title_fontsize=SMALL,
    )  # fmt: skip
