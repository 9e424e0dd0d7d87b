"""Ctrl-C keeps finished fits; a resumed command does not repeat them and writes the same files."""

import os
import signal

import pytest

from netbic.storage import SavedTexts
from support.commands import run
from support.output_folders import contents


class Recorder:
    """Records which fits are kept, and sends SIGINT to this process (Ctrl-C) when a number of them are."""

    def __init__(self, monkeypatch):
        self.names, self.last = [], None
        keep = SavedTexts.__setitem__

        def kept(saved, name, text):
            keep(saved, name, text)
            self.names.append(name)
            if len(self.names) == self.last:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(SavedTexts, "__setitem__", kept)

    def start(self, last=None):
        self.names, self.last = [], last


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


@pytest.fixture
def auto(cohort):
    """A fit that chooses the number of modules, tests the network and judges modules."""
    files = [cohort / "expression.tsv", "--graph", cohort / "edges.tsv"]
    return ["fit", *files, "--modules", 2, "--auto", "--genes", 8, "--verdict", "--no-report", "--jobs", 2, "--out"]


def test_fits_of_an_interrupted_choice_are_not_repeated(recorder, auto, tmp_path):
    assert run(*auto, tmp_path / "whole").exit_code == 0
    whole, names = contents(tmp_path / "whole"), recorder.names
    assert len(set(names)) == len(names)
    assert {name.split()[0] for name in names} == {"n_modules", "number", "smoothing", "graph_value", "verdicts"}
    for number in (3, len(names) - 11, len(names) - 3):
        out = tmp_path / f"out{number}"
        recorder.start(number)
        stopped = run(*auto, out)
        assert stopped.exit_code == 1
        assert "interrupted (continue with netbic fit ... --resume)" in stopped.output
        assert sorted(path.name for path in out.iterdir()) == ["fit.checkpoint", "run.json"]
        first = recorder.names
        recorder.start()
        assert run(*auto, out, "--resume").exit_code == 0
        assert contents(out) == whole
        assert sorted(first + recorder.names) == sorted(names)


def test_an_interrupted_choice_can_be_resumed_with_another_number_of_threads(recorder, auto, tmp_path):
    assert run(*auto, tmp_path / "whole").exit_code == 0
    recorder.start(9)
    assert run(*auto, tmp_path / "out").exit_code == 1
    assert run(*auto, tmp_path / "out", "--resume", "--jobs", 1).exit_code == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_other_settings_are_refused_after_an_interrupted_choice(recorder, auto, tmp_path):
    recorder.start(3)
    assert run(*auto, tmp_path / "out").exit_code == 1
    before = contents(tmp_path / "out")
    refused = run(*auto, tmp_path / "out", "--resume", "--seed", 1)
    assert refused.exit_code == 2
    assert "was started with other data or settings (seed: 0 then, 1 now)" in refused.output
    assert contents(tmp_path / "out") == before


def test_pairs_of_halves_of_other_groups_of_samples_are_not_used(recorder, auto, cohort, tmp_path):
    """The groups (--by) are not among the settings of the modules: they only matter for the verdicts."""
    donors = "".join(f"s{k}\td{k // 2}\n" for k in range(20))
    (cohort / "samples.tsv").write_text("sample\tdonor\n" + donors)
    grouped = ["--sample-info", cohort / "samples.tsv", "--by", "donor"]
    assert run(*auto, tmp_path / "whole", *grouped).exit_code == 0
    recorder.start()
    assert run(*auto, tmp_path / "plain").exit_code == 0
    recorder.start(len(recorder.names) - 2)
    assert run(*auto, tmp_path / "out").exit_code == 1
    assert run(*auto, tmp_path / "out", "--resume", *grouped).exit_code == 0
    found, expected = (contents(tmp_path / name)["verdicts.tsv"] for name in ("out", "whole"))
    assert found == expected
