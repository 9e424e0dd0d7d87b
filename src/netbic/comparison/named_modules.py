"""The modules of a fit with their names: of a model, of an AnnData object or of an output folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from netbic.arrays import Array, Bools, Floats, kind_of
from netbic.association import stored_scores
from netbic.comparison.names import text_names
from netbic.errors import InputError, shown, unusable
from netbic.estimators import SparseGraphSVD, fitted_model, is_model, names_of
from netbic.storage import load_modules

SAMPLES = "samples.tsv"


@dataclass(frozen=True)
class NamedModules:
    """Modules in rows, genes and samples in columns.

    Attributes
    ----------
    weights : array of shape (n_modules, n_genes)
    scores : array of shape (n_modules, n_samples)
        Scores of the samples, or their weights where scores are not known.
    in_group : boolean array of shape (n_modules, n_samples)
        Samples that belong to the module: selected by the fit, or up or down.
    genes, samples : arrays of names, or None
    """

    weights: Floats
    scores: Floats
    in_group: Bools
    genes: Array | None
    samples: Array | None

    @classmethod
    def of(cls, source: Any, key: str = "netbic") -> Self:
        """Those of a fitted model, of an AnnData object after `tl.modules`, or of a folder of `netbic fit`."""
        if isinstance(source, str | Path):
            return cls._of_folder(Path(source))
        if kind_of(source) == "anndata":
            return cls._of_anndata(source, key)
        if is_model(source):
            return cls._of_model(fitted_model(source))
        raise TypeError(
            f"{type(source).__name__} has no modules: give a fitted SparseGraphSVD, an AnnData object after tl.modules "
            "or the output folder of netbic fit"
        )

    @classmethod
    def _of_model(cls, model: SparseGraphSVD) -> Self:
        left = np.asarray(model.left_vectors_.T, dtype=np.float64)
        genes, samples = (
            None if (own := model.names_[axis]) is None else text_names(own) for axis in ("columns", "rows")
        )
        return cls(np.asarray(model.components_, dtype=np.float64), left, left != 0, genes, samples)

    @classmethod
    def _of_anndata(cls, adata: Any, key: str) -> Self:
        if key not in adata.varm or key not in adata.obsm:
            raise InputError(f"the AnnData object has no modules {shown(key)}: run tl.modules first, or give their key")
        weights, left = np.asarray(adata.varm[key], dtype=np.float64).T, np.asarray(adata.obsm[key], dtype=np.float64).T
        used = np.asarray(adata.varm[f"{key}_preparation"])[:, 2] == 1  # the other genes were not part of the fit
        return cls(weights[:, used], left, left != 0, text_names(adata.var_names[used]), text_names(adata.obs_names))

    @classmethod
    def _of_folder(cls, folder: Path) -> Self:
        model = load_modules(folder)
        found = cls._of_model(model)
        if not (folder / SAMPLES).is_file() or not model.n_components_:  # a folder of netbic.save, or an empty table
            return found
        scores, groups = stored_scores(folder, names_of(model, "rows"))
        if [int(module) for module in scores.columns] != list(range(model.n_components_)):
            raise unusable(folder / SAMPLES, "does not belong to the model of this folder", "it was changed: fit again")
        grouped = (groups != "").to_numpy(dtype=bool).T
        in_group = np.where(grouped.any(axis=1, keepdims=True), grouped, found.in_group)
        return cls(found.weights, scores.to_numpy().T, in_group, found.genes, found.samples)
