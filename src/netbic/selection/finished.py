"""Finished fits: reported while others still run, and kept so that an interrupted computation can continue."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

import numpy as np

from netbic.selection.fits import Fit, FitExecutor, Jobs, executor_for, quiet
from netbic.storage import npz_arrays, npz_bytes

Progress: TypeAlias = Callable[[int, int], object]  # called with the numbers of finished fits and of all fits
Finished: TypeAlias = MutableMapping[str, str]  # results of finished fits as text, by the name of the fit


def tracked(X: Any, n_jobs: Jobs, name: str, *tracking: Any) -> TrackedExecutor:
    """The executor of fits to X, tracked."""
    return TrackedExecutor(executor_for(X, n_jobs), name, *tracking)


class TrackedExecutor(FitExecutor):
    """An executor that reports every finished fit, and does not repeat fits whose results were kept.

    The fits are those of a function that returns a number, or a named tuple or dataclass of numbers and arrays. Their
    results are found again by the name of the computation, the part of it, and the job: jobs of one part must differ.

    Parameters
    ----------
    executor : FitExecutor
        Runs the fits.
    name : str
        Of the computation; different for computations that share `finished`.
    progress : function, optional
        Called after every fit that is made with the number of finished fits and the number of all fits, as far as it
        is known; fits whose results were kept do not count.
    n_fits : function
        The number of fits of a job.
    finished : mutable mapping, optional
        Results of fits that were finished earlier; those of new fits are added.

    Attributes
    ----------
    part : str
        The part of the computation to which the next jobs belong.
    left : int
        Fits that will follow those of the current call of `map`, as far as it is known.
    """

    def __init__(
        self,
        executor: FitExecutor,
        name: str,
        progress: Progress | None = None,
        finished: Finished | None = None,
        n_fits: Callable[[Any], int] = lambda job: 1,
    ) -> None:
        self._executor, self._name, self._progress, self._n_fits = executor, name, progress, n_fits
        self._finished: Finished = {} if finished is None else finished
        self._keeps = finished is not None
        self._done, self.part, self.left = 0, "", 0

    @property
    def n_parallel(self) -> int:
        """Number of fits that run at the same time."""
        return self._executor.n_parallel

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """`fit(data, job)` for every job, in order."""
        names = [self._named(job) if self._keeps else "" for job in jobs]
        new = [job for name, job in zip(names, jobs, strict=True) if name not in self._finished]
        with _ended(self._executor.map(fit, data, new) if new else iter(())) as results:
            others = sum(map(self._n_fits, new))
            for name, job in zip(names, jobs, strict=True):
                if name in self._finished:
                    yield from_text(get_type_hints(fit)["return"], self._finished[name])
                    continue
                result, n_fits = next(results), self._n_fits(job)
                others -= n_fits
                if self._keeps:
                    self._finished[name] = as_text(result)
                self._report(n_fits, others)
                yield result

    def _named(self, job: Any) -> str:
        job = json.dumps(job, default=lambda value: np.asarray(value).tolist())
        return " ".join(filter(None, [self._name, self.part, job]))

    def finish(self, part: str, left: int, n_fits: int = 1) -> None:
        """Report work of the caller that counts as so many fits, and begin a part of the computation."""
        self.part, self.left = part, left
        self._report(n_fits, 0)

    def _report(self, n_fits: int, others: int) -> None:
        self._done += n_fits
        if self._progress is not None:
            self._progress(self._done, self._done + others + self.left)


@contextmanager
def _ended(results: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """End fits that are not needed or were interrupted, without joblib's warning about results that are not used."""
    try:
        yield results
    finally:
        if isinstance(results, Generator):
            with quiet():
                results.close()


def as_text(result: Any) -> str:
    """A result as text, without loss of precision.

    Examples
    --------
    >>> from_text(float, as_text(0.1))
    0.1
    """
    if is_dataclass(result):
        parts = {field.name: getattr(result, field.name) for field in fields(result)}
    else:
        parts = result._asdict() if hasattr(result, "_asdict") else {"value": result}
    return base64.b64encode(npz_bytes(parts)).decode()


def from_text(kind: Any, text: str) -> Any:
    """A result of this type from its text."""
    arrays = npz_arrays(Path("a checkpoint"), base64.b64decode(text, validate=True))
    parts = {name: array if array.ndim else array.item() for name, array in arrays.items()}
    return parts["value"] if kind is float else kind(**parts)
