"""Options for reading expression matrices and networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from netbic.errors import unusable

if TYPE_CHECKING:
    from netbic.io.matrices import NameArray

Options = TypeVar("Options", bound="ExpressionOptions | NetworkOptions")


def with_changes(options: Options, function: str, changes: dict[str, Any]) -> Options:
    """Options with the keywords that a function was called with."""
    check_keywords(function, changes, [field.name for field in fields(options)])
    return replace(options, **changes)


def _list_of_one(options: object, name: str) -> None:
    """Accept a single name where a sequence of names is expected."""
    if isinstance(given := getattr(options, name), str):
        object.__setattr__(options, name, (given,))  # the dataclass is frozen


def check_keywords(
    function: str, given: Iterable[str], known: Sequence[str], meant: Mapping[str, str] | None = None
) -> None:
    """Raise a TypeError with the nearest known name (or that of `meant`) if a keyword is not known."""
    for name in given:
        if name not in known:
            near = [meant[name]] if meant and name in meant else get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(known)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}: {remedy}")


@dataclass(frozen=True)
class ExpressionOptions:
    """How an expression matrix is read.

    Parameters
    ----------
    samples_in_rows : bool
        Text and Parquet tables have genes in rows unless this is set. All other formats have samples in rows, apart
        from 10x folders, whose layout is fixed.
    layer : str, optional
        Layer of an .h5ad file or .zarr store to read instead of X.
    gene_names : str, optional
        Column of `var` (.h5ad, .zarr) that holds the names of the genes (default: its index); for a 10x folder "id"
        or "symbol" (the default).
    skip_columns : str or sequence of str
        Columns of a table to leave out.
    """

    samples_in_rows: bool = False
    layer: str | None = None
    gene_names: str | None = None
    skip_columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        _list_of_one(self, "skip_columns")

    def check(self, path: Path, file_format: str) -> None:
        """Raise if an option does not apply to this format."""
        table = file_format not in (".h5ad", "zarr", "10x", ".npy")
        for name, meant, applies in (
            ("layer", ".h5ad files and .zarr stores", file_format in (".h5ad", "zarr")),
            ("gene_names", ".h5ad files, .zarr stores and 10x folders", not table),
            ("skip_columns", "tables", table),
            ("samples_in_rows", "tables", table),
        ):
            if getattr(self, name) and not applies:
                raise unusable(path, f"`{name}` is for {meant} only", "leave it out", parameters=[name])


@dataclass(frozen=True)
class NetworkOptions:
    """How a network is read.

    Parameters
    ----------
    relations : str or sequence of str
        Keep only edges with one of these relations.
    min_score : float, optional
        Keep only edges with at least this weight (STRING's scores range from 0 to 1000).
    string_info : path, optional
        STRING's protein.info file, which translates proteins into genes.
    names : path or array, optional
        Names of the nodes of an .npz matrix; in a file, one name per line. None: those in the .npz file, if any.
    header : bool, optional
        Whether an edge table has a header line. None: guessed.
    source, target : str, optional
        Columns of an edge table that hold the two ends of an edge. None: recognised by their names, otherwise the
        first two.
    weighted : bool, optional
        Whether weights are used in the graph (otherwise only for `min_score`). None: yes, except for STRING's scores.
    strip_versions : bool
        Remove the versions of Ensembl ids.
    signs : bool, optional
        Whether edges activate or inhibit. None: if there is a column of signs (`sign`, or e.g. `effect` with nothing
        but signs), or if every relation that is kept has a sign; negative weights are an error. True: negative weights
        are those of edges that inhibit, and a file without signs is an error. False: signs are ignored.
    """

    relations: Sequence[str] = ()
    min_score: float | None = None
    string_info: Path | str | None = None
    names: Path | str | NameArray | None = None
    header: bool | None = None
    source: str | None = None
    target: str | None = None
    weighted: bool | None = None
    strip_versions: bool = False
    signs: bool | None = None

    def __post_init__(self) -> None:
        _list_of_one(self, "relations")
