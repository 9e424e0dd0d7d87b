"""Associations of modules with what is known about the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.association import tests
from netbic.association.batches import batch_effects, removed_design
from netbic.association.one_variable import all_tests
from netbic.association.survival import find_survival, mixed_endpoints
from netbic.association.tests import Residuals
from netbic.association.variables import (
    CATEGORICAL,
    LEFT_OUT,
    ORDERED,
    SURVIVAL,
    Averages,
    SampleMatch,
    Survival,
    Types,
    Variable,
    check_table,
    guess,
    listed_names,
    match_samples,
    read_variables,
    repeated_measures,
    survival_pairs,
    variable_line,
)
from netbic.association.words import (
    LEVEL,
    UNADJUSTED,
    Words,
    batch_notes,
    in_words,
    is_survival,
    says_batch_or_unit,
    strongest,
    strongest_found,
    unit_of,
)
from netbic.enrichment import adjust_p_values
from netbic.errors import InputError, one_line, shown, some_names
from netbic.estimators.inputs import axis_names
from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.results import names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.selection import SampleGroups

_COLUMNS = ["module", "variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p"]
_SMALL: Final = 0.05  # share of the degrees of freedom whose loss hardly changes a p-value: 0.05 becomes 0.056


@dataclass(frozen=True, repr=False)
class Associations:
    """Associations of modules with variables.

    Attributes
    ----------
    table : DataFrame
        A row per module, variable, level and test: `module`, `variable`, `level` ("" for the whole variable), `test`,
        `n` (samples), `effect`, `effect_name`, `ci_low`, `ci_high` (95 % confidence interval of the effect of scores
        with the weights of the fit, NaN if there is none), `p`, `q` (adjusted for all modules and levels of the same
        test of the same variable, by Benjamini and Hochberg; both sides of Fisher's test count together), `q_all`
        (adjusted for all tests of the table).
    variables : DataFrame
        A row per column of the sample table: `name`, `type`, `reason`, `levels`, `n_levels`, `n`, `missing`.
    match : SampleMatch
        Which samples were found in the table; `match.table` is the table of all samples, in their order.
    adjusted_for : tuple of str
        Covariates.
    notes : tuple of str
        What else should be known.
    survival : tuple of (str, str)
        Columns with times and events.
    by : tuple of str
        Columns; averages of samples with the same values of them were tested.
    levels : dict
        The levels of each variable that has some, in their order.
    of_batches : tuple of str
        Those of the notes that say which modules follow a batch or a donor, and how many features differ between them.
    not_averaged : tuple of str
        Columns that could not be tested because they differ among samples with the same values of `by`.
    """

    table: pd.DataFrame
    variables: pd.DataFrame
    match: SampleMatch = field(repr=False)
    adjusted_for: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    survival: tuple[tuple[str, str], ...] = ()
    by: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    of_batches: tuple[str, ...] = ()
    not_averaged: tuple[str, ...] = ()

    def noting(self, batches: Iterable[str]) -> Associations:
        """The same with further notes about batches."""
        batches = tuple(batches)
        return replace(self, notes=(*self.notes, *batches), of_batches=(*self.of_batches, *batches))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, verdicts: Words | None = None) -> Iterator[str]:
        """The summary as lines of text: matching, variables, and the strongest associations of each variable."""
        yield from self.match.lines()
        yield from (one_line(variable_line(record)) for record in self.variables.to_dict("records"))
        yield from self.findings(verdicts)

    def findings(self, verdicts: Words | None = None) -> Iterator[str]:
        """The notes and the strongest associations of each variable as lines of text.

        With verdicts (by the number of the module), doubtful modules are marked, and listed after others.
        """
        if self.adjusted_for:
            not_tested = "; groups of samples are not tested" if "module" in self.table else ""
            yield f"adjusted for {', '.join(self.adjusted_for)}{not_tested}"
        yield from map(one_line, self.notes)
        every = strongest_found(self.table, verdicts)
        for name, own in strongest(self.table, verdicts).groupby("variable", sort=False):
            found = every[every["variable"] == name]
            for row in found.to_dict("records"):
                yield one_line(f"{name}: {in_words(row, verdicts)}")
            if found.empty:
                best, further = in_words(own.iloc[0].to_dict(), verdicts), _log_rank_text(self.table, name, verdicts)
                none = f"no association{' in the Cox model' * bool(further)} (q <= {LEVEL})"
                if says_batch_or_unit(name):
                    none = f"no association with a {unit_of(self.table)} (q <= {LEVEL})"
                    none += ", but single features can still differ"
                yield one_line(f"{name}: {none}; the strongest: {best}{further}")
        if not self.adjusted_for and is_survival(self.table).any():
            yield UNADJUSTED


def _log_rank_text(table: pd.DataFrame, name: object, verdicts: Words | None) -> str:
    """The strongest difference in survival between two groups of samples, if it is significant; otherwise ""."""
    tests = table[(table["variable"] == name) & table["test"].str.startswith("log-rank") & (table["q"] <= LEVEL)]
    best = tests.sort_values("q", kind="stable").head(1).to_dict("records")
    if not best:
        return ""
    test, _, groups = best[0]["test"].partition(", ")
    return f"; but by the {test} test{f' ({groups})' * bool(groups)} {in_words(best[0], verdicts)}"


def associate(
    model: Any,
    X: Any,
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
    within: str | None = None,
    covariates: Any = None,
) -> Associations:
    """Test which modules are associated with labels, numbers and survival times of the samples.

    The tests use the scores of the samples, Xv, and, if they form groups (`selection.sample_groups`), which samples
    are up or down.

    - Categories: Kruskal-Wallis test; for every level against the rest the Mann-Whitney test with the AUC; for groups
      the chi-squared test (with simulated p-values if expected counts are below 5) and, by level, Fisher's exact test
      with the odds ratio.
    - Numbers: Spearman and Pearson correlations. Ordered levels: the Spearman correlation.
    - Survival: score test of a Cox model with the hazard ratio per standard deviation of the scores; log-rank test of
      up against down, or of the halves of the samples ("median split") if there are no groups.

    Parameters
    ----------
    model : SparseGraphSVD or a fitted search such as GridSearchCV
    X : DataFrame or array of shape (n_samples, n_features)
        The data of the fit, or other samples of the same features.
    table : DataFrame
        A row per sample, matched by name: the index, or a column of names. If X has no names, rows are matched by
        their order.
    variables : str or list of str, optional
        Columns to test. Default: all that can be tested.
    types : dict, optional
        Types of columns: "categorical", "ordered", "numeric", or the list of levels in their order. Default: guessed
        from names and values; the `variables` of the result say how.
    survival : (str, str) or list of such pairs, optional
        The columns with the time and the event (1 seen, 0 not seen). Default: found by name (os_months and os_event,
        OS.time and OS, ...); "none" to leave these columns out.
    adjust : str or list of str, optional
        Columns that the tests are adjusted for: partial correlations, linear models and Cox models are used instead.
        Covariates that were removed in the fit are added if they took more than 5 % of the degrees of freedom (not
        with `by`).
    by : str or list of str, optional
        Columns such as "donor" of which samples with the same values belong together (cells of a donor, repeated
        measurements of a patient): the averages of their scores are tested. Numbers that differ in one average are
        averaged as well; other such columns are left out (named in `notes`), and so are samples of which a value of
        `by` is missing. Groups (up, down) are not tested.
    within : str, optional
        A column such as "cell_type": the same tests inside each of its levels. A variable is then called "disease
        within B cells", and the column `within` of the table has the level. A q-value counts the tests of the variable
        in all levels together. What cannot be tested in a level is in `notes`.
    covariates : as for `SparseGraphSVD.fit`, optional
        If the model was fitted with covariates, those of the samples in X: their effects are removed from X before the
        scores are computed. Not needed for the samples of the fit.

    Returns
    -------
    Associations

    Warns
    -----
    UserWarning
        If variables are the same in all samples of one donor, patient and the like, and there is no `by`.

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> labels = pd.DataFrame({"subtype": np.where(study.samples[0], "A", "B")}, index=study.expression.index)
    >>> found = netbic.associate(model, study.expression, labels)
    >>> found.table[found.table["test"] == "Mann-Whitney"][["level", "effect_name", "n"]].to_dict("records")
    [{'level': 'A', 'effect_name': 'AUC', 'n': 200}, {'level': 'B', 'effect_name': 'AUC', 'n': 200}]
    """
    names, own = axis_names(X)[0], check_table(table)
    if by_order := names is None:
        n_samples = np.shape(X)[0] if np.shape(X) else len(X)
        if len(table) != n_samples:
            raise InputError(
                f"X has no sample names and {n_samples:,} rows, but the sample table has {len(table):,}: give a "
                "DataFrame with the names of the samples as its index"
            )
        names, own = np.arange(n_samples), table.set_axis(range(n_samples))
    scores, groups = wide(SampleGroups.find(model, X, names=list(names), covariates=covariates).table)
    options: dict[str, Any] = {"variables": variables, "types": types, "survival": survival, "adjust": adjust}
    model = fitted_model(model)
    found = associate_scores(scores, groups, own, **options, by=by, within=within, removed=Removed.of(model))
    design = removed_design(model, X, covariates)
    found = found.noting(batch_effects(X, found.match.table, listed_names(variables), design=design))
    if not by_order:
        return found
    return replace(found, match=replace(found.match, table=found.match.table.set_axis(table.index)))


def associate_scores(
    scores: pd.DataFrame,
    groups: pd.DataFrame | None,
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
    within: str | None = None,
    removed: Removed | None = None,
    sample_name: str = "sample",
) -> Associations:
    r"""The same as `associate`, for scores that are known.

    Parameters
    ----------
    scores : DataFrame of shape (n_samples, n_modules)
        Its columns are the numbers of the modules, or have other names in the order of the modules (as in
        `netbic.get.scores_df`).
    groups : DataFrame of the same shape, optional
        "up", "down" or "" of each sample. Default: no groups.
    table, variables, types, survival, adjust, by, within : as for `associate`
    removed : Removed, optional
        The covariates that were removed in the fit.
    sample_name : str
        The word for a sample in notes, such as "cell".

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> samples = [f"s{k}" for k in range(8)]
    >>> scores = pd.DataFrame({1: np.arange(8.0)}, index=samples)
    >>> found = associate_scores(scores, None, pd.DataFrame({"sex": list("ffffmmmm")}, index=samples))
    >>> print(*found.lines(), sep="\n")
    sample table: 8 rows x 1 column
    matched: 8 of 8 samples (100%)
    sex: categorical (text with 2 different values): f, m
    sex: m is higher in module 1 (AUC 1.00, q = 0.03)
    """
    if not pd.api.types.is_integer_dtype(scores.columns) or 0 in scores.columns:  # positions, or other names
        scores = scores.set_axis(range(1, scores.shape[1] + 1), axis=1)
        groups = None if groups is None else groups.set_axis(scores.columns, axis=1)
    match, given, covariates = match_samples(scores.index, table), survival_pairs(survival), listed_names(adjust)
    described, studies, averages, notes = match.table, None, None, list[str]()
    if removed is not None and by is None:  # degrees of freedom of samples, not of their averages
        covariates, note = removed.adjustment(covariates, listed_names(variables), described.columns, len(scores))
        notes += [note] * bool(note)
    if within is not None:
        asked = {"variables": variables, "types": types, "survival": survival, "adjust": covariates, "by": by}
        from netbic.association.within import associate_within  # it repeats this function

        found = associate_within(scores, groups, match, within, asked, sample_name)
        return replace(found, notes=(*notes, *found.notes))
    if by is not None:
        needed, of_cells = [*listed_names(variables), *covariates], (scores, described)
        averages = Averages.of(
            described, listed_names(by), needed, types=types, survival=given, sample_name=sample_name
        )
        scores, groups, described = averages.of_scores(scores), None, averages.table
    if removed is not None and removed.studies is not None and described.index.isin(removed.studies.index).all():
        studies = removed.studies[~removed.studies.index.duplicated()].reindex(described.index)
    chosen = read_variables(
        described, variables=variables, types=types, survival=survival, adjust=covariates, studies=studies
    )
    chosen = chosen if averages is None else list(averages.described(chosen))
    tested = [variable for variable in chosen if variable.kind != LEFT_OUT and variable.name not in covariates]
    adjusting = [variable for variable in chosen if variable.name in covariates]
    design = _design(adjusting, sample_name)
    notes += _incomplete_notes(adjusting, design, tested, "average" if averages is not None else sample_name)
    result = _table_of_tests(scores, groups, tested, design)
    record_columns = list(Variable("", LEFT_OUT, "", np.empty(0)).record())
    records = pd.DataFrame([variable.record() for variable in chosen], columns=record_columns)
    pairs = [(variable.name, variable.event) for variable in chosen if variable.kind == SURVIVAL]
    possible = None if survival is not None or variables is not None else find_survival(described, types or {}).possible
    if possible:
        notes.append(f"{' and '.join(possible)} look like survival: test them with `survival={','.join(possible)}`")
    notes += () if removed is None else removed.remarks(result)
    notes += _undefined_notes(scores, tested, design, result, covariates, sample_name)
    explained = result if averages is None else _tests_of_batches(*of_cells)
    of_batches = list(batch_notes(explained, match.table, sample_name))
    not_averaged = () if averages is None or variables is not None else averages.differing
    if averages is not None:
        notes += [averages.note(sample_name), *[averages.differing_note(sample_name)] * bool(not_averaged)]
    notes += of_batches
    repeated = list(repeated_measures(described, tested, sample_name)) if averages is None else []
    doubtful = [*repeated, *filter(None, (mixed_endpoints(*pair) for pair in given))]
    for each in doubtful:
        warnings.warn(each, UserWarning, stacklevel=3)
    notes += doubtful
    levels = {variable.name: variable.levels for variable in chosen if variable.levels}
    grouped = () if averages is None else averages.by
    about = tuple(covariates), tuple(notes), tuple(pairs), grouped, levels, tuple(of_batches), not_averaged
    return Associations(result, records, match, *about)


def _tests_of_batches(scores: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """How much of the scores of single samples the columns explain whose names say batch or donor."""
    rows = list[tuple[Any, ...]]()
    for name in filter(says_batch_or_unit, table.columns):
        variable = guess(table[name], asked=True)
        if variable.kind != CATEGORICAL:
            continue
        for module in scores.columns:
            values, known = scores[module].to_numpy(dtype=np.float64), variable.known
            known &= ~np.isnan(values)
            _, p, *effect = tests.kruskal_wallis(values[known], variable.values[known].astype(np.intp))
            about = module, variable.name, "", "Kruskal-Wallis", int(known.sum())
            rows.append((*about, effect[0], "epsilon squared", *effect[1:], p))
    return with_q_values(pd.DataFrame(rows, columns=_COLUMNS))


def _table_of_tests(
    scores: pd.DataFrame, groups: pd.DataFrame | None, tested: list[Variable], design: Floats | None
) -> pd.DataFrame:
    """A row per variable, module and test, with q-values."""
    rows = list[tuple[Any, ...]]()
    for variable, module in product(tested, scores.columns):
        own = np.full(len(scores), "") if groups is None else groups[module].to_numpy(dtype=object)
        for row in all_tests(scores[module].to_numpy(dtype=np.float64), own, variable, design):
            _, p, *effect = row.result
            rows.append((module, variable.name, row.level, row.test, row.n, effect[0], row.effect_name, *effect[1:], p))
    return with_q_values(pd.DataFrame(rows, columns=_COLUMNS))


def with_q_values(table: pd.DataFrame) -> pd.DataFrame:
    """A table of tests with q-values, those of all tests of the same kind of a variable, and of all tests."""
    # Variants of a test, such as both sides of Fisher's, count together; the F test and those of its levels do not.
    kinds = [table["variable"], table["test"].astype(str).str.split(",").str[0], table["level"] == ""]
    own = table["p"].groupby(kinds, group_keys=False).transform(adjust_p_values) if len(table) else table["p"]
    return table.assign(q=own, q_all=adjust_p_values(table["p"]))


def _design(covariates: list[Variable], sample_name: str) -> Floats | None:
    """The covariates as columns; an error if they leave nothing to test."""
    if not covariates:
        return None
    design = np.column_stack([variable.columns() for variable in covariates])
    complete = design[~np.isnan(design).any(axis=1)]
    rank = int(np.linalg.matrix_rank(complete - complete.mean(axis=0))) if len(complete) else 0
    if len(complete) - rank < 3 + 1:
        names = ", ".join(variable.name for variable in covariates)
        raise InputError(
            f"the covariates ({names}) leave nothing to test: {len(complete):,} {sample_name}s have all of them, and "
            f"they have {rank:,} degrees of freedom; adjust for fewer (`adjust`)",
            ["adjust"],
        )
    return design


def _incomplete_notes(
    covariates: list[Variable], design: Floats | None, tested: list[Variable], sample_name: str
) -> Iterator[str]:
    """How many samples are left out of all tests, because a covariate is missing, and which levels are lost by that."""
    if design is None or not (lost := np.isnan(design).any(axis=1)).any():
        return
    lost = np.asarray(lost)
    each = [f"{variable.name} in {n:,}" for variable in covariates if (n := int((~variable.known).sum()))]
    n = int(lost.sum())
    text = f"{n:,} of {lost.size:,} {sample_name}s are left out, because a covariate is missing ({', '.join(each)})"
    levels = [
        f"{variable.name} {level} ({int(own.sum()):,})"
        for variable in tested
        if variable.kind in (CATEGORICAL, ORDERED)
        for code, level in enumerate(variable.levels)
        if (own := variable.known & (variable.values == code)).any() and lost[own].all()
    ]
    yield f"{text}; among them all of {some_names(levels, 8, quoted=False)}" if levels else text


def _undefined_notes(
    scores: pd.DataFrame,
    tested: list[Variable],
    design: Floats | None,
    result: pd.DataFrame,
    covariates: Sequence[str],
    sample_name: str,
) -> Iterator[str]:
    """Why no test of a module, or of a variable, is defined."""
    if alike := [int(module) for module in scores.columns[(scores.nunique() < 2).to_numpy()]]:
        which = f"module{'s' * (len(alike) != 1)} {some_names(alike, 8, quoted=False)}"
        yield f"{which} cannot be tested: the scores are missing, or the same in all {sample_name}s"
    if len(alike) == scores.shape[1]:
        return
    defined, names = set(result.loc[result["p"].notna(), "variable"]), ", ".join(covariates)
    for variable in tested:
        if variable.name in defined:
            continue
        known = variable.known if design is None else variable.known & ~np.isnan(design).any(axis=1)
        n, explained = int(known.sum()), False
        if n and design is not None and variable.kind != SURVIVAL:
            removed = Residuals(n, design[known])
            values = variable.values[:, None] if variable.kind == ORDERED else variable.columns()
            explained = removed.rank < n and not any(removed(column).any() for column in values[known].T)
        both = f"{n:,} {sample_name}{'s have' if n != 1 else ' has'} a value of it"
        both += "" if design is None else f" and of all covariates ({names})"
        why = f"is explained completely by the covariates ({names}): it cannot be tested"
        yield f"{variable.name} {why if explained else f'cannot be tested: {both}'}"


class Removed(NamedTuple):
    """Covariates that were removed from the data of a fit, how many degrees of freedom they took, and its studies."""

    names: tuple[str, ...]
    freedom: int
    studies: pd.Series[Any] | None = None  # of each sample of the fit, if each study was centred

    @classmethod
    def of(cls, model: SparseGraphSVD | TwoTableModel) -> Removed | None:
        """Those of a model; None if it was fitted without covariates."""
        coding = model.covariate_coding_
        if coding is None:
            return None
        studies = None
        if isinstance(model, SparseGraphSVD) and model.study_labels_ is not None:
            studies = pd.Series(model.study_labels_, index=pd.Index(names_of(model, "rows")))
        return cls(tuple(str(one.name) for one in coding.covariates), len(coding.kept), studies)

    def adjustment(
        self, adjust: Sequence[str], variables: Sequence[str], columns: Iterable[Any], n_samples: int
    ) -> tuple[list[str], str]:
        """What the tests are to be adjusted for, and a note for the user (empty if there is nothing to say).

        Scores without the effects of covariates vary less than independent ones. If the covariates took many degrees
        of freedom, tests of the scores alone would have too small p-values, and so they are adjusted for them, too.
        """
        if self.freedom <= _SMALL * n_samples:
            return list(adjust), ""
        names, columns = [name for name in self.names if name not in (*variables, *adjust)], {*map(str, columns)}
        known = [name for name in names if name in columns]
        taken = f"removed in the fit and took {self.freedom} of {n_samples:,} degrees of freedom"
        if absent := ", ".join(name for name in names if name not in columns):
            return [*adjust, *known], f"p-values are too small: {absent} (not in the sample table): {taken}"
        return [*adjust, *known], f"the tests are adjusted for {', '.join(known)}: {taken}" if known else ""

    def remarks(self, table: pd.DataFrame) -> Iterator[str]:
        """What associations with a removed covariate mean, if there are any."""
        for name in table.loc[table["q"] <= LEVEL, "variable"].unique():
            if name in self.names:
                yield f"{name}: its mean effect was removed before the search; a difference in spread can remain"


# Scores as a table with a row for each module and sample (samples.tsv)


def wide(samples: pd.DataFrame, names: Iterable[object] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and groups, samples by modules, from the table of `selection.sample_groups`.

    Rows are matched by module and by name, so that their order does not matter. `names` are the samples in the order of
    the result (default: that of the table).
    """
    if missing := [name for name in ("module", "sample", "score", "group") if name not in samples]:
        raise InputError(f"the table of scores has no column {missing[0]}: give the table of `sample_groups`")
    if samples.empty:
        raise InputError("there are no modules to compare with the sample table")
    samples = samples.sort_values("module", kind="stable")
    modules = pd.Index(samples["module"].unique(), name="module")
    own = samples["sample"].astype(str).to_numpy(dtype=object)
    first = own[: int((samples["module"] == modules[0]).sum())]
    order = first if names is None else np.array([str(name) for name in names], dtype=object)
    if not np.array_equal(own, np.tile(order, len(modules))):
        rows = pd.MultiIndex.from_arrays([samples["module"], own])
        expected, wrong = pd.MultiIndex.from_product([modules, order]), ""
        if rows.has_duplicates:
            module, sample = rows[rows.duplicated()][0]
            wrong = f"several rows of module {module} and sample {shown(str(sample))}"
        elif len(rows) != len(expected) or not rows.isin(expected).all():
            wrong = f"{len(rows):,} rows for {len(modules):,} modules and {len(order):,} samples"
        if wrong:
            raise InputError(f"the table of scores has {wrong}: it must have one row for each module and sample")
        samples = samples.iloc[rows.get_indexer(expected)]
    try:
        scores = samples["score"].astype(np.float64)
    except (ValueError, TypeError):
        raise InputError("the table of scores has scores that are not numbers: fit again") from None
    shape, index = (len(modules), order.size), pd.Index(order, name="sample")
    both = scores.to_numpy(), samples["group"].astype(object).fillna("").to_numpy()
    wide_scores, groups = (pd.DataFrame(each.reshape(shape).T, index=index, columns=modules) for each in both)
    return wide_scores, groups


def matched_scores(
    samples: pd.DataFrame | None, n_modules: int, names: Iterable[object]
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Scores and groups of the samples of a model, in their order; None if the table is about others or missing."""
    if samples is None or samples.empty:
        return None
    try:
        scores, groups = wide(samples, names)
    except InputError:
        return None
    return (scores, groups) if [int(module) for module in scores.columns] == list(range(1, n_modules + 1)) else None
