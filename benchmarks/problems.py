"""Data for the benchmarks.

Simulations that tests use as well are those of tests/support/simulations.py.
"""

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.simulate import cohort

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support import simulations as simulations

DATA = {
    "coadread": "expr_tcga_coadread_rnaseq.parquet",
    "brca": "expr_tcga_brca_rnaseq.parquet",
    "agilent": "expr_tcga_brca_agilent2012.parquet",
}
NETWORKS = {
    "pathway_commons": "network_pathway_commons_v7.parquet",
    "biogrid": "network_biogrid_3.4.133.parquet",
    "string": "network_string_v12.parquet",
}


@cache
def breast_tumours():
    """TCGA breast tumours (samples x genes), or a simulated cohort if NETBIC_DATA is not set."""
    if "NETBIC_DATA" not in os.environ:
        return cohort(250, 2000, random_state=0).expression.to_numpy()
    return pd.read_parquet(Path(os.environ["NETBIC_DATA"]) / DATA["brca"]).T.to_numpy(dtype=float)


def cells(n=50_000, p=20_000, *, share=0.05, modules=10, rows=500, columns=200, seed=0):
    """A CSR matrix with planted modules of higher expression, and the planted columns."""
    generator = np.random.default_rng(seed)
    at_rows = [np.sort(generator.choice(n, rows, False)) for _ in range(modules)]
    at_columns = [generator.choice(p, columns, False) for _ in range(modules)]
    blocks = []
    for start in range(0, n, 500):
        size = min(500, n - start)
        block = sp.csr_array(generator.random((size, p), dtype=np.float32) < share, dtype=np.float64)
        block.data = generator.lognormal(0, 0.5, block.nnz)
        for members, genes in zip(at_rows, at_columns, strict=True):
            inside = members[(members >= start) & (members < start + size)] - start
            extra = (generator.random((inside.size, columns)) < 0.3) * generator.lognormal(
                0, 0.5, (inside.size, columns)
            )
            places = np.repeat(inside, columns), np.tile(genes, inside.size)
            block = block + sp.csr_array((extra.ravel(), places), shape=block.shape)
        blocks.append(block)
    X = sp.vstack(blocks, format="csr")
    X.eliminate_zeros()
    truth = np.zeros((modules, p), dtype=bool)
    for k, genes in enumerate(at_columns):
        truth[k, genes] = True
    return X, truth
