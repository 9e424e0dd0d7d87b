"""Errors keep their parameters, also through a pickle, as from a worker of a cluster."""

import pickle

import pytest

from netbic.errors import InputError, unusable
from netbic.files import FolderInUse


@pytest.mark.parametrize("error", [InputError, FolderInUse])
def test_parameters_survive_a_pickle(error):
    again = pickle.loads(pickle.dumps(error("give `id_map`", ["id_map"])))
    assert (type(again), str(again), again.parameters) == (error, "give `id_map`", ("id_map",))


def test_an_error_in_a_file_names_the_place_in_one_line():
    problem = unusable("a\nb.tsv", "is wrong", "use `layer`", line=3, column="2 (x)", parameters=["layer"])
    assert str(problem) == "a b.tsv, line 3, column 2 (x): is wrong: use `layer`"
    assert problem.parameters == ("layer",)
