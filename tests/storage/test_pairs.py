"""Models of two tables in folders: equal to the last bit after loading, and refused in one line if they were edited."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import netbic
from netbic import InputError, SparseGraphCCA, SparseGraphPLS
from netbic.storage.models import load_modules
from netbic.storage.tables import pair_scores_table, pairs_table, weights_table
from support.model_files import rewritten

N, P, Q = 50, 30, 20


def tables(dtype=np.float64):
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((N, P)), random.standard_normal((N, Q))
    Y[:, :4] += X[:, :6].sum(axis=1, keepdims=True)
    Y[:, 4:8] -= X[:, 6:12].sum(axis=1, keepdims=True)
    samples = [f"s{k}" for k in range(N)]
    X = pd.DataFrame(X.astype(dtype), index=samples, columns=[f"x{k}" for k in range(P)])
    return X, pd.DataFrame(Y.astype(dtype), index=samples, columns=[f"y{k}" for k in range(Q)])


def chain(names):
    return netbic.Graph.from_edges(pd.DataFrame({"a": names[:-1], "b": names[1:]}))


X, Y = tables()
GRAPH = chain(list(X.columns))
MODELS = {
    "cca": SparseGraphCCA(2, n_x=6, n_y=4, x_graph=GRAPH),
    "ridge": SparseGraphCCA(2, n_x=6, covariance="ridge", ridge=0.3, y_penalty=netbic.L1(0.2)),
    "hotelling": SparseGraphCCA(2, n_x=6, n_y=4, deflation="hotelling"),
    "pls": SparseGraphPLS(3, n_x=6, n_y=4, y_graph=chain(list(Y.columns)), y_smoothness=0.3),
    "unscaled": SparseGraphPLS(2, n_x=6, n_y=4, scale=False, deflation="canonical", random_state=3),
}


@pytest.fixture(scope="module")
def models():
    return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_same_to_the_last_bit(name, models, tmp_path):
    model = models[name]
    netbic.save(model, tmp_path / "model")
    again = netbic.load(tmp_path / "model")
    assert type(again) is type(model)
    for attribute, value in vars(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(again, attribute), value, strict=True)
    assert again.n_components_ == model.n_components_
    assert again.n_iter_ == model.n_iter_
    new_x, new_y = X.iloc[:20] * 1.1, Y.iloc[:20] + 0.3
    for before, after in zip(model.transform(new_x, new_y), again.transform(new_x, new_y), strict=True):
        np.testing.assert_array_equal(after, before, strict=True)
    assert again.score(new_x, new_y) == model.score(new_x, new_y)
    if name in ("pls", "unscaled"):
        np.testing.assert_array_equal(again.predict(new_x), model.predict(new_x), strict=True)
        np.testing.assert_array_equal(again.coef_, model.coef_, strict=True)
    for table in (pairs_table, weights_table, pair_scores_table):
        pd.testing.assert_frame_equal(table(again), table(model))
    for each in ("samples", "x", "y"):
        np.testing.assert_array_equal(again.names_[each], model.names_[each])
    for side, graph in model.graphs_.items():
        assert (again.graphs_[side] is None) == (graph is None)
    again.fit(X, Y)
    np.testing.assert_array_equal(again.x_weights_, model.x_weights_)


def test_single_precision_a_vector_and_no_pairs_stay_what_they_are(tmp_path):
    narrow = tables(np.float32)
    single = SparseGraphPLS(1, n_x=6, n_y=4).fit(*narrow)
    netbic.save(single, tmp_path / "single")
    again = netbic.load(tmp_path / "single")
    np.testing.assert_array_equal(again.predict(narrow[0]), single.predict(narrow[0]), strict=True)
    vector = SparseGraphPLS(1, n_x=6).fit(X.to_numpy(), Y["y0"].to_numpy())
    netbic.save(vector, tmp_path / "vector")
    again = netbic.load(tmp_path / "vector")
    assert again.predict(X.to_numpy()).shape == (N,)
    np.testing.assert_array_equal(again.predict(X.to_numpy()), vector.predict(X.to_numpy()))
    assert not hasattr(again, "feature_names_in_")
    with pytest.warns(UserWarning, match="found 0 of 1 pairs"):
        netbic.save(SparseGraphCCA(1, n_x=2, n_y=2).fit(np.ones((5, 4)), np.ones((5, 3))), tmp_path / "none")
    empty = netbic.load(tmp_path / "none")
    assert len(pairs_table(empty)) == len(weights_table(empty)) == len(pair_scores_table(empty)) == 0
    assert weights_table(again)["name"].tolist()[:1] == [int(np.argmax(np.abs(vector.x_weights_[:, 0])))]


def array(name, change):
    return "arrays.npz", lambda arrays: arrays | {name: change(arrays[name])}


def settings(**changes):
    return "model.json", lambda header: header | {"settings": header["settings"] | changes}


CHANGES = [
    (*array("y_offsets", lambda values: values[:-1]), "y_offsets .* does not fit the others"),
    (*array("rounds", lambda values: values + 1), "objectives .* does not fit the others"),
    (*settings(deflation="none"), "deflation"),
    ("names.json", lambda names: names | {"y": names["y"][1:]}, "the model has 20 y but 19 names"),
    ("model.json", lambda header: header | {"class": "SparseGraphSVD"}, "."),
]


def test_an_edited_model_is_refused_and_the_best_of_a_search_is_saved(models, tmp_path):
    for name, change, message in CHANGES:
        netbic.save(models["cca"], tmp_path)
        rewritten(tmp_path, name, change)
        with pytest.raises(InputError, match=message) as caught:
            netbic.load(tmp_path)
        assert "\n" not in str(caught.value)
    search = GridSearchCV(SparseGraphCCA(1, n_y=4), {"n_x": [4, 6]}, cv=3).fit(X, Y)
    netbic.save(search, tmp_path)
    assert netbic.load(tmp_path).n_x == search.best_params_["n_x"]
    with pytest.raises(ValueError, match="not fitted"):
        netbic.save(SparseGraphPLS(), tmp_path)
    for function in (load_modules, netbic.get.modules_df):
        with pytest.raises(InputError, match=r"contains pairs of two tables \(SparseGraphCCA\), not modules"):
            function(tmp_path)


def test_tables_agree_with_the_model(models):
    model = models["pls"]
    pairs, weights, scores = pairs_table(model), weights_table(model), pair_scores_table(model)
    assert pairs["n_features_1"].tolist() == [6, 6, 6]
    assert pairs["pair"].tolist() == [1, 2, 3]
    own = weights[(weights["pair"] == 2) & (weights["table"] == "Y")].set_index("name")["weight"]
    expected = pd.Series(model.y_weights_[:, 1], index=Y.columns)
    pd.testing.assert_series_equal(own.sort_index(), expected[expected != 0].sort_index(), check_names=False)
    assert own.abs().is_monotonic_decreasing
    assert ((weights["side"] == "up") == (weights["weight"] > 0)).all()
    wide = scores.pivot_table(index="sample", columns="pair", values="score_2", sort=False)
    np.testing.assert_array_equal(wide.loc[X.index].to_numpy(), model.y_scores_)
    for pair, own in scores.groupby("pair"):
        assert np.corrcoef(own["score_1"], own["score_2"])[0, 1] == pytest.approx(pairs["correlation"][pair - 1])
    inside = model.graphs_["y"].subgraph(model.y_support_[0]).n_edges
    assert pairs["n_edges_2"][0] == inside
    assert pairs["n_edges_1"].tolist() == [0, 0, 0]
    tests = pd.DataFrame({"pair": [3, 1], "p": [0.5, 0.01], "d": [7.0, 8.0]})  # further columns, matched by pair
    assert pairs_table(model, tests)[["p", "d"]].fillna(-1).to_numpy().tolist() == [[0.01, 8], [-1, -1], [0.5, 7]]
