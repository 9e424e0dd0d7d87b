"""The tables in the folder of a fit that a report shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.association import stored_record, stored_samples
from netbic.errors import unusable
from netbic.estimators import SparseGraphSVD, names_of
from netbic.files import read_json, read_table
from netbic.report.heatmaps import Heatmap, read_heatmaps
from netbic.report.judgement import Replicated, Verdict, replication_list, verdict_list
from netbic.report.sample_table import SampleTable
from netbic.report.samples import SampleScores, sample_scores

_EDGES = {"module", "n_nodes", "n_edges", "expected", "fold_change", "p_value", "q_value", "degree_q_value"}
_SETS = {"module", "term", "name", "n_overlap", "n_term", "n_module", "fold_change", "q_value", "genes"}
_VERDICTS = {"module", "verdict", "reason", "closest", "correlation", "gene_overlap"}
_REPLICATION = {"module", "verdict", "reason"}
_SAMPLES = {"module", "sample", "score", "group"}
_ASSOCIATIONS = {"variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p", "q"}
_AGAIN = "run netbic associate again"


@dataclass(frozen=True)
class Tables:
    """What the folder contains about the modules, in addition to the model."""

    heatmaps: list[Heatmap | None]
    edges: pd.DataFrame | None
    sets: pd.DataFrame | None
    verdicts: list[Verdict | None]
    scores: list[SampleScores | None]
    associations: pd.DataFrame | None
    sample_table: SampleTable | None
    replication: list[Replicated | None]

    @classmethod
    def read(cls, folder: Path, model: SparseGraphSVD) -> Self:
        """Tables and heatmaps, unless they are about the modules of an earlier fit."""
        verdicts = _table(folder / "verdicts.tsv", _VERDICTS, "fit again")
        scores = sample_scores(
            _table(folder / "samples.tsv", _SAMPLES, "fit again"), model.n_components_, names_of(model, "rows")
        )
        associations = _of_known_modules(read_associations(folder, ("module",)), model)
        info, record = stored_samples(folder), stored_record(folder)
        heatmaps, dense = _of_this_model(read_heatmaps(folder), model), [bool(kept.all()) for kept in model.rows_]
        return cls(
            [_by_score(heatmap, scores[k]) if dense[k] else heatmap for k, heatmap in enumerate(heatmaps)],
            _of_these_modules(_table(folder / "edges.tsv", _EDGES), model, "n_nodes"),
            _of_these_modules(_table(folder / "gene_sets.tsv", _SETS), model, "n_module"),
            verdict_list(verdicts, model.n_components_),
            scores,
            associations,
            SampleTable.of(info, associations, record, len(model.left_vectors_)),
            replication_list(
                _table(folder / "replication.tsv", _REPLICATION, "run netbic replicate again"),
                read_record(folder / "replication.json"),
                model.n_components_,
            ),
        )


def read_record(path: Path) -> dict[str, Any]:
    """What a JSON file contains, if it exists."""
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def read_associations(folder: Path, of: tuple[str, ...]) -> pd.DataFrame | None:
    """The table associations.tsv, if it exists; `of` are the columns that say what the tests are about."""
    return _table(folder / "associations.tsv", _ASSOCIATIONS | set(of), _AGAIN)


def _table(path: Path, columns: set[str], remedy: str = "run netbic enrich again") -> pd.DataFrame | None:
    """A table of results, if it exists."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except (ValueError, OSError) as problem:
        raise unusable(path, f"cannot be read ({problem})", remedy) from None
    if lacking := sorted(columns - set(table.columns)):
        raise unusable(path, f"has no column {lacking[0]}", f"netbic did not write it: {remedy}")
    return table


def _of_these_modules(table: pd.DataFrame | None, model: SparseGraphSVD, size: str) -> pd.DataFrame | None:
    """The table, unless it is about the modules of an earlier fit."""
    if table is None or table.empty or size not in table or "sign" in table:
        return table
    weights = model.components_
    counts = {"up": weights > 0, "down": weights < 0, "both": model.columns_}
    sizes = {(k, side): n for side, masks in counts.items() for k, n in enumerate(masks.sum(axis=1).tolist())}
    sides = table["side"] if "side" in table else ["both"] * len(table)
    expected = [sizes.get(key) for key in zip(table["module"], sides, strict=True)]
    return table if expected == table[size].tolist() else None


def _of_known_modules(table: pd.DataFrame | None, model: SparseGraphSVD) -> pd.DataFrame | None:
    """The associations, unless they are about more modules than there are."""
    if table is None or not table["module"].between(0, model.n_components_ - 1).all():
        return None
    return table


def _of_this_model(heatmaps: list[Heatmap], model: SparseGraphSVD) -> list[Heatmap | None]:
    """Heatmaps of these modules; none if the file is about others."""
    alike = len(heatmaps) == model.n_components_ and all(
        _are_members(model.columns_[k], heatmap.genes) and _are_members(model.rows_[k], heatmap.samples)
        for k, heatmap in enumerate(heatmaps)
    )
    return [*heatmaps] if alike else [None] * model.n_components_


def _are_members(mask: NDArray[np.bool_], positions: NDArray[np.int32]) -> bool:
    return max(positions, default=0) < mask.size and bool(mask[positions].all())


def _by_score(heatmap: Heatmap | None, scores: SampleScores | None) -> Heatmap | None:
    """A heatmap with its samples by decreasing score, if the scores are known."""
    if heatmap is None or scores is None:
        return heatmap
    order = np.argsort(-scores.scores[heatmap.samples], kind="stable")
    return replace(heatmap, values=heatmap.values[:, order], samples=heatmap.samples[order])
