"""What netbic fit writes beside the modules: groups of samples, verdicts, heatmaps, enrichment, the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import netbic
from netbic.cli.columns import closest_modules, module_sizes, sample_groups
from netbic.cli.command import echo, progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from netbic.cli.associate import SampleTable
    from netbic.estimators import SparseGraphSVD
    from netbic.readers import GeneSets
    from netbic.selection import Verdicts
    from netbic.study import Study

# The number of pairs of halves depends on the data only, not on the time they take: results are then reproducible.
VERDICT_SECONDS: Final = 20  # budget for the verdicts, if a fit takes as long as expected; three pairs in any case
_SECONDS_PER_ENTRY = 1e-8  # time of a pair, per module and entry of X
_PAIRS = (3, 10)  # fewest and most
FEWEST_SAMPLES: Final = 20  # fewer cannot be judged


@dataclass(frozen=True)
class Extras:
    """What is written in addition to the modules, and the options for it."""

    study: Study
    out: Path
    sample_table: SampleTable | None
    gene_sets: GeneSets | None
    gene_sets_file: str | None
    seed: int
    jobs: int | None
    verdict: bool
    report: bool
    silent: bool

    def write(self, model: SparseGraphSVD, folder: Path, lines: list[str]) -> pd.DataFrame:
        """Write tables and heatmaps to a folder whose files end up in `out`; returns columns of the summary.

        A line per table, for the user, is added to `lines`.
        """
        netbic.report.write_heatmaps(folder, model, self.study.X)
        judgement = self._judgement(model, lines)
        judgement.write(folder)
        if self.sample_table is not None and model.n_components_:
            scores = netbic.association.wide(judgement.groups.table)
            lines.extend(self.sample_table.write(folder, self.out, *scores))
        if model.column_graph is not None or self.gene_sets is not None:
            lines.extend(self._enrichment(model, folder))
        return judgement.summary.join([module_sizes(model), closest_modules(judgement.groups)])

    def _judgement(self, model: SparseGraphSVD, lines: list[str]) -> netbic.selection.Judgement:
        """Groups of samples, and verdicts if they are wanted and the data are in memory."""
        groups = sample_groups(model, self.study)
        if not self.verdict or not model.n_components_:
            return netbic.selection.Judgement(groups, None)
        if self.study.expression.is_lazy:
            lines.append("no verdicts: they need the data in memory (without --dask)")
            return netbic.selection.Judgement(groups, None)
        verdicts = self._verdicts(model)
        if self._enough_samples:
            lines.append(verdicts.verdict)
        return netbic.selection.Judgement(groups, verdicts)

    @property
    def _enough_samples(self) -> bool:
        """Whether modules can be judged; if not, this was said before the fit."""
        return bool(self.study.expression.shape[0] >= FEWEST_SAMPLES)

    def _verdicts(self, model: SparseGraphSVD) -> Verdicts:
        n_samples, n_genes = self.study.expression.shape
        affordable = VERDICT_SECONDS / (_SECONDS_PER_ENTRY * n_samples * n_genes * model.n_components_)
        n_pairs = int(min(max(affordable, _PAIRS[0]), _PAIRS[1]))
        if self._enough_samples:
            echo("judging the modules in halves of the samples (--no-verdict skips this) ...", self.silent)
        with progress_bar("pairs of halves", n_pairs, 0, self.silent) as update:
            return netbic.selection.verdicts(
                model,
                self.study.X,
                n_pairs=n_pairs,
                progress=lambda done, _: update(done),
                random_state=self.seed,
                n_jobs=-1 if self.jobs is None else self.jobs,
            )

    def write_report(self, model: SparseGraphSVD, folder: Path, record: dict[str, Any]) -> Iterator[str]:
        """Write the report if it is wanted and its libraries are installed; a fit does not fail without them."""
        if self.report and (missing := netbic.report.missing_library()):
            install = f'pip install "netbic[report]", then netbic report {self.out}'
            yield f"no report was written: it needs {missing}. Run {install}"
        elif self.report:
            page = netbic.report.write_report(folder, model=model, record=record)
            yield f"{self.out}/{page.name}: the report, to open in a browser"

    def complete(self) -> Iterator[str]:
        """Add to a finished fit what is asked for now and was not then: other gene sets, a report."""
        out, record = self.out, netbic.io.finished_record(self.out) or {}
        tested = (out / "gene_sets.tsv").is_file()
        tested = tested and record.get("inputs", {}).get("gene_sets") == self.gene_sets_file
        wants_sets = self.gene_sets is not None and not tested
        wants_associations = self.sample_table is not None and not self._compared(record)
        if not (wants_sets or wants_associations) and (not self.report or (out / "report.html").is_file()):
            return
        model = netbic.load(out)
        with netbic.io.locked(out):
            if not (out / "heatmaps.npz").is_file():
                netbic.report.write_heatmaps(out, model, self.study.X)
            if wants_sets:
                yield from self._enrichment(model, out)
                record = netbic.io.finished_record(out) or record  # it lists those files now
                record.setdefault("inputs", {})["gene_sets"] = self.gene_sets_file
                netbic.io.write_json(out / "run.json", record)
            if self.sample_table is not None and wants_associations:
                yield from self.sample_table.write(out, out, *netbic.association.stored_scores(out))
                record = netbic.io.finished_record(out) or record
                record.setdefault("inputs", {})["sample_info"] = self.sample_table.origin
                netbic.io.write_json(out / "run.json", record)
            yield from self.write_report(model, out, record)

    def _compared(self, record: dict[str, Any]) -> bool:
        """Whether the modules were compared with this sample table."""
        if self.sample_table is None or not (self.out / "associations.tsv").is_file():
            return False
        return bool(record.get("inputs", {}).get("sample_info") == self.sample_table.origin)

    def _enrichment(self, model: SparseGraphSVD, folder: Path) -> Iterator[str]:
        options: dict[str, Any] = {"X": self.study.X, "random_state": self.seed}
        for line in netbic.enrichment.write_enrichment(model, folder, self.gene_sets, **options):
            yield f"{self.out}/{line}"
