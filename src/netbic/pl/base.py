"""What all plots share: models and data to draw, axes, colours, names as labels, and colours of sample tables."""

from __future__ import annotations

import bisect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, wraps
from inspect import Parameter, cleandoc, signature
from numbers import Integral
from string import Template
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array, Floats, Indices, Matrix, kind_of, to_dense
from netbic.errors import InputError, import_optional, one_line, plural, shown
from netbic.estimators.prediction import module_scores
from netbic.estimators.results import names_of
from netbic.estimators.studies import rescaled
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.io.expression import as_floats
from netbic.io.tables import as_matrix
from netbic.operators.blocks import select_columns
from netbic.pl.colours import sequential
from netbic.pl.fitting import SMALLEST, fitted_figure, small, usual

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

    from netbic.association.variables import Variable

    ModelLike: TypeAlias = SparseGraphSVD | AnnData

Colours = Mapping[str, Mapping[str, str]]  # by variable and level

MINUS: Final = "\N{MINUS SIGN}"
_MOST_ENTRIES = 10**8


def noun_of(model: object, axis: str, feature_name: str | None) -> str:
    """What features or samples are called in a figure; those of an AnnData object are genes and cells."""
    own = feature_name or ("gene" if kind_of(model) == "anndata" else "feature")
    return plural(own) if axis == "columns" else "cells" if kind_of(model) == "anndata" else "samples"


# Labels of samples, in strips, lanes and points, also in the report. Any two of the first eight differ clearly, also
# for people without red or green cones (tests/pl/test_colours.py); the others, for more than eight labels, differ less.
LABELS: Final = (
    *("#0072B2", "#FAAD12", "#8A2F5C", "#60D1FD", "#00A873", "#D75E23", "#CA8CAC", "#4A2C1A"),
    *("#8BE49D", "#3F97FB", "#8D5545", "#053FA8", "#6A3F05", "#3A6B7C", "#D39F9F", "#F76168"),
    *("#723B3F", "#A680BD", "#86585E", "#3A9643"),
)
CLEAR: Final = 8
# Modules: ten colours of which neighbours differ clearly, dark enough for white numbers; see `module_colours`.
MODULES: Final = (
    *("#332188", "#5DA111", "#DC1473", "#805F06", "#05A295"),
    *("#A05AD0", "#084056", "#8A2F38", "#A88C6A", "#6D6E6F"),
)
LINE: Final = LABELS[0]  # of curves and points that stand for nothing else
DIVERGING, SEQUENTIAL = "RdBu_r", "cividis"
POSITIVE, NEGATIVE, GREY, ALARM = "#B2182B", "#2166AC", "0.6", "#D55E00"
LITERAL: Final[dict[str, Any]] = {"parse_math": False, "usetex": False}  # a $ is a $
_LINE = 1.25  # height of a line of names, relative to their font size
_LETTER = 0.6  # width of a letter, relative to the size of the text
_MOST_STRIPS = 12
OTHER, MISSING = "#7A7A7A", "#D4D4D4"


# Parts of the docstrings of several plots.
_DOCUMENTED: Final = {
    "module": "module : int\n    Its number, from 1.",
    "axis": 'axis : {"columns", "rows"}\n    Features or samples.',
    "colours": "colours : dict of dict, optional\n    Colours of levels, by column of the annotation and level: "
    '`{"sex": {"f": "#E69F00", "m": "#0072B2"}}`.',
    "names": "names : list of str, optional\n    Names of all modules for the title, e.g. of "
    "`netbic.enrichment.module_names`. Default: those of the folder, if there is one.",
    "feature_name": 'feature_name : str, optional\n    The word for features, such as "gene" (the default of AnnData '
    'objects; otherwise "feature").',
    "key": "key : str\n    Key of the modules in an AnnData object (`key_added` of `tl.modules`).",
    "ax": "ax : Axes, optional\n    Default: those of a new figure.\n"
    "title, xlabel, ylabel : str, optional\n    Instead of the title and the labels of the axes that the plot has.\n"
    "size : (float, float), optional\n    Width and height of a new figure, in inches.\n\nReturns\n-------\nAxes",
}
Plot = TypeVar("Plot", bound=Callable[..., Any])


