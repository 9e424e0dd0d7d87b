"""Output folders of fits: started, interrupted, resumed, finished, refused."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import netbic
from netbic.files import locked
from netbic.storage import Run
from support.commands import run
from support.output_folders import contents

RESULTS = ["modules.tsv", "summary.tsv", "edges.tsv", "alignment.json", "run.json"]
RESULTS += ["heatmaps.npz", "enrichment.json", "gene_moments.npz", "samples.tsv", "verdicts.tsv"]
RESULTS += [f"model/{name}" for name in ("model.json", "names.json", "arrays.npz", "column_graph.npz")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    study = netbic.simulate.cohort(150, 600, n_modules=3, module_samples=30, random_state=2)
    netbic.storage.write_cohort(study, folder)
    return folder


def arguments(files, out, *more, modules=6):
    data = [str(files / "expression.tsv.gz"), "--graph", str(files / "network.sif")]
    options = ["--modules", str(modules), "--genes", "60", "--samples", "30", "--verdict", "--no-report"]
    return ["fit", *data, *options, "--out", str(out), *more]


def fit(files, out, *more, modules=6):
    return run(*arguments(files, out, *more, modules=modules))


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    done = fit(files, out)
    assert done.exit_code == 0, done.output
    return out


def interrupted(files, out, after):
    """The folder of a fit that was killed after a number of modules."""
    kept = Run.keep

    def keep(self, number, module):
        kept(self, number, module)
        if number + 1 == after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "keep", keep)
        assert fit(files, out).exit_code == 1


def test_all_results_exist_and_the_pieces_are_removed(finished):
    assert sorted(contents(finished)) == sorted(RESULTS)


@pytest.mark.parametrize("after", [1, 6])
def test_a_resumed_fit_writes_the_same_bytes(files, finished, tmp_path, after):
    interrupted(files, tmp_path / "out", after)
    assert not (tmp_path / "out" / "modules.tsv").exists()
    done = fit(files, tmp_path / "out", "--resume")
    assert done.exit_code == 0
    assert f"continuing after {after} module{'s' * (after > 1)}\n" in done.output
    assert contents(tmp_path / "out") == contents(finished)


def test_a_damaged_piece_does_not_change_the_result(files, finished, tmp_path):
    interrupted(files, tmp_path / "out", 4)
    piece = tmp_path / "out" / ".netbic-fit" / "module-2.npz"
    piece.write_bytes(piece.read_bytes()[:200])
    done = fit(files, tmp_path / "out", "--resume")
    assert "continuing after 1 module\n" in done.output
    assert contents(tmp_path / "out") == contents(finished)


def test_resume_on_a_missing_or_empty_folder_starts_from_the_beginning(files, finished, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut-short").mkdir()
    (tmp_path / "cut-short" / ".netbic-unfinished-run.json").write_bytes(b"{")
    for name in ("missing", "empty", "cut-short"):
        assert fit(files, tmp_path / name, "--resume").exit_code == 0
        assert contents(tmp_path / name) == contents(finished)


def test_resume_on_a_finished_folder_does_nothing(files, finished):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    done = fit(files, finished, "--resume")
    assert done.exit_code == 0
    assert "nothing to do" in done.output
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_an_existing_folder_is_refused_without_resume_or_force(files, finished, tmp_path):
    done = fit(files, finished)
    assert done.exit_code == 2
    assert "contains finished results" in done.output
    interrupted(files, tmp_path / "partial", 2)
    done = fit(files, tmp_path / "partial")
    assert done.exit_code == 2
    assert "--resume to continue" in done.output


def test_a_foreign_folder_is_not_touched(files, tmp_path):
    (tmp_path / "thesis.docx").write_text("years of work")
    for more in ([], ["--resume"]):
        assert fit(files, tmp_path, *more).exit_code == 2
        assert contents(tmp_path) == {"thesis.docx": b"years of work"}
    assert fit(files, tmp_path, "--force").exit_code == 0
    assert contents(tmp_path)["thesis.docx"] == b"years of work"
    (tmp_path / "file").touch()
    assert "is a file" in fit(files, tmp_path / "file").output


def test_force_removes_what_netbic_wrote_and_nothing_else(files, tmp_path):
    own = {
        "model/pytorch.pt": b"w",
        "checkpoint/epoch1.ckpt": b"c",
        "figures.html": b"r",
        "sub/.netbic-unfinished-thesis": b"x",
    }
    for name, content in own.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    for _ in range(2):
        assert fit(files, tmp_path, "--force").exit_code == 0
        assert {name: contents(tmp_path)[name] for name in own} == own
    (tmp_path / "run.json").write_text("{damaged")  # no record says which files netbic wrote
    before = contents(tmp_path)
    assert fit(files, tmp_path, "--force").exit_code == 2
    assert contents(tmp_path) == before


def test_two_fits_do_not_share_a_folder(files, tmp_path):
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"):
        done = fit(files, tmp_path / "out", "--resume")
        assert done.exit_code == 1
        assert "another command is writing" in done.output
    assert fit(files, tmp_path / "out", "--resume").exit_code == 0


def test_missing_results_of_a_finished_run_are_written_again(files, finished, tmp_path):
    assert fit(files, tmp_path / "out").exit_code == 0
    (tmp_path / "out" / "summary.tsv").unlink()
    assert fit(files, tmp_path / "out", "--resume").exit_code == 0
    assert contents(tmp_path / "out") == contents(finished)


def test_the_bytes_do_not_depend_on_the_number_of_threads(files, tmp_path):
    for jobs in ("1", "2"):
        assert fit(files, tmp_path / jobs, "--restarts", "3", "--jobs", jobs).exit_code == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_force_starts_again(files, finished, tmp_path):
    assert fit(files, tmp_path / "out", modules=2).exit_code == 0
    assert fit(files, tmp_path / "out", "--force").exit_code == 0
    assert contents(tmp_path / "out") == contents(finished)
    interrupted(files, tmp_path / "partial", 3)
    done = fit(files, tmp_path / "partial", "--force")
    assert "going on" not in done.output
    assert contents(tmp_path / "partial") == contents(finished)


def test_other_settings_or_data_are_refused_with_what_changed(files, tmp_path):
    interrupted(files, tmp_path / "out", 2)
    done = fit(files, tmp_path / "out", "--resume", "--seed", "7", modules=9)
    assert done.exit_code == 2
    assert "modules: 6 then, 9 now; seed: 0 then, 7 now" in done.output
    (tmp_path / "net.sif").write_text((files / "network.sif").read_text().split("\n", 1)[1])
    changed = [*arguments(files, tmp_path / "out", "--resume"), "--graph", str(tmp_path / "net.sif")]
    done = run(*changed)
    assert done.exit_code == 2
    assert "(network differs)" in done.output


def test_loading_an_unfinished_fit_explains_how_to_finish_it(files, tmp_path):
    interrupted(files, tmp_path / "out", 2)
    with pytest.raises(netbic.InputError, match="not finished: resume it with netbic fit"):
        netbic.load(tmp_path / "out")


def _modules_kept(out):
    return len(list((out / ".netbic-fit").glob("module-*")))


@pytest.mark.nightly
def test_kills_at_random_moments(files, finished, tmp_path):
    """SIGKILL at random moments of a fit; the resumed fit writes the same bytes."""
    command = [sys.executable, "-m", "netbic"]
    chance = random.Random(0)
    progress = 0
    for number in range(20):
        out, wanted = tmp_path / f"out{number}", chance.randint(0, 3)
        fitting = [*command, *arguments(files, out)]
        process = subprocess.Popen(fitting, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (
            (out / ".netbic-fit/task.json").exists() and _modules_kept(out) >= wanted
        ):
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        progress += _modules_kept(out) > 0
        done = fit(files, out, "--resume")
        assert done.exit_code == 0, done.output
        assert contents(out) == contents(finished), number
    assert progress >= 3  # otherwise the kills came too early or too late


def test_a_fit_that_cannot_write_reports_it(files, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("netbic.files.write_atomic", full)
    done = fit(files, tmp_path / "out")
    assert done.exit_code == 1
    assert "No space left on device" in done.output
    monkeypatch.undo()
    assert fit(files, tmp_path / "out", "--resume").exit_code == 0
