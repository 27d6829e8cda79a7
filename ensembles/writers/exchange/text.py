"""Write events as text: CSV, JSON lines, or an aligned table.

Samples of the kernel's counters are written as CSV or Parquet, beside the file of a run's events.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from typing import IO, Any, TextIO

import numpy as np

from ensembles.model.error_names import error_name
from ensembles.model.events import COLUMNS, Events
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.surroundings import COLUMN_MEANINGS, COUNTERS, NOT_SAMPLED, UNKNOWN, SurroundingsTable
from ensembles.model.units import ROWS_AT_ONCE, seconds_text, size_text
from ensembles.model.wrapped import WIDTH

FIELDS = (*COLUMNS, "op", "layer", "error_name")
"""Names of the fields: all columns, with names for numbers of calls, files and sites, and three more."""

_TEXTS = ("call", "file", "site", "op", "layer")


def _blocks(events: Events) -> Iterator[Events]:
    for low in range(0, len(events), ROWS_AT_ONCE):
        yield events[low : low + ROWS_AT_ONCE]


def _fields(events: Events, as_text: Callable[[str], str] = str) -> list[list[int] | list[str]]:
    """Return a list per field. `as_text` converts each text of the dictionaries once."""
    calls = [tuple(as_text(text) for text in call) for call in events.calls]
    numbers = events.call.tolist()
    of_file = {number: as_text(events.files[number]) for number in set(events.file.tolist())}
    fields: dict[str, list[int] | list[str]] = {
        name: getattr(events, name).tolist() for name in COLUMNS if name not in _TEXTS
    }
    fields["file"] = [of_file[number] for number in events.file.tolist()]
    of_site = {number: as_text(events.sites[number]) for number in set(events.site.tolist())}
    fields["site"] = [of_site[number] for number in events.site.tolist()]
    errors = events.error.tolist()
    of_error = {number: as_text(error_name(number) if number else "") for number in set(errors)}
    fields["error_name"] = [of_error[number] for number in errors]
    for part, name in enumerate(("call", "layer", "op")):
        names = [call[part] for call in calls]
        fields[name] = [names[number] for number in numbers]
    return [fields[name] for name in FIELDS]


class CsvWriter:
    """Writer of comma-separated values with a header line; times in ns, sizes in bytes.

    Examples
    --------
    >>> import sys
    >>> from ensembles.model.events import Events
    >>> CsvWriter(sys.stdout).write(Events.empty())  # doctest: +ELLIPSIS
    rank,thread,call,depth,carried,file,offset,requested,moved,error,...,op,layer,error_name
    """

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(FIELDS)

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            self._writer.writerows(zip(*_fields(block), strict=True))


class JsonLinesWriter:
    """Writer of one JSON object per call and line; times in ns, sizes in bytes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._template = "{" + ", ".join(f'"{name}": %s' for name in FIELDS) + "}\n"

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            rows = zip(*_fields(block, json.dumps), strict=True)
            self._stream.write("".join([self._template % row for row in rows]))


