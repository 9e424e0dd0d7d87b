"""A model that is saved and loaded is the same model; a folder that was changed is refused in one line."""

import os
import shutil

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError, SparseGraphSVD
from netbic.files import RECORDS, WriteError, read_table, write_table
from netbic.storage.models import settings_of
from netbic.storage.tables import modules_table, summary_table
from support.model_files import rewritten
from support.output_folders import FullDisk, contents

study = netbic.simulate.cohort(150, 600, n_modules=3, module_samples=30, random_state=1)
FITTED = ["left_vectors_", "components_", "singular_values_", "rows_", "columns_", "converged_", "graph_share_"]
FITTED += ["explained_variance_ratio_"]


def equal(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name, strict=True)
    for name in ("count_", "diffusion_", "n_components_", "n_features_in_", "n_iter_"):
        assert getattr(one, name) == getattr(other, name), name
    pd.testing.assert_frame_equal(one.diagnostics_, other.diagnostics_)
    assert [values.tobytes() for values in one.objectives_] == [values.tobytes() for values in other.objectives_]
    for axis in ("rows", "columns"):
        np.testing.assert_array_equal(one.names_[axis], other.names_[axis])
        if (graph := other.graphs_[axis]) is not None:
            assert (one.graphs_[axis].weights != graph.weights).nnz == 0


