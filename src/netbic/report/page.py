"""The page: one self-contained HTML file that runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from netbic import __version__
from netbic.arrays import kind_of
from netbic.errors import InputError, import_optional, one_line, unusable
from netbic.files import add_files, check_output_file, check_writable, files_of, write_atomic
from netbic.io.tables import check_characters

FILE = "report.html"
# Overrides, embeddings and isolates. The element <bdi> protects the text around a name from them, but not the name.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NO_NUMBER = "\N{EN DASH}"


def write_report(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    title: str | None = None,
    force: bool = False,
    model: object = None,
    record: dict[str, Any] | None = None,
) -> Path:
    """Write the results of a fit as one self-contained HTML file.

    Parameters
    ----------
    folder : path
        The output folder of `netbic fit`, `netbic pairs` or `netbic.save`. The report of modules includes those of the
        files verdicts.tsv, samples.tsv, associations.tsv, replication.tsv, edges.tsv, gene_sets.tsv, alignment.json,
        heatmaps.npz that exist, and says which are missing.
    out : path, optional
        Default: report.html in the folder; an earlier report is replaced.
    title : str, optional
        Default: that of `netbic fit`, or the name of the file with the data.
    force : bool
        Replace `out` if it exists.
    model, record : optional
        The model and the content of run.json, if they are in memory already.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50, column_graph=toy.column_graph).fit(toy.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.save(model, folder)
    ...     page = netbic.report.write_report(folder).read_text()
    >>> page.startswith("<!doctype html>"), "Content-Security-Policy" in page
    (True, True)
    """
    if missing := missing_library():
        import_optional(missing, "report", "a report")
    if kind_of(folder) in ("anndata", "mudata"):
        raise InputError(
            "a report is made of the folder of a fit, not of an AnnData object: the command `netbic fit` makes one for "
            "an .h5ad file, with verdicts and tests of the columns of obs; netbic.save(netbic.tl.from_anndata(adata), "
            "folder) writes a folder of the modules alone"
        )
    folder = Path(folder)
    path = folder / FILE if out is None else Path(out)
    in_place = path.absolute() == (folder / FILE).absolute()
    if in_place:
        check_writable(folder, [FILE])
    else:
        check_output_file(path, files_of(folder), force=force)
    try:
        page = _render(folder, model, record, title).encode("utf-8", errors="replace")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as problem:
        what = f"contains tables or records that netbic did not write ({one_line(str(problem), 80)})"
        raise unusable(folder, what, "run netbic enrich again, or fit again") from problem
    if in_place:
        add_files(folder, {FILE: page})
    else:
        check_output_file(path, files_of(folder), force=force)  # may exist by now
        write_atomic(path, page)
    return path


def missing_library() -> str | None:
    """The library that a report needs if it is not installed, or None.

    Examples
    --------
    >>> import netbic
    >>> netbic.report.missing_library()  # it is installed
    """
    return "jinja2" if find_spec("jinja2") is None else None


def _render(folder: Path, model: Any, record: dict[str, Any] | None, title: str | None) -> str:
    """The page about modules, or about pairs of two tables, which needs no script."""
    from netbic.report.contents import gather
    from netbic.report.modules import distinct_terms
    from netbic.report.pairs import gather_pairs
    from netbic.storage.models import is_pair_model, load

    jinja2 = import_optional("jinja2", "report", "a report")
    model = load(folder) if model is None else model
    of_pairs, more = is_pair_model(model), dict[str, Any]()
    contents = (gather_pairs if of_pairs else gather)(folder, model, record)
    contents.title = contents.title if title is None else one_line(title, 200)
    if not of_pairs:
        more = _draw_modules(contents)
    for kind, names in contents.names.items():
        check_characters(folder, kind, names)  # images cannot show such names
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("netbic.report"),
        autoescape=True,
        optimized=False,  # takes longer than it saves in a page
        undefined=jinja2.StrictUndefined,
        finalize=_escape_bidi,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "fold": _fold, "percent": _percent, "chance": _chance}
    environment.filters |= {"whole": "{:,}".format, "sentence": lambda text: text[:1].upper() + text[1:]}
    environment.filters |= {"distinct": distinct_terms}
    # Nothing is loaded, and only the script of the page runs.
    style, allowed = _packaged("report.css"), _digest(more["script"]) if "script" in more else "'none'"
    sources = f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:"
    more |= {"style": style, "policy": f"{sources}; base-uri 'none'; form-action 'none'"}
    version = contents.record.get("netbic", __version__)
    template = environment.get_template("pairs.html" if of_pairs else "report.html")
    return str(template.render(contents=contents, version=version, **more))


def _draw_modules(contents: Any) -> dict[str, Any]:
    """What the template of the page about modules needs besides the contents: charts, the script and its data."""
    from netbic.report import charts
    from netbic.report.contents import for_script
    from netbic.report.modules import MILD
    from netbic.report.pictures import HEIGHT, LEVELS, WIDTH, coloured
    from netbic.solver.search import LARGE_GRAPH_SHARE

    drawn = []
    if contents.modules:
        known = [module.scores.scores for module in contents.modules if module.scores is not None]
        scores = np.array(known) if len(known) == len(contents.modules) else None
        drawn = charts.charts(contents.model, contents.table, contents.levels["edges"], scores)
    # JSON that cannot end the script element, whatever names it contains.
    text = json.dumps(for_script(contents), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return {
        "charts": drawn,
        "script": _packaged("report.js"),
        "data": text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        "scale": coloured(np.arange(-LEVELS, LEVELS + 1, dtype=np.int8)[None]),
        "mild": MILD,
        "width": WIDTH,
        "height": HEIGHT,
        "much_graph": f"{LARGE_GRAPH_SHARE:.0%}",
    }


def _packaged(name: str) -> str:
    return (resources.files("netbic.report") / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _escape_bidi(value: object) -> object:
    """Escape characters that change the text direction; markup that is marked as safe is unchanged."""
    if type(value) is not str or value.isascii():
        return value
    return _BIDI.sub(lambda mark: f"\\u{ord(mark[0]):04x}", value)


def _number(value: float, digits: int = 3) -> str:
    """Three significant digits, with a typographic minus sign."""
    if not math.isfinite(value):
        return _NO_NUMBER if math.isnan(value) else "\N{INFINITY}"
    shown = f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:#.{digits}g}" if value else "0"
    return shown.rstrip(".").replace("-", "\N{MINUS SIGN}")


def _fold(value: float) -> str:
    return f"{value:.2f}" if value < 100 else _number(value)  # also for NaN


def _percent(value: float) -> str:
    return f"{value:.1%}" if abs(value) >= 0.001 or value == 0 else "< 0.1%"


def _chance(value: float) -> str:
    """A p- or q-value."""
    if math.isnan(value):
        return _NO_NUMBER
    return f"{value:.2g}" if value >= 1e-4 else "< 1e-300" if value == 0 else f"{value:.0e}"
