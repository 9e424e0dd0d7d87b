"""The code and the commands of the documentation run, and print what the pages show."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netbic
from docs.notebooks import SITE, TUTORIALS, notebook
from netbic.methods import METHODS
from support.commands import run
from support.pages import compare, run_page, same

ROOT = Path(__file__).parents[1]
PAGES = ["anndata", "any-matrix", "associations", "covariates", "index", "large-data"]
PAGES += ["networks", "report", "settings", "studies", "verdicts"]


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def shell_lines(page):
    """The commands of a page, each on one line."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("netbic ")]


PROLIFERATION = """
ASPM BIRC5 TYMS ZWINT CENPF TOP2A BUB1 CCNB1 CDK1 KIF20A MKI67 NUSAP1 TTK CCNA2 DLGAP5
""".split()  # noqa: SIM905


def test_the_readme_runs_and_shows_what_is_printed(tmp_path, monkeypatch):
    """The files of the demo stand in for those of the reader."""
    monkeypatch.chdir(tmp_path)
    demo = run("demo").output.splitlines()
    Path("expression.tsv.gz").symlink_to("netbic-demo/expression.tsv.gz")
    Path("clinical.tsv").symlink_to("netbic-demo/samples.tsv")
    Path("sets.gmt").write_text("\t".join(["proliferation", "", *PROLIFERATION]) + "\n")
    table, printed = (text.splitlines() for text in blocks("README.md", "text"))
    assert len(table) == 6
    assert [line for line in table[2:] if line not in [each.rstrip() for each in demo]] == []
    lines = shell_lines("README.md")
    assert {arguments[0] for arguments in lines} >= {
        "fit",
        "plot",
        "associate",
        "export",
        "score",
        "replicate",
        "judge",
    }
    for arguments in lines:
        done = run(*arguments, *["--verdict"] * (arguments[0] == "fit"))
        assert done.exit_code == 0, done.output
        if arguments[0] == "fit":
            assert [line for line in printed if line not in done.output.splitlines()] == []


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    scope = {}
    for code in blocks("README.md"):
        exec(code, scope)
    adata, model = scope["adata"], scope["model"]
    verdicts = adata.uns["netbic"]["verdicts"].set_index("module")["verdict"]
    tests = netbic.get.associations_df(adata)
    mait = tests[(tests["level"] == "T_mait") & (tests["effect_name"] == "AUC")]
    best = mait.loc[mait["effect"].idxmax()]
    assert best["effect"] > 0.95
    assert verdicts[best["module"]] in ("strong", "moderate")
    assert {"FAP", "LUM"} <= {gene for own in model.columns_ for gene in scope["X"].columns[own]}
    assert "strong" in set(scope["verdicts"].table["verdict"])
    assert scope["tests"].table["q"].min() < 1e-4
    assert netbic.load("model").n_components_ == model.n_components_ == 15


@pytest.mark.parametrize("page", ["files", "report"])
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in shell_lines(f"docs/{page}.md"):
        done = run(*arguments, *["--no-verdict", "--no-report"] * (arguments[0] == "fit"))
        assert done.exit_code == 0, done.output
    for code in blocks("docs/files.md") if page == "files" else []:  # that of the other page is run below
        exec(code, {})


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{page}.md").read_text()
    shown = len(re.findall(r"```python\n[^`]*```\n\n```text\n", text))
    assert run_page(re.sub(r"^```sh\n.*?^```\n", "", text, flags=re.DOTALL | re.MULTILINE)) == shown
    plt.close("all")


