"""`netbic tune`: tables of settings from files, resumed after an interruption."""

import json
import re

import click
import numpy as np
import pytest

import netbic
from netbic.cli.tune import tune as command
from netbic.files import TUNING_PIECES, read_table
from netbic.simulate import cohort
from netbic.storage.runs import Pieces
from support.commands import run

study = cohort(100, 200, n_modules=1, strength=1.2, random_state=0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    netbic.storage.write_cohort(study, folder)
    return folder


def tune(files, out, *more):
    data = (files / "expression.tsv.gz", "--graph", files / "network.sif")
    grid = ("--modules", 1, "--genes", "20,60,150", "--samples", 40, "--smoothness", "0,0.1")
    return run("tune", *data, "--out", out, *grid, "--folds", 3, *more)


def test_the_table_and_the_choice_are_those_of_the_function(files, tmp_path):
    done = tune(files, tmp_path)
    assert done.exit_code == 0, done.output
    table = read_table(tmp_path / "tuning.tsv")
    read = netbic.io.open_dataset(files / "expression.tsv.gz", files / "network.sif")
    model = netbic.SparseGraphSVD(1, column_graph=read.graph, random_state=0)
    grid = {"n_columns": [20, 60, 150], "n_rows": [40], "column_smoothness": [0, 0.1]}
    tuning = netbic.selection.tune(model, read.X, grid, n_folds=3, random_state=0)
    assert table["score"].tolist() == tuning.table["score"].tolist()
    found = json.loads((tmp_path / "tuning.json").read_text())
    assert found["best_params"] == tuning.best_params_
    assert found["best_params"]["n_columns"] == 60
    assert "--genes 60 --samples 40" in done.output
    assert "The score is the share of the variance of held-out samples that is explained" in done.output
    assert not re.search(r"--smoothness 0\.0\b", done.output)
    assert not list(tmp_path.glob(".netbic*"))


def test_an_interrupted_tune_command_is_resumed(files, tmp_path, monkeypatch):
    whole = tune(files, tmp_path / "whole")
    keep, kept = Pieces.__setitem__, []

    def interrupted(self, name, outcome):
        keep(self, name, outcome)
        kept.append(outcome)
        if len(kept) == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Pieces, "__setitem__", interrupted)
        cut = tune(files, tmp_path / "cut")
    assert cut.exit_code == 1
    assert "run the same command again to continue" in cut.output
    assert len(list((tmp_path / "cut" / TUNING_PIECES).iterdir())) == 8
    other_seed = tune(files, tmp_path / "cut", "--seed", "1")
    assert other_seed.exit_code == 1
    message = "seed differs): use the same options, choose another folder, or use --force to start again"
    assert message in other_seed.output
    again = tune(files, tmp_path / "cut")
    assert again.output == whole.output.replace("whole", "cut")
    assert (tmp_path / "cut" / "tuning.tsv").read_bytes() == (tmp_path / "whole" / "tuning.tsv").read_bytes()


def test_bad_input(files, tmp_path):
    for arguments, message in (
        (["--genes", "20,many"], "'20,many' is not a list of numbers"),
        (["--genes", "0"], "expected numbers of at least 1"),
        (["--genes", "300"], "--genes 300 but the data have 200 genes"),
        (["--folds", "60"], "60 folds of 100 samples: choose 2 to 50"),
        (["--smoothness", "-1"], "expected numbers of at least 0"),
        (["--dask", "nowhere://1"], "--dask nowhere://1: unknown"),
        (["--dask", "local", "--jobs", "2"], "cannot be combined"),
    ):
        done = tune(files, tmp_path / "out", *arguments)
        assert done.exit_code in (1, 2)
        assert message in " ".join(done.output.split())
        assert "Traceback" not in done.output
    done = run("tune", files / "expression.tsv.gz", "--smoothness", 0.1, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "--smoothness needs a network" in done.output


@pytest.mark.nightly
def test_a_cluster_of_this_machine_writes_the_same_table(files, tmp_path):
    pytest.importorskip("distributed")
    done = [tune(files, tmp_path / "here"), tune(files, tmp_path / "there", "--dask", "local")]
    assert [each.exit_code for each in done] == [0, 0], done[1].output
    here, there = ((tmp_path / name / "tuning.tsv").read_bytes() for name in ("here", "there"))
    assert here == there


def test_the_help_states_the_default_grid():
    options = {option.name: option.show_default for option in command.params if isinstance(option, click.Option)}
    model = netbic.SparseGraphSVD(column_graph=np.ones((3_000, 3_000)))
    grid = netbic.selection.default_grid(model, (500, 3_000))
    assert list(grid) == ["n_columns", "column_smoothness"]
    assert options["genes"] == "five values, up to all genes"
    assert (len(grid["n_columns"]), max(grid["n_columns"])) == (5, 3_000)
    assert options["samples"] == "all"
    assert options["smoothness"] == ",".join(f"{value:g}" for value in grid["column_smoothness"])
