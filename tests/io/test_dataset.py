"""Two tables of the same samples (matching, messages, names of sparse matrices), and scores of new samples."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError
from netbic.io.dataset import SampleMatching, about_table, fit_by_name, in_features, match_samples, scores_by_name
from netbic.io.expression import Expression


def table(samples, n_features=4):
    names = np.array(samples, dtype=object), np.array([f"f{k}" for k in range(n_features)], dtype=object)
    return Expression(np.zeros((len(samples), n_features)), *names)


def test_the_samples_of_both_tables_keep_the_order_of_the_first():
    (one, other), found = match_samples(table(["d", "a", "x", "b"]), table(["b", "y", "a", "d", "z"]))
    assert one.tolist() == [0, 1, 3]
    assert other.tolist() == [3, 2, 0]
    assert found == SampleMatching(4, 5, 3, ("x",), ("y", "z"))
    assert list(found.lines()) == [
        "samples: 4 in table 1, 5 in table 2, 3 in both",
        "only in table 1, not used: 1 ('x')",
        "only in table 2, not used: 2 ('y', 'z')",
    ]


def test_only_some_names_are_stored_of_many():
    _, found = match_samples(table([f"s{k}" for k in range(300)]), table(["s0", "s1", "s2"]))
    assert (len(found.only_first), found.in_first) == (100, 300)
    assert list(found.lines())[1] == "only in table 1, not used: 297 ('s3', 's4', 's5', ...)"


def test_one_table_without_names_is_not_matched_by_position():
    with pytest.raises(InputError, match="no sample in common"):
        match_samples(table([f"sample_{k}" for k in range(5)]), table(list("abcde")))


def test_messages_name_the_table_and_its_parameters():
    with pytest.raises(InputError) as caught, about_table(2):
        raise InputError("no gene matches: give a table (`id_map`)", ["id_map"])
    assert str(caught.value) == "table 2: no feature matches: give a table (`id_map2`)"
    assert caught.value.parameters == ("id_map2",)
    with pytest.warns(UserWarning, match=r"^table 1: look at these genes\.tsv \(`skip_columns1`\)$"), about_table(1):
        warnings.warn("look at these genes.tsv (`skip_columns`)", stacklevel=1)


def test_names_that_contain_the_word_stay_as_they_are():
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
def test_integers_are_scored_as_the_same_floats(form):
    kept = [name for k, name in enumerate(names) if k != int(np.flatnonzero(model.columns_[0])[0])]
    part = counts[:, [int(name) for name in kept]]
    np.testing.assert_allclose(scores_by_name(model, form(part), kept), scores_by_name(model, form(part * 1.0), kept))


def test_missing_entries_in_sparse_matrices_are_refused():
    incomplete = counts.astype(float)
    incomplete[3, 4] = np.nan
    with pytest.raises(InputError, match="sparse and contains NaN"):
        scores_by_name(model, sp.csr_array(incomplete), names)


def test_each_column_needs_a_name():
    with pytest.raises(InputError, match="X has 20 columns but 30 genes are named"):
        scores_by_name(model, counts[:, :20], names)
