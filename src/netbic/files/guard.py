"""The guard of everything netbic writes: what belongs to the user is never replaced, and nothing is half replaced.

A *record* (`run.json`, `model.json`, ...) lists the files that netbic wrote into its folder. Those, and no others, may
be replaced or removed. New files are written to a scratch folder first; only when all of them are on disk do they take
their places, so that a full disk or a kill leaves the earlier results whole.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from netbic import __version__
from netbic.errors import InputError, one_line
from netbic.files.atomic import (
    LOCK,
    TEMPORARY,
    WriteError,
    json_bytes,
    leftovers,
    read_bytes,
    read_json,
    remove_leftover,
    signals_deferred,
    temporary_file,
    write_atomic,
    write_errors,
)

MODEL_FILES: Final = ("arrays.npz", "names.json", "row_graph.npz", "column_graph.npz")
ADDED_FILES: Final = ("edges.tsv", "gene_sets.tsv", "enrichment.json", "heatmaps.npz", "report.html")
RUN_FILES: Final = (
    *("modules.tsv", "summary.tsv", "alignment.json", "auto.json"),
    *ADDED_FILES,
    *(f"model/{name}" for name in ("model.json", *MODEL_FILES)),
)
RUN_RECORD: Final = "run.json"
# What each record may list: a tampered one cannot make netbic touch anything else.
RECORDS: Final[dict[str, tuple[str, ...]]] = {
    RUN_RECORD: RUN_FILES,
    "model.json": (*MODEL_FILES, *ADDED_FILES),  # netbic.save
    "tuning.json": ("tuning.tsv",),
    "simulation.json": ("expression.tsv.gz", "network.sif", "truth.tsv"),
    "reproduction.json": tuple(
        f"{name}.{kind}"
        for kind, names in {
            "md": "README figure1 table1 figure2",
            "tsv": "figure1 figure1_controls modules table1 wilcoxon sigma random_modules",
            "png": "figure1 figure2",
            "svg": "figure1 figure2",
        }.items()
        for name in names.split()
    ),
}
# What commands read, by the names of their options, in words.
INPUT_LABELS: Final = {
    "expression": "the expression data",
    "graph": "the network",
    "gene_sets": "the gene sets",
    "string_info": "STRING's protein.info",
    "graph_names": "the names of the network's nodes",
    "id_map": "the id map",
}
_OWN = sorted({Path(name).name for names in RECORDS.values() for name in names} | {*RECORDS, "added", "results"})
_LEFTOVER = re.compile(
    rf"{re.escape(TEMPORARY)}(({'|'.join(map(re.escape, _OWN))}|module-\d+\.npz)-)?[a-z0-9_]{{3,8}}"
)  # of a file of netbic's, or of no name as earlier versions called them
_FOLDER = ".files"  # what the name of a scratch folder adds to that of its temporary file
_FINAL, _ASIDE = "record-to-be", "replaced"  # in a scratch folder
_TRIES, _PAUSE = 100, 0.02  # seconds between attempts to remove a folder


class FolderInUse(InputError):
    """An output that would replace something, or a folder that holds something already."""


# ----------------------------------------------------------------------------------------------------------------
# What may be replaced
# ----------------------------------------------------------------------------------------------------------------


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """The content of a record, if there is one and netbic wrote it."""
    if not (folder / name).is_file():
        return None
    try:
        content = read_json(folder / name)
    except InputError:
        return None
    return content if _is_record(content) else None


def _is_record(content: Any) -> bool:
    """Whether this can be a record: it names the version that wrote it, and what else it holds has the right types."""
    if not isinstance(content, dict) or not isinstance(content.get("netbic"), str):
        return False
    kinds: dict[str, Any] = {"files": (list, dict), "added": list, "inputs": dict, "remarks": list}
    kinds |= {"settings": dict, "data": dict}
    if any(name in content and not isinstance(content[name], kind) for name, kind in kinds.items()):
        return False
    if "earlier" not in content:
        return True
    return (
        isinstance(content["earlier"], dict) and "earlier" not in content["earlier"] and _is_record(content["earlier"])
    )


def _is_text(name: Any) -> bool:
    return isinstance(name, str)


def files_in_record(name: str, content: Mapping[str, Any]) -> set[str]:
    """The files that a record lists, itself included."""
    named = {file for key in ("files", "added") for file in content.get(key) or () if _is_text(file)}
    earlier = content.get("earlier")
    if isinstance(earlier, dict):
        named |= files_in_record(name, earlier)
    return named.intersection(RECORDS[name]) | {name}


def recorded_files(folder: Path) -> set[str]:
    """Names of the files in a folder that netbic's records there list as its own."""
    own: set[str] = set()
    for name in RECORDS:
        content = read_record(folder, name)
        if content is not None:
            own |= files_in_record(name, content)
    return own


