"""A study in two halves, and fits of it."""

import pytest

import netbic


@pytest.fixture(scope="session")
def study():
    """Three modules of 60 genes, each in 120 of 400 samples."""
    return netbic.simulate.cohort(400, 900, n_modules=3, module_samples=120, strength=1.3, random_state=1)


@pytest.fixture(scope="session")
def model(study):
    return netbic.SparseGraphSVD(3, n_columns=60, n_init=3, random_state=0).fit(study.expression[:200])
