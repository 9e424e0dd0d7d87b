"""Data as files: networks that `netbic.io.read_network` reads, and simulated cohorts."""

from __future__ import annotations

import gzip
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pandas as pd

from netbic import files
from netbic.errors import InputError
from netbic.graph import Graph
from netbic.simulate import Cohort
from netbic.storage.models import npz_bytes


def write_network(graph: Graph, path: Path | str, *, force: bool = False, inputs: files.Inputs | None = None) -> None:
    """Write a graph with the names of its nodes to an .npz file.

    The file is a sparse matrix as `scipy.sparse.save_npz` writes it, with one more array, `names`; the weights of edges
    that inhibit are negative. `netbic.io.read_network`, ``netbic fit --graph`` and, without the names,
    `scipy.sparse.load_npz` read it.

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
    ...     netbic.storage.write_network(study.network, f"{folder}/network.npz")
    ...     again = netbic.io.read_network(f"{folder}/network.npz").graph
    >>> bool((again.names == study.network.names).all()), again.n_edges == study.network.n_edges
    (True, True)
    """
    path, weights = Path(path), graph.weights
    arrays = {"format": np.array(b"csr"), "shape": np.array(weights.shape), "_is_array": np.array(True)}
    arrays |= {part: getattr(weights, part) for part in ("data", "indices", "indptr")}
    if graph.names is not None:  # as text or integers, which need no pickle
        integers = graph.names.dtype.kind in "iu"
        odd = next((name for name in graph.names if not integers and not isinstance(name, str)), None)
        if odd is not None:
            raise InputError(f"a node is named {odd!r}, a {type(odd).__name__}: only text and integers can be written")
        arrays["names"] = graph.names.astype(np.int64 if integers else str)
    if graph.is_signed:
        arrays["signed"] = np.array(True)  # negative weights mean edges that inhibit: read without asking
    check_network_file(path, inputs or {}, force=force)
    files.write_atomic(path, npz_bytes(arrays))


def check_network_file(path: Path, inputs: files.Inputs, *, force: bool) -> None:
    """Raise unless `write_network` may write this file: it ends in .npz, is no input, and is new or `force` is set."""
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} does not end in .npz: name a file such as {path.with_suffix('.npz').name}")
    files.check_output_file(path, inputs, force=force)


def write_cohort(study: Cohort, folder: Path | str) -> None:
    """Write expression.tsv.gz (genes in rows), network.sif, the planted modules (truth.tsv) and labels of the samples.

    labels.tsv has the subtype of each sample, which is that of the first module planted in it ("A+" where the module is
    up, "A-" where it is down), and an age and a batch that mean nothing. simulation.json lists the files. An earlier
    simulation is replaced; if there are files of these names that netbic did not write, an error is raised.
    """
    folder, record = Path(folder), "simulation.json"
    files.check_writable(folder, [*files.RECORDS[record], record])
    folder.mkdir(parents=True, exist_ok=True)
    table = study.expression.T.rename_axis("gene").to_csv(sep="\t", float_format="%.5g")
    genes = np.asarray(study.expression.columns)
    tails, heads, _ = study.network.edges()
    lines = "".join(f"{genes[a]}\tbinds\t{genes[b]}\n" for a, b in zip(tails, heads, strict=True))
    planted = []
    for axis, masks, names in (("gene", study.genes, genes), ("sample", study.samples, study.expression.index)):
        for module, mask in enumerate(masks):
            weights = study.weights[module, mask] if axis == "gene" else np.ones(int(mask.sum()))
            planted.append(pd.DataFrame({"module": module + 1, "axis": axis, "name": names[mask], "weight": weights}))
    truth = pd.concat(planted).sort_values(["module", "axis"], kind="stable", ignore_index=True)
    parts = {"expression.tsv.gz": gzip.compress(table.encode(), mtime=0), "network.sif": lines.encode()}
    parts["truth.tsv"] = files.table_bytes(folder / "truth.tsv", truth)
    parts["labels.tsv"] = files.table_bytes(folder / "labels.tsv", _labels(study))
    samples, n_genes = study.expression.shape
    content = {"samples": samples, "genes": n_genes, "modules": len(study.genes)}
    files.write_files(folder, parts, record, content)


def _labels(study: Cohort) -> pd.DataFrame:
    """A subtype, an age and a batch for each sample."""
    values = study.expression.to_numpy()
    subtype = np.full(len(values), "none", dtype=object)
    for module in reversed(range(len(study.genes))):
        up = (values - values.mean(axis=0)) @ np.where(study.genes[module], study.weights[module], 0) > 0
        for sign, own in (("+", up), ("-", ~up)):
            subtype[study.samples[module] & own] = f"{ascii_uppercase[module % 26]}{sign}"
    generator = np.random.default_rng(len(values))
    age, batch = generator.normal(60, 10, len(values)).round().astype(int), generator.choice(["b1", "b2"], len(values))
    return pd.DataFrame({"sample": study.expression.index, "subtype": subtype, "age": age, "batch": batch})
