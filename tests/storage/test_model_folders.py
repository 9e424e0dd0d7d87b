"""An edited model folder is refused in one line, and only files of a model are opened."""

import hashlib
import json
import os
import threading

import numpy as np
import pytest

import netbic
from netbic import InputError, SparseGraphSVD
from netbic.files import MODEL_FILES
from support.model_files import rewritten

TOY = netbic.simulate.paper(0.03, random_state=0)


@pytest.fixture(scope="module")
def models():
    adaptive = netbic.AdaptiveSupport()
    graphs = {"row_graph": TOY.row_graph, "column_graph": TOY.column_graph}
    return {
        "plain": SparseGraphSVD(2, n_rows=50, n_columns=40, scale=True, **graphs).fit(TOY.X),
        "adaptive": SparseGraphSVD(1, row_penalty=adaptive, column_penalty=adaptive, center=None).fit(TOY.X),
    }


def array(name, change):
    return lambda arrays: arrays | {name: change(arrays[name])}


def put(value):
    def change(values):
        values = values.copy()
        values.flat[0] = value
        return values

    return change


ARRAYS = {
    "fewer rows": ("left_vectors", lambda a: a[:10], "left_vectors contains a vector of length|n_rows=50"),
    "more modules": ("left_vectors", lambda a: np.hstack([a, a]), "shape"),
    "no singular values": ("singular_values", lambda a: a[:0], "singular_values has shape"),
    "a vector of vectors": ("components", lambda a: a[0], "components has 1 dimensions"),
    "text": ("components", lambda a: a.astype(str), "components has the type <U"),
    "complex": ("components", lambda a: a.astype(complex), "components has the type complex"),
    "integers": ("components", lambda a: (a != 0).astype(int), "components has the type int"),
    "infinite offsets": ("offsets", put(np.inf), "offsets contains NaN or infinity"),
    "a NaN in a vector": ("left_vectors", put(np.nan), "left_vectors contains NaN"),
    "beyond a unit vector": ("components", put(7.0), "components contains 7.0"),
    "a negative singular value": ("singular_values", put(-1.0), "singular_values contains -1"),
    "a share above one": ("graph_share", put(1.5), "graph_share contains 1.5"),
    "negative rounds": ("rounds", put(-5), "rounds contains -5"),
    "rounds without objectives": ("rounds", put(10**6), "objectives has shape"),
    "converged as numbers": ("converged", lambda a: a.astype(float), "converged has the type float64"),
    "negative factors": ("factors", lambda a: -a, "factors contains"),
    "posteriors above one": ("rows_posteriors", put(2.0), "rows_posteriors contains 2.0"),
    "choices of another length": ("columns_choices", lambda a: a[:, :2], "columns_choices has shape"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_do_not_fit_the_model_are_refused(models, tmp_path, case):
    name, change, message = ARRAYS[case]
    netbic.save(models["adaptive" if "posteriors" in name or "choices" in name else "plain"], tmp_path)
    rewritten(tmp_path, "arrays.npz", array(name, change))
    with pytest.raises(InputError, match=message) as caught:
        netbic.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_missing_rows_are_detected_without_names(tmp_path):
    netbic.save(SparseGraphSVD(1).fit(TOY.X), tmp_path)
    rewritten(tmp_path, "arrays.npz", array("left_vectors", lambda vectors: vectors[:10]))
    with pytest.raises(InputError, match="left_vectors contains a vector of length"):
        netbic.load(tmp_path)


@pytest.mark.parametrize("name", ["components", "offsets", "rounds"])
def test_an_array_that_is_missing(models, tmp_path, name):
    netbic.save(models["plain"], tmp_path)
    rewritten(tmp_path, "arrays.npz", lambda arrays: {key: value for key, value in arrays.items() if key != name})
    with pytest.raises(InputError, match=f"lacks the array {name}"):
        netbic.load(tmp_path)


def test_unknown_arrays_are_not_read(models, tmp_path):
    netbic.save(models["plain"], tmp_path)
    rewritten(tmp_path, "arrays.npz", lambda arrays: arrays | {"more": np.zeros(3)})
    assert not hasattr(netbic.load(tmp_path), "more_")


def settings(**changes):
    return lambda header: header | {"settings": header["settings"] | changes}


HEADERS = {
    "format -1": (lambda header: header | {"format": -1}, "format -1"),
    "format true": (lambda header: header | {"format": True}, "is not a model"),
    "settings as a list": (lambda header: header | {"settings": []}, "lacks 'settings'"),
    "files as a list": (lambda header: header | {"files": list(MODEL_FILES)}, "lacks 'files'"),
    "a digest that is none": (lambda header: header | {"files": header["files"] | {"arrays.npz": "00"}}, "digest"),
    "a digest as a number": (lambda header: header | {"files": header["files"] | {"arrays.npz": 7}}, "digest"),
    "no arrays listed": (lambda header: header | {"files": {}}, "no digest of arrays.npz"),
    "an unknown value": (settings(center="__import__"), "center='__import__' is not known"),
    "a list instead of a string": (settings(solver=["auto"]), "solver="),
    "an unknown setting": (settings(colour="red"), r"does not know \(colour\)"),
    "a size beyond the data": (settings(n_columns=10**6), "n_columns=1000000"),
    "a size as text": (settings(n_rows="many"), "n_rows='many'"),
    "an infinite tolerance": (settings(tol=1e999), "tol=inf"),
    "an unknown penalty": (settings(n_rows=None, row_penalty={"penalty": "os"}), "penalty"),
    "a penalty of something else": (settings(n_rows=None, row_penalty={"penalty": "L0", "k": {"k": 1}}), "."),
    "a penalty of the base class": (settings(n_rows=None, row_penalty={"penalty": "Penalty"}), "."),
    "an unknown class": (lambda header: header | {"class": "object"}, "class this version does not know"),
    "a class as a list": (lambda header: header | {"class": []}, "."),
}


@pytest.mark.parametrize("case", HEADERS)
def test_invalid_model_headers_are_refused(models, tmp_path, case):
    change, message = HEADERS[case]
    netbic.save(models["plain"], tmp_path)
    rewritten(tmp_path, "model.json", change)
    with pytest.raises(InputError, match=message) as caught:
        netbic.load(tmp_path)
    assert "\n" not in str(caught.value)


NAMES = {
    "too few": (lambda names: names | {"rows": ["a", "b"]}, "100 rows but 2 names"),
    "a dict": (lambda names: names | {"columns": {"a": 1}}, "not a list of text or integers"),
    "nested": (lambda names: names | {"columns": [[]] * 100}, "not a list of text or integers"),
    "a list instead of names": (lambda names: [], "."),
    "beyond integers": (lambda names: names | {"columns": [10**400] + ["a"] * 99}, "not a list of text or integers"),
    "of a graph": (lambda names: names | {"row_graph": ["x"]}, "row_graph but 1 names"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_do_not_fit_the_model_are_refused(models, tmp_path, case):
    change, message = NAMES[case]
    netbic.save(models["plain"], tmp_path)
    rewritten(tmp_path, "names.json", change)
    with pytest.raises(InputError, match=message):
        netbic.load(tmp_path)


@pytest.mark.parametrize("name", ["model.json", "names.json"])
def test_json_that_is_nested_too_deeply(models, tmp_path, name):
    netbic.save(models["plain"], tmp_path)
    deep = b"[" * 200_000
    (tmp_path / name).write_bytes(deep)
    if name == "names.json":
        header = json.loads((tmp_path / "model.json").read_text())
        header["files"][name] = hashlib.blake2b(deep, digest_size=16).hexdigest()
        (tmp_path / "model.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match=str(tmp_path)):
        netbic.load(tmp_path)


GRAPHS = {
    "an index out of bounds": array("indices", put(10**6)),
    "a negative index": array("indices", put(-5)),
    "an invalid pointer": array("indptr", lambda a: np.append(a[:-1], 10**9)),
    "pointers that fall": array("indptr", lambda a: a[::-1].copy()),
    "another size": array("size", lambda a: a * 10**6),
    "a negative size": array("size", lambda a: -a),
    "complex weights": array("data", lambda a: a.astype(complex)),
    "too few weights": array("data", lambda a: a[:1]),
    "indices as text": array("indices", lambda a: a.astype(str)),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_graphs_that_do_not_fit_the_model_are_refused(models, tmp_path, case):
    netbic.save(models["plain"], tmp_path)
    rewritten(tmp_path, "column_graph.npz", GRAPHS[case])
    with pytest.raises(InputError, match=str(tmp_path)):
        netbic.load(tmp_path)


@pytest.mark.parametrize("listed", ["/dev/zero", "../../../etc/passwd", "pipe", "arrays.npz/../arrays.npz", "x.npz"])
def test_only_files_of_known_names_are_opened(models, tmp_path, listed, monkeypatch):
    netbic.save(models["plain"], tmp_path)
    os.mkfifo(tmp_path / "pipe")
    rewritten(tmp_path, "model.json", lambda header: header | {"files": header["files"] | {listed: "0" * 32}})
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: opened.append(str(path)) or real(path, *rest, **more))
    with pytest.raises(InputError, match="which no model has"):
        netbic.load(tmp_path)
    assert opened == [str(tmp_path / "model.json")]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", ["model.json", "arrays.npz", "names.json"])
def test_a_pipe_or_device_instead_of_a_file_is_not_read(models, tmp_path, name, kind):
    netbic.save(models["plain"], tmp_path)
    (tmp_path / name).unlink()
    {
        "pipe": lambda path: os.mkfifo(path),
        "device": lambda path: path.symlink_to("/dev/zero"),
        "folder": lambda path: path.mkdir(),
    }[kind](tmp_path / name)
    answers = []

    def attempt():
        try:
            netbic.load(tmp_path)
        except InputError as problem:
            answers.append(str(problem))

    waiting = threading.Thread(target=attempt, daemon=True)
    waiting.start()
    waiting.join(30)
    assert answers
    assert "regular file" in answers[0] or "cannot be read" in answers[0]


def test_links_to_regular_files_are_accepted(models, tmp_path):
    netbic.save(models["plain"], tmp_path / "model")
    (tmp_path / "linked").mkdir()
    for path in (tmp_path / "model").iterdir():
        (tmp_path / "linked" / path.name).symlink_to(path)
    assert netbic.load(tmp_path / "linked").n_components_ == 2


def test_a_killed_save_is_reported(models, tmp_path, monkeypatch):
    netbic.save(models["plain"], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real, calls = os.replace, []

    def killed(source, target):
        calls.append(target)
        if len(calls) == 9:  # parts of the model written, listed in model.json, and some of them in their places
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        netbic.save(models["plain"], tmp_path)
    monkeypatch.undo()
    with pytest.raises(InputError, match="not written completely: save it again"):
        netbic.load(tmp_path)
    netbic.save(models["plain"], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
