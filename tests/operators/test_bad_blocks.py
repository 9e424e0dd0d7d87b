"""Dask arrays that cannot be used are refused in one line."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.operators import blocks
from netbic.operators.executors import BlockError
from support.block_problems import COUNTS, DENSE, assert_same, model, sparse_blocks


def in_blocks(X):
    return da.from_array(X, chunks=(70, -1))


def test_column_chunks_are_merged_with_a_warning_unless_they_are_too_large(monkeypatch):
    pieces = da.from_array(DENSE, chunks=(70, 50))
    with pytest.warns(UserWarning, match=r"cut into 3 chunks along its columns.*rechunk"):
        fitted = model().fit(pieces)
    assert_same(model().fit(DENSE), fitted)
    monkeypatch.setattr(blocks, "_JOINED_BYTES", 1000)
    with pytest.raises(ValueError, match=r"3 chunks along its columns.*write it again.*to_zarr"):
        model().fit(pieces)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_entries_that_are_not_finite_are_named(value, name):
    dense, counts = DENSE.copy(), COUNTS.copy()
    dense[150, 7] = dense[250, 3] = counts[150, 7] = value
    fitted = model().fit(DENSE)
    where = rf"X contains {name}: row 150, column 7, in block 2 \(rows 140 to 209\)"
    for use in (
        lambda: model(missing="error").fit(in_blocks(dense)),
        lambda: model(missing="ignore").fit(in_blocks(dense)),
        lambda: fitted.transform(in_blocks(dense)),
        lambda: model().fit(sparse_blocks(counts, 70)),
    ):
        with pytest.raises(ValueError, match=where):
            use()


def test_sums_that_overflow_are_not_errors():
    X = (DENSE * 1e37).astype(np.float32)
    summary = blocks.RowBlocks(in_blocks(X)).summary
    assert summary.fault is None
    np.testing.assert_allclose(summary.means, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(summary.squares, X.astype(np.float64).var(axis=0) * 300, rtol=1e-6)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (da.zeros((4, 5, 6)), "3 dimensions"),
        (da.zeros(4), "1 dimensions"),
        (da.zeros((40, 30), dtype=complex), "type complex128: real numbers"),
        (da.from_array(np.full((4, 5), "a", dtype=object), chunks=4), "type object: real numbers"),
        (da.zeros((0, 5)), "X has 0 samples"),
        (da.zeros((5, 0)), "0 features"),
        (in_blocks(DENSE)[da.from_array(DENSE[:, 0] > 0)], r"unknown size: call X.compute_chunk_sizes\(\) first"),
        (in_blocks(DENSE * 1e200), "rescale X"),
    ],
)
def test_no_matrix(X, message):
    with pytest.raises(ValueError, match=message):
        netbic.SparseGraphSVD().fit(X)


def test_a_dask_data_frame():
    frame = pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(DENSE), npartitions=3)
    with pytest.raises(TypeError, match=r"X.to_dask_array\(lengths=True\)"):
        model().fit(frame)
    assert_same(model().fit(DENSE), model().fit(frame.to_dask_array(lengths=True)))


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_block_that_cannot_be_loaded(monkeypatch, share):
    monkeypatch.setattr(blocks, "_HELD_SHARE", share)

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 2:
            raise OSError("the disk is\non fire")
        return block

    X = in_blocks(DENSE).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(BlockError, match=r"^block 2 \(rows 140 to 209\): OSError: the disk is on fire$"):
        model().fit(X)


def test_blocks_of_another_size_or_with_masked_entries():
    X = in_blocks(DENSE).map_blocks(lambda block: block[1:], dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(BlockError, match=r"block 0 \(rows 0 to 69\): .*shape \(69, 120\).*\(70, 120\)"):
        model().fit(X)
    with pytest.raises(BlockError, match=r"block 0 .*masked array.*fill or drop"):
        model().fit(in_blocks(np.ma.masked_greater(DENSE, 4.0)))
