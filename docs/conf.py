"""The documentation as a site: every page under docs/, the Python package's own words, searchable without a network.

    ./dev docs        # build/ci/docs/index.html; a warning is an error
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]

project = "capo"
copyright = "the authors of capo"
release = re.search(r"project\(capo VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["schema", "pictures"]
html_theme = "furo"
html_title = f"capo {release}"
html_copy_source = False
myst_heading_anchors = 4
# Pages link to sources and tests beside docs/, which are files of the repository and no pages of the site.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
autodoc_member_order = "bysource"
