"""``ensio docs`` and ``ensio help``: the documents of the installation."""

from __future__ import annotations

import argparse
import re
from importlib.util import find_spec
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.model.nearest_names import suggestion
from ensembles.recorder.install_paths import installed

HELP = "open the documents in a browser (ensio help PAGE: a page in the terminal)"

_FINDINGS = "user/findings.md"
_FIRST = ("user", "reference")
"""Folders whose pages come first where others have the same name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("page", metavar="PAGE", nargs="?", help="page, such as recording (default: index)")
    parser.add_argument("--path", action="store_true", help="print the folder of the documents only")


def execute(args: argparse.Namespace) -> int:
    """Open a page, and print where it is."""
    folder = _documents()
    if args.path:
        print(folder)
        return 0
    page = folder / "README.md" if args.page is None else _page(folder, args.page)
    site = (folder / "site" / page.relative_to(folder)).with_suffix(".html")
    print(site if site.exists() else page)
    if site.exists():
        import webbrowser

        webbrowser.open(site.as_uri())
    return 0


def show_page(name: str) -> int:
    """Print a page, or what is said of one finding, as text for the terminal."""
    folder = _documents()
    text = (folder / _FINDINGS).read_text("utf-8")
    found = re.search(rf"^### {re.escape(name)}$.*?(?=^##|\Z)", text, re.M | re.S)
    text = found[0] if found else _page(folder, name).read_text("utf-8")
    text = re.sub(r"(?s)<!--.*?-->\n?", "", text)
    text = re.sub(r"!?\[([^\]]+)\]\((?![a-z]+:)[^)]*\)", r"\1", text)  # links to other pages
    if not find_spec("rich"):
        print(text)
        return 0
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False).print(Markdown(text, hyperlinks=False))
    return 0


def _documents() -> Path:
    """Return the folder of the documents: that of the installation, else that of the sources."""
    sources = Path(__file__).parents[2] / "docs"
    try:
        return installed("share/doc/ensio/docs")
    except EnsioError:
        if sources.is_dir():
            return sources
        raise


def _page(folder: Path, name: str) -> Path:
    """Find a page by its name, with or without its folders."""
    wanted = Path(name).with_suffix("").parts
    pages = [path for first in (*_FIRST, "") for path in sorted((folder / first).rglob("*.md"))]
    for path in pages:
        if path.with_suffix("").parts[-len(wanted) :] == wanted:
            return path
    names = [path.stem for path in pages if path.parent.name == _FIRST[0]]
    raise EnsioError(f'there is no page "{name}": {suggestion(name, names, "users have")}')
