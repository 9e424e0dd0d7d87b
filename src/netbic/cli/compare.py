"""netbic compare: match the modules of two fits. netbic replicate: look for modules in another study."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from netbic.cli import options
from netbic.cli.command import Command, echo_report_is_older

_TABLE, _RECORD = "replication.tsv", "replication.json"


@click.command(cls=Command)
@click.argument("folder_a", metavar="DIR1", type=options.Folder)
@click.argument("folder_b", metavar="DIR2", type=options.Folder)
@click.option("--out", type=options.Output, show_default="only printed", help="Write the table of matches to a file.")
@click.option("--plot", type=options.Output, help="Draw the similarities (.pdf, .png or .svg).")
@click.option("--force", is_flag=True, help="Replace existing files.")
@options.seed
def compare(folder_a: Path, folder_b: Path, out: Path | None, plot: Path | None, force: bool, seed: int) -> None:
    """Match the modules of two fits, and say which are the same, similar, new or gone.

    DIR1 and DIR2 are output folders of netbic fit (or of netbic.save). Modules are matched by their genes and, where
    samples have the same names, by their scores.
    """
    from netbic.comparison import compare as match
    from netbic.files import check_output_file, recorded_paths, write_atomic, write_table

    if out is not None and plot is not None and out.absolute() == plot.absolute():
        raise click.UsageError(f"--out and --plot are the same file, {out}: name two files")
    if plot is not None and plot.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise click.UsageError(f"--plot {plot}: name a file that ends in .pdf, .png or .svg")
    inputs = {"the modules": [path for each in (folder_a, folder_b) for path in recorded_paths(each)]}
    written = [path for path in (out, plot) if path is not None]
    for path in written:
        check_output_file(path, inputs, force=force)
    found = match(folder_a, folder_b, random_state=seed, feature_name="gene")
    if out is not None:
        write_table(out, found.table)
    if plot is not None:
        from netbic.pl import comparison

        content = io.BytesIO()
        comparison(found).figure.canvas.figure.savefig(content, format=plot.suffix[1:].lower())
        write_atomic(plot, content.getvalue())
    for line in (found.verdict, *(f"  {reason}" for reason in found.table["reason"]), *map(str, written)):
        click.echo(line)


@click.command(cls=Command)
@click.argument("folder", type=options.Folder)
@click.argument("other", type=options.File)
@click.option("--out", type=options.Output, show_default="FOLDER/replication.tsv", help="Output table.")
@click.option("--force", is_flag=True, help="Replace an existing table that --out names.")
@click.option("--new-samples-only", is_flag=True, help="Leave out samples of OTHER that seem to be samples of the fit.")
@options.seed
@options.reads_expression
def replicate(
    folder: Path, other: str, out: Path | None, force: bool, new_samples_only: bool, seed: int, **reading: Any
) -> None:
    """Judge how far each module in FOLDER (of netbic fit or netbic.save) holds in another study.

    OTHER is a file with the expression data of that study, read and preprocessed like the data of the fit unless
    options say otherwise. Genes are matched by name, and centred and scaled in the other study.
    """
    from netbic import files
    from netbic.comparison import replicate as look_for
    from netbic.storage import load_modules, read_like, summary_table

    def check() -> None:
        """Refuse to replace an input or a file of the user's."""
        inputs: dict[str, Any] = {"the other study": other}
        if out is None:
            files.check_writable(folder, [_TABLE, _RECORD], inputs)
        else:
            files.check_output_file(out, inputs | {"the modules": files.recorded_paths(folder)}, force=force)

    model = load_modules(folder)
    check()
    data = read_like(folder, other, **{name: value for name, value in reading.items() if value})
    given: Any = {"features": list(data.genes), "samples": list(data.samples), "new_samples_only": new_samples_only}
    found = look_for(model, data.matrix, **given, random_state=seed, feature_name="gene")
    check()  # it may have been created meanwhile
    if out is not None:
        files.write_table(out, found.table)
    else:
        record = {"n_genes": found.n_features, "n_samples": found.n_samples, "n_shared": found.n_shared}
        content = {
            _TABLE: files.table_bytes(folder / _TABLE, found.table),
            _RECORD: files.json_bytes({"study": Path(other).name, **record, "verdict": found.verdict}),
        }
        with files.locked(folder):
            files.add_files(folder, content)
    click.echo(found.verdict)
    if found.n_shared:
        click.echo("--new-samples-only leaves these samples out")
    top = summary_table(model)["top_features"]
    for number, genes, reason in zip(found.table["module"], top, found.table["reason"], strict=True):
        click.echo(f"  module {number} ({', '.join(genes.split(', ')[:3])}, ...): {reason}")
    click.echo(f"{folder / _TABLE if out is None else out}")
    if out is None:
        echo_report_is_older(folder)
