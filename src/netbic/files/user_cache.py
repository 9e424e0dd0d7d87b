"""Text that takes long to make and is the same every time, kept in the user's cache folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from netbic.files.atomic import WriteError, write_atomic


def cached_text(name: str, make: Callable[[], str]) -> str:
    """The text of a file of the cache folder; made, and written there, if there is no such file.

    The name must change with everything that the text depends on. Without a folder that can be written to, the text is
    made every time.
    """
    path = cache_folder() / name
    with suppress(OSError, UnicodeDecodeError):
        if text := path.read_text(encoding="utf-8"):
            return text
    text = make()
    with suppress(OSError, WriteError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode("utf-8"))
    return text


def cache_folder() -> Path:
    """`NETBIC_CACHE` if it is set, else the folder "netbic" in the place of the operating system for such files."""
    if own := os.environ.get("NETBIC_CACHE"):
        return Path(own)
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "netbic" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "netbic"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "netbic"
