"""Scores of integers, of sparse matrices with missing entries, and of matrices that do not match their names."""

import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic.io import InputError, scores_by_name

counts = np.random.default_rng(0).poisson(5.0, (60, 30))
model = netbic.SparseGraphSVD(1, n_rows=20, n_columns=10).fit(counts.astype(float))
names = [str(k) for k in range(30)]


@pytest.mark.filterwarnings("ignore:.*set to their mean")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_integers_are_scored_as_the_same_floats(form):
    kept = [name for k, name in enumerate(names) if k != int(np.flatnonzero(model.columns_[0])[0])]
    part = counts[:, [int(name) for name in kept]]
    np.testing.assert_allclose(scores_by_name(model, form(part), kept), scores_by_name(model, form(part * 1.0), kept))


def test_missing_entries_in_sparse_matrices_are_refused():
    incomplete = counts.astype(float)
    incomplete[3, 4] = np.nan
    with pytest.raises(InputError, match="sparse and contains NaN"):
        scores_by_name(model, sp.csr_array(incomplete), names)


def test_each_column_needs_a_name():
    with pytest.raises(InputError, match="X has 20 columns but 30 genes are named"):
        scores_by_name(model, counts[:, :20], names)
