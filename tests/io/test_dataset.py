"""Two tables of the same samples (matching, messages, names of sparse matrices), and scores of new samples."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError
from netbic.io.dataset import SampleMatching, about_table, fit_by_name, in_features, match_samples, scores_by_name
from netbic.io.expression import Expression
from support.commands import run, run_successfully


def table(samples, n_features=4):
    names = np.array(samples, dtype=object), np.array([f"f{k}" for k in range(n_features)], dtype=object)
    return Expression(np.zeros((len(samples), n_features)), *names)


def test_the_samples_of_both_tables_keep_the_order_of_the_first():
    (one, other), found = match_samples(table(["d", "a", "x", "b"]), table(["b", "y", "a", "d", "z"]))
    assert one.tolist() == [0, 1, 3]
    assert other.tolist() == [3, 2, 0]
    assert found == SampleMatching(4, 5, 3, ("x",), ("y", "z"))
    assert list(found.lines(("RNA", "protein"))) == [
        "samples: 4 in RNA, 5 in protein, 3 in both",
        "only in RNA, not used: 1 ('x')",
        "only in protein, not used: 2 ('y', 'z')",
    ]
    _, found = match_samples(table([f"s{k}" for k in range(300)]), table(["s0", "s1", "s2"]))
    assert (len(found.only_first), found.in_first) == (100, 300)
    assert list(found.lines(("RNA", "protein")))[1] == "only in RNA, not used: 297 ('s3', 's4', 's5', ...)"
    with pytest.raises(InputError, match="no sample in common"):  # one table without names: not by position
        match_samples(table([f"sample_{k}" for k in range(5)]), table(list("abcde")))


def test_messages_name_the_table_and_its_parameters():
    with pytest.raises(InputError) as caught, about_table(2, "protein"):
        raise InputError("no gene matches: give a table (`id_map`)", ["id_map"])
    assert str(caught.value) == "protein: no feature matches: give a table (`id_map2`)"
    assert caught.value.parameters == ("id_map2",)
    with pytest.warns(UserWarning, match=r"^RNA: look at these genes\.tsv \(`skip_columns1`\)$"), about_table(1, "RNA"):
        warnings.warn("look at these genes.tsv (`skip_columns`)", stacklevel=1)
    assert in_features("2 genes: my-gene, gene_1, a.gene, genes") == "2 features: my-gene, gene_1, a.gene, features"


def test_a_sparse_matrix_and_a_dense_one_give_models_with_the_same_names_and_graphs():
    random = np.random.default_rng(0)
    X, Y = random.poisson(1.0, (30, 8)).astype(float), random.standard_normal((30, 5))
    names = [f"s{k}" for k in range(30)], [f"x{k}" for k in range(8)], [f"y{k}" for k in range(5)]
    graph = netbic.Graph(sp.csr_array(np.eye(8, k=1) + np.eye(8, k=-1)), np.array(names[1], dtype=object))
    models = []
    for matrix in (X, sp.csr_array(X)):
        models.append(netbic.SparseGraphCCA(1, n_x=3, n_y=2, x_graph=graph))
        fit_by_name(models[-1], matrix, Y, *names)
    dense, sparse = models
    np.testing.assert_allclose(sparse.x_weights_, dense.x_weights_, atol=1e-10)
    for model in models:
        assert model.x_graph is graph
        assert model.graphs_["x"].names.tolist() == names[1]
        assert model.names_["samples"].tolist() == names[0]
    assert dense.feature_names_in_.tolist() == names[1]


counts = np.random.default_rng(0).poisson(5.0, (60, 30))
model = netbic.SparseGraphSVD(1, n_rows=20, n_columns=10).fit(counts.astype(float))
names = [str(k) for k in range(30)]


@pytest.mark.filterwarnings("ignore:.*set to their mean")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_integers_are_scored_as_the_same_floats_and_incomplete_or_nameless_data_are_refused(form):
    kept = np.delete(np.arange(30), np.argmax(model.columns_[0]))
    part, named = form(counts[:, kept]), [names[at] for at in kept]
    np.testing.assert_allclose(scores_by_name(model, part, named), scores_by_name(model, part * 1.0, named))
    with pytest.raises(InputError, match="sparse and contains NaN"):
        scores_by_name(model, sp.csr_array(np.where(counts == counts[3, 4], np.nan, counts)), names)
    with pytest.raises(InputError, match="X has 20 columns but 30 genes are named"):
        scores_by_name(model, counts[:, :20], names)


# Scores of files

GENES, SAMPLES = [f"GENE{k:03d}" for k in range(40)], [f"s{k}" for k in range(12)]
TABLE = pd.DataFrame(np.random.default_rng(0).normal(8, 1, (40, 12)).round(3), index=GENES, columns=SAMPLES)


def written(path, data, **options):
    data.to_csv(path, sep="\t", **options)
    return path


def test_new_samples_are_preprocessed_like_the_training_samples(tmp_path):
    data = pd.DataFrame(np.random.default_rng(1).poisson(20, (40, 12)), index=GENES, columns=SAMPLES)
    path, out = written(tmp_path / "counts.tsv", data), tmp_path / "out"
    net = written(tmp_path / "net.tsv", pd.DataFrame({"a": GENES[:-1], "b": GENES[1:]}), index=False, header=False)
    options = ("--cpm", "--log1p", "--top-genes", 30, "--modules", 2, "--genes", 10, "--samples", 4, "--no-report")
    refused = run("fit", path, "--graph", net, "--out", out, "--method", "sgSVD*", *options)
    assert (refused.exit_code, "needs --smoothness" in refused.output) == (2, True)
    run_successfully("fit", path, "--graph", net, "--out", out, *options)
    run_successfully("score", out, path, "--out", tmp_path / "scores.tsv")
    fitted = netbic.load(out)
    logs = np.log1p(data / data.sum(axis=0) * 1e6).T[fitted.feature_names_in_]
    scores = netbic.io.read_table(tmp_path / "scores.tsv")
    np.testing.assert_allclose(scores[["module_1", "module_2"]], netbic.get.scores_df(fitted, logs), atol=1e-9)
    few = run("score", out, written(tmp_path / "two.tsv", data[["s3", "s5"]])).stdout.splitlines()[1].split("\t")
    assert (few[0], float(few[1])) == ("s3", pytest.approx(scores["module_1"][3]))


def test_scores_with_a_saved_model_and_of_other_file_layouts(tmp_path):
    fitted = netbic.SparseGraphSVD(2, n_rows=4, n_columns=10).fit(TABLE.T)
    netbic.save(fitted, tmp_path / "saved")
    turned = written(tmp_path / "turned.tsv", TABLE.T, index_label="sample")
    for arguments, path in (
        ((), written(tmp_path / "table.tsv", TABLE)),
        (("--samples-in-rows",), turned),
        (("--skip-columns", "length"), written(tmp_path / "longer.tsv", TABLE.assign(length=1000.0))),
    ):
        done = run_successfully("score", tmp_path / "saved", path, "--out", tmp_path / "s.tsv", "--force", *arguments)
        assert "has no record of how its data were read and preprocessed: the file is not preprocessed" in done.stderr
        scores = netbic.io.read_table(tmp_path / "s.tsv")
        assert scores["sample"].tolist() == SAMPLES
        expected = netbic.get.scores_df(fitted, TABLE.T)
        np.testing.assert_allclose(scores[["module_1", "module_2"]], expected, atol=1e-9)
    with (
        pytest.warns(UserWarning, match="no record of how its data were read"),
        pytest.raises(InputError, match=r"names of genes of the modules.*\(`samples_in_rows`\)") as caught,
    ):
        netbic.storage.read_like(tmp_path / "saved", turned)
    assert caught.value.parameters == ("samples_in_rows",)


def test_missing_entries_in_new_samples_are_filled_and_counted(tmp_path):
    whole, incomplete = written(tmp_path / "a.tsv", TABLE), TABLE.where(TABLE.iloc[3, 5] != TABLE)
    new = written(tmp_path / "b.tsv", incomplete)
    run_successfully("fit", whole, "--modules", 1, "--no-report", "--out", tmp_path / "out")
    done = run("score", tmp_path / "out", new)
    assert done.exit_code == 0
    assert "1 missing value" in done.output
    run_successfully("fit", whole, "--missing", "ignore", "--modules", 1, "--no-report", "--out", tmp_path / "again")
    run_successfully("score", tmp_path / "again", new)
