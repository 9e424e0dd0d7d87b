"""Associations of modules with sample tables: matching, types, tests, and input that cannot be used."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, mannwhitneyu

import netbic
from netbic.association.associate import associate_scores
from netbic.association.one_variable import two_groups
from netbic.association.tests import cox
from netbic.association.variables import match_samples, read_variables, repeated_measures
from netbic.association.words import strongest
from support.batches import cohort, residuals

N = 60
SAMPLES = [f"s{k}" for k in range(N)]
COLUMNS = ["module", "variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p", "q", "q_all"]


@pytest.fixture
def scores():
    return pd.DataFrame(np.random.default_rng(0).standard_normal((N, 2)), index=SAMPLES, columns=[1, 2])


@pytest.fixture
def groups(scores):
    first = np.select([scores[1] > 0.8, scores[1] < -0.8], ["up", "down"], "")
    return pd.DataFrame({1: first, 2: ""}, index=SAMPLES)


@pytest.fixture
def table(scores):
    generator = np.random.default_rng(1)
    high = np.where(scores[1] > 0, "high", "low").astype(object)
    high[:4] = None
    days = np.round(100 * np.exp(generator.standard_normal(N) - scores[1]))
    return pd.DataFrame(
        {
            "subtype": high,
            "grade": pd.Categorical(generator.choice(["G1", "G2", "G3"], N), ["G1", "G2", "G3"], ordered=True),
            "age": generator.normal(60, 10, N).round(),
            "days": days,
            "dead": (generator.uniform(size=N) < 0.7).astype(int),
            "centre": generator.choice(list("ABCD"), N),
        },
        index=SAMPLES,
    )


def test_the_table_has_a_row_per_module_level_and_test(scores, groups, table):
    found = associate_scores(scores, groups, table, survival=("days", "dead"))
    assert found.table.columns.tolist() == COLUMNS
    kinds = found.table[found.table["module"] == 1].groupby("variable", sort=False)["test"].agg(list).to_dict()
    sides = [f"Fisher, {side}" for side in ("up", "down") for _ in range(2)]
    assert kinds["subtype"] == ["Kruskal-Wallis", "Mann-Whitney", "Mann-Whitney", "chi-squared, Monte Carlo", *sides]
    assert kinds["grade"] == ["Spearman"]
    assert kinds["age"] == ["Spearman", "Pearson"]
    assert kinds["days"] == ["Cox score", "log-rank"]
    gradient = found.table[(found.table["module"] == 2)]
    assert "log-rank, median split" in set(gradient["test"])
    assert not gradient["test"].str.startswith(("Fisher", "chi-squared")).any()
    assert set(found.table["effect_name"]) == {
        *("AUC", "epsilon squared", "Cramer's V", "odds ratio", "Spearman rho", "Pearson r"),
        *("hazard ratio per sd", "hazard ratio up/down", "hazard ratio high/low"),
    }
    assert found.variables.set_index("name")["missing"].to_dict()["subtype"] == 4
    assert (found.table.loc[found.table["variable"] == "subtype", "n"] == N - 4).all()
    ratio = found.table.loc[(found.table["test"] == "Cox score") & (found.table["module"] == 1), "effect"].item()
    model = cox(table["days"].to_numpy(), table["dead"].to_numpy(dtype=bool), scores[1].to_numpy())
    assert ratio == pytest.approx(model.hazard_ratio()[0] ** scores[1].std(ddof=1), rel=1e-9)
    split = two_groups(np.array([3.0, 1, 2, 2, 5]), np.array([""] * 5))  # a sample at the median is in the lower half
    assert split.first.tolist() == (~split.second).tolist() == [True, False, False, False, True]


def test_effects_are_those_of_known_samples_and_q_values_within_a_variable_and_kind_of_test(scores, groups, table):
    result = associate_scores(scores, groups, table)
    assert result.notes == ("days and dead look like survival: test them with `survival=days,dead`",)
    found = result.table
    row = found[(found["module"] == 1) & (found["level"] == "high") & (found["test"] == "Mann-Whitney")].iloc[0]
    known, high = table["subtype"].notna(), table["subtype"] == "high"
    assert row["p"] == pytest.approx(mannwhitneyu(scores[1][high], scores[1][known & ~high], method="exact").pvalue)
    assert row["effect"] == 1
    assert row["ci_low"] < 1 == row["ci_high"]
    own = found[(found["variable"] == "centre") & (found["test"] == "Mann-Whitney")]
    assert len(own) == 8  # modules times levels
    np.testing.assert_allclose(own["q"], false_discovery_control(own["p"]))
    np.testing.assert_allclose(found["q_all"], false_discovery_control(found["p"]))
    fisher = found[(found["variable"] == "centre") & found["test"].str.startswith("Fisher")]
    np.testing.assert_allclose(fisher["q"], false_discovery_control(fisher["p"]))


def test_times_of_one_endpoint_with_events_of_another_warn(scores, table):
    table = table.rename(columns={"days": "os_days", "dead": "rfs_event"})
    with pytest.warns(UserWarning, match="'os_days' and 'rfs_event' are of different endpoints by their names"):
        associate_scores(scores, None, table, variables=[], survival=("os_days", "rfs_event"))


def test_overall_tests_and_those_of_levels_are_adjusted_apart(scores, table):
    found = associate_scores(scores, None, table, variables="centre", adjust="age").table
    for test in ("linear model", "linear model, level"):
        own = found[found["test"] == test]
        np.testing.assert_allclose(own["q"], false_discovery_control(own["p"]))


def test_what_cannot_be_tested_is_said(scores, table):
    few = pd.DataFrame({"age": table["age"], "rare": ["a", "b", *[None] * (N - 2)]}, index=SAMPLES)
    found = associate_scores(scores.assign(**{"3": 1.0, "4": np.nan}).set_axis([1, 2, 3, 4], axis=1), None, few)
    assert found.notes[0] == "modules 3, 4 cannot be tested: the scores are missing, or the same in all samples"
    assert set(found.table.loc[found.table["p"].notna(), "module"]) == {1, 2}
    unknown = scores.copy()
    unknown.iloc[:2] = np.nan  # no score where "rare" is known
    assert "rare cannot be tested: 2 samples have a value of it" in associate_scores(unknown, None, few).notes


def test_adjusting_for_a_confounder_removes_an_association():
    generator = np.random.default_rng(2)
    batch = generator.integers(2, size=200)
    scores = pd.DataFrame({0: 3.0 * batch + generator.standard_normal(200)})
    table = pd.DataFrame({"batch": batch, "age": 50 + 10 * batch + 5 * generator.standard_normal(200)})
    table["site"] = np.where(generator.uniform(size=200) < 0.2 + 0.6 * batch, "a", "b")
    table["days"], table["dead"] = np.exp(-batch + generator.standard_normal(200)), 1
    plain = associate_scores(scores, None, table, survival=("days", "dead")).table
    adjusted = associate_scores(scores, None, table, survival=("days", "dead"), adjust=["batch"])
    assert plain.groupby("variable")["p"].min().drop("batch").max() < 1e-3
    assert adjusted.table.groupby("variable")["p"].min().min() > 0.01
    assert set(adjusted.table["test"]) == {
        *("partial Spearman", "partial Pearson", "linear model", "linear model, level", "Cox score"),
    }
    assert "batch" not in set(adjusted.table["variable"])
    assert adjusted.adjusted_for == ("batch",)
    assert any(line.startswith("adjusted for batch") for line in adjusted.lines())


def test_types_are_guessed():
    columns = {
        "text": (list("aabbab"), "categorical"),
        "flag": ([True, False] * 3, "categorical"),
        "binary": ([0, 1, 1, 0, 1, 0], "categorical"),
        "counts": ([1, 2, 3, 1, 2, 3], "numeric"),
        "as_text": (["1.5", "2", "3", "4", "5", "x"], "left out"),
        "number_text": (["1.5", "2", "3", "4", "5", ""], "numeric"),
        "id": (list("abcdef"), "left out"),
        "same": ("x", "left out"),
        "nothing": ([np.nan] * 6, "left out"),
        "ordered": (pd.Categorical(list("lmhlmh"), list("lmh"), ordered=True), "ordered"),
        "date": (pd.date_range("2020-01-01", periods=6), "left out"),
        "date_text": (pd.date_range("2020-01-01", periods=6).strftime("%Y-%m-%d"), "left out"),
        "visit": (["2020-01-01", "2020-05-01"] * 3, "left out"),
        "german": (["31.12.2020", "1.5.2021"] * 3, "left out"),
        "comma": (["1,5", "2", "3", "4", "5", "6,25"], "left out"),
        "share": (["1%", "2 %", "3%", "4%", "5.5%", ""], "left out"),
        "limit": (["<5", "6", "7", "8", "9", ">100"], "left out"),
        "groups": (["<50", ">=50"] * 3, "categorical"),
        "dose": (["10%", "20%"] * 3, "categorical"),
    }
    table = pd.DataFrame({name: values for name, (values, _) in columns.items()})
    kinds = {variable.name: variable.kind for variable in read_variables(table)}
    assert kinds == {name: kind for name, (_, kind) in columns.items()}
    reasons = {variable.name: variable.reason for variable in read_variables(table)}
    assert reasons["date_text"] == reasons["date"] == reasons["visit"] == reasons["german"]
    assert read_variables(table, types={"visit": "categorical"})[2].kind == "categorical"
    for name, what in (("comma", "a comma: write 1.5"), ("share", "write the numbers without %"), ("limit", "a limit")):
        assert what in reasons[name]
        assert "identifier" not in reasons[name]
        with pytest.raises(netbic.InputError, match=f"'{name}' has the value .* which is not a number: write"):
            read_variables(table, types={name: "numeric"})
    assert reasons["date"].startswith("a date or duration: write it as a number")
    empty = pd.Categorical(["", "b", "a", "", "b ", "a"])
    ordered = pd.Categorical(["", "b", "a", "", "b", "a"], ["b", "", "a"], ordered=True)
    for column, levels, b in ((empty, ("a", "b"), 1), (ordered, ("b", "a"), 0)):
        found = read_variables(pd.DataFrame({"x": column}))[0]  # an empty category is a missing value
        assert found.levels == levels
        np.testing.assert_array_equal(found.values, [np.nan, b, 1 - b, np.nan, b, 1 - b])
    codes = pd.DataFrame({"x": ["01", "02", "10"] * 4})
    assert read_variables(codes)[0].kind == "categorical"
    assert read_variables(codes, types={"x": "numeric"})[0].values.tolist() == [1, 2, 10] * 4
    given = read_variables(table, variables=["counts", "text"], types={"counts": "categorical", "text": ["b", "a"]})
    assert [variable.kind for variable in given] == ["categorical", "ordered"]
    assert given[0].levels == ("1", "2", "3")
    assert given[1].values.tolist() == [1, 1, 0, 0, 1, 0]


BAD = {
    "an event column with text": ({"t": [1, 2, 3], "e": ["lost", "dead", "dead"]}, "write 1 where"),
    "negative times": ({"t": [1, -2, 3], "e": [0, 1, 1]}, "negative times"),
    "zero events": ({"t": [1, 2, 3], "e": [0, 0, 0]}, "no event"),
    "events 1 and 2": ({"t": [1, 2, 3], "e": [1, 2, 2]}, r"\(subtract 1 if 2 means seen\)$"),
    "events 0 and 2": ({"t": [1, 2, 3], "e": [0, 2, 2]}, "0 where it was not$"),
    "all missing": ({"t": [np.nan] * 3, "e": [0, 1, 1]}, "no sample has both"),
    "exchanged": ({"t": [0, 1, 1], "e": [5, 2, 3]}, "time first"),
    "text as times": ({"t": ["1", "2", "long"], "e": [0, 1, 1]}, "not a number"),
}


def test_events_are_read_in_the_usual_forms_and_others_refused():
    texts = ["0", "1", "1"], ["0:LIVING", "1:DECEASED", "1:DECEASED"], ["alive", "Dead", "dead "], ["no", "yes", "yes"]
    for events in ([0, 1, 1], [False, True, True], [0.0, 1, 1], *texts):
        (found,) = read_variables(pd.DataFrame({"t": [1.0, 2, 3], "e": events}), survival=("t", "e"))
        assert found.events.tolist() == [False, True, True]
    for columns, message in BAD.values():
        with pytest.raises(netbic.InputError, match=message):
            read_variables(pd.DataFrame(columns), survival=("t", "e"))


def test_variables_that_cannot_be_used_are_refused_if_they_are_asked_for(scores):
    table = pd.DataFrame({"site": "one", "patient": SAMPLES, "age": np.arange(N)}, index=SAMPLES)
    assert {each.name: each.kind for each in read_variables(table)}["site"] == "left out"
    assert [each.name for each in read_variables(table, variables="age")] == ["age"]
    for options, message in (
        ({"variables": ["site"]}, "all values are the same"),
        ({"variables": ["agge"]}, r"no column 'agge'.*it has age"),
        ({"types": {"age": "big"}}, "'big' is not a type"),
        ({"types": {"site": ["two", "three"]}}, "not among the levels"),
        ({"variables": []}, "no variable is named"),
        ({"variables": ["age"], "adjust": ["age"]}, r"'age' is to be tested .* and adjusted for"),
        ({"adjust": ["site"]}, "'site' cannot be adjusted for: all values are the same"),
        ({"variables": ["patient", "age"], "adjust": ["age"]}, r"'age' is to be tested .* and adjusted for"),
        ({"survival": [("age", "site"), ("age", "patient")]}, r"'age' is the time of 2 events \(`survival`\).*: copy"),
        ({"survival": ("age",)}, "two columns, the time and the event"),
        ({"types": {"age": ["1", "2", "3", "1"]}}, r"the levels of 'age' contain '1' more than once \(`types`\)"),
        ({"survival": ("age", "site"), "adjust": "age"}, "'age' belongs to the survival times .* the outcome"),
        ({"survival": ("age", "site"), "adjust": "site"}, "'site' belongs to the survival times .* the outcome"),
    ):
        with pytest.raises(netbic.InputError, match=message):
            read_variables(table, **options)
    days = table.assign(dead=np.arange(N) % 2)
    assert len(read_variables(days, variables=[], survival=[("age", "dead")] * 2)) == 1
    with pytest.raises(netbic.InputError, match="1,000 different values"):
        read_variables(pd.DataFrame({"x": [f"l{k % 1000}" for k in range(2000)]}), variables=["x"])
    many = pd.DataFrame(np.random.default_rng(0).standard_normal((N, N)), index=SAMPLES).add_prefix("x")
    with pytest.raises(netbic.InputError, match="leave nothing to test"):
        associate_scores(scores, None, many, adjust=list(many.columns[1:]))


def test_samples_are_matched_by_name_in_any_order(scores, table):
    shuffled = table.sample(frac=1, random_state=0)
    extra = pd.concat([shuffled.iloc[:50], shuffled.iloc[:2].set_axis(["x1", "x2"])])
    found = match_samples(scores.index, extra)
    assert (found.matched, len(found.unmatched), found.unused) == (50, 10, ("x1", "x2"))
    pd.testing.assert_series_equal(found.table["age"].dropna(), table["age"][found.table["age"].notna()])
    named = match_samples(scores.index, shuffled.reset_index(names="barcode"))
    assert named.column == "barcode"
    pd.testing.assert_series_equal(named.table["age"], table["age"])
    assert "names of samples in 'barcode'" in next(named.lines())


def test_names_that_do_not_match_are_explained():
    samples = pd.Index([f"TCGA-AA-{k:04d}-01" for k in range(10)])
    for other, message in (
        (samples.str.replace("-", "."), "characters such as"),
        (samples.str.lower(), "capital letters"),
        (samples.str[:-3], "one side has patients"),
        (pd.Index([f"GSM{k}" for k in range(10)]), "Use the same names in both"),
    ):
        with pytest.raises(netbic.InputError, match=message) as problem:
            match_samples(samples, pd.DataFrame({"a": range(10)}, index=other))
        assert "'TCGA-AA-0000-01'" in str(problem.value)
        assert f"'{other[0]}'" in str(problem.value)
    with pytest.raises(netbic.InputError, match="exchange rows and columns"):
        match_samples(samples, pd.DataFrame([range(10)], columns=samples, index=["age"]))
    with pytest.raises(netbic.InputError, match="several columns 'a'"):
        match_samples(samples, pd.DataFrame(np.ones((10, 2)), columns=["a", "a"], index=samples))
    without_header = pd.DataFrame({"61": [50, 40]}, index=pd.Index(samples[1:3], name=samples[0]))
    with pytest.raises(netbic.InputError, match="no line with names of columns: 'TCGA-AA-0000-01'"):
        match_samples(samples, without_header)
    with pytest.raises(netbic.InputError, match="more than once"):
        match_samples(samples, pd.DataFrame({"a": [1, 2]}, index=samples[[0, 0]]))


def test_the_words_name_the_strongest_module_of_each_level(scores):
    labels = pd.cut(scores[1], [-9, -0.5, 0.5, 9], labels=["cold", "warm", "hot"]).astype(str)
    found = associate_scores(scores, None, pd.DataFrame({"subtype": labels, "twin": labels == "hot"}))
    lines = list(found.lines())
    assert any(line.startswith("subtype: cold is lower in module 1 (AUC 0.00, q = ") for line in lines)
    assert any(line.startswith("subtype: hot is higher in module 1 (AUC 1.00, q = ") for line in lines)
    assert any(line.startswith("twin: True is higher in module 1") for line in lines)
    assert len([line for line in lines if line.startswith("twin: ") and "AUC" in line]) == 1
    assert strongest(found.table).groupby("variable").size().max() <= 3
    levels = [f"level {k:02}, more" for k in range(20)]
    ordered = pd.DataFrame({"long": pd.Categorical(levels * 3, levels, ordered=True)}, index=SAMPLES)
    line = next(line for line in associate_scores(scores, None, ordered).lines() if line.startswith("long"))
    assert line.endswith(": level 00, more < level 01, more < level 02, more < level 03, more < level 04, more < ...")


def test_scores_of_a_model_with_covariates_are_those_of_the_residuals():
    X, covariates = cohort(3, n_samples=100)
    names = [f"s{k}" for k in range(100)]
    frame, covariates = pd.DataFrame(X, index=names), covariates.set_axis(names)
    model = netbic.SparseGraphSVD(2, n_columns=20, scale=False).fit(frame, covariates=covariates)
    table = pd.DataFrame({"age": covariates["age"], "other": np.random.default_rng(0).standard_normal(100)})
    scores = pd.DataFrame(residuals(X, covariates) @ model.components_.T, index=names)
    expected = associate_scores(scores, None, table).table
    for given in (None, covariates):
        found = netbic.associate(model, frame, table, covariates=given).table
        found = found[found["test"].isin(expected["test"])]
        np.testing.assert_allclose(found["effect"], expected["effect"], atol=1e-8)
    new = netbic.associate(model, frame[::-1][:60], table, covariates=covariates).table
    pd.testing.assert_frame_equal(
        new, netbic.associate(model, frame[::-1][:60], table[::-1], covariates=covariates[::-1]).table
    )
    for other in (frame[:60], frame[::-1], frame[::-1].to_numpy()):
        with pytest.raises(netbic.InputError, match=r"fitted with covariates.*: give those of .* \(`covariates`\)$"):
            netbic.associate(model, other, table[:60] if len(other) == 60 else table)


DONOR = np.repeat(np.arange(12), 10)


def of_donors(generator):
    """Scores of ten cells of each of twelve donors, who differ, and a drug without effect."""
    cells = pd.Index([f"c{k}" for k in range(120)])
    scores = generator.standard_normal(12)[DONOR] + generator.standard_normal(120)
    drug = np.where(generator.permutation(12)[DONOR] < 6, "yes", "no")
    table = pd.DataFrame({"donor": [f"d{k}" for k in DONOR], "drug": drug, "age": DONOR % 5}, index=cells)
    return pd.DataFrame({0: scores}, index=cells), table


def test_averages_by_donor_are_those_of_a_table_of_donors():
    scores, table = of_donors(np.random.default_rng(0))
    found = associate_scores(scores, None, table.assign(cell=list("ab") * 60), by="donor")
    by_hand = associate_scores(scores.groupby(table["donor"]).mean(), None, table.groupby("donor").first())
    pd.testing.assert_frame_equal(found.table, by_hand.table)
    assert found.by == ("donor",)
    assert "cell" not in set(found.variables["name"])
    assert len(found.match.table) == 120
    table.loc[table["donor"] == "d3", "donor"] = None
    fewer = associate_scores(scores, None, table, by="donor")
    assert set(fewer.table["n"]) == {11}
    assert "10 samples without a value are left out" in fewer.notes[0]


def test_properties_of_donors_are_noticed_and_coarser_labels_are_not():
    scores, table = of_donors(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="drug, age are the same in all samples of one donor") as warned:
        technical, note = associate_scores(scores, None, table).notes
    assert technical.startswith("donor explains most of module 1 (5")
    assert [str(each.message) for each in warned] == [note]
    assert note.startswith("drug, age are the same in all samples of one donor (12 different ones): p-values")
    assert note.endswith("`by=donor`")
    stage = np.array(["IA", "IB", "IIA", "IIB", "IIIA"])[DONOR % 5]
    labels = pd.DataFrame({"substage": stage, "stage": [each[:-1] for each in stage]}, index=table.index)
    labels["code"] = pd.factorize(stage)[0] * 1.0
    assert associate_scores(scores, None, labels).notes == ()
    assert associate_scores(scores, None, table.assign(donor=range(120))).notes == ()  # each sample has its own
    assert associate_scores(scores, None, table, by="donor").notes[0].startswith("tests compare averages")


def warned_of(table, variables=None):
    """The columns that warnings name as donors."""
    found = read_variables(table, variables=variables)
    return [note.split(" in all samples of one ")[1].split(" (")[0] for note in repeated_measures(table, found)]


def test_donors_are_known_by_their_names_or_by_many_small_groups():
    n, generator = 120, np.random.default_rng(1)
    pairs = np.arange(n) // 2  # tumour and normal tissue of each patient
    age = generator.integers(30, 80, 60)[pairs]
    for name in ("participant", "donor", "PatientID", "bcr_patient_barcode", "mouse_id", "cell_line", "orig.ident"):
        assert warned_of(pd.DataFrame({"age": age, name: [f"x{k}" for k in pairs]})) == [name]
    assert warned_of(pd.DataFrame({"age": age, "patient": pairs}), ["age"]) == ["patient"]  # whole numbers
    assert warned_of(pd.DataFrame({"age": age, "plot": [f"x{k}" for k in pairs]})) == ["plot"]  # many small groups
    few = np.where(np.arange(n) < 4, pairs, np.arange(n) + 100)  # two patients occur twice
    assert (
        warned_of(pd.DataFrame({"age": generator.integers(9, size=few.max() + 1)[few], "patient": few}), ["age"]) == []
    )
    grade = np.array([f"G{k}" for k in generator.integers(6, size=n)])
    clinical = pd.DataFrame({"histology": np.where(grade < "G2", "serous", "clear"), "grade_figo": grade})
    for name in ("grade_figo", "patient_age", "sample_type", "mouse_strain", "case_control", "repair", "subject_group"):
        assert warned_of(clinical.rename(columns={"grade_figo": name})) == [], name
    codes = pd.factorize(grade)[0] + 1
    assert warned_of(pd.DataFrame({"histology": clinical["histology"], "patient_age": codes}), ["histology"]) == []
    survival = pd.DataFrame({"days": age, "dead": pairs % 2, "patient": pairs})
    found = read_variables(survival, variables=[], survival=("days", "dead"))
    assert next(repeated_measures(survival, found)).startswith("days is the same in all samples of one patient (60")


def test_variables_that_covariates_explain_and_those_with_too_few_samples_are_told_apart(scores):
    table = pd.DataFrame({"site": list("ab") * (N // 2), "batch": [1, 2] * (N // 2)}, index=SAMPLES)
    found = associate_scores(scores, None, table, adjust=["batch"])
    assert found.table["p"].isna().all()
    assert "site is explained completely by the covariates (batch): it cannot be tested" in found.notes
    table = pd.DataFrame({"age": np.nan, "batch": [1.0, 2, 4] * (N // 3)}, index=SAMPLES)
    table.iloc[:4, 0] = [50, 61, 43, 70]
    table.iloc[1:4, 1] = np.nan
    lines = list(associate_scores(scores, None, table, adjust=["batch"]).lines())
    assert "age cannot be tested: 1 sample has a value of it and of all covariates (batch)" in lines
    assert not [line for line in lines if "explained completely" in line]


def test_equal_names_match_whatever_they_are(scores):
    X = netbic.simulate.cohort(N, 100, n_modules=1, random_state=0).expression
    for names in ([float(k) for k in range(N)], [f"s{k} " for k in range(N)], [k + 0.5 for k in range(N)], [*range(N)]):
        table = pd.DataFrame({"age": np.arange(N)}, index=names).iloc[::-1]
        model = netbic.SparseGraphSVD(1, n_columns=20).fit(X.set_axis(names))
        assert netbic.associate(model, X.set_axis(names), table).match.table["age"].tolist() == list(range(N))
    as_text = (["a", "b"], ["b ", " a"]), (["1.0", "2.0"], ["2", "1"]), (["1", "1.0"], ["1.0", "1"])
    for own, theirs in (*as_text, (["1", "2"], [2.0, 1.0])):
        assert match_samples(pd.Index(own), pd.DataFrame({"x": [2, 1]}, index=theirs)).table["x"].tolist() == [1, 2]


def test_rows_of_data_without_names_are_matched_by_order():
    X = netbic.simulate.cohort(N, 100, n_modules=1, random_state=0).expression
    table = pd.DataFrame({"age": np.random.default_rng(0).permutation(N)})
    model = netbic.SparseGraphSVD(1, n_columns=20).fit(X.to_numpy())
    expected = netbic.associate(netbic.SparseGraphSVD(1, n_columns=20).fit(X), X, table.set_axis(X.index))
    for index in ([k + 0.5 for k in range(N)], [float(k % 7) for k in range(N)], ["same"] * N):
        found = netbic.associate(model, X.to_numpy(), table.set_axis(index))
        pd.testing.assert_frame_equal(found.table, expected.table)
        assert found.match.table.index.tolist() == index
    with pytest.raises(netbic.InputError, match="no sample names"):
        netbic.associate(model, X.to_numpy(), table[:50])


def test_samples_without_a_covariate_are_counted_and_levels_that_are_lost_by_it_named(scores, table):
    table["stage"] = np.where(table["subtype"] == "low", np.nan, np.arange(N) % 3 + 1.0)
    lost = int(table["stage"].isna().sum())
    found = associate_scores(scores, None, table, adjust=["age", "stage"], variables=["subtype", "grade"])
    (note,) = (note for note in found.notes if "left out" in note)
    text = f"{lost} of {N} samples are left out, because a covariate is missing (stage in {lost})"
    assert note == f"{text}; among them all of subtype low ({lost})"
    assert not associate_scores(scores, None, table, adjust="age", variables="grade").notes


def test_what_is_said_of_survival_speaks_of_both_tests(scores):
    random = np.random.default_rng(0)
    high = np.array(scores[1] > scores[1].median())
    scores = scores[[1]].assign(**{"1": np.where(high, 1.0, 0.0)})[["1"]].set_axis([1], axis=1)
    scores.iloc[0] = -40.0  # so that the Cox model sees little else
    days = random.exponential(np.where(high, 30.0, 100.0))
    found = associate_scores(scores, None, pd.DataFrame({"days": days, "dead": 1}, SAMPLES), survival=("days", "dead"))
    (line,) = (line for line in found.findings() if line.startswith("days"))
    assert line.startswith("days: no association in the Cox model (q <= 0.05); the strongest: the risk")
    assert "; but by the log-rank test (median split) the risk rises with module 1 (hazard ratio high/low" in line
