"""Fits on the workers of a Dask cluster equal local fits, also when workers are killed."""

import operator
import os
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_info

import netbic
from netbic.operators.executors import ClusterError, ClusterExecutor
from netbic.selection import fits as executors
from netbic.selection import graph_value, n_modules, stability, tune
from netbic.selection.fits import Fits, quiet
from netbic.simulate import cohort

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

study = cohort(80, 200, n_modules=2, strength=1.2, random_state=0)
X = study.expression
named = netbic.SparseGraphSVD(2, n_rows=16, n_columns=30, column_graph=study.network)
plain = netbic.SparseGraphSVD(2, n_rows=16, n_columns=30)
joint, counts = netbic.SparseGraphSVD(2), sp.csr_array(np.maximum(X.to_numpy(), 0.0))
GRID = {"n_rows": [8, 16, 32], "n_columns": [30, 60]}


@contextmanager
def two_workers():
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def same(one, other):
    """Whether two results are equal in every number."""
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.equals(other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, netbic.SparseGraphSVD):
        return same(one.components_, other.components_) and same(one.left_vectors_, other.left_vectors_)
    return same(vars(one), vars(other)) if hasattr(one, "__dataclass_fields__") else one == other


FUNCTIONS = {
    "n_modules": lambda **options: n_modules(plain, X, most=3, random_state=0, **options),
    "stability": lambda **options: stability(named, X, n_pairs=6, random_state=0, **options),
    "stability, sparse": lambda **options: stability(plain, sp.csr_array(X), n_pairs=3, random_state=0, **options),
    "graph_value": lambda **options: graph_value(
        named, X, n_rewired=3, n_repeats=1, early_stopping=False, random_state=0, **options
    ),
    "tune": lambda **options: tune(named, X, GRID, n_folds=3, random_state=0, **options).cv_results_,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] * (name not in ("stability, sparse", "tune")))
        for name in FUNCTIONS
    ],
)
def test_a_cluster_gives_the_same_results(client, name):
    assert same(FUNCTIONS[name](), FUNCTIONS[name](n_jobs="dask"))


@pytest.mark.nightly
def test_a_killed_worker_does_not_change_the_results(monkeypatch):
    collect, killed = ClusterExecutor.gather, []

    def collect_after_a_kill(self, handles):
        if not killed:  # all fits have been submitted
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return collect(self, handles)

    monkeypatch.setattr(ClusterExecutor, "gather", collect_after_a_kill)
    with two_workers() as client:
        found = FUNCTIONS["tune"](n_jobs="dask")
    assert killed
    assert same(FUNCTIONS["tune"](), found)


@pytest.mark.nightly
def test_fits_that_kill_every_worker_fail_with_the_likely_cause():
    def die(data, job):
        os._exit(1)

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), two_workers():
        for in_order in (True, False):
            with pytest.raises(ClusterError, match="every worker that took one of the fits died, most likely"):
                list(Fits(X, 9, "dask").map(die, None, [1], in_order=in_order))


def test_errors_of_fits_are_raised_and_those_of_workers_say_what_they_cannot_import(client, monkeypatch):
    with pytest.raises(ZeroDivisionError):
        list(Fits(X, 9, "dask").map(operator.truediv, 1, [2, 1, 0, 4]))
    local_module = ModuleType("local_module")
    exec("from netbic import SparseGraphSVD\nclass Mine(SparseGraphSVD): pass", local_module.__dict__)
    monkeypatch.setitem(sys.modules, "local_module", local_module)
    with pytest.raises(ClusterError, match="No module named 'local_module'; give workers that module"):
        stability(local_module.Mine(2, n_rows=16), X, n_jobs="dask")


def settings():
    pools = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    return list(warnings.filters), pools


def test_fits_on_workers_show_no_warnings_and_use_one_thread(client):
    def settings_of_worker(data, job):  # a nested function is sent by value: workers cannot import this file
        pools = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        return warnings.filters[0][0], pools

    found = list(Fits(X, 9, "dask").map(settings_of_worker, None, range(4)))
    assert found == [("ignore", {1})] * 4


def test_overlapping_threads_restore_the_settings():
    before = settings()
    inside, leave = threading.Event(), threading.Event()

    def first():
        with quiet():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with quiet():
        leave.set()
        thread.join()
        filters, pools = settings()
    assert filters[0][0] == "ignore"
    assert pools == {1}
    assert settings() == before


def test_finished_fits_are_reported():
    for n_jobs in (1, 2):
        calls = []
        fits = Fits(X, 3, n_jobs, lambda *done, calls=calls: calls.append(done))
        fits.left = 10
        assert list(fits.map(operator.mul, 2.0, range(3))) == [0, 2, 4]
        fits.left = 0
        fits.count(3)
        assert calls == [(1, 13), (2, 13), (3, 13), (6, 6)]


def test_every_function_reports_its_progress():
    for name in ("n_modules", "stability", "graph_value", "tune"):
        calls = []
        FUNCTIONS[name](progress=lambda *done, calls=calls: calls.append(done))
        assert calls
        assert all(0 < done <= total for done, total in calls)


