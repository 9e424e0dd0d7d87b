"""Run `netbic fit` and print process and wall seconds of its stages as JSON, in the last line.

python benchmarks/stages.py fit EXPRESSION --sample-info TABLE --gene-sets FILE --out FOLDER

A function that is gone, or that the command no longer calls, is an error.
"""

import json
import os
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import isgenerator

import numpy as np

STAGES = {  # functions whose calls are a stage
    "reading": [
        "netbic.io.dataset:open_dataset",
        "netbic.io.samples:read_gene_sets",
        "netbic.io.samples:read_sample_info",
    ],
    "checks": ["netbic.cli.fit:check_data"],
    "fit": ["netbic.estimators.svd:SparseGraphSVD.iter_fit"],
    "verdicts": ["netbic.selection:verdicts"],
    "sample groups": ["netbic.cli.fit:_sample_groups"],
    "associations": ["netbic.cli.samples:SampleTable.write"],
    "gene sets": ["netbic.enrichment:write_enrichment"],
    "heatmaps": ["netbic.report:write_heatmaps"],
    "report": ["netbic.cli.fit:report_lines"],
}
spent, called = defaultdict(lambda: np.zeros(2)), set()
running = []


def seconds():
    """Process seconds, those of processes that have ended included, and wall seconds."""
    return np.array([sum(os.times()[:4]), time.perf_counter()])


@contextmanager
def stage(name):
    """Add the time to a stage, unless it is a part of one, as fits to halves are of the verdicts."""
    if running:
        yield
        return
    running.append(name)
    begun = seconds()
    try:
        yield
    finally:
        spent[name] += seconds() - begun
        running.pop()


def timed(name, place):
    """Count the calls of a function as a stage; of a generator, every step."""
    module, _, path = place.partition(":")
    *owners, last = path.split(".")
    owner = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    function = getattr(owner, last)

    def steps(found):
        while True:
            with stage(name):
                try:
                    item = next(found)
                except StopIteration:
                    return
            yield item

    @wraps(function)
    def call(*given, **options):
        called.add(place)
        with stage(name):
            found = function(*given, **options)
        return steps(found) if isgenerator(found) else found

    setattr(owner, last, call)


def main():
    for name, places in STAGES.items():
        for place in places:
            timed(name, place)
    from netbic.cli import main as netbic

    begun = seconds()
    netbic(sys.argv[1:], standalone_mode=False)
    total = seconds() - begun
    if never := {place for places in STAGES.values() for place in places} - called:
        raise SystemExit(f"netbic fit did not call {', '.join(sorted(never))}: correct STAGES")
    stages = {name: spent[name] for name in STAGES} | {"tables and the rest": total - sum(spent.values())}
    print(json.dumps({name: own.tolist() for name, own in stages.items()}))


if __name__ == "__main__":
    main()
