"""The size of the product: lines, modules, constants and questions about the kind of record may only fall.

``budget.toml`` holds the numbers. ``python tests/unit/test_budget.py`` lowers those that have become smaller,
and raises none. A feature is paid for by what it makes needless.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELD = Path(__file__).with_name("budget.toml")
SOURCES = (".py", ".pyi", ".c", ".h", ".def", ".js", ".css", ".html", ".sh", ".awk", ".f90", ".cmake")
FOLDERS = ("libtrace", "ensembles", "viz", "testbed", "calibration", "tools", "benchmarks")
SLACK = 0.002  # what a number may lie below the one that is held before that one has to fall, too

# Which kind of record a run is: calls, sums of a profile, counters of a log.
# Only `ensembles/model/holds.py` may ask; `RunReading.need`, which refuses, does not ask.
QUESTION = re.compile(
    r"\.has\(Holds\b|\bHolds\.\w+ (?:not )?in\b|\b(?:if|and|or|not) (?:\w+\.)*notes_on_calls\b"
    r"|\.mode (?:==|!=|in|not in) [\"(]|\bcounters is (?:not )?None\b"
    r"|\b(?:if|and|or|not) (?:\w+\.)*counters(?:\.(?:modules|tool))?(?= |:|\))"
)
# Imports that no import statement shows, and the ways around the table of directions.
HIDDEN = re.compile(r"\bimport_module\(|\bsys\.modules\b|\b__import__\(")


def product() -> list[Path]:
    """The sources that git knows, without what tests, documents and notebooks consist of."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *FOLDERS, "dev", "setup.py"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = [ROOT / name for name in listed.split("\0") if name]
    # The headers of ensembles are links to those of libtrace, whose lines count once.
    return [path for path in paths if path.suffix in SOURCES and path.is_file() and not path.is_symlink()]


def room(path: Path) -> str:
    """The room of a file: a folder of ``ensembles``, else a folder of the top."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "ensembles":
        return parts[0] if len(parts) > 1 else "top"
    return "/".join(parts[:2]) if len(parts) > 2 else "ensembles"


def constants(tree: ast.Module) -> int:
    """Module-level names in capitals whose values are numbers, or are made of numbers."""

    def is_number(node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float) and not isinstance(node.value, bool)
        if isinstance(node, ast.UnaryOp):
            return is_number(node.operand)
        if isinstance(node, ast.BinOp):
            return is_number(node.left) and is_number(node.right)
        return isinstance(node, ast.Tuple) and bool(node.elts) and all(map(is_number, node.elts))

    found = 0
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found += sum(name.id.isupper() for name in names)
    return found


@cache
def measured() -> dict[str, dict[str, int]]:
    """The numbers of today: of the whole, and lines and constants of each room."""
    whole: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for path in product():
        text = path.read_text(encoding="utf-8")
        lines[room(path)] += text.count("\n")
        if path.suffix == ".py" and room(path).split("/")[0] in ("ensembles", "viz"):
            numbers[room(path)] += constants(ast.parse(text))
            whole["modules"] += 1
            whole["questions"] += len(QUESTION.findall(text))
            whole["hidden_imports"] += len(HIDDEN.findall(text))
    whole["lines"] = lines.total()
    whole["constants"] = numbers.total()
    return {"whole": dict(whole), "lines": dict(lines), "constants": +numbers}


def held() -> dict[str, dict[str, int]]:
    """The numbers that are allowed."""
    found: dict[str, dict[str, int]] = tomllib.loads(HELD.read_text(encoding="utf-8"))
    return found


def rows(numbers: dict[str, dict[str, int]]) -> Iterator[tuple[str, str, int]]:
    """Kind, name and value of each number."""
    for kind, values in numbers.items():
        for name, value in values.items():
            yield kind, name, value


def test_no_number_rises() -> None:
    allowed = held()
    found = [
        f"{kind} {name}: {value:,}, allowed {allowed[kind].get(name, 0):,}"
        for kind, name, value in rows(measured())
        if value > allowed[kind].get(name, 0)
    ]
    assert not found, "pay for what is new with what it makes needless:\n" + "\n".join(found)


def test_what_has_fallen_stays_down() -> None:
    now = measured()
    found = [
        f"{kind} {name}: {now[kind].get(name, 0):,}, allowed {value:,}"
        for kind, name, value in rows(held())
        if now[kind].get(name, 0) < value - max(20, SLACK * value)
    ]
    assert not found, "lower these by `python tests/unit/test_budget.py`:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A = 1\nB: int = 2 << 10\nC = D = 3.5\n", 4),
        ("_LEAST = -0.5\nE = (1, 2)\n", 2),
        ("NAME = 'x'\nTRUE = True\nlower = 1\nF = G + 1\nH = ()\ndef f():\n    I = 1\n", 0),
    ],
)
def test_constants_are_counted(text: str, expected: int) -> None:
    assert constants(ast.parse(text)) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (QUESTION, "if run.info.has(Holds.ALL_CALLS) or not run.counters.modules:", 2),
        (QUESTION, 'if run.mode in ("profile", "tail") or run.info.notes_on_calls:', 2),
        (QUESTION, "run.reading.need(Holds.ALL_CALLS, why); modules = run.counters.modules", 0),
        (HIDDEN, "importlib.import_module('x'); sys.modules['y']", 2),
    ],
)
def test_questions_and_hidden_imports_are_counted(pattern: re.Pattern[str], text: str, expected: int) -> None:
    assert len(pattern.findall(text)) == expected


def lower() -> None:
    """Write the numbers of today where they are lower than those that are held, or where none is held."""
    before = held() if HELD.exists() else {}
    text = "# What the product may have at most; these numbers only fall (test_budget.py).\n"
    for kind, values in measured().items():
        text += f"\n[{kind}]\n"
        for name, value in sorted(values.items()):
            text += f'"{name}" = {min(value, before.get(kind, {}).get(name, value))}\n'
    HELD.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    lower()
