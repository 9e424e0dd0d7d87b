"""Simulated cohorts as files."""

from __future__ import annotations

import gzip
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pandas as pd

from netbic import files
from netbic.simulate import Cohort

RECORD = "simulation.json"


def write_cohort(study: Cohort, folder: Path | str) -> None:
    """Write expression.tsv.gz (genes in rows), network.sif, the planted modules (truth.tsv) and labels of the samples.

    labels.tsv has the subtype of each sample, which is that of the first module planted in it ("A+" where the module is
    up, "A-" where it is down), and an age and a batch that mean nothing. simulation.json lists the files. An earlier
    simulation is replaced; if there are files of these names that netbic did not write, an error is raised.
    """
    folder = Path(folder)
    files.check_writable(folder, [*files.RECORDS[RECORD], RECORD])
    folder.mkdir(parents=True, exist_ok=True)
    table = study.expression.T.rename_axis("gene").to_csv(sep="\t", float_format="%.5g")
    genes = np.asarray(study.expression.columns)
    tails, heads, _ = study.network.edges()
    lines = "".join(f"{genes[a]}\tbinds\t{genes[b]}\n" for a, b in zip(tails, heads, strict=True))
    with files.locked(folder), files.scratch_folder(folder) as staged:
        files.write_atomic(staged / "expression.tsv.gz", gzip.compress(table.encode(), mtime=0))
        files.write_atomic(staged / "network.sif", lines.encode())
        files.write_table(staged / "truth.tsv", _truth(study))
        files.write_table(staged / "labels.tsv", _labels(study))
        samples, n_genes = study.expression.shape
        content = {"samples": samples, "genes": n_genes, "modules": len(study.genes)}
        files.commit_files(staged, folder, RECORD, content)


def _labels(study: Cohort) -> pd.DataFrame:
    """A subtype, an age and a batch for each sample."""
    values = study.expression.to_numpy()
    subtype = np.full(len(values), "none", dtype=object)
    for module in reversed(range(len(study.genes))):
        up = (values - values.mean(axis=0)) @ np.where(study.genes[module], study.weights[module], 0) > 0
        for sign, own in (("+", up), ("-", ~up)):
            subtype[study.samples[module] & own] = f"{ascii_uppercase[module % 26]}{sign}"
    generator = np.random.default_rng(len(values))
    age, batch = generator.normal(60, 10, len(values)).round().astype(int), generator.choice(["b1", "b2"], len(values))
    return pd.DataFrame({"sample": study.expression.index, "subtype": subtype, "age": age, "batch": batch})


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
