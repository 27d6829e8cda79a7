"""The calls and files of many spools under common numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ensembles.model.events import OPS, Call

UNKNOWN_CALL = Call("unknown", "unknown", "meta")
"""The first of a run's calls: stands for functions that no table of calls names."""

PROGRAM_LAYER = "program"
"""The layer of what a program says of itself."""

_LARGEST_FILE_NUMBER = 1 << 28


class Dictionary:
    """Gives every call and every path one number, whatever numbers it has in the spools.

    Number 0 is a call or a file that is not known. In the arrays that translate a spool's numbers, the last
    entry stands for all larger ones, and is 0.

    Attributes
    ----------
    calls : dict of Call to int
    files : dict of str to int
    notes : list of str
        What is wrong with the tables of calls.

    Phases and regions that a program names stand in the tables of calls too, but are none.
    """

    def __init__(self) -> None:
        self.calls: dict[Call, int] = {UNKNOWN_CALL: 0}
        self.files: dict[str, int] = {"": 0}
        self.notes: list[str] = []
        self._numbers_of_text: dict[bytes, np.ndarray] = {}
        self._marks_of_text: dict[bytes, dict[str, int]] = {}

    def call_numbers(self, text: bytes) -> np.ndarray:
        """Number in a spool with this calls entry → number in the run, u2."""
        if text not in self._numbers_of_text:
            self._numbers_of_text[text] = self._parse_calls(text)
        return self._numbers_of_text[text]

    def marks(self, text: bytes) -> dict[str, int]:
        """Kind of mark → its number in a spool with this calls entry, in ascending order."""
        self.call_numbers(text)
        return self._marks_of_text[text]

    def _parse_calls(self, text: bytes) -> np.ndarray:
        calls = {}
        for line in text.decode("utf-8", "replace").splitlines():
            words = line.split()
            if len(words) == 4 and words[0].isascii() and words[0].isdigit() and words[3] in OPS:
                calls[min(int(words[0]), 0xFFFF)] = Call(*words[1:])
            else:
                self.notes.append(f"a line of a spool's table of calls makes no sense: {line[:80]!r}")
        marks = {number: call.name for number, call in calls.items() if call.layer == PROGRAM_LAYER}
        self._marks_of_text[text] = {name: number for number, name in sorted(marks.items())}
        calls = {number: call for number, call in calls.items() if number not in marks}
        numbers = np.zeros(max(calls, default=0) + 2, "u2")
        for number, call in calls.items():
            numbers[number] = self.calls.setdefault(call, len(self.calls))
        return numbers

    def file_numbers(self, files: Sequence[tuple[int, bytes]]) -> np.ndarray:
        """Number in a spool → number in the run, u4."""
        known = [(number, name) for number, name in files if number < _LARGEST_FILE_NUMBER]
        numbers = np.zeros(max((number for number, _ in known), default=0) + 2, "u4")
        for number, name in known:
            numbers[number] = self.files.setdefault(os.fsdecode(name), len(self.files))
        return numbers
