"""netbic score: the scores of samples.tsv again, and modules of which genes are missing in the new data."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from support.commands import run, run_successfully

GENES, SAMPLES = [f"GENE{k}" for k in range(120)], [f"s{k}" for k in range(60)]
FIT = ("--modules", 3, "--genes", 60, "--no-report", "--no-verdict")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Data of overlapping modules: complete, with holes and as sparse counts; a network; a table of the samples."""
    folder, generator = tmp_path_factory.mktemp("score"), np.random.default_rng(0)
    weights = np.zeros((3, 120))
    for k in range(3):
        weights[k, 25 * k : 25 * k + 60] = generator.normal(1, 0.5, 60)
    values = 8 + generator.normal(size=(60, 3)) @ weights + generator.normal(size=(60, 120))
    table = pd.DataFrame(values, SAMPLES, GENES)
    for name, data in (("whole", table), ("holes", table.mask(generator.random(table.shape) < 0.1))):
        data.T.rename_axis("gene").to_csv(folder / f"{name}.tsv", sep="\t")
    counts = generator.poisson(np.exp(values - 9)).astype(np.float32)
    anndata.AnnData(
        sp.csr_array(np.log1p(counts)), *(pd.DataFrame(index=each) for each in (SAMPLES, GENES))
    ).write_h5ad(folder / "cells.h5ad")
    (folder / "net.tsv").write_text("a\tb\n" + "".join(f"GENE{k}\tGENE{k + 1}\n" for k in range(119)))
    about = pd.DataFrame({"batch": np.repeat(["a", "b"], 30), "age": generator.normal(60, 9, 60)}, SAMPLES)
    about.rename_axis("sample").to_csv(folder / "samples.tsv", sep="\t")
    return folder


@pytest.mark.parametrize(
    ("name", "options", "about_samples"),
    [
        ("whole.tsv", (), False),
        ("whole.tsv", ("--covariates", "batch,age"), True),
        ("whole.tsv", ("--studies", "batch", "--covariates", "age"), True),
        ("holes.tsv", ("--missing", "ignore"), False),
        ("holes.tsv", ("--missing", "impute"), False),
        ("whole.tsv", ("--graph", "net.tsv", "--diffusion", 0.5), False),
        ("whole.tsv", ("--samples", 20), False),
        ("cells.h5ad", (), False),
        ("cells.h5ad", ("--dask", "local", "--jobs", 1), False),
    ],
)
def test_the_data_of_a_fit_have_the_scores_of_the_fit(study, tmp_path, monkeypatch, name, options, about_samples):
    monkeypatch.chdir(study)
    info = ("--sample-info", "samples.tsv") if about_samples else ()
    run_successfully("fit", name, *FIT, *options, *info, "--out", tmp_path / "out")
    assert (netbic.load(tmp_path / "out").columns_.sum(axis=0) > 1).any()  # overlapping modules
    run_successfully("score", tmp_path / "out", name, *info, "--out", tmp_path / "scores.tsv")
    found = netbic.io.read_table(tmp_path / "scores.tsv").set_index("sample")
    expected = netbic.io.read_table(tmp_path / "out" / "samples.tsv")["score"].to_numpy().reshape(3, 60).T
    np.testing.assert_allclose(found.loc[SAMPLES], expected, atol=1e-5)
    np.testing.assert_array_less(0.1, np.std(expected, axis=0))


@pytest.fixture(scope="module")
def fitted(study):
    run_successfully("fit", study / "whole.tsv", *FIT, "--out", study / "fit")
    return netbic.load(study / "fit")


def data_without(study, path, genes):
    data = pd.read_csv(study / "whole.tsv", sep="\t", index_col=0)
    data.drop(index=genes).to_csv(path, sep="\t")
    return path


@pytest.mark.parametrize("more", [(), ("--standardise",)])
def test_modules_without_enough_genes_have_empty_scores(study, fitted, tmp_path, more):
    """11 of 60 genes are too few, 12 are enough."""
    own = [np.flatnonzero(columns) for columns in fitted.columns_]
    for left, scored in ((11, False), (12, True)):
        absent = {GENES[at] for at in own[1][left:]}
        path = data_without(study, tmp_path / f"{left}.tsv", sorted(absent))
        done = run_successfully("score", study / "fit", path, *more, "--out", tmp_path / f"scores{left}.tsv")
        assert f"(found: module 2: {left} of 60 genes, " in done.stderr
        assert ("no scores of module 2 (at least a fifth of its genes, and 5 or all of them, " in done.stderr) != scored
        scores = netbic.io.read_table(tmp_path / f"scores{left}.tsv").iloc[:, 1:]
        assert scores.notna().all().tolist() == [True, scored, True]


@pytest.mark.parametrize("more", [(), ("--standardise",)])
def test_data_with_hardly_any_gene_of_the_modules_are_refused(study, fitted, tmp_path, more):
    kept = [gene for gene, used in zip(GENES, fitted.columns_.any(axis=0), strict=True) if used][:4]
    path = data_without(study, tmp_path / "few.tsv", sorted({*GENES} - {*kept}))
    done = run("score", study / "fit", path, *more)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Error: no module has enough genes in these data (found: module " in done.stderr
    assert "Give data with more genes of the modules" in done.stderr


def test_genes_that_match_do_not_hide_why_the_others_do_not(study, fitted, tmp_path):
    """Probe ids, of which an id map translates three."""
    data = pd.read_csv(study / "whole.tsv", sep="\t", index_col=0)
    probes = [f"{200000 + k}_at" for k in range(len(data))]
    data.set_axis(pd.Index(probes, name="probe")).to_csv(tmp_path / "probes.tsv", sep="\t")
    used = np.flatnonzero(fitted.columns_.any(axis=0))[:3]
    lines = [f"{probes[at]}\t{GENES[at]}\n" for at in used]
    (tmp_path / "map.tsv").write_text("probe\tsymbol\n" + "".join(lines))
    done = run("score", study / "fit", tmp_path / "probes.tsv", "--id-map", tmp_path / "map.tsv")
    assert "The data have probe ids, the modules have gene symbols: translate" in done.stderr


def test_a_missing_value_of_one_of_two_samples_does_not_hide_other_genes(study, fitted, tmp_path):
    data = pd.read_csv(study / "whole.tsv", sep="\t", index_col=0)[["s1", "s2"]]
    gene = GENES[int(np.flatnonzero(fitted.columns_[0])[0])]
    data.loc[gene, "s1"] = np.nan
    data.to_csv(tmp_path / "two.tsv", sep="\t")
    data.drop(index=gene).to_csv(tmp_path / "without.tsv", sep="\t")
    found = [run("score", study / "fit", tmp_path / name).stdout for name in ("two.tsv", "without.tsv")]
    assert found[0] == found[1]
    assert "module_3" in found[0]
