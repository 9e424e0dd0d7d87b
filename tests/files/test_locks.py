"""A folder of results is locked by one process at a time."""

import errno

import pytest

from netbic import InputError
from netbic.files import (
    atomic,
    locked,
)
from netbic.files.locks import LOCK


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

    monkeypatch.setattr(atomic.fcntl, "flock", unsupported)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
