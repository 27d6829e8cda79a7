"""Bytes of one file by offset and time, and by offset and rank."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.summaries.timegrid import TimeGrid

ROWS = 512
"""Largest number of cells of time, and of rows of ranks."""

OFFSETS = 256
"""Largest number of cells of offsets."""


class OffsetMap(Summary):
    """A mergeable summary: bytes read and written in a file by offset, over time and by rank.

    The bytes of a call are spread evenly over their offsets and over the duration of the call. All bytes are
    counted exactly: the cells add up to the bytes of the calls.

    Parameters
    ----------
    file : int
        Number of the file, as in the events.
    layer : str
        Layer of the calls: those of other layers contain them or are contained, and would count twice.
    tasks : int
        Number of tasks; ranks are below it.
    span_ns : (int, int)
        First moment of the run and the moment after the last, ns since the origin. Calls outside of it count
        at its ends.

    Attributes
    ----------
    calls : int
        Number of calls that moved bytes at known offsets.
    without_offset : int
        Number of calls that moved bytes at unknown offsets, which are left out.

    Examples
    --------
    >>> from ensembles.summaries.offset_map import OffsetMap
    >>> run = en.open("ensio-ior")
    >>> found = OffsetMap(1, "posix", run.tasks, (0, 10**9))
    >>> found.add(run.events)
    >>> found.calls, int(found.by_rank("write").sum())
    (320, 167772160)
    """

    columns = ("rank", "call", "file", "offset", "moved", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, file: int, layer: str, tasks: int, span_ns: tuple[int, int]) -> None:
        self.file, self.layer, self.tasks = file, layer, max(tasks, 1)
        self.span_ns = span_ns[0], max(span_ns[1], span_ns[0] + 1)
        self.ranks_per_row = -(-self.tasks // ROWS)
        self.rank_rows = -(-self.tasks // self.ranks_per_row)
        self._ranks = TimeGrid(len(DIRECTIONS) * self.rank_rows, OFFSETS)
        self._times = TimeGrid(len(DIRECTIONS) * ROWS, OFFSETS)
        self.calls = self.without_offset = 0

    def add(self, chunk: Events) -> None:
        """Add events; those of other files and layers are left out.

        Raises
        ------
        ValueError
            A rank is not below the number of tasks.
        """
        direction = self._directions(chunk)[chunk.call]
        mine = np.flatnonzero((chunk.file == self.file) & (direction >= 0) & (chunk.moved > 0))
        known = mine[chunk.offset[mine] >= 0]
        self.calls += len(known)
        self.without_offset += len(mine) - len(known)
        if not len(known):
            return
        if int(chunk.rank[known].max()) >= self.tasks:
            raise ValueError(
                f"an event is of rank {chunk.rank[known].max()}, but there are {self.tasks} tasks"
            )
        offset, moved = chunk.offset[known].astype(np.int64), chunk.moved[known].astype(np.int64)
        row = direction[known] * self.rank_rows + chunk.rank[known] // self.ranks_per_row
        self._ranks.add(offset, moved, row.astype(np.int32), moved)
        call, cell, part = self._over_time(chunk.start[known], chunk.duration[known], moved)
        row = direction[known][call] * ROWS + cell
        some = np.flatnonzero(part > 0)
        call = call[some]
        self._times.add(offset[call], moved[call], row[some].astype(np.int32), part[some])

    def _directions(self, chunk: Events) -> np.ndarray:
        """Return the direction of each function; -1: its calls do not count."""
        numbers = [
            DIRECTIONS.index(call.op) if call.op in DIRECTIONS and call.layer == self.layer else -1
            for call in chunk.calls
        ]
        return np.array([*numbers, -1], np.int64)

    def cover(self, low: int, high: int) -> None:
        """Extend the axis of offsets to those from `low`, before `high`."""
        self._ranks.add_extent((low, high))
        self._times.add_extent((low, high))

    def _over_time(
        self, start: np.ndarray, duration: np.ndarray, moved: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Divide calls among the cells of time that they cover: call, cell and bytes of each part."""
        low, high = self.span_ns
        scale = ROWS / (high - low)
        begin = np.clip((start - low) * scale, 0, ROWS - 1e-6)
        end = np.clip((start + duration - low) * scale, begin, ROWS - 1e-6)
        first = begin.astype(np.int64)
        count = end.astype(np.int64) - first + 1
        short, long = np.flatnonzero(count == 1), np.flatnonzero(count > 1)
        if not len(long):
            return short, first, moved
        begin, end, count = begin[long], end[long], count[long]
        place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        number = np.repeat(np.arange(len(long)), count)
        call = long[number]
        cell = first[call] + place
        width = np.maximum(end - begin, 1e-12)[number]
        until = np.clip((cell + 1 - begin[number]) / width, 0.0, 1.0)
        until[place == count[number] - 1] = 1.0
        # Differences of rounded sums add up to the whole.
        below = np.floor(until * moved[call]).astype(np.int64)
        part = np.where(place == 0, below, below - np.roll(below, 1))
        return (
            np.concatenate([short, call]),
            np.concatenate([first[short], cell]),
            np.concatenate([moved[short], part]),
        )

    def merge(self, other: OffsetMap) -> None:
        """Add what another summary of the same file counted."""
        self._ranks.merge(other._ranks)
        self._times.merge(other._times)
        self.calls += other.calls
        self.without_offset += other.without_offset

    @property
    def offset_edges(self) -> np.ndarray:
        """Edges of the cells of offsets in bytes: int64, shape (offsets + 1,)."""
        return self._ranks.edges_ns

    @property
    def time_edges_s(self) -> np.ndarray:
        """Edges of the cells of time in s since the origin: float64, shape (times + 1,)."""
        low, high = self.span_ns
        return (low + np.arange(ROWS + 1) * ((high - low) / ROWS)) * 1e-9

    def by_time(self, op: str) -> np.ndarray:
        """Return the bytes by time and offset: int64, shape (times, offsets)."""
        rows = slice(DIRECTIONS.index(op) * ROWS, (DIRECTIONS.index(op) + 1) * ROWS)
        return self._times.values[rows]

    def by_rank(self, op: str) -> np.ndarray:
        """Return the bytes by row of ranks and offset: int64, shape (rows, offsets)."""
        first = DIRECTIONS.index(op) * self.rank_rows
        return self._ranks.values[first : first + self.rank_rows]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``offset_edges``, ``time_edges_s``, and the bytes ``by_time`` and ``by_rank`` of each op."""
        arrays = {"offset_edges": self.offset_edges, "time_edges_s": self.time_edges_s}
        for op in DIRECTIONS:
            arrays |= {f"{op}_by_time": self.by_time(op), f"{op}_by_rank": self.by_rank(op)}
        return arrays


class WindowMap(OffsetMap):
    """The offset map of a time: calls count with the part of their bytes that they moved in it.

    The cells of time divide the window only. What is by rank counts the calls with all of their bytes.

    Parameters
    ----------
    file, layer, tasks
        As for `OffsetMap`.
    span_ns : (int, int)
        The window; its end is excluded.
    offsets : (int, int)
        First offset and end of the axis, as that of the whole run has them.

    Examples
    --------
    >>> from ensembles.summaries.offset_map import WindowMap
    >>> run = en.open("ensio-ior")
    >>> first, last = int(run.events.start.min()), int(run.events.end.max())
    >>> halves = [(first, (first + last) // 2), ((first + last) // 2, last)]
    >>> found = [WindowMap(1, "posix", run.tasks, span, (0, 1 << 27)) for span in halves]
    >>> for each in found:
    ...     each.add(run.events)
    >>> sum(int(each.by_time("write").sum()) for each in found) == 167772160
    True
    """

    def __init__(
        self, file: int, layer: str, tasks: int, span_ns: tuple[int, int], offsets: tuple[int, int]
    ) -> None:
        super().__init__(file, layer, tasks, span_ns)
        self.cover(*offsets)

    def add(self, chunk: Events) -> None:
        """Add events; those outside of the window are left out."""
        low, high = self.span_ns
        inside = (chunk.start < high) & (chunk.start + np.maximum(chunk.duration, 1) > low)
        super().add(chunk if inside.all() else chunk[np.flatnonzero(inside)])

    def _over_time(
        self, start: np.ndarray, duration: np.ndarray, moved: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low, high = self.span_ns
        scale = ROWS / (high - low)
        begin, end = (start - low) * scale, (start + duration - low) * scale
        first = np.clip(begin, 0, ROWS - 1e-6).astype(np.int64)
        count = np.clip(end, 0, ROWS - 1e-6).astype(np.int64) - first + 1
        call = np.repeat(np.arange(len(first)), count)
        place = np.arange(len(call)) - np.repeat(np.cumsum(count) - count, count)
        cell = first[call] + place
        width = np.maximum(end - begin, 1e-12)[call]
        shares = [np.clip((cell + more - begin[call]) / width, 0.0, 1.0) for more in (0, 1)]
        # The last part of a call that ends in the window has all the rest.
        shares[1][(place == count[call] - 1) & (end <= ROWS)[call]] = 1.0
        before, until = (np.floor(share * moved[call]).astype(np.int64) for share in shares)
        return call, cell, until - before


def transfer_layers(events: Events) -> list[str]:
    """Return the layers whose reads and writes moved bytes, those with the most bytes first."""
    moved: dict[str, int] = {}
    transfers = {OPS.index(op) for op in DIRECTIONS}
    for number in np.unique(events.call).tolist():
        call = events.calls[number]
        if OPS.index(call.op) in transfers:
            mine = events.moved[events.call == number]
            moved[call.layer] = moved.get(call.layer, 0) + int(mine[mine > 0].sum())
    return sorted((layer for layer, count in moved.items() if count), key=lambda layer: -moved[layer])
