"""Folders with pairs of two tables."""

import numpy as np
import pandas as pd

import netbic

TRAP = '<img src=x onerror="document.title=1">'


def model_of(name="g0", n_features=(30, 15)):
    """A fitted model of two tables, and the tables; `name` is the name of a feature of table 1 and of a sample."""
    random = np.random.default_rng(0)
    X, Y = (random.standard_normal((40, size)) for size in n_features)
    Y[:, :4] += X[:, :6].sum(axis=1, keepdims=True)
    samples = [name, *(f"s{k}" for k in range(1, 40))]
    X = pd.DataFrame(X, index=samples, columns=[name, *(f"g{k}" for k in range(1, n_features[0]))])
    Y = pd.DataFrame(Y, index=samples, columns=[f"l{k}" for k in range(n_features[1])])
    return netbic.SparseGraphCCA(2, n_x=20, n_y=4).fit(X, Y), X, Y


def saved(folder, name="g0"):
    """The model, saved in a folder."""
    model = model_of(name)[0]
    netbic.save(model, folder)
    return model
