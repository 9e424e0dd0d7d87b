"""A fit's output folder, which grows module by module and can be gone on with after any interruption.

While a fit runs, its folder holds `run.json` (settings and digests of the data) and a file per module found so far in
`checkpoint/`. When all modules are found, tables, model and report are written to a scratch folder and take their
places together; `run.json` then lists them, and the checkpoint goes. Results of an earlier fit, which `force` replaces,
stay until then.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from netbic import __version__
from netbic.errors import InputError, one_line
from netbic.estimators import SparseGraphSVD
from netbic.files import (
    INPUT_LABELS,
    RUN_FILES,
    RUN_RECORD,
    TEMPORARY,
    FolderInUse,
    check_not_input,
    check_writable,
    commit_files,
    files_in_record,
    has_stale_files,
    locked,
    read_bytes,
    read_json,
    read_record,
    recorded_files,
    remove_stale_files,
    run_record,
    scratch_folder,
    signals_deferred,
    write_atomic,
    write_errors,
    write_json,
    write_table,
)
from netbic.penalties import Choice
from netbic.solver import Module, Vector
from netbic.storage.model_folders import FORMAT, npz_arrays, save
from netbic.storage.tables import modules_table, summary_table
from netbic.study import Study

_NEEDED = ("modules.tsv", "summary.tsv", "alignment.json")  # without these a fit is not finished
_REMEMBERED = ("auto.json",)  # what was found out before the fit
_CHECKPOINT = re.compile(r"module-\d{4,}\.npz|auto\.json")
_STAGED = "results"


class Run:
    """The output folder of one fit.

    Parameters
    ----------
    folder : path
    settings : dict
        All that decides the result beside the data, as JSON has it.
    data : dict
        Digests of the data.
    inputs : dict, optional
        Files and how they were read, for the record.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], data: dict[str, str], inputs: dict[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.known: list[Module] = []
        self._held = ExitStack()
        self._inputs = inputs or {}
        self._content = {"format": FORMAT, "netbic": __version__, "settings": settings, "data": data}
        self._digest = hashlib.blake2b(json.dumps(self._content).encode(), digest_size=16).hexdigest()

    @classmethod
    def open(
        cls,
        folder: Path | str,
        settings: dict[str, Any],
        data: dict[str, str],
        inputs: dict[str, Any] | None = None,
        *,
        resume: bool,
        force: bool,
    ) -> Run | None:
        """Start in an empty folder, go on in a partial one (`resume`), or begin again (`force`).

        The folder is held for this process until the run, a context manager, is left.

        Returns
        -------
        Run or None
            None if the folder holds the finished results of just this fit.
        """
        folder = Path(folder)
        content = check_folder(folder, resume=resume, force=force, inputs=inputs)
        run = cls(folder, settings, data, inputs)
        if content is not None and not force:
            _check_unchanged(folder, content, settings, data)
            if content["state"] == "finished" and all((folder / name).is_file() for name in _NEEDED):
                run._tidy()
                return None
        with signals_deferred():
            run._begin(content, afresh=force)
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.close()

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def _begin(self, content: dict[str, Any] | None, afresh: bool) -> None:
        """Write the record of a running fit; in such an order that being killed here does no harm."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(locked(self.folder))
        try:
            running = self._content | {"state": "running", "inputs": self._inputs}
            write_json(self.folder / RUN_RECORD, running | _carried(content))
            remove_stale_files(self.folder, self._checkpoint, self.folder / "model")
            if afresh:
                _remove(*_checkpoint_files(self._checkpoint))
            self._checkpoint.mkdir(exist_ok=True)
            self.known = list(_kept_modules(self._checkpoint, self._digest))
        except BaseException:
            self._held.close()
            raise

    def _tidy(self) -> None:
        """Remove what a kill after the very last file left of this finished run."""
        kept = _checkpoint_files(self._checkpoint)
        own = bool(kept) and _is_of_run(kept[0], self._digest)
        if own or has_stale_files(self.folder):
            with locked(self.folder):
                remove_stale_files(self.folder)
                if own:
                    self._remove_checkpoint()

    def remember(self, name: str, content: dict[str, Any]) -> None:
        """Keep what was found out before the fit ("auto.json")."""
        write_json(self._checkpoint / name, {"run": self._digest} | content)

    def recalled(self, name: str) -> dict[str, Any] | None:
        """What this very run remembered, if it did."""
        try:
            content = read_json(self._checkpoint / name)
        except InputError:
            return None
        return content if isinstance(content, dict) and content.get("run") == self._digest else None

    def keep(self, number: int, module: Module) -> None:
        """Write a module as soon as it is found."""
        buffer = io.BytesIO()
        np.savez(buffer, run=np.array(self._digest), **_module_arrays(module))
        write_atomic(_module_file(self._checkpoint, number), buffer.getvalue())

    def fit(
        self,
        model: SparseGraphSVD,
        study: Study,
        found: Callable[[int], Any] = lambda number: None,
        also: Callable[[Path], Any] = lambda folder: None,
        last: Callable[[Path, dict[str, Any]], Any] = lambda folder, record: None,
    ) -> None:
        """Fit a model, each module kept as soon as it is found, and finish; what is remarked is kept too.

        Parameters
        ----------
        model : SparseGraphSVD
        study : Study
        found : function, optional
            Called after every module with their number so far.
        also : function, optional
            Called when the model is fitted, with the scratch folder to write more files to.
        last : function, optional
            Called when all but the record is written, with the scratch folder and what `run.json` is going to hold.
        """
        with self._held, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            modules = model.iter_fit(study.X, self.known, study.names)
            for number, module in enumerate(modules, start=len(self.known)):
                self.keep(number, module)
                found(number + 1)
            with scratch_folder(self.folder, _STAGED) as staged:
                also(staged)
                remarks = [str(warning.message) for warning in caught]
                self._finish(staged, model, study.alignment.to_dict(), remarks, last)
        for warning in caught:
            warnings.warn(warning.message, stacklevel=2)

    def _finish(
        self,
        staged: Path,
        model: SparseGraphSVD,
        alignment: dict[str, Any],
        remarks: list[str],
        last: Callable[[Path, dict[str, Any]], Any],
    ) -> None:
        """Write tables and model; when all is on disk it takes its place, and only then the checkpoint is removed."""
        write_table(staged / "modules.tsv", modules_table(model))
        write_table(staged / "summary.tsv", summary_table(model))
        write_json(staged / "alignment.json", alignment)
        for name in _REMEMBERED:
            if (content := self.recalled(name)) is not None:
                write_json(staged / name, content)
        save(model, staged / "model")
        record = self._content | {"state": "finished", "inputs": self._inputs, "remarks": remarks}
        last(staged, record)
        before = read_record(self.folder, RUN_RECORD)
        earlier = files_in_record(RUN_RECORD, before) if before else set()
        earlier |= {f"model/{name}" for name in recorded_files(self.folder / "model")}
        commit_files(staged, self.folder, RUN_RECORD, record, drop=earlier)
        self._remove_checkpoint()

    def _remove_checkpoint(self) -> None:
        _remove(*_checkpoint_files(self._checkpoint))
        with suppress(OSError):  # not empty: somebody else's
            self._checkpoint.rmdir()


def check_folder(
    folder: Path | str, *, resume: bool, force: bool, inputs: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Refuse a folder that a fit must not write to; return what an earlier run left.

    A folder in use is refused, unless it is to be gone on with or its results are to be replaced; files that netbic did
    not write, or that are read (`inputs`), are never replaced.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FolderInUse(f"{folder} is a file: name a folder for the results")
    content = run_record(folder)
    _check_checkpoint(folder / "checkpoint", content)
    roles = {role: (inputs or {}).get(name) for name, role in INPUT_LABELS.items()}
    names = [*RUN_FILES, RUN_RECORD, *(f"checkpoint/{path.name}" for path in _checkpoint_files(folder / "checkpoint"))]
    check_not_input([folder / name for name in names], roles)
    check_writable(folder, [*RUN_FILES, RUN_RECORD])
    if not force and _holds_anything(folder):
        if not resume:
            raise FolderInUse(_in_use(folder, content))
        if content is None:
            raise FolderInUse(f"{folder} holds files but no fit of netbic: choose another folder for the results")
    return content


def _carried(content: dict[str, Any] | None) -> dict[str, Any]:
    """What the record of a running fit says of files that are there already: they stay until they are replaced."""
    if content is None:
        return {}
    if content["state"] == "finished":
        return {"earlier": content}
    return {name: content[name] for name in ("files", "earlier") if name in content}


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _checkpoint_files(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    return sorted(path for path in folder.iterdir() if _CHECKPOINT.fullmatch(path.name))


def _check_checkpoint(folder: Path, content: dict[str, Any] | None) -> None:
    """Raise if a folder that is going to hold a checkpoint holds such files of somebody else's."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FolderInUse(f"{folder} is in the way (a folder is to be made there): move it away first")
    if content is not None and content["state"] == "running":
        return  # its checkpoint, in which damaged files may be
    strange = [path.name for path in _checkpoint_files(folder) if content is None or not _is_of_run(path)]
    if strange:
        raise FolderInUse(
            f"{folder} holds files that netbic would have to replace ({', '.join(strange[:8])}): "
            "move them away, or choose another folder (--force does not replace them either)"
        )


def _is_of_run(path: Path, digest: str | None = None) -> bool:
    """Whether a file of a checkpoint was written by a run (by this one, if its digest is given)."""
    try:
        if path.suffix == ".json":
            content = read_json(path)
            own = content.get("run") if isinstance(content, dict) else None
        else:
            arrays = npz_arrays(path, read_bytes(path))
            own = str(arrays["run"]) if "run" in arrays else None
    except InputError:
        return False
    return own is not None and (digest is None or own == digest)


def _in_use(folder: Path, content: dict[str, Any] | None) -> str:
    if content is None:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY))
        some = one_line(", ".join(names[:3]) + (", ..." if len(names) > 3 else ""), 200)
        return (
            f"{folder} is not empty ({some}): choose a new folder, or --force to write the results beside what is "
            "there (no file that netbic did not write is replaced)"
        )
    if content["state"] == "finished":
        return f"{folder} holds finished results: choose another folder, or --force to replace them"
    return f"{folder} holds a fit that was interrupted: --resume to go on with it, or --force to begin again"


