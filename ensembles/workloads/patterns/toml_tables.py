"""Checked access to the tables of a TOML file, with messages that name the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import installed
from ensembles.workloads.patterns.expressions import Expression, parse

Keys = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.\- ]+?)\s*\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"""\s*["']?([A-Za-z0-9_.-]+)["']?\s*=""")


class Lines:
    """Line numbers of the tables and keys of a TOML text.

    Only a key at the start of a line is found. A place is a tuple of keys and, in arrays of tables, indices
    from 0: ``("phases", 1, "operations", 0, "size")``.

    Examples
    --------
    >>> text = '''[[phases]]
    ... name = "write"
    ... '''
    >>> lines = Lines(text)
    >>> lines.find(("phases", 0, "name"))
    2
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
        """Return the place of a table, with the index in each array of tables that contains it."""
        place: Keys = ()
        for depth, name in enumerate(names, 1):
            place = (*place, name.strip())
            if is_array and depth == len(names):
                counts[place] = counts.get(place, 0) + 1
            if place in counts:
                place = (*place, counts[place] - 1)
        return place

    def find(self, keys: Sequence[str | int]) -> int | None:
        """Return the line of a place or of its nearest known container; None if there is none."""
        place = tuple(keys)
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place)


Place = tuple[str | int, ...]
"""Keys and indices that lead to a value: ``("phases", 0, "name")``."""


class Tables:
    """Checked access to parsed TOML, with the line of each key."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.path = path
        self.lines = lines

    def where(self, *keys: str | int) -> str:
        """Return file and, if known, line of a place."""
        line = self.lines.find(keys)
        return f"{self.path}:{line}" if line else str(self.path)

    def keys(
        self,
        entry: Mapping[str, Any],
        keys: Place,
        required: Iterable[str],
        optional: Iterable[str] = (),
        of: str = "",
    ) -> None:
        """Check that a table has all required keys and no unknown ones."""
        allowed = (*required, *optional)
        for key in entry:
            if key not in allowed:
                raise EnsioError(
                    f'{self.where(*keys, key)}: "{key}" is not a key{of}: choose from {", ".join(allowed)}'
                )
        for key in required:
            if key not in entry:
                raise EnsioError(f"{self.where(*keys)}: the key {key}{of} is missing")

    def text(self, entry: Mapping[str, Any], keys: Place, key: str) -> str:
        """Return the text of a key; raise EnsioError if it has another type."""
        value = entry[key]
        if not isinstance(value, str):
            raise EnsioError(f"{self.where(*keys, key)}: {key} must be text in quotes")
        return value

    def table(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return a table; raise EnsioError if the value has another type."""
        value = content[key]
        if not isinstance(value, dict):
            raise EnsioError(f"{self.where(key)}: {key} must be a table")
        return value

    def expression(
        self, entry: Mapping[str, Any], keys: Place, key: str, default: int | None = None
    ) -> Expression:
        """Return the expression of a key, or its default."""
        return parse(entry.get(key, default), self.where(*keys, key))


def named_file(kind: str, name: str) -> Path:
    """Return the TOML file of a pattern or model: a path, or a name in that folder of ``share/ensio``."""
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    folder = installed(f"share/ensio/{kind}s")
    if not (path := folder / f"{name}.toml").is_file():
        names = ", ".join(sorted(entry.stem for entry in folder.glob("*.toml")))
        raise EnsioError(f"{name}: no such {kind} in {folder}: choose from {names}, or name a file")
    return path
