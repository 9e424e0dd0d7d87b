"""Edges from SIF files, edge tables and GraphML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.errors import InputError, one_line, shown, unusable
from netbic.graph import sign_of
from netbic.io.characters import check_categories, check_characters
from netbic.io.tables import column_key, read_columns
from netbic.io.text import Layout, check_quotes, read_bytes, text_lines

# Usual names of the columns with the two ends of an edge, most likely ones first: "source", "gene_a", "gene1", ...
_STEMS = """official_symbol_interactor gene_symbol genesymbol symbol gene node protein participant interactor partner
name entrez entrez_gene_interactor"""
_SOURCES = ["source", "from", "tf", "regulator", "source_name"]
_SOURCES += [f"{stem}{end}" for stem in _STEMS.split() for end in ("_a", "a", "1", "_1")]
_TARGETS = ["target", "to", *(f"{stem}{end}" for stem in _STEMS.split() for end in ("_b", "b", "2", "_2"))]
_WEIGHTS = {"weight", "weights", "score", "combined_score", "combined", "confidence", "probability", "strength"}
_LOOKED_AT = 30  # lines
_SIGNS = {"sign", "signs", "edge_sign", "mor", "mode_of_regulation"}
_POSSIBLE_SIGNS = {"effect", "direction", "action", "regulation", "stimulation", "mechanism", "interaction_effect"}
_RELATIONS = {"relation", "relations", "interaction", "interaction_type", "type", "types", "edge_type", "mode"}


class Edges(NamedTuple):
    """Edges as read: both ends as categories, with weights and relations if there are any."""

    source: Any
    target: Any
    weight: Floats | None = None
    relation: Any = None
    n_header: int | None = None  # header lines of a text file
    columns: dict[str, str] | None = None  # which column was read as what
    unread: tuple[str, ...] = ()  # columns that were not
    sign: Any = None  # words or numbers for activation and inhibition, as categories

    @property
    def is_string(self) -> bool:
        """Whether these are STRING's links."""
        return {"protein1", "protein2", "combined_score"} <= set((self.columns or {}).values())

    def renamed(self, rename: Callable[[str], str]) -> Edges:
        """The same edges between renamed nodes."""
        parts = []
        for part in (self.source, self.target):
            labels = np.array([rename(name) for name in part.categories], dtype=object)
            parts.append(pd.Categorical(labels[part.codes]))
        return self._replace(source=parts[0], target=parts[1])


def edges_of_text(path: Path, sif: bool, header: bool | None, ends: tuple[str | None, str | None]) -> Edges:
    """Edges of a text file."""
    data = read_bytes(path)
    if sif:
        return _checked(path, _sif(path, data))
    if _holds_gene_sets(path, data):
        what = "looks like a GMT file of gene sets, not a network"
        raise unusable(path, what, "use it as `gene_sets`", parameters=["gene_sets"])
    table = read_columns(path, True if any(ends) else header, data)
    return edges_of_frame(path, table.frame, ends, table.n_header)


def _holds_gene_sets(path: Path, data: bytes) -> bool:
    """Whether a file is called .gmt, or has tab-separated lines that are mostly long and of different lengths."""
    if ".gmt" in (suffix.lower() for suffix in path.suffixes[-2:]):
        return True
    lengths = [line.count("\t") + 1 for line in islice(text_lines(data), _LOOKED_AT) if line.strip()]
    return len(lengths) > 1 and min(lengths) > 2 and 2 * len(set(lengths)) > len(lengths)


def _checked(path: Path, edges: Edges) -> Edges:
    """The same edges; an error if a name contains a control character."""
    for part in ("source", "target", "relation", "sign"):
        if (column := getattr(edges, part)) is not None:
            check_categories(path, f"the {part} of edge", column)
    return edges


