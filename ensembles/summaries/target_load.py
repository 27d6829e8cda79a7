"""Load of storage targets over time: bytes, calls, and time in calls."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.model.layouts import Layouts
from ensembles.model.units import SCREEN_CELLS
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.offset_map import ROWS
from ensembles.summaries.runtotals import DIRECTIONS, direction_in_layer
from ensembles.summaries.timegrid import TimeGrid

LAYERS = ("posix", "stdio")
"""Layers whose calls have contiguous bytes in a file. A call of MPI-IO or HDF5 may have gaps between them."""

AMOUNTS = (*(f"{op}_bytes" for op in DIRECTIONS), "time_ns", "calls")


class TargetLoad(Summary):
    """A mergeable summary: bytes, time and calls of storage targets over time.

    Bytes count at the target on which they lie, and spread evenly over the duration of their call. A call
    counts at each target that it reaches, with its whole duration, as the call takes as long as its slowest
    target. What the page cache of the node holds back reaches the target later than the call.

    `known_bytes`, `unknown_bytes`: bytes of calls of this layer whose target follows from the layouts, and of
    the others.
    """

    columns = ("call", "file", "offset", "moved", "start", "duration")
    requires = ANY_ORDER
    results = ("known_bytes", "unknown_bytes", "_grid", "_totals")
    added_up = ("_grid", "_totals", "known_bytes", "unknown_bytes")

    def __init__(self, layouts: Layouts, layer: str) -> None:
        self._layouts, self._layer = layouts, layer
        self.targets_per_row = -(-max(len(layouts.targets), 1) // ROWS)
        self.rows = -(-len(layouts.targets) // self.targets_per_row)
        self._grid = TimeGrid(len(AMOUNTS) * self.rows, SCREEN_CELLS)
        self._totals = np.zeros((len(AMOUNTS), len(layouts.targets)), np.int64)
        self.known_bytes = self.unknown_bytes = 0

    def add(self, chunk: Events) -> None:
        """Add events; those of other layers are left out."""
        direction = direction_in_layer(chunk, self._layer)
        mine = np.flatnonzero((direction >= 0) & (chunk.moved > 0))
        moved, known = chunk.moved[mine].astype(np.int64), 0
        start, duration = chunk.start[mine], np.maximum(chunk.duration[mine], 0)
        ranges = chunk.file[mine].astype(np.int64), chunk.offset[mine].astype(np.int64), moved
        for number, target, bytes_ in self._layouts.pieces(*ranges):
            known += int(bytes_.sum())
            of_op = direction[mine][number]
            row = target // self.targets_per_row
            self._grid.add(
                start[number], duration[number], (of_op * self.rows + row).astype(np.int32), bytes_
            )
            np.add.at(self._totals, (of_op, target), bytes_)
            self._add_calls(number, target, start, duration)
        self.known_bytes += known
        self.unknown_bytes += int(moved.sum()) - known

    def _add_calls(
        self, number: np.ndarray, target: np.ndarray, start: np.ndarray, duration: np.ndarray
    ) -> None:
        """Add calls and their time, once at each target, even if they reach it by several stripes."""
        reached = np.unique(number * len(self._layouts.targets) + target)
        number, target = np.divmod(reached, len(self._layouts.targets))
        row = (target // self.targets_per_row).astype(np.int32)
        begin, took = start[number], duration[number]
        time, calls = (AMOUNTS.index(name) for name in ("time_ns", "calls"))
        self._grid.add(begin, took, row + np.int32(time * self.rows))
        once = np.ones(len(number), np.int64)
        self._grid.add(begin, np.zeros_like(took), row + np.int32(calls * self.rows), once)
        np.add.at(self._totals[time], target, took)
        np.add.at(self._totals[calls], target, 1)

    @property
    def targets(self) -> np.ndarray:
        """Indices of the targets, rising: int64, shape (targets,)."""
        return self._layouts.targets

    @property
    def edges_ns(self) -> np.ndarray:
        """Edges of the cells of time in ns since the origin: int64, shape (cells + 1,)."""
        return self._grid.edges_ns

    @property
    def extent_ns(self) -> tuple[int, int]:
        """First and last moment in ns since the origin; (0, 0): no bytes with known targets."""
        return self._grid.low_ns or 0, self._grid.high_ns or 0

    def over_time(self, amount: str) -> np.ndarray:
        """Return an amount by row of targets and cell of time: int64, shape (rows, cells)."""
        first = AMOUNTS.index(amount) * self.rows
        return self._grid.values[first : first + self.rows]

    def of_targets(self, amount: str) -> np.ndarray:
        """Return an amount of each target: int64, shape (targets,)."""
        found: np.ndarray = self._totals[AMOUNTS.index(amount)]
        return found
