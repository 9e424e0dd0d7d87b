"""A fit with covariates equals a fit to what plain least squares leaves of X, for every kind of matrix."""

import tracemalloc

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import Pipeline

import netbic
from netbic import SparseGraphSVD
from netbic.errors import InputError
from netbic.estimators.prediction import module_scores
from netbic.operators.base import DataOperator, as_operator
from support.batches import assert_equal_fits, cohort, residuals
from support.block_problems import sparse_blocks

X, TABLE = cohort()
COUNTS, OF_COUNTS = cohort(1, sparse=True)
REST = residuals(X, TABLE)
LINKS = np.zeros((90, 90))
LINKS[:20, :20] = 1 - np.eye(20)
PARAMETERS = {
    "usual": {"n_columns": 20},
    "scaled": {"n_columns": 20, "scale": True},
    "projection": {"n_columns": 20, "deflation": "projection"},
    "schur": {"n_columns": 20, "n_rows": 40, "deflation": "schur"},
    "samples selected": {"n_columns": 20, "n_rows": 40},
    "both means, scaled": {"n_columns": 20, "center": "both", "scale": True},
    "sizes from the data": {},
    "number from the data": {"n_components": "auto"},
    "one after another": {"n_columns": 20, "search": "sequential"},
    "the paper's": {"n_columns": 20, "solver": "aisp"},
    "graph": {"n_columns": 20, "column_graph": LINKS},
    "smoothed": {"n_columns": 20, "column_graph": LINKS, "diffusion": 0.4},
    "low memory": {"n_columns": 20, "low_memory": True},
}
KINDS = {
    "dense": np.asarray,
    "sparse": sp.csr_array,
    "dask": lambda values: da.from_array(values, chunks=(35, -1)),
    "sparse dask": lambda values: sparse_blocks(values, 35),
}


def fitted(data, covariates=None, **parameters):
    return SparseGraphSVD(**({"n_components": 3} | parameters)).fit(data, covariates=covariates)


@pytest.mark.filterwarnings("ignore:no module is found again in halves")  # of the sparse matrix
@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize("kind", ["dense", "sparse", pytest.param("dask", marks=pytest.mark.nightly), "sparse dask"])
def test_equals_a_fit_to_residuals(kind, parameters):
    data, table = (COUNTS, OF_COUNTS) if "sparse" in kind else (X, TABLE)
    model = fitted(KINDS[kind](data), table, **parameters)
    explicit = fitted(residuals(data, table), **{"scale": model.scale_power, **parameters})  # no longer mostly zero
    assert_equal_fits(model, explicit)
    assert model.count_ == explicit.count_
    if "diffusion" not in parameters:
        given = KINDS[kind](data)
        np.testing.assert_allclose(
            model.transform(given, covariates=table), explicit.transform(residuals(data, table)), atol=1e-9
        )
        assert model.score(given, covariates=table) == pytest.approx(explicit.score(residuals(data, table)), abs=1e-10)


@pytest.mark.parametrize("center", [None, "rows", "grand"])
def test_columns_keep_their_means_unless_they_are_centred(center):
    given = {"n_columns": 20, "center": center}
    assert_equal_fits(fitted(X, TABLE, **given), fitted(residuals(X, TABLE, keep_means=True), **given), 1e-9)


@pytest.mark.parametrize("blocks", [False, True])
def test_single_precision_with_large_means(blocks):
    single = (X + 40).astype(np.float32)
    given = da.from_array(single, chunks=(35, -1)) if blocks else single
    model, explicit = fitted(given, TABLE, n_columns=20), fitted(REST, n_columns=20)
    assert model.components_.dtype == np.float32
    np.testing.assert_array_equal(model.columns_, explicit.columns_)
    np.testing.assert_allclose(model.components_, explicit.components_, atol=1e-3)


def test_any_operator():
    class Products(DataOperator):
        def __init__(self, values):
            super().__init__(values.shape)
            self.base = as_operator(values)
            self.matvec, self.rmatvec = self.base.matvec, self.base.rmatvec

        def matvec(self, support, values):
            raise NotImplementedError

        rmatvec = matvec

    assert_equal_fits(fitted(Products(X), TABLE, n_columns=20), fitted(REST, n_columns=20))


