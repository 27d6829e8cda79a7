"""Sentences are made of data, and never read back: ids and values decide."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensembles.faces.words import BETWEEN, UNITS, WORDS, _Formatter, cell, sentence
from ensembles.model.statement import LowerBound, Statement

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ("readers", "recorder", "workloads")  # they read what others wrote
PROSE = re.compile(r"(.*_)?(note|reason|sentence|caveat|advice|refused)s?|why", re.IGNORECASE)
READING = {
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "split",
    "find",
}


def read_back(tree: ast.AST) -> Iterator[int]:
    """The lines that search in a text which a name calls a note, a reason or a sentence."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if node.func.attr in READING and PROSE.fullmatch(name):
            yield node.lineno


def test_no_sentence_is_read_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in (ROOT / "ensembles", ROOT / "viz")
        for path in sorted(folder.rglob("*.py"))
        if path.relative_to(folder).parts[0] not in FOREIGN
        for line in read_back(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, f"compare ids and values, not sentences: {found}"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("if note.endswith('x'):\n    pass", [1]),
        ("found.reason.startswith('p = ')\nlost_notes[0].split(':')", [1, 2]),
        ("path.endswith('x')\nnotes.append('x')", []),
    ],
)
def test_searches_in_sentences_are_found(code: str, lines: list[int]) -> None:
    assert list(read_back(ast.parse(code))) == lines


def statements_made() -> dict[str, str]:
    """The ids that answers state, with the file that does."""
    made = {}
    for folder in (ROOT / "ensembles" / "answers", ROOT / "ensembles" / "comparison", ROOT / "viz"):
        for path in folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "Statement(" in text:
                made |= dict.fromkeys(re.findall(r'"([a-z]+\.[a-z_]+)"', text), path.name)
    return made


def test_every_statement_has_words_and_all_words_are_said() -> None:
    made = statements_made()
    assert not sorted(set(WORDS) - set(made)), "words that no answer says"
    assert {"phases.idle", "rate.burst", "sites.none"} <= set(made)


@pytest.mark.parametrize("name", WORDS)
def test_words_have_units_and_brackets_that_close(name: str) -> None:
    template = WORDS[name]
    fields = [(field, unit) for _, field, unit, _ in _Formatter().parse(template) if field]
    assert all(unit in (*UNITS, *BETWEEN, "{unit}") or (unit or "").startswith("n ") for _, unit in fields), (
        fields
    )
    depth = 0
    for letter in template:
        depth += (letter == "[") - (letter == "]")
        assert depth in (0, 1)
    assert depth == 0


def test_parts_of_a_sentence_without_values_are_left_out() -> None:
    values = {"rank": 3, "call": "close", "duration_s": 0.5, "file": "/scratch/a b.h5"}
    last = Statement("phases.last", values)
    assert sentence(last) == "Rank 3 came last, with close (500 ms) on a b.h5."
    assert (
        sentence(Statement("phases.last", values | {"file": ""})) == "Rank 3 came last, with close (500 ms)."
    )
    said = Statement("phases.most_idle", {"lost_s": 2.0, "last": last}, 2.0, {"phase": 7})
    assert sentence(said) == "Most in phase 7, 2.00 s: rank 3 came last, with close (500 ms) on a b.h5."


def test_names_in_a_sentence_cannot_change_its_form() -> None:
    """Brackets, braces and controls in a name of a file are text."""
    values = {"rank": 3, "call": "open", "duration_s": 0.5, "file": "/x/[{rank}]\x1b"}
    told = sentence(Statement("phases.last", values))
    assert told == "Rank 3 came last, with open (500 ms) on [{rank}]\\x1b."


def test_cells() -> None:
    assert (cell(LowerBound(0.25), "s"), cell(float("nan"), "s"), cell(0, "count")) == ("≥ 250 ms", "", "0")
    assert cell((1, 4), "part") == "1 (25 %)"
