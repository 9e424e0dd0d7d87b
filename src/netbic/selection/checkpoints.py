"""What determines the results of a search, so that an interrupted one is continued only with the same data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from netbic.arrays import Floats, Matrix, RandomState, buffers
from netbic.estimators import SparseGraphSVD, TwoTables
from netbic.files import JsonValue
from netbic.graph import Graph
from netbic.io import digest
from netbic.selection.grid import Parameters
from netbic.selection.resampling import draw_seed
from netbic.storage import Task, read_task, settings_of


def seed_of(kind: str, random_state: RandomState, checkpoint: Path | str | None) -> int:
    """The seed of a task; without a random_state that of its checkpoint, so that it can be resumed."""
    header = read_task(checkpoint, kind) if random_state is None and checkpoint is not None else None
    return draw_seed(random_state) if header is None else int(header["data"]["seed"])


def task_of(
    kind: str,
    settings: Mapping[str, JsonValue],
    models: Sequence[SparseGraphSVD | TwoTables],
    X: Matrix,
    seed: int,
    design: Floats | None,
    Y: Matrix | None = None,
) -> Task:
    """Everything that determines the results: settings, models whose graphs match X by position, data and seed."""
    parameters = json.dumps([_fingerprint(model.get_params(deep=False)) for model in models])
    data: dict[str, JsonValue] = {
        "seed": seed,
        "model and grid" if kind == "tuning" else "model": _hashed(parameters),
        "X": digest(*buffers(X), np.array(X.shape)),
    }
    if design is not None:
        data["covariates"] = digest(design)
    if Y is not None:
        data["Y"] = digest(*buffers(Y), np.array(Y.shape))
    return Task(kind, settings, data)


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _fingerprint(parameters: Parameters) -> Parameters:
    """Parameters as JSON; graphs by their digests."""
    graphs = {name: value.weights for name, value in parameters.items() if isinstance(value, Graph)}
    return settings_of(parameters) | {name: digest(w.data, w.indices, w.indptr) for name, w in graphs.items()}
