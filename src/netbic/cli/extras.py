"""What netbic fit writes beside the modules: groups of samples, verdicts, heatmaps, enrichment, the report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import netbic
from netbic.cli.columns import closest_modules, module_sizes, sample_groups
from netbic.cli.command import echo, echo_report_is_older
from netbic.cli.progress import Progress
from netbic.errors import one_line

if TYPE_CHECKING:
    import pandas as pd

    from netbic.cli.associate import SampleTable
    from netbic.estimators import SparseGraphSVD
    from netbic.io import Dataset, GeneSets
    from netbic.selection import Verdicts

# The number of pairs of halves depends on the data only, not on the time they take: results are then reproducible.
VERDICT_SECONDS: Final = 20  # budget for the verdicts, if a fit takes as long as expected; three pairs in any case
_SECONDS_PER_ENTRY = 1e-8  # time of a pair, per module and entry of X
STAGES: Final = {
    "sizes": "choosing the sizes",
    "number": "choosing the number of modules",
    "diffusion": "diffusion over the network",
    "graph": "testing the network",
    "modules": "finding modules",
    "pairs": "judging modules in pairs of halves",
    "tables": "writing tables",
    "report": "writing the report",
}
_PAIRS = (3, 10)  # fewest and most


@contextmanager
def _results_are_kept(consequence: str, remedy: str) -> Iterator[None]:
    """Turn an error into a warning, so that the modules are written; a disk that is full remains an error."""
    try:
        yield
    except OSError:
        raise
    except Exception as problem:
        warnings.warn(one_line(f"{consequence} ({problem}); all else is written: {remedy}"), stacklevel=2)


@dataclass(frozen=True)
class Extras:
    """What is written in addition to the modules, and the options for it."""

    study: Dataset
    out: Path
    sample_table: SampleTable | None
    gene_sets: GeneSets | None
    gene_sets_file: str | None
    seed: int
    jobs: int | None
    verdict: bool
    report: bool
    silent: bool
    units: Any = None  # a number per sample, the same for samples that belong together

    def write(self, model: SparseGraphSVD, folder: Path, lines: list[str], progress: Progress) -> pd.DataFrame:
        """Write tables and heatmaps to a folder whose files end up in `out`; returns columns of the summary.

        A line per table, for the user, is added to `lines`.
        """
        judgement = self._judgement(model, lines, progress)
        progress.update("tables", 0, 1)
        netbic.report.write_heatmaps(folder, model, self.study.X)
        judgement.write(folder)
        if self.sample_table is not None and model.n_components_:
            again = f"run netbic associate {self.out} --sample-info {self.sample_table.origin}"
            with _results_are_kept("the modules were not compared with the sample table", again):
                scores = netbic.association.wide(judgement.groups.table)
                lines.extend(self.sample_table.write(model, folder, self.out, *scores))
        if model.column_graph is not None or self.gene_sets is not None:
            lines.extend(self._enrichment(model, folder))
        return self._columns(model, judgement)

    @staticmethod
    def _columns(model: SparseGraphSVD, judgement: netbic.selection.Judgement) -> pd.DataFrame:
        """Columns of the summary beyond those of the model."""
        return judgement.summary.join([module_sizes(model), closest_modules(judgement.groups)])

    def _judgement(self, model: SparseGraphSVD, lines: list[str], progress: Progress) -> netbic.selection.Judgement:
        """Groups of samples, and verdicts if they are wanted and the data are in memory."""
        groups = sample_groups(model, self.study)
        if not self.verdict or not model.n_components_:
            return netbic.selection.Judgement(groups, None)
        if self.study.expression.is_lazy:
            lines.append("no verdicts: they need the data in memory (without --dask)")
            return netbic.selection.Judgement(groups, None)
        verdicts = self._verdicts(model, progress)
        if self._enough_samples:
            lines.append(verdicts.verdict)
        return netbic.selection.Judgement(groups, verdicts)

    @property
    def _enough_samples(self) -> bool:
        """Whether modules can be judged; if not, this was said before the fit."""
        n_units = self.study.expression.shape[0] if self.units is None else self.units.max() + 1
        return bool(n_units >= netbic.selection.FEWEST_SAMPLES)

    def _n_pairs(self, n_modules: int) -> int:
        n_samples, n_genes = self.study.expression.shape
        affordable = VERDICT_SECONDS / (_SECONDS_PER_ENTRY * n_samples * n_genes * max(n_modules, 1))
        return int(min(max(affordable, _PAIRS[0]), _PAIRS[1]))

    def _verdicts(self, model: SparseGraphSVD, progress: Progress) -> Verdicts:
        n_pairs = self._n_pairs(model.n_components_)
        if self._enough_samples:
            echo("judging the modules in halves of the samples (--no-verdict skips this) ...", self.silent)
            progress.update("pairs", 0, n_pairs)
        return netbic.selection.verdicts(
            model,
            self.study.X,
            groups=self.units,
            n_pairs=n_pairs,
            progress=partial(progress.update, "pairs"),
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def write_report(
        self, model: SparseGraphSVD, folder: Path, record: dict[str, Any], progress: Progress
    ) -> Iterator[str]:
        """Write the report if it is wanted and its libraries are installed; a fit does not fail without them."""
        progress.update("report", 0, 1)
        if self.report and (missing := netbic.report.missing_library()):
            install = f'pip install "netbic[report]", then netbic report {self.out}'
            yield f"no report was written: it needs {missing}. Run {install}"
        elif self.report:
            with _results_are_kept("no report was written", f"run netbic report {self.out}"):
                page = netbic.report.write_report(folder, model=model, record=record)
                yield f"{self.out}/{page.name}: the report, to open in a browser"

    def complete(self) -> Iterator[str]:
        """Add to a finished fit what is asked for now and was not then: verdicts, gene sets, associations, a report."""
        out, inputs = self.out, (netbic.io.finished_record(self.out) or {}).get("inputs", {})
        steps = {
            self._add_verdicts: self.verdict and not self._has("verdicts.tsv") and not self.study.expression.is_lazy,
            self._add_gene_sets: self.gene_sets is not None
            and not (self._has("gene_sets.tsv") and inputs.get("gene_sets") == self.gene_sets_file),
            self._add_associations: self.sample_table is not None
            and not (self._has("associations.tsv") and self.sample_table.recorded().items() <= inputs.items()),
        }
        model = netbic.storage.load_modules(out)
        wanted = [add for add, asked in steps.items() if asked and model.n_components_]
        if not wanted and (not self.report or self._has("report.html")):
            return
        with netbic.io.locked(out), Progress(STAGES, self.silent) as progress:
            if not self._has("heatmaps.npz"):
                netbic.report.write_heatmaps(out, model, self.study.X)
            for add in wanted:
                yield from add(model, progress)
            yield from self.write_report(model, out, netbic.io.finished_record(out) or {}, progress)
        if not self.report:
            echo_report_is_older(out, self.silent)

    def _has(self, name: str) -> bool:
        return (self.out / name).is_file()

    def _add_verdicts(self, model: SparseGraphSVD, progress: Progress) -> Iterator[str]:
        lines = list[str]()
        judgement = self._judgement(model, lines, progress)
        judgement.write(self.out, netbic.storage.summary_table(model, self._columns(model, judgement)))
        yield from lines

    def _add_gene_sets(self, model: SparseGraphSVD, progress: Progress) -> Iterator[str]:
        progress.update("tables", 0, 1)
        yield from self._enrichment(model, self.out)
        self._record({"gene_sets": self.gene_sets_file})

    def _add_associations(self, model: SparseGraphSVD, progress: Progress) -> Iterator[str]:
        progress.update("tables", 0, 1)
        if self.sample_table is not None:
            yield from self.sample_table.write(model, self.out, self.out, *netbic.association.stored_scores(self.out))
            self._record(self.sample_table.recorded())

    def _record(self, inputs: dict[str, Any]) -> None:
        """Add inputs to run.json, which lists new files already."""
        record = netbic.io.finished_record(self.out) or {}
        netbic.io.write_json(self.out / "run.json", record | {"inputs": record.get("inputs", {}) | inputs})

    def _enrichment(self, model: SparseGraphSVD, folder: Path) -> Iterator[str]:
        options: dict[str, Any] = {"X": self.study.X, "random_state": self.seed}
        for line in netbic.enrichment.write_enrichment(model, folder, self.gene_sets, **options):
            yield f"{self.out}/{line}"
