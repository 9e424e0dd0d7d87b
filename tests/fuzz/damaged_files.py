"""Damage files of every format at random and read them: netbic returns data or raises InputError.

    python tests/fuzz/damaged_files.py --files 2000 --seed 0 [--format h5ad ...]

Every file is damaged and read in a separate forked process, so that a crash, a hang or a giant allocation is counted
and the others are still read. Prints a table of outcomes, and for every failure the command that repeats it. Exit
status 1 if there is any failure. A damaged .h5ad file may crash the HDF5 library itself, which is no failure.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anndata  # once, before the processes are forked
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

import netbic
from netbic.errors import InputError
from netbic.io.expression import _open_parquet_rows, read_expression
from netbic.io.networks import read_network
from netbic.io.stores import open_matrix, open_store

OUTCOMES = ("read", "refused", "signal", "hang", "memory", "traceback")
FINE = ("read", "refused")
OF_THE_LIBRARY = ("signal", "hang", "memory")  # what damage does to the HDF5 library itself: counted, not a failure
SECONDS = 20
MEMORY = 1 << 30  # bytes beyond those of the process that forks
N, P = 30, 24
_LETTERS = b"0123456789 \t\n.,-+eE%\"'{}[]abcXYZ\x00\xff"  # more likely to look like valid content
_INVALID = (-5, -1, 1_794, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))


class Format(NamedTuple):
    """How files of a format are written, damaged inside, and read."""

    write: Callable[[Path], None]
    read: Callable[[Path], None]
    damage_inside: Callable[[Path, np.random.Generator], None] | None = None


# ----------------------------------------------------------------------------------------------------------------
# Intact files
# ----------------------------------------------------------------------------------------------------------------


COUNTS = np.random.default_rng(0).poisson(0.8, (N, P)).astype(np.float32)
FRAME = pd.DataFrame(COUNTS, index=[f"cell{k}" for k in range(N)], columns=[f"gene{k}" for k in range(P)])


def _anndata(kind: Callable[[np.ndarray], object]) -> anndata.AnnData:
    made = anndata.AnnData(kind(COUNTS), obs=pd.DataFrame(index=FRAME.index), var=pd.DataFrame(index=FRAME.columns))
    made.var["symbol"] = pd.Categorical([f"symbol{k}" for k in range(P)])
    return made


def _write_h5ad(folder: Path) -> None:
    for name, kind in {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_matrix}.items():
        for packing in (None, "gzip"):
            _anndata(kind).write_h5ad(folder / f"{name}-{packing}.h5ad", compression=packing)


def _write_zarr(folder: Path) -> None:
    import zarr

    for name, kind in {"dense": np.asarray, "csr": sp.csr_matrix}.items():
        for version in (2, 3):
            path = folder / f"{name}-v{version}.zarr"
            anndata.io.write_elem(zarr.open_group(path, mode="w", zarr_format=version), "/", _anndata(kind))
            zarr.consolidate_metadata(path)


def _write_parquet(folder: Path) -> None:
    for packing in ("snappy", "gzip", "zstd", None):
        FRAME.to_parquet(folder / f"{packing}.parquet", compression=packing, row_group_size=10)


def _write_edges(folder: Path) -> None:
    ends = np.random.default_rng(1).integers(0, P, (60, 2))
    frame = pd.DataFrame(ends, columns=["source", "target"]).map("gene{}".format)
    frame["weight"] = 1.0 + np.arange(60)
    frame["relation"] = pd.Categorical(["binds", "controls"] * 30)
    for packing in ("snappy", None):
        frame.to_parquet(folder / f"{packing}.parquet", compression=packing)


def _graph() -> sp.csr_array:
    upper = np.triu(np.random.default_rng(2).random((P, P)) < 0.3, 1) * 1.5
    return sp.csr_array(upper + upper.T)


def _write_npz(folder: Path) -> None:
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        for packed in (False, True):
            sp.save_npz(folder / f"{kind}-{packed}.npz", _graph().asformat(kind), compressed=packed)


def _write_npy(folder: Path) -> None:
    np.save(folder / "double.npy", COUNTS.astype(np.float64))
    np.save(folder / "single.npy", np.asfortranarray(COUNTS))


def _write_10x(folder: Path) -> None:
    for name, pack, ending in (("plain", bytes, ""), ("packed", gzip.compress, ".gz")):
        (folder / name).mkdir()
        matrix, features = io.BytesIO(), "".join(f"ID{k}\tgene{k}\tGene Expression\n" for k in range(P))
        scipy.io.mmwrite(matrix, sp.coo_matrix(COUNTS.T.astype(np.int64)))
        parts = {"matrix.mtx": matrix.getvalue(), "barcodes.tsv": "\n".join(FRAME.index).encode()}
        for part, content in (parts | {"features.tsv": features.encode()}).items():
            (folder / name / f"{part}{ending}").write_bytes(pack(content))


def _write_model(folder: Path) -> None:
    graph = netbic.Graph(_graph(), FRAME.columns)
    netbic.save(netbic.SparseGraphSVD(2, n_rows=8, n_columns=6, column_graph=graph).fit(FRAME), folder / "model")


# ----------------------------------------------------------------------------------------------------------------
# Reading
# ----------------------------------------------------------------------------------------------------------------


def _read_matrix(path: Path) -> None:
    """Completely and in blocks; the values that are read must be usable."""
    problems = []
    for read in (lambda path: read_expression(path).matrix, _by_blocks):
        try:
            matrix = read(path)
            assert matrix.shape[0] > 1
            float(abs(matrix).sum())
        except InputError as problem:
            problems.append(problem)
    for problem in problems:
        assert path.name in str(problem), problem
        assert "\n" not in str(problem)
    if problems:
        raise problems[0]


def _by_blocks(path: Path) -> object:
    if path.suffix == ".h5ad" and "csc" in path.name:
        with open_matrix(path) as stored:
            return np.array([values.sum() for _, _, values in stored.columns(50)])
    source = open_store(path)
    parts = [source.rows(first, min(first + 7, source.shape[0])) for first in range(0, source.shape[0], 7)]
    return sp.vstack(parts) if source.is_sparse else np.vstack(parts)


def _read_table(path: Path) -> None:
    read_expression(path, samples_in_rows=True)
    source = _open_parquet_rows(path, ())
    for first in range(0, source.shape[0], 7):
        source.rows(first, min(first + 7, source.shape[0]))


def _read_10x(path: Path) -> None:
    float(read_expression(path).matrix.sum())


def _read_network(path: Path) -> None:
    assert read_network(path).graph.term("adjacency").scale > 0


def _read_model(path: Path) -> None:
    assert np.isfinite(netbic.load(path).transform(COUNTS)).all()


# ----------------------------------------------------------------------------------------------------------------
# Damage
# ----------------------------------------------------------------------------------------------------------------


def _change_bytes(path: Path, generator: np.random.Generator) -> None:
    """Change 1 to 16 bytes, together or apart, or cut the file off."""
    data = bytearray(path.read_bytes())
    if not data or generator.random() < 0.2:
        path.write_bytes(data[: generator.integers(max(1, len(data)))])
        return
    count = int(2 ** generator.uniform(0, 4.09))
    letters = _LETTERS if generator.random() < 0.5 else bytes(range(256))
    first = int(generator.integers(len(data)))
    together = bool(generator.random() < 0.5)
    for at in range(count):
        place = (first + at) % len(data) if together else int(generator.integers(len(data)))
        data[place] = letters[generator.integers(len(letters))]
    path.write_bytes(data)


def _with_invalid(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """An array of integers with invalid values or of a wrong length."""
    array = array.copy()
    if generator.random() < 0.2:
        return array[: generator.integers(array.size)] if generator.random() < 0.5 else np.append(array, array[-1:])
    limits = np.iinfo(array.dtype)
    for _ in range(generator.integers(1, 4)):
        invalid = int(generator.choice(_INVALID) if generator.random() < 0.6 else generator.integers(60))
        array[generator.integers(array.size)] = min(max(invalid, limits.min), limits.max)
    return array


def _damage_group(group: object, generator: np.random.Generator) -> None:
    """Invalid integers in the index arrays of a sparse matrix, or a wrong shape."""
    if generator.random() < 0.15:
        group.attrs["shape"] = [int(generator.integers(60)), [P, 10**12][generator.integers(2)]]
        return
    name = ("indices", "indptr")[generator.integers(2)]
    array = _with_invalid(group[name][:], generator)
    if array.size == group[name].shape[0]:
        group[name][:] = array
    else:
        del group[name]
        getattr(group, "create_array", group.create_dataset)(name, data=array)


def _damage_h5ad(path: Path, generator: np.random.Generator) -> None:
    import h5py

    with h5py.File(path, "r+") as file:
        if "dense" not in path.name:
            _damage_group(file["X"], generator)
        else:
            file["X"][generator.integers(N), generator.integers(P)] = [np.nan, np.inf, 1e38][generator.integers(3)]


def _damage_zarr(path: Path, generator: np.random.Generator) -> None:
    import zarr

    root = zarr.open(str(path), mode="r+", use_consolidated=False)
    if "dense" not in path.name:
        _damage_group(root["X"], generator)
    else:
        root["X"][int(generator.integers(N)), int(generator.integers(P))] = np.inf


def _damage_npz(path: Path, generator: np.random.Generator) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    names = [name for name in arrays if arrays[name].ndim == 1 and arrays[name].dtype.kind == "i"]
    name = names[generator.integers(len(names))]
    arrays[name] = _with_invalid(arrays[name], generator)
    np.savez(path, **arrays)


def _damage_model(path: Path, generator: np.random.Generator) -> None:
    """Damage the graph, or any file, and update the digests."""
    if generator.random() < 0.5:
        _damage_npz(path / "column_graph.npz", generator)
    else:
        _change_bytes(_one_of(path, generator), generator)
    with suppress(ValueError, KeyError, TypeError, OSError):  # model.json itself is damaged
        header = json.loads((path / "model.json").read_bytes())
        for name in header["files"]:
            header["files"][name] = hashlib.blake2b((path / name).read_bytes(), digest_size=16).hexdigest()
        (path / "model.json").write_text(json.dumps(header))


def _one_of(path: Path, generator: np.random.Generator) -> Path:
    """The file itself, or one of the files of a folder."""
    if path.is_file():
        return path
    files = sorted(found for found in path.rglob("*") if found.is_file())
    return files[generator.integers(len(files))]


FORMATS = {
    "h5ad": Format(_write_h5ad, _read_matrix, _damage_h5ad),
    "zarr": Format(_write_zarr, _read_matrix, _damage_zarr),
    "parquet": Format(_write_parquet, _read_table),
    "edges": Format(_write_edges, _read_network),
    "npz": Format(_write_npz, _read_network, _damage_npz),
    "npy": Format(_write_npy, _read_matrix),
    "10x": Format(_write_10x, _read_10x),
    "model": Format(_write_model, _read_model, _damage_model),
}


# ----------------------------------------------------------------------------------------------------------------
# Runs
# ----------------------------------------------------------------------------------------------------------------


Result = tuple[str, str]  # the outcome of reading one damaged file, and a message


def intact(name: str, folder: Path) -> list[Path]:
    """Write the intact files of a format (in a separate process: threads of libraries do not survive a fork)."""
    outcome, message = _in_child(lambda: FORMATS[name].write(folder), folder.parent / "output")
    assert outcome == "read", message
    for path in (files := sorted(folder.iterdir())):
        outcome, message = _in_child(lambda path=path: FORMATS[name].read(path), folder.parent / "output")
        assert outcome == "read", message  # intact files are read
    return files


def damaged(name: str, files: list[Path], seed: list[int], scratch: Path) -> Result:
    """Damage a copy of one of the files and read it."""
    generator = np.random.default_rng(seed)
    original = files[generator.integers(len(files))]
    path = scratch / original.name
    copy = shutil.copytree if original.is_dir() else shutil.copyfile
    copy(original, path)
    kind = FORMATS[name]

    def work() -> None:
        if kind.damage_inside is not None and generator.random() < 0.35:
            kind.damage_inside(path, generator)
        else:
            _change_bytes(_one_of(path, generator), generator)
        kind.read(path)

    try:
        return _in_child(work, scratch / "output")
    finally:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _in_child(work: Callable[[], None], output: Path) -> Result:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    output.write_text("")
    child = os.fork()
    if not child:
        os._exit(_exit_code_of(work, output))
    _, status, usage = os.wait4(child, 0)
    message = output.read_text(errors="replace")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ("hang", message) if number == signal.SIGALRM else ("signal", signal.Signals(number).name)
    if usage.ru_maxrss * 1024 > before + MEMORY:
        return "memory", f"{usage.ru_maxrss / 1e6:.1f} GB {message}"
    return ("read", "refused", "traceback")[os.WEXITSTATUS(status)], message


def _exit_code_of(work: Callable[[], None], output: Path) -> int:
    """Do the work in this process: 0 if it succeeds, 1 for InputError, 2 for other errors; messages go to `output`."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    warnings.simplefilter("ignore")
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            work()
        except InputError as problem:
            output.write_text(str(problem))
            return 1
        except BaseException:
            output.write_text(traceback.format_exc())
            return 2
    return 0


