"""Described writes: what each task is going to write, before any of it is written.

TAPIOCA gets all writes of a program at once (``TAPIOCA_Init`` of the paper), MPI-IO one collective call
at a time. Both read the same table here: a row is one variable of one task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Layout = Literal["aos", "soa"]

HACC_BYTES = (4, 4, 4, 4, 4, 4, 4, 8, 2)
"""Bytes of the nine variables of a particle: seven floats, an identifier and a mask. Together 38."""


@dataclass(frozen=True)
class Writes:
    """Writes of all tasks of a program into one file."""

    tasks: int  # Number of tasks; some may write nothing
    # task, offset, size, call: A row for each variable of each task: who writes, where in the file, how many
    # bytes, and in which collective call, from 0. Rows of 0 bytes are allowed.
    task: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    call: NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = (self.task, self.offset, self.size, self.call)
        if len({len(column) for column in columns}) != 1:
            raise ValueError("task, offset, size and call have different lengths")
        if self.tasks < 1:
            raise ValueError("there is no task")
        if not len(self.task):
            return
        if min(int(column.min()) for column in columns) < 0:
            raise ValueError("a task, an offset, a size or a call is negative")
        if int(self.task.max()) >= self.tasks:
            raise ValueError(f"task {int(self.task.max())} of {self.tasks}")
        order = np.argsort(self.offset, kind="stable")
        order = order[self.size[order] > 0]
        ends = self.offset[order] + self.size[order]
        if np.any(self.offset[order][1:] < ends[:-1]):
            raise ValueError("two writes share a byte")

    @classmethod
    def of(
        cls,
        tasks: int,
        *,
        task: ArrayLike,
        offset: ArrayLike,
        size: ArrayLike,
        call: ArrayLike | None = None,
    ) -> Writes:
        """Make the table from anything that NumPy takes; without ``call`` all rows are one call."""
        columns = [np.asarray(column, np.int64) for column in (task, offset, size)]
        calls = np.zeros_like(columns[0]) if call is None else np.asarray(call, np.int64)
        return cls(tasks, *columns, calls)

    @property
    def bytes(self) -> int:
        """Bytes of all writes."""
        return int(self.size.sum())

    @property
    def calls(self) -> int:
        """Number of collective calls, 0 without a row."""
        return int(self.call.max()) + 1 if len(self.call) else 0

    def each_call(self) -> Iterator[Writes]:
        """Yield the writes of each collective call that has a row, in order."""
        for call in np.unique(self.call):
            mine = self.call == call
            yield Writes(self.tasks, self.task[mine], self.offset[mine], self.size[mine], self.call[mine])


def side_by_side(tasks: int, size_bytes: int) -> Writes:
    """Describe the microbenchmark of the paper: one contiguous piece of each task, in rank order."""
    task = np.arange(tasks, dtype=np.int64)
    return Writes.of(tasks, task=task, offset=task * size_bytes, size=np.full(tasks, size_bytes))


def hacc(tasks: int, particles: int, layout: Layout) -> Writes:
    """Describe HACC-IO: nine variables of the particles of each task, a collective call each."""
    width = np.array(HACC_BYTES, np.int64)
    before = np.cumsum(width) - width
    call = np.repeat(np.arange(len(width)), tasks)
    task = np.tile(np.arange(tasks), len(width))
    if layout == "soa":
        offset = particles * (before[call] * tasks + task * width[call])
    else:
        offset = particles * (before[call] + task * width.sum())
    return Writes.of(tasks, task=task, offset=offset, size=particles * width[call], call=call)
