"""Commands killed at random moments: resumed or repeated, they write the same bytes and leave no temporary files.

    python tests/kills/random_kills.py --kills 200 --seed 0

Every command runs in a forked child, which is sent SIGTERM, SIGKILL or SIGINT (Ctrl-C) after a random part of the time
that it takes otherwise. Then its folder is checked, the command is repeated, and every byte is compared
with the output of a command that was not killed. Files of the user (inputs, and others in the output folder) must stay.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from netbic.cli import main

# What commands load when they run, loaded once for all children.
LIBRARIES = ["estimators", "enrichment", "io", "report", "selection"]
LIBRARIES = [*(f"netbic.{name}" for name in LIBRARIES), "dask.array", "jinja2", "matplotlib", "PIL", "zarr"]
SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
USER_FILES = {"notes.txt": b"mine", "checkpoint/epoch1.ckpt": b"mine too", "model/weights.pt": b"and mine"}
TIMEOUT = 300.0  # seconds after which a command counts as hanging
Contents = dict[str, bytes]


def contents(folder: Path) -> Contents:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Job:
    """A command to be killed, and how it is resumed."""

    name: str
    arguments: list[str]
    again: list[str] = field(default_factory=list)  # options that are added when it is repeated
    before: list[list[str]] = field(default_factory=list)  # commands that have been run in the folder
    user_files: bool = True  # whether the output folder contains files of the user


def jobs() -> list[Job]:
    """The commands, run in a folder that holds the files of `write_inputs`."""
    sizes = ["--modules", "3", "--genes", "8", "--samples", "6"]
    fit = ["fit", "expression.tsv", "--graph", "edges.tsv", *sizes, "--out", "out", "--force"]
    plain = [*fit, "--no-report"]
    joint = ["fit", "expression.tsv", "--graph", "edges.tsv", "--no-report", "--out", "out", "--force"]
    tune = ["tune", "expression.tsv", "--modules", "1", "--genes", "5,8", "--samples", "6", "--folds", "3"]
    tune += ["--out", "out"]
    pairs = ["pairs", "expression.tsv", "second.tsv", "--features1", "8", "--features2", "4", "--out", "out", "--force"]
    resumed, convert = ["--resume"], ["convert", "expression.tsv", "out.zarr"]
    return [
        Job("fit", plain, resumed),
        Job("fit, report", fit, resumed),
        Job("fit --force", [*plain, "--seed", "1"], resumed, [plain]),
        Job("fit, sizes from the data", joint, resumed),
        Job("tune", tune),
        Job("enrich", ["enrich", "out", "--gene-sets", "sets.gmt"], [], [plain]),
        Job("report", ["report", "out"], [], [plain]),
        Job("pairs", pairs),
        Job("pairs --force", [*pairs, "--method", "pls", "--graph1", "edges.tsv"], [], [pairs]),
        Job("convert", convert, user_files=False),
        Job("convert --force", ["convert", "double.tsv", "out.zarr", "--force"], [], [convert], user_files=False),
    ]


def write_inputs(folder: Path) -> None:
    """A small study: expression, a network, gene sets and a second table."""
    generator, genes = np.random.default_rng(0), [f"G{k}" for k in range(60)]
    values = generator.standard_normal((60, 30))
    for k in range(3):
        values[10 * k : 10 * k + 10, 8 * k : 8 * k + 8] += 3
    table = pd.DataFrame(values, index=pd.Index(genes, name="gene"), columns=[f"s{k}" for k in range(30)])
    table.to_csv(folder / "expression.tsv", sep="\t")
    (2 * table).to_csv(folder / "double.tsv", sep="\t")
    second = pd.DataFrame(
        generator.standard_normal((15, 30)), index=[f"L{k}" for k in range(15)], columns=table.columns
    )
    (second + table.to_numpy()[:15]).rename_axis("lipid").to_csv(folder / "second.tsv", sep="\t")
    edges = [(genes[a], genes[b]) for a in range(30) for b in range(a) if a // 10 == b // 10]
    (folder / "edges.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    (folder / "sets.gmt").write_text("one\tset one\t" + "\t".join(genes[:12]) + "\n")


def started(arguments: list[str], folder: Path) -> int:
    """Run a command of netbic in a child process; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        output = os.open("../output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        main(arguments, prog_name="netbic")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(child: int, kill: tuple[float, int] | None = None) -> int:
    """Wait for a child, and kill it meanwhile; returns its exit code, negative for a signal."""
    start, left = time.monotonic(), kill
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        spent = time.monotonic() - start
        if left is not None and spent >= left[0]:
            os.kill(child, left[1])
            left = None
        if spent > TIMEOUT:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError(f"a command did not end within {TIMEOUT:.0f} s")
        time.sleep(0.001)


class Bench:
    """The template folders of all jobs, their run times and their results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds: dict[str, float] = {}
        self.expected: dict[str, Contents] = {}
        self.template: dict[str, Path] = {}

    def prepare(self, job: Job) -> None:
        """Run a job without killing it."""
        folder = self.root / f"template-{len(self.template)}" / "study"
        folder.mkdir(parents=True)
        write_inputs(folder)
        if job.user_files:
            for name, content in USER_FILES.items():
                (folder / "out" / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / "out" / name).write_bytes(content)
        for arguments in job.before:
            assert ended(started(arguments, folder)) == 0, (folder.parent / "output.txt").read_text()
        self.template[job.name] = folder
        whole = self.copy(job)
        start = time.monotonic()
        assert ended(started(job.arguments, whole)) == 0, (whole.parent / "output.txt").read_text()
        self.seconds[job.name] = time.monotonic() - start
        self.expected[job.name] = contents(whole)
        shutil.rmtree(whole.parent)

    def copy(self, job: Job) -> Path:
        """A new folder to run a job in."""
        folder = Path(tempfile.mkdtemp(dir=self.root)) / "study"
        shutil.copytree(self.template[job.name], folder)
        return folder

    def attempt(self, job: Job, number: int, share: float) -> Iterator[str]:
        """Kill a job, check its folder, repeat it and compare; yields problems."""
        folder = self.copy(job)
        before = contents(folder)
        code = ended(started(job.arguments, folder), (share * self.seconds[job.name], number))
        left = contents(folder)
        own = [name for name in before if name in USER_FILES or "/" not in name or name.split("/", 1)[-1] in USER_FILES]
        if any(left.get(name) != before[name] for name in own):
            yield "a file of the user has changed"
        output = (folder.parent / "output.txt").read_text() if (folder.parent / "output.txt").exists() else ""
        if "Traceback" in output:
            yield f"a traceback: {output[-300:]}"
        if number != signal.SIGKILL:
            kept = (".netbic-fit/", ".netbic-tuning/")  # finished pieces
            yield from (f"left behind: {name}" for name in left if ".netbic-" in re.sub("|".join(kept), "", name))
            unhandled = code == -number and left == before  # it may arrive before Python handles signals
            if code not in (0, 1) and not unhandled:
                yield f"exit code {code}"
        task = "out/.netbic-fit/task.json" in left
        yield from self.repeated(job, folder, task or left.get("out/run.json") != before.get("out/run.json"))
        shutil.rmtree(folder.parent)

    def repeated(self, job: Job, folder: Path, had_started: bool) -> Iterator[str]:
        """Resume a job (one that was killed before it wrote anything is repeated), and compare."""
        resumed = [argument for argument in job.arguments if argument != "--force"] + job.again
        arguments = resumed if job.again and had_started else job.arguments
        code = ended(started(arguments, folder))
        finished = code == 2 and contents(folder) == self.expected[job.name]  # it was done, and refuses to do it again
        if code != 0 and not finished:
            yield f"repeated, it ends with {code}: {(folder.parent / 'output.txt').read_text()[-300:]}"
        found, expected = contents(folder), self.expected[job.name]
        for name in sorted({*found, *expected}):
            if found.get(name) != expected.get(name):
                yield f"repeated, {name} {'differs' if name in found and name in expected else 'is missing or new'}"


def run(kills: int, seed: int, chosen: Callable[[Job], bool] = lambda job: True) -> list[str]:
    """Kill commands `kills` times; returns a line for every failure."""
    for name in LIBRARIES:
        import_module(name)
    chance, failures, counts = random.Random(seed), [], Counter()
    with tempfile.TemporaryDirectory() as root:
        bench, known = Bench(Path(root)), [job for job in jobs() if chosen(job)]
        for job in known:
            bench.prepare(job)
            print(f"{job.name}: {bench.seconds[job.name]:.1f} s without a kill", flush=True)
        for attempt in range(kills):
            job, number = known[attempt % len(known)], SIGNALS[(attempt + attempt // len(known)) % 3]
            share = chance.uniform(0.0, 1.05)
            problems = list(bench.attempt(job, number, share))
            counts[job.name, signal.Signals(number).name, "failed" if problems else "held"] += 1
            failures += [f"{job.name}, {signal.Signals(number).name} at {share:.3f}: {what}" for what in problems]
    for (name, sent, outcome), times in sorted(counts.items()):
        print(f"{name:16} {sent:8} {outcome:7} {times:4}")
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", action="append", default=[], help="leave a command out")
    options = parser.parse_args()
    print(f"{options.kills} kills, seed {options.seed}")
    wrong = run(options.kills, options.seed, lambda job: job.name not in options.without)
    print(*wrong, sep="\n")
    print(f"{len(wrong)} failures")
    sys.exit(bool(wrong))
