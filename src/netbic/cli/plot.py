"""netbic plot: figures of the results in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.command import Command, File, Finite, take

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ENDINGS = (".pdf", ".png", ".svg")
_DPI = 200


@dataclass(frozen=True)
class PlotOptions:
    """What is drawn, and from which data."""

    folder: Path
    module: int | None
    annotate: str | None
    survival: str | None
    until: float | None
    expression: str | None

    @cached_property
    def results(self) -> netbic.exports.Results:
        """The modules and tables of the folder."""
        return netbic.exports.Results.of(self.folder)

    @property
    def number(self) -> int:
        """The module, counted from 0; the first one if none is named."""
        asked = 1 if self.module is None else self.module
        if asked < 1:
            raise click.UsageError(f"--module {asked}: modules count from 1 here, as in the report (in Python from 0)")
        if asked > self.results.n_modules:
            has = f"modules 1 to {self.results.n_modules}" if self.results.n_modules else "no modules"
            raise click.UsageError(f"--module {asked} but {self.folder} has {has}")
        return asked - 1

    @property
    def annotation(self) -> pd.DataFrame | None:
        """Columns of the sample table."""
        info = self.results.sample_info
        if info is None:
            if self.annotate is not None:
                what = f"--annotate needs {self.folder}/sample_info.tsv"
                raise click.UsageError(f"{what}: run netbic associate {self.folder} --sample-info TABLE")
            return None
        if self.annotate is None:
            return None
        names = [name.strip() for name in self.annotate.split(",") if name.strip()]
        if missing := [name for name in names if name not in info]:
            raise click.UsageError(
                f"--annotate {missing[0]}: the sample table has no such column (there are: {', '.join(info.columns)})"
            )
        return info[names]

    @property
    def colours(self) -> dict[str, dict[str, str]]:
        """The colours of all labels that were tested, as in the report."""
        info, tests = self.results.sample_info, self.results.tables.get("associations")
        if info is None or tests is None or self.annotate is None:
            return {}
        tested = set(tests["variable"])
        found = netbic.association.stored_variables(info, netbic.association.stored_record(self.folder))[0]
        found = [variable for variable in found if variable.kind == "categorical" and variable.name in tested]
        return netbic.pl.variable_colours(found)

    def heatmap(self, ax: Axes | None) -> Axes:
        """The data of one module or of all."""
        chosen = None if self.module is None else [self.number]
        data = netbic.storage.read_again(self.folder, self.expression)
        beside: Any = {"annotation": self.annotation, "colours": self.colours, "names": self.results.names}
        return netbic.pl.heatmap(self.results.model, data.matrix, modules=chosen, **beside, ax=ax)

    def network(self, ax: Axes | None) -> Axes:
        """The network of a module."""
        if self.results.model.column_graph is None:
            raise click.UsageError(
                "the modules were found without a network (netbic fit --graph): there is none to draw"
            )
        return netbic.pl.network(self.results.model, self.number, names=self.results.names, ax=ax)

    def scores(self, ax: Axes | None) -> Axes:
        """The scores of the samples in a module."""
        beside: Any = {"annotation": self.annotation, "colours": self.colours, "names": self.results.names}
        return netbic.pl.scores(self._samples, module=self.number, **beside, ax=ax)

    @property
    def _samples(self) -> pd.DataFrame:
        if (table := self.results.tables.get("samples")) is None:
            raise click.UsageError(f"{self.folder} has no samples.tsv: fit again with this version")
        return table

    def curves(self, ax: Axes | None) -> Axes:
        """Kaplan-Meier curves of a module."""
        if self.results.sample_info is None:
            what = f"survival needs {self.folder}/sample_info.tsv"
            remedy = f"run netbic associate {self.folder} --sample-info TABLE --survival TIME,EVENT"
            raise click.UsageError(f"{what}: {remedy}")
        columns = self.survival and [name.strip() for name in self.survival.split(",")]
        if columns and len(columns) != 2:
            raise click.UsageError(f"--survival {self.survival}: name two columns, TIME,EVENT")
        chosen: Any = tuple(columns) if columns else None
        return netbic.pl.survival(self.folder, self.number, survival=chosen, until=self.until, ax=ax)

    def associations(self, ax: Axes | None) -> Axes:
        """Modules by variables."""
        if (table := self.results.tables.get("associations")) is None:
            what = f"{self.folder} has no associations.tsv"
            raise click.UsageError(f"{what}: run netbic associate {self.folder} --sample-info TABLE")
        return netbic.pl.associations(table, names=self.results.names, ax=ax)


_KINDS: dict[str, tuple[Callable[[PlotOptions, Any], Any], set[str]]] = {  # and the options that each of them uses
    "heatmap": (PlotOptions.heatmap, {"module", "annotate", "expression"}),
    "network": (PlotOptions.network, {"module"}),
    "associations": (PlotOptions.associations, set()),
    "scores": (PlotOptions.scores, {"module", "annotate"}),
    "survival": (PlotOptions.curves, {"module", "survival", "until"}),
}


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("kind", type=click.Choice(list(_KINDS)))
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write: .pdf, .png or .svg."
)
@click.option(
    "--module",
    type=int,
    show_default="1; for heatmap all",
    help="Number of the module, counted from 1 as in the report.",
)
@click.option(
    "--annotate",
    "--annotation",
    "annotate",
    metavar="NAME,...",
    help="Columns of the sample table to draw beside the samples (heatmap, scores).",
)
@click.option(
    "--survival",
    metavar="TIME,EVENT",
    show_default="those of netbic associate --survival",
    help="Columns of the sample table with times and events (survival).",
)
@click.option("--until", type=Finite(0, min_open=True), help="End of the time axis (survival).")
@click.option(
    "--expression", type=File, show_default="where they were at the fit", help="The data of the fit (for heatmap)."
)
@click.option("--width", type=Finite(1, 100), help="Width of the figure in inches.")
@click.option("--height", type=Finite(1, 100), help="Height of the figure in inches.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def plot(kind: str, out: Path, width: float | None, height: float | None, force: bool, **options: Any) -> None:
    """Draw a figure of the modules in FOLDER (written by netbic fit).

    \b
    heatmap       the data of the samples and genes of the modules
    network       the network between the genes of a module
    associations  modules by variables of the sample table (see netbic associate)
    scores        the scores of the samples in a module
    survival      Kaplan-Meier curves of a module
    """
    chosen = take(PlotOptions, options)
    draw, used = _KINDS[kind]
    for name in ("module", "annotate", "survival", "until", "expression"):
        if getattr(chosen, name) is not None and name not in used:
            raise click.UsageError(f"--{name} has no effect on {kind}: leave it out")
    if out.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"--out {out}: the name must end in .pdf, .png or .svg")
    inputs: Any = {"the results": netbic.files.recorded_paths(chosen.folder), "the data": chosen.expression}
    netbic.files.check_output_file(out, inputs, force=force)
    content = _drawn(partial(draw, chosen), out.suffix.lower()[1:], (width, height))
    netbic.files.check_output_file(out, inputs, force=force)  # it may have been created meanwhile
    netbic.files.write_atomic(out, content)
    click.echo(f"{out}")


def _drawn(draw: Callable[[Any], Any], kind: str, size: tuple[float | None, float | None]) -> bytes:
    """The figure as a file; drawn again if it gets another size, because names are written where they fit."""
    import io

    from netbic.errors import import_optional

    import_optional("matplotlib", "plot", "a figure").use("agg")
    import matplotlib.pyplot as plt

    figure = draw(None).get_figure()
    if any(size):
        given = [new or own for new, own in zip(size, figure.get_size_inches().tolist(), strict=True)]
        plt.close(figure)
        figure = draw(plt.subplots(figsize=given, layout="constrained")[1]).get_figure()
    content = io.BytesIO()
    with plt.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42}):  # text that can be edited
        figure.savefig(content, format=kind, dpi=_DPI)
    plt.close(figure)
    return content.getvalue()
