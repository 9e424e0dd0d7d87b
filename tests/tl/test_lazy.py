"""AnnData objects whose matrix is not in memory give the same modules and scores without loading it completely."""

import anndata
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic import tl
from support.cells import cells, counts, study, values
from support.zarr_stores import write_zarr

PARAMETERS = {"n_rows": 30, "n_columns": 60, "tol": 1e-10}


def in_blocks(kind, X=counts):
    whole = da.from_array(X, chunks=(40, -1))
    return whole if kind is np.asarray else whole.map_blocks(kind, dtype=X.dtype, meta=kind((0, 0), dtype=X.dtype))


def same(lazy, data, key="netbic"):
    np.testing.assert_array_equal(lazy.varm[key] != 0, data.varm[key] != 0)
    if key in data.obsm:
        np.testing.assert_array_equal(lazy.obsm[key] != 0, data.obsm[key] != 0)
    np.testing.assert_allclose(lazy.varm[key], data.varm[key], atol=1e-8)
    np.testing.assert_allclose(lazy.obsm[f"X_{key}"], data.obsm[f"X_{key}"], atol=1e-8)


@pytest.mark.parametrize(("kind", "mask"), [(np.asarray, None), (sp.csr_matrix, "chosen")])
def test_a_dask_matrix_or_layer(kind, mask):
    data, lazy = cells(kind(counts)), cells(in_blocks(kind))
    for layer in (None, "twice"):
        for found in (data, lazy):
            tl.modules(found, study.network, 3, layer=layer, mask_var=mask, **PARAMETERS)
        same(lazy, data)
    assert isinstance(lazy.X, da.Array)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_joint_search_never_loads_the_whole_matrix(kind, monkeypatch):
    data, lazy = cells(kind(counts)), cells(in_blocks(kind))
    tl.modules(data, n_modules=3)
    monkeypatch.setattr(da.Array, "__array__", lambda *_, **__: pytest.fail("the whole matrix was loaded"))
    tl.modules(lazy, n_modules=3)
    same(lazy, data)


def test_groups_of_samples_are_found_in_blocks_and_verdicts_need_the_data_in_memory():
    data, lazy = cells(counts), cells(in_blocks(np.asarray))
    for found in (data, lazy):
        tl.modules(found, None, 2, n_columns=60)
        tl.sample_groups(found)
    assert lazy.obsm["netbic_groups"].equals(data.obsm["netbic_groups"])
    whole = np.round(counts * 3).astype(np.int16)  # integers are converted to the same precision
    for found, X in ((data, whole), (lazy, in_blocks(np.asarray, whole))):
        found.layers["whole"] = X
        tl.modules(found, study.network, 2, n_rows=30, n_columns=60, layer="whole")
    assert set(data.varm["netbic"].dtypes) == set(lazy.varm["netbic"].dtypes) == {np.dtype(np.float32)}
    assert np.array_equal(lazy.varm["netbic"] != 0, data.varm["netbic"] != 0)
    with pytest.raises(netbic.InputError, match=r"adata\.to_memory\(\)"):
        tl.verdicts(lazy)


@pytest.mark.parametrize(("kind", "center"), [(np.asarray, "both"), (sp.csr_matrix, "columns")])
def test_new_cells_are_scored_block_by_block(kind, center):
    data = cells(kind(counts))
    tl.modules(data, study.network, 3, center=center, scale=True, **PARAMETERS)
    order = np.random.default_rng(0).permutation(600)[:550]  # other order, some genes missing
    new, lazy = cells(kind(counts))[:, order].copy(), cells(in_blocks(kind))[:, order].copy()
    for found in (new, lazy):
        with pytest.warns(UserWarning, match="set to their mean"):
            tl.score(found, data)
    np.testing.assert_allclose(lazy.obsm["X_netbic"], new.obsm["X_netbic"], atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "store"), [(sp.csr_matrix, "h5ad"), (np.asarray, "zarr 2"), (sp.csr_matrix, "zarr 3")]
)
def test_objects_that_are_read_lazily(tmp_path, kind, store):
    pytest.importorskip("xarray")
    path = tmp_path / "cells.zarr"
    data = cells(kind(counts))
    if store == "h5ad":
        path = tmp_path / "cells.h5ad"
        data.write_h5ad(path)
    else:
        write_zarr(data, path, version=int(store[-1]), chunks=(50, 600) if kind is np.asarray else None)
    lazy = anndata.experimental.read_lazy(path)
    for found in (data, lazy):
        tl.modules(found, study.network, 3, mask_var="chosen", **PARAMETERS)
    same(lazy, data)
    tl.score(lazy, data)
    np.testing.assert_allclose(lazy.obsm["X_netbic"], data.obsm["X_netbic"], atol=1e-8)


@pytest.mark.parametrize(("kind", "mode"), [(np.asarray, "r"), (sp.csr_matrix, "r+"), (sp.csc_matrix, "r")])
def test_backed_objects(tmp_path, kind, mode):
    data = cells(kind(counts))
    data.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)
    for found in (data, backed):
        tl.modules(found, study.network, 3, **PARAMETERS)
    same(backed, data)
    tl.score(backed)
    for work in (tl.modules, tl.score):
        with pytest.raises(netbic.InputError, match=r"copy=True needs the data in memory: use adata\.to_memory"):
            work(backed, copy=True)
    np.testing.assert_allclose(backed.obsm["X_netbic"], data.obsm["X_netbic"], atol=1e-8)
    with pytest.raises(netbic.InputError, match=r"view of an object on disk.*to_memory"):
        tl.modules(backed[:20], n_rows=5, n_columns=5)
    backed.file.close()


@pytest.fixture
def recorded_blocks():
    """The study's values in 15 blocks of whole numbers, and which of them were loaded."""
    loaded = []

    def load(block, block_info=None):
        loaded.append(block_info[0]["chunk-location"][0])
        return block

    whole = np.round(10 * values).astype(np.int32)
    X = da.from_array(whole, chunks=(10, -1)).map_blocks(load, dtype=whole.dtype, meta=whole[:0, :0])
    return X, whole, loaded


def test_pictures_and_objects_of_a_dask_array_load_the_blocks_they_need(recorded_blocks, tmp_path):
    X, whole, loaded = recorded_blocks
    model = netbic.SparseGraphSVD(3, n_rows=4, n_columns=20).fit(whole)
    with pytest.raises(TypeError, match="X is a Dask array, but modules are judged on data in memory"):
        netbic.enrichment.held_out_edges(model, X)
    assert not loaded
    shown = [np.asarray(netbic.pl.heatmap(model, data, n_others=0).images[0].get_array()) for data in (whole, X)]
    np.testing.assert_array_equal(*shown)
    of_members = sorted(set(np.flatnonzero(model.rows_.any(axis=0)) // 10))
    assert sorted(loaded) == of_members
    plt.close("all")
    loaded.clear()
    for name, data in (("memory", whole), ("blocks", X)):
        (tmp_path / name).mkdir()
        netbic.report.write_heatmaps(tmp_path / name, model, data)
    both = (netbic.report.pictures.read_heatmaps(tmp_path / name) for name in ("memory", "blocks"))
    for one, other in zip(*both, strict=True):
        for name in ("values", "limit", "genes", "samples"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert sorted(loaded) == of_members  # once for all modules
    loaded.clear()
    made = tl.to_anndata(model, X)
    assert made.X is X
    assert sorted(loaded) == list(range(15))  # for the scores
    np.testing.assert_allclose(made.obsm["X_netbic"], tl.to_anndata(model, whole).obsm["X_netbic"], atol=1e-10)
