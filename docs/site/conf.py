"""Configuration of Sphinx; ``scripts/site`` builds the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

project = "sparsegp"
author = "The sparsegp authors"
version = release = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)[1]
copyright = "the sparsegp authors, MIT or Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "mathml"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
# two dashes are an option
smartquotes = False
# headings of generated pages skip levels
suppress_warnings = ["myst.header"]
nitpicky = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
# only names of theirs are needed, not what they do
autodoc_mock_imports = ["dask", "distributed", "mpi4py", "optuna", "pandas", "pyarrow"]
numpydoc_show_class_members = False

# shell sessions have no special highlighting: prompts and output look alike in most of them
highlight_language = "text"
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
# of a session, the commands only
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"sparsegp {release}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}


def skip(app, what, name, member, skipped, options):
    """Leaves out what scikit-learn's base classes bring."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-skip-member", skip)
