"""The data of a fit: a matrix with its network, or two tables of the same samples; and scores of new samples.

Files are read, preprocessed and matched by name.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Indices, Matrix, buffers, checked, is_sparse, kind_of, stored_values
from netbic.errors import InputError, shown, some_names
from netbic.estimators.covariates import Design, design_of_new
from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.estimators.prediction import module_scores, own_directions, scored_modules
from netbic.estimators.results import names_of
from netbic.estimators.studies import study_of_new, without_studies
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.graph import Graph
from netbic.identifiers import explain_mismatch
from netbic.io.expression import READING, Expression, file_format, open_expression, read_expression
from netbic.io.matching import (
    Alignment,
    NamesDiffer,
    align,
    check_gene_sets,
    check_overlap,
    first_names,
    is_numbered,
    warn_of_dates,
    with_names,
)
from netbic.io.names import has_names, look_exchanged, names_among, renaming
from netbic.io.networks import read_network, translate_nodes
from netbic.io.preprocessing import prepare
from netbic.io.samples import GeneSets, read_gene_sets, translate_gene_sets
from netbic.io.stores import read_obs
from netbic.operators.blocks import compute_rows
from netbic.operators.corrected import Scaler

_NETWORK = ("relations", "min_score", "string_info", "header", "source", "target", "weighted", "signs")
_PREPROCESSING = ("duplicates", "cpm", "log1p", "n_variable")
_SETTINGS = (
    *READING,
    *_NETWORK,
    *_PREPROCESSING,
    "graph_names",
    "strip_versions",
    "id_map",
    "matched_only",
    "gene_sets",
)
_FEWEST = 3  # samples without which there is no correlation
_NAMED = 3  # samples of one table only, in the summary
_STORED = 100  # of them in alignment.json
_NO_NAMES = ("table 1", "table 2")


@dataclass(frozen=True)
class Dataset:
    """The input of a fit: the preprocessed matrix, the graph of its genes, and a summary of how they were matched.

    `gene_sets` have the names of the data.
    """

    expression: Expression
    graph: Graph | None
    alignment: Alignment
    gene_sets: GeneSets | None = None

    def __repr__(self) -> str:
        samples, genes = self.expression.shape
        graph = "no network" if self.graph is None else f"{self.graph.n_edges:,} edges"
        return f"Dataset({samples:,} samples x {genes:,} genes, {graph})"

    @property
    def X(self) -> Any:
        """The matrix: a DataFrame with names, CSR, or a Dask array."""
        matrix = self.expression.matrix
        return self.expression.frame() if isinstance(matrix, np.ndarray) else matrix

    @property
    def names(self) -> tuple[Any, Any]:
        """Samples and genes."""
        return self.expression.samples, self.expression.genes

    def fingerprint(self) -> dict[str, str]:
        """Short digests of the matrix, its names and the graph: equal if and only if nothing changed."""
        data = self.expression.scanned()
        if data.is_lazy:  # the digest of the file, from one pass over it, and the preprocessing
            done = np.array([data.origin, json.dumps(self.alignment.steps)], dtype=object)
            parts = [done, np.array(data.shape), np.empty(0, dtype=data.matrix.dtype)]
        else:
            parts = [*buffers(data.matrix), np.array(data.matrix.shape)]
        digests = {"expression": digest(*parts), "samples": digest(data.samples), "genes": digest(data.genes)}
        return digests if self.graph is None else digests | {"network": digest(*buffers(self.graph.weights))}


def open_dataset(
    expression: Path | str,
    network: Path | str | None = None,
    *,
    lazy: bool = False,
    block_rows: int | None = None,
    **settings: Any,
) -> Dataset:
    r"""Read an expression matrix and a network, preprocess the matrix and match the network to it.

    Parameters
    ----------
    expression, network : path
        See `read_expression` and `read_network` for the formats.
    lazy : bool
        Leave the matrix in its file and read it block by block; see `open_expression`.
    block_rows : int, optional
        Samples per block, with `lazy`.
    **settings
        Reading the matrix (`read_expression`): `samples_in_rows`, `layer`, `gene_names`, `skip_columns`. Reading the
        network (`read_network`): `relations`, `min_score`, `string_info`, `header`, `source`, `target`, `weighted`,
        `signs`, and `graph_names` (its `names`). Preprocessing (`prepare`): `duplicates`, `cpm`, `log1p`,
        `n_variable`. Matching: `strip_versions` removes the versions of Ensembl ids on both sides, `id_map` is a
        table that translates gene names, so that those of the data, the network and the gene sets match
        (`read_id_map`), and `matched_only` drops genes that are not in the network; otherwise they are kept, without
        neighbours. `gene_sets` (the path of a GMT file, or the result of `read_gene_sets`) are matched too.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/counts.tsv", "w") as file:
    ...         _ = file.write("gene\ts1\ts2\ts3\nTP53\t1\t2\t0\nMDM2\t0\t3\t1\nACTB\t9\t8\t7\n")
    ...     with open(f"{folder}/network.sif", "w") as file:
    ...         _ = file.write("TP53\tbinds\tMDM2\n")
    ...     netbic.io.open_dataset(f"{folder}/counts.tsv", f"{folder}/network.sif", log1p=True)
    Dataset(3 samples x 3 genes, 1 edges)
    """
    check_keywords("open_dataset", settings, [*_SETTINGS, "lazy", "block_rows"])
    reading = _chosen(settings, READING)
    if lazy:
        data = open_expression(expression, **reading, block_rows=block_rows)
    elif block_rows is not None:
        raise InputError(f"`block_rows={block_rows}` is for matrices that stay in their files: use `lazy=True` too")
    else:
        data = read_expression(expression, **reading)
    with _about_var(expression, settings):
        return _match_dataset(data, network, settings)


@contextmanager
def _about_var(path: Path | str, settings: Mapping[str, Any]) -> Iterator[None]:
    """If names do not match, the error names the column of var that has the names of the other side."""
    try:
        yield
    except NamesDiffer as problem:
        is_store = file_format(Path(path)) in ("zarr", ".h5ad") and settings.get("gene_names") is None
        if not is_store or (column := problem.column(read_obs(Path(path), "var"))) is None:
            raise
        raise InputError(f"{problem}; or use the names in column {shown(column)} of var (`gene_names`)") from None


def _match_dataset(data: Expression, network: Path | str | None, settings: Mapping[str, Any]) -> Dataset:
    """Preprocess a matrix that was read before, and match a network and gene sets to it."""
    steps, read, sets = _chosen(settings, _PREPROCESSING), None, settings.get("gene_sets")
    sets = read_gene_sets(sets) if isinstance(sets, (str, Path)) else sets
    strip_versions = settings.get("strip_versions", False)
    about: Any = {"samples": data.samples, "from_files": True, "in_rows": bool(settings.get("samples_in_rows"))}
    if network is not None:
        reading = _chosen(settings, _NETWORK) | {"names": settings.get("graph_names")}
        read = read_network(network, **reading, strip_versions=strip_versions)
    elif look_exchanged(data.samples, data.genes):  # with a network, names that do not match are an error
        remedy = "leave out" if settings.get("samples_in_rows") else "use"
        what = f"the names of the samples ({', '.join(first_names(data.samples))}, ...) look like genes"
        warnings.warn(f"{what}: if samples and genes are exchanged, {remedy} `samples_in_rows`", stacklevel=3)
    nodes = np.asarray(() if read is None or is_numbered(read.graph) else read.graph.names, dtype=object)
    members = () if sets is None else list(dict.fromkeys(chain.from_iterable(sets.values())))
    rename = renaming(strip_versions, settings.get("id_map"), data.genes, [*nodes, *members])
    genes = data.genes if rename is None else np.array([rename(gene) for gene in data.genes], dtype=object)
    if read is not None:
        read = read._replace(graph=with_names(read.graph, genes, from_files=True))
        if rename is not None:
            read = translate_nodes(read, rename.changed(nodes, genes))
        check_overlap(genes, read.graph, **about)
        warn_of_dates(np.asarray(read.graph.names), genes, "network")
        steps |= {"only": read.graph.names} if settings.get("matched_only") else {}
    prepared = prepare(data, rename=rename, **steps)
    names, n_genes = prepared.expression.genes, prepared.expression.shape[1]
    if read is None:
        first: dict[str, Any] = {"first_samples": first_names(data.samples), "first_genes": first_names(data.genes)}
        alignment = Alignment(*data.shape, n_genes, isolated=n_genes, steps=prepared.steps, **first)
        graph = None
    else:
        counts: dict[str, Any] = {"steps": prepared.steps, "genes_in_file": data.shape[1]}
        graph, alignment = align(names, read, samples=data.samples, **counts)
    if sets is not None:
        changed = {} if rename is None else rename.changed(members, genes)
        sets = translate_gene_sets(sets, {name: [new] for name, new in changed.items()})
        alignment = replace(alignment, gene_sets=check_gene_sets(sets, names, **about))
    return Dataset(prepared.expression, graph, alignment, sets)


def match_gene_sets(gene_sets: Path | str, genes: Any, id_map: Path | str | None = None) -> GeneSets:
    """Read gene sets with the names of the `genes` of a model: by an id map, or without Ensembl versions."""
    sets, genes = read_gene_sets(gene_sets), np.asarray(genes).astype(str).astype(object)
    members = list(dict.fromkeys(chain.from_iterable(sets.values())))
    sets = translate_gene_sets(sets, names_among(members, genes, id_map))
    check_gene_sets(sets, genes)
    return sets


def _chosen(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: settings[name] for name in names if name in settings}


def check_keywords(
    function: str, given: Iterable[str], known: Sequence[str], meant: Mapping[str, str] | None = None
) -> None:
    """Raise a TypeError with the nearest known name (or that of `meant`) if a keyword is not known."""
    for name in given:
        if name not in known:
            near = [meant[name]] if meant and name in meant else get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(known)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}: {remedy}")


def digest(*parts: Any) -> str:
    """A short digest of arrays, their types included."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part.dtype == object:
            total.update("\n".join(map(str, part)).encode())
        else:
            total.update(np.ascontiguousarray(part).data)
        total.update(str(part.dtype).encode())
    return total.hexdigest()


