"""Excerpts of published data, in files beside this one; `files/README.md` has their sources, licences and changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from netbic.errors import import_optional
from netbic.io.samples import GeneSets, read_gene_sets, read_sample_info
from netbic.io.tables import read_parquet

if TYPE_CHECKING:
    from anndata import AnnData

_FILES: Final = Path(__file__).parent / "files"


@dataclass(frozen=True, repr=False)
class Compendium:
    """Expression of an organism under many conditions, and the genes of its known regulators.

    Attributes
    ----------
    expression : DataFrame of shape (n_samples, n_genes)
    sample_info : DataFrame
        A row per sample.
    regulons : GeneSets
        Regulators and their genes, as a dict, for `netbic.enrichment.gene_sets` and others.
    description : str
        What the data are, their source and licence.
    """

    expression: pd.DataFrame
    sample_info: pd.DataFrame
    regulons: GeneSets
    description: str

    def __repr__(self) -> str:
        return f"Compendium({_size(self.expression)}, {len(self.regulons):,} regulons)"


@dataclass(frozen=True, repr=False)
class TumourCohort:
    """Expression of tumours, labels and survival.

    Attributes
    ----------
    expression : DataFrame of shape (n_samples, n_genes)
    sample_info : DataFrame
        A row per sample: labels, numbers and survival times.
    survival : (str, str)
        Its columns with the time and the event.
    description : str
        What the data are, their source and licence.
    """

    expression: pd.DataFrame
    sample_info: pd.DataFrame
    survival: tuple[str, str]
    description: str

    def __repr__(self) -> str:
        return f"TumourCohort({_size(self.expression)}, survival in {' and '.join(self.survival)})"


def ecoli() -> Compendium:
    """*Escherichia coli* in 163 conditions (278 samples, 3,923 genes), with the genes of 236 regulators.

    Excerpt of the PRECISE compendium in the Python package pymodulon (MIT licence). Values are log2(TPM + 1).

    Returns
    -------
    Compendium

    Examples
    --------
    >>> import netbic
    >>> data = netbic.datasets.ecoli()
    >>> data
    Compendium(278 samples x 3,923 genes, 236 regulons)
    >>> data.sample_info.loc["fur__delfur_fe2__1"].to_dict()
    {'project': 'fur', 'condition': 'delfur_fe2', 'replicate': 1}
    >>> data.regulons["purR"][:3]
    ('b0032', 'b0033', 'b0336')
    """
    expression = _in_units("ecoli")
    parts = [str(name).split("__") for name in expression.index]
    info = pd.DataFrame(parts, index=expression.index, columns=["project", "condition", "replicate"])
    regulons = read_gene_sets(_FILES / "ecoli_regulons.gmt")
    return Compendium(expression, info.astype({"replicate": int}), regulons, _description("ecoli"))


def ovarian() -> TumourCohort:
    """172 tissues of patients with ovarian tumours: 3,000 genes, histology, grade, stage, age and survival.

    Excerpt of GSE51088 in the Bioconductor package curatedOvarianData (Artistic-2.0 licence). Values are log ratios;
    none is missing.

    Returns
    -------
    TumourCohort

    Examples
    --------
    >>> import netbic
    >>> cohort = netbic.datasets.ovarian()
    >>> cohort
    TumourCohort(172 samples x 3,000 genes, survival in os_days and os_event)
    >>> cohort.sample_info["tissue"].value_counts().to_dict()
    {'tumor': 123, 'metastatic': 17, 'healthy': 15, 'borderline': 12, 'benign': 5}

    Modules, and what they have to do with labels and survival:

    >>> model = netbic.SparseGraphSVD(10, random_state=0).fit(cohort.expression)
    >>> found = netbic.associate(model, cohort.expression, cohort.sample_info, survival=cohort.survival)
    >>> bool((found.table["q"] < 1e-4).any())
    True
    """
    info = read_sample_info(_FILES / "ovarian_samples.tsv").rename_axis("sample")
    return TumourCohort(_in_units("ovarian"), info, ("os_days", "os_event"), _description("ovarian"))


def t_cells() -> AnnData:
    """3,569 T cells from the blood of seven donors, in three batches: counts of 1,496 genes, with annotated types.

    Excerpt of the example data of the R package RUVpbps (MIT licence). The counts are raw: normalise them first.
    `uns["description"]` says what the data are, their source and licence. Needs anndata.

    Returns
    -------
    AnnData

    Examples
    --------
    >>> import netbic
    >>> adata = netbic.datasets.t_cells()
    >>> adata.shape, adata.X.dtype
    ((3569, 1496), dtype('float32'))
    >>> adata.obs["cell_type"].value_counts().to_dict()["T_mait"]
    453
    """
    anndata: Any = import_optional("anndata", "anndata", "the data set t_cells")
    adata: AnnData = anndata.read_h5ad(_FILES / "t_cells.h5ad")
    adata.X = adata.X.tocsr().astype("float32")  # the file has bytes, by gene
    adata.uns["description"] = _description("t_cells")
    return adata


def _in_units(name: str) -> pd.DataFrame:
    """The samples x genes of a file, which has genes in rows and thousandths."""
    genes = read_parquet(_FILES / f"{name}.parquet").set_index("gene")
    return (genes / 1000).T.rename_axis(index="sample", columns="gene")


def _description(name: str) -> str:
    """The section of the README about a data set."""
    sections = (_FILES / "README.md").read_text(encoding="utf-8").split("\n## ")
    return next(text.partition("\n")[2].strip() for text in sections if text.startswith(f"{name}\n"))


def _size(expression: pd.DataFrame) -> str:
    return f"{expression.shape[0]:,} samples x {expression.shape[1]:,} genes"