MODELS = {
    "everything from the data": (SparseGraphSVD(column_graph=study.network), study.expression),
    "with a graph": (SparseGraphSVD(3, n_rows=30, n_columns=60, column_graph=study.network), study.expression),
    "an array": (SparseGraphSVD(2, n_columns=60), study.expression.to_numpy()),
    "single precision, scaled": (SparseGraphSVD(2, n_columns=60, scale=True), study.expression.astype(np.float32)),
    "penalties": (
        SparseGraphSVD(2, row_penalty=netbic.L1Ball(5.0), column_penalty=netbic.KeepSoft(50, nonnegative=True)),
        study.expression,
    ),
    "sparse": (SparseGraphSVD(2, n_columns=60, center="both"), sp.csr_array(study.expression.to_numpy())),
    "as published": (
        netbic.method("sgSVD*", 1, n_rows=30, n_columns=60, column_graph=study.network, column_sigma=0.1),
        study.expression,
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_round_trip(tmp_path, case):
    model, X = MODELS[case]
    model.fit(X)
    netbic.save(model, tmp_path / "model")
    again = netbic.load(tmp_path / "model")
    equal(model, again)
    np.testing.assert_array_equal(model.transform(X), again.transform(X))
    assert model.score(X) == again.score(X)
    assert repr(again.get_params()["column_penalty"]) == repr(model.column_penalty)
    np.testing.assert_array_equal(SparseGraphSVD(**again.get_params()).fit(X).components_, model.components_)
    for path in (tmp_path / "model").iterdir():  # nothing is pickled
        assert path.suffix in (".npz", ".json")
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                assert all(array.dtype != object for array in file.values())


def test_tables_contain_the_content_of_the_model(tmp_path):
    model = MODELS["with a graph"][0].fit(study.expression)
    table = modules_table(model)
    assert (table["side"] == "up").equals(table["weight"] > 0)
    assert {*table["side"]} == {"up", "down"}
    for side in ("up", "down"):
        numbers = table[(table["axis"] == "feature") & (table["side"] == side)].groupby("module").size()
        assert summary_table(model)[f"features_{side}"].tolist() == numbers.reindex(range(1, 4), fill_value=0).tolist()
    assert table.columns.tolist() == ["module", "axis", "name", "weight", "side"]
    for module in range(3):
        genes = table[(table["module"] == module + 1) & (table["axis"] == "feature")].set_index("name")["weight"]
        vector = pd.Series(model.components_[module], index=study.expression.columns)
        pd.testing.assert_series_equal(genes.sort_index(), vector[vector != 0].sort_index(), check_names=False)
        assert genes.abs().is_monotonic_decreasing
        samples = table[(table["module"] == module + 1) & (table["axis"] == "sample")].set_index("name")["weight"]
        weights = pd.Series(model.left_vectors_[:, module], index=study.expression.index)
        pd.testing.assert_series_equal(samples.sort_index(), weights[weights != 0].sort_index(), check_names=False)
    summary = summary_table(model)
    edges = netbic.enrichment.edges(model, study.network)
    assert summary["n_edges"].tolist() == edges["n_edges"].tolist()
    assert summary["rounds"].tolist() == [len(values) for values in model.objectives_]
    assert summary["top_features"][0].split(", ") == table["name"][:5].tolist()


def with_everything(searched):
    """Sizes from the data, diffusion, scaling, and graphs of both axes or a number from the data; and X."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((120, 300))
    X[:40, :40] += 3
    graphs = [np.triu(generator.random((size, size)) < 0.04, 1) for size in X.shape]
    row_graph, column_graph = (graph | graph.T for graph in graphs)
    options = {"column_graph": column_graph, "column_smoothness": 0.3, "diffusion": 0.5, "scale": 0.7}
    if searched == "sequential":
        options |= {"n_components": 2, "row_penalty": netbic.BeyondBulk(), "row_graph": row_graph}
    X = pd.DataFrame(X, index=[f"s{i}" for i in range(120)], columns=[f"g{i}" for i in range(300)])
    return SparseGraphSVD(**options).fit(X), X


def through_a_folder(model, tmp_path):
    netbic.save(model, tmp_path)
    return netbic.load(tmp_path)


def through_anndata(model, tmp_path):
    netbic.tl.to_anndata(model).write_h5ad(tmp_path / "model.h5ad")
    return netbic.tl.from_anndata(anndata.read_h5ad(tmp_path / "model.h5ad"))


@pytest.mark.parametrize("searched", ["joint", "sequential"])
@pytest.mark.parametrize("stored", [through_a_folder, through_anndata])
def test_everything_about_a_model_is_stored(stored, searched, tmp_path):
    model, X = with_everything(searched)
    assert (model.count_ is None) == (searched == "sequential")
    again = stored(model, tmp_path)
    assert settings_of(again.get_params(deep=False)) == settings_of(model.get_params(deep=False))
    equal(again, model)
    np.testing.assert_array_equal(again.scaler_.offsets, model.scaler_.offsets)
    np.testing.assert_array_equal(again.scaler_.factors, model.scaler_.factors)
    new = X.iloc[::-1] + 1
    named = hasattr(again, "feature_names_in_")  # models from tables and AnnData accept arrays
    np.testing.assert_array_equal(again.transform(new if named else new.to_numpy()), model.transform(new))


class Own(SparseGraphSVD):
    """A user's own class, which is loaded as its base class."""


def test_a_model_without_modules_and_a_user_defined_one(tmp_path):
    with pytest.warns(UserWarning, match="found 0 of 1"):
        model = SparseGraphSVD(1, column_penalty=netbic.L1(1e6)).fit(study.expression)
    netbic.save(model, tmp_path)
    assert netbic.load(tmp_path).n_components_ == 0
    assert summary_table(model).columns.tolist()[:3] == ["module", "singular_value", "n_features"]
    assert modules_table(model).empty
    netbic.save(Own(1, n_columns=20, random_state=np.random.default_rng(0)).fit(study.expression), tmp_path)
    assert type(netbic.load(tmp_path)) is SparseGraphSVD
    assert netbic.load(tmp_path).random_state is None  # JSON cannot hold it
    assert "Generator" in (tmp_path / "model.json").read_text()


def test_names_stay_text(tmp_path):
    X = study.expression.iloc[:, :20].set_axis(["NA", "nan", "None", *(f"{k:03d}" for k in range(17))], axis=1)
    write_table(tmp_path / "modules.tsv", modules_table(SparseGraphSVD(1, n_columns=20).fit(X)))
    assert {"NA", "nan", "None", "002"} <= set(read_table(tmp_path / "modules.tsv")["name"])
    dated = study.expression.iloc[:, :20].set_axis(pd.date_range("2020-01-01", periods=20), axis=1)
    with pytest.raises(InputError, match="columns are named by"):
        netbic.save(SparseGraphSVD(1).fit(dated), tmp_path / "dated")


# Folders that were changed


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    toy = netbic.simulate.paper(0.03, random_state=0)
    graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph}
    netbic.save(SparseGraphSVD(2, n_rows=50, n_columns=40, scale=True, **graphs).fit(toy.X), folder)
    return folder


def array(name, change):
    return lambda arrays: arrays | {name: change(arrays[name])}


def put(value):
    def change(values):
        values = values.copy()
        values.flat[0] = value
        return values

    return change


def settings(**changes):
    return lambda header: header | {"settings": header["settings"] | changes}


def listed(**digests):
    return lambda header: header | {"files": header["files"] | digests}


CHANGES = {
    "an index out of bounds": ("column_graph.npz", array("indices", put(10**6)), "column_graph is damaged"),
    "an invalid pointer": ("column_graph.npz", array("indptr", lambda a: np.append(a[:-1], 10**9)), "is damaged"),
    "more modules": ("arrays.npz", array("left_vectors", lambda a: np.hstack([a, a])), "does not fit the others"),
    "fewer features": ("arrays.npz", array("offsets", lambda a: a[:-1]), "offsets .* does not fit the others"),
    "text": ("arrays.npz", array("components", lambda a: a.astype(str)), "components is of <U"),
    "no components": ("arrays.npz", lambda arrays: {"rounds": arrays["rounds"]}, "lacks the array left_vectors"),
    "too few names": ("names.json", lambda names: names | {"rows": ["a", "b"]}, "100 rows but 2 names"),
    "names that are none": ("names.json", lambda names: names | {"columns": [[]] * 100}, "not a list of text"),
    "an unknown setting": ("model.json", settings(colour="red"), r"does not know \(colour\)"),
    "a size beyond the data": ("model.json", settings(n_columns=10**6), "n_columns=1000000"),
    "an unknown penalty": ("model.json", settings(n_rows=None, row_penalty={"penalty": "os"}), "penalty"),
    "an unknown class": ("model.json", lambda header: header | {"class": "object"}, r"not know \(object\): upgrade"),
    "another format": ("model.json", lambda header: header | {"format": 99}, "in format 99; .*upgrade netbic"),
    "a file elsewhere": ("model.json", listed(**{"../../etc/passwd": "0" * 32}), "which no model has"),
}


DAMAGE = [
    ("model.json", b"{", "cannot be read"),
    ("model.json", None, "contains no model"),
    ("arrays.npz", b"PK", "not what was written"),
    ("arrays.npz", None, "cannot be read"),
]


def test_a_changed_or_damaged_model_is_refused_in_one_line(saved, tmp_path):
    for case, (name, change, message) in CHANGES.items():
        folder = shutil.copytree(saved, tmp_path / case)
        rewritten(folder, name, change)
        with pytest.raises(InputError, match=message) as caught:
            netbic.load(folder)
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)
    for number, (name, content, message) in enumerate(DAMAGE):
        folder = shutil.copytree(saved, tmp_path / str(number))
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            netbic.load(folder)
    with pytest.raises(InputError, match="does not exist: give the output folder"):
        netbic.load(tmp_path / "nowhere")


