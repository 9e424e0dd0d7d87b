"""Fitted models as tables, as commands write them and `netbic.get` returns them; networks and simulations as files."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from netbic import files
from netbic.arrays import Array
from netbic.errors import InputError, unusable
from netbic.estimators.results import DIAGNOSTIC_NUMBERS, heaviest, name_features, names_of
from netbic.estimators.studies import shared_by
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.graph import Graph
from netbic.penalties import BeyondBulk
from netbic.simulate import Cohort
from netbic.storage.models import PairModel, fitted_pair_model, npz_bytes

if TYPE_CHECKING:
    from netbic.datasets import TumourCohort

SIDES: Final = ("x", "y")  # both tables, in the attributes of a model of two tables
HELD_OUT: Final = ("held_out_1", "held_out_2")  # scores of samples by fits that did not use them


def modules_table(
    model: SparseGraphSVD, feature_name: str = "feature", judged: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Members of every module by name, largest absolute weight first.

    Columns are `module` (from 1), `axis` ("sample", or `feature_name`), `name`, `weight` and `side`: "up" if the weight
    is positive, "down" if it is negative. In samples with positive weights, features of the side "up" are above their
    means and those of the side "down" below; the largest weight of a feature is positive. If features were `judged`
    (:class:`netbic.selection.Verdicts`, `features`), the columns `found_again`, `kme` and `confidence` follow; they are
    missing for samples.
    """
    model = fitted_model(model)
    vectors = {feature_name: (model.components_, "columns"), "sample": (model.left_vectors_.T, "rows")}
    parts = [
        _members({"module": module + 1, "axis": axis}, rows[module], names_of(model, side))
        for module in range(model.n_components_)
        for axis, (rows, side) in vectors.items()
    ]
    table = _concatenated(parts, ["module", "axis", "name", "weight", "side"])
    if judged is None:
        return table
    return _with_judged(
        table, judged.rename(columns={feature_name: "name"}).assign(axis=feature_name), "module", "axis"
    )


