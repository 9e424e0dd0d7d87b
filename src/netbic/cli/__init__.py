"""The command line. Each command imports the packages that it calls only when it runs."""

import click

from netbic import __version__
from netbic.cli.data import align, convert, graph, simulate
from netbic.cli.demo import demo
from netbic.cli.fit import fit
from netbic.cli.judge import judge
from netbic.cli.pairs import pairs
from netbic.cli.results import compare, enrich, export, plot, replicate, report
from netbic.cli.samples import associate, score
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
    netbic demo                              a first example: ovarian tumours
    netbic simulate DIR                      example files for the other commands
    netbic fit EXPR --out DIR                find modules, write them as tables
    netbic pairs TABLE1 TABLE2 --out DIR     features of two tables that vary together
    netbic enrich DIR --gene-sets GMT        test edges and gene sets
    netbic associate DIR --sample-info TABLE compare modules with labels of samples
    netbic judge EXPR GMT --out DIR          verdicts on modules of other programs
    netbic report DIR                        results as one HTML page
    netbic plot DIR heatmap --out FIG.pdf    figures
    netbic export DIR --format gmt           lists, workbooks, networks for others
    netbic score DIR NEW                     score new samples
    netbic compare DIR1 DIR2                 match the modules of two fits
    netbic replicate DIR OTHER               look for modules in another study
    netbic convert EXPR OUT.zarr             for data larger than memory
    netbic graph OTHER --out NET.npz         a network from another study
    netbic align EXPR --graph NET            check gene names against the network
    netbic tune EXPR --graph NET --out DIR   choose sizes and smoothness

    netbic COMMAND --help describes the main options of a command, --help-all all of them.
    """


for each in (demo, simulate, convert, graph, align, tune, fit, pairs, enrich, associate, report, plot, export, score):
    main.add_command(each)
for each in (compare, replicate, judge):
    main.add_command(each)
