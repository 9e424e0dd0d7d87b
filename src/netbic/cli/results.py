"""Commands about the results in a folder: netbic report, enrich, export, plot, compare and replicate."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, counted, echo, echo_report_is_older, in_options
from netbic.cli.options import File, Finite, Folder, Numbers, Output, names, two_columns

if TYPE_CHECKING:
    from netbic.comparison import RepeatedAssociations, Replication
    from netbic.exports import PairResults, Results

_ENRICHMENT = ("edges.tsv", "gene_sets.tsv", "enrichment.json")
_ENDINGS = (".pdf", ".png", ".svg")
_OF_PAIRS = {"gmt": "pairs.gmt", "lists": "lists.txt", "xlsx": "pairs.xlsx"}
_EXPORTS = {  # the file of each format, and the function of `netbic.exports` that writes it
    "gmt": ("modules.gmt", "write_gmt"),
    "lists": ("lists.txt", "write_lists"),
    "overview": ("overview.tsv", "write_overview"),
    "xlsx": ("modules.xlsx", "write_workbook"),
    "cytoscape": ("cytoscape", "write_cytoscape"),
    "membership": ("membership.tsv", "write_membership"),
}
_REPLICATION = ("replication.tsv", "replication.json", "replication_associations.tsv")
_TERMS = 30  # of a figure of gene sets
_WITHOUT_NETWORK = "the modules were found without a network (netbic fit --graph)"


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@option("--out", type=Output, show_default="FOLDER/report.html", help="File to write.")
@option("--title", show_default="that of netbic fit", help="Title of the report.")
@option("--force", is_flag=True, help="Replace an existing file.")
def report(folder: Path, out: Path | None, title: str | None, force: bool) -> None:
    """Write the results in FOLDER as a single HTML file that can be opened in a browser or sent by e-mail.

    netbic fit already writes a report. Write it again after netbic enrich to include new gene sets.
    """
    from netbic.files import locked
    from netbic.report import write_report

    in_place = out is None or out.absolute().parent == folder.absolute()
    with locked(folder) if in_place else nullcontext():
        click.echo(f"{write_report(folder, out, title=title, force=force)}")


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@option("--gene-sets", type=File, help="GMT file with gene sets; results are written to FOLDER/gene_sets.tsv.")
@option("--level", default=0.05, type=Finite(0, 1), help="Largest adjusted p-value to report.")
@option(
    "--by-sign/--together",
    default=None,
    show_default="separately in modules with at least 10 genes on both sides",
    help="Test the genes with positive weights (up) and with negative weights (down) of a module separately, or all of "
    "them together.",
)
@option(
    "--collapse",
    type=Finite(0, 1),
    help="Omit gene sets whose genes in the module overlap those of a more significant set by at least this Jaccard "
    "index, e.g. 0.5.",
)
@options.id_map
@options.seed
def enrich(
    folder: Path,
    gene_sets: str | None,
    level: float,
    by_sign: bool | None,
    collapse: float | None,
    id_map: str | None,
    seed: int,
) -> None:
    """Test the modules in FOLDER (written by netbic fit) for enrichment in network edges and gene sets.

    FOLDER may also be one of netbic pairs: then both sides of every pair are tested for gene sets.

    \b
    FOLDER/edges.tsv       edges inside each module, compared with random genes
                           (the paper's test) and random genes of the same degrees
                           and, where known, similar mean and variance
    FOLDER/gene_sets.tsv   enriched gene sets (with --gene-sets)
    """
    from netbic.enrichment import write_enrichment
    from netbic.estimators.results import names_of
    from netbic.files import check_not_input, locked
    from netbic.io.dataset import match_gene_sets
    from netbic.storage.models import is_pair_model, load
    from netbic.storage.tables import SIDES, feature_names

    model = load(folder)
    pairs = is_pair_model(model)
    if gene_sets is None and any(given is not None for given in (by_sign, collapse, id_map)):
        raise click.UsageError("--by-sign, --together, --collapse and --id-map need --gene-sets")
    if gene_sets is None and (pairs or model.column_graph is None):
        raise click.UsageError(f"nothing to test: use --gene-sets{'' if pairs else ', or fit with --graph'}")
    check_not_input([folder / name for name in _ENRICHMENT], {"the gene sets": gene_sets, "the id map": id_map})
    genes = [*chain(*(feature_names(model, side) for side in SIDES))] if pairs else names_of(model, "columns")
    sets = None if gene_sets is None else match_gene_sets(gene_sets, genes, id_map)
    given: Any = {"level": level, "by_sign": by_sign, "collapse": collapse, "random_state": seed}
    with locked(folder):
        lines = write_enrichment(model, folder, sets, **given)
        echo(*(f"{folder}/{line}" if line.partition(":")[0].endswith(".tsv") else line for line in lines))
    echo_report_is_older(folder)


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@option("--format", "kind", required=True, type=click.Choice(list(_EXPORTS)), help="What to write, see above.")
@option(
    "--out",
    type=Output,
    show_default="FOLDER/modules.gmt, lists.txt, overview.tsv, modules.xlsx, cytoscape or membership.tsv",
    help="File to write; for cytoscape, and for lists unless it ends in .txt, a new folder.",
)
@option("--genes", type=options.COUNT, show_default="5", help="Leading genes of each module (overview).")
@option("--expression", type=File, show_default="where they were", help="The data of the fit (membership).")
@option("--force", is_flag=True, help="Replace existing files.")
def export(folder: Path, kind: str, out: Path | None, genes: int | None, expression: str | None, force: bool) -> None:
    """Write the modules in FOLDER (written by netbic fit) for other programs and other people.

    Of pairs (written by netbic pairs), gmt, lists and xlsx can be written: pairs.gmt, lists.txt and pairs.xlsx.

    \b
    gmt        the genes of each module and side as gene sets (GSEA, Enrichr, ...)
    lists      plain lists of genes and samples, per module and side
    overview   a row per module: leading genes, verdict, strongest findings
    xlsx       a workbook: overview, a sheet per module, gene sets, associations
    cytoscape  the network of each module as GraphML and Cytoscape JSON
    membership correlation of every gene with the scores of every module (kME)

    Up are genes with positive weights, down those with negative weights.
    """
    from netbic import exports
    from netbic.files import locked
    from netbic.storage.models import is_pair_model, load
    from netbic.storage.runs import read_again

    if expression is not None and kind != "membership":
        raise click.UsageError("--expression is for --format membership")
    if genes is not None and kind != "overview":
        raise click.UsageError("--genes is for --format overview")
    name, write = _EXPORTS[kind]
    if pairs := is_pair_model(load(folder)):
        if kind not in _OF_PAIRS:
            raise click.UsageError(f"--format {kind} is for modules, and {folder} has pairs: {', '.join(_OF_PAIRS)}")
        name = _OF_PAIRS[kind]
    path = folder / name if out is None else out
    in_place = path.absolute().parent == folder.absolute()
    with locked(folder) if in_place else nullcontext():
        if pairs:
            found = exports.PairResults.of(folder)
            echo(f"{getattr(exports, write)(found, path, force=force)}: {counted(len(found.modules), 'pair')}")
            return
        results = exports.Results.of(folder)
        modules = counted(results.n_modules, "module")
        if kind == "cytoscape" and results.model.column_graph is None:
            raise click.UsageError(f"{_WITHOUT_NETWORK}: there is none to export")
        data, size = [], modules
        if kind == "membership":
            expressed = read_again(str(folder), expression)
            data, size = [expressed.matrix], f"{len(expressed.genes):,} genes by {modules}"
        more = {} if genes is None else {"n_genes": genes}
        echo(f"{getattr(exports, write)(results, *data, path, force=force, **more)}: {size}")


_USED = {  # options that each kind of figure uses
    "heatmap": {"module", "annotate", "expression", "colour"},
    "network": {"module", "expression"},
    "associations": {"name"},
    "enrichment": {"module"},
    "scores": {"module", "annotate", "colour"},
    "survival": {"module", "survival", "until", "colour"},  # and of pairs the table
    "n-modules": set[str](),
}
_OF_SEVERAL = ("heatmap", "enrichment")  # figures of several modules
_USED_FOR_PAIRS = {
    "scores": {"module", "annotate", "colour"},
    "loadings": {"module"},
    "associations": {"name"},
    "survival": {"module", "table", "survival", "until", "colour"},
}


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.argument("kind", type=click.Choice([*_USED, "loadings"]), metavar="KIND")
@option("--out", required=True, type=Output, help="File to write: .pdf, .png or .svg.")
@option(
    "--module",
    "--pair",
    type=Numbers(int, 1),
    show_default="1; for heatmap and enrichment all",
    help="Number of the module or pair; for heatmap and enrichment also several: 3,7.",
)
@option("--annotate", type=names, metavar="NAME,...", help="Columns of the sample table to draw (heatmap, scores).")
@option(
    "--survival",
    type=two_columns,
    metavar="TIME,EVENT",
    show_default="the first ones that were tested",
    help="Columns of the sample table with times and events (survival).",
)
@option("--table", metavar="NAME", show_default="the first one", help="Table of the scores (survival of pairs).")
@option(
    "--name", metavar="NAME", help="Tests of netbic associate --name NAME instead of associations.tsv (associations)."
)
@option("--force", is_flag=True, help="Replace an existing file.")
@options.group(
    option("--title", help="Title of the figure; ' ' for none."),
    option("--xlabel", metavar="TEXT", help="Label of the horizontal axis."),
    option("--ylabel", metavar="TEXT", help="Label of the vertical axis."),
    option("--size", type=Finite(1, 100), nargs=2, metavar="WIDTH HEIGHT", help="Size of the figure in inches."),
    option("--until", type=Finite(0, min_open=True), help="End of the time axis (survival)."),
    option(
        "--colour",
        multiple=True,
        metavar="LEVEL=COLOUR",
        help="Colour of a label of samples, or of a curve (high, low, up, down, others): Basal=red, 'ER-=#0072B2', or "
        "'sex: F=orange' if several columns have it. May be repeated (heatmap, scores, survival).",
    ),
    option("--expression", type=File, show_default="where they were", help="The data of the fit (heatmap, network)."),
    section="Look and data",
)
def plot(folder: Path, kind: str, out: Path, force: bool, **given: Any) -> None:
    """Draw a figure of the modules in FOLDER (written by netbic fit).

    \b
    heatmap       the data of the samples and genes of the modules
    network       the network between the genes of a module; without a network,
                  their coexpression
    associations  modules by variables of the sample table (see netbic associate)
    enrichment    modules by their gene sets
    scores        the scores of the samples in a module
    survival      Kaplan-Meier curves of a module
    n-modules     modules found again in halves of the samples, by their number

    \b
    Of pairs (written by netbic pairs):
    scores        the scores of the samples in both tables
    loadings      the features of both tables with the largest weights
    associations  pairs by variables of the sample table
    survival      Kaplan-Meier curves of the scores in one table
    """
    from netbic import pl
    from netbic.association.stored import stored_verdicts
    from netbic.exports import Results
    from netbic.files import check_output_file, files_of, write_atomic
    from netbic.storage.models import is_pair_model, load
    from netbic.storage.runs import read_again

    known = _USED_FOR_PAIRS if (pairs := is_pair_model(load(folder))) else _USED
    if kind not in known:
        what = "pairs of two tables" if pairs else "modules"
        raise click.UsageError(f"{folder} has {what}, of which {kind} cannot be drawn: choose {', '.join(known)}")
    look = {name: given.pop(name) for name in ("title", "xlabel", "ylabel", "size")}
    for name, value in given.items():
        if value and name not in known[kind]:
            option = "pair" if pairs and name == "module" else name
            raise click.UsageError(f"--{option} has no effect on {kind}: leave it out")
    if out.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"--out {out}: the name must end in .pdf, .png or .svg")
    chosen, expression = given["module"], given["expression"]
    if chosen and len(chosen) > 1 and kind not in _OF_SEVERAL:
        noun = "pair" if pairs else "module"
        raise click.UsageError(f"--{noun} {','.join(map(str, chosen))}: {kind} shows one {noun}, so give one number")
    number = chosen[0] if chosen else 1
    inputs = {"the data": expression, **files_of(folder)}
    check_output_file(out, inputs, force=force)
    if pairs:
        content = _image(_drawing_of_pairs(folder, kind, number, given, look), out)
        check_output_file(out, inputs, force=force)
        write_atomic(out, content)
        click.echo(f"{out}")
        return
    results = Results.of(folder)
    if absent := [module for module in chosen or () if module not in results.modules]:
        has = f"modules are numbered from 1; {folder} has {results.n_modules}"
        raise click.UsageError(f"--module {absent[0]}: {has}")
    named, verdicts = dict[str, Any](names=results.marked_names) | look, stored_verdicts(folder)
    chosen_colours = _chosen_colours(given["colour"])
    beside = named | _annotation(results, folder, given["annotate"], {} if kind == "survival" else chosen_colours)
    associate = f"run netbic associate {folder} --sample-info TABLE"
    draw: Any
    if kind == "heatmap":
        data = read_again(folder, expression)
        draw = partial(pl.heatmap, results.model, data.matrix, modules=chosen, feature_name="gene", **beside)
    elif kind == "network":
        coexpressed = results.model.column_graph is None
        if expression is not None and not coexpressed:
            raise click.UsageError("--expression has no effect on the network of a fit: leave it out")
        needed = read_again(folder, expression).matrix if coexpressed else None
        draw = partial(pl.network, results.model, number, X=needed, feature_name="gene", **named)
    elif kind == "associations":
        tests, title = _tests_to_draw(results, folder, given["name"], look["title"])
        draw = partial(pl.associations, tests, verdicts=verdicts, **named | {"names": results.names, "title": title})
    elif kind == "enrichment":
        if (sets := results.tables.get("gene_sets")) is None:
            raise click.UsageError(f"{folder} has no gene_sets.tsv: run netbic enrich {folder} --gene-sets FILE")
        own = sets[sets["module"].isin(chosen or results.modules)]
        if own.empty:
            raise click.UsageError(f"no gene set is enriched in {'these' if chosen else 'the'} modules of {folder}")
        draw = partial(pl.enrichment, own, n_terms=_TERMS, verdicts=verdicts, **look)
    elif kind == "scores":
        if (samples := results.tables.get("samples")) is None:
            raise click.UsageError(f"{folder} has no samples.tsv: write the modules by netbic fit")
        draw = partial(pl.scores, samples, module=number, **beside)
    elif kind == "n-modules":
        if results.model.count_ is None or not results.model.count_.curve:
            raise click.UsageError(
                f"{folder} was written with a given number of modules: run netbic fit without --modules"
            )
        draw = partial(pl.n_modules, results.model, **look)
    else:
        if results.sample_info is None:
            raise click.UsageError(f"survival needs {folder}/sample_info.tsv: {associate} --survival TIME,EVENT")
        curves = _curve_colours(chosen_colours)
        draw = partial(
            pl.survival, folder, number, survival=given["survival"], until=given["until"], colours=curves, **look
        )
    content = _image(draw, out)
    check_output_file(out, inputs, force=force)  # it may have been created meanwhile
    write_atomic(out, content)
    click.echo(f"{out}")


def _tests_to_draw(
    results: Results | PairResults, folder: Path, name: str | None, title: str | None
) -> tuple[Any, str | None]:
    """The tests of associations.tsv or of `--name`, and the title, which says what they are adjusted for."""
    tests = results.tables.get("associations") if name is None else _named_tests(folder, name)
    if tests is None:
        what = f"{folder} has no associations.tsv"
        raise click.UsageError(f"{what}: run netbic associate {folder} --sample-info TABLE")
    return tests, _adjusted_title(folder, name) if title is None else title


def _named_tests(folder: Path, name: str) -> Any:
    """The tests of `netbic associate --name`."""
    from netbic.association.stored import files_of_associations
    from netbic.files import read_table

    table, _ = files_of_associations(name)
    if not (folder / table).is_file():
        known = sorted(path.stem.removeprefix("associations_") for path in folder.glob("associations_*.tsv"))
        raise click.UsageError(f"--name {name}: {folder} has no {table} (there are: {', '.join(known) or 'none'})")
    return read_table(folder / table).fillna({"level": ""})


def _adjusted_title(folder: Path, name: str | None) -> str | None:
    """What the tests are adjusted for, as a title; None if for nothing."""
    from netbic.association.stored import files_of_associations, stored_record

    names = stored_record(folder, files_of_associations(name or "")[1]).get("adjusted_for")
    return f"Adjusted for {', '.join(names)}" if names else None


def _drawing_of_pairs(folder: Path, kind: str, number: int, given: dict[str, Any], look: dict[str, Any]) -> Any:
    """The function that draws a figure of pairs into axes."""
    from netbic import pl
    from netbic.association.stored import stored_record
    from netbic.exports import PairResults

    results = PairResults.of(folder)
    if number not in results.modules:
        has = f"pairs are numbered from 1; {folder} has {len(results.modules)}"
        raise click.UsageError(f"--pair {number}: {has}")
    if kind == "loadings":
        return partial(pl.pair_loadings, folder, number, **look)
    if kind == "associations":
        tests, title = _tests_to_draw(results, folder, given["name"], look["title"])
        return partial(pl.associations, tests, verdicts=results.verdicts_by_number, **look | {"title": title})
    if kind == "survival":
        if results.sample_info is None:
            what = f"survival needs {folder}/sample_info.tsv"
            raise click.UsageError(f"{what}: run netbic associate {folder} --sample-info TABLE --survival TIME,EVENT")
        times = given["survival"] or next(iter(stored_record(folder).get("survival", ())), None)
        curves = {"until": given["until"], "colours": _curve_colours(_chosen_colours(given["colour"]))}
        scores, known = results.scores(given["table"]), results.sample_info
        return partial(pl.survival, scores, number, table=known, survival=times, **curves, **look)
    beside = look | _annotation(results, folder, given["annotate"], _chosen_colours(given["colour"]))
    return partial(pl.pairs, folder, number, **beside)


def _chosen_colours(given: Sequence[str]) -> dict[str, str]:
    """The colours of --colour, by level."""
    from netbic.errors import import_optional

    is_color_like = import_optional("matplotlib.colors", "plot", "a figure").is_color_like
    found = dict[str, str]()
    for text in given:
        level, _, colour = text.rpartition("=")
        if not level or not is_color_like(colour):
            raise click.UsageError(f"--colour {text!r}: write LEVEL=COLOUR with a name or #RRGGBB, e.g. Basal=#0072B2")
        found[level] = colour
    return found


def _curve_colours(chosen: dict[str, str]) -> dict[str, str]:
    """The colours of --colour for curves."""
    if unknown := [name for name in chosen if name not in ("up", "down", "others", "high", "low")]:
        raise click.UsageError(f"--colour {unknown[0]}: curves are named up, down, others, high or low")
    return chosen


def _annotation(
    results: Results | PairResults, folder: Path, names: list[str] | None, chosen: dict[str, str]
) -> dict[str, Any]:
    """Columns of the sample table, and their colours: those of the report, except for those that were chosen."""
    from netbic.association.stored import stored_record, stored_variables
    from netbic.association.variables import check_known
    from netbic.pl.base import annotation_strips, variable_colours

    if not names:
        if chosen:
            raise click.UsageError("--colour needs the column that has the label: name it (--annotate)")
        return {"annotation": None, "colours": {}}
    if (info := results.sample_info) is None:
        what = f"--annotate needs {folder}/sample_info.tsv"
        raise click.UsageError(f"{what}: run netbic associate {folder} --sample-info TABLE")
    check_known(names, info.columns, "annotate")
    colours = dict[str, dict[str, str]]()
    if (tests := results.tables.get("associations")) is not None:
        tested, found = set(tests["variable"]), stored_variables(info, stored_record(folder))[0]
        colours = variable_colours(each for each in found if each.kind == "categorical" and each.name in tested)
    if chosen:
        strips = annotation_strips(info[names], None, info.index.to_numpy())
        levels = [(one.name, level) for one in strips if not one.is_numeric for level, _ in one.legend]
        for text, colour in chosen.items():
            own = [pair for pair in levels if text in (pair[1], f"{pair[0]}: {pair[1]}")]
            if len(own) != 1:
                what = "no column of --annotate has it" if not own else f"write '{own[0][0]}: {own[0][1]}={colour}'"
                raise click.UsageError(f"--colour {text}={colour}: {what}")
            colours.setdefault(own[0][0], {})[own[0][1]] = colour
    return {"annotation": info[names], "colours": colours}


def _image(draw: Any, out: Path) -> bytes:
    """The figure as a file: text that can be edited, with its fonts, and the same bytes each time."""
    from netbic.errors import import_optional

    import_optional("matplotlib", "plot", "a figure").use("agg")
    import matplotlib.pyplot as plt

    figure = draw(ax=None).get_figure()
    content = io.BytesIO()
    kind = out.suffix.lower()[1:]
    undated: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    packed: Any = {"png": {"pil_kwargs": {"compress_level": 3}}}.get(kind, {})  # a twentieth larger, in half the time
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "netbic", "pdf.fonttype": 42}):
        figure.savefig(content, format=kind, dpi=300, metadata=undated, **packed)
    plt.close(figure)
    return _with_fonts(content.getvalue()) if kind == "svg" else content.getvalue()


def _with_fonts(svg: bytes) -> bytes:
    """An SVG file with the letters that it uses of its fonts, so that text has the same width everywhere."""
    from matplotlib.font_manager import FontProperties, findfont

    from netbic.errors import import_optional

    subset, ttlib = (import_optional(f"fontTools.{name}", "plot", "an SVG file") for name in ("subset", "ttLib"))
    text, styles = svg.decode(), list[str]()
    used = dict[str, set[str]]()  # letters by weight
    for style, letters in re.findall(r"<text style=\"([^\"]*)\"[^>]*>([^<]*)</text>", text):
        used.setdefault("bold" if re.search("font-weight: (700|bold)", style) else "normal", set()).update(
            html.unescape(letters)
        )
    for weight, letters in sorted(used.items()):
        path = findfont(FontProperties(weight=weight))
        options = subset.Options(layout_features=[], name_IDs=[], hinting=False, notdef_outline=True)
        font, small = ttlib.TTFont(path, recalcTimestamp=False), io.BytesIO()
        family = font["name"].getDebugName(1)
        options.drop_tables += ["FFTM", "GDEF", "GPOS", "GSUB", "MATH", "kern"]  # reading them takes long
        chosen = subset.Subsetter(options)
        chosen.populate(text="".join(letters))
        chosen.subset(font)
        font.save(small)
        data = base64.b64encode(small.getvalue()).decode()
        source = f"url(data:font/ttf;base64,{data})"
        styles.append(f"@font-face{{font-family:'{family}';font-weight:{weight};src:{source}}}")
    return text.replace("<defs>", f"<defs>\n  <style>{''.join(styles)}</style>", 1).encode()


@click.command(cls=Command)
@click.argument("folder_a", metavar="DIR1", type=Folder)
@click.argument("folder_b", metavar="DIR2", type=Folder)
@option("--out", type=Output, show_default="only printed", help="Write the table of matches to a file.")
@option("--plot", type=Output, help="Draw the similarities (.pdf, .png or .svg).")
@option("--force", is_flag=True, help="Replace existing files.")
@options.seed
def compare(folder_a: Path, folder_b: Path, out: Path | None, plot: Path | None, force: bool, seed: int) -> None:
    """Match the modules of two fits, and say which are the same, similar, new or gone.

    DIR1 and DIR2 are output folders of netbic fit (or of netbic.save). Modules are matched by their genes and, where
    samples have the same names, by their scores.
    """
    from netbic.comparison import compare as match
    from netbic.files import check_output_file, files_of, table_bytes, write_together

    if out is not None and plot is not None and out.absolute() == plot.absolute():
        raise click.UsageError(f"--out and --plot are the same file, {out}: name two files")
    if plot is not None and plot.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"--plot {plot}: name a file that ends in .pdf, .png or .svg")
    written = [path for path in (out, plot) if path is not None]
    for path in written:
        for folder in (folder_a, folder_b):
            check_output_file(path, files_of(folder), force=force)
    found, contents = match(folder_a, folder_b, random_state=seed, feature_name="gene"), dict[Path, bytes]()
    if out is not None:
        contents[out] = table_bytes(out, found.table)
    if plot is not None:
        from netbic.pl import comparison

        contents[plot] = _image(lambda ax: comparison(found, ax=ax), plot)
    write_together(contents)
    for line in (found.verdict, *(f"  {reason}" for reason in found.table["reason"]), *map(str, written)):
        click.echo(line)


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.argument("other", type=File)
@option("--out", type=Output, show_default="FOLDER/replication.tsv", help="Output table.")
@option("--force", is_flag=True, help="Replace an existing table that --out names.")
@option("--new-samples-only", is_flag=True, help="Leave out samples of OTHER that seem to be samples of the fit.")
@option(
    "--sample-info", type=File, help="Table with a row for each sample of OTHER: repeat the associations of the fit."
)
@option(
    "--survival",
    type=two_columns,
    metavar="TIME,EVENT",
    multiple=True,
    show_default="as in the fit",
    help="Its columns with time and event, if they have other names than in the fit. May be repeated, in the same "
    "order.",
)
@option(
    "--adjust",
    type=options.names,
    metavar="NAME,...",
    show_default="as in the fit",
    help="Its columns to adjust the tests of the associations for.",
)
@options.seed
@options.id_map
@options.reads_expression
def replicate(
    folder: Path, other: str, out: Path | None, force: bool, new_samples_only: bool, seed: int, **given: Any
) -> None:
    """Judge how far each module in FOLDER (of netbic fit or netbic.save) holds in another study.

    OTHER is a file with the expression data of that study, read and preprocessed like the data of the fit unless
    options say otherwise. Genes are matched by name, and centred and scaled in the other study.

    With --sample-info, the associations in FOLDER/associations.tsv are tested again in the other study; samples without
    a row in the table are left out of these tests. They are written to FOLDER/replication_associations.tsv, or beside
    OUT with _associations in the name.
    """
    from netbic import files
    from netbic.association.stored import stored_verdicts
    from netbic.association.words import reliability
    from netbic.comparison import replicate as look_for
    from netbic.storage.models import load_modules
    from netbic.storage.runs import read_like
    from netbic.storage.tables import summary_table

    sample_info, survival, adjust = (given.pop(name) for name in ("sample_info", "survival", "adjust"))
    options.refuse(
        ("--survival needs --sample-info", survival and sample_info is None),
        ("--adjust needs --sample-info", adjust and sample_info is None),
    )
    places = [folder / _REPLICATION[0], folder / _REPLICATION[2]]
    if out is not None:
        places = [out, out.with_name(f"{out.stem}_associations{out.suffix}")]
    places = places[: 1 + (sample_info is not None)]
    asked: files.Inputs = {"the other study": other, "the sample table": sample_info, "the id map": given["id_map"]}

    def check_places() -> None:
        if out is None:
            files.check_writable(folder, _REPLICATION, asked)
        for place in places if out is not None else ():
            files.check_output_file(place, {**asked, **files.files_of(folder)}, force=force)

    check_places()
    model = load_modules(folder)
    about = None if sample_info is None else _associations_of_fit(folder, sample_info)
    data = read_like(folder, other, **{name: value for name, value in given.items() if value})
    named: Any = {"features": list(data.genes), "samples": list(data.samples), "new_samples_only": new_samples_only}
    found = look_for(model, data.matrix, **named, random_state=seed, feature_name="gene")
    verdicts = stored_verdicts(folder)
    verdict = found.verdict_beside(verdicts)
    tables, repeated = [found.table], None
    if about is not None:
        named = {"survival": list(survival) or None, "adjust": adjust, "verdicts": verdicts}
        repeated = _repeated(found, *about, named)
        tables.append(repeated.table)
    contents = {place: files.table_bytes(place, table) for place, table in zip(places, tables, strict=True)}
    if out is None:
        numbers = {"n_genes": found.n_features, "n_samples": found.n_samples, "n_shared": found.n_shared}
        record: files.Record = {"study": Path(other).name, **numbers, "verdict": verdict}
        if repeated is not None:
            record |= {"adjusted_for": list(repeated.adjusted_for), "go_with_survival": repeated.go_with_survival}
        written = {place.name: content for place, content in contents.items()}
        files.add_files(folder, written | {_REPLICATION[1]: files.json_bytes(record)})
        if repeated is None:  # that of an earlier run is about another study
            (folder / _REPLICATION[2]).unlink(missing_ok=True)
    else:
        check_places()  # they may have been created meanwhile
        files.write_together(contents)
    click.echo(verdict)
    if 0 < found.n_shared < found.n_samples:
        click.echo("--new-samples-only leaves these samples out")
    top = summary_table(model)["top_features"]
    for number, genes, reason in zip(found.table["module"], top, found.table["reason"], strict=True):
        names, word = genes.split(", "), verdicts.get(number, "")
        said = f"{word} in the fit; " * bool(reliability(word))
        click.echo(f"  module {number} ({said}{', '.join([*names[:3], *['...'] * (len(names) > 3)])}): {reason}")
    if repeated is not None:
        echo(*map(in_options, repeated.lines()))
    echo(*map(str, places))
    if out is None:
        echo_report_is_older(folder)


def _associations_of_fit(folder: Path, sample_info: str) -> tuple[Any, Any, Any]:
    """The tests of a fit, what is recorded about them, and the sample table of another study."""
    from netbic.association.stored import TABLE, stored_record
    from netbic.files import read_table
    from netbic.io.samples import read_sample_info

    if not (folder / TABLE).is_file():
        what = f"{folder} has no {TABLE}, so there is nothing to repeat"
        raise click.UsageError(f"{what}: run netbic associate {folder} --sample-info TABLE first")
    return read_table(folder / TABLE), stored_record(folder), read_sample_info(sample_info)


def _repeated(found: Replication, tested: Any, record: Any, table: Any, named: dict[str, Any]) -> RepeatedAssociations:
    """The associations of the fit, tested in another study, with the verdict on each module, and how far it holds."""
    from dataclasses import replace

    from netbic.comparison import repeat_associations

    repeated = repeat_associations(tested, found.scores, table, record=record, **named)
    modules, holds = repeated.table["module"], found.table.set_index("module")["verdict"]
    of_fit = {"verdict": modules.map(named["verdicts"])} if named["verdicts"] else {}
    return replace(repeated, table=repeated.table.assign(**of_fit, replication=modules.map(holds)))
