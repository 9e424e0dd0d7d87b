"""Similarity of the modules of two fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netbic.arrays import check_choice
from netbic.comparison import Comparison
from netbic.errors import InputError
from netbic.pl.canvas import DIVERGING, SMALL, axes_for, colour_bar
from netbic.pl.names import LITERAL, label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORDS = {
    "similarity": "similarity",
    "cosine": "cosine of the weights",
    "jaccard": "Jaccard index of the genes",
    "score_correlation": "correlation of the scores",
    "sample_jaccard": "Jaccard index of the samples",
}
_SIGNED = ("cosine", "score_correlation")
_MOST_NUMBERS = 400  # cells with numbers
_UNSIGNED = "Blues"


def comparison(comparison: Comparison, *, values: str = "similarity", ax: Axes | None = None) -> Axes:
    """Plot the similarity of all pairs of modules of two fits.

    Modules of the first fit are rows, those of the second one columns: first those with a counterpart, in the order of
    the rows, then the others. Matched modules have a black outline. Pairs that cannot be compared are grey.

    Parameters
    ----------
    comparison : Comparison
        The result of `netbic.compare`.
    values : {"similarity", "cosine", "jaccard", "score_correlation", "sample_jaccard"}
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> ax = netbic.pl.comparison(netbic.compare(model, model))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '2']
    """
    if not isinstance(comparison, Comparison):
        raise TypeError(f"comparison={type(comparison).__name__}: expected the result of netbic.compare")
    check_choice("values", values, _WORDS)
    table = comparison.similarity[values]
    if not table.size:
        raise InputError("one of the fits has no modules: there is nothing to draw")
    matched = comparison.table.dropna(subset=["module_a", "module_b"])
    partners = dict(zip(matched["module_a"].astype(int), matched["module_b"].astype(int), strict=True))
    columns = [*partners.values(), *(j for j in range(table.shape[1]) if j not in partners.values())]
    ax = axes_for(ax, (2.4 + 0.38 * table.shape[1], 1.6 + 0.32 * table.shape[0]))
    numbers = table.to_numpy(dtype=float)[:, columns]
    limits = (-1, 1) if values in _SIGNED else (0, 1)
    ax.set_facecolor("0.85")  # where there is no number
    colours = DIVERGING if values in _SIGNED else _UNSIGNED
    shown = ax.pcolormesh(numbers, cmap=colours, vmin=limits[0], vmax=limits[1], edgecolors="white", lw=0.5)
    _outline(ax, [(row, columns.index(column)) for row, column in partners.items()])
    if numbers.size <= _MOST_NUMBERS:
        _write(ax, numbers)
    colour_bar(shown, ax, _WORDS[values])
    ax.set_xticks(np.arange(len(columns)) + 0.5, [str(column + 1) for column in columns], fontsize=SMALL)
    ax.set_yticks(np.arange(len(table)) + 0.5, [str(row + 1) for row in range(len(table))], fontsize=SMALL)
    first, second = (f"module of {label_text(label, 40)}" for label in comparison.labels)
    ax.set_xlabel(second, **LITERAL)
    ax.set_ylabel(first, **LITERAL)
    ax.set(xlim=(0, len(columns)), ylim=(len(table), 0))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _outline(ax: Axes, cells: list[tuple[int, int]]) -> None:
    from matplotlib.patches import Rectangle

    for row, column in cells:
        ax.add_patch(Rectangle((column, row), 1, 1, fill=False, ec="black", lw=1.2, zorder=3, clip_on=False))


def _write(ax: Axes, numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    for (row, column), number in np.ndenumerate(numbers):
        if abs(number) >= 0.005:  # neither missing nor written as 0.00
            colour = "white" if abs(number) > 0.65 else "black"
            text = f"{number:.2f}".replace("-", "\N{MINUS SIGN}")
            ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=SMALL - 1.5, color=colour)
