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


def both_tables():
    """Features in rows, samples in columns, as in files."""
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((30, 40)), random.standard_normal((20, 40))
    Y[:4] += X[:6].sum(axis=0)
    Y[4:8] -= X[6:12].sum(axis=0)
    samples = [f"mouse {k}" for k in range(40)]
    first = pd.DataFrame(X, index=pd.Index([f"g{k}" for k in range(30)], name="gene"), columns=samples)
    return first, pd.DataFrame(Y, index=pd.Index([f"l{k}" for k in range(20)], name="lipid"), columns=samples)


def write_tables(folder, first=None, second=None):
    """Both tables (or others in their places) as files; their paths."""
    known = both_tables()
    for name, table, usual in (("genes", first, known[0]), ("lipids", second, known[1])):
        (usual if table is None else table).to_csv(folder / f"{name}.tsv", sep="\t")
    return folder / "genes.tsv", folder / "lipids.tsv"
