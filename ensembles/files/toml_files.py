"""TOML files that anybody may have written: read in bounded memory and time.

`tomllib` takes memory with the square of the number of parts of a dotted key, and recurses once a bracket.
So the length of a file, of its keys and the nesting of its brackets are bounded before it is parsed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ensembles.model.errors import EnsioError

MOST_BYTES = 1 << 18
MOST_KEY_PARTS = 8
MOST_BRACKETS = 32

# Every text is a sequence of these, whether it is TOML or not. No byte is read twice: the time is linear.
_TOKENS = re.compile(
    r'''(?P<text>"""(?:[^\\"]++|\\.|"(?!""))*+(?:"{3,5})?'''
    r"""|'''(?:[^']++|'(?!''))*+(?:'{3,5})?)"""
    r"""|(?P<part>"(?:[^"\\\n]|\\[^\n])*+"?|'[^'\n]*+'?|[A-Za-z0-9_-]++)"""
    r"""|(?P<blank>[ \t]++)|(?P<dot>\.)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<other>\#[^\n]*+|.)""",
    re.DOTALL,
)


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and the content of a TOML file.

    Raises
    ------
    EnsioError
        It cannot be read, is no TOML, or is larger or more deeply nested than such a file can sensibly be.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise EnsioError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise EnsioError(
            f"{path}: is longer than {MOST_BYTES >> 10} KiB, which no file of this kind is: name another"
        )
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise EnsioError(f"{path}: is not a text file in UTF-8") from None
    check_nesting(path, text)
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EnsioError(f"{path}: is not TOML: {error}") from None
    except ValueError:  # Python converts no number of thousands of digits
        raise EnsioError(f"{path}: holds a number with too many digits: write a smaller one") from None


def check_nesting(path: Path, text: str) -> None:
    """See that keys have few parts and brackets are nested a few times only.

    Raises
    ------
    EnsioError
        They are not; names the line.
    """
    parts = brackets = 0
    after_dot = False
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "part":
            parts = parts + 1 if after_dot else 1
            after_dot = False
        elif kind == "dot":
            after_dot = True
        elif kind != "blank":
            parts, after_dot = 0, False
            brackets += (kind == "open") - (kind == "close" and brackets > 0)
        if parts > MOST_KEY_PARTS or brackets > MOST_BRACKETS:
            line = text.count("\n", 0, token.start()) + 1
            what = (
                f"a key has more than {MOST_KEY_PARTS} parts"
                if parts > MOST_KEY_PARTS
                else f"brackets are nested more than {MOST_BRACKETS} times"
            )
            raise EnsioError(f"{path}:{line}: {what}: write it with fewer")
