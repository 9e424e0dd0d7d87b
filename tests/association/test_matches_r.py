"""The statistics match those of R (golden.R, golden.tsv), with ties, missing values, covariates and strata."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netbic.association.tests import (
    chi_squared,
    cox,
    fisher,
    kaplan_meier,
    kruskal_wallis,
    linear_model,
    log_rank,
    mann_whitney,
    pearson,
    spearman,
    standardised_difference,
)

HERE = Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("golden_inputs", HERE / "golden_inputs.py")
INPUTS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(INPUTS)
GOLDEN = pd.read_csv(HERE / "golden.tsv", sep="\t").set_index(["data", "test"]).sort_index()


def of_r(data, test):
    own = GOLDEN.loc[(data, test)]
    return dict(zip(own["quantity"], own["value"], strict=True))


def assert_matches(found, expected, tolerance=1e-8):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.fixture(params=["tied", "small", "gse7390"])
def data(request):
    name = request.param
    return name, INPUTS.gse7390(request.getfixturevalue("real_data")) if name == "gse7390" else INPUTS.simulated(name)


timed = pytest.mark.parametrize("data", ["tied", "gse7390"], indirect=True)  # those with times


def complete(table, *columns):
    return table.dropna(subset=list(columns))


def numbered(column):
    return pd.factorize(column, sort=True)[0]


def fits(result, **names):
    return {name: getattr(result, attribute) for name, attribute in names.items()}


def test_rank_tests_match(data):
    name, table = data
    own = complete(table, "score", "level")
    scores = own["score"].to_numpy(dtype=float)
    for level in sorted(own["level"].unique()):
        found = mann_whitney(scores, (own["level"] == level).to_numpy())
        assert_matches(fits(found, statistic="statistic", p="p"), of_r(name, f"wilcox.test {level}"))
    found = kruskal_wallis(scores, numbered(own["level"]))
    by_r = of_r(name, "kruskal.test")
    if name == "small":  # whose p-value is exact here
        by_r.pop("p")
    assert_matches(fits(found, statistic="statistic", p="p"), by_r)
    assert found.effect == pytest.approx(found.statistic / (len(own) - 1))


def test_correlations_match(data):
    name, table = data
    own = complete(table, "score", "number")
    x, y = (own[column].to_numpy(dtype=float) for column in ("score", "number"))
    found = pearson(x, y)
    assert_matches(fits(found, estimate="effect", p="p", low="low", high="high"), of_r(name, "cor.test pearson"))
    assert_matches(fits(spearman(x, y), estimate="effect", p="p"), of_r(name, "cor.test spearman"))


def test_tests_of_counts_match(data):
    name, table = data
    up = (table["score"] > table["score"].median()).where(table["score"].notna())
    own = table.assign(up=up).dropna(subset=["up", "level"])
    up = own["up"].to_numpy(dtype=bool)
    for level in sorted(own["level"].unique()):
        found, expected = fisher(up, (own["level"] == level).to_numpy()), of_r(name, f"fisher.test {level}")
        assert_matches(fits(found, p="p", estimate="effect", low="low", high="high"), expected)
    counts = pd.crosstab(own["up"], own["level"]).to_numpy()
    found, simulated = chi_squared(counts)
    expected = of_r(name, "chisq.test")
    assert found.statistic == pytest.approx(expected["statistic"], rel=1e-8)
    if not simulated:
        assert found.p == pytest.approx(expected["p"], rel=1e-8)
    assert simulated == (np.outer(counts.sum(1), counts.sum(0)).min() / counts.sum() < 5)


@timed
def test_survival_curves_and_log_rank_tests_match(data):
    name, table = data
    own = complete(table.assign(up=table["score"] > table["score"].median()), "time", "event", "score")
    times, events = own["time"].to_numpy(dtype=float), own["event"].to_numpy(dtype=bool)
    found = log_rank(times, events, own["up"].to_numpy(dtype=bool))
    assert_matches(fits(found, statistic="statistic", p="p"), of_r(name, "survdiff up"))
    own = complete(table, "time", "event")
    curve = kaplan_meier(own["time"].to_numpy(dtype=float), own["event"].to_numpy(dtype=bool))
    points = [test for data, test in GOLDEN.index.unique() if data == name and test.startswith("survfit")]
    assert len(points) == 5
    for test in points:
        row = curve.iloc[int(test.split()[1]) - 1].rename({"ci_low": "low", "ci_high": "high"})
        assert_matches(row, of_r(name, test))


@timed
def test_cox_models_match(data):
    name, table = data

    def fitted(columns, covariates=()):
        own = complete(table, "time", "event", *columns, *covariates)
        given = own[list(covariates)].to_numpy(dtype=float) if covariates else None
        times, events = own["time"].to_numpy(dtype=float), own["event"].to_numpy(dtype=bool)
        return cox(times, events, own[columns].to_numpy(dtype=float), given)

    def described(model):
        ratio, low, high = model.hazard_ratio()
        statistics = {"score": model.score, "wald": model.wald, "lr": model.likelihood_ratio}
        p_values = {f"{test}_p": model.p(value) for test, value in statistics.items()}
        likelihood = {"log_likelihood": model.log_likelihood}
        return statistics | p_values | likelihood | {"ratio": ratio, "low": low, "high": high}

    assert_matches(described(fitted(["score"])), of_r(name, "coxph score"))
    assert_matches(described(fitted(["score", "number", "covariate"])), of_r(name, "coxph several"))
    assert_matches(described(fitted(["score"], ["number", "covariate"])), of_r(name, "coxph given"))


@timed
def test_adjusted_tests_match(data):
    name, table = data
    own = complete(table, "score", "number", "covariate", "level")
    scores, design = own["score"].to_numpy(dtype=float), own[["number", "covariate"]].to_numpy(dtype=float)
    found = linear_model(scores, numbered(own["level"]), design)
    assert_matches(fits(found, statistic="statistic", p="p", eta="effect"), of_r(name, "lm levels"))
    names = {"statistic": "statistic", "p": "p", "difference": "effect", "low": "low", "high": "high"}
    for level in sorted(own["level"].unique()):
        found = standardised_difference(scores, (own["level"] == level).to_numpy(), design)
        assert_matches(fits(found, **names), of_r(name, f"lm level {level}"))
    for kind, test in (("pearson", pearson), ("spearman", spearman)):
        found = test(scores, design[:, 0], design[:, 1:])
        assert_matches(fits(found, statistic="statistic", p="p", r="effect"), of_r(name, f"partial {kind}"))
