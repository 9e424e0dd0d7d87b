"""Fitted models on disk (arrays and JSON, never pickle) and as tables."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic import __version__
from netbic.arrays import compressed_problem, values_problem
from netbic.decomposition import SparseGraphSVD, axis_names
from netbic.graphs import Graph
from netbic.io.errors import InputError, one_line, unusable
from netbic.io.files import as_json, read_json, write_json, write_whole
from netbic.io.state import ModelState, fitted_model, matched_graph, model_from, state_of

FORMAT = 1


def save(model: SparseGraphSVD, folder: Path | str) -> None:
    """Write a fitted model into a folder: model.json, names.json and arrays, in open formats.

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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").unlink(missing_ok=True)  # it comes last: without it there is no model
    parts = {"arrays.npz": _packed(state.arrays)}
    parts |= {f"{name}.npz": _packed(_graph_arrays(graph)) for name, graph in state.graphs.items()}
    names = state.names | {name: _listed(graph.names) for name, graph in state.graphs.items()}
    parts["names.json"] = as_json(names)
    for name, part in parts.items():
        write_whole(folder / name, part)
    digests = {name: hashlib.blake2b(part, digest_size=16).hexdigest() for name, part in parts.items()}
    header = {"format": FORMAT, "netbic": __version__, "class": state.kind}
    content = {"settings": state.settings, "feature_names": state.feature_names, "files": digests}
    write_json(folder / "model.json", header | content)


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
    """
    folder = _model_folder(Path(folder))
    header = read_json(folder / "model.json")
    _check_format(folder, header)
    try:
        return _loaded(folder, header)
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as problem:
        made = f"written by netbic {header.get('netbic')}"
        raise unusable(folder, f"lacks {one_line(str(problem), 60)} ({made})", "it is incomplete: fit again") from None


def _loaded(folder: Path, header: dict[str, Any]) -> SparseGraphSVD:
    parts = {name: _checked(folder / name, digest) for name, digest in header["files"].items()}
    names = json.loads(parts.pop("names.json"))
    contents = {name: unpacked(folder / name, content) for name, content in parts.items()}
    graphs = {
        name: _graph_from(contents[f"{name}.npz"], names[name])
        for name in ("row_graph", "column_graph")
        if f"{name}.npz" in contents
    }
    words = header["feature_names"], header.get("class", "SparseGraphSVD")
    return model_from(ModelState(header["settings"], contents["arrays.npz"], names, graphs, *words))


def _model_folder(folder: Path) -> Path:
    run = read_json(folder / "run.json") if (folder / "run.json").is_file() else None
    if isinstance(run, dict) and run.get("state") == "running":
        raise unusable(folder, "holds a fit that is not finished", "go on with netbic fit ... --resume")
    for candidate in (folder, folder / "model"):
        if (candidate / "model.json").exists():
            return candidate
    if not folder.exists():
        raise unusable(folder, "does not exist", "give the folder netbic fit wrote to (--out)")
    raise unusable(folder, "holds no model", "give the folder netbic fit wrote to (--out)")


def _check_format(folder: Path, header: Any) -> None:
    if not isinstance(header, dict) or not isinstance(header.get("format"), int) or "settings" not in header:
        raise unusable(folder / "model.json", "is not a model of netbic", "give the folder netbic fit wrote to")
    if header["format"] > FORMAT:
        made = f"was written by netbic {header.get('netbic')} in format {header['format']}"
        raise unusable(folder, f"{made}; netbic {__version__} reads up to {FORMAT}", "upgrade netbic")


def _packed(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _checked(path: Path, digest: str) -> bytes:
    """A file of the model, just as it was written."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "it is part of the model: fit again") from None
    if hashlib.blake2b(content, digest_size=16).hexdigest() != digest:
        raise unusable(path, "is not what was written with the model", "it is damaged or was exchanged: fit again")
    return content


