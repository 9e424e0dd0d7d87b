"""Files: atomic writes, results that appear all or none, a lock for each folder, JSON and tables, checks of outputs.

Results are written to a scratch folder inside the output folder. When they are complete, the scratch folder is renamed:
from then on they count. Then they are moved to their places; if a command is killed meanwhile, the next one that reads
or writes the folder moves the rest. A record (`run.json`, `model.json`, ...) lists the files that netbic wrote into its
folder: only those may be replaced or removed.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from netbic import __version__
from netbic.errors import InputError, one_line, shown, some_names, unusable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Record: TypeAlias = dict[str, Any]  # a JSON object from a file; its values are checked where they are used
Inputs: TypeAlias = Mapping[str, "Path | str | list[Path] | None"]  # from a label to its file or files

# What commands read, by the names of their options.
INPUT_LABELS: Final = {
    "expression": "the expression data",
    "graph": "the network",
    "gene_sets": "the gene sets",
    "sample_info": "the sample table",
    "string_info": "STRING's protein.info",
    "graph_names": "the names of the network's nodes",
    "id_map": "the id map",
    "table1": "table 1",
    "table2": "table 2",
    "graph1": "the network of table 1",
    "graph2": "the network of table 2",
}
# What netbic writes: a record that was changed cannot make it touch anything else.
MODEL_FILES: Final = ("arrays.npz", "names.json", *(f"{name}_graph.npz" for name in ("row", "column", "x", "y")))
_MODEL: Final = tuple(f"model/{name}" for name in ("model.json", *MODEL_FILES))
ADDED_FILES: Final = (
    *("edges.tsv", "gene_sets.tsv", "enrichment.json", "samples.tsv", "verdicts.tsv", "associations.tsv"),
    *("associations.json", "sample_info.tsv", "replication.json", "replication.tsv", "gene_moments.npz"),
    *("replication_associations.tsv", "heatmaps.npz", "report.html", "modules.gmt", "lists.txt", "modules.xlsx"),
    *("membership.tsv", "overview.tsv", "pairs.gmt", "pairs.xlsx"),
)
RUN_FILES: Final = ("modules.tsv", "summary.tsv", "alignment.json", "studies.tsv", *ADDED_FILES, *_MODEL)
PAIR_FILES: Final = (
    *("pairs.tsv", "weights.tsv", "scores.tsv", "same_names.tsv", "alignment.json", "report.html"),
    *("associations.tsv", "associations.json", "sample_info.tsv", "gene_sets.tsv", "enrichment.json"),
    *("pairs.gmt", "lists.txt", "pairs.xlsx", *_MODEL),
)
RUN_RECORD: Final = "run.json"
EXPORT_RECORD: Final = "export.json"
_NAMED = re.compile(r"associations_[\w-]+\.(tsv|json)")  # of netbic associate --name
_EXPORTED = re.compile(r"module_\d+(\.graphml|\.cyjs|_(genes|samples)_(up|down)\.txt)|pair_\d+_[\w.-]+_(up|down)\.txt")
RECORDS: Final[dict[str, tuple[str, ...]]] = {
    RUN_RECORD: (*RUN_FILES, *PAIR_FILES),
    "model.json": (*MODEL_FILES, *ADDED_FILES),
    "tuning.json": ("tuning.tsv",),
    "judged.json": ("judged.tsv", "judged_genes.tsv", "judged_scores.tsv"),
    "example.json": ("expression.tsv.gz", "network.sif", "truth.tsv", "labels.tsv", "samples.tsv", "about.md"),
    EXPORT_RECORD: (),  # and what is called as `_EXPORTED` says
}
_PARTS = ("model", "cytoscape")  # folders inside the folder of a fit, with records of their own

LOCK: Final = ".netbic-lock"
FIT_PIECES: Final = ".netbic-fit"  # folders for finished pieces, see `netbic.storage.Pieces`
TUNING_PIECES: Final = ".netbic-tuning"
_UNFINISHED, _SCRATCH, _READY = ".netbic-unfinished-", ".netbic-scratch", ".netbic-ready"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAKE = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)  # never through a link
_held: set[str] = set()  # lock files that this process holds


class WriteError(OSError):
    """A file that could not be written: which one and why. The earlier file, if any, is unchanged."""

    def __init__(self, path: Path | str, problem: OSError | str) -> None:
        number = problem.errno if isinstance(problem, OSError) else None
        self.is_gone = number == errno.ENOENT  # the folder
        reason = getattr(problem, "strerror", None) or str(problem)
        full = number in _FULL
        advice = "free some disk space, or write to another disk" if full else "check the folder and its permissions"
        super().__init__(one_line(f"{path} cannot be written ({reason}): {advice}"))


class FolderInUse(InputError):
    """An output that would replace a file, or a folder that is not empty."""


@contextmanager
def write_errors(path: Path | str, full_only: bool = False) -> Iterator[None]:
    """Turn errors of the operating system (or a full disk only) into a `WriteError` that names the file."""
    try:
        yield
    except WriteError:
        raise
    except OSError as problem:
        if full_only and problem.errno not in _FULL:
            raise
        raise WriteError(path, problem) from None


def write_atomic(path: Path, content: bytes) -> None:
    """Write a temporary file beside the target, wait until it is on disk, then rename it."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write a temporary file beside each target, wait until all are on disk, then rename them: all or none."""
    renamed: dict[Path, Path] = {}
    with ExitStack() as opened:
        try:
            for path, content in contents.items():
                temporary = path.parent / f"{_UNFINISHED}{path.name}"
                with write_errors(path):
                    file = opened.enter_context(os.fdopen(_open_locked(temporary, path), "wb"))
                    renamed[path] = temporary
                    file.truncate(0)  # a killed command may have left it
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            with _repeated_if_interrupted(lambda: _rename(renamed)):
                _rename(renamed)
        except BaseException:
            for temporary in renamed.values():
                temporary.unlink(missing_ok=True)
            raise


