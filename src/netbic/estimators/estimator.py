"""SparseGraphSVD: validate, delegate to the solver, store."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from numbers import Integral
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from netbic.arrays import checked
from netbic.estimators.choices import CHOSEN, choices_table
from netbic.estimators.prepared import Prepared, Preparing
from netbic.estimators.projection import explained, observed_scores, scoring, span
from netbic.estimators.threads import one_blas_thread
from netbic.estimators.words import axis_names, check_count, has_holes, is_number, names_of_index, refuse_anndata
from netbic.graphs import TERMS, GraphTerm, match
from netbic.operators import CENTERS, Corrected, as_operator
from netbic.outofcore import RowBlocks, is_dask
from netbic.penalties import L0, Choice, Dense, Penalty
from netbic.solver import DEFLATIONS, SOLVERS, Axis, Module, ModuleSearch, Settings, Starts, remarks

AXES: Final = ("row", "column")
DEFAULT_SMOOTHNESS: Final = 0.2


# scikit-learn has no types: its bases are Any to mypy.
class SparseGraphSVD(ClassNamePrefixFeaturesOutMixin, BiclusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse graph-regularized SVD: network-coherent biclusters, one after another.

    Each module is a pair of sparse unit vectors u (samples) and v (features) that maximises ::

        u'Xv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - penalties,

    where M1 and M2 are graph terms that reward (or, as a Laplacian, penalise differences across) edges between chosen
    samples and between chosen features. The next module is sought in what this one leaves of X.

    Parameters
    ----------
    n_components : int, default=2
        Number of modules to look for. The search ends, with a warning, where nothing but rounding error is left of X,
        and after 10,000 modules.
    n_rows, n_columns : int, optional
        Keep exactly so many samples / features per module (the L0 penalty). None: all, or as the penalty says.
    row_penalty, column_penalty : Penalty, optional
        A penalty object instead: `netbic.L0`, `L1`, `L1Ball`, `KeepSoft`, `SCAD`, `AdaptiveLasso`, or
        `AdaptiveSupport`, which chooses sizes and smoothness itself.
    row_graph, column_graph : Graph, sparse or dense array, networkx or igraph graph, or edge DataFrame, optional
        Prior graph of the samples / features. Matched by name where both sides have names, otherwise by position.
    row_smoothness, column_smoothness : float, optional
        Weight of the graph. None means 0.2 where a graph is given and 0 otherwise.
    smoothness_scale : {"relative", "absolute"}, default="relative"
        "relative": in units of the leading singular value of what is left of X (and of the graph term's own scale),
        so that rescaling X or exchanging the graph changes little. Sensible values run from 0 to about 0.5.
        "absolute": sigma as in the paper.
    graph_term : {"normalized", "adjacency", "laplacian", "normalized_laplacian"}, default="normalized"
        M = D^-1/2 A D^-1/2, A, -L or minus the normalised Laplacian.
    signs : {"absolute", "signed"}, default="absolute"
        Whether the graph term sees magnitudes (sgSVD*) or signed entries (sgSVD).
    center : {"columns", "rows", "both", "grand", None}, default="columns"
    scale : bool, default=False
        Bring columns to unit standard deviation.
    missing : {"error", "ignore", "impute"}, default="error"
        What to do with NaN. "ignore": only observed entries count (as in PMD, holes hold the mean of what is observed).
        "impute": holes are filled with what the modules predict, over and over, until that settles.
    solver : {"auto", "aisp", "monotone"}, default="auto"
        "aisp" is the paper's iteration, which may cycle; "monotone" never lowers the objective but clings to its first
        supports; "auto" takes the paper's step whenever it does not lower the objective and a safe one otherwise.
    n_init : int, default=1
        Starts per module: the leading singular pair, then random ones. The largest objective wins.
    annealing : int, default=0
        Instead of cutting a start at once, come down from the dense singular pair to the sizes asked for in so many
        geometric steps. Slower; near the edge of detection better, if the graph counts for much (smoothness about 1).
    max_iter : int, default=500
        Most rounds per start and step of annealing; ten times as many while missing entries are imputed.
    tol : float, default=1e-6
        A module has converged when both vectors and the objective change by at most this much (relative) in a round
        (at least 1e-5 for float32 data).
    deflation : {"hotelling", "projection", "schur"}, default="hotelling"
        How a module is taken out of X: X - d uv', (I - uu')X(I - vv'), or X - (Xv)(X'u)'/d.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random starts.
    n_jobs : int, optional
        Threads over starts. The answer does not depend on it.
    verbose : int, default=0
        Print a line per module if positive.
    low_memory : bool, default=False
        Keep a dense X in one memory order instead of both: a third of X beyond X itself, about 1.3 times the time.

    Attributes
    ----------
    left_vectors_ : ndarray of shape (n_samples, n_components_)
    components_ : ndarray of shape (n_components_, n_features)
    singular_values_ : ndarray of shape (n_components_,)
        d = u'Xv on the matrix the module was found in; never negative.
    rows_, columns_ : bool ndarrays of shapes (n_components_, n_samples) and (n_components_, n_features)
        Which samples and features belong to each module. `get_indices`, `get_shape` and `get_submatrix` read them.
    n_components_ : int
        Modules found. Fewer than asked for when X is exhausted; arrays are cut, never padded.
    objectives_ : list of ndarray
        The objective F after every round, per module (of the winning start).
    n_iter_ : int
        Most rounds any module took; `len(objectives_[k])` is module k's own number.
    converged_ : bool ndarray of shape (n_components_,)
        False also where an `AdaptiveSupport` kept changing its size for 400 rounds; the last size is then kept.
    graph_share_ : ndarray of shape (n_components_,)
        Share of the graph in the scores of the kept entries (the larger of the two sides). Above .3 the graph rather
        than the data decides, and a warning says so.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        What each module adds to the share of variance that the features' vectors explain together (adjusted for
        modules that are not orthogonal). With missing entries, of the matrix with its holes filled.
    choices_ : DataFrame
        What an `AdaptiveSupport` chose, a row per module and axis: `module`, `axis`, `size`, `sigma`, `noise` (standard
        deviation), `strength` (d against what noise alone could reach), `unevenness` (how much noise differs between
        entries), `expected_f1` (by the posteriors) and `doubt`
        ("" where the size can be relied on). Empty otherwise.
    posteriors_ : dict
        Probabilities of membership of "rows" and "columns", a line per module (NaN for what does not vary); None where
        the size was given.
    passes_ : float or None
        For a Dask array, how often it was read: blocks visited, in units of all blocks. None for data in memory, and
        for a model that was read from disk.
    names_ : dict
        Names of the "rows" and "columns" of X, None where it had none.
    preparation_ : Preparation
        The offsets and factors by which X was centred and scaled.
    feature_names_in_, n_features_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(
    ...     n_components=1, n_rows=50, n_columns=50, row_graph=toy.row_graph, column_graph=toy.column_graph, center=None
    ... ).fit(toy.X)
    >>> float(model.columns_[0][toy.v != 0].mean())
    1.0
    """

    passes_: float | None = None  # for models that were loaded, or not fitted to a Dask array
    _search: ClassVar[type[ModuleSearch]] = ModuleSearch

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_rows: int | None = None,
        n_columns: int | None = None,
        row_penalty: Penalty | None = None,
        column_penalty: Penalty | None = None,
        row_graph: Any = None,
        column_graph: Any = None,
        row_smoothness: float | None = None,
        column_smoothness: float | None = None,
        smoothness_scale: str = "relative",
        graph_term: str = "normalized",
        signs: str = "absolute",
        center: str | None = "columns",
        scale: bool = False,
        missing: str = "error",
        solver: str = "auto",
        n_init: int = 1,
        annealing: int = 0,
        max_iter: int = 500,
        tol: float = 1e-6,
        deflation: str = "hotelling",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        low_memory: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_rows = n_rows
        self.n_columns = n_columns
        self.row_penalty = row_penalty
        self.column_penalty = column_penalty
        self.row_graph = row_graph
        self.column_graph = column_graph
        self.row_smoothness = row_smoothness
        self.column_smoothness = column_smoothness
        self.smoothness_scale = smoothness_scale
        self.graph_term = graph_term
        self.signs = signs
        self.center = center
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.n_init = n_init
        self.annealing = annealing
        self.max_iter = max_iter
        self.tol = tol
        self.deflation = deflation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.low_memory = low_memory

    # ------------------------------------------------------------------------------------------------------------
    # scikit-learn's verbs
    # ------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find modules in X (samples in rows, features in columns).

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or Dask array of shape (n_samples, n_features)
            Never written to. A sparse X is never made dense: centring and scaling are implicit. A Dask array (of
            dense or CSR blocks of rows) is never gathered: it is read block by block, by the workers of the present
            Dask client or by threads.
        y : ignored
        """
        for _ in self.iter_fit(X):
            pass
        return self

    def iter_fit(
        self, X: Any, known: Sequence[Module] = (), names: tuple[Sequence[Any], Sequence[Any]] | None = None
    ) -> Iterator[Module]:
        """Fit like `fit`, but hand out every module as soon as it is found, to be kept or shown.

        The estimator is fitted when the iteration has come to its end.

        Parameters
        ----------
        X : as for `fit`
        known : sequence of Module, optional
            The first modules of an earlier iteration over the same X with the same settings (`random_state` an
            integer). They are not sought again, nor handed out; the others come out the same, to the last bit.
        names : pair of sequences, optional
            Names of the rows and columns of an X that cannot carry them itself (a sparse matrix).

        Examples
        --------
        >>> import netbic
        >>> toy = netbic.simulate.paper(0.02, random_state=0)
        >>> model = netbic.SparseGraphSVD(2, n_rows=50, n_columns=50)
        >>> for number, module in enumerate(model.iter_fit(toy.X)):
        ...     print(number, module.u.support.size, module.v.support.size)
        0 50 50
        1 50 50
        """
        self._check_words()
        row_names, column_names = axis_names(X) if names is None else map(names_of_index, map(pd.Index, names))
        X = self._validated(X, reset=True)
        rows = self._axis("row", X.shape[0], row_names)
        columns = self._axis("column", X.shape[1], column_names)
        self.names_ = {"rows": row_names, "columns": column_names}
        settings = self._settings(X.dtype)
        with one_blas_thread(), X.released() if isinstance(X, RowBlocks) else nullcontext():
            operator, noise = self._operator(X)
            search = self._search(operator, rows, columns, settings, noise, known)
            modules: list[Module] = []
            for module in islice(search, self.n_components):
                modules.append(module)
                if len(modules) > len(known):
                    self._report(module, len(modules) - 1, X)
                    yield module
            self._store(operator, modules, X.dtype)
        if isinstance(X, RowBlocks):
            self.passes_ = X.passes
        for remark, category in remarks(modules, self.n_components, search.ended, rows, columns, settings):
            warnings.warn(remark, category, stacklevel=3)

    def prepared(self, X: Any) -> Prepared:
        """Validate, centre and scale X once, so that many models can look for modules in it (`modules_of`).

        It serves all models that agree with this one in `center`, `scale`, `missing`, `low_memory` and `clip`, and in
        whether their solver is "aisp".
        """
        made = clone(self)
        made._check_words()
        X = made._validated(X, reset=True)
        with one_blas_thread():
            operator, noise = made._operator(X)
            starts = Starts(operator, exact=self.solver == "aisp")
            if operator.squared_norm > 0:
                starts.leading(operator)  # every search begins with it, and finds it again at no cost
        return Prepared(operator, noise, made.preparation_, starts, X.dtype)

    def modules_of(self, prepared: Prepared) -> list[Module]:
        """The modules that `fit` would find; nothing is stored, and remarks are left out. One BLAS thread is advised.

        Examples
        --------
        >>> import netbic
        >>> toy = netbic.simulate.paper(0.02, random_state=0)
        >>> prepared = netbic.SparseGraphSVD().prepared(toy.X)
        >>> [netbic.SparseGraphSVD(1, n_columns=k).modules_of(prepared)[0].v.support.size for k in (20, 50)]
        [20, 50]
        """
        rows, columns = self.check(prepared.operator.shape)
        settings = self._settings(prepared.dtype)
        starts = prepared.starts.twin()
        search = self._search(prepared.operator, rows, columns, settings, prepared.noise, starts=starts)
        return list(islice(search, self.n_components))

    def transform(self, X: Any) -> NDArray[Any]:
        """Least-squares scores of samples on the modules' features: (X - mean) V'(VV')^+."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self.missing != "error" and not isinstance(X, RowBlocks) and has_holes(X):
            return observed_scores(self.preparation_.apply(X), self.components_)
        return self._projected(X, scoring(self.components_.astype(np.float64)))

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Rebuild samples from scores, in the units of the training data."""
        check_is_fitted(self)
        scores = np.asarray(checked(X, "scores"))
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(f"scores have shape {scores.shape}: (n_samples, {self.n_components_}) is needed")
        return self.preparation_.undo(scores @ self.components_)

    def score(self, X: Any, y: Any = None) -> float:
        """Share of the variance of X (prepared as the training data were) that the modules reconstruct."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self.missing != "error" and not isinstance(X, RowBlocks) and has_holes(X):
            prepared = self.preparation_.apply(X)
            residual = prepared - observed_scores(prepared, self.components_) @ self.components_
            total = float(np.nansum(np.square(prepared)))
            return 1 - float(np.nansum(np.square(residual))) / total if total > 0 else 0.0
        reached = self._projected(X, span(self.components_.astype(np.float64)))
        total = self.preparation_.operator(as_operator(X, low_memory=True)).squared_norm
        return float(np.sum(reached.astype(np.float64) ** 2)) / total if total > 0 else 0.0

    def _projected(self, X: Any, directions: NDArray[Any]) -> NDArray[Any]:
        """Products of prepared rows with some directions."""
        directions = directions.astype(X.dtype, copy=False)
        if not isinstance(X, RowBlocks):
            return self.preparation_.project(X, directions)
        products = X.stacked(self.preparation_.project, directions)
        if not np.isfinite(products).all():
            X.check_finite()
        return products

    def get_submatrix(self, i: int, data: Any) -> Any:
        """The entries of `data` in the rows and columns of module i; of a Dask array no others are read."""
        if not is_dask(data):
            return super().get_submatrix(i, checked(data))
        rows, columns = self.get_indices(i)
        return data[rows][:, columns].compute()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def clip(self) -> float | None:
        """Robust standard deviations beyond which entries of X are drawn in, if a penalty wants that."""
        limits = [asked.clip for asked in (self.row_penalty, self.column_penalty) if isinstance(asked, Penalty)]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _validated(self, X: Any, reset: bool) -> Any:
        refuse_anndata(X)
        if is_dask(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return RowBlocks(X, hold=reset)
        X = checked(X, missing=self.missing)
        try:
            finite: Any = True if self.missing == "error" else "allow-nan"
            keywords = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": finite}
            X = validate_data(self, X, reset=reset, **keywords)
        except ValueError as problem:
            if "contains NaN" not in str(problem) and "infinity" not in str(problem):
                raise
            what = str(problem).splitlines()[0]
            raise ValueError(f"{what} Drop such entries, or use missing='ignore' or 'impute' for NaN") from None
        if sp.issparse(X) and self.missing != "error" and has_holes(X):
            raise ValueError("X is sparse and contains NaN: drop those entries (missing values need a dense X)")
        return X

    # ------------------------------------------------------------------------------------------------------------
    # What was asked for
    # ------------------------------------------------------------------------------------------------------------

    def check(self, shape: tuple[int, int]) -> tuple[Axis, Axis]:
        """Raise unless these words can be used on a matrix of this shape (graphs by position); what they ask for."""
        self._check_words()
        return self._axis("row", shape[0], None), self._axis("column", shape[1], None)

    def _check_words(self) -> None:
        for name, known in (
            ("smoothness_scale", ("relative", "absolute")),
            ("graph_term", TERMS),
            ("signs", ("absolute", "signed")),
            ("center", CENTERS),
            ("scale", (False, True)),
            ("low_memory", (False, True)),
            ("missing", ("error", "ignore", "impute")),
            ("solver", SOLVERS),
            ("deflation", DEFLATIONS),
        ):
            value = getattr(self, name)
            value = bool(value) if isinstance(value, np.bool_) else value
            if not any(value is word or (isinstance(value, str) and value == word) for word in known):
                raise ValueError(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, known))}")
        for name in ("n_components", "n_init", "max_iter"):
            check_count(name, getattr(self, name))
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or not self.n_jobs):
            raise ValueError(
                f"n_jobs={self.n_jobs!r}: a number of threads is needed, or -1 for all cores (a Dask array is read by "
                "the present Dask client's workers without being asked)"
            )
        if not isinstance(self.annealing, Integral) or isinstance(self.annealing, bool) or self.annealing < 0:
            raise ValueError(f"annealing={self.annealing!r}: an integer of at least 0 is needed")
        if not is_number(self.tol) or not 0 <= self.tol < np.inf:
            raise ValueError(f"tol={self.tol!r}: a finite number of at least 0 is needed")

    def _axis(self, axis: str, size: int, names: NDArray[Any] | None) -> Axis:
        """Gather one axis' words: penalty, graph, smoothness."""
        penalty = self._penalty(axis, size)
        smoothness, term = self._graph_part(axis, size, names, penalty)
        return Axis(penalty, term, smoothness, self.smoothness_scale == "relative", self.signs == "signed")

    def _penalty(self, axis: str, size: int) -> Penalty:
        count, penalty = getattr(self, f"n_{axis}s"), getattr(self, f"{axis}_penalty")
        if count is not None and penalty is not None:
            raise ValueError(f"n_{axis}s={count!r} and {axis}_penalty={penalty!r} are both given: give one of them")
        if count is not None:
            check_count(f"n_{axis}s", count)
            if count > size:
                raise ValueError(f"n_{axis}s={count} but X has {size} {axis}s: choose 1 to {size}")
            return L0(int(count))
        if penalty is None:
            return Dense()
        if not isinstance(penalty, Penalty):
            raise TypeError(
                f"{axis}_penalty={penalty!r} is not a penalty: use e.g. netbic.L0(50) or netbic.L1Ball(3.0)"
            )
        penalty.check(size, axis)
        return penalty

    def _graph_part(
        self, axis: str, size: int, names: NDArray[Any] | None, penalty: Penalty
    ) -> tuple[float, GraphTerm | None]:
        smoothness, graph = getattr(self, f"{axis}_smoothness"), getattr(self, f"{axis}_graph")
        if graph is not None:
            penalty.check_graph(axis, smoothness, self.graph_term, self.signs)
        if smoothness is not None and not (is_number(smoothness) and 0 <= smoothness < np.inf):
            raise ValueError(f"{axis}_smoothness={smoothness!r}: a finite number of at least 0 is needed")
        if graph is None:
            if smoothness:
                raise ValueError(f"{axis}_smoothness={smoothness} needs a {axis}_graph: give one, or leave it at None")
            return 0.0, None
        relative = self.smoothness_scale == "relative" or penalty.chooses_size
        term = match(graph, size, names, axis).term(self.graph_term, relative=relative)
        if not np.isfinite(term.strengths).all():
            raise ValueError(
                f"weights of the {axis} graph add up to more than numbers can hold: rescale them, e.g. to at most 1, "
                "or use smoothness_scale='relative'"
            )
        if term.is_empty:
            warnings.warn(f"the {axis} graph has no edge between the {axis}s of X: it is ignored", stacklevel=5)
            return 0.0, None
        return DEFAULT_SMOOTHNESS if smoothness is None else float(smoothness), term

    def _settings(self, dtype: Any) -> Settings:
        seed = 0
        if self.n_init > 1 and isinstance(self.random_state, np.random.Generator):
            seed = int(self.random_state.integers(2**31 - 1))
        elif self.n_init > 1:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        tol = self.tol if dtype == np.float64 else max(self.tol, 1e-5)  # products carry six digits
        # The words are plain strings to mypy; _check_words has made sure that they are the known ones.
        words: Any = (self.solver, self.n_init, self.max_iter, tol, self.deflation, seed, self.n_jobs, self.annealing)
        return Settings(*words)

    def _operator(self, X: Any) -> tuple[Corrected, float]:
        """The prepared matrix, and the size of what rounding alone can leave of it."""
        preparing = Preparing(self.center, self.scale, self.missing, self.clip, self.low_memory)
        operator, noise, self.preparation_ = preparing.of(X)
        return operator, noise

    # ------------------------------------------------------------------------------------------------------------
    # What was found
    # ------------------------------------------------------------------------------------------------------------

    def _report(self, module: Module, number: int, X: Any) -> None:
        if self.verbose:
            passes = f", {X.passes:.1f} passes so far" if isinstance(X, RowBlocks) else ""
            print(f"module {number}: d = {module.d:.6g}, {len(module.objectives)} rounds, {module.outcome}{passes}")

    def _store(self, operator: Corrected, modules: list[Module], dtype: Any) -> None:
        n, p = operator.shape
        left = np.array([module.u.full() for module in modules]).reshape(len(modules), n)
        right = np.array([module.v.full() for module in modules]).reshape(len(modules), p)
        self.n_components_ = len(modules)
        self.left_vectors_ = np.ascontiguousarray(left.T, dtype=dtype)
        self.components_ = right.astype(dtype)
        self.singular_values_ = np.array([module.d for module in modules], dtype=dtype)
        self.rows_, self.columns_ = left != 0, right != 0
        self.objectives_ = [module.objectives for module in modules]
        self.n_iter_ = max([1, *map(len, self.objectives_)])
        self.converged_ = np.array([module.outcome == "converged" for module in modules], dtype=bool)
        self.graph_share_ = np.array([module.graph_share for module in modules])
        self.store_choices([module.u.choice for module in modules], [module.v.choice for module in modules])
        products = operator.products([(module.v.support, module.v.values) for module in modules])
        self.explained_variance_ratio_ = explained(right, products) / max(operator.squared_norm, np.finfo(float).tiny)

    def store_choices(self, rows: Sequence[Choice | None], columns: Sequence[Choice | None]) -> None:
        """Set `choices_` and `posteriors_` from what was chosen for every module."""
        made = {"rows": [c for c in rows if c is not None], "columns": [c for c in columns if c is not None]}
        sizes = {"rows": self.rows_.sum(axis=1).tolist(), "columns": self.columns_.sum(axis=1).tolist()}
        tables = [choices_table(axis, sizes[axis], choices) for axis, choices in made.items() if choices]
        self.posteriors_ = {
            axis: np.array([choice.posterior for choice in choices]) if choices else None
            for axis, choices in made.items()
        }
        self.choices_ = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=CHOSEN)
