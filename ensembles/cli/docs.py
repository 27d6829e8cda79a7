"""``ensio docs`` and ``ensio help``: the documents of the installation."""

from __future__ import annotations

import argparse
import re
from importlib.util import find_spec
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.model.nearest_names import nearest_names
from ensembles.recorder.install_paths import installed

_FINDINGS = "user/findings.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("page", metavar="PAGE", nargs="?", help="page, such as recording (default: index)")
    parser.add_argument("--path", action="store_true", help="open nothing: print the folder, or the page")


def execute(args: argparse.Namespace) -> int:
    """Open a page, and print where it is."""
    folder = _documents()
    page = _page(folder, args.page or "README")
    site = (folder / "site" / page.relative_to(folder)).with_suffix(".html")
    print(folder if args.path and not args.page else site if site.exists() else page)
    if site.exists() and not args.path:
        import webbrowser

        webbrowser.open(site.as_uri())
    return 0


def is_for_users(name: str) -> bool:
    """Whether a page for users has this name."""
    return (_documents() / "user" / f"{name}.md").is_file()


def show_page(name: str) -> int:
    """Print a page, or what is said of one finding, as text for the terminal."""
    text = _page(_documents(), name).read_text("utf-8")
    found = re.search(rf"^### {re.escape(name)}$.*?(?=^##|\Z)", text, re.M | re.S)
    text = found[0] if found else text
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
    """Find the page of a finding, or by its name or path: the first that the index leads to."""
    index = "(README.md)" + (folder / "README.md").read_text("utf-8")

    def place(path: Path) -> int:
        links = (path.relative_to(folder), path.relative_to(folder).with_name("README.md"))
        return min(len(index.partition(f"({link})")[0]) for link in links)

    findings = re.findall(r"^### (\S+)$", (folder / _FINDINGS).read_text("utf-8"), re.M)
    wanted = Path(name).with_suffix("").parts
    pages = sorted(folder.rglob("*.md"), key=place)
    named = [path for path in pages if path.with_suffix("").parts[-len(wanted) :] == wanted]
    if name in findings or named:
        return folder / _FINDINGS if name in findings else named[0]
    near = nearest_names(name, {*findings, *(path.stem for path in pages)})
    question = f"did you mean {' or '.join(near)}? " if near else ""
    raise EnsioError(f'there is no page "{name}": {question}ensio help README lists the pages')