def _rename(temporaries: Mapping[Path, Path]) -> None:
    for path, temporary in temporaries.items():
        if temporary.exists():
            with write_errors(path):
                os.replace(temporary, path)


@contextmanager
def _repeated_if_interrupted(finish: Callable[[], None]) -> Iterator[None]:
    """Call `finish` if the block, which moves complete files to their places, is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        finish()
        raise KeyboardInterrupt("all files were written") from None


def _open_locked(path: Path, target: Path) -> int:
    """Make or open a file and lock it; an error if another process has locked it."""
    while True:
        handle = os.open(path, _MAKE, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            raise InputError(f"another command is writing to {target}: wait for it, or write elsewhere") from None
        except OSError:  # a file system without locks
            pass
        with suppress(OSError):
            if os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle)):
                return handle
        os.close(handle)  # another process removed or renamed it in between


def json_bytes(content: JsonValue) -> bytes:
    """JSON with one line per entry; a lone surrogate, which UTF-8 does not have, is written as an escape."""
    try:
        return f"{json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()


def write_json(path: Path, content: JsonValue) -> None:
    """Write JSON atomically."""
    write_atomic(path, json_bytes(content))


def read_bytes(path: Path) -> bytes:
    """The content of one of netbic's own files."""
    _check_regular(path)
    try:
        return path.read_bytes()
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "fit again") from None


def _check_regular(path: Path) -> None:
    """Refuse pipes and devices, from which nothing may ever come."""
    if path.exists() and not path.is_file():
        raise unusable(path, "not a regular file", "netbic did not write it: fit again")


def read_json(path: Path) -> Any:
    """The content of a JSON file of netbic."""
    content = read_bytes(path)
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        what = f"cannot be read ({one_line(str(problem), 120)})"
        raise unusable(path, what, "it is damaged or netbic did not write it: fit again") from None


# columns that never hold numbers, and those with whole numbers, of which some may be missing
_NAMES: Final = (
    *("name", "term", "genes", "top_genes", "top_features", "sample", "axis", "variable", "level"),
    *("technical", "carried_by", "extreme_samples", "table"),
)
_INTEGERS: Final = ("repeats", "closest", "module_a", "module_b", "standing_out")
_NUMBERS: Final = re.compile(
    r"n|n_\w+|\w*score(_[12])?|held_out_[12]|rho|weight|effect|ci_\w+|[pq]|q_all|(\w+_)?[pq]_value|degree_\w+_(change|value)|"
    r"fold_change|expected(_\w+)?|singular_value|found_again|kme(_by_chance)?|confidence|breadth|z|\w*(correlation|variance|overlap|share|ratio)"
)
# pandas 3.1 reads every number to the last bit and deprecates the option that earlier versions need for it
_EXACT: Final[dict[str, Any]] = (
    {"float_precision": "round_trip"} if [*map(int, pd.__version__.split(".")[:2])] < [3, 1] else {}
)


