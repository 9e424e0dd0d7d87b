"""Pages of the documentation that show saved outputs: their blocks are run, and what is shown is compared.

Blocks in `python` and `sh` are run, in their order; a block in `text` that follows directly is their output. Blocks in
other languages (`py` for code that needs packages which netbic does not require) are only shown.
"""

import ast
import contextlib
import io
import re
import shlex
import subprocess

from support.commands import run

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\s*```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
_PROGRESS = re.compile(r"\d% done")  # such lines are printed now and then, as time passes
_NUMBER = re.compile(r"\d+\.?\d*(?:e[-+]?\d+)?")


def run_page(text):
    """Run the blocks of a page in the current folder and compare their outputs; returns the number of outputs."""
    scope, n_compared = {}, 0
    for language, code, shown in _BLOCK.findall(text):
        if language not in ("python", "sh"):
            continue
        printed = _output_of_code(code, scope) if language == "python" else _output_of_commands(code)
        if shown:
            compare(shown, printed)
            n_compared += 1
    return n_compared


def _output_of_code(code, scope):
    """What a notebook would show: everything printed, and the value of the last line."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "page", "exec"), scope)
        value = None if last is None else eval(compile(ast.Expression(last.value), "page", "eval"), scope)
        if value is not None:
            print(value)
    return printed.getvalue()


def _output_of_commands(code):
    printed = []
    for line in code.replace("\\\n", " ").splitlines():
        if line.startswith("netbic "):
            arguments = shlex.split(line)[1:]
            done = run(*arguments, *["--verdict"] * (arguments[0] == "fit"))
            assert done.exit_code == 0, done.output
            printed.append(done.output)
        else:
            printed.append(subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout)
    return "".join(printed)


def compare(shown, printed):
    """Raise unless all lines are the same; `...` stands for any lines."""
    rest, skipping = [line for line in printed.splitlines() if line.strip() and not _PROGRESS.search(line)], False
    for line in filter(str.strip, shown.splitlines()):
        if line.strip() == "...":
            skipping = True
            continue
        at = next((k for k, other in enumerate(rest) if same(line, other)), None) if skipping else 0
        if at is None or not rest or not same(line, rest[at]):
            raise AssertionError(f"the page shows\n{line}\nbut this was printed:\n{printed}")
        rest, skipping = rest[at + 1 :], False
    assert skipping or not rest, f"the page does not show\n{rest[0]}\nbut this was printed:\n{printed}"


def same(line, other):
    """Whether two lines are equal up to spaces and one unit of the last digit of decimal numbers."""
    line, other = (" ".join(text.split()) for text in (line, other))
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return False
    return all(map(_close, _NUMBER.findall(line), _NUMBER.findall(other)))


def _close(number, other):
    if "." not in number and "e" not in number:
        return number == other
    mantissa, _, exponent = number.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(number) - float(other)) <= 1.001 * unit
