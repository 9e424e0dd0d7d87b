"""Sample tables and scores in the folder of a fit are read as they were tested, whatever their labels look like."""

import re
import shutil

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.association.associate import associate_scores, wide
from netbic.association.stored import stored_record, stored_samples, stored_scores, stored_variables, write_associations
from netbic.association.variables import read_variables
from netbic.errors import InputError
from netbic.report.associations import SampleTable
from support.commands import run, run_successfully

N = 60
SIZES = ["2, small", "10, middle", "1, large"]


def labels():
    generator = np.random.default_rng(0)
    flags = generator.choice([0.0, 1.0], N)
    flags[3] = np.nan
    return pd.DataFrame(
        {
            "stage": pd.Categorical(generator.choice(["01", "02", "10"], N), ["01", "02", "10"], ordered=True),
            "arm": pd.Categorical(generator.choice(["", "treated"], N)),
            "group": pd.Categorical(generator.choice(["", "treated", "placebo"], N)),
            "size": pd.Categorical(generator.choice(SIZES, N), SIZES, ordered=True),
            "code": generator.choice(["01", "02"], N),
            "drug": generator.choice(["None", "aspirin", "B12 "], N),
            "flag": flags,
            "batch": pd.Categorical(generator.choice([1.0, 2.5], N)),
            "age": generator.normal(60, 10, N),
            "days": generator.exponential(100, N).round(),
            "dead": generator.choice([0.0, 1.0], N),
        }
    )


@pytest.fixture(scope="module")
def study():
    return netbic.simulate.cohort(N, 200, n_modules=2, module_samples=20, strength=2, random_state=0)


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    """A fit of an AnnData file, the obs of which nobody asked about except for survival."""
    place = tmp_path_factory.mktemp("stored")
    anndata.AnnData(study.expression, obs=labels().set_axis(study.expression.index)).write_h5ad(place / "x.h5ad")
    options = ("--modules", "2", "--genes", "40", "--no-verdict", "--survival", "days,dead")
    run_successfully("fit", place / "x.h5ad", "--out", place / "out", *options)
    return place / "out"


def test_variables_are_those_of_the_tests(folder, study):
    tested = {variable.name: variable for variable in read_variables(labels(), survival=("days", "dead"))}
    del tested["arm"]  # one level only
    found, problems = stored_variables(stored_samples(folder), stored_record(folder))
    assert problems == []
    assert [variable.name for variable in found] == list(tested)
    for variable in found:
        own = tested[variable.name]
        assert (variable.kind, variable.levels) == (own.kind, own.levels)
        np.testing.assert_array_equal(variable.values, own.values)
        assert (variable.events is None) == (own.events is None)
    levels = {variable.name: variable.levels for variable in found}
    assert levels | {"stage": ("01", "02", "10"), "size": tuple(SIZES), "code": ("01", "02")} == levels
    assert levels | {"drug": ("B12", "None", "aspirin"), "group": ("placebo", "treated")} == levels
    assert levels | {"flag": ("0", "1"), "batch": ("1", "2.5")} == levels
    table = netbic.get.associations_df(folder)  # labels of digits are text there, too
    assert set(table.loc[table["variable"] == "code", "level"]) == {"", "01", "02"}
    assert set(table.loc[table["variable"] == "flag", "level"]) == {"", "0", "1"}
    assert (folder / "report.html").is_file()
    info = netbic.exports.Results.of(folder).sample_info  # annotations have the same types
    assert info["size"].cat.ordered
    assert info["size"].cat.categories.tolist() == SIZES
    assert (info["drug"] == "None").sum() == (labels()["drug"] == "None").sum()
    assert info["age"].tolist() == labels()["age"].tolist()
    assert info["dead"].tolist() == [str(int(value)) for value in labels()["dead"]]


def test_a_variable_that_cannot_be_read_is_left_out_with_a_reason(folder):
    info, record = stored_samples(folder), stored_record(folder)
    tests = netbic.io.read_table(folder / "associations.tsv")
    changed = info.assign(code=info["code"].astype(str).replace("01", "other"), age="old")
    table = SampleTable.of(changed.drop(columns="flag"), tests, record, N)
    assert [text.split(" (")[0] for text in table.not_shown] == ["'code'", "'flag'", "'age'"]
    assert "run netbic associate again" in table.not_shown[0]
    assert {"stage", "size", "days"} <= {variable.name for variable in table.variables}
    assert SampleTable.of(info, tests, record, N + 1) is None  # of other samples
    assert SampleTable.of(info, tests.iloc[:0], {}, N).variables == []  # nothing was tested


