"""A Dask cluster gives the same modules as threads, also when workers are killed."""

import gc
import importlib
import os
import signal
import threading
import time
from importlib.metadata import version

import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from distributed.comm.core import CommClosedError

from netbic.operators import blocks, executors
from netbic.operators.executors import BlockError, ClusterError
from support.block_problems import COUNTS, DENSE, assert_same, model, sparse_blocks

CLUSTER = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}
X = da.from_array(DENSE, chunks=(70, -1))


@pytest.fixture
def another_client():
    """A separate cluster for tests that kill workers: one killed just after its restart may not be restarted."""
    with LocalCluster(**CLUSTER) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def streamed(monkeypatch):
    """Nothing fits into memory."""
    monkeypatch.setattr(blocks, "_HELD_SHARE", 0.0)


def with_blocks(change, data=X):
    """The array, each block changed by a function of the block and its number when it is loaded."""

    def of_block(block, block_info=None):
        return change(block, block_info[0]["chunk-location"][0])

    return data.map_blocks(of_block, dtype=data.dtype, meta=data._meta)


def slow(data, seconds=0.02):
    """Blocks that load slowly."""
    return with_blocks(lambda block, number: time.sleep(seconds) or block, data)


def failing_at(failing):
    """One block that cannot be loaded."""

    def fail(block, number):
        if number == failing:
            raise OSError("the disk is on fire")
        return block

    return with_blocks(fail)


def pids(client):
    """The workers' processes."""
    return dict(sorted(client.run(os.getpid).items()))


def kill_later(victims, generator, longest):
    """Kill these workers, each at a random moment."""

    def kill():
        for pid in victims:
            time.sleep(generator.uniform(0, longest))
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("share", [0.0, pytest.param(0.4, marks=pytest.mark.nightly)])
def test_threads_and_workers_agree_to_the_last_bit(client, monkeypatch, share):
    """Of a few and of many dense blocks (a tree reduction of three levels), and of sparse ones."""
    monkeypatch.setattr(blocks, "_HELD_SHARE", share)
    arrays = X, da.from_array(DENSE, chunks=(18, -1)), sparse_blocks(COUNTS, 70)
    with_workers = [model(scale=True).fit(array) for array in arrays]
    scores = with_workers[0].transform(X)
    monkeypatch.setattr(blocks, "current_executor", executors.ThreadExecutor)
    for array, fitted in zip(arrays, with_workers, strict=True):
        assert_same(model(scale=True).fit(array), fitted, tolerance=0)
    np.testing.assert_array_equal(with_workers[0].transform(X), scores)


@pytest.mark.nightly
def test_data_in_the_memory_of_workers(client):
    persisted = X.persist()
    assert_same(model().fit(DENSE), model().fit(persisted))
    assert_same(model().fit(2 * DENSE), model().fit(2 * persisted))
    with LocalCluster(**CLUSTER) as other, Client(other, set_as_default=False) as other_client:
        assert_same(model().fit(DENSE), model().fit(other_client.persist(X)))


def fit_while_a_worker_is_killed(client, run):
    """At a random moment."""
    generator = np.random.default_rng(run)
    victim = int(generator.choice(list(pids(client).values())))
    thread = kill_later([victim], generator, longest=1.2)
    fitted = model().fit(slow(X))
    thread.join()
    assert_same(model().fit(DENSE), fitted)
    assert_same(model().fit(X), fitted, tolerance=0)


def test_a_worker_is_killed(client, streamed):
    fit_while_a_worker_is_killed(client, 1)
    client.wait_for_workers(2, timeout=60)


@pytest.mark.nightly
@pytest.mark.parametrize("run", range(10))
def test_workers_are_killed_again_and_again(another_client, monkeypatch, run):
    """Blocks are held in memory in half of the runs and streamed in the others."""
    monkeypatch.setattr(blocks, "_HELD_SHARE", 0.0 if run % 2 else 0.4)
    fit_while_a_worker_is_killed(another_client, run)


@pytest.mark.nightly
def test_every_worker_is_killed(another_client, streamed):
    before = pids(another_client)
    thread = kill_later(list(before.values()), np.random.default_rng(0), longest=1.0)
    fitted = model().fit(slow(da.from_array(DENSE, chunks=(40, -1))))
    thread.join()
    assert_same(model().fit(DENSE), fitted)
    another_client.wait_for_workers(2, timeout=60)
    assert not set(before.values()) & set(pids(another_client).values())


@pytest.mark.nightly
def test_a_block_that_fails_sometimes(client, streamed, tmp_path):
    """An unreliable disk: every block fails the first time it is loaded."""

    def fail_first_time(block, number):
        mark = tmp_path / str(number)
        if not mark.exists():
            mark.touch()
            raise OSError("not now")
        return block

    assert_same(model().fit(DENSE), model().fit(with_blocks(fail_first_time)))


@pytest.mark.nightly
def test_a_block_that_kills_its_worker(another_client, streamed):
    data = with_blocks(lambda block, number: os._exit(1) if number == 2 else block)
    with pytest.raises(BlockError, match=r"block 2 \(rows 140 to 209\): every worker that took it died"):
        model().fit(data)


@pytest.mark.nightly
def test_the_cluster_is_lost_and_another_one_resumes():
    """The modules found before remain, and a new cluster finds the others with identical results."""
    whole = list(model(n_components=3).iter_fit(X))
    with LocalCluster(**CLUSTER) as cluster, Client(cluster):
        search = model(n_components=3).iter_fit(X)
        found = [next(search)]
        cluster.close()
        with pytest.raises(ClusterError, match=r"cluster .* (went away|is gone)"):
            next(search)
    with LocalCluster(**CLUSTER) as cluster, Client(cluster):
        rest = list(model(n_components=3).iter_fit(X, known=found))
    for one, other in zip(whole, found + rest, strict=True):
        np.testing.assert_allclose(one.v.full(), other.v.full(), atol=1e-12)


