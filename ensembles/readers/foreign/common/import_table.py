"""The interface of readers of other tools' formats, and the run that is made from them.

A reader makes one pass over its trace and yields blocks of columns in the order of the trace. The rest is
common to all formats: sorting by rank and start, and the interface of a run.

Blocks of calls are sorted by rank and start in bounded memory (external merge sort). Calls that do not fit
into memory are sorted in pieces, which are stored in a temporary file. The pieces are merged into a second
file through a window on each piece.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, MISSING, Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import SurroundingsTable, surroundings_of
from ensembles.model.units import count_text
from ensembles.passes.damage import DamageReport
from ensembles.passes.memory import Budget
from ensembles.passes.reading import RankSizes, ReadRequest
from ensembles.readers.common.columns import NEEDED, CompletionOrder, unsound
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

DEFAULTS = {"thread": 0, "depth": 0, "carried": 0, "file": 0, "offset": -1, "error": 0, **MISSING}
"""Values of the columns that a block may lack. Every block has the other columns."""


_LEAST_IN_MEMORY_EVENTS = 1 << 16

BLOCK_EVENTS = 1 << 18
"""Calls of a block: its columns, before they are packed, and what readers need to make them are 50 MB."""


class ForeignTrace(Protocol):
    """A trace of another tool, which is read in one pass."""

    # Complete when `blocks` is exhausted. Notes describe what the format does not contain, and how many
    # records were skipped.
    metadata: RunMetadata

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of calls, in any order."""
        ...

    def regions(self) -> RegionTable:
        """Return the phases and regions in the trace, after `blocks`; by default none."""
        return RegionTable.empty()

    def summary(self) -> CellSummary | None:
        """Return the sums that the trace has in place of calls; None: sums are computed from the events."""
        return None

    def ranks(self) -> RankTable | None:
        """Return the sums by rank and function; None: they are computed from the events, or unknown."""
        return None


class ImportedSource:
    """A run that was read from a trace of another tool; an `EventSource`.

    `capacity`: number of events.
    `complete`: always true.
    `spools`: always empty.
    """

    is_complete = True
    is_checked = False

    def __init__(self, path: str, trace: ForeignTrace, budget: Budget | None = None) -> None:
        self.path = path
        self._trace = trace
        self.regions, self.summary, self.ranks = trace.regions, trace.summary, trace.ranks
        self._impossible = 0
        in_memory = IN_MEMORY_EVENTS
        if budget is not None:
            in_memory = min(in_memory, max(budget.held_events, _LEAST_IN_MEMORY_EVENTS))
        try:
            self._table = sorted_table(self._blocks(), path, in_memory)
            if trace.summary() is not None:  # sums stand for all calls
                self._table = sorted_table((), path)
        except MemoryError as error:
            raise EnsioError(f"the calls of {path} do not fit into memory: take a part of it") from error
        self.metadata = trace.metadata
        if self._impossible:
            what = (
                f"left out {count_text(self._impossible, 'call')} with impossible times or numbers of bytes"
            )
            self.metadata.note_damage([what], [self._impossible])
        self.capacity = len(self._table)
        self.spool_identities: dict[str, tuple[int, int]] = {}

    row_unit = 1
    is_quick_to_open = False

    def rank_sizes(self) -> RankSizes:
        """Return the ranks with events, and their numbers of events."""
        rank, row = self._first_rows
        return RankSizes(rank, np.diff(row, append=self.capacity))

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the requested events in chunks, ordered by rank.

        Within a thread, events are in the order of completion if the request asks for order and its columns
        include those of `NEEDED`, else in the order of start. If one chunk holds all events, its
        columns may be mapped from a temporary file.
        """
        names = request.columns
        in_order = request.is_ordered and (names is None or set(names) >= NEEDED)
        least, end = request.rows or (0, self.capacity)
        spans = [(0, self.capacity)]
        if request.ranks is not None:
            spans = [(self._begin_of(first), self._begin_of(last + 1)) for first, last in request.ranks]
        for low, high in spans:
            yield from self._rows(max(low, least), min(high, end), request, in_order)

    def surroundings(self) -> SurroundingsTable:
        """Return the samples of the kernel's counters in the trace, without rows if it has none."""
        return surroundings_of(self._trace)

    def kept(self, key: str) -> None:
        """Return None: results of passes are kept beside the run."""
        return

    def _blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the blocks of the trace with all columns; calls with impossible values are left out."""
        for block in self._trace.blocks(BLOCK_EVENTS):
            columns = _whole(block)
            beyond = unsound(columns)
            if beyond is not None:
                self._impossible += int(beyond.sum())
                columns = {name: column[~beyond] for name, column in columns.items()}
            yield columns

    def _rows(self, low: int, high: int, request: ReadRequest, in_order: bool) -> Iterator[Events]:
        order, most = CompletionOrder() if in_order else None, request.max_events
        for begin in range(low, high, most):
            end = min(begin + most, high)
            columns = self._table.read(begin, end, request.columns)
            if order is not None:
                columns = order.put(columns, self._key_at(end) if end < high else None)
            length = len(next(iter(columns.values())))
            for first in range(0, length, most):  # calls kept from earlier chunks add to the length
                yield self._events({name: column[first : first + most] for name, column in columns.items()})

    def _events(self, columns: Mapping[str, np.ndarray]) -> Events:
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        return make(columns, self.metadata.calls, self.metadata.files, self.metadata.sites)

    def _key_at(self, row: int) -> tuple[int, int]:
        """Return rank and start of a row."""
        found = self._table.read(row, row + 1, ("rank", "start"))
        return int(found["rank"][0]), int(found["start"][0])

    def _begin_of(self, rank: int) -> int:
        """Return the first row of a rank, or of the next rank with events."""
        ranks, rows = self._first_rows
        place = int(np.searchsorted(ranks, rank))
        return int(rows[place]) if place < len(ranks) else self.capacity

    @cached_property
    def _first_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranks with events, ascending, and the first row of each."""
        last, ranks, rows = -1, [], []
        for begin in range(0, self.capacity, 1 << 20):
            rank = self._table.read(begin, begin + (1 << 20), ("rank",))["rank"].astype(np.int64)
            places = np.flatnonzero(np.diff(rank, prepend=last))
            ranks.append(rank[places])
            rows.append(begin + places)
            last = int(rank[-1])
        none = np.empty(0, np.int64)
        return np.concatenate([none, *ranks]), np.concatenate([none, *rows])


