"""The prose of a file: text of Markdown, comments and strings of programs, each with its line."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Text:
    """A piece of prose."""

    line: int  # Of its first character, counted from 1
    words: str  # The text; a line break stands where the file has one
    is_sentence: bool = True  # False for what may be data: a string of a program that is not a docstring


def texts_of(path: Path, content: str) -> list[Text]:
    """Extract the prose of a file."""
    reader = _READERS.get(path.name) or _READERS.get(path.suffix)
    return sorted(reader(content), key=lambda text: text.line) if reader else []


def _markdown(content: str) -> Iterator[Text]:
    """Paragraphs, rows and items; code in fences or indented is left out, code in a line is a word."""
    kept: list[str] = []
    start, fence = 1, ""
    for number, line in enumerate([*content.split("\n"), ""], 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        is_code = bool(mark or fence) or (re.match(r" {4,}\S", line) and not kept)
        starts_anew = re.match(r"\s*([#|>]|[*+-] |\d+\. )", line)
        if kept and (is_code or not line.strip() or starts_anew):
            yield Text(start, "\n".join(kept))
            kept = []
        if not is_code and line.strip():
            start = start if kept else number
            kept.append(_without_code(line))


def _without_code(line: str) -> str:
    line = re.sub(r"(`+)(.+?)\1", "code", line)
    line = re.sub(r"\]\([^()\s]+\)", "]", line)
    return re.sub(r"^\s*([#>]+|[*+-] |\d+\. )|[*|]", " ", line)


def _python(content: str) -> Iterator[Text]:
    yield from _joined(
        (token.start[0], token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(content).readline)
        if token.type == tokenize.COMMENT
    )
    tree = ast.parse(content)
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings.add(id(statement.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            words = re.sub(r"(`+)(.+?)\1", "code", node.value)
            yield Text(node.lineno, words, id(node) in docstrings)


_C_PARTS = re.compile(
    r"""(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def _c(content: str) -> Iterator[Text]:
    comments = []
    for part in _C_PARTS.finditer(content):
        line = content.count("\n", 0, part.start()) + 1
        if part["block"]:
            yield Text(line, re.sub(r"(?m)^\s*\*(?!/)", "", part["block"][2:-2]))
        elif part["line"]:
            stands_alone = not content[content.rfind("\n", 0, part.start()) + 1 : part.start()].strip()
            comments.append((line, part["line"].lstrip("/ "), stands_alone))
        elif part["string"] and " " in part["string"]:
            yield Text(line, part["string"][1:-1].replace("\\n", " "), False)
    yield from _joined(iter(comments))


def _fortran(content: str) -> Iterator[Text]:
    comments = re.compile(r"^([^'\"!]*)!(.*)$")
    found = ((n, comments.match(line)) for n, line in enumerate(content.split("\n"), 1))
    yield from _joined((n, part[2].strip(), not part[1].strip()) for n, part in found if part)


def _hashed(content: str) -> Iterator[Text]:
    """Shell, TOML, CMake: comments, and strings in double quotes that have a space."""
    comments = []
    for number, line in enumerate(content.split("\n"), 1):
        mark = re.search(r"(?:^|\s)#+(?!!)(.*)", line)
        if mark:
            comments.append((number, mark[1].strip(), not line[: mark.start()].strip()))
            line = line[: mark.start()]
        for string in re.findall(r'"([^"]* [^"]*)"', line):
            yield Text(number, string, False)
    yield from _joined(iter(comments))


def _template(content: str) -> Iterator[Text]:
    """HTML with Jinja: what is shown, and Jinja's comments; no scripts, styles, tags or expressions."""

    def blank(part: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", part[0])

    shown = re.sub(r"(?s)<(script|style)\b.*?</\1>", blank, content)
    shown = re.sub(r"(?s)\{\{.*?\}\}", lambda part: "code" + blank(part)[4:], shown)
    shown = re.sub(r"(?s)\{%.*?%\}|<[^>]*>|\{#|#\}", blank, shown)
    for number, line in enumerate(shown.split("\n"), 1):
        if line.strip():
            yield Text(number, line)


def _plain(content: str) -> Iterator[Text]:
    """A script with prose in here-documents: every line, comments without their mark."""
    for number, line in enumerate(content.split("\n"), 1):
        yield Text(number, line.lstrip("# "), False)


def _joined(comments: Iterator[tuple[int, str, bool]]) -> Iterator[Text]:
    """Comments on consecutive lines as one text; of each its line, words, and whether code precedes it."""
    kept: list[str] = []
    start = 0
    for line, words, stands_alone in comments:
        if kept and not (stands_alone and line == start + len(kept) and words):
            yield Text(start, "\n".join(kept))
            kept = []
        start = start if kept else line
        kept.append(words)
    if kept:
        yield Text(start, "\n".join(kept))


_READERS: dict[str, Callable[[str], Iterator[Text]]] = {
    ".md": _markdown,
    ".py": _python,
    ".pyi": _python,
    **dict.fromkeys((".c", ".h", ".def", ".cpp"), _c),
    ".f90": _fortran,
    **dict.fromkeys((".toml", ".cmake", ".cfg", "CMakeLists.txt"), _hashed),
    ".html": _template,
    **dict.fromkeys((".sh", "dev", "run", "ensio-cc"), _plain),
}
