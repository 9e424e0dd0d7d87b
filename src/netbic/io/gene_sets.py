"""Gene sets from GMT files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from netbic.errors import shown, unusable
from netbic.io.characters import check_characters
from netbic.io.text import read_bytes, text_lines

_NO_NAME = re.compile(r"$|na$|https?://", re.IGNORECASE)  # MSigDB has an address where others have a name


class GeneSets(dict[str, tuple[str, ...]]):
    """Terms and their genes, in the order of the file; `names` holds the description of each term.

    Parameters
    ----------
    members : mapping of term to genes
    names : mapping of term to description, optional
    """

    def __init__(self, members: Mapping[str, tuple[str, ...]], names: Mapping[str, str] | None = None) -> None:
        super().__init__(members)
        self.names = {term: (names or {}).get(term, term) for term in self}

    def __repr__(self) -> str:
        return f"GeneSets({len(self):,} terms)"


def read_gene_sets(path: Path | str) -> GeneSets:
    r"""Read a GMT file: a line per set with its term, a description and its genes, separated by tabs (gzip or not).

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".gmt") as file:
    ...     _ = file.write("GO:1\tDNA repair\tBRCA1\tBRCA2\tATM\n")
    ...     file.flush()
    ...     sets = netbic.io.read_gene_sets(file.name)
    >>> sets, sets["GO:1"], sets.names["GO:1"]
    (GeneSets(1 terms), ('BRCA1', 'BRCA2', 'ATM'), 'DNA repair')
    """
    members: dict[str, tuple[str, ...]] = {}
    names: dict[str, str] = {}
    for number, line in enumerate(text_lines(read_bytes(path)), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        term = fields[0]
        if not term:
            raise unusable(path, "the set has no name", "name it in the first field", line=number)
        if len(fields) < 3 or not any(fields[2:]):
            remedy = "a line is: term, description, genes, separated by tabs"
            raise unusable(path, f"the set {shown(term)} has no genes", remedy, line=number)
        check_characters(path, "field", fields, line=number)
        if term in members:
            raise unusable(path, f"the set {shown(term)} occurs again", "rename or remove one of them", line=number)
        members[term] = tuple(dict.fromkeys(gene for gene in fields[2:] if gene))
        names[term] = term if _NO_NAME.match(fields[1]) else fields[1]
    if not members:
        raise unusable(path, "holds no gene set", "a line is: term, description, genes, separated by tabs")
    return GeneSets(members, names)
