"""Common numbers for the calls and files of many spools."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ensembles.model.events import OPS, Call
from ensembles.model.units import count_text

UNKNOWN_CALL = Call("unknown", "unknown", "meta")
"""First of a run's calls, for functions that no table of calls names."""

PROGRAM_LAYER = "program"
"""Layer of annotations by the program: phases and regions."""

_LARGEST_SITE_NUMBER = 0xFFFF
_LARGEST_FILE_NUMBER = 1 << 28


class Dictionary:
    """Numbers of the calls and paths of a run, independent of their numbers in the spools.

    Number 0 is an unknown call or file. In the arrays that translate the numbers of a spool, the last entry
    is for all larger numbers and is 0. Phases and regions appear in the tables of calls, but get no number
    here.

    `calls`: call numbers of the run.
    `files`: file numbers of the run.
    `sites`: site numbers of the run.
    `notes`: sentences about damaged tables of calls.

    Examples
    --------
    >>> dictionary = Dictionary()
    >>> dictionary.call_numbers(b"7 read posix read\\n9 write posix write\\n")
    array([0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0], dtype=uint16)
    >>> dictionary.file_numbers([(2, b"/scratch/data")])
    array([0, 0, 1, 0], dtype=uint32)
    """

    def __init__(self) -> None:
        self.calls: dict[Call, int] = {UNKNOWN_CALL: 0}
        self.files: dict[str, int] = {"": 0}
        self.sites: dict[str, int] = {"": 0}
        self.notes: list[str] = []
        self._numbers_of_text: dict[bytes, np.ndarray] = {}
        self._marks_of_text: dict[bytes, dict[str, int]] = {}

    def call_numbers(self, text: bytes) -> np.ndarray:
        """Return the translation of the call numbers of a spool."""
        if text not in self._numbers_of_text:
            self._numbers_of_text[text] = self._parse_calls(text)
        return self._numbers_of_text[text]

    def marks(self, text: bytes) -> dict[str, int]:
        """Return the numbers of the kinds of marks in a spool, ascending."""
        self.call_numbers(text)
        return self._marks_of_text[text]

    def _parse_calls(self, text: bytes) -> np.ndarray:
        calls, lines = {}, text.decode("utf-8", "replace").splitlines()
        for line in lines:
            first, *words = line.split() or ("",)
            # A damaged name may have control characters, which no terminal should get.
            is_plain = line.isascii() and line.isprintable()
            if is_plain and first.isdigit() and len(words) == 3 and words[2] in OPS:
                calls[min(int(first), 0xFFFF)] = Call(*words)
        if len(calls) < len(lines):
            invalid = count_text(len(lines) - len(calls), "line")
            self.notes.append(f"a table of calls is damaged ({invalid}): functions have no name")
        marks = {number: call.name for number, call in calls.items() if call.layer == PROGRAM_LAYER}
        self._marks_of_text[text] = {name: number for number, name in sorted(marks.items())}
        calls = {number: call for number, call in calls.items() if number not in marks}
        numbers = np.zeros(max(calls, default=0) + 2, "u2")
        for number, call in calls.items():
            numbers[number] = self.calls.setdefault(call, len(self.calls))
        return numbers

    def file_numbers(self, files: Sequence[tuple[int, bytes]]) -> np.ndarray:
        """Return the translation of the file numbers of a spool."""
        known = [(number, name) for number, name in files if number < _LARGEST_FILE_NUMBER]
        numbers = np.zeros(max((number for number, _ in known), default=0) + 2, "u4")
        for number, name in dict(known).items():  # a file may get a name later
            numbers[number] = self.files.setdefault(os.fsdecode(name), len(self.files))
        return numbers

    def site_numbers(self, sites: Sequence[tuple[int, bytes]]) -> np.ndarray:
        """Return the translation of the site numbers of a spool."""
        known = [(number, text) for number, text in sites if 0 < number <= _LARGEST_SITE_NUMBER]
        numbers = np.zeros(max((number for number, _ in known), default=0) + 2, "u2")
        for number, text in known:
            name = text.decode("utf-8", "surrogateescape")
            if name in self.sites or len(self.sites) <= _LARGEST_SITE_NUMBER:
                numbers[number] = self.sites.setdefault(name, len(self.sites))
        return numbers