def _with_judged(table: pd.DataFrame, judged: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """The columns about judged features beside their weights, of features that may have the same name.

    Weights of a model in single precision are read from a table in double precision: they are compared in single.
    """
    single = [each.assign(single=each["weight"].astype(np.float32)) for each in (table, judged)]
    on = [*keys, "name", "single"]
    return (
        single[0].merge(single[1].drop(columns="weight").drop_duplicates(on), how="left", on=on).drop(columns="single")
    )


def _members(where: dict[str, object], vector: Array, names: Array) -> pd.DataFrame:
    """Names, weights and sides of the entries of a vector that are not zero."""
    order = heaviest(vector)
    own = {"name": names[order], "weight": vector[order], "side": sides_of(vector[order])}
    return pd.DataFrame(where | own)


def _concatenated(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def sides_of(weights: Array) -> Array:
    """The side of each member: "up" if its weight is positive, "down" if it is negative, "" if it is zero."""
    return np.where(weights > 0, "up", np.where(weights < 0, "down", "")).astype(object)


def summary_table(
    model: SparseGraphSVD, further: pd.DataFrame | None = None, *, feature_name: str = "feature"
) -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, edges inside, diagnostics, top features, sides.

    Modules are numbered from 1. `size_reason` says why a module has so many features. `features_up` and
    `features_down` are the numbers of features with positive and with negative weights; `feature_name` stands for the
    word in these columns (`genes_up`). If the model was fitted to several studies, `studies` says where each module
    lives: "shared by 2 of 4 studies (a, b)". `further` columns, a row per module, replace those of the same name.
    """
    model = fitted_model(model)
    studies = {} if model.studies_ is None else {"studies": shared_by(model.studies_)}
    table = pd.DataFrame(
        {
            "module": np.arange(1, model.n_components_ + 1),
            "singular_value": model.singular_values_,
            "n_features": model.columns_.sum(axis=1),
            "n_samples": model.rows_.sum(axis=1),
            "size_reason": size_reasons(model),
            "explained_variance_ratio": model.explained_variance_ratio_,
            "n_edges": _edges_inside(model.graphs_["columns"], model.columns_),
            "graph_share": model.graph_share_,
            "rounds": [len(trace) for trace in model.objectives_],
            "converged": model.converged_,
            **{name: model.diagnostics_[name].array for name in DIAGNOSTIC_NUMBERS},
            **studies,
            "top_features": _top_names(model.components_, names_of(model, "columns")),
            **({} if further is None else {str(name): column.array for name, column in further.items()}),
        }
    )
    table["features_up"], table["features_down"] = ((sign * model.components_ > 0).sum(axis=1) for sign in (1, -1))
    return name_features(table, feature_name)


def size_reasons(model: SparseGraphSVD) -> list[str]:
    """Why each module has as many features as it has."""
    standing_out, sizes = model.diagnostics_["standing_out"], model.columns_.sum(axis=1)
    usual = model.column_penalty if isinstance(model.column_penalty, BeyondBulk) else BeyondBulk()
    known = zip(sizes.tolist(), standing_out, standing_out.isna(), strict=True)
    n = model.columns_.shape[1]
    return ["as given" if is_given else usual.size_reason(size, int(out), n) for size, out, is_given in known]


def _edges_inside(graph: Graph | None, members: Iterable[Array]) -> list[int]:
    return [0 if graph is None else graph.subgraph(own).n_edges for own in members]


def _top_names(vectors: Iterable[Array], names: Array) -> list[str]:
    return [", ".join(map(str, names[heaviest(vector)[:5]])) for vector in vectors]


def feature_names(model: PairModel, side: str) -> Array:
    """Names of the features of X ("x") or of Y ("y"); their numbers if there are none."""
    known = model.names_[side]
    return np.arange(len(getattr(model, f"{side}_weights_"))) if known is None else known


def sample_names(model: PairModel) -> Array:
    """Names of the samples; their numbers if there are none."""
    known = model.names_["samples"]
    return np.arange(len(model.x_scores_)) if known is None else known


def pairs_table(model: PairModel, *further: pd.DataFrame) -> pd.DataFrame:
    """A row per pair: sizes in both tables (1 is X, 2 is Y), covariance, correlation, edges, convergence, top features.

    `d` is u'X'Yv in the deflated tables, `correlation` that of the scores of both tables in the samples of the fit,
    which is too large. `pair` counts from 1. `further` tables about the pairs have a column `pair`; columns of the
    same name are replaced; `verdict` comes first and `reason` last.
    """
    model = fitted_pair_model(model)
    number = np.arange(1, model.n_components_ + 1)
    table = pd.DataFrame(
        {
            "pair": number,
            "n_features_1": model.x_support_.sum(axis=1),
            "n_features_2": model.y_support_.sum(axis=1),
            "d": model.singular_values_,
            "correlation": model.correlations_,
            "n_edges_1": _edges_inside(model.graphs_["x"], model.x_support_),
            "n_edges_2": _edges_inside(model.graphs_["y"], model.y_support_),
            "graph_share": model.graph_share_,
            "rounds": np.array([len(values) for values in model.objectives_], dtype=np.int64),
            "converged": model.converged_,
        }
    )
    for each in further:
        own = each.set_index("pair").reindex(number)
        table = table.assign(**{str(name): own[name].to_numpy() for name in own.columns})
    table = table.assign(
        top_features_1=_top_names(model.x_weights_.T, feature_names(model, "x")),
        top_features_2=_top_names(model.y_weights_.T, feature_names(model, "y")),
    )
    first, last = ["pair", "verdict"], ["reason"]
    others = [name for name in table if name not in (*first, *last)]
    return table[[name for name in (*first, *others, *last) if name in table]]


def weights_table(model: PairModel, judged: pd.DataFrame | None = None) -> pd.DataFrame:
    """Features of every pair by name, largest absolute weight first.

    Columns are `pair` (from 1), `table` (its name), `name`, `weight` and `side`: "up" if the weight is positive, "down"
    if it is negative. Features of the same side, in either table, are high in the same samples. With `judged` features
    (`netbic.selection.pair_tests`, `features`), the columns `found_again`, `correlation` and `confidence` follow. If
    the pairs have features of the same name in both tables, `in_both` marks them.
    """
    model = fitted_pair_model(model)
    parts = [
        _members({"pair": pair + 1, "table": table}, weights[:, pair], feature_names(model, side))
        for pair in range(model.n_components_)
        for side, table, weights in zip(SIDES, model.table_names_, (model.x_weights_, model.y_weights_), strict=True)
    ]
    table = _concatenated(parts, ["pair", "table", "name", "weight", "side"])
    in_both = table.assign(name=table["name"].astype(str)).duplicated(["pair", "name"], keep=False)
    if in_both.any() and all(model.names_[side] is not None for side in SIDES):
        table = table.assign(in_both=in_both)
    if judged is None:
        return table
    return _with_judged(table, judged, "pair", "table")


def pair_scores_table(model: PairModel, held_out: pd.DataFrame | None = None) -> pd.DataFrame:
    """Scores of the samples of the fit in both tables: columns `pair` (from 1), `sample`, `score_1` and `score_2`.

    With `held_out` scores (`netbic.selection.pair_tests`, `scores`), the columns `held_out_1` and `held_out_2` follow.
    """
    model = fitted_pair_model(model)
    names = sample_names(model)
    table = pd.DataFrame(
        {
            "pair": np.repeat(np.arange(1, model.n_components_ + 1), len(names)),
            "sample": np.tile(names, model.n_components_),
            "score_1": model.x_scores_.T.ravel(),
            "score_2": model.y_scores_.T.ravel(),
        }
    )
    return table if held_out is None else table.assign(**{name: held_out[name].to_numpy() for name in HELD_OUT})


# Columns without which tables of a folder are not what netbic wrote, besides the number of the module or pair.
_NEEDED = {
    "summary": set[str](),
    "pairs": {"correlation"},
    "weights": {"table", "name"},
    "scores": {"sample"},
    "modules": {"axis", "name"},
    "gene_sets": {"term", "q_value"},
    "verdicts": {"verdict"},
    "samples": {"sample", "score", "group"},
    "associations": {"variable"},
    "replication": {"verdict"},
}


def read_results_table(folder: Path, name: str, unit: str = "module") -> pd.DataFrame | None:
    """A table of the folder of a fit ("summary", "modules", "gene_sets", ...), if it exists; `unit` may be "pair"."""
    path = folder / f"{name}.tsv"
    if not path.is_file():
        return None
    try:
        table = files.read_table(path)
    except InputError:
        raise
    except (ValueError, OSError):
        raise unusable(path, "cannot be read as a table", "netbic did not write it: fit again") from None
    needed = _NEEDED["associations" if name.startswith("associations_") else name]
    if missing := sorted((needed | {unit}) - set(table.columns)):
        raise unusable(path, f"has no column {missing[0]}", "netbic did not write it: fit again")
    return table


# Data as files: networks that `netbic.io.read_network` reads, and simulated cohorts


def write_network(graph: Graph, path: Path | str, *, force: bool = False, inputs: files.Inputs | None = None) -> None:
    """Write a graph with the names of its nodes to an .npz file.

    The file is a sparse matrix as `scipy.sparse.save_npz` writes it, with one more array, `names`; the weights of edges
    that inhibit are negative. `netbic.io.read_network`, ``netbic fit --graph`` and, without the names,
    `scipy.sparse.load_npz` read it.

    Parameters
    ----------
    graph : Graph
        Names are text or integers.
    path : path
        Ends in .npz. The file appears complete or not at all.
    force : bool
        Replace an existing file.
    inputs : dict, optional
        Files that must not be replaced, by what they are.

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(50, 100, n_modules=1, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.storage.write_network(study.network, f"{folder}/network.npz")
    ...     again = netbic.io.read_network(f"{folder}/network.npz").graph
    >>> bool((again.names == study.network.names).all()), again.n_edges == study.network.n_edges
    (True, True)
    """
    path, weights = Path(path), graph.weights
    arrays = {"format": np.array(b"csr"), "shape": np.array(weights.shape), "_is_array": np.array(True)}
    arrays |= {part: getattr(weights, part) for part in ("data", "indices", "indptr")}
    if graph.names is not None:  # as text or integers, which need no pickle
        integers = graph.names.dtype.kind in "iu"
        odd = next((name for name in graph.names if not integers and not isinstance(name, str)), None)
        if odd is not None:
            raise InputError(f"a node is named {odd!r}, a {type(odd).__name__}: only text and integers can be written")
        arrays["names"] = graph.names.astype(np.int64 if integers else str)
    if graph.is_signed:
        arrays["signed"] = np.array(True)  # negative weights mean edges that inhibit: read without asking
    check_network_file(path, inputs or {}, force=force)
    files.write_atomic(path, npz_bytes(arrays))


def check_network_file(path: Path, inputs: files.Inputs, *, force: bool) -> None:
    """Raise unless `write_network` may write this file: it ends in .npz, is no input, and is new or `force` is set."""
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} does not end in .npz: name a file such as {path.with_suffix('.npz').name}")
    files.check_output_file(path, inputs, force=force)


def write_cohort(study: Cohort, folder: Path | str) -> None:
    """Write expression.tsv.gz (genes in rows), network.sif, the planted modules (truth.tsv) and labels of the samples.

    labels.tsv has the subtype of each sample, which is that of the first module planted in it ("A+" where the module is
    up, "A-" where it is down), and an age and a batch that mean nothing. example.json lists the files. An earlier
    example is replaced; if there are files of these names that netbic did not write, an error is raised.
    """
    folder, record = Path(folder), "example.json"
    files.check_writable(folder, [*files.RECORDS[record], record])
    table = study.expression.T.rename_axis("gene").to_csv(sep="\t", float_format="%.5g")
    genes = np.asarray(study.expression.columns)
    tails, heads, _ = study.network.edges()
    lines = "".join(f"{genes[a]}\tbinds\t{genes[b]}\n" for a, b in zip(tails, heads, strict=True))
    planted = []
    for axis, masks, names in (("gene", study.genes, genes), ("sample", study.samples, study.expression.index)):
        for module, mask in enumerate(masks):
            weights = study.weights[module, mask] if axis == "gene" else np.ones(int(mask.sum()))
            planted.append(pd.DataFrame({"module": module + 1, "axis": axis, "name": names[mask], "weight": weights}))
    truth = pd.concat(planted).sort_values(["module", "axis"], kind="stable", ignore_index=True)
    parts = {"expression.tsv.gz": gzip.compress(table.encode(), mtime=0), "network.sif": lines.encode()}
    parts["truth.tsv"] = files.table_bytes(folder / "truth.tsv", truth)
    parts["labels.tsv"] = files.table_bytes(folder / "labels.tsv", _labels(study))
    samples, n_genes = study.expression.shape
    content = {"samples": samples, "genes": n_genes, "modules": len(study.genes)}
    files.write_files(folder, parts, record, content)


def write_tumours(cohort: TumourCohort, folder: Path | str) -> None:
    """Write expression.tsv.gz (genes in rows), samples.tsv and about.md (source and licence) of a cohort.

    example.json lists the files. An earlier example is replaced; if there are files of these names that netbic did not
    write, an error is raised.
    """
    folder, record = Path(folder), "example.json"
    files.check_writable(folder, [*files.RECORDS[record], record])
    table = cohort.expression.T.to_csv(sep="\t", index_label="gene", float_format="%.5g")
    packed = gzip.compress(table.encode(), compresslevel=6, mtime=0)  # the highest level takes five times as long
    parts = {"expression.tsv.gz": packed, "about.md": cohort.description.encode()}
    parts["samples.tsv"] = files.table_bytes(folder / "samples.tsv", cohort.sample_info.convert_dtypes().reset_index())
    files.write_files(folder, parts, record, {"samples": len(cohort.expression), "genes": cohort.expression.shape[1]})


def _labels(study: Cohort) -> pd.DataFrame:
    """A subtype, an age and a batch for each sample."""
    values = study.expression.to_numpy()
    subtype = np.full(len(values), "none", dtype=object)
    for module in reversed(range(len(study.genes))):
        up = (values - values.mean(axis=0)) @ np.where(study.genes[module], study.weights[module], 0) > 0
        for sign, own in (("+", up), ("-", ~up)):
            subtype[study.samples[module] & own] = f"{ascii_uppercase[module % 26]}{sign}"
    generator = np.random.default_rng(len(values))
    age, batch = generator.normal(60, 10, len(values)).round().astype(int), generator.choice(["b1", "b2"], len(values))
    return pd.DataFrame({"sample": study.expression.index, "subtype": subtype, "age": age, "batch": batch})
