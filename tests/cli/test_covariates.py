"""netbic fit --covariates removes columns of the sample table; netbic score asks for them again."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import netbic
from support.batches import cohort
from support.commands import run, run_successfully

X, TABLE = cohort(5, n_samples=80)
SAMPLES, GENES = [f"s{number}" for number in range(80)], [f"g{number}" for number in range(90)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    pd.DataFrame(X.T, index=pd.Index(GENES, name="gene"), columns=SAMPLES).to_csv(folder / "expression.tsv", sep="\t")
    table = TABLE.assign(plate=TABLE["batch"].cat.codes + 1, note="").set_axis(pd.Index(SAMPLES, name="sample"))
    table.loc["s7", "note"] = "thawed"
    table.to_csv(folder / "samples.tsv", sep="\t")
    table.drop("s3").to_csv(folder / "fewer.tsv", sep="\t")
    table.assign(batch=table["batch"].astype(str).replace("c", "unknown")).to_csv(folder / "unknown.tsv", sep="\t")
    return folder


def fit(files, out, *more, table="samples.tsv"):
    small = ("--modules", 2, "--genes", 20, "--no-report")
    return run("fit", files / "expression.tsv", "--sample-info", files / table, *small, "--out", out, *more)


def test_the_fit_equals_that_of_the_library(files, tmp_path):
    done = fit(files, tmp_path / "out", "--covariates", "batch,age", "--verdict")
    assert done.exit_code == 0, done.output
    assert "covariate batch: 3 groups (a, b, c)" in done.output
    assert "covariate age: a number" in done.output
    frame = pd.read_csv(files / "expression.tsv", sep="\t", index_col=0).T
    model = netbic.SparseGraphSVD(2, n_columns=20).fit(frame, covariates=TABLE.set_axis(SAMPLES))
    loaded = netbic.load(tmp_path / "out")
    np.testing.assert_allclose(loaded.components_, model.components_, atol=1e-10)
    assert loaded.covariate_coding_.columns == model.covariate_coding_.columns
    scores = pd.read_csv(tmp_path / "out" / "samples.tsv", sep="\t")["score"].to_numpy().reshape(2, -1)
    for level in "abc":
        np.testing.assert_allclose(scores[:, (TABLE["batch"] == level).to_numpy()].mean(axis=1), 0, atol=0.05)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["settings"]["covariates"] == "batch,age"
    done = fit(files, tmp_path / "out", "--covariates", "age", "--resume")
    assert done.exit_code == 2
    assert "was started with other data or settings (covariates" in done.output


def test_scores_of_new_samples(files, tmp_path):
    assert fit(files, tmp_path / "out", "--covariates", "batch").exit_code == 0
    given = ("score", tmp_path / "out", files / "expression.tsv")
    run_successfully(*given, "--sample-info", files / "samples.tsv", "--out", tmp_path / "scores.tsv")
    scores = pd.read_csv(tmp_path / "scores.tsv", sep="\t").iloc[:, 1:].to_numpy()
    frame = pd.read_csv(files / "expression.tsv", sep="\t", index_col=0).T
    expected = netbic.get.scores_df(netbic.load(tmp_path / "out"), frame)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    done = run(*given)
    assert done.exit_code == 2
    assert done.output == "Error: the modules were found with covariates (batch): give --sample-info\n"
    assert fit(files, tmp_path / "plain").exit_code == 0
    done = run("score", tmp_path / "plain", files / "expression.tsv", "--sample-info", files / "samples.tsv")
    assert "the modules were found without covariates" in done.output


def test_codes_of_groups_are_groups_unless_they_are_called_numbers(files, tmp_path):
    done = fit(files, tmp_path / "groups", "--covariates", "plate")
    assert "covariate plate: 3 groups (1, 2, 3)" in done.output, done.output
    done = fit(files, tmp_path / "number", "--covariates", "plate", "--types", "plate=numeric")
    assert "covariate plate: a number" in done.output, done.output
    run_successfully("score", tmp_path / "groups", files / "expression.tsv", "--sample-info", files / "samples.tsv")
    done = fit(files, tmp_path / "unknown", "--covariates", "batch", table="unknown.tsv")
    assert "covariate batch: 3 groups (a, b, unknown)" in done.output


def test_problems_are_one_line_and_leave_no_folder(files, tmp_path):
    table = pd.read_csv(files / "samples.tsv", sep="\t")
    table.assign(batch=table["batch"].mask(table.index < 24)).to_csv(files / "unlabelled.tsv", sep="\t", index=False)
    known = "it has plate, batch, age, note (did you mean plate?)"
    for option, name, table, message in (
        ("covariates", "plaet", "samples.tsv", f"the sample table has no column 'plaet' (--covariates): {known}"),
        ("covariates", "note", "samples.tsv", "covariate 'note' is missing for 79 samples ('s0', 's1', 's2' and"),
        ("covariates", "batch", "fewer.tsv", "covariate 'batch' is missing for 1 sample ('s3'): fill it in"),
        ("studies", "batch", "unlabelled.tsv", "studies has no label for 24 samples ('s0', 's1', 's2' and 21 more)"),
        ("studies", "bacth", "samples.tsv", "no column 'bacth' (--studies): it has batch, age, plate, note"),
    ):
        done = fit(files, tmp_path / "out", f"--{option}", name, table=table)
        assert "each centred" not in done.output
        assert done.exit_code
        assert message in done.output
        assert "Traceback" not in done.output
        assert done.output.count("Error: ") == 1
        assert not (tmp_path / "out").exists()
    for command in ("fit", "tune"):
        done = run(command, files / "expression.tsv", "--covariates", "batch", "--out", tmp_path / "out")
        assert done.output.endswith("Error: --covariates needs a sample table: use --sample-info\n")


def tune(files, out, *more):
    grid = ("--modules", 2, "--genes", "10,20", "--folds", 3)
    return run("tune", files / "expression.tsv", *grid, "--out", out, *more)


def test_tuning_equals_that_of_the_library(files, tmp_path):
    given = ("--sample-info", files / "samples.tsv", "--covariates", "batch,age")
    done = tune(files, tmp_path / "out", *given)
    assert done.exit_code == 0, done.output
    for line in ("matched: 80 of 80 samples (100%)", "covariate batch: 3 groups (a, b, c)", "covariate age: a number"):
        assert f"{line}\n" in done.output
    assert "next: netbic fit ... --covariates batch,age " in done.output
    frame = pd.read_csv(files / "expression.tsv", sep="\t", index_col=0).T
    model = netbic.SparseGraphSVD(2, random_state=0)
    grid = {"n_columns": [10, 20]}
    found = netbic.selection.tune(model, frame, grid, covariates=TABLE.set_axis(SAMPLES), n_folds=3, random_state=0)
    scores = netbic.io.read_table(tmp_path / "out" / "tuning.tsv")["score"]
    np.testing.assert_allclose(scores, found.table["score"], atol=1e-10)
    for kind, message in (("batch=numeric", "'batch' has the value "), ("age=big", "'big' is not a type of variable")):
        done = tune(files, tmp_path / "wrong", *given, "--types", kind)
        assert done.exit_code == 1
        assert f"Error: {message}" in done.output
    done = tune(files, tmp_path / "wrong", *given[:2])
    assert done.output == "Error: --sample-info is used for covariates only: add --covariates, or omit it\n"
    assert not (tmp_path / "wrong").exists()


def test_categories_of_obs_are_groups_also_if_they_are_integers(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(pd.DataFrame(X, index=SAMPLES, columns=GENES))
    cells.obs["run"] = pd.Categorical(np.arange(80) % 2 + 7)
    cells.write_h5ad(tmp_path / "x.h5ad")
    small = ("--modules", 1, "--genes", 20, "--no-report", "--no-verdict", "--covariates", "run")
    done = run_successfully("fit", tmp_path / "x.h5ad", *small, "--out", tmp_path / "out")
    assert "covariate run: 2 groups (7, 8)" in done.output


@pytest.fixture
def simulated(tmp_path):
    """Three studies, x.tsv and samples.tsv: labels of whole studies, labels of one study, and the age."""
    simulated = netbic.simulate.studies((40, 60, 80), 300, lives=((0, 1, 2), (1, 2), (0,)), random_state=0)
    simulated.X.T.rename_axis("gene").to_csv(tmp_path / "x.tsv", sep="\t")
    generator, labels = np.random.default_rng(0), simulated.studies
    table = pd.DataFrame({"sample": simulated.X.index, "cohort": labels, "platform": labels == "study_2"})
    table["pam50"] = np.where(labels == "study_1", generator.choice(list("abcdefghi"), len(labels)), None)
    table["age"] = generator.normal(60, 9, len(labels)).round(2)
    table.to_csv(tmp_path / "samples.tsv", sep="\t", index=False)
    return simulated


def test_studies_of_a_sample_table(simulated, tmp_path):
    given = [tmp_path / "x.tsv", "--sample-info", tmp_path / "samples.tsv"]
    options = ["--modules", 4, "--genes", 50, "--zscore", "--verdict", "--out", tmp_path / "out"]
    lines = run_successfully("fit", *given, "--studies", "cohort", *options).output
    assert "3 studies (study_1: 40, study_2: 60, study_3: 80)" in lines
    assert "shared by 3 of 3 studies" in lines
    summary = netbic.io.read_table(tmp_path / "out" / "summary.tsv")
    model = netbic.load(tmp_path / "out")
    expected = netbic.SparseGraphSVD(4, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    assert summary["studies"].tolist() == netbic.storage.summary_table(expected)["studies"].tolist()
    written = netbic.io.read_table(tmp_path / "out" / "studies.tsv")
    pd.testing.assert_frame_equal(written, expected.studies_, check_dtype=False)
    assert (summary["verdict"] == "strong").tolist() == [True, True, True, False]
    page = (tmp_path / "out" / "report.html").read_text()
    cards = re.findall(r'<p class="studies"><b>Studies</b> <bdi>(.*?)</bdi>', page)
    assert cards == summary["studies"][summary["verdict"] != "doubtful"].tolist()
    run_successfully("score", tmp_path / "out", *given, "--out", tmp_path / "scores.tsv")
    scores = netbic.io.read_table(tmp_path / "scores.tsv").iloc[:, 1:].to_numpy()
    np.testing.assert_allclose(scores, netbic.get.scores_df(expected, simulated.X), atol=1e-6)
    alone = run("fit", given[0], "--studies", "cohort", *options, "--force")
    assert alone.exit_code == 2
    assert "needs a sample table" in alone.output


@pytest.mark.usefixtures("simulated")
def test_labels_of_whole_studies_are_not_tested(tmp_path):
    given = [tmp_path / "x.tsv", "--sample-info", tmp_path / "samples.tsv"]
    options = ["--modules", 2, "--genes", 50, "--no-report", "--no-verdict", "--studies", "cohort", "--force"]
    fitted = run_successfully("fit", *given, *options, "--out", tmp_path / "out").output
    again = run_successfully("associate", tmp_path / "out", *given[1:]).output
    for lines in (fitted, again):
        for name in ("cohort", "platform"):
            reason = "left out (the same in all samples of each study, and each study is centred)"
            assert f"{name}: {reason}" in lines
        assert "same in all samples of one" not in lines
    found = netbic.io.read_table(tmp_path / "out" / "associations.tsv")
    assert set(found["variable"]) == {"pam50", "age"}
    asked = run_successfully("fit", *given, *options, "--variables", "cohort,age", "--out", tmp_path / "out").output
    assert "cohort: categorical" in asked
    assert set(netbic.io.read_table(tmp_path / "out" / "associations.tsv")["variable"]) == {"cohort", "age"}
