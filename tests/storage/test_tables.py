"""A model that is saved and loaded, or converted to tables and back, is the same model."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError, SparseGraphSVD
from netbic.io import modules_table, read_table, summary_table, write_table
from netbic.storage.state import settings_of

study = netbic.simulate.cohort(150, 600, n_modules=3, module_samples=30, random_state=1)
FITTED = [
    "left_vectors_",
    "components_",
    "singular_values_",
    "rows_",
    "columns_",
    "converged_",
    "graph_share_",
    "explained_variance_ratio_",
]


def equal(one, other):
    for name in FITTED:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert one.n_iter_ == other.n_iter_
    assert one.n_features_in_ == other.n_features_in_
    assert [values.tobytes() for values in one.objectives_] == [values.tobytes() for values in other.objectives_]
    for axis in ("rows", "columns"):
        np.testing.assert_array_equal(one.names_[axis], other.names_[axis])


MODELS = {
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


def test_nothing_is_pickled(tmp_path):
    netbic.save(MODELS["with a graph"][0].fit(study.expression), tmp_path)
    for path in tmp_path.glob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert all(array.dtype != object for array in file.values())
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz", ".json"}


def test_values_that_json_cannot_store_are_described(tmp_path):
    model = SparseGraphSVD(1, n_columns=20, random_state=np.random.default_rng(0)).fit(study.expression)
    netbic.save(model, tmp_path)
    assert netbic.load(tmp_path).random_state is None
    assert "Generator" in (tmp_path / "model.json").read_text()


def test_a_model_of_a_later_format_is_refused(tmp_path):
    netbic.save(MODELS["an array"][0].fit(study.expression.to_numpy()), tmp_path)
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(content | {"format": 99, "netbic": "9.0"}))
    with pytest.raises(InputError, match=r"written by netbic 9.0 in format 99.*upgrade netbic"):
        netbic.load(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "model.json").write_text("[1]"), "is not a model"),
        (lambda folder: (folder / "model.json").unlink(), "contains no model"),
        (lambda folder: (folder / "arrays.npz").write_bytes(b"PK"), "not what was written"),
        (lambda folder: (folder / "arrays.npz").unlink(), "cannot be read"),
        (lambda folder: (folder / "names.json").unlink(), "cannot be read"),
        (lambda folder: (folder / "names.json").write_text('{"rows": null, "columns": null}'), "not what was written"),
        (lambda folder: (folder / "model.json").write_text('{"format": 1, "settings": {}}'), "lacks 'files'"),
    ],
)
def test_a_damaged_model_is_not_loaded(tmp_path, damage, message):
    netbic.save(MODELS["an array"][0].fit(study.expression.to_numpy()), tmp_path)
    damage(tmp_path)
    with pytest.raises(InputError, match=message):
        netbic.load(tmp_path)


def test_tables_contain_the_content_of_the_model(tmp_path):
    model = MODELS["with a graph"][0].fit(study.expression)
    table = modules_table(model)
    assert (table["side"] == "up").equals(table["weight"] > 0)
    assert {*table["side"]} == {"up", "down"}
    for side in ("up", "down"):
        numbers = table[(table["axis"] == "gene") & (table["side"] == side)].groupby("module").size()
        assert summary_table(model)[f"genes_{side}"].tolist() == numbers.reindex(range(3), fill_value=0).tolist()
    assert table.columns.tolist() == ["module", "axis", "name", "weight", "side"]
    for module in range(3):
        genes = table[(table["module"] == module) & (table["axis"] == "gene")].set_index("name")["weight"]
        vector = pd.Series(model.components_[module], index=study.expression.columns)
        pd.testing.assert_series_equal(genes.sort_index(), vector[vector != 0].sort_index(), check_names=False)
        assert genes.abs().is_monotonic_decreasing
        samples = table[(table["module"] == module) & (table["axis"] == "sample")].set_index("name")["weight"]
        weights = pd.Series(model.left_vectors_[:, module], index=study.expression.index)
        pd.testing.assert_series_equal(samples.sort_index(), weights[weights != 0].sort_index(), check_names=False)
    summary = summary_table(model)
    edges = netbic.enrichment.edges(model, study.network)
    assert summary["n_edges"].tolist() == edges["n_edges"].tolist()
    assert summary["rounds"].tolist() == [len(values) for values in model.objectives_]
    assert summary["top_genes"][0].split(", ") == table["name"][:5].tolist()


def test_names_that_look_like_missing_values_survive(tmp_path):
    X = study.expression.iloc[:, :20].set_axis(["NA", "nan", "None", *(f"g{k}" for k in range(17))], axis=1)
    model = SparseGraphSVD(1).fit(X)
    write_table(tmp_path / "modules.tsv", modules_table(model))
    assert {"NA", "nan", "None"} <= set(read_table(tmp_path / "modules.tsv")["name"])


@pytest.mark.parametrize("center", ["columns", "both"])
def test_a_model_survives_a_round_trip_through_tables(center):
    model = SparseGraphSVD(3, n_rows=30, n_columns=60, scale=True, center=center).fit(study.expression)
    again = netbic.io.from_frames(netbic.io.to_frames(model))
    for name in FITTED:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.transform(study.expression.to_numpy()), model.transform(study.expression))
    pd.testing.assert_frame_equal(modules_table(again), modules_table(model))
    tables = netbic.io.to_frames(model)
    with pytest.raises(InputError, match="samples 2"):
        netbic.io.from_frames(tables._replace(samples=tables.samples[[0, 1]]))


def with_everything():
    """Chosen sizes, a fallback, groups, both graphs, diffusion, scaling and a module regressed out; and X."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((120, 300))
    X[:40, :40] += 3
    X[:40, 40:80] += 1.5  # the same samples: a repeat
    graphs = [np.triu(generator.random((size, size)) < 0.04, 1) for size in X.shape]
    model = SparseGraphSVD(
        2,
        row_penalty=netbic.AdaptiveSupport(clip=None),
        column_penalty=netbic.AdaptiveSupport(fallback=40),
        column_smoothness=0.3,
        diffusion=0.5,
        scale=True,
        deflation="on_repeat",
        **{f"{axis}_graph": graph | graph.T for axis, graph in zip(("row", "column"), graphs, strict=True)},
    )
    X = pd.DataFrame(X, index=[f"s{i}" for i in range(120)], columns=[f"g{i}" for i in range(300)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the second module is noise
        return model.fit(X), X


def through_a_folder(model, tmp_path):
    netbic.save(model, tmp_path)
    return netbic.load(tmp_path)


STORED = {
    "folder": through_a_folder,
    "tables": lambda model, _: netbic.io.from_frames(netbic.io.to_frames(model)),
    "AnnData": lambda model, _: netbic.tl.from_anndata(netbic.tl.to_anndata(model)),
}


@pytest.mark.parametrize("stored", STORED)
def test_everything_about_a_model_is_stored(stored, tmp_path):
    model, X = with_everything()
    assert model.regressed_out_.any()
    assert model.choices_["fallback"].any()
    assert model.choices_["free_locations"].any()
    again = STORED[stored](model, tmp_path)
    assert settings_of(again.get_params(deep=False)) == settings_of(model.get_params(deep=False))
    for name in (*FITTED, "regressed_out_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name), err_msg=name)
    for name in ("diffusion_", "n_components_", "n_features_in_", "n_iter_"):
        assert getattr(again, name) == getattr(model, name), name
    for name in ("choices_", "diagnostics_"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(model, name))
    for axis in ("rows", "columns"):
        np.testing.assert_array_equal(again.posteriors_[axis], model.posteriors_[axis])
        assert list(again.names_[axis]) == list(model.names_[axis])
        assert (again.graphs_[axis].weights != model.graphs_[axis].weights).nnz == 0
    np.testing.assert_array_equal(again.scaler_.offsets, model.scaler_.offsets)
    np.testing.assert_array_equal(again.scaler_.factors, model.scaler_.factors)
    new = X.iloc[::-1] + 1
    named = hasattr(again, "feature_names_in_")  # models from tables and AnnData accept arrays
    np.testing.assert_array_equal(again.transform(new if named else new.to_numpy()), model.transform(new))


def test_a_model_without_modules_has_empty_tables(tmp_path):
    with pytest.warns(UserWarning, match="found 0 of 1"):
        model = SparseGraphSVD(1, column_penalty=netbic.L1(1e6)).fit(study.expression)
    netbic.save(model, tmp_path)
    assert netbic.load(tmp_path).n_components_ == 0
    assert netbic.io.from_frames(netbic.io.to_frames(model)).regressed_out_.shape == (0, 0)
    assert summary_table(model).columns.tolist()[:3] == ["module", "singular_value", "n_genes"]
    assert modules_table(model).empty


def test_names_stay_text(tmp_path):
    X = study.expression.iloc[:, :20].set_axis([f"{k:03d}" for k in range(20)], axis=1)
    write_table(tmp_path / "modules.tsv", modules_table(SparseGraphSVD(1).fit(X)))
    assert "002" in set(read_table(tmp_path / "modules.tsv")["name"])
    dated = study.expression.iloc[:, :20].set_axis(pd.date_range("2020-01-01", periods=20), axis=1)
    with pytest.raises(InputError, match="columns are named by"):
        netbic.save(SparseGraphSVD(1).fit(dated), tmp_path / "dated")


def test_a_user_defined_subclass_is_loaded_as_its_base_class(tmp_path):
    class Own(SparseGraphSVD):
        pass

    netbic.save(Own(1, n_columns=20).fit(study.expression), tmp_path)
    assert type(netbic.load(tmp_path)) is SparseGraphSVD
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(content | {"class": "Later"}))
    with pytest.raises(InputError, match=r"does not know \(Later\): upgrade netbic"):
        netbic.load(tmp_path)


@pytest.mark.parametrize("named", ["names", "no names", "samples that occur twice"])
def test_graphs_and_choices_survive_a_round_trip_through_tables(named):
    toy = netbic.simulate.paper(0.03, random_state=0)
    samples = [f"s{i // 2 if named == 'samples that occur twice' else i}" for i in range(100)]
    X = toy.X if named == "no names" else pd.DataFrame(toy.X, index=samples, columns=[f"g{i}" for i in range(100)])
    adaptive = netbic.AdaptiveSupport()
    graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph}
    chosen = SparseGraphSVD(1, row_penalty=adaptive, column_penalty=adaptive, **graphs).fit(X)
    again = netbic.io.from_frames(netbic.io.to_frames(chosen))
    pd.testing.assert_frame_equal(again.choices_, chosen.choices_)
    for axis in ("row", "column"):
        np.testing.assert_array_equal(again.posteriors_[f"{axis}s"], chosen.posteriors_[f"{axis}s"])
        assert (getattr(again, f"{axis}_graph").weights != graphs[f"{axis}_graph"].weights).nnz == 0
    stated = SparseGraphSVD(1, n_rows=50, n_columns=50, row_smoothness=0.1, column_smoothness=0.1, **graphs).fit(X)
    tables = netbic.io.to_frames(stated)
    again = netbic.io.from_frames(tables)
    np.testing.assert_array_equal(SparseGraphSVD(**again.get_params()).fit(X).components_, stated.components_)
    without = netbic.io.from_frames(tables._replace(gene_edges=None))
    assert (without.column_graph, without.column_smoothness, without.row_smoothness) == (None, None, 0.1)
    SparseGraphSVD(**without.get_params()).fit(X)  # a smoothness without its graph would be refused


def test_posteriors_and_choices_of_different_models_are_refused():
    toy = netbic.simulate.paper(0.03, random_state=0)
    model = SparseGraphSVD(1, column_penalty=netbic.AdaptiveSupport()).fit(toy.X)
    tables = netbic.io.to_frames(model)
    assert netbic.io.from_frames(netbic.io.Frames(*tables[:3])).posteriors_["columns"] is None
    with pytest.raises(InputError, match="posteriors of 1 modules and choices of 2"):
        netbic.io.from_frames(tables._replace(choices=pd.concat([tables.choices, tables.choices])))


def test_stable_modules_survive_a_round_trip_through_tables():
    toy = netbic.simulate.paper(0.02, random_state=0)
    model = SparseGraphSVD(1, n_rows=60, n_columns=60, center=None)
    stable = netbic.selection.stability(model, toy.X, n_pairs=3, random_state=0).refit(toy.X)
    again = netbic.io.from_frames(netbic.io.to_frames(stable))
    assert type(again) is type(stable)
    assert again.kept_.tolist() == stable.kept_.tolist()
