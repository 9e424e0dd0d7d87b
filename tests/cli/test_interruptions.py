"""Kills, signals, locks and full disks leave earlier results unchanged and no temporary files."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import netbic
from netbic.files import LOCK
from netbic.storage.runs import Run
from support.commands import run, run_successfully
from support.output_folders import FullDisk, contents, fit


def test_a_lock_file_is_never_opened_through_a_link(cohort, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_bytes(b"mine")
    for kind in ("link", "dangling", "folder"):
        lock = tmp_path / kind / LOCK
        lock.parent.mkdir()
        if kind == "folder":
            lock.mkdir()
        else:
            lock.symlink_to(victim if kind == "link" else tmp_path / "nowhere")
        done = fit(cohort, lock.parent)
        assert done.exit_code == 1
        assert LOCK in done.output
    assert victim.read_bytes() == b"mine"
    assert not (tmp_path / "nowhere").exists()


_REPLACING = """
import os, signal, sys
from pathlib import Path
from netbic.files import locked, scratch_folder
with locked(Path(sys.argv[1]), "out.zarr"), scratch_folder(Path(sys.argv[1]), "out.zarr") as scratch:
    os.replace(Path(sys.argv[1]) / "out.zarr", scratch / "replaced")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_store_that_was_being_replaced_is_restored(cohort, tmp_path):
    """A kill between the two steps that replace an old store by a new one."""
    arguments = ("convert", cohort / "expression.tsv", tmp_path / "out.zarr")
    assert run(*arguments).exit_code == 0
    before = contents(tmp_path / "out.zarr")
    subprocess.run([sys.executable, "-c", _REPLACING, str(tmp_path)], check=False, timeout=60)
    assert not (tmp_path / "out.zarr").exists()
    assert run(*arguments).exit_code == 2  # it exists again and is not replaced without --force
    assert contents(tmp_path / "out.zarr") == before
    assert not list(tmp_path.glob(".netbic-*"))


