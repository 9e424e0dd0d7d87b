"""Options for opening a study: how files are read, preprocessed and matched."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from netbic.io.options import ExpressionOptions, NetworkOptions, check_keywords


@dataclass(frozen=True)
class PreprocessingOptions:
    """What is done to the expression values; see `prepare`.

    Parameters
    ----------
    duplicates : {"highest", "mean", "error"}
        What to do with several genes of one name: keep the one with the highest mean (the first one if means are equal
        up to rounding), average them, or refuse them.
    cpm : bool
        Scale every sample to counts per million.
    log1p : bool
        Take log(1 + x).
    n_variable : int, optional
        Keep this many genes, those with the largest variance.
    """

    duplicates: str = "highest"
    cpm: bool = False
    log1p: bool = False
    n_variable: int | None = None


@dataclass(frozen=True)
class MatchingOptions:
    """How the genes of the data are matched to the nodes of the network.

    Parameters
    ----------
    strip_versions : bool
        Remove the versions of Ensembl ids on both sides.
    id_map : path, optional
        A two-column table that translates the gene names of the data into those of the network.
    matched_only : bool
        Drop genes that are not in the network; otherwise they are kept, without neighbours.
    """

    strip_versions: bool = False
    id_map: Path | str | None = None
    matched_only: bool = False


@dataclass(frozen=True)
class DatasetOptions:
    """All options of `open_dataset`.

    Parameters
    ----------
    expression : ExpressionOptions
    network : NetworkOptions
    preprocessing : PreprocessingOptions
    matching : MatchingOptions
    lazy : bool
        Leave the matrix in its file and read it block by block; see `open_expression`.
    block_rows : int, optional
        Samples per block, with `lazy`.

    Examples
    --------
    >>> options = DatasetOptions().replace(log1p=True, min_score=700)
    >>> options.preprocessing.log1p, options.network.min_score
    (True, 700)
    >>> options.replace(min_scores=700)
    Traceback (most recent call last):
    TypeError: open_dataset() got an unexpected keyword argument 'min_scores': did you mean 'min_score'?
    """

    expression: ExpressionOptions = field(default_factory=ExpressionOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    preprocessing: PreprocessingOptions = field(default_factory=PreprocessingOptions)
    matching: MatchingOptions = field(default_factory=MatchingOptions)
    lazy: bool = False
    block_rows: int | None = None

    def replace(self, **changes: Any) -> DatasetOptions:
        """The same options with some changed, by the keywords of `open_dataset`."""
        check_keywords("open_dataset", changes, [*_KEYWORDS, "lazy", "block_rows"])
        parts = {part: getattr(self, part) for part in _PARTS}
        for name in _KEYWORDS.keys() & changes.keys():
            part, option = _KEYWORDS[name]
            parts[part] = replace(parts[part], **{option: changes.pop(name)})
        return replace(self, **parts, **changes)


_PARTS = {
    "expression": ExpressionOptions,
    "network": NetworkOptions,
    "preprocessing": PreprocessingOptions,
    "matching": MatchingOptions,  # whose `strip_versions` counts for the network too
}
_KEYWORDS = {option.name: (part, option.name) for part, options in _PARTS.items() for option in fields(options)}
_KEYWORDS["graph_names"] = _KEYWORDS.pop("names")