class Labels(TypedDict, total=False):
    """What every plot takes as keyword arguments."""

    title: str | None
    xlabel: str | None
    ylabel: str | None
    size: tuple[float, float] | None


def plot(draw: Plot) -> Plot:
    """A function that draws into `ax`, or into a new figure in which all texts fit.

    The parts that its docstring names by `$module`, `$ax`, ... are inserted, and its signature has all arguments.
    """

    @wraps(draw)
    def drawn(*values: Any, ax: Axes | None = None, size: Any = None, **given: Any) -> Axes:
        own = {} if size is None else {"size": size}
        if ax is not None:
            return draw(*values, ax=ax, **own, **given)  # type: ignore[no-any-return]
        return fitted_figure(lambda size: draw(*values, **given | ({} if size is None else {"size": size})), size)

    drawn.__doc__ = Template(cleandoc(draw.__doc__ or "")).substitute(_DOCUMENTED)
    own = signature(draw)
    known = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    every = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=f"{kind} | None")
        for name, kind in {**dict.fromkeys(("title", "xlabel", "ylabel"), "str"), "size": "tuple[float, float]"}.items()
    ]
    drawn.__signature__ = own.replace(parameters=[*known, *every])  # type: ignore[attr-defined]
    return cast("Plot", drawn)


# ---- models and data -----------------------------------------------------------------------------------------------


def fitted(model: object, key: str = "netbic") -> SparseGraphSVD:
    """The fitted model, or the one that `tl.modules` stored in an AnnData object under `key`."""
    if kind_of(model) == "anndata":
        from netbic import tl

        return tl.from_anndata(model, key)
    if is_model(model):
        return fitted_model(model)
    expected = "expected a fitted SparseGraphSVD, or an AnnData object after tl.modules"
    raise TypeError(f"model={type(model).__name__}: {expected}")


class Data(NamedTuple):
    """A matrix, and the names of its rows and columns if it has names."""

    matrix: Matrix
    rows: pd.Index[Any] | None = None
    columns: pd.Index[Any] | None = None


def data_of(model: Matrix, X: Matrix, key: str = "netbic") -> Data:
    """The data to draw: X, or the model itself if it is an AnnData object."""
    X = model if X is None and kind_of(model) == "anndata" else X
    if isinstance(X, Integral):
        remedy = f"for one module use module={X} (heatmap: modules=[{X}])"
        raise TypeError(f"X={X}: the second argument is the data; {remedy}")
    if X is None:
        raise InputError("X is missing: give the data that the model was fitted to")
    if kind_of(X) == "anndata":
        from netbic import tl

        return Data(tl.matrix_of(X, key), X.obs_names, X.var_names)
    if kind_of(X) == "table":
        return Data(as_matrix(X), X.index, X.columns)
    if getattr(X, "ndim", 2) != 2:
        raise InputError(f"X has {X.ndim} dimensions where 2 are needed: give the data that the model was fitted to")
    return Data(as_floats(X) if kind_of(X) == "dask" else as_matrix(X))


def entries(model: SparseGraphSVD, data: Data, rows: Indices, columns: Indices) -> Array:
    """These entries, centred and scaled as in the fit."""
    if rows.size * columns.size > _MOST_ENTRIES:
        raise InputError(f"{rows.size:,} x {columns.size:,} entries are too many to plot: choose fewer modules")
    return entries_of_parts(model, data, [(rows, columns)])[0]


