"""`netbic.save` replaces only saved models."""

import os

import pytest

import netbic
from netbic import InputError, SparseGraphSVD
from netbic.files import RECORDS, WriteError
from support.output_folders import TOY, FullDisk, contents


@pytest.mark.parametrize("name", ["model.json", *RECORDS["model.json"][:4]])
def test_a_saved_model_replaces_only_a_saved_model(tmp_path, name):
    model = SparseGraphSVD(1, n_columns=20).fit(TOY.X)
    for _ in range(2):
        netbic.save(model, tmp_path / "model")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_bytes(b"mine")
    with pytest.raises(InputError, match=name):
        netbic.save(model, tmp_path / "own")
    assert contents(tmp_path / "own") == {name: b"mine"}
    with pytest.raises(InputError, match="is a file"):
        netbic.save(model, tmp_path / "own" / name)


def test_a_saved_model_without_a_graph_removes_the_earlier_graph(tmp_path):
    netbic.save(SparseGraphSVD(1, n_columns=20, column_graph=TOY.column_graph).fit(TOY.X), tmp_path)
    assert (tmp_path / "column_graph.npz").exists()
    netbic.save(SparseGraphSVD(1, n_columns=20).fit(TOY.X), tmp_path)
    assert sorted(contents(tmp_path)) == ["arrays.npz", "model.json", "names.json"]


def test_a_report_of_a_saved_model_is_replaced_by_the_next(tmp_path):
    model = SparseGraphSVD(1, n_columns=20).fit(TOY.X)
    netbic.save(model, tmp_path)
    for _ in range(2):
        netbic.report.write_report(tmp_path)
    netbic.save(model, tmp_path)
    assert not (tmp_path / "report.html").exists()  # it described the earlier model
    netbic.report.write_report(tmp_path)
    assert netbic.load(tmp_path).n_components_ == 1


def test_saving_to_a_disk_that_fills_up_leaves_the_earlier_model(tmp_path, monkeypatch):
    one, other = (SparseGraphSVD(1, n_columns=size).fit(TOY.X) for size in (20, 30))
    netbic.save(one, tmp_path)
    before = contents(tmp_path)
    for after in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", FullDisk(after))
            try:
                netbic.save(other, tmp_path)
                break
            except WriteError:
                assert contents(tmp_path) == before, after
    assert after == 3  # two parts and the record