# Saving over earlier files


def test_a_saved_model_replaces_only_a_saved_model(tmp_path, monkeypatch):
    X = study.expression.iloc[:, :50]
    model, other = (SparseGraphSVD(1, n_columns=size).fit(X) for size in (20, 30))
    for _ in range(2):
        netbic.save(model, tmp_path / "model")
    before = contents(tmp_path / "model")
    for after in range(3):  # a disk that fills up: two parts and the record
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", FullDisk(after))
            with pytest.raises(WriteError):
                netbic.save(other, tmp_path / "model")
        assert contents(tmp_path / "model") == before
    for name in ("model.json", *RECORDS["model.json"][:4]):
        own = tmp_path / "own" / name
        own.mkdir(parents=True)
        (own / name).write_bytes(b"mine")
        for path, message in ((own, name), (own / name, "is a file")):
            with pytest.raises(InputError, match=message):
                netbic.save(model, path)
        assert contents(own) == {name: b"mine"}


def test_judged_features_join_weights_in_single_precision(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 80)).astype(np.float32)
    X[:, :20] += X[:, [20]]
    model = SparseGraphSVD(1, random_state=0).fit(X)
    assert model.components_.dtype == np.float32
    judged = netbic.selection.verdicts(model, X, n_pairs=3, random_state=0).features
    write_table(tmp_path / "features.tsv", judged)
    for each in (judged, read_table(tmp_path / "features.tsv")):
        table = modules_table(model, judged=each)
        known = table[table["axis"] == "feature"]
        assert len(known) == np.count_nonzero(model.components_)
        assert known["confidence"].notna().all()