def entries_of_parts(model: SparseGraphSVD, data: Data, parts: Sequence[tuple[Indices, Indices]]) -> list[Array]:
    """Entries of rows and columns, for several pairs of them: blocks of a Dask array are read once for all.

    Of a sparse matrix only these entries are converted to dense.
    """
    scaler, made, everything = model.scaler_, list[Array](), np.arange(model.n_features_in_)
    wanted = [(rows, everything if scaler.rows else columns) for rows, columns in parts]  # row means are of all columns
    places = [
        (positions(model, data, "rows", rows), positions(model, data, "columns", columns)) for rows, columns in wanted
    ]
    if isinstance(data.matrix, np.ndarray):
        picked = [data.matrix[np.ix_(*place)] for place in places]
    else:
        picked = [select_columns(data.matrix[rows], columns) for rows, columns in places]
    if kind_of(data.matrix) == "dask":
        picked = import_optional("dask", "dask", "a Dask array").compute(*picked)
    for part, (rows, used), (_, columns) in zip(picked, wanted, parts, strict=True):
        design = None if model.covariates_ is None else model.covariates_.to_numpy(dtype=np.float64)[rows]
        of_columns = replace(
            scaler,
            offsets=scaler.offsets[used],
            factors=None if scaler.factors is None else scaler.factors[used],
            effects=None if scaler.effects is None else scaler.effects[:, used],
        )
        values = of_columns.apply(rescaled(model, to_dense(part, np.float64), rows, used), design)
        made.append(values[:, columns] if scaler.rows else values)
    return made


def positions(model: SparseGraphSVD, data: Data, axis: str, members: Indices) -> Indices:
    """Positions of the model's rows or columns in X: by name if both have names, otherwise unchanged."""
    names, index = pd.Index(names_of(model, axis)), data.rows if axis == "rows" else data.columns
    if index is not None and model.names_[axis] is not None and not index.equals(names):
        if not index.is_unique:
            problem = f"names of {axis} occur twice in X, so they cannot be matched to the model"
            raise InputError(f"{problem}: give the X of the fit")
        positions = index.get_indexer(names[members])
        if (positions < 0).any():
            absent = str(names[members][int(np.argmin(positions))])
            what = "sample" if axis == "rows" else "feature"
            raise InputError(f"X has no {what} {shown(absent)} of the modules: give the X of the fit")
        return np.asarray(positions, dtype=np.intp)
    size = data.matrix.shape[0 if axis == "rows" else 1]
    if size != names.size:
        raise InputError(f"X has {size:,} {axis} but the model was fitted to {names.size:,}: give the X of the fit")
    return members


def scores_of(model: SparseGraphSVD, data: Data, rows: Indices | None = None) -> Floats:
    """Scores of the samples of the data, or of those of the fit, by their positions in it, in its modules."""
    columns, matrix = positions(model, data, "columns", np.arange(model.n_features_in_)), data.matrix
    if rows is not None and not np.array_equal(at := positions(model, data, "rows", rows), np.arange(matrix.shape[0])):
        matrix = matrix[at]
    if not np.array_equal(columns, np.arange(matrix.shape[1])):
        matrix = select_columns(matrix, columns)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they have been matched here
        return np.asarray(module_scores(model, matrix), dtype=np.float64)


# ---- axes ----------------------------------------------------------------------------------------------------------


def axes_for(ax: Axes | None, size: tuple[float, float], labels: Labels) -> Axes:
    """The axes to draw into: `ax`, or those of a new figure, of `size` inches if `labels` have no other size."""
    if unknown := sorted(set(labels) - set(Labels.__annotations__)):
        raise TypeError(f"{unknown[0]!r} is not an argument of this plot")
    given = labels.get("size")
    if ax is None:
        pyplot = import_optional("matplotlib.pyplot", "plot", "a plot")
        try:
            width, height = map(float, size if given is None else given)
        except (TypeError, ValueError):
            width = height = np.nan
        if not (0 < width < np.inf and 0 < height < np.inf):
            raise InputError(f"size={given!r}: expected the width and the height of the figure in inches")
        made: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
        return made
    if given is not None:
        raise InputError(f"size={given!r} is that of a new figure: leave it out if `ax` is given")
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax={type(ax).__name__}: expected matplotlib axes, e.g. one of plt.subplots(1, 2)[1]")
    return ax


def pixels(ax: Axes, points: float) -> float:
    """A size in points, in pixels."""
    return points * float(ax.figure.dpi) / 72


