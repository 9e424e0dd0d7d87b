"""A few random kills; `make kills` makes two hundred."""

import subprocess
import sys
from pathlib import Path


def test_killed_commands_write_the_same_bytes_when_resumed():
    script = Path(__file__).with_name("random_kills.py")
    arguments = ["--kills", "9", "--seed", "11", "--without", "fit, report"]
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout
