"""The interface of readers of other tools' formats, and the run that is made from them.

A reader makes one pass over its trace and yields blocks of columns in the order of the trace. The rest is
common to all formats: sorting by rank and start, and the interface of a run.

Blocks of calls are sorted by rank and start in bounded memory (external merge sort). Calls that do not fit
into memory are sorted in pieces, which are stored in a temporary file. The pieces are merged into a second
file through a window on each piece.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, MISSING, Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import SurroundingsTable, surroundings_of
from ensembles.model.units import HELD_EVENTS, ROWS_AT_ONCE, count_text
from ensembles.passes.damage import DamageReport
from ensembles.passes.memory import Budget
from ensembles.passes.reading import RankSizes, ReadRequest
from ensembles.readers.common.columns import NEEDED, CompletionOrder, unsound
from ensembles.readers.common.row_files import (
    EVENT_BYTES,
    MERGED_EVENTS,
    ColumnFile,
    StoredRows,
    merged_blocks,
    order_of,
)
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

DEFAULTS = {"thread": 0, "depth": 0, "carried": 0, "file": 0, "offset": -1, "error": 0, **MISSING}
"""Values of the columns that a block may lack. Every block has the other columns."""

CARRIED_BY = {op: CONSTANTS[f"ENSIO_CARRIED_{op.upper()}"] for op in ("read", "write")}
"""Bit of the column ``carried`` of calls inside a read, and inside a write."""


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
    kept = None

    def __init__(self, path: str, trace: ForeignTrace, budget: Budget | None = None) -> None:
        self.path = path
        self._trace = trace
        self.regions, self.summary, self.ranks = trace.regions, trace.summary, trace.ranks
        self._impossible = 0
        in_memory = HELD_EVENTS
        if budget is not None:
            in_memory = min(in_memory, max(budget.held_events, ROWS_AT_ONCE))
        try:
            self._table = sorted_table(self._blocks(), path, in_memory)
            if trace.summary() is not None:  # sums stand for all calls
                self._table = sorted_table((), path)
        except MemoryError as error:
            raise EnsioError(f"the calls of {path} do not fit into memory: take a part of it") from error
        self.metadata = trace.metadata
        if self._impossible:
            what = f"left out {count_text(self._impossible, 'call')} with impossible times or numbers"
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

    def _blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the blocks of the trace with all columns; calls with impossible values are left out."""
        for block in self._trace.blocks(ROWS_AT_ONCE):
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
        return Events.partly(columns, self.metadata.calls, self.metadata.files, self.metadata.sites)

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

    def reason_of(error: OSError) -> EnsioError:
        folder = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")
        return EnsioError(
            f"the calls of {trace} do not fit into {folder} ({error.strerror or error}): "
            f"set TMPDIR to a folder with space for {2 * EVENT_BYTES} bytes per call"
        )

    in_memory = in_memory or HELD_EVENTS
    held: list[dict[str, PackedColumn]] = []
    count = 0
    pieces: list[StoredRows] = []
    file: ColumnFile | None = None
    try:
        for block in blocks:
            length = len(block["rank"])
            if held and count + length > in_memory:
                file = file or ColumnFile(reason_of=reason_of)
                pieces.append(file.stored(count, _sorted(held)))
                held, count = [], 0
            held.append({name: PackedColumn(column) for name, column in block.items()})
            count += length
            del block  # so that the reader can free it before it makes the next one
        if file is None:
            return MemoryTable({name: PackedColumn(column) for name, column in _sorted(held)})
        pieces.append(file.stored(count, _sorted(held)))
        out = ColumnFile(reason_of=reason_of).reserve(sum(map(len, pieces)))
        done = 0
        for block in merged_blocks(pieces, merged or MERGED_EVENTS):
            for name, column in block.items():
                out.write(name, done, column)
            done += len(block["rank"])
        return out
    finally:
        if file is not None:
            file.close()


def _sorted(held: list[dict[str, PackedColumn]]) -> Iterator[tuple[str, np.ndarray]]:
    """Join and sort the columns of some blocks, one after the other; the blocks are emptied."""
    blocks = list(held)
    held.clear()

    def joined(name: str) -> np.ndarray:
        return np.concatenate([block[name].unpacked() for block in blocks] or [np.empty(0, COLUMNS[name])])

    order = order_of({name: joined(name) for name in ("rank", "start")})
    for name in COLUMNS:
        # Column by column, so that only one is in memory as it is.
        column = joined(name)
        for block in blocks:
            del block[name]
        yield name, column if order is None else column[order]


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
