"""Files appear complete or not at all; folders are locked, and what killed commands left is finished or removed."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import InputError, SparseGraphSVD, files
from netbic.files import (
    LOCK,
    WriteError,
    add_files,
    commit_files,
    locked,
    read_record,
    read_table,
    scratch_folder,
    write_atomic,
)
from support.output_folders import TOY, FullDisk, contents


def test_the_temporary_file_of_a_killed_write_is_replaced_and_links_are_not_followed(tmp_path):
    (tmp_path / ".netbic-unfinished-table.tsv").write_bytes(b"a longer half")
    write_atomic(tmp_path / "table.tsv", b"whole")
    assert contents(tmp_path) == {"table.tsv": b"whole"}
    (tmp_path / ".netbic-unfinished-table.tsv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError, match="symbolic links"):
        write_atomic(tmp_path / "table.tsv", b"x")
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(WriteError, match=r"table.tsv cannot be written \(.*\): check the folder and its permissions"):
        write_atomic(tmp_path / "nowhere" / "table.tsv", b"x")


def test_pipes_and_devices_in_place_of_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        for read in (files.read_json, files.read_table):
            with pytest.raises(InputError, match=f"{name}: not a regular file"):
                read(tmp_path / name)


def test_a_lock_file_is_not_truncated_and_is_removed_with_its_process(tmp_path):
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(InputError, match="another command is writing"), locked(tmp_path):
            pass
    assert not list(tmp_path.iterdir())
    (tmp_path / LOCK).write_bytes(b"somebody's")
    with locked(tmp_path):
        pass
    assert (tmp_path / LOCK).read_bytes() == b"somebody's"


def test_file_systems_without_locks_work(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()


_KILLED = """
import os, signal, sys
from pathlib import Path
from netbic import files
folder, real, moves = Path(sys.argv[1]), os.replace, [int(sys.argv[2])]

def replace(source, target):
    if ".netbic-ready" in str(source):
        moves[0] -= 1
        if moves[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)

files.os.replace = replace
with files.locked(folder), files.scratch_folder(folder) as staged:
    for name in ("truth.tsv", "labels.tsv"):
        files.write_atomic(staged / name, b"new")
    if int(sys.argv[2]) < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    files.commit_files(staged, folder, "example.json", {})
"""


@pytest.mark.parametrize("moves", [-1, 0, 1, 2])
def test_results_of_a_killed_command_appear_all_or_none(tmp_path, moves):
    with locked(tmp_path), scratch_folder(tmp_path) as staged:
        for name in ("truth.tsv", "network.sif"):
            write_atomic(staged / name, b"old")
        commit_files(staged, tmp_path, "example.json", {})
    (tmp_path / "notes.txt").write_bytes(b"mine")
    code = [sys.executable, "-c", _KILLED, str(tmp_path), str(moves)]
    assert subprocess.run(code, check=False, timeout=60).returncode == -signal.SIGKILL
    assert any(name.startswith(".netbic-") for name in contents(tmp_path))
    listed = read_record(tmp_path, "example.json")["files"]
    expected = dict.fromkeys(listed, b"old" if moves < 0 else b"new")
    with locked(tmp_path):
        left = contents(tmp_path)
    assert sorted(left) == sorted(["notes.txt", "example.json", LOCK, *expected])
    assert {name: left[name] for name in expected} == expected


def test_adding_files_is_all_or_nothing(tmp_path, monkeypatch):
    netbic.save(SparseGraphSVD(1, n_columns=20).fit(TOY.X), tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(os, "fsync", FullDisk(1))
    with pytest.raises(WriteError):
        add_files(tmp_path, {"edges.tsv": b"one", "gene_sets.tsv": b"two"})
    assert contents(tmp_path) == before
    monkeypatch.undo()
    add_files(tmp_path, {"edges.tsv": b"one"})
    assert files.recorded_files(tmp_path) == {*before, "edges.tsv"}


def test_a_changed_record_cannot_make_netbic_remove_other_files(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("thesis.txt", "out/thesis.txt"):
        (tmp_path / name).write_bytes(b"mine")
    files.write_json(tmp_path / "out" / "tuning.json", {"netbic": "0", "files": ["../thesis.txt", "thesis.txt"]})
    with locked(tmp_path / "out"), scratch_folder(tmp_path / "out") as staged:
        write_atomic(staged / "tuning.tsv", b"new")
        commit_files(staged, tmp_path / "out", "tuning.json", {})
    assert (tmp_path / "thesis.txt").exists()
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_a_folder_that_a_thread_makes_again_after_an_interruption_is_removed(tmp_path):
    """As threads of Zarr do, which are not told of an interruption."""
    late = []

    def write_again(scratch):
        while scratch.exists():
            time.sleep(0.001)
        (scratch / "store").mkdir(parents=True)

    def interrupted():
        with scratch_folder(tmp_path, "out.zarr") as scratch:
            late.append(threading.Thread(target=write_again, args=[scratch]))
            late[0].start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    late[0].join()
    assert list(tmp_path.iterdir()) == []


def test_tables_that_netbic_did_not_write_are_refused(tmp_path):
    path, good = tmp_path / "table.tsv", {"module": 1, "term": "one", "q_value": 0.5, "closest": "", "effect": "inf"}
    for name, value in (("module", "one"), ("q_value", "low"), ("closest", "1.5"), ("module", "inf"), ("effect", "x")):
        pd.DataFrame([good, good | {name: value}]).to_csv(path, sep="\t", index=False)
        with pytest.raises(InputError, match=f"table.tsv, column {name}: '{value}' is not a (whole )?number"):
            read_table(path)
    pd.DataFrame([good, good]).to_csv(path, sep="\t", index=False)
    assert read_table(path)["effect"].tolist() == [np.inf, np.inf]