def _sif(path: Path, data: bytes) -> Edges:
    """A relation B; a line may have several targets, or a single node, as Cytoscape writes them."""
    layout = Layout.of(path, data)
    check_quotes(layout, data)
    has_header = column_key(layout.first[0]) in ("participant_a", "source", "node1", "gene1", "gene_a", "interactor_a")
    if layout.n_fields == 3 or has_header:
        try:
            table = read_columns(path, has_header, data)
            source, relation, target = (_column(table.frame, at) for at in range(3))
            return Edges(source, target, None, relation, table.n_header)
        except InputError:
            pass  # lines of different lengths are allowed here
    rows = list(layout.rows(data, skip=int(has_header)))
    short = next((line for line, fields in rows if len(fields) == 2), None)
    if short is not None:
        what = "has two fields where A, relation and B are expected"
        raise unusable(path, what, "add the relation, or name the file .tsv if it has none", line=short)
    edges = [fields for _, fields in rows if len(fields) > 2]
    if not edges:
        raise unusable(path, "holds no edge", "a line is: A relation B")
    last = 3 if has_header or _annotated(edges) else None
    triples = [(row[0].strip(), row[1].strip(), target.strip()) for row in edges for target in row[2:last]]
    sources, relations, targets = (pd.Categorical(list(part)) for part in zip(*triples, strict=True))
    return Edges(sources, targets, None, relations)


def _annotated(edges: list[list[str]]) -> bool:
    """Whether the fields after A, relation and B annotate the edge instead of naming more targets."""
    if len({len(row) for row in edges}) > 1 or len(edges[0]) == 3:
        return False
    nodes = {field for row in edges for field in (row[0], row[2])}
    return sum(row[3] in nodes for row in edges) < 0.1 * len(edges)


def edges_of_frame(
    path: Path, frame: pd.DataFrame, ends: tuple[str | None, str | None] = (None, None), n_header: int | None = None
) -> Edges:
    """Edges of a table, whose columns are given (`ends`), or recognised by their names or their content."""
    if frame.shape[1] < 2:
        raise unusable(path, f"has {frame.shape[1]} column", "an edge table needs two columns, one for each end")
    check_characters(path, "column", frame.columns)
    named = n_header != 0
    keys = [column_key(str(name)) if named else "" for name in frame.columns]
    source, target, relation = _end_columns(path, frame, keys, ends)
    others = [at for at in range(len(keys)) if at not in (source, target, relation)]
    weight = next((at for at in others if keys[at] in _WEIGHTS), None)
    if weight is None and not named and len(keys) == 3 and others and _is_numeric(frame, others[0]):
        weight = others[0]
    if relation is None:
        relation = next((at for at in others if keys[at] in _RELATIONS), None)
    sign = next((at for at in others if keys[at] in _SIGNS), None)
    if sign is None:
        possible = (at for at in others if keys[at] in _POSSIBLE_SIGNS and at not in (weight, relation))
        sign = next((at for at in possible if _has_signs(_column(frame, at))), None)
    roles = {"source": source, "target": target, "weight": weight, "relation": relation, "sign": sign}
    columns = {role: str(frame.columns[at]) for role, at in roles.items() if at is not None and named}
    edges = Edges(
        _column(frame, source),
        _column(frame, target),
        None if weight is None else _numbers(path, frame, weight, n_header),
        None if relation is None else _column(frame, relation),
        n_header,
        columns or None,
        tuple(str(frame.columns[at]) for at in range(len(keys)) if at not in roles.values() and named),
        None if sign is None else _column(frame, sign),
    )
    return _checked(path, edges)


def _has_signs(column: Any) -> bool:
    """Whether a column contains nothing but signs of edges, and both of them."""
    found = {sign_of(level) for level in column.categories}
    return None not in found and {1.0, -1.0} <= found


def _end_columns(
    path: Path, frame: pd.DataFrame, keys: Sequence[str], ends: tuple[str | None, str | None]
) -> tuple[int, int, int | None]:
    """Positions of both ends, and of the relation in a table of three columns."""
    asked = [_asked(path, frame, name) for name in ends]
    usual = [next((keys.index(name) for name in known if name in keys), None) for known in (_SOURCES, _TARGETS)]
    source, target = (given if given is not None else named for given, named in zip(asked, usual, strict=True))
    if source is not None and target is not None:
        return source, target, None
    first = 1 if keys[0] in ("", "unnamed_0", "index") and any(keys) and len(keys) > 2 else 0
    if len(keys) - first == 3 and not _is_numeric(frame, first + 2):
        # A relation B, or A B relation: the ends share names; otherwise the relation has fewer different values.
        one, two, three = (set(_column(frame, first + k).categories) for k in range(3))
        shared = len(one & two), len(one & three)
        if shared[1] > shared[0] or (shared[1] == shared[0] and len(two) < len(three)):
            return first, first + 2, first + 1
        return first, first + 1, first + 2
    return first, first + 1, None