# Two tables of the same samples


@dataclass(frozen=True)
class SampleMatching:
    """How the samples of two tables were matched."""

    in_first: int
    in_second: int
    in_both: int
    only_first: tuple[str, ...] = ()  # samples of one table only, which are not used; at most 100
    only_second: tuple[str, ...] = ()
    by_position: bool = False  # samples without names

    def lines(self, names: tuple[str, str]) -> Iterator[str]:
        """The summary as lines of text; `names` are those of the tables."""
        if self.by_position:
            yield f"samples: {self.in_both:,} in both tables, without names: matched by their positions"
            return
        yield f"samples: {self.in_first:,} in {names[0]}, {self.in_second:,} in {names[1]}, {self.in_both:,} in both"
        only, sizes = (self.only_first, self.only_second), (self.in_first, self.in_second)
        for name, samples, known in zip(names, only, sizes, strict=True):
            if count := known - self.in_both:
                named = ", ".join(map(shown, samples[:_NAMED])) + (", ..." if count > _NAMED else "")
                yield f"only in {name}, not used: {count:,} ({named})"


@dataclass(frozen=True)
class PairedDatasets:
    """The input of `SparseGraphPLS` and `SparseGraphCCA`: two data sets of the same samples in the same order."""

    first: Dataset
    second: Dataset
    samples: SampleMatching
    names: tuple[str, str] = _NO_NAMES

    @property
    def datasets(self) -> tuple[Dataset, Dataset]:
        """Both data sets."""
        return self.first, self.second

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        yield from self.samples.lines(self.names)
        for name, dataset in zip(self.names, self.datasets, strict=True):
            yield from table_lines(name, dataset.alignment)
        yield from missing_lines(self.names, self.missing)

    @property
    def missing(self) -> tuple[float, float]:
        """The share of missing values in each table."""
        one, other = (float(np.isnan(stored_values(each.expression.matrix)).mean()) for each in self.datasets)
        return one, other

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary of plain values, to be written as JSON."""
        one, other = (dataset.alignment.to_dict() for dataset in self.datasets)
        return {"samples": asdict(self.samples), "table1": one, "table2": other, "missing": list(self.missing)}

    def fingerprint(self) -> dict[str, str]:
        """Digests of the data of both tables."""
        one, other = (dataset.fingerprint() for dataset in self.datasets)
        return {f"{name}1": own for name, own in one.items()} | {f"{name}2": own for name, own in other.items()}


def table_lines(name: str, alignment: Alignment) -> Iterator[str]:
    """How one of two tables was read, preprocessed and matched to its network, as lines of text."""
    named = f" ({', '.join(alignment.first_genes)}, ...)" if alignment.first_genes else ""
    yield f"{name}: {alignment.genes_in_file:,} features{named}"
    for line in alignment.lines():
        if not line.startswith(("data: ", "samples: ")):
            yield f"{name}: {in_features(line)}"


def missing_lines(names: Sequence[str], shares: Sequence[float]) -> Iterator[str]:
    """How many values of each table are missing, and what was done with them, as lines of text."""
    for name, share in zip(names, shares, strict=True):
        if share:
            much = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
            yield f"{name}: {much} of the values are missing; they add nothing to scores and covariances"


def in_features(line: str) -> str:
    """A line about genes as one about features, which may be lipids or proteins; gene-1 and gene symbols stay."""
    return re.sub(r"(?<![-\w.])gene(s?)(?![-\w.]| ids| symbols)", r"feature\1", line)


def open_paired_datasets(
    first: Path | str,
    second: Path | str,
    networks: tuple[Path | str | None, Path | str | None] = (None, None),
    options: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    *,
    missing: str = "error",
    names: tuple[str, str] | None = None,
) -> PairedDatasets:
    """Read two tables and their networks (options: `open_dataset`), keep the samples of both, preprocess and match.

    The samples are in the order of the first table. Features that are constant in these samples are dropped. Missing
    values are an error unless `missing` is "ignore". The tables are called by their `names`, or after their files.
    """
    names = names_of_tables(first, second) if names is None else names
    tables, datasets = list[Expression](), list[Dataset]()
    for number, (path, settings) in enumerate(zip((first, second), options, strict=True), start=1):
        check_keywords("open_dataset", settings, _SETTINGS)
        with about_table(number, names[number - 1]):
            tables.append(_with_values(read_expression(path, **_chosen(settings, READING))))
    in_rows = bool(options[0].get("samples_in_rows")), bool(options[1].get("samples_in_rows"))
    rows, matching = match_samples(tables[0], tables[1], names, in_rows)
    options = _own_id_maps(tables, options)
    for number, (table, network, settings) in enumerate(zip(tables, networks, options, strict=True), start=1):
        with about_table(number, names[number - 1]), _about_var((first, second)[number - 1], settings):
            dataset = _match_dataset(table.select_samples(rows[number - 1]), network, settings)
            if missing == "error" and (text := dataset.expression.missing_entries()):
                raise InputError(f"{text}: use `missing=ignore`, or fill in such values or leave out their features")
        datasets.append(dataset)
    return PairedDatasets(datasets[0], datasets[1], matching, names)


def _with_values(table: Expression) -> Expression:
    """The table without samples that have no value at all, which it does not know; a warning names them."""
    if table.is_lazy or not isinstance(table.matrix, np.ndarray):
        return table
    empty = np.isnan(table.matrix).all(axis=1)
    if empty.any():
        named = some_names([str(name) for name in table.samples[empty]])
        warnings.warn(f"{int(empty.sum()):,} samples have no value and are left out: {named}", stacklevel=3)
        table = table.select_samples(np.flatnonzero(~empty))
    return table


def names_of_tables(first: Path | str, second: Path | str) -> tuple[str, str]:
    """Two files as the names of their tables: without folder, ending, and the words that both have around them.

    Examples
    --------
    >>> names_of_tables("data/tumours_rna.parquet", "tumours_protein.tsv.gz")
    ('rna', 'protein')
    """
    stems = [re.sub(r"(\.gz|\.bz2|\.xz|\.zip)$", "", Path(path).name.rstrip("/")) for path in (first, second)]
    stems = [stem.rpartition(".")[0] or stem for stem in stems]
    words = [re.split(r"[\W_]+", stem) for stem in stems]
    for end in (0, -1):
        while min(map(len, words)) > 1 and words[0][end] == words[1][end]:
            words = [own[1:] if end == 0 else own[:-1] for own in words]
    one, other = (" ".join(own).strip() for own in words)
    return (one, other) if one and other and one != other else _NO_NAMES


def _own_id_maps(
    tables: Sequence[Expression], options: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The options, without an id map that was given for both tables where it has no feature of one of them."""
    maps = [settings.get("id_map") for settings in options]
    if maps[0] is None or maps[0] != maps[1]:
        return options
    unknown = [not has_names(maps[0], table.genes) for table in tables]
    if all(unknown):
        return options  # an error is raised for the first
    one, other = ({**own, "id_map": None} if no else own for own, no in zip(options, unknown, strict=True))
    return one, other


