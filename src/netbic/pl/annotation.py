"""What is known about the samples, as colours: strips beside a heatmap, lanes below a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import kind_of
from netbic.errors import InputError, shown
from netbic.pl.canvas import PALETTE, SEQUENTIAL, SMALL
from netbic.pl.names import LITERAL, label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

_MOST_STRIPS = 12
_MOST_LEVELS = 20  # rarer ones are "other"
_FEW = 6  # different numbers up to which they are categories
_MISSING, _OTHER = (0.88, 0.88, 0.88), (0.45, 0.45, 0.45)


Colour = tuple[float, ...]


class Strip(NamedTuple):
    """One variable: a colour per sample, and the legend."""

    name: str
    colours: NDArray[np.float64]  # (n_samples, 3)
    legend: list[tuple[str, Colour]]
    codes: NDArray[np.intp]  # the entry of the legend of each sample, -1 if it has none; all 0 for numbers
    is_numeric: bool = False


def annotation_table(annotation: Any, model: object, samples: NDArray[Any]) -> pd.DataFrame:
    """The annotation with a row per sample, in their order.

    It is a table or a series with the names of the samples as index, or, if `model` is an AnnData object, names of
    columns of its obs.
    """
    if isinstance(annotation, str) or (
        isinstance(annotation, Sequence) and all(isinstance(name, str) for name in annotation)
    ):
        annotation = _of_obs([annotation] if isinstance(annotation, str) else list(annotation), model)
    if isinstance(annotation, pd.Series):
        annotation = annotation.to_frame(annotation.name if annotation.name is not None else "annotation")
    if not isinstance(annotation, pd.DataFrame):
        kind = type(annotation).__name__
        raise TypeError(f"annotation={kind}: expected a table or series with the names of the samples as index")
    if annotation.shape[1] > _MOST_STRIPS:
        raise InputError(f"annotation has {annotation.shape[1]} columns: choose at most {_MOST_STRIPS}")
    return _in_order(annotation, pd.Index([str(name) for name in samples]))


def _of_obs(names: list[str], model: object) -> pd.DataFrame:
    if kind_of(model) != "anndata":
        raise InputError("annotation is given by names: give a table, or an AnnData object with these columns in obs")
    obs: pd.DataFrame = model.obs  # type: ignore[attr-defined]
    if missing := [name for name in names if name not in obs]:
        raise InputError(f"annotation {missing[0]!r} is not a column of obs (there are: {', '.join(map(str, obs))})")
    return obs[names]


def _in_order(table: pd.DataFrame, samples: pd.Index[Any]) -> pd.DataFrame:
    index = pd.Index([str(name) for name in table.index])
    if not index.is_unique:
        raise InputError(f"annotation has sample {shown(index[index.duplicated()][0])} twice: keep one row per sample")
    if index.isin(samples).any():
        return table.set_axis(index).reindex(samples)
    if len(table) == len(samples) and isinstance(table.index, pd.RangeIndex):
        return table
    raise InputError(
        f"annotation has none of the samples (it has {shown(str(index[0])) if len(index) else 'no rows'}, the model "
        f"{shown(str(samples[0]))}): use the names of the samples as its index"
    )


def strips(table: pd.DataFrame) -> list[Strip]:
    """The columns of a table as colours; those of different variables differ as long as there are enough."""
    found, used = list[Strip](), 0
    for name, column in table.items():
        if _is_numeric(column):
            found.append(_numeric(str(name), column.to_numpy(dtype=float)))
            continue
        found.append(_categorical(str(name), column, used))
        used += len(found[-1].legend)
    return found


def _is_numeric(column: pd.Series[Any]) -> bool:
    return (
        pd.api.types.is_numeric_dtype(column)
        and not pd.api.types.is_bool_dtype(column)
        and column.nunique(dropna=True) > _FEW
    )


def _numeric(name: str, values: NDArray[np.float64]) -> Strip:
    from matplotlib import colormaps

    known = np.isfinite(values)
    low, high = float(values[known].min()), float(values[known].max())
    shades = colormaps[SEQUENTIAL]
    colours = np.asarray(shades((values - low) / (high - low)))[:, :3].copy()
    colours[~known] = _MISSING
    places: dict[float, float] = {low: 0.0, (low + high) / 2: 0.5, high: 1.0}
    marks: list[tuple[str, Colour]] = [(f"{value:.3g}", shades(place)[:3]) for value, place in places.items()]
    if not known.all():
        marks.append(("missing", _MISSING))
    return Strip(name, colours, marks, np.where(known, 0, -1).astype(np.intp), is_numeric=True)


def _categorical(name: str, column: pd.Series[Any], used: int) -> Strip:
    counts = column.value_counts(sort=True)
    counts = counts[counts > 0]
    listed = counts.index[:_MOST_LEVELS] if len(counts) <= _MOST_LEVELS else counts.index[: _MOST_LEVELS - 1]
    levels = list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else sorted(listed, key=str)
    levels = [level for level in levels if level in listed]
    palette = _palette(len(levels), used)
    legend = [(str(level), colour) for level, colour in zip(levels, palette, strict=True)]
    codes = pd.Index(levels).get_indexer(pd.Index(column)).astype(np.intp) if levels else np.full(len(column), -1)
    if len(counts) > len(levels):
        codes[(codes < 0) & column.notna().to_numpy()] = len(legend)
        legend.append(("other", _OTHER))
    colours = np.array([colour for _, colour in legend] + [_MISSING])[codes]
    if (codes < 0).any():
        legend.append(("missing", _MISSING))
    return Strip(name, colours, legend, np.asarray(codes, dtype=np.intp))


def _palette(size: int, used: int) -> list[Colour]:
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if size <= len(PALETTE):
        return [to_rgb(PALETTE[(used + k) % len(PALETTE)]) for k in range(size)]
    return [tuple(colormaps["tab20"](k)[:3]) for k in range(size)]


def draw_legend(ax: Axes, drawn: list[Strip], **options: Any) -> Legend:
    """One legend for all strips: the name of each variable, then its levels."""
    from matplotlib.patches import Patch

    handles = list[Patch]()
    for strip in drawn:
        handles.append(Patch(alpha=0.0, label=label_text(strip.name)))
        handles += [Patch(fc=colour, ec="none", label=label_text(level)) for level, colour in strip.legend]
    style: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "handlelength": 1.0, "handleheight": 1.0}
    style |= {"bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.3} | options
    legend = ax.legend(handles=handles, loc="upper left", **style)
    headers = np.cumsum([0, *(len(strip.legend) + 1 for strip in drawn)])[:-1]
    for number, text in enumerate(legend.get_texts()):
        text.set(weight="bold" if number in headers else "normal", **LITERAL)
    return legend
