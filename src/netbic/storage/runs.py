"""The output folder of a fit, which can be resumed after any interruption.

While a fit runs, its folder contains `run.json` (settings and digests of the data) and a checkpoint with the modules
found so far. When all modules are found, tables, model and report are written to a scratch folder and moved to their
places together; `run.json` then lists them, and the checkpoint is removed. Results of an earlier fit, which `force`
replaces, stay until then.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from netbic import files
from netbic.errors import InputError, one_line
from netbic.estimators import SparseGraphSVD
from netbic.files import FolderInUse, Record
from netbic.io import Dataset
from netbic.solver import Module
from netbic.storage.checkpoint import FORMAT, Checkpoint, SavedTexts, Task, read_header
from netbic.storage.model_folders import save_state
from netbic.storage.npz import npz_arrays, npz_bytes
from netbic.storage.state import module_arrays, module_from, state_of
from netbic.storage.tables import modules_table, summary_with

_NEEDED = ("modules.tsv", "summary.tsv", "alignment.json")  # without these a fit is not finished
PAIRS = "pairs"  # the kind of a run, in its record, if it is about two tables
_CHOSEN = "auto.json"  # settings that were chosen before the fit


class Run:
    """The output folder of one fit; made by `Run.open`, and a context manager that keeps the folder locked.

    Attributes
    ----------
    folder : path
    known : list of Module
        The modules that an interrupted fit found before.
    chosen : dict or None
        The settings that it chose before (`auto.json`).
    finished : mutable mapping
        Texts by their names, each saved as soon as it is set: results of fits that precede or follow the search, such
        as those of `selection.choose_settings`, which are not repeated if an interrupted fit is resumed.
    """

    def __init__(self, folder: Path, task: Task, inputs: Record, lock: ExitStack) -> None:
        self.folder, self._task, self._inputs, self._lock = folder, task, inputs, lock
        self._checkpoint = Checkpoint(folder / files.FIT_CHECKPOINT, task, _decoded, strict=False)
        entries = self._checkpoint.entries
        self.known = [entry for entry in entries if isinstance(entry, Module)]
        self.chosen = next((entry for entry in entries if isinstance(entry, dict)), None)
        self.finished: MutableMapping[str, str] = SavedTexts(self._checkpoint)

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
        """Start in an empty folder, resume an interrupted fit (`resume`), or start again (`force`).

        Parameters
        ----------
        folder : path
        settings : dict
            Everything but the data that determines the result, as JSON.
        data : dict
            Digests of the data.
        inputs : dict, optional
            Input files and how they were read, for the record.
        resume, force : bool

        Returns
        -------
        Run or None
            None if the folder contains the finished results of the same fit.
        """
        folder, task = Path(folder), Task("fit", settings, data)
        content = check_folder(folder, resume=resume, force=force, inputs=inputs)
        if content is not None and not force:
            _check_unchanged(folder, content, task)
            if content["state"] == "finished" and all((folder / name).is_file() for name in _NEEDED):
                _clean_up(folder)
                return None
        lock = ExitStack()
        try:
            with files.signals_deferred():
                running = task.record() | {"state": "running", "inputs": inputs or {}} | _earlier_results(content)
                _start(folder, running, lock, afresh=force)
                return cls(folder, task, inputs or {}, lock)
        except BaseException:
            lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.close()

    def keep_chosen(self, content: Record) -> None:
        """Save the settings that were chosen before the fit."""
        self._checkpoint.append({_CHOSEN: content})
        self.chosen = content

    def keep(self, number: int, module: Module) -> None:
        """Save a module as soon as it is found."""
        arrays = base64.b64encode(npz_bytes(module_arrays(module))).decode()
        self._checkpoint.append({"module": number, "npz": arrays})

    def fit(
        self,
        model: SparseGraphSVD,
        study: Dataset,
        on_module: Callable[[int], object] = lambda number: None,
        write_extra: Callable[[Path], pd.DataFrame | None] = lambda folder: None,
        write_report: Callable[[Path, Record], object] = lambda folder, record: None,
        covariates: pd.DataFrame | None = None,
        studies: pd.Series[Any] | None = None,
    ) -> None:
        """Fit a model, save each module as soon as it is found, and write the results; warnings are recorded too.

        Parameters
        ----------
        model : SparseGraphSVD
        study : Dataset
        on_module : function, optional
            Progress callback: called after every module with the number of modules so far.
        write_extra : function, optional
            Called with a scratch folder when the model is fitted, to write further files there. It may return further
            columns of summary.tsv, a row per module; those of the same name are replaced.
        write_report : function, optional
            Called when all other files are written, with the scratch folder and the content of `run.json`.
        covariates, studies : DataFrame, Series, optional
            As for `SparseGraphSVD.fit`.
        """
        with self._lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            modules = model.iter_fit(study.X, self.known, study.names, covariates=covariates, studies=studies)
            for number, module in enumerate(modules, start=len(self.known)):
                self.keep(number, module)
                on_module(number + 1)
            with files.scratch_folder(self.folder) as staged:
                further = write_extra(staged)
                self._write_results(staged, model, study.alignment.to_dict(), further)
                record = self._task.record() | {"state": "finished", "inputs": self._inputs}
                record["warnings"] = study.alignment.warnings() + [str(warning.message) for warning in caught]
                write_report(staged, record)
                files.commit_files(staged, self.folder, files.RUN_RECORD, record)
            (self.folder / files.FIT_CHECKPOINT).unlink(missing_ok=True)
        for warning in caught:
            warnings.warn(warning.message, stacklevel=2)

    def _write_results(
        self, staged: Path, model: SparseGraphSVD, alignment: Record, further: pd.DataFrame | None
    ) -> None:
        files.write_table(staged / "modules.tsv", modules_table(model))
        files.write_table(staged / "summary.tsv", summary_with(model, further))
        files.write_json(staged / "alignment.json", alignment)
        if model.studies_ is not None:
            files.write_table(staged / "studies.tsv", model.studies_)
        if self.chosen is not None:
            files.write_json(staged / _CHOSEN, self.chosen)
        save_state(state_of(model), staged / "model")


def _decoded(entry: Any) -> Module | Record | tuple[str, str]:
    """An entry of the checkpoint: a module, the settings chosen before the fit, or the result of another fit."""
    if SavedTexts.KEY in entry:
        return SavedTexts.decoded(entry)
    if _CHOSEN in entry:
        return dict(entry[_CHOSEN])
    return module_from(npz_arrays(Path(files.FIT_CHECKPOINT), base64.b64decode(entry["npz"], validate=True)))


def _check_unchanged(folder: Path, content: Record, task: Task) -> None:
    """Refuse to resume with other data or settings."""
    if changes := task.changes(content):
        raise FolderInUse(
            f"{folder} was started with other data or settings ({'; '.join(changes)}): "
            "repeat those, choose another folder, or `force=True` to start again",
            ["force"],
        )


def _clean_up(folder: Path) -> None:
    """Remove what a kill after the last file of a finished fit left."""
    if (folder / files.FIT_CHECKPOINT).exists() or files.has_stale_files(folder):
        with files.locked(folder):
            files.remove_stale_files(folder)
            (folder / files.FIT_CHECKPOINT).unlink(missing_ok=True)


def _start(folder: Path, record: Record, lock: ExitStack, afresh: bool) -> None:
    """Lock the folder and write the record of a running fit; the order makes a kill in between harmless."""
    with files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock.enter_context(files.locked(folder))
    files.write_json(folder / files.RUN_RECORD, record)
    files.remove_stale_files(folder, folder / "model")
    if afresh:
        (folder / files.FIT_CHECKPOINT).unlink(missing_ok=True)


def _earlier_results(content: Record | None) -> Record:
    """What the record of a running fit says about files of earlier fits, which stay until they are replaced."""
    if content is None:
        return {}
    if content["state"] == "finished":
        return {"earlier": content}
    return {name: content[name] for name in ("files", "earlier") if name in content}


def check_folder(
    folder: Path | str, *, resume: bool, force: bool, inputs: dict[str, Any] | None = None
) -> Record | None:
    """Refuse a folder that a fit must not write to; return the record of an earlier fit.

    A folder that is not empty is refused, unless its fit is resumed or its results are replaced (`force`). Files that
    netbic did not write, and `inputs`, are never replaced.
    """
    folder = Path(folder)
    content = files.run_record(folder)
    labelled = {label: (inputs or {}).get(name) for name, label in files.INPUT_LABELS.items()}
    own = [files.FIT_CHECKPOINT] if _has_checkpoint(folder, content) else []
    files.check_writable(folder, [*files.RUN_FILES, files.RUN_RECORD, files.FIT_CHECKPOINT], labelled, own)
    if not force and not files.is_empty(folder):
        if not resume:
            raise FolderInUse(not_empty(folder, content), ["force", "resume"])
        if content is None:
            raise FolderInUse(f"{folder} contains files but no fit of netbic: choose another folder for the results")
        if content.get("kind") == PAIRS:
            what = f"{folder} contains pairs of two tables, which cannot be resumed as modules of one"
            raise FolderInUse(f"{what}: choose another folder, or `force=True` to replace them", ["force"])
        if content["state"] == "running" and content.get("format") != FORMAT:
            raise FolderInUse(
                f"{folder} contains an interrupted fit of an earlier version of netbic, which this version cannot "
                "resume: `force=True` to start again, or choose another folder",
                ["force"],
            )
    return content


def _has_checkpoint(folder: Path, content: Record | None) -> bool:
    """Whether the checkpoint was written by a fit in this folder; a damaged one of a running fit counts too."""
    if content is None or content["state"] == "running":
        return content is not None
    try:
        return read_header(folder / files.FIT_CHECKPOINT, "fit") is not None
    except InputError:
        return False


def not_empty(folder: Path, content: Record | None, resumable: bool = True) -> str:
    """Why results must not be written to a folder that contains files, and what to do."""
    if content is None:
        names = sorted(path.name for path in folder.iterdir())
        some = one_line(", ".join(names[:3]) + (", ..." if len(names) > 3 else ""), 200)
        return (
            f"{folder} is not empty ({some}): choose a new folder, or `force=True` to write the results into it anyway "
            "(files that netbic did not write are not replaced)"
        )
    if content["state"] == "finished":
        return f"{folder} contains finished results: choose another folder, or `force=True` to replace them"
    continued = "`resume=True` to continue it" if resumable else "choose another folder"
    return f"{folder} contains an interrupted fit: {continued}, or `force=True` to start again"
