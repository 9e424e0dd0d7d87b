"""A small study as files, commands run on it, and disks that fill up."""

import errno
import os
from pathlib import Path

from click.testing import CliRunner

import netbic
from netbic.cli import main

TOY = netbic.simulate.paper(0.02, random_state=0)


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SIZES = ("--modules", 2, "--genes", 8, "--samples", 6)


def fit(cohort, out, *more):
    words = ("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", *SIZES, "--out", out)
    return run(*words, *(more or ["--no-report"]))


class FullDisk:
    """From the n-th file on, nothing more can be written."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, handle: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