def match_samples(
    first: Expression,
    second: Expression,
    names: tuple[str, str] = _NO_NAMES,
    in_rows: tuple[bool, bool] = (False, False),
) -> tuple[tuple[Array, Array], SampleMatching]:
    """Positions of the samples of both tables, in the order of the first one, and a summary.

    `in_rows` says which tables were read with samples in rows, for the error if they were exchanged.
    """
    one, other = pd.Index(first.samples), pd.Index(second.samples)
    # Samples without names are called sample_0, sample_1, ... by the readers.
    if all((table.samples == [f"sample_{at}" for at in range(table.shape[0])]).all() for table in (first, second)):
        if len(one) != len(other):
            raise InputError(
                f"{names[0]} has {len(one):,} samples and {names[1]} has {len(other):,}, and neither has names of "
                "samples: without names both need the same samples in the same order"
            )
        every = np.arange(len(one))
        return (every, every), SampleMatching(len(one), len(one), len(one), by_position=True)
    both = one[one.isin(other)]
    if len(both) >= _FEWEST:
        only_first, only_second = (tuple(map(str, own[~own.isin(both)][:_STORED])) for own in (one, other))
        rows = one.get_indexer(both), other.get_indexer(both)
        return rows, SampleMatching(len(one), len(other), len(both), only_first, only_second)
    # Hardly any sample is in both tables: look for a likely reason.
    named = [", ".join(shown(str(name)) for name in own[:_NAMED]) for own in (one, other)]
    found = "have no sample in common" if both.empty else f"have only {len(both)} samples in common"
    message = f"{names[0]} and {names[1]} {found} ({names[0]}: {named[0]}, ...; {names[1]}: {named[1]}, ...)"
    for number, table, samples in ((1, first, other), (2, second, one)):
        if len(pd.Index(table.genes).intersection(samples)) >= _FEWEST:
            remedy = "leave out" if in_rows[number - 1] else "use"
            what = (
                f"the features of {names[number - 1]} have the names of samples, so its rows and columns are exchanged"
            )
            raise InputError(f"{message}: {what}: {remedy} `samples_in_rows{number}`")
    simple = [{re.sub(r"[\W_]+", "", str(name)).lower() for name in own} for own in (one, other)]
    if len(simple[0] & simple[1]) >= _FEWEST:
        raise InputError(f"{message}: they differ in capital letters, spaces or punctuation, rename one side")
    raise InputError(f"{message}: samples are matched by name, at least {_FEWEST} have to be in both")


