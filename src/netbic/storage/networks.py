"""Graphs as files that `read_network` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from netbic.errors import InputError
from netbic.files import Inputs, check_output_file, write_atomic
from netbic.graph import Graph
from netbic.storage.npz import npz_bytes


def write_network(graph: Graph, path: Path | str, *, force: bool = False, inputs: Inputs | None = None) -> None:
    """Write a graph with the names of its nodes to an .npz file.

    The file is a sparse matrix as `scipy.sparse.save_npz` writes it, with one more array, `names`; the weights of edges
    that inhibit are negative. It can be read by
    `netbic.io.read_network`, by ``netbic fit --graph`` and, without the names, by `scipy.sparse.load_npz`.

    Parameters
    ----------
    graph : Graph
        Names are text or integers.
    path : path
        Ends in .npz. The file appears complete or not at all.
    force : bool
        Replace an existing file.
    inputs : dict, optional
        Files that must not be replaced, by what they are.

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(50, 100, n_modules=1, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.io.write_network(study.network, f"{folder}/network.npz")
    ...     again = netbic.io.read_network(f"{folder}/network.npz").graph
    >>> bool((again.names == study.network.names).all()), again.n_edges == study.network.n_edges
    (True, True)
    """
    path = Path(path)
    weights = graph.weights
    arrays = {"format": np.array(b"csr"), "shape": np.array(weights.shape), "_is_array": np.array(True)}
    arrays |= {part: getattr(weights, part) for part in ("data", "indices", "indptr")}
    if graph.names is not None:
        arrays["names"] = _plain(graph)
    if graph.is_signed:
        arrays["signed"] = np.array(True)  # negative weights mean edges that inhibit: read without asking
    check_network_file(path, inputs or {}, force=force)
    write_atomic(path, npz_bytes(arrays))


def check_network_file(path: Path, inputs: Inputs, *, force: bool) -> None:
    """Raise unless `write_network` may write this file: it ends in .npz, is no input, and is new or `force` is set."""
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} does not end in .npz: name a file such as {path.with_suffix('.npz').name}")
    check_output_file(path, inputs, force=force)


def _plain(graph: Graph) -> np.ndarray:
    """The names as an array of text or integers, which needs no pickle."""
    names = np.asarray(graph.names)
    if np.issubdtype(names.dtype, np.integer):
        return names.astype(np.int64)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"a node is named {odd!r}, a {type(odd).__name__}: only text and integers can be written")
    return names.astype(str)
