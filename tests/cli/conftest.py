"""A small study as files, and the results of a fit."""

import shutil

import numpy as np
import pandas as pd
import pytest

from support.output_folders import fit


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Files of expression, a network and gene sets (`cohort`), and the results of a fit (`results`)."""
    base = tmp_path_factory.mktemp("fitted")
    folder = base / "cohort"
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
    assert fit(folder, base / "results").exit_code == 0
    return base


@pytest.fixture
def cohort(fitted, tmp_path):
    """A copy of the files, which a test may change."""
    return shutil.copytree(fitted / "cohort", tmp_path / "cohort")


@pytest.fixture
def results(fitted, cohort, tmp_path):
    """A copy of the results, as of a fit to the copied files."""
    folder = shutil.copytree(fitted / "results", tmp_path / "results")
    record = (folder / "run.json").read_text()
    (folder / "run.json").write_text(record.replace(str(fitted), str(tmp_path)))
    return folder