class TableWriter:
    """Writer of aligned columns for people, at most 80 wide; paths are listed below the table.

    Times and sizes have units, starts are in seconds. Columns without a value are left out. A block that
    needs wider or more columns than those before it gets a heading.
    """

    _RIGHT = frozenset(["rank", "thread", "start (s)", "duration", "offset", "requested", "moved", "file"])
    _FOLDED = ("offset", "requested", "moved", "file")
    """Columns that go into a second line of each call if the first one is too wide."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._widths: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            columns = self._columns(block)
            needed = {name: max(map(len, [name, *texts])) for name, texts in columns.items()}
            if any(width > self._widths.get(name, 0) for name, width in needed.items()):
                gap = "\n" if self._widths else ""
                self._widths = {
                    name: max(needed.get(name, 0), self._widths.get(name, 0))
                    for name in [*columns, *self._widths]
                }
                self._stream.write(gap + self._line({name: name for name in self._widths}))
                self._stream.write(self._line({name: "-" * width for name, width in self._widths.items()}))
            names = list(columns)
            lines = (dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True))
            self._stream.write("".join(map(self._line, lines)))

    def close(self) -> None:
        """Write the list of the files; without events, the names of the columns."""
        if not self._widths:
            self._stream.write("  ".join(["rank", "start (s)", "duration", "call"]) + "\n")
        if self._numbers:
            width = len(str(len(self._numbers)))
            self._stream.write("\n")
            self._stream.writelines(f"{number:>{width}}  {path}\n" for path, number in self._numbers.items())

    def _columns(self, block: Events) -> dict[str, list[str]]:
        fields = dict(zip(FIELDS, _fields(block, sanitize_text), strict=True))
        outcomes = map(_outcome, block.moved.tolist(), block.error.tolist())
        requested = [size_text(size) if size else "" for size in block.requested.tolist()]
        shown = block.requested.astype(bool) | (block.moved < 0)
        moved = [text if is_shown else "" for text, is_shown in zip(outcomes, shown, strict=True)]
        columns = {
            "rank": list(map(str, fields["rank"])),
            "thread": list(map(str, fields["thread"])) if block.thread.any() else [],
            "start (s)": [f"{ns * 1e-9:.6f}" for ns in block.start.tolist()],
            "duration": [seconds_text(ns * 1e-9) for ns in block.duration.tolist()],
            "call": list(map(str, fields["call"])),
            "offset": ["" if offset < 0 else size_text(offset) for offset in block.offset.tolist()],
            "requested": requested,
            "moved": moved if moved != requested else [],
            "file": [self._number(str(path)) for path in fields["file"]],
        }
        always = ("rank", "start (s)", "duration", "call")
        return {name: texts for name, texts in columns.items() if name in always or any(texts)}

    def _number(self, path: str) -> str:
        return str(self._numbers.setdefault(path, len(self._numbers) + 1)) if path else ""

    def _line(self, cells: dict[str, str]) -> str:
        """Lay out the cells of a call, in two lines if one is too wide."""
        whole = sum(self._widths.values()) + 2 * (len(self._widths) - 1)
        second = self._FOLDED if whole > WIDTH else ()
        lines: list[list[str]] = [[], []]
        for name, width in self._widths.items():
            text = cells.get(name, "")
            aligned = text.rjust(width) if name in self._RIGHT else text.ljust(width)
            lines[name in second].append(aligned)
        first = "  ".join(lines[0]).rstrip()
        return f"{first}\n" + (f"    {'  '.join(lines[1])}".rstrip() + "\n" if lines[1] else "")


def _outcome(moved: int, error: int) -> str:
    """Return the bytes moved, or the name of the error."""
    return error_name(error) if moved < 0 else size_text(moved)


def samples_path(path: str) -> str:
    """Return the path of the second file, for the samples: ``run.csv`` gives ``run.surroundings.csv``."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}.surroundings{suffix}"


def write_samples_csv(stream: TextIO, table: SurroundingsTable) -> None:
    """Write a line of names, then a line for each sample; counters that a sample does not include are empty.

    Examples
    --------
    >>> import sys
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> columns = {name: [-1, -1] for name in COLUMNS}
    >>> columns |= {"rank": [0, 0], "time": [5, 9], "cost": [1, 1], "dirty_bytes": [4096, -1]}
    >>> write_samples_csv(sys.stdout, SurroundingsTable(columns))
    rank,time,cost,dirty_bytes
    0,5,1,4096
    0,9,1,
    """
    columns = _known(table)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    cells = [
        ["" if number == UNKNOWN else number for number in column.tolist()] for column in columns.values()
    ]
    writer.writerows(zip(*cells, strict=True))


def write_samples_parquet(file: IO[bytes], table: SurroundingsTable, about: dict[str, Any]) -> None:
    """Write a row for each sample; counters that a sample does not include are null."""
    import pyarrow
    import pyarrow.parquet

    columns = _known(table)
    fields = [
        pyarrow.field(
            name,
            pyarrow.from_numpy_dtype(column.dtype),
            metadata=dict(zip(("unit", "meaning"), _meaning(name), strict=True)),
        )
        for name, column in columns.items()
    ]
    facts = {f"ensio.{name}": json.dumps(fact) for name, fact in about.items()}
    arrays = [pyarrow.array(column, mask=_is_missing(name, column)) for name, column in columns.items()]
    rows = pyarrow.table(arrays, schema=pyarrow.schema(fields, facts))
    pyarrow.parquet.write_table(rows, file, compression="zstd")


def _known(table: SurroundingsTable) -> dict[str, np.ndarray]:
    """Return the columns with at least one value."""
    return {
        name: column
        for name, column in table.columns.items()
        if name in ("rank", "time", "cost") or (column != UNKNOWN).any()
    }


def _is_missing(name: str, column: np.ndarray) -> np.ndarray:
    missing: np.ndarray = (column == UNKNOWN) & (name not in ("rank", "time"))
    return missing


def _meaning(name: str) -> tuple[str, str]:
    unit, meaning = COLUMN_MEANINGS[name]
    return unit, f"{meaning}; null: {NOT_SAMPLED}" if name in COUNTERS else meaning
