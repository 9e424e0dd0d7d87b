"""What is known about the samples, as colours: strips beside a heatmap, lanes below a histogram."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import kind_of
from netbic.association import Variable
from netbic.errors import InputError, shown
from netbic.pl.canvas import LABELS, SEQUENTIAL, SMALL
from netbic.pl.names import LITERAL, label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

_MOST_STRIPS = 12
_MOST_LEVELS = 20  # rarer ones are "other"
_FEW = 6  # different numbers up to which they are categories
_MISSING, _OTHER = (0.88, 0.88, 0.88), (0.45, 0.45, 0.45)


Colour = tuple[float, ...]
Colours = Mapping[str, Mapping[str, str]]  # by variable and level


class Strip(NamedTuple):
    """One variable: a colour per sample, and the legend."""

    name: str
    colours: NDArray[np.float64]  # (n_samples, 3)
    legend: list[tuple[str, Colour]]
    codes: NDArray[np.intp]  # the entry of the legend of each sample, -1 if it has none; all 0 for numbers
    is_numeric: bool = False


def annotation_table(
    annotation: Any, model: object, samples: NDArray[Any], *, most: int | None = _MOST_STRIPS
) -> pd.DataFrame:
    """The annotation with a row per sample, in their order.

    It is a table or a series with the names of the samples as index, or, if `model` is an AnnData object, names of
    columns of its obs. There are `most` columns.
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
    if most is not None and annotation.shape[1] > most:
        raise InputError(f"annotation has {annotation.shape[1]} columns: choose at most {most}")
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


def label_colours(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    """The colours of the levels of categorical variables, by variable and level.

    Colours of different variables differ as long as there are enough. Of many levels the rarest get no colour: they are
    drawn as "other".

    Parameters
    ----------
    counts : mapping
        The number of samples of each level of each variable, in the order of variables and levels.

    Examples
    --------
    >>> label_colours({"sex": {"f": 7, "m": 5}, "er": {"ER+": 9}})
    {'sex': {'f': '#E69F00', 'm': '#0072B2'}, 'er': {'ER+': '#009E73'}}
    """
    found, used = dict[str, dict[str, str]](), 0
    for name, own in counts.items():
        levels = _common(own)
        found[name] = dict(zip(levels, _palette(len(levels), used), strict=True))
        used += len(own)
    return found


def variable_colours(variables: Iterable[Variable]) -> dict[str, dict[str, str]]:
    """The colours of the levels of all categorical variables among these, see `label_colours`."""
    own = [variable for variable in variables if variable.kind == "categorical"]
    counts = [np.bincount(each.values[each.known].astype(np.intp), minlength=len(each.levels)) for each in own]
    return label_colours(
        {each.name: dict(zip(each.levels, n.tolist(), strict=True)) for each, n in zip(own, counts, strict=True)}
    )


def _common(counts: Mapping[str, int]) -> list[str]:
    """The levels that get a colour, in their order."""
    most = _MOST_LEVELS if len(counts) <= _MOST_LEVELS else _MOST_LEVELS - 1
    kept = set(sorted(counts, key=lambda level: -counts[level])[:most])
    return [level for level in counts if level in kept]


def _palette(size: int, used: int) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if size <= len(LABELS):
        return [LABELS[(used + k) % len(LABELS)] for k in range(size)]
    return [to_hex(colormaps["tab20"](k)) for k in range(size)]


def strips(table: pd.DataFrame, colours: Colours | None = None) -> list[Strip]:
    """The columns of a table as colours; `colours` are those of levels, where they are not to be chosen here."""
    numeric = [_is_numeric(column) for _, column in table.items()]
    counts = {
        str(name): _counts(column)
        for (name, column), is_numeric in zip(table.items(), numeric, strict=True)
        if not is_numeric
    }
    chosen = label_colours(counts)
    for name, given in (colours or {}).items():
        if name in chosen and set(chosen[name]) <= set(given):
            chosen[name] = {level: given[level] for level in chosen[name]}
    return [
        _numeric(str(name), column.to_numpy(dtype=float))
        if is_numeric
        else _categorical(str(name), column, chosen[str(name)])
        for (name, column), is_numeric in zip(table.items(), numeric, strict=True)
    ]


def _counts(column: pd.Series[Any]) -> dict[str, int]:
    """The number of samples of each level, in the order of the levels."""
    counts = column.dropna().astype(str).value_counts()
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    levels = [str(level) for level in column.cat.categories] if is_category else sorted(counts.index)
    return {level: int(counts[level]) for level in levels if counts.get(level, 0) > 0}


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


def _categorical(name: str, column: pd.Series[Any], chosen: Mapping[str, str]) -> Strip:
    from matplotlib.colors import to_rgb

    legend: list[tuple[str, Colour]] = [(level, to_rgb(colour)) for level, colour in chosen.items()]
    places = {level: code for code, level in enumerate(chosen)}
    known = column.notna().to_numpy()
    values = zip(column.astype(object).map(str), known, strict=True)
    codes = np.array([places.get(value, len(places)) if is_known else -1 for value, is_known in values], dtype=np.intp)
    if (codes == len(places)).any():
        legend.append(("other", _OTHER))
    shades = np.array([colour for _, colour in legend] + [_MISSING])[codes]
    if not known.all():
        legend.append(("missing", _MISSING))
    return Strip(name, shades, legend, codes)


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