@pytest.mark.filterwarnings("ignore:treatment is the same in all cells of one donor")
@pytest.mark.filterwarnings("ignore:.*explains most of module")
@pytest.mark.filterwarnings("ignore:batch. 19 % of the genes differ")
@pytest.mark.parametrize("page", ["tumours", pytest.param("single-cells", marks=pytest.mark.nightly)])
def test_a_tutorial_runs_offline_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorials" / f"{page}.md").read_text()
    assert run_page(text) == text.count("```text\n")
    plt.close("all")


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_notebook_has_the_code_of_its_tutorial_and_its_pictures(page):
    path = Path("docs/tutorials") / f"{page}.md"
    made = notebook(ROOT / path)
    code = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in code if not cell.startswith("!")] == [block.rstrip() for block in blocks(path)]
    commands = "\n".join(cell for cell in code if cell.startswith("!"))
    assert re.sub("^!", "", commands, flags=re.MULTILINE) == "".join(blocks(path, "sh")).rstrip()
    prose = "\n".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)]*)\)", prose)
    assert {link.partition(":")[0] for link in links} == {"https", "attachment"}
    assert f"{SITE}/api/datasets.html" in links
    attached = {name for cell in made["cells"] for name in cell.get("attachments", {})}
    assert attached == {link.removeprefix("attachment:") for link in links if link.startswith("attachment:")}
    assert "```" not in prose
    assert "{download}" not in prose
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(made)


def test_outputs_are_compared_by_line_and_number():
    compare("a\n...\nc 0.5\n", "a\nb\n\nc  0.4\n")
    for shown, printed in [("a\nc", "a\nb\nc"), ("a", "a\nb"), ("a\n...\nc", "a\nb"), ("a 0.50", "a 0.52"), ("a", "")]:
        with pytest.raises(AssertionError, match="the page"):
            compare(shown, printed)
    assert same("q = 4e-48", "q = 5e-48")
    assert not same("q = 4e-48", "q = 4e-47")
    assert not same("module 1", "module 2")


@pytest.mark.nightly
def test_the_page_about_two_tables_runs(real_data, tmp_path, monkeypatch):
    for name in ("genes.parquet", "lipids.parquet", "samples.tsv"):
        (tmp_path / name).symlink_to(real_data / f"small_nutrimouse_{name}")
    monkeypatch.chdir(tmp_path)
    assert run_page((ROOT / "docs/two-tables.md").read_text()) == 6


R_HAS_RETICULATE = """
versions <- c(packageVersion("reticulate") >= "1.37", reticulate::py_config()$numpy$version < "2")
quit(status = !any(versions))
"""


@pytest.mark.nightly
def test_the_page_about_r_runs(tmp_path):
    """R sets a library path that a Python of another origin cannot use."""
    command = ["Rscript", "--vanilla", "-e"]
    script = tmp_path / "netbic"
    script.write_text(f'#!/bin/sh\nunset LD_LIBRARY_PATH\nexec {sys.executable} -m netbic "$@"\n')
    script.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RETICULATE_PYTHON": sys.executable}
    options = {"env": os.environ | path, "cwd": tmp_path, "capture_output": True, "text": True}
    if shutil.which("Rscript") is None or subprocess.run([*command, R_HAS_RETICULATE], **options).returncode:
        pytest.skip("needs R with the package reticulate 1.37 or newer (or an older one, and NumPy 1)")
    last = "stopifnot(nrow(genes) == 40, all(verdicts$verdict == 'strong'), abs(cor(scores[, 1], activity)) > 0.9)"
    done = subprocess.run([*command, "\n".join([*blocks("docs/r.md", "r"), last])], **options)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore")
def test_the_spellings_of_published_methods_run():
    page = (ROOT / "docs/settings.md").read_text()
    for name in METHODS:
        assert f'"{name}"' in page or f'"{name.removeprefix("L0-")}"' in page
    toy = netbic.simulate.paper(0.02, random_state=0)
    A = toy.column_graph
    scope = {name: getattr(netbic, name) for name in netbic.__all__}
    scope |= {"K": 1, "k_u": 50, "k_v": 50, "A": A, "A1": toy.row_graph, "A2": A, "n": 100, "p": 100, "k": 50}
    scope |= {"s": 0.1, "s_u": 0.1, "s_v": 0.1, "delta": 0.1, "c": 0.6, "sumabsu": 6.0, "sumabsv": 6.0}
    scope |= {"gamu": 2.0, "gamv": 2.0}
    cells = [cell for cell in re.findall(r"\| `((?:method|SparseGraphSVD)\([^`]*\))` \|", page) if "..." not in cell]
    assert len(cells) > 10
    for code in cells:
        model = eval(code, scope).fit(toy.X)
        assert np.abs(model.components_[0] @ toy.v) > 0.8, code


def test_the_makefile_has_what_the_readme_promises():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