@pytest.mark.parametrize("step", ["netbic.association.stored.write_associations", "netbic.report.write_report"])
def test_an_error_after_the_search_does_not_lose_the_modules(step, study, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("bad\nluck")

    monkeypatch.setattr(step, fail)
    study.expression.T.to_csv(tmp_path / "x.csv")
    table = pd.DataFrame({"group": np.arange(N) % 2}, index=study.expression.index)
    table.to_csv(tmp_path / "labels.csv")
    options = ("--modules", "1", "--genes", "40", "--no-verdict", "--sample-info", tmp_path / "labels.csv")
    done = run("fit", tmp_path / "x.csv", "--out", tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    assert "(bad luck); all else is written: run netbic " in done.output
    assert netbic.io.finished_record(tmp_path / "out") is not None
    assert len(netbic.load(tmp_path / "out").components_) == 1
    assert (tmp_path / "out" / "associations.tsv").is_file() == ("report" in step)
    assert (tmp_path / "out" / "report.html").is_file() == ("report" not in step)


@pytest.fixture
def long(study):
    model = netbic.SparseGraphSVD(2, n_columns=40).fit(study.expression)
    return netbic.selection.sample_groups(model, study.expression)


def test_scores_of_a_sorted_file_are_the_same_everywhere(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    table = netbic.io.read_table(folder / "samples.tsv")
    netbic.io.write_table(copy / "samples.tsv", table.sort_values(["sample", "module"], ascending=False))
    pd.testing.assert_frame_equal(netbic.get.scores_df(copy), netbic.get.scores_df(folder))
    scores = stored_scores(folder)[0]
    pd.testing.assert_frame_equal(stored_scores(copy)[0].loc[scores.index], scores)
    matches = netbic.compare(folder, copy).table
    np.testing.assert_allclose(matches["score_correlation"].to_numpy(dtype=float), 1)
    run_successfully("report", copy)
    missing = [line for line in (copy / "report.html").read_text().splitlines() if "(samples.tsv), which" in line]
    assert missing == []


def test_scores_that_are_not_one_per_module_and_sample_are_refused(long):
    for table, message in (
        (long.iloc[1:], "119 rows for 2 modules and 59 samples"),
        (pd.concat([long, long.iloc[:1]]), "several rows of module 1 and sample 'sample000'"),
        (long.assign(score="high"), "not numbers"),
        (long.drop(columns="group"), "no column group"),
        (long.iloc[:0], "no modules"),
    ):
        with pytest.raises(InputError, match=message):
            wide(table)
    with pytest.raises(InputError, match="one row for each module and sample"):
        wide(long, [f"other{k}" for k in range(N)])
    scores = wide(long)[0]
    np.testing.assert_array_equal(wide(long.assign(sample="s"))[0].to_numpy(), scores.to_numpy())  # equal names
    shuffled = long.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(wide(shuffled, scores.index)[0], scores)


HOSTILE = {"red": "\x1b[31mred", "turned": "\N{RIGHT-TO-LEFT OVERRIDE}turned", "null": "a\0b", "other": "\uffff\ud800"}


def test_control_characters_of_labels_reach_neither_terminal_nor_files(folder, tmp_path):
    samples = stored_samples(folder).index
    values = np.resize(list(HOSTILE.values()), N)
    table = pd.DataFrame({"colour": values, "kind\x1b": np.arange(N) % 2}, index=samples)
    found = associate_scores(*stored_scores(folder), table)
    assert found.levels["colour"] == ("\\uffff\\ud800", "\\x1b[31mred", "a\\x00b", HOSTILE["turned"])
    assert all(line.isprintable() for line in found.lines())
    assert any("kind\\x1b: categorical" in line for line in found.lines())
    copy = shutil.copytree(folder, tmp_path / "copy")
    write_associations(found, copy)
    variables, problems = stored_variables(stored_samples(copy), stored_record(copy))
    assert problems == []
    assert {each.name: each.levels for each in variables}["colour"] == found.levels["colour"]
    netbic.report.write_report(copy)
    page = (copy / "report.html").read_text()
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)
    table[["colour"]].replace({HOSTILE["null"]: "b", HOSTILE["other"]: "c"}).to_parquet(tmp_path / "labels.parquet")
    done = run_successfully("associate", copy, "--sample-info", tmp_path / "labels.parquet")
    assert not re.search("[\x1b\u202e]", done.output)


def test_levels_of_samples_that_belong_to_no_average_are_missing(folder, tmp_path):
    scores, groups = stored_scores(folder)
    donors = np.array([f"d{k % 10}" for k in range(N)], dtype=object)
    drug = np.where(np.arange(N) % 10 < 5, "yes", "no").astype(object)
    donors[:3], drug[:3] = None, "other"
    table = pd.DataFrame({"donor": donors, "drug": drug}, index=scores.index)
    found = associate_scores(scores, groups, table, variables="drug", by="donor")
    write_associations(found, tmp_path)
    variables, problems = stored_variables(stored_samples(tmp_path), stored_record(tmp_path))
    assert problems == []
    assert variables[0].levels == ("no", "yes")
    assert variables[0].known.tolist() == [False] * 3 + [True] * (N - 3)
