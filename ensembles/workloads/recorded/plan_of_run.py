"""The plan of a recorded run, for ``ensio-replay --as-recorded``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ensembles.model.units import ROWS_AT_ONCE
from ensembles.workloads.patterns.plan import write_plan
from ensembles.workloads.patterns.task_block import ROW
from ensembles.workloads.recorded.accesses import (
    ACCESS_READ,
    ACCESS_WRITE,
    OPEN,
    READ,
    SYNC,
    WRITE,
    Accesses,
)
from ensembles.workloads.recorded.files_before import first_after_open

_THINKING_NS = 20_000
"""Time outside of calls is made up for whenever so much has passed: each time is a row of the plan."""

_COMPUTE = "task.compute"


class PlanOfRun:
    """The calls of a recorded run as rows of a plan (testbed/plan_operation.h)."""

    def __init__(self, found: Accesses) -> None:
        self._found = found
        key = found.file.astype(np.int64) * (int(found.slot.max()) + 1) + found.slot
        known, place = np.unique(np.where(found.file > 0, key, -1), return_inverse=True)
        has_none = int(known[0] == -1)
        self._file = place - has_none
        self.files = tuple((known[has_none:] // (int(found.slot.max()) + 1)).tolist())
        self._bytes = np.where(found.op == OPEN, flags_of_opens(found), _requested(found))
        self._thinks = _thinking(found)
        waits = self._thinks > 0
        self.counts = np.bincount(found.task, 1 + waits, found.tasks).astype(np.int64)

    @property
    def operations(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def rows(self) -> Iterator[np.ndarray]:
        """Yield the rows, shape (n, len(ROW)), in the order of the tasks."""
        for low in range(0, len(self._found), ROWS_AT_ONCE):
            yield self._some(slice(low, low + ROWS_AT_ONCE))

    def _some(self, part: slice) -> np.ndarray:
        found = self._found
        thinks = self._thinks[part]
        at = np.arange(len(thinks)) + np.cumsum(thinks > 0)
        rows = np.zeros((len(thinks) + int((thinks > 0).sum()), len(ROW)), np.int64)
        columns = {name: rows[:, number] for number, name in enumerate(ROW)}
        columns["pieces"][:] = columns["planes"][:] = 1
        columns["call"][:], columns["file"][:] = len(found.names), -1
        columns["bytes"][at[thinks > 0] - 1] = thinks[thinks > 0]
        columns["call"][at], columns["file"][at] = found.call[part], self._file[part]
        columns["offset"][at] = np.maximum(found.offset[part], 0)
        source = found.offset if found.source is None else found.source
        columns["stride"][at] = np.maximum(source[part], 0)
        columns["bytes"][at] = self._bytes[part]
        columns["plane_stride"][at] = _may_fail(found)[part]
        return rows

    def write(self, path: Path, place: Callable[[str], str], seed: int) -> None:
        """Write the plan; `place` gives the path of a file in the replay."""
        write_plan(
            path,
            seed=seed,
            tasks=self._found.tasks,
            tasks_per_node=self._found.tasks,
            calls=(*self._found.names, _COMPUTE),
            files=[place(self._found.files[number]) for number in self.files],
            hints={},
            steps=["run 0"],
            counts=self.counts,
            rows=self.rows(),
        )


def _thinking(found: Accesses) -> np.ndarray:
    """Compute the waiting before each call, ns: the time outside of calls since it was waited last."""
    passed = np.cumsum(found.gap)
    begins = np.r_[True, found.task[1:] != found.task[:-1]]
    first = np.maximum.accumulate(np.where(begins, np.arange(len(passed)), 0))
    passed -= (passed - found.gap)[first]
    steps = passed // _THINKING_NS
    waits = steps > np.where(begins, 0, np.r_[0, steps[:-1]])
    waited = np.where(waits, passed, 0)
    last = np.maximum.accumulate(np.where(waits | begins, np.arange(len(passed)), 0))
    before = np.r_[0, waited[last][:-1]]
    before[begins] = 0
    return np.where(waits, passed - before, 0)


def _requested(found: Accesses) -> np.ndarray:
    """Return the bytes of each call; of a write that was cut short, those that it moved."""
    short = (found.op == WRITE) & (found.moved >= 0)
    return np.where(short, found.moved, found.bytes)


def _may_fail(found: Accesses) -> np.ndarray:
    """Whether a call may fail: it did, or it asks about a path that is otherwise here."""
    must_not = np.isin(found.op, [READ, WRITE, OPEN, SYNC]) & (found.moved >= 0)
    may: np.ndarray = ~must_not | found.is_call("posix.opendir")
    return may.astype(np.int64)


def flags_of_opens(found: Accesses) -> np.ndarray:
    """Compute the flags of each open from its access mode and what is first done with the file.

    A file that is opened for writing only is emptied if the first write begins at its start; other first
    writes are appended where nothing sought before them, and of a stream.
    """
    order = np.lexsort((found.slot, found.file, found.task))
    op, places = found.op[order], np.arange(len(order))
    moves = np.isin(op, [READ, WRITE])
    later = np.minimum.accumulate(np.where(moves, places, len(order))[::-1])[::-1]
    opens = np.minimum.accumulate(np.where(op == OPEN, places, len(order))[::-1])[::-1]
    next_open = np.r_[opens[1:], len(order)]
    first = np.minimum(later, len(order) - 1)
    same = np.ones(len(order), bool)
    for column in (found.task, found.file, found.slot):
        same &= column[order] == column[order][first]
    is_used = (later < next_open) & same
    at_start = np.empty(len(order), bool)
    at_start[order] = ~is_used | (found.offset[order][first] == 0)
    writes_first = np.empty(len(order), bool)
    writes_first[order] = is_used & (op[first] == WRITE)
    users = found.users()
    reads, writes = found.access & ACCESS_READ > 0, found.access & ACCESS_WRITE > 0
    is_stream = found.is_call("stdio.fopen", "stdio.fdopen")
    flags = np.where(reads & writes, os.O_RDWR, np.where(writes, os.O_WRONLY, os.O_RDONLY))
    flags = np.where(writes & (found.moved >= 0), flags | os.O_CREAT, flags)
    empties = writes & ~reads & at_start & (users[found.file] == 1)
    empties |= is_stream & writes & at_start & (~reads | writes_first)
    flags = np.where(empties, flags | os.O_TRUNC, flags)
    appends = np.zeros(len(found), bool)
    appends[order] = is_used & (first_after_open(found)[order][first]) & (found.offset[order][first] > 0)
    flags = np.where(writes & appends | is_stream & writes & ~reads & ~at_start, flags | os.O_APPEND, flags)
    return flags | os.O_CLOEXEC
