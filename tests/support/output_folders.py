"""Fits written to output folders, the contents of folders, and full disks."""

import errno
import os
from pathlib import Path

import netbic
from support.commands import run

TOY = netbic.simulate.paper(0.02, random_state=0)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SIZES = ("--modules", 2, "--genes", 8, "--samples", 6)


def fit(cohort, out, *more):
    arguments = ("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", *SIZES, "--out", out)
    return run(*arguments, *(more or ["--no-report"]))


class FullDisk:
    """A disk that is full after a number of files."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, handle: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
