"""Finished fits of a tuning, kept in a file so that it can be gone on with: the task, then a line of JSON per fit."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from netbic.errors import InputError, shown
from netbic.files import read_bytes, write_atomic, write_errors


class BegunOtherwise(InputError):
    """A checkpoint of other data or settings; `what` is the error without its remedy, for who knows a better one."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: repeat those, name another file, or delete this one")
        self.what = what


class Outcome(NamedTuple):
    """What one fit came to: its score, the modules found, and their members as shares of rows and of columns."""

    score: float
    modules: int
    rows: float
    columns: float


class Checkpoint:
    """The outcomes known so far, kept in a file if there is one.

    Parameters
    ----------
    path : path, optional
        Where to keep them. A file that is there is gone on with, if it was begun with the same `task`.
    task : dict
        All that decides the outcomes, as JSON has it.
    """

    def __init__(self, path: Path | str | None, task: dict[str, Any]) -> None:
        self.known: dict[tuple[int, int], Outcome] = {}
        self._path = None if path is None else Path(path)
        self._file: Any = None
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise InputError(f"{path}: cannot be written: name a file in a folder that is there")
        lines = _whole_lines(self._path)
        if lines:
            _check_same(self._path, _task(self._path, lines[0]), json.loads(json.dumps(task)))
            self.known = dict(_outcome(self._path, line) for line in lines[1:])
        # What a kill left of a last line goes.
        write_atomic(self._path, "".join(f"{line}\n" for line in lines or [json.dumps(task)]).encode())

    def __enter__(self) -> Self:
        self._file = None if self._path is None else self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            with suppress(OSError):  # a line that did not fit on the disk has been reported
                self._file.close()

    def keep(self, point: int, fold: int, outcome: Outcome) -> None:
        """Keep an outcome; in one write, so that any interruption leaves whole lines (but perhaps for the last)."""
        self.known[point, fold] = outcome
        if self._file is not None:
            with write_errors(self._path or ""):
                self._file.write(f"{json.dumps([point, fold, *outcome])}\n")
                self._file.flush()


def seed_of(path: Path | str | None) -> int | None:
    """The seed that a checkpoint was begun with; None if there is no checkpoint yet."""
    lines = [] if path is None else _whole_lines(Path(path))
    return int(_task(Path(str(path)), lines[0])["seed"]) if lines else None


def _whole_lines(path: Path) -> list[str]:
    """The lines of a file up to the last line break; none if it is not there."""
    try:
        text = read_bytes(path).decode("utf-8") if path.exists() else ""
    except UnicodeDecodeError as problem:
        raise InputError(f"{path}: cannot be read as a checkpoint ({problem}): name another file") from None
    if text and "\n" not in text:
        raise _foreign(path)
    return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]


def _task(path: Path, line: str) -> dict[str, Any]:
    try:
        task = json.loads(line)
    except ValueError:
        raise _foreign(path) from None
    if not isinstance(task, dict) or "criterion" not in task or "seed" not in task:
        raise _foreign(path)
    return task


def _outcome(path: Path, line: str) -> tuple[tuple[int, int], Outcome]:
    try:
        point, fold, *outcome = json.loads(line)
        return (int(point), int(fold)), Outcome(*outcome)
    except (ValueError, TypeError):
        raise InputError(f"{path}: is damaged (a line reads {shown(line)}): delete it to begin again") from None


def _foreign(path: Path) -> InputError:
    return InputError(f"{path}: is no checkpoint of a tuning: name another file")


def _check_same(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    if changed:
        raise BegunOtherwise(f"{path}: was begun with other data or settings ({', '.join(changed)} differ)")
