"""The network of each module as GraphML and as Cytoscape JSON."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbic import __version__
from netbic.errors import InputError
from netbic.exports.output import check_folder, write_folder
from netbic.exports.results import Results, Source, label_of
from netbic.files import JsonValue, json_bytes
from netbic.graph import Graph, match

Attributes = dict[str, Any]  # text, integers and finite floats

_TOKEN = re.compile(r"[\w.:-]+", re.ASCII)  # what GraphML allows as an identifier
_KINDS = {str: "string", int: "int", float: "double"}
_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


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
    source : fitted model, folder of a fit, or Results
    folder : path
        A new or empty folder.
    graph : graph-like, optional
        Default: the graph of the fit. Matched by name if both have names.
    force : bool
        Replace existing files of these names.

    Returns
    -------
    Path
        The folder.

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
    results, folder = Results.of(source), Path(folder)
    check_folder(results, folder, force=force)
    whole = _graph_of(results, graph)
    contents: dict[str, bytes] = {}
    for module in range(results.n_modules):
        own = _Network.of(results, whole, module)
        contents |= {f"module_{module + 1}.graphml": own.graphml(), f"module_{module + 1}.cyjs": own.cytoscape()}
    return write_folder(results, folder, contents, force=force)


def _graph_of(results: Results, graph: object) -> Graph:
    model = results.model
    if graph is not None:
        return match(graph, int(model.n_features_in_), model.names_["columns"], "column")
    if (own := model.graphs_["columns"]) is None:
        raise InputError("the modules were found without a network: give one (`graph`)", ["graph"])
    return own


@dataclass(frozen=True)
class _Network:
    """The subnetwork of a module: attributes of the network, of its nodes by identifier, and of its edges."""

    attributes: Attributes
    nodes: dict[str, Attributes]
    edges: list[tuple[str, str, Attributes]]

    @classmethod
    def of(cls, results: Results, graph: Graph, module: int) -> _Network:
        genes = results.genes(module)
        inside = graph.subgraph(genes.index.to_numpy())
        sizes = genes["weight"].abs()
        score = sizes / (float(sizes.max()) or 1.0) if len(sizes) else sizes
        table = genes.assign(score=score, rank=np.arange(1, len(genes) + 1), degree=inside.degrees)
        keys = _identifiers(table["name"].tolist())
        rows = [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
        edges = [(keys[a], keys[b], _of_edge(w, graph.is_signed)) for a, b, w in zip(*inside.edges(), strict=True)]
        own = {"name": f"{label_of(module)}: {results.names[module]}", "verdict": results.verdicts[module]}
        return cls({key: value for key, value in own.items() if value}, dict(zip(keys, rows, strict=True)), edges)

    def graphml(self) -> bytes:
        """The network as GraphML."""
        root = ElementTree.Element("graphml", xmlns=_NAMESPACE)
        first = next(iter(self.nodes.values()), {})
        of_edges = self.edges[0][2] if self.edges else _of_edge(1.0, signed=False)
        for scope, attributes in (("graph", self.attributes), ("node", first), ("edge", of_edges)):
            for name, value in attributes.items():
                kind = {"for": scope, "attr.name": name, "attr.type": _KINDS[type(value)]}
                ElementTree.SubElement(root, "key", kind, id=f"{scope}_{name}")
        drawn = ElementTree.SubElement(root, "graph", id="module", edgedefault="undirected")
        _add_data(drawn, "graph", self.attributes)
        for key, attributes in self.nodes.items():
            _add_data(ElementTree.SubElement(drawn, "node", id=key), "node", attributes)
        for number, (tail, head, attributes) in enumerate(self.edges):
            edge = ElementTree.SubElement(drawn, "edge", id=f"e{number}", source=tail, target=head)
            _add_data(edge, "edge", attributes)
        ElementTree.indent(root, " ")
        return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"

    def cytoscape(self) -> bytes:
        """The network as Cytoscape JSON."""
        nodes: list[JsonValue] = [
            {"data": {"id": key, "shared_name": own["name"], **own}} for key, own in self.nodes.items()
        ]
        edges: list[JsonValue] = [
            {"data": {"id": f"e{number}", "source": tail, "target": head, **attributes}}
            for number, (tail, head, attributes) in enumerate(self.edges)
        ]
        return json_bytes(
            {
                "format_version": "1.0",
                "generated_by": f"netbic-{__version__}",
                "target_cytoscapejs_version": "~2.1",
                "data": {"shared_name": self.attributes["name"], **self.attributes},
                "elements": {"nodes": nodes, "edges": edges},
            }
        )


def _of_edge(weight: float, signed: bool) -> Attributes:
    """The weight of an edge, and its sign if edges have one."""
    sign = {"sign": 1 if weight > 0 else -1} if signed else {}
    return {"weight": abs(float(weight)), **sign}


def _identifiers(names: Sequence[str]) -> list[str]:
    """Identifiers of nodes: the names themselves where GraphML allows it; they are all different."""
    found = dict.fromkeys(name for name in names if _TOKEN.fullmatch(name))
    identifiers = list[str]()
    for place, name in enumerate(names):
        own = name
        if name not in found:
            own = f"node_{place}"
            while own in found:
                own += "_"
            found[own] = None
        identifiers.append(own)
    return identifiers


def _add_data(element: ElementTree.Element, scope: str, attributes: Attributes) -> None:
    for name, value in attributes.items():
        text = repr(value) if isinstance(value, float) else str(value)
        ElementTree.SubElement(element, "data", key=f"{scope}_{name}").text = text


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
