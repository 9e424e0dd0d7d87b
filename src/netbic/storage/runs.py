"""Output folders of commands, which can be resumed after any interruption.

While a fit runs, a hidden folder inside its output folder holds the task (settings and digests of the data) and one
small file for each finished piece: a module, or a fit of a tuning. The command computes; this module says what is known
already (`Run.open`), keeps pieces (`Run.keep`) and moves finished results to their places (`Run.finish`). Results of an
earlier fit, which `force` replaces, stay until then.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import UserDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd

from netbic import __version__, files
from netbic.arrays import buffers
from netbic.errors import InputError, one_line, shown, some_names, unusable
from netbic.estimators.prediction import module_scores
from netbic.estimators.results import names_of
from netbic.estimators.svd import SparseGraphSVD
from netbic.files import FIT_PIECES, FolderInUse, JsonValue, Record
from netbic.io.dataset import check_keywords, digest
from netbic.io.expression import READING, Expression, read_expression
from netbic.io.names import Renaming, names_among
from netbic.io.preprocessing import prepare
from netbic.operators.blocks import select_columns
from netbic.solver.search import Module
from netbic.storage.models import load_modules, module_arrays, module_from, npz_arrays, npz_bytes, save
from netbic.storage.tables import read_results_table

PAIRS: Final = "pairs"  # the kind of a run, in its record, if it is about two tables
_TASK, _MODULE = "task.json", "module-{}.npz"
_NEEDED = ("modules.tsv", "summary.tsv", "alignment.json")  # without these a fit is not finished
_CLOSE: Final = 1e-3  # standard deviations of the scores
# How data were read and preprocessed, in run.json.
_RECORDED: dict[str, type] = dict.fromkeys(("samples_in_rows", "strip_versions", "cpm", "log1p"), bool)
_RECORDED |= dict.fromkeys(("layer", "gene_names", "id_map", "duplicates"), str) | {"skip_columns": list}


class CheckpointMismatch(InputError):
    """Pieces of other data or settings; `problem` is the message without the advice."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: repeat those, name another folder, or delete this one")
        self.problem = problem


@dataclass(frozen=True)
class Task:
    """Everything that decides the result of a computation; what differs in `settings` is shown, `data` are digests."""

    kind: str  # "fit", "tuning" or "pairs"
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    data: Mapping[str, JsonValue] = field(default_factory=dict)

    def record(self) -> Record:
        """The task as JSON, with the version that computes it."""
        parts = {"settings": dict(self.settings), "data": dict(self.data)}
        return {"netbic": __version__, **json.loads(json.dumps(parts))}

    def changes(self, before: Record) -> list[str]:
        """What differs from a recorded task."""
        now, changed = self.record(), []
        if before.get("netbic") != __version__:
            changed.append(f"netbic: {before.get('netbic')} then, {__version__} now")
        for part in ("data", "settings"):
            old, new = before.get(part), now[part]
            old = old if isinstance(old, dict) else {}
            for name in sorted({*old, *new}):
                if old.get(name) != new.get(name):
                    values = f": {old.get(name)!r} then, {new.get(name)!r} now" if part == "settings" else " differs"
                    changed.append(f"{name}{values}")
        return changed


class Pieces(UserDict[str, bytes]):
    """The finished pieces of a task by their names, each in its own file; a new one is on disk as soon as it is set.

    The folder is created inside one that exists. If it contains pieces of another task, `CheckpointMismatch` is raised.
    """

    def __init__(self, folder: Path | str, task: Task) -> None:
        super().__init__()
        self.folder = Path(folder)
        before = read_task(folder, task.kind)
        if before is not None and (changes := task.changes(before)):
            raise CheckpointMismatch(f"{folder} was started with other data or settings ({'; '.join(changes)})")
        if before is None:
            if not self.folder.parent.is_dir():
                raise InputError(f"{folder} cannot be written: name a folder inside one that exists")
            with files.write_errors(self.folder):
                self.folder.mkdir(exist_ok=True)
            files.write_json(self.folder / _TASK, {"kind": task.kind, **task.record()})
        for path in sorted(self.folder.iterdir()):
            if path.name != _TASK and not path.name.startswith(".") and path.is_file():
                self.data[unquote(path.name)] = path.read_bytes()

    def __setitem__(self, name: str, content: bytes) -> None:
        files.write_atomic(self.folder / quote(name, safe=" "), content)
        super().__setitem__(name, content)