@pytest.mark.parametrize("missing", ["ignore", "impute"])
@pytest.mark.parametrize("center", ["columns", "both"])
def test_missing_entries(missing, center):
    holes = np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)
    if missing == "ignore":
        holes[(TABLE["batch"] == "b").to_numpy(), 3] = np.nan  # a column that is missing in a whole batch
    given = {"n_columns": 20, "missing": missing, "center": center}
    model, explicit = fitted(holes, TABLE, **given), fitted(residuals(holes, TABLE), **given)
    assert_equal_fits(model, explicit)
    np.testing.assert_allclose(
        model.transform(holes, covariates=TABLE), explicit.transform(residuals(holes, TABLE)), atol=1e-9
    )


def test_a_column_that_covariates_explain_almost_completely():
    steep = X.copy()
    steep[:, 85] = 1e6 * TABLE["age"] + 1e-3 * X[:, 85]
    steep[:, 86] = TABLE["age"]
    given = {"n_columns": 20, "scale": True}
    model, explicit = fitted(steep, TABLE, **given), fitted(residuals(steep, TABLE), **given)
    assert model.scaler_.factors[86] == 1
    np.testing.assert_allclose(model.scaler_.factors[85], 1 / residuals(steep, TABLE)[:, 85].std(), rtol=1e-6)
    np.testing.assert_array_equal(model.columns_[0], explicit.columns_[0])


def test_without_covariates_nothing_changes():
    plain = fitted(X, n_columns=20)
    assert plain.covariates_ is plain.covariate_effects_ is plain.covariate_coding_ is None
    with pytest.warns(UserWarning, match="one value for all samples have no effect: 'site'"):
        constant = fitted(X, pd.DataFrame({"site": ["one"] * len(X)}), n_columns=20)
    np.testing.assert_array_equal(constant.components_, plain.components_)
    np.testing.assert_array_equal(constant.transform(X), plain.transform(X))


# What it is for


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_a_batch_module_disappears_and_the_others_stay(correlation):
    data, table = cohort(7, correlation=correlation)
    batch = table["batch"].cat.codes.to_numpy()

    def explained(model):
        scores = module_scores(model, data)
        means = np.array([scores[batch == level].mean(axis=0) for level in range(3)])[batch]
        return float((means.var(axis=0) / scores.var(axis=0)).max())

    before, after = fitted(data, n_columns=20), fitted(data, table[["batch"]], n_columns=20)
    assert explained(before) > 0.9
    assert explained(after) < 1e-12
    for planted in (range(20), range(20, 40)):
        members = np.isin(np.arange(90), list(planted))
        assert max((module & members).sum() / 20 for module in after.columns_) >= 0.95


def test_new_samples_are_corrected_by_the_effects_of_the_fit():
    model = fitted(X[:80], TABLE[:80], n_columns=20)
    design = model.covariate_coding_.encode(TABLE[80:], 40, None)
    factors = residuals(X[:80], TABLE[:80]).std(axis=0) ** -0.5
    rest = factors * (X[80:] - model.scaler_.offsets - design @ model.covariate_effects_.to_numpy())
    pseudo = np.linalg.pinv(model.components_)
    np.testing.assert_allclose(model.transform(X[80:], covariates=TABLE[80:]), rest @ pseudo, atol=1e-10)
    back = model.inverse_transform(rest @ pseudo, covariates=TABLE[80:])
    np.testing.assert_allclose(back, X[80:] + (rest @ pseudo @ model.components_ - rest) / factors, atol=1e-10)
    assert np.allclose(model.inverse_transform(np.zeros((1, 3))), X[:80].mean(axis=0))
    share = 1 - np.sum((rest - rest @ np.linalg.pinv(model.components_) @ model.components_) ** 2) / np.sum(rest**2)
    assert model.score(X[80:], covariates=TABLE[80:]) == pytest.approx(share, abs=1e-10)
    np.testing.assert_allclose(model.transform(sp.csr_array(X[80:]), covariates=TABLE[80:]), rest @ pseudo, atol=1e-9)
    np.testing.assert_allclose(module_scores(model, X[80:], TABLE[80:]), rest @ model.components_.T, atol=1e-10)


