"""The sample table in the report: cards and grid of associations."""

import json
import re
import shutil

import numpy as np
import pandas as pd

import netbic
from netbic.association.words import in_words, strongest
from netbic.report.associations import AnswerLine, Beside, answer_lines, association_grid, findings, group_findings
from netbic.report.contents import gather
from netbic.report.modules import distinct_terms
from support import report_folders

TIME = f"<b>days</b>{report_folders.TRAP}"


def test_cards_and_grid_show_the_tests(labelled_folder):
    contents, table = gather(labelled_folder), netbic.io.read_table(labelled_folder / "associations.tsv")
    grid = contents.associations
    sites = {f"site: {site}" for site in report_folders.SITES}
    assert set(grid["columns"]) == {"type: in", "age", "grade", TIME} | sites
    auc = table[(table["variable"] == "type") & (table["level"] == "in") & (table["effect_name"] == "AUC")]
    best = auc.loc[(auc["effect"] - 0.5).abs().idxmax()]
    cell = grid["rows"][int(best["module"]) - 1][grid["columns"].index("type: in")]
    assert cell["text"] == f"{2 * best['effect'] - 1:.2f}".replace("-", "\N{MINUS SIGN}") + "***"
    assert cell["colour"] == (6 if best["effect"] > 0.5 else 0)
    finding = contents.modules[int(best["module"]) - 1].findings[0]
    assert finding.text.startswith("type: in is higher" if best["effect"] > 0.5 else "type: out is higher")
    for cell in (cell for row in grid["rows"] for cell in row if cell):
        assert (cell["colour"] != 3) == cell["text"].endswith("*")
    weak = grid["rows"][int(best["module"]) - 1][grid["columns"].index("age")]
    assert weak["colour"] == 3


def test_labels_that_are_frequent_among_samples_up_or_down_are_found():
    columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    weak = (1, "type", "in", "Mann-Whitney", 0.5, "AUC", 1.0)
    rare, frequent = (
        pd.DataFrame([(1, "type", "in", "Fisher, up", ratio, "odds ratio", 1e-9), weak], columns=columns)
        for ratio in (0.2, 5.0)
    )
    assert findings(rare) == {}
    assert findings(frequent) == {}  # what is stated is the test of the scores
    assert answer_lines(frequent, {})[0][0].module is None
    assert group_findings(rare) == {}
    assert group_findings(frequent) == {1: ["type: in is more often up (odds ratio 5.00, q = 1e-09)"]}
    assert in_words(rare.iloc[0].to_dict()) == "in is less often up in module 1 (odds ratio 0.20, q = 1e-09)"
    samples = [f"s{k}" for k in range(60)]
    groups = pd.DataFrame({0: ["up"] * 10 + ["down"] * 10 + [""] * 40}, index=samples)
    scores = pd.DataFrame({0: np.repeat([5.0, -5, 0], [10, 10, 40]) + np.linspace(-1, 1, 60) ** 3}, index=samples)
    labels = pd.DataFrame({"type": ["in"] * 20 + ["out"] * 40}, index=samples)
    table = netbic.association.associate_scores(scores, groups, labels).table
    assert (table.loc[table["test"] == "Mann-Whitney", "q"] > 0.05).all()
    assert group_findings(table)[1][0].startswith("type: in is more often up and down (odds ratio \N{INFINITY}, q = ")


def test_gene_sets_that_repeat_one_before_are_left_out():
    terms = [{"genes": "A, B, C, D"}, {"genes": "A, B"}, {"genes": "C, X, Y"}, {"genes": "P"}, {"genes": "Q"}]
    assert distinct_terms(terms) == [terms[0], terms[2], terms[3]]