@contextmanager
def about_table(number: int, name: str) -> Iterator[None]:
    """Errors and warnings of a block say which table they are about, and name its parameters (`log1p` as `log1p1`)."""

    def of_table(text: str) -> str:
        return f"{name}: " + re.sub(r"`(\w+)(=[^`]*)?`", rf"`\g<1>{number}\g<2>`", in_features(text))

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            yield
        except InputError as problem:
            raise type(problem)(of_table(str(problem))) from None
    for warning in given:
        warnings.warn(of_table(str(warning.message)), warning.category, stacklevel=4)


def fit_by_name(
    model: SparseGraphPLS | SparseGraphCCA,
    X: Matrix,
    Y: Matrix,
    samples: Any,
    x_names: Any,
    y_names: Any,
    table_names: tuple[str, str] = ("X", "Y"),
    covariates: Any = None,
) -> None:
    """Fit a model to two matrices of the same samples in the same order; it then knows all names.

    Graphs of the model, if there are any, have one node per feature, in their order.
    """
    names: Any = {"samples": samples, "x": x_names, "y": y_names}
    names = {axis: np.asarray(known, dtype=object) for axis, known in names.items()}
    graphs, tables = {"x": model.x_graph, "y": model.y_graph}, {"x": X, "y": Y}
    for side, matrix in tables.items():
        if isinstance(matrix, np.ndarray):
            tables[side] = pd.DataFrame(matrix, index=names["samples"], columns=names[side])
        elif isinstance(graph := graphs[side], Graph):  # nodes are matched by their positions, without a warning
            model.set_params(**{f"{side}_graph": Graph(graph.weights)})
    try:
        model.fit(tables["x"], tables["y"], covariates=covariates, table_names=table_names)
    finally:
        model.set_params(x_graph=graphs["x"], y_graph=graphs["y"])
    model.names_, model.graphs_ = names, graphs


