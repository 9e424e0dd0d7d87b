"""Fitted models in folders: arrays and JSON, never pickle.

Files may have been changed by anybody: only those of known names are opened, and what they hold is checked.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic import __version__
from netbic.arrays import compressed_problem, values_problem
from netbic.errors import InputError, one_line, unusable
from netbic.estimators import SparseGraphSVD
from netbic.files import (
    ADDED_FILES,
    MODEL_FILES,
    check_writable,
    commit_files,
    json_bytes,
    read_bytes,
    read_json,
    scratch_folder,
    write_atomic,
)
from netbic.graphs import Graph
from netbic.storage.npz import npz_arrays, npz_bytes
from netbic.storage.state import ModelState, model_from, state_of
from netbic.storage.state_check import ARRAYS, check_names, check_unit_vectors

FORMAT = 1
RECORD = "model.json"
_GRAPH_ARRAYS = ("data", "indices", "indptr", "size")
_DIGEST = re.compile(r"[0-9a-f]{32}")


def save(model: SparseGraphSVD, folder: Path | str) -> None:
    """Write a fitted model into a folder: model.json, names.json and arrays, in open formats.

    A model that `save` wrote there before is replaced, and its report and tables go; files of those names that netbic
    did not write are refused.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted, or a fitted search that has one as `best_estimator_`. What JSON cannot hold (a random generator, a
        penalty of your own) is described there, not kept; a subclass of your own comes back as what it is made from.
    folder : path
        Made if it is not there.

    Examples
    --------
    >>> import tempfile, netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.save(model, folder)
    ...     again = netbic.load(folder)
    >>> bool((again.components_ == model.components_).all())
    True
    """
    folder, state = Path(folder), state_of(model)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the model")
    check_writable(folder, [*MODEL_FILES, RECORD])
    parts = {"arrays.npz": npz_bytes(state.arrays)}
    parts |= {f"{name}.npz": npz_bytes(_graph_arrays(graph)) for name, graph in state.graphs.items()}
    names = state.names | {name: _listed(graph.names) for name, graph in state.graphs.items()}
    parts["names.json"] = json_bytes(names)
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder, RECORD) as staged:
        for name, part in parts.items():
            write_atomic(staged / name, part)
        commit_files(staged, folder, RECORD, _header(state, parts), drop=(*MODEL_FILES, *ADDED_FILES))


def _header(state: ModelState, parts: dict[str, bytes]) -> dict[str, Any]:
    digests = {name: hashlib.blake2b(part, digest_size=16).hexdigest() for name, part in parts.items()}
    header = {"format": FORMAT, "netbic": __version__, "class": state.kind}
    return header | {"settings": state.settings, "feature_names": state.feature_names, "files": digests}


def load(folder: Path | str) -> SparseGraphSVD:
    """Load a fitted model that `save` or `netbic fit` wrote.

    Parameters
    ----------
    folder : path
        The output folder of `netbic fit`, or the one given to `save`.

    Returns
    -------
    SparseGraphSVD
        Fitted: `transform`, `score` and all attributes work as before. `StableModules` come back as such.

    Raises
    ------
    InputError
        If files are missing, damaged or not what was written, or cannot be those of a model.
    """
    folder = _model_folder(Path(folder))
    header = read_json(folder / RECORD)
    _check_header(folder, header)
    try:
        return _loaded(folder, header)
    except InputError as problem:
        text = str(problem)
        raise problem if text.startswith(str(folder)) else InputError(f"{folder}: {text}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as problem:
        what = f"cannot be a model ({one_line(str(problem), 120)}; written by netbic {header.get('netbic')})"
        raise unusable(folder, what, "it is damaged or was changed: fit again") from None


def _loaded(folder: Path, header: dict[str, Any]) -> SparseGraphSVD:
    parts = {name: _checked(folder / name, digest) for name, digest in header["files"].items()}
    names = json.loads(parts.pop("names.json"))
    arrays = npz_arrays(folder / "arrays.npz", parts.pop("arrays.npz"), tuple(ARRAYS))
    graphs = {}
    for file, content in parts.items():
        own = npz_arrays(folder / file, content, _GRAPH_ARRAYS)
        graphs[file.removesuffix(".npz")] = _graph_from(own, names, file.removesuffix(".npz"))
    words = bool(header["feature_names"]), header.get("class", "SparseGraphSVD")
    model = model_from(ModelState(header["settings"], arrays, names, graphs, *words))
    check_unit_vectors(arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has said it all
        model.check((model.left_vectors_.shape[0], model.n_features_in_))
    return model


def _model_folder(folder: Path) -> Path:
    run = read_json(folder / "run.json") if (folder / "run.json").is_file() else None
    if isinstance(run, dict) and run.get("state") == "running" and "earlier" not in run:
        raise unusable(folder, "holds a fit that is not finished", "resume it with netbic fit")
    for candidate in (folder, folder / "model"):
        if (candidate / RECORD).exists():
            return candidate
    if not folder.exists():
        raise unusable(folder, "does not exist", "give the output folder of netbic fit")
    raise unusable(folder, "holds no model", "give the output folder of netbic fit")


def _check_header(folder: Path, header: Any) -> None:
    """Raise unless model.json is that of a model whose files this version knows."""
    if not isinstance(header, dict) or type(header.get("format")) is not int or "settings" not in header:
        raise unusable(folder / RECORD, "is not a model of netbic", "give the folder netbic fit wrote to")
    if header["format"] > FORMAT:
        made = f"was written by netbic {header.get('netbic')} in format {header['format']}"
        raise unusable(folder, f"{made}; netbic {__version__} reads up to {FORMAT}", "upgrade netbic")
    if header["format"] < 1:
        raise unusable(folder / RECORD, f"has format {header['format']}", "it is damaged or was changed: fit again")
    if header.get("state") == "running":
        raise unusable(folder, "holds a model that was not written to its end", "save it again")
    files: Any = header.get("files")
    settings = header["settings"]
    for name, known in (("files", files), ("settings", settings)):
        if not isinstance(known, dict):
            raise unusable(folder / RECORD, f"lacks {name!r}", "it is incomplete: fit again")
    unknown = [name for name in files if name not in MODEL_FILES]
    if unknown:
        raise unusable(folder / RECORD, f"lists {unknown[0]!r}, which no model has", "it was changed: fit again")
    wrong = [name for name, digest in files.items() if not (isinstance(digest, str) and _DIGEST.fullmatch(digest))]
    lacking = [name for name in ("arrays.npz", "names.json") if name not in files]
    if wrong or lacking:
        what = f"has no digest of {(wrong or lacking)[0]}"
        raise unusable(folder / RECORD, what, "it is damaged or was changed: fit again")


def _checked(path: Path, digest: str) -> bytes:
    """A file of the model, just as it was written."""
    content = read_bytes(path)
    if hashlib.blake2b(content, digest_size=16).hexdigest() != digest:
        raise unusable(path, "is not what was written with the model", "it is damaged or was exchanged: fit again")
    return content


def _graph_arrays(graph: Graph) -> dict[str, Any]:
    weights = graph.weights
    return {"data": weights.data, "indices": weights.indices, "indptr": weights.indptr, "size": np.int64(graph.n_nodes)}


def _graph_from(arrays: dict[str, Any], names: Any, name: str) -> Graph:
    size = int(arrays["size"])
    data, indices, indptr = (arrays[part] for part in ("data", "indices", "indptr"))
    problem = values_problem(data, "it") or compressed_problem(data, indices, indptr, (size, size), "it")
    if problem is not None:
        raise InputError(f"the model's {name} is damaged ({problem}): fit again")
    weights = sp.csr_array((data, indices, indptr), shape=(size, size))
    check_names(names, {name: size})
    own = names[name]
    return Graph(weights, None if own is None else np.array(own, dtype=object if own and type(own[0]) is str else None))


def _listed(names: Any) -> list[Any] | None:
    return None if names is None else names.tolist()
