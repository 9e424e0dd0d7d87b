"""New samples, read and preprocessed as those of an earlier fit were."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from netbic import files
from netbic.errors import unusable
from netbic.readers import Expression, read_expression, renaming
from netbic.storage.model_folders import load
from netbic.study import prepare

_RECORDED: dict[str, type] = dict.fromkeys(("samples_in_rows", "strip_versions", "cpm", "log1p"), bool)
_RECORDED |= dict.fromkeys(("layer", "gene_names", "id_map", "duplicates"), str) | {"skip_columns": list}
_READING = ("samples_in_rows", "layer", "gene_names", "skip_columns")


def read_like(folder: Path | str, expression: Path | str, **reading: Any) -> Expression:
    """Read new samples as `netbic fit` read and prepared those of an output folder; genes are not chosen again.

    Parameters
    ----------
    folder : path
        Of `netbic fit`. One of `netbic.save` holds no record of how the data were read: the file is taken as it is,
        and a warning says so.
    expression : path
    **reading
        `samples_in_rows`, `layer`, `gene_names`, `skip_columns`: where the new file differs from that of the fit.
    """
    words = _recorded(Path(folder)) | reading
    reading = {name: words[name] for name in _READING if name in words}
    data = read_expression(expression, **reading)
    nodes = load(folder).names_["columns"]
    rename = renaming(bool(words.get("strip_versions")), words.get("id_map"), data.genes, nodes)
    steps = {name: words[name] for name in ("duplicates", "cpm", "log1p") if name in words}
    return prepare(data, rename=rename, keep_constant=True, **steps).expression


def _recorded(folder: Path) -> dict[str, Any]:
    """How a fit read and prepared its data."""
    if not (folder / "run.json").is_file():
        what = f"{folder} holds no record of how its data were read and prepared"
        warnings.warn(f"{what}: the file is taken as it is, genes in rows unless said otherwise", stacklevel=3)
        return {}
    inputs: dict[str, Any] = (files.finished_record(folder) or {}).get("inputs", {})
    for name, kind in _RECORDED.items():
        if inputs.get(name) is not None and not isinstance(inputs[name], kind):
            what = f"says {name}={inputs[name]!r}, which netbic did not write"
            raise unusable(folder / "run.json", what, "it was changed: fit again")
    return inputs
