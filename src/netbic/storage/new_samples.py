"""New samples, read and preprocessed in the same way as those of an earlier fit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic import files
from netbic.arrays import Array
from netbic.errors import InputError, shown, unusable
from netbic.estimators import names_of
from netbic.files import Record
from netbic.io import DatasetOptions, Expression, prepare, read_expression, renaming, with_changes
from netbic.storage.model_folders import load_modules

_RECORDED: dict[str, type] = dict.fromkeys(("samples_in_rows", "strip_versions", "cpm", "log1p"), bool)
_RECORDED |= dict.fromkeys(("layer", "gene_names", "id_map", "duplicates"), str) | {"skip_columns": list}


def read_like(folder: Path | str, expression: Path | str, **reading: Any) -> Expression:
    """Read new samples, and preprocess them as `netbic fit` did for an output folder; genes are not selected again.

    Parameters
    ----------
    folder : path
        The output folder of `netbic fit`. A folder of `netbic.save` has no record of how the data were read: the file
        is not preprocessed, and there is a warning.
    expression : path
    **reading
        `samples_in_rows`, `layer`, `gene_names`, `skip_columns`: if the new file differs from that of the fit.
    """
    recorded = _recorded(Path(folder))
    options = DatasetOptions().replace(**{name: recorded[name] for name in _RECORDED if recorded.get(name) is not None})
    reading_options = with_changes(options.expression, "read_like", reading)
    data = read_expression(expression, **vars(reading_options))
    nodes = load_modules(folder).names_["columns"]
    _check_orientation(expression, data, nodes)
    rename = renaming(options.matching.strip_versions, options.matching.id_map, data.genes, nodes)
    return prepare(data, rename=rename, keep_constant=True, **vars(options.preprocessing)).expression


def read_again(folder: Path | str, expression: Path | str | None = None) -> Expression:
    """Read the data of a fit again, with the genes of the model only, in its order.

    Parameters
    ----------
    folder : path
        The output folder of `netbic fit`.
    expression : path, optional
        Where the data are now. Default: where they were; run.json contains the path.

    Raises
    ------
    InputError
        If the file is not there, or lacks samples or genes of the fit.
    """
    folder, model = Path(folder), load_modules(folder)
    path = _known_file(folder) if expression is None else Path(expression)
    if not path.exists():
        raise InputError(
            f"the data of the fit, {path}, are not there: say where they are (`expression`)", ["expression"]
        )
    data = read_like(folder, path)
    places = []
    for axis, noun, names in (("rows", "sample", data.samples), ("columns", "gene", data.genes)):
        wanted = pd.Index([str(name) for name in names_of(model, axis)])
        places.append(pd.Index([str(name) for name in names]).get_indexer(wanted))
        if (places[-1] < 0).any():
            absent = wanted[int((places[-1] < 0).argmax())]
            raise unusable(path, f"has no {noun} {shown(absent)} of the fit", "give the data of the fit")
    rows, columns = places
    return Expression(data.matrix[rows][:, columns], np.asarray(data.samples)[rows], np.asarray(data.genes)[columns])


def _known_file(folder: Path) -> Path:
    """The expression file of a fit."""
    known = (files.finished_record(folder) or {}).get("inputs", {}).get("expression")
    if not isinstance(known, str):
        what = f"{folder} has no record of the file with the data"
        raise InputError(f"{what}: say where they are (`expression`)", ["expression"])
    return Path(known)


def _check_orientation(path: Path | str, data: Expression, genes: Array | None) -> None:
    """Raise if not the genes of a file but its samples have the names of the model's genes."""
    known = set() if genes is None else {str(gene) for gene in genes}
    if known.isdisjoint(map(str, data.genes)) and not known.isdisjoint(map(str, data.samples)):
        what = f"its samples have the names of genes of the modules ({', '.join(map(shown, data.samples[:2]))}, ...)"
        raise unusable(path, what, "exchange genes and samples (`samples_in_rows`)", parameters=["samples_in_rows"])


def _recorded(folder: Path) -> Record:
    """How a fit read and preprocessed its data."""
    if not (folder / "run.json").is_file():
        what = f"{folder} has no record of how its data were read and preprocessed"
        warnings.warn(
            f"{what}: the file is not preprocessed, and has genes in rows unless samples_in_rows is given", stacklevel=3
        )
        return {}
    inputs: Record = (files.finished_record(folder) or {}).get("inputs", {})
    for name, kind in _RECORDED.items():
        if inputs.get(name) is not None and not isinstance(inputs[name], kind):
            what = f"contains {name}={inputs[name]!r}, which netbic did not write"
            raise unusable(folder / "run.json", what, "it was changed: fit again")
    return inputs
