"""Commands, their help, output and exit codes."""

import json
import re
import subprocess
import sys
import warnings

import anndata
import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import netbic
from netbic.cli import main
from netbic.cli.command import Command
from netbic.cli.options import Numbers, scales_data
from support.commands import run

HELP = ("--help", "--help-all")


def test_every_command_has_help():
    for name, command in main.commands.items():
        assert command.help
        assert all(option.help for option in command.params if isinstance(option, click.Option)), name
        assert f"netbic {name} " in main.help
        shown = CliRunner().invoke(main, [name, "--help"], terminal_width=80)
        assert shown.exit_code == 0
        assert max(map(len, shown.output.splitlines())) <= 80


def test_the_complete_help_lists_every_option_once_and_the_short_one_fits_two_screens():
    for name, command in main.commands.items():
        short, text = (CliRunner().invoke(main, [name, how], terminal_width=80).output for how in HELP)
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:  # --help-all, where it says the same as --help
                assert len(re.findall(rf"^  {option.opts[0]}(?![\w-])", text, re.MULTILINE)) == 1, option.opts
        assert len(short.splitlines()) <= 52, name
    complete = run("fit", "--help-all").output
    assert complete.index("Options:") < complete.index("Module search:") < complete.index("Reading the network:")


def test_no_number_may_be_infinite_or_undefined():
    kinds = [option.type for command in main.commands.values() for option in command.params]
    kinds = [kind for kind in kinds if isinstance(kind, (click.types.FloatParamType, Numbers))]
    assert len(kinds) > 10
    for kind in kinds:
        for value in ("nan", "inf", "-inf", "1e999"):
            with pytest.raises(click.BadParameter):
                kind.convert(value, None, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    done = run("simulate", str(folder), "--samples", "150", "--genes", "600", "--modules", "3", "--seed", "1")
    assert done.exit_code == 0, done.output
    return folder


def fit(files, out, *more):
    data = (str(files / "expression.tsv.gz"), "--graph", str(files / "network.sif"))
    return run(
        "fit", *data, "--modules", "3", "--genes", "60", "--samples", "40", "--no-report", "--out", str(out), *more
    )


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "pandas", "rich")
    code = f"import sys; from netbic.cli import main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_HEAVY = """
