"""Networks from files, with an account of what was in them and what was dropped."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.graphs import Graph
from netbic.io.errors import InputError, one_line, shown, unusable
from netbic.io.expression import read_lines, read_parquet
from netbic.io.names import without_version
from netbic.io.tables import Names, read_columns
from netbic.io.text import MISSING, Layout, checked_file, read_bytes

_NOT_A_GENE = re.compile(r"^(CHEBI|KEGG|PUBCHEM|HMDB|DRUGBANK|CAS|LIPIDMAPS|CHEMBL)[:_]", re.IGNORECASE)
_WEIGHT_WORDS = {"weight", "score", "combined_score", "confidence", "probability"}
_RELATION_WORDS = {"relation", "interaction", "interaction_type", "type", "types"}
_STRING_HEADER = {"protein1", "protein2", "combined_score"}


@dataclass(frozen=True)
class NetworkAccount:
    """What a network file held, before it was brought to the genes of a matrix."""

    file: str
    edges_in_file: int
    self_loops: int = 0
    duplicates: int = 0
    filtered: int = 0
    not_genes: int = 0
    not_genes_named: tuple[str, ...] = ()
    relations: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class Network(NamedTuple):
    """A graph from a file and the account of how it came about."""

    graph: Graph
    account: NetworkAccount


class _Ends(NamedTuple):
    """Edges as read: both ends as categories, and what else is known of each."""

    source: Any
    target: Any
    weight: NDArray[np.float64] | None = None
    relation: Any = None
    n_header: int | None = None  # header lines of a text file


def read_network(
    path: Path | str,
    *,
    relations: Sequence[str] = (),
    min_score: float | None = None,
    string_info: Path | str | None = None,
    names: Path | str | Names | None = None,
    header: bool | None = None,
    weighted: bool | None = None,
    strip_versions: bool = False,
) -> Network:
    r"""Read a network.

    Parameters
    ----------
    path : path
        .sif (A relation B), an edge table of two columns or more as text or Parquet (the third may hold weights or
        relations), STRING's protein.links, .graphml, or a sparse matrix (.npz). Text may be packed with gzip.
    relations : sequence of str
        Keep edges of these relations only.
    min_score : float, optional
        Keep edges whose weight is at least this (STRING's scores run from 0 to 1000).
    string_info : path, optional
        STRING's protein.info, to name proteins by their genes.
    names : path or array, optional
        Node names of an .npz matrix, a line each.
    header : bool, optional
        Whether an edge table has a header line. None: guessed.
    weighted : bool, optional
        Whether weights count (or serve `min_score` alone). None: yes, but for STRING's scores.
    strip_versions : bool
        Drop the versions of Ensembl ids.

    Returns
    -------
    Network
        `graph` and `account`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sif") as file:
    ...     _ = file.write("TP53\tcontrols\tMDM2\nMDM2\tbinds\tTP53\nMDM2\tbinds\tMDM4\n")
    ...     file.flush()
    ...     network = netbic.io.read_network(file.name)
    >>> network.graph, network.account.duplicates
    (Graph(3 nodes, 2 edges), 1)
    """
    path = Path(path)
    kind = _kind(path)
    if kind == ".npz":
        return _from_npz(checked_file(path), names)
    if kind == ".graphml":
        ends, is_string = _graphml(path), False
    elif kind == ".parquet":
        ends, is_string = _from_frame(path, read_parquet(path)), False
    else:
        ends, is_string = _from_text(path, kind == ".sif", header)
    if string_info is not None:
        ends = _with_gene_names(path, ends, string_info)
    if strip_versions:
        ends = _renamed(ends, without_version)
    use_weights = not is_string if weighted is None else weighted
    return _network(path, ends, relations, min_score, use_weights)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    return {".pq": ".parquet", ".xml": ".graphml"}.get(last, last)


# ----------------------------------------------------------------------------------------------------------------
# Formats
# ----------------------------------------------------------------------------------------------------------------


def _from_text(path: Path, sif: bool, header: bool | None) -> tuple[_Ends, bool]:
    data = read_bytes(path)
    if sif:
        return _sif(path, data), False
    table = read_columns(path, header, data)
    words = {str(name).lower() for name in table.frame.columns}
    return _from_frame(path, table.frame, table.n_header), words >= _STRING_HEADER


def _sif(path: Path, data: bytes) -> _Ends:
    """A relation B; several targets on one line, and lines with a lone node, as Cytoscape writes them."""
    layout = Layout.of(path, data)
    if layout.n_fields == 3 and len(layout.first) == 3:
        try:
            has_header = layout.first[0].strip().upper() in ("PARTICIPANT_A", "SOURCE", "NODE1")
            table = read_columns(path, has_header, data)
            source, relation, target = (_column(table.frame, at) for at in range(3))
            return _Ends(source, target, None, relation, table.n_header)
        except InputError:
            pass  # lines of different lengths are allowed here
    sources, relations, targets = [], [], []
    for line, fields in layout.rows(data):
        if len(fields) == 2:
            what = "has two fields where A, relation and B are expected"
            raise unusable(path, what, "add the relation, or name the file .tsv if it has none", line=line)
        for target in fields[2:]:
            sources.append(fields[0].strip())
            relations.append(fields[1].strip())
            targets.append(target.strip())
    if not targets:
        raise unusable(path, "holds no edge", "a line is: A relation B")
    return _Ends(pd.Categorical(sources), pd.Categorical(targets), None, pd.Categorical(relations))


def _from_frame(path: Path, frame: pd.DataFrame, n_header: int | None = None) -> _Ends:
    """Which columns hold what, by their names or else by what is in them."""
    if frame.shape[1] < 2:
        raise unusable(path, f"has {frame.shape[1]} column", "an edge needs two ends")
    words = [str(name).lower() for name in frame.columns]
    rest = list(range(2, len(words)))
    weights = [at for at in rest if words[at] in _WEIGHT_WORDS] or ([2] if _is_numeric(frame, 2) else [])
    relation = [at for at in rest if words[at] in _RELATION_WORDS]
    source, target = 0, 1
    if not weights and not relation and len(words) == 3:  # A relation B, or A B relation: what repeats is the relation
        middle = frame.iloc[:, 1].nunique() < frame.iloc[:, 2].nunique()
        source, relation, target = (0, [1], 2) if middle else (0, [2], 1)
    if len(words) > 2 and words[1] in _RELATION_WORDS:
        source, relation, target = 0, [1], 2
        weights = [at for at in weights if at != 2]
    weight = _numbers(path, frame, weights[0], n_header) if weights else None
    kinds = _column(frame, relation[0]) if relation else None
    return _Ends(_column(frame, source), _column(frame, target), weight, kinds, n_header)


def _column(frame: pd.DataFrame, at: int) -> Any:
    """A column of names as categories of text; missing ones are empty."""
    column = frame.iloc[:, at]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Categorical(column)
    return pd.Categorical(column.astype(object).where(column.notna(), "").map(lambda name: str(name).strip()))


def _is_numeric(frame: pd.DataFrame, at: int) -> bool:
    if frame.shape[1] <= at:
        return False
    column = frame.iloc[:, at]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.api.types.is_numeric_dtype(column.dtype)
    return bool(pd.to_numeric(pd.Series(column.cat.categories), errors="coerce").notna().mean() > 0.5)


def _numbers(path: Path, frame: pd.DataFrame, at: int, n_header: int | None = None) -> NDArray[np.float64]:
    column = frame.iloc[:, at]
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.to_numeric(pd.Series(column.cat.categories, dtype=object), errors="coerce").to_numpy(np.float64)
        numbers = levels[column.cat.codes.to_numpy()]
    else:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers) | (numbers < 0))
    if bad.size:
        what = f"edge {bad[0] + 1} has the weight {shown(str(column.iloc[bad[0]]))}"
        line = _line(path, int(bad[0]), n_header)
        raise unusable(path, what, "weights must be numbers of at least 0", line=line)
    return numbers


def _graphml(path: Path) -> _Ends:
    """Nodes by their `name` (or `label`, or id), edges with their `weight`."""
    names: dict[str, str] = {}
    keys: dict[str, str] = {}
    ends: list[tuple[str, str]] = []
    weights: list[str] = []
    try:
        root = ElementTree.fromstring(read_bytes(path))
    except ElementTree.ParseError as problem:
        raise unusable(path, f"is not valid XML ({one_line(str(problem), 80)})", "export it again") from None
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "key":
            keys[element.get("id", "")] = (element.get("attr.name") or "").lower()
        elif tag == "node":
            own = _attributes(element, keys)
            identity = element.get("id", "")
            names[identity] = own.get("name") or own.get("label") or own.get("symbol") or identity
        elif tag == "edge":
            ends.append((element.get("source", ""), element.get("target", "")))
            weights.append(_attributes(element, keys).get("weight", "1"))
    if not ends:
        raise unusable(path, "holds no edge", "check that it is GraphML")
    table = pd.DataFrame([(names.get(a, a), names.get(b, b)) for a, b in ends], columns=["source", "target"])
    table["weight"] = weights
    frame = table.astype({"weight": "category"})
    return _Ends(_column(frame, 0), _column(frame, 1), _numbers(path, frame, 2))


def _attributes(element: ElementTree.Element, keys: dict[str, str]) -> dict[str, str]:
    found = {}
    for data in element:
        if data.tag.rpartition("}")[2] == "data":
            key = data.get("key", "")
            found[keys.get(key, key)] = (data.text or "").strip()
    return found


def _from_npz(path: Path, names: Path | str | Names | None) -> Network:
    try:
        weights = sp.coo_array(sp.load_npz(io.BytesIO(path.read_bytes())))
    except Exception as problem:  # zip, numpy and scipy each have their own ways to say that a file is damaged
        what = f"cannot be read as a sparse matrix ({one_line(str(problem), 120)})"
        raise unusable(path, what, "write it with scipy.sparse.save_npz") from None
    if weights.shape[0] != weights.shape[1]:
        raise unusable(path, f"holds a matrix of shape {weights.shape}", "a square one is needed")
    known = read_lines(names) if isinstance(names, (str, Path)) else names
    if known is not None and len(known) != weights.shape[0]:
        raise unusable(path, f"has {weights.shape[0]} nodes but {len(known)} names are given", "one each is needed")
    numbers = weights.data.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise unusable(path, "holds weights that are negative or no numbers", "weights must be at least 0")
    upper = np.minimum(weights.row, weights.col), np.maximum(weights.row, weights.col)
    kept, loops, _ = _distinct(upper[0], upper[1], numbers, weights.shape[0])
    symmetric = int(np.count_nonzero(weights.row != weights.col)) - len(kept)
    labels = np.arange(weights.shape[0]) if known is None else np.asarray(known, dtype=object)
    graph = _graph(upper[0][kept], upper[1][kept], numbers[kept], labels)
    account = NetworkAccount(
        path.name, int(len(kept) + loops), self_loops=loops, duplicates=max(symmetric - len(kept), 0)
    )
    return Network(graph, account)


def _with_gene_names(path: Path, ends: _Ends, info: Path | str) -> _Ends:
    """Rename proteins by a table whose first column holds their ids and whose second their names."""
    table = read_columns(info, header=None).frame
    if table.shape[1] < 2:
        raise unusable(info, "has one column", "protein.info has ids in the first and names in the second")
    renamed = dict(zip(table.iloc[:, 0].astype(str), table.iloc[:, 1].astype(str), strict=True))
    if not set(renamed).intersection(ends.source.categories):
        known, here = next(iter(renamed)), ends.source.categories[0]
        raise unusable(info, f"names no protein of {path.name}", f"it has {shown(known)}, the links have {shown(here)}")
    return _renamed(ends, lambda name: renamed.get(name, name))


def _renamed(ends: _Ends, rename: Callable[[str], str]) -> _Ends:
    """The same edges between renamed nodes."""
    parts = []
    for part in (ends.source, ends.target):
        labels = np.array([rename(name) for name in part.categories], dtype=object)
        parts.append(pd.Categorical(labels[part.codes]))
    return ends._replace(source=parts[0], target=parts[1])


# ----------------------------------------------------------------------------------------------------------------
# Edges to a graph
# ----------------------------------------------------------------------------------------------------------------


def _network(path: Path, ends: _Ends, relations: Sequence[str], min_score: float | None, use_weights: bool) -> Network:
    n_edges = len(ends.source)
    kept = _wanted(path, ends, relations, min_score)
    labels = pd.Index(ends.source.categories.astype(object)).union(ends.target.categories.astype(object), sort=True)
    tails = labels.get_indexer(ends.source.categories)[ends.source.codes]
    heads = labels.get_indexer(ends.target.categories)[ends.target.codes]
    _check_partners(path, ends, labels, tails, heads)
    tails, heads = tails[kept], heads[kept]
    weights = np.ones(tails.size) if ends.weight is None or not use_weights else ends.weight[kept]
    chosen, loops, duplicates = _distinct(tails, heads, weights, len(labels))
    if not chosen.size:
        raise unusable(path, "leaves no edge", "check the relations and the score asked for")
    foreign = [name for name in labels if _NOT_A_GENE.match(name)]
    account = NetworkAccount(
        file=path.name,
        edges_in_file=n_edges,
        self_loops=loops,
        duplicates=duplicates,
        filtered=n_edges - int(tails.size),
        not_genes=len(foreign),
        not_genes_named=tuple(foreign[:5]),
        relations=_counted(ends.relation),
    )
    used, codes = np.unique(np.concatenate([tails[chosen], heads[chosen]]), return_inverse=True)
    names = labels.to_numpy()[used]
    return Network(_graph(codes[: chosen.size], codes[chosen.size :], weights[chosen], names), account)


def _wanted(path: Path, ends: _Ends, relations: Sequence[str], min_score: float | None) -> NDArray[np.bool_]:
    kept = np.ones(len(ends.source), dtype=bool)
    if relations:
        if ends.relation is None:
            raise unusable(path, "has no column of relations", "leave the relations out")
        named = [bool(set(relations).intersection(str(level).split(";"))) for level in ends.relation.categories]
        if not any(named):
            known = ", ".join(list(_counted(ends.relation))[:8])
            raise unusable(path, f"has no relation {shown(', '.join(relations))}", f"it has {known}")
        kept &= np.array(named)[ends.relation.codes]
    if min_score is not None:
        if ends.weight is None:
            raise unusable(path, "has no column of scores", "leave the smallest score out")
        kept &= ends.weight >= min_score
        if not kept.any():
            raise unusable(
                path, f"has no edge with a score of {min_score:g} or more", f"its largest is {ends.weight.max():g}"
            )
    return kept


def _check_partners(path: Path, ends: _Ends, labels: pd.Index[Any], tails: NDArray[Any], heads: NDArray[Any]) -> None:
    blank = labels.isin(MISSING)
    if blank.any():
        at = int(np.flatnonzero(blank[tails] | blank[heads])[0])
        partner = ends.target[at] if blank[tails[at]] else ends.source[at]
        what = f"edge {at + 1} ({shown(str(partner))}) has no partner"
        raise unusable(path, what, "complete or remove it", line=_line(path, at, ends.n_header))


def _line(path: Path, number: int, n_header: int | None) -> int | None:
    """The line of a text file that holds an edge, blank lines counted."""
    if n_header is None:
        return None
    data = read_bytes(path)
    return next(islice(Layout.of(path, data).rows(data, n_header), number, None), (None, []))[0]


def _distinct(
    tails: NDArray[Any], heads: NDArray[Any], weights: NDArray[np.float64], n_nodes: int
) -> tuple[NDArray[np.intp], int, int]:
    """Which edges to keep, each pair once with its largest weight; and how many self-loops and repeats there were."""
    keys = np.minimum(tails, heads).astype(np.int64) * n_nodes + np.maximum(tails, heads)
    proper = np.flatnonzero(tails != heads)
    order = proper[np.lexsort((-weights[proper], keys[proper]))]
    first = np.ones(order.size, dtype=bool)
    first[1:] = keys[order[1:]] != keys[order[:-1]]
    kept = order[first]
    kept = kept[weights[kept] > 0]
    return kept, int(tails.size - proper.size), int(order.size - first.sum())


def _graph(tails: NDArray[Any], heads: NDArray[Any], weights: NDArray[np.float64], names: Names) -> Graph:
    both = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    matrix = sp.csr_array((np.concatenate([weights, weights]), both), shape=(len(names), len(names)))
    matrix.sort_indices()
    return Graph(matrix, names)


def _counted(relation: Any) -> dict[str, int]:
    """Edges per relation, most frequent first; an edge may have several, joined by semicolons."""
    if relation is None:
        return {}
    counts: dict[str, int] = {}
    for level, count in zip(
        relation.categories, np.bincount(relation.codes, minlength=len(relation.categories)), strict=True
    ):
        for name in str(level).split(";"):
            counts[name] = counts.get(name, 0) + int(count)
    return dict(sorted(counts.items(), key=lambda item: -item[1])[:50])