def module_colours(k: int) -> tuple[str, str]:
    """The colour of the module at position k, and that of its number on it: of 30 modules, none is like another.

    Modules 11 to 20 have lighter shades of the first ten colours, modules 21 to 30 darker ones.
    """
    ink, shade = MODULES[k % len(MODULES)], k // len(MODULES) % 3
    parts = [int(ink[at : at + 2], 16) for at in (1, 3, 5)]
    parts = [(part, round(part + 0.5 * (255 - part)), round(0.5 * part))[shade] for part in parts]
    return "#{:02X}{:02X}{:02X}".format(*parts), "black" if shade == 1 else "white"


def symmetric_limit(values: NDArray[Any], share: float = 0.98) -> float:
    """A limit of a symmetric colour scale that outliers do not change; 1 if all values are zero or missing."""
    known = np.abs(values[np.isfinite(values)])
    limit = float(np.quantile(known, share)) if known.size else 0.0
    return limit or float(known.max(initial=0.0)) or 1.0


def set_title(ax: Axes, text: str, **options: Any) -> None:
    """A small title, aligned to the left."""
    ax.set_title(text, loc="left", size=usual(), **options)


def module_title(ax: Axes, module: int, name: str, facts: str, unit: str = "module") -> None:
    """The title of a plot of one module or pair; a name gets lines of its own."""
    which = f"{unit.capitalize()} {module}"
    parts = [f"{which}: {label_text(name, 120)}", facts] if name else [": ".join(filter(None, [which, facts]))]
    set_title(ax, "\n".join(filter(None, parts)), **LITERAL)


def write_labels(ax: Axes, labels: Labels) -> None:
    """The title and the labels of the axes that are given, instead of those that are there."""
    if (title := labels.get("title")) is not None:
        set_title(ax, title, **LITERAL)
    if (xlabel := labels.get("xlabel")) is not None:
        ax.set_xlabel(xlabel, **LITERAL)
    if (ylabel := labels.get("ylabel")) is not None:
        ax.set_ylabel(ylabel, **LITERAL)


