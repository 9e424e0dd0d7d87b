"""Fixtures and settings for the whole suite."""

from pathlib import Path

import pytest
from hypothesis import settings

from netbic.cli import command
from support import report_folders
from support.shared_data import shared_folder

settings.register_profile("steady", max_examples=30, derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = shared_folder("NETBIC_DATA")
    if folder is None:
        pytest.skip("needs the real data: set NETBIC_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def dask_cluster():
    """One cluster of two workers, which are restarted when they are killed, for the whole session."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60
    ) as cluster:
        yield cluster


@pytest.fixture
def client(dask_cluster):
    """The current Dask client during a test."""
    from distributed import Client

    with Client(dask_cluster) as client:
        yield client


@pytest.fixture(scope="session")
def ordinary_folder(tmp_path_factory) -> Path:
    """A fit of four modules with network, gene sets and report; tests that write there use a copy."""
    return report_folders.ordinary(tmp_path_factory.mktemp("ordinary"))


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory) -> Path:
    return report_folders.hostile(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def labelled_folder(tmp_path_factory) -> Path:
    return report_folders.labelled(tmp_path_factory.mktemp("labelled"))


@pytest.fixture(scope="session")
def folder_of_all_samples(tmp_path_factory) -> Path:
    return report_folders.all_samples(tmp_path_factory.mktemp("all"))


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch) -> None:
    """Whether a command prints progress depends on its time, so it must not in tests that compare output."""
    monkeypatch.setattr(command, "_GAP", 1e9)
