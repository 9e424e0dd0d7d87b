"""Records: which files of a folder netbic wrote.

A record (`run.json`, `model.json`, ...) lists the files that netbic wrote into its folder. Only those may be replaced
or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from netbic import __version__
from netbic.errors import InputError
from netbic.files.formats import Record, read_json

_GRAPHS: Final = ("row_graph.npz", "column_graph.npz", "x_graph.npz", "y_graph.npz")
MODEL_FILES: Final = ("arrays.npz", "names.json", *_GRAPHS)
ADDED_FILES: Final = (
    "edges.tsv",
    "gene_sets.tsv",
    "enrichment.json",
    "samples.tsv",
    "verdicts.tsv",
    "associations.tsv",
    "associations.json",
    "sample_info.tsv",
    "replication.json",
    "replication.tsv",
    "gene_moments.npz",
    "heatmaps.npz",
    "report.html",
    *("modules.gmt", "lists.txt", "modules.xlsx", "scores.gct", "expression.gct"),  # netbic export
    "membership.tsv",
)
RUN_FILES: Final = (
    *("modules.tsv", "summary.tsv", "alignment.json", "auto.json", "studies.tsv"),
    *ADDED_FILES,
    *(f"model/{name}" for name in ("model.json", *MODEL_FILES)),
)
PAIR_FILES: Final = (  # netbic pairs
    *("pairs.tsv", "weights.tsv", "scores.tsv", "alignment.json", "report.html"),
    *("associations.tsv", "associations.json", "sample_info.tsv"),
    *(f"model/{name}" for name in ("model.json", *MODEL_FILES)),
)
RUN_RECORD: Final = "run.json"
# What each record may list: one that was changed cannot make netbic touch anything else.
RECORDS: Final[dict[str, tuple[str, ...]]] = {
    RUN_RECORD: tuple(dict.fromkeys([*RUN_FILES, *PAIR_FILES])),
    "model.json": (*MODEL_FILES, *ADDED_FILES),  # netbic.save
    "tuning.json": ("tuning.tsv",),
    "simulation.json": ("expression.tsv.gz", "network.sif", "truth.tsv", "labels.tsv"),
}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "files": (list, dict),
    **dict.fromkeys(("added", "warnings", "remarks"), (list,)),  # "remarks": of earlier versions
    **dict.fromkeys(("inputs", "settings", "data"), (dict,)),
}


def with_version(content: Mapping[str, Any]) -> Record:
    """The content of a record, with the version of netbic."""
    return {"netbic": __version__, **content}


def read_record(folder: Path, name: str) -> Record | None:
    """The content of a record; None if there is none, or netbic did not write it."""
    if not (folder / name).is_file():
        return None
    try:
        content = read_json(folder / name)
    except InputError:
        return None
    return content if _is_record(content) else None


def _is_record(content: object) -> bool:
    """Whether it names the version that wrote it, and all that it holds has the right types."""
    if not isinstance(content, dict) or not isinstance(content.get("netbic"), str):
        return False
    if any(name in content and not isinstance(content[name], types) for name, types in _TYPES.items()):
        return False
    if "earlier" not in content:
        return True
    return _is_record(content["earlier"]) and "earlier" not in content["earlier"]


def files_in_record(name: str, content: Record) -> set[str]:
    """The files that a record lists, and the record."""
    known = {file for key in ("files", "added") for file in content.get(key) or () if isinstance(file, str)}
    if isinstance(content.get("earlier"), dict):
        known |= files_in_record(name, content["earlier"])
    return known.intersection(RECORDS[name]) | {name}


def recorded_files(folder: Path) -> set[str]:
    """Names of the files in a folder that netbic wrote, according to the records there."""
    records = ((name, read_record(folder, name)) for name in RECORDS)
    return {file for name, content in records if content is not None for file in files_in_record(name, content)}


def recorded_paths(folder: Path) -> list[Path]:
    """The files that netbic wrote into a folder of results and its model."""
    return [part / name for part in (folder, folder / "model") for name in sorted(recorded_files(part))]


def run_record(folder: Path) -> Record | None:
    """The record of a fit, running or finished; None if there is none, or netbic did not write it."""
    content = read_record(folder, RUN_RECORD)
    if content is None or content.get("state") not in ("running", "finished"):
        return None
    return content if {"settings", "data"} <= content.keys() else None


def finished_record(folder: Path) -> Record | None:
    """The record of the finished results in a folder; None if there are none.

    While another fit that will replace them is running, its record contains theirs.
    """
    content = run_record(folder)
    if content is not None and content["state"] == "running":
        content = content.get("earlier")
    return content if content is not None and content.get("state") == "finished" else None
