"""The command line. Each command is a few lines that call the rooms above, which are loaded only when it runs."""

import click

from netbic import __version__
from netbic.cli.align import align
from netbic.cli.convert import convert
from netbic.cli.demo import demo
from netbic.cli.enrich import enrich
from netbic.cli.fit import fit
from netbic.cli.report import report
from netbic.cli.reproduce import reproduce
from netbic.cli.score import score
from netbic.cli.simulate import simulate
from netbic.cli.tune import tune


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="netbic")
def main() -> None:
    """Find network-coherent biclusters: genes that act together in some samples and hang together in a graph.

    \b
    netbic demo                              see it work on simulated data
    netbic simulate DIR                      files to try the other commands on
    netbic convert EXPR OUT.zarr             data larger than memory, for fit --dask
    netbic align EXPR --graph NET            what of the network matches the data
    netbic fit EXPR --graph NET --out DIR    modules, by name, in open files
    netbic tune EXPR --graph NET --out DIR   sizes and smoothness that explain what was not fitted
    netbic enrich DIR --gene-sets GMT        edges and gene sets the modules are rich in
    netbic report DIR                        all of it as one page to look at, self-contained
    netbic score DIR NEW                     scores of new samples on those modules
    netbic reproduce fig1                    the paper's figures and table, with controls
    """


for command in (demo, simulate, convert, align, tune, fit, enrich, report, score, reproduce):
    main.add_command(command)
