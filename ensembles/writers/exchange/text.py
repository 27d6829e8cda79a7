"""Write events as text: CSV, JSON lines, or an aligned table."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from typing import TextIO

from ensembles.model.events import COLUMNS, Events
from ensembles.model.sanitize_text import sanitize_text

BLOCK_EVENTS = 1 << 14
"""Number of events that are converted to Python objects at a time."""

FIELDS = (*COLUMNS, "op", "layer")
"""Names of the fields: all columns, with names for numbers of calls, files and sites, and two more."""

_TEXTS = ("call", "file", "site", "op", "layer")


def _blocks(events: Events) -> Iterator[Events]:
    for low in range(0, len(events), BLOCK_EVENTS):
        yield events[low : low + BLOCK_EVENTS]


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
    for part, name in enumerate(("call", "layer", "op")):
        names = [call[part] for call in calls]
        fields[name] = [names[number] for number in numbers]
    return [fields[name] for name in FIELDS]


class CsvWriter:
    """Writer of comma-separated values with a header line; times in ns, sizes in bytes.

    Parameters
    ----------
    stream : TextIO

    Examples
    --------
    >>> import sys
    >>> from ensembles.model.events import Events
    >>> from ensembles.writers.exchange.text import CsvWriter
    >>> CsvWriter(sys.stdout).write(Events.empty())
    rank,thread,call,depth,carried,file,offset,requested,moved,error,start,duration,site,flight,request,op,layer
    """

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(FIELDS)

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            self._writer.writerows(zip(*_fields(block), strict=True))


class JsonLinesWriter:
    """Writer of one JSON object per call and line; times in ns, sizes in bytes.

    Parameters
    ----------
    stream : TextIO
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._template = "{" + ", ".join(f'"{name}": %s' for name in FIELDS) + "}\n"

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            rows = zip(*_fields(block, json.dumps), strict=True)
            self._stream.write("".join([self._template % row for row in rows]))


class TableWriter:
    """Writer of aligned columns for people; times in seconds, sizes in bytes.

    Parameters
    ----------
    stream : TextIO
    """

    _HEAD = ("rank", "thread", "start s", "duration s", "call", "offset", "requested", "moved", "file")
    _LINE = "{:>6} {:>6} {:>15} {:>13}  {:<16} {:>14} {:>12} {:>12}  {}\n"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        stream.write(self._LINE.format(*self._HEAD))

    def write(self, events: Events) -> None:
        """Write events."""
        for block in _blocks(events):
            fields = dict(zip(FIELDS, _fields(block, sanitize_text), strict=True))
            rows = zip(
                fields["rank"],
                fields["thread"],
                (f"{ns / 1e9:.9f}" for ns in block.start.tolist()),
                (f"{ns / 1e9:.9f}" for ns in block.duration.tolist()),
                fields["call"],
                ("" if offset < 0 else offset for offset in block.offset.tolist()),
                fields["requested"],
                map(_outcome, block.moved.tolist(), block.error.tolist()),
                fields["file"],
                strict=True,
            )
            self._stream.write("".join([self._LINE.format(*row) for row in rows]))


def _outcome(moved: int, error: int) -> str:
    """Return the bytes moved, or the name of the error."""
    import errno

    return errno.errorcode.get(error, f"errno {error}") if error else str(moved)
