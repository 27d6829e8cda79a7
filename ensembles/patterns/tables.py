"""Tables of a TOML file whose keys are checked, with messages that say where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ensembles.errors import EnsioError
from ensembles.patterns.expressions import Expression, parse
from ensembles.patterns.lines import Lines

Place = tuple[str | int, ...]
"""Keys and numbers on the way to something: ``("phases", 0, "name")``."""


class Tables:
    """Looks into parsed TOML, and knows where each piece of it stands."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.path = path
        self.lines = lines

    def where(self, *keys: str | int) -> str:
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
        allowed = (*required, *optional)
        for key in entry:
            if key not in allowed:
                raise EnsioError(
                    f'{self.where(*keys, key)}: "{key}" is not a key{of}: it may be {", ".join(allowed)}'
                )
        for key in required:
            if key not in entry:
                raise EnsioError(f"{self.where(*keys)}: the key {key}{of} is missing")

    def text(self, entry: Mapping[str, Any], keys: Place, key: str) -> str:
        if not isinstance(entry[key], str):
            raise EnsioError(f"{self.where(*keys, key)}: {key} must be text in quotes")
        return entry[key]

    def table(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        if not isinstance(content[key], dict):
            raise EnsioError(f"{self.where(key)}: {key} must be a table")
        return content[key]

    def expression(
        self, entry: Mapping[str, Any], keys: Place, key: str, default: int | None = None
    ) -> Expression:
        return parse(entry.get(key, default), self.where(*keys, key))
