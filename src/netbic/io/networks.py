"""Networks from files, with a summary of what was in them and what was dropped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Floats, sparse_problem
from netbic.edges import distinct_edges, sign_of
from netbic.errors import InputError, one_line, shown, some_names, unusable
from netbic.graph import Graph
from netbic.identifiers import without_version
from netbic.io.tables import (
    MISSING,
    Layout,
    check_characters,
    check_file,
    column_key,
    library_errors,
    parquet_errors,
    read_bytes,
    read_columns,
    read_lines,
    read_parquet,
    text_lines,
)

# Usual names of the columns with the two ends of an edge, most likely ones first: "source", "gene_a", "gene1", ...
_STEMS = """official_symbol_interactor gene_symbol genesymbol symbol gene node protein participant interactor partner
name entrez entrez_gene_interactor"""
_SOURCES = ["source", "from", "tf", "regulator", "source_name"]
_SOURCES += [f"{stem}{end}" for stem in _STEMS.split() for end in ("_a", "a", "1", "_1")]
_TARGETS = ["target", "to", *(f"{stem}{end}" for stem in _STEMS.split() for end in ("_b", "b", "2", "_2"))]
_WEIGHTS = {"weight", "weights", "score", "combined_score", "combined", "confidence", "probability", "strength"}
_SIGNS = {"sign", "signs", "edge_sign", "mor", "mode_of_regulation"}
_POSSIBLE_SIGNS = {"effect", "direction", "action", "regulation", "stimulation", "mechanism", "interaction_effect"}
_RELATIONS = {"relation", "relations", "interaction", "interaction_type", "type", "types", "edge_type", "mode"}
_SIF_HEADERS = ("participant_a", "source", "node1", "gene1", "gene_a", "interactor_a")
_NOT_A_GENE = re.compile(r"^(CHEBI|KEGG|PUBCHEM|HMDB|DRUGBANK|CAS|LIPIDMAPS|CHEMBL)[:_]", re.IGNORECASE)
_LOOKED_AT = 30  # lines
_SAVE = "write it with scipy.sparse.save_npz"
_FEWEST_NODES, _MOST_EMPTY = 10_000_000, 1000  # nodes for any number of edges, and for each edge


@dataclass(frozen=True)
class NetworkSummary:
    """What a network file held, before it was matched to the genes of a matrix."""

    file: str
    edges_in_file: int
    self_loops: int = 0
    duplicates: int = 0
    filtered: int = 0
    not_genes: int = 0
    not_genes_named: tuple[str, ...] = ()
    not_renamed: int = 0
    translated: int = 0  # nodes, by an id map
    relations: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    columns_not_read: tuple[str, ...] = ()
    weighted: bool = False
    signs_from: str = ""  # where signs of edges were read: "" if there are none
    inhibiting: int = 0
    sign_unknown: int = 0  # edges that were dropped
    contradictory: int = 0  # pairs of genes with edges of both signs, which were dropped


class Network(NamedTuple):
    """A graph from a file, and a summary of what the file held and what was dropped."""

    graph: Graph
    summary: NetworkSummary


class _Edges(NamedTuple):
    """Edges as read: both ends as categories, with weights, relations and signs if there are any."""

    source: Any
    target: Any
    weight: Floats | None = None
    relation: Any = None
    sign: Any = None  # words or numbers for activation and inhibition, as categories
    n_header: int | None = None  # header lines of a text file
    columns: dict[str, str] = {}  # noqa: RUF012  # which column was read as what
    unread: tuple[str, ...] = ()  # columns that were not


def read_network(
    path: Path | str,
    *,
    relations: str | Sequence[str] = (),
    min_score: float | None = None,
    string_info: Path | str | None = None,
    names: Path | str | Any = None,
    header: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    weighted: bool | None = None,
    strip_versions: bool = False,
    signs: bool | None = None,
) -> Network:
    r"""Read a network.

    Parameters
    ----------
    path : path
        .sif (A relation B), an edge table as text or Parquet (with a header, columns are recognised by their names;
        without, the third may hold weights or relations), STRING's protein.links, .graphml, or a sparse matrix (.npz;
        `write_network` and ``netbic graph`` store names in it). Text may be compressed with gzip.
    relations : str or sequence of str
        Keep only edges with one of these relations.
    min_score : float, optional
        Keep only edges with at least this weight (STRING's scores range from 0 to 1000).
    string_info : path, optional
        STRING's protein.info file, which translates proteins into genes.
    names : path or array, optional
        Names of the nodes of an .npz matrix; in a file, one name per line. None: those in the .npz file, if any.
    header : bool, optional
        Whether an edge table has a header line. None: guessed.
    source, target : str, optional
        Columns of an edge table that hold the two ends of an edge. None: recognised by their names, otherwise the
        first two.
    weighted : bool, optional
        Whether weights are used in the graph (otherwise only for `min_score`). None: yes, except for STRING's scores.
    strip_versions : bool
        Remove the versions of Ensembl ids.
    signs : bool, optional
        Whether edges activate or inhibit. None: if there is a column of signs (`sign`, or e.g. `effect` with nothing
        but signs), or if every relation that is kept has a sign; negative weights are an error. True: negative weights
        are those of edges that inhibit, and a file without signs is an error. False: signs are ignored.

    Returns
    -------
    Network
        `graph` and `summary`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sif") as file:
    ...     _ = file.write("TP53\tcontrols\tMDM2\nMDM2\tbinds\tTP53\nMDM2\tbinds\tMDM4\n")
    ...     file.flush()
    ...     network = netbic.io.read_network(file.name, relations=["binds"])
    >>> network.graph, network.summary.filtered
    (Graph(3 nodes, 2 edges), 1)
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sif") as file:
    ...     _ = file.write("TP53\tactivates\tCDKN1A\nMDM2\tinhibits\tTP53\n")
    ...     file.flush()
    ...     network = netbic.io.read_network(file.name)
    >>> network.graph, network.summary.signs_from
    (Graph(3 nodes, 2 edges, 1 of them inhibits), 'relations')
    """
    path, relations = Path(path), (relations,) if isinstance(relations, str) else relations
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind == ".npz":
        if relations or string_info is not None:
            what = "is a matrix, which has neither relations nor proteins"
            raise unusable(path, what, "leave out `relations` and `string_info`")
        return _read_npz(check_file(path), names, min_score, strip_versions, signs)
    if names is not None:
        raise unusable(path, "holds names itself", "leave out the list of names, which is for .npz files")
    if kind in (".graphml", ".xml", ".sif"):  # columns have names that were not in the file
        frame, n_header = _read_sif(path) if kind == ".sif" else (_read_graphml(path), None)
        edges = _edges_of_frame(path, frame, (None, None), n_header)._replace(columns={}, unread=())
    elif kind in (".parquet", ".pq"):
        with parquet_errors(path):  # columns may hold lists and other values that are no names
            edges = _edges_of_frame(path, read_parquet(path), (source, target))
    else:
        data = read_bytes(path)
        lengths = [line.count("\t") + 1 for line in islice(text_lines(data), _LOOKED_AT) if line.strip()]
        ragged = len(lengths) > 1 and min(lengths) > 2 and 2 * len(set(lengths)) > len(lengths)
        if ragged or ".gmt" in suffixes[-2:]:
            raise unusable(path, "looks like a GMT file of gene sets, not a network", "use it as `gene_sets`")
        frame, n_header = read_columns(path, True if source or target else header, data)
        edges = _edges_of_frame(path, frame, (source, target), n_header, named=n_header > 0)
    for part in ("source", "target", "relation", "sign"):
        if (column := getattr(edges, part)) is not None:
            check_characters(path, f"the {part} of edge", column)
    if weighted is None:
        weighted = not {"protein1", "protein2", "combined_score"} <= set(edges.columns.values())  # STRING's links
    ends, not_renamed = [edges.source, edges.target], 0
    if string_info is not None:
        ends, not_renamed = _rename_proteins(path, ends, string_info)
    if strip_versions:
        ends = [_renamed(end, without_version) for end in ends]
    edges = edges._replace(source=ends[0], target=ends[1])
    return _network(path, edges, _wanted(path, edges, relations, min_score), weighted, signs, not_renamed)


def _renamed(column: Any, rename: Callable[[Any], str]) -> Any:
    """A column as categories with other names, each of which is made once; missing values are empty."""
    codes, levels = pd.factorize(column)
    same, names = pd.factorize(np.array([*map(rename, levels), ""], dtype=object))  # some may now be the same
    return pd.Categorical.from_codes(same[codes], pd.Index(names)).remove_unused_categories()


def translate_nodes(network: Network, names: Mapping[str, str]) -> Network:
    """The network with other names of some nodes; nodes that get the same name become one."""
    graph, summary = network
    if graph.names is None or not names:
        return network
    codes, labels = pd.factorize(np.array([names.get(str(name), str(name)) for name in graph.names], dtype=object))
    tails, heads, weights = graph.edges()
    matrix = distinct_edges(len(labels), codes[tails], codes[heads], weights)[0]
    return Network(Graph(matrix, labels, signed=True), replace(summary, translated=len(names)))


def _rename_proteins(path: Path, ends: list[Any], info: Path | str) -> tuple[list[Any], int]:
    """Rename proteins by a table whose first column holds their ids and whose second their names."""
    table, _ = read_columns(info, header=None)
    if table.shape[1] < 2 or column_key(str(table.columns[1])) == "alias":
        raise unusable(info, "is not STRING's protein.info", "that has ids in its first column and names in its second")
    check_characters(info, "protein", table.iloc[:, 1])
    names = dict(zip(table.iloc[:, 0].astype(str), table.iloc[:, 1].astype(str), strict=True))
    proteins = set(ends[0].categories).union(ends[1].categories)
    unknown = proteins.difference(names)
    if unknown == proteins:
        known, here = next(iter(names)), ends[0].categories[0]
        raise unusable(info, f"names no protein of {path.name}", f"it has {shown(known)}, the links have {shown(here)}")
    return [_renamed(end, lambda name: names.get(name, name)) for end in ends], len(unknown)


def _wanted(path: Path, edges: _Edges, relations: Sequence[str], min_score: float | None) -> Bools:
    """Which edges have one of the relations and a high enough score."""
    kept = np.ones(len(edges.source), dtype=bool)
    if relations:
        if edges.relation is None:
            raise unusable(path, "has no column of relations", "leave out `relations`")
        named = [bool(set(relations).intersection(str(level).split(";"))) for level in edges.relation.categories]
        if not any(named):
            known = ", ".join(list(_count_relations(edges.relation))[:8])
            raise unusable(path, f"has no relation {shown(', '.join(relations))}", f"it has {known}")
        kept &= np.array(named)[edges.relation.codes]
    if min_score is not None:
        if edges.weight is None:
            raise unusable(path, "has no column of scores", "leave out `min_score`")
        kept &= np.abs(edges.weight) >= min_score
        if not kept.any():
            what = f"has no edge with a score of {min_score:g} or more"
            raise unusable(path, what, f"its largest is {edges.weight.max():g}")
    return kept


def _network(path: Path, edges: _Edges, wanted: Bools, weighted: bool, signs: bool | None, not_renamed: int) -> Network:
    """Make a graph of the edges that are wanted, without loops, copies and contradictions."""
    sign, signs_from = _signs_of_edges(path, edges, wanted, signs)
    kept = wanted if sign is None else wanted & (sign != 0)
    labels = pd.Index(edges.source.categories.astype(object)).union(edges.target.categories.astype(object), sort=True)
    tails, heads = (labels.get_indexer(end.categories)[end.codes] for end in (edges.source, edges.target))
    blank = labels.isin(MISSING)
    if blank.any():
        at = int(np.flatnonzero(blank[tails] | blank[heads])[0])
        partner = edges.target[at] if blank[tails[at]] else edges.source[at]
        what = f"edge {at + 1} ({shown(str(partner))}) has no partner"
        raise unusable(path, what, "complete or remove it", line=_line_of_edge(path, at, edges.n_header))
    weights = np.ones(kept.size) if edges.weight is None or not weighted else np.abs(edges.weight)
    weights = weights if sign is None else weights * sign
    graph, counts = _graph(path, tails[kept], heads[kept], weights[kept], labels.to_numpy())
    foreign = [name for name in labels if _NOT_A_GENE.match(name)]
    summary = NetworkSummary(
        file=path.name,
        edges_in_file=kept.size,
        filtered=int(np.count_nonzero(~wanted)),
        not_genes=len(foreign),
        not_genes_named=tuple(foreign[:5]),
        not_renamed=not_renamed,
        relations=_count_relations(edges.relation),
        columns=edges.columns,
        columns_not_read=edges.unread,
        signs_from=signs_from,
        sign_unknown=int(np.count_nonzero(wanted & ~kept)),
        **counts,
    )
    return Network(graph, summary)


def _count_relations(relation: Any) -> dict[str, int]:
    """Edges per relation, most frequent first; an edge may have several, joined by semicolons."""
    counts = Counter[str]()
    for level, count in () if relation is None else relation.value_counts().items():
        for name in str(level).split(";"):
            counts[name] += int(count)
    return dict(counts.most_common(50))


def _graph(
    path: Path, tails: Array, heads: Array, weights: Floats, names: Array, keep_isolated: bool = False
) -> tuple[Graph, dict[str, Any]]:
    """A graph with each pair of nodes once, with its largest weight, and counts for the summary."""
    matrix, counts, _ = distinct_edges(len(names), tails, heads, weights)
    if not matrix.nnz:
        raise unusable(path, "has no edge left", "check `relations` and `min_score`")
    if not keep_isolated:
        used = np.flatnonzero(np.diff(matrix.indptr))
        matrix, names = matrix[used][:, used], names[used]
    graph = Graph(matrix, names, signed=True)
    weighted = bool((np.abs(matrix.data) != 1).any())
    return graph, {**counts, "weighted": weighted, "inhibiting": graph.n_inhibiting}


# Edges of text files, tables and GraphML


def _read_sif(path: Path) -> tuple[pd.DataFrame, int | None]:
    """A relation B; a line may have several targets, or a single node, as Cytoscape writes them."""
    data, names = read_bytes(path), ["source", "relation", "target"]
    layout = Layout.of(path, data)
    has_header = column_key(layout.first[0]) in _SIF_HEADERS
    if layout.n_fields == 3 or has_header:
        try:
            frame, n_header = read_columns(path, has_header, data)
            return frame.iloc[:, :3].set_axis(names, axis=1), n_header
        except (InputError, ValueError):
            pass  # lines of different lengths are allowed here
    rows = list(layout.rows(data, skip=int(has_header)))
    short = next((line for line, fields in rows if len(fields) == 2), None)
    if short is not None:
        what = "has two fields where A, relation and B are expected"
        raise unusable(path, what, "add the relation, or name the file .tsv if it has none", line=short)
    edges = [[field.strip() for field in fields] for _, fields in rows if len(fields) > 2]
    if not edges:
        raise unusable(path, "holds no edge", "a line is: A relation B")
    last = 3 if has_header else None
    if len({len(row) for row in edges}) == 1 and len(edges[0]) > 3:  # do fields after A, relation and B annotate?
        nodes = {field for row in edges for field in (row[0], row[2])}
        last = 3 if sum(row[3] in nodes for row in edges) < 0.1 * len(edges) else last
    return pd.DataFrame([(*row[:2], target) for row in edges for target in row[2:last]], columns=names), None


def _read_graphml(path: Path) -> pd.DataFrame:
    """Nodes by their `name` (or `label`, or id), edges with their `weight` and `sign`."""
    names, keys, edges = dict[str, str](), dict[str, str](), list[tuple[str, str, str, str]]()
    try:
        root = ElementTree.fromstring(read_bytes(path))
    except ElementTree.ParseError as problem:
        raise unusable(path, f"is not valid XML ({one_line(str(problem), 80)})", "export it again") from None
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "key":
            keys[element.get("id", "")] = (element.get("attr.name") or "").lower()
        elif tag in ("node", "edge"):
            data = [child for child in element if child.tag.rpartition("}")[2] == "data"]
            own = {keys.get(child.get("key", ""), child.get("key", "")): (child.text or "").strip() for child in data}
            if tag == "node":
                identity = element.get("id", "")
                names[identity] = own.get("name") or own.get("label") or own.get("symbol") or identity
            else:
                ends = element.get("source", ""), element.get("target", "")
                edges.append((*ends, own.get("weight", "1"), own.get("sign", "")))
    if not edges:
        raise unusable(path, "holds no edge", "check that it is GraphML")
    rows = [(names.get(a, a), names.get(b, b), weight, sign) for a, b, weight, sign in edges]
    table = pd.DataFrame(rows, columns=["source", "target", "weight", "sign"])
    return table if table["sign"].any() else table.drop(columns="sign")


def _edges_of_frame(
    path: Path,
    frame: pd.DataFrame,
    ends: tuple[str | None, str | None],
    n_header: int | None = None,
    named: bool = True,
) -> _Edges:
    """Edges of a table, whose columns are given (`ends`), or recognised by their names or their content."""
    if frame.shape[1] < 2:
        raise unusable(path, f"has {frame.shape[1]} column", "an edge table needs two columns, one for each end")
    check_characters(path, "column", frame.columns)
    keys = [column_key(str(name)) if named else "" for name in frame.columns]
    source, target, relation = _end_columns(path, frame, keys, ends)
    others = [at for at in range(len(keys)) if at not in (source, target, relation)]
    weight = next((at for at in others if keys[at] in _WEIGHTS), None)
    if weight is None and not named and len(keys) == 3 and others and _is_numeric(frame, others[0]):
        weight = others[0]
    if relation is None:
        relation = next((at for at in others if keys[at] in _RELATIONS), None)
    sign = next((at for at in others if keys[at] in _SIGNS), None)
    for at in others:
        if sign is None and keys[at] in _POSSIBLE_SIGNS and at not in (weight, relation):
            found = {sign_of(level) for level in _names_in(frame, at).categories}
            sign = at if None not in found and {1.0, -1.0} <= found else None  # nothing but signs, and both of them
    roles = {"source": source, "target": target, "weight": weight, "relation": relation, "sign": sign}
    return _Edges(
        _names_in(frame, source),
        _names_in(frame, target),
        None if weight is None else _weights(path, frame, weight, n_header),
        None if relation is None else _names_in(frame, relation),
        None if sign is None else _names_in(frame, sign),
        n_header,
        {role: str(frame.columns[at]) for role, at in roles.items() if at is not None and named},
        tuple(str(frame.columns[at]) for at in range(len(keys)) if at not in roles.values() and named),
    )


def _end_columns(
    path: Path, frame: pd.DataFrame, keys: Sequence[str], ends: tuple[str | None, str | None]
) -> tuple[int, int, int | None]:
    """Positions of both ends, and of the relation in a table of three columns."""
    places, names = [], [str(column) for column in frame.columns]
    for asked, usual in zip(ends, (_SOURCES, _TARGETS), strict=True):
        if asked is not None and asked not in names:
            known = ", ".join(map(shown, names[:12]))
            raise unusable(path, f"has no column {shown(asked)}", f"its columns are {known}")
        found = next((keys.index(name) for name in usual if name in keys), None)
        places.append(found if asked is None else names.index(asked))
    if places[0] is not None and places[1] is not None:
        return places[0], places[1], None
    first = 1 if keys[0] in ("", "unnamed_0", "index") and any(keys) and len(keys) > 2 else 0
    if len(keys) - first == 3 and not _is_numeric(frame, first + 2):
        # A relation B, or A B relation: the ends share names; otherwise the relation has fewer different values.
        one, two, three = (set(_names_in(frame, first + k).categories) for k in range(3))
        shared = len(one & two), len(one & three)
        if shared[1] > shared[0] or (shared[1] == shared[0] and len(two) < len(three)):
            return first, first + 2, first + 1
        return first, first + 1, first + 2
    return first, first + 1, None


def _names_in(frame: pd.DataFrame, at: int) -> Any:
    """A column of names as categories of text; missing ones are empty, whole numbers (Entrez ids) without a point."""

    def as_name(value: Any) -> str:
        return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()

    return _renamed(frame.iloc[:, at], as_name)


def _numbers(column: Any) -> Floats:
    """A column as numbers, NaN where there is none; each different value is parsed once."""
    codes, levels = pd.factorize(column)
    numbers = pd.to_numeric(pd.Series(levels).astype(object), errors="coerce")
    return np.asarray(np.append(numbers.to_numpy(np.float64, na_value=np.nan), np.nan)[codes])


def _is_numeric(frame: pd.DataFrame, at: int) -> bool:
    """Whether most of the different values of a column are numbers."""
    return bool(2 * np.isfinite(found := _numbers(frame.iloc[:, at].unique())).sum() > found.size)


def _weights(path: Path, frame: pd.DataFrame, at: int, n_header: int | None = None) -> Floats:
    weights = _numbers(frame.iloc[:, at])
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size:
        what = f"edge {bad[0] + 1} has the weight {shown(str(frame.iloc[bad[0], at]))}"
        raise unusable(path, what, "weights must be numbers", line=_line_of_edge(path, int(bad[0]), n_header))
    return weights


def _line_of_edge(path: Path, number: int, n_header: int | None) -> int | None:
    """The line number of an edge in a text file; blank lines count."""
    if n_header is None:
        return None
    data = read_bytes(path)
    return next(islice(Layout.of(path, data).rows(data, n_header), number, None), (None, []))[0]


# Which edges activate and which inhibit


def _signs_of_edges(path: Path, edges: _Edges, kept: Bools, wanted: bool | None) -> tuple[Floats | None, str]:
    """The signs of all edges (1, -1, or 0 if not known), and where they were read from.

    None if the file has no signs for the edges that are kept, or if they are not wanted. `wanted`: None reads a column
    of signs, and relations if each of them has a sign; True reads negative weights as well, and raises an error if
    there are no signs.
    """
    if wanted is False:
        return None, ""
    weight = np.zeros(0) if edges.weight is None else edges.weight
    negative = bool((weight < 0).any())
    if edges.sign is not None:
        column = edges.columns.get("sign", "sign")
        if negative:
            raise unusable(path, f"has a column of signs ({column}) and negative weights", "keep one of them")
        found = [sign_of(level) for level in edges.sign.categories]
        odd = [str(level) for level, sign in zip(edges.sign.categories, found, strict=True) if sign is None]
        if odd:
            remedy = "1 and -1, + and -, activation and inhibition and similar words are known (`signs=False` ignores"
            what = f"its column of signs ({column}) contains {some_names(odd, 5)}"
            raise unusable(path, what, f"{remedy} them)")
        return np.array(found, dtype=np.float64)[edges.sign.codes], f"column {column}"
    if negative and wanted is None:
        at = int(np.argmax(weight < 0))
        what = f"edge {at + 1} has the weight '{weight[at]:g}'"
        remedy = "weights must be numbers of at least 0, unless negative ones mean that an edge inhibits (`signs=True`)"
        remedy += "; `signs=False` uses absolute values"
        raise unusable(path, what, remedy, line=_line_of_edge(path, at, edges.n_header))
    if negative:
        return np.sign(weight), "negative weights"
    if edges.relation is not None:
        by_relation = [_sign_of_relation(str(level)) for level in edges.relation.categories]
        used = [by_relation[code] for code in np.unique(edges.relation.codes[kept])]
        if None not in used and -1.0 in used:
            levels = np.array([0.0 if sign is None else sign for sign in by_relation])
            return np.asarray(levels[edges.relation.codes]), "relations"
    if wanted:
        remedy = "give a column `sign`, relations that all activate or inhibit (`relations` selects them), or negative "
        raise unusable(path, "has no signs of edges", f"{remedy}weights")
    return None, ""


def _sign_of_relation(level: str) -> float | None:
    """The sign of an edge with one or several relations; 0 if they contradict each other, None without signs."""
    signs = {sign_of(word) for word in level.split(";")}
    if None in signs or signs == {0.0}:
        return None
    known = signs - {0.0}
    return known.pop() if len(known) == 1 else 0.0


# Sparse matrices in .npz files, as SciPy writes them


def _read_npz(path: Path, names: Any, min_score: float | None, strip_versions: bool, signs: bool | None) -> Network:
    """A square matrix of weights; the file may hold the names of its rows, and a mark that negative weights inhibit."""
    with library_errors(path, "cannot be read as a sparse matrix", _SAVE):
        with np.load(path, allow_pickle=False) as file:
            if "format" not in file:
                raise unusable(path, "holds arrays, but no sparse matrix", _SAVE)
            for part in {"indices", "indptr", "row", "col", "offsets"}.intersection(file):
                if (kind := file[part].dtype).kind not in "iu":  # SciPy would round them
                    raise unusable(path, f"the array {part} of the matrix holds {kind}, not integers", _SAVE)
            stored_names, is_marked = file.get("names"), "signed" in file
        matrix: Any = sp.load_npz(path)
        # Compiled code trusts the arrays of a matrix, so they are checked before anything is computed.
        if problem := sparse_problem(matrix, "the matrix"):
            raise unusable(path, problem, _SAVE)
        if max(matrix.shape) > max(_FEWEST_NODES, _MOST_EMPTY * matrix.data.size):  # pointers would fill the memory
            what = f"has shape {matrix.shape} but {matrix.data.size:,} entries"
            raise unusable(path, what, "leave out nodes without edges")
        weights = sp.coo_array(matrix)
    n = weights.shape[0]
    if n != weights.shape[1]:
        raise unusable(path, f"holds a matrix of shape {weights.shape}", "a square one is needed")
    labels = _node_names(path, n, stored_names if names is None else names, strip_versions)
    numbers = weights.data.astype(np.float64)
    signed = is_marked if signs is None else signs
    if not np.isfinite(numbers).all() or ((numbers < 0).any() and signs is None and not signed):
        remedy = "weights must be at least 0, unless negative ones mean that an edge inhibits (`signs=True`)"
        raise unusable(path, "holds weights that are negative or not finite", remedy)
    numbers = numbers if signed else np.abs(numbers)
    enough = np.abs(numbers) >= (0.0 if min_score is None else min_score)
    graph, counts = _graph(path, weights.row[enough], weights.col[enough], numbers[enough], labels, keep_isolated=True)
    counts |= {"duplicates": 0, "signs_from": "negative weights" if graph.is_signed else ""}
    return Network(graph, NetworkSummary(path.name, graph.n_edges + counts["self_loops"], **counts))


def _node_names(path: Path, size: int, names: Any, strip_versions: bool) -> Array:
    """The names of the nodes: given, in a file, or in the .npz file; otherwise their numbers."""
    if names is None:
        return np.arange(size)
    is_file = isinstance(names, (str, Path))
    known = read_lines(names) if is_file else np.asarray(names)
    if known.ndim != 1 or known.dtype.kind not in "OUiu":
        what = f"its array `names` has {known.ndim} dimensions and type {known.dtype}"
        raise unusable(path, what, "one name (text or integer) for each node is needed")
    check_characters(names if is_file else path, "node", known)
    if known.dtype.kind in "OU":
        known = np.array([without_version(str(name)) if strip_versions else name for name in known], dtype=object)
    if len(known) != size:
        raise unusable(path, f"has {size} nodes but {len(known)} names", "one name for each node is needed")
    twice = pd.Index(known).duplicated()
    if twice.any():
        raise unusable(path, f"the name {shown(str(known[twice][0]))} is given twice", "make the names unique")
    return known
