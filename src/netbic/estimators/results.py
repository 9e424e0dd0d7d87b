"""The modules of a search as the fitted attributes of a model: vectors, groups, diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike
from scipy.linalg import solve_triangular

from netbic.arrays import Array, Floats, Indices, jaccard
from netbic.errors import InputError, some_names
from netbic.operators.corrected import Corrected
from netbic.penalties import Penalty
from netbic.solver.search import REPEATED, Module, correlations

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

DIAGNOSTIC_NUMBERS: Final = (
    "graph_weight",
    "worst_rank",
    "by_data_alone",
    "standing_out",
    "recurrent",
    "repeats",
    "closest",
    "correlation",
    "feature_overlap",
    "sample_overlap",
)
DEPENDENT: Final = 1e-6  # a v closer than this to the span of earlier ones adds nothing
_WELL_CONDITIONED = 1e-3  # smallest part of a v outside the span of earlier ones for which normal equations are safe
_GROUP_TYPES = {"module": np.int64, "axis": object, "group": object, "size": np.int64, "share": np.float64}
_LEADING = 10  # features with the largest weights of a module
_FEWEST = 4  # modules from which on it means something to lead half of them


def store_modules(
    model: SparseGraphSVD,
    operator: Corrected,
    modules: list[Module],
    dtype: DTypeLike,
    data: Corrected,
) -> None:
    """Set the fitted attributes that describe the modules found in a matrix.

    `data` is the matrix before diffusion.
    """
    n, p = operator.shape
    left, right = np.zeros((len(modules), n)), np.zeros((len(modules), p))
    for number, module in enumerate(modules):
        left[number, module.u.support], right[number, module.v.support] = module.u.values, module.v.values
    model.n_components_ = len(modules)
    model.left_vectors_ = np.ascontiguousarray(left.T, dtype=dtype)
    model.components_ = right.astype(dtype, copy=False)  # no second copy of what may be a large array
    model.singular_values_ = np.array([module.d for module in modules], dtype=dtype)
    model.rows_, model.columns_ = left != 0, right != 0
    model.objectives_ = [module.objectives for module in modules]
    model.n_iter_ = max([1, *map(len, model.objectives_)])
    model.converged_ = np.array([module.outcome == "converged" for module in modules], dtype=bool)
    model.graph_share_ = np.array([module.graph_share for module in modules])
    vectors = [(module.v.support, module.v.values) for module in modules]
    products = operator.products(vectors)
    model.diagnostics_ = diagnostics_table(modules, products)
    if data is not operator:  # models with and without diffusion explain the same data
        products = data.products(vectors)
    model.explained_variance_ratio_ = explained(right, products) / max(data.squared_norm, np.finfo(float).tiny)


def explained(vectors: Floats, products: Floats) -> Floats:
    """Increase of |X V'(VV')^+ V|^2 by each module (Shen and Huang 2008); the rows of `products` are Xv.

    The v are orthogonalised one after another and each new direction q adds |Xq|^2; a dependent v adds nothing.
    """
    triangle = triangle_of(vectors)
    if triangle is not None:
        images = np.asarray(solve_triangular(triangle.T, products, lower=True), dtype=np.float64)
        return np.asarray(np.einsum("ij,ij->i", images, images))
    basis, images = np.zeros_like(vectors), np.zeros_like(products)
    for k, (rest, image) in enumerate(zip(vectors, products, strict=True)):
        for _ in range(2):  # Gram-Schmidt, applied twice
            along = basis[:k] @ rest
            rest, image = rest - along @ basis[:k], image - along @ images[:k]
        length = np.linalg.norm(rest)
        if length > DEPENDENT:
            basis[k], images[k] = rest / length, image / length
    return np.asarray(np.einsum("ij,ij->i", images, images))


def triangle_of(vectors: Floats) -> Floats | None:
    """The upper triangle R with VV' = R'R; None if the v are nearly dependent."""
    try:
        triangle: Floats = np.linalg.cholesky(vectors @ vectors.T).T.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return triangle if np.diag(triangle).min(initial=1.0) > _WELL_CONDITIONED else None


def groups_table(rows: Iterable[tuple[int, str, str, int, float]]) -> pd.DataFrame:
    """The table of the groups of all modules."""
    return pd.DataFrame(list(rows), columns=list(_GROUP_TYPES)).astype(_GROUP_TYPES)


def chosen_groups(modules: Sequence[Module], rows: Penalty, columns: Penalty) -> pd.DataFrame:
    """The groups that penalties of groups have chosen."""
    return groups_table(
        (number, axis, *group)
        for number, module in enumerate(modules, start=1)
        for axis, vector, penalty in (("rows", module.u, rows), ("columns", module.v, columns))
        if vector.groups is not None
        for group in penalty.described(vector.full(), vector.groups)
    )


# What may be wrong with a module


def diagnostics_table(modules: Sequence[Module], scores: Floats) -> pd.DataFrame:
    """The table `diagnostics_` of a model; `scores` are the products Xv, a row per module."""
    recurrent = recurrent_features([module.v.full() for module in modules])
    rows = []
    for number, module in enumerate(modules):
        repeats, closest, correlated, overlaps = np.nan, np.nan, 0.0, (np.nan, np.nan)
        if number:
            similar = correlations(scores[number], scores[:number])
            at = int(np.argmax(np.abs(similar)))
            closest, correlated, other = at + 1, float(similar[at]), modules[at]
            repeats = closest if abs(correlated) >= REPEATED else np.nan
            pair = (module.u, module.v), (other.u, other.v)
            samples, features = ([vector.full()[None] != 0 for vector in both] for both in zip(*pair, strict=True))
            # Two modules that keep all samples have the same ones, whatever their scores are.
            of_samples = np.nan if np.all(samples) else float(jaccard(*samples)[0])
            overlaps = float(jaccard(*features)[0]), of_samples
        graph = module.graph_weight, module.worst_rank, module.by_data_alone, module.standing_out
        among_recurrent = int(np.isin(leading_features(module.v.full()), recurrent).sum())
        rows.append((*graph, among_recurrent, repeats, closest, correlated, *overlaps))
    return diagnostics_from(np.array(rows, dtype=np.float64))


def diagnostics_from(numbers: Floats) -> pd.DataFrame:
    """The table from its columns as an array."""
    table = pd.DataFrame(numbers.reshape(-1, len(DIAGNOSTIC_NUMBERS)), columns=list(DIAGNOSTIC_NUMBERS))
    for name in ("worst_rank", "recurrent"):
        table[name] = table[name].fillna(0).astype(np.int64)
    table.insert(0, "module", np.arange(1, len(table) + 1))
    return table.astype(dict.fromkeys(("standing_out", "repeats", "closest"), "Int64"))


def leading_features(vector: Floats) -> Indices:
    """Positions of the ten largest absolute entries of a vector that are not zero, largest first."""
    return heaviest(vector)[:_LEADING]


def recurrent_features(vectors: Sequence[Floats]) -> Indices:
    """Features among the ten leading ones of at least half of the modules (none if there are fewer than four)."""
    if len(vectors) < _FEWEST:
        return np.empty(0, dtype=np.intp)
    counts = np.bincount(np.concatenate([leading_features(vector) for vector in vectors]))
    return np.flatnonzero(2 * counts >= len(vectors))


def recurrence(components: Array, names: Array | None, feature_name: str) -> str | None:
    """A warning if features lead half of the modules or more; modules with few features are not examined."""
    if min((np.count_nonzero(vector) for vector in components), default=0) < 2 * _LEADING:
        return None
    found = [str(position if names is None else names[position]) for position in recurrent_features(list(components))]
    if not found:
        return None
    named, verb = some_names(found, 5, quoted=False), "is" if len(found) == 1 else "are"
    return (
        f"{named} {verb} among the ten leading {feature_name}s of half of the modules or more (recurrent): fit "
        "without the graph to see whether this comes from the data; `scale=True` reduces the weight of "
        f"{feature_name}s with a large variance"
    )


# Access to a fitted model


def position_of(module: object, n_modules: int, unit: str = "module") -> int:
    """The position of a module (or pair) in the arrays of a model, from its number, which counts from 1.

    Examples
    --------
    >>> position_of(2, 5)
    1
    >>> position_of(0, 5)
    Traceback (most recent call last):
    netbic.errors.InputError: module=0: modules are numbered from 1; this model has 5
    """
    if isinstance(module, Integral) and not isinstance(module, bool) and 1 <= int(module) <= n_modules:
        return int(module) - 1
    given = f"{module!r}" if isinstance(module, (str, float, bool)) else type(module).__name__
    given = given if isinstance(module, bool) or not isinstance(module, Integral) else str(int(module))
    raise InputError(f"{unit}={given}: {unit}s are numbered from 1; this model has {n_modules}")


def name_features(table: pd.DataFrame, feature_name: str) -> pd.DataFrame:
    """A table whose columns are about features, with another word for them: `n_features` is `n_genes`.

    Examples
    --------
    >>> import pandas as pd
    >>> name_features(pd.DataFrame({"n_features": [60], "features_up": [28]}), "gene").columns.tolist()
    ['n_genes', 'genes_up']
    """
    return table.rename(columns=lambda name: name.replace("feature", feature_name))


def heaviest(vector: Array) -> Indices:
    """Positions of the members of a module, largest weight first."""
    members = np.flatnonzero(vector)
    return members[np.argsort(-np.abs(vector[members]), kind="stable")]


def names_of(model: SparseGraphSVD, axis: str) -> Any:
    """Names of the "rows" or "columns"; their numbers if there are none."""
    known = model.names_[axis]
    size = model.left_vectors_.shape[0] if axis == "rows" else model.components_.shape[1]
    return np.arange(size) if known is None else known
