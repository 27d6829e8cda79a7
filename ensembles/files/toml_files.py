"""Read untrusted TOML files in bounded memory and time.

The memory of `tomllib` grows with the square of the number of parts of a dotted key, and it recurses for each
bracket. Therefore the length of a file, the number of parts of its keys and the nesting of its brackets are
checked before it is parsed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ensembles.files.untrusted import read_whole
from ensembles.model.errors import EnsioError

MOST_BYTES = 1 << 18
MOST_KEY_PARTS = 8
MOST_BRACKETS = 32

# Every text matches a sequence of these tokens, valid TOML or not. What follows a repetition is optional, so
# none is ever tried again: time is linear. (Possessive repetitions of groups would say so, but Python 3.11
# loses its place in them.)
_TOKENS = re.compile(
    r'''(?P<text>"""(?:[^\\"]+|\\.|"(?!""))*(?:"{3,5})?'''
    r"""|'''(?:[^']+|'(?!''))*(?:'{3,5})?)"""
    r"""|(?P<part>"(?:[^"\\\n]|\\[^\n])*"?|'[^'\n]*'?|[A-Za-z0-9_-]+)"""
    r"""|(?P<blank>[ \t]++)|(?P<dot>\.)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<other>\#[^\n]*+|.)""",
    re.DOTALL,
)


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a TOML file.

    `text`: with line ends as ``\\n``.
    `content`: the parsed document.
    `EnsioError`: the file cannot be read, is not valid TOML, is longer than `MOST_BYTES` or too deeply
    nested.
    """
    try:
        data = read_whole(path, MOST_BYTES)
    except OSError as error:
        raise EnsioError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise EnsioError(f"{path}: is not a text file in UTF-8") from None
    check_nesting(path, text)
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EnsioError(f"{path}: is not TOML: {error}") from None
    except ValueError:  # Python refuses numbers of thousands of digits
        raise EnsioError(f"{path}: holds a number with too many digits: write a smaller one") from None


def check_nesting(path: Path, text: str) -> None:
    """Check the number of parts of the keys and the nesting of the brackets of a TOML text.

    `EnsioError`: a key has more than `MOST_KEY_PARTS` parts, or brackets are nested more than `MOST_BRACKETS`
    times. The message names the line.
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
