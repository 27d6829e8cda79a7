"""``ensio help`` and ``ensio docs`` show the documents, and messages name pages that are there."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ensembles.cli import docs
from ensembles.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = ROOT / "docs"


def strings(tree: ast.AST) -> Iterator[str]:
    """The texts of a module that are not docstrings."""
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


@cache
def messages() -> list[tuple[str, str]]:
    """Each text of the installed programs, with its file."""
    folders = ("ensembles", "viz", "libtrace", "testbed/pfsmodel", "testbed/replay", "testbed/pfs")
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    found = []
    for name in listed:
        path = ROOT / name
        if path.suffix == ".py" and "tools" not in path.parts:
            found += [(name, text) for text in strings(ast.parse(path.read_text()))]
        elif path.suffix in (".c", ".h"):
            found += [(name, text) for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text())]
    return found


def test_messages_name_pages_that_ensio_shows(capsys: pytest.CaptureFixture[str]) -> None:
    named = {
        (name, page)
        for name, text in messages()
        for page in re.findall(r"ensio help ([\w/-]+)", text)
        if page not in (*COMMANDS, "PAGE")
    }
    assert len({page for _, page in named}) >= 5
    for name, page in named:
        assert main(["help", page]) == 0, (name, page)
        assert capsys.readouterr().out


def test_no_message_names_a_file_of_the_sources() -> None:
    ours = re.compile(r"(?<![\w/])(docs|testbed|libtrace|tests)/[\w/]+\.(md|c|h)\b|/README\.md\b")
    assert [(name, text) for name, text in messages() if ours.search(text)] == []


@pytest.mark.parametrize("page", sorted(DOCUMENTS.glob("user/*.md")), ids=lambda path: path.stem)
def test_every_page_for_users_is_shown_by_its_name(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", page.stem]) == 0
    printed = capsys.readouterr().out
    words = page.read_text().partition("\n")[0].removeprefix("# ").split()
    assert set(words) <= set(printed.split()[: len(words)])
    assert "](" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_finding_is_explained_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "o-sync"]) == 0
    printed = capsys.readouterr().out
    assert printed.split()[0] == "o-sync"
    assert "O_DSYNC" in printed
    assert "sync-per-write" not in printed


def test_of_several_pages_the_first_of_the_index_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for name, folder in (("moments", "reference/methods"), ("history", "user"), ("README", "")):
        assert main(["docs", "--path", name]) == 0
        assert capsys.readouterr().out == f"{DOCUMENTS / folder / name}.md\n"


def test_a_page_that_is_not_there_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for name, near in (("setting", "settings"), ("small-request", "small-requests")):
        assert main(["help", name]) == 2
        message = capsys.readouterr().err
        assert f'there is no page "{name}": did you mean {near}' in message
    assert main(["help", message.split("ensio help ")[1].split()[0]]) == 0
    assert capsys.readouterr().out.split()[0] == "Documentation"


def test_docs_opens_the_page_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "share" / "doc" / "ensio" / "docs"
    (documents / "site" / "user").mkdir(parents=True)
    (documents / "user").mkdir()
    (documents / "user" / "recording.md").write_text("# Recording\n")
    (documents / "user" / "findings.md").write_text("### o-sync\n")
    (documents / "README.md").write_text("# Documentation\n")
    site = documents / "site" / "user" / "recording.html"
    site.write_text("<h1>Recording</h1>")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ensio-cc").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "ensio-cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("BROWSER", str(browser))
    assert main(["docs", "recording"]) == 0
    assert capsys.readouterr().out == f"{site}\n"
    assert (tmp_path / "opened").read_text() == f"{site.as_uri()}\n"
    assert main(["docs", "--path"]) == 0
    assert capsys.readouterr().out == f"{documents}\n"
    assert main(["docs", "o-sync"]) == 0
    assert capsys.readouterr().out == f"{documents / 'user' / 'findings.md'}\n"
    assert main(["docs"]) == 0  # there is no such page of this site
    assert capsys.readouterr().out == f"{documents / 'README.md'}\n"


def test_documents_of_the_sources_are_found_where_none_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ENSIO_PRELOAD", raising=False)
    assert docs._documents() == DOCUMENTS