def write_sentence(ax: Axes, text: str) -> None:
    """Text in the middle of the axes, where there is nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", size=small())


def despine(ax: Axes) -> None:
    """Hide the lines at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def without_frame(ax: Axes) -> None:
    """Hide all lines around the axes, and their ticks."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def colour_bar(mappable: ScalarMappable, ax: Axes, label: str, **options: Any) -> None:
    """A slim colour bar next to the axes."""
    bar = ax.figure.colorbar(mappable, ax=ax, **{"shrink": 0.5, "aspect": 20, "pad": 0.02} | options)
    bar.set_label(label, size=small())
    bar.ax.tick_params(labelsize=small())
    bar.outline.set_visible(False)


# ---- names as labels: one line, limited length, never interpreted as mathematics -------------------------------------


def label_text(name: object, longest: int = 24) -> str:
    """A name as a label: one line, shortened in the middle, squares for characters that the font does not have."""
    plain = " ".join(one_line(str(name)).split())
    if len(plain) > longest:
        tail = longest // 3
        plain = plain[: longest - tail - 1] + "\N{HORIZONTAL ELLIPSIS}" + plain[-tail:]
    if plain.isascii():
        return plain
    from matplotlib.font_manager import FontProperties, findfont

    # Matplotlib warns about missing characters only when the figure is drawn, without saying where they are.
    known = _letters(tuple(str(findfont(FontProperties(family=[each]))) for each in FontProperties().get_family()))
    square = "\N{WHITE SQUARE}"
    instead = square if ord(square) in known else "?"
    return "".join(letter if ord(letter) in known else instead for letter in plain)


def longest_label(ax: Axes, share: float, most: int) -> int:
    """How many letters of small text fit into a share of the width of the figure; `most` at most, but not too few."""
    return int(np.clip(share * ax.figure.bbox.width / pixels(ax, _LETTER * small()), min(12, most), most))


def as_label(number: float, digits: int = 6) -> str:
    """A number without trailing zeros, with a typographic minus sign."""
    return f"{number:z.{digits}g}".replace("-", MINUS)


@lru_cache(maxsize=4)
def _letters(fonts: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(font).get_charmap() for font in fonts))


def level_text(variable: object, level: object, longest: int = 60) -> str:
    """A variable and one of its levels as a label in which both can be recognised; "" is no level."""
    if not str(level):
        return label_text(variable, longest)
    return f"{label_text(variable, longest // 2)}: {label_text(level, longest // 2)}"


def name_ticks(
    ax: Axes, which: str, positions: Iterable[float], names: Any, priority: NDArray[Any], *, some: bool = True
) -> None:
    """Write names on the "x" or "y" axis: all that fit without overlap, by decreasing priority, or (not `some`) none.

    Uses the current size of the axes in pixels: call `apply_layout` before.
    """
    at = np.asarray(list(positions), dtype=float)
    side = 0 if which == "x" else 1
    points = np.tile([ax.get_xlim()[0], ax.get_ylim()[0]], (at.size, 1))
    points[:, side] = at
    in_pixels = np.asarray(ax.transData.transform(points))[:, side]
    line = pixels(ax, 1.0) * _LINE  # the height of a line in a font of one point
    kept, size = np.arange(at.size), float(np.diff(np.sort(in_pixels)).min(initial=np.inf)) / line
    if size < SMALLEST:
        size = SMALLEST + 1
        kept = apart(in_pixels, priority, line * size)[: None if some else 0]
    labels = [label_text(names[k]) for k in kept]
    options: dict[str, Any] = {"fontsize": min(size, small()), **LITERAL} | ({"rotation": 90} if side == 0 else {})
    (ax.set_xticks if side == 0 else ax.set_yticks)(at[kept], labels, **options)


def number_ticks(ax: Axes, which: str, positions: NDArray[Any], labels: Sequence[Any]) -> None:
    """Write numbers or short labels at an axis, only every second, third, ... one if there is no room for all.

    Uses the current size of the axes in pixels: call `apply_layout` before.
    """
    side, texts = 0 if which == "x" else 1, [str(label) for label in labels]
    set_ticks = ax.set_xticks if which == "x" else ax.set_yticks
    turned: dict[str, Any] = {}
    room = abs(float(np.diff(ax.transData.transform([(0, 0), (1, 1)]), axis=0)[0, side])) / pixels(ax, small())
    length = max(map(len, texts), default=1) * _LETTER + 0.4 if which == "x" else _LINE
    if which == "x" and length > max(room, 4 * _LETTER):  # long ones are turned
        turned, length = {"rotation": 90}, _LINE
    step = max(int(np.ceil(length / room)), 1)
    set_ticks(positions[::step], texts[::step], fontsize=small(), **turned, **LITERAL)


def apart(positions: NDArray[Any], priority: NDArray[Any], gap: float) -> NDArray[np.intp]:
    """Indices of positions at least `gap` from each other, selected by decreasing priority."""
    taken: list[float] = []
    kept = []
    for k in np.argsort(-np.asarray(priority), kind="stable").tolist():
        position = float(positions[k])
        left = bisect.bisect(taken, position)
        if all(abs(position - other) >= gap for other in taken[max(left - 1, 0) : left + 1]):
            taken.insert(left, position)
            kept.append(k)
    return np.sort(np.array(kept, dtype=np.intp))


# ---- what is known about the samples, as colours: strips beside a heatmap, lanes below a histogram -------------------


def annotation_table(
    annotation: Any, model: object, samples: NDArray[Any], *, most: int | None = _MOST_STRIPS
) -> pd.DataFrame:
    """The annotation with a row per sample, in their order.

    It is a table or a series with the names of the samples as index, or, if `model` is an AnnData object, names of
    columns of its obs. There are `most` columns.
    """
    named = [annotation] if isinstance(annotation, str) else annotation
    if isinstance(named, Sequence) and all(isinstance(name, str) for name in named):
        if kind_of(model) != "anndata":
            remedy = "give a table, or an AnnData object with these columns in obs"
            raise InputError(f"annotation is given by names: {remedy}")
        obs: pd.DataFrame = model.obs  # type: ignore[attr-defined]
        if missing := [name for name in named if name not in obs]:
            known = ", ".join(map(str, obs))
            raise InputError(f"annotation {missing[0]!r} is not a column of obs (there are: {known})")
        annotation = obs[list(named)]
    if isinstance(annotation, pd.Series):
        annotation = annotation.to_frame(annotation.name if annotation.name is not None else "annotation")
    if not isinstance(annotation, pd.DataFrame):
        kind = type(annotation).__name__
        raise TypeError(f"annotation={kind}: expected a table or series with the names of the samples as index")
    if most is not None and annotation.shape[1] > most:
        raise InputError(f"annotation has {annotation.shape[1]} columns: choose at most {most}")
    index, wanted = (pd.Index([str(name) for name in names]) for names in (annotation.index, samples))
    if not index.is_unique:
        raise InputError(f"annotation has sample {shown(index[index.duplicated()][0])} twice: keep one row per sample")
    if index.isin(wanted).any():
        return annotation.set_axis(index).reindex(wanted)
    if len(index) == len(wanted) and isinstance(annotation.index, pd.RangeIndex):
        return annotation
    first = shown(index[0]) if len(index) else "no rows"
    both = f"it has {first}, the model {shown(wanted[0])}"
    raise InputError(f"annotation has none of the samples ({both}): use the names of the samples as its index")


def label_colours(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    """Colours by variable and level, from the number of samples of each level of each categorical variable.

    Colours of different variables differ as long as there are enough. Of many levels the rarest get no colour: they are
    drawn as "other".
    """
    found, used = dict[str, dict[str, str]](), 0
    for name, own in counts.items():
        most = len(LABELS) if len(own) <= len(LABELS) else len(LABELS) - 1
        common = set(sorted(own, key=lambda level: -own[level])[:most])
        levels = [level for level in own if level in common]
        first, every = (used, CLEAR) if len(levels) <= CLEAR else (0, len(LABELS))
        found[name] = {level: LABELS[(first + k) % every] for k, level in enumerate(levels)}
        used += len(own)
    return found


def variable_colours(variables: Iterable[Variable]) -> dict[str, dict[str, str]]:
    """The colours of the levels of all categorical variables among these, see `label_colours`."""
    counts = dict[str, dict[str, int]]()
    for each in variables:
        if each.kind == "categorical":
            own = np.bincount(each.values[each.known].astype(np.intp), minlength=len(each.levels)).tolist()
            counts[each.name] = dict(zip(each.levels, own, strict=True))
    return label_colours(counts)


class Strip(NamedTuple):
    """One variable: a colour per sample, and the legend."""

    name: str
    colours: NDArray[Any]  # as "#RRGGBB"
    legend: list[tuple[str, str]]
    codes: NDArray[np.intp]  # the entry of the legend of each sample; of numbers, 0 if they are known
    is_numeric: bool = False


def annotation_strips(
    annotation: Any, model: object, samples: NDArray[Any], colours: Colours | None = None
) -> list[Strip]:
    """The annotation of these samples as strips, none without an annotation; `colours` are those that are given.

    Columns have the types that they have in tests and in the report. Columns that are not tested, such as names of
    patients, are labels.
    """
    from netbic.association.variables import LEFT_OUT, Variable, read_variables

    if annotation is None:
        return []
    variables = list[Variable]()
    for name, column in annotation_table(annotation, model, samples).items():
        frame = column.to_frame(str(name))
        (variable,) = read_variables(frame, survival="none")
        if variable.kind == LEFT_OUT:
            with suppress(InputError):  # names of patients, for example, cannot be tested
                (variable,) = read_variables(frame, variables=[str(name)], survival="none")
        if variable.kind == LEFT_OUT:
            labels = column.map(str, na_action="ignore").astype("category")
            codes = np.where(labels.isna(), np.nan, labels.cat.codes)
            variable = Variable(str(name), "categorical", "", codes, tuple(labels.cat.categories))
        variables.append(variable)
    chosen = variable_colours(variables)
    for name in set(chosen) & set(colours or {}):
        chosen[name] |= {level: (colours or {})[name].get(level, own) for level, own in chosen[name].items()}
    return [variable_strip(variable, chosen) for variable in variables]


def shaded_strip(name: str, values: Floats, levels: Sequence[str] = ()) -> Strip:
    """Shades between the lowest and the highest number, or the first and the last one of some ordered levels."""

    def shades(numbers: Any) -> list[str]:
        colours = sequential((numbers - low) / ((high - low) or 1.0))
        return ["#{:02X}{:02X}{:02X}".format(*colour) for colour in colours.tolist()]

    known = np.isfinite(values)
    low, high = (0.0, len(levels) - 1.0) if levels else (float(values[known].min()), float(values[known].max()))
    ticks = np.arange(len(levels)) if levels else np.array([low, (low + high) / 2, high])
    legend = list(zip(levels or [as_label(tick, 4) for tick in ticks], shades(ticks), strict=True))
    legend += [] if known.all() else [("missing", MISSING)]
    colours = np.where(known, np.array(shades(np.where(known, values, low)), dtype=object), MISSING)
    codes = np.where(known, values if levels else 0, len(legend) - 1 if levels else -1).astype(np.intp)
    return Strip(name, colours, legend, codes, is_numeric=not levels)


def labelled_strip(name: str, labels: Sequence[str | None], chosen: Mapping[str, str]) -> Strip:
    """A colour per level; rare levels without a colour are "other"."""
    places = {level: code for code, level in enumerate(chosen)}
    codes = np.array([-1 if label is None else places.get(label, len(chosen)) for label in labels], dtype=np.intp)
    colours = np.array([*chosen.values(), OTHER, MISSING], dtype=object)[codes]
    legend = [*chosen.items()] + [("other", OTHER)] * bool((codes == len(chosen)).any())
    legend += [("missing", MISSING)] * bool((codes < 0).any())
    return Strip(name, colours, legend, np.where(codes < 0, len(legend) - 1, codes))


def variable_strip(variable: Variable, colours: Colours) -> Strip:
    """The strip of a variable of the report; `colours` are those of `variable_colours`."""
    if variable.kind != "categorical":
        return shaded_strip(variable.name, variable.values, variable.levels)
    return labelled_strip(variable.name, labels_of(variable), colours.get(variable.name, {}))


def labels_of(variable: Variable) -> list[str | None]:
    """The level of each sample, None if it is missing."""
    pairs = zip(variable.values, variable.known, strict=True)
    return [variable.levels[int(value)] if is_known else None for value, is_known in pairs]


def legend_line() -> float:
    """The height of a line of a legend, in inches."""
    return small() * 1.55 / 72


def legend_columns(n_lines: int, height: float) -> int:
    """The columns of a legend of so many lines that is no higher than `height` inches."""
    return max(1, -int(-n_lines // max(1.0, height / legend_line())))


def draw_legend(ax: Axes, parts: Sequence[tuple[str, Sequence[tuple[str, str]]]], height: float, gap: float) -> None:
    """One legend at the right of the axes, `gap` points away: headings, each with texts and their colours below.

    It has as many columns as it needs to be no higher than `height` inches.
    """
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    handles, headings = list[Patch](), list[int]()
    for heading, entries in parts:
        headings.append(len(handles))
        handles.append(Patch(alpha=0.0, label=label_text(heading, 40)))
        handles += [Patch(fc=colour, ec="none", label=label_text(text, 48)) for text, colour in entries]
    style: dict[str, Any] = {"frameon": False, "fontsize": small(), "handlelength": 1.0, "handleheight": 1.0}
    away = ax.transAxes + ScaledTranslation(gap / 72, 0, ax.figure.dpi_scale_trans)
    style |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "bbox_transform": away, "borderaxespad": 0.0}
    legend = ax.legend(handles=handles, borderpad=0.0, ncols=legend_columns(len(handles), height), **style)
    for number, text in enumerate(legend.get_texts()):
        text.set(weight="bold" if number in headings else "normal", **LITERAL)