@pytest.mark.nightly
def test_a_sparse_matrix_is_never_made_dense():
    wide = sp.random(9000, 1500, density=0.01, format="csr", random_state=0, dtype=np.float64)
    batch = pd.DataFrame({"batch": np.arange(9000) % 4}).astype(str)
    peaks = []
    for covariates in (None, batch):
        tracemalloc.start()
        SparseGraphSVD(1, n_rows=50, n_columns=50, tol=1e-3).fit(wide, covariates=covariates)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 0.1 * 8 * wide.shape[0] * wide.shape[1]


# Tables


def test_names_decide_which_row_is_whose():
    names = [f"s{number}" for number in range(len(X))]
    frame, table = pd.DataFrame(X, index=names), TABLE.set_axis(names)
    more = pd.concat([table, table.iloc[:1].set_axis(["other"])])
    model = fitted(frame, more.sample(frac=1, random_state=0), n_columns=20)
    assert_equal_fits(model, fitted(REST, n_columns=20))
    assert model.covariates_.index.tolist() == names
    shuffled = table.iloc[::-1]
    np.testing.assert_allclose(model.transform(frame, covariates=shuffled), model.transform(frame, covariates=table))
    with pytest.raises(InputError, match=r"^2 of 120 samples have no covariates \('s0', 's1'; the table has 's2'"):
        fitted(frame, table.iloc[2:])


def test_the_coding():
    table = pd.DataFrame(
        {"plate": ["p2", "p1", "p3", "p1", "p2", "p3"] * 20, "dose": np.arange(120.0), "old": [True, False] * 60}
    )
    model = fitted(X, table, n_columns=20)
    assert model.covariates_.columns.tolist() == ["plate=p2", "plate=p3", "dose", "old"]
    np.testing.assert_allclose(model.covariates_.mean(), 0, atol=1e-12)
    assert model.covariates_["dose"].std(ddof=0) == pytest.approx(1)
    assert model.covariate_effects_.shape == (4, 90)
    assert model.covariate_effects_.index.tolist() == model.covariates_.columns.tolist()
    one = fitted(X, TABLE["age"].to_numpy()[:, None], n_columns=20)
    assert_equal_fits(one, fitted(X, TABLE["age"], n_columns=20))
    assert one.covariates_.columns.tolist() == ["x0"]


def test_redundant_columns_are_left_out_and_named():
    table = TABLE.assign(
        months=12 * TABLE["age"] + 3, tube=TABLE["batch"].map({"a": "u", "b": "v", "c": "w"}).astype(str)
    )
    with pytest.warns(UserWarning, match=r"others determine are left out.*: 'months', 'tube=v', 'tube=w'$"):
        model = fitted(X, table, n_columns=20)
    assert_equal_fits(model, fitted(REST, n_columns=20))
    np.testing.assert_allclose(
        model.transform(X, covariates=table), fitted(REST, n_columns=20).transform(REST), atol=1e-10
    )


def test_integers_that_look_like_codes():
    codes = TABLE["batch"].cat.codes.astype(np.int64)
    with pytest.warns(UserWarning, match="'batch' has 3 different integers and is used as a number: if they are codes"):
        fitted(X, pd.DataFrame({"batch": codes}), n_columns=20)
    as_category = fitted(X, pd.DataFrame({"batch": codes.astype("category")}), n_columns=20)
    assert_equal_fits(as_category, fitted(X, TABLE[["batch"]], n_columns=20))
    floats = pd.DataFrame({"batch": codes.astype(float)})
    np.testing.assert_array_equal(
        as_category.transform(X, covariates=floats), as_category.transform(X, covariates=pd.DataFrame({"batch": codes}))
    )