import sys
from netbic.cli import main
main(sys.argv[1:], standalone_mode=False)
heavy = ("matplotlib", "anndata", "dask", "distributed", "openpyxl", "h5py", "zarr")
print([name for name in heavy if name in sys.modules])
"""


def test_a_fit_loads_only_what_it_needs(cohort, tmp_path):
    """scipy.stats is not in the list because scikit-learn imports it."""
    given = ("--graph", cohort / "edges.tsv", "--modules", 1, "--genes", 8, "--no-verdict")
    arguments = ("fit", cohort / "expression.tsv", *given, "--out", tmp_path / "out")
    version = subprocess.run([sys.executable, "-m", "netbic", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("netbic, version 0.")
    command = [sys.executable, "-c", _HEAVY, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_simulate_writes_is_what_fit_finds(files, tmp_path):
    done = fit(files, tmp_path / "out")
    assert done.exit_code == 0, done.output
    truth, found = (netbic.io.read_table(path) for path in (files / "truth.tsv", tmp_path / "out" / "modules.tsv"))
    genes = netbic.io.read_expression(files / "expression.tsv.gz").genes
    masks = [
        np.array([np.isin(genes, part["name"][part["axis"] == "gene"]) for _, part in table.groupby("module")])
        for table in (found, truth)
    ]
    assert netbic.simulate.recovery(*masks)["f1"].mean() > 0.7


def test_fit_and_align_report_matched_genes(files, tmp_path):
    data = (str(files / "expression.tsv.gz"), "--graph", str(files / "network.sif"))
    printed, output = run("align", *data).output, fit(files, tmp_path / "out", "--verdict").output
    assert printed.splitlines() == output.splitlines()[: len(printed.splitlines())]
    for part in (
        "150 samples x 600 genes",
        "matched: 599 of 600 genes",
        "module 1: strong, 60 genes",
        "40 samples sel",
    ):
        assert part in output
    assert "sizes:" not in output  # they were given
    alignment = json.loads(run("align", *data, "--json").stdout)
    assert alignment == json.loads((tmp_path / "out" / "alignment.json").read_text())


def test_any_method_of_the_literature(files, tmp_path):
    expression = netbic.io.read_expression(files / "expression.tsv.gz").frame()
    given = {"n_rows": 40, "n_columns": 60, "column_graph": netbic.io.read_network(files / "network.sif").graph}
    for name, sigma in (("sgSVD*", 0.05), ("L0SVD", 0.0), ("PMD", 0.0), ("ALSVD", 0.0)):
        done = fit(files, tmp_path / name, "--method", name, *(("--smoothness", sigma) if sigma else ()))
        assert done.exit_code == 0, done.output
        model = netbic.method(name, 3, **given, column_sigma=sigma, center="columns", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(expression)
        np.testing.assert_array_equal(netbic.load(tmp_path / name).components_, model.components_)


def test_the_result_does_not_depend_on_the_file_format(files, tmp_path):
    expression = netbic.io.read_expression(files / "expression.tsv.gz").frame()
    expression.T.to_parquet(tmp_path / "expression.parquet")
    expression.to_csv(tmp_path / "turned.csv")
    anndata.AnnData(expression).write_h5ad(tmp_path / "cells.h5ad")
    fit(files, tmp_path / "text")
    for name, *more in (["expression.parquet"], ["turned.csv", "--samples-in-rows"], ["cells.h5ad"]):
        out = tmp_path / f"out-{name}"
        data = (str(tmp_path / name), "--graph", str(files / "network.sif"), "--out", str(out), *more)
        done = run("fit", *data, "--modules", "3", "--genes", "60", "--samples", "40", "--no-report")
        assert done.exit_code == 0, done.output
        assert (out / "modules.tsv").read_bytes() == (tmp_path / "text" / "modules.tsv").read_bytes()


def test_warnings_and_preprocessing_are_recorded(files, tmp_path):
    done = fit(files, tmp_path / "out", "--smoothness", "5", "--top-genes", "300", "--matched-only", "--zscore")
    assert done.exit_code == 0
    alignment, model = json.loads((tmp_path / "out" / "alignment.json").read_text()), netbic.load(tmp_path / "out")
    assert [step["step"] for step in alignment["steps"]] == ["only genes of the network", "most variable"]
    assert model.scale
    assert model.components_.shape == (3, 300)
    assert re.search(r"^warning: the graph makes up more than 30%", done.stderr, re.MULTILINE)
    assert "Warning:" not in done.stderr
    warned = json.loads((tmp_path / "out" / "run.json").read_text())["warnings"]
    assert any("the graph makes up more than 30%" in warning for warning in warned)


def test_usage_errors_and_failures_have_different_exit_codes(files, tmp_path):
    for more, code, message in (
        (["--genes", "601"], 2, "--genes 601 but the data have 600 genes: choose 1 to 600"),
        (["--samples", "0"], 2, "Invalid value for '--samples'"),
        (["--jobs", "0"], 2, "Invalid value for '--jobs'"),
        (["--method", "sgSVX"], 2, "unknown --method sgSVX"),
        (["--relations", "eats"], 1, "has no relation 'eats': it has binds"),
        (["--samples-in-rows"], 1, "no gene of the data is in the network"),
        (["--log1p"], 1, "log1p needs values of at least 0"),
        (["--skip-columns", "x"], 1, "no column 'x' to skip"),
        (["--gene-sets", __file__], 1, "line 1: the set"),
        (["--nonsense"], 2, "No such option"),
    ):
        done = fit(files, tmp_path / "out", *more)
        assert done.exit_code == code, done.output
        assert message in done.output
        assert "Traceback" not in done.output
        assert not (tmp_path / "out").exists()
    assert isinstance(fit(files, tmp_path / "out", "--log1p", "--debug").exception, netbic.InputError)
    (tmp_path / "data.tsv").write_text("not a table")  # options are checked before the data are read
    done = run("fit", tmp_path / "data.tsv", "--out", tmp_path / "out", "--smoothness", 1)
    assert "needs a network" in done.output


def test_missing_values_are_refused_with_a_remedy_or_ignored(tmp_path):
    table = netbic.simulate.cohort(60, 100, n_modules=1, random_state=1).expression.T
    table.iloc[3, 5] = np.nan
    table.to_csv(tmp_path / "incomplete.tsv", sep="\t")
    small = ("--modules", 1, "--genes", 20, "--no-report", "--out", tmp_path / "out")
    done = run("fit", tmp_path / "incomplete.tsv", *small)
    assert done.exit_code == 1
    assert "use --missing ignore or --missing impute" in done.output
    assert run("fit", tmp_path / "incomplete.tsv", *small, "--missing", "ignore").exit_code == 0


def test_a_missing_extra_is_reported_with_the_pip_command(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)  # comes with anndata
    (tmp_path / "cells.h5ad").write_text("x")
    done = run("align", str(tmp_path / "cells.h5ad"), "--graph", str(files / "network.sif"))
    assert done.exit_code == 1
    assert "pip install '.[anndata]'" in done.output


def test_enrichment_is_written_with_the_modules_and_afterwards(files, tmp_path):
    truth = netbic.io.read_table(files / "truth.tsv")
    genes = truth[truth["axis"] == "gene"].groupby("module")["name"].apply(list)
    sets = tmp_path / "sets.gmt"
    sets.write_text("".join(f"planted{k}\tmodule {k}\t" + "\t".join(members) + "\n" for k, members in genes.items()))
    done = fit(files, tmp_path / "out", "--gene-sets", str(sets))
    assert done.exit_code == 0, done.output
    assert "edges.tsv: in 3 of 3 modules, the genes have more edges with each other than random genes" in done.output
    assert "with as many neighbours and a similar mean and variance (q <= 0.05); this is not independent" in done.output
    unused = fit(files, tmp_path / "unused", "--smoothness", "0")
    assert "modules, the genes have more edges with each other than random genes" in unused.output
    assert "not independent evidence" not in unused.output
    found = netbic.io.read_table(tmp_path / "out" / "gene_sets.tsv")
    assert set(found["term"]) == {"planted1", "planted2", "planted3"}
    edges = netbic.io.read_table(tmp_path / "out" / "edges.tsv")
    assert (edges["degree_p_value"] < 0.05).all()
    before = (tmp_path / "out" / "gene_sets.tsv").read_bytes(), (tmp_path / "out" / "edges.tsv").read_bytes()
    assert "next: netbic report" not in run("enrich", str(tmp_path / "out"), "--gene-sets", str(sets)).output
    assert ((tmp_path / "out" / "gene_sets.tsv").read_bytes(), (tmp_path / "out" / "edges.tsv").read_bytes()) == before
    plain = ("--modules", "1", "--no-report", "--out", tmp_path / "plain")
    assert run("fit", files / "expression.tsv.gz", *plain).exit_code == 0
    nothing = run("enrich", str(tmp_path / "plain"))
    assert nothing.exit_code == 2
    assert "nothing to test: use --gene-sets" in nothing.output
    assert "need --gene-sets" in run("enrich", str(tmp_path / "out"), "--by-sign").output
    apart = run("enrich", str(tmp_path / "out"), "--gene-sets", str(sets), "--by-sign", "--collapse", "0.5")
    assert apart.exit_code == 0
    assert set(netbic.io.read_table(tmp_path / "out" / "gene_sets.tsv")["sign"]) == {1, -1}


def test_warnings_name_options_of_the_command():
    @click.command(cls=Command)
    @scales_data
    def warn(**_):
        warnings.warn("genes differ in their noise: use `scale=True` instead", UserWarning, stacklevel=1)

    done = CliRunner().invoke(warn, [])
    assert done.stderr == "warning: genes differ in their noise: use --zscore instead\n"


def test_an_empty_value_as_of_an_unset_variable_is_an_error(results, cohort):
    data = cohort / "expression.tsv"
    for option in ("--by", "--covariates", "--variables", "--adjust", "--layer", "--skip-columns", "--relations"):
        for given in ([option, ""], [f"{option}="]):
            done = run("fit", data, "--out", cohort / "out", *given)
            assert done.exit_code == 2
            assert f"{option} is empty: give a value, or leave the option out" in done.output
        assert not (cohort / "out").exists()
    assert "',' contains no name" in run("fit", data, "--out", cohort / "out", "--by", ",").output
    assert "--out is empty" in run("export", results, "--format", "gmt", "--out", "").output


def test_few_permutations_of_pairs_are_refused(cohort):
    data = cohort / "expression.tsv"
    done = run("pairs", data, data, "--permutations", 18, "--out", cohort / "out")
    assert done.exit_code == 2
    assert "--permutations 18: no p-value can be below 0.053" in done.output
    assert "use at least 19, or 0" in done.output


def test_errors_about_data_name_no_python(cohort):
    data = pd.read_csv(cohort / "expression.tsv", sep="\t", index_col=0)
    (data * 1e200).to_csv(cohort / "large.tsv", sep="\t")
    done = run("fit", cohort / "large.tsv", "--modules", 1, "--out", cohort / "out")
    assert done.exit_code == 1
    assert "whose squares leave the range of numbers: rescale X (divide it by a number)" in done.output
    assert "np." not in done.output
    assert not list((cohort / "out").iterdir())


def test_a_second_file_of_gene_sets_is_an_error_that_says_how_to_join_them():
    done = run("fit", "data.tsv", "--gene-sets", "a.gmt", "--gene-sets", "b.gmt", "--out", "out")
    assert done.exit_code == 2
    assert "--gene-sets is given 2 times: give it once (several GMT files: zcat -f" in done.output
    assert "GMT" not in run("fit", "data.tsv", "--graph", "a.sif", "--graph", "b.sif", "--out", "out").output
