"""Read the lines of strace output in bounded memory: of one file, or of one for each process (``-ff``)."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator

from ensembles.model.errors import EnsioError
from ensembles.model.units import BYTES_AT_ONCE
from ensembles.readers.foreign.common.text_blocks import TextBlocks, sorted_out
from ensembles.readers.foreign.strace.call_arguments import TEXT, time_ns

LINE = re.compile(
    r"(?:\[pid +(\d+)\] +|(\d+) +)? *(\d{1,11})\.(\d{6,9}) (?:\(\+ +[\d.]+\) )?(?:\[ *[\da-f?]+\] )*"
    r"(?:(\w+)\((.*)|<\.\.\. (\w+) resumed> ?(.*)|\+\+\+ (.*) \+\+\+|--- .*|(\?\?\?\?.*))",
    re.ASCII | re.DOTALL,
)
"""A line: number of the process, time, call, its arguments or how it went on, and end of the process.

Between time and call, ``-r`` beside ``-ttt``, ``-n`` and ``-i`` put more, which is passed over."""

_MOST_RELATIVE_DIGITS = 6
"""strace pads differences of times to this width; times since 1970 have been longer since January 1970."""

_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_ATTACHED = re.compile(r"strace: Process \d+ attached$", re.ASCII)


class Stamps:
    """The times of the lines of a file.

    `are_relative`: whether each is the time since the line before (``strace -r``), so that the date is
    unknown.
    """

    def __init__(self) -> None:
        self.are_relative = False
        self._last: int | None = None

    def time_ns(self, match: re.Match[str]) -> int:
        """Return the time of the next line, ns since 1970, or since the first line."""
        told = time_ns(match[3], match[4])
        if self._last is None:
            self.are_relative = len(match[3]) <= _MOST_RELATIVE_DIGITS
        self._last = told + (self._last or 0) if self.are_relative else told
        return self._last


def is_text_of_strace(line: str) -> bool:
    """Whether a line is text, and every quoted text in it ends; else it is damaged."""
    if not line.isascii():
        try:  # old versions of strace do not escape paths
            line.encode("latin-1").decode()
        except UnicodeDecodeError:
            return False
    if not line.isprintable() and _CONTROL.search(line):
        return False
    return (line.count('"') % 2 == 0 and '\\"' not in line) or '"' not in TEXT.sub("", line)


_STRACE = re.compile(
    rb"(?:\[pid +\d+\] +|\d+ +)? *(?:(?:\d+\.\d{3,9}|\d\d:\d\d:\d\d(?:\.\d+)?) )?"
    rb"(?:\(\+ +[\d.]+\) )?(?:\[ *[\da-f?]+\] )*"
    rb"(?:[a-z_]\w*\(.*(?: = (?:-?\d|0x|\?)| <unfinished \.\.\.>$)|<\.\.\. \w+ resumed>|\+\+\+ |--- SIG)"
)


def is_strace(beginning: bytes) -> bool:
    """Test whether the first bytes of a file are output of strace, with or without times.

    Examples
    --------
    >>> is_strace(b'1234 1700000000.000000 close(3) = 0 <0.000010>\\n')
    True
    """
    lines = beginning.split(b"\n")[:-1] or [beginning]
    lines = [line for line in lines if line.strip() and not line.startswith((b"strace: ", b" > "))][:20]
    matching = [line for line in lines if _STRACE.match(line)]
    return bool(matching) and 2 * len(matching) > len(lines)


def files_of(path: str) -> tuple[list[str], list[str]]:
    """List the files of a trace: itself, or those of a folder that ``strace -ff`` named; and the others."""
    return sorted_out(path, lambda name: bool(_number_in(name)), is_strace)


def _number_in(path: str) -> str:
    """Return the number of the process behind the last dot of a name, or an empty text."""
    number = path.rpartition(".")[2]
    return number if number.isascii() and number.isdigit() else ""


def merged_lines(files: list[TextLines]) -> Iterator[str]:
    """Iterate over the lines of files in the order of their times, with the number of the process."""
    if len(files) == 1:
        return iter(files[0])
    numbers = [_number_in(file.path) for file in files]
    if len(set(numbers)) < len(numbers):
        raise EnsioError(
            f"{os.path.dirname(files[0].path)} has several files of strace for one process number, as of "
            "several nodes: put the files of each node into a folder"
        )
    timed = (_with_times(file, number) for file, number in zip(files, numbers, strict=True))
    return (line for _, line in heapq.merge(*timed, key=lambda pair: pair[0]))


def _with_times(file: TextLines, number: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with the number of its process, and their times."""
    stamps, now = Stamps(), 0
    for line in file:
        if match := LINE.match(line):
            now = stamps.time_ns(match)
            if stamps.are_relative:
                raise EnsioError(
                    f"{file.path} has differences of times (strace -r), which -ff spreads over files: trace "
                    "with strace -ff -ttt -T -o FILE"
                )
            line = line if match[1] or match[2] else f"{number} {line}"
        yield now, line


class TextLines(TextBlocks):
    """The lines of a file without line ends, decoded as Latin-1."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the lines; EnsioError: the file cannot be read."""
        held = ""
        for block in self.blocks():
            for raw in block.removesuffix(b"\n").split(b"\n"):
                if len(raw) > BYTES_AT_ONCE:
                    self.skipped += 1
                    continue
                line = raw.decode("latin-1")
                # On a terminal, strace reports in the middle of a line that it attached to a process.
                if line.endswith(" attached") and (match := _ATTACHED.search(line)):
                    held = (held + line[: match.start()])[-BYTES_AT_ONCE:]
                else:
                    yield held + line
                    held = ""
