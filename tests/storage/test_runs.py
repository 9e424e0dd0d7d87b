"""Output folders of fits: started, interrupted, resumed, finished, refused."""

import shutil

import pandas as pd
import pytest

import netbic
from netbic import InputError
from netbic.files import locked
from netbic.storage.runs import CheckpointMismatch, Pieces, Run, Task, read_task
from support.commands import run
from support.output_folders import contents

RESULTS = ["modules.tsv", "summary.tsv", "edges.tsv", "alignment.json", "run.json", "samples.tsv"]
RESULTS += ["heatmaps.npz", "enrichment.json", "gene_moments.npz"]
RESULTS += [f"model/{name}" for name in ("model.json", "names.json", "arrays.npz", "column_graph.npz")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    study = netbic.simulate.cohort(80, 200, n_modules=3, module_samples=20, random_state=2)
    netbic.storage.write_cohort(study, folder)
    return folder


def arguments(files, out, *more, modules=4, verdict="--no-verdict"):
    data = [str(files / "expression.tsv.gz"), "--graph", str(files / "network.sif")]
    options = ["--modules", str(modules), "--genes", "40", "--samples", "20", verdict, "--no-report"]
    return ["fit", *data, *options, "--out", str(out), *more]


def fit(*given, **options):
    return run(*arguments(*given, **options))


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    done = fit(files, out)
    assert done.exit_code == 0, done.output
    return out


def interrupted(files, out, after, force=False, **options):
    """The folder of a fit that was killed after a number of modules."""
    kept = Run.keep

    def keep(self, number, module):
        kept(self, number, module)
        if number + 1 == after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "keep", keep)
        assert fit(files, out, *["--force"] * force, **options).exit_code == 1


def test_a_resumed_fit_writes_the_same_bytes(files, finished, tmp_path):
    assert sorted(contents(finished)) == sorted(RESULTS)
    for after in (1, 4):
        out = tmp_path / str(after)
        interrupted(files, out, max(after, 3))
        if after == 1:  # a damaged piece is computed again
            (out / ".netbic-fit" / "module-2.npz").write_bytes(b"PK")
        assert not (out / "modules.tsv").exists()
        with pytest.raises(InputError, match="not finished: resume it with netbic fit"):
            netbic.load(out)
        assert "--resume to continue" in fit(files, out).output
        done = fit(files, out, "--resume")
        assert done.exit_code == 0
        assert f"continuing after {after} module{'s' * (after > 1)}\n" in done.output
        assert contents(out) == contents(finished)


def test_resume_on_a_folder_without_pieces(files, finished, tmp_path):
    """A missing, empty or locked one starts from the beginning; so does one that lost a result."""
    for name in ("empty", "cut-short"):
        (tmp_path / name).mkdir()
    (tmp_path / "cut-short" / ".netbic-unfinished-run.json").write_bytes(b"{")
    for name in ("missing", "empty", "cut-short"):
        assert fit(files, tmp_path / name, "--resume").exit_code == 0
        assert contents(tmp_path / name) == contents(finished)
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    done = fit(files, finished, "--resume")
    assert done.exit_code == 0
    assert "nothing to do" in done.output
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before
    (tmp_path / "empty" / "summary.tsv").unlink()
    with locked(tmp_path / "empty"):
        done = fit(files, tmp_path / "empty", "--resume")
        assert done.exit_code == 1
        assert "another command is writing" in done.output
    assert fit(files, tmp_path / "empty", "--resume").exit_code == 0
    assert contents(tmp_path / "empty") == contents(finished)


def test_a_fit_that_was_refused_leaves_nothing_behind(files, tmp_path):
    labels = pd.read_csv(files / "labels.tsv", sep="\t").assign(study=["one", *["two"] * 79])
    labels.to_csv(tmp_path / "labels.tsv", sep="\t", index=False)
    refused = fit(files, tmp_path / "out", "--sample-info", tmp_path / "labels.tsv", "--studies", "study")
    assert "study 'one' has one sample" in refused.output
    assert not list((tmp_path / "out").iterdir())
    assert fit(files, tmp_path / "out").exit_code == 0


