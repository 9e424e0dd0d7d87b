"""Where tests find data that is not in the repository."""

import os
from pathlib import Path


def shared_folder(variable: str) -> Path | None:
    """The folder that an environment variable names, or None; an error if data are required but missing."""
    folder = os.environ.get(variable)
    if folder and Path(folder).is_dir():
        return Path(folder)
    if os.environ.get("NETBIC_REQUIRE_DATA") == "1":
        raise FileNotFoundError(f"NETBIC_REQUIRE_DATA=1 but {variable}={folder!r} is not a folder")
    return None
