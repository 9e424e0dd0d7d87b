"""`netbic fit --dask` writes the same tables as in memory and reports problems of the cluster in one line."""

import sys
from unittest.mock import Mock

import anndata
import numpy as np
import pytest

import netbic
from netbic.storage.runs import Run
from support.commands import run

SIZES = ("--modules", "3", "--genes", "60", "--samples", "40")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 40 samples and 600 genes."""
    monkeypatch.setattr("netbic.io.stores.BLOCK_BYTES", 40 * 600 * 8)


@pytest.fixture
def address(dask_cluster):
    return dask_cluster.scheduler_address


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    done = run("simulate", folder, "--samples", 150, "--genes", 600, "--modules", 3, "--seed", 1)
    assert done.exit_code == 0, done.output
    data = netbic.io.read_expression(folder / "expression.tsv.gz")
    anndata.AnnData(data.frame()).write_h5ad(folder / "expression.h5ad")
    return folder


def fit(files, out, *more):
    return run("fit", files / "expression.h5ad", "--graph", files / "network.sif", *SIZES, "--out", out, *more)


def tables(folder):
    return [netbic.io.read_table(folder / name) for name in ("modules.tsv", "summary.tsv", "edges.tsv")]


def agree(one, other):
    for mine, theirs in zip(tables(one), tables(other), strict=True):
        for column in mine:
            if mine[column].dtype == np.float64:
                np.testing.assert_allclose(mine[column], theirs[column], rtol=1e-8)
            elif column != "rounds":
                assert mine[column].tolist() == theirs[column].tolist()


def test_the_same_tables_as_in_memory(files, address, tmp_path):
    more = ("--top-genes", 300, "--zscore", "--matched-only", "--no-report")
    plain = fit(files, tmp_path / "plain", "--no-verdict", *more)
    done = fit(files, tmp_path / "dask", "--no-verdict", "--dask", address, *more)
    assert done.exit_code == 0, done.output
    agree(tmp_path / "dask", tmp_path / "plain")
    known = [line for line in done.output.splitlines() if "passes over the data" not in line]
    assert [line.replace("dask/", "plain/") for line in known] == plain.output.splitlines()
    assert (tmp_path / "dask" / "alignment.json").read_text() == (tmp_path / "plain" / "alignment.json").read_text()
    for name in ("values", "genes", "samples"):
        heatmaps = [getattr(netbic.report.pictures.read_heatmaps(tmp_path / d)[1], name) for d in ("dask", "plain")]
        assert np.abs(heatmaps[0].astype(int) - heatmaps[1]).max() <= 1


def test_a_cluster_of_this_machine(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 30)))
    local = ("--dask", "local", "--jobs", 1, "--modules", 1, "--genes", 5, "--no-report")
    done = run("fit", tmp_path / "X.npy", "--out", tmp_path / "out", *local)
    assert done.exit_code == 0, done.output
    assert "passes over the data: 1 for preprocessing, " in done.output
    assert "distributed" not in done.output


@pytest.mark.nightly
def test_an_interrupted_fit_is_resumed_on_another_cluster(files, address, tmp_path, monkeypatch):
    whole = fit(files, tmp_path / "whole", "--dask", address, "--no-report")
    assert whole.exit_code == 0, whole.output
    keep = Run.keep

    def interrupted(self, number, module):
        keep(self, number, module)
        if number == 1:
            raise netbic.operators.executors.ClusterError("the Dask cluster tcp://x went away: start it again")

    monkeypatch.setattr(Run, "keep", interrupted)
    broken = fit(files, tmp_path / "out", "--dask", address, "--no-report")
    assert broken.exit_code == 1
    assert (
        "went away: start it again (modules found so far are kept: continue with netbic fit ... --resume)"
        in broken.output
    )
    assert "Traceback" not in broken.output
    assert len(list((tmp_path / "out" / ".netbic-fit").glob("module-*"))) == 2
    monkeypatch.setattr(Run, "keep", keep)
    plain = fit(files, tmp_path / "out", "--no-report", "--resume")
    assert plain.exit_code == 2
    assert "dask: True then, None now" in plain.output
    again = ("--dask", "local", "--jobs", 2, "--no-report", "--resume")
    done = fit(files, tmp_path / "out", *again)
    assert done.exit_code == 0, done.output
    assert "continuing after 2 modules" in done.output
    agree(tmp_path / "out", tmp_path / "whole")
    assert "already finished" in fit(files, tmp_path / "out", *again).output


def test_unsupported_options_with_dask_are_one_line_errors(files, tmp_path, monkeypatch):
    monkeypatch.setattr("netbic.cli.command._SECONDS", 1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        assert "--dask needs distributed: run pip install '.[dask]'" in fit(files, tmp_path, "--dask", "local").output
    for more, code, message in (
        (("--dask", "tcp://127.0.0.1:9"), 1, "--dask tcp://127.0.0.1:9: no Dask scheduler answered within 1 seconds"),
        (("--dask", "foo://a:1"), 2, "--dask foo://a:1: unknown address scheme 'foo'"),
        (("--dask", "mars"), 2, "use 'local' or a scheduler's address"),
        (("--dask", "local", "--missing", "impute"), 2, "--dask does not support missing entries"),
    ):
        done = fit(files, tmp_path / "out", *more)
        assert done.exit_code == code
        assert message in done.output
        assert len([line for line in done.output.splitlines() if line.startswith("Error")]) == 1
        assert "Traceback" not in done.output


def test_a_cluster_that_cannot_be_started(files, tmp_path, monkeypatch):
    for problem in (OSError(24, "Too many open files"), TimeoutError(), RuntimeError("No.")):
        monkeypatch.setattr("distributed.LocalCluster", Mock(side_effect=problem))
        done = fit(files, tmp_path / "out", "--dask", "local", "--jobs", 2)
        assert done.exit_code == 1
        assert "the 2 Dask workers could not be started (" in done.output
        assert "bug" not in done.output


def test_errors_mention_kept_modules_only_if_there_are_any(address, tmp_path, monkeypatch):
    monkeypatch.setattr("netbic.io.stores.BLOCK_BYTES", 20 * 30 * 8)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 30)))
    netbic.io.convert(tmp_path / "X.npy", tmp_path / "X.zarr", block_rows=20)
    (tmp_path / "X.zarr" / "X" / "1.0").write_bytes(b"damaged")
    done = run("fit", tmp_path / "X.zarr", "--out", tmp_path / "out", "--dask", address)
    assert done.exit_code == 1
    assert "block 1 (rows 20 to 39)" in done.output
    assert "--resume" not in done.output
    assert "bug" not in done.output
    assert not (tmp_path / "out").exists()
    (tmp_path / "x.tsv").write_text("gene\ts1\ts2\na\t1\t2\n")
    done = run("fit", tmp_path / "x.tsv", "--out", tmp_path / "out", "--dask", address)
    assert "is a text table, from which blocks of samples cannot be read: convert it first (netbic" in done.output
