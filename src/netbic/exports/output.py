"""Where exports are written: files of the user's are never replaced unless asked for, results of a fit never."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from netbic.errors import InputError
from netbic.exports.results import Results
from netbic.files import (
    ADDED_FILES,
    FolderInUse,
    Inputs,
    add_files,
    check_not_input,
    check_output_file,
    check_writable,
    recorded_paths,
    write_atomic,
    write_errors,
)


def check_file(results: Results, path: Path, *, force: bool) -> None:
    """Raise unless this file may be written."""
    if _in_place(results, path):
        check_writable(path.parent, [path.name])
    else:
        check_output_file(path, _inputs(results), force=force)


def write_file(results: Results, path: Path, content: bytes, *, force: bool) -> Path:
    """Write a file. One with the usual name in the folder of the fit belongs to its results, and is listed there."""
    check_file(results, path, force=force)
    if _in_place(results, path):
        add_files(path.parent, {path.name: content})
    else:
        write_atomic(path, content)
    return path


def check_folder(results: Results, folder: Path, *, force: bool) -> None:
    """Raise unless files may be written to this folder: it is new or empty, or `force` is set."""
    if folder.exists() and not folder.is_dir():
        raise FolderInUse(f"{folder} is a file: name a folder")
    if not folder.parent.is_dir():
        raise InputError(f"{folder} cannot be made, the folder around it does not exist: make that first")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FolderInUse(
            f"{folder} is not empty: choose a new folder, or `force=True` to replace files of the same names", ["force"]
        )


def write_folder(results: Results, folder: Path, contents: Mapping[str, bytes], *, force: bool) -> Path:
    """Write files to a folder."""
    check_folder(results, folder, force=force)
    targets = [folder / name for name in contents]
    check_not_input(targets, _inputs(results))
    for path in targets:
        if os.path.lexists(path) and not (path.is_symlink() or stat.S_ISREG(path.stat().st_mode)):
            raise FolderInUse(f"{path} is not a regular file: choose another folder")
    with write_errors(folder):
        folder.mkdir(exist_ok=True)
    for path, content in zip(targets, contents.values(), strict=True):
        write_atomic(path, content)
    return folder


def _in_place(results: Results, path: Path) -> bool:
    """Whether this is a file of the results of a fit."""
    own = results.folder
    return own is not None and path.name in ADDED_FILES and path.absolute().parent == own.absolute()


def _inputs(results: Results) -> Inputs:
    return {} if results.folder is None else {"the results": recorded_paths(results.folder)}
