"""Nothing of the user's is replaced or removed, whatever is asked for."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import netbic
from netbic import InputError, SparseGraphSVD
from netbic.cli import main
from netbic.files import atomic as io_files
from netbic.files.atomic import LOCK, WriteError, locked, read_json, write_atomic
from netbic.files.guard import RECORDS, RUN_FILES, add_files, recorded_files, remove_stale_scratch, scratch_folder

TOY = netbic.simulate.paper(0.02, random_state=0)


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cohort(tmp_path):
    """Expression, a network and gene sets, as a user has them."""
    folder = tmp_path / "cohort"
    folder.mkdir()
    generator = np.random.default_rng(0)
    genes = [f"G{k}" for k in range(40)]
    values = generator.standard_normal((40, 20))
    values[:10, :8] += 3
    pd.DataFrame(values, index=pd.Index(genes, name="gene"), columns=[f"s{k}" for k in range(20)]).to_csv(
        folder / "expression.tsv", sep="\t"
    )
    edges = [(genes[a], genes[b]) for a in range(12) for b in range(a)]
    (folder / "edges.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    (folder / "sets.gmt").write_text("one\tset one\t" + "\t".join(genes[:12]) + "\n")
    return folder


SIZES = ("--modules", 2, "--genes", 8, "--samples", 6)


def fit(cohort, out, *more):
    words = ("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", *SIZES, "--out", out)
    return run(*words, *(more or ["--no-report"]))


@pytest.fixture
def results(cohort, tmp_path):
    assert fit(cohort, tmp_path / "results").exit_code == 0
    return tmp_path / "results"


# ----------------------------------------------------------------------------------------------------------------
# Inputs
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["plain", "dots", "link to the folder", "link to the file", "hard link"])
def test_a_fit_does_not_replace_what_it_reads(cohort, tmp_path, spelling):
    graph, out = cohort / "edges.tsv", cohort
    if spelling == "dots":
        out = cohort / ".." / "cohort" / "."
    elif spelling == "link to the folder":
        out = tmp_path / "link"
        out.symlink_to(cohort)
    elif spelling == "link to the file":
        graph = tmp_path / "network.tsv"
        graph.symlink_to(cohort / "edges.tsv")
    elif spelling == "hard link":
        graph = tmp_path / "network.tsv"
        os.link(cohort / "edges.tsv", graph)
    before = contents(cohort)
    for more in ([], ["--force"], ["--resume"]):
        done = run("fit", cohort / "expression.tsv", "--graph", graph, "--out", out, *more)
        assert done.exit_code == 2
        assert "edges.tsv is what is to be read (the network" in done.output
        assert contents(cohort) == before


@pytest.mark.parametrize("option", ["--gene-sets", "--id-map", "--graph-names", "--string-info"])
def test_further_inputs_are_not_replaced_either(cohort, option):
    (cohort / "gene_sets.tsv").write_text("one\tset one\tG1\tG2\n")
    done = run(
        *("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", option, cohort / "gene_sets.tsv"),
        *("--out", cohort, "--force"),
    )
    assert done.exit_code == 2
    assert "is what is to be read" in done.output
    assert (cohort / "gene_sets.tsv").read_text() == "one\tset one\tG1\tG2\n"


def test_scores_do_not_replace_what_is_scored_or_the_modules(cohort, results):
    before = contents(cohort), contents(results)
    targets = [cohort / "expression.tsv", cohort / ".." / "cohort" / "expression.tsv", results / "model" / "arrays.npz"]
    for target in [*targets, results / "run.json", results / "modules.tsv"]:
        done = run("score", results, cohort / "expression.tsv", "--out", target, "--force")
        assert done.exit_code == 2, done.output
        assert "is what is to be read" in done.output
    done = run("report", results, "--out", results / "modules.tsv", "--force")
    assert done.exit_code == 2
    assert (contents(cohort), contents(results)) == before


def test_tuning_and_enrichment_do_not_replace_their_inputs(cohort, results):
    (cohort / "tuning.tsv").write_bytes((cohort / "expression.tsv").read_bytes())
    before = contents(cohort)
    done = run("tune", cohort / "tuning.tsv", "--out", cohort, "--force")
    assert done.exit_code == 2
    assert "tuning.tsv is what is to be read" in done.output
    assert contents(cohort) == before
    (results / "gene_sets.tsv").write_text("one\tset one\tG1\tG2\n")
    done = run("enrich", results, "--gene-sets", results / "gene_sets.tsv")
    assert done.exit_code == 2
    assert (results / "gene_sets.tsv").read_text() == "one\tset one\tG1\tG2\n"


# ----------------------------------------------------------------------------------------------------------------
# Files in the way
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RUN_FILES, "run.json", "checkpoint/module-0000.npz"])
def test_a_fit_does_not_replace_a_file_it_did_not_write(cohort, tmp_path, name):
    own = tmp_path / "results" / name
    own.parent.mkdir(parents=True)
    own.write_bytes(b"years of work")
    (tmp_path / "results" / "thesis.docx").write_bytes(b"more years")
    for more in ([], ["--force"], ["--resume"]):
        done = fit(cohort, tmp_path / "results", *more)
        assert done.exit_code == 2
        assert own.name in done.output
        assert contents(tmp_path / "results") == {name: b"years of work", "thesis.docx": b"more years"}


def test_force_replaces_an_earlier_fit_and_leaves_the_rest(cohort, results):
    (results / "notes.txt").write_bytes(b"mine")
    assert run("enrich", results, "--gene-sets", cohort / "sets.gmt").exit_code == 0
    assert run("report", results).exit_code == 0
    assert fit(cohort, results, "--force", "--no-report").exit_code == 0
    left = contents(results)
    assert left["notes.txt"] == b"mine"
    assert not {"gene_sets.tsv", "report.html"} & set(left)  # of the earlier fit, which has gone


def test_a_file_that_came_later_is_not_replaced(cohort, results):
    assert fit(cohort, results, "--force", "--no-report").exit_code == 0
    (results / "report.html").write_bytes(b"my own page")
    for words in (["report", results], ["report", results, "--out", results / "report.html", "--force"]):
        done = run(*words)
        assert done.exit_code == 2
        assert "report.html" in done.output
    assert fit(cohort, results, "--force").exit_code == 2
    assert (results / "report.html").read_bytes() == b"my own page"
    (results / "report.html").unlink()
    for _ in range(2):  # the second replaces the first, which is netbic's
        assert run("report", results).exit_code == 0


@pytest.mark.parametrize("name", ["model", "checkpoint"])
def test_links_in_place_of_folders_are_not_followed(cohort, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "arrays.npz").write_bytes(b"mine")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / name).symlink_to(elsewhere)
    done = fit(cohort, tmp_path / "results", "--force")
    assert done.exit_code == 2
    assert "is in the way" in done.output
    assert contents(elsewhere) == {"arrays.npz": b"mine"}


def test_a_record_cannot_claim_files_that_are_not_results(cohort, results, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_bytes(b"mine")
    (results / "notes.txt").write_bytes(b"mine")
    content = read_json(results / "run.json")
    content["files"] += ["../victim.txt", str(victim), "notes.txt", 7, None]
    (results / "run.json").write_text(json.dumps(content))
    assert recorded_files(results) <= {*RUN_FILES, "run.json"}
    assert fit(cohort, results, "--force").exit_code == 0
    assert victim.read_bytes() == b"mine"
    assert (results / "notes.txt").read_bytes() == b"mine"


def test_named_files_are_replaced_only_if_asked_for(cohort, results, tmp_path):
    notes = tmp_path / "important.txt"
    for command in (["score", results, cohort / "expression.tsv"], ["report", results]):
        notes.write_bytes(b"years of work")
        done = run(*command, "--out", notes)
        assert done.exit_code == 2
        assert "exists: choose another name, or --force to replace it" in done.output
        assert notes.read_bytes() == b"years of work"
        assert run(*command, "--out", notes, "--force").exit_code == 0
        assert notes.read_bytes() != b"years of work"


def test_devices_pipes_and_folders_are_no_files_to_write(cohort, results, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "pipe", tmp_path / "folder", "/dev/null"):
        done = run("score", results, cohort / "expression.tsv", "--out", target, "--force")
        assert done.exit_code == 2
        assert "is not a regular file" in done.output
    assert not Path("/dev/null").is_file()


def test_a_link_is_replaced_and_not_what_it_points_to(cohort, results, tmp_path):
    (tmp_path / "precious.tsv").write_bytes(b"mine")
    (tmp_path / "scores.tsv").symlink_to(tmp_path / "precious.tsv")
    words = ("score", results, cohort / "expression.tsv", "--out", tmp_path / "scores.tsv")
    assert run(*words).exit_code == 2
    assert run(*words, "--force").exit_code == 0
    assert (tmp_path / "precious.tsv").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["expression.tsv.gz", "network.sif", "truth.tsv", "simulation.json"])
def test_a_simulation_replaces_only_a_simulation(tmp_path, name):
    words = ("simulate", tmp_path / "made", "--samples", 40, "--genes", 200, "--modules", 1)
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 2
    assert run(*words, "--force").exit_code == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_bytes(b"mine")
    assert run("simulate", tmp_path / "own", *words[2:], "--force").exit_code == 2
    assert contents(tmp_path / "own") == {name: b"mine"}


@pytest.mark.parametrize("name", ["tuning.tsv", "tuning.json", "tuning.checkpoint"])
def test_a_tuning_replaces_only_a_tuning(cohort, tmp_path, name):
    out = tmp_path / "out"
    words = ("tune", cohort / "expression.tsv", "--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2, "--out")
    assert run(*words, out).exit_code == 0
    assert run(*words, out).exit_code == 2
    assert run(*words, out, "--force").exit_code == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_bytes(b"mine\n")
    done = run(*words, tmp_path / "own", "--force")
    assert done.exit_code in (1, 2)
    assert name in done.output
    assert contents(tmp_path / "own") == {name: b"mine\n"}


def test_a_reproduction_replaces_only_a_reproduction(tmp_path):
    (tmp_path / "README.md").write_bytes(b"mine")
    done = run("reproduce", "fig1", "--out", tmp_path, "--replicates", 2)
    assert done.exit_code == 2
    assert "README.md" in done.output
    assert contents(tmp_path) == {"README.md": b"mine"}


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


def test_a_saved_model_without_a_graph_leaves_no_graph_of_the_one_before(tmp_path):
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
    assert not (tmp_path / "report.html").exists()  # it was about the model before
    netbic.report.write_report(tmp_path)
    assert netbic.load(tmp_path).n_components_ == 1


def test_a_store_with_files_of_the_users_is_not_replaced(cohort, tmp_path):
    words = ("convert", cohort / "expression.tsv", tmp_path / "out.zarr")
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 2
    (tmp_path / "out.zarr" / "obs" / "notes.txt").write_bytes(b"mine")
    done = run(*words, "--force")
    assert done.exit_code == 2
    assert "obs/notes.txt" in done.output
    (tmp_path / "out.zarr" / "obs" / "notes.txt").unlink()
    assert run(*words, "--force").exit_code == 0


def test_a_store_inside_what_is_read_is_refused(cohort, tmp_path):
    assert run("convert", cohort / "expression.tsv", tmp_path / "out.zarr").exit_code == 0
    for source, target in (("out.zarr", "out.zarr/inner.zarr"), ("out.zarr", "out.zarr"), ("out.zarr", "./out.zarr")):
        done = run("convert", tmp_path / source, tmp_path / target, "--force")
        assert done.exit_code == 2
        assert "is what is to be read" in done.output


# ----------------------------------------------------------------------------------------------------------------
# Locks and leftovers
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_a_lock_file_is_never_opened_through_a_link(cohort, tmp_path, kind):
    out, victim = tmp_path / "out", tmp_path / "victim.txt"
    out.mkdir()
    victim.write_bytes(b"mine")
    if "link" in kind:
        (out / LOCK).symlink_to(victim if kind == "link" else tmp_path / "nowhere")
    elif kind == "pipe":
        os.mkfifo(out / LOCK)
    else:
        (out / LOCK).mkdir()
    done = fit(cohort, out)
    assert done.exit_code == 1
    assert LOCK in done.output
    assert victim.read_bytes() == b"mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_lock_file_is_not_truncated_and_goes_with_its_owner(tmp_path):
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(InputError, match="another fit is writing"), locked(tmp_path):
            pass
    assert not list(tmp_path.iterdir())
    (tmp_path / LOCK).write_bytes(b"somebody's")
    with locked(tmp_path):
        pass
    assert (tmp_path / LOCK).read_bytes() == b"somebody's"


def test_what_a_killed_write_left_is_swept_by_the_next_to_that_file(tmp_path):
    for name in (".unfinished-table.tsv-abcd1234", ".unfinished-other.tsv-abcd1234", ".unfinished-table.tsv-notes"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".unfinished-table.tsv-zzzz9999").symlink_to(tmp_path / "nowhere")
    write_atomic(tmp_path / "table.tsv", b"whole")
    left = {path.name for path in tmp_path.iterdir()}
    assert ".unfinished-table.tsv-abcd1234" not in left
    assert {"table.tsv", ".unfinished-other.tsv-abcd1234", ".unfinished-table.tsv-notes"} <= left
    assert ".unfinished-table.tsv-zzzz9999" in left  # links are not netbic's


def test_a_scratch_folder_is_swept_only_when_its_process_is_gone(tmp_path):
    with scratch_folder(tmp_path, "out.zarr") as scratch:
        remove_stale_scratch(tmp_path, "out.zarr")
        assert scratch.is_dir()
    assert not scratch.exists()
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVE, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == -signal.SIGKILL
    left = sorted(tmp_path.iterdir())
    assert [path.is_dir() for path in left] == [False, True]
    (tmp_path / ".unfinished-abcd1234").mkdir()
    (tmp_path / ".unfinished-abcd1234" / "thesis.txt").write_text("mine")
    remove_stale_scratch(tmp_path, "another.zarr")
    assert set(left) <= set(tmp_path.iterdir())
    remove_stale_scratch(tmp_path, "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [".unfinished-abcd1234"]


_LEAVE = """
import os, signal, sys
from pathlib import Path
from netbic.files.guard import scratch_folder
with scratch_folder(Path(sys.argv[1]), "out.zarr") as scratch:
    (scratch / "store").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_store_that_was_being_replaced_comes_back(cohort, tmp_path):
    """A kill between the two steps that put a new store in the place of an old one."""
    words = ("convert", cohort / "expression.tsv", tmp_path / "out.zarr")
    assert run(*words).exit_code == 0
    before = contents(tmp_path / "out.zarr")
    code = _LEAVE.replace(
        '(scratch / "store").mkdir()', 'os.replace(Path(sys.argv[1]) / "out.zarr", scratch / "replaced")'
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    assert not (tmp_path / "out.zarr").exists()
    assert run(*words).exit_code == 2  # it is there again, and not replaced without --force
    assert contents(tmp_path / "out.zarr") == before
    assert not list(tmp_path.glob(".unfinished-*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
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
import sys, netbic.conversion
converting = sys.modules["netbic.conversion.convert"]
from netbic.cli import main
converting.write_store = lambda *_: os.kill(os.getpid(), {number})
main()
"""


# ----------------------------------------------------------------------------------------------------------------
# Full disks
# ----------------------------------------------------------------------------------------------------------------


class FullDisk:
    """From the n-th file on, nothing more can be written."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, handle: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_leaves_the_earlier_results_whole(cohort, results, monkeypatch):
    before = contents(results)
    for after in range(100):
        with monkeypatch.context() as patch:
            patch.setattr(io_files.os, "fsync", FullDisk(after))
            done = fit(cohort, results, "--force", "--no-report", "--modules", 3)
        if done.exit_code == 0:
            break
        assert done.exit_code == 1
        assert "No space left on device" in done.output
        assert "free some disk space" in done.output
        left = contents(results)
        if "earlier" in left["run.json"].decode() or left["run.json"] == before["run.json"]:
            assert {name: left[name] for name in before if name != "run.json"} == {
                name: content for name, content in before.items() if name != "run.json"
            }, after
            assert netbic.load(results).n_components_ == 2
        assert not [name for name in left if ".unfinished" in name]
        if after % 4 == 1:
            assert fit(cohort, results, "--resume", "--no-report", "--modules", 3).exit_code == 0
            assert fit(cohort, results, "--force", "--no-report").exit_code == 0
            assert contents(results) == before
    assert after > 15


@pytest.mark.parametrize("command", ["enrich", "report", "save", "tune", "simulate"])
def test_a_full_disk_changes_nothing(cohort, results, tmp_path, monkeypatch, command):
    tuning = ("tune", cohort / "expression.tsv", "--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2)
    words = {
        "enrich": ("enrich", results, "--gene-sets", cohort / "sets.gmt"),
        "report": ("report", results),
        "tune": (*tuning, "--out", tmp_path / "tuning", "--force"),
        "simulate": ("simulate", tmp_path / "made", "--samples", 40, "--genes", 200, "--modules", 1, "--force"),
    }
    model = SparseGraphSVD(1, n_columns=20).fit(TOY.X)

    def act():
        if command == "save":
            netbic.save(model, tmp_path / "saved")
        else:
            done = run(*words[command])
            if done.exit_code:
                raise OSError(done.output)

    act()
    kept = {name: content for name, content in contents(tmp_path).items() if "checkpoint" not in name}
    monkeypatch.setattr(io_files.os, "fsync", FullDisk(0 if command == "report" else 1))
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\): free some disk space"):
        act()
    monkeypatch.undo()
    assert {name: content for name, content in contents(tmp_path).items() if "checkpoint" not in name} == kept
    act()


def test_a_write_error_names_the_file_and_what_to_do(tmp_path):
    with pytest.raises(WriteError, match=r"table.tsv cannot be written \(.*\): check the folder and its permissions"):
        write_atomic(tmp_path / "nowhere" / "table.tsv", b"x")


def test_adding_files_is_all_or_nothing(tmp_path, monkeypatch):
    netbic.save(SparseGraphSVD(1, n_columns=20).fit(TOY.X), tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(io_files.os, "fsync", FullDisk(1))
    with pytest.raises(WriteError):
        add_files(tmp_path, {"edges.tsv": b"one", "gene_sets.tsv": b"two"})
    assert contents(tmp_path) == before


@pytest.mark.skipif(sys.platform != "linux", reason="a small disk is made with Linux' tmpfs")
def test_a_disk_that_is_really_full(cohort, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small disk needs the rights of root")
    try:
        done = fit(cohort, disk / "out", "--modules", 5)
        assert done.exit_code == 1
        assert "No space left on device" in done.output
        assert "modules found so far are kept: netbic fit goes on with --resume" in done.output
        done = run("convert", cohort / "expression.tsv", disk / "out.zarr")
        assert "No space left on device" in done.output or done.exit_code == 0
        assert not list(disk.glob(".unfinished-*"))
    finally:
        subprocess.run(["umount", disk], check=True)


# ----------------------------------------------------------------------------------------------------------------
# What a review found
# ----------------------------------------------------------------------------------------------------------------


def test_files_of_the_users_that_look_unfinished_stay(cohort, tmp_path):
    out = tmp_path / "out"
    (out / "model").mkdir(parents=True)
    for name in (".unfinished-thesis.txt", ".unfinished-modules.tsv.bak", "model/.unfinished-Notes"):
        (out / name).write_bytes(b"mine")
    (out / ".unfinished-modules.tsv-abcd1234").write_bytes(b"half")
    assert fit(cohort, out, "--force", "--no-report").exit_code == 0
    left = contents(out)
    assert {name for name in left if ".unfinished" in name} == {
        ".unfinished-thesis.txt",
        ".unfinished-modules.tsv.bak",
        "model/.unfinished-Notes",
    }


def test_what_appears_at_a_target_meanwhile_is_not_replaced(cohort, results, tmp_path, monkeypatch):
    target = tmp_path / "out.zarr"

    def meanwhile(percent):
        target.mkdir(exist_ok=True)
        (target / "thesis.docx").write_bytes(b"mine")

    with pytest.raises(InputError, match="exists: choose another name"):
        netbic.io.convert(cohort / "expression.tsv", target, told=meanwhile)
    assert contents(target) == {"thesis.docx": b"mine"}
    table = netbic.io.scores_table

    def slow(*arguments):
        (tmp_path / "scores.tsv").write_bytes(b"mine")
        return table(*arguments)

    monkeypatch.setattr(netbic.io, "scores_table", slow)
    assert run("score", results, cohort / "expression.tsv", "--out", tmp_path / "scores.tsv").exit_code == 2
    assert (tmp_path / "scores.tsv").read_bytes() == b"mine"


def test_long_names_that_begin_alike_have_leftovers_of_their_own(tmp_path):
    one, other = "x" * 90 + "-1.zarr", "x" * 90 + "-2.zarr"
    with scratch_folder(tmp_path, one) as mine, scratch_folder(tmp_path, other) as theirs:
        assert mine.name[:100] != theirs.name[:100] or mine.name.split("-")[-2] != theirs.name.split("-")[-2]
        assert io_files.leftovers(tmp_path, one) != io_files.leftovers(tmp_path, other)
        assert len(io_files.leftovers(tmp_path, one)) == 1
    with scratch_folder(tmp_path, "\N{CJK UNIFIED IDEOGRAPH-57FA}" * 76 + ".zarr") as scratch:
        assert scratch.is_dir()
    assert not list(tmp_path.iterdir())


def test_a_folder_in_a_files_place_leaves_the_earlier_results(cohort, results):
    (results / "summary.tsv").unlink()
    (results / "summary.tsv").mkdir()
    before = contents(results)
    assert fit(cohort, results, "--force", "--modules", 1).exit_code == 2
    assert contents(results) == before


def test_a_file_that_cannot_be_moved_leaves_the_earlier_results(cohort, results, monkeypatch):
    before, real = contents(results), os.replace

    def refused(source, target):
        if Path(target) == results / "modules.tsv" and "replaced" not in str(source):
            raise PermissionError(errno.EACCES, "Permission denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", refused)
    done = fit(cohort, results, "--force", "--no-report", "--modules", 1)
    monkeypatch.undo()
    assert done.exit_code == 1
    assert "modules.tsv cannot be written (Permission denied)" in done.output
    left = contents(results)
    assert {name: left[name] for name in before if name != "run.json"} == {
        name: content for name, content in before.items() if name != "run.json"
    }
    assert netbic.load(results).n_components_ == 2
    assert fit(cohort, results, "--resume", "--no-report", "--modules", 1).exit_code == 0


def test_a_save_onto_a_disk_that_fills_up_leaves_the_model_before(tmp_path, monkeypatch):
    one, other = (SparseGraphSVD(1, n_columns=size).fit(TOY.X) for size in (20, 30))
    netbic.save(one, tmp_path)
    before = contents(tmp_path)
    for after in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(io_files.os, "fsync", FullDisk(after))
            try:
                netbic.save(other, tmp_path)
                break
            except WriteError:
                assert contents(tmp_path) == before, after
    assert after == 4  # two parts, the record to be, and the record that claims them


def test_a_folder_is_held_while_settings_are_chosen(cohort, tmp_path, monkeypatch):
    answers = []

    def choosing(*_, **__):
        answers.append(fit(cohort, tmp_path / "out", "--resume", "--no-report"))
        raise KeyboardInterrupt

    monkeypatch.setattr(netbic.selection, "choose_settings", choosing)
    words = ("fit", cohort / "expression.tsv", "--modules", 2, "--auto", "--no-report", "--out", tmp_path / "out")
    assert run(*words).exit_code == 1
    assert [answer.exit_code for answer in answers] != [0]
    assert not list((tmp_path / "out").glob(".unfinished-*"))


def test_file_systems_without_locks_are_no_hindrance(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(io_files.fcntl, "flock", unsupported)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()


def test_a_report_elsewhere_needs_no_right_to_write_into_the_results(results, tmp_path, monkeypatch):
    def forbidden(folder):
        raise WriteError(folder, "read-only")

    monkeypatch.setattr(netbic.io, "locked", forbidden)
    assert run("report", results, "--out", tmp_path / "page.html").exit_code == 0


CHANGES = {
    "files": 5,
    "inputs": 7,
    "remarks": 5,
    "earlier": None,
    "settings": [],
    "inputs of another type": {"skip_columns": 5},
    "files that are no names": [1, "report.html", None],
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_record_that_somebody_changed_is_no_record(cohort, results, name):
    content = read_json(results / "run.json") | {name.split(" ")[0]: CHANGES[name]}
    (results / "run.json").write_text(json.dumps(content))
    score = ["score", results, cohort / "expression.tsv"]
    for words in (["report", results], ["enrich", results, "--gene-sets", cohort / "sets.gmt"], score):
        done = run(*words)
        assert "this is a bug" not in done.output
        assert "Traceback" not in done.output
    if " " not in name:
        assert fit(cohort, results, "--force").exit_code == 2


@pytest.mark.parametrize("name", ["alignment.json", "heatmaps.npz", "edges.tsv"])
def test_a_report_of_changed_files_is_one_line(results, name):
    content = {"alignment.json": b'{"samples": []}', "heatmaps.npz": b"PK", "edges.tsv": b"module\n0\n"}[name]
    (results / name).write_bytes(content)
    done = run("report", results)
    assert done.exit_code == 1
    assert "this is a bug" not in done.output


def test_results_without_a_list_of_files_are_said_to_be_old(cohort, results):
    content = {name: value for name, value in read_json(results / "run.json").items() if name != "files"}
    (results / "run.json").write_text(json.dumps(content))
    assert "results of an older netbic" in fit(cohort, results, "--force").output


def test_a_report_inside_the_model_goes_with_it(cohort, results):
    assert run("report", results / "model").exit_code == 0
    assert fit(cohort, results, "--force", "--no-report").exit_code == 0
    assert not (results / "model" / "report.html").exists()
    assert run("report", results / "model").exit_code == 0


@pytest.mark.parametrize("name", [".zgroup", "var/_index/0"])
def test_a_pipe_in_a_store_is_refused(cohort, tmp_path, name):
    assert run("convert", cohort / "expression.tsv", tmp_path / "out.zarr").exit_code == 0
    (tmp_path / "out.zarr" / name).unlink()
    os.mkfifo(tmp_path / "out.zarr" / name)
    done = run("align", tmp_path / "out.zarr", "--graph", cohort / "edges.tsv")
    assert done.exit_code == 1
    assert "is not a regular file" in done.output


def test_a_file_in_the_place_of_a_folder_is_named(cohort, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    for words in (["simulate", tmp_path / "file"], ["simulate", tmp_path / "file" / "below"]):
        done = run(*words, "--samples", 40, "--genes", 200, "--modules", 1)
        assert done.exit_code == 2
        assert "is a file: name a folder" in done.output


def test_what_a_kill_left_of_a_finished_tuning_or_fit_goes(cohort, results, tmp_path):
    out = tmp_path / "tuning"
    words = (
        "tune",
        cohort / "expression.tsv",
        "--modules",
        1,
        "--genes",
        "5,8",
        "--samples",
        6,
        "--folds",
        2,
        "--out",
        out,
    )
    assert run(*words).exit_code == 0
    before = contents(out)
    (out / LOCK).touch()
    (out / ".unfinished-tuning.json-abcd1234").touch()
    (out / "tuning.checkpoint").touch()
    assert run(*words).exit_code == 2
    assert contents(out) == before
    before = contents(results)
    (results / LOCK).touch()
    (results / ".unfinished-results-abcd1234").touch()
    (results / ".unfinished-results-abcd1234.files").mkdir()
    assert fit(cohort, results, "--resume", "--no-report").exit_code == 0
    assert contents(results) == before
    assert not list(results.glob(".unfinished-*"))