def test_a_foreign_folder_is_not_touched(files, finished, tmp_path):
    done = fit(files, finished)
    assert done.exit_code == 2
    assert "contains finished results" in done.output
    (tmp_path / "thesis.docx").write_text("years of work")
    for more in ([], ["--resume"]):
        assert fit(files, tmp_path, *more).exit_code == 2
        assert contents(tmp_path) == {"thesis.docx": b"years of work"}
    assert "is a file" in fit(files, tmp_path / "thesis.docx").output


def test_force_removes_what_netbic_wrote_and_nothing_else(files, finished, tmp_path):
    own = {"model/pytorch.pt": b"w", "checkpoint/epoch1.ckpt": b"c", "figures.html": b"r"}
    own |= {"sub/.netbic-unfinished-thesis": b"x", "thesis.docx": b"years of work"}
    for name, content in own.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert fit(files, tmp_path, "--force", modules=2).exit_code == 0
    interrupted(files, tmp_path, 3, force=True)
    assert "continuing" not in fit(files, tmp_path, "--force").output
    assert contents(tmp_path) == contents(finished) | own
    (tmp_path / "run.json").write_text("{damaged")  # no record says which files netbic wrote
    before = contents(tmp_path)
    assert fit(files, tmp_path, "--force").exit_code == 2
    assert contents(tmp_path) == before


def test_the_bytes_do_not_depend_on_threads_or_an_interruption(files, tmp_path):
    interrupted(files, tmp_path / "2", 2, verdict="--verdict")
    for jobs in ("1", "2"):
        assert fit(files, tmp_path / jobs, "--resume", "--jobs", jobs, verdict="--verdict").exit_code == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert sorted(contents(tmp_path / "1")) == sorted([*RESULTS, "verdicts.tsv"])


def test_other_settings_or_data_are_refused_with_what_changed(files, tmp_path):
    interrupted(files, tmp_path / "out", 2)
    done = fit(files, tmp_path / "out", "--resume", "--seed", "7", modules=9)
    assert done.exit_code == 2
    assert "modules: 4 then, 9 now; seed: 0 then, 7 now" in done.output
    others = shutil.copytree(files, tmp_path / "others")
    (others / "network.sif").write_text((files / "network.sif").read_text().split("\n", 1)[1])
    done = fit(others, tmp_path / "out", "--resume")
    assert done.exit_code == 2
    assert "(network differs)" in done.output


# Pieces of any task: kept one by one, read again, refused for another task

TASK = Task("tuning", {"folds": 3}, {"X": "ab12"})


@pytest.fixture
def folder(tmp_path):
    pieces = Pieces(tmp_path / "pieces", TASK)
    for name in ("1-0", "fold 2/3", "1-1"):
        pieces[name] = name.encode()
    return tmp_path / "pieces"


def test_pieces_are_read_again_without_half_written_ones(folder):
    (folder / ".netbic-unfinished-1-2").write_bytes(b"half")
    assert dict(Pieces(folder, TASK)) == {name: name.encode() for name in ("1-0", "fold 2/3", "1-1")}


def test_another_task_is_refused_with_what_differs_and_nothing_changes(folder, monkeypatch):
    before = contents(folder)
    for task, said in (
        (Task("tuning", {"folds": 5}, {"X": "ab12"}), "folds: 3 then, 5 now"),
        (Task("tuning", {"folds": 3}, {"X": "cd34"}), "X differs"),
    ):
        with pytest.raises(CheckpointMismatch, match=rf"other data or settings \({said}\): repeat those"):
            Pieces(folder, task)
    with pytest.raises(InputError, match="pieces of a tuning, not of a fit"):
        read_task(folder, "fit")
    monkeypatch.setattr("netbic.storage.runs.__version__", "99.0")
    with pytest.raises(CheckpointMismatch, match=r"netbic: .* then, 99.0 now"):
        Pieces(folder, TASK)
    assert contents(folder) == before


def test_other_files_and_folders_are_no_pieces(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    for name in ("folder/notes.txt", "damaged/task.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"{")
    for name in ("file", "folder", "damaged"):
        with pytest.raises(InputError, match="is not a folder of netbic with pieces of a tuning: name another folder"):
            Pieces(tmp_path / name, TASK)
    with pytest.raises(InputError, match="name a folder inside one that exists"):
        Pieces(tmp_path / "nowhere" / "pieces", TASK)
