"""Patterns and models with absurd keys are refused in bounded memory, before they are parsed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from bounded import command
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from ensembles.files.toml_files import MOST_BRACKETS, MOST_BYTES, MOST_KEY_PARTS, check_nesting
from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import read_pattern

pytestmark = pytest.mark.slow

MOST_MORE_BYTES = 1 << 28
MANY = 20_000

LONG = ".".join(["a"] * MANY)

KEYS = {
    "bare": f"{LONG} = 1",
    "quoted": ".".join(['"a, b"', "'c d'"] * (MANY // 2)) + " = 1",
    "with blanks": " . ".join(["a"] * MANY) + " = 1",
    "of a table": f"[{LONG}]",
    "of an array of tables": f"[[{LONG}]]",
    "of an inline table": f"x = {{ {LONG} = 1 }}",
    "behind a text with a quote": f'x = "\\""\n{LONG} = 1',
    "behind a text with a backslash": f"x = '\\'\n{LONG} = 1",
    "behind a text with a sharp": f'x = "#"\n{LONG} = 1',
    "behind a text of lines": f'x = """a""b\\"""c"""""\n{LONG} = 1',
    "behind a plain text of lines": f"x = '''a''b'''''\n{LONG} = 1",
    "behind an empty text of lines": f'x = """"""\n{LONG} = 1',
}

BRACKETS = {
    "arrays": "x = " + "[" * MANY + "]" * MANY,
    "inline tables": "x = " + "{ a = " * MANY + "1" + " }" * MANY,
    "both": "x = " + "[{ a = " * MANY,
}

COMMANDS = {
    "pattern": ["simulate", "FILE", "--fs", "healthy", "-o", "OUT"],
    "model": ["simulate", "ior", "--fs", "FILE", "-o", "OUT"],
}


def refused(folder: Path, text: str, kind: str = "pattern") -> str:
    """What a command says of a file of this text."""
    (folder / "hostile.toml").write_text(text)
    places = {"FILE": str(folder / "hostile.toml"), "OUT": str(folder / "out")}
    words = [places.get(word, word) for word in COMMANDS[kind]]
    code, told = command(folder, *words, most_more_bytes=MOST_MORE_BYTES)
    assert (code, told.count("\n")) == (2, 1), told
    return told


@pytest.mark.parametrize("form", KEYS)
def test_a_key_of_many_parts_is_refused_with_its_line(tmp_path: Path, form: str) -> None:
    line = KEYS[form].count("\n") + 1
    assert f"hostile.toml:{line}: a key has more than {MOST_KEY_PARTS} parts" in refused(tmp_path, KEYS[form])


@pytest.mark.parametrize("form", BRACKETS)
def test_deep_brackets_are_refused_with_their_line(tmp_path: Path, form: str) -> None:
    told = refused(tmp_path, BRACKETS[form])
    assert f"hostile.toml:1: brackets are nested more than {MOST_BRACKETS} times" in told


@pytest.mark.parametrize("kind", COMMANDS)
def test_patterns_and_models_are_bounded_alike(tmp_path: Path, kind: str) -> None:
    assert "a key has more than" in refused(tmp_path, KEYS["bare"], kind)
    assert "is longer than 256 KiB" in refused(tmp_path, "#" * (MOST_BYTES + 1), kind)


@pytest.mark.parametrize(
    "line",
    [
        "[k{}.a.b.c.d.e.f.g]\n",
        "k{}.a.b.c.d.e.f.g = 1\n",
        "[[phases.operations]]\n",
        "x{} = [{{ a.b = 1 }}, {{ a.b = 1 }}]\n",
        '"{}" = 1\n',
        '"""',
        "'",
        '"\\',
        " ",
        ". ",
        "\n",
    ],
)
def test_the_longest_file_takes_bounded_memory_and_time(tmp_path: Path, line: str) -> None:
    count = MOST_BYTES // len(line.format(100_000))
    refused(tmp_path, "".join(map(line.format, range(count))))


def test_what_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zeros.toml").symlink_to("/dev/zero")
    code, told = command(tmp_path, "simulate", str(tmp_path / "zeros.toml"), "--fs", "healthy")
    assert (code, told.count("\n")) == (2, 1)
    assert "is not a regular file" in told


def test_every_shipped_file_is_far_from_the_bounds() -> None:
    shipped = list((ROOT / "testbed").rglob("*.toml"))
    assert len(shipped) > 20
    assert max(path.stat().st_size for path in shipped) < MOST_BYTES // 10
    for path in shipped:
        check_nesting(path, path.read_text("utf-8"))


def test_a_pattern_at_the_bounds_is_read(tmp_path: Path) -> None:
    shipped = ROOT / "testbed" / "patterns" / "ior.toml"
    text = shipped.read_text("utf-8")
    (tmp_path / "ior.toml").write_text(text + "#" * (MOST_BYTES - len(text.encode())))
    assert read_pattern(tmp_path / "ior.toml").parameters.keys() == read_pattern(shipped).parameters.keys()


ODD = st.text("a.\"'#[]{}\\ =,\n\té", max_size=12)


def _basic(text: str) -> str:
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(char, escape)
    return f'"{text}"'


def _lines(text: str) -> str:
    """As a text of several lines, in which up to two quotes stand as they are, at its end too."""
    escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
    return f'"""\n{escaped}"""'


def _literal(text: str) -> str:
    return "'{}'".format(text.replace("'", "").replace("\n", ""))


def _literal_lines(text: str) -> str:
    return "'''\n{}'''".format(text.replace("'''", "''"))


TEXTS = st.builds(
    lambda write, text: write(text), st.sampled_from([_basic, _lines, _literal, _literal_lines]), ODD
)
PARTS = st.one_of(
    st.sampled_from(["a", "b-c", "1"]), st.builds(_basic, ODD), st.builds(_literal, ODD)
)  # keys are of one line
DOTS = st.sampled_from([".", " .", ". ", "\t. "])


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, int, int]:
    """A line of TOML, how many parts its longest key has, and how deep its brackets are."""
    parts = draw(st.lists(PARTS, min_size=1, max_size=MOST_KEY_PARTS + 2))
    key = parts[0] + "".join(draw(DOTS) + part for part in parts[1:])
    depth = draw(st.integers(0, MOST_BRACKETS + 2))
    value = "[" * depth + draw(TEXTS) + "]" * depth
    comment = draw(st.sampled_from(["", " # a.b.c.d.e.f.g.h.i.j.k [[[ \" '''"]))
    return f"{key} = {value}{comment}\n", len(parts), depth


@given(st.lists(statements(), max_size=6))
def test_parts_and_brackets_are_counted_as_tomllib_understands_them(found: list[Any]) -> None:
    """Each statement in its own table, so that no key is there twice."""
    text = "".join(f"[t{number}]\n{line}" for number, (line, _, _) in enumerate(found))
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    parts = max((parts for _, parts, _ in found), default=0)
    depth = max((depth for _, _, depth in found), default=0)
    try:
        check_nesting(Path("t.toml"), text)
        accepted = True
    except EnsioError:
        accepted = False
    assert accepted == (parts <= MOST_KEY_PARTS and depth <= MOST_BRACKETS), text
