"""Tools for AnnData and MuData: modules of cells and genes, stored as scanpy stores its results.

With `key_added="netbic"` an object gets

- `obsm["X_netbic"]`: scores of all cells (least squares), `obsm["netbic"]`: weights of the cells in each module;
- `varm["netbic"]`: weights of the genes, `varm["netbic_preparation"]`: mean, scale and use of each gene;
- `obsm["netbic_members"]`, `varm["netbic_members"]`: the members of each module;
- `varp["netbic"]`: the graph, matched to the genes;
- with covariates, `obsm["netbic_covariates"]` and `varm["netbic_covariates"]`: the covariates of the cells as numbers,
  and their effects on the genes;
- `uns["netbic"]`: settings, singular values and diagnostics of each module;
- after `sample_groups`: `obsm["netbic_scores"]` and `obsm["netbic_groups"]`, and their summary in
  `uns["netbic"]["groups"]`;
- after `verdicts`: `uns["netbic"]["verdicts"]`, and for each gene of a module `uns["netbic"]["genes"]` and
  `varm["netbic_confidence"]`;
- after `associate`: `uns["netbic"]["associations"]` and `uns["netbic"]["variables"]`.

With `pairs` (or `modules(mdata, mods=...)`) and `key_added="netbic_pairs"`, two modalities of a MuData object get
`varm["netbic_pairs"]`, `varm["netbic_pairs_members"]`, `obsm["X_netbic_pairs"]` and `varp["netbic_pairs"]`, and the
object `uns["netbic_pairs"]`; `from_mudata` returns the fitted model.
"""

from netbic.tl.objects import from_anndata, from_mudata, matrix_of, store, to_anndata
from netbic.tl.tools import associate, modules, pairs, sample_groups, score, verdicts

__all__ = [
    "associate",
    "from_anndata",
    "from_mudata",
    "matrix_of",
    "modules",
    "pairs",
    "sample_groups",
    "score",
    "store",
    "to_anndata",
    "verdicts",
]


def __dir__() -> list[str]:
    return sorted(__all__)
