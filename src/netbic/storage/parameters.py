"""Parameters of an estimator as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic import penalties
from netbic.arrays import compressed_problem, values_problem
from netbic.errors import InputError
from netbic.files import JsonValue, Record
from netbic.graph import Graph

_GRAPHS = ("row_graph", "column_graph", "x_graph", "y_graph")


def settings_of(parameters: Mapping[str, object]) -> Record:
    """Parameters of an estimator as JSON, without graphs and parameters that do not change the result."""
    left_out = (*_GRAPHS, "n_jobs", "verbose")
    return {name: _plain(value) for name, value in sorted(parameters.items()) if name not in left_out}


def settings_from(settings: Record) -> dict[str, Any]:
    """Parameters of an estimator from the JSON that `settings_of` makes."""
    return {name: _parameter(value) for name, value in settings.items()}


def _plain(value: object) -> JsonValue:
    """A parameter as JSON; an object that JSON cannot hold is described, and is None when it is loaded."""
    if isinstance(value, penalties.Penalty) and type(value) is vars(penalties).get(type(value).__name__):
        own = {each.name: _part(getattr(value, each.name)) for each in fields(value) if each.init}
        return {"penalty": type(value).__name__} | own
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"not saved": repr(value)}


def _part(value: object) -> JsonValue:
    """A field of a penalty as JSON."""
    if isinstance(value, penalties.Groups):
        return {"groups": [[name, list(members)] for name, members in value.items()]}
    if isinstance(value, Graph):
        upper = sp.csr_array(sp.triu(value.weights, format="csr"))
        parts = {name: getattr(upper, name).tolist() for name in ("data", "indices", "indptr")}
        return {"graph": parts | {"names": None if value.names is None else value.names.tolist()}}
    return _plain(value)


def _parameter(value: JsonValue) -> object:
    """A parameter from JSON: a plain value, or a penalty."""
    if not isinstance(value, dict):
        return value
    if "penalty" not in value:
        return None
    kind = getattr(penalties, str(value["penalty"]), None)
    if not (isinstance(kind, type) and issubclass(kind, penalties.Penalty)) or kind is penalties.Penalty:
        raise InputError(f"the model has a penalty this version does not know ({value['penalty']}): upgrade netbic")
    parts: Record = {name: _part_from(part) for name, part in value.items() if name != "penalty"}
    return kind(**parts)


def _part_from(part: Any) -> Any:
    """A field of a penalty from JSON."""
    if isinstance(part, dict) and "groups" in part:
        return penalties.Groups(dict(part["groups"]))
    if isinstance(part, dict) and "graph" in part:
        return _graph_from(part["graph"])
    return None if isinstance(part, (dict, list)) else part


def _graph_from(parts: dict[str, Any]) -> Graph:
    data = np.array(parts["data"], dtype=np.float64)
    indices, indptr = (np.array(parts[name], dtype=np.int64) for name in ("indices", "indptr"))
    shape = indptr.size - 1, indptr.size - 1
    problem = values_problem(data, "it") or compressed_problem(data, indices, indptr, shape, "it")
    if problem is not None:
        raise InputError(f"the graph of a penalty is damaged ({problem}): fit again")
    upper = sp.csr_array((data, indices, indptr), shape=shape)
    names = None if parts["names"] is None else np.array(parts["names"], dtype=_kind(parts["names"]))
    return Graph(sp.csr_array(upper + upper.T), names, signed=bool((data < 0).any()))


def _kind(names: list[Any]) -> type | None:
    return object if names and isinstance(names[0], str) else None