def table_bytes(path: Path, table: pd.DataFrame) -> bytes:
    """What `write_table` writes; an error if a name has a character that a table cannot hold."""
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    if "\r" in text:  # pandas quotes names with tabs, quotes and line feeds, but reads a bare "\r" as the end of a line
        text = table.to_csv(sep="\t", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    if wrong := re.search("[\0\ud800-\udfff]", text):
        before, after = re.split("[\t\n]", text[: wrong.start()])[-1], re.split("[\t\n]", text[wrong.start() :])[0]
        what = f"the name {shown(before + after)} holds {wrong.group()!r}, which no table can hold"
        raise unusable(path, what, "rename it")
    return text.encode()


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a tab-separated table atomically; its numbers are read back to the same bits."""
    write_atomic(path, table_bytes(path, table))


def read_table(path: Path | str, *, as_text: bool = False) -> pd.DataFrame:
    """Read a table of results: numbers to the last bit, and names as they are, also one that is called NA.

    As text, all columns are text, as they are in the file.
    """
    _check_regular(Path(path))
    if as_text:
        return pd.DataFrame(pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False))
    missing = {name: [""] for name in pd.read_csv(path, sep="\t", nrows=0).columns if name not in _NAMES}
    kinds = dict.fromkeys(_NAMES, str)
    reading: dict[str, Any] = {"keep_default_na": False, "na_values": missing, "low_memory": False, **_EXACT}
    table: pd.DataFrame = pd.read_csv(path, sep="\t", dtype=kinds, **reading)
    for name, column in table.items():
        is_whole = name in ("module", "pair", *_INTEGERS)
        if is_whole or _NUMBERS.fullmatch(str(name)):
            numbers = pd.to_numeric(column, errors="coerce")
            is_wrong = column.notna() & (numbers.isna() | (is_whole & (numbers % 1 != 0)))
            if is_wrong.any():
                what = f"{shown(str(column[is_wrong].iloc[0]))} is not a {'whole ' * is_whole}number"
                raise unusable(path, what, "netbic did not write it: write the table again", column=str(name))
    return table.astype({name: "Int64" for name in _INTEGERS if name in table})


# Folders: a lock, a scratch folder, and a record of what netbic wrote


@contextmanager
def locked(folder: Path, target: str = "") -> Iterator[None]:
    """Lock a folder, or one target in it, for this process, and finish or remove what a killed command left there.

    The folder is made if it does not exist.
    """
    path, handle = folder / f"{LOCK}{target and '-'}{target}", -1
    try:
        with write_errors(path):
            if not target:
                folder.mkdir(parents=True, exist_ok=True)
            handle = _open_locked(path, folder / target)
        _held.add(os.path.realpath(path))
        if not target:
            if (folder / _READY).is_dir() and not (folder / _READY).is_symlink():
                _move(folder)
            remove_folder(scratch_path(folder))
            for part, names in ((folder, (*RECORDS, *sum(RECORDS.values(), ()))), (folder / "model", MODEL_FILES)):
                for name in names if part.is_dir() else ():
                    (part / f"{_UNFINISHED}{name}").unlink(missing_ok=True)
        yield
    finally:
        if handle >= 0:
            _held.discard(os.path.realpath(path))
            if os.fstat(handle).st_size == 0:  # a user's file of that name is left alone
                path.unlink(missing_ok=True)
            os.close(handle)


def scratch_path(parent: Path, target: str = "") -> Path:
    """Where the scratch folder for a target is."""
    return parent / f"{_SCRATCH}{target and '-'}{target}"


@contextmanager
def scratch_folder(parent: Path, target: str = "") -> Iterator[Path]:
    """A temporary folder for the results of a folder, or for one target in it, which this process has locked."""
    scratch, checks = scratch_path(parent, target), 1
    remove_folder(scratch)
    try:
        with write_errors(parent / target):
            scratch.mkdir()
        yield scratch
    except BaseException:
        checks = 5
        raise
    finally:
        remove_folder(scratch, checks)


def remove_folder(folder: Path, checks: int = 1) -> None:
    """Remove a folder that netbic made, until it does not exist at several `checks` in a row.

    Threads of libraries (Zarr) may still write, and make the folder again, shortly after an interruption.
    """
    gone, interrupted = 0, False
    for _ in range(100 if not folder.is_symlink() else 0):
        try:
            shutil.rmtree(folder, ignore_errors=True)
        except KeyboardInterrupt:
            interrupted = True
        gone = 0 if folder.exists() else gone + 1
        if gone == checks:
            break
        time.sleep(0.02)
    if interrupted:
        raise KeyboardInterrupt


def commit_files(staged: Path, folder: Path, record: str, content: Record) -> None:
    """Move all files of the locked `folder`'s scratch folder to their places, with a record that lists them.

    Other files that the earlier record lists are removed with the results that they belong to.
    """
    new = sorted(path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file())
    check_writable(folder, [*new, record])
    write_json(staged / record, {"netbic": __version__, "files": new} | content)
    with write_errors(folder):
        os.replace(staged, folder / _READY)
    with _repeated_if_interrupted(lambda: _move(folder)):
        _move(folder)


def _move(folder: Path) -> None:
    """Move complete results to their places; this may be repeated after an interruption at any point."""
    ready = folder / _READY
    for record in [name for name in RECORDS if (ready / name).is_file()]:  # one, which is moved last
        new, earlier = recorded_files(ready, [record]), recorded_files(folder, [record])
        if record == RUN_RECORD:
            parts = [part for part in _PARTS if not (folder / part).is_symlink()]
            earlier |= {f"{part}/{name}" for part in parts for name in recorded_files(folder / part)}
        for name in sorted(earlier - new - {record}):
            with write_errors(folder / name):
                (folder / name).unlink(missing_ok=True)
        for name in [*sorted(new - {record}), record]:
            if (ready / name).is_file():
                with write_errors(folder / name):
                    (folder / name).parent.mkdir(exist_ok=True)
                    os.replace(ready / name, folder / name)
        for part in {name.split("/")[0] for name in earlier if "/" in name}:
            with suppress(OSError):  # not empty
                (folder / part).rmdir()
    remove_folder(ready)


def write_files(folder: Path, parts: Mapping[str, bytes], record: str, content: Record) -> None:
    """Write files with a record that lists them into a folder, which is locked meanwhile: all or none."""
    is_mine = os.path.realpath(folder / LOCK) in _held
    with nullcontext() if is_mine else locked(folder), scratch_folder(folder) as staged:
        for name, part in parts.items():
            write_atomic(staged / name, part)
        commit_files(staged, folder, record, content)


def add_files(folder: Path, parts: Mapping[str, bytes]) -> None:
    """Write further files into a folder of results, all or none, and list them in its record.

    In a folder without a record (a scratch folder) they are only written.
    """
    check_writable(folder, parts)
    for record in (RUN_RECORD, "model.json"):
        if (content := read_record(folder, record)) is not None:
            key = "added" if isinstance(content.get("files"), dict) else "files"
            content[key] = sorted({*parts, *(name for name in content.get(key, ()) if isinstance(name, str))})
            write_files(folder, parts, record, content)
            return
    for name, part in parts.items():
        write_atomic(folder / name, part)


def read_record(folder: Path, name: str) -> Record | None:
    """The content of a record; None if there is none, or netbic did not write it."""
    if (folder / _READY).is_dir() and os.path.realpath(folder / LOCK) not in _held:
        with locked(folder):  # a killed command had finished its results
            pass
    content = None
    with suppress(InputError):
        content = read_json(folder / name)
    if not isinstance(content, dict) or not isinstance(content.get("netbic"), str):
        return None
    lists = all(isinstance(content.get(key, []), (list, dict)) for key in ("files", "added", "warnings"))
    objects = all(isinstance(content.get(key, {}), dict) for key in ("inputs", "settings", "data"))
    return content if lists and objects else None


def recorded_files(folder: Path, records: Iterable[str] = RECORDS) -> set[str]:
    """Names of the files in a folder that netbic wrote, according to the records there."""
    own = set[str]()
    for record in records:
        if (content := read_record(folder, record)) is not None:
            listed = {name for key in ("files", "added") for name in content.get(key) or () if isinstance(name, str)}
            form = {EXPORT_RECORD: _EXPORTED, RUN_RECORD: _NAMED, "model.json": _NAMED}.get(record)
            mine = {name for name in listed if form is not None and form.fullmatch(name)}
            own |= listed.intersection(RECORDS[record]) | mine | {record}
    return own


def recorded_paths(folder: Path) -> list[Path]:
    """The files that netbic wrote into a folder of results and its model."""
    return [part / name for part in (folder, folder / "model") for name in sorted(recorded_files(part))]


def files_of(folder: Path) -> Inputs:
    """What no other output may replace: the results in a folder, and the files from which they were computed."""
    record = finished_record(folder) or {}
    found: dict[str, list[Path]] = {"the results": recorded_paths(folder)}
    for label, paths in recorded_inputs(record.get("inputs", {})).items():
        found[f"{label} of the fit"] = [place for path in paths for place in input_places(folder, path, record)]
    return found


def recorded_inputs(inputs: Record) -> dict[str, list[str]]:
    """The files among the recorded inputs of a command, by what they are."""
    given = {label: inputs.get(name) for name, label in INPUT_LABELS.items()}
    lists = {label: each if isinstance(each, list) else [each] for label, each in given.items()}
    return {label: [path for path in each if isinstance(path, str)] for label, each in lists.items()}


def input_places(folder: Path, path: str, record: Record) -> list[Path]:
    """Where an input that a record names may be: seen from where the command ran that recorded it, and from here."""
    there = record.get("directory")
    base = Path(os.path.realpath(folder / there)) if isinstance(there, str) else Path.cwd()
    return [Path(path)] if base == Path.cwd() else [base / path, Path(path)]


def finished_record(folder: Path) -> Record | None:
    """The record of the results of a fit in a folder; None if there are none."""
    content = read_record(folder, RUN_RECORD)
    return content if content is not None and {"settings", "data"} <= content.keys() else None


def is_empty(folder: Path) -> bool:
    """Whether a folder does not exist or contains nothing but temporary files of netbic and pieces of a fit."""
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return all(name in (LOCK, FIT_PIECES) or name.startswith((_UNFINISHED, _SCRATCH)) for name in names)


def check_writable(folder: Path, names: Iterable[str], inputs: Inputs | None = None) -> None:
    """Raise unless each of these files may be written: it is not an input, and it is new or netbic wrote it."""
    names = list(names)
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise FolderInUse(f"{path} is a file: name a folder for the results")
    for part in sorted({name.split("/")[0] for name in names if "/" in name}):
        if (folder / part).is_symlink() or ((folder / part).exists() and not (folder / part).is_dir()):
            raise FolderInUse(f"{folder / part} is in the way (a folder is needed there): move it away first")
    check_not_input([folder / name for name in names], inputs or {})
    own = {name for name in recorded_files(folder) if (folder / name).is_symlink() or (folder / name).is_file()}
    others = [name for name in names if os.path.lexists(folder / name) and name not in own]
    if others and read_record(folder, RUN_RECORD) is None and (folder / RUN_RECORD).is_file():
        raise FolderInUse(
            f"{folder / RUN_RECORD} cannot be read as a record of netbic, so it is not known which files netbic wrote: "
            "choose another folder"
        )
    if others:
        some = one_line(some_names(others, 8, quoted=False))
        raise FolderInUse(
            f"{folder} contains files that netbic did not write and would have to replace ({some}): "
            "move them away, or choose another folder (such files are never replaced)"
        )


def labelled(inputs: Mapping[str, Any]) -> Inputs:
    """Files that a command reads, given by the names of its options, by what they are."""
    return {label: inputs.get(name) for name, label in INPUT_LABELS.items()}


def check_not_input(targets: Iterable[Path], inputs: Inputs) -> None:
    """Raise if a file to be written is, or is inside, a file or folder that is read, also through links."""
    targets = list(targets)
    for label, given in inputs.items():
        for source in given if isinstance(given, list) else [given]:
            for target in targets:
                if source is not None and _overlap(target, Path(source)):
                    raise FolderInUse(f"{target} is an input ({label}, {source}): write to another place")


def _overlap(target: Path, source: Path) -> bool:
    with suppress(OSError):
        if target.samefile(source):
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
    if path.exists() and not path.is_file():
        raise FolderInUse(f"{path} is not a regular file: name a file to write")
    if not force:
        raise FolderInUse(f"{path} exists: choose another name, or `force=True` to replace it", ["force"])