def _asked(path: Path, frame: pd.DataFrame, name: str | None) -> int | None:
    if name is None:
        return None
    names = [str(column) for column in frame.columns]
    if name not in names:
        raise unusable(path, f"has no column {shown(name)}", f"its columns are {', '.join(map(shown, names[:12]))}")
    return names.index(name)


def _column(frame: pd.DataFrame, at: int) -> Any:
    """A column of names as categories of text; missing ones are empty."""
    column = frame.iloc[:, at]
    if isinstance(column.dtype, pd.CategoricalDtype) and column.notna().all() and column.cat.categories.dtype == object:
        return pd.Categorical(column).remove_unused_categories()
    values = column.astype(object).where(column.notna(), "")
    if pd.api.types.infer_dtype(values) == "string":  # most names occur many times: each is treated once
        codes, names = pd.factorize(values)
        return pd.Categorical(pd.Index(names).map(_as_name).to_numpy(object)[codes])
    return pd.Categorical(values.map(_as_name))


def _as_name(value: Any) -> str:
    """A name as text; whole numbers, such as Entrez ids, without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _is_numeric(frame: pd.DataFrame, at: int) -> bool:
    if frame.shape[1] <= at:
        return False
    column = frame.iloc[:, at]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.api.types.is_numeric_dtype(column.dtype)
    return bool(pd.to_numeric(pd.Series(column.cat.categories), errors="coerce").notna().mean() > 0.5)


def _numbers(path: Path, frame: pd.DataFrame, at: int, n_header: int | None = None) -> Floats:
    column = frame.iloc[:, at]
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.to_numeric(pd.Series(column.cat.categories, dtype=object), errors="coerce").to_numpy(np.float64)
        numbers = np.append(levels, np.nan)[column.cat.codes.to_numpy()]
    else:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        what = f"edge {bad[0] + 1} has the weight {shown(str(column.iloc[bad[0]]))}"
        line = line_of_edge(path, int(bad[0]), n_header)
        raise unusable(path, what, "weights must be numbers", line=line)
    return np.asarray(numbers)


def line_of_edge(path: Path, number: int, n_header: int | None) -> int | None:
    """The line number of an edge in a text file; blank lines count."""
    if n_header is None:
        return None
    data = read_bytes(path)
    return next(islice(Layout.of(path, data).rows(data, n_header), number, None), (None, []))[0]


def edges_of_graphml(path: Path) -> Edges:
    """Nodes by their `name` (or `label`, or id), edges with their `weight` and `sign`."""
    names: dict[str, str] = {}
    keys: dict[str, str] = {}
    ends: list[tuple[str, str]] = []
    weights: list[str] = []
    signs: list[str] = []
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
            own = _attributes(element, keys)
            weights.append(own.get("weight", "1"))
            signs.append(own.get("sign", ""))
    if not ends:
        raise unusable(path, "holds no edge", "check that it is GraphML")
    table = pd.DataFrame([(names.get(a, a), names.get(b, b)) for a, b in ends], columns=["source", "target"])
    table["weight"] = weights
    weight = _numbers(path, table.astype({"weight": "category"}), 2)
    sign = pd.Categorical(signs) if any(signs) else None
    return _checked(path, Edges(_column(table, 0), _column(table, 1), weight, sign=sign))


def _attributes(element: ElementTree.Element, keys: dict[str, str]) -> dict[str, str]:
    found = {}
    for data in element:
        if data.tag.rpartition("}")[2] == "data":
            key = data.get("key", "")
            found[keys.get(key, key)] = (data.text or "").strip()
    return found