def read_task(folder: Path | str, kind: str) -> Record | None:
    """The task of the pieces in a folder; None where there is no folder or an empty one, an error for anything else."""
    folder = Path(folder)
    if folder.is_dir() and not folder.is_symlink():
        names = [path.name for path in folder.iterdir() if not path.name.startswith(".netbic-")]
        if not names:
            return None
        task = files.read_record(folder, _TASK)
        if task is not None and task.get("kind") == kind:
            return task
        if task is not None:
            raise FolderInUse(f"{folder} contains pieces of a {task.get('kind')}, not of a {kind}: name another folder")
    elif not folder.exists() and not folder.is_symlink():
        return None
    raise FolderInUse(f"{folder} is not a folder of netbic with pieces of a {kind}: name another folder")


class Run:
    """The output folder of one fit; made by `Run.open`, and a context manager that keeps the folder locked.

    `known` are the modules that an interrupted fit found before.
    """

    def __init__(self, folder: Path, task: Task, inputs: Record, pieces: Pieces | None, lock: ExitStack) -> None:
        self.folder, self._task, self._inputs, self._pieces, self._lock = folder, task, inputs, pieces, lock
        self.known: list[Module] = []
        kept: Mapping[str, bytes] = pieces or {}
        try:  # a damaged piece is computed again
            while (name := _MODULE.format(len(self.known) + 1)) in kept:
                self.known.append(module_from(npz_arrays(folder / name, kept[name])))
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            pass

    @classmethod
    def open(
        cls, folder: Path, settings: Record, data: Record, inputs: Record, *, resume: bool, force: bool
    ) -> Run | None:
        """Start in an empty folder, resume an interrupted fit (`resume`), or start again (`force`).

        None if the folder contains the finished results of the same settings and data. `inputs` are for the record.
        """
        task = Task("fit", settings, data)
        check_folder(folder, resume=resume, force=force)
        with ExitStack() as lock:
            lock.enter_context(files.locked(folder))
            kept, finished = read_task(folder / FIT_PIECES, "fit"), files.finished_record(folder)
            if force:
                files.remove_folder(folder / FIT_PIECES)
            elif finished is not None and not task.changes(finished):
                if all((folder / name).is_file() for name in _NEEDED):
                    if kept is not None and not task.changes(kept):
                        files.remove_folder(folder / FIT_PIECES)  # the fit was killed after its last file
                    return None
            elif (before := kept or finished) is not None and (changes := task.changes(before)):
                raise FolderInUse(
                    f"{folder} was started with other data or settings ({'; '.join(changes)}): "
                    "repeat those, choose another folder, or `force=True` to start again",
                    ["force"],
                )
            return cls(folder, task, inputs, Pieces(folder / FIT_PIECES, task), lock.pop_all())

    @classmethod
    def open_pairs(cls, folder: Path, settings: Record, data: Record, inputs: Record, *, force: bool) -> Run:
        """The same for pairs of two tables, which are fitted at once: nothing is kept before all is finished."""
        with ExitStack() as lock:
            lock.enter_context(files.locked(folder))
            check_folder(folder, force=force, pairs=True)
            return cls(folder, Task(PAIRS, settings, data), inputs, None, lock.pop_all())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, ValueError) and self._pieces is not None and not self._pieces:
            files.remove_folder(self.folder / FIT_PIECES)  # data or settings were refused: nothing was found
        self._lock.close()

    def keep(self, number: int, module: Module) -> None:
        """Save a module as soon as it is found."""
        assert self._pieces is not None
        self._pieces[_MODULE.format(number + 1)] = npz_bytes(module_arrays(module))

    def record(self, warnings: Sequence[str] = ()) -> Record:
        """The content of run.json."""
        more: Record = {"kind": PAIRS} if self._task.kind == PAIRS else {}
        paths = files.recorded_inputs(self._inputs)
        if not all(os.path.isabs(path) for own in paths.values() for path in own):
            try:  # where relative paths start, seen from the folder
                more["directory"] = os.path.relpath(Path.cwd(), os.path.realpath(self.folder))
            except ValueError:  # another drive of Windows
                more["directory"] = str(Path.cwd())
        return self._task.record() | more | {"inputs": self._inputs, "warnings": list(warnings)}

    def finish(self, staged: Path, warnings: Sequence[str] = ()) -> None:
        """Move the files of a scratch folder to their places, and remove what was kept meanwhile."""
        files.commit_files(staged, self.folder, files.RUN_RECORD, self.record(warnings))
        files.remove_folder(self.folder / FIT_PIECES)


