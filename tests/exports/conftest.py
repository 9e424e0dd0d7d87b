"""A fit with names that other formats might misread, and its folder."""

import pytest

import netbic
from netbic.exports import Results

HOSTILE = [
    "=1+1", "+1", "-2", "@SUM(A1)", "SEPT1", "1-Mar", "#N/A", "TRUE", "007", "1e5", "a\tb", "a\nb", "a b", "<&\"'>",
    "é中", "\N{RIGHT-TO-LEFT OVERRIDE}x", "node_3", "bell\x07", "x" * 300, " padded ",
]  # fmt: skip


@pytest.fixture(scope="session")
def cohort():
    return netbic.simulate.cohort(120, 400, n_modules=2, strength=2, random_state=0)


@pytest.fixture(scope="session")
def model(cohort):
    return netbic.SparseGraphSVD(2, n_columns=60, column_graph=cohort.network, random_state=0).fit(cohort.expression)


@pytest.fixture(scope="session")
def results(model, cohort):
    sets = {f"planted {k}": cohort.expression.columns[mask].tolist() for k, mask in enumerate(cohort.genes)}
    found = Results.of(model, cohort.expression)
    tables = dict(found.tables) | {
        "gene_sets": netbic.enrichment.gene_sets(model, sets),
        "verdicts": netbic.selection.verdicts(model, cohort.expression, n_pairs=3, random_state=0).table,
    }
    return Results(model, tables)


@pytest.fixture(scope="session")
def hostile():
    """A model whose leading genes have hostile names; samples have them too."""
    study = netbic.simulate.cohort(60, 200, n_modules=1, strength=3, random_state=1)
    X = study.expression
    lead = netbic.SparseGraphSVD(1, n_columns=40).fit(X).components_[0]
    order = abs(lead).argsort()[::-1]
    genes, samples = list(X.columns), list(X.index)
    for place, name in zip(order, HOSTILE, strict=False):
        genes[place] = name
    samples[: len(HOSTILE)] = HOSTILE
    graph = netbic.Graph(study.network.weights, genes)
    X = X.set_axis(genes, axis=1).set_axis(samples)
    return Results.of(netbic.SparseGraphSVD(1, n_columns=40, column_graph=graph).fit(X), X)
