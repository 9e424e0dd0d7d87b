"""Two tables of the same samples: read, matched by the names of the samples, preprocessed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.errors import InputError, shown
from netbic.io.dataset import Dataset, match_dataset
from netbic.io.expression import Expression, read_expression
from netbic.io.matching import Alignment
from netbic.io.matrices import NameArray
from netbic.io.study_options import DatasetOptions

_FEWEST = 3  # samples without which there is no correlation
_NAMED = 3  # samples of one table only, in the summary
_STORED = 100  # of them in alignment.json
_GENERATED = "sample_"  # names that readers give to samples without names: sample_0, sample_1, ...


@dataclass(frozen=True)
class SampleMatching:
    """How the samples of two tables were matched.

    Attributes
    ----------
    in_first, in_second : int
        Numbers of samples in the tables.
    in_both : int
    only_first, only_second : tuple of str
        The samples that are in one table only, which are not used; at most 100.
    by_position : bool
        Whether the samples have no names, so that they were matched by their positions.
    """

    in_first: int
    in_second: int
    in_both: int
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    by_position: bool = False

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        if self.by_position:
            yield f"samples: {self.in_both:,} in both tables, without names: matched by their positions"
            return
        yield f"samples: {self.in_first:,} in table 1, {self.in_second:,} in table 2, {self.in_both:,} in both"
        for number, names, known in ((1, self.only_first, self.in_first), (2, self.only_second, self.in_second)):
            if count := known - self.in_both:
                named = ", ".join(map(shown, names[:_NAMED])) + (", ..." if count > _NAMED else "")
                yield f"only in table {number}, not used: {count:,} ({named})"


@dataclass(frozen=True)
class TwoTables:
    """The input of `SparseGraphPLS` and `SparseGraphCCA`: two data sets of the same samples in the same order."""

    first: Dataset
    second: Dataset
    samples: SampleMatching

    @property
    def datasets(self) -> tuple[Dataset, Dataset]:
        """Both data sets."""
        return self.first, self.second

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        yield from self.samples.lines()
        for number, study in enumerate(self.datasets, start=1):
            yield from table_lines(number, study.alignment)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary of plain values, to be written as JSON."""
        tables = {f"table{number}": study.alignment.to_dict() for number, study in enumerate(self.datasets, start=1)}
        return {"samples": asdict(self.samples), **tables}

    def fingerprint(self) -> dict[str, str]:
        """Digests of the data of both tables."""
        return {
            f"{name}{number}": digest
            for number, study in enumerate(self.datasets, start=1)
            for name, digest in study.fingerprint().items()
        }


def table_lines(number: int, alignment: Alignment) -> Iterator[str]:
    """How one of two tables was read, preprocessed and matched to its network, as lines of text.

    Examples
    --------
    >>> print(*table_lines(2, Alignment(40, 21, 20, first_genes=("C14.0", "C16.0"))), sep="; ")
    table 2: 21 features (C14.0, C16.0, ...); table 2: features kept: 20
    """
    named = f" ({', '.join(alignment.first_genes)}, ...)" if alignment.first_genes else ""
    yield f"table {number}: {alignment.genes_in_file:,} features{named}"
    for line in alignment.lines():
        if not line.startswith(("data: ", "samples: ")):
            yield f"table {number}: {in_features(line)}"


def in_features(line: str) -> str:
    """A line about genes as one about features, which may be lipids or proteins.

    Examples
    --------
    >>> in_features("preprocessed: drop constant (2 genes): gene-1, gene_2")
    'preprocessed: drop constant (2 features): gene-1, gene_2'
    """
    return re.sub(r"(?<![-\w.])gene(s?)(?![-\w.])", r"feature\1", line)


