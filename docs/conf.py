"""Sphinx's settings: these pages as a site that works from the file system (``./dev docs``)."""

import re
from pathlib import Path

from ensembles import __version__

project, author = "ensio", "The ensio developers"
version = release = today = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
napoleon_use_ivar = True
exclude_patterns = ["site"]
suppress_warnings = ["ref.python"]  # names of attributes that several classes have
html_theme = "pydata_sphinx_theme"
html_theme_options = {"navbar_center": [], "show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
smartquotes = html_show_sourcelink = html_copy_source = html_show_search_summary = False
html_sidebars = {"**": ["globaltoc.html"]}
myst_heading_anchors = 4
man_pages = [("reference/commands", "ensio", "statistical I/O ensembles of parallel programs", author, 1)]


def adapt(app, docname, source):
    """Make the contents from the links of a README; leave out links that lead out of this folder."""
    folder, root = Path(app.srcdir, docname).parent, Path(app.srcdir)

    def link(found):
        words, place = found.groups()
        path = (folder / place.partition("#")[0]).resolve()
        return found[0] if "://" in place or (path.is_relative_to(root) and not path.is_dir()) else words

    source[0] = re.sub(r"\[([^\]]+)\]\(([\w./-][^)\s]*)\)", link, source[0])
    if Path(docname).name != "README":
        return
    headed = re.split(r"^## (.+)$", source[0], flags=re.M)
    for title, text in zip(["", *headed[1::2]], headed[::2], strict=True):
        pages = dict.fromkeys(re.findall(r"\]\(((?!\.\.|http)[\w/.-]+)\.md\)", text))
        caption = f":caption: {title}\n" if title else ""
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def setup(app):
    """Register what is done while pages are read."""
    app.connect("source-read", adapt)
