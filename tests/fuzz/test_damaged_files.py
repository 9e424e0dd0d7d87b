"""A short run of the fuzzer: damaged files of every format are read or refused. The script beside it runs longer."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each file is read in a forked process")

_SPEC = importlib.util.spec_from_file_location("damaged_files", Path(__file__).with_name("damaged_files.py"))
damaged_files = sys.modules.setdefault(_SPEC.name, importlib.util.module_from_spec(_SPEC))
_SPEC.loader.exec_module(damaged_files)


@pytest.mark.parametrize("name", damaged_files.FORMATS)
def test_damaged_files_are_read_or_refused(name):
    counts, failures = damaged_files.run(name, range(12), seed=7)
    assert not failures, "\n".join(failures)
    assert counts["refused"] > 0
