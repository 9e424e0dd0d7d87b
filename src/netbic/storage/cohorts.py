"""Simulated cohorts as files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from netbic import files
from netbic.simulate import Cohort

RECORD = "simulation.json"


def write_cohort(study: Cohort, folder: Path | str) -> None:
    """Write expression.tsv.gz (genes in rows), network.sif and the planted modules (truth.tsv).

    simulation.json lists them. An earlier simulation is replaced; if there are files of these names that netbic did
    not write, an error is raised.
    """
    folder = Path(folder)
    files.check_writable(folder, [*files.RECORDS[RECORD], RECORD])
    folder.mkdir(parents=True, exist_ok=True)
    table = study.expression.T.rename_axis("gene").to_csv(sep="\t", float_format="%.5g")
    genes = np.asarray(study.expression.columns)
    tails, heads, _ = study.network.edges()
    lines = "".join(f"{genes[a]}\tbinds\t{genes[b]}\n" for a, b in zip(tails, heads, strict=True))
    with files.locked(folder), files.scratch_folder(folder, RECORD) as staged:
        files.write_atomic(staged / "expression.tsv.gz", gzip.compress(table.encode(), mtime=0))
        files.write_atomic(staged / "network.sif", lines.encode())
        files.write_table(staged / "truth.tsv", _truth(study))
        samples, n_genes = study.expression.shape
        content = {"samples": samples, "genes": n_genes, "modules": len(study.genes)}
        files.commit_files(staged, folder, RECORD, content)


def _truth(study: Cohort) -> pd.DataFrame:
    parts = []
    for axis, masks, names in (
        ("gene", study.genes, study.expression.columns),
        ("sample", study.samples, study.expression.index),
    ):
        for module, mask in enumerate(masks):
            weights = study.weights[module, mask] if axis == "gene" else np.ones(int(mask.sum()))
            parts.append(pd.DataFrame({"module": module, "axis": axis, "name": names[mask], "weight": weights}))
    return pd.concat(parts).sort_values(["module", "axis"], kind="stable", ignore_index=True)
