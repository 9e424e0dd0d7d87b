"""What netbic fit prints about the modules that it found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netbic
from netbic.cli.wording import counted

if TYPE_CHECKING:
    import pandas as pd

_LISTED_MODULES = 10
_LISTED_NUMBERS = 12


def summary_json(out: Path) -> str:
    """The summary of the modules in a folder as JSON."""
    table = netbic.io.read_table(out / "summary.tsv")
    facts = {"out": str(out), "modules": json.loads(table.to_json(orient="records", double_precision=15))}
    return json.dumps(facts, indent=1)


def summary_lines(out: Path) -> Iterator[str]:
    """The modules in a folder in words: a line per module, and which sizes are defaults."""
    table = netbic.io.read_table(out / "summary.tsv")
    variance = table["explained_variance_ratio"].sum()
    found = "1 module explains" if len(table) == 1 else f"{len(table)} modules explain"
    yield f"{found} {variance:.1%} of the variance. Tables: {out}/modules.tsv, {out}/summary.tsv"
    for row, name in zip(table.head(_LISTED_MODULES).to_dict("records"), _gene_sets(out, len(table)), strict=False):
        yield f"  module {row['module'] + 1}{f' ({name})' * bool(name)}: {described(row)}"
    if len(table) > _LISTED_MODULES:
        yield f"  and {len(table) - _LISTED_MODULES} more (see {out}/summary.tsv)"
    if "sample_kind" in table and table["sample_kind"].eq("gradient").any():
        yield f"gradient: the samples form no groups; use their scores ({out}/samples.tsv)"
    if "size_diagnostic" in table:  # not in folders of earlier versions
        yield from default_sizes(table)


def _gene_sets(out: Path, n_modules: int) -> list[str]:
    """The gene sets that modules are called after, as in the report; "" for those that are called after their genes."""
    if not (out / "gene_sets.tsv").is_file():
        return [""] * n_modules
    modules, sets = (netbic.io.read_table(out / name) for name in ("modules.tsv", "gene_sets.tsv"))
    return netbic.enrichment.naming_sets(modules, sets)


def described(row: dict[Any, Any]) -> str:
    """A module in one line: verdict, genes and samples.

    Examples
    --------
    >>> row = {"verdict": "strong", "n_genes": 200, "top_genes": "ESR1, GATA3", "n_samples": 592}
    >>> described(row | {"sample_kind": "groups", "n_up": 40, "n_down": 229})
    'strong, 200 genes (ESR1, GATA3, ...), up in 40, down in 229 of 592 samples'
    >>> described(row | {"sample_kind": "gradient", "n_up": 0, "n_down": 0})
    'strong, 200 genes (ESR1, GATA3, ...), gradient'
    >>> described(row | {"sample_kind": "gradient", "studies": "shared by 3 of 3 studies"})
    'strong, 200 genes (ESR1, GATA3, ...), gradient, shared by 3 of 3 studies'
    """
    judged = isinstance(row.get("verdict"), str) and not row["verdict"].startswith("too few")  # said for all at once
    verdict = f"{row['verdict']}, " if judged else ""
    more = ", ..." if row["n_genes"] > len(row["top_genes"].split(", ")) else ""
    is_doubtful = row.get("verdict") == "doubtful"  # where noise lives would mean nothing
    where = f", {row['studies']}" if isinstance(row.get("studies"), str) and not is_doubtful else ""
    return f"{verdict}{counted(row['n_genes'], 'gene')} ({row['top_genes']}{more}), {_samples(row)}{where}"


def _samples(row: dict[Any, Any]) -> str:
    kind, up, down = row.get("sample_kind"), row.get("n_up", 0), row.get("n_down", 0)
    if kind == "selected":
        return f"{counted(row['n_samples'], 'sample')} selected ({up:,} up, {down:,} down)"
    if kind == "groups":
        parts = [f"{side} in {number:,}" for side, number in (("up", up), ("down", down)) if number]
        return f"{', '.join(parts)} of {row['n_samples']:,} samples"
    return "gradient" if kind == "gradient" else counted(row["n_samples"], "sample")


def default_sizes(table: pd.DataFrame) -> Iterator[str]:
    """Which modules have the default size, and why; a line per reason.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"module": [0, 1], "n_genes": 200, "size_diagnostic": ["dense", "dense"]})
    >>> print(*default_sizes(table))
    sizes: the data do not show where modules 1, 2 end (most genes follow them to some degree), so the default of 200
    genes was used
    """
    known = table[table["size_diagnostic"].fillna("") != ""]
    for reason, own in known.groupby("size_diagnostic", sort=False):
        numbers = [str(number + 1) for number in own["module"]]
        more = f" and {len(numbers) - _LISTED_NUMBERS} more" if len(numbers) > _LISTED_NUMBERS else ""
        text = netbic.penalties.DIAGNOSTICS[str(reason)].format(axis="gene")
        one = len(numbers) == 1
        which = f"module {numbers[0]} ends" if one else f"modules {', '.join(numbers[:_LISTED_NUMBERS])}{more} end"
        text = text if one else text.replace(" it", " them")
        default = f"so the default of {counted(int(own['n_genes'].iloc[0]), 'gene')} was used"
        yield f"sizes: the data do not show where {which} ({text}), {default}"
