"""Fixtures and settings for the whole suite."""

from pathlib import Path

import pytest
from hypothesis import settings

from support.shared_data import shared_folder

settings.register_profile("steady", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = shared_folder("NETBIC_DATA")
    if folder is None:
        pytest.skip("needs the real data: set NETBIC_DATA to their folder")
    return folder
