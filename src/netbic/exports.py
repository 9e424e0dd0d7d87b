"""Modules in the formats of other programs: GMT, lists, workbooks, tables, GraphML and Cytoscape.

Every function takes a fitted model, an AnnData object, the folder of a fit, or :class:`Results`, and writes files that
appear complete or not at all. Modules are numbered from 1. GMT, lists and workbooks are written for pairs of two tables
as well, from a fitted model, the folder of `netbic pairs`, or :class:`PairResults`.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

import numpy as np
import pandas as pd

from netbic import __version__, files, get
from netbic.arrays import kind_of
from netbic.association.associate import matched_scores
from netbic.association.membership import gene_membership
from netbic.association.stored import stored_samples, stored_verdicts
from netbic.association.words import mark
from netbic.enrichment import module_names
from netbic.errors import InputError, import_optional, shown
from netbic.estimators.results import heaviest, names_of, position_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model, is_model
from netbic.files import FolderInUse
from netbic.graph import match
from netbic.selection import SampleGroups
from netbic.spreadsheets import overview, plain, workbook_bytes
from netbic.storage.models import PairModel, fitted_pair_model, is_pair_model, load, load_modules
from netbic.storage.tables import (
    SIDES,
    feature_names,
    pair_scores_table,
    pairs_table,
    read_results_table,
    sample_names,
    sides_of,
    summary_table,
)
from netbic.tl.objects import from_anndata

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = [
    "PairResults",
    "Results",
    "write_cytoscape",
    "write_gmt",
    "write_lists",
    "write_membership",
    "write_overview",
    "write_workbook",
]

Source: TypeAlias = "SparseGraphSVD | AnnData | Path | str | Results"
AnySource: TypeAlias = "Source | PairModel | PairResults"
Attributes: TypeAlias = dict[str, Any]  # text, integers and finite floats
_SIDES: Final = ("up", "down")
_OF_PAIRS: Final = ("pairs", "weights", "scores", "gene_sets", "associations")
_TABLES: Final = ("summary", "modules", "gene_sets", "verdicts", "samples", "associations", "replication")
_JUDGED_OF_PAIRS: Final = ["found_again", "correlation", "confidence"]  # columns of weights.tsv
_JUDGED: Final = ["found_again", "kme", "confidence"]  # columns of modules.tsv if modules were judged


@dataclass(frozen=True)
class Results:
    """A fitted model and tables about its modules, as the functions below export them.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted.
    tables : mapping of str to DataFrame, optional
        Tables about the modules, as in the folder of a fit: "summary", "modules", "gene_sets" (of
        `enrichment.gene_sets`), "verdicts" (of `selection.verdicts`), "samples" (of `selection.sample_groups`),
        "associations" and "replication".
    sample_info : DataFrame, optional
        What is known about the samples, with their names as index.
    folder : path, optional
        The folder of the fit.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> results = netbic.exports.Results.of(model, study.expression)
    >>> [len(names) for names in results.samples_by_side(1).values()]
    [24, 16]
    >>> results.genes(1).columns.tolist()
    ['name', 'weight', 'side']
    """

    unit: ClassVar[str] = "module"

    model: SparseGraphSVD
    tables: Mapping[str, pd.DataFrame]
    sample_info: pd.DataFrame | None = None
    folder: Path | None = None

    @classmethod
    def of(cls, source: Source, X: Any = None, *, key: str = "netbic") -> Self:
        """The results of a model, of an AnnData object (under a `key`), or of the folder of a fit.

        The scores of a model are known if X is given.
        """
        if isinstance(source, cls):
            return source
        if is_model(source):
            model = fitted_model(source)
            return cls(model, {} if X is None else {"samples": SampleGroups.find(model, X).table})
        if kind_of(source) == "anndata":
            adata: Any = source
            return cls(from_anndata(adata, key), _tables_in(adata, key), adata.obs)
        if not isinstance(source, (str, Path)):
            kinds = "a fitted model, an AnnData object or the folder of a fit"
            raise TypeError(f"source={type(source).__name__}: expected {kinds}")
        folder = Path(source)
        model = load_modules(folder)
        known = {name: table for name in _TABLES if (table := read_results_table(folder, name)) is not None}
        return cls(model, known, stored_samples(folder), folder)

    @property
    def n_modules(self) -> int:
        """The number of modules."""
        return int(self.model.n_components_)

    @property
    def modules(self) -> range:
        """The numbers of the modules, from 1."""
        return range(1, self.n_modules + 1)

    @cached_property
    def names(self) -> list[str]:
        """The names of the modules, see `netbic.enrichment.module_names`."""
        return module_names(self.model, self.tables.get("gene_sets"))

    @cached_property
    def verdicts(self) -> list[str]:
        """The verdict on each module; "" if it is not known."""
        table = self.tables.get("verdicts", self.tables.get("summary", pd.DataFrame()))
        known = table.set_index("module")["verdict"].dropna().to_dict() if "verdict" in table else {}
        return [str(known.get(module, "")) for module in self.modules]

    @property
    def marked_names(self) -> list[str]:
        """The names of the modules; behind those of doubtful ones and repetitions the verdict."""
        return [name + mark(word) for name, word in zip(self.names, self.verdicts, strict=True)]

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row per module: the summary of the folder, or of the model."""
        return self.tables["summary"] if "summary" in self.tables else summary_table(self.model, feature_name="gene")

    @cached_property
    def gene_names(self) -> list[str]:
        """The names of all genes: text in one line, all different."""
        return _plain_names(names_of(self.model, "columns"), "gene")

    @cached_property
    def sample_names(self) -> list[str]:
        """The names of all samples: text in one line, all different."""
        return _plain_names(names_of(self.model, "rows"), "sample")

    def genes(self, module: int) -> pd.DataFrame:
        """`name`, `weight` and `side` of the genes of a module, largest absolute weight first; positions as index."""
        vector = self.model.components_[position_of(module, self.n_modules)]
        order = heaviest(vector)
        weights, names = vector[order].astype(float), [self.gene_names[at] for at in order]
        return pd.DataFrame({"name": names, "weight": weights, "side": sides_of(weights)}, index=order)

    def judged_genes(self, module: int) -> pd.DataFrame:
        """The genes of a module, with `found_again`, `kme` and `confidence` if these are known, the surest first."""
        genes, table = self.genes(module), self.tables.get("modules", pd.DataFrame())
        if not set(_JUDGED) <= set(table.columns):
            return genes
        own = table[(table["module"] == module) & (table["axis"] != "sample")].drop_duplicates("name").set_index("name")
        plain = np.asarray(names_of(self.model, "columns"))[genes.index]
        judged = own[_JUDGED].set_axis(own.index.astype(str)).reindex([str(name) for name in plain])
        genes = genes.join(judged.set_axis(genes.index))
        return genes.sort_values(["confidence", "kme"], ascending=False, kind="stable")

    def overview(self, n_genes: int = 5) -> pd.DataFrame:
        """A row per module: name, verdict, its leading genes, and findings in words.

        The surest genes come first; of doubtful modules and broad axes, which have none, those of the largest weights.
        """
        unsure, genes = ("doubtful", "broad axis"), list[list[str]]()
        for module, word in zip(self.modules, self.verdicts, strict=True):
            table = self.genes(module) if word in unsure else self.judged_genes(module)
            genes.append(table["name"].tolist())
        return overview(self.names, genes, self.tables, self.verdicts, n_genes)

    def genes_by_side(self, module: int) -> dict[str, list[str]]:
        """The genes with positive and with negative weights, largest absolute weight first."""
        genes = self.genes(module)
        return {side: genes.loc[genes["side"] == side, "name"].tolist() for side in _SIDES}

    def scores(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Scores and groups of all samples, a row per module; None if they are not known."""
        known = matched_scores(self.tables.get("samples"), self.n_modules, names_of(self.model, "rows"))
        return None if known is None else (known[0].to_numpy().T, known[1].to_numpy().T)

    def samples_by_side(self, module: int) -> dict[str, list[str]]:
        """The samples in which a module is up and down, the most extreme ones first; empty lists for a gradient."""
        at = position_of(module, self.n_modules)
        if (known := self.scores()) is not None:
            values, sides = known[0][at], known[1][at]
        else:
            values = self.model.left_vectors_[:, at]
            selected = not self.model.rows_[at].all()
            sides = sides_of(values) if selected else np.full(values.shape, "", dtype=object)
        order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
        return {side: [self.sample_names[at] for at in order if sides[at] == side] for side in _SIDES}

    def lists(self, module: int) -> Iterator[tuple[str, str, list[str]]]:
        """What is listed ("genes", "samples"), the side, and the names."""
        for kind, by_side in (("genes", self.genes_by_side(module)), ("samples", self.samples_by_side(module))):
            yield from ((kind, side, own) for side, own in by_side.items())

    def sheet(self, module: int) -> list[pd.DataFrame]:
        """Genes, and samples with their scores and groups, or weights if scores are not known."""
        names, scores, at = (
            np.array(self.sample_names, dtype=object),
            self.scores(),
            position_of(module, self.n_modules),
        )
        if scores is not None:
            samples = pd.DataFrame({"sample": names, "score": scores[0][at], "group": scores[1][at]})
        else:
            weights = self.model.left_vectors_[:, at].astype(float)
            samples = pd.DataFrame({"sample": names, "weight": weights})[weights != 0]
        return [self.judged_genes(module).rename(columns={"name": "gene"}), samples]


@dataclass(frozen=True)
class PairResults:
    """A fitted model of two tables, and tables about its pairs, as the functions below export them.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Fitted.
    tables : mapping of str to DataFrame, optional
        Tables about the pairs, as in the folder of `netbic pairs`: "pairs", "weights", "scores", "gene_sets",
        "associations".
    sample_info : DataFrame, optional
        What is known about the samples, with their names as index.
    folder : path, optional
        The folder of `netbic pairs`.

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((200, 40)), random.standard_normal((200, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y, table_names=("RNA", "protein"))
    >>> results = netbic.exports.PairResults.of(model)
    >>> [(table, side, len(names)) for table, side, names in results.lists(1)]
    [('RNA', 'up', 8), ('RNA', 'down', 0), ('protein', 'up', 5), ('protein', 'down', 0)]
    """

    unit: ClassVar[str] = "pair"

    model: PairModel
    tables: Mapping[str, pd.DataFrame]
    sample_info: pd.DataFrame | None = None
    folder: Path | None = None
    verdicts_by_number: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: PairModel | Path | str | PairResults) -> PairResults:
        """The results of a model, or of the folder of `netbic pairs`."""
        if isinstance(source, cls):
            return source
        if not isinstance(source, (str, Path)):
            return cls(fitted_pair_model(source), {})
        folder = Path(source)
        model = fitted_pair_model(load(folder))
        found = ((name, read_results_table(folder, name, "pair")) for name in _OF_PAIRS)
        known = {name: table for name, table in found if table is not None}
        return cls(model, known, stored_samples(folder), folder, stored_verdicts(folder))

    @property
    def modules(self) -> range:
        """The numbers of the pairs, from 1."""
        return range(1, int(self.model.n_components_) + 1)

    @cached_property
    def names(self) -> list[str]:
        """The names of the pairs, see `netbic.enrichment.module_names`; gene sets name no doubtful pair."""
        sets = self.tables.get("gene_sets")
        if sets is not None:
            sets = sets[[self.verdicts_by_number.get(pair) != "doubtful" for pair in sets["pair"]]]
        return module_names(self.model, sets)

    @property
    def verdicts(self) -> list[str]:
        """The verdict on each pair; "" if they were not tested."""
        return [self.verdicts_by_number.get(pair, "") for pair in self.modules]

    @property
    def summary(self) -> pd.DataFrame:
        """A row per pair."""
        return self.tables["pairs"] if "pairs" in self.tables else pairs_table(self.model)

    def features(self, pair: int, side: str) -> pd.DataFrame:
        """`name`, `weight` and `side` of the features of X ("x") or of Y ("y") in a pair, largest weight first."""
        vector = getattr(self.model, f"{side}_weights_")[:, position_of(pair, len(self.modules), "pair")]
        order = heaviest(vector)
        names = _plain_names(feature_names(self.model, side), "feature")
        weights = vector[order].astype(float)
        return pd.DataFrame({"name": [names[at] for at in order], "weight": weights, "side": sides_of(weights)})

    def judged_features(self, pair: int, side: str) -> pd.DataFrame:
        """The same with `found_again`, `correlation` and `confidence` if these are known, the surest first."""
        features, table = self.features(pair, side), self.tables.get("weights", pd.DataFrame())
        if not set(_JUDGED_OF_PAIRS) <= set(table.columns):
            return features
        name = self.model.table_names_[SIDES.index(side)]
        own = table[(table["pair"] == pair) & (table["table"] == name)]
        if len(own) != len(features):  # both are in the order of the weights
            return features
        features = features.assign(**{each: own[each].to_numpy() for each in _JUDGED_OF_PAIRS})
        return features.sort_values("confidence", ascending=False, kind="stable")

    def scores(self, table: str | None = None) -> pd.DataFrame:
        """Scores of the samples in a table (default: the first one), held-out ones if they are known.

        The columns are those of `selection.sample_groups`, with `pair` for `module`, and `table`.
        """
        names = list(self.model.table_names_)
        table = names[0] if table is None else table
        if table not in names:
            raise InputError(f"table={table!r}: the tables are {' and '.join(names)}")
        known, number = self.tables.get("scores", pair_scores_table(self.model)), names.index(table) + 1
        score = known[f"held_out_{number}" if f"held_out_{number}" in known else f"score_{number}"]
        return known[["pair", "sample"]].assign(table=table, score=score, group="")

    def lists(self, pair: int) -> Iterator[tuple[str, str, list[str]]]:
        """The name of a table, the side, and the names of the features."""
        for side, table in zip(SIDES, self.model.table_names_, strict=True):
            own = self.features(pair, side)
            yield from ((table, each, own.loc[own["side"] == each, "name"].tolist()) for each in _SIDES)

    def sheet(self, pair: int) -> list[pd.DataFrame]:
        """The features of both tables, and samples with their scores in both."""
        names, tables = _plain_names(sample_names(self.model), "sample"), list[pd.DataFrame]()
        samples = pd.DataFrame({"sample": names})
        for side, table in zip(SIDES, self.model.table_names_, strict=True):
            tables.append(self.judged_features(pair, side).rename(columns={"name": f"feature of {table}"}))
            samples[f"score in {table}"] = getattr(self.model, f"{side}_scores_")[:, pair - 1]
        return [*tables, samples]


def results_of(source: AnySource) -> Results | PairResults:
    """The results of a model of one or two tables, or of its folder."""
    if isinstance(source, (Results, PairResults)):
        return source
    found = load(Path(source)) if isinstance(source, (str, Path)) else source
    return PairResults.of(source) if is_pair_model(found) else Results.of(source)


def _tables_in(adata: AnnData, key: str) -> dict[str, pd.DataFrame]:
    """The tables about modules that an AnnData object has, as in the folder of a fit."""
    stored = adata.uns[key]
    known = [name for name in ("verdicts", "gene_sets", "associations") if name in stored]
    tables = {name: stored[name].reset_index(drop=True) for name in known}
    tables["summary"] = get.summary_df(adata, key=key)
    tables["modules"] = pd.concat(
        [get.modules_df(adata, axis=axis, key=key).assign(axis=axis[:-1]) for axis in ("genes", "samples")]
    )
    if f"{key}_groups" in adata.obsm:
        scores, groups = get.scores_df(adata, key=key), adata.obsm[f"{key}_groups"].astype(object).fillna("")
        own = {"score": scores.to_numpy().T.ravel(), "group": groups.to_numpy().T.ravel()}
        modules = np.repeat(np.arange(1, scores.shape[1] + 1), len(scores))
        named = {"module": modules, "sample": np.tile(adata.obs_names, scores.shape[1])}
        tables["samples"] = pd.DataFrame(named | own)
    return tables


# Formats


def write_gmt(source: AnySource, path: Path | str, *, force: bool = False) -> Path:
    """Write the genes of each module and side as gene sets, for GSEA, Enrichr, g:Profiler and others.

    A line of the file is a set: its name (module_1_up, module_1_down, ...; of pairs pair_1_RNA_up, ...), a description
    with the name of the module, the side and the verdict, and the genes by decreasing absolute weight, all separated by
    tabs. Sides without genes have no line.

    Parameters
    ----------
    source : fitted model, AnnData object, folder of a fit or of pairs, Results or PairResults
    path : path
        Ends in .gmt as a rule. The file appears complete or not at all.
    force : bool
        Replace an existing file.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sets = netbic.io.read_gene_sets(netbic.exports.write_gmt(model, f"{folder}/modules.gmt"))
    >>> {name: len(genes) for name, genes in sets.items()}
    {'module_1_up': 28, 'module_1_down': 32}
    """
    results, lines = results_of(source), []
    for number, name, word in zip(results.modules, results.names, results.verdicts, strict=True):
        verdict = f", {word}" if word else ""
        for kind, side, own in results.lists(number):
            description = plain(f"{name} ({results.unit.capitalize()} {number}, {kind} {side}{verdict})")
            if own and (results.unit == "pair" or kind == "genes"):
                table = f"_{_slug(kind)}" if results.unit == "pair" else ""
                lines.append("\t".join([f"{results.unit}_{number}{table}_{side}", description, *own]) + "\n")
    return _write(results, path, "".join(lines).encode(), force)


def write_lists(source: AnySource, path: Path | str, *, force: bool = False) -> Path:
    """Write the genes and samples of each module and side as plain lists, a name per line.

    Genes are ordered by decreasing absolute weight, samples by decreasing absolute score. Samples are listed where they
    form groups, or where the fit selected some of them; all samples of a gradient would be no list of members.

    Parameters
    ----------
    source, force : as for `write_gmt`
    path : path
        If it ends in .txt, all lists are written to this file, each after a line that starts with #. Otherwise a
        folder for one file per list: module_1_genes_up.txt, module_1_samples_down.txt, ..., pair_1_RNA_up.txt, ...

    Examples
    --------
    >>> import pathlib, tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> results = netbic.exports.Results.of(model, study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = netbic.exports.write_lists(results, f"{folder}/lists")
    ...     sorted(file.name for file in written.glob("*.txt"))  # doctest: +NORMALIZE_WHITESPACE
    ['module_1_genes_down.txt', 'module_1_genes_up.txt', 'module_1_samples_down.txt', 'module_1_samples_up.txt']
    """
    results, blocks, contents = results_of(source), list[str](), dict[str, bytes]()
    for number, name in zip(results.modules, results.names, strict=True):
        for kind, side, own in results.lists(number):
            if own:
                what = f"features of {kind}" if results.unit == "pair" else kind
                title = plain(f"{results.unit.capitalize()} {number}: {len(own):,} {what} {side} ({name})")
                text = "".join(f"{each}\n" for each in own)
                blocks.append(f"# {title}\n{text}")
                contents[f"{results.unit}_{number}_{_slug(kind)}_{side}.txt"] = text.encode()
    is_file = Path(path).suffix.lower() == ".txt"
    return _write(results, path, "\n".join(blocks).encode() if is_file else contents, force)


def write_membership(source: Source, X: Any, path: Path | str, *, force: bool = False) -> Path:
    r"""Write the correlation of every gene with the scores of every module (kME) as a tab-separated table.

    Parameters
    ----------
    source, path, force : as for `write_gmt`
    X : DataFrame, array, sparse matrix or Dask array
        The data of the fit.

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = netbic.exports.write_membership(model, study.expression, f"{folder}/membership.tsv")
    ...     path.read_text().splitlines()[:2]
    ['gene\tmodule_1', 'GENE0000\t...']
    """
    results = Results.of(source)
    values = gene_membership(results.model, X)
    table = pd.DataFrame(values, columns=[f"module_{module}" for module in results.modules]).round(6)
    table.insert(0, "gene", results.gene_names)
    return _write(results, path, files.table_bytes(Path(path), table), force)


def write_overview(source: Source, path: Path | str, *, n_genes: int = 5, force: bool = False) -> Path:
    """Write a small table with a row per module: name, verdict, leading genes (the surest first), findings in words.

    Parameters
    ----------
    source, path, force : as for `write_gmt`
    n_genes : int
        Columns with leading genes.

    Examples
    --------
    >>> import tempfile, netbic, pandas as pd
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = netbic.exports.write_overview(model, f"{folder}/overview.tsv", n_genes=2)
    ...     pd.read_table(path).columns.tolist()
    ['module', 'name', 'verdict', 'gene_1', 'gene_2', 'n_genes']
    """
    table = Results.of(source).overview(n_genes)
    return _write(Results.of(source), path, files.table_bytes(Path(path), table), force)


_MOST_SAMPLES = 50_000  # of a sheet


def write_workbook(source: AnySource, path: Path | str, *, force: bool = False) -> Path:
    """Write a workbook (.xlsx) with a summary, a sheet per module, gene sets, associations and all numbers.

    The summary is that of `write_overview`; summary.tsv is the sheet Numbers. The sheet of a module lists its genes
    with weights and sides, and the samples with their scores and groups, or with their weights if scores are not known;
    that of a pair the features and scores of both tables. All names are cells of text: SEPT1 does not become a date,
    and a name that starts with =, +, - or @ is not a formula.

    Parameters
    ----------
    source, path, force : as for `write_gmt`
        The path ends in .xlsx.

    Notes
    -----
    Needs openpyxl (the extra ``excel``).
    """
    import_optional("openpyxl", "excel", "a workbook")
    results = results_of(source)
    summary = results.summary.copy()
    summary.insert(1, "name", results.names)
    sheets = {"Summary": [results.overview() if isinstance(results, Results) else summary]}
    for number in results.modules:
        *members, samples = results.sheet(number)
        samples = samples.sort_values(str(samples.columns[1]), ascending=False, kind="stable")[:_MOST_SAMPLES]
        sheets[f"{results.unit.capitalize()} {number}"] = [*members, samples]
    for title, name in (("Gene sets", "gene_sets"), ("Associations", "associations")):
        if name in results.tables:
            sheets[title] = [results.tables[name]]
    if isinstance(results, Results):
        sheets["Numbers"] = [summary]
    return _write(results, path, workbook_bytes(sheets), force)


_TOKEN = re.compile(r"[\w.:-]+", re.ASCII)  # what GraphML allows as an identifier
_KINDS = {str: "string", int: "int", float: "double"}


def write_cytoscape(source: Source, folder: Path | str, *, graph: object = None, force: bool = False) -> Path:
    """Write the network between the genes of each module, as GraphML and as Cytoscape JSON.

    The folder gets module_1.graphml and module_1.cyjs, module_2.graphml, ... Both can be opened in Cytoscape; GraphML
    is read by networkx, igraph and Gephi as well. Nodes have the attributes

    - `name`: the gene,
    - `weight`: its weight in the module, with its sign,
    - `side`: "up" or "down", the sign of the weight,
    - `score`: the absolute weight relative to the largest one of the module, between 0 and 1, e.g. for node sizes,
    - `rank`: 1 for the gene with the largest absolute weight,
    - `degree`: the number of edges inside the module.

    Edges have their `weight` in the network and, if some edges of the network inhibit, a `sign`: 1 (the edge activates)
    or -1 (it inhibits). Genes without an edge inside the module are nodes too.

    Parameters
    ----------
    source : as for `write_gmt`
    folder : path
        A new or empty folder.
    graph : graph-like, optional
        Default: the graph of the fit. Matched by name if both have names.
    force : bool
        Replace existing files of these names.

    Examples
    --------
    >>> import networkx, tempfile, netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=60, column_graph=study.network).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = netbic.exports.write_cytoscape(model, f"{folder}/networks")
    ...     first = networkx.read_graphml(written / "module_1.graphml")
    >>> len(first), sorted(first.nodes[str(model.names_["columns"][model.columns_[0]][0])])
    (60, ['degree', 'name', 'rank', 'score', 'side', 'weight'])
    """
    results = Results.of(source)
    model, whole = results.model, results.model.graphs_["columns"]
    if graph is not None:
        whole = match(graph, int(model.n_features_in_), model.names_["columns"], "column")
    if whole is None:
        raise InputError("the modules were found without a network: give one (`graph`)", ["graph"])
    contents: dict[str, bytes] = {}
    for module, name, verdict in zip(results.modules, results.names, results.verdicts, strict=True):
        genes = results.genes(module)
        inside = whole.subgraph(genes.index.to_numpy())
        largest = float(genes["weight"].abs().max()) if len(genes) else 0.0
        score, rank = genes["weight"].abs() / (largest or 1.0), np.arange(1, len(genes) + 1)
        rows = genes.assign(score=score, rank=rank, degree=inside.degrees).astype(object).to_dict("records")
        own = genes["name"].tolist()
        keys = _distinct(own, [name if _TOKEN.fullmatch(name) else f"node_{place}" for place, name in enumerate(own)])
        nodes = {key: {str(field): value for field, value in row.items()} for key, row in zip(keys, rows, strict=True)}
        edges = []
        for number, (tail, head, weight) in enumerate(zip(*inside.edges(), strict=True)):
            sign = {"sign": 1 if weight > 0 else -1} if whole.is_signed else {}
            between = {"id": f"e{number}", "source": keys[tail], "target": keys[head]}
            edges.append((between, {"weight": abs(float(weight)), **sign}))
        about = {"name": f"Module {module}: {name}"} | ({"verdict": verdict} if verdict else {})
        contents[f"module_{module}.graphml"] = _graphml(about, nodes, edges)
        drawn = {
            "nodes": [{"data": {"id": key, "shared_name": own["name"], **own}} for key, own in nodes.items()],
            "edges": [{"data": between | own} for between, own in edges],
        }
        content: Attributes = {"format_version": "1.0", "generated_by": f"netbic-{__version__}"}
        content |= {"target_cytoscapejs_version": "~2.1", "data": {"shared_name": about["name"], **about}}
        content["elements"] = drawn
        contents[f"module_{module}.cyjs"] = files.json_bytes(content)
    return _write(results, folder, contents, force)


def _graphml(about: Attributes, nodes: dict[str, Attributes], edges: list[tuple[Attributes, Attributes]]) -> bytes:
    """A network as GraphML."""
    root = ElementTree.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    of_edges = edges[0][1] if edges else {"weight": 1.0}
    for scope, attributes in (("graph", about), ("node", next(iter(nodes.values()), {})), ("edge", of_edges)):
        for name, value in attributes.items():
            kind = {"for": scope, "attr.name": name, "attr.type": _KINDS[type(value)]}
            ElementTree.SubElement(root, "key", kind, id=f"{scope}_{name}")

    def add(parent: ElementTree.Element, scope: str, own: Attributes, attributes: Attributes) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, scope, own)
        for name, value in attributes.items():
            text = repr(value) if isinstance(value, float) else str(value)
            ElementTree.SubElement(element, "data", key=f"{scope}_{name}").text = text
        return element

    drawn = add(root, "graph", {"id": "module", "edgedefault": "undirected"}, about)
    for key, attributes in nodes.items():
        add(drawn, "node", {"id": key}, attributes)
    for between, attributes in edges:
        add(drawn, "edge", between, attributes)
    ElementTree.indent(root, " ")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


# Where files are written: those of the user are never replaced unless asked for, results of a fit never


def _write(results: Results | PairResults, path: Path | str, content: bytes | Mapping[str, bytes], force: bool) -> Path:
    """Write a file, or files by name to a folder; one that belongs to the results of a fit is listed there."""
    path, own = Path(path), results.folder
    inputs: files.Inputs = {} if own is None else files.files_of(own)
    if isinstance(content, bytes):
        if own is not None and path.name in files.ADDED_FILES and path.absolute().parent == own.absolute():
            files.add_files(path.parent, {path.name: content})
        else:
            files.check_output_file(path, inputs, force=force)
            files.write_atomic(path, content)
        return path
    if path.exists() and not path.is_dir():
        raise FolderInUse(f"{path} is a file: name a folder")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be made, the folder around it does not exist: make that first")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise FolderInUse(
            f"{path} is not empty: choose a new folder, or `force=True` to replace files of the same names", ["force"]
        )
    made = not path.exists()
    try:
        files.check_writable(path, [*content, files.EXPORT_RECORD], inputs)
        files.write_files(path, content, files.EXPORT_RECORD, {})
    except BaseException:
        with suppress(OSError):
            if made:
                path.rmdir()
        raise
    return path


# Names as text: one line, no control characters, all different


def _slug(text: str) -> str:
    """A text as part of the name of a file or a gene set."""
    return re.sub(r"[^\w.-]+", "_", text)


def _plain_names(names: Iterable[object], kind: str) -> list[str]:
    """Names in one line each, numbered where they would be equal or empty; a warning says how many were changed."""
    given = [str(name) for name in names]
    written = _distinct(given, [plain(name) or "unnamed" for name in given])
    if changed := [pair for pair in zip(given, written, strict=True) if pair[0] != pair[1]]:
        some = f"{len(changed):,} name{'s' * (len(changed) > 1)} of {kind}s"
        before, after = map(shown, changed[0])
        warnings.warn(f"{some} cannot be written unchanged: {before} is written as {after}", stacklevel=3)
    return written


def _distinct(names: list[str], texts: list[str]) -> list[str]:
    """A text for each name, numbered where it would be equal to another; names that are their own text keep it."""
    kept = {name for name, text in zip(names, texts, strict=True) if name == text}
    written: dict[str, None] = {}
    for name, text in zip(names, texts, strict=True):
        own, number = text, 1
        while own in written or (own in kept and own != name):
            number += 1
            own = f"{text}_{number}"
        written[own] = None
    return list(written)


def __dir__() -> list[str]:
    return sorted(__all__)
