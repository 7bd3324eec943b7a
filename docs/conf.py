"""How Sphinx builds this site: `make docs`. Notebooks are executed; no network is needed."""

import os
import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import gridless

project = "gridless"
author = "The gridless developers"
copyright = author
release = version = gridless.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "jupyter_execute"]
default_role = "code"
smartquotes = False

html_theme = "furo"
html_title = f"gridless {release}"
html_copy_source = False
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

# The pages with code cells run when the site is built, one thread each; unchanged ones are kept.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_render_image_options = {"alt": "Figure of the cell above"}
os.environ.setdefault("OMP_NUM_THREADS", "1")

autodoc_member_order = "bysource"
autodoc_typehints = "description"
# Types stand in the docstrings of public names; those of the signature fill the gaps.
autodoc_typehints_description_target = "documented_params"
napoleon_attr_annotations = False
# "array (events, observables)" is a shape, not a reference to several attributes of that name.
suppress_warnings = ["ref.python"]
napoleon_google_docstring = False
# "hidden, activation" is one entry of a docstring: two arguments that belong together.
napoleon_use_param = False
maximum_signature_line_length = 80

SHORT = 26  # characters of a cell that is not broken
NUMBERS = re.compile(r"[-+±\d.,%()\s]*(to[-\d.,%()\s]*)?")  # nor on a narrow screen

# What functions return: users are given one and never make one.
RESULTS = {
    f"gridless.{name}"
    for name in ("Closure", "Coverage", "Estimate", "Likelihood", "Model", "Posterior", "Sample")
}


def plain_text(_app, what, _name, _object, _options, lines):
    """Docstrings are plain text with names in backticks: |log q| and x* are no markup."""
    if what in ("attribute", "property"):
        # A comment, since napoleon takes what stands before a colon in the first line for a type.
        lines[:0] = ["..", ""]
    lines[:] = [re.sub(r"(`[^`]*`)|([|*])", lambda m: m[1] or rf"\{m[2]}", s) for s in lines]


def without_constructor(_app, _what, name, _object, _options, signature, returns):
    """Leave out the arguments of the constructor of a result."""
    return ("", None) if name in RESULTS else (signature, returns)


def inline_math(self, node):
    """Set a formula as MathML, which browsers show without a script."""
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(self, node):
    """Set a formula on lines of its own."""
    formula = tex2mathml(node.astext(), as_block=True)
    self.body.append(
        f'<div style="margin: 1em 0; padding: 4px 0; overflow-x: auto">{formula}</div>'
    )
    raise nodes.SkipNode


def short_cells(_app, tree):
    """Mark the cells of tables that hold a number or a few words: they stay on one line."""
    for cell in tree.findall(nodes.entry):
        if len(cell.astext()) <= SHORT:
            cell["classes"].append("short")
        if NUMBERS.fullmatch(cell.astext()):
            cell["classes"].append("numbers")


def setup(app):
    """Connect the above."""
    app.connect("doctree-read", short_cells)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.connect("autodoc-process-signature", without_constructor)
