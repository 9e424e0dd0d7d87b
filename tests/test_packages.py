"""Packages import in one order and only public names, files are short, and `import netbic` is fast."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import netbic

SOURCE = Path(netbic.__file__).parent
ORDER = [
    "deprecation",
    "errors",
    "arrays",
    "files",
    "graphs",
    "penalties",
    "operators",
    "outofcore",
    "solver",
    "estimators",
]
ORDER += ["methods", "simulate", "readers", "conversion", "study", "storage", "io", "enrichment", "selection"]
ORDER += ["association", "comparison", "exports", "tl", "get", "pl", "report", "cli"]
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py"]
IDS = [str(path.relative_to(SOURCE)) for path in FILES]
LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 450, 40


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path):
    """(module, name) of every import of netbic's own modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.startswith("netbic."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "netbic":
            yield from ((node.module, alias.name) for alias in node.names)


def public_names(package: str) -> set[str]:
    """Names that the __init__.py of a package defines, without its submodules."""
    home = SOURCE / package / "__init__.py"
    tree = ast.parse((home if home.is_file() else SOURCE / f"{package}.py").read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_imports_follow_the_order_of_packages_and_use_public_names(path):
    own = package_of(path)
    if own == "__init__":
        return
    for module, name in imports(path):
        _, _, inside = module.partition(".")
        package = inside.split(".")[0] or name
        if package == "__version__":
            continue
        assert ORDER.index(package) <= ORDER.index(own), f"{own} comes before {package}"
        if package != own:
            assert "." not in inside, f"{module} is an inside of {package}"
            assert not inside or name in public_names(package), f"{package} does not offer {name}"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert text.count("\n") <= LINES_OF_A_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = node.body[0] if ast.get_docstring(node) else None
            lines = node.end_lineno - node.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)
            assert lines <= LINES_OF_A_FUNCTION, node.name


@pytest.mark.parametrize("path", [path for path in FILES if package_of(path) != "cli"])
def test_only_the_command_line_writes_options(path):
    """Errors of the library name parameters; `cli` prints its options for them."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    assert not [text for text in texts if isinstance(text, str) and re.search(r"(?<!\S)\W?--[a-z]", text)]


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
    for name in ("get", "io", "methods", "simulate", "tl", "selection", "association", "exports", "enrichment"):
        module = getattr(netbic, name)
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, each) for each in module.__all__)


def test_every_public_name_loads():
    for name in netbic.__all__:
        assert getattr(netbic, name) is not None
    assert set(netbic.__all__) <= set(dir(netbic))


def test_the_architecture_page_names_packages_in_order_and_files_and_functions_that_exist():
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| .* \|$", page.split("## Contracts")[0], re.MULTILINE) == ORDER
    for path in re.findall(r"`([\w/]+/\w+\.py)`", page):
        assert (SOURCE / path).is_file() or (SOURCE.parent.parent / path).is_file(), path
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`: (.*)$", page, re.MULTILINE)
    assert len(steps) > 30
    for path, text in steps:
        names = re.findall(r"`(\w+)`", text.split(". ")[0])
        text = "".join((SOURCE / each).read_text() for each in [path, *re.findall(r"`([\w/]+\.py)`", text)])
        for name in names:
            assert re.search(rf"(def|class) {name}\b", text), f"{path}: {name}"
