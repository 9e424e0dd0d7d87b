"""How the files of `netbic.datasets` were made: NETBIC_DATA=FOLDER python tests/support/excerpts.py FOLDER.

They are excerpts of four files in the folder NETBIC_DATA, which is not part of the repository. A test checks that the
excerpts made from these are still what the package contains.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

GENES_OF_TUMOURS = 3000
HISTOLOGIES = {"ser": "serous", "endo": "endometrioid", "clearcell": "clear cell"}
CELLS_EACH = 75  # at most, of each donor and type
LEAST_CELLS = 20  # with a gene


def ecoli(source):
    """All genes and conditions, and regulators with their genes."""
    regulons = pd.read_csv(source / "regulon_ecoli_regulons.tsv", sep="\t").groupby("regulator")["gene_id"].agg(list)
    return pd.read_parquet(source / "regulon_ecoli.parquet"), regulons.to_dict()


def ovarian(source):
    """The genes with the largest variance of those without missing values; the sample table without `rfs_event`.

    There are no times of relapse.
    """
    genes = pd.read_parquet(source / "bulk_ovarian_gse51088.parquet").dropna()
    chosen = genes.astype(float).var(axis=1).nlargest(GENES_OF_TUMOURS).index
    samples = pd.read_csv(source / "bulk_ovarian_gse51088_samples.tsv", sep="\t", index_col="sample")
    days = samples["os_days"].astype("Int64")
    counted = {name: samples[name].astype("Int64") for name in ("tumorstage", "os_event")}
    named = samples["histology"].replace(HISTOLOGIES)
    samples = samples.drop(columns="rfs_event").assign(histology=named, os_days=days, **counted)
    return genes[genes.index.isin(chosen)], samples.rename(columns={"sample_type": "tissue"})


def t_cells(source):
    """A part of the cells of each donor and type, and the genes that are found in at least 20 of them."""
    import anndata

    cells = anndata.read_h5ad(source / "sc_tcells_7donors.h5ad")
    types = cells.obs["celltype"].astype(str)
    numbered = pd.DataFrame({"donor": cells.obs["donor"].astype(str), "type": types}).reset_index(drop=True)
    numbered = numbered[(types != "nan").to_numpy() & ~types.str.startswith("NK").to_numpy()]
    generator = np.random.default_rng(0)
    chosen = [
        generator.choice(own.index, min(len(own), CELLS_EACH), replace=False)
        for _, own in numbered.groupby(["donor", "type"])
    ]
    part = cells[np.sort(np.concatenate(chosen))].copy()
    part = part[:, np.asarray((part.X > 0).sum(axis=0)).ravel() >= LEAST_CELLS].copy()
    kept = part.obs[["donor", "batch", "lineage", "celltype", "mito_percent"]].rename(columns={"celltype": "cell_type"})
    texts = {name: kept[name].astype(str).astype("category") for name in kept.columns[:4]}
    obs = kept.assign(mito_percent=kept["mito_percent"].astype(float).round(2), **texts)
    return anndata.AnnData(part.X, obs=obs, var=part.var[[]])


def write(source, folder):
    """Write all files."""
    genes, regulons = ecoli(source)
    _write_thousandths(genes, folder / "ecoli.parquet")
    lines = ["\t".join([name, "na", *members]) for name, members in regulons.items()]
    (folder / "ecoli_regulons.gmt").write_text("\n".join(lines) + "\n")
    genes, samples = ovarian(source)
    _write_thousandths(genes, folder / "ovarian.parquet")
    samples.to_csv(folder / "ovarian_samples.tsv", sep="\t")
    _write_cells(t_cells(source), folder / "t_cells.h5ad")


def _write_thousandths(genes, path):
    """Whole numbers need half of the bytes of `float32`; the sources have three decimals."""
    whole = (genes.astype(float) * 1000).round().astype(np.int16)
    table = pa.Table.from_pandas(whole.rename_axis("gene").reset_index(), preserve_index=False)
    split: dict[str, Any] = {"use_dictionary": False, "use_byte_stream_split": list(whole.columns)}
    lean = {"write_statistics": False, "store_schema": False}
    pq.write_table(table, path, compression="zstd", compression_level=19, **split, **lean)


def _write_cells(cells, path):
    """Counts by gene in bytes are compressed best."""
    import anndata
    import h5py

    cells.X = cells.X.tocsc().astype(np.uint8)
    cells.X.sort_indices()
    with h5py.File(path, "w") as file:
        packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
        anndata.io.write_elem(file, "/", cells, dataset_kwargs=packed)


if __name__ == "__main__":
    write(Path(os.environ["NETBIC_DATA"]), Path(sys.argv[1]))
