"""The command line as a user meets it."""

import re
import subprocess
import sys

from click.testing import CliRunner

from netbic.cli import main


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_demo_shows_that_structure_helps():
    done = run("demo")
    assert done.exit_code == 0, done.output
    flat = " ".join(done.output.split())
    means = re.search(
        r"F1 of the genes: (\d\.\d\d) with the graph, (\d\.\d\d) rewired graph, (\d\.\d\d) no graph", flat
    )
    graph, rewired, none = map(float, means.groups())
    assert graph > max(rewired, none) + 0.03
    assert abs(rewired - none) < 0.05
    assert "The graph helps by its structure" in flat


def test_demo_is_the_same_every_time():
    small = ("demo", "--samples", "200", "--genes", "600", "--modules", "2", "--seed", "5", "--cohorts", "2")
    assert run(*small).output == run(*small).output


def test_impossible_demo_says_what_to_do():
    done = run("demo", "--samples", "100", "--modules", "8")
    assert done.exit_code == 1
    assert "ask for fewer --modules" in done.output
    assert "Traceback" not in done.output


def test_every_command_has_help():
    for name, command in main.commands.items():
        assert command.help, name
        assert run(name, "--help").exit_code == 0


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "netbic", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("netbic, version 0.")