def test_fits_run_in_processes_only_if_these_save_time(monkeypatch):
    monkeypatch.setattr(executors, "cpu_count", lambda: 8)
    large, small = np.broadcast_to(0.0, (2000, 1000)), np.broadcast_to(0.0, (100, 1000))
    where = executors._local_jobs
    assert where(large, 500, None) == (8, True)
    assert where(large, 3, None) == (2, False)  # starting processes takes longer: threads
    assert where(small, 3, None) == (1, False)
    assert where(small, 5000, None) == (8, True)  # many small fits
    assert where({"one": large, "other": large}, 60, None) == where(np.broadcast_to(0.0, (4000, 1000)), 60, None)
    assert where(large, 500, 3) == (3, True)
    assert where(large, 500, 1) == where(large, 500, "dask") == (1, False)
    assert where(np.broadcast_to(0.0, (100_000, 100_000)), 500, None) == (1, False)  # copies would not fit into memory
    empty = sp.csr_array((2000, 1000))
    assert where(empty, 3, None) == (1, False)


def test_the_configuration_of_joblib_is_followed():
    large = np.broadcast_to(0.0, (2000, 1000))
    inside = delayed(executors._local_jobs)(large, 500, None)
    assert Parallel(2, prefer="threads")(inside for _ in range(2)) == [(1, False)] * 2
    with parallel_config("threading", n_jobs=3):
        assert executors._local_jobs(large[:10], 5, None)[0] == 3
        assert Fits(large[:10], 5, None).n_parallel == 3


SMALL = {
    "verdicts": lambda: netbic.selection.verdicts(plain.fit(X), X, n_pairs=4, random_state=0).table,
    "verdicts, sparse": lambda: (
        netbic.selection.verdicts(joint.fit(counts), counts, n_pairs=3, random_state=0).features
    ),
    **FUNCTIONS,
}


@pytest.mark.parametrize("name", SMALL)
def test_processes_give_the_same_results(name):
    with parallel_config("loky", n_jobs=2):
        in_processes = SMALL[name]()
    assert same(SMALL[name](), in_processes)


def _own_process(data, job):
    return os.getpid(), type(data).__name__, data.flags.writeable


def test_processes_share_the_data_and_end_when_no_more_fits_are_needed():
    data = np.zeros((1000, 1000))
    with parallel_config("loky", n_jobs=2):
        fits = Fits(data, 20, None)
        results = fits.map(_own_process, data, range(20))
        process, kind, writeable = next(results)
        results.close()
    assert process != os.getpid()
    assert (kind, writeable) == ("memmap", False)


# In a process with one thread, which pytest's workers are not.
COPIES = """
import os, sys, time
import numpy as np
import netbic
from netbic.selection import fits, stability, verdicts
from netbic.selection.fits import Fits

fits._COPY = -10**12  # even for little work
X = netbic.simulate.cohort(80, 200, n_modules=2, strength=1.2, random_state=0).expression
data = np.zeros((1000, 1000))
own = Fits(X, 20, 2)


def where(data, job):
    return os.getpid(), Fits(X, 10**6, None).n_parallel


def failing(data, job):
    return 1 / (3 - job)


def dying(data, job):
    os._exit(job == 2)


def slow(data, job):
    os.write(1, b"begun\\n")
    time.sleep(0.2)
    return data


def raised(kind, fit):
    found = []
    try:
        for one in own.map(fit, data, range(9)):
            found.append(one)
    except kind as problem:
        return found, str(problem)


exec(sys.argv[1])
"""
needs_copies = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")


def _in_copies(code):
    return subprocess.Popen([sys.executable, "-c", COPIES, code], stdout=subprocess.PIPE, text=True)


@needs_copies
def test_copies_of_the_process_make_the_same_fits():
    code = """
pids = [pid for pid, others in own.map(where, data, range(6)) if others == 1]
assert len(pids) == 6 and pids[0] != pids[1] and pids[::2] == pids[:1] * 3 and os.getpid() not in pids
model = netbic.SparseGraphSVD(2).fit(X)
for jobs in (1, 2):
    judged = verdicts(model, X, n_pairs=4, random_state=0, n_jobs=jobs)
    print(*judged.table.to_numpy().ravel(), *judged.features.to_numpy().ravel(), flush=True)
"""
    first, second = _in_copies(code).communicate()[0].splitlines()
    assert first == second


@needs_copies
def test_errors_in_copies_are_raised_and_a_killed_copy_is_explained():
    code = "print(raised(ZeroDivisionError, failing)); print(raised(MemoryError, dying)[1])"
    first, second = _in_copies(code).communicate()[0].splitlines()
    assert first == str(([1 / 3, 1 / 2, 1.0], "division by zero"))
    assert "was killed, most likely because memory" in second


@needs_copies
def test_copies_end_if_the_process_is_killed():
    with _in_copies("list(own.map(slow, data, range(10_000)))") as process:
        assert "begun" in process.stdout.readline()
        process.kill()
        process.stdout.read()  # until the copies, which share the output, have ended


def _killed(data, job):
    os._exit(1)


def test_a_killed_process_is_explained():
    with parallel_config("loky", n_jobs=2), pytest.raises(MemoryError, match="was killed, most likely because memory"):
        list(Fits(X, 3, None).map(_killed, None, range(3)))


def test_other_values_of_n_jobs_and_dask_arrays_are_refused():
    for n_jobs in (0, 1.5, "dusk"):
        with pytest.raises(ValueError, match=f"n_jobs={n_jobs!r}: a number of processes is needed"):
            stability(plain, X, n_jobs=n_jobs)
    with pytest.raises(ValueError, match=r"n_jobs='dask' but there is no Dask client: create one, e\.g\. distributed"):
        n_modules(plain, X, n_jobs="dask")
    for function in (n_modules, stability, graph_value, tune):
        with pytest.raises(TypeError, match=r"Dask array.*X\.compute\(\) if it fits.*most variable columns"):
            function(named, da.from_array(X.to_numpy()))
