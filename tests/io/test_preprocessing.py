"""Each preprocessing step equals plain numpy, for dense and sparse matrices, and is recorded."""

import dask.array
import numpy as np
import pytest
import scipy.sparse as sp

from netbic.errors import InputError
from netbic.io.expression import Expression
from netbic.io.preprocessing import column_means, prepare, variances

generator = np.random.default_rng(0)
COUNTS = generator.poisson(2.0, (6, 8)).astype(float) + np.arange(8)
COUNTS[:, 5] = 3.0
GENES = ["a", "b", "c", "a", "d", "constant", "e", "b"]


def expression(kind=np.asarray, genes=GENES, values=COUNTS):
    samples = np.array([f"s{k}" for k in range(len(values))], dtype=object)
    return Expression(kind(values), samples, np.array(genes, dtype=object))


def dense(prepared):
    return prepared.expression.frame()


@pytest.fixture(params=[np.asarray, sp.csr_array], ids=["dense", "sparse"])
def kind(request):
    return request.param


def test_counts_per_million_then_log_and_the_most_variable_genes(kind):
    prepared = prepare(expression(kind, genes=list("abcdefgh")), cpm=True, log1p=True)
    expected = np.log1p(COUNTS / COUNTS.sum(axis=1, keepdims=True) * 1e6)
    np.testing.assert_allclose(np.asarray(dense(prepared)), expected, rtol=1e-12)
    assert sp.issparse(prepared.expression.matrix) == (kind is sp.csr_array)
    assert [step["step"] for step in prepared.steps] == ["counts per million", "log1p"]
    prepared = prepare(expression(kind, genes=list("abcdefgh")), n_variable=3)
    largest = np.sort(np.argsort(-COUNTS.var(axis=0), kind="stable")[:3])
    assert prepared.expression.genes.tolist() == ["abcdefgh"[at] for at in largest]


def test_duplicates_keep_the_highest_mean_or_are_averaged_or_refused(kind):
    prepared = prepare(expression(kind))
    for name, at in {"c": 2, "a": 3, "d": 4, "e": 6, "b": 7}.items():  # the later a and b have the higher means
        np.testing.assert_array_equal(dense(prepared)[name], COUNTS[:, at])
    assert dense(prepared).columns.tolist() == ["c", "a", "d", "e", "b"]
    assert prepared.steps == [
        {"step": "duplicates: highest", "genes": 2, "lines merged": 2, "named": ["a", "b"]},
        {"step": "drop constant", "genes": 1, "named": ["constant"]},
    ]
    averaged = dense(prepare(expression(kind), duplicates="mean"))
    np.testing.assert_allclose(averaged["a"], COUNTS[:, [0, 3]].mean(axis=1))
    assert averaged.columns.tolist() == ["a", "b", "c", "d", "e"]
    with pytest.raises(InputError, match="gene 'a' occurs 2 times"):
        prepare(expression(kind), duplicates="error")


def test_missing_values_are_ignored_in_every_step():
    counts = np.array([[1.0, 2, 7], [4.0, 4, 2], [5.0, np.nan, 5]])
    scaled = dense(prepare(expression(genes=["a", "a", "b"], values=counts), cpm=True))
    assert scaled["b"].tolist() == [7e5, 2e5, 5e5]  # of all genes
    averaged = dense(prepare(expression(genes=["a", "a", "b"], values=counts), duplicates="mean"))
    assert averaged["a"].tolist() == [1.5, 4, 5]
    incomplete = COUNTS.copy()
    incomplete[0, 0] = incomplete[2, 5] = np.nan
    prepared = prepare(expression(genes=list("abcdefgh"), values=incomplete), log1p=True, n_variable=4)
    assert "f" not in prepared.expression.genes  # 3, 3, NaN, 3 ... is constant
    spread = np.nanvar(np.log1p(incomplete), axis=0)
    assert set(prepared.expression.genes) == {"abcdefgh"[at] for at in np.argsort(-spread)[:4]}


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (COUNTS - 5, {"log1p": True}, "log1p needs values of at least 0"),
        (COUNTS * (np.arange(6) != 2)[:, None], {"cpm": True}, "sample 's2' has a sum of zero"),
        (np.ones((6, 8)), {}, "fewer than two genes vary"),
        (COUNTS, {"duplicates": "first"}, "choose one of 'highest', 'mean', 'error'"),
        (COUNTS, {"only": ["x"]}, "no gene of the data is in the network"),
        (COUNTS, {"n_variable": 0}, "`n_variable=0`: at least 2 genes are needed"),
        (COUNTS, {"n_variable": -1}, "`n_variable=-1`: at least 2 genes are needed"),
    ],
)
def test_data_that_cannot_be_preprocessed(values, options, message):
    for kind in (np.asarray, sp.csr_array, lambda values: dask.array.from_array(values, chunks=(4, -1))):
        with pytest.raises(InputError, match=message):
            prepare(expression(kind, values=values), **options)


@pytest.mark.parametrize("shape", [(500, 7), (3, 60_000), (70, 9_000)])
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
def test_means_and_variances_are_those_of_all_rows(shape, share_missing):  # which are read some at a time
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, shape).astype(np.float32)
    values[rng.random(shape) < share_missing] = np.nan
    values[0] = 1.0  # no column is missing altogether
    exact = values.astype(np.float64)
    assert column_means(values) == pytest.approx(np.nanmean(exact, axis=0), rel=1e-12)
    assert variances(values) == pytest.approx(np.nanvar(exact, axis=0), rel=1e-9, abs=1e-12)
