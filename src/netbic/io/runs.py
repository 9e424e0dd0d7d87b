"""A fit's output folder, which grows module by module and can be gone on with after any interruption.

While a fit runs, its folder holds `run.json` (settings and digests of the data) and a file per module found so far in
`checkpoint/`. When it is done, tables and model are written, `run.json` says so, and the checkpoint goes. Every file
appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from netbic import __version__
from netbic.decomposition import SparseGraphSVD
from netbic.io.errors import InputError
from netbic.io.files import LOCK, TEMPORARY, locked, read_json, write_json, write_table, write_whole
from netbic.io.results import FORMAT, modules_table, save, summary_table, unpacked
from netbic.io.study import Study
from netbic.penalties import Choice
from netbic.solver import Module, Vector

OUTPUTS = ("modules.tsv", "summary.tsv", "alignment.json")
FURTHER = ("edges.tsv", "gene_sets.tsv", "enrichment.json", "heatmaps.npz", "report.html")  # what rooms below add
REMEMBERED = ("auto.json",)  # what was found out before the fit
MODEL_FILES = ("model.json", "names.json", "arrays.npz", "row_graph.npz", "column_graph.npz")


class FolderInUse(InputError):
    """An output folder that holds something already."""


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

        Returns
        -------
        Run or None
            None if the folder holds the finished results of just this fit.
        """
        folder = Path(folder)
        content = check_folder(folder, resume=resume, force=force)
        if content is not None and not force:
            _check_unchanged(folder, content, settings, data)
            if content["state"] == "finished" and all((folder / name).is_file() for name in OUTPUTS):
                return None
        run = cls(folder, settings, data, inputs)
        run._begin(afresh=force)
        return run

    def _begin(self, afresh: bool) -> None:
        """Remove what netbic wrote before and nothing else; in such an order that being killed here does no harm."""
        checkpoint, model = self.folder / "checkpoint", self.folder / "model"
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            if afresh:
                _remove(*checkpoint.glob("module-*.npz"), *(self.folder / name for name in REMEMBERED))
            write_json(self.folder / "run.json", self._content | {"state": "running", "inputs": self._inputs})
            _remove(*(self.folder / name for name in (*OUTPUTS, *FURTHER)), *(model / name for name in MODEL_FILES))
            leftovers = [path for part in (self.folder, checkpoint, model) for path in part.glob(f"{TEMPORARY}*")]
            _remove(*(path for path in leftovers if path.name != LOCK))
            checkpoint.mkdir(exist_ok=True)
            self.known = list(_kept_modules(checkpoint, self._digest))

    def remember(self, name: str, content: dict[str, Any]) -> None:
        """Keep what was found out before the fit (a name among `REMEMBERED`)."""
        with locked(self.folder):
            write_json(self.folder / name, {"run": self._digest} | content)

    def recalled(self, name: str) -> dict[str, Any] | None:
        """What this very run remembered, if it did."""
        try:
            content = read_json(self.folder / name)
        except (InputError, OSError):
            return None
        return content if isinstance(content, dict) and content.get("run") == self._digest else None

    def keep(self, number: int, module: Module) -> None:
        """Write a module as soon as it is found."""
        buffer = io.BytesIO()
        np.savez(buffer, run=np.array(self._digest), **_module_arrays(module))
        write_whole(_module_file(self.folder / "checkpoint", number), buffer.getvalue())

    def fit(
        self,
        model: SparseGraphSVD,
        study: Study,
        found: Callable[[int], Any] = lambda number: None,
        also: Callable[[], Any] = lambda: None,
        last: Callable[[dict[str, Any]], Any] = lambda record: None,
    ) -> None:
        """Fit a model, each module kept as soon as it is found, and finish; what is remarked is kept too.

        Parameters
        ----------
        model : SparseGraphSVD
        study : Study
        found : function, optional
            Called after every module with their number so far.
        also : function, optional
            Called when the model is fitted and before the run counts as finished: what else is to be written.
        last : function, optional
            Called when all is written but the word that the run is finished, with what `run.json` is going to hold.
        """
        with locked(self.folder), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            modules = model.iter_fit(study.X, self.known, study.names)
            for number, module in enumerate(modules, start=len(self.known)):
                self.keep(number, module)
                found(number + 1)
            also()
            self.finish(model, study.alignment.to_dict(), [str(warning.message) for warning in caught], last)
        for warning in caught:
            warnings.warn(warning.message, stacklevel=2)

    def finish(
        self,
        model: SparseGraphSVD,
        alignment: dict[str, Any],
        remarks: list[str],
        last: Callable[[dict[str, Any]], Any] = lambda record: None,
    ) -> None:
        """Write tables and model; only then is the run called finished and the checkpoint removed."""
        write_table(self.folder / "modules.tsv", modules_table(model))
        write_table(self.folder / "summary.tsv", summary_table(model))
        write_json(self.folder / "alignment.json", alignment)
        save(model, self.folder / "model")
        record = self._content | {"state": "finished", "inputs": self._inputs, "remarks": remarks}
        last(record)
        write_json(self.folder / "run.json", record)
        _remove(*(self.folder / "checkpoint").glob("module-*.npz"))
        with suppress(OSError):  # not empty: somebody else's
            (self.folder / "checkpoint").rmdir()


def check_folder(folder: Path | str, *, resume: bool, force: bool) -> dict[str, Any] | None:
    """Refuse a folder in use, unless it is to be gone on with or overwritten; return what an earlier run left."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FolderInUse(f"{folder} is a file: name a folder for the results")
    content = None if force else _earlier(folder)
    if not force and _holds_anything(folder):
        if not resume:
            raise FolderInUse(_in_use(folder, content))
        if content is None:
            raise FolderInUse(f"{folder} holds files but no fit of netbic: choose another folder for the results")
    return content


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _earlier(folder: Path) -> dict[str, Any] | None:
    """What run.json says, or None if there is none (or none of netbic's)."""
    if not (folder / "run.json").is_file():
        return None
    content = read_json(folder / "run.json")
    if not isinstance(content, dict) or "settings" not in content or "state" not in content:
        return None
    return content


def _in_use(folder: Path, content: dict[str, Any] | None) -> str:
    if content is None:
        return f"{folder} is not empty: choose another folder, or --force to write there all the same"
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
            arrays = unpacked(path, path.read_bytes())
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
