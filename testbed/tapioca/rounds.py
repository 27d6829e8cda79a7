"""Which byte goes to which aggregator in which round.

A buffer of an aggregator covers one window of the file in each round. There are two ways to distribute the
windows of a range of the file:

``partitions``  each aggregator has one contiguous part, and walks through it; as in the text of the paper
                and in ROMIO
``cyclic``      the windows of a round are contiguous: aggregator 0 has the first, 1 the second, and so on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from testbed.tapioca.described import Writes

Domains = Literal["partitions", "cyclic"]
Columns = NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """Pieces of the writes, cut at the ends of windows; a row for each."""

    aggregators: int
    buffer_bytes: int
    # aggregator, round, task, offset, size: A row goes from a task into the buffer of an aggregator in a
    # round
    aggregator: Columns
    round: Columns
    task: Columns
    offset: Columns
    size: Columns

    @property
    def rounds(self) -> int:
        """Number of rounds, 0 without a byte."""
        return int(self.round.max()) + 1 if len(self.round) else 0

    @property
    def window(self) -> Columns:
        """Number of each row's window, by round and then by aggregator."""
        return self.round * self.aggregators + self.aggregator

    def fill(self) -> NDArray[np.float64]:
        """Return how full each buffer is, from 0 to 1, shape (rounds, aggregators)."""
        count = self.rounds * self.aggregators
        sums = np.bincount(self.window, self.size, count) / self.buffer_bytes
        return sums.reshape(self.rounds, self.aggregators)

    def sent_bytes(self, node_of_task: Columns) -> Columns:
        """Return the bytes from each node to each aggregator, shape (aggregators, nodes)."""
        nodes = int(node_of_task.max()) + 1
        key = self.aggregator * nodes + node_of_task[self.task]
        sums = np.bincount(key, self.size, self.aggregators * nodes)
        return np.rint(sums).astype(np.int64).reshape(self.aggregators, nodes)


def cut(offset: Columns, size: Columns, edges_bytes: int, start: int = 0) -> tuple[Columns, Columns, Columns]:
    """Cut ranges at the multiples of a length.

    Examples
    --------
    >>> [column.tolist() for column in cut(np.array([3]), np.array([6]), 4)]
    [[0, 0, 0], [3, 4, 8], [1, 4, 1]]
    """
    row = np.flatnonzero(size > 0)
    low, high = offset[row] - start, offset[row] + size[row] - start
    first = low // edges_bytes
    count = (high - 1) // edges_bytes - first + 1
    owner = np.repeat(np.arange(len(row)), count)
    window = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    begin = np.maximum(low[owner], window * edges_bytes)
    end = np.minimum(high[owner], (window + 1) * edges_bytes)
    return row[owner], begin + start, end - begin


def schedule(
    writes: Writes, aggregators: int, buffer_bytes: int, domains: Domains, align_bytes: int = 1
) -> Schedule:
    """Distribute the bytes of writes over aggregators and rounds."""
    if aggregators < 1 or buffer_bytes < 1 or align_bytes < 1:
        raise ValueError("aggregators, buffers and alignment are at least 1")
    some = writes.size > 0
    if not some.any():
        none = np.zeros(0, np.int64)
        return Schedule(aggregators, buffer_bytes, none, none, none, none, none)
    low = int(writes.offset[some].min()) // align_bytes * align_bytes
    high = int((writes.offset + writes.size)[some].max())
    if domains == "cyclic":
        row, offset, size = cut(writes.offset, writes.size, buffer_bytes, low)
        window = (offset - low) // buffer_bytes
        aggregator, number = window % aggregators, window // aggregators
    else:
        part = -(-(high - low) // aggregators)
        part = -(-part // align_bytes) * align_bytes
        by_part, offset, size = cut(writes.offset, writes.size, part, low)
        # Windows begin anew in each part: cut along a file in which parts are whole numbers of windows.
        stretched = -(-part // buffer_bytes) * buffer_bytes
        shift = (offset - low) // part * (stretched - part)
        again, place, size = cut(offset - low + shift, size, buffer_bytes)
        row, offset = by_part[again], place - shift[again] + low
        aggregator = (offset - low) // part
        number = (offset - low) % part // buffer_bytes
    return Schedule(aggregators, buffer_bytes, aggregator, number, writes.task[row], offset, size)
