"""What the pages say is true: code runs, names exist, commands are there."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.cli import main
from netbic.methods import METHODS

ROOT = Path(__file__).parents[1]


def test_the_readme_examples_run(capsys, tmp_path, monkeypatch):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    scope = {}
    exec(code[0], scope)
    assert scope["model"].converged_.all()
    assert len(scope["genes"]) == 60
    assert len(scope["samples"]) == 40
    assert "fold_change" in capsys.readouterr().out
    # The second example is about files: give it files.
    monkeypatch.chdir(tmp_path)
    scope["X"].T.to_csv("expression.tsv", sep="\t")
    tails, heads, _ = scope["network"].edges()
    names = scope["network"].names
    pd.DataFrame({"source": names[tails], "target": names[heads]}).to_csv("network.tsv", sep="\t", index=False)
    exec(code[1], scope)
    assert scope["model"].converged_.all()
    assert len((tmp_path / "module1_genes.txt").read_text().split()) == 200


def test_the_missing_values_example_runs():
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/large-data.md").read_text(), re.DOTALL).group(1)
    scope = {}
    exec(code, scope)
    assert scope["model"].columns_[0][:50].mean() > 0.9


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