def run(name: str, numbers: range, seed: int) -> tuple[Counter[str], list[str]]:
    """Outcomes of some damaged files of a format, and a paragraph for every failure."""
    counts: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "intact").mkdir()
        (Path(folder) / "scratch").mkdir()
        files = intact(name, Path(folder) / "intact")
        for number in numbers:
            outcome, message = damaged(name, files, [seed, number], Path(folder) / "scratch")
            counts[outcome] += 1
            if outcome not in FINE and not (name == "h5ad" and outcome in OF_THE_LIBRARY):
                again = f"{Path(__file__).name} --format {name} --seed {seed} --only {number}"
                failures.append(f"{outcome}: python tests/fuzz/{again}\n{message[-1500:]}")
    return counts, failures


def main() -> int:
    """Run the requested files; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000, help="damaged files per format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="default: all")
    parser.add_argument("--only", type=int, help="the number of one file, to repeat it")
    arguments = parser.parse_args()
    numbers = range(arguments.files) if arguments.only is None else range(arguments.only, arguments.only + 1)
    print(f"seed {arguments.seed}, files {numbers.start} to {numbers.stop - 1}")
    print(f"{'format':10}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES), flush=True)
    failures = []
    for name in arguments.format or FORMATS:
        counts, failed = run(name, numbers, arguments.seed)
        failures += failed
        print(f"{name:10}" + "".join(f"{counts[outcome]:>11}" for outcome in OUTCOMES))
        print("".join(f"{failure}\n" for failure in failed), end="", flush=True)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