def test_tables_that_cannot_be_used():
    random = np.random.default_rng(0)
    incomplete = TABLE.copy()
    incomplete.loc[[3, 5], "age"] = np.nan
    for table, message in (
        (incomplete, r"^covariate 'age' is missing for 2 samples \('3', '5'\): fill it in, e\.g\. by"),
        (TABLE.assign(batch=["", *["a", "b"] * 59, "a"]), "^covariate 'batch' is missing for 1 sample "),
        (TABLE[:-1], "^covariates have 119 rows but X has 120 samples"),
        (pd.DataFrame({"id": [f"s{k}" for k in range(120)]}), "^covariate 'id' has 120 levels in 120 samples, and 120"),
        (random.standard_normal((120, 118)), "^covariates have 118 degrees of freedom, which leave nothing of 120"),
        (TABLE["age"].to_numpy(), r"^covariates have shape \(120,\): .* covariates\.reshape\(-1, 1\)"),
        (np.array([["a"]] * 120), "^covariates are no array of numbers: give text and categories as a DataFrame"),
        (TABLE.assign(age=np.inf), "^covariate 'age' has values that are not finite"),
        (TABLE.assign(age=pd.Timestamp("2020-01-01")), "^covariate 'age' has the type datetime64"),
        (pd.concat([TABLE, TABLE], axis=1), "^covariates have two columns called 'batch'"),
    ):
        with pytest.raises(InputError, match=message):
            fitted(X, table, n_columns=20)


def test_covariates_that_explain_everything():
    line = np.outer(TABLE["age"], np.ones(5)) + 3
    with pytest.raises(ValueError, match=r"^the covariates explain all of X, and no variance is left to search"):
        fitted(line, TABLE, n_columns=2)


def test_hundreds_of_levels_of_several_samples_each():
    rng = np.random.default_rng(0)
    donors = pd.DataFrame({"donor": np.repeat([f"d{k}" for k in range(400)], 3)})
    data = rng.standard_normal((1200, 20)) + rng.standard_normal((400, 20)).repeat(3, axis=0)
    model = fitted(data, donors, n_components=1, n_columns=5)
    means = pd.DataFrame(module_scores(model, data)).groupby(donors["donor"]).mean()
    assert float(means.abs().max().max()) < 1e-9


def test_a_level_with_one_sample():
    table = pd.DataFrame({"batch": ["a"] * 60 + ["b"] * 59 + ["c"]})
    with pytest.warns(UserWarning, match=r"nothing is left of the only sample of a level \('c'\)"):
        model = fitted(X, table, n_columns=20)
    np.testing.assert_allclose(module_scores(model, X)[-1], 0, atol=1e-9)


def test_a_fitted_model_needs_covariates_of_the_same_kind():
    model, plain = fitted(X, TABLE, n_columns=20), fitted(X, n_columns=20)
    for made, covariates, message in (
        (model, None, r"^the model was fitted with covariates \('batch', 'age'\): give those of"),
        (plain, TABLE, "^covariates are given, but the model was fitted without any"),
        (model, TABLE[["batch"]], "^covariate 'age' of the fit is not a column of the table, which has"),
        (model, TABLE.assign(batch="d"), r"has the level 'd', which no sample of the fit has \('a', 'b', 'c'\): its"),
        (model, TABLE.assign(age="old"), "^covariate 'age' was a number in the fit, but now has the value 'old'"),
        (model, np.ones((120, 2)), "^covariates are an array, but those of the fit had names"),
    ):
        for use in (made.transform, made.score):
            with pytest.raises(InputError, match=message):
                use(X, covariates=covariates)
    with pytest.raises(ValueError, match=r"^X are not the samples of the fit"):
        module_scores(model, X[::-1])
    np.testing.assert_allclose(module_scores(model, X), module_scores(model, X, TABLE))


def test_scikit_learn():
    model = SparseGraphSVD(3, n_columns=20)
    scores = model.fit_transform(X, covariates=TABLE)
    np.testing.assert_array_equal(scores, model.transform(X, covariates=TABLE))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SparseGraphSVD(3, n_columns=20).set_fit_request(covariates=True).set_transform_request(covariates=True)
        pipeline = Pipeline([("modules", routed)]).fit(X, covariates=TABLE)
        np.testing.assert_array_equal(pipeline.transform(X, covariates=TABLE), scores)
    plain = netbic.SparseGraphSVD(3, n_columns=20)
    assert [module.d for module in plain.iter_fit(X, covariates=TABLE)] == plain.singular_values_.tolist()
