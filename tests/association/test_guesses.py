"""What columns are taken for: survival, ordered levels, batches, identifiers; and what they are not taken for."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.association.associate import associate_scores
from netbic.association.guesses import order_of
from netbic.association.survival import find_survival
from netbic.association.variables import read_variables

N = 60
generator = np.random.default_rng(0)
TIMES = generator.exponential(30, N).round(1)
SEEN = generator.integers(0, 2, N)


def words(not_seen, seen):
    return np.where(SEEN == 1, seen, not_seen)


FOUND = (
    {"os_months": TIMES, "os_event": SEEN},
    {"OS.time": TIMES, "OS": SEEN},
    {"OS_MONTHS": TIMES, "OS_STATUS": words("0:LIVING", "1:DECEASED")},
    {"overall_survival_months": TIMES, "overall_survival_status": words("LIVING", "DECEASED")},
    {"DFS_MONTHS": TIMES, "DFS_STATUS": words("0:DiseaseFree", "1:Recurred/Progressed")},
    {"progression_free_survival_days": TIMES, "progression_free_survival_event": SEEN},
    {"survival_time": TIMES, "vital_status": words("alive", "dead")},
    {"time_to_progression": TIMES, "progression": words("no", "yes")},
    {"metastasis_days": TIMES, "metastasis_event": SEEN == 1},
    {"t.rfs": TIMES, "e.rfs": SEEN},
    {"ostime": TIMES, "osevent": SEEN},
    {"PfsMonths": TIMES, "PfsEvent": SEEN},
    {"OS (years)": TIMES, "OS (event)": SEEN},
    {"os_months": TIMES, "status": words("alive", "dead")},
    {"follow_up_months": TIMES, "death": SEEN},
    {"os_months": TIMES, "os_censor": words("censored", "event")},
)


@pytest.mark.parametrize("columns", FOUND, ids=lambda columns: next(iter(columns)))
def test_survival_is_found_by_name_and_tested_as_nothing_else(columns):
    table = pd.DataFrame(columns | {"age": np.arange(N) % 7, "er_status": 1 - SEEN})
    (found,) = [each for each in read_variables(table) if each.kind == "survival"]
    assert (found.name, found.event) == tuple(columns)
    assert found.events.tolist() == (SEEN == 1).tolist()
    assert "`survival=none`" in found.reason
    assert [each.name for each in read_variables(table)] == ["age", "er_status", found.name]
    named = {each.name: each.kind for each in read_variables(table, survival="none")}
    assert named == {"age": "numeric", "er_status": "categorical"} | dict.fromkeys(columns, "left out")
    asked = {each.name: each.kind for each in read_variables(table, variables=list(columns), survival="none")}
    assert not {"survival", "left out"} & {*asked.values()}


NOT_FOUND = (
    {"er_status": SEEN, "time": TIMES},
    {"er_status": SEEN, "os_months": TIMES},
    {"er_time": TIMES, "er_status": SEEN},
    {"os_version": TIMES, "os_status": SEEN},
    {"smoking_status": SEEN, "follow_up_months": TIMES},
    {"treatment_days": TIMES, "treatment_event": SEEN},
    {"TTR": TIMES, "relapse": SEEN},  # transthyretin
    {"year_of_death": TIMES, "death": SEEN},
    {"time": TIMES, "status": SEEN},
    {"os_months": TIMES, "pfs_event": SEEN},
    {"os_months": TIMES, "os_status": SEEN + 1},  # is 2 the event?
    {"os_months": TIMES, "os_status": words("no", "yes")},
    {"os_months": TIMES, "os_censor": SEEN},  # is 1 censored?
    {"survival_months": TIMES, "survival_status": SEEN},  # is 1 a survivor?
    {"overall_survival_months": TIMES, "overall_survival": SEEN},
    {"os_months": TIMES, "vital_status": SEEN},
    {"os_months": TIMES, "os_event": TIMES},
    {"os_months": SEEN, "os_event": TIMES},
    {"os_months": TIMES - 50, "os_event": SEEN},
    {"os_months": TIMES, "os_event": 0},
    {"os_months": np.nan, "os_event": SEEN},
    {"os_months": TIMES, "os_event": np.nan},
    {"days_to_death": np.where(SEEN == 1, TIMES, np.nan), "vital_status": words("Alive", "Dead")},
    {"days_to_last_follow_up": TIMES, "vital_status": words("Alive", "Dead")},
    {
        "days_to_death": np.where(SEEN == 1, TIMES, np.nan),
        "follow_up_days": np.where(TIMES > 3, TIMES, np.nan),
        "vital_status": words("Alive", "Dead"),
    },
)


@pytest.mark.parametrize("columns", NOT_FOUND, ids=lambda columns: ",".join(columns))
def test_what_only_resembles_survival_is_not_taken_for_it(columns):
    table = pd.DataFrame(columns)
    found = {each.name: each for each in read_variables(table)}
    assert "survival" not in {each.kind for each in found.values()}
    assert set(found) == set(table)  # each column is listed, tested or with a reason
    for name in set(columns) & {"er_status", "smoking_status", "treatment_event", "relapse", "pfs_event"}:
        assert found[name].kind == "categorical"


def test_columns_of_an_endpoint_that_cannot_be_used_are_left_out_with_the_remedy():
    table = pd.DataFrame({"os_months": TIMES, "os_status": SEEN + 1})
    for each in read_variables(table):
        assert each.kind == "left out"
        assert "(subtract 1 if 2 means seen); `types=os_status=categorical` tests it like others" in each.reason
    (lone,) = read_variables(table[["os_months"]])
    assert lone.reason.endswith("name the columns with `survival=os_months,EVENT`")
    (lone,) = read_variables(table[["os_status"]])
    assert (lone.kind, lone.reason) == ("categorical", "2 different numbers; events without a column of times")
    several = {each.name: each for each in read_variables(table.assign(os_days=30 * TIMES, os_event=SEEN))}
    assert several["os_months"].kind == "survival"
    assert {several[name].reason[:20] for name in ("os_days", "os_status")} == {"of the same endpoint"}


def test_what_is_asked_for_goes_before_what_is_found():
    table = pd.DataFrame(
        {"os_months": TIMES, "os_event": SEEN, "rfs_months": TIMES, "rfs_event": 1 - SEEN, "age": TIMES}
    )

    def kinds(**options):
        return {each.name: each.kind for each in read_variables(table, **options)}

    assert kinds() == {"age": "numeric", "os_months": "survival", "rfs_months": "survival"}
    assert kinds(variables="age") == {"age": "numeric"}
    assert kinds(variables=["os_event"]) == {"os_months": "survival"}
    given = kinds(survival=("rfs_months", "rfs_event"))
    assert given == {"os_months": "left out", "os_event": "left out", "age": "numeric", "rfs_months": "survival"}
    assert kinds(types={"os_event": "categorical"})["os_event"] == "categorical"
    assert kinds(adjust="os_event")["os_event"] == "categorical"
    assert set(kinds(survival=[]).values()) == {"left out", "numeric"}
    with pytest.raises(netbic.InputError, match="the sample table has 2 columns 'age'"):
        read_variables(pd.concat([table, table], axis=1))
    scores = pd.DataFrame({1: TIMES}, index=table.index)
    found = associate_scores(scores, None, table)
    assert found.survival == (("os_months", "os_event"), ("rfs_months", "rfs_event"))
    assert found.notes == ()
    assert set(found.table.loc[found.table["variable"] == "os_months", "test"]) == {
        "Cox score",
        "log-rank, median split",
    }


def test_times_and_events_without_a_name_are_pointed_out_only():
    for columns, pair in (
        ({"time": TIMES, "status": SEEN}, ("time", "status")),
        ({"months": TIMES, "dead": SEEN}, ("months", "dead")),
        ({"time": TIMES, "er_status": SEEN}, None),
        ({"time": TIMES, "vital_status": SEEN}, None),
    ):
        assert find_survival(pd.DataFrame(columns)).possible == pair


ORDERED = (
    ("stage", ["I", "II", "III", "IV"]),
    ("ajcc_pathologic_stage", ["Stage I", "Stage IA", "Stage IB", "Stage II", "Stage IIIC1", "Stage IV"]),
    ("anything", ["Stage 0", "Stage I", "Stage IIA"]),
    ("figo", ["I/II", "III", "IV"]),
    ("T", ["Tis", "T1", "T1a", "T2", "T4b"]),
    ("pathology_N_stage", ["N0", "N0 (i+)", "N1mi", "N1a", "N2"]),
    ("pT", ["pT1", "pT2c"]),
    ("tumor_grade", ["G1", "G2", "G3"]),
    ("x", ["Grade 1", "Grade 2", "Grade 3"]),
    ("grade", ["low", "high"]),
    ("grade", ["low grade", "intermediate", "high-grade"]),
    ("expression", ["Low", "Medium", "High"]),
    ("fibrosis", ["none", "mild", "moderate", "severe"]),
    ("grade", ["well differentiated", "moderately differentiated", "poorly differentiated"]),
    ("stage", ["early", "late"]),
)


@pytest.mark.parametrize(("name", "levels"), ORDERED)
def test_stages_and_grades_are_ordered(name, levels):
    values = levels[::-1] * 9
    for column in (pd.Series(values), pd.Series(pd.Categorical(values))):  # AnnData makes categories of text
        (found,) = read_variables(column.to_frame(name))
        assert (found.kind, found.levels) == ("ordered", tuple(levels))
        assert found.values[: len(levels)].tolist() == list(range(len(levels)))[::-1]
        hint = f"`types='{name}=categorical'`" if " " in name else f"`types={name}=categorical`"
        assert hint in found.reason
        (other,) = read_variables(column.to_frame(name), types={name: levels[::-1]})
        assert other.levels == tuple(levels[::-1])


UNORDERED = (
    ("cluster", ["G1", "G2", "G3"]),
    ("phase", ["G1", "S", "G2M"]),
    ("subtype", ["I", "II", "III"]),
    ("risk", ["low", "high"]),  # the tests of two categories say more
    ("patient", ["T1", "T2", "T3"]),
    ("stage", ["I", "II", "recurrent"]),
    ("er", ["negative", "positive"]),
    ("grade", ["a", "b", "c"]),
    ("sample_type", ["early", "other", "late"]),
    ("code", ["1a", "2b", "3a"]),
    ("stage", ["I", "2"]),
)


@pytest.mark.parametrize(("name", "levels"), UNORDERED)
def test_other_labels_are_not_ordered(name, levels):
    assert order_of(name, levels) is None
    (found,) = read_variables(pd.DataFrame({name: levels * 9}))
    assert found.kind == "categorical"


def test_not_assessed_has_no_place_in_the_order():
    table = pd.DataFrame({"N": ["N0", "N1", "NX", "N2"] * 5, "stage": ["I", "II", "III", "unkown"] * 5})
    nodes, stage = read_variables(table)
    assert nodes.levels == ("N0", "N1", "N2")
    assert np.isnan(nodes.values).sum() == 5
    assert "NX (5 samples) has no place in it: taken as missing" in nodes.reason
    (given,) = read_variables(table[["N"]], types={"N": ["N2", "N1", "N0"]})
    assert given.values[:4].tolist()[:2] == [2, 1]
    assert np.isnan(given.values).sum() == 5
    assert stage.kind == "categorical"
    assert "ordered if 'unkown' is made a missing value" in stage.reason


def test_numbers_of_stages_batches_and_rows_are_not_numbers():
    numbers = generator.permutation(np.arange(N))
    columns = {
        "tumorstage": (numbers % 4 + 1.0, "ordered"),
        "grade": (np.where(numbers < 5, np.nan, numbers % 3), "ordered"),
        "tmt_plex": (numbers % 17, "categorical"),
        "PlateNumber": (numbers % 5, "categorical"),
        "site_id": (numbers % 4.0, "categorical"),
        "mouse": (numbers % 8, "categorical"),
        "batch_size": (numbers % 5, "numeric"),
        "run_time": (numbers % 5, "numeric"),
        "n_lanes": (numbers % 5, "numeric"),
        "batch_score": (numbers % 5 + 0.5, "numeric"),
        "passage": (numbers % 5, "numeric"),
        "cells": (numbers % 5, "numeric"),
        "plate": (numbers, "left out"),
        "row": (numbers + 1, "left out"),
        "age": (numbers, "numeric"),
        "day": (numbers + 1, "numeric"),
        "patient_id": (numbers * 7 + 1000, "left out"),
        "barcode": ([f"b{k // 2}" for k in numbers], "left out"),
        "participant": ([f"p{k // 2}" for k in numbers], "left out"),
        "donor": ([f"d{k % 6}" for k in numbers], "categorical"),
    }
    table = pd.DataFrame({name: values for name, (values, _) in columns.items()})
    found = {variable.name: variable for variable in read_variables(table)}
    assert {name: each.kind for name, each in found.items()} == {name: kind for name, (_, kind) in columns.items()}
    assert "`types=tmt_plex=numeric` tests numbers" in found["tmt_plex"].reason
    assert found["participant"].reason.startswith("an identifier: hardly any value occurs again")
    assert read_variables(table, types={"tmt_plex": "numeric"})[2].kind == "numeric"
    assert read_variables(table, variables=["participant"])[0].kind == "categorical"  # asked for
    with pytest.raises(netbic.InputError, match="'nothing' cannot be tested: all values are missing"):
        read_variables(table.assign(nothing=np.nan), variables="nothing")