def test_a_scheduler_that_does_not_answer(client, monkeypatch):
    executor = executors.ClusterExecutor(client)
    for problem in (CommClosedError("closed"), TimeoutError(), OSError("timed out")):

        def no_answer(*arguments, problem=problem, **options):
            raise problem

        for method, use in {
            "run": lambda: executors.ClusterExecutor(client),
            "scheduler_info": lambda: executor.memory,
            "nthreads": lambda: executor.n_threads,
            "compute": lambda: executor.hold([]),
            "map": lambda: executor.broadcast(1),
        }.items():
            with monkeypatch.context() as context:
                context.setattr(client, method, no_answer)
                with pytest.raises(ClusterError, match=r"the Dask cluster tcp://\S+ went away, .*: start it again"):
                    use()


def test_clusters_that_cannot_be_used(client, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(type(client), "asynchronous", True)
        with pytest.raises(ClusterError, match="asynchronous"):
            model().fit(X)
    others = {"numpy": "0.1"}
    monkeypatch.setattr(client, "run", lambda function, name, **options: {"tcp://w": others.get(name, version(name))})
    with pytest.raises(ClusterError, match=r"numpy is \S+ here but worker tcp://w has 0.1: use the same environment"):
        model().fit(X)


@pytest.mark.nightly
def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(executors, "NO_WORKER_TIMEOUT", 0.5)
    monkeypatch.setattr(executors, "_POLLING", 0.1)
    alone = LocalCluster(**(CLUSTER | {"n_workers": 0}))
    with alone, Client(alone), pytest.raises(ClusterError, match="no worker"):
        model().fit(X)


@pytest.mark.nightly
def test_workers_with_little_memory(tmp_path):
    """A matrix of 400 MB, workers with 660 MB together, of which programs use more than half."""
    path = tmp_path / "X.zarr"
    store = zarr.create_array(path, shape=(20_000, 5_000), chunks=(1_000, 5_000), dtype="float32", compressors=None)
    noise = np.random.default_rng(0).standard_normal((1_000, 5_000), dtype=np.float32)
    for number in range(20):
        block = np.roll(noise, 7 * number, axis=1)
        if number == 3:
            block[:100, :50] += 3
        store[1_000 * number : 1_000 * (number + 1)] = block
    with LocalCluster(**CLUSTER, memory_limit="330MB") as cluster, Client(cluster) as client:
        before = pids(client)
        fitted = model(n_components=1, n_rows=100, n_columns=50).fit(da.from_zarr(path))
        assert pids(client) == before
    assert fitted.rows_[0].nonzero()[0].tolist() == list(range(3000, 3100))
    assert fitted.columns_[0].nonzero()[0].tolist() == list(range(50))


def tasks_left(client):
    """Tasks that the scheduler still has after it had time to release them."""
    for _ in range(50):
        gc.collect()
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.1)
    return left


@pytest.mark.parametrize("share", [0.0, pytest.param(0.4, marks=pytest.mark.nightly)])
def test_nothing_stays_on_the_workers_after_a_fit_or_an_error(client, monkeypatch, share):
    monkeypatch.setattr(blocks, "_HELD_SHARE", share)
    model().fit(X)
    assert tasks_left(client) == 0
    with pytest.raises(BlockError, match=r"^block 2 \(rows 140 to 209\): OSError: the disk is on fire$"):
        model().fit(failing_at(2))
    assert tasks_left(client) == 0


@pytest.mark.nightly
def test_interrupted_work_is_cancelled(another_client, streamed):
    ended = threading.Event()

    def interrupt():  # again if need be: an interrupt that hits a finaliser is lost
        while not ended.wait(1.0):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model().fit(slow(da.from_array(DENSE, chunks=(10, -1)), seconds=0.1))
    finally:
        ended.set()
    thread.join()
    assert tasks_left(another_client) == 0


@pytest.mark.nightly
def test_a_fit_within_a_task(client):
    """A worker that waits for itself would never finish."""
    fitted = client.submit(lambda: model().fit(da.from_array(DENSE, chunks=(70, -1)))).result(timeout=60)
    assert_same(model().fit(DENSE), fitted)


def test_blocks_that_workers_cannot_have(client, streamed, monkeypatch, tmp_path):
    """They need a lock, a Python module that exists only on this machine, or more data than should be sent."""
    lock = threading.Lock()
    with pytest.raises(BlockError, match=r"block 0 .* cannot be sent to a worker .*lock.*pickled"):
        model().fit(with_blocks(lambda block, number: block if lock else 0))
    (tmp_path / "only_here.py").write_text("def same(block):\n    return block\n")
    with monkeypatch.context() as context:
        context.syspath_prepend(tmp_path)
        same = importlib.import_module("only_here").same
        with pytest.raises(BlockError, match=r"block \d \(rows \d+ to \d+\): ModuleNotFoundError: .*only_here"):
            model().fit(X.map_blocks(same, dtype=float, meta=np.empty((0, 0))))
    np.save(tmp_path / "X.npy", DENSE)
    mapped = da.from_array(np.load(tmp_path / "X.npy", mmap_mode="r"), chunks=(70, -1))
    monkeypatch.setattr(blocks, "_CARRIED_BYTES", 1_000_000)
    with pytest.raises(ValueError, match=r"every block of X needs a whole memmap of 0 MB.*open_expression"):
        model().fit(mapped)
    monkeypatch.undo()
    assert_same(model().fit(DENSE), model().fit(mapped))
