"""Published methods by name, in the convention of the paper."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from netbic.estimators.svd import SparseGraphSVD
from netbic.penalties import L0, SCAD, AdaptiveLasso, Dense, KeepSoft, Penalty

__all__ = ["METHODS", "Method", "method", "usual_sizes"]


@dataclass(frozen=True)
class Method:
    """A published method: its penalty (given k, or None), the signs in its graph term, and whether it has one."""

    penalty: Callable[[int | None], Penalty]
    signs: str = "absolute"
    uses_graph: bool = False


def _l0(k: int | None) -> Penalty:
    return Dense() if k is None else L0(k)


def _keep_soft(k: int | None, position: float = 0.0) -> Penalty:
    return Dense() if k is None else KeepSoft(k, position=position)


_SGSVD_STAR = Method(_l0, uses_graph=True)
_SGSVD = Method(_l0, signs="signed", uses_graph=True)

METHODS: Final[dict[str, Method]] = {
    "sgSVD*": _SGSVD_STAR,
    "L0-sgSVD*": _SGSVD_STAR,
    "L1-sgSVD*": Method(_keep_soft, uses_graph=True),
    "sgSVD": _SGSVD,
    "L0-sgSVD": _SGSVD,
    "L1-sgSVD": Method(_keep_soft, signs="signed", uses_graph=True),
    "L0SVD": Method(_l0),
    "ALSVD": Method(lambda k: AdaptiveLasso() if k is None else KeepSoft(k)),
    "SCADSVD": Method(SCAD),
    "PMD": Method(lambda k: _keep_soft(k, 0.5)),
    "SVD": Method(lambda k: Dense()),
}


def method(
    name: str,
    n_components: Any = 1,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
    row_graph: Any = None,
    column_graph: Any = None,
    row_sigma: float = 0.0,
    column_sigma: float = 0.0,
    **keywords: Any,
) -> SparseGraphSVD:
    """Return an unfitted estimator for a method by its published name, in the paper's convention.

    The convention is: adjacency term, absolute sigma, no centring, `solver="aisp"`, `deflation="hotelling"`. It can be
    overridden by any keyword of :class:`SparseGraphSVD`.

    Parameters
    ----------
    name : str
        "sgSVD*" (= "L0-sgSVD*"), "L1-sgSVD*", "sgSVD" (= "L0-sgSVD"), "L1-sgSVD", "L0SVD", "ALSVD", "SCADSVD", "PMD"
        or "SVD".
    n_components : int or "auto"
        Number of modules; "auto": 10.
    n_rows, n_columns : int, optional
        Number of samples and features to keep. The L1 methods, "ALSVD" and "SCADSVD" then threshold at the (k+1)-th
        largest value and "PMD" half-way between the k-th and the (k+1)-th, so that the result is the PMD solution for
        some pair of L1 bounds. Without them "ALSVD" and "SCADSVD" use the BIC rule of Lee et al.; the other methods
        keep all samples or features, unless a penalty is given.
    row_graph, column_graph : graph-like, optional
        Ignored by methods without a graph term, so that methods can be compared by the same call.
    row_sigma, column_sigma : float
        The paper's sigma_u and sigma_v.
    **keywords
        Passed on, e.g. `row_penalty=netbic.L1Ball(3.0)`, `center="columns"`, `solver="auto"`.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> model = netbic.method("L0SVD", n_rows=50, n_columns=50).fit(toy.X)
    >>> int(model.columns_.sum())
    50
    """
    if name not in METHODS:
        raise ValueError(f"method {name!r} is not known: choose one of {', '.join(map(repr, METHODS))}")
    chosen = METHODS[name]
    if not chosen.uses_graph and (row_sigma or column_sigma):
        warnings.warn(f"{name} has no graph term: row_sigma and column_sigma are ignored", stacklevel=2)
    if name == "SVD" and not (n_rows is None and n_columns is None):
        warnings.warn(f"{name} keeps every row and column: n_rows and n_columns are ignored", stacklevel=2)
    settings: dict[str, Any] = {"smoothness_scale": "absolute", "graph_term": "adjacency", "signs": chosen.signs}
    settings |= {"center": None, "solver": "aisp", "search": "sequential", "deflation": "hotelling"}
    sides = ("row", n_rows, row_graph, row_sigma), ("column", n_columns, column_graph, column_sigma)
    for axis, k, graph, sigma in sides:
        # A penalty given by the user replaces that of the method.
        of_size = chosen.penalty is _l0 and k is not None
        settings |= {f"n_{axis}s": k} if of_size else {f"{axis}_penalty": chosen.penalty(k)}
        if chosen.uses_graph:
            settings |= {f"{axis}_graph": graph, f"{axis}_smoothness": sigma}
    return SparseGraphSVD(n_components, **(settings | keywords))


def usual_sizes(n_samples: int, n_features: int) -> tuple[int, int]:
    """Default numbers of samples and features per module: a tenth of the samples, 1.5% of the features.

    There are 50 to 200 features, but at most a fifth of all. In tumours measured with 13,000 genes or more, 200 genes
    gave reproducible modules; with 3,000 genes, 50 did, and 200 mixed several signals in one module.
    """
    share = min(200, max(50, round(0.015 * n_features)))
    return max(2, n_samples // 10), min(share, max(2, n_features // 5))


def __dir__() -> list[str]:
    return sorted(__all__)
