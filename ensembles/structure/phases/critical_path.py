"""Critical path: the I/O that a run had to wait for, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.passes.summary import Summary
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.spans import sum_spans

_LEAST_WAITING = 1 << 12
"""Rows that may wait at least before they are joined."""


@dataclass(frozen=True)
class CriticalPath:
    """Time in I/O on the critical path.

    Attributes
    ----------
    io_s : float
        Time in I/O of the slowest task of each phase, summed over the phases.
    of_phases_s : ndarray of float64, shape (phases,)
        The same by phase, from phase 1.
    """

    io_s: float
    of_phases_s: np.ndarray


_NEVER = np.int64(1) << 62
"""Start of a row that only has time to take off, and, negative, its end."""


class CriticalIo(Summary):
    """A mergeable summary: the time in I/O of each thread in each phase, and when its last call returned.

    The next phase begins when the slowest task of a phase is ready, so that the critical path of a run goes
    through the task whose last call returns last. The time of its outermost I/O calls, in the thread of that
    task with most of it, is on the path, as far as it is not before the end of the phase before: the thread
    that returns last may only have waited for the others. Inner calls do not count: a barrier inside a
    collective call may separate phases. But time that a task waits for others inside an I/O call, as in a
    barrier that HDF5 makes, is not I/O.

    Parameters
    ----------
    phases : Phases
        Phases of the whole run.

    Examples
    --------
    >>> from ensembles.structure.phases.critical_path import CriticalIo
    >>> run = en.open("ensio-ior")
    >>> io = CriticalIo(run.phases)
    >>> io.add(run.events)
    >>> len(io.path().of_phases_s)
    12
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    results = ("_rows",)
    meaning = 1

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        # Rows: phase, rank, thread, start of the first call, end of the last call, time in I/O.
        self._rows = np.empty((6, 0), np.int64)
        self._waiting: list[np.ndarray] = []
        self._rows_waiting = 0

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in the order of completion."""
        if not len(chunk):
            return
        phase = self._phases.phase_index(chunk)
        is_io, inner = is_io_of_calls(chunk.calls)[chunk.call], chunk.depth != 0
        waits = ~is_io & inner
        if waits.any():
            spans = sum_spans(np.where(waits, phase, 0), chunk, by_thread=True)
            never = np.full(len(spans.phase), _NEVER)
            self._wait(np.stack([spans.phase, spans.rank, spans.thread, never, -never, -spans.time_ns]))
        phase[~is_io | inner] = 0
        spans = sum_spans(phase, chunk, by_thread=True)
        columns = (spans.phase, spans.rank, spans.thread, spans.start_ns, spans.end_ns, spans.time_ns)
        self._wait(np.stack(columns))

    def _wait(self, rows: np.ndarray) -> None:
        """Add rows that wait until as many have come as are there: a row is then moved a few times in all."""
        self._waiting.append(rows)
        self._rows_waiting += rows.shape[1]
        if self._rows_waiting > max(self._rows.shape[1], _LEAST_WAITING):
            self.condense()

    def condense(self) -> None:
        """Join the rows of each phase and thread."""
        if self._waiting:
            self._rows = _joined(np.concatenate([self._rows, *self._waiting], axis=1))
            self._waiting, self._rows_waiting = [], 0

    def merge(self, other: CriticalIo) -> None:
        """Add a summary of the same phases."""
        self._wait(other._rows)
        for rows in other._waiting:
            self._wait(rows)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``phase``, ``rank``, ``thread``, ``start_ns``, ``end_ns`` and ``io_ns``."""
        names = ("phase", "rank", "thread", "start_ns", "end_ns", "io_ns")
        return dict(zip(names, self._of_io(), strict=True))

    def _of_io(self) -> np.ndarray:
        """Return the rows of threads with I/O calls."""
        self.condense()
        rows = self._rows[:, self._rows[3] < _NEVER]
        rows[5] = np.maximum(rows[5], 0)
        return rows

    def path(self) -> CriticalPath:
        """Compute the time in I/O on the critical path."""
        phase, rank, _, start_ns, end_ns, io_ns = self._of_io()
        of_phases = np.zeros(self._phases.count)
        # By phase, the thread that returns last; of equal ones that of the lowest rank.
        order = np.lexsort((-rank, end_ns, phase))
        last = order[np.append(np.diff(phase[order]) != 0, True)] if len(order) else order
        # Rows are in the order of phase, rank and thread.
        new_task = np.append(True, (np.diff(phase) != 0) | (np.diff(rank) != 0))[: len(phase)]
        busiest_ns = np.maximum.reduceat(io_ns, np.flatnonzero(new_task)) if len(phase) else io_ns
        task = np.cumsum(new_task) - 1
        first_ns = np.full(self._phases.count + 1, np.iinfo(np.int64).max)
        np.minimum.at(first_ns, phase, start_ns)
        before_ns = np.iinfo(np.int64).min
        for at in last[np.argsort(end_ns[last], kind="stable")].tolist():
            begun_ns = max(before_ns, int(first_ns[phase[at]]))
            io_of_task_ns = int(busiest_ns[task[at]])
            of_phases[phase[at] - 1] = 1e-9 * max(min(io_of_task_ns, int(end_ns[at]) - begun_ns), 0)
            before_ns = max(before_ns, int(end_ns[at]))
        return CriticalPath(float(of_phases.sum()), of_phases)


def _joined(rows: np.ndarray) -> np.ndarray:
    """Join the rows of one phase and thread."""
    if not rows.shape[1]:
        return rows
    rows = rows[:, np.lexsort(rows[2::-1])]
    first = np.flatnonzero(np.append(True, (np.diff(rows[:3], axis=1) != 0).any(axis=0)))
    joined = rows[:, first]
    joined[3] = np.minimum.reduceat(rows[3], first)
    joined[4] = np.maximum.reduceat(rows[4], first)
    joined[5] = np.add.reduceat(rows[5], first)
    return joined
