"""Bytes of one file by offset and time, and by offset and rank."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.model.units import SCREEN_CELLS
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.runtotals import DIRECTIONS, direction_in_layer
from ensembles.summaries.timegrid import TimeGrid

ROWS = SCREEN_CELLS // 2
"""Largest number of cells of time, and of rows of ranks."""

OFFSETS = ROWS // 2
"""Largest number of cells of offsets."""


class OffsetMap(Summary):
    """A mergeable summary: bytes read and written in a file by offset, over time and by rank.

    The bytes of a call are spread evenly over their offsets and over the duration of the call. All bytes are
    counted exactly: the cells add up to the bytes of the calls.

    `calls`: number of calls that moved bytes at known offsets.
    `without_offset`: number of calls that moved bytes at unknown offsets, which are left out.
    """

    columns = ("rank", "call", "file", "offset", "moved", "start", "duration")
    requires = ANY_ORDER
    added_up = ("_grid", "calls", "without_offset")

    def __init__(self, file: int, layer: str, tasks: int, span_ns: tuple[int, int]) -> None:
        self.file, self.layer, self.tasks = file, layer, max(tasks, 1)
        self.span_ns = span_ns[0], max(span_ns[1], span_ns[0] + 1)
        self.ranks_per_row = -(-self.tasks // ROWS)
        self.rank_rows = -(-self.tasks // self.ranks_per_row)
        # Rows of ranks by direction, and behind them cells of time by direction.
        self._times_from = len(DIRECTIONS) * self.rank_rows
        self._grid = TimeGrid(self._times_from + len(DIRECTIONS) * ROWS, OFFSETS)
        self.calls = self.without_offset = 0

    def add(self, chunk: Events) -> None:
        """Add events; those of other files and layers are left out."""
        direction = direction_in_layer(chunk, self.layer)
        mine = (direction >= 0) & (chunk.file == self.file) & (chunk.moved > 0)
        known = np.flatnonzero(mine & (chunk.offset >= 0))
        self.calls += len(known)
        self.without_offset += int(np.count_nonzero(mine)) - len(known)
        if not len(known):
            return
        columns = [getattr(chunk, name) for name in ("rank", "offset", "moved", "start", "duration")]
        columns.append(direction)
        if len(known) < len(chunk):
            columns = [column.take(known) for column in columns]
        rank, offset, moved, start, duration, direction = columns
        if int(rank.max()) >= self.tasks:
            raise ValueError(f"an event is of rank {rank.max()}, but there are {self.tasks} tasks")
        begin, end = self._places(start, duration)
        cell, last = (np.clip(place, 0, ROWS - 1e-6).astype(np.int32) for place in (begin, end))
        row = direction * np.int32(ROWS)
        row += np.int32(self._times_from)
        whole = row + cell
        cut = np.flatnonzero((cell != last) | (begin < 0) | (end > ROWS))
        whole[cut] = -1
        direction *= np.int32(self.rank_rows)
        direction += (rank // np.uint32(self.ranks_per_row)).astype(np.int32)
        self._grid.add(offset, moved, np.stack([direction, whole]), moved)
        if len(cut):
            some, cell, part = _over_cells(begin[cut], end[cut], cell[cut], last[cut], moved[cut])
            some = cut[some]
            self._grid.add(offset[some], moved[some], row[some] + cell, part)

    def cover(self, low: int, high: int) -> None:
        """Extend the axis of offsets to those from `low`, before `high`."""
        self._grid.add_extent((low, high))

    def _places(self, start: np.ndarray, duration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where calls begin and end, counted in cells of time."""
        low, high = self.span_ns
        scale = ROWS / (high - low)
        begin = np.clip((start - low) * scale, 0, ROWS - 1e-6)
        return begin, np.clip((start + duration - low) * scale, begin, ROWS - 1e-6)

    @property
    def offset_edges(self) -> np.ndarray:
        """Edges of the cells of offsets in bytes: int64, shape (offsets + 1,)."""
        return self._grid.edges_ns

    @property
    def time_edges_s(self) -> np.ndarray:
        """Edges of the cells of time in s since the origin: float64, shape (times + 1,)."""
        low, high = self.span_ns
        return (low + np.arange(ROWS + 1) * ((high - low) / ROWS)) * 1e-9

    def by_time(self, op: str) -> np.ndarray:
        """Return the bytes by time and offset: int64, shape (times, offsets)."""
        first = self._times_from + DIRECTIONS.index(op) * ROWS
        return self._grid.values[first : first + ROWS]

    def by_rank(self, op: str) -> np.ndarray:
        """Return the bytes by row of ranks and offset: int64, shape (rows, offsets)."""
        first = DIRECTIONS.index(op) * self.rank_rows
        return self._grid.values[first : first + self.rank_rows]


class WindowMap(OffsetMap):
    """The offset map of a time: calls count with the part of their bytes that they moved in it.

    The cells of time divide the window only. What is by rank counts the calls with all of their bytes.
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

    def _places(self, start: np.ndarray, duration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.span_ns
        scale = ROWS / (high - low)
        return (start - low) * scale, (start + duration - low) * scale


def _over_cells(
    begin: np.ndarray, end: np.ndarray, first: np.ndarray, last: np.ndarray, moved: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide calls among the cells that they cover: call, cell and bytes of each part with any."""
    count = last - first + 1
    call = np.repeat(np.arange(len(first)), count)
    place = np.arange(len(call), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count)
    cell = first[call] + place
    width = np.maximum(end - begin, 1e-12)[call]
    shares = [np.clip((cell + more - begin[call]) / width, 0.0, 1.0) for more in (0, 1)]
    # The last part of a call that ends here has all the rest.
    shares[1][(place == count[call] - 1) & (end <= ROWS)[call]] = 1.0
    # Differences of rounded sums add up to the whole.
    before, until = (np.floor(share * moved[call]).astype(np.int64) for share in shares)
    some = np.flatnonzero(until > before)
    return call[some], cell[some].astype(np.int32), (until - before)[some]


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