def unpacked(path: Path, content: bytes) -> dict[str, Any]:
    """The arrays of an .npz file; never runs code (no pickle)."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return dict(file)
    except Exception as problem:  # zip and numpy each have their own ways to say that a file is damaged
        raise unusable(path, f"cannot be read ({one_line(str(problem), 80)})", "it is damaged: fit again") from None


def _graph_arrays(graph: Graph) -> dict[str, Any]:
    weights = graph.weights
    return {"data": weights.data, "indices": weights.indices, "indptr": weights.indptr, "size": np.int64(graph.n_nodes)}


def _graph_from(arrays: dict[str, Any], names: list[Any] | None) -> Graph:
    size = int(arrays["size"])
    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    problem = values_problem(data, "it") or compressed_problem(data, indices, indptr, (size, size), "it")
    if problem is not None:
        raise InputError(f"the graph of the model is damaged ({problem}): fit again")
    weights = sp.csr_array((data, indices, indptr), shape=(size, size))
    return Graph(
        weights,
        None if names is None else np.array(names, dtype=object if names and isinstance(names[0], str) else None),
    )


def _listed(names: Any) -> list[Any] | None:
    return None if names is None else names.tolist()


# ----------------------------------------------------------------------------------------------------------------
# Tables
# ----------------------------------------------------------------------------------------------------------------


def modules_table(model: SparseGraphSVD) -> pd.DataFrame:
    """Members of every module by name: columns `module`, `axis` (gene or sample), `name`, `weight`, heaviest first.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> netbic.io.modules_table(model)["axis"].value_counts().to_dict()
    {'gene': 50, 'sample': 50}
    """
    model, parts = fitted_model(model), []
    for module in range(model.n_components_):
        for axis, vector, names in (
            ("gene", model.components_[module], names_of(model, "columns")),
            ("sample", model.left_vectors_[:, module], names_of(model, "rows")),
        ):
            members = heaviest(vector)
            part = {"module": module, "axis": axis, "name": names[members], "weight": vector[members]}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["module", "axis", "name", "weight"])


def check_same_data(model: SparseGraphSVD, X: Any) -> None:
    """Raise unless X has the shape, and where it has names the names, of the data a model was fitted to."""
    model = fitted_model(model)
    known = (len(model.left_vectors_), int(model.n_features_in_))
    if tuple(X.shape) != known:
        raise ValueError(f"X has shape {tuple(X.shape)} but the modules were found in one of shape {known}: give that")
    for axis, names in zip(("rows", "columns"), axis_names(X), strict=True):
        own = model.names_[axis]
        if names is not None and own is not None and not np.array_equal(names, own):
            raise ValueError(f"the {axis} of X are others than those of the fit, or in another order: give the same X")


def heaviest(vector: NDArray[Any]) -> NDArray[np.intp]:
    """Places of a module's members, heaviest first."""
    members = np.flatnonzero(vector)
    return members[np.argsort(-np.abs(vector[members]), kind="stable")]


def summary_table(model: SparseGraphSVD) -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, graph share, rounds, edges inside, top genes."""
    model = fitted_model(model)
    genes = names_of(model, "columns")
    edges = _edges_inside(model)
    rows = []
    for module in range(model.n_components_):
        vector = model.components_[module]
        top = heaviest(vector)[:5]
        rows.append(
            {
                "module": module,
                "singular_value": model.singular_values_[module],
                "n_genes": int(model.columns_[module].sum()),
                "n_samples": int(model.rows_[module].sum()),
                "explained_variance_ratio": model.explained_variance_ratio_[module],
                "n_edges": edges[module],
                "graph_share": model.graph_share_[module],
                "rounds": len(model.objectives_[module]),
                "converged": bool(model.converged_[module]),
                "top_genes": ", ".join(map(str, genes[top])),
            }
        )
    return pd.DataFrame(rows, columns=_SUMMARY)


_SUMMARY = ["module", "singular_value", "n_genes", "n_samples", "explained_variance_ratio", "n_edges", "graph_share"]
_SUMMARY += ["rounds", "converged", "top_genes"]


def _edges_inside(model: SparseGraphSVD) -> list[int]:
    """Edges of the genes' graph between members of each module; 0 without a graph."""
    graph = matched_graph(model, "column")
    if graph is None:
        return [0] * model.n_components_
    return [graph.subgraph(members).n_edges for members in model.columns_]


def names_of(model: SparseGraphSVD, axis: str) -> Any:
    """Names of the rows or columns; their numbers where there are none."""
    known = model.names_[axis]
    size = model.left_vectors_.shape[0] if axis == "rows" else model.components_.shape[1]
    return np.arange(size) if known is None else known
