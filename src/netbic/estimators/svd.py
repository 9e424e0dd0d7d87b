"""SparseGraphSVD: validate, delegate to the solver, store."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, BiclusterMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Bools, Floats
from netbic.estimators.covariates import CovariateCoding, store_covariates
from netbic.estimators.diffusion import apply_smoother, smoother_of
from netbic.estimators.inputs import (
    Scaled,
    axis_names,
    is_mostly_zero,
    names_of_index,
    one_blas_thread,
    scale_data,
    validated,
)
from netbic.estimators.parameters import build_axis, check_parameters, iteration_settings
from netbic.estimators.prediction import Prediction
from netbic.estimators.results import chosen_groups, recurrence, store_modules
from netbic.estimators.studies import StudyInput, StudyScaling, as_matrix, studies_table, study_input, study_numbers
from netbic.graph import Graph
from netbic.operators.blocks import passes, released
from netbic.operators.corrected import Corrected, Scaler
from netbic.penalties import Dense, Penalty
from netbic.solver.count import Count, JointSearch
from netbic.solver.half_step import Vector
from netbic.solver.joint import Subspace, joint_vectors
from netbic.solver.search import Axis, Module, ModuleSearch, diagnostics, matrix_words
from netbic.solver.solve import Settings, usable_solver
from netbic.solver.starts import Starts

Names = Sequence[Any]
_SEQUENTIAL = 10  # modules of a sequential search by default
_SCALE, _SCALE_OF_COUNTS = 0.5, 0.8  # powers of the standard deviations by which a joint search divides


class SearchInput(NamedTuple):
    """A validated, centred and scaled matrix that many models can search for modules."""

    operator: Corrected
    noise: float  # the norm that rounding errors alone can reach
    scaler: Scaler
    starts: Starts | None  # of a sequential search
    dtype: DTypeLike
    coding: CovariateCoding | None = None
    design: Floats | None = None  # the covariates of the rows
    diffusion: float = 0.0  # the weight by which the matrix was smoothed


# scikit-learn has no types: mypy cannot check its base classes.
class SparseGraphSVD(Prediction, BiclusterMixin, BaseEstimator):  # type: ignore[misc]
    """Modules: sparse sets of features with a score for every sample, their sizes and their number from the data.

    Sparse graph-regularized SVD. A module is a pair of unit vectors u (samples) and v (features); v is sparse, and u
    too if `n_rows` or `row_penalty` is given. With a graph term M, which rewards edges between selected features (or,
    as a Laplacian, penalises differences across edges), the modules maximise ::

        sum over modules of  u'Xv + (s/2) |v|'M|v| - penalty,

    all together, with orthonormal scores u in the leading subspace of X (`search`), or, as in the paper, one after
    another.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of modules to search for. "auto": as many as are found again in halves of the samples (`count_`); ten for
        a sequential search. There is a warning if fewer are found.
    n_rows, n_columns : int, optional
        Number of samples / features of each module (the L0 penalty). None: all samples; for each module, the features
        that stand out from the others (`BeyondBulk`).
    row_penalty, column_penalty : Penalty, optional
        A penalty object instead of a number: `netbic.L0`, `L1`, `L1Ball`, `KeepSoft`, `SCAD`, `AdaptiveLasso`,
        `GroupL0` (gene sets), `BeyondBulk` (sizes from the data), or `Dense` (all features, as in PCA).
    row_graph, column_graph : Graph, sparse or dense array, networkx or igraph graph, or edge DataFrame, optional
        Prior graph of the samples / features. Matched by name if both X and the graph have names, else by position.
    row_smoothness, column_smoothness : float, optional
        Weight of the graph. If a graph is given, None means 0.6 (0.2 unless `smoothness_scale="module"`); otherwise 0.
    smoothness_scale : {"module", "relative", "absolute"}, default="module"
        "module": in units of the d of the module without the graph (and of the scale of the graph term). With a
        smoothness of s < 1, the graph multiplies the weight that the data give to a group of features without edges
        to other features of the module by at most 1 / (1 - s). It is reduced further for a module if one of its 20
        leading features would not be among the first 60 by the data alone; in a joint search, among twice as many as
        the module has, but at most 200, if that is more.
        "relative": in units of the leading singular value of the residual of X, which can be far larger than the d of
        a sparse module. Sensible values are between 0 and about 0.2.
        "absolute": sigma as in the paper.
    graph_term : {"modularity", "normalized", "adjacency", "laplacian", "normalized_laplacian"}, default="modularity"
        M = D_t^-1/2 (A - dd'/2m) D_t^-1/2 with D_t = D + tau I (more neighbours than the degrees d lead to expect are
        rewarded), D^-1/2 A D^-1/2, A, -L or minus the normalised Laplacian.
    diffusion : float or "cv", optional
        Smooth the data over the column graph before the search: the centred and scaled X becomes
        (1 - a) X (I - aM)^-1, M = D^-1/2 A D^-1/2, where a is this number, at least 0 and below 1. Neighbours should be
        positively correlated (`netbic.graph.coexpression`). "cv": chosen by repeated three-fold cross-validation among
        0, 0.1, 0.3, 0.5, 0.7 and 0.9; 0 unless modules then explain 20% (and two standard errors) more variance of
        samples that were left out. The search itself uses the graph only if `column_smoothness` is given.
    signs : {"absolute", "signed"}, default="absolute"
        Whether the graph term uses magnitudes (sgSVD*) or signed entries (sgSVD); with edges that inhibit
        (`Graph.is_signed`) it always uses signed entries.
    center : {"columns", "rows", "both", "grand", None}, default="columns"
    scale : bool or float, optional
        Divide columns by their standard deviation (True), or by a power of it from 0 (False) to 1. None: 0.5 for a
        joint search, or 0.8 if most entries of X are zero (as in single cells, where the standard deviation of a gene
        follows its mean); 0 for a sequential search.
    missing : {"error", "ignore", "impute"}, default="error"
        Treatment of missing entries (NaN). "ignore": only observed entries are used (as in PMD, missing entries are set
        to the mean of the observed ones). "impute": missing entries are filled with the prediction of the module (of
        the leading subspace in a joint search), repeatedly, until convergence.
    solver : {"auto", "aisp", "monotone"}, default="auto"
        "aisp" is the paper's iteration, which may cycle; "monotone" never decreases the objective but hardly leaves its
        first supports; "auto" uses the paper's step if it does not decrease the objective, and a safe one otherwise.
    n_init : int, optional
        Starts per module: the leading singular pair, then random ones. The one with the largest objective is kept.
        None: 1, or 2 for a joint search (principal directions, and those of features that differ most).
    max_iter : int, default=500
        Maximal number of iterations per start (ten times as many if a sequential search imputes missing entries). A
        joint search counts them after its first rounds.
    tol : float, default=1e-6
        A module has converged when both vectors and the objective change by at most this much (relative) in an
        iteration (at least 1e-5 for float32 data); a joint search, when the objective does and no support changes.
    search : {"auto", "joint", "sequential"}, default="auto"
        "joint": all modules together, with orthonormal scores in the leading subspace of X, so that modules do not
        depend on an order. All samples are kept. Then d = |Xv| is that of the centred and scaled X, `left_vectors_` are
        the scores Xv / d, the strongest module is the first, and `objectives_` are those of all modules together.
        "sequential": one module after another, each in what the earlier ones leave of X. "auto": joint, unless a
        parameter asks for the sequential search: `n_rows`, `row_penalty`, `row_graph`, `deflation`, `solver="aisp"` or
        `column_penalty=Dense()`.
    deflation : {"hotelling", "projection", "schur"}, optional
        How a sequential search subtracts a module from X: X - d uv' ("hotelling", the default), (I - uu')X(I - vv')
        ("projection") or X - (Xv)(X'u)'/d ("schur").
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random starts, if `n_init` asks for any.
    n_jobs : int, optional
        Threads over the starts of a sequential search, and over the weights of `diffusion="cv"`. The result does not
        depend on it.
    verbose : int, default=0
        Print a line per module if positive.
    low_memory : bool, default=False
        Keep a dense X in one memory order instead of both: needs half of the memory of X in addition to X, and about
        1.3 times the time.

    Attributes
    ----------
    left_vectors_ : ndarray of shape (n_samples, n_components_)
    components_ : ndarray of shape (n_components_, n_features)
    singular_values_ : ndarray of shape (n_components_,)
        d = u'Xv on the matrix in which the module was found; never negative.
    rows_, columns_ : bool ndarrays of shapes (n_components_, n_samples) and (n_components_, n_features)
        Which samples and features belong to each module (`get_indices`, `get_shape` and `get_submatrix` read them). If
        all samples are kept, `rows_` is True: use `selection.sample_groups` to find groups of samples.
    sparsity_ : ndarray of shape (n_components_,)
        The share of features that are not in each module: 0.98 if it has 2% of them.
    n_components_ : int
        Number of modules found; smaller than `n_components` if X is exhausted (arrays are not padded).
    objectives_ : list of ndarray
        The objective F after every iteration, per module (of the best start). A joint search has one F; if sizes come
        from the data, it is that of the search, in which modules have their largest weights only.
    n_iter_ : int
        Largest number of iterations of a module; `len(objectives_[k])` is that of module k.
    converged_ : bool ndarray of shape (n_components_,)
    graph_share_ : ndarray of shape (n_components_,)
        Share of the graph in the scores of the kept entries (the larger one of both axes). Above 0.3 a warning
        is issued, unless the weight of the graph is bounded (`smoothness_scale="module"` and a smoothness below 1).
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Increase, by each module, of the share of variance explained by the features' vectors (adjusted for modules that
        are not orthogonal). If entries are missing, of the matrix with these entries filled; never of smoothed data.
    diagnostics_ : DataFrame
        What may be wrong with a module, a row per `module` (their numbers count from 1): `graph_weight` (sigma times
        the largest eigenvalue of the graph term, relative to d (of W in a joint search); from 1 on the graph alone can
        carry a set of features), `worst_rank` (worst rank, by the data alone, of its 20 leading features),
        `by_data_alone` (share of its features that the data alone would choose), `standing_out` (how many features
        stand out, if the sizes come from the data), `recurrent` (how many of its ten leading features are among those
        of half of the modules or more), `closest` (the earlier module with the most
        similar scores), their `correlation`, `feature_overlap` and `sample_overlap` (Jaccard index; NaN if both keep
        all samples), and `repeats` (the same module, if the absolute correlation is at least 0.9).
    groups_ : DataFrame
        The groups that `GroupL0` kept: `module`, `axis`, `group` (its name),
        `size` (entries of X in it) and `share` of the squared weights of the module. Empty for other penalties.
    diffusion_ : float
        The weight a of the diffusion; 0 if the data were not smoothed.
    diffusion_scores_ : DataFrame or None
        For `diffusion="cv"`: the mean `score` of each weight over the folds, and `gain_error`, the standard error of
        its difference from no diffusion (NaN if the first fold was enough to reject it). None otherwise, and for a
        model that was loaded.
    passes_ : float or None
        For a Dask array, how often it was read: blocks read, in units of all blocks. None for data in memory, and for a
        model that was loaded.
    count_ : Count or None
        For `n_components="auto"`: the number of `directions` beyond noise, how many modules were `searched` for in
        halves, and how many were `found_again` in each of three random splits, of which the mean is taken.
    names_ : dict
        Names of the "rows" and "columns" of X, None if it has none.
    graphs_ : dict
        Graphs of the "rows" and "columns", with a node for each of them; None if none was given.
    scale_ : float
        The power of the standard deviations by which columns were divided, if `scale` is None.
    scaler_ : Scaler
        The offsets and factors by which X was centred and scaled.
    covariates_ : DataFrame or None
        The covariates of the fit as a design matrix: a row per sample, a column per number and per level of a category
        (without the first level, the constant and the redundant ones), of mean zero; numbers are standardised. None
        without covariates.
    covariate_effects_ : DataFrame or None
        Their least-squares coefficients in every feature, a row per column of `covariates_`: of numbers, which are
        standardised there, per standard deviation.
    covariate_coding_ : CovariateCoding or None
        How covariates of new samples are encoded.
    studies_ : DataFrame or None
        For several studies: a row per module and study with `n_samples`, `d` (|X_s v| of the centred, scaled and
        weighted study s), `share` of the variance of the study, `ratio` (how many times as much as random features
        those of the module move together there), `z` (the same in standard deviations of random sets) and whether the
        module `lives_here` (z of at least 2, and a quarter of the excess in the study in which it is most). The columns
        of `covariates_` then include indicators of the studies.
    study_labels_, study_scaling_ : array of str, StudyScaling; or None
        The study of each sample, and how each study was scaled.
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

    left_vectors_: Array
    components_: Array
    singular_values_: Array
    rows_: Bools
    columns_: Bools
    n_components_: int
    n_iter_: int
    converged_: Bools
    objectives_: list[Floats]
    graph_share_: Floats
    diagnostics_: pd.DataFrame
    explained_variance_ratio_: Floats
    groups_: pd.DataFrame
    names_: dict[str, Array | None]
    graphs_: dict[str, Graph | None]
    scaler_: Scaler
    covariates_: pd.DataFrame | None = None
    covariate_coding_: CovariateCoding | None = None
    studies_: pd.DataFrame | None = None
    study_labels_: Array | None = None
    study_scaling_: StudyScaling | None = None
    diffusion_: float = 0.0
    scale_: float = _SCALE  # the power by which columns were divided, if `scale` is None
    diffusion_scores_: pd.DataFrame | None = None
    count_: Count | None = None  # None if the number was given
    passes_: float | None = None  # for models that were loaded, or not fitted to a Dask array

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        n_rows: int | None = None,
        n_columns: int | None = None,
        row_penalty: Penalty | None = None,
        column_penalty: Penalty | None = None,
        row_graph: Any = None,
        column_graph: Any = None,
        row_smoothness: float | None = None,
        column_smoothness: float | None = None,
        smoothness_scale: str = "module",
        graph_term: str = "modularity",
        diffusion: float | str | None = None,
        signs: str = "absolute",
        center: str | None = "columns",
        scale: float | None = None,
        missing: str = "error",
        solver: str = "auto",
        n_init: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        search: str = "auto",
        deflation: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        low_memory: bool = False,
    ) -> None:
        self.n_components, self.n_rows, self.n_columns = n_components, n_rows, n_columns
        self.row_penalty, self.column_penalty = row_penalty, column_penalty
        self.row_graph, self.column_graph = row_graph, column_graph
        self.row_smoothness, self.column_smoothness = row_smoothness, column_smoothness
        self.smoothness_scale, self.graph_term, self.diffusion = smoothness_scale, graph_term, diffusion
        self.signs, self.center, self.scale, self.missing = signs, center, scale, missing
        self.solver, self.n_init = solver, n_init
        self.max_iter, self.tol, self.search, self.deflation = max_iter, tol, search, deflation
        self.random_state, self.n_jobs, self.verbose, self.low_memory = random_state, n_jobs, verbose, low_memory

    def fit(self, X: Any, y: object = None, *, covariates: Any = None, studies: Any = None) -> Self:
        """Find modules in X (samples in rows, features in columns).

        Parameters
        ----------
        X : array, DataFrame, sparse matrix, Dask array or DataOperator of shape (n_samples, n_features), or dict
            It is not modified. A sparse X is never made dense: centring and scaling are implicit. A Dask array (of
            dense or CSR blocks of rows) is never loaded as a whole: it is read block by block, by the workers of the
            current Dask client or by threads. A dict of matrices contains several studies, as for `stack_studies`.
        y : ignored
        covariates : DataFrame, or array of numbers of shape (n_samples, n_covariates), optional
            Batches, age and so on, whose (linear) effects are removed from every column of X before anything else; see
            the page "Batches and covariates". Text and categories are groups, numbers are used as numbers. Rows are
            matched by name if both X and the table have names, else by position.
        studies : array, Series or table of one column, optional
            The study of each sample, matched by name as `covariates` are. Each study is centred (and scaled) by itself,
            without the effects of covariates within it, and weighted so that all have the same total variance; see the
            page "Several studies".
        """
        for _ in self.iter_fit(X, covariates=covariates, studies=studies):
            pass
        return self

    def iter_fit(
        self,
        X: Any,
        known: Sequence[Module] = (),
        names: tuple[Names, Names] | None = None,
        *,
        covariates: Any = None,
        studies: Any = None,
        feature_name: str = "feature",
        sample_name: str = "sample",
    ) -> Iterator[Module]:
        """Fit like `fit`, but yield every module as soon as it is found.

        The estimator is fitted at the end of the iteration.

        Parameters
        ----------
        X : as for `fit`
        known : sequence of Module, optional
            The first modules of an earlier iteration over the same X with the same parameters (`random_state` an
            integer). They are neither searched for again nor yielded; the others are bit-identical. A joint search
            finds all again unless all are given.
        names : pair of sequences, optional
            Names of the rows and columns of an X without names (such as a sparse matrix).
        covariates, studies : as for `fit`
        feature_name, sample_name : str
            What warnings call a column and a row of X, such as "gene" and "cell".

        Examples
        --------
        >>> import netbic
        >>> toy = netbic.simulate.paper(0.02, random_state=0)
        >>> model = netbic.SparseGraphSVD(2, n_rows=50, n_columns=50)
        >>> [module.v.support.size for module in model.iter_fit(toy.X)]
        [50, 50]
        """
        # A plain fit does not enter the files of studies, covariates and diffusion: a debugger stays in few files.
        if isinstance(X, Mapping):
            X, studies = as_matrix(X, studies)
        check_parameters(self)
        row_names, column_names = axis_names(X) if names is None else map(names_of_index, map(pd.Index, names))
        X = validated(self, X, reset=True)
        self.scaled_for(X)
        settings = self._settings(X.dtype)
        rows, row_graph = self._axis("row", X.shape[0], row_names)
        columns, column_graph = self._axis("column", X.shape[1], column_names)
        given = StudyInput(X)
        if studies is not None or covariates is not None:
            given = study_input(self, X, studies, covariates, row_names)
        with one_blas_thread(), released(X):
            operator, noise, scaler = self._scaled(given)
            by, diffusion_scores, searched = None, None, operator
            if self.diffusion is not None:
                by, diffusion_scores = smoother_of(self, operator, given.X, column_graph)
                searched = apply_smoother(operator, by, self.low_memory)
            search = self._search(searched, rows, columns, settings, noise, known, counted=operator)
            modules = list[Module]()
            for module in islice(search, self._n_wanted):
                modules.append(module)
                if len(modules) > len(known):
                    if self.verbose:
                        done = f", {passes(X):.1f} passes so far" if passes(X) is not None else ""
                        how = f"{len(module.objectives)} iterations, {module.outcome}{done}"
                        print(f"module {len(modules)}: d = {module.d:.6g}, {how}")
                    yield module
            store_modules(self, searched, modules, X.dtype, operator)
            self.study_scaling_, self.study_labels_, self.studies_ = given.scaling, given.labels, None
            if given.scaling is not None:
                numbers = given.scaling.numbers(given.labels)
                found = study_numbers(operator, self.components_, numbers, len(given.scaling.names))
                self.studies_ = studies_table(self, given.scaling, found)
        self.groups_ = chosen_groups(modules, rows.penalty, columns.penalty)
        self.diffusion_, self.diffusion_scores_ = 0.0 if by is None else by.weight, diffusion_scores
        self.names_ = {"rows": row_names, "columns": column_names}
        self.graphs_ = {"rows": row_graph, "columns": column_graph}
        self.scaler_, self.passes_, self.count_ = scaler, passes(X), search.count
        self.covariate_coding_, self.covariates_ = None, None
        if given.coding is not None:
            store_covariates(self, given.coding, given.design, X.shape[0])
        if self.count_ is not None and not self.count_.n and modules:
            halves = f"halves of the {sample_name}s"
            warnings.warn(f"no module is found again in {halves}: only the strongest is kept", stacklevel=3)
        n_asked = self._n_wanted or (1 if search.count is None else max(search.count.n, 1))
        words = matrix_words(feature_name, sample_name)
        for message, category in diagnostics(modules, n_asked, search.ended, rows, columns, settings, words):
            warnings.warn(message, category, stacklevel=3)
        # In a dense fit every feature is in every module, so that recurrence says nothing about the graph.
        selects = columns.term is not None and not isinstance(columns.penalty, Dense)
        recurs = selects and self.diagnostics_["recurrent"].any()
        if recurs and (recurrent := recurrence(self.components_, column_names, feature_name)):
            warnings.warn(recurrent, stacklevel=3)

    def prepared(self, X: Any, covariates: Any = None, studies: Any = None) -> SearchInput:
        """Validate, centre and scale X once, as the input of searches by many models (`modules_of`).

        It can be used by all models with the same `center`, `scale` (None depends on the search), `missing`,
        `low_memory` and `diffusion` (and column graph, if the data are smoothed) as this one, and with `solver="aisp"`
        if and only if this one has it.
        """
        X, studies = as_matrix(X, studies)
        made, (row_names, column_names) = clone(self), axis_names(X)
        check_parameters(made)
        X = validated(made, X, reset=True)
        given = study_input(made.scaled_for(X), X, studies, covariates, row_names)
        with one_blas_thread():
            operator, noise, scaler = made._scaled(given)
            by = None
            if self.diffusion is not None:
                _, graph = self._axis("column", given.X.shape[1], column_names)
                by, _ = smoother_of(made, operator, given.X, graph)
                operator = apply_smoother(operator, by, self.low_memory)
            starts = None if self.is_joint else Starts(operator, exact=self.solver == "aisp")
            if starts is not None and operator.squared_norm > 0:
                starts.leading(operator)  # computed once for all searches
        weight = 0.0 if by is None else by.weight
        return SearchInput(operator, noise, scaler, starts, given.X.dtype, given.coding, given.design, weight)

    def modules_of(self, prepared: SearchInput) -> list[Module]:
        """The modules that `fit` would find; nothing is stored, and there are no warnings. One BLAS thread is advised.

        Names are not known here: graphs are matched to the rows and columns by position, where `fit` matches by name.

        Examples
        --------
        >>> import netbic
        >>> toy = netbic.simulate.paper(0.02, random_state=0)
        >>> prepared = netbic.SparseGraphSVD().prepared(toy.X)
        >>> [netbic.SparseGraphSVD(1, n_columns=k).modules_of(prepared)[0].v.support.size for k in (20, 50)]
        [20, 50]
        """
        rows, columns = self.check(prepared.operator.shape)
        settings, starts = self._settings(prepared.dtype), None if prepared.starts is None else prepared.starts.copy()
        search = self._search(prepared.operator, rows, columns, settings, prepared.noise, starts=starts)
        return list(islice(search, self._n_wanted))

    def vectors_in(self, space: Subspace, shape: tuple[int, int], squared_norm: float) -> list[Vector]:
        """The vectors v of a joint search in the leading subspace of a matrix; otherwise like `modules_of`."""
        rows, columns = self.check(shape)
        settings = _of_joint_search(self._settings(space.right.dtype), rows, columns)
        asked = columns.side(float(space.values[0]), squared_norm, shape[0] * shape[1])
        return joint_vectors(space, asked, int(self.n_components), settings)

    def check(
        self, shape: tuple[int, int], names: tuple[Array | None, Array | None] = (None, None)
    ) -> tuple[Axis, Axis]:
        """Check the parameters for a matrix of this shape (without names, by position); options of both axes."""
        check_parameters(self)
        return self._axis("row", shape[0], names[0])[0], self._axis("column", shape[1], names[1])[0]

    def _axis(self, axis: str, size: int, names: Array | None) -> tuple[Axis, Graph | None]:
        default = 0.0 if axis == "column" and self.diffusion is not None else None  # the graph smooths the data instead
        return build_axis(self, axis, size, names, default=default)

    @property
    def is_joint(self) -> bool:
        """Whether modules are searched for together."""
        if self.search != "auto":
            return bool(self.search == "joint")
        of_sequential = self.n_rows, self.row_penalty, self.row_graph, self.deflation
        asked = self.solver == "aisp" or any(value is not None for value in of_sequential)
        return not (asked or isinstance(self.column_penalty, Dense))

    @property
    def scale_power(self) -> float:
        """The power of their standard deviation by which columns are divided; of a fitted model, were divided."""
        if self.scale is None:
            return self.scale_ if self.is_joint else 0.0
        return float(self.scale)

    def scaled_for(self, X: Any) -> Self:
        """The model itself, with the `scale_` that X suggests."""
        if self.scale is None and self.is_joint:
            self.scale_ = _SCALE_OF_COUNTS if is_mostly_zero(X) else _SCALE
        return self

    @property
    def n_starts(self) -> int:
        """The number of starts."""
        return self.n_init if self.n_init is not None else 2 if self.is_joint else 1

    @property
    def _n_wanted(self) -> int | None:
        """The number of modules that was asked for; None if it comes from the data."""
        if isinstance(self.n_components, str):
            return None if self.is_joint else _SEQUENTIAL
        return int(self.n_components)

    def _search(
        self,
        operator: Corrected,
        rows: Axis,
        columns: Axis,
        settings: Settings,
        noise: float,
        known: Sequence[Module] = (),
        starts: Starts | None = None,
        counted: Corrected | None = None,
    ) -> ModuleSearch | JointSearch:
        if self.is_joint:
            settings = _of_joint_search(settings, rows, columns)
            return JointSearch(operator, columns, settings, noise, self._n_wanted, known, counted)
        return ModuleSearch(operator, rows, columns, settings, noise, known, starts)

    def _scaled(self, given: StudyInput) -> Scaled:
        scale = 0.0 if given.scaling is not None else self.scale_power  # studies are scaled one by one
        # A joint search needs few products with X: the rows are enough.
        options: dict[str, Any] = {"missing": self.missing, "low_memory": self.low_memory or self.is_joint}
        return scale_data(given.X, given.design, center=self.center, scale=scale, **options)

    def _settings(self, dtype: DTypeLike) -> Settings:
        deflation: Any = self.deflation or "hotelling"  # check_parameters has verified that it is known
        return replace(iteration_settings(self, dtype), deflation=deflation)

    @property
    def sparsity_(self) -> Floats:
        """The share of features that are not in each module."""
        check_is_fitted(self)
        return np.asarray(1 - self.columns_.mean(axis=1))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")  # not before all modules are found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def _of_joint_search(settings: Settings, rows: Axis, columns: Axis) -> Settings:
    """The options of a joint search: with sizes from the data, a penalty with an objective takes its place."""
    if columns.penalty.sizes_from_data:
        return settings
    return replace(settings, solver=usable_solver(settings.solver, rows.penalty, columns.penalty))


def unwrapped(model: object) -> SparseGraphSVD:
    """The model itself, or the best one of a search (`Tuning`, or one of scikit-learn)."""
    found = getattr(model, "best_estimator_", model)
    if isinstance(found, SparseGraphSVD):
        return found
    raise TypeError(
        f"model={type(model).__name__}: a SparseGraphSVD is needed, or a fitted search such as GridSearchCV that has "
        "one as best_estimator_"
    )


def fitted_model(model: object) -> SparseGraphSVD:
    """The same, and fitted."""
    found = unwrapped(model)
    check_is_fitted(found)
    return found


def is_model(thing: object) -> bool:
    """Whether this is a model or a fitted search for one (and not a list of modules)."""
    return isinstance(getattr(thing, "best_estimator_", thing), SparseGraphSVD)
