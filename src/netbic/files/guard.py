"""Checks before anything is written: files that netbic did not write are never replaced, inputs neither."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from netbic.errors import InputError, one_line
from netbic.files.records import RUN_RECORD, read_record, recorded_files

# What commands read, by the names of their options.
INPUT_LABELS: Final = {
    "expression": "the expression data",
    "graph": "the network",
    "gene_sets": "the gene sets",
    "sample_info": "the sample table",
    "string_info": "STRING's protein.info",
    "graph_names": "the names of the network's nodes",
    "id_map": "the id map",
}
Inputs: TypeAlias = Mapping[str, "Path | str | list[Path] | None"]  # from a label to its file or files


class FolderInUse(InputError):
    """An output that would replace a file, or a folder that is not empty."""


def check_writable(folder: Path, names: Iterable[str], inputs: Inputs | None = None, own: Iterable[str] = ()) -> None:
    """Raise unless each of these files may be written: it is not an input, and it is new or netbic wrote it.

    The files that netbic wrote are those in the records of the folder, and those in `own`.
    """
    names = list(names)
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise FolderInUse(f"{path} is a file: name a folder for the results")
    for part in sorted({name.split("/")[0] for name in names if "/" in name}):
        if (folder / part).is_symlink() or ((folder / part).exists() and not (folder / part).is_dir()):
            raise FolderInUse(f"{folder / part} is in the way (a folder is needed there): move it away first")
    check_not_input([folder / name for name in names], inputs or {})
    if others := list(_other_files(folder, names, {*own, *recorded_files(folder)})):
        _explain_record(folder)
        some = one_line(", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else ""))
        raise FolderInUse(
            f"{folder} contains files that netbic did not write and would have to replace ({some}): "
            "move them away, or choose another folder (such files are never replaced)"
        )


def _other_files(folder: Path, names: Iterable[str], own: Container[str]) -> Iterator[str]:
    """Names that exist and that netbic did not write, or that are now folders."""
    for name in names:
        path = folder / name
        if os.path.lexists(path) and not (name in own and (path.is_symlink() or path.is_file())):
            yield name


def _explain_record(folder: Path) -> None:
    """Raise if there is a run.json that does not list the files of its folder."""
    content = read_record(folder, RUN_RECORD)
    if content is None and (folder / RUN_RECORD).is_file():
        raise FolderInUse(
            f"{folder / RUN_RECORD} cannot be read as a record of netbic, so it is not known which files netbic wrote: "
            "choose another folder"
        )
    if content is not None and content.get("state") == "finished" and "files" not in content:
        raise FolderInUse(
            f"{folder} contains results of an older netbic, which did not list its files: choose another folder, or "
            "remove them first"
        )


def check_not_input(targets: Iterable[Path], inputs: Inputs) -> None:
    """Raise if a file to be written is, or is inside, a file or folder that is read, also through links.

    Parameters
    ----------
    targets : paths to be written or removed
    inputs : mapping of a label ("the network") to a path or a list of paths; None for an input that is not given
    """
    targets = list(targets)
    for label, given in inputs.items():
        for source in given if isinstance(given, list) else [given]:
            for target in targets:
                if source is not None and _overlap(target, Path(source)):
                    raise FolderInUse(f"{target} is an input ({label}, {source}): write to another place")


def _overlap(target: Path, source: Path) -> bool:
    """Whether writing to one path would change the other."""
    with suppress(OSError):
        if target.exists() and source.exists() and target.samefile(source):
            return True
    written, read = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    return read.is_relative_to(written) or (read.is_dir() and written.is_relative_to(read))


def check_output_file(path: Path, inputs: Inputs, *, force: bool) -> None:
    """Raise unless a file that the user named may be written: it is not an input, and it is new or `force` is set."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written, its folder does not exist: make it first, or name another file")
    check_not_input([path], inputs)
    if not os.path.lexists(path):
        return
    if path.is_dir() or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
        raise FolderInUse(f"{path} is not a regular file: name a file to write")
    if not force:
        raise FolderInUse(f"{path} exists: choose another name, or `force=True` to replace it", ["force"])
