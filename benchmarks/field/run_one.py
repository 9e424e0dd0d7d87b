"""Run one method on one problem in the environment of this Python: run_one.py METHOD.py PROBLEM.npz FOUND.npz [GB]

It imports nothing but the method and `problem.py`, so it runs in every environment. It writes what was found, with the
seconds that all cores worked, wall seconds and the peak memory of the process and its children.
"""

import importlib.util
import os
import resource
import sys
import time
import warnings
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")
HERE = Path(__file__).parent
sys.path[0] = str(HERE)

import numpy as np  # noqa: E402
from problem import Problem  # noqa: E402


def load(path):
    """A method: a module with `run(problem)`."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    method = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(method)
    return method


def used():
    """Process seconds and peak GB of this process and of those that it started."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both), max(own_peak(), both[1].ru_maxrss) / 1e6


def own_peak():
    """Peak memory of this process in kB; getrusage of Linux would count that of the process that started it as well."""
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(status.partition("VmHWM:")[2].split()[0])


def main(method, given, out, gigabytes=None):
    if gigabytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(float(gigabytes) * 1e9),) * 2)
    warnings.simplefilter("ignore")
    with np.load(given) as file:
        parts = dict(file)
    k, seed = (int(parts.pop(name)) for name in ("k", "seed"))
    problem = Problem(**parts, k=k or None, seed=seed)
    run = load(method).run
    before, begun = used()[0], time.perf_counter()
    found = run(problem)
    wall, (seconds, memory) = time.perf_counter() - begun, used()
    arrays = {name: value for name, value in found._asdict().items() if value is not None}
    np.savez_compressed(out, **arrays, seconds=seconds - before, wall=wall, gigabytes=memory)


if __name__ == "__main__":
    main(*sys.argv[1:])
