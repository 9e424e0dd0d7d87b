"""Interrupted experiments continue and write the same files."""

import numpy as np
import pandas as pd
import pytest

import reproduction as experiments
from netbic import InputError
from reproduction.steps import Steps


class Interrupt:
    """Interrupts when a number of steps of a stage are done."""

    def __init__(self, stage, after):
        self.at, self.calls = (stage, after), []

    def __call__(self, stage, done, total):
        self.calls.append((stage, done, total))
        if (stage, done) == self.at:
            raise KeyboardInterrupt


def test_interrupted_experiments_continue(tmp_path):
    whole, calls = tmp_path / "whole", Interrupt("", 0)
    experiments.reproduce(["fig1"], whole, replicates=2, progress=calls)
    expected = {path.name: path.read_bytes() for path in whole.iterdir()}
    assert "reproduction.checkpoint" not in expected
    assert [call for call in calls.calls if call[1] == call[2]] == [("replicates", 36, 36), ("controls", 2, 2)]
    again = Interrupt("controls", 1)
    for interrupt in (Interrupt("replicates", 7), again):
        with pytest.raises(KeyboardInterrupt):
            experiments.reproduce(["fig1"], tmp_path / "out", replicates=2, progress=interrupt)
    assert again.calls[:2] == [("replicates", 7, 36), ("replicates", 8, 36)]  # seven are not computed again
    with pytest.raises(InputError, match=r"other data or settings \(seed: 0 then, 1 now\)"):
        experiments.reproduce(["fig1"], tmp_path / "out", replicates=2, seed=1)
    experiments.reproduce(["fig1"], tmp_path / "out", replicates=2)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == expected


def test_tables_of_steps_are_kept_without_loss():
    table = pd.DataFrame({"a": [0.1, np.nan], "b": [1, 2], "c": [True, False], "d": ["x", "y"], "e": [np.inf, 1e-300]})
    finished = {}
    for _ in range(2):
        (again,) = Steps(finished=finished).tables("methods", lambda name: table, [("sgSVD*",)])
        pd.testing.assert_frame_equal(again, table, check_exact=True)
    assert len(finished) == 1


def test_a_file_of_the_user_is_not_taken_for_a_checkpoint(tmp_path):
    (tmp_path / "reproduction.checkpoint").write_text("mine\n")
    with pytest.raises(InputError, match="is not a checkpoint of netbic"):
        experiments.reproduce(["fig1"], tmp_path, replicates=2)
    assert [path.name for path in tmp_path.iterdir()] == ["reproduction.checkpoint"]
