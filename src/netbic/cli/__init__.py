"""The command line. Each command calls the packages above, which are imported only when it runs."""

import click

from netbic import __version__
from netbic.cli.align import align
from netbic.cli.associate import associate
from netbic.cli.compare import compare, replicate
from netbic.cli.convert import convert
from netbic.cli.demo import demo
from netbic.cli.enrich import enrich
from netbic.cli.export import export
from netbic.cli.fit import fit
from netbic.cli.graph import graph
from netbic.cli.pairs import pairs
from netbic.cli.plot import plot
from netbic.cli.report import report
from netbic.cli.score import score
from netbic.cli.simulate import simulate
from netbic.cli.tune import tune


class Commands(click.Group):
    """The commands, which the help lists with their arguments."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: a second list without arguments would repeat the first."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="netbic")
def main() -> None:
    """Find modules in gene expression data: sets of genes that go up and down together in the same samples.

    netbic can prefer genes that are connected in a network (--graph), but needs none.

    \b
    netbic demo                              a first example on simulated data
    netbic simulate DIR                      example files for the other commands
    netbic convert EXPR OUT.zarr             for data larger than memory
    netbic graph OTHER --out NET.npz         a network from another study
    netbic align EXPR --graph NET            check gene names against the network
    netbic fit EXPR --graph NET --out DIR    find modules, write them as tables
    netbic tune EXPR --graph NET --out DIR   choose sizes and smoothness
    netbic pairs TABLE1 TABLE2 --out DIR     features of two tables that vary together
    netbic enrich DIR --gene-sets GMT        test edges and gene sets
    netbic associate DIR --sample-info TABLE compare modules with labels of samples
    netbic report DIR                        results as one HTML page
    netbic plot DIR heatmap --out FIG.pdf    figures
    netbic export DIR --format gmt           lists, workbooks, networks for others
    netbic score DIR NEW                     score new samples
    netbic compare DIR1 DIR2                 match the modules of two fits
    netbic replicate DIR OTHER               look for modules in another study

    netbic COMMAND --help describes the options of a command.
    """


_BEFORE_RESULTS = (demo, simulate, convert, graph, align, tune, fit, pairs)
for command in (*_BEFORE_RESULTS, enrich, associate, report, plot, export, score, compare, replicate):
    main.add_command(command)
