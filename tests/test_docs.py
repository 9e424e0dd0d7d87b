"""The code and the commands of the documentation run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.cli import main
from netbic.methods import METHODS
from support.commands import run
from support.pages import run_page

ROOT = Path(__file__).parents[1]


def test_the_readme_examples_run(capsys, tmp_path, monkeypatch):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    scope = {}
    exec(code[0], scope)
    assert scope["model"].converged_.all()
    assert len(scope["genes"]) == 60
    assert set(scope["groups"]["group"]) <= {"up", "down", ""}
    assert scope["verdicts"].table["verdict"].tolist()[0] in ("strong", "moderate")
    assert "worst_rank" in capsys.readouterr().out
    # The second example needs files.
    monkeypatch.chdir(tmp_path)
    netbic.io.write_cohort(netbic.simulate.cohort(120, 400, n_modules=2, random_state=0), tmp_path / "cohort")
    exec(code[1], scope)
    assert scope["model"].converged_.all()
    assert netbic.load("model").n_components_ == 10
    scope["model"].set_params(n_components=2)
    exec(code[2], scope)
    output = capsys.readouterr().out
    assert "unseen samples" in output
    assert "stand out" in output


def shell_lines(page):
    """The commands of a page, each on one line."""
    text = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
    return [shlex.split(line, comments=True)[1:] for line in text.splitlines() if line.startswith("netbic ")]


@pytest.mark.parametrize("page", ["README.md", "docs/files.md", "docs/report.md"])
def test_the_commands_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in shell_lines(page):
        if page == "README.md" and arguments[0] == "simulate":
            arguments += ["--samples", "80", "--genes", "300", "--modules", "2"]  # --auto takes half a minute on more
        if page == "README.md" and arguments[0] == "fit" and "cohort/modules" not in arguments:
            arguments += ["--no-verdict", "--no-report"]
        done = run(*arguments)
        assert done.exit_code == 0, done.output
    folder = "example" if "files" in page else "cohort"
    found = netbic.io.read_table(f"{folder}/modules/summary.tsv")
    assert len(found) == (6 if page == "README.md" else 5)
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL) if "files" in page else []:
        exec(code, scope := {})
        assert scope["scores"].shape == (400, 5)


def test_the_readme_shows_what_the_fit_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate, _, fit = shell_lines("README.md")[:3]
    assert run(*simulate).exit_code == 0
    printed = run(*fit, "--no-verdict", "--no-report").output.splitlines()
    shown = re.search(r"```text\n(Of 6 modules.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1].splitlines()
    without_verdicts = [re.sub(r"(?<=: )(strong|doubtful), ", "", line) for line in shown[1:]]
    assert len(without_verdicts) == 7
    assert [line for line in without_verdicts if line not in printed] == ["  ..."]


def test_the_anndata_page_runs():
    scope = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs/anndata.md").read_text(), re.DOTALL):
        exec(code, scope)
    np.testing.assert_allclose(scope["new"].obsm["X_netbic"], scope["adata"].obsm["X_netbic"][:50])


def test_the_missing_values_example_runs():
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/large-data.md").read_text(), re.DOTALL).group(1)
    scope = {}
    exec(code, scope)
    assert scope["model"].columns_[0][:50].mean() > 0.9


def test_the_exports_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/exports.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, {})
    assert len(netbic.io.read_gene_sets(tmp_path / "modules.gmt")) > 5
    assert len(list((tmp_path / "networks").iterdir())) == 10


def test_the_pictures_page_runs(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", pytest.fail)
    page, scope = (ROOT / "docs/pictures.md").read_text(), {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, scope)
    assert (tmp_path / "modules.png").stat().st_size > 10_000
    assert all(ax.has_data() for ax in scope["axes"].flat)
    plt.close("all")
    assert {f"`{name}" for name in netbic.pl.__all__} <= set(re.findall(r"^\| (`\w+)\(", page, re.MULTILINE))


def test_the_stability_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/settings-benchmarks.md").read_text(), re.DOTALL).group(1)
    scope = {}
    exec(code, scope)
    assert "are stable" in capsys.readouterr().out
    assert scope["stable"].n_components_ == 2


def test_the_smoothing_example_runs():
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/when-a-network-helps.md").read_text(), re.DOTALL).group(1)
    scope = {}
    exec(code, scope)
    assert scope["model"].smoothing_ == 0.7


def test_the_studies_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "studies.md").read_text()
    code, scope = re.findall(r"```python\n(.*?)```", text, re.DOTALL), {}
    for block in code:
        exec(block, scope)
    shown = re.search(r"^# (\[.*\])$", code[0], re.MULTILINE)[1]
    assert str(netbic.io.summary_table(scope["model"])["studies"].tolist()) == shown
    output = capsys.readouterr().out
    assert "module 1: replicated in 3 of 3 studies left out" in output
    assert scope["stacked"].summary in output
    np.testing.assert_allclose(scope["same"].components_, scope["model"].components_)
    (command,) = re.findall(r"^netbic (fit .*--studies.*)$", text, re.MULTILINE)
    done = run(*shlex.split(command), "--modules", 3, "--genes", 50, "--no-report")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(netbic.load("modules").components_, scope["model"].components_, atol=1e-9)


NUTRIMOUSE, SIGNIFICANCE = "## Nutrimouse", "## How significance is judged"


def test_the_example_with_two_tables_runs():
    page = (ROOT / "docs/two-tables.md").read_text()
    example, _, rest = page.partition(NUTRIMOUSE)
    assert run_page(example + rest.partition(SIGNIFICANCE)[2]) == 4


def test_the_nutrimouse_example_runs(real_data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name in ("genes.parquet", "lipids.parquet", "samples.tsv"):
        (tmp_path / name).symlink_to(real_data / f"small_nutrimouse_{name}")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/two-tables.md").read_text()
    imports = re.search(r"```python\nimport.*?\n\n", page, re.DOTALL)[0] + "```\n"
    section = page.partition(NUTRIMOUSE)[2].partition(SIGNIFICANCE)[0]
    assert run_page(imports + section) == 2
    assert (tmp_path / "two-tables.png").stat().st_size > 10_000


def test_every_method_is_spelled_out():
    pages = (ROOT / "docs/methods.md").read_text() + (ROOT / "README.md").read_text()
    for name in METHODS:
        assert f'"{name}"' in pages or f'"{name.removeprefix("L0-")}"' in pages


def spelled_out():
    """The one-line spellings of docs/methods.md that need nothing but their names."""
    cells = re.findall(r"\| `((?:method|SparseGraphSVD)\([^`]*\))` \|", (ROOT / "docs/methods.md").read_text())
    return [cell for cell in cells if "..." not in cell]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", spelled_out())
def test_spellings_of_the_methods_page_run(code):
    toy = netbic.simulate.paper(0.02, random_state=0)
    A = toy.column_graph
    scope = {name: getattr(netbic, name) for name in netbic.__all__}
    scope |= {"K": 1, "k_u": 50, "k_v": 50, "A": A, "A1": toy.row_graph, "A2": A, "n": 100, "p": 100, "k": 50}
    scope |= {"s": 0.1, "s_u": 0.1, "s_v": 0.1, "delta": 0.1, "c": 0.6, "sumabsu": 6.0, "sumabsv": 6.0}
    scope |= {"gamu": 2.0, "gamv": 2.0}
    model = eval(code, scope).fit(toy.X)
    assert np.abs(model.components_[0] @ toy.v) > 0.8


def test_the_makefile_has_what_the_readme_promises():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for command in re.findall(r"netbic (\w+)`", (ROOT / "CHANGELOG.md").read_text()):
        assert command in main.commands, command


def test_the_comparison_with_labels_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    (tmp_path / "modules").mkdir()
    netbic.io.write_table(tmp_path / "modules/samples.tsv", netbic.selection.sample_groups(model, study.expression))
    subtype = np.where(study.samples[0], "planted", "other")
    labels = pd.DataFrame({"sample": study.expression.index, "subtype": subtype})
    labels.to_csv("labels.tsv", sep="\t", index=False)
    page = (ROOT / "docs/sample-groups.md").read_text()
    code = next(part for part in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "labels.tsv" in part)
    exec(code, scope := {})
    groups = scope["both"].set_index("sample")["group"]
    assert len(groups) == 200
    assert ((groups != "") == (subtype == "planted")).mean() > 0.98
    assert "planted" in capsys.readouterr().out


def test_the_page_about_groups_shows_what_its_examples_print(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, scope = (ROOT / "docs/groups.md").read_text(), {}
    first, of_a_file = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(first, scope)
    assert capsys.readouterr().out.splitlines() == re.search(r"```text\n(.*?)```", page, re.DOTALL)[1].splitlines()
    unfiltered = netbic.SparseGraphSVD(1, column_penalty=netbic.GroupL0(scope["sets"], k=2)).fit(scope["X"])
    assert unfiltered.groups_["size"].tolist() == [200, 200]
    lines = [["GO:" + name.split()[1], name, *members] for name, members in scope["similar"].items()]
    lines.append(["GO:99", "all genes", *scope["genes"]])
    Path("sets.gmt").write_text("".join("\t".join(line) + "\n" for line in lines))
    exec(of_a_file, scope)
    assert scope["named"][["group", "name"]].to_numpy().tolist() == [["GO:8", "pathway 8"], ["GO:3", "pathway 3"]]


def test_the_page_about_signed_graphs_shows_what_its_examples_print():
    assert run_page((ROOT / "docs/signed-graphs.md").read_text()) == 2
