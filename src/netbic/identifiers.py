"""Kinds of gene names, and why the names of two sides do not match."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

FEW: Final = 0.05  # below this share of the smaller side, names are probably of different kinds
ENSEMBL: Final = re.compile(r"^(?P<prefix>ENS[A-Z]*(?P<type>[GTP]))\d{6,}")
_VERSION = re.compile(r"(?<=\d)\.\d+$")
_TYPES = {"G": "gene", "T": "transcript", "P": "protein"}
# Kinds of names, special ones first: most of them would also be symbols.
_OF_SAMPLES: Final = "names of samples (GSM..., TCGA-...)"
_KINDS: Final = {
    r"GSM\d{4,}|TCGA([-.])\w{2}\1\w{4}(\1\S+)?|[SED]R[RSX]\d{5,}": _OF_SAMPLES,
    r"\d+\.[A-Za-z]\S*\d\S*": "STRING's proteins (9606.ENSP...)",
    r"\d+": "numbers, as of Entrez",
    r"[NX][MRP]_\d{6,}(\.\d+)?": "RefSeq ids (NM_...)",
    r"(\d+|AFFX-\S+?)(_[a-z]+)*_at|(ILMN|PROBE|A_\d+|CUST)_P?\d+\S*|cg\d{8}|TC\w+\.hg\.\d": "probe ids",
    r"b\d{4}|BSU_?\d{5}|AT[1-5CM]G\d{5}|Y[A-P][LR]\d{3}[WC](-[A-Z])?": "locus tags",
    r"([OPQ]\d[A-Z0-9]{3}\d|[A-NR-Z]\d([A-Z][A-Z0-9]{2}\d){1,2})(-\d+)?": "UniProt accessions",
    r"(?=.*[A-Z].*[A-Z])[A-Z0-9]+([-.@/][A-Z0-9]+)*|C\w{1,2}orf\d+": "gene symbols",
    r"[A-Z]\d*[a-z][a-z0-9]*([-.][A-Za-z0-9]+)*|H2-\w+|\d{4,}\w+Rik": "gene symbols as of mouse",
}
_PATTERNS = [(re.compile(pattern), kind) for pattern, kind in _KINDS.items()]
_SYMBOLS = list(_KINDS.values())[-2:]  # of human and of mouse
_LOOKED_AT = 1000  # names
_PROTEINS = ("STRING's proteins", "Ensembl protein")
_TRANSLATE = "translate one into the other with a two-column table"


class Mismatch(NamedTuple):
    """Why the names of two sides most likely do not match, and what to do."""

    reason: str
    remedy: str
    parameter: str  # of `netbic.io.open_dataset`, that does it; "" if the remedy says all
    is_known: bool = True  # whether a reason was found

    def text(self, *, from_files: bool = False) -> str:
        """The sentence; `from_files` names the parameter, otherwise the function that reads a table of names."""
        where = " (netbic.io.read_id_map)" * (self.parameter == "id_map")
        return f"{self.reason}: {self.remedy}{f' (`{self.parameter}`)' * bool(self.parameter) if from_files else where}"


def without_version(name: str) -> str:
    """An Ensembl id without its version; other names unchanged."""
    return _VERSION.sub("", name) if ENSEMBL.match(name) else name


def kind_of_names(names: Iterable[object]) -> str:
    """What most of the names are, such as "Ensembl gene ids (ENSG...)"; "" if they are of no kind that is known.

    >>> kind_of_names(["ENSMUSG00000029580.15", "ENSMUSG00000020287"]), kind_of_names(["1007_s_at", "1053_at"])
    ('Ensembl gene ids (ENSMUSG...)', 'probe ids')
    >>> kind_of_names(["TP53", "HLA-A", "C9orf72"]), kind_of_names(["Trp53", "Actb"]), kind_of_names(["a", "b c"])
    ('gene symbols', 'gene symbols as of mouse', '')
    """
    every = [str(name) for name in names]
    some = every[:: max(1, len(every) // _LOOKED_AT)]
    kind, count = Counter(map(_kind, some)).most_common(1)[0] if some else ("", 0)
    return kind if 2 * count > len(some) else ""


def _kind(name: str) -> str:
    if found := ENSEMBL.match(name):
        return f"Ensembl {_TYPES[found['type']]} ids ({found['prefix']}...)"
    return next((kind for pattern, kind in _PATTERNS if pattern.fullmatch(name)), "")


def hardly_match(n_matched: int, n_names: int, n_others: int) -> bool:
    """Whether so few names of two sides are the same that these are probably of different kinds."""
    return n_matched < FEW * min(n_names, n_others)


def explain_mismatch(
    names: Iterable[object],
    others: Iterable[object],
    sides: tuple[str, str] = ("data", "network"),
    samples: Collection[object] = (),
    in_rows: bool = False,
) -> Mismatch:
    """Why hardly any name is the same; `sides` says whose names they are, `samples` recognises a transposed matrix.

    `in_rows` says that the matrix was read with samples in rows, because this was asked for.

    >>> explain_mismatch(["ENSG00000141510.5"], ["TP53"]).text()[:72]
    'The data have Ensembl gene ids (ENSG...), the network has gene symbols: '
    """
    listed = [list(map(str, some)) for some in (names, others)]
    mine, theirs = map(set, listed)
    enough = max(1, min(2, len(mine), len(theirs)), FEW * min(len(mine), len(theirs)))
    mine, theirs = mine - theirs, theirs - mine  # names that do match do not say why others do not

    def overlap(some: Iterable[str], those: set[str]) -> bool:
        return len(those.intersection(some)) >= enough

    kinds = kind_of_names(listed[0]), kind_of_names(listed[1])
    instead = overlap(map(str, samples), theirs)
    if instead or (kinds[0] == _OF_SAMPLES != kinds[1] and sides[0] == "data"):
        reason = "The names of the samples match instead" if instead else f"The genes of the data have {_OF_SAMPLES}"
        if in_rows:
            return Mismatch(reason, "leave out `samples_in_rows`", "")
        return Mismatch(reason, "exchange genes and samples", "samples_in_rows")
    stripped = {without_version(name) for name in mine}
    if overlap(stripped, {without_version(name) for name in theirs}):
        reason = "They differ in Ensembl versions (the .5 of ENSG00000141510.5)"
        return Mismatch(reason, "remove the versions", "strip_versions")
    if {*kinds} == {*_SYMBOLS}:
        reason = "They differ in capital letters, as mouse (Trp53) and human (TP53) genes do"
        return Mismatch(reason, "translate one into the other with a table of orthologues", "id_map")
    if overlap((name.upper() for name in mine), {name.upper() for name in theirs}):
        return Mismatch("They differ in capital letters only", "write both sides in the same way", "id_map")
    has = [f"{side} {'has' if side.endswith(('network', 'graph', 'study')) else 'have'}" for side in sides]
    if sides[1] == "network" and kinds[1].startswith(_PROTEINS) and not kinds[0].startswith(_PROTEINS):
        reason = f"The {has[0]} {kinds[0] or 'other names'}, the network has {kinds[1]}"
        return Mismatch(reason, "rename these with STRING's protein.info", "string_info")
    if kinds[0] != kinds[1]:
        known, other = sorted(zip(has, kinds, strict=True), key=lambda side: not side[1])
        reason = f"The {known[0]} {known[1]}, the {other[0]} {other[1] or 'other names'}"
        annotation = ", the annotation of the platform" * ("probe ids" in kinds)
        return Mismatch(reason, f"{_TRANSLATE}{annotation}", "id_map")
    if kinds[0]:
        return Mismatch(f"Both have {kinds[0]}, but not the same (another species or version?)", _TRANSLATE, "id_map")
    return Mismatch("Both must use the same kind of names", _TRANSLATE, "id_map", is_known=False)
