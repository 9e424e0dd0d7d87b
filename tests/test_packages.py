"""Packages import in one order, `__init__` lists what users call, and `import netbic` is fast."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import netbic

SOURCE = Path(netbic.__file__).parent
# A package or module imports only from those above it.
LAYERS = """
errors identifiers arrays files edges graph_terms graph penalties operators solver estimators methods simulate io
datasets
storage enrichment selection association comparison tl get spreadsheets exports pl report cli
""".split()  # noqa: SIM905
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py"]


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_layers(path: Path):
    """Layer and line of every import of netbic's own modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[1], node.lineno) for alias in node.names if "netbic." in alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "netbic":
            inside = (node.module or "").split(".")[1:]
            yield from ((inside[0] if inside else alias.name, node.lineno) for alias in node.names)


def test_imports_follow_the_layers():
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {layer_of(path)} comes before {layer}"
        for path in FILES
        if layer_of(path) != "__init__"
        for layer, line in imported_layers(path)
        if layer != "__version__" and LAYERS.index(layer) > LAYERS.index(layer_of(path))
    ]
    assert not wrong


def test_only_the_command_line_writes_options():
    """Errors of the library name parameters; `cli` prints its options for them."""
    for path in FILES:
        if layer_of(path) == "cli":
            continue
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
        found = [text for text in texts if isinstance(text, str) and re.search(r"(?<!\S)\W?--[a-z]", text)]
        assert not found, path


def test_importing_netbic_loads_nothing_heavy():
    code = "import sys, netbic; print([m for m in ('numpy', 'scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_documented_package_loads_on_first_use():
    index = (Path(__file__).parent.parent / "docs" / "api" / "index.md").read_text()
    packages = re.findall(r"\[`netbic\.(\w+)`\]", index)
    assert len(packages) > 10
    code = f"import netbic; print([name for name in {packages} if not hasattr(netbic, name)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_completion_lists_public_names_only():
    for name in (
        "get",
        "io",
        "datasets",
        "methods",
        "simulate",
        "tl",
        "selection",
        "association",
        "exports",
        "enrichment",
    ):
        module = getattr(netbic, name)
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, each) for each in module.__all__)


def test_every_public_name_loads():
    for name in netbic.__all__:
        assert getattr(netbic, name) is not None
    assert set(netbic.__all__) <= set(dir(netbic))


def test_the_architecture_page_names_files_and_functions_that_exist():
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    for path in re.findall(r"`([\w/]+/\w+\.py)`", page):
        assert (SOURCE / path).is_file() or (SOURCE.parent.parent / path).is_file(), path
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`: (.*)$", page, re.MULTILINE)
    assert len(steps) > 15
    for path, text in steps:
        names = re.findall(r"`(\w+)`", text.split(". ")[0])
        text = "".join((SOURCE / each).read_text() for each in [path, *re.findall(r"`([\w/]+\.py)`", text)])
        for name in names:
            assert re.search(rf"(def|class) {name}\b", text), f"{path}: {name}"


def test_a_small_fit_runs_through_few_files():
    """Who follows a fit with a debugger should not get lost."""
    entered = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and Path(code.co_filename).is_relative_to(SOURCE):
            entered.add(code.co_filename)

    model, X = netbic.SparseGraphSVD(), np.random.default_rng(0).standard_normal((30, 20))
    X[:, :6] += 3 * X[:, [6]]  # a module
    sys.setprofile(note)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    assert 5 < len(entered) <= 18
