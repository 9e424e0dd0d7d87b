"""Files of the user are never replaced or removed."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

import netbic
from netbic import InputError
from netbic.files import RUN_FILES, WriteError, read_json
from support.commands import run
from support.output_folders import SIZES, contents, fit


def test_a_fit_does_not_replace_what_it_reads(cohort, tmp_path):
    (tmp_path / "folder").symlink_to(cohort)
    (tmp_path / "file.tsv").symlink_to(cohort / "edges.tsv")
    os.link(cohort / "edges.tsv", tmp_path / "same.tsv")
    before = contents(cohort)
    for graph, out in (
        (cohort / "edges.tsv", cohort),
        (cohort / "edges.tsv", cohort / ".." / "cohort" / "."),
        (cohort / "edges.tsv", tmp_path / "folder"),
        (tmp_path / "file.tsv", cohort),
        (tmp_path / "same.tsv", cohort),
    ):
        for more in ([], ["--force"], ["--resume"]):
            done = run("fit", cohort / "expression.tsv", "--graph", graph, "--out", out, *more)
            assert done.exit_code == 2
            assert "edges.tsv is an input (the network" in done.output
            assert contents(cohort) == before
    (cohort / "gene_sets.tsv").write_text("one\tset one\tG1\tG2\n")
    given = ("fit", cohort / "expression.tsv", "--out", cohort, "--force")
    for option in ("--gene-sets", "--id-map", "--graph-names", "--string-info"):
        done = run(*given, option, cohort / "gene_sets.tsv")
        assert done.exit_code == 2
        assert "gene_sets.tsv is an input" in done.output


def test_other_commands_do_not_replace_what_they_read(cohort, results):
    before = contents(cohort), contents(results)
    targets = [cohort / "expression.tsv", cohort / ".." / "cohort" / "expression.tsv", results / "model" / "arrays.npz"]
    for target in [*targets, results / "run.json", results / "modules.tsv"]:
        done = run("score", results, cohort / "expression.tsv", "--out", target, "--force")
        assert done.exit_code == 2, done.output
        assert "is an input" in done.output
    assert run("report", results, "--out", results / "modules.tsv", "--force").exit_code == 2
    assert (contents(cohort), contents(results)) == before
    for path, command in (
        (cohort / "tuning.tsv", ("tune", cohort / "tuning.tsv", "--out", cohort, "--force")),
        (results / "gene_sets.tsv", ("enrich", results, "--gene-sets", results / "gene_sets.tsv")),
    ):
        path.write_text("one\tset one\tG1\tG2\n")
        assert f"{path.name} is an input" in run(*command).output
        assert path.read_text() == "one\tset one\tG1\tG2\n"


def test_no_command_replaces_what_a_fit_read(cohort, tmp_path, monkeypatch):
    """All inputs of a fit, by all commands that write a file, also from another working directory."""
    samples = pd.DataFrame({"sample": [f"s{k}" for k in range(20)], "age": range(20)})
    samples.to_csv(cohort / "info.tsv", sep="\t", index=False)
    monkeypatch.chdir(cohort)
    given = ("expression.tsv", "--graph", "edges.tsv", "--gene-sets", "sets.gmt", "--sample-info", "info.tsv")
    for out in (tmp_path / "out", tmp_path / "other"):
        assert run("fit", *given, *SIZES, "--no-report", "--out", out).exit_code == 0
    (cohort / "plot.svg").symlink_to(cohort / "edges.tsv")
    before = contents(tmp_path)
    for folder in (cohort, tmp_path):
        monkeypatch.chdir(folder)
        for name in ("expression.tsv", "edges.tsv", "sets.gmt", "info.tsv"):
            target = os.path.relpath(cohort / name)
            for command in (
                *(("export", out, "--format", kind) for kind in ("gmt", "xlsx", "membership")),
                *(("report", out), ("compare", out, tmp_path / "other"), ("compare", tmp_path / "other", out)),
                *(("score", out, tmp_path / "new.tsv"), ("replicate", out, tmp_path / "new.tsv")),
            ):
                (tmp_path / "new.tsv").write_bytes(before["cohort/expression.tsv"])
                done = run(*command, "--out", target, "--force")
                assert done.exit_code == 2, (command, done.output)
                assert " is an input (" in done.output
        done = run("plot", out, "scores", "--out", os.path.relpath(cohort / "plot.svg"), "--force")
        assert "is an input (the network of the fit" in done.output
    (tmp_path / "new.tsv").unlink()
    assert contents(tmp_path) == before


def test_a_fit_does_not_replace_a_file_it_did_not_write(cohort, tmp_path):
    for number, name in enumerate([*RUN_FILES, "run.json", ".netbic-fit"]):
        out = tmp_path / str(number)
        (out / name).parent.mkdir(parents=True)
        (out / name).write_bytes(b"years of work")
        (out / "thesis.docx").write_bytes(b"more years")
        for more in ([], ["--force"], ["--resume"]):
            done = fit(cohort, out, *more)
            assert done.exit_code == 2, name
            assert Path(name).name in done.output
            assert contents(out) == {name: b"years of work", "thesis.docx": b"more years"}


def test_a_file_that_came_later_is_not_replaced(cohort, results):
    (results / "report.html").write_bytes(b"my own page")
    for arguments in (["report", results], ["report", results, "--out", results / "report.html", "--force"]):
        done = run(*arguments)
        assert done.exit_code == 2
        assert "report.html" in done.output
    assert fit(cohort, results, "--force").exit_code == 2
    assert (results / "report.html").read_bytes() == b"my own page"
    (results / "report.html").unlink()
    for _ in range(2):  # the second replaces the first, which is netbic's
        assert run("report", results).exit_code == 0
    (results / "summary.tsv").unlink()
    (results / "summary.tsv").mkdir()
    before = contents(results)
    assert fit(cohort, results, "--force", "--modules", 1).exit_code == 2
    assert contents(results) == before


def test_links_in_place_of_folders_are_not_followed(cohort, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "arrays.npz").write_bytes(b"mine")
    for name, message in (("model", "in the way"), (".netbic-fit", "is not a folder")):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).symlink_to(elsewhere)
        done = fit(cohort, tmp_path / name, "--force")
        assert done.exit_code == 2
        assert message in done.output
        assert contents(elsewhere) == {"arrays.npz": b"mine"}


def test_named_files_are_replaced_only_with_force(cohort, results, tmp_path):
    notes = tmp_path / "important.txt"
    for command in (["score", results, cohort / "expression.tsv"], ["report", results]):
        notes.write_bytes(b"years of work")
        done = run(*command, "--out", notes)
        assert done.exit_code == 2
        assert "exists: choose another name, or --force to replace it" in done.output
        assert notes.read_bytes() == b"years of work"
        assert run(*command, "--out", notes, "--force").exit_code == 0
        assert notes.read_bytes() != b"years of work"


def test_devices_pipes_folders_and_what_links_point_to_are_not_replaced(cohort, results, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    score = ("score", results, cohort / "expression.tsv", "--out")
    for target in (tmp_path / "pipe", tmp_path / "folder", "/dev/null"):
        done = run(*score, target, "--force")
        assert done.exit_code == 2
        assert "is not a regular file" in done.output
    assert not Path("/dev/null").is_file()
    (tmp_path / "precious.tsv").write_bytes(b"mine")
    (tmp_path / "scores.tsv").symlink_to(tmp_path / "precious.tsv")
    assert run(*score, tmp_path / "scores.tsv").exit_code == 2
    assert run(*score, tmp_path / "scores.tsv", "--force").exit_code == 0
    assert (tmp_path / "precious.tsv").read_bytes() == b"mine"


def test_simulations_and_tunings_replace_only_their_own_files(cohort, tmp_path):
    small = ("--samples", 40, "--genes", 200, "--modules", 1)
    grid = ("--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 2)
    tuning = ("tune", cohort / "expression.tsv", *grid, "--out")
    for given, more, names in (
        (("simulate",), small, ("expression.tsv.gz", "network.sif", "truth.tsv", "example.json")),
        (tuning, (), ("tuning.tsv", "tuning.json", ".netbic-tuning")),
    ):
        out = tmp_path / given[0]
        codes = [run(*given, out, *more, *force).exit_code for force in ((), (), ("--force",))]
        assert codes == [0, 2, 0]
        for name in names:
            own = tmp_path / f"own {name}"
            own.mkdir()
            (own / name).write_bytes(b"mine\n")
            done = run(*given, own, *more, "--force")
            assert done.exit_code in (1, 2)
            assert name in done.output
            assert contents(own) == {name: b"mine\n"}


def test_files_that_appear_at_a_target_meanwhile_are_not_replaced(cohort, results, tmp_path, monkeypatch):
    target = tmp_path / "out.zarr"

    def meanwhile(percent):
        target.mkdir(exist_ok=True)
        (target / "thesis.docx").write_bytes(b"mine")

    with pytest.raises(InputError, match="exists: choose another name"):
        netbic.io.convert(cohort / "expression.tsv", target, progress=meanwhile)
    assert contents(target) == {"thesis.docx": b"mine"}
    table = netbic.io.scores_table

    def slow(*arguments):
        (tmp_path / "scores.tsv").write_bytes(b"mine")
        return table(*arguments)

    monkeypatch.setattr("netbic.io.dataset.scores_table", slow)
    assert run("score", results, cohort / "expression.tsv", "--out", tmp_path / "scores.tsv").exit_code == 2
    assert (tmp_path / "scores.tsv").read_bytes() == b"mine"


def test_a_report_in_another_folder_needs_no_write_permission_for_the_results(results, tmp_path, monkeypatch):
    def forbidden(folder):
        raise WriteError(folder, "read-only")

    monkeypatch.setattr(netbic.files, "locked", forbidden)
    assert run("report", results).exit_code == 1
    assert run("report", results, "--out", tmp_path / "page.html").exit_code == 0


def test_edited_records_and_tables_are_not_trusted(cohort, results):
    changes = {"alignment.json": b'{"samples": []}', "heatmaps.npz": b"PK", "edges.tsv": b"module\n0\n"}
    for name, content in changes.items():
        before = (results / name).read_bytes()
        (results / name).write_bytes(content)
        done = run("report", results)
        assert done.exit_code == 1
        assert "this is a bug" not in done.output
        (results / name).write_bytes(before)
    record = read_json(results / "run.json")
    commands = (["enrich", results, "--gene-sets", cohort / "sets.gmt"], ["score", results, cohort / "expression.tsv"])
    for name, value in (
        *(("files", 5), ("inputs", 7), ("warnings", 5), ("settings", [])),
        *(("inputs", {"skip_columns": 5}), ("files", [1, "report.html", None])),
    ):
        (results / "run.json").write_text(json.dumps(record | {name: value}))
        for arguments in (["report", results], *commands):
            done = run(*arguments)
            assert "this is a bug" not in done.output
            assert "Traceback" not in done.output
        if value in (5, 7, []):
            assert fit(cohort, results, "--force").exit_code == 2
