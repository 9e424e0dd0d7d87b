"""A search resumed from known modules gives identical results."""

import numpy as np
import pytest
import scipy.sparse as sp

from netbic import L1, SparseGraphSVD
from netbic.simulate import cohort

study = cohort(150, 700, n_modules=4, module_genes=60, module_samples=30, random_state=3)
expression = study.expression.to_numpy()
incomplete = np.where(np.random.default_rng(0).random(expression.shape) < 0.1, np.nan, expression)
graph = {"column_graph": study.network.weights}

AS_PUBLISHED = {"solver": "aisp", "graph_term": "normalized", "smoothness_scale": "relative"}
CASES = {
    "dense": (expression, graph),
    "single precision": (expression.astype(np.float32), graph),
    "sparse": (sp.csr_array(np.where(np.abs(expression) > 1.5, expression, 0)), graph),
    "missing entries ignored": (incomplete, {"missing": "ignore"}),
    "missing entries imputed": (incomplete, {"missing": "impute"}),
    "projection": (expression, {"deflation": "projection"}),
    "schur": (expression, {"deflation": "schur"}),
    "restarts": (expression, graph | {"n_init": 4, "random_state": 0}),
    "as published": (expression, graph | AS_PUBLISHED),
    "on repeat": (expression, graph | {"n_rows": None}),
    "soft": (expression, {"n_columns": None, "column_penalty": L1(2.0)}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_modules_after_known_ones_are_identical(case):
    X, parameters = CASES[case]
    whole = SparseGraphSVD(5, **({"n_rows": 20, "n_columns": 60} | parameters))
    modules = list(whole.iter_fit(X))
    for number in (1, 3, 5):
        rest = SparseGraphSVD(**whole.get_params())
        new = list(rest.iter_fit(X, known=modules[:number]))
        assert len(new) == 5 - number
        numbers = "singular_values_", "explained_variance_ratio_", "graph_share_"
        for name in ("left_vectors_", "components_", *numbers):
            assert getattr(rest, name).tobytes() == getattr(whole, name).tobytes(), (number, name)
        for mine, theirs in zip(rest.objectives_, whole.objectives_, strict=True):
            assert mine.tobytes() == theirs.tobytes()


def test_an_interrupted_iteration_leaves_the_estimator_unfitted():
    model = SparseGraphSVD(3, n_columns=60)
    next(model.iter_fit(expression))
    assert not hasattr(model, "components_")