def two_labels(n=60):
    """Tests of scores: module 1 follows both labels and the number, module 2 follows them more strongly."""
    samples, label = [f"s{k}" for k in range(n)], np.repeat([0.0, 1.0], n // 2)
    noise = np.random.default_rng(0).standard_normal((n, 3))
    scores = pd.DataFrame(noise + np.outer(label, [-1.5, 6.0, 0.0]), index=samples)
    table = pd.DataFrame({"er": np.where(label > 0, "ER+", "ER-"), "age": noise[:, 2]}, index=samples)
    table["other"] = np.random.default_rng(1).permutation(np.repeat(["a", "b", "c"], n // 3))
    return netbic.association.associate_scores(scores, None, table).table


def test_best_modules_have_a_line_each_and_the_level_and_auc_of_the_terminal():
    table = two_labels()
    for module, level in ((1, "ER-"), (2, "ER+")):
        row = strongest(table).query("variable == 'er' and module == @module").iloc[0].to_dict()
        assert row["effect"] == table.query("level == @level and module == @module")["effect"].iloc[0] > 0.5
        assert in_words(row).startswith(f"{level} is higher in module {module} (AUC ")
        own = table[table["module"] == module]
        assert findings(table)[module] == findings(own)[module]
        assert (
            findings(table)[module][0].text
            == f"er: {level} is higher {in_words(row).partition(f'module {module} ')[2]}"
        )
    lines, n_left_out = answer_lines(table, {})
    assert n_left_out == 0
    assert [(line.label, line.module) for line in lines] == [("er: ER+", 2), ("age", 3), ("other", None)]
    assert lines[0].text.startswith("higher (AUC ")
    assert lines[1].text.startswith("rises with it (Spearman rho 1.00")
    smallest = table.loc[(table["variable"] == "other") & (table["test"] == "Mann-Whitney"), "q"].min()
    assert lines[2] == AnswerLine("other", None, "", f"no module (smallest q = {smallest:.2g})")
    assert answer_lines(None, {}) == ([], 0)
    lines, _ = answer_lines(table, {1: "strong", 2: "doubtful", 3: "repeats 1"})
    assert [(line.label, line.module, line.mark) for line in lines[:2]] == [("er: ER-", 1, ""), ("age", 3, "repeats 1")]


def test_batches_are_last_with_the_levels_that_have_a_module():
    columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    rows = [(1, "plate", f"p{k}", "Mann-Whitney", 0.6, "AUC", 0.3) for k in range(4)]
    tests = [*rows, (1, "er", "ER+", "Mann-Whitney", 0.9, "AUC", 1e-5)]
    lines = answer_lines(pd.DataFrame(tests, columns=columns), {})[0]
    assert [(line.label, line.module) for line in lines] == [("er: ER+", 1), ("plate", None)]
    tests[2] = (1, "plate", "p2", "Mann-Whitney", 0.9, "AUC", 1e-3)
    lines = answer_lines(pd.DataFrame(tests, columns=columns), {})[0]
    assert [(line.label, line.module) for line in lines] == [("er: ER+", 1), ("plate: p2", 1)]


def test_adjusted_tests_and_another_study_are_beside_each_association(labelled_folder, tmp_path):
    labelled_folder = shutil.copytree(labelled_folder, tmp_path / "copy")
    tests = netbic.io.read_table(labelled_folder / "associations.tsv").fillna({"level": ""})
    adjusted = tests[tests["test"] == "Cox score"].assign(effect=1.23, q=0.4)
    netbic.io.write_table(labelled_folder / "associations_mine.tsv", adjusted)
    record = {"variables": [], "survival": [], "adjusted_for": ["age", "grade"]}
    (labelled_folder / "associations_mine.json").write_text(json.dumps(record))
    main = strongest(tests[tests["q"] <= 0.05])
    repeated = main.assign(effect_other=0.66, q_other=0.3, p_other=0.2, holds=False, effect_name_other="AUC")
    first = (repeated["variable"] == "type") & (repeated["module"] == repeated["module"].iloc[0])
    repeated.loc[first, ["holds", "q_other"]] = True, 0.01
    netbic.io.write_table(labelled_folder / "replication_associations.tsv", repeated)
    (labelled_folder / "replication.json").write_text('{"study": "other.tsv"}')
    contents = gather(labelled_folder)
    assert not contents.is_unadjusted
    line = contents.answers[0][0]
    assert line.label == "type: in"
    assert line.remarks == ("holds in other.tsv: AUC 0.66, q = 0.01",)
    assert contents.modules[line.module - 1].findings[0].remarks == line.remarks
    module, n_tested = repeated["module"].iloc[0], len(repeated)
    count = f"{int(first.sum())} of {n_tested} associations that could be tested there"
    assert contents.repeated.startswith(f"In other.tsv, {count} hold")
    assert contents.repeated.endswith(f": type with module {module}.")
    survival = main[main["test"] == "Cox score"].assign(effect_other=1.1, q_other=0.3, p_other=0.2, holds=False)
    survival = survival.assign(effect_name_other=survival["effect_name"], q=0.01)
    for record, said in (
        ({"adjusted_for": [], "go_with_survival": {TIME: ["kind", "stage"]}}, "but kind, stage go with it: test again"),
        ({"adjusted_for": [], "go_with_survival": {}}, "Survival is not adjusted there."),
        ({"adjusted_for": ["stage"], "go_with_survival": {}}, "hold."),
    ):
        assert said in Beside({}, "other.tsv", survival, record).sentence
    found = adjusted[(tests["q"].loc[adjusted.index] <= 0.05)]
    for number in found["module"]:
        said = [each.remarks for each in contents.modules[number - 1].findings if each.text.startswith(TIME)]
        assert said[0][0] == "adjusted for age, grade: hazard ratio per sd 1.23, q = 0.4"
    assert "holds in other.tsv: AUC 0.66" in netbic.report.write_report(labelled_folder).read_text()


def test_many_labels_give_twelve_lines_and_no_variable_is_lost():
    rng, samples = np.random.default_rng(0), [f"s{k}" for k in range(300)]
    scores = pd.DataFrame({0: rng.standard_normal(300)}, index=samples)
    ranks = scores[0].rank(method="first").astype(int) - 1
    levels = [f"level {rank // 15:02d}" for rank in ranks]
    table = pd.DataFrame({"many": levels, "noise": rng.random(300)}, index=samples)
    lines, n_left_out = answer_lines(netbic.association.associate_scores(scores, None, table).table, {})
    assert len(lines) == 12
    assert n_left_out == 9
    assert lines[-1].label == "noise"
    assert sum(line.module == 1 for line in lines) == 11


def test_the_page_leads_with_the_best_modules(labelled_folder):
    page = (labelled_folder / "report.html").read_text()
    places = [page.index(f'id="{name}"') for name in ("answers", "glance", "associations", "details", "modules")]
    assert places == sorted(places)
    assert "<img src=x" not in page
    assert "<b>days" not in page
    assert len(re.findall("Scores by <bdi>type</bdi>", page)) == 2
    first = gather(labelled_folder).answers[0][0]
    assert first.label == "type: in"
    assert f'<a href="#module-{first.module}"' in page
    assert re.search(r"smallest q [^(]*\(<bdi>(Mann-Whitney|Kruskal-Wallis|Fisher|chi-squared)", page)


def test_survival_is_on_the_card_of_every_module_if_it_was_tested():
    columns = ["module", "variable", "level", "test", "effect", "effect_name", "p", "q"]
    strong = [(1, name, "", "Spearman", 0.9, "Spearman rho", 1e-9, 1e-8) for name in ("age", "size", "grade")]
    times = [(1, "os", "", "Cox score", 1.1, "hazard ratio per sd", 0.5, 0.6)]
    times += [(1, "rfs", "", "Cox score", 1.2, "hazard ratio per sd", 0.3, 0.4)]
    found = findings(pd.DataFrame(strong + times, columns=columns))[1]
    assert [(each.text.partition(":")[0], each.found) for each in found] == [
        ("age", True),
        ("size", True),
        ("os", False),
    ]
    assert found[-1].text == "os: no association (hazard ratio per sd 1.10, q = 0.6)"
    times[1] = (1, "rfs", "", "Cox score", 2.0, "hazard ratio per sd", 0.001, 0.002)
    found = findings(pd.DataFrame(strong + times, columns=columns))[1]
    assert [each.text.partition(":")[0] for each in found] == ["age", "size", "rfs"]


def test_doubtful_modules_are_marked_and_paler_in_the_grid():
    rows = [(1, "er", level, "Mann-Whitney", effect, "AUC", 1e-9, 1e-8) for level, effect in (("+", 0.99), ("-", 0.01))]
    columns = ["module", "variable", "level", "test", "effect", "effect_name", "p", "q"]
    tests = pd.DataFrame(rows, columns=columns).assign(ci_low=0.9, ci_high=1.0, n=50)
    for word, colour, mark in (("strong", 6, ""), ("repeats 2", 6, " (repeats 2)"), ("doubtful", 4, " (doubtful)")):
        grid = association_grid(tests, 1, {1: word})
        assert grid["rows"][0][0]["colour"] == colour
        assert grid["marks"][0][0] == mark
