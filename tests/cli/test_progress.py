"""What a command says while it runs."""

import sys

import pytest

from netbic.cli import command
from support.commands import run_successfully

STAGES = ["finding modules", "judging modules", "writing tables", "writing the report"]


@pytest.fixture
def at_once(monkeypatch):
    """Lines without waiting for seconds."""
    monkeypatch.setattr(command, "_GAP", 0.0)


def test_lines_name_the_stages_of_a_fit(at_once, cohort, tmp_path):
    arguments = ["--modules", 2, "--verdict", "--out", tmp_path / "out"]
    done = run_successfully("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", *arguments)
    seen = list(dict.fromkeys(line.partition(":")[0] for line in done.stderr.splitlines()))
    assert [stage for stage in seen if stage in STAGES] == [stage for stage in STAGES if stage in seen]
    assert {"finding modules", "judging modules", "writing the report"} <= {*seen}
    assert "judging modules: 25% done\n" in done.stderr
    assert "% done" not in done.stdout
    quiet = ("--modules", 2, "--quiet", "--no-report", "--out", tmp_path / "quiet")
    assert not run_successfully("fit", cohort / "expression.tsv", *quiet).output


def test_on_a_terminal_there_is_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with command.Progress({"modules": "finding modules"}) as shown:
        shown.update("modules", 3, 10)
        shown._bar.refresh()
    assert "finding modules" in (text := capsys.readouterr().err)
    assert "30%" in text
