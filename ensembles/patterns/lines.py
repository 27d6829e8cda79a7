"""Where the keys of a TOML file stand: `tomllib` does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence

Keys = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.\- ]+?)\s*\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"""\s*["']?([A-Za-z0-9_.-]+)["']?\s*=""")


class Lines:
    """Line numbers of the tables and keys of a TOML text, as far as each key stands on a line of its own.

    A place is a tuple of keys and, in arrays of tables, numbers from 0: ``("phases", 1, "operations", 0,
    "size")``.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Keys, int] = {}
        counts: dict[Keys, int] = {}
        table: Keys = ()
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = self._enter(header[2].split("."), header[1] == "[[", counts)
                for depth in range(1, len(table) + 1):
                    self._lines.setdefault(table[:depth], number)
            elif assignment := _ASSIGNMENT.match(line):
                self._lines.setdefault((*table, assignment[1]), number)

    @staticmethod
    def _enter(names: Sequence[str], is_array: bool, counts: dict[Keys, int]) -> Keys:
        """The place of a table, with the number of each array of tables on the way to it."""
        place: Keys = ()
        for depth, name in enumerate(names, 1):
            place = (*place, name.strip())
            if is_array and depth == len(names):
                counts[place] = counts.get(place, 0) + 1
            if place in counts:
                place = (*place, counts[place] - 1)
        return place

    def find(self, keys: Sequence[str | int]) -> int | None:
        """The line of a place, or of the nearest place around it that is known; None if there is none."""
        place = tuple(keys)
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place)
