"""A small study as files, and the results of a fit."""

import numpy as np
import pandas as pd
import pytest

from support.output_folders import fit


@pytest.fixture
def cohort(tmp_path):
    """Files of expression, a network and gene sets."""
    folder = tmp_path / "cohort"
    folder.mkdir()
    generator = np.random.default_rng(0)
    genes = [f"G{k}" for k in range(40)]
    values = generator.standard_normal((40, 20))
    values[:10, :8] += 3
    pd.DataFrame(values, index=pd.Index(genes, name="gene"), columns=[f"s{k}" for k in range(20)]).to_csv(
        folder / "expression.tsv", sep="\t"
    )
    edges = [(genes[a], genes[b]) for a in range(12) for b in range(a)]
    (folder / "edges.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    (folder / "sets.gmt").write_text("one\tset one\t" + "\t".join(genes[:12]) + "\n")
    return folder


@pytest.fixture
def results(cohort, tmp_path):
    assert fit(cohort, tmp_path / "results").exit_code == 0
    return tmp_path / "results"
