"""Strips above a heatmap: what is known about its samples, as colours."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Indices
from netbic.association import Variable
from netbic.errors import import_optional

OTHER, MISSING = "#7A7A7A", "#D4D4D4"
_SHADES = 64  # of numbers
_MOST_STRIPS = 4


class Strip(NamedTuple):
    """A variable: a colour per sample of the heatmap as an image, and what the colours mean."""

    variable: str
    image: str
    keys: list[tuple[str, str]]  # label and colour
    is_scale: bool  # whether the keys are points of a scale


def strips(variables: list[Variable], samples: NDArray[Any], colours: Mapping[str, Mapping[str, str]]) -> list[Strip]:
    """The first few variables that are labels or numbers.

    Parameters
    ----------
    variables : list of Variable
    samples : array of int
        The samples of the heatmap, as positions in the table.
    colours : dict
        Of `netbic.pl.variable_colours`, so that a label has the same colour in all modules and in plots.
    """
    shown = [variable for variable in variables if variable.kind in ("categorical", "ordered", "numeric")]
    return [
        _of_levels(variable, samples, colours[variable.name])
        if variable.kind == "categorical"
        else _of_numbers(variable, samples)
        for variable in shown[:_MOST_STRIPS]
    ]


def _of_levels(variable: Variable, samples: NDArray[Any], chosen: Mapping[str, str]) -> Strip:
    """A colour per level; if there are more levels than colours, the rarest are "other"."""
    places = {level: place for place, level in enumerate(chosen)}
    of_levels = np.array([places.get(level, len(chosen)) for level in variable.levels], dtype=np.intp)
    codes = np.full(variable.known.size, len(chosen) + 1, dtype=np.intp)
    codes[variable.known] = of_levels[variable.values[variable.known].astype(np.intp)]
    keys = [*chosen.items(), *([("other", OTHER)] if (codes == len(chosen)).any() else [])]
    return _strip(variable, codes[samples], [*chosen.values(), OTHER, MISSING], keys, is_scale=False)


def _of_numbers(variable: Variable, samples: NDArray[Any]) -> Strip:
    """Shades between the lowest and the highest value; ordered levels at equal distances."""
    known = variable.known
    low, high = float(variable.values[known].min()), float(variable.values[known].max())
    shares = (variable.values - low) / ((high - low) or 1.0)
    codes = np.where(known, np.nan_to_num(shares) * (_SHADES - 1), _SHADES).round().astype(np.intp)
    shades = [*_shades(), MISSING]
    if variable.kind == "ordered":
        places = np.linspace(0, _SHADES - 1, len(variable.levels)).round().astype(np.intp)
        marks = list(zip(variable.levels, places.tolist(), strict=True))
    else:
        marks = [(f"{low:.4g}", 0), (f"{(low + high) / 2:.4g}", _SHADES // 2), (f"{high:.4g}", _SHADES - 1)]
    keys = [(label.replace("-", "\N{MINUS SIGN}") if not variable.levels else label, shades[at]) for label, at in marks]
    return _strip(variable, codes[samples], shades, keys, is_scale=True)


def _strip(
    variable: Variable, codes: Indices, colours: list[str], keys: list[tuple[str, str]], *, is_scale: bool
) -> Strip:
    missing = [("missing", MISSING)] if (codes == len(colours) - 1).any() else []
    return Strip(variable.name, _image(codes, colours), [*keys, *missing], is_scale)


def _shades() -> list[str]:
    matplotlib = import_optional("matplotlib", "report", "a report")
    rgb = np.rint(255 * matplotlib.colormaps["cividis"](np.linspace(0, 1, _SHADES))[:, :3]).astype(int)
    return [f"#{red:02X}{green:02X}{blue:02X}" for red, green, blue in rgb.tolist()]


def _image(codes: Indices, colours: list[str]) -> str:
    """A line of pixels as a PNG in a data URI."""
    image = import_optional("PIL.Image", "report", "a report").fromarray(codes.astype(np.uint8)[None])
    image.putpalette(bytes.fromhex("".join(colour[1:] for colour in colours)))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
