"""Sizes are chosen in a limited number of iterations."""

import importlib
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from netbic import AdaptiveSupport, KeepSoft, SparseGraphSVD
from netbic.simulate import paper
from netbic.solver import half_step, problem

solving = importlib.import_module("netbic.solver.solve")  # `netbic.solver.solve` is the function
ADAPTIVE = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport(), "center": None}


def choosing_steps(monkeypatch):
    """A list of the half steps in which a size was chosen."""
    made, step = [], half_step.adaptive_step
    monkeypatch.setattr(half_step, "adaptive_step", lambda *arguments: made.append(1) or step(*arguments))
    return made


def solves_at_the_limit(monkeypatch):
    """A list of the solves that choose sizes and reach the limit, or begin after it.

    Each of them exceeds the limit by at most two iterations: it chooses once in any case, and sizes that were fixed are
    checked once.
    """
    made, solve = [], problem.solve

    def counted(operator, rows, columns, *arguments, budget, **parameters):
        solution = solve(operator, rows, columns, *arguments, budget=budget, **parameters)
        if (rows.penalty.chooses_size or columns.penalty.chooses_size) and budget.choosing <= 0:
            made.append(1)
        return solution

    monkeypatch.setattr(problem, "solve", counted)
    return made


def slowly_converging(scale):
    """Noise whose sizes converge in more than 100 iterations, and penalties without an objective on both axes."""
    generator = np.random.default_rng(3)
    X = generator.standard_normal((25, 28))
    edges = np.triu(generator.random((28, 28)) < 0.2, 1).astype(float)
    graph = {"column_graph": edges + edges.T, "column_smoothness": 1.0, "graph_term": "laplacian"}
    return X, {"row_penalty": AdaptiveSupport(), "column_penalty": KeepSoft(13), "smoothness_scale": scale, **graph}


@pytest.mark.parametrize("scale", ["relative", "module"])
@pytest.mark.parametrize("parameters", [{}, {"n_init": 3}])
def test_sizes_are_chosen_in_a_limited_number_of_iterations(monkeypatch, parameters, scale):
    """The limit holds for each start; solves with the graph continue from the only start, or from the best one."""
    monkeypatch.setattr(solving, "MAX_CHOOSING_ROUNDS", 8)
    made, beyond = choosing_steps(monkeypatch), solves_at_the_limit(monkeypatch)
    X, sizes = slowly_converging(scale)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseGraphSVD(1, **sizes, **parameters, random_state=0).fit(X)
    starts = parameters.get("n_init", 1)
    limits = starts + (starts > 1 and scale == "module")
    assert 8 * starts < len(made) <= 8 * limits + 2 * len(beyond)
    assert len(beyond) <= starts + (scale == "module")
    assert not model.converged_[0]
    assert any("kept changing its size" in str(warning.message) for warning in caught)


def test_sizes_kept_after_a_limit_are_not_converged(monkeypatch):
    monkeypatch.setattr(solving, "MAX_CHOOSING_ROUNDS", 5)
    toy = paper(0.05, random_state=3)
    graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph}
    message = "did not converge .it kept changing its size for 400 iterations"
    with pytest.warns(ConvergenceWarning, match=message):
        model = SparseGraphSVD(1, **ADAPTIVE, **graphs).fit(toy.X)
    assert not model.converged_[0]
    assert model.choices_["size"].tolist() == [model.rows_.sum(), model.columns_.sum()]


def test_imputation_has_a_limit_of_iterations(monkeypatch):
    """Every solution differs from the one before: the limit holds for each, and another one for all of them."""
    counts, solve = [], problem.solve

    def counting(*arguments, **parameters):
        solution = solve(*arguments, **parameters)
        counts.append(len(solution.objectives))
        return solution

    monkeypatch.setattr(problem, "solve", counting)
    generator = np.random.default_rng(0)
    X = generator.standard_normal((12, 15))
    X[generator.random(X.shape) < 0.3] = np.nan
    parameters = {"n_rows": 4, "n_columns": 5, "missing": "impute", "tol": 0.0, "max_iter": 30}
    with pytest.warns(ConvergenceWarning, match="reached max_iter=30"):
        SparseGraphSVD(1, **parameters).fit(X)
    assert sum(counts) <= 30 + 11 * 30
