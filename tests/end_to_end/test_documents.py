"""Links between the documents lead somewhere; the index of decisions lists the pages that there are; the
glossary defines each term once."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

pytestmark = pytest.mark.quick

TRACKED = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
FILES = {name for name in TRACKED.split("\0") if name}
DOCUMENTS = sorted(name for name in FILES if name.endswith(".md"))
DECISIONS = "docs/decisions"
GLOSSARY = "docs/glossary.md"
PAGES = sorted(name for name in FILES if re.match(rf"{DECISIONS}/\d{{4}}-", name))
LINK = re.compile(r"\]\(([^()\s]+)\)")


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@cache
def anchors_in(name: str) -> set[str]:
    """The headings of a document, as links name them."""
    headings = re.findall(r"^#+ (.*)$", text_of(name), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_and_headings(name):
    dead = []
    for target in LINK.findall(text_of(name)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        found = str(Path(place).resolve().relative_to(ROOT))
        is_there = found in FILES or any(file.startswith(f"{found}/") for file in FILES)
        if not is_there or (anchor and anchor not in anchors_in(found)):
            dead.append(target)
    assert not dead


def test_decisions_are_numbered_without_gaps():
    assert [int(Path(page).name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))
    assert len(PAGES) >= 80


@pytest.mark.parametrize("page", PAGES)
def test_decision_says_context_decision_and_consequences(page):
    text = text_of(page)
    assert re.match(rf"# {int(Path(page).name[:4])}\. \S", text)
    assert re.findall(r"^\*\*(Context|Decision|Consequences)\.\*\*", text, re.M) == [
        "Context",
        "Decision",
        "Consequences",
    ]


def test_index_lists_every_decision_once_under_its_title():
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((\S+)\) \| \S.* \|$", text_of(f"{DECISIONS}/README.md"), re.M)
    assert rows == [
        (number, title, Path(page).name)
        for page in PAGES
        for number, title in re.findall(r"\A# (\d+)\. (.*)$", text_of(page), re.M)
    ]


ENTRY = re.compile(r"^\* \*\*(.+?)\*\*", re.M)


def test_glossary_defines_each_term_once_in_order():
    sections = text_of(GLOSSARY).split("\n## ")[1:]
    terms = [ENTRY.findall(section) for section in sections]
    for section in terms:
        assert section == sorted(section, key=str.lower)
    every = [term.lower() for section in terms for term in section]
    assert len(every) == len(set(every)) >= 60


def test_terms_in_italics_have_an_entry():
    text = text_of(GLOSSARY).partition("\n## ")[2]
    defined = {term.lower() for term in re.findall(r"\*\*(.+?)\*\*", text)}
    used = {" ".join(term.lower().split()) for term in re.findall(r"(?<!\*)\*([A-Za-z][^*]*)\*(?!\*)", text)}
    assert "calls" in used
    assert {term for term in used if not {term, term.removesuffix("s")} & defined} == set()
