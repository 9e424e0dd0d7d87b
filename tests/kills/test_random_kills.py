"""A few random kills; `make kills` makes two hundred."""

import subprocess
import sys
from pathlib import Path


def test_killed_commands_go_on_to_the_same_bytes():
    script = Path(__file__).with_name("random_kills.py")
    command = [sys.executable, script, "--kills", "21", "--seed", "11", "--without", "fit --auto"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout
