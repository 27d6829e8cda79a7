"""I/O by phase and region: how often and how long the program was in each, and its time in I/O there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.events import OPS, Events, op_of_calls
from ensembles.regiontable import KINDS, RegionTable


@dataclass(slots=True)
class RegionTotals:
    """What all occurrences of one phase or region add up to.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
    count, tasks, not_ended : int
        Occurrences, tasks that have any, occurrences whose end was not recorded.
    time_ns : int
        Durations of all occurrences, added.
    io_time_ns : int
        Of the outermost calls that started in it, in any thread of its task, but waiting for other tasks.
    """

    kind: str
    name: str
    count: int
    tasks: int
    not_ended: int
    time_ns: int
    io_time_ns: int = 0


class RegionTimes:
    """The totals of every phase and region of a run, in the order of their first start.

    Parameters
    ----------
    table : RegionTable
    """

    def __init__(self, table: RegionTable) -> None:
        self.totals: list[RegionTotals] = []
        self._spans = []
        keys = table.name.astype(np.int64) * len(KINDS) + table.kind
        found = np.unique(keys)
        earliest = [int(table.start[keys == key].min()) for key in found]
        for key in found[np.argsort(earliest, kind="stable")]:
            part = table[keys == key]
            kind, name = KINDS[key % len(KINDS)], table.names[key // len(KINDS)]
            ended = int(np.count_nonzero(part.ended))
            tasks, time_ns = len(np.unique(part.rank)), int(part.duration.sum())
            self.totals.append(RegionTotals(kind, name, len(part), tasks, len(part) - ended, time_ns))
            self._spans.append(part.spans())

    def add(self, chunk: Events) -> None:
        """Add the calls of a chunk to the phases and regions that they started in."""
        if not self.totals or not len(chunk):
            return
        is_io = op_of_calls(chunk.calls)[chunk.call] != OPS.index("wait")
        calls = chunk[is_io & (chunk.depth == 0)]
        for totals, spans in zip(self.totals, self._spans, strict=True):
            totals.io_time_ns += int(calls.duration[spans.hold(calls.rank, calls.start)].sum())

    def merge(self, other: RegionTimes) -> None:
        """Add the calls that another one of the same table holds."""
        for mine, theirs in zip(self.totals, other.totals, strict=True):
            mine.io_time_ns += theirs.io_time_ns