def _check_unchanged(folder: Path, content: dict[str, Any], settings: dict[str, Any], data: dict[str, str]) -> None:
    """Refuse to go on with other data or settings."""
    changes = []
    if content.get("netbic") != __version__:
        changes.append(f"netbic: {content.get('netbic')} then, {__version__} now")
    before, after = content.get("data", {}), data
    changes += [f"{name} differs" for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    before, after = content["settings"], settings
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            changes.append(f"{name}: {before.get(name)!r} then, {after.get(name)!r} now")
    if changes:
        raise FolderInUse(
            f"{folder} was begun with other data or settings ({'; '.join(changes)}): "
            "repeat those, choose another folder, or --force to begin again"
        )


def _holds_anything(folder: Path) -> bool:
    """Whether a folder is there with more in it than a write that was cut short."""
    return folder.exists() and any(not path.name.startswith(TEMPORARY) for path in folder.iterdir())


def _module_file(folder: Path, number: int) -> Path:
    return folder / f"module-{number:04d}.npz"


def _kept_modules(folder: Path, digest: str) -> Iterator[Module]:
    """Modules 0, 1, ... of this very run, up to the first that is missing or damaged."""
    number = 0
    while (path := _module_file(folder, number)).exists():
        try:
            arrays = npz_arrays(path, read_bytes(path))
            if str(arrays["run"]) != digest:
                return
            yield _module_from(arrays)
        except (InputError, KeyError, OSError):
            return
        number += 1


def _module_arrays(module: Module) -> dict[str, Any]:
    chosen = {}
    for name, choice in (("u", module.u.choice), ("v", module.v.choice)):
        if choice is not None:
            chosen[f"{name}_posterior"] = choice.posterior
            chosen[f"{name}_chosen"] = np.array([choice.sigma, choice.noise, choice.strength, choice.unevenness])
    return chosen | {
        "sizes": np.array([module.u.size, module.v.size]),
        "u_support": module.u.support,
        "u_values": module.u.values,
        "v_support": module.v.support,
        "v_values": module.v.values,
        "numbers": np.array([module.d, module.graph_share]),
        "objectives": module.objectives,
        "outcome": np.array(module.outcome),
    }


def _module_from(arrays: dict[str, Any]) -> Module:
    u, v = (
        Vector(int(size), arrays[f"{name}_support"], arrays[f"{name}_values"], choice=_choice_from(arrays, name))
        for name, size in zip("uv", arrays["sizes"], strict=True)
    )
    d, graph_share = (float(number) for number in arrays["numbers"])
    outcome: Any = str(arrays["outcome"])
    return Module(u, v, d, outcome, arrays["objectives"], graph_share)


def _choice_from(arrays: dict[str, Any], name: str) -> Choice | None:
    if f"{name}_posterior" not in arrays:
        return None
    return Choice(arrays[f"{name}_posterior"], *arrays[f"{name}_chosen"].tolist())
