"""The command line, run in this process."""

from click.testing import CliRunner

from netbic.cli import main


def run(*arguments):
    """The result of a command; the arguments may be paths and numbers too.

    Modules are judged only with --verdict, because that takes ten more fits.
    """
    given = [str(argument) for argument in arguments]
    if given[:1] == ["fit"] and "--help" not in given and "--verdict" not in given:
        given.insert(1, "--no-verdict")
    return CliRunner().invoke(main, given)


def run_successfully(*arguments):
    """The result of a command that must not fail."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result