def run_record(folder: Path) -> dict[str, Any] | None:
    """What run.json says of a fit, running or finished; None if there is none, or none of netbic's."""
    content = read_record(folder, RUN_RECORD)
    if content is None or content.get("state") not in ("running", "finished"):
        return None
    if not all(isinstance(content.get(name), dict) for name in ("settings", "data")):
        return None
    return content


def finished_record(folder: Path) -> dict[str, Any] | None:
    """The record of the finished results in a folder; None where there are none.

    While another fit is going to replace them, it is kept in that fit's record.
    """
    content = run_record(folder)
    if content is not None and content["state"] == "running":
        content = content.get("earlier")
    return content if isinstance(content, dict) and content.get("state") == "finished" else None


def check_writable(folder: Path, names: Iterable[str], inputs: Mapping[str, Any] | None = None) -> None:
    """Raise unless each of these files is free to be written: no input, and nothing there but what netbic wrote."""
    names = list(names)
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise FolderInUse(f"{path} is a file: name a folder for the results")
    for part in sorted({name.split("/")[0] for name in names if "/" in name}):
        if (folder / part).is_symlink() or ((folder / part).exists() and not (folder / part).is_dir()):
            raise FolderInUse(f"{folder / part} is in the way (a folder is to be made there): move it away first")
    check_not_input([folder / name for name in names], inputs or {})
    own = recorded_files(folder)
    others = [
        name for name in names if os.path.lexists(folder / name) and not (name in own and _is_file(folder / name))
    ]
    if others:
        _explain_record(folder)
        what = one_line(", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else ""))
        raise FolderInUse(
            f"{folder} holds files that netbic did not write and would have to replace ({what}): "
            "move them away, or choose another folder (--force does not replace them either)"
        )


def _explain_record(folder: Path) -> None:
    """Raise if a run.json is there that says nothing of the files in its folder."""
    content = read_record(folder, RUN_RECORD)
    if content is None and (folder / RUN_RECORD).is_file():
        raise FolderInUse(
            f"{folder / RUN_RECORD} cannot be read as a record of netbic, so that nothing tells which files are its "
            "own: choose another folder"
        )
    if content is not None and content.get("state") == "finished" and "files" not in content:
        raise FolderInUse(
            f"{folder} holds results of an older netbic, which did not list its files: choose another folder, or "
            "remove them first"
        )


def check_not_input(targets: Iterable[Path], inputs: Mapping[str, Any]) -> None:
    """Raise if a file to be written is, or lies in, a file or folder that is read; links and spellings do not matter.

    Parameters
    ----------
    targets : paths to be written or removed
    inputs : mapping of what is read ("the network") to its path, or to a list of paths; None for what is not given
    """
    targets = list(targets)
    for role, given in inputs.items():
        for source in given if isinstance(given, list) else [given]:
            for target in targets if source is not None else ():
                if _overlap(target, Path(source)):
                    raise FolderInUse(f"{target} is what is to be read ({role}, {source}): write elsewhere")


def recorded_paths(folder: Path) -> list[Path]:
    """The files that netbic wrote into a folder of results, its model included."""
    parts = [folder, folder / "model"]
    return [part / name for part in parts for name in sorted(recorded_files(part))]


def _overlap(target: Path, source: Path) -> bool:
    """Whether writing one would touch the other."""
    with suppress(OSError):
        if target.exists() and source.exists() and target.samefile(source):
            return True
    written, read = os.path.realpath(target), os.path.realpath(source)
    return written == read or (os.path.isdir(read) and _inside(written, read)) or _inside(read, written)


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_file(path: Path) -> bool:
    """Whether a file (or a link to one) can be replaced by another."""
    return path.is_symlink() or path.is_file()


def check_output_file(path: Path, inputs: Mapping[str, Any], *, force: bool) -> None:
    """Raise unless a file that the user named may be written: it is no input, and it is new or `force` is given."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written, its folder is not there: make it first, or name another file")
    check_not_input([path], inputs)
    if not os.path.lexists(path):
        return
    if path.is_dir() or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
        raise FolderInUse(f"{path} is not a regular file: name a file to write")
    if not force:
        raise FolderInUse(f"{path} exists: choose another name, or --force to replace it")


# ----------------------------------------------------------------------------------------------------------------
# Scratch folders
# ----------------------------------------------------------------------------------------------------------------


@contextmanager
def scratch_folder(parent: Path, target: str, restore: Callable[[Path], Any] = lambda scratch: None) -> Iterator[Path]:
    """A temporary folder beside a target, removed at the end; what killed commands left of this target goes first.

    A temporary file beside it, which this process holds, tells others that it is still in use.

    Parameters
    ----------
    parent : path
    target : name of what is going to be written; leftovers of other targets are not touched
    restore : function, optional
        Called with a leftover folder before it is removed.
    """
    remove_stale_scratch(parent, target, restore)
    handle, name = -1, ""
    try:
        with write_errors(parent / target), signals_deferred():
            handle, name = temporary_file(parent, target)
            os.mkdir(name + _FOLDER)
        yield Path(name + _FOLDER)
    finally:
        with signals_deferred():
            if name:
                _discard(Path(name + _FOLDER))
                Path(name).unlink(missing_ok=True)
                os.close(handle)


def remove_stale_scratch(parent: Path, target: str, restore: Callable[[Path], Any] = lambda scratch: None) -> None:
    """Remove scratch folders of this target whose process is gone."""
    for path in leftovers(parent, target):
        _remove_with_folder(path, restore)


def has_stale_files(folder: Path) -> bool:
    """Whether a killed command left anything in a folder of results."""
    return any(path.name == LOCK or _LEFTOVER.fullmatch(path.name) for path in folder.iterdir())


def remove_stale_files(*folders: Path) -> None:
    """Remove what killed commands left of netbic's own files in folders that this process holds."""
    for folder in folders:
        if not folder.is_dir() or folder.is_symlink():
            continue
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                _remove_with_folder(path)


def _remove_with_folder(path: Path, restore: Callable[[Path], Any] = lambda scratch: None) -> None:
    scratch = Path(f"{path}{_FOLDER}")

    def first() -> None:
        if scratch.is_dir() and not scratch.is_symlink():
            restore(scratch)
            _discard(scratch)

    with signals_deferred():
        remove_leftover(path, first)


def _discard(scratch: Path) -> None:
    """Remove a scratch folder. Libraries with threads of their own (Zarr) may write a little after an interruption."""
    for _ in range(_TRIES):
        shutil.rmtree(scratch, ignore_errors=True)
        if not scratch.exists():
            return
        time.sleep(_PAUSE)


# ----------------------------------------------------------------------------------------------------------------
# Files that take their places together
# ----------------------------------------------------------------------------------------------------------------


def commit_files(staged: Path, folder: Path, record: str, content: dict[str, Any], *, drop: Iterable[str] = ()) -> None:
    """Move all files of a scratch folder to their places, then write the record that lists them.

    Before anything is moved, the record says which files are netbic's own: a command that is killed in between leaves
    nothing that the next one could not replace.

    Parameters
    ----------
    staged : path
        A scratch folder inside `folder`.
    folder : path
    record : name of the record
    content : dict
        What the record is to hold at the end; `files` are listed in it unless it lists them itself.
    drop : names of earlier files to be removed
    """
    names = _staged_names(staged)
    check_writable(folder, [*names, record])
    own = recorded_files(folder) | {f"model/{name}" for name in recorded_files(folder / "model")}
    drop = [name for name in drop if name in own and name not in names and name != record]
    with signals_deferred():
        _take_places(staged, folder, record, content, names, drop)


def _take_places(
    staged: Path, folder: Path, record: str, content: dict[str, Any], names: list[str], drop: list[str]
) -> None:
    claimed = {key: value for key, value in content.items() if key != "earlier"} | {"state": "running"}
    write_atomic(staged / _FINAL, json_bytes({"files": sorted(names)} | content))
    before = read_bytes(folder / record) if os.path.lexists(folder / record) else None
    write_atomic(folder / record, json_bytes(claimed | {"files": sorted({*names, *drop})}))
    try:
        for name in [*names, *drop]:  # from here on nothing is written: files only change their places
            with write_errors(folder / name):
                _exchange(staged, folder, name)
        with write_errors(folder / record):
            os.replace(staged / _FINAL, folder / record)
    except WriteError:
        _put_back(staged, folder, [*names, *drop])
        if before is not None:
            write_atomic(folder / record, before)
        raise


def _exchange(staged: Path, folder: Path, name: str) -> None:
    """Move an earlier file aside, and a new one (if there is one) to its place."""
    (folder / name).parent.mkdir(exist_ok=True)
    (staged / _ASIDE / name).parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(folder / name):
        os.replace(folder / name, staged / _ASIDE / name)
    if (staged / name).is_file():
        os.replace(staged / name, folder / name)


def _put_back(staged: Path, folder: Path, names: Iterable[str]) -> None:
    """Undo what has been exchanged, after a file could not be."""
    for name in names:
        if os.path.lexists(staged / _ASIDE / name):
            os.replace(staged / _ASIDE / name, folder / name)


def _staged_names(staged: Path) -> list[str]:
    found = (path for path in staged.rglob("*") if path.is_file())
    return sorted(path.relative_to(staged).as_posix() for path in found)


def add_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write further files into a folder of results, all or none, and list them in its record.

    Without a record (a scratch folder) they are just written.
    """
    check_writable(folder, files)
    with scratch_folder(folder, "added") as scratch:
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
        if content is None:
            continue
        results = content.get("earlier", content)
        named = sorted({*filter(_is_text, results.get(key) or ()), *names})
        if named != results.get(key):
            results[key] = named
            write_atomic(folder / record, json_bytes(content))
        return


def with_version(content: Mapping[str, Any]) -> dict[str, Any]:
    """A record's content, with the version that wrote it."""
    return {"netbic": __version__, **content}
