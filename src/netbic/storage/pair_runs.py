"""The output folder of pairs of two tables: written to a scratch folder first, then moved to its place together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from netbic import files
from netbic.files import FolderInUse, Inputs, Record
from netbic.storage.checkpoint import Task
from netbic.storage.model_folders import save_state
from netbic.storage.pair_state import PairModel, pair_state_of
from netbic.storage.pair_tables import pair_scores_table, pairs_table, weights_table
from netbic.storage.runs import PAIRS, not_empty


def check_pair_folder(folder: Path | str, *, force: bool, inputs: Inputs | None = None) -> None:
    """Refuse a folder that pairs must not be written to.

    A folder that is not empty is refused, unless its results are replaced (`force`). Files that netbic did not write,
    and `inputs` (label to path), are never replaced.
    """
    folder = Path(folder)
    files.check_writable(folder, [*files.PAIR_FILES, files.RUN_RECORD], inputs)
    if not force and not files.is_empty(folder):
        raise FolderInUse(not_empty(folder, files.run_record(folder), resumable=False), ["force"])


def contains_pairs(folder: Path | str) -> bool:
    """Whether `netbic pairs` has written a folder."""
    return (files.finished_record(Path(folder)) or {}).get("kind") == PAIRS


def write_pairs(
    folder: Path,
    model: PairModel,
    alignment: Record,
    record: Mapping[str, Any],
    warnings: Sequence[str] = (),
    write_report: Callable[[Path, Record], object] = lambda folder, record: None,
    tests: pd.DataFrame | None = None,
) -> None:
    """Write a fitted model of two tables, its tables and its report into a folder that this process has locked.

    Parameters
    ----------
    folder : path
    model : SparseGraphPLS or SparseGraphCCA
    alignment : dict
        How the tables were matched, for alignment.json.
    record : mapping
        `settings`, `data` (digests) and `inputs`, for run.json.
    warnings : sequence of str
        Those of the fit, for run.json.
    write_report : function, optional
        Called when all other files are written, with the scratch folder and the content of run.json.
    tests : DataFrame, optional
        Further columns of pairs.tsv, see `pairs_table`.
    """
    content = Task("fit", record["settings"], record["data"]).record()
    content |= {"kind": PAIRS, "state": "finished", "inputs": record["inputs"], "warnings": list(warnings)}
    with files.scratch_folder(folder) as staged:
        files.write_table(staged / "pairs.tsv", pairs_table(model, tests))
        files.write_table(staged / "weights.tsv", weights_table(model))
        files.write_table(staged / "scores.tsv", pair_scores_table(model))
        files.write_json(staged / "alignment.json", alignment)
        save_state(pair_state_of(model), staged / "model")
        write_report(staged, content)
        interrupted = files.run_record(folder)
        files.commit_files(staged, folder, files.RUN_RECORD, content)
        if interrupted is not None and interrupted["state"] == "running":  # a fit that `force` has replaced
            (folder / files.FIT_CHECKPOINT).unlink(missing_ok=True)
