"""The search ends when no signal remains, for any requested number of modules, with a warning."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from netbic import L0, L1, Dense, SparseGraphSVD, selection
from netbic.solver import search

MANY = 10**9
X = np.random.default_rng(0).standard_normal((8, 11))
INCOMPLETE = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
ROUNDING = "nothing but rounding error is left of X"


@pytest.mark.parametrize(
    ("data", "parameters", "why"),
    [
        (X, {"n_columns": 3}, "X has no further direction"),
        (X, {"column_penalty": Dense()}, ROUNDING),
        (X, {"n_rows": 3, "n_columns": 4}, ROUNDING),
        (X, {"n_rows": 1, "n_columns": 1}, ROUNDING),
        (X, {"n_columns": 3, "deflation": "hotelling"}, ROUNDING),
        (X, {"n_rows": 3, "n_columns": 4, "deflation": "projection"}, ROUNDING),
        (X, {"row_penalty": L1(0.5), "column_penalty": L1(0.5)}, "keeps no (row|column)"),
        (X, {"row_penalty": L0(3, nonnegative=True), "column_penalty": L0(4, nonnegative=True)}, "keeps no (row|col)"),
        (sp.csr_array(np.where(np.abs(X) > 1, X, 0)), {"n_rows": 3, "n_columns": 4}, ROUNDING),
        (INCOMPLETE, {"n_rows": 3, "n_columns": 4, "missing": "ignore"}, ROUNDING),
    ],
)
def test_the_search_ends(data, parameters, why):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseGraphSVD(MANY, center=None, **parameters).fit(data)
    assert re.search(f"of {MANY} modules: .*{why}", str(caught[0].message))
    assert 1 <= model.n_components_ < 1000
    # Modules below this are rounding errors of earlier deflations.
    assert model.singular_values_[-1] > 1e-9 * model.singular_values_[0]
    sums_up = parameters.get("deflation") == "hotelling" or ("n_rows" in parameters and "deflation" not in parameters)
    if why == ROUNDING and sums_up and data is not INCOMPLETE:
        rest = data - (model.left_vectors_ * model.singular_values_) @ model.components_
        assert np.linalg.norm(rest) < 1e-6 * np.linalg.norm(X)


def test_the_search_for_modules_of_one_entry_is_limited(monkeypatch):
    monkeypatch.setattr(search, "MAX_MODULES", 20)
    with pytest.warns(UserWarning, match=f"found 20 of {MANY} modules: no more than 20 are searched for"):
        assert SparseGraphSVD(MANY, n_rows=1, n_columns=1).fit(X).n_components_ == 20


def test_counting_modules_needs_no_memory_for_untested_ones():
    planted = np.random.default_rng(2).standard_normal((30, 20))
    planted[:10, :8] += 4
    model = SparseGraphSVD(n_rows=10, n_columns=8)
    few, many = (selection.n_modules(model, planted, most=most, random_state=0) for most in (5, MANY))
    assert many.table.equals(few.table)
