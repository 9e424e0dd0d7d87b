"""The command line. Each command calls the packages above, which are imported only when it runs."""

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
    """Find modules: sets of genes that act together in a subset of samples and are linked in a network.

    \b
    netbic demo                              try netbic on simulated data
    netbic simulate DIR                      write simulated files for the other commands
    netbic convert EXPR OUT.zarr             store data larger than memory for fit --dask
    netbic align EXPR --graph NET            show how the network matches the data
    netbic fit EXPR --graph NET --out DIR    find modules and write them as tables
    netbic tune EXPR --graph NET --out DIR   choose module sizes by cross-validation
    netbic enrich DIR --gene-sets GMT        test modules for edges and gene sets
    netbic report DIR                        write the results as an HTML report
    netbic score DIR NEW                     score new samples on the modules
    netbic reproduce fig1                    reproduce the paper's figures and table
    """


for command in (demo, simulate, convert, align, tune, fit, enrich, report, score, reproduce):
    main.add_command(command)