def write_results(folder: Path, model: object, alignment: Record, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write the tables, by name, and the model of a fit to a scratch folder."""
    for name, table in tables.items():
        files.write_table(folder / f"{name}.tsv", table)
    files.write_json(folder / "alignment.json", alignment)
    save(model, folder / "model")


def check_folder(
    folder: Path, *, force: bool, resume: bool = False, pairs: bool = False, inputs: files.Inputs | None = None
) -> None:
    """Refuse a folder that is not empty, unless its fit is resumed or its results are replaced (`force`).

    Files that netbic did not write, and `inputs` (by labels), are never replaced. `pairs` are not resumed.
    """
    files.check_writable(folder, [*(files.PAIR_FILES if pairs else files.RUN_FILES), files.RUN_RECORD], inputs)
    if force:
        return
    kept, finished = read_task(folder / FIT_PIECES, "fit"), files.finished_record(folder)
    is_fit = finished is not None and finished.get("kind") != PAIRS
    if (kept is None and files.is_empty(folder)) or (resume and (kept is not None or is_fit)):
        return
    if resume and finished is not None:
        what = f"{folder} contains pairs of two tables, which cannot be resumed as modules of one"
        what = f"{what}: choose another folder, or `force=True` to replace them"
    elif resume:
        what = f"{folder} contains files but no fit of netbic: choose another folder for the results"
    elif kept is not None:
        continued = "choose another folder" if pairs else "`resume=True` to continue it"
        what = f"{folder} contains an interrupted fit: {continued}, or `force=True` to start again"
    elif finished is not None:
        what = f"{folder} contains finished results: choose another folder, or `force=True` to replace them"
    else:
        some = one_line(some_names(sorted(path.name for path in folder.iterdir()), quoted=False), 200)
        what = (
            f"{folder} is not empty ({some}): choose a new folder, or `force=True` to write the results into it anyway"
        )
        what = f"{what} (files that netbic did not write are not replaced)"
    raise FolderInUse(what, ["force"] if pairs else ["force", "resume"])


# Data of a fit, and new samples


def read_like(folder: Path | str, expression: Path | str, **reading: Any) -> Expression:
    """Read new samples, and preprocess them as `netbic fit` did for an output folder; genes are not selected again.

    Parameters
    ----------
    folder : path
        The output folder of `netbic fit`. A folder of `netbic.save` has no record of how the data were read: the file
        is not preprocessed, and there is a warning.
    expression : path
    **reading
        `samples_in_rows`, `layer`, `gene_names`, `skip_columns`, `id_map`: if the new file differs from that of the
        fit. Genes whose names are not those of the modules are translated by the id map; Ensembl versions do not
        matter.
    """
    folder = Path(folder)
    recorded: Record = (files.finished_record(folder) or {}).get("inputs", {})
    if not (folder / files.RUN_RECORD).is_file():
        what = f"{folder} has no record of how its data were read and preprocessed"
        warnings.warn(
            f"{what}: the file is not preprocessed, and has genes in rows unless samples_in_rows is given", stacklevel=2
        )
    known = {name: recorded[name] for name in _RECORDED if recorded.get(name) is not None}
    for name, value in known.items():
        if not isinstance(value, _RECORDED[name]):
            what = f"contains {name}={value!r}, which netbic did not write"
            raise unusable(folder / files.RUN_RECORD, what, "it was changed: fit again")
    check_keywords("read_like", reading, [*READING, "id_map"])
    known |= reading
    data = read_expression(expression, **{name: known[name] for name in READING if name in known})
    model = load_modules(folder)
    nodes = model.names_["columns"]
    genes = [] if nodes is None else list(map(str, nodes))
    if set(genes).isdisjoint(map(str, data.genes)) and not set(genes).isdisjoint(map(str, data.samples)):
        what = f"its samples have the names of genes of the modules ({', '.join(map(shown, data.samples[:2]))}, ...)"
        remedy = "exchange genes and samples (`samples_in_rows`)"
        raise unusable(expression, what, remedy, parameters=["samples_in_rows"])
    if genes:  # of several that one name may stand for, those of the modules come first
        genes = [genes[at] for at in np.argsort(~model.columns_.any(axis=0), kind="stable")]
    table = {name: found[0] for name, found in names_among(data.genes, genes, known.get("id_map")).items()}
    rename = Renaming(table, known.get("strip_versions", False))
    steps = {name: known[name] for name in ("duplicates", "cpm", "log1p") if name in known}
    return prepare(data, rename=rename, keep_constant=True, **steps).expression


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
        If the file is not there, lacks samples or genes of the fit, or has other values.
    """
    folder, model = Path(folder), load_modules(folder)
    record = files.finished_record(folder) or {}
    known = record.get("inputs", {}).get("expression")
    if expression is None and not isinstance(known, str):
        what = f"{folder} has no record of the file with the data"
        raise InputError(f"{what}: say where they are (`expression`)", ["expression"])
    places = files.input_places(folder, known, record) if expression is None else [Path(expression)]
    path = next((place for place in places if place.exists()), places[0])
    if not path.exists():
        what = f"the data of the fit, {path}, are not there"
        raise InputError(f"{what}: say where they are (`expression`)", ["expression"])
    data = read_like(folder, path)
    found = []
    for axis, noun, names in (("rows", "sample", data.samples), ("columns", "gene", data.genes)):
        wanted = pd.Index([str(name) for name in names_of(model, axis)])
        found.append(pd.Index([str(name) for name in names]).get_indexer(wanted))
        if (found[-1] < 0).any():
            absent = wanted[int((found[-1] < 0).argmax())]
            raise unusable(path, f"has no {noun} {shown(absent)} of the fit", "give the data of the fit")
    rows, columns = found
    matrix = data.select_samples(rows).matrix
    if not np.array_equal(columns, np.arange(data.shape[1])):
        matrix = select_columns(matrix, columns)
    _check_unchanged(folder, model, matrix, path, record)
    return Expression(matrix, np.asarray(data.samples)[rows], np.asarray(data.genes)[columns])


def _check_unchanged(folder: Path, model: SparseGraphSVD, matrix: Any, path: Path, record: Record) -> None:
    """Raise if the scores of the samples are not those of the fit; a warning if other values are not (a checksum)."""
    known = record.get("data", {}).get("expression")
    if known is None or known == digest(*buffers(matrix), np.array(matrix.shape)):
        return
    if (table := read_results_table(folder, "samples")) is not None and model.n_components_:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            now = module_scores(model, matrix).T.ravel()
        before = table["score"].to_numpy(dtype=np.float64)
        close = before.size == now.size and np.allclose(now, before, 0, _CLOSE * np.nanstd(before), equal_nan=True)
        if not close:
            what = "its values are not those that the modules were found in (the scores of the samples differ)"
            raise unusable(path, what, "give the data of the fit, or fit again")
    if not record.get("settings", {}).get("dask"):  # then the checksum is one of the file
        what = "its values are not exactly those that the modules were found in (checksum in run.json)"
        warnings.warn(f"{path}: {what}: if the file was changed, fit again", stacklevel=3)
