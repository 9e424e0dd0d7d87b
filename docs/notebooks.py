"""The tutorials as Jupyter notebooks, written when the site is built (`make docs`)."""

import base64
import json
import posixpath
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SITE = "https://netbic.readthedocs.io/en/latest"
TUTORIALS = ("tumours", "single-cells")

_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\s*```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_DOWNLOAD = re.compile(r"^\{download\}`[^`]*`\. *", re.MULTILINE)
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|attachment:)([^)#]*)(#[^)]*)?\)")


def notebook(page: Path) -> dict:
    """A page of markdown as a notebook: blocks in `python` and `sh` are cells of code, with their saved outputs."""
    cells, end, text = [], 0, _DOWNLOAD.sub("", page.read_text(encoding="utf-8"))
    for block in _BLOCK.finditer(text):
        cells += [_prose(text[end : block.start()], page.parent), _code(*block.groups())]
        end = block.end()
    cells = [cell for cell in [*cells, _prose(text[end:], page.parent)] if cell["source"]]
    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_notebooks(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in TUTORIALS:
        made = notebook(DOCS / "tutorials" / f"{name}.md")
        (folder / f"{name}.ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False), encoding="utf-8")


def _code(language: str, code: str, shown: str | None) -> dict:
    source = code.rstrip("\n")
    if language == "sh":
        source = re.sub(r"^(?=\S)", "!", source, flags=re.MULTILINE)  # lines that continue a command are indented
    outputs = [] if shown is None else [{"output_type": "stream", "name": "stdout", "text": shown}]
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": source, "outputs": outputs}


def _prose(text: str, folder: Path) -> dict:
    """A cell of text: pictures become a part of the notebook, links lead to the site."""
    pictures = {Path(path).name: folder / path for _, path in _IMAGE.findall(text)}
    text = _IMAGE.sub(lambda found: f"![{found[1]}](attachment:{Path(found[2]).name})", text)
    text = _LINK.sub(lambda found: f"[{found[1]}]({_address(found[2], folder)}{found[3] or ''})", text)
    cell = {"cell_type": "markdown", "metadata": {}, "source": text.strip()}
    if pictures:
        cell["attachments"] = {
            name: {"image/png": base64.b64encode(path.read_bytes()).decode()} for name, path in pictures.items()
        }
    return cell


def _address(path: str, folder: Path) -> str:
    page = posixpath.normpath((folder.relative_to(DOCS) / path).as_posix())
    return f"{SITE}/{page.removesuffix('.md')}.html"
