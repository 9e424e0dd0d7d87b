"""netbic pairs: two tables matched by the names of their samples, what is written, and labels of the samples."""

import json
import re
import shutil

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.files import FIT_PIECES, PAIR_FILES, read_table, recorded_files
from netbic.storage.runs import Pieces, Task
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
        own = weights[(weights["pair"] == weights["pair"].min()) & (weights["table"] == "lipids")]
        assert set(own["name"]) == set(Y.columns[model.y_support_[0]])
        assert scores["sample"].tolist() == [*X.index, *X.index]
        np.testing.assert_allclose(scores["score_2"], model.y_scores_.T.ravel(), atol=1e-12)


def test_samples_are_matched_by_name_and_those_of_one_table_left_out(tmp_path):
    first, second = both_tables()
    extra = pd.DataFrame(np.ones((P, 5)), index=first.index, columns=[f"extra {k}" for k in range(5)])
    tables = write_tables(
        tmp_path, pd.concat([extra, first], axis=1), second.assign(note=0.0).drop(columns=["mouse 3"])
    )
    given = ("pairs", *tables, "--out", tmp_path / "out", *OPTIONS)  # options are for both tables, or for each
    assert "no column 'note' to skip" in failure(*given, "--skip-columns", "note")
    three = ("--top-features", 9, "--top-features", 8, "--top-features", 7)
    assert "--top-features is given 3 times, but there are two tables" in failure(*given, *three)
    shown = run_successfully(*given, "--skip-columns", "extra 4", "--skip-columns", "note").output
    assert "samples: 44 in genes, 39 in lipids, 39 in both" in shown
    assert "only in genes, not used: 5 ('extra 0', 'extra 1', 'extra 2', ...)" in shown
    matched = json.loads((tmp_path / "out" / "alignment.json").read_text())["samples"]
    assert matched["in_both"] == 39
    assert matched["only_first"] == [*extra.columns[:4], "mouse 3"]
    (tmp_path / "fewer").mkdir()
    kept = [name for name in first.columns if name != "mouse 3"]
    other = second[kept].sample(frac=1, axis=1, random_state=3)  # the order of the samples does not matter
    given = write_tables(tmp_path / "fewer", first[kept], other)
    run_successfully("pairs", *given, "--out", tmp_path / "kept", *OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "kept")


def failure(*arguments):
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert len(result.stderr.splitlines()) == 1, result.output
    assert "bug" not in result.stderr
    return result.stderr


def test_other_problems_are_one_line_each(tables, tmp_path):
    given = ("pairs", *tables, "--out", tmp_path / "out")
    for options, message in (
        (["--smoothness2", "0.3"], "--smoothness2 needs a network: use --graph2"),
        (["--method", "pls", "--ridge", "0.2"], "--ridge is for --method cca"),
        (["--permutations", "10"], "--permutations 10: no p-value can be below 0.091, so no pair can be significant"),
        (["--features2", "900"], "--features2 900 but lipids has 20 features: choose 1 to 20"),
    ):
        assert message in failure(*given, *options)
    shown = run("pairs", tables[0], tables[0], "--out", tmp_path / "same", *OPTIONS).output
    assert shown.count("TABLE1 and TABLE2 have the same values") == 2  # before the search, and with the results
    assert "--variables needs --sample-info" in failure(*given, "--variables", "group")
    sets = tmp_path / "go.gmt"
    sets.write_text("GO:1\tone\tg1\tg2\nGO:2\ttwo\tg1\tg3\n")
    assert "looks like a GMT file, not an expression table: use it as --gene-sets" in failure(
        "pairs", tables[0], sets, "--out", tmp_path / "out"
    )
    first, second = both_tables()
    for name, message in (
        (lambda name: f"rat {name[6:]}", "have no sample in common (genes: 'mouse 0', 'mouse 1'"),
        (lambda name: name.upper().replace(" ", "-"), "differ in capital letters, spaces or punct"),
        (lambda name: name if name in ("mouse 0", "mouse 1") else f"rat {name}", "only 2 samples in"),
    ):
        others = write_tables(tmp_path, first, second.rename(columns=name))
        assert message in failure("pairs", *others, *given[3:])
        assert not (tmp_path / "out").exists()
    first.loc["g29"], first["only here"] = 1.0, 0.0
    first.loc["g29", "only here"] = 5.0  # it varies in the file, but not in the samples of both
    shown = run_successfully(*given[:1], *write_tables(tmp_path, first, second.iloc[:2]), *given[3:], *OPTIONS[:2],
                             "--no-report", "--pairs", 3, "--permutations", 0).output  # fmt: skip
    assert "genes: preprocessed: drop constant (1 features): g29" in shown
    assert "warning: found 2 of 3 pairs" in shown
    assert "found 2 of 3 pairs" in netbic.io.read_json(tmp_path / "out" / "run.json")["warnings"][0]
    second.loc["l7", "mouse 4"] = np.nan
    shown = failure("pairs", *write_tables(tmp_path, first, second), "--out", tmp_path / "other")
    assert "lipids: 1 value is missing (the first: feature 'l7', sample 'mouse 4'): use --missing ignore" in shown
    for name, table in (("x", both_tables()[0]), ("short", second.iloc[:, :-1].fillna(0))):
        np.save(tmp_path / f"{name}.npy", table.to_numpy().T)
    shown = failure("pairs", tmp_path / "x.npy", tmp_path / "short.npy", "--out", tmp_path / "other")
    assert "x has 40 samples and short has 39, and neither has names" in shown


