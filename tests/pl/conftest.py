"""A small study, fitted once, for all pictures."""

import matplotlib
import pytest

import netbic

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    plt.close("all")  # tests of other folders may have left some
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def study():
    return netbic.simulate.cohort(150, 700, n_modules=3, random_state=0)


@pytest.fixture(scope="session")
def model(study):
    return netbic.SparseGraphSVD(3, n_rows=30, n_columns=50, column_graph=study.network).fit(study.expression)


@pytest.fixture(scope="session")
def stable(study):
    model = netbic.SparseGraphSVD(2, n_rows=30, n_columns=50)
    return netbic.selection.stability(model, study.expression, n_pairs=5, threshold=0.6, random_state=0)


@pytest.fixture(scope="session")
def tuned(study):
    model = netbic.SparseGraphSVD(1, column_graph=study.network)
    grid = {"n_columns": [120, 20, 50], "n_rows": [30, 60], "column_smoothness": [0.1, 0.0]}
    return netbic.selection.tune(model, study.expression, grid, n_folds=3, random_state=0)


@pytest.fixture(scope="session")
def terms(study, model):
    genes = study.expression.columns.to_numpy(dtype=object)
    sets = {f"planted {k}": genes[mask].tolist() for k, mask in enumerate(study.genes)}
    sets |= {f"random {k}": genes[k::14].tolist() for k in range(14)}
    return netbic.enrichment.gene_sets(model, sets, by_sign=False)


@pytest.fixture(scope="session")
def clear():
    return netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)


@pytest.fixture(scope="session")
def clear_model(clear):
    return netbic.SparseGraphSVD(2, n_columns=60).fit(clear.expression)
