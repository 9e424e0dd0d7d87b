"""Fitted models in folders: arrays and JSON, never pickle.

Anybody may have changed the files: only those of known names are opened, and their content is checked.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from netbic import __version__, files
from netbic.arrays import compressed_problem, values_problem
from netbic.errors import InputError, one_line, unusable
from netbic.estimators import SparseGraphSVD
from netbic.files import Record
from netbic.graph import Graph
from netbic.storage.npz import Arrays, npz_arrays, npz_bytes
from netbic.storage.pair_state import (
    PAIR_ARRAYS,
    PAIR_KINDS,
    PairModel,
    PairState,
    is_pair_model,
    pair_model_from,
    pair_state_of,
)
from netbic.storage.state import ModelState, model_from, state_of
from netbic.storage.state_check import ARRAYS, check_names, check_unit_vectors

FORMAT: Final = 1
RECORD: Final = "model.json"
_GRAPH_ARRAYS = ("data", "indices", "indptr", "size")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_DAMAGED = "it is damaged or was changed: fit again"
_GIVE_FOLDER = "give the output folder of netbic fit"


def save(model: object, folder: Path | str) -> None:
    """Write a fitted model into a folder: model.json, names.json and arrays, in open formats.

    A model that `save` wrote there before is replaced, and its report and tables are removed. If there are files of
    these names that netbic did not write, an error is raised.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted, or a fitted search that has one as `best_estimator_`. Parameters that JSON cannot hold (a random
        generator, a user-defined penalty) are described but not saved; a user-defined subclass is loaded as its base
        class.
    folder : path
        Created if it does not exist.

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
    save_state(pair_state_of(model) if is_pair_model(model) else state_of(model), Path(folder))


