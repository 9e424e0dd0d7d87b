"""Checkpoints: the finished parts of a long computation, saved one by one so that it can be resumed.

A checkpoint is a file of JSON lines: a header that describes the task, then one line per finished part. Lines are only
ever appended, so that an interruption can damage no line but the last, which is then dropped.
"""

from __future__ import annotations

import json
import os
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from netbic import __version__, files
from netbic.errors import InputError, shown
from netbic.files import JsonValue, Record

Entry = TypeVar("Entry")
FORMAT: Final = 3  # 1: a file per module; 2: modules without diagnostics


class CheckpointMismatch(InputError):
    """A checkpoint of other data or settings; `problem` is the message without the advice."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: repeat those, name another file, or delete this one")
        self.problem = problem


@dataclass(frozen=True)
class Task:
    """Everything that decides the result of a computation.

    Parameters
    ----------
    kind : {"fit", "tuning", "stability"}
    settings : dict
        Compared, and shown where they differ.
    data : dict
        Compared but not shown: digests of the data, derived seeds.
    """

    kind: str
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    data: Mapping[str, JsonValue] = field(default_factory=dict)

    def record(self) -> Record:
        """The task as JSON, with the version that computes it."""
        parts = {"settings": dict(self.settings), "data": dict(self.data)}
        return {"format": FORMAT, "netbic": __version__, **json.loads(json.dumps(parts))}

    def changes(self, before: Record) -> list[str]:
        """What differs from a recorded task."""
        now = self.record()
        changed = []
        if before.get("netbic") != __version__:
            changed.append(f"netbic: {before.get('netbic')} then, {__version__} now")
        changed += [f"{name} differs" for name, _, _ in _differences(before.get("data"), now["data"])]
        for name, old, new in _differences(before.get("settings"), now["settings"]):
            changed.append(f"{name}: {old!r} then, {new!r} now")
        return changed


def _differences(before: Any, now: Any) -> list[tuple[str, Any, Any]]:
    before = before if isinstance(before, dict) else {}
    names = sorted({*before, *now})
    return [(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]


class Checkpoint(Generic[Entry]):
    """The finished parts of a task, in a file if there is one.

    Parameters
    ----------
    path : path, optional
        The file. If it exists, its entries are read; nothing is written where there is no path.
    task : Task
    decode : function
        Makes an entry of the JSON that `append` was given; a ValueError, TypeError or KeyError means damage.
    strict : bool
        Whether another task and damaged entries are errors. Otherwise another task is replaced, and entries from the
        first damaged one on are dropped.

    Attributes
    ----------
    entries : list
        The entries that were in the file when it was opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "squares.checkpoint"
    ...     Checkpoint(path, Task("tuning", {"seed": 0}), tuple).append([3, 9])
    ...     Checkpoint(path, Task("tuning", {"seed": 0}), tuple).entries
    [(3, 9)]
    """

    def __init__(
        self, path: Path | str | None, task: Task, decode: Callable[[Any], Entry], *, strict: bool = True
    ) -> None:
        self.entries: list[Entry] = []
        self._path = None if path is None else Path(path)
        self._decode, self._strict = decode, strict
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise InputError(f"{path} cannot be written: name a file in a folder that exists")
        lines = self._read(self._path, task)
        header = {"checkpoint": task.kind, **task.record()}
        files.write_atomic(self._path, b"".join([json.dumps(header).encode() + b"\n", *lines]))

    def append(self, entry: JsonValue) -> None:
        """Save a finished part; it is on disk when this returns."""
        if self._path is None:
            return
        with files.write_errors(self._path), files.signals_deferred():
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(handle, "ab") as file:
                file.write(json.dumps(entry).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def _read(self, path: Path, task: Task) -> list[bytes]:
        """Decode the entries of this task; returns their lines."""
        try:
            lines = _complete_lines(path)
            header = _header(path, lines, task.kind)
            if header is not None and (changes := task.changes(header)):
                raise CheckpointMismatch(f"{path} was started with other data or settings ({'; '.join(changes)})")
        except InputError:
            if self._strict:
                raise
            return []
        return self._decoded(path, lines[1:])

    def _decoded(self, path: Path, lines: list[bytes]) -> list[bytes]:
        for number, line in enumerate(lines):
            try:
                self.entries.append(self._decode(json.loads(line)))
            except (ValueError, TypeError, KeyError, RecursionError):
                if not self._strict:
                    return lines[:number]
                text = shown(line.decode(errors="replace").strip())
                raise InputError(f"{path} is damaged (a line reads {text}): delete it to start again") from None
        return lines


class SavedTexts(UserDict[str, str]):
    """The texts among the entries of a checkpoint, by their names; new ones are saved as soon as they are set.

    Parameters
    ----------
    checkpoint : Checkpoint
        Its `decode` makes such entries by `SavedTexts.decoded`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.checkpoint"
    ...     SavedTexts(Checkpoint(path, Task("stability"), SavedTexts.decoded))["first"] = "0.1"
    ...     SavedTexts(Checkpoint(path, Task("stability"), SavedTexts.decoded))
    {'first': '0.1'}
    """

    KEY: Final = "finished"

    def __init__(self, checkpoint: Checkpoint[Any]) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self.data.update(entry for entry in checkpoint.entries if isinstance(entry, tuple))

    def __setitem__(self, name: str, text: str) -> None:
        self._checkpoint.append({self.KEY: name, "result": text})
        super().__setitem__(name, text)

    @classmethod
    def decoded(cls, entry: Any) -> tuple[str, str]:
        """The name and the text of an entry."""
        return str(entry[cls.KEY]), str(entry["result"])


def read_header(path: Path | str, kind: str) -> Record | None:
    """The task in the first line of a checkpoint; None where there is no file, or an empty one.

    Raises
    ------
    InputError
        If the file is not a checkpoint of such a task, or not one that this version can resume.
    """
    return _header(Path(path), _complete_lines(Path(path)), kind)


def _header(path: Path, lines: list[bytes], kind: str) -> Record | None:
    if not lines:
        return None
    try:
        header = json.loads(lines[0])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or not isinstance(header.get("netbic"), str):
        raise InputError(f"{path} is not a checkpoint of netbic: name another file")
    if header.get("format") != FORMAT:
        version = f"netbic {header['netbic']}, in a format that netbic {__version__} cannot resume"
        raise InputError(f"{path} is a checkpoint of {version}: delete it to start again, or name another file")
    if header.get("checkpoint") != kind:
        what = f"a checkpoint of a {header.get('checkpoint')}, not of a {kind}"
        raise InputError(f"{path} is {what}: name another file")
    return header


def _complete_lines(path: Path) -> list[bytes]:
    """The lines of a file up to the last line break; none where there is no file."""
    content = files.read_bytes(path) if os.path.lexists(path) else b""
    if content and b"\n" not in content:
        raise InputError(f"{path} is not a checkpoint of netbic: name another file")
    return [line + b"\n" for line in content.split(b"\n")[:-1]]