def _whole(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all columns of a block, with default values for missing ones."""
    length = len(block["rank"])
    missing = {
        name: np.full(length, value, COLUMNS[name]) for name, value in DEFAULTS.items() if name not in block
    }
    return {name: np.asarray(block.get(name, missing.get(name)), dtype) for name, dtype in COLUMNS.items()}


IN_MEMORY_EVENTS = 1 << 22
"""Number of calls that are sorted in memory. Their columns are packed: 0.1 GB if most numbers are small."""

MERGED_EVENTS = 1 << 20
"""Total number of calls in the windows of a merge."""

_LEAST_WINDOW = 256


class MemoryTable:
    """A table of events in memory, with the interface of `StoredRows`."""

    def __init__(self, columns: dict[str, PackedColumn]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns["rank"])

    def read(self, low: int, high: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Return rows `low` to `high` of some columns, or of all columns."""
        return {
            name: self._columns[name].unpacked(max(low, 0), high)
            for name in (COLUMNS if names is None else names)
        }


def sorted_table(
    blocks: Iterable[Mapping[str, np.ndarray]], trace: str, in_memory: int = 0, merged: int = 0
) -> MemoryTable | StoredRows:
    """Sort all calls of some blocks by rank and start, stably."""
    in_memory = in_memory or IN_MEMORY_EVENTS
    held: list[dict[str, PackedColumn]] = []
    count = 0
    pieces: list[StoredRows] = []
    file: ColumnFile | None = None
    try:
        for block in blocks:
            length = len(block["rank"])
            if held and count + length > in_memory:
                file = file or ColumnFile(trace)
                pieces.append(_stored(held, file))
                held, count = [], 0
            held.append({name: PackedColumn(column) for name, column in block.items()})
            count += length
            del block  # so that the reader can free it before it makes the next one
        if file is None:
            return MemoryTable({name: PackedColumn(column) for name, column in _sorted(held)})
        pieces.append(_stored(held, file))
        return _merged(pieces, trace, merged or MERGED_EVENTS)
    finally:
        if file is not None:
            file.close()


def _order_of(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the order by rank and start; None: the rows are sorted already."""
    rank, start = columns["rank"], columns["start"]
    same, later = rank[1:] == rank[:-1], start[1:] >= start[:-1]
    if bool(np.all((rank[1:] > rank[:-1]) | (same & later))):
        return None
    return np.lexsort((start, rank))


def _sorted(held: list[dict[str, PackedColumn]]) -> Iterator[tuple[str, np.ndarray]]:
    """Join and sort the columns of some blocks, one after the other; the blocks are emptied."""
    blocks = list(held)
    held.clear()

    def joined(name: str) -> np.ndarray:
        return np.concatenate([block[name].unpacked() for block in blocks] or [np.empty(0, COLUMNS[name])])

    order = _order_of({name: joined(name) for name in ("rank", "start")})
    for name in COLUMNS:
        # Column by column, so that only one is in memory as it is.
        column = joined(name)
        for block in blocks:
            del block[name]
        yield name, column if order is None else column[order]


def _stored(held: list[dict[str, PackedColumn]], file: ColumnFile) -> StoredRows:
    table = file.reserve(sum(len(block["rank"]) for block in held))
    for name, column in _sorted(held):
        table.write(name, 0, column)
    return table


class _Window:
    """A window on the next rows of a piece."""

    def __init__(self, piece: StoredRows, rows: int) -> None:
        self._piece = piece
        self._rows = rows
        self._low = 0
        self.keys: dict[str, np.ndarray] = {}
        self._fill()

    def _fill(self) -> None:
        self.keys = self._piece.read(self._low, self._low + self._rows, ("rank", "start"))

    def __len__(self) -> int:
        return len(self.keys["rank"])

    @property
    def last(self) -> tuple[int, int]:
        """Rank and start of the last row in the window."""
        return int(self.keys["rank"][-1]), int(self.keys["start"][-1])

    @property
    def sees_end(self) -> bool:
        """Whether the window reaches the end of the piece."""
        return self._low + len(self) >= len(self._piece)

    def until(self, bound: tuple[int, int], with_equals: bool) -> int:
        """Count the rows in the window before a key, with or without those equal to it."""
        rank, start = bound
        low = int(np.searchsorted(self.keys["rank"], rank, "left"))
        high = int(np.searchsorted(self.keys["rank"], rank, "right"))
        side: Literal["left", "right"] = "right" if with_equals else "left"
        return low + int(np.searchsorted(self.keys["start"][low:high], start, side))

    def take(self, count: int) -> dict[str, np.ndarray]:
        """Return the next rows, and advance the window."""
        rows = self._piece.read(self._low, self._low + count)
        self._low += count
        self._fill()
        return rows


def _merged(pieces: Sequence[StoredRows], trace: str, at_a_time: int) -> StoredRows:
    out = ColumnFile(trace).reserve(sum(map(len, pieces)))
    windows = [_Window(piece, max(at_a_time // len(pieces), _LEAST_WINDOW)) for piece in pieces]
    done = 0
    while windows := [window for window in windows if len(window)]:
        # Rows after the earliest end of a window may have to wait for rows that are not in a window yet.
        ends = [(window.last, place) for place, window in enumerate(windows) if not window.sees_end]
        bound, at = min(ends) if ends else (max(window.last for window in windows), len(windows))
        # Stability: of equal rows, those of earlier pieces come first. The piece of the bound may have more.
        taken = [
            window.take(count)
            for place, window in enumerate(windows)
            if (count := window.until(bound, with_equals=place <= at))
        ]
        keys = {name: np.concatenate([rows[name] for rows in taken]) for name in ("rank", "start")}
        order = _order_of(keys)
        for name in COLUMNS:
            column = np.concatenate([rows.pop(name) for rows in taken])
            out.write(name, done, column if order is None else column[order])
        done += len(keys["rank"])
    return out


_KINDS = tuple(np.dtype(kind) for kind in ("u1", "u2", "u4"))


class PackedColumn:
    """Integers as their least value and unsigned differences from it, in the fewest bytes."""

    def __init__(self, values: np.ndarray) -> None:
        self._dtype, self._length = values.dtype, len(values)
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        self._least = values.dtype.type(low)
        spread = high - low
        kind = next((kind for kind in _KINDS if spread <= np.iinfo(kind).max), values.dtype)
        self._differences: np.ndarray | None
        """None: all values are equal."""
        if not spread:
            self._differences = None
        elif kind.itemsize < values.dtype.itemsize:
            self._differences = (values - self._least).astype(kind)
        else:
            self._least, self._differences = values.dtype.type(0), values.copy()

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the differences."""
        return 0 if self._differences is None else self._differences.nbytes

    def unpacked(self, low: int = 0, high: int | None = None) -> np.ndarray:
        """Return the values from place `low` to `high`, in new memory unless nothing was packed."""
        low, high, _ = slice(low, high).indices(self._length)
        if self._differences is None:
            return np.full(max(high - low, 0), self._least)
        part = self._differences[low:high]
        if part.dtype == self._dtype:
            return part
        values = part.astype(self._dtype)
        values += self._least
        return values


EVENT_BYTES = sum(dtype.itemsize for dtype in COLUMNS.values())

_ALIGNMENT = 8


class ColumnFile:
    """Tables of events in an unnamed file below ``TMPDIR``.

    Tables are stored one after another, and so are the columns of each table.
    """

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self._end = 0
        with self._failures_told():
            # On Linux such a file has no name: even kill -9 leaves nothing behind.
            self._file = tempfile.TemporaryFile(buffering=0, prefix="ensio-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def reserve(self, length: int) -> StoredRows:
        """Reserve space for a table."""
        places = {}
        begin = self._end
        for name, dtype in COLUMNS.items():
            places[name] = self._end
            self._end += -(-length * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        with self._failures_told():
            os.ftruncate(self._file.fileno(), self._end)
            if self._end > begin:
                # Access to a mapped page that the disk has no space for would raise SIGBUS.
                os.posix_fallocate(self._file.fileno(), begin, self._end - begin)
        return StoredRows(self, places, length)

    def write(self, place: int, values: np.ndarray) -> None:
        """Write an array at an offset in bytes."""
        view = np.ascontiguousarray(values).data.cast("B")
        with self._failures_told():
            while len(view):
                done = os.pwrite(self._file.fileno(), view, place)
                view, place = view[done:], place + done

    def read(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """Read an array at an offset in bytes into new memory."""
        values = np.empty(length, dtype)
        view = values.data.cast("B") if length else memoryview(b"")
        with self._failures_told():
            while len(view):
                done = os.preadv(self._file.fileno(), [view], place)
                if not done:
                    raise OSError(0, "the file was truncated")
                view, place = view[done:], place + done
        return values

    def map(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """Map an array at an offset in bytes: the kernel loads pages on access and may drop them again."""
        if not length:
            return np.empty(0, dtype)
        first = place // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        size = place - first + length * dtype.itemsize
        with self._failures_told():
            mapping = mmap.mmap(self._file.fileno(), size, prot=mmap.PROT_READ, offset=first)
        return np.frombuffer(mapping, dtype, length, place - first)

    def close(self) -> None:
        """Close the file. Mapped arrays remain valid."""
        self._file.close()

    @contextmanager
    def _failures_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")
            raise EnsioError(
                f"the calls of {self._trace} do not fit into {folder} ({error.strerror or error}): "
                f"set TMPDIR to a folder with space for {2 * EVENT_BYTES} bytes per call"
            ) from error


class StoredRows:
    """A table of events in a `ColumnFile`, made by `ColumnFile.reserve`."""

    def __init__(self, file: ColumnFile, places: dict[str, int], length: int) -> None:
        self._file = file
        self._places = places
        self._length = length

    def __len__(self) -> int:
        return self._length

    def write(self, name: str, low: int, values: np.ndarray) -> None:
        """Write rows of a column, from row `low` on."""
        self._file.write(self._places[name] + low * COLUMNS[name].itemsize, values)

    def read(self, low: int, high: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Read rows into new memory; if they are all rows, map them from the file."""
        low, high = max(low, 0), min(high, self._length)
        get = self._file.map if high - low == self._length else self._file.read
        return {
            name: get(self._places[name] + low * COLUMNS[name].itemsize, max(high - low, 0), COLUMNS[name])
            for name in (COLUMNS if names is None else names)
        }
