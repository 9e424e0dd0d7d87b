"""A study as AnnData objects of cells, dense or sparse."""

import anndata
import numpy as np
import pandas as pd

import netbic

study = netbic.simulate.cohort(150, 600, n_modules=3, module_samples=30, random_state=1)
values = study.expression.to_numpy()
counts = np.where(values > 0.8, values, 0)


def cells(X=values):
    """An object with a layer `twice` and a column `chosen` of two thirds of the genes."""
    samples, genes = study.expression.axes
    data = anndata.AnnData(X, obs=pd.DataFrame(index=samples), var=pd.DataFrame(index=genes), layers={"twice": 2 * X})
    data.var["chosen"] = np.arange(600) % 3 != 0
    return data