@pytest.mark.parametrize("freeing", [False, True])
def test_a_signal_cleans_up_as_ctrl_c_does(cohort, tmp_path, freeing):
    script = _STOPPED_WHILE_FREEING if freeing else _STOPPED
    command = [sys.executable, "-c", script, "convert", str(cohort / "expression.tsv"), str(tmp_path / "out.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "interrupted (nothing was written)" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["cohort"]


_STOPPED = """
import os, signal, sys, netbic.io
from netbic.cli import main
sys.modules["netbic.io.conversion"].write_store = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main()
"""

# Python ignores an exception that is raised while it frees an object.
_STOPPED_WHILE_FREEING = """
import os, signal, sys, time, netbic.io
from netbic.cli import main
class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
def write_store(*_):
    Freed()
    time.sleep(10)
sys.modules["netbic.io.conversion"].write_store = write_store
main()
"""


def test_user_files_that_look_temporary_are_not_removed(cohort, tmp_path):
    out = tmp_path / "out"
    (out / "model").mkdir(parents=True)
    own = {".unfinished-abc", ".unfinished-lock", ".netbic-unfinished-thesis.txt", "model/.unfinished-notes"}
    own |= {".netbic-unfinished-modules.tsv.bak", "model/.netbic-unfinished-modules.tsv-notes"}
    for name in own:
        (out / name).write_bytes(b"mine")
    (out / ".netbic-unfinished-modules.tsv").write_bytes(b"half")
    assert fit(cohort, out, "--force", "--no-report").exit_code == 0
    left = contents(out)
    assert {name: content for name, content in left.items() if "unfinished" in name} == dict.fromkeys(own, b"mine")


def test_temporary_files_of_a_finished_tuning_or_fit_are_removed(cohort, results, tmp_path):
    grid = ("--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2)
    tuning = ("tune", cohort / "expression.tsv", *grid, "--out", tmp_path / "tuning")
    assert run(*tuning).exit_code == 0
    for folder, record in ((tmp_path / "tuning", "tuning.json"), (results, "run.json")):
        before = contents(folder)
        (folder / LOCK).touch()
        (folder / f".netbic-unfinished-{record}").touch()
        (folder / ".netbic-scratch").mkdir()
        if folder == results:
            assert fit(cohort, results, "--resume", "--no-report").exit_code == 0
        else:
            assert run(*tuning).exit_code == 2
        assert contents(folder) == before
        assert not list(folder.glob(".netbic-*"))


@pytest.mark.parametrize("command", ["fit", "enrich", "report", "tune", "simulate"])
def test_a_full_disk_changes_nothing(cohort, results, tmp_path, monkeypatch, command):
    data, sizes = cohort / "expression.tsv", ("--modules", 1, "--samples", 6)
    arguments = {
        "fit": ("fit", data, *sizes, "--genes", 8, "--out", results, "--no-report", "--force"),
        "enrich": ("enrich", results, "--gene-sets", cohort / "sets.gmt"),
        "report": ("report", results),
        "tune": ("tune", data, *sizes, "--genes", "5,8", "--folds", 2, "--out", tmp_path / "tuning", "--force"),
        "simulate": ("simulate", tmp_path / "made", "--samples", 40, "--genes", 200, "--modules", 1, "--force"),
    }

    def kept():
        return {name: content for name, content in contents(tmp_path).items() if "/.netbic-" not in name}

    run_successfully(*arguments[command])
    before = kept()
    for after in (0, *((1, 4) if command == "fit" else (1,) if command != "report" else ())):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", FullDisk(after))
            done = run(*arguments[command])
        assert done.exit_code == 1
        assert "cannot be written (No space left on device): free some disk space" in done.output
        assert kept() == before
    run_successfully(*arguments[command])


def test_a_file_that_cannot_be_moved_is_moved_by_the_next_command(cohort, results, monkeypatch):
    real = os.replace

    def refused(source, target):
        if Path(target) == results / "modules.tsv":
            raise PermissionError(errno.EACCES, "Permission denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", refused)
    done = fit(cohort, results, "--force", "--no-report", "--modules", 1)
    monkeypatch.undo()
    assert done.exit_code == 1
    assert "modules.tsv cannot be written (Permission denied)" in done.output
    assert netbic.load(results).n_components_ == 1  # the results were complete: they are moved when they are needed
    assert not list(results.glob(".netbic-ready"))
    assert fit(cohort, results, "--resume", "--no-report", "--modules", 1).exit_code == 0
    assert not list(results.glob(".netbic-*"))


def test_two_files_are_written_together(results, tmp_path, monkeypatch):
    shutil.copytree(results, tmp_path / "other")
    table, figure = tmp_path / "matches.tsv", tmp_path / "matches.svg"
    compare = ("compare", results, tmp_path / "other", "--out", table, "--plot", figure, "--force")
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(1))
        done = run(*compare)
    assert "matches.svg cannot be written (No space left on device)" in done.output
    assert "earlier results are unchanged" in done.output
    assert contents(tmp_path) == before
    replace, stopped = os.replace, []

    def interrupted(source, target):
        replace(source, target)
        if not stopped:
            stopped.append(target)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        done = run(*compare)
    assert stopped == [table]
    assert "interrupted (all files were written)" in done.output
    assert figure.exists()
    assert not list(tmp_path.glob(".netbic-*"))


def test_nothing_is_said_to_be_kept_in_a_folder_that_is_gone(cohort, tmp_path, monkeypatch):
    kept = Run.keep

    def keep(self, number, module):
        kept(self, number, module)
        shutil.rmtree(tmp_path / "out")

    monkeypatch.setattr(Run, "keep", keep)
    done = fit(cohort, tmp_path / "out")
    assert done.exit_code == 1
    assert "cannot be written (No such file or directory)" in done.output
    assert "kept" not in done.output
    assert "unchanged" not in done.output
