"""The command line, run in this process."""

from click.testing import CliRunner

from netbic.cli import main


def run(*arguments):
    """The result of a command; the arguments may be paths and numbers too."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def run_successfully(*arguments):
    """The result of a command that must not fail."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result
