"""netbic associate and netbic fit --sample-info: sample tables from files to associations.tsv."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

import netbic
from netbic.association.associate import associate_scores
from netbic.association.stored import stored_record, stored_samples, stored_scores, stored_variables
from support.commands import run, run_successfully
from support.output_folders import contents, fit


@pytest.fixture
def labels(cohort):
    """The first eight samples carry the module of the fixture `cohort`."""
    path = cohort / "labels.csv"
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"name": [f"s{k}" for k in range(20)], "drug": ["A"] * 8 + ["B"] * 12})
    table["age"] = generator.integers(20, 80, 20)
    table["grade"] = generator.choice(["low", "middle", "high"], 20)
    table["months"], table["dead"] = np.r_[np.arange(1.0, 9), np.arange(30.0, 42)], 1
    table.loc[3, "age"] = np.nan
    table.to_csv(path, index=False)
    return path


def test_associate_writes_tables_and_prints_the_strongest(results, labels):
    done = run_successfully("associate", results, "--sample-info", labels, "--survival", "months,dead")
    table = netbic.io.read_table(results / "associations.tsv")
    assert list(table.columns)[:5] == ["module", "variable", "level", "test", "n"]
    assert set(table["variable"]) == {"drug", "age", "grade", "months"}
    lines = done.output.splitlines()
    assert "sample table: 20 rows x 5 columns" in lines
    assert "matched: 20 of 20 samples (100%)" in lines
    assert "age: numeric (numbers); missing in 1 sample" in lines
    assert any(line.startswith("drug: A is higher in module 1 (AUC ") for line in lines)
    assert any(line.startswith("months: the risk rises with module 1 (hazard ratio per sd ") for line in lines)
    info = netbic.io.read_sample_info(results / "sample_info.tsv")
    assert info.index.tolist() == [f"s{k}" for k in range(20)]
    expected = netbic.io.read_sample_info(labels)
    pd.testing.assert_frame_equal(info, expected, check_names=False, check_dtype=False)
    record = json.loads((results / "run.json").read_text())
    assert {"associations.tsv", "sample_info.tsv", "associations.json"} <= set(record["files"])
    found = associate_scores(
        *stored_scores(results), netbic.io.read_sample_info(labels), survival=("months", "dead")
    ).table
    pd.testing.assert_frame_equal(table.fillna({"level": ""}), found, check_dtype=False)


def test_fit_with_a_sample_table_equals_fit_and_associate(cohort, results, labels, tmp_path):
    options = ("--sample-info", labels, "--variables", "drug,grade", "--types", "grade=low<middle<high")
    options += ("--adjust", "age", "--no-report")
    done = fit(cohort, tmp_path / "both", *options)
    assert done.exit_code == 0, done.output
    run_successfully("associate", results, *options[:-1])
    for name in ("associations.tsv", "sample_info.tsv", "associations.json"):
        assert (results / name).read_bytes() == (tmp_path / "both" / name).read_bytes()
    assert "grade: ordered (as given): low < middle < high" in done.output
    assert json.loads((tmp_path / "both" / "run.json").read_text())["inputs"]["sample_info"] == str(labels)
    table = netbic.io.read_table(results / "associations.tsv")
    assert set(table["test"]) == {"partial Spearman", "linear model", "linear model, level"}
    assert (table["n"] == 19).all()
    assert json.loads((results / "associations.json").read_text())["adjusted_for"] == ["age"]


def test_further_variables_are_added_to_the_tests(results, labels):
    run_successfully("associate", results, "--sample-info", labels, "--survival", "months,dead")
    first, info = (netbic.io.read_table(results / name) for name in ("associations.tsv", "sample_info.tsv"))
    table = pd.read_csv(labels).assign(stage=["I", "II", "III", "IV"] * 5)
    table["drug"] = table["drug"].replace("B", "C")  # not tested again: the table of samples keeps what was tested
    table["age"] += 1
    table.drop(columns="grade").to_csv(labels, index=False)
    done = run_successfully("associate", results, "--sample-info", labels, "--variables", "stage,age")
    n_age, n_stage = 4, 2  # two modules; Spearman and Pearson, Spearman
    kept = first[first["variable"] != "age"]
    said = f"{n_age + n_stage} tests of 2 variables, those of age in place of earlier ones, added to {len(kept)} tests"
    assert f"/associations.tsv: {said} of 3 variables" in done.output
    both = netbic.io.read_table(results / "associations.tsv")
    assert len(both) == len(kept) + n_age + n_stage
    columns = [name for name in both if name != "q_all"]
    pd.testing.assert_frame_equal(both[: len(kept)][columns], kept[columns].reset_index(drop=True))
    np.testing.assert_allclose(both["q_all"], false_discovery_control(both["p"]))
    after = netbic.io.read_table(results / "sample_info.tsv")
    assert after[["drug", "grade", "months", "dead"]].equals(info[["drug", "grade", "months", "dead"]])
    assert after["stage"].tolist() == table["stage"].tolist()
    assert after["age"].dropna().tolist() == table["age"].dropna().tolist()
    variables, problems = stored_variables(stored_samples(results), stored_record(results))
    assert problems == []
    assert {each.name: each.kind for each in variables} == {
        "drug": "categorical", "age": "numeric", "grade": "ordered", "stage": "ordered", "months": "survival"
    }  # fmt: skip
    run_successfully("plot", results, "survival", "--out", results.parent / "survival.svg")


def test_named_tests_are_written_beside_the_others(results, labels):
    run_successfully("associate", results, "--sample-info", labels)
    before = contents(results)
    given = ("associate", results, "--sample-info", labels, "--variables", "drug", "--adjust", "age", "--name")
    done = run_successfully(*given, "adjusted")
    assert done.output.strip().splitlines()[-1].endswith("associations_adjusted.tsv: 6 tests of 1 variable")
    added = {name: content for name, content in contents(results).items() if before.get(name) != content}
    assert set(added) == {"associations_adjusted.tsv", "associations_adjusted.json", "run.json"}
    assert set(netbic.io.read_table(results / "associations_adjusted.tsv")["test"]) == {
        "linear model", "linear model, level"
    }  # fmt: skip
    assert run("associate", results, "--sample-info", labels, "--name", "adjusted").exit_code == 2
    assert "cannot be part of the name of a file" in run(*given, "../x").output
    before, after = (netbic.io.read_table(results / f"associations{name}.tsv") for name in ("", "_adjusted"))
    lines = [line for line in done.output.splitlines() if "; adjusted: " in line]
    tests = before[(before["test"] == "Mann-Whitney") & (before["variable"] == "drug") & (before["effect"] > 0.5)]
    assert len(lines) == (tests["q"] <= 0.05).sum()
    best = tests.sort_values("p", kind="stable").iloc[0]
    same = after[(after["level"] == best["level"]) & (after["module"] == best["module"])].iloc[0]
    what = f"{best['level']} is higher in module {best['module']}"
    assert lines[0].startswith(f"  drug: {what} (AUC {best['effect']:.2f}, q = ")
    assert f"; adjusted: standardised difference {same['effect']:.2f}, q = " in lines[0]
    figure = results.parent / "adjusted.svg"
    run_successfully("plot", results, "associations", "--name", "adjusted", "--out", figure)
    assert "Adjusted for age" in figure.read_text()
    failed = run("plot", results, "associations", "--name", "other", "--out", figure, "--force")
    assert "has no associations_other.tsv (there are: adjusted)" in failed.output
    done = fit(labels.parent, results, "--no-report", "--force")
    assert done.exit_code == 0, done.output
    assert not (results / "associations_adjusted.tsv").exists()  # of earlier modules


def test_columns_are_recognised_and_each_guess_says_how_to_change_it(results, labels):
    table = pd.read_csv(labels).rename(columns={"months": "OS.time", "dead": "OS"}).assign(OS=[0, 1] * 10)
    table = table.assign(stage=["I", "II", "III", "IV"] * 5, tmt_plex=list(range(5)) * 4, er_status=[0, 1] * 10)
    table.to_csv(labels, index=False)
    lines = run_successfully("associate", results, "--sample-info", labels).output.splitlines()
    assert "stage: ordered (a known order; --types stage=categorical ignores it): I < II < III < IV" in lines
    assert "OS.time: survival (event: OS, 10 seen; found by their names, --survival none ignores them)" in lines
    assert any(line.startswith("tmt_plex: categorical") and "--types tmt_plex=numeric" in line for line in lines)
    assert any(line.startswith("types are guessed: change one with --types NAME=") for line in lines)
    tests = netbic.io.read_table(results / "associations.tsv").groupby("variable")["test"].agg(set)
    assert "OS" not in tests.index
    assert {"Cox score"} < tests["OS.time"]
    options = ("--survival", "none", "--types", "stage=categorical", "--force")
    run_successfully("associate", results, "--sample-info", labels, *options)
    tests = netbic.io.read_table(results / "associations.tsv").groupby("variable")["test"].agg(set)
    assert not {"OS", "OS.time"} & {*tests.index}
    assert "Kruskal-Wallis" in tests["stage"]


def test_the_obs_of_an_h5ad_file_is_taken_by_itself(cohort, tmp_path):
    anndata = pytest.importorskip("anndata")
    values = pd.read_csv(cohort / "expression.tsv", sep="\t", index_col=0).T
    obs = pd.DataFrame({"drug": pd.Categorical(["A"] * 8 + ["B"] * 12)}, index=values.index)
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(values, obs=obs).write_h5ad(path)
    done = run_successfully("fit", path, "--modules", 2, "--genes", 8, "--no-report", "--out", tmp_path / "out")
    assert "drug: A is higher in module 1" in done.output
    assert (tmp_path / "out" / "associations.tsv").is_file()
    anndata.AnnData(values).write_h5ad(path)
    done = run_successfully("fit", path, "--modules", 2, "--genes", 8, "--no-report", "--out", tmp_path / "plain")
    assert "sample table" not in done.output
    assert not (tmp_path / "plain" / "associations.tsv").exists()


def test_scores_that_are_not_those_of_the_fit_are_refused(results, labels):
    table = netbic.io.read_table(results / "samples.tsv")
    for changed, message in (
        (pd.concat([table] * 3), "several rows of module 1"),
        (table[table["sample"].isin([f"s{k}" for k in range(5)])], "rows for"),
        (table[table["module"] == 1], "scores of 1 of the 2 modules of the fit"),
    ):
        netbic.io.write_table(results / "samples.tsv", changed)
        done = run("associate", results, "--sample-info", labels)
        assert done.exit_code == 1
        assert message in done.output.strip().splitlines()[-1]
        assert done.output.strip().endswith(": fit again")
        assert not (results / "associations.tsv").exists()


def test_bad_sample_tables_are_refused_in_one_line(results, labels):
    before, table = contents(results), pd.read_csv(labels)
    for changed, options, message in (
        (table.assign(name=table["name"].str.replace("s", "GSM")), (), "no sample of the fit"),
        (table.assign(drug="A"), ("--variables", "drug"), "all values are the same ('A')"),
        (table, ("--variables", "drugs"), "has no column 'drugs' (--variables): it has drug"),
        (table, ("--types", "age=big"), "choose categorical, ordered, numeric (--types)"),
        (table, ("--types", "age"), "write NAME=TYPE"),
        (table, ("--survival", "months"), "TIME,EVENT"),
        (table[:1], (), "no column of the sample table can be tested (reasons above)"),
        (table, ("--survival", "months,dead", "--adjust", "dead"), "(--adjust): this would condition on the outcome"),
        (table, ("--types", "grade=low<middle<high<low"), "contain 'low' more than once (--types)"),
    ):
        changed.to_csv(labels, index=False)
        done = run("associate", results, "--sample-info", labels, *options)
        error = done.output.strip().splitlines()[-1]
        assert done.exit_code in (1, 2)
        assert error.startswith("Error: ")
        assert message in error
        assert contents(results) == before


def test_a_bad_sample_table_is_refused_before_the_fit(cohort, labels, tmp_path):
    pd.read_csv(labels).assign(name="other").to_csv(labels, index=False)
    done = fit(cohort, tmp_path / "out", "--sample-info", labels, "--no-report")
    assert done.exit_code == 1
    assert not (tmp_path / "out").exists()
    done = fit(cohort, tmp_path / "out", "--variables", "drug", "--no-report")
    assert "--variables needs --sample-info" in done.output


def test_the_sample_table_is_not_overwritten(results, labels):
    table = netbic.io.read_sample_info(labels)
    own = results / "sample_info.tsv"
    table.to_csv(own, sep="\t")
    before = own.read_bytes()
    done = run("associate", results, "--sample-info", own)
    assert done.exit_code == 2
    assert "is an input" in done.output
    done = run("associate", results, "--sample-info", labels)
    assert "netbic did not write" in done.output
    assert own.read_bytes() == before


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Ten cells of each of 24 donors, who differ; the drug has no effect."""
    folder = tmp_path_factory.mktemp("cells")
    generator = np.random.default_rng(3)
    donor = np.repeat(np.arange(24), 10)
    values = generator.standard_normal((240, 60))
    values[:, :20] += generator.standard_normal(24)[donor][:, None]
    names = [f"c{k}" for k in range(240)]
    pd.DataFrame(values.T, index=pd.Index([f"g{k}" for k in range(60)], name="gene"), columns=names).to_csv(
        folder / "expression.tsv", sep="\t"
    )
    drug, grade = np.where(donor % 2 == 0, "yes", "no"), generator.choice(["low", "high", "unkown", "Unknown"], 240)
    table = pd.DataFrame({"donor": [f"d{k}" for k in donor], "drug": drug, "grade": grade}, index=names)
    table.rename_axis("cell").to_csv(folder / "cells.tsv", sep="\t")
    return folder


