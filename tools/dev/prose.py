"""Check the wording of all prose: ``./dev lint`` calls it.

``python tools/dev/prose.py [FILE ...]`` prints each phrase of ``phrases.toml`` that a tracked file has, with
the standard wording. A file may have as many as ``phrases_allowed.toml`` says; ``--lower`` writes that list
anew, also after files were moved, unless its sum would grow. ``--figures`` prints words a sentence by folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prose_texts import Text, texts_of

TOP = Path(__file__).resolve().parents[2]
PHRASES = Path(__file__).with_name("phrases.toml")
ALLOWED = Path(__file__).with_name("phrases_allowed.toml")
_SPACE = r"(?:[ \t]+\n?[ \t]*|\n[ \t]*)"
_LONG = 40
_HEAD = """\
# How many phrases of phrases.toml a file may have that was written before the check. Their sum only shrinks:
# python tools/dev/prose.py --lower writes this list, also after files were moved.
"""


@dataclass(frozen=True)
class Phrase:
    """A wording to avoid."""

    pattern: re.Pattern[str]  # Its spaces match a line break too, but no empty line
    better: str  # The standard wording


def phrases_in(path: Path) -> list[Phrase]:
    """Read a table ``"regular expression" = "standard wording"``."""
    table = tomllib.loads(path.read_text())["phrases"]
    return [
        Phrase(re.compile(rf"\b(?:{words})\b".replace(" ", _SPACE), re.IGNORECASE), better)
        for words, better in table.items()
    ]


def findings(texts: list[Text], phrases: list[Phrase]) -> Iterator[tuple[int, str, str]]:
    """Give line, words and standard wording of each phrase in a file's texts."""
    for text in texts:
        for phrase in phrases:
            for found in phrase.pattern.finditer(text.words):
                line = text.line + text.words.count("\n", 0, found.start())
                yield line, " ".join(found[0].split()), phrase.better


def tracked_files() -> list[str]:
    """Paths of tracked files, relative to the project, but for recorded data and the phrases themselves."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True).stdout
    own = {str(path.relative_to(TOP)) for path in (PHRASES, ALLOWED)}
    data = re.compile(r"tests/(fuzz/corpus|corpus/(runs|frozen)|end_to_end/archives)/")
    return [name for name in listed.decode().split("\0") if name and name not in own and not data.match(name)]


def prose_of(name: str) -> list[Text]:
    """The texts of a tracked file; none if it is gone or not text."""
    path = TOP / name
    try:
        return texts_of(path, path.read_text()) if path.is_file() else []
    except UnicodeDecodeError:
        return []


def check(names: list[str], lower: bool) -> int:
    """Print phrases beyond what is allowed, and return the exit status."""
    phrases = phrases_in(PHRASES)
    allowed = tomllib.loads(ALLOWED.read_text())["allowed"] if ALLOWED.exists() else {}
    counts, status = {}, 0
    for name in names:
        found = list(findings(prose_of(name), phrases))
        counts[name] = len(found)
        if len(found) <= allowed.get(name, 0) or lower:
            continue
        status = 1
        for line, words, better in found:
            print(f'{name}:{line}: "{words}": {better}')
        if name in allowed:
            print(f"{name}: {len(found)} phrases, {allowed[name]} are allowed")
    if lower:
        before, after = sum(allowed.values()), sum(counts.values())
        if after > before:
            print(f"{after} phrases, {before} are allowed: the list stays as it is")
            return 1
        rows = (f'"{name}" = {count}\n' for name, count in sorted(counts.items()) if count)
        ALLOWED.write_text(_HEAD + "[allowed]\n" + "".join(rows))
    return status


def print_figures(names: list[str]) -> None:
    """Print words a sentence by folder: sentences of Markdown, docstrings and comments."""
    lengths: dict[str, list[int]] = {}
    for name in names:
        folder = "/".join(name.split("/")[:2]) if name.count("/") > 1 else name.split("/")[0]
        for text in prose_of(name):
            if text.is_sentence:
                lengths.setdefault(folder, []).extend(sentence_lengths(text.words))
    print(f"{'folder':40} {'sentences':>9} {'mean words':>10} {'over 40':>7}")
    every = [length for found in lengths.values() for length in found]
    for folder, found in [*sorted(lengths.items()), ("all", every)]:
        if found:
            long = sum(length > _LONG for length in found)
            print(f"{folder:40} {len(found):9,} {sum(found) / len(found):10.1f} {long:7,}")


def sentence_lengths(words: str) -> list[int]:
    """Count the words of each sentence; headings, table cells and lines without a full stop are none."""
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", words):
        sentences += re.findall(r"[^.!?]+[.!?](?=\W|$)", _without_inner_stops(paragraph))
    counts = (len(re.findall(r"[A-Za-z0-9][\w'’-]*", sentence)) for sentence in sentences)
    return [count for count in counts if count > 2]


def _without_inner_stops(paragraph: str) -> str:
    # A full stop within a number, a name or an abbreviation ends no sentence.
    inner = r"\b(?:e\.g|i\.e|cf|etc|vs|Fig|Eq|Sec|pp?)\.|(?<=\w)\.(?=\w)"
    return re.sub(inner, lambda found: found[0].replace(".", ""), " ".join(paragraph.split()))


def main() -> int:
    """Run the check on the command line's files, or on all."""
    parser = argparse.ArgumentParser(description="check the wording of prose")
    parser.add_argument("--figures", action="store_true", help="words a sentence by folder, no check")
    parser.add_argument("--lower", action="store_true", help="write phrases_allowed.toml anew")
    parser.add_argument("files", nargs="*", metavar="FILE")
    given = parser.parse_args()
    names = [str(Path(name).resolve().relative_to(TOP)) for name in given.files] or tracked_files()
    if given.figures:
        print_figures(names)
        return 0
    return check(names, given.lower)


if __name__ == "__main__":
    sys.exit(main())
