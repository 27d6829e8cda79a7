"""Tables of events in temporary files, and their merge by rank and start through a window on each."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Literal

import numpy as np

from ensembles.model.events import COLUMNS

MERGED_EVENTS = 1 << 20
"""Number of events that are sorted in memory, or in the windows of a merge: 56 bytes each, twice."""

_LEAST_WINDOW = 256


def order_of(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the order by rank and start; None: the rows are sorted already."""
    rank, start = columns["rank"], columns["start"]
    same, later = rank[1:] == rank[:-1], start[1:] >= start[:-1]
    if bool(np.all((rank[1:] > rank[:-1]) | (same & later))):
        return None
    return np.lexsort((start, rank))


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

    def _key(self, row: int) -> tuple[int, int]:
        return int(self.keys["rank"][row]), int(self.keys["start"][row])

    @property
    def first(self) -> tuple[int, int]:
        """Rank and start of the first row in the window."""
        return self._key(0)

    @property
    def last(self) -> tuple[int, int]:
        """Rank and start of the last row in the window."""
        return self._key(-1)

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


def merged_blocks(pieces: Sequence[StoredRows], at_a_time: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the rows of sorted tables in the order of all, stably, about `at_a_time` of them at a time."""
    windows = [_Window(piece, max(at_a_time // len(pieces), _LEAST_WINDOW)) for piece in pieces]
    waiting = [(window.first, place) for place, window in enumerate(windows) if len(window)]
    heapify(waiting)
    while waiting:
        # Rows after the earliest end of a window may have to wait for rows that are not in a window yet.
        bound, seen = None, []
        while waiting and (bound is None or waiting[0][0] <= bound[0]):
            _, place = heappop(waiting)
            seen.append(place)
            if not windows[place].sees_end:
                end = windows[place].last, place
                bound = end if bound is None else min(bound, end)
        last, at = bound or (max(windows[place].last for place in seen), len(windows))
        # Stability: of equal rows, those of earlier pieces come first. The piece of the bound may have more.
        taken = [
            windows[place].take(count)
            for place in sorted(seen)
            if (count := windows[place].until(last, with_equals=place <= at))
        ]
        for place in seen:
            if len(windows[place]):
                heappush(waiting, (windows[place].first, place))
        keys = {name: np.concatenate([rows[name] for rows in taken]) for name in ("rank", "start")}
        order = order_of(keys)
        joined = {name: np.concatenate([rows.pop(name) for rows in taken]) for name in COLUMNS}
        yield joined if order is None else {name: column[order] for name, column in joined.items()}


EVENT_BYTES = sum(dtype.itemsize for dtype in COLUMNS.values())

_ALIGNMENT = 8


class ColumnFile:
    """Tables of events in an unnamed file, by default below ``TMPDIR``.

    Tables are stored one after another, and so are the columns of each table. `reason_of`: makes the error
    for one of the disk.
    """

    def __init__(
        self, folder: str | None = None, reason_of: Callable[[OSError], Exception] | None = None
    ) -> None:
        self._reason_of = reason_of
        self._end = 0
        with self._failures_told():
            # On Linux such a file has no name: even kill -9 leaves nothing behind.
            self._file = tempfile.TemporaryFile(buffering=0, prefix=".ensio-", dir=folder)  # noqa: SIM115
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

    def stored(self, length: int, columns: Iterable[tuple[str, np.ndarray]]) -> StoredRows:
        """Store a table."""
        table = self.reserve(length)
        for name, column in columns:
            table.write(name, 0, column)
        return table

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
            if self._reason_of is None:
                raise
            raise self._reason_of(error) from error


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