SMALL = ("--modules", 1, "--genes", 20, "--no-report", "--verdict")


def fit_cells(folder, out, *more):
    return run("fit", folder / "expression.tsv", "--sample-info", folder / "cells.tsv", *SMALL, "--out", out, *more)


def test_cells_of_a_donor_are_averaged_on_request(cells, tmp_path):
    done = fit_cells(cells, tmp_path / "cells", "--variables", "drug,grade")
    warning = (
        "drug is the same in all samples of one donor (24 different ones): p-values count samples as independent, "
        "and are too small if those of one donor are similar; test their averages with --by donor"
    )
    assert warning in done.output.splitlines(), done.output
    done = fit_cells(cells, tmp_path / "donors", "--by", "donor")
    assert done.exit_code == 0, done.output
    assert "the same in all samples" not in done.output
    assert "tests compare averages of 24 groups of samples with the same donor" in done.output
    assert "donor: left out (each of its values is one average)" in done.output
    assert "grade differs among samples of the same donor, and is not tested: test single samples, without --by" in (
        done.output
    )
    assert "--variables grade --name cells" in done.output
    table = netbic.io.read_table(tmp_path / "donors" / "associations.tsv")
    assert set(table["variable"]) == {"drug"}
    assert set(table["n"]) == {24}
    record = json.loads((tmp_path / "donors" / "run.json").read_text())
    assert record["inputs"]["by"] == ["donor"]
    assert json.loads((tmp_path / "donors" / "associations.json").read_text())["by"] == ["donor"]
    frame = pd.read_csv(cells / "expression.tsv", sep="\t", index_col=0).T
    donors = pd.read_csv(cells / "cells.tsv", sep="\t", index_col=0)["donor"].to_numpy()
    model = netbic.load(tmp_path / "donors")
    expected = netbic.selection.verdicts(model, frame, groups=donors, random_state=0, feature_name="gene").table
    verdicts = netbic.io.read_table(tmp_path / "donors" / "verdicts.tsv")
    assert verdicts["score"].tolist() == pytest.approx(expected["score"].tolist())
    again = ("associate", tmp_path / "cells", "--sample-info", cells / "cells.tsv", "--by", "donor")
    before = contents(tmp_path / "cells")
    refused = run(*again)
    assert refused.exit_code == 2
    assert "has tests of single samples, not adjusted; these are of averages of samples with the same" in refused.output
    assert refused.output.strip().endswith("--name NAME writes these beside them, --force replaces them")
    assert contents(tmp_path / "cells") == before
    run_successfully(*again, "--force")
    pd.testing.assert_frame_equal(netbic.io.read_table(tmp_path / "cells" / "associations.tsv"), table)