def save_state(state: ModelState | PairState, folder: Path) -> None:
    """Write the state of a fitted model into a folder."""
    files.check_writable(folder, [*files.MODEL_FILES, RECORD])
    names, parts = dict(state.names), {"arrays.npz": npz_bytes(state.arrays)}
    for name, graph in state.graphs.items():
        names[name], weights = None if graph.names is None else graph.names.tolist(), graph.weights
        arrays = (weights.data, weights.indices, weights.indptr, np.int64(graph.n_nodes))
        parts[f"{name}.npz"] = npz_bytes(dict(zip(_GRAPH_ARRAYS, arrays, strict=True)))
    parts["names.json"] = files.json_bytes(names)
    header: Record = {"format": FORMAT, "netbic": __version__, "class": state.kind, "settings": state.settings}
    header |= {"feature_names": state.feature_names, "files": {name: _digest(part) for name, part in parts.items()}}
    header |= state.further
    folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder), files.scratch_folder(folder) as staged:
        for name, part in parts.items():
            files.write_atomic(staged / name, part)
        files.commit_files(staged, folder, RECORD, header)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def load(folder: Path | str) -> Any:
    """Load a fitted model that `save`, `netbic fit` or `netbic pairs` wrote.

    Parameters
    ----------
    folder : path
        The output folder of a command, or the one given to `save`.

    Returns
    -------
    SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted: `transform`, `score` and all attributes work as before. `StableModules` come back as such.

    Raises
    ------
    InputError
        If files are missing, damaged or not what was written, or cannot be those of a model.
    """
    folder = _model_folder(Path(folder))
    header = files.read_json(folder / RECORD)
    for problem, advice in _header_problems(header):
        raise unusable(folder / RECORD, problem, advice)
    try:
        return _loaded(folder, header)
    except InputError as problem:
        text = str(problem)
        raise problem if text.startswith(str(folder)) else InputError(f"{folder}: {text}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as problem:
        what = f"cannot be a model ({one_line(str(problem), 120)}; written by netbic {header.get('netbic')})"
        raise unusable(folder, what, _DAMAGED) from None


def load_modules(folder: Path | str) -> SparseGraphSVD:
    """The same for what needs the modules of one table; an error if the folder contains pairs of two tables."""
    model = load(folder)
    if is_pair_model(model):
        what = f"contains pairs of two tables ({type(model).__name__}), not modules of one table"
        raise unusable(folder, what, _GIVE_FOLDER)
    assert isinstance(model, SparseGraphSVD)
    return model


def _model_folder(folder: Path) -> Path:
    files.read_record(folder, files.RUN_RECORD)  # moves results to their places that a killed command had finished
    for candidate in (folder, folder / "model"):
        if (candidate / RECORD).exists():
            return candidate
    if (folder / ".netbic-fit").is_dir():
        raise unusable(folder, "contains a fit that is not finished", "resume it with netbic fit")
    raise unusable(folder, "contains no model" if folder.exists() else "does not exist", _GIVE_FOLDER)


def _header_problems(header: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with model.json, and what to do."""
    if not isinstance(header, dict) or type(header.get("format")) is not int or "settings" not in header:
        yield "is not a model of netbic", _GIVE_FOLDER
    if header["format"] > FORMAT:
        made = f"was written by netbic {header.get('netbic')} in format {header['format']}"
        yield f"{made}; netbic {__version__} reads up to {FORMAT}", "upgrade netbic"
    if header["format"] < 1:
        yield f"has format {header['format']}", _DAMAGED
    for name in ("files", "settings"):
        if not isinstance(header.get(name), dict):
            yield f"lacks {name!r}", "it is incomplete: fit again"
    digests = header["files"]
    for name in digests.keys() - {*files.MODEL_FILES}:
        yield f"lists {name!r}, which no model has", "it was changed: fit again"
    for name in ("arrays.npz", "names.json", *digests):
        if not (isinstance(digests.get(name), str) and _DIGEST.fullmatch(digests[name])):
            yield f"has no digest of {name}", _DAMAGED


def _loaded(folder: Path, header: Record) -> SparseGraphSVD | PairModel:
    parts = {name: _checked(folder / name, digest) for name, digest in header["files"].items()}
    names = json.loads(parts.pop("names.json"))
    kind = header.get("class", "SparseGraphSVD")
    expected = PAIR_ARRAYS if kind in PAIR_KINDS else ARRAYS
    arrays = npz_arrays(folder / "arrays.npz", parts.pop("arrays.npz"), expected)
    graphs = {}
    for file, content in parts.items():
        name = file.removesuffix(".npz")
        graphs[name] = _graph_from(npz_arrays(folder / file, content, _GRAPH_ARRAYS), names, name)
    settings, named = header["settings"], bool(header["feature_names"])
    if kind in PAIR_KINDS:
        return pair_model_from(PairState(settings, arrays, names, graphs, named, kind, bool(header["y_is_vector"])))
    further = header.get("covariates"), header.get("groups"), header.get("studies")
    model = model_from(ModelState(settings, arrays, names, graphs, named, kind, *further))
    check_unit_vectors(arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # already given by the fit
        own = model.names_["rows"], model.names_["columns"]
        model.check((model.left_vectors_.shape[0], model.n_features_in_), own)
    return model


def _checked(path: Path, digest: str) -> bytes:
    """A file of the model, exactly as it was written."""
    content = files.read_bytes(path)
    if _digest(content) != digest:
        raise unusable(path, "is not what was written with the model", "it is damaged or was exchanged: fit again")
    return content


def _graph_from(arrays: Arrays, names: Any, name: str) -> Graph:
    size = int(arrays["size"])
    data, indices, indptr = (arrays[part] for part in _GRAPH_ARRAYS[:3])
    problem = values_problem(data, "it") or compressed_problem(data, indices, indptr, (size, size), "it")
    if problem is not None:
        raise InputError(f"the model's {name} is damaged ({problem}): fit again")
    check_names(names, {name: size})
    own = names[name]
    weights = sp.csr_array((data, indices, indptr), shape=(size, size))
    labels = None if own is None else np.array(own, dtype=object if own and type(own[0]) is str else None)
    return Graph(weights, labels, signed=True)
