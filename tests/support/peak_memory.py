"""How much memory a piece of code needs, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import netbic, netbic.io, pandas, pyarrow.csv, pyarrow.parquet, h5py, zarr, numcodecs, dask.array
from netbic.operators import executors
executors.ThreadExecutor.memory = 1e8  # 100 MB: nothing is held

def peak():  # in kB; ru_maxrss would count what the parent process had
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

before = peak()
{code}
print((peak() - before) / 1024)
"""


def peak_memory(code, *arguments):
    """The additional memory in MB of some code, which finds the arguments in sys.argv."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs the memory statistics of Linux")
    # Threads of netbic and of Zarr, each with a block.
    environment = os.environ | {"LOKY_MAX_CPU_COUNT": "2", "ZARR_THREADING__MAX_WORKERS": "2"}
    command = [sys.executable, "-c", SCRIPT.format(code=code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)