def test_a_transposed_table_is_recognised_and_can_be_read(done, tmp_path):
    tables = write_tables(tmp_path, second=both_tables()[1].T)
    shown = failure("pairs", *tables, "--out", tmp_path / "out", *OPTIONS)
    assert "the features of lipids have the names of samples" in shown
    assert "exchanged: use --samples-in-rows 2" in shown
    shown = failure("pairs", *tables, "--out", tmp_path / "out", "--samples-in-rows", "both", *OPTIONS)
    assert "exchanged: leave out --samples-in-rows 1" in shown
    run_successfully("pairs", *tables, "--out", tmp_path / "out", "--samples-in-rows", 2, *OPTIONS)
    assert contents(tmp_path / "out") == contents(done)


def test_raw_counts_are_noticed_with_the_options_of_their_table(tmp_path):
    first, _ = both_tables()
    random = np.random.default_rng(1)
    counts = random.negative_binomial(1, 1 / (1 + random.lognormal(3, 2, (300, 1))), (300, N))
    counts = pd.DataFrame(counts, index=pd.Index([f"c{k}" for k in range(300)], name="id"), columns=first.columns)
    tables = write_tables(tmp_path, first, counts)
    shown = run("pairs", *tables, "--out", tmp_path / "out", *OPTIONS).output
    assert "warning: lipids: " in shown
    assert "add --cpm 2 --log1p 2" in shown
    shown = run("pairs", *tables, "--out", tmp_path / "out", "--cpm", 2, "--log1p", 2, "--force", *OPTIONS).output
    assert "lipids: preprocessed: counts per million" in shown
    assert "add --cpm 2" not in shown
    assert netbic.io.read_json(tmp_path / "out" / "run.json")["inputs"]["log1p"] == "2"


def test_networks_are_matched_and_used(tables, tmp_path):
    edges = [(f"g{a}", f"g{b}") for a in range(6) for b in range(a)]
    (tmp_path / "network.sif").write_text("".join(f"{a}\tbinds\t{b}\n" for a, b in edges))
    given = ("pairs", *tables, "--out", tmp_path / "out", "--graph1", tmp_path / "network.sif", *OPTIONS)
    shown = run_successfully(*given, "--smoothness1", 0.3).output
    assert "genes: matched: 6 of 30 features (20%); the network has 6 features" in shown
    model = netbic.load(tmp_path / "out")
    assert model.graphs_["x"].n_edges == len(edges)
    assert (model.x_smoothness, model.graphs_["y"]) == (0.3, None)
    inside = [model.graphs_["x"].subgraph(members).n_edges for members in model.x_support_]
    assert read_table(tmp_path / "out" / "pairs.tsv")["n_edges_1"].tolist() == inside
    assert max(inside) > 0
    (tmp_path / "network.sif").write_text("a\tbinds\tb\nb\tbinds\tc\n")
    shown = failure(*given, "--force")
    assert "genes: no feature of the data is in the network" in shown
    assert "(--id-map)" in shown
    assert netbic.load(tmp_path / "out").graphs_["x"].n_edges == len(edges)  # results stay until others replace them


def test_what_is_printed(tables, tmp_path):
    tested = (*OPTIONS, "--permutations", 39)
    shown = run_successfully("pairs", *tables, "--out", tmp_path / "out", *tested).output
    row = read_table(tmp_path / "out" / "pairs.tsv").iloc[0]
    numbers = f"{row['held_out_correlation']:.2f} (95% interval {row['held_out_low']:.2f} to"
    assert f"  pair 1 ({row['verdict']}): correlation {numbers}" in shown
    assert "held out; p <= 0.025 with 39 permutations\n    6 features of genes (g" in shown
    weights = read_table(tmp_path / "out" / "weights.tsv")
    assert weights["confidence"].between(0, 1).all()
    assert "stronger than expected by chance" in shown
    untested = run_successfully("pairs", *tables, "--out", tmp_path / "untested", *OPTIONS, "--ridge", 0.4).output
    assert "expect smaller correlations in new samples" in untested
    model = netbic.load(tmp_path / "untested")
    assert (model.covariance, model.ridge) == ("ridge", 0.4)
    assert run_successfully("pairs", *tables, "--out", tmp_path / "quiet", "--quiet", *OPTIONS).output == ""


def test_the_number_of_pairs_comes_from_the_tests(tables, tmp_path):
    given = ("pairs", *tables, "--out", tmp_path / "out", *OPTIONS[:4], "--permutations", 39, "--no-report")
    shown = run_successfully(*given).output
    doubtful = (read_table(tmp_path / "out" / "pairs.tsv")["verdict"] == "doubtful").tolist()
    assert doubtful[-2:] == [True, True] != doubtful[-3:-1]
    assert netbic.load(tmp_path / "out").n_components == len(doubtful)
    assert "search for more pairs" not in shown
    assert "search for more pairs with --pairs 2" in run_successfully(*given, "--pairs", 1, "--force").output


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
    (done / "notes.txt").write_text("mine")  # nothing else of the earlier kind of results stays behind
    run_successfully("fit", tables[0], "--out", done, "--force", "--modules", 1, "--genes", 5, "--no-report")
    assert not (done / "pairs.tsv").exists()
    assert isinstance(netbic.load(done), netbic.SparseGraphSVD)
    run_successfully("pairs", *tables, "--out", done, *OPTIONS, "--force", "--pairs", 1)
    assert len(read_table(done / "pairs.tsv")) == 1
    expected = {"pairs.tsv", "weights.tsv", "scores.tsv", "alignment.json", "run.json", "model", "notes.txt"}
    assert {path.name for path in done.iterdir()} == expected
    assert {path.name for path in (done / "model").iterdir()} == {"model.json", "arrays.npz", "names.json"}


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


def test_commands_about_modules_say_that_these_are_pairs(done, tables, tmp_path):
    for command in (
        ["score", done, tables[0]],
        ["compare", done, done],
        ["replicate", done, tables[0]],
    ):
        assert "contains pairs of two tables (SparseGraphCCA), not modules of one table" in failure(*command)


def test_the_help_speaks_of_features():
    text = run("pairs", "--help-all").output
    text = re.sub(r"\s+", " ", text).replace("whose features are genes", "")
    assert not re.search(r"\bgenes?\b(?! and lipids|[ -]sets)", text)
    assert not re.search(r"--\w*gene(?!-sets)", text)


# A table of the samples


@pytest.fixture
def labels(tmp_path):
    """High and low samples of one pair, and a label that has nothing to do with it."""
    first = both_tables()[0].iloc[:6].sum()
    table = pd.DataFrame({"group": np.where(first > first.median(), "high", "low"), "plate": list("ab") * (N // 2)})
    path = tmp_path / "labels.tsv"
    table.set_axis(pd.Index(first.index, name="sample")).iloc[::-1].to_csv(path, sep="\t")
    return path


def test_pairs_are_compared_with_the_sample_table(tables, labels, tmp_path):
    out, options = tmp_path / "out", OPTIONS[:-1]
    shown = run_successfully("pairs", *tables, "--out", out, "--sample-info", labels, *options).output
    assert "matched: 40 of 40 samples (100%)" in shown
    assert re.search(r"group: (high|low) is higher in pair [12], (genes|lipids) \(AUC 0\.\d\d, q = ", shown)
    assert "plate: no association with a pair (q <= 0.05), but single features can still differ" in shown
    obs, second = pd.read_csv(labels, sep="\t", index_col=0), both_tables()[1]
    anndata.AnnData(second.T, obs=obs.loc[second.columns, ["group"]]).write_h5ad(tmp_path / "lipids.h5ad")
    shown = run_successfully("pairs", tables[0], tmp_path / "lipids.h5ad", "--out", tmp_path / "obs", *OPTIONS).output
    assert re.search(r"group: (high|low) is higher in pair [12]", shown)
    names = ("associations.tsv", "associations.json", "sample_info.tsv")
    assert recorded_files(out) >= set(names)
    expected = netbic.association.associate_pairs(netbic.load(out), netbic.io.read_sample_info(labels)).table
    found = read_table(out / "associations.tsv")
    pd.testing.assert_frame_equal(found.fillna(np.nan), expected.fillna(np.nan), check_dtype=False)
    page = (out / "report.html").read_text()
    assert re.search(r"<bdi>group: (high|low) is higher in pair [12], (genes|lipids) \(AUC", page)
    assert page.count('class="labelled"') == N  # of one of both pairs
    first = contents(out, names)
    run_successfully("associate", out, "--sample-info", labels)
    assert contents(out, names) == first
    run_successfully("associate", out, "--sample-info", labels, "--variables", "group", "--adjust", "plate", "--force")
    run_successfully("report", out)
    assert "<dt>tests adjusted for</dt><dd><bdi>plate</bdi></dd>" in (out / "report.html").read_text()


def test_adjusted_tests_of_pairs_are_shown_beside_the_others(tables, labels, tmp_path):
    out = tmp_path / "out"
    run_successfully("pairs", *tables, "--out", out, "--sample-info", labels, *OPTIONS)
    run_successfully("associate", out, "--sample-info", labels, "--adjust", "plate", "--name", "adjusted")
    run_successfully("report", out)
    page = (out / "report.html").read_text()
    adjusted, first = (read_table(out / f"associations{name}.tsv").fillna({"level": ""}) for name in ("_adjusted", ""))
    best = first[(first["variable"] == "group") & (first["test"] == "Mann-Whitney")].nsmallest(1, "q").iloc[0]
    about = ["pair", "table", "variable", "level"]
    same = (adjusted[about] == best[about]).all(axis=1)
    effect = adjusted.loc[same, "effect"].iloc[0]
    shown = f"adjusted for plate: standardised difference {effect:.2f}".replace("-", "\N{MINUS SIGN}")
    assert page.count(f"<bdi>{shown}, q = ") >= 2  # below the best pair of the variable, and on the card of the pair
    run_successfully("plot", out, "associations", "--name", "adjusted", "--out", tmp_path / "adjusted.svg")
    assert "Adjusted for plate" in (tmp_path / "adjusted.svg").read_text()
    wrong = run("plot", out, "scores", "--annotate", "Group", "--out", tmp_path / "wrong.svg")
    assert "no column 'Group' (--annotate): it has group, plate (did you mean group?)" in wrong.output
    wrong = run("plot", out, "associations", "--name", "other", "--out", tmp_path / "wrong.svg")
    assert "has no associations_other.tsv (there are: adjusted)" in wrong.output


def test_pairs_that_were_tested_are_compared_by_held_out_scores(tables, labels, tmp_path):
    out = tmp_path / "out"
    options = (*OPTIONS[:5], 1, "--permutations", 19, "--no-report")
    shown = run_successfully("pairs", *tables, "--out", out, "--sample-info", labels, *options).output
    assert "tested are held-out scores" in shown
    first, scores = read_table(out / "associations.tsv"), read_table(out / "scores.tsv")
    assert set(first["scores"]) == {"held out"}
    assert scores["held_out_1"].corr(scores["score_1"]) > 0.2  # signs are those of the pair
    assert not np.allclose(scores["held_out_1"], scores["score_1"])
    run_successfully("associate", out, "--sample-info", labels)
    pd.testing.assert_frame_equal(read_table(out / "associations.tsv"), first)
    run_successfully("export", out, "--format", "xlsx")
    confidence = pd.read_excel(out / "pairs.xlsx", sheet_name="Pair 1")["confidence"].dropna()
    assert confidence.is_monotonic_decreasing
    table = pd.read_csv(labels, sep="\t").assign(os_months=np.arange(1, N + 1), os_event=[1, 1, 0, 1] * (N // 4))
    table.to_csv(tmp_path / "times.tsv", sep="\t", index=False)
    run_successfully("associate", out, "--sample-info", tmp_path / "times.tsv")
    for name, title in (("lipids", "Pair 1: scores of lipids"), ("genes", "Pair 1: scores of genes")):
        run_successfully("plot", out, "survival", "--pair", 1, "--table", name, "--out", tmp_path / f"{name}.svg")
        assert title in (tmp_path / f"{name}.svg").read_text()
    wrong = run("plot", out, "survival", "--table", "RNA", "--out", tmp_path / "wrong.svg")
    assert "the tables are genes and lipids" in wrong.output
    assert "--pair has no effect" in run("plot", out, "associations", "--pair", 1, "--out", tmp_path / "w.svg").output


def test_covariates_are_removed_from_both_tables(tables, labels, tmp_path):
    out, options = tmp_path / "out", (*OPTIONS[:6], "--permutations", 19, "--covariates", "plate")
    refused = run("pairs", *tables, "--out", out, *options)
    assert "--covariates needs a sample table: use --sample-info" in refused.output
    named = (*options, "--sample-info", labels)
    assert "did you mean plate?" in run("pairs", *tables, "--out", out, *named, "--covariates", "plates").output
    shown = run_successfully("pairs", *tables, "--out", out, *named).output
    assert "covariate plate: 2 groups (a, b)" in shown
    assert json.loads((out / "run.json").read_text())["settings"]["covariates"] == "plate"
    assert (
        "<dt>covariates removed from the data</dt><dd><bdi>plate (2 levels)</bdi></dd>"
        in (out / "report.html").read_text()
    )
    plates = pd.read_csv(labels, sep="\t", index_col=0)["plate"]
    X, Y = (table.T for table in both_tables())
    model = netbic.SparseGraphCCA(2, n_x=6, n_y=4, random_state=0).fit(X, Y, covariates=plates.to_frame())
    loaded = netbic.load(out)
    np.testing.assert_allclose(loaded.x_weights_, model.x_weights_[:, : loaded.n_components_], atol=1e-12)
    scores = read_table(out / "scores.tsv")
    means = scores.groupby(["pair", scores["sample"].map(plates)])[["score_1", "score_2", "held_out_1", "held_out_2"]]
    centred = means.mean().sub(scores.groupby("pair")[means.mean().columns].mean(), level="pair")
    np.testing.assert_allclose(centred, 0, atol=1e-8)
    expected = netbic.association.same_names(*(table - table.groupby(plates).transform("mean") for table in (X, Y)))
    assert len(expected) == (out / "same_names.tsv").exists()
    settings = ("--covariates", "group", "--sample-info", labels)
    assert run("pairs", *tables, "--out", out, *OPTIONS, *settings).exit_code  # other settings: nothing is replaced


def test_a_sample_table_in_the_output_folder_is_not_replaced(tables, labels, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    inside = out / "associations.tsv"
    inside.write_bytes(labels.read_bytes())
    result = run("pairs", *tables, "--out", out, *OPTIONS, "--sample-info", inside, "--force")
    assert result.exit_code != 0
    assert inside.read_bytes() == labels.read_bytes()


def test_samples_that_belong_together_are_averaged_and_pairs_are_not_tested(tables, labels, tmp_path):
    table = pd.read_csv(labels, sep="\t", index_col=0)
    donors = table.assign(donor=[f"d{k // 4}" for k in range(N)], arm=np.repeat(["drug", "none"], N // 2))
    donors[["donor", "arm"]].to_csv(tmp_path / "donors.tsv", sep="\t")
    out, given = tmp_path / "out", ("--sample-info", tmp_path / "donors.tsv", "--by", "donor")
    shown = run_successfully("pairs", *tables, "--out", out, *OPTIONS[:-1], "--permutations", 19, *given).output
    assert "pairs are not tested, because samples belong together (--by)" in shown
    assert "p_value" not in read_table(out / "pairs.tsv")
    assert set(read_table(out / "associations.tsv")["n"]) == {N // 4}
    page = (out / "report.html").read_text()
    assert "<h2>Sample table</h2>" in page
    assert "averages" in page


# Figures and exports


def test_pairs_are_exported_and_drawn_with_the_names_of_their_tables(done, labels, tmp_path):
    run_successfully("associate", done, "--sample-info", labels)
    model = netbic.load(done)
    run_successfully("export", done, "--format", "gmt")
    sets = netbic.io.read_gene_sets(done / "pairs.gmt")
    own = model.y_weights_[:, 0]
    assert set(sets.get("pair_1_lipids_up", ())) == {f"l{k}" for k in np.flatnonzero(own > 0)}
    assert sum(map(len, sets.values())) == 2 * (6 + 4)
    run_successfully("export", done, "--format", "lists", "--out", tmp_path / "lists")
    up = (tmp_path / "lists" / "pair_1_genes_up.txt").read_text().split()
    assert up == list(sets["pair_1_genes_up"])
    run_successfully("export", done, "--format", "lists", "--out", tmp_path / "lists", "--force")  # its own files
    run_successfully("export", done, "--format", "xlsx")
    book = pd.read_excel(done / "pairs.xlsx", sheet_name=None)
    assert list(book) == ["Summary", "Pair 1", "Pair 2", "Associations"]
    assert {"feature of genes", "feature of lipids", "score in genes", "score in lipids"} <= set(book["Pair 1"])
    assert recorded_files(done) >= {"pairs.gmt", "pairs.xlsx"}
    assert "--format cytoscape is for modules" in failure("export", done, "--format", "cytoscape")
    for kind, options in (("scores", ["--pair", 2, "--annotate", "group"]), ("loadings", []), ("associations", [])):
        run_successfully("plot", done, kind, *options, "--out", tmp_path / f"{kind}.svg")
    assert "score in lipids" in (tmp_path / "scores.svg").read_text()
    assert "2 genes" in (tmp_path / "associations.svg").read_text()
    shown = failure("plot", done, "heatmap", "--out", tmp_path / "heatmap.svg")
    assert "has pairs of two tables, of which heatmap cannot be drawn: choose scores, loadings" in shown
    assert "--pair 3: pairs are numbered from 1" in failure("plot", done, "scores", "--pair", 3, "--out", "x.svg")


def test_doubtful_pairs_are_neither_named_after_gene_sets_nor_compared(tables, labels, tmp_path):
    order = np.random.default_rng(0).permutation(N)
    other = read_table(tables[1]).set_index(read_table(tables[1]).columns[0])
    other.iloc[:, order].set_axis(other.columns, axis=1).to_csv(tmp_path / "shuffled.tsv", sep="\t")
    genes = read_table(tables[0]).iloc[:, 0]
    out, given = tmp_path / "out", (tables[0], tmp_path / "shuffled.tsv", "--sample-info", labels)
    shown = run_successfully(
        "pairs", *given, "--out", out, "--pairs", 1, "--features1", 12, "--permutations", 19
    ).output
    assert "no pair is tested: all are doubtful; " in shown
    again = run("associate", out, "--sample-info", labels, "--force")
    assert "no pair is tested: all are doubtful, and nothing is written" in again.output
    weights = read_table(out / "weights.tsv")
    own = weights.loc[weights["name"].isin(genes), "name"].tolist()
    (tmp_path / "sets.gmt").write_text("GO:1\tname of the set\t" + "\t".join(own))
    shown = run_successfully("enrich", out, "--gene-sets", tmp_path / "sets.gmt").output
    assert "(q <= 0.05), all of them in doubtful pairs" in shown
    run_successfully("report", out)
    page = (out / "report.html").read_text()
    assert page.count("name of the set") > 0
    assert "<bdi>name of the set with" not in page
    assert "held out" in page
    for number, axis in ((1, "x"), (2, "y")):
        held_out = read_table(out / "scores.tsv")[f"held_out_{number}"]
        circles = re.findall(rf'<circle [^>]*c{axis}="([-\d.]+)"', page)
        assert abs(np.corrcoef(held_out, np.array(circles, dtype=float))[0, 1]) > 0.9999
