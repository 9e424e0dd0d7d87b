"""Models with penalties of groups: monotone, signs, names, saving, tuning, recovery of planted groups."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import netbic
from netbic import Graph, GroupL0, SparseGraphSVD
from support.problems import searched_for_one

seeds = st.integers(0, 2**32 - 1)
GENES = [f"g{i}" for i in range(120)]


def planted(seed=0, n=60, n_sets=24, active=(3, 7), strength=0.9, overlap=True):
    """Samples x genes with one module: the genes of two sets, in all samples."""
    generator = np.random.default_rng(seed)
    if overlap:
        members = [generator.choice(120, 12, replace=False) for _ in range(n_sets)]
    else:
        members = np.split(generator.permutation(120), 20)
    sets = {f"set {number}": [GENES[i] for i in own] for number, own in enumerate(members)}
    weights = np.zeros(120)
    inside = np.unique(np.concatenate([members[number] for number in active]))
    weights[inside] = generator.choice([-1.0, 1.0], inside.size)
    X = strength * np.outer(generator.standard_normal(n), weights) + generator.standard_normal((n, 120))
    return pd.DataFrame(X, columns=GENES), sets, inside


def random_graph(generator, size):
    upper = np.triu(generator.random((size, size)) < 0.1, 1)
    upper[0, 1] = True
    return Graph((upper | upper.T).astype(float))


@settings(max_examples=15)
@given(
    seeds,
    st.sampled_from([None, "modularity", "adjacency", "laplacian"]),
    st.sampled_from(["auto", "monotone"]),
    st.booleans(),
    st.sampled_from(["absolute", "signed"]),
)
def test_the_objective_never_decreases(seed, term, solver, nonnegative, signs):
    generator = np.random.default_rng(seed)
    X, graph = generator.standard_normal((20, 40)), random_graph(generator, 40)
    groups = [generator.choice(40, 6, replace=False) for _ in range(30)]
    penalty = GroupL0(groups, 5, nonnegative=nonnegative)
    options = {} if term is None else {"column_graph": graph, "graph_term": term, "smoothness_scale": "relative"}
    model = SparseGraphSVD(2, column_penalty=penalty, center=None, solver=solver, signs=signs, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the weight of the graph
        model.fit(X)
    for objectives in model.objectives_:
        assert np.diff(objectives).min(initial=0.0) >= -1e-12 * abs(objectives[-1])
    if nonnegative:
        assert (model.components_ >= 0).all()
    _check_groups(model, penalty.for_names(None, 40, "column"))


def _check_groups(model, penalty):
    """The columns of a module are those of its groups, apart from entries of zero."""
    names, coverage = [str(name) for name in penalty.groups], penalty.groups.coverage(model.n_features_in_)
    for number, table in model.groups_.groupby("module"):
        module = number - 1
        chosen = [names.index(group) for group in table["group"]]
        inside = coverage.covered(chosen)
        assert not (model.columns_[module] & ~inside).any()
        assert len(set(chosen)) == len(chosen) <= penalty.k
        shares = [(model.components_[module][coverage.members(group)] ** 2).sum() for group in chosen]
        np.testing.assert_allclose(table["share"], shares, rtol=1e-12)


@pytest.mark.parametrize("overlap", [False, True])
def test_planted_sets_are_recovered(overlap):
    X, sets, inside = planted(overlap=overlap)
    model = SparseGraphSVD(1, column_penalty=GroupL0(sets, 2)).fit(X)
    assert set(model.groups_["group"]) == {"set 3", "set 7"}
    assert np.flatnonzero(model.columns_[0]).tolist() == inside.tolist()
    assert model.groups_["size"].tolist() == [len(sets[group]) for group in model.groups_["group"]]
    assert model.converged_.all()
    # A half step from the result changes nothing.
    searched = searched_for_one(((X - X.mean()) / X.std(ddof=0) ** 0.5).to_numpy())
    scores = np.abs(searched.T @ searched @ model.components_[0])
    kept = GroupL0(sets, 2).for_names(np.array(GENES, dtype=object), 120, "column").threshold(scores)
    np.testing.assert_allclose(
        np.abs(model.components_[0, kept.support]), kept.values / np.linalg.norm(kept.values), atol=1e-5
    )


def test_the_best_pair_of_a_tiny_problem():
    """With one group on each axis the module is the leading pair of a block: all blocks are tried."""
    for seed in range(10):
        generator = np.random.default_rng(seed)
        X = generator.standard_normal((8, 10))
        rows, columns = np.split(generator.permutation(8), 4), np.split(generator.permutation(10), 5)
        options = {"row_penalty": GroupL0(rows, 1), "column_penalty": GroupL0(columns, 1), "center": None}
        model = SparseGraphSVD(1, n_init=30, random_state=0, **options).fit(X)
        best = max(np.linalg.norm(X[np.ix_(r, c)], 2) for r in rows for c in columns)
        assert model.singular_values_[0] == pytest.approx(best, rel=1e-6)
        assert model.groups_["axis"].tolist() == ["rows", "columns"]


def test_a_model_is_saved_and_loaded(tmp_path):
    X, sets, _ = planted()
    model = SparseGraphSVD(2, column_penalty=GroupL0(sets, 2, nonnegative=True)).fit(X)
    netbic.save(model, tmp_path / "model")
    again = netbic.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.groups_, model.groups_)
    assert again.column_penalty == model.column_penalty
    np.testing.assert_array_equal(clone(again).fit(X).components_, model.components_)
    adata = anndata.AnnData(X.set_axis(X.index.astype(str)))
    netbic.tl.modules(adata, n_modules=1, column_penalty=GroupL0(sets, 2))
    adata.write_h5ad(tmp_path / "modules.h5ad")
    again = netbic.tl.from_anndata(anndata.read_h5ad(tmp_path / "modules.h5ad"))
    assert set(again.groups_["group"]) == set(adata.uns["netbic"]["kept_groups"]["group"]) == {"set 3", "set 7"}


def test_selection_matches_groups_by_name():
    X, sets, _ = planted()
    shuffled = X.iloc[:, np.random.default_rng(0).permutation(120)]
    grid = {"column_penalty": [GroupL0(sets, k) for k in (1, 2, 6)]}
    tuning = netbic.selection.tune(SparseGraphSVD(1), shuffled, grid, random_state=0, n_jobs=1)
    assert tuning.best_params_["column_penalty"] == GroupL0(sets, 2)
    model = tuning.best_estimator_
    assert set(model.groups_["group"]) == {"set 3", "set 7"}
    assert netbic.selection.n_modules(model, shuffled, most=2, random_state=0, n_jobs=1).n == 1
    assert netbic.selection.verdicts(model, shuffled, random_state=0, n_jobs=1).table["verdict"].tolist() == ["strong"]
    stable = netbic.selection.stability(model, shuffled, n_pairs=5, random_state=0, n_jobs=1)
    assert (stable.columns.frequency.to_numpy()[model.columns_[0], 0] > 0.9).all()


def test_gene_sets_from_a_file(tmp_path):
    X, sets, _ = planted()
    lines = ["\t".join([name, "na", *genes, "NOT_MEASURED"]) for name, genes in sets.items()]
    (tmp_path / "sets.gmt").write_text("\n".join(lines))
    penalty = GroupL0(netbic.io.read_gene_sets(tmp_path / "sets.gmt"), 2)
    with pytest.warns(UserWarning, match=r"^column groups: 1 of 1\d\d members are not columns of X: left out$"):
        model = SparseGraphSVD(1, column_penalty=penalty).fit(X)
    assert set(model.groups_["group"]) == {"set 3", "set 7"}


def test_what_cannot_be_fitted():
    X, sets, _ = planted()
    for data, options, message in (
        (X, {"column_penalty": GroupL0(sets, 25)}, "there are 24 different groups .* choose k from 1 to 24"),
        (X, {"column_penalty": GroupL0({"a": ["TP53"]}, 1)}, "no member of the column groups is a column of X"),
        (X.to_numpy(), {"column_penalty": GroupL0(sets, 1)}, "the columns of X have no such names: give X as a Data"),
        (X, {"n_columns": 5, "column_penalty": GroupL0(sets, 1)}, "are both given"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseGraphSVD(1, **options).fit(data)