def open_two_tables(
    first: Path | str,
    second: Path | str,
    networks: tuple[Path | str | None, Path | str | None] = (None, None),
    options: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> TwoTables:
    """Read two tables and their networks, keep the samples of both, preprocess, and match.

    Parameters
    ----------
    first, second : path
        See `read_expression` for the formats.
    networks : pair of paths or None
        See `read_network`.
    options : pair of mappings
        Options of `open_dataset` for each table.

    Returns
    -------
    TwoTables
        The samples of both tables, in the order of the first one. Features that are constant in these samples are
        dropped.
    """
    chosen = [DatasetOptions().replace(**each) for each in options]
    tables = []
    for number, (path, each) in enumerate(zip((first, second), chosen, strict=True), start=1):
        with about_table(number):
            tables.append(read_expression(path, **vars(each.expression)))
    in_rows = chosen[0].expression.samples_in_rows, chosen[1].expression.samples_in_rows
    rows, matching = match_samples(tables[0], tables[1], in_rows)
    studies = []
    for number, (table, network, each) in enumerate(zip(tables, networks, chosen, strict=True), start=1):
        with about_table(number):
            study = match_dataset(table.select_samples(rows[number - 1]), network, each)
            _check_complete(study.expression)
        studies.append(study)
    return TwoTables(studies[0], studies[1], matching)


def match_samples(
    first: Expression, second: Expression, in_rows: tuple[bool, bool] = (False, False)
) -> tuple[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], SampleMatching]:
    """Positions of the samples of both tables, in the order of the first one, and a summary.

    `in_rows` says which tables were read with samples in rows, for the error if they were exchanged.
    """
    one, other = pd.Index(first.samples), pd.Index(second.samples)
    if _without_names(first.samples) and _without_names(second.samples):
        if len(one) != len(other):
            raise InputError(
                f"table 1 has {len(one):,} samples and table 2 has {len(other):,}, and neither has names of samples: "
                "without names both need the same samples in the same order"
            )
        every = np.arange(len(one))
        return (every, every), SampleMatching(len(one), len(one), len(one), by_position=True)
    both = one[one.isin(other)]
    if len(both) < _FEWEST:
        raise _too_few(first, second, len(both), in_rows)
    only_first, only_second = (tuple(map(str, own[~own.isin(both)][:_STORED])) for own in (one, other))
    rows = one.get_indexer(both), other.get_indexer(both)
    return rows, SampleMatching(len(one), len(other), len(both), only_first, only_second)


def _without_names(samples: NameArray) -> bool:
    return all(name == f"{_GENERATED}{number}" for number, name in enumerate(samples))


def _too_few(first: Expression, second: Expression, n_both: int, in_rows: tuple[bool, bool]) -> InputError:
    """The error for tables that have hardly any sample in common, with a likely reason."""
    named = [", ".join(shown(str(name)) for name in table.samples[:_NAMED]) for table in (first, second)]
    found = "have no sample in common" if not n_both else f"have only {n_both} samples in common"
    message = f"table 1 and table 2 {found} (table 1: {named[0]}, ...; table 2: {named[1]}, ...)"
    for number, table, other in ((1, first, second), (2, second, first)):
        if len(pd.Index(table.genes).intersection(pd.Index(other.samples))) >= _FEWEST:
            parameter, remedy = f"samples_in_rows{number}", "leave out" if in_rows[number - 1] else "use"
            return InputError(
                f"{message}: the features of table {number} have the names of samples, so its rows and columns are "
                f"exchanged: {remedy} `{parameter}`",
                [parameter],
            )
    simple = [{_simplified(str(name)) for name in table.samples} for table in (first, second)]
    if len(simple[0] & simple[1]) >= _FEWEST:
        return InputError(f"{message}: they differ in capital letters, spaces or punctuation, rename one side")
    return InputError(f"{message}: samples are matched by name, at least {_FEWEST} have to be in both")


def _simplified(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _check_complete(expression: Expression) -> None:
    if text := expression.missing_entries():
        raise InputError(f"{text}: pairs need complete tables, fill in such values or leave out their features")


@contextmanager
def about_table(number: int) -> Iterator[None]:
    """Errors and warnings of a block say which table they are about, and name its parameters (`log1p` as `log1p1`)."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            yield
        except InputError as problem:
            text, parameters = _of_table(str(problem), number), [f"{name}{number}" for name in problem.parameters]
            raise type(problem)(f"table {number}: {text}", parameters) from None
    for warning in given:
        warnings.warn(f"table {number}: {_of_table(str(warning.message), number)}", warning.category, stacklevel=4)


def _of_table(text: str, number: int) -> str:
    return re.sub(r"`(\w+)(=[^`]*)?`", rf"`\g<1>{number}\g<2>`", in_features(text))
