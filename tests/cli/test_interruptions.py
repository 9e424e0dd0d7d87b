"""Kills, signals, locks and full disks leave earlier results unchanged and no temporary files."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import netbic
from netbic import SparseGraphSVD
from netbic.files import LOCK
from support.commands import run
from support.output_folders import TOY, FullDisk, contents, fit


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cleans_up_as_ctrl_c_does(cohort, tmp_path, number):
    code = _STOPPED.format(number=int(number))
    command = [sys.executable, "-c", code, "convert", str(cohort / "expression.tsv"), str(tmp_path / "out.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "interrupted (nothing was written)" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["cohort"]


_STOPPED = """
import os
import sys, netbic.io
converting = sys.modules["netbic.io.conversion"]
from netbic.cli import main
converting.write_store = lambda *_: os.kill(os.getpid(), {number})
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
    out = tmp_path / "tuning"
    grid = ("--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2)
    arguments = ("tune", cohort / "expression.tsv", *grid, "--out", out)
    assert run(*arguments).exit_code == 0
    before = contents(out)
    (out / LOCK).touch()
    (out / ".netbic-unfinished-tuning.json").touch()
    (out / ".netbic-scratch").mkdir()
    assert run(*arguments).exit_code == 2
    assert contents(out) == before
    before = contents(results)
    (results / LOCK).touch()
    (results / ".netbic-unfinished-run.json").touch()
    (results / ".netbic-scratch").mkdir()
    assert fit(cohort, results, "--resume", "--no-report").exit_code == 0
    assert contents(results) == before
    assert not list(results.glob(".netbic-*"))


def test_a_folder_is_locked_while_settings_are_chosen(cohort, tmp_path, monkeypatch):
    answers = []

    def choosing(*_, **__):
        answers.append(fit(cohort, tmp_path / "out", "--resume", "--no-report"))
        raise KeyboardInterrupt

    monkeypatch.setattr(netbic.selection, "choose_settings", choosing)
    arguments = ("fit", cohort / "expression.tsv", "--modules", 2, "--auto", "--no-report", "--out", tmp_path / "out")
    assert run(*arguments).exit_code == 1
    assert [answer.exit_code for answer in answers] != [0]
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".netbic-fit"]


@pytest.mark.nightly
def test_a_disk_that_fills_up_leaves_the_earlier_results_complete(cohort, results, monkeypatch):
    before = contents(results)
    for after in range(60):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", FullDisk(after))
            done = fit(cohort, results, "--force", "--no-report", "--modules", 3)
        if done.exit_code == 0:
            break
        assert done.exit_code == 1
        assert "No space left on device" in done.output
        assert "free some disk space" in done.output
        left = contents(results)
        assert {name: left[name] for name in before} == before, after
        assert all(name.startswith(".netbic-fit/") for name in left.keys() - before.keys())
        if after % 4 == 1:
            assert fit(cohort, results, "--resume", "--no-report", "--modules", 3).exit_code == 0
            assert fit(cohort, results, "--force", "--no-report").exit_code == 0
            assert contents(results) == before
    assert after > 15


@pytest.mark.parametrize("command", ["enrich", "report", "save", "tune", "simulate"])
def test_a_full_disk_changes_nothing(cohort, results, tmp_path, monkeypatch, command):
    tuning = ("tune", cohort / "expression.tsv", "--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2)
    arguments = {
        "enrich": ("enrich", results, "--gene-sets", cohort / "sets.gmt"),
        "report": ("report", results),
        "tune": (*tuning, "--out", tmp_path / "tuning", "--force"),
        "simulate": ("simulate", tmp_path / "made", "--samples", 40, "--genes", 200, "--modules", 1, "--force"),
    }
    model = SparseGraphSVD(1, n_columns=20).fit(TOY.X) if command == "save" else None

    def act():
        if model is not None:
            netbic.save(model, tmp_path / "saved")
        else:
            done = run(*arguments[command])
            if done.exit_code:
                raise OSError(done.output)

    act()
    kept = {name: content for name, content in contents(tmp_path).items() if "/.netbic-" not in name}
    monkeypatch.setattr(os, "fsync", FullDisk(0 if command == "report" else 1))
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\): free some disk space"):
        act()
    monkeypatch.undo()
    assert {name: content for name, content in contents(tmp_path).items() if "/.netbic-" not in name} == kept
    act()


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