def test_the_averages_of_two_conditions_of_each_donor_keep_donors_together(cells):
    from netbic.cli.samples import SampleTable

    table = netbic.io.read_sample_info(cells / "cells.tsv").assign(condition=["before", "after"] * 120)
    table.iloc[[3, 8], 0] = None
    tests = {"adjust": ["donor"], "by": ["donor", "condition"]}
    units = SampleTable(table, table, tests, "cells.tsv", None).units()
    known = table["donor"].notna().to_numpy()
    assert (units[known] == table["donor"][known].to_numpy()).all()
    assert len(set(units)) == 24 + 2


def test_columns_that_vary_in_a_group_are_refused_before_the_fit(cells, tmp_path):
    done = fit_cells(cells, tmp_path / "out", "--by", "donor", "--variables", "grade")
    assert done.exit_code == 1
    assert "'grade' has several values among samples of the same donor: add it to --by" in done.output
    done = fit_cells(cells, tmp_path / "out", "--by", "patient")
    assert "the sample table has no column 'patient' (--by): it has donor" in done.output
    assert not (tmp_path / "out").exists()


def test_words_for_missing_values_are_named(cells, tmp_path, results):
    order = ("--variables", "grade", "--types", "grade=low<high")
    done = fit_cells(cells, tmp_path / "out", *order)
    assert done.exit_code == 1
    assert "'unkown', which is not among the levels low, high: name all levels (--types)" in done.output
    assert "missing value (--na)" in done.output
    done = fit_cells(cells, tmp_path / "out", *order, "--na", "unkown,unknown", "--no-verdict")
    table = pd.read_csv(cells / "cells.tsv", sep="\t")["grade"]
    number = int(table.isin(["unkown", "Unknown"]).sum())
    assert f"grade: ordered (as given): low < high; missing in {number} samples" in done.output
    for word in ("unkown", "Unknown"):
        assert f"'{word}' ({(table == word).sum()} samples)" in done.output


def test_the_words_in_the_help_are_those_of_the_reader():
    from netbic.cli import associate
    from netbic.io.samples import NA_VALUES

    (option,) = [each for each in associate.params if each.name == "na_values"]
    assert option.show_default == ", ".join(NA_VALUES)