# Scores of new samples


def scores_by_name(
    model: SparseGraphSVD,
    X: Matrix,
    genes: Any,
    covariates: Any = None,
    samples: Any = None,
    studies: Any = None,
) -> Array:
    """Scores Xv of the rows of X, whose columns are `genes`, in any order: for the data of the fit, those of the fit.

    Genes of the model that are missing in X are set to their mean, with a warning; other genes of X are ignored. The
    scores are NaN for modules of which X has fewer than 5 genes (unless a module has no others) or fewer than a fifth.

    Parameters
    ----------
    model : SparseGraphSVD
    X : array, sparse matrix or Dask array
        Preprocessed as the data of the fit.
    genes : sequence of names
    covariates : as for `SparseGraphSVD.fit`, optional
        Needed if the model was fitted with covariates. Missing genes are then set to the mean that is expected for
        these covariates.
    samples : list of str, optional
        Names of the rows of X, by which a table of covariates is matched; without them it is taken in their order.
    studies : array or Series of shape (n_samples,), optional
        The study of each sample, for a model that was fitted to several.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> cohort = netbic.simulate.cohort(150, 700, n_modules=1, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=40, n_columns=60).fit(cohort.expression)
    >>> turned = cohort.expression.iloc[:, ::-1]
    >>> scores = netbic.io.scores_by_name(model, turned.to_numpy(), turned.columns)
    >>> bool((abs(scores - netbic.get.scores_df(model, cohort.expression)) < 1e-9).all(axis=None))
    True
    """
    model = fitted_model(model)
    if kind_of(X) != "dask":
        X = checked(X, missing=model.missing)
        kept = X.dtype if X.dtype in (np.float32, np.float64) else np.float64  # integers as double precision
        X = np.asarray(X, dtype=kept) if isinstance(X, np.ndarray) else sp.csr_array(X, dtype=kept)
        if is_sparse(X) and np.isnan(X.data).any():
            raise InputError("X is sparse and contains NaN: drop those entries (missing values need a dense X)")
    at, scored = _columns_of_genes(model, X, genes)
    names = None if samples is None else np.array([str(name) for name in samples], dtype=object)
    if (scaling := model.study_scaling_) is not None:  # then as samples of one study
        coding, there = model.covariate_coding_, np.flatnonzero(at >= 0)
        if coding is None or kind_of(X) == "dask":
            what = "scores of a Dask array on modules of several studies"
            raise InputError(f"{what}: give X.compute(), or parts of its rows")
        numbers, coded = study_of_new(model, studies, covariates, int(X.shape[0]), names)
        model, covariates = without_studies(model), Design(coded, coding)
        X = scaling.apply(X[:, at[there]], numbers, there)
        at = np.full(at.size, -1)
        at[there] = np.arange(there.size)
    design, effects = design_of_new(model, covariates, int(X.shape[0]), names), model.scaler_.effects
    if not isinstance(X, np.ndarray):
        directions = own_directions(model)
        scores = compute_rows(X, _affine_scores, model.scaler_, directions, at)
        if design is not None and effects is not None:
            scores = scores - design @ model.scaler_.project_effects(directions, at >= 0)
        return np.where(scored, scores, np.nan)
    full = np.tile(model.scaler_.offsets.astype(X.dtype), (X.shape[0], 1))
    if design is not None and effects is not None:
        full += (design @ effects).astype(X.dtype)
    full[:, at >= 0] = X[:, at[at >= 0]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        coding = model.covariate_coding_
        own = None if coding is None else Design(np.empty((len(full), 0)) if design is None else design, coding)
        return np.where(scored, module_scores(model, full, own), np.nan)


def _columns_of_genes(model: SparseGraphSVD, X: Matrix, genes: Any) -> tuple[Indices, Bools]:
    """The column of X for each gene of the model, -1 for genes that are missing; whether each module can be scored."""
    known = pd.Index([str(gene) for gene in genes])
    if X.shape[1] != len(known):
        what = f"X has {X.shape[1]:,} columns but {len(known):,} genes are named"
        raise InputError(f"{what}: one name for each column is needed")
    if not known.is_unique:
        raise InputError(f"gene {shown(known[known.duplicated()][0])} occurs more than once: make names unique")
    wanted = pd.Index([str(name) for name in names_of(model, "columns")])
    at = known.get_indexer(wanted)
    used = np.asarray(model.columns_.any(axis=0))
    if used.any() and not (used & (at >= 0)).any():
        mine, theirs = (", ".join(map(shown, names[:5])) for names in (known, wanted[used]))
        what = f"no gene of the modules is in these data (data: {mine}; modules: {theirs})"
        why = explain_mismatch(known, wanted, ("data", "modules")).text()
        raise InputError(f"{what}. {why}")
    return at, scored_modules(model, at >= 0, known, "are missing, and set to their mean in the fit", "gene")


def _affine_scores(X: Matrix, scaler: Scaler, directions: Array, at: Array) -> Array:
    """Scores are affine in X, so the contribution of missing genes is the same for all rows."""
    there = np.flatnonzero(at >= 0)
    places = sp.csr_array((np.ones(there.size, dtype=X.dtype), (at[there], there)), shape=(X.shape[1], at.size))
    directions = directions.astype(X.dtype)
    missing = np.where(at < 0, scaler.offsets, 0.0)[None, :]
    added = (scaler.apply(missing) - scaler.apply(np.zeros_like(missing))) @ directions
    return np.asarray(scaler.project(X @ places, directions) + added.astype(X.dtype))


def scores_table(scores: Array, samples: Any) -> pd.DataFrame:
    """Scores with a row per sample: columns `sample`, `module_1`, `module_2`, ..."""
    table = pd.DataFrame(scores, columns=[f"module_{k + 1}" for k in range(scores.shape[1])])
    table.insert(0, "sample", np.asarray(samples))
    return table
