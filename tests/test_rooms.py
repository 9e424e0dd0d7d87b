"""The rooms of the house: a room imports only from rooms above it, and `import netbic` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import netbic

ROOMS = ["errors", "arrays", "graphs", "operators", "penalties", "solver", "projection", "decomposition"]
ROOMS += ["stable_modules", "methods", "simulate", "io", "enrichment", "selection", "tl", "pl", "report"]
ROOMS += ["experiments", "cli"]
SOURCE = Path(netbic.__file__).parent


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "netbic" and len(parts) > 1 else None


def imported_rooms(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (room for room in map(room_of, names) if room not in (None, "__version__"))


def test_every_room_imports_only_from_rooms_above():
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        allowed = ROOMS[: ROOMS.index(room) + 1]
        assert not set(imported_rooms(path)) - set(allowed), path


def test_importing_netbic_loads_nothing_heavy():
    code = "import sys, netbic; print([m for m in ('numpy', 'scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_loads():
    for name in netbic.__all__:
        assert getattr(netbic, name) is not None
    assert set(netbic.__all__) <= set(dir(netbic))
