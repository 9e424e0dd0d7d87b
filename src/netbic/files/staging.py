"""Staging: results are written to a scratch folder and moved to their places together.

A full disk or a kill before the move leaves the earlier results as they were; one during the move leaves a record from
which the next command can continue.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from netbic.files.atomic import (
    WriteError,
    is_temporary,
    remove_if_stale,
    signals_deferred,
    temporary_file,
    temporary_files,
    write_atomic,
    write_errors,
)
from netbic.files.formats import Record, json_bytes, read_bytes
from netbic.files.guard import check_writable
from netbic.files.locks import LOCK
from netbic.files.records import RECORDS, RUN_RECORD, files_in_record, read_record, recorded_files, with_version

Restore: TypeAlias = Callable[[Path], None]  # called with a scratch folder before it is removed
FIT_CHECKPOINT: Final = "fit.checkpoint"
TUNING_CHECKPOINT: Final = "tuning.checkpoint"
_ADDED, _RESULTS = "added", "results"  # targets of scratch folders for several files
_TARGETS = {Path(name).name for names in RECORDS.values() for name in names} | {*RECORDS, _ADDED, _RESULTS}
_OWN = "|".join(map(re.escape, sorted(_TARGETS | {FIT_CHECKPOINT, TUNING_CHECKPOINT})))
_FOLDER = ".files"  # appended to the name of a temporary file: its scratch folder
_RECORD, _REPLACED = "new-record", "replaced"  # inside a scratch folder
_TRIES, _PAUSE = 100, 0.02  # seconds between attempts to remove a folder
_CHECKS = 5  # that it is gone, after an interruption


def _nothing(scratch: Path) -> None:
    """Restore nothing."""


@contextmanager
def scratch_folder(parent: Path, target: str = _RESULTS, restore: Restore = _nothing) -> Iterator[Path]:
    """A temporary folder for a target, removed at the end; stale ones of the same target are removed first.

    A locked temporary file beside it tells other processes that it is in use.

    Parameters
    ----------
    parent : path
    target : name of the file or folder that will be written, "results" for all results of a fit
    restore : function, optional
        Called with a stale scratch folder before it is removed.
    """
    remove_stale_scratch(parent, target, restore)
    handle, name, checks = -1, "", 1
    try:
        with write_errors(parent / target), signals_deferred():
            handle, name = temporary_file(parent, target)
            os.mkdir(name + _FOLDER)
        yield Path(name + _FOLDER)
    except BaseException:
        checks = _CHECKS
        raise
    finally:
        with signals_deferred():
            if name:
                _discard(Path(name + _FOLDER), checks)
                Path(name).unlink(missing_ok=True)
                os.close(handle)


def remove_stale_scratch(parent: Path, target: str, restore: Restore = _nothing) -> None:
    """Remove scratch folders of this target whose process was killed."""
    for path in temporary_files(parent, target):
        _remove_with_folder(path, restore)
    for folder in temporary_files(parent, target, _FOLDER):  # as threads of Zarr may make them once more
        if not folder.with_name(folder.name.removesuffix(_FOLDER)).exists() and not folder.is_symlink():
            _discard(folder)


def has_stale_files(folder: Path) -> bool:
    """Whether a killed command left temporary files or a lock in a folder of results."""
    return any(path.name == LOCK or is_temporary(path.name, _OWN) for path in folder.iterdir())


def is_empty(folder: Path) -> bool:
    """Whether a folder does not exist or contains nothing but temporary files."""
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return all(name == LOCK or is_temporary(name.removesuffix(_FOLDER)) for name in names)


def remove_stale_files(*folders: Path) -> None:
    """Remove temporary files of killed commands from folders of results that this process has locked."""
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
            if is_temporary(path.name, _OWN):
                _remove_with_folder(path, _nothing)


def _remove_with_folder(path: Path, restore: Restore) -> None:
    scratch = Path(f"{path}{_FOLDER}")

    def remove_folder() -> None:
        if scratch.is_dir() and not scratch.is_symlink():
            restore(scratch)
            _discard(scratch)

    with signals_deferred():
        remove_if_stale(path, remove_folder)


def _discard(scratch: Path, checks: int = 1) -> None:
    """Remove a scratch folder, until it does not exist at several `checks` in a row.

    Threads of libraries (Zarr) may still write, and make the folder again, shortly after an interruption.
    """
    gone = 0
    for _ in range(_TRIES):
        shutil.rmtree(scratch, ignore_errors=True)
        gone = 0 if scratch.exists() else gone + 1
        if gone == checks:
            return
        time.sleep(_PAUSE)


def commit_files(staged: Path, folder: Path, record: str, content: Record) -> None:
    """Move all files of a scratch folder to their places, then write the record that lists them.

    Other files that the earlier record lists are removed with the results that they belong to. Before anything is
    moved, the record lists all of these files: the next command can replace what a killed one left.

    Parameters
    ----------
    staged : path
        A scratch folder inside `folder`.
    folder : path
    record : name of the record
    content : dict
        The final content of the record; the version and `files` are added unless they are in it.
    """
    new = sorted(path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file())
    check_writable(folder, [*new, record])
    earlier = files_in_record(record, read_record(folder, record) or {}) - {*new, record}
    if record == RUN_RECORD:
        earlier |= {f"model/{name}" for name in recorded_files(folder / "model")} - {*new}
    moved = [*new, *sorted(earlier)]
    with signals_deferred():
        write_atomic(staged / _RECORD, json_bytes(with_version({"files": new} | content)))
        before = read_bytes(folder / record) if os.path.lexists(folder / record) else None
        running = {key: value for key, value in content.items() if key != "earlier"} | {"state": "running"}
        write_atomic(folder / record, json_bytes(with_version(running | {"files": sorted(moved)})))
        try:
            _move(staged, folder, moved, record)
        except WriteError:
            _undo(staged, folder, moved)
            if before is not None:
                write_atomic(folder / record, before)
            raise


def _move(staged: Path, folder: Path, names: Iterable[str], record: str) -> None:
    """Exchange files; nothing is written here, so that a full disk does not matter."""
    for name in names:
        with write_errors(folder / name):
            (folder / name).parent.mkdir(exist_ok=True)
            (staged / _REPLACED / name).parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(folder / name):
                os.replace(folder / name, staged / _REPLACED / name)
            if (staged / name).is_file():
                os.replace(staged / name, folder / name)
    with write_errors(folder / record):
        os.replace(staged / _RECORD, folder / record)


def _undo(staged: Path, folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if os.path.lexists(staged / _REPLACED / name):
            os.replace(staged / _REPLACED / name, folder / name)


def add_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write further files into a folder of results, all or none, and list them in its record.

    In a folder without a record (a scratch folder) they are only written.
    """
    check_writable(folder, files)
    with scratch_folder(folder, _ADDED) as scratch:
        for name, content in files.items():
            write_atomic(scratch / name, content)
        with signals_deferred():
            _list_in_record(folder, files)
            for name in files:
                with write_errors(folder / name):
                    os.replace(scratch / name, folder / name)


def _list_in_record(folder: Path, names: Iterable[str]) -> None:
    for record, key in ((RUN_RECORD, "files"), ("model.json", "added")):
        content = read_record(folder, record)
        if content is not None:
            results = content.get("earlier", content)
            known = {name for name in results.get(key) or () if isinstance(name, str)}
            if sorted({*known, *names}) != results.get(key):
                results[key] = sorted({*known, *names})
                write_atomic(folder / record, json_bytes(content))
            return
