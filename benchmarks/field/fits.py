"""Fits: each method on each problem, in a process of its own. What was found is kept in a folder.

FOLDER/problems/PROBLEM.npz        the data, made once
FOLDER/METHOD/PROBLEM.npz, .json   what was found, and a record: status, seconds, memory, number of modules

A record is written last and under a temporary name first, so that work can go on after it was stopped at any moment. A
fit is run again if its method has changed (comments, layout and its docstring aside), or if that is asked for.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import data
from .tasks import Asked, Fitted, speed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-field"


class Limits(NamedTuple):
    seconds: float = 20 * 60  # wall time
    gigabytes: float = 12.0


# Methods


FIELDS = ("NAME", "ENVIRONMENT", "CHOOSES", "RANKED")


class Method(NamedTuple):
    key: str
    name: str
    environment: str
    path: Path
    digest: str
    docstring: str
    chooses: bool  # the number of modules
    ranked: bool  # variants of a method are shown, but not ranked

    @property
    def python(self) -> Path:
        netbic = self.environment == "netbic"
        return Path(sys.executable) if netbic else ENVIRONMENTS / self.environment / "bin" / "python"


def method(path: Path) -> Method:
    """A method file, which is not imported: this Python may not have what it needs."""
    tree = ast.parse(path.read_text())
    docstring = ast.get_docstring(tree) or ""
    body = tree.body[1:] if docstring else tree.body
    found = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            parts = zip(target.elts, value.elts, strict=True) if isinstance(target, ast.Tuple) else [(target, value)]
            found |= {name.id: ast.literal_eval(part) for name, part in parts if name.id in FIELDS}
    if not {"NAME", "ENVIRONMENT"} <= set(found):
        raise ValueError(f'{path} has no line such as NAME, ENVIRONMENT = "PCA", "netbic"')
    digest = digest_of(body, ast.parse((HERE / "problem.py").read_text()).body)
    flags = found.get("CHOOSES", False), found.get("RANKED", True)
    return Method(path.stem, found["NAME"], found["ENVIRONMENT"], path.resolve(), digest, docstring, *flags)


def digest_of(*bodies: list[ast.stmt]) -> str:
    """Of statements, without layout, comments and lines that name the method."""
    kept = [
        ast.dump(statement)
        for body in bodies
        for statement in body
        if not (
            isinstance(statement, ast.Assign)
            and {"NAME", *FIELDS} & {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        )
    ]
    return hashlib.sha256("".join(kept).encode()).hexdigest()[:16]


def methods(keys: Iterable[str] = ()) -> list[Method]:
    """Methods of the benchmark by the names of their files (default: all), or of other files by their paths."""
    known = {path.stem: path for path in sorted((HERE / "methods").glob("*.py")) if path.stem != "__init__"}
    paths = [Path(key) if key.endswith(".py") else known.get(key) for key in keys] if keys else list(known.values())
    for key, path in zip(keys, paths, strict=False):
        if path is None or not path.exists():
            raise ValueError(f"method {key!r}: give the path of a Python file, or one of {', '.join(known)}")
    return [method(path) for path in paths]


# Files


def stem(asked: Asked) -> str:
    """Names of files of a problem."""
    return f"{asked.instance.replace('/', '.')}.{asked.k or 'any'}.{asked.seed}".replace(" ", "_")


def problem_file(asked: Asked, folder: Path) -> Path:
    path = folder / "problems" / f"{stem(asked)}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        given = data.load(asked.instance)
        further = {"counts": given.counts, "edges": given.edges}
        further = {name: array for name, array in further.items() if array is not None}
        part = path.with_suffix(".part.npz")
        np.savez(part, X=given.X.to_numpy(), k=asked.k or 0, seed=asked.seed, **further)
        part.replace(path)
    return path


def shape_of_X(problem: Path) -> tuple[int, ...]:
    with zipfile.ZipFile(problem).open("X.npy") as file:
        np.lib.format.read_magic(file)
        return np.lib.format.read_array_header_1_0(file)[0]


def record(method: Method, asked: Asked, folder: Path) -> dict | None:
    """What is known of a fit, or None if it was not run with this version of the method."""
    try:
        known = json.loads((folder / method.key / f"{stem(asked)}.json").read_text())
    except FileNotFoundError:
        return None
    return known if known["digest"] == method.digest else None


def found(method: Method, asked: Asked, folder: Path) -> Fitted:
    return read_found(folder / method.key / f"{stem(asked)}.npz")


def read_found(path: Path) -> Fitted:
    with np.load(path) as file:
        used = float(file["seconds"]), float(file["gigabytes"])
        return Fitted(file["weights"], file["members"], file.get("scores"), *used)


def wrong(fitted: Fitted, shape: tuple[int, ...]) -> str:
    """What is wrong with the arrays of a method, or an empty text."""
    n, p = shape
    m = len(fitted.members)
    if fitted.members.shape != (m, p) or fitted.members.dtype != bool:
        return f"members are {fitted.members.dtype} of shape {fitted.members.shape}, expected bool, modules x {p}"
    if fitted.weights.shape != (p, m) or not np.isfinite(fitted.weights).all():
        return f"weights of shape {fitted.weights.shape}, expected finite values of shape {(p, m)}"
    if fitted.scores is not None and (fitted.scores.shape != (n, m) or not np.isfinite(fitted.scores).all()):
        return f"scores of shape {fitted.scores.shape}, expected finite values of shape {(n, m)}"
    return ""


# Runs


class Run:
    """A process that fits one method to one problem."""

    def __init__(self, chosen: Method, asked: Asked, folder: Path, limits: Limits):
        self.method = method(chosen.path)  # as it is now: it may have been edited during a long run
        if asked.instance.startswith("speed/"):
            limits = limits._replace(seconds=min(limits.seconds, speed.LIMIT))
        self.asked, self.limits = asked, limits
        self.problem = problem_file(asked, folder)
        self.out = folder / chosen.key / f"{stem(asked)}.npz"
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.part = self.out.with_suffix(".part.npz")
        self.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.errors = open(Path(self.scratch.name) / "stderr", "w+", errors="replace")  # noqa: SIM115 (closed by `close`)
        self.begun = time.monotonic()
        arguments = [HERE / "run_one.py", chosen.path, self.problem.resolve(), self.part.resolve(), limits.gigabytes]
        self.process = subprocess.Popen(
            [chosen.python, *map(str, arguments)],
            cwd=self.scratch.name,
            env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NETBIC_DATA")}
            | {"TMPDIR": self.scratch.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,
        )

    def ended(self) -> bool:
        """Whether it has ended, or has just been stopped because it was too slow."""
        if self.process.poll() is None and time.monotonic() - self.begun > self.limits.seconds:
            self.stop()
            self.write("timed out", f"not finished within {self.limits.seconds:g} seconds")
        elif self.process.poll() is not None:
            self.write(*self.outcome())
        else:
            return False
        self.close()
        return True

    def outcome(self) -> tuple[str, str]:
        if self.process.returncode == 0:
            try:
                message = wrong(read_found(self.part), shape_of_X(self.problem))
            except (OSError, ValueError, KeyError) as error:
                message = f"what it returned cannot be read: {error}"
            return ("crashed", message) if message else ("done", "")
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        last = lines[-1] if lines else f"exit status {self.process.returncode}"
        return ("not meant" if last.startswith("NotImplementedError") else "crashed"), last[:300]

    def write(self, status: str, message: str) -> None:
        self.record = {"status": status, "message": message, "digest": self.method.digest}
        self.record |= {"limit": self.limits._asdict(), "wall": round(time.monotonic() - self.begun, 2)}
        if status == "done":
            fitted = read_found(self.part)
            modules = int(fitted.members.any(axis=1).sum())
            self.record |= {"seconds": fitted.seconds, "gigabytes": fitted.gigabytes, "modules": modules}
            self.part.replace(self.out)
        part = self.out.with_suffix(".part.json")
        part.write_text(json.dumps(self.record))
        part.replace(self.out.with_suffix(".json"))

    def stop(self) -> None:
        """End the process and those that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.errors.close()
        self.scratch.cleanup()
        self.part.unlink(missing_ok=True)


def run_all(
    fits: list[tuple[Method, Asked]], folder: Path, limits: Limits, jobs: int, say: Callable[[str], object] = print
) -> None:
    waiting, running, number = list(reversed(fits)), [], 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Run(*waiting.pop(), folder, limits))
            for run in [run for run in running if run.ended()]:
                running.remove(run)
                number += 1
                status = " ".join(filter(None, (run.record["status"], run.record["message"])))
                say(f"{number}/{len(fits)} {run.method.name}, {run.asked.instance}: {status}, {run.record['wall']} s")
            time.sleep(0.05)
    finally:
        for run in running:
            run.stop()
            run.close()
