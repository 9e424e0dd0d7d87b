"""AnnData objects as Zarr stores of a given version of the format."""

import warnings

import anndata
import zarr


def write_zarr(data, path, version=2, *, shards=False, chunks=None):
    """Write an object; `shards` is for version 3, `chunks` for a dense X."""
    data.strings_to_categoricals()  # as AnnData.write_zarr does: older versions write no other nullable strings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata 0.12 on the defaults of 0.13, Zarr on consolidated metadata
        version_3 = {"zarr_write_format": 3} if shards else {}  # early releases of anndata 0.12 ask for it
        with anndata.settings.override(auto_shard_zarr_v3=shards, **version_3):
            root = zarr.open_group(path, mode="w", zarr_format=version)
            anndata.io.write_elem(root, "/", data)
            if chunks is not None:
                anndata.io.write_elem(root, "X", data.X, dataset_kwargs={"chunks": chunks})
        zarr.consolidate_metadata(path)
    return path
