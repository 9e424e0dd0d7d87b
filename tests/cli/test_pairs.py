"""netbic pairs: two tables matched by the names of their samples, and what is written."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.files import FIT_PIECES, PAIR_FILES, read_table, recorded_files
from netbic.storage import Pieces, Task
from support.commands import run, run_successfully
from support.pair_folders import both_tables, write_tables

N, P, Q = 40, 30, 20
OPTIONS = ("--features1", 6, "--features2", 4, "--pairs", 2, "--permutations", 0, "--no-report")


@pytest.fixture
def tables(tmp_path):
    return write_tables(tmp_path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    run_successfully("pairs", *write_tables(folder), "--out", folder / "pairs", *OPTIONS)
    return folder / "pairs"


@pytest.fixture
def done(fitted, tmp_path):
    """A copy of the results, which a test may change."""
    return shutil.copytree(fitted, tmp_path / "pairs")


def contents(folder, names=("pairs.tsv", "weights.tsv", "scores.tsv")):
    return {name: (folder / name).read_bytes() for name in names}


def test_the_tables_are_those_of_the_estimator(tables, tmp_path):
    X, Y = (table.T for table in both_tables())
    for method, kind in (("cca", netbic.SparseGraphCCA), ("pls", netbic.SparseGraphPLS)):
        out = tmp_path / method
        run_successfully("pairs", *tables, "--out", out, "--method", method, *OPTIONS)
        model = kind(2, n_x=6, n_y=4, random_state=0).fit(X, Y)
        loaded = netbic.load(out)
        assert type(loaded) is kind
        np.testing.assert_allclose(loaded.x_weights_, model.x_weights_, atol=1e-12)
        pairs, weights, scores = (read_table(out / name) for name in ("pairs.tsv", "weights.tsv", "scores.tsv"))
        np.testing.assert_allclose(pairs["correlation"], model.correlations_, atol=1e-12)
        assert pairs[["n_features_1", "n_features_2"]].to_numpy().tolist() == [[6, 4], [6, 4]]
        own = weights[(weights["pair"] == weights["pair"].min()) & (weights["table"] == 2)]
        assert set(own["name"]) == set(Y.columns[model.y_support_[0]])
        assert scores["sample"].tolist() == [*X.index, *X.index]
        np.testing.assert_allclose(scores["score_2"], model.y_scores_.T.ravel(), atol=1e-12)


def test_samples_are_matched_by_name(done, tmp_path):
    """Another order of the samples of the second table gives the same files, byte for byte."""
    (tmp_path / "other").mkdir()
    second = both_tables()[1].sample(frac=1, axis=1, random_state=3)
    tables = write_tables(tmp_path / "other", second=second)
    run_successfully("pairs", *tables, "--out", tmp_path / "again", *OPTIONS)
    assert contents(tmp_path / "again") == contents(done)


def test_samples_of_one_table_only_are_left_out_and_counted(tmp_path):
    first, second = both_tables()
    extra = pd.DataFrame(np.ones((P, 5)), index=first.index, columns=[f"extra {k}" for k in range(5)])
    tables = write_tables(tmp_path, pd.concat([extra, first], axis=1), second.drop(columns=["mouse 3"]))
    shown = run_successfully("pairs", *tables, "--out", tmp_path / "out", *OPTIONS).output
    assert "samples: 45 in table 1, 39 in table 2, 39 in both" in shown
    assert "only in table 1, not used: 6 ('extra 0', 'extra 1', 'extra 2', ...)" in shown
    matched = json.loads((tmp_path / "out" / "alignment.json").read_text())["samples"]
    assert matched["in_both"] == 39
    assert matched["only_first"] == [*extra.columns, "mouse 3"]
    (tmp_path / "fewer").mkdir()
    kept = [name for name in first.columns if name != "mouse 3"]
    run_successfully(
        "pairs", *write_tables(tmp_path / "fewer", first[kept], second[kept]), "--out", tmp_path / "kept", *OPTIONS
    )
    assert contents(tmp_path / "out") == contents(tmp_path / "kept")


def test_features_that_are_constant_in_the_common_samples_are_dropped(tmp_path):
    first, second = both_tables()
    first.loc["g29"] = 1.0
    first.loc["g29", "only here"] = 5.0  # it varies in the file, but not in the samples of both
    first["only here"] = first["only here"].fillna(0.0)
    shown = run_successfully(
        "pairs", *write_tables(tmp_path, first, second), "--out", tmp_path / "out", *OPTIONS
    ).output
    assert "table 1: preprocessed: drop constant (1 features): g29" in shown
    assert "table 1: features kept: 29" in shown
    assert netbic.load(tmp_path / "out").x_weights_.shape[0] == 29


def failure(*arguments):
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert len(result.stderr.splitlines()) == 1, result.output
    assert "bug" not in result.stderr
    return result.stderr


def test_tables_without_a_common_sample_are_refused(tmp_path):
    first, second = both_tables()
    tables = write_tables(tmp_path, first, second.rename(columns=lambda name: f"rat {name[6:]}"))
    shown = failure("pairs", *tables, "--out", tmp_path / "out")
    assert "have no sample in common (table 1: 'mouse 0', 'mouse 1', 'mouse 2', ...; table 2: 'rat 0'" in shown
    assert not (tmp_path / "out").exists()
    write_tables(tmp_path, first, second.rename(columns=lambda name: name.upper().replace(" ", "-")))
    assert "differ in capital letters, spaces or punctuation" in failure("pairs", *tables, "--out", tmp_path / "out")
    both = {"mouse 0": "mouse 0", "mouse 1": "mouse 1"}
    write_tables(tmp_path, first, second.rename(columns=lambda name: both.get(name, f"rat {name}")))
    assert "only 2 samples in common" in failure("pairs", *tables, "--out", tmp_path / "out")


def test_a_transposed_table_is_recognised_and_can_be_read(done, tmp_path):
    tables = write_tables(tmp_path, second=both_tables()[1].T)
    shown = failure("pairs", *tables, "--out", tmp_path / "out", *OPTIONS)
    assert "the features of table 2 have the names of samples" in shown
    assert "exchanged: use --samples-in-rows 2" in shown
    shown = failure("pairs", *tables, "--out", tmp_path / "out", "--samples-in-rows", "both", *OPTIONS)
    assert "exchanged: leave out --samples-in-rows 1" in shown
    run_successfully("pairs", *tables, "--out", tmp_path / "out", "--samples-in-rows", 2, *OPTIONS)
    assert contents(tmp_path / "out") == contents(done)


def test_tables_without_names_need_the_same_number_of_samples(tmp_path):
    X, Y = (table.to_numpy().T for table in both_tables())
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "short.npy", Y[:-1])
    given = ("pairs", tmp_path / "x.npy")
    shown = run_successfully(*given, tmp_path / "y.npy", "--out", tmp_path / "out", *OPTIONS).output
    assert "40 in both tables, without names: matched by their positions" in shown
    shown = failure(*given, tmp_path / "short.npy", "--out", tmp_path / "other")
    assert "table 1 has 40 samples and table 2 has 39, and neither has names" in shown


def test_missing_values_are_refused_with_their_place(tmp_path):
    first, second = both_tables()
    second.loc["l7", "mouse 4"] = np.nan
    shown = failure("pairs", *write_tables(tmp_path, first, second), "--out", tmp_path / "out")
    assert "table 2: 1 value is missing (the first: feature 'l7', sample 'mouse 4')" in shown


def test_the_same_table_twice_gives_a_warning(tables, tmp_path):
    first, _ = tables
    shown = run("pairs", first, first, "--out", tmp_path / "out", *OPTIONS).output
    assert "warning: TABLE1 and TABLE2 have the same values" in shown
    (tmp_path / "copy.tsv").write_bytes(first.read_bytes())
    shown = run("pairs", first, tmp_path / "copy.tsv", "--out", tmp_path / "again", *OPTIONS).output
    assert "have the same values" in shown


def test_raw_counts_are_noticed_with_the_options_of_their_table(tmp_path):
    first, _ = both_tables()
    random = np.random.default_rng(1)
    counts = random.negative_binomial(1, 1 / (1 + random.lognormal(3, 2, (300, 1))), (300, N))
    counts = pd.DataFrame(counts, index=pd.Index([f"c{k}" for k in range(300)], name="id"), columns=first.columns)
    tables = write_tables(tmp_path, first, counts)
    shown = run("pairs", *tables, "--out", tmp_path / "out", *OPTIONS).output
    assert "warning: table 2: " in shown
    assert "add --cpm 2 --log1p 2" in shown
    shown = run("pairs", *tables, "--out", tmp_path / "out", "--cpm", 2, "--log1p", 2, "--force", *OPTIONS).output
    assert "table 2: preprocessed: counts per million" in shown
    assert "add --cpm 2" not in shown
    record = netbic.io.read_json(tmp_path / "out" / "run.json")
    assert record["inputs"]["log1p"] == "2"


def test_networks_are_matched_and_used(tables, tmp_path):
    edges = [(f"g{a}", f"g{b}") for a in range(6) for b in range(a)]
    (tmp_path / "network.sif").write_text("".join(f"{a}\tbinds\t{b}\n" for a, b in edges))
    given = ("pairs", *tables, "--out", tmp_path / "out", "--graph1", tmp_path / "network.sif", *OPTIONS)
    shown = run_successfully(*given, "--smoothness1", 0.3).output
    assert "table 1: matched: 6 of 30 features (20%); the network has 6 features" in shown
    model = netbic.load(tmp_path / "out")
    assert model.graphs_["x"].n_edges == len(edges)
    assert (model.x_smoothness, model.graphs_["y"]) == (0.3, None)
    inside = [model.graphs_["x"].subgraph(members).n_edges for members in model.x_support_]
    assert read_table(tmp_path / "out" / "pairs.tsv")["n_edges_1"].tolist() == inside
    assert max(inside) > 0
    (tmp_path / "network.sif").write_text("a\tbinds\tb\nb\tbinds\tc\n")
    shown = failure(*given, "--force")
    assert "table 1: no feature of the data is in the network" in shown
    assert "(--id-map)" in shown
    assert netbic.load(tmp_path / "out").graphs_["x"].n_edges == len(edges)  # results stay until others replace them


def test_options_that_cannot_be_combined_are_refused(tables, tmp_path):
    for options, message in (
        (["--smoothness2", "0.3"], "--smoothness2 needs a network: use --graph2"),
        (["--method", "pls", "--ridge", "0.2"], "--ridge is for --method cca"),
        (["--features2", "900"], "--features2 900 but table 2 has 20 features: choose 1 to 20"),
    ):
        assert message in failure("pairs", *tables, "--out", tmp_path / "out", *options)


def test_covariances_and_defaults_reach_the_model(tables, tmp_path):
    run_successfully("pairs", *tables, "--out", tmp_path / "out", "--no-report", "--ridge", 0.4)
    model = netbic.load(tmp_path / "out")
    assert (model.covariance, model.ridge, model.n_x, model.n_y) == ("ridge", 0.4, 6, 4)  # a fifth of the features


def test_what_is_printed(tables, tmp_path):
    tested = (*OPTIONS, "--permutations", 99)
    shown = run_successfully("pairs", *tables, "--out", tmp_path / "out", *tested).output
    correlation = read_table(tmp_path / "out" / "pairs.tsv")["correlation"][0]
    found = rf"  pair 1: correlation {correlation:.2f} \(0.\d\d held out, p = 0.\d+\), 6 features of table 1 \(g\d"
    assert re.search(found, shown)
    assert "stronger than expected by chance" in shown
    assert "gene" not in shown.replace("genes.tsv", "")
    untested = run_successfully("pairs", *tables, "--out", tmp_path / "untested", *OPTIONS).output
    assert "expect smaller correlations in new samples" in untested
    assert run_successfully("pairs", *tables, "--out", tmp_path / "quiet", "--quiet", *OPTIONS).output == ""


def test_warnings_of_the_fit_name_tables_and_count_from_one(tmp_path):
    first, second = both_tables()
    shown = run(
        "pairs", *write_tables(tmp_path, first, second.iloc[:2]), "--out", tmp_path / "out", "--pairs", 3, "--no-report"
    ).output
    assert "warning: found 2 of 3 pairs" in shown
    assert "found 2 of 3 pairs" in netbic.io.read_json(tmp_path / "out" / "run.json")["warnings"][0]


def test_results_are_replaced_only_with_force(done, tables):
    before = contents(done)
    shown = failure("pairs", *tables, "--out", done, *OPTIONS)
    assert "contains finished results: choose another folder, or --force to replace them" in shown
    assert contents(done) == before
    shown = failure("fit", tables[0], "--out", done, "--resume")
    assert "contains pairs of two tables, which cannot be resumed as modules of one" in shown
    Pieces(done / FIT_PIECES, Task("fit"))
    shown = failure("pairs", *tables, "--out", done, *OPTIONS)
    assert "contains an interrupted fit: choose another folder, or --force to start again" in shown
    run_successfully("pairs", *tables, "--out", done, *OPTIONS, "--force", "--pairs", 1)
    assert len(read_table(done / "pairs.tsv")) == 1
    assert recorded_files(done) <= {*PAIR_FILES, "run.json"}
    assert not (done / FIT_PIECES).exists()


def test_files_of_others_are_never_replaced(tables, tmp_path):
    for number, name in enumerate([*PAIR_FILES, "run.json"]):
        path = tmp_path / str(number) / name
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        failure("pairs", *tables, "--out", tmp_path / str(number), "--force", *OPTIONS)
        assert path.read_text() == "mine"
    (tmp_path / "out").mkdir()
    own = shutil.copy(tables[0], tmp_path / "out" / "scores.tsv")
    shown = failure("pairs", own, tables[1], "--out", tmp_path / "out", "--force")
    assert "is an input (TABLE1" in shown
    assert own.read_bytes() == tables[0].read_bytes()


def test_pairs_and_modules_replace_each_other_completely(done, tables, tmp_path):
    """No file of the earlier kind of results stays behind."""
    (done / "notes.txt").write_text("mine")
    run_successfully("fit", tables[0], "--out", done, "--force", "--modules", 1, "--genes", 5, "--no-report")
    assert not (done / "pairs.tsv").exists()
    assert isinstance(netbic.load(done), netbic.SparseGraphSVD)
    run_successfully("pairs", *tables, "--out", done, *OPTIONS, "--force")
    expected = {"pairs.tsv", "weights.tsv", "scores.tsv", "alignment.json", "run.json", "model", "notes.txt"}
    assert {path.name for path in done.iterdir()} == expected
    assert {path.name for path in (done / "model").iterdir()} == {"model.json", "arrays.npz", "names.json"}


def test_a_failed_write_leaves_the_earlier_results(done, tables, monkeypatch):
    before = contents(done, sorted(path.name for path in done.iterdir() if path.is_file()))

    def fail(*arguments, **options):
        raise netbic.files.WriteError("weights.tsv", "the disk is full")

    monkeypatch.setattr("netbic.storage.runs.weights_table", fail)
    shown = failure("pairs", *tables, "--out", done, *OPTIONS, "--force", "--pairs", 1)
    assert "the disk is full" in shown
    assert "(earlier results are unchanged)" in shown
    assert contents(done, sorted(path.name for path in done.iterdir() if path.is_file())) == before


def test_commands_about_modules_say_that_these_are_pairs(done, tables, tmp_path):
    for command in (
        ["enrich", done],
        ["score", done, tables[0]],
        ["export", done, "--format", "gmt"],
        ["plot", done, "heatmap", "--out", tmp_path / "figure.png"],
        ["compare", done, done],
        ["replicate", done, tables[0]],
    ):
        assert "contains pairs of two tables (SparseGraphCCA), not modules of one table" in failure(*command)


def test_options_for_reading_are_given_for_both_tables_or_for_each(tmp_path):
    first, second = both_tables()
    second["note"] = 0.0
    tables = write_tables(tmp_path, first.assign(remark=1.0), second)
    given = ("pairs", *tables, "--out", tmp_path / "out", *OPTIONS)
    shown = run_successfully(*given, "--skip-columns", "remark", "--skip-columns", "note").output
    assert "samples: 40 in table 1, 40 in table 2" in shown
    assert "no column 'remark' to skip" in failure(*given, "--force", "--skip-columns", "remark")
    three = ("--top-features", 9, "--top-features", 8, "--top-features", 7)
    assert "--top-features is given 3 times, but there are two tables" in failure(*given, "--force", *three)


def test_the_help_speaks_of_features():
    text = run("pairs", "--help-all").output
    assert not re.search(r"\bgenes?\b(?! and lipids)", text)
    assert not re.search(r"--\w*gene", text)
