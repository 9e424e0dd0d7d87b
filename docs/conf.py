"""How the documentation site is built: `make docs`. Nothing is fetched while building or reading."""

import logging
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.logging import getLogger

import netbic

sys.path.insert(0, str(Path(__file__).parent))
from notebooks import write_notebooks

project = "netbic"
author = "The netbic developers"
copyright = author
version = release = netbic.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "paper/figure?.md", "paper/table1.md"]
nitpicky = True
highlight_language = "none"  # code blocks name their language; formulas in docstrings are not Python

html_theme = "furo"
html_title = "netbic"
html_static_path = ["_static"]
html_css_files = ["netbic.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Tutorials are executed if they have changed; an error in a tutorial fails the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "matplotlibrc")
logging.getLogger("traitlets").setLevel(logging.WARNING)  # it logs every kernel that starts

# Docstrings use `names` and describe types in prose: both are shown as written.
default_role = "literal"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def mathml(node, **options):
    """Convert a formula to MathML, which browsers render without scripts or additional fonts."""
    try:
        return tex2mathml(node.astext(), **options)
    except MathError as problem:
        getLogger(__name__).warning("%s in the formula %s", problem, node.astext(), location=node)
        return node.astext()


def inline_mathml(writer, node):
    writer.body.append(mathml(node))
    raise nodes.SkipNode


def block_mathml(writer, node):
    writer.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def without_inherited(app, what, name, found, skip, options):
    """Skip what others wrote: fields of named tuples, and methods of scikit-learn's base classes."""
    generated = (getattr(found, "__doc__", None) or "").startswith("Alias for field number")
    of_sklearn = (getattr(found, "__module__", None) or "").startswith("sklearn.")
    return True if generated or of_sklearn or re.fullmatch(r"set_\w+_request", name.rpartition(".")[2]) else None


def without_introduction(app, what, name, found, options, lines):
    """Drop the docstring of a package: its page has its own introduction above the tables."""
    if what == "module":
        lines.clear()


def plain_text(app, what, name, found, options, lines):
    """Escape what reStructuredText would read as a link: `n_components_` in types, and absolute values such as |Xv|."""
    for number, line in enumerate(lines):
        if re.match(r"\w[\w, *]* : ", line):
            line = re.sub(r"(\w)_(?!\w)", r"\1\\_", line)
        lines[number] = re.sub(r"(?<!\\)\|(?=\w)", r"\\|", line)


def setup(app):
    app.connect("builder-inited", lambda app: write_notebooks(Path(app.srcdir) / "_build" / "notebooks"))
    app.connect("autodoc-skip-member", without_inherited)
    app.connect("autodoc-process-docstring", without_introduction, priority=99)
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
