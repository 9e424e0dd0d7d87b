"""Associations tested again in another study, and scores of other platforms."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.comparison import repeat_associations, standardised_scores
from support.commands import run, run_successfully


def sample_table(scores, strength, generator):
    """Labels of which `type` and survival follow the first module, and `site` follows none."""
    own = strength * (scores - scores.mean()) / scores.std()
    time = generator.exponential(np.exp(-own))
    limit = generator.exponential(2, own.size)
    return pd.DataFrame(
        {
            "type": np.where(own + generator.normal(size=own.size) > 0, "A", "B"),
            "site": generator.choice(["x", "y"], own.size),
            "months": np.minimum(time, limit),
            "dead": (time <= limit).astype(int),
        },
        index=scores.index,
    )


@pytest.fixture(scope="module")
def tables(study, model):
    """Sample tables of both halves, and the other half on another platform, without some genes."""
    generator = np.random.default_rng(0)
    halves = study.expression[:200], study.expression[200:]
    scores = [pd.Series(model.transform(half)[:, 0], index=half.index) for half in halves]
    first, second = (sample_table(each, 1.0, generator) for each in scores)
    units = generator.uniform(0.2, 5, 900)
    return first, second, (halves[1] * units + generator.normal(0, 50, 900)).iloc[:, 90:]


def test_effects_are_those_of_a_plain_test_of_standardised_scores(model, study, tables):
    first, second, other = tables
    tested = netbic.associate(model, study.expression[:200], first, survival=("months", "dead"))
    scores = netbic.replicate(model, other, random_state=0).scores
    found = repeat_associations(tested.table, scores, second, survival=("months", "dead"))
    own = netbic.association.associate_scores(scores, None, second, survival=("months", "dead")).table
    keys = ["variable", "level", "module", "test"]
    both = found.table.merge(own, on=keys, suffixes=("", "_plain"))
    assert len(both) == len(found.table)
    for name in ("effect", "ci_low", "ci_high", "p", "n"):
        np.testing.assert_allclose(both[f"{name}_other"], both[f"{name}_plain"])
    there = found.table.merge(tested.table, on=keys, suffixes=("", "_plain"))
    np.testing.assert_array_equal(there["effect"], there["effect_plain"])
    holds = found.table.set_index(["variable", "module"])["holds"]
    assert holds["type", 1].all()
    assert holds["months", 1].all()
    assert not found.table.loc[found.table["variable"] == "site", "holds"].any()
    alone = found.table[(found.table["q"] <= 0.05) & (found.table["variable"] == "months")]
    if len(alone) == 1:  # one hypothesis: nothing to adjust for
        assert alone["q_other"].iloc[0] == alone["p_other"].iloc[0]


def test_doubtful_modules_are_marked_and_come_after_others(model, study, tables):
    first, second, other = tables
    tested = netbic.associate(model, study.expression[:200], first, variables="type").table
    tested = tested.assign(q=0.01)  # all modules
    scores = netbic.replicate(model, other, random_state=0).scores
    for doubtful, order in ((1, [2, 3, 1]), (2, [1, 3, 2])):
        found = repeat_associations(tested, scores, second, verdicts={doubtful: "doubtful", 3: "strong"})
        said = [line for line in found.lines() if line.startswith("type: ") and "in module" in line]
        assert [int(line.split("module ")[1][0]) for line in said] == order
        assert [f"module {doubtful} (doubtful):" in line for line in said] == [at == doubtful for at in order]


def test_the_strongest_of_the_fit_come_first_then_others_that_hold_and_the_count(model, study, tables):
    tested = netbic.associate(model, study.expression[:200], tables[0], variables="type").table
    generator = np.random.default_rng(7)
    signs, names = np.repeat([1, -1], 100), [f"s{k}" for k in range(200)]
    strong = generator.normal(size=200) + signs
    main = tested[tested["test"] == "Mann-Whitney"].iloc[[0]]
    rows = [
        main.assign(module=module, effect=0.8, p=p, q=p) for module, p in ((1, 1e-6), (2, 1e-5), (3, 1e-4), (4, 0.01))
    ]
    scores = pd.DataFrame(generator.normal(size=(200, 4)), columns=[1, 2, 3, 4], index=names)
    scores[4] = strong
    level = str(main["level"].item())
    labels = pd.DataFrame({"type": np.where(signs > 0, level, "other")}, index=names)
    found = repeat_associations(pd.concat(rows), scores, labels)
    lines = [line for line in found.lines() if "module" in line]
    assert [int(line.split("module ")[1][0]) for line in lines] == [1, 2, 3, 4]
    assert ["does not hold" in line for line in lines] == [True, True, True, False]
    assert lines[3].endswith("(holds)")
    assert list(found.lines())[-1].startswith("Of 4 associations of the fit (q <= 0.05), 1 holds here")


def test_survival_is_adjusted_here_or_said_to_be_not(model, study, tables):
    """Survival here follows a column of benign and malignant samples, and the scores through it."""
    first, _, other = tables
    tested = netbic.associate(model, study.expression[:200], first, survival=("months", "dead")).table
    scores = netbic.replicate(model, other, random_state=0).scores
    generator = np.random.default_rng(3)
    malignant = scores[1] > 0
    time = generator.exponential(np.where(malignant, 0.3, 5.0))
    here = pd.DataFrame({"months": time, "dead": 1, "kind": np.where(malignant, "malignant", "benign")}, scores.index)
    here.loc[here.index[:20], "dead"] = 0
    plain, adjusted = (
        repeat_associations(tested, scores, here, survival=("months", "dead"), adjust=adjust)
        for adjust in (None, "kind")
    )
    assert any(note.startswith("months: kind goes with survival here (log-rank p") for note in plain.notes)
    assert (plain.go_with_survival, adjusted.go_with_survival) == ({"months": ["kind"]}, {})
    assert list(plain.lines())[-1].startswith("survival is not adjusted for stage, age")
    assert "adjusted for kind here, but not in the fit" in adjusted.notes
    assert not any("not adjusted" in line or "goes with survival" in line for line in adjusted.lines())
    ratios = [
        np.log(found.table.set_index(["variable", "module"]).loc[("months", 1), "effect_other"])
        for found in (plain, adjusted)
    ]
    assert abs(ratios[1]) < abs(ratios[0]) / 2
    own = netbic.association.associate_scores(scores, None, here, survival=("months", "dead"), adjust="kind").table
    cox = own[own["test"] == "Cox score"].set_index("module")["effect"]
    assert ratios[1] == pytest.approx(np.log(cox[1]))
    with pytest.raises(netbic.InputError, match=r"adjusted for 'grade', which is no column .* name another one"):
        repeat_associations(tested, scores, here, survival=("months", "dead"), adjust="grade")


def test_associations_without_effect_here_hold_rarely(model, study, tables):
    generator, held = np.random.default_rng(1), []
    tested = netbic.associate(model, study.expression[:200], tables[0], variables="type").table
    scores = pd.DataFrame(generator.normal(size=(80, 3)), columns=[1, 2, 3], index=[f"s{k}" for k in range(80)])
    for _ in range(100):
        labels = pd.DataFrame({"type": generator.choice(["A", "B"], 80)}, index=scores.index)
        table = repeat_associations(tested, scores, labels).table
        held.append(table.loc[table["q"] <= 0.05, "holds"].any())
    assert np.mean(held) <= 0.08


def test_what_cannot_be_tested_is_said(model, study, tables):
    first, second, other = tables
    tested = netbic.associate(model, study.expression[:200], first, survival=("months", "dead")).table
    scores = netbic.replicate(model, other, random_state=0).scores
    record = {"survival": [("months", "dead")], "variables": [{"name": "type", "type": "categorical", "levels": []}]}
    renamed = (
        second.rename(columns={"months": "days", "dead": "died"}).drop(columns="site").replace({"A": "a", "B": "b"})
    )
    found = repeat_associations(tested, scores, renamed, record=record)
    assert "months: the sample table of the other study has no column 'months'" in found.notes
    assert "site: the sample table of the other study has no column 'site'" in found.notes
    assert found.notes[1] == "matched: 200 of 200 samples (100%)"
    assert "type: levels are a, b here, and A, B in the fit: rename them" in found.notes
    named = repeat_associations(tested, scores, renamed, record=record, survival=("days", "died")).table
    assert named.loc[named["variable"] == "months", "p_other"].notna().all()
    with pytest.raises(netbic.InputError, match="no column 'weeks'"):
        repeat_associations(tested, scores, renamed, record=record, survival=("weeks", "died"))
    with pytest.raises(netbic.InputError, match=r"2 pairs .* but the fit has 1 \(months,dead\): name as many"):
        repeat_associations(tested, scores, renamed, record=record, survival=[("days", "died"), ("died", "days")])
    coded = repeat_associations(tested, scores, second.assign(type=np.arange(200.0)))
    assert "type: numbers here, but levels in the fit (A, B): use the same ones" in coded.notes
    nothing = repeat_associations(tested, scores * np.nan, second)
    assert nothing.table["p_other"].isna().all()
    assert any(note.startswith("no scores here of modules 1, 2, 3") for note in nothing.notes)
    assert not any("rename" in note for note in nothing.notes)
    with pytest.raises(netbic.InputError, match="adjusted for 'age', which is no column"):
        repeat_associations(tested, scores, renamed, record=record | {"adjusted_for": ["age"]})
    assert "survival was not tested in the fit" in str(
        repeat_associations(
            tested, scores, renamed, record={"variables": [], "survival": []}, survival=("days", "died")
        ).notes
    )


def test_scores_do_not_depend_on_the_platform(model, study):
    other = study.expression[200:]
    generator = np.random.default_rng(0)
    scores = standardised_scores(model, other * generator.uniform(0.1, 9, 900) + generator.normal(0, 99, 900))
    np.testing.assert_allclose(scores, standardised_scores(model, other), atol=1e-8)
    np.testing.assert_allclose(scores, netbic.replicate(model, other, n_draws=5).scores, atol=1e-8)
    correlations = [abs(np.corrcoef(*pair)[0, 1]) for pair in zip(scores.T, model.transform(other).T, strict=True)]
    assert min(correlations) > 0.95
    few = other[other.columns[~model.columns_[0]].append(other.columns[model.columns_[0]][:4])]
    with pytest.warns(UserWarning, match=r"module 1: 4 of 60 features, .*; no scores of module 1 \(at least a fifth"):
        assert np.isnan(standardised_scores(model, few)[:, 0]).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, study, tables):
    """A fit with associations, the other study and its sample table as files."""
    folder = tmp_path_factory.mktemp("repeat")
    study.expression[:200].T.rename_axis("gene").to_csv(folder / "first.tsv", sep="\t")
    tables[2].T.rename_axis("gene").to_csv(folder / "other.tsv", sep="\t")
    tables[0].rename_axis("sample").to_csv(folder / "first_samples.tsv", sep="\t")
    other = tables[1].rename(columns={"months": "days", "dead": "died"})
    other.rename_axis("sample").to_csv(folder / "other_samples.tsv", sep="\t")
    options = ("--modules", 3, "--genes", 60, "--no-report", "--out", folder / "fit")
    about = ("--sample-info", folder / "first_samples.tsv", "--survival", "months,dead")
    run_successfully("fit", folder / "first.tsv", *about, *options)
    return folder


def test_replicate_repeats_the_associations_of_a_fit(folder):
    about = ("--sample-info", folder / "other_samples.tsv", "--survival", "days,died")
    done = run_successfully("replicate", folder / "fit", folder / "other.tsv", *about)
    assert "months: the risk" in done.output
    assert " (holds)" in done.output
    path = folder / "fit" / "replication_associations.tsv"
    table = netbic.io.read_table(path)
    assert {"effect", "effect_other", "p_other", "q_other", "same_direction"} <= {*table}
    assert set(table["variable"]) == {"type", "site", "months"}
    replicated = netbic.io.read_table(folder / "fit" / "replication.tsv").set_index("module")["verdict"]
    assert (table["replication"] == table["module"].map(replicated)).all()
    out = folder / "elsewhere.tsv"
    run_successfully("replicate", folder / "fit", folder / "other.tsv", *about, "--out", out)
    pd.testing.assert_frame_equal(netbic.io.read_table(folder / "elsewhere_associations.tsv"), table)
    refused = run("replicate", folder / "fit", folder / "other.tsv", *about, "--out", out)
    assert "exists: choose another name" in refused.output
    run_successfully("replicate", folder / "fit", folder / "other.tsv")
    assert not path.exists()  # it was about the run before
    refused = run("replicate", folder / "fit", folder / "other.tsv", "--survival", "days,died")
    assert "--survival needs --sample-info" in refused.output
    refused = run("replicate", folder / "fit", folder / "other.tsv", "--adjust", "site")
    assert "--adjust needs --sample-info" in refused.output
    done = run_successfully("replicate", folder / "fit", folder / "other.tsv", *about, "--adjust", "site")
    assert "adjusted for site here, but not in the fit" in done.output


def test_associations_have_to_be_there(folder):
    run_successfully(
        "fit", folder / "first.tsv", "--modules", 1, "--genes", 60, "--no-report", "--out", folder / "plain"
    )
    given = ("replicate", folder / "plain", folder / "other.tsv", "--sample-info", folder / "other_samples.tsv")
    assert "has no associations.tsv" in run(*given).output


def test_score_warns_of_another_platform_and_standardises(folder, model, tables):
    given = ("score", folder / "fit", folder / "other.tsv", "--out", folder / "scores.tsv", "--force")
    done = run_successfully(*given)
    assert "leave the range of the fit (the median sample is " in done.stderr
    assert "if they are of another platform or batch, use --standardise" in done.stderr
    done = run_successfully(*given, "--standardise")
    assert "range of the fit" not in done.stderr
    scores = netbic.io.read_table(folder / "scores.tsv").iloc[:, 1:]
    with pytest.warns(UserWarning, match="14 of 161 features of the modules are missing or constant, and not used"):
        expected = standardised_scores(netbic.load(folder / "fit"), tables[2])
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    same = run_successfully("score", folder / "fit", folder / "first.tsv", "--out", folder / "same.tsv")
    assert same.stderr == ""
    refused = run(*given, "--standardise", "--sample-info", folder / "other_samples.tsv")
    assert "--standardise needs no --sample-info" in refused.output


def test_missing_values_are_filled_by_both_commands_and_counted(folder, study):
    other = study.expression[200:].copy()
    filled = other.copy()
    filled.iloc[:50, 0] = other.iloc[50:, 0].mean()
    other.iloc[:50, 0] = np.nan
    for name, table in (("holes", other), ("filled", filled)):
        table.T.rename_axis("gene").to_csv(folder / f"{name}.tsv", sep="\t")
    said = "50 missing values are replaced by the mean of their gene"
    assert said in run_successfully("replicate", folder / "fit", folder / "holes.tsv").output
    tables = []
    for more in ((), ("--standardise",)):
        for name in ("holes", "filled"):
            out = folder / f"{name}_scores.tsv"
            done = run_successfully("score", folder / "fit", folder / f"{name}.tsv", *more, "--out", out, "--force")
            assert (said in done.stderr) == (name == "holes")
            tables.append(netbic.io.read_table(out).iloc[:, 1:])
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-6)
    np.testing.assert_allclose(tables[2], tables[3], atol=1e-6)


def test_stages_that_the_fit_did_not_have_take_their_place_in_its_order():
    generator = np.random.default_rng(4)
    scores = pd.DataFrame({1: np.arange(60.0)}, index=[f"s{k}" for k in range(60)])
    stage = pd.Series(np.repeat(["I", "II", "III"], 20), index=scores.index)
    tested = netbic.association.associate_scores(scores, None, stage.to_frame("stage"))
    record = {"variables": [{"name": "stage", "type": "ordered", "levels": ["I", "II", "III"]}]}
    finer = np.repeat(["I", "IIA", "IIB", "III", "IV", "Stage X"], 10)
    other = scores.assign(**{"1": scores[1] + generator.normal(0, 5, 60)})[["1"]].set_axis([1], axis=1)
    found = repeat_associations(tested.table, other, pd.DataFrame({"stage": finer}, index=scores.index), record=record)
    ranks = pd.Series(np.repeat(range(5), 10), index=scores.index[:50])
    assert found.table["n_other"].tolist() == [50]
    assert found.table["effect_other"].item() == pytest.approx(other[1][:50].corr(ranks, method="spearman"))
    down = {"variables": [{"name": "stage", "type": "ordered", "levels": ["III", "II", "I"]}]}  # an order of one's own
    given = pd.DataFrame({"stage": finer}, index=scores.index)
    notes = repeat_associations(tested.table, other, given, record=down).notes
    refused = "stage: 'IIA', 'IIB', 'IV' here are no levels of the fit (III < II < I): rename them in the sample table"
    assert any(note.startswith(refused) for note in notes)
    other_names = pd.DataFrame({"stage": ["early", "late"] * 30, "tumorstage": [1, 2, 3] * 20}, index=scores.index)
    notes = repeat_associations(tested.table, other, other_names, record=record).notes
    meant = "or call 'tumorstage' (1 < 2 < 3) stage, and its levels as in the fit"
    assert any(note.endswith(meant) for note in notes)


def test_survival_of_the_same_endpoint_is_found_by_its_names(model, study, tables):
    """Overall survival is in days here and in months in the fit; relapse is only in the fit."""
    first, second, other = tables
    fit = first.rename(columns={"months": "os_months", "dead": "os_event"})
    fit = fit.assign(rfs_months=fit["os_months"] * 0.9, rfs_event=fit["os_event"])
    tested = netbic.associate(model, study.expression[:200], fit).table
    assert {"os_months", "rfs_months"} < set(tested["variable"])
    scores = netbic.replicate(model, other, random_state=0).scores
    record = {"survival": [("os_months", "os_event"), ("rfs_months", "rfs_event")], "variables": []}
    here = second.rename(columns={"months": "os_days", "dead": "os_event"})
    here["os_days"] *= 30
    by_name = repeat_associations(tested, scores, here, record=record)
    given = repeat_associations(tested, scores, here, record=record, survival=("os_days", "os_event"))
    assert "os_months: os_days and os_event here, found by their names" in by_name.notes
    for found in (by_name, given):
        effects = found.table.set_index("variable")["effect_other"]
        assert effects["os_months"].notna().all()
        assert effects["rfs_months"].isna().all()
    pd.testing.assert_frame_equal(by_name.table, given.table)
