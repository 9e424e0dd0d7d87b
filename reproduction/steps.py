"""Steps of the experiments: each is reported when it is done, and kept until all are, in case of an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from netbic.storage import Checkpoint, SavedTexts, Task

CHECKPOINT: Final = "reproduction.checkpoint"
Progress = Callable[[str, int, int], object]  # called with a stage, the number of its steps that are done, and of all


class Steps:
    """Results of steps as JSON, by the name of their stage and what they are computed from.

    Parameters
    ----------
    progress : function, optional
        Called when a stage begins and after each of its steps.
    finished : mutable mapping, optional
        Results of steps that were finished before; those of new ones are added.
    """

    def __init__(self, progress: Progress | None = None, finished: MutableMapping[str, str] | None = None) -> None:
        self._progress: Progress = (lambda stage, done, total: None) if progress is None else progress
        self._finished: MutableMapping[str, str] = {} if finished is None else finished

    def map(
        self, stage: str, compute: Callable[..., Any], cases: Sequence[tuple[Any, ...]], n_jobs: int | None = None
    ) -> list[Any]:
        """`compute(*case)` for every case, in order, by so many processes."""
        names = [f"{stage} {json.dumps(case)}" for case in cases]
        new = [(name, case) for name, case in zip(names, cases, strict=True) if name not in self._finished]
        n_known = len(cases) - len(new)
        self._progress(stage, n_known, len(cases))
        results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(compute)(*case) for _, case in new)
        for done, ((name, _), result) in enumerate(zip(new, results, strict=True), start=n_known + 1):
            self._finished[name] = json.dumps(result)
            self._progress(stage, done, len(cases))
        return [json.loads(self._finished[name]) for name in names]

    def tables(
        self, stage: str, compute: Callable[..., pd.DataFrame], cases: Sequence[tuple[Any, ...]]
    ) -> list[pd.DataFrame]:
        """The same for a function that returns a table, in this process."""
        results = self.map(stage, lambda *case: compute(*case).to_dict("list"), cases, n_jobs=1)
        return [pd.DataFrame(result) for result in results]


def saved_steps(out: Path, progress: Progress | None, settings: Mapping[str, Any], data: Mapping[str, str]) -> Steps:
    """Steps that are kept in a folder; those of an interrupted run with the same settings and data are used."""
    task = Task("reproduction", settings, data)
    return Steps(progress, SavedTexts(Checkpoint(out / CHECKPOINT, task, SavedTexts.decoded)))
