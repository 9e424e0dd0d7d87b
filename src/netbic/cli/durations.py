"""How long the stages of a command are expected to take.

Times are seconds of one core of a usual computer. `progress.py` compares them with the time that the first
steps take and corrects the rest; what matters most is that the stages have the right proportions. They were measured
on 516 x 3,195 to 592 x 17,471 samples x genes, with default settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from netbic.cli.progress import Stage

STARTUP: Final = 4.0  # seconds until other processes have loaded netbic
_PREPARATION, _MODULE = 2.5e-8, 4e-9  # seconds of a fit per entry of X, and further ones for every module
_SIZES = 1.5e-7  # of the fits that show whether the data identify sizes
_COPIES, _COPY = 19, 4.5e-8  # with random signs
_RESIDUAL, _WINSORISED = 3, 6e-8  # preparing the residual after a module counts as three fits
_SMOOTHING_FITS = 7  # of cross-validation, in units of a fit
_GRAPH_FITS, _MOST_GRAPH_FITS = 22, 420  # 10 if the graph is clearly no better than none, about 65 if it helps
_FOLD = 1.8  # a fit to a fold and its score, in units of a fit
_TUNED = 2.5  # a fit of a tuning, many of which keep most genes, in units of a fit
_TRAINING = 0.8  # share of the samples that a fit of a tuning has
_SEARCH = 2.0  # the fit whose modules are written, with diagnostics, in units of a fit
_PAIR = 2.2  # a pair of halves, in units of a fit
_WRITING, _TABLES = 0.3, 1.5e-7  # seconds, and further ones per entry of X
_REPORT, _REPORT_MODULE = 2.2, 0.1  # seconds, and further ones for every module


def n_parallel(jobs: int | None) -> int:
    """Number of threads or processes of --jobs; all cores by default."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(-1 if jobs is None else jobs))


@dataclass(frozen=True)
class Fitting:
    """The size of a fit.

    Parameters
    ----------
    n_samples, n_genes, n_modules : int
    n_threads : int
        For fits that are independent of each other.
    n_starts : int
        Starts per module.
    """

    n_samples: int
    n_genes: int
    n_modules: int
    n_threads: int = 1
    n_starts: int = 1

    @property
    def entries(self) -> int:
        """Entries of X."""
        return self.n_samples * self.n_genes

    def fit(self, share: float = 1.0) -> float:
        """A fit of all modules to a share of the samples."""
        return share * self.entries * (_PREPARATION + _MODULE * self.n_modules * self.n_starts)

    def choices(self, has_graph: bool) -> dict[str, Stage]:
        """Stages of `selection.choose_settings`."""
        stages = {
            "sizes": Stage("choosing the sizes", 0.0, startup=_SIZES * self.entries),  # depends on the data
            "number": self._number(),
        }
        if not has_graph:
            return stages
        seconds, steps = _FOLD * self.fit() / self.n_threads, (_GRAPH_FITS, _MOST_GRAPH_FITS)
        graph = Stage("testing the network", seconds, *steps, self.n_threads)
        return stages | {"smoothing": Stage("smoothing over the network", _SMOOTHING_FITS * self.fit()), "graph": graph}

    def _number(self) -> Stage:
        """Most modules are stronger than all copies of the first residual, and need none of their own."""
        steps = _COPIES + _RESIDUAL * self.n_modules
        seconds = self.entries * (_COPIES * _COPY / self.n_threads + self.n_modules * _WINSORISED) / steps
        most = (_COPIES + _RESIDUAL) * self.n_modules
        return Stage("choosing the number of modules", seconds, steps, most, self.n_threads)

    def tuning(self, n_fits: int, slowest: float, seconds: float | None = None) -> dict[str, Stage]:
        """Stages of `selection.tune`, with `n_fits` to make; `seconds` is the time of one, when it is known.

        `slowest` is the share of the fit that is made first. Processes are started, unless there is one.
        """
        seconds = _TUNED * self.fit(_TRAINING) if seconds is None else seconds
        startup = STARTUP if self.n_threads > 1 else 0.0
        pace, steps = 1 / self.n_threads, seconds * n_fits
        fits = Stage("fitting settings to folds", pace, steps, startup=startup, measured=True, first=slowest)
        return {"fits": fits, "last": Stage("fitting the chosen setting", seconds / _TRAINING)}

    def modules(self, seconds: float | None = None) -> dict[str, Stage]:
        """The search; `seconds` is the time that a similar fit took."""
        seconds = _SEARCH * self.fit() if seconds is None else seconds
        return {"modules": Stage("finding modules", seconds / self.n_modules, self.n_modules)}

    def results(self, n_pairs: int, report: bool) -> dict[str, Stage]:
        """Verdicts, tables and the report."""
        stages = {}
        if n_pairs:
            seconds = _PAIR * self.fit() / self.n_threads
            stages["pairs"] = Stage("judging modules in pairs of halves", seconds, n_pairs, 0, self.n_threads)
        stages["tables"] = Stage("writing tables", _WRITING + _TABLES * self.entries)
        if report:
            stages["report"] = Stage("writing the report", _REPORT + _REPORT_MODULE * self.n_modules)
        return stages
